"""Every function of a robot by the dense equations of dense.py: what the product grid expects.

`Expected(robot, ...)` has one robot with its constants; ``expected.function(name)`` is a function
of complex arrays (states, n), which complex steps can be taken of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from dense import (
    LONG,
    STEP,
    Array,
    Grip,
    Machine,
    cross,
    grasp_forward,
    grip_of,
    machine_of,
    of_quaternion,
    placed,
    quaternion_product,
    skew,
    solve,
    times,
    transposed,
    whole_state,
    with_constants,
)

import linkwise as lw

Function = Callable[..., Array]
INPUTS = {"q": "q", "qd": "v", "qdd": "v", "tau": "v", "rhs": "v", "x": "v", "v": "v",
          "weights": "v", "q0": "q", "q1": "q", "dt": "dt"}  # fmt: skip


class Expected:
    """The functions of one robot, with some constants and wrenches."""

    def __init__(
        self, robot: lw.Robot, constants: Any = None, frame: str = "tip", payload: str = ""
    ) -> None:
        self.robot, self.frame, self.payload = robot, frame, payload
        self.grip: Grip | None = grip_of(robot) if isinstance(robot, lw.Grasp) else None
        self.base = self.grip.tree if self.grip else machine_of(robot)
        self.names = tuple(constants or ())
        self.machine: Machine = self.base
        self.put(constants or {})

    def put(self, constants: Any) -> Expected:
        """Other constants."""
        self.machine = with_constants(self.base, constants, self.payload)
        if self.grip is None:
            return self
        was = self.grip.full
        bodies, n = list(self.machine.bodies), len(self.machine.joints)
        if self.grip.carrier is not None:
            # the link that carries the object has the object's inertia too: without it here
            link, X = self.grip.carrier
            last = was.bodies[-1]
            bodies = [*bodies, (link, -placed(last[1], X)), last]
        self.grip = self.grip._replace(
            full=was.like(
                joints=(*self.machine.joints, *was.joints[n:]), bodies=tuple(bodies),
                gravity=self.machine.gravity, placement=self.machine.placement,
            ),
            tree=self.machine,
        )  # fmt: skip
        return self

    def function(self, name: str, axes: str = "base") -> Function:
        """The function of that name."""
        made = globals()[f"_{name}"]
        return lambda *values, **options: made(self, *values, **options, **_axes(axes))

    def kinematics(self, q: Array, qd: Array, qdd: Array) -> tuple[Array, ...]:
        m = self.machine.motion(q, qd, qdd)
        return self.machine.at(m, *self.machine.frames[self.frame])

    def frame_jacobian(self, q: Array) -> Array:
        return self.machine.jacobian(q, *self.machine.frames[self.frame])


def _axes(axes: str) -> dict[str, str]:
    return {} if axes == "base" else {"axes": axes}


def _in_axes(e: Expected, q: Array, x: Array, axes: str) -> Array:
    """Motions (..., 6, k) in the axes of the frame."""
    if axes == "base":
        return x
    back = transposed(e.machine.at(*_pose_at(e, q))[0][:, :3, :3])
    return np.concatenate([back @ x[:, :3], back @ x[:, 3:]], 1)


def _pose_at(e: Expected, q: Array) -> tuple[Any, int, Array]:
    none = np.zeros((len(q), e.machine.nv), LONG)
    return e.machine.motion(q, none, none), *e.machine.frames[e.frame]


# -- dynamics -------------------------------------------------------------------------------------


def _inverse_dynamics(
    e: Expected, q: Array, qd: Array, qdd: Array, weights: Any = None, f_ext: Any = ()
) -> Array:
    if e.grip is not None:
        return _grasp_inverse(e, q, qd, qdd, f_ext, weights)
    tau = e.machine.inverse(q, qd, qdd, f_ext)
    if not e.machine.held:
        return tau
    J = transposed(e.machine.constraint(q, qd)[0])  # (states, nv, m)
    return _least(tau, J, e.machine.passive)


def _least(tau: Array, J: Array, passive: Sequence[int], weights: Any = None) -> Array:
    """``tau - J λ`` of least (weighted) squares, zero where passive: for J of full rank."""
    n, m = J.shape[-2:]
    own = [k for k in range(n) if k not in passive]
    A, B = J[:, own], J[:, list(passive)]
    share = np.ones((len(J), n)) if weights is None else weights
    W = share[:, own][:, None, :]
    none = np.zeros((len(J), len(passive), len(passive)), LONG)
    K = np.block([[transposed(A) * W @ A, transposed(B)], [B, none]])
    rhs = np.concatenate([times(transposed(A) * W, tau[:, own]), tau[:, list(passive)]], -1)
    lam = solve(K, rhs[..., None])[:, :m, 0]
    return tau - times(J, lam)


def _grasp_inverse(
    e: Expected, q: Array, qd: Array, qdd: Array, f_ext: Any, weights: Any = None
) -> Array:
    """Smallest torques."""
    grip = e.grip
    assert grip is not None
    full = grip.full
    Q, V = whole_state(grip, q, qd)
    A = qdd
    if grip.carrier is not None:
        T, v, a = grip.tree.at(grip.tree.motion(q, qd, qdd), *grip.carrier)
        R = transposed(T[:, :3, :3])
        spin = cross(v[:, :3], v[:, 3:])
        own = np.concatenate([times(R, a[:, :3]), times(R, a[:, 3:] - spin)], -1)
        A = np.concatenate([qdd, own], -1)
    tau = full.inverse(Q, V, A, f_ext)
    J = transposed(full.constraint(Q, V)[0])
    nv = sum(arm.nv for arm in e.robot.arms)
    return _least(tau, J, range(nv, full.nv), weights)[:, : e.machine.nv]


def _bias(e: Expected, q: Array, qd: Array, f_ext: Any = ()) -> Array:
    return e.machine.bias(q, qd, f_ext)


def _gravity_torque(e: Expected, q: Array, f_ext: Any = ()) -> Array:
    none = np.zeros((len(q), e.machine.nv), LONG)
    return e.machine.bias(q, none, f_ext)


def _forward_dynamics(e: Expected, q: Array, qd: Array, tau: Array, f_ext: Any = ()) -> Array:
    if e.grip is not None:
        return _motion(e, q, qd, tau, f_ext)[:, : e.machine.nv]
    return e.machine.forward(q, qd, tau, f_ext)[0]


def _motion(e: Expected, q: Array, qd: Array, tau: Array, f_ext: Any = ()) -> Array:
    assert e.grip is not None
    return grasp_forward(e.grip, q, qd, tau, f_ext)


def _object_acceleration(e: Expected, q: Array, qd: Array, tau: Array, f_ext: Any = ()) -> Array:
    return _motion(e, q, qd, tau, f_ext)[:, e.machine.nv : e.machine.nv + 6]


def _contact_forces(e: Expected, q: Array, qd: Array, tau: Array, f_ext: Any = ()) -> Array:
    forces = _motion(e, q, qd, tau, f_ext)[:, e.machine.nv + 6 :]
    return forces.reshape(len(q), -1, 6)


def _mass_matrix(e: Expected, q: Array) -> Array:
    return e.machine.mass_matrix(q)


def _mass_matrix_inverse(e: Expected, q: Array) -> Array:
    M = e.machine.mass_matrix(q)
    return solve(M, np.broadcast_to(np.eye(e.machine.nv), M.shape))


def _solve_mass(e: Expected, q: Array, rhs: Array) -> Array:
    return solve(e.machine.mass_matrix(q), rhs[..., None])[..., 0]


def _mass_product(e: Expected, q: Array, x: Array) -> Array:
    return times(e.machine.mass_matrix(q), x)


def _kinetic_energy(e: Expected, q: Array, qd: Array) -> Array:
    return 0.5 * (qd * times(e.machine.mass_matrix(q), qd)).sum(-1)


def _potential_energy(e: Expected, q: Array) -> Array:
    m, total = _pose_at(e, q)[0], np.zeros(len(q), LONG)
    for link, ten in e.machine.bodies:
        mass, h, _ = e.machine.body_parts(ten)
        at = mass * m.T[link][:, :3, 3] + times(m.T[link][:, :3, :3], h[None])
        total -= at @ np.asarray(e.machine.gravity, LONG)
    return total


def _coriolis_product(e: Expected, q: Array, qd: Array) -> Array:
    """``C qd``, which is all that any such matrix must give."""
    still = e.machine.like(gravity=np.zeros(3))
    return still.inverse(q, qd, 0 * qd, parts=False)


def _joint_wrenches(e: Expected, q: Array, qd: Array, qdd: Array, f_ext: Any = ()) -> Array:
    machine = e.machine
    m = machine.motion(q, qd, qdd)
    loads = [np.zeros((len(q), 6), LONG) for _ in machine.joints]

    def add(link: int, at: Array, w: Array) -> None:
        """A wrench about a point, on a link and all before it."""
        while link >= 0:
            r = at - m.T[link][:, :3, 3]
            loads[link] += np.concatenate([w[:, :3] + cross(r, w[:, 3:]), w[:, 3:]], -1)
            link = machine.joints[link].parent

    for link, ten in machine.bodies:
        add(link, m.T[link][:, :3, 3], machine.wrench(m, link, ten))
    for name, w in f_ext:
        link, X = machine.frames[name]
        push = np.broadcast_to(np.asarray(w, LONG), (len(q), 6))
        add(link, machine.at(m, link, X)[0][:, :3, 3], -push)
    rows = []
    for T, w in zip(m.T, loads, strict=True):
        R = transposed(T[:, :3, :3])
        rows.append(np.concatenate([times(R, w[:, :3]), times(R, w[:, 3:])], -1))
    return np.stack(rows, 1)


def _regressor(e: Expected, q: Array, qd: Array, qdd: Array) -> Array:
    columns = []
    for link in range(len(e.machine.joints)):
        for unit in np.eye(10):
            alone = e.machine.like(bodies=((link, unit),))
            columns.append(alone.inverse(q, qd, qdd, parts=False))
    return np.stack(columns, -1)


def _energy_regressor(e: Expected, q: Array, qd: Array) -> Array:
    """Kinetic and potential energy per unit of the parameters."""
    rows = []
    bare = tuple(_replace_rotor(joint) for joint in e.machine.joints)
    for link in range(len(e.machine.joints)):
        for unit in np.eye(10):
            one = Expected.__new__(Expected)
            one.machine, one.frame = e.machine.like(bodies=((link, unit),), joints=bare), e.frame
            rows.append(np.stack([_kinetic_energy(one, q, qd), _potential_energy(one, q)], -1))
    return np.stack(rows, -1)


def _replace_rotor(joint: Any) -> Any:
    return replace(joint, rotor=0.0)


def _inverse_dynamics_derivatives(
    e: Expected, q: Array, qd: Array, qdd: Array, f_ext: Any = ()
) -> Array:
    return _three(e, _inverse_dynamics, q, qd, qdd, f_ext)


def _forward_dynamics_derivatives(
    e: Expected, q: Array, qd: Array, tau: Array, f_ext: Any = ()
) -> Array:
    return _three(e, _forward_dynamics, q, qd, tau, f_ext)


def _three(e: Expected, f: Function, q: Array, qd: Array, u: Array, f_ext: Any) -> Array:
    """Three matrices by complex steps and the value, one below another; of joints only."""
    states, n, h = len(q), e.machine.nv, np.longdouble(STEP)
    push = [(name, np.repeat(w, n, axis=0)) for name, w in f_ext]
    unit, rows = np.tile(np.eye(n), (states, 1)), []
    for k in range(3):
        args = [np.repeat(x, n, axis=0) for x in (q, qd, u)]
        along = e.machine.rates_of(args[0], unit) if k == 0 else unit
        args[k] = args[k] + 1j * h * along
        found = f(e, *args, f_ext=push)[:, :n].imag / h
        rows.append(transposed(found.reshape(states, n, n)))
    value = f(e, q, qd, u, f_ext=f_ext)[:, None, :n].real
    return np.concatenate([*rows, value], 1).astype(LONG)


# -- what is held ---------------------------------------------------------------------------------


def _constraint_forces(e: Expected, q: Array, qd: Array, tau: Array, f_ext: Any = ()) -> Array:
    """Wrenches on frames a of loops, in base axes."""
    _, lam = e.machine.forward(q, qd, tau, f_ext)
    m, found, first = e.machine.motion(q, qd, 0 * qd), [], 0
    for held in e.machine.held:
        if held.curve is not None:
            first += 1
            continue
        rows = np.asarray(held.rows, LONG)
        own = lam[:, first : first + len(rows)] @ rows
        R = e.machine.at(m, *held.b)[0][:, :3, :3]
        found.append(np.concatenate([times(R, own[:, :3]), times(R, own[:, 3:])], -1))
        first += len(rows)
    return np.stack(found, 1) if found else np.zeros((len(q), 0, 6), LONG)


def _delassus(e: Expected, q: Array) -> Array:
    J = e.machine.constraint(q, np.zeros((len(q), e.machine.nv), LONG))[0]
    return J @ solve(e.machine.mass_matrix(q), transposed(J))


def _impulse(e: Expected, q: Array, qd: Array) -> Array:
    """Rates after, and impulses on frames a."""
    J, _, _, moving = e.machine.constraint(q, qd)
    M = e.machine.mass_matrix(q)
    lam = -solve(J @ solve(M, transposed(J)), moving[..., None])
    after = qd + (solve(M, transposed(J) @ lam))[..., 0]
    m, found, first = e.machine.motion(q, qd, 0 * qd), [], 0
    for held in e.machine.held:
        rows = np.eye(1, 6) if held.rows is None else np.asarray(held.rows, LONG)
        if held.curve is None:
            own = lam[:, first : first + len(rows), 0] @ rows
            R = e.machine.at(m, *held.b)[0][:, :3, :3]
            found += [times(R, own[:, :3]), times(R, own[:, 3:])]
        first += len(rows)
    return np.concatenate([after, *found], -1)


def _residual(e: Expected, q: Array, qd: Array) -> Array:
    _, _, error, moving = e.machine.constraint(q, qd)
    return np.stack([error, moving], 1)


# -- kinematics -----------------------------------------------------------------------------------


def _forward_kinematics(e: Expected, q: Array) -> Array:
    return e.machine.at(*_pose_at(e, q))[0]


def _link_poses(e: Expected, q: Array) -> Array:
    return np.stack(_pose_at(e, q)[0].T, 1)


def _jacobian(e: Expected, q: Array, axes: str = "base") -> Array:
    return _in_axes(e, q, e.frame_jacobian(q), axes)


def _frame_velocity(e: Expected, q: Array, qd: Array, axes: str = "base") -> Array:
    return _in_axes(e, q, e.kinematics(q, qd, 0 * qd)[1][..., None], axes)[..., 0]


def _frame_acceleration(e: Expected, q: Array, qd: Array, qdd: Array) -> Array:
    return e.kinematics(q, qd, qdd)[2]


def _jacobian_dot_qd(e: Expected, q: Array, qd: Array) -> Array:
    return e.kinematics(q, qd, 0 * qd)[2]


def _tip_acceleration(e: Expected, q: Array, qd: Array, tau: Array, f_ext: Any = ()) -> Array:
    return e.kinematics(q, qd, _forward_dynamics(e, q, qd, tau, f_ext))[2]


def _kinematic_hessian(e: Expected, q: Array) -> Array:
    """How the Jacobian changes at unit rates: entry [:, rate, column]."""
    h, found = np.longdouble(STEP), []
    for unit in np.eye(e.machine.nv):
        along = e.machine.rates_of(q, np.tile(unit, (len(q), 1)))
        found.append(e.frame_jacobian(q + 1j * h * along).imag / h)
    return np.stack(found, 2).astype(LONG)


def _operational_inertia_inverse(e: Expected, q: Array) -> Array:
    J = e.frame_jacobian(q)
    return J @ solve(e.machine.mass_matrix(q), transposed(J))


def _position_inertia(e: Expected, q: Array) -> Array:
    inverse = _operational_inertia_inverse(e, q)[:, 3:, 3:]
    return solve(inverse, np.broadcast_to(np.eye(3), inverse.shape))


def _operational_inertia(e: Expected, q: Array) -> Array:
    inverse = _operational_inertia_inverse(e, q)
    return solve(inverse, np.broadcast_to(np.eye(6), inverse.shape))


def _generalized_jacobian(e: Expected, q: Array) -> Array:
    """The Jacobian of the joints while the base moves as momentum says."""
    M, J = e.machine.mass_matrix(q), e.frame_jacobian(q)
    return J[..., 6:] - J[..., :6] @ solve(M[:, :6, :6], M[:, :6, 6:])


# -- momentum -------------------------------------------------------------------------------------


def _mass_and_centre(e: Expected, q: Array) -> tuple[Array, Array]:
    m = _pose_at(e, q)[0]
    total, first = np.zeros(len(q), LONG), np.zeros((len(q), 3), LONG)
    for link, ten in e.machine.bodies:
        mass, h, _ = e.machine.body_parts(ten)
        total += mass
        first += mass * m.T[link][:, :3, 3] + times(m.T[link][:, :3, :3], h[None])
    return total, first / total[:, None]


def _center_of_mass(e: Expected, q: Array) -> Array:
    return _mass_and_centre(e, q)[1]


def _needed(e: Expected, q: Array, qd: Array, qdd: Array) -> Array:
    """The rate of momentum about the centre of mass, (angular, linear)."""
    m = e.machine.motion(q, qd, qdd)
    _, c = _mass_and_centre(e, q)
    total = np.zeros((len(q), 6), LONG)
    for link, ten in e.machine.bodies:
        w = e.machine.wrench(m, link, ten, gravity=False)
        r = m.T[link][:, :3, 3] - c
        total += np.concatenate([w[:, :3] + cross(r, w[:, 3:]), w[:, 3:]], -1)
    return total


def _centroidal_momentum_matrix(e: Expected, q: Array) -> Array:
    wide, n = np.repeat(q, e.machine.nv, axis=0), e.machine.nv
    unit = np.tile(np.eye(n, dtype=LONG), (len(q), 1))
    return transposed(_needed(e, wide, 0 * unit, unit).reshape(len(q), n, 6))


def _centroidal_momentum(e: Expected, q: Array, qd: Array) -> Array:
    return times(_centroidal_momentum_matrix(e, q), qd)


def _centroidal_bias(e: Expected, q: Array, qd: Array) -> Array:
    return _needed(e, q, qd, 0 * qd)


def _com_jacobian(e: Expected, q: Array) -> Array:
    total, _ = _mass_and_centre(e, q)
    return _centroidal_momentum_matrix(e, q)[:, 3:] / total[:, None, None]


def _com_bias(e: Expected, q: Array, qd: Array) -> Array:
    total, _ = _mass_and_centre(e, q)
    return _centroidal_bias(e, q, qd)[:, 3:] / total[:, None]


# -- configurations -------------------------------------------------------------------------------


def _integrate(e: Expected, q: Array, v: Array, dt: Array) -> Array:
    return e.machine.moved(q, v * dt)


def _difference(e: Expected, q0: Array, q1: Array) -> Array:
    """The rates from one configuration to another: by bisection-free Newton on `moved`."""
    out = np.zeros((len(q0), e.machine.nv), LONG)
    for joint in e.machine.joints:
        a, b = joint.q, joint.v
        if joint.follows:
            continue
        if joint.kind != "free":
            out[:, b] = q1[:, a] - q0[:, a]
            continue
        out[:, b : b + 6] = _twist_between(q0[:, a : a + 7], q1[:, a : a + 7])
    return out


def _twist_between(a: Array, b: Array) -> Array:
    """The constant body twist from one pose to another, both as quaternion and position."""
    x, y = (p[:, :4] / np.sqrt((p[:, :4] ** 2).sum(-1))[:, None] for p in (a, b))
    step = quaternion_product(x * np.array([1, -1, -1, -1]), y)
    step = step * np.where(step[:, :1].real < 0, -1.0, 1.0)  # the shorter way round
    size = np.sqrt((step[:, 1:] ** 2).sum(-1))[:, None]
    angle = 2 * np.arctan(size / step[:, :1])
    n = step[:, 1:] / size
    k, t = skew(n), angle[..., None]
    V = np.eye(3) + (1 - np.cos(t)) / t * k + (1 - np.sin(t) / t) * (k @ k)
    p = times(transposed(of_quaternion(x)), b[:, 4:] - a[:, 4:])
    return np.concatenate([angle * n, solve(V, p[..., None])[..., 0]], -1)


def _normalize(e: Expected, q: Array) -> Array:
    out = np.array(q, LONG)
    for joint in e.machine.joints:
        if joint.kind == "free":
            x = q[:, joint.q : joint.q + 4]
            out[:, joint.q : joint.q + 4] = x / np.sqrt((x * x).sum(-1))[:, None]
    return out
