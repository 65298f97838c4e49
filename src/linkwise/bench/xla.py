"""Peers that JAX compiles for a GPU: MuJoCo's MJX, and the textbook as users of JAX write it down.

Both take arrays of states, (states, n), of a number type that is chosen when they are made, and run
where JAX puts its arrays: on a GPU if it has one, else on the CPU, where they are tested.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.bench.bodies import Array, Body, bodies, depth_first
from linkwise.bench.mujoco import mujoco_model
from linkwise.bench.states import States, any_method
from linkwise.robot import Robot

Batched = Callable[..., Any]  # arrays (states, n) -> (states, ...)
TURNS = 3
MOST_JOINTS = 12  # loops over more links, unrolled, compile for minutes


@dataclass(frozen=True)
class XlaPeer:
    """A library that computes functions of many states by one compiled call."""

    name: str
    order: list[int]  # our joints in the order of its joints
    functions: Mapping[str, Callable[[str], Batched]]  # for a number type

    def evaluate(self, function: str, states: States) -> Array | None:
        """Results in float64 to compare with ours, joints in its own order."""
        found = self._ready(function, states, "float64")
        return None if found is None else np.asarray(found())

    def seconds(self, function: str, states: States, dtype: str) -> float | None:
        """Seconds of one compiled call among several; None where it has no such function."""
        call = self._ready(function, states, dtype)
        if call is None:
            return None
        call().block_until_ready()
        turns = []
        for _ in range(TURNS):
            start = time.perf_counter()
            results = [call() for _ in range(TURNS)]
            results[-1].block_until_ready()
            turns.append((time.perf_counter() - start) / TURNS)
        return min(turns)

    def _ready(self, function: str, states: States, dtype: str) -> Callable[[], Any] | None:
        make = self.functions.get(function)
        if make is None:
            return None
        jax = _jax()
        with _precision(jax, dtype):
            given = states.columns(self.order).given(any_method(function))
            arrays = [jax.numpy.asarray(x.astype(dtype)) for x in given]
            compiled = jax.jit(make(dtype))

        def call() -> Any:
            with _precision(jax, dtype):
                return compiled(*arrays)

        return call


def mjx_peer(robot: Robot, _frame: str) -> XlaPeer:
    """The robot in MJX: MuJoCo over JAX, without contacts and constraints."""
    jax = _jax()
    from mujoco import mjx

    model = mujoco_model(robot)

    def batched(state: Callable[[Any, Any, Sequence[Any]], Any]) -> Callable[[str], Batched]:
        def make(_dtype: str) -> Batched:
            there, empty = mjx.put_model(model), mjx.make_data(model)
            return jax.vmap(lambda *given: state(there, empty, given))  # type: ignore[no-any-return]

        return make

    def forward(m: Any, d: Any, given: Sequence[Any]) -> Any:
        q, qd, tau = given
        return mjx.forward(m, d.replace(qpos=q, qvel=qd, qfrc_applied=tau)).qacc

    def inverse(m: Any, d: Any, given: Sequence[Any]) -> Any:
        q, qd, qdd = given
        return mjx.inverse(m, d.replace(qpos=q, qvel=qd, qacc=qdd)).qfrc_inverse

    def mass(m: Any, d: Any, given: Sequence[Any]) -> Any:
        (q,) = given
        return mjx.full_m(m, mjx.crb(m, mjx.com_pos(m, mjx.kinematics(m, d.replace(qpos=q)))))

    functions = {"forward_dynamics": forward, "inverse_dynamics": inverse, "mass_matrix": mass}
    made = {name: batched(state) for name, state in functions.items()}
    return XlaPeer("mjx", depth_first(robot.tree), made)


def jax_peer(robot: Robot, _frame: str) -> XlaPeer:
    """RNEA and CRBA on matrices of 6 x 6 [RBDA Tables 5.1, 6.2], one state, over many by vmap.

    Our own equations on scalars are no rival: XLA compiles their straight-line code for hours.
    """
    jax, links = _jax(), bodies(robot.tree)
    if len(links) > MOST_JOINTS:
        raise ValueError(f"compared up to {MOST_JOINTS} joints: more compile for minutes")
    gravity = -np.concatenate((np.zeros(3), robot.gravity))

    def forward(q: Any, qd: Any, tau: Any) -> Any:
        xp = jax.numpy
        bias = _rnea(xp, links, gravity, q, qd, xp.zeros_like(q))
        return jax.scipy.linalg.solve(_crba(xp, links, q), tau - bias, assume_a="pos")

    def inverse(q: Any, qd: Any, qdd: Any) -> Any:
        return _rnea(jax.numpy, links, gravity, q, qd, qdd)

    def mass(q: Any) -> Any:
        return _crba(jax.numpy, links, q)

    functions = {"forward_dynamics": forward, "inverse_dynamics": inverse, "mass_matrix": mass}
    made = {name: lambda _dtype, run=run: jax.vmap(run) for name, run in functions.items()}
    return XlaPeer("jax", depth_first(robot.tree), made)


XLA_PEERS = {"mjx": mjx_peer, "jax": jax_peer}


def _rnea(xp: Any, links: Sequence[Body], gravity: Any, q: Any, qd: Any, qdd: Any) -> Any:
    """Torques of one state."""
    X, S, inertia = _model(xp, links, q)
    v: list[Any] = []
    a: list[Any] = []
    f: list[Any] = []
    for i, link in enumerate(links):
        above = (v[link.parent], a[link.parent]) if link.parent >= 0 else (xp.zeros(6), gravity)
        v.append(X[i] @ above[0] + S[i] * qd[i])
        a.append(X[i] @ above[1] + S[i] * qdd[i] + _cross(xp, v[i]) @ S[i] * qd[i])
        f.append(inertia[i] @ a[i] - _cross(xp, v[i]).T @ (inertia[i] @ v[i]))
    torques = []
    for i, link in reversed(list(enumerate(links))):
        torques.append(S[i] @ f[i] + link.armature * qdd[i])
        if link.parent >= 0:
            f[link.parent] = f[link.parent] + X[i].T @ f[i]
    return xp.stack(torques[::-1])


def _crba(xp: Any, links: Sequence[Body], q: Any) -> Any:
    """The mass matrix of one state."""
    X, S, composite = _model(xp, links, q)
    M = [[xp.zeros_like(q[0]) for _ in links] for _ in links]
    for i, link in reversed(list(enumerate(links))):
        force, j = composite[i] @ S[i], i
        M[i][i] = S[i] @ force + link.armature
        if link.parent >= 0:
            composite[link.parent] = composite[link.parent] + X[i].T @ composite[i] @ X[i]
        while links[j].parent >= 0:
            force, j = X[j].T @ force, links[j].parent
            M[i][j] = M[j][i] = S[j] @ force
    return xp.stack([xp.stack(row) for row in M])


def _model(xp: Any, links: Sequence[Body], q: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Motion transforms from parent to link, motion axes and inertias, all (angular, linear)."""
    transforms, axes, inertias = [], [], []
    for x, link in zip(q, links, strict=True):
        turns = link.kind == "revolute"
        c, s = (xp.cos(x), xp.sin(x)) if turns else (xp.ones_like(x), xp.zeros_like(x))
        zero, one = xp.zeros_like(x), xp.ones_like(x)
        rows = ((c, s, zero), (-s, c, zero), (zero, zero, one))
        E = xp.stack([xp.stack(row) for row in rows]) @ link.rotation.T
        r = link.position + (0.0 if turns else link.rotation[:, 2] * x)
        transforms.append(_block(xp, E, xp.zeros((3, 3)), -E @ _skew(xp, r), E))
        axes.append(np.eye(6)[2 if turns else 5].astype(q.dtype))
        C = _skew(np, link.center)
        moment = link.inertia + link.mass * C @ C.T
        inertia = np.block([[moment, link.mass * C], [link.mass * C.T, link.mass * np.eye(3)]])
        inertias.append(xp.asarray(inertia, q.dtype))
    return transforms, axes, inertias


def _cross(xp: Any, v: Any) -> Any:
    """v x, of motions."""
    w, u = _skew(xp, v[:3]), _skew(xp, v[3:])
    return _block(xp, w, xp.zeros((3, 3)), u, w)


def _skew(xp: Any, r: Any) -> Any:
    x, y, z = r
    zero = xp.zeros_like(x)
    return xp.stack([xp.stack(row) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))])


def _block(xp: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return xp.concatenate((xp.concatenate((a, b), 1), xp.concatenate((c, d), 1)), 0)


def _jax() -> Any:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others need memory too
    import jax

    return jax


def _precision(jax: Any, dtype: str) -> AbstractContextManager[None]:
    """A context in which JAX may compute in float64; outside, it stays as the user set it."""
    where = jax if hasattr(jax, "enable_x64") else jax.experimental
    found: AbstractContextManager[None] = where.enable_x64(dtype == "float64")
    return found
