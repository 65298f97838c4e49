"""Chains of any length: against the same chain made link by link, and against identities."""

from __future__ import annotations

import math
import pickle
import sys
import time
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.engine import build
from linkwise.engine.auto import in_loops
from linkwise.trace.classes import classes_of

chain_module, load_module = sys.modules["linkwise.chain"], sys.modules["linkwise.load"]


def by_hand(n: int, length: float, mass: float, joints: tuple[str, ...]) -> lw.Robot:
    """The uniform chain as a builder makes it."""
    b, radius = lw.Builder("by hand"), 0.1 * length
    across = mass * (length**2 / 12 + radius**2 / 4)
    for i in range(n):
        b = b.link(
            f"link{i + 1}", mass=mass, com=(length / 2, 0, 0),
            inertia=(mass * radius**2 / 2, across, across),
        ).joint(
            f"joint{i + 1}", joints[i % len(joints)], parent=f"link{i}" if i else "base",
            child=f"link{i + 1}", xyz=(length if i else 0, 0, 0), rpy=(math.pi / 2, 0, 0),
        )  # fmt: skip
    return b.build()


@pytest.mark.parametrize("joints", [("revolute",), ("revolute", "prismatic", "spherical")])
def test_a_uniform_chain_is_what_a_builder_makes(joints: tuple[str, ...]) -> None:
    n, length, mass = 7, 0.25, 0.4
    chain, built = (
        lw.chain(n, length=length, mass=mass, joints=joints),
        by_hand(n, length, mass, joints),
    )
    assert (chain.nq, chain.nv) == (built.nq, built.nv)
    assert chain.joint_names == built.joint_names and chain.link_names == built.link_names
    q = chain.random_q(seed=0, size=4)
    qd, x = np.random.default_rng(1).normal(size=(2, 4, chain.nv))
    for mine in (chain, chain.with_codegen("rolled"), chain.with_codegen("unrolled")):
        for found, expected in (
            (mine.inverse_dynamics(q, qd, x), built.inverse_dynamics(q, qd, x)),
            (mine.mass_matrix(q), built.mass_matrix(q)),
            (mine.forward_kinematics(q, "link5"), built.forward_kinematics(q, "link5")),
            (mine.kinetic_energy(q, qd), built.kinetic_energy(q, qd)),
        ):
            assert np.abs(found - expected).max() <= 1e-13 * np.abs(expected).max()


def test_a_table_answers_as_its_links_do() -> None:
    table = lw.chain(7, "random", joints=("revolute", "spherical", "prismatic", "planar"))
    links = lw.Robot.from_tree(table.tree.with_links(table.tree.links))
    assert table.link_names == links.link_names and table.joint_names == links.joint_names
    assert table.tree.joint_frames == links.tree.joint_frames
    assert (table.position_limits == links.position_limits).all()
    assert (table.neutral() == links.neutral()).all()
    assert table.tree.mass == pytest.approx(links.tree.mass, rel=1e-14)


@pytest.mark.parametrize("n", [1_000, 30_000])
@pytest.mark.parametrize("kind", ["uniform", "tapered", "random"])
def test_forward_and_inverse_dynamics_of_long_chains(n: int, kind: str) -> None:
    """Power of what the torques give equals the change of energy, and ID undoes FD.

    The torques of given accelerations lose as many digits as the mass matrix amplifies the rounding
    of the accelerations: the distance from a joint to the tip squared over a link's own length.

    An energy is a sum over the links, in which rounding walks at random: some sqrt(n) eps of its
    size (0.7 at most on 24 chains and states, by AVX-512 and by SSE2), over the time between the
    two. At a step of 1e-6 s the curvature of the energy is a tenth of that.
    """
    robot = lw.chain(n, kind, damping=0.01)
    rng = np.random.default_rng(2)
    q, qd, tau = 0.2 * rng.normal(size=n), 0.1 * rng.normal(size=n), 1e-3 * rng.normal(size=n)
    qdd = robot.forward_dynamics(q, qd, tau)
    assert np.isfinite(qdd).all()
    other = robot.forward_dynamics(q, qd, tau, method="fd3")
    assert np.abs(qdd - other).max() <= 1e-9 * np.abs(qdd).max()
    power, step = qd @ (tau - 0.01 * qd), 1e-6
    ends = [
        robot.kinetic_energy(q + s * qd, qd + s * qdd) + robot.potential_energy(q + s * qd)
        for s in (-step, step)
    ]
    size = robot.kinetic_energy(q, qd) + abs(robot.potential_energy(q))
    rounding = np.sqrt(n) * np.finfo(float).eps / step
    assert abs((ends[1] - ends[0]) / (2 * step) - power) <= 4.0 * rounding * size


def test_the_momentum_of_a_chain_of_links_without_weight() -> None:
    """A straight chain that turns rigidly about its first joint: tau = I qdd, and M is known."""
    n, length, mass = 400, 0.1, 0.2
    robot = lw.chain(n, length=length, mass=mass, gravity=(0, 0, 0))
    qdd = np.zeros(n)
    qdd[0] = 1.0
    rest = np.zeros(n)
    whole, radius = n * length, 0.1 * length
    expected = n * mass * (whole**2 / 3 + radius**2 / 4)
    assert robot.inverse_dynamics(rest, rest, qdd)[0] == pytest.approx(expected, rel=1e-12)
    assert robot.mass_matrix(rest)[0, 0] == pytest.approx(expected, rel=1e-12)


def test_what_a_chain_tells_of_itself() -> None:
    robot = lw.chain(300, "tapered", joints=("revolute", "spherical"), armature=0.1)
    lines = str(robot).splitlines()
    assert robot.name == "chain300" and "600 degrees of freedom" in lines[0]
    assert len(lines) < 40 and "... 275 links more" in lines and lines[-1].split()[0] == "299"
    assert robot == copy_of(robot) != lw.chain(300, "tapered", joints=("revolute", "spherical"))
    assert lw.chain(1000, mass=0.5).tree.mass == pytest.approx(500.0)
    assert robot.frame_names[-2:] == ("base", "tip") and robot.frame_names[0] == "link1"
    assert robot.forward_kinematics(robot.neutral(), "base").tolist() == np.eye(4).tolist()
    q = robot.random_q(seed=3, size=5)
    assert q.shape == (5, robot.nq) and (robot.random_q(seed=3, size=5) == q).all()
    copy = copy_of(robot)
    x = np.zeros(robot.nv)
    assert (copy.bias(q[0], x) == robot.bias(q[0], x)).all()
    with pytest.raises(ValueError, match=r"frame 'link301': robot 'chain300' has no such"):
        robot.forward_kinematics(q, "link301")
    with pytest.raises(ValueError, match="was made from a tree"):
        robot.with_payload("link3", 1.0)


def copy_of(robot: lw.Robot) -> lw.Robot:
    return pickle.loads(pickle.dumps(robot))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no links": ({"n": 0}, "n is 0; expected a whole number of links, at least 1"),
    "half a link": ({"n": 2.5}, "n is 2.5; expected a whole number"),
    "a kind": (
        {"kind": "round"},
        "kind 'round'; expected one of 'uniform', 'tapered', 'random', 'mixed'",
    ),
    "a joint": ({"joints": "free"}, "joint 'free'; expected one of 'revolute'"),
    "no joints": ({"joints": ()}, "0 kinds of joints; expected 1 to 8"),
    "a length": ({"length": 0.0}, "length 0.0; expected a positive number"),
    "a mass": ({"mass": math.nan}, "mass"),
    "damping": ({"damping": -1.0}, "damping -1.0; expected a number that is not negative"),
    "gravity": ({"gravity": (0, 0)}, "chain: gravity"),
    "a seed": ({"seed": -1}, "chain: seed is -1; expected a whole number that is not negative"),
    "half a seed": ({"seed": 0.5}, "chain: seed is 0.5; expected a whole number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_chains_are_named(name: str) -> None:
    arguments, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        lw.chain(**({"n": 3} | arguments))


def test_methods_of_very_large_robots_are_not_weighed() -> None:
    """Weighing them takes longer than the call, where the links are thousands."""
    robot = lw.chain(3_000)
    assert robot.method_for("forward_dynamics", "cuda") == "aba"
    assert robot.method_for("coriolis_matrix", "cuda") == "composite"


@pytest.mark.parametrize(("function", "most"), [
    ("forward_dynamics", 44), ("mass_matrix", 36), ("coriolis_matrix", 21), ("christoffel", 26),
    ("regressor", 26),
    ("mass_matrix_inverse", 25),
])  # fmt: skip
def test_code_that_takes_seconds_to_compile_is_loops(function: str, most: int) -> None:
    """Of chains, which take longest; `docs/long_chains.md` has the times."""
    assert not in_loops(function, lw.chain(most).tree) and in_loops(
        function, lw.chain(most + 1).tree
    )
    assert in_loops(function, lw.chain(3).with_codegen("rolled").tree)
    assert not in_loops(function, lw.chain(500).with_codegen("unrolled").tree)


@pytest.mark.full
def test_a_million_links() -> None:
    robot = lw.chain(1_000_000, "random")
    q, x = robot.neutral(), np.zeros(robot.nv)
    qdd = robot.forward_dynamics(q, x, x)
    assert np.isfinite(qdd).all() and np.abs(qdd).max() > 0


def test_a_chain_tells_numbers_of_its_joints() -> None:
    robot = lw.chain(5, joints=("revolute", "spherical"), armature=0.3, damping=0.2)
    links = lw.Robot.from_tree(robot.tree.with_links(robot.tree.links))
    for field in ("armature", "damping", "friction"):
        assert getattr(robot, field).tolist() == getattr(links, field).tolist()
    assert len(lw.chain(1_000_000, armature=0.1).armature) == 1_000_000  # at once


def test_the_classes_of_links_are_shared_by_all_functions() -> None:
    tree = lw.chain(50, "random").tree
    before = len(pickle.dumps(tree))
    assert classes_of(tree) is classes_of(tree)
    assert len(pickle.dumps(tree)) == before, "they are no part of a pickle"
    copy = pickle.loads(pickle.dumps(tree))
    assert (classes_of(copy).table == classes_of(tree).table).all()


def test_a_chain_takes_another_gravity():
    moon = lw.chain(70).with_gravity((0.0, 0.0, -1.62))
    made = lw.chain(70, gravity=(0.0, 0.0, -1.62))
    q = made.random_q(seed=0)
    np.testing.assert_array_equal(moon.gravity, made.gravity)
    np.testing.assert_array_equal(moon.gravity_torque(q), made.gravity_torque(q))
    assert moon == made


def test_a_chain_has_limits_of_every_degree_of_freedom():
    robot = lw.chain(5, joints=("revolute", "spherical"))
    assert robot.velocity_limits.tolist() == robot.effort_limits.tolist() == [math.inf] * 9
    assert len(lw.chain(1_000_000).velocity_limits) == 1_000_000


@pytest.mark.parametrize("codegen", [True, None, 1, "roled", ["rolled"]])
def test_codegen_is_asked_for_by_its_name(codegen: Any) -> None:
    expected = r"with_codegen: codegen is .*; expected one of 'auto', 'rolled', 'unrolled'"
    with pytest.raises(ValueError, match=expected):
        lw.chain(2).with_codegen(codegen)
    chain = lw.chain(2)
    rolled, unrolled = chain.with_codegen("rolled"), chain.with_codegen("unrolled")
    assert rolled.tree.loops and unrolled.tree.loops is False
    assert rolled.with_codegen("auto").tree.loops is chain.tree.loops is None


@pytest.mark.parametrize("name", ["link0", "link01", "link4", "link\u0661", "link" + "9" * 5000])
def test_a_frame_that_is_no_link_is_told(name: str) -> None:
    with pytest.raises(ValueError, match="has no such frame"):
        lw.chain(3).frame(name)


def test_what_takes_long_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Making a chain, and loading a file."""
    monkeypatch.delenv("LINKWISE_PROGRESS")
    monkeypatch.setattr(build, "LONG", 0.05)
    slow = chain_module._rods
    monkeypatch.setattr(chain_module, "_rods", lambda *x: (time.sleep(0.3), slow(*x))[1])
    lw.chain(1234)
    assert "linkwise: making a chain of 1,234 links ..." in capsys.readouterr().err
    read = load_module.read
    monkeypatch.setattr(load_module, "read", lambda *x: (time.sleep(0.3), read(*x))[1])
    lw.load('<robot name="r"><link name="base"/></robot>')
    assert "linkwise: loading a robot from its text ..." in capsys.readouterr().err
