"""Chains cut into pieces: `method="scan"` against the serial recursions, and its own promises."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.algorithms.pieces import NO_LINK, Ends, join, share
from linkwise.engine.scans import cut, piece_length
from linkwise.spatial.records import leaves
from linkwise.trace.classes import classes_of
from linkwise.trace.tracer import evaluate

EVERY = ("revolute", "spherical", "prismatic")
KINDS = (EVERY, ("revolute",), ("prismatic", "revolute"), ("planar", "universal"))
FEW = ("forward_dynamics", "inverse_dynamics", "operational_inertia_inverse")
CASES = [
    pytest.param(f, k, marks=[] if (k is EVERY) == (f in FEW) and len(k) != 2 else pytest.mark.full)
    for f in (
        "forward_dynamics", "inverse_dynamics", "bias", "gravity_torque", "forward_kinematics",
        "operational_inertia_inverse", "operational_inertia",
    )
    for k in KINDS
]  # fmt: skip
SERIAL = {
    "forward_dynamics": "aba",
    "inverse_dynamics": "rnea",
    "bias": "rnea",
    "gravity_torque": "rnea",
    "forward_kinematics": "sweep",
    "operational_inertia_inverse": "recursive",
    "operational_inertia": "recursive",
}


def state(robot: Any, seed: int, dtype: Any = np.float64) -> list[Any]:
    """A configuration, rates, and torques or accelerations."""
    rng = np.random.default_rng(seed)
    q, qd, x = robot.random_q(rng), 0.3 * rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    return [np.asarray(v, dtype) for v in (q, qd, x)]


def arguments(function: str, values: list[Any]) -> tuple[Any, ...]:
    """What a function takes of a state, the frame at the tip."""
    takes = FUNCTIONS[function]["scan"]
    return (*values[: len(takes.inputs)], *(["tip"] if takes.takes_frame else []))


def error(found: Any, right: Any) -> float:
    """The largest difference beside the largest number."""
    return float(np.abs(found - right).max() / np.abs(right).max())


def close(found: Any, right: Any, links: int, dtype: Any = np.float64) -> None:
    """Equal to rounding, which grows with the square root of the links."""
    assert error(found, right) < 30 * np.finfo(dtype).eps * links**0.5


@pytest.mark.parametrize(
    ("function", "kinds"), CASES, ids=lambda x: "-".join(x) if isinstance(x, tuple) else x
)
def test_equals_the_serial_recursion(function: str, kinds: tuple[str, ...]) -> None:
    """Every function, every kind of joint, pieces and a rest of links."""
    robot = lw.chain(101, "random", seed=3, joints=kinds, armature=0.01, damping=0.1)
    values = arguments(function, state(robot, 1))
    right = getattr(robot, function)(*values, method=SERIAL[function])
    found, status = getattr(robot, function)(*values, method="scan", status=True)
    if not np.isfinite(right).all():  # a tip that does not move in all directions
        assert np.isnan(found).all() and status == lw.Status.SINGULAR
        return
    close(found, right, 101 if function != "operational_inertia" else 10_000)
    assert status == 0


@pytest.mark.parametrize(
    "function", [f if f in FEW else pytest.param(f, marks=pytest.mark.full) for f in SERIAL]
)
def test_float32(function: str) -> None:
    """The same in float32."""
    robot = lw.chain(200, "random", seed=3)
    values = arguments(function, state(robot, 1, np.float32))
    right = getattr(robot, function)(*values, method=SERIAL[function])
    found = getattr(robot, function)(*values, method="scan")
    assert found.dtype == np.float32
    close(found, right, 200 if function != "operational_inertia" else 100_000, np.float32)


@pytest.mark.quick
@pytest.mark.parametrize("links", [1, 2, 8, 33, 513])
def test_any_number_of_links(links: int) -> None:
    """One piece, a rest alone, a rest of one."""
    robot = lw.chain(links, "random", seed=links).with_codegen("rolled")
    values = state(robot, 2)
    right = robot.forward_dynamics(*values, method="aba")
    close(robot.forward_dynamics(*values, method="scan"), right, links)


@pytest.mark.quick
def test_wrenches_from_outside() -> None:
    """At links in the middle, at the tip, two at one link; by forward and inverse dynamics."""
    robot = lw.chain(90, "random", seed=5)
    q, qd, x = state(robot, 3)
    rng = np.random.default_rng(4)
    f_ext = {name: rng.normal(size=6) for name in ("tip", "link1", "link37", "link90", "base")}
    for function, method in (("forward_dynamics", "aba"), ("inverse_dynamics", "rnea")):
        call = getattr(robot, function)
        right = call(q, qd, x, f_ext=f_ext, method=method)
        assert error(right, call(q, qd, x)) > 1e-3
        close(call(q, qd, x, f_ext=f_ext, method="scan"), right, 90)


def built(*links: tuple[str, str, str, float]) -> lw.Robot:
    """Links (name, parent, kind of joint, mass), each 0.1 m from its parent."""
    builder = lw.Builder("built")
    for name, parent, kind, mass in links:
        body = {"mass": mass, "com": (0.05, 0.01, 0.0), "inertia": (0.01, 0.02, 0.02)}
        builder = builder.link(name, **(body if mass else {}))
        axis = {} if kind == "free" else {"axis": (0.0, 1.0, 0.0)}
        builder = builder.joint(
            f"to {name}", kind, parent=parent, child=name, xyz=(0.1, 0.0, 0.01), **axis
        )
    return builder.build()


@pytest.mark.quick
def test_dynamics_and_operational_inertia_at_once() -> None:
    """Forward dynamics and the tip's Λ⁻¹, as each function has them on its own."""
    robot = lw.chain(90, "random", seed=5)
    values, push = state(robot, 3), {"link7": np.arange(6.0)}
    for axes in ("base", "body"):
        (qdd, inverse), status = robot.operational_dynamics(
            *values, "tip", method="scan", axes=axes, f_ext=push, status=True
        )
        close(qdd, robot.forward_dynamics(*values, f_ext=push, method="aba"), 90)
        right = robot.operational_inertia_inverse(values[0], "tip", axes=axes, method="recursive")
        close(inverse, right, 90)
        assert status == 0


@pytest.mark.quick
def test_a_tip_that_never_turns_has_no_operational_inertia() -> None:
    """NaN and a status, as by other methods; with damping there is one."""
    robot = lw.chain(90, joints="prismatic")
    q = np.linspace(0.0, 1.0, 90)
    found, status = robot.operational_inertia(q, "tip", method="scan", status=True)
    assert np.isnan(found).all() and status == lw.Status.SINGULAR
    damped = robot.operational_inertia(q, "tip", method="scan", damping=0.1)
    close(damped, robot.operational_inertia(q, "tip", method="recursive", damping=0.1), 90)


@pytest.mark.quick
def test_a_quaternion_that_is_not_of_unit_length_is_told() -> None:
    """By functions of joints, and by those of the whole chain."""
    robot = lw.chain(40, "random", seed=1, joints=("revolute", "spherical"))
    q, qd, x = state(robot, 1)
    q[1:5] *= 1.1
    for call in (
        lambda: robot.forward_dynamics(q, qd, x, method="scan", status=True),
        lambda: robot.forward_kinematics(q, "tip", method="scan", status=True),
    ):
        assert call()[1] == lw.Status.NOT_UNIT


@pytest.mark.quick
def test_threads_of_python_share_a_kernel() -> None:
    """Each has trees of its own while it runs."""
    robot = lw.chain(3000, "random", seed=1)
    values = state(robot, 1)
    expected = robot.forward_dynamics(*values, method="scan")
    with ThreadPoolExecutor(4) as pool:
        calls = [
            pool.submit(robot.forward_dynamics, *values, method="scan", threads=1)
            for _ in range(12)
        ]
    assert all((call.result() == expected).all() for call in calls)


@pytest.mark.quick
def test_code_of_a_scan_is_several_programs() -> None:
    """A message, not one of them; written out, there is one."""
    robot = lw.chain(60)
    for look in (robot.source, robot.operation_count):
        with pytest.raises(ValueError, match=r"a scan by loops is several programs; expected"):
            look("forward_dynamics", method="scan")
    few = lw.chain(3).with_codegen("unrolled")
    assert few.operation_count("forward_dynamics", method="scan").total > 1000


@pytest.mark.quick
def test_a_robot_without_joints() -> None:
    """Its one frame is where it is."""
    rock = lw.Builder("rock").link("stone", mass=1.0, inertia=(1.0, 1.0, 1.0))
    rock = rock.joint("to stone", "fixed", parent="base", child="stone", xyz=(1.0, 2.0, 3.0))
    robot = rock.build()
    right = robot.forward_kinematics(np.zeros(0), "stone")
    assert (robot.forward_kinematics(np.zeros(0), "stone", method="scan") == right).all()


@pytest.mark.quick
def test_a_chain_that_ends_with_other_joints() -> None:
    """They are a piece of their own."""
    names = ["base", *(f"l{k}" for k in range(60))]
    kinds = ["revolute"] * 57 + ["prismatic"] * 3
    robot = built(*zip(names[1:], names[:-1], kinds, [1.0] * 60, strict=True)).with_codegen(
        "rolled"
    )
    assert cut(classes_of(robot.tree)).last > 0
    values = state(robot, 6)
    right = robot.forward_dynamics(*values, method="aba")
    close(robot.forward_dynamics(*values, method="scan"), right, 60)


@pytest.mark.quick
def test_a_free_base_goes_with_the_first_piece() -> None:
    """A chain that begins with other joints: only its first piece knows them."""
    names = ["base", *(f"l{k}" for k in range(70))]
    pairs = zip(names[1:], names, strict=False)
    links = [
        (own, parent, "revolute" if k else "free", 1.0) for k, (own, parent) in enumerate(pairs)
    ]
    robot = built(*links).with_codegen("rolled")
    values = state(robot, 6)
    right = robot.forward_dynamics(*values, method="aba")
    close(robot.forward_dynamics(*values, method="scan"), right, 70)
    at = cut(classes_of(robot.tree))
    assert at.first > 0 and at.first + at.pieces * at.length + at.last == 70


@pytest.mark.quick
def test_threads_and_batches_change_no_bit() -> None:
    """How a chain is cut depends on its length alone."""
    robot = lw.chain(3000, "random", seed=1)
    values = [np.stack([x, 2 * x]) for x in state(robot, 1)]
    values[0] = np.stack([state(robot, 1)[0]] * 2)
    both = robot.forward_dynamics(*values, method="scan")
    for k in range(2):
        own = [x[k] for x in values]
        for threads in (1, 2, 5):
            one = robot.forward_dynamics(*own, method="scan", threads=threads)
            assert (one == both[k]).all()


@pytest.mark.quick
@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_number_that_is_not_finite_spoils_its_state_alone(which: int, bad: float) -> None:
    """NaN in the whole row, a status, and nothing in its neighbour."""
    robot = lw.chain(300)
    values = [np.stack([x, x]) for x in state(robot, 1)]
    right = robot.forward_dynamics(*values, method="scan")
    values[which][1, 150] = bad
    found, status = robot.forward_dynamics(*values, method="scan", status=True)
    assert (found[0] == right[0]).all() and np.isnan(found[1]).all()
    assert status.tolist() == [0, lw.Status.NOT_FINITE]


@pytest.mark.quick
@pytest.mark.parametrize(("function", "which", "link"), [
    ("inverse_dynamics", 1, 44), ("forward_dynamics", 2, 0), ("bias", 1, 44),
])  # fmt: skip
@pytest.mark.parametrize("links", [9, 45])
def test_no_number_of_a_spoilt_state_looks_sound(
    function: str, which: int, link: int, links: int
) -> None:
    """Not even one that does not depend on the input that is not finite."""
    robot = lw.chain(links, "random").with_codegen("rolled")
    values = arguments(function, state(robot, 1))
    for bad in (np.nan, np.inf):
        values[which][min(link, links - 1)] = bad
        assert np.isnan(getattr(robot, function)(*values, method="scan")).all()


@pytest.mark.quick
def test_refused_by_name() -> None:
    """Branches, links without inertia of their own, frames that are not at the tip."""
    hand = built(*((x, "palm" if x != "palm" else "base", "revolute", 1.0)
                   for x in ("palm", "thumb", "finger")))  # fmt: skip
    zeros = np.zeros(hand.nv)
    with pytest.raises(ValueError, match=r"'scan'.*'finger' does not follow the link before"):
        hand.forward_dynamics(zeros, zeros, zeros, method="scan")
    wrist = built(("forearm", "base", "revolute", 0.0), ("gripper", "forearm", "prismatic", 1.0))
    zeros = np.zeros(wrist.nv)
    with pytest.raises(ValueError, match=r"link 'forearm' moves no inertia of that link alone"):
        wrist.forward_dynamics(zeros, zeros, zeros, method="scan")
    hollow = lw.Builder("hollow")
    for k in range(3):  # a rod along y: at a right angle, the second axis turns no inertia
        inertia = (1e-3, 0.0 if k < 2 else 1e-3, 1e-3)
        hollow = hollow.link(f"u{k}", mass=1.0, inertia=inertia)
        hollow = hollow.joint(f"to u{k}", "universal", parent=f"u{k - 1}" if k else "base",
                              child=f"u{k}", axis=(0.0, 0.0, 1.0))  # fmt: skip
    universal = hollow.build()
    zeros = np.zeros(universal.nv)
    with pytest.raises(ValueError, match=r"moves no inertia of that link alone"):
        universal.forward_dynamics(zeros, zeros, zeros, method="scan")
    robot = lw.chain(100)
    with pytest.raises(ValueError, match=r"'link5'.*not on the last link"):
        robot.forward_kinematics(np.zeros(100), "link5", method="scan")


@given(st.integers(1, 10**7))
@settings(max_examples=300, deadline=None)
def test_a_cut_has_every_link_once(links: int) -> None:
    """Pieces and what is left make the chain; a piece is never much longer than it should be."""
    length = piece_length(links)
    count, left = divmod(links, length)
    assert count * length + left == links and left < length <= 256
    assert links < 64 or count >= 4


def test_a_cut_depends_on_the_number_of_links() -> None:
    """Two chains of links of one kind are cut in the same way."""
    chains = [lw.chain(5000), lw.chain(5000, "random", seed=1)]
    assert len({cut(classes_of(chain.tree)) for chain in chains}) == 1


def test_joining_is_associative() -> None:
    """To rounding, in any grouping; and nothing joined to a piece is the piece."""
    from linkwise.algorithms.pieces import grow
    from linkwise.algorithms.rates import STILL, turn
    from linkwise.spatial import Force

    tree = lw.chain(3, "random", seed=4)._calls.tasks.tree
    a, b, c = (
        grow(link, NO_LINK, turn(link, STILL, [0.3 + k], [0.5]), Force.zero(), [1.0])
        for k, link in enumerate(tree.links)
    )
    left, right = join(join(a, b), c), join(a, join(b, c))
    assert np.allclose(leaves(left), leaves(right), rtol=0, atol=1e-13 * np.abs(leaves(left)).max())
    for same in (join(NO_LINK, a), join(a, NO_LINK)):
        assert np.allclose(leaves(same), leaves(a), rtol=0, atol=1e-14)
    given = Ends(c.near, a.eta)
    (_, middle), (tip, _) = share(a, b, given)
    assert leaves(middle) == leaves(given.base)
    assert np.isfinite(leaves(tip)).all()


def test_against_fifty_digits() -> None:
    """The balanced tree, one link a piece, on numbers of fifty digits and on floats."""
    import mpmath

    import linkwise.spatial.precise  # noqa: F401

    robot = lw.chain(12, "random", seed=8)
    tree, tasks = robot.tree, robot._calls.tasks
    from linkwise.engine.tasks import Key

    values = state(robot, 9)
    with mpmath.workdps(50):
        precise = [[mpmath.mpf(float(x)) for x in v] for v in values]
        scan, aba = (
            evaluate(tasks.task(Key("forward_dynamics", m)), tree, *precise)
            for m in ("scan", "aba")
        )
        assert max(abs(a - b) for a, b in zip(scan, aba, strict=True)) < mpmath.mpf(10) ** -44
    found = evaluate(tasks.task(Key("forward_dynamics", "scan")), tree, *map(list, values))
    close(np.array(found, float), np.array([float(x) for x in aba]), 12)
