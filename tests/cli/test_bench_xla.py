"""Peers that JAX compiles, on its CPU: whether they compute the same robot."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise.bench.bodies import bodies, depth_first
from linkwise.bench.gpu import MEASURED, Gpu, Row
from linkwise.bench.peers import agreeing_peers, differences
from linkwise.bench.states import random_states, tip
from linkwise.bench.xla import XLA_PEERS, _crba, _rnea, jax_peer


def test_the_table_of_a_gpu() -> None:
    table = Gpu.__new__(Gpu)  # without a GPU
    table.clock = SimpleNamespace(starts=1e11)  # type: ignore[assignment]
    table.copied = 4e12
    table.peers = [SimpleNamespace(name="jax")]  # type: ignore[list-item]
    table.missing = {"mjx": "not installed"}
    row = Row("bias", "rnea", "float32", 0.05, 2e4, 1e4, bytes=100, operations=320)
    lines = table.text([row, replace(row, peers={"jax": 40.0})]).splitlines()
    head, _, first, second = lines[:4]
    assert head.split()[-2:] == ["queued", "jax"]
    assert " 20.00  2.00     50%         50%" in first and not first.endswith(")")
    assert second.endswith("40 ns (800x)")
    assert lines[-2] == "mjx: not installed" and lines[-1].startswith("jax: RNEA and CRBA")


def test_a_gpu_is_measured_with_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(lw.BackendUnavailable, match="CuPy, which is not installed: pip install"):
        Gpu(lw.load("puma560"))


def tree() -> lw.Robot:
    """Two branches, a sliding joint and a rotor: what a wrong order of joints would show in."""
    b = lw.Builder("tree")
    for name, parent, kind in (
        ("a", "base", "revolute"), ("b", "a", "prismatic"), ("c", "a", "revolute"),
        ("d", "b", "revolute"),
    ):  # fmt: skip
        b = b.link(name, mass=1.5, com=(0.1, 0.02, 0.2), inertia=(0.1, 0.12, 0.15))
        b = b.joint(f"j{name}", kind, parent=parent, child=name, axis=(0.6, 0.0, 0.8),
                    xyz=(0.1, 0.2, 0.3), rpy=(0.3, 0.2, 0.1), armature=0.05)  # fmt: skip
    return b.build()


def test_the_textbook_computes_the_same_robot() -> None:
    """Without JAX: NumPy has the functions that it needs."""
    robot = tree()
    links, order = bodies(robot.tree), depth_first(robot.tree)
    gravity = -np.concatenate((np.zeros(3), robot.gravity))
    states = random_states(robot, 3)
    mine = states.columns(order)
    for k in range(3):
        found = _rnea(np, links, gravity, mine.q[k], mine.qd[k], mine.tau[k])
        expected = robot.inverse_dynamics(states.q[k], states.qd[k], states.tau[k])[order]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        M = robot.mass_matrix(states.q[k])[np.ix_(order, order)]
        np.testing.assert_allclose(_crba(np, links, mine.q[k]), M, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", XLA_PEERS)
def test_peers_agree_and_are_timed(name: str) -> None:
    pytest.importorskip("jax", reason="JAX is not installed")
    if name == "mjx":
        pytest.importorskip("mujoco.mjx", reason="mujoco-mjx is not installed")
    robot = tree()
    found = agreeing_peers(robot, tip(robot), MEASURED, {name: XLA_PEERS[name]})
    assert not found.missing and list(found.agreement[name]) == list(MEASURED)
    (peer,) = found.peers
    seconds = peer.seconds("mass_matrix", random_states(robot, 8), "float32")
    assert seconds is not None and seconds > 0


def test_a_peer_of_another_robot_is_noticed() -> None:
    pytest.importorskip("jax", reason="JAX is not installed")
    robot = tree()
    other = jax_peer(robot.with_gravity((0.0, 0.0, -1.6)), tip(robot))
    error = differences(robot, tip(robot), other, ["inverse_dynamics"])["inverse_dynamics"]
    assert error > 1e-3
