"""Inverse kinematics: what it finds is there, within limits, and does not depend on neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.backends.reference import interpret
from linkwise.engine.reaching import Asked, _reach
from linkwise.trace.verify import verify

TOL = 1e-6
ABOVE = 1.0 + 1e-6  # rounding of the judge beside a tolerance of 1e-6


def pose_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Norm of the SE(3) logarithm between poses (..., 4, 4), by SciPy's rotations."""
    between = np.linalg.solve(a, b)
    r = Rotation.from_matrix(between[..., :3, :3].reshape(-1, 3, 3)).as_rotvec()
    p = between[..., :3, 3].reshape(-1, 3)
    theta = np.linalg.norm(r, axis=-1)
    half = np.where(theta > 1e-3, theta / 2, 1.0)
    bend = np.where(theta > 1e-3, (1 - half / np.tan(half)) / np.maximum(theta, 1e-9) ** 2, 1 / 12)
    once = np.cross(r, p)
    v = p - once / 2 + bend[:, None] * np.cross(r, once)
    return np.sqrt((r**2).sum(-1) + (v**2).sum(-1)).reshape(between.shape[:-2])


def poses(robot: lw.Robot, frame: str, count: int, seed: int = 0) -> np.ndarray:
    found: np.ndarray = robot.forward_kinematics(robot.random_q(seed=seed, size=count), frame)
    return found


def assert_within(robot: lw.Robot, q: np.ndarray) -> None:
    lower, upper = robot.position_limits
    assert ((q >= lower) & (q <= upper)).all()


@pytest.fixture(scope="module")
def iiwa() -> lw.Robot:
    return lw.load("iiwa14")


@pytest.fixture(scope="module")
def planar() -> lw.Robot:
    """Three hinges in a plane, 0.5 m apart: what it can reach is known."""
    b = lw.Builder("planar")
    for k in range(3):
        parent = "base" if k == 0 else f"l{k - 1}"
        b = b.link(f"l{k}", mass=1.0, com=[0.25, 0, 0], inertia=[0.01, 0.02, 0.02])
        b = b.joint(f"j{k}", "revolute", parent=parent, child=f"l{k}", axis=[0, 0, 1],
                    xyz=[0.5 * (k > 0), 0, 0], limits=(-2.5, 2.5))  # fmt: skip
    return b.frame("tip", "l2", xyz=[0.5, 0, 0]).build()


# -- it finds what is there ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, frame",
    [("iiwa14", "link7"), pytest.param("puma560", "link6", marks=pytest.mark.full)],
)
def test_reachable_poses_are_reached_within_limits(name: str, frame: str) -> None:
    robot = lw.load(name)
    target = poses(robot, frame, 1000)
    q, status = robot.inverse_kinematics(target, frame, status=True)
    assert (status == 0).mean() >= 0.999
    solved = status == 0
    there = robot.forward_kinematics(q[solved], frame)
    assert pose_distance(there, target[solved]).max() <= TOL * ABOVE
    assert_within(robot, q[solved])


@pytest.mark.full
@pytest.mark.parametrize(
    "name, frame", [("ur5", "tool0"), ("panda", "panda_hand"), ("xarm7", "link7")]
)
def test_real_arms(name: str, frame: str, robot_path: Any) -> None:
    robot = lw.load(robot_path(name))
    target = poses(robot, frame, 10_000)
    q, status = robot.inverse_kinematics(target, frame, status=True)
    assert (status == 0).mean() >= 0.999
    there = robot.forward_kinematics(q[status == 0], frame)
    assert pose_distance(there, target[status == 0]).max() <= TOL * ABOVE
    assert_within(robot, q[status == 0])


def test_without_limits_joints_turn_further(iiwa: lw.Robot) -> None:
    tight = iiwa
    for name in iiwa.joint_names:
        tight = tight.with_joint(name, limits=(-0.3, 0.3))
    target = poses(iiwa, "link7", 100)
    q, status = tight.inverse_kinematics(target, "link7", restarts=5, status=True)
    assert (status != 0).mean() > 0.9
    assert_within(tight, q)
    q = tight.inverse_kinematics(target, "link7", limits=False)
    assert np.isfinite(q).all() and (np.abs(q) > 0.3).any()
    assert pose_distance(tight.forward_kinematics(q, "link7"), target).max() <= TOL * ABOVE


def test_a_solution_at_a_limit_is_found(planar: lw.Robot) -> None:
    """A joint that must stand exactly at its limit."""
    target = planar.forward_kinematics([2.5, -2.5, 2.5], "tip")
    q = planar.inverse_kinematics(target, "tip")
    assert np.isfinite(q).all()
    assert_within(planar, q)


def test_the_search_begins_at_q0(iiwa: lw.Robot) -> None:
    q = iiwa.random_q(seed=3, size=50)
    target = iiwa.forward_kinematics(q, "link7")
    found = iiwa.inverse_kinematics(target, "link7", q0=q)
    np.testing.assert_array_equal(found, q)  # there already: not a step is taken
    near = iiwa.inverse_kinematics(target, "link7", q0=np.clip(q + 1e-3, *iiwa.position_limits))
    assert np.abs(near - q).max() < 0.02


def test_a_start_beyond_the_limits_is_brought_back(iiwa: lw.Robot) -> None:
    target = poses(iiwa, "link7", 20)
    q = iiwa.inverse_kinematics(target, "link7", q0=np.full(7, 50.0))
    assert_within(iiwa, q)


def test_half_a_turn_from_the_start(iiwa: lw.Robot) -> None:
    """The error's axis is hard to see where the turn is exactly pi."""
    q0 = np.zeros(7)
    target = iiwa.forward_kinematics(q0, "link7") @ np.diag([1.0, -1.0, -1.0, 1.0])
    target[:3, 3] = [0.5, 0.0, 0.4]
    q = iiwa.inverse_kinematics(target, "link7", q0=q0)
    assert pose_distance(iiwa.forward_kinematics(q, "link7"), target) <= TOL * ABOVE


def test_a_tight_tolerance_is_met(iiwa: lw.Robot) -> None:
    target = poses(iiwa, "link7", 200)
    q = iiwa.inverse_kinematics(target, "link7", tol=1e-11)
    found = pose_distance(iiwa.forward_kinematics(q, "link7"), target)
    assert np.isfinite(q).all(axis=1).mean() >= 0.99 and np.nanmax(found) <= 1e-11 + 1e-14


# -- directions ---------------------------------------------------------------------------------


def test_positions_alone(iiwa: lw.Robot, rng: np.random.Generator) -> None:
    target = poses(iiwa, "link7", 100)
    target[:, :3, :3] = Rotation.random(100, random_state=1).as_matrix()  # no matter
    q = iiwa.inverse_kinematics(target, "link7", directions="position")
    there = iiwa.forward_kinematics(q, "link7")
    assert np.linalg.norm(there[:, :3, 3] - target[:, :3, 3], axis=1).max() <= TOL
    assert_within(iiwa, q)


def test_orientations_alone(iiwa: lw.Robot) -> None:
    target = np.tile(np.eye(4), (50, 1, 1))
    target[:, :3, :3] = Rotation.random(50, random_state=2).as_matrix()
    target[:, :3, 3] = 99.0  # no matter
    q = iiwa.inverse_kinematics(target, "link7", directions="orientation")
    there = iiwa.forward_kinematics(q, "link7")
    there[:, :3, 3] = 99.0
    assert pose_distance(there, target).max() <= TOL * ABOVE


@pytest.mark.parametrize("free", [2, *(pytest.param(k, marks=pytest.mark.full) for k in (0, 1))])
def test_a_free_turn_about_the_targets_axis(iiwa: lw.Robot, free: int) -> None:
    """A tool that is round: five directions, whatever the turn about the third axis."""
    target = poses(iiwa, "link7", 100)
    directions = np.arange(6) != free
    q = iiwa.inverse_kinematics(target, "link7", directions=directions)
    there = iiwa.forward_kinematics(q, "link7")
    off = np.linalg.norm(there[:, :3, free] - target[:, :3, free], axis=1)
    assert off.max() <= TOL
    assert np.linalg.norm(there[:, :3, 3] - target[:, :3, 3], axis=1).max() <= TOL
    assert pose_distance(there, target).max() > 0.1  # it did turn


def test_opposite_axes_are_turned_round(iiwa: lw.Robot) -> None:
    target = iiwa.forward_kinematics(np.zeros(7), "link7") @ np.diag([1.0, -1.0, -1.0, 1.0])
    directions = [True, True, False, False, False, False]
    q = iiwa.inverse_kinematics(target, "link7", np.zeros(7), directions)
    z = iiwa.forward_kinematics(q, "link7")[:3, 2]
    assert np.linalg.norm(z - target[:3, 2]) <= TOL


@pytest.mark.parametrize(
    "k", [1, *(pytest.param(k, marks=pytest.mark.full) for k in (0, 2, 3, 4, 5))]
)
def test_single_directions_along_the_targets_axes(iiwa: lw.Robot, k: int) -> None:
    target = poses(iiwa, "link7", 40)
    directions = [j == k for j in range(6)]
    q = iiwa.inverse_kinematics(target, "link7", directions=directions)
    between = np.linalg.solve(target, iiwa.forward_kinematics(q, "link7"))
    turn = Rotation.from_matrix(between[:, :3, :3]).as_rotvec()
    off = turn[:, k] if k < 3 else between[:, k - 3, 3]
    assert np.abs(off).max() <= TOL * ABOVE, k


def test_an_arm_of_three_joints_in_its_plane(planar: lw.Robot) -> None:
    """Fewer joints than rows: the columns' system, and positions within reach."""
    target = poses(planar, "tip", 200)
    q = planar.inverse_kinematics(target, "tip")
    assert np.isfinite(q).all()
    assert pose_distance(planar.forward_kinematics(q, "tip"), target).max() <= TOL * ABOVE


# -- several frames -----------------------------------------------------------------------------


def test_several_frames_at_once(iiwa: lw.Robot) -> None:
    q = iiwa.random_q(seed=1, size=60)
    frames = ["link4", "link7"]
    target = np.stack([iiwa.forward_kinematics(q, name) for name in frames], axis=1)
    found, status = iiwa.inverse_kinematics(target, frames, status=True)
    assert (status == 0).mean() >= 0.9
    for k, name in enumerate(frames):
        there = iiwa.forward_kinematics(found[status == 0], name)
        assert pose_distance(there, target[status == 0, k]).max() <= TOL * ABOVE


def test_joints_that_move_no_frame_stay(kinds: lw.Robot) -> None:
    q0 = kinds.random_q(seed=5)
    target = kinds.forward_kinematics(kinds.random_q(seed=6), "l1")
    q = kinds.inverse_kinematics(target, "l1", q0=q0)
    moved = np.arange(kinds.nq) < 8  # the free joint and the hinge before the frame
    np.testing.assert_array_equal(q[~moved], q0[~moved])
    assert pose_distance(kinds.forward_kinematics(q, "l1"), target) <= TOL * ABOVE


def test_every_kind_of_joint_and_a_follower(kinds: lw.Robot) -> None:
    target = poses(kinds, "l8", 16)
    q, status = kinds.inverse_kinematics(target, "l8", status=True)
    assert not status.any()
    assert pose_distance(kinds.forward_kinematics(q, "l8"), target).max() <= TOL * ABOVE
    np.testing.assert_allclose(kinds.normalize(q), q, atol=1e-12)


# -- closed loops -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def five_bar() -> lw.Robot:
    """Two arms of two hinges in a plane, 0.4 m apart, whose tips are held together."""
    b = lw.Builder("five bar")
    for side, x in (("left", -0.2), ("right", 0.2)):
        for k in range(2):
            name, parent = f"{side}{k}", f"{side}0" if k else "base"
            b = b.link(name, mass=1.0, com=[0.25, 0, 0], inertia=[0.01, 0.02, 0.02])
            b = b.joint(f"{name}_hinge", "revolute", parent=parent, child=name, axis=[0, 0, 1],
                        xyz=[0.5, 0, 0] if k else [x, 0, 0], limits=(-3.0, 3.0))  # fmt: skip
        b = b.frame(f"{side}_tip", f"{side}1", xyz=[0.5, 0, 0])
    loop = lw.Loop("left_tip", "right_tip", [False, False, False, True, True, False])
    return b.build().close_loops(loop)


def test_closed_loops_stay_closed(five_bar: lw.Robot) -> None:
    rng = np.random.default_rng(0)
    target = np.tile(np.eye(4), (100, 1, 1))
    target[:, :2, 3] = rng.uniform([-0.3, 0.2], [0.3, 0.8], (100, 2))
    q, status = five_bar.inverse_kinematics(target, "left_tip", None, "position", status=True)
    assert not status.any()
    assert_within(five_bar, q)
    for tip in ("left_tip", "right_tip"):  # both, though one was asked for
        there = five_bar.forward_kinematics(q, tip)
        assert np.linalg.norm(there[:, :3, 3] - target[:, :3, 3], axis=1).max() <= TOL * ABOVE
    target[:, 1, 3] = 2.0  # beyond the arms
    assert five_bar.inverse_kinematics(target[:3], "left_tip", None, "position", 5, status=True)[
        1
    ].all()


@pytest.mark.full
def test_two_arms_bring_an_object_to_a_pose(iiwa: lw.Robot) -> None:
    far = np.diag([-1.0, -1.0, 1.0, 1.0])
    far[0, 3] = 1.2
    other = lw.se3.exp([0, 0, 0, 0, 0, 0.3])
    grasp = lw.Grasp(
        arms=[iiwa, iiwa], bases=[np.eye(4), far], object=lw.RigidBody(2.0, [0, 0, 0], [0.1] * 3),
        contacts=["link7", lw.Contact(arm=1, frame="link7", pose_in_object=other)],
    )  # fmt: skip
    target = np.array([[0.0, 0, 1, 0.45], [0, 1, 0, 0], [-1, 0, 0, 0.5], [0, 0, 0, 1]])
    target = target @ lw.se3.exp(np.random.default_rng(0).uniform(-0.1, 0.1, (20, 6)))
    q, status = grasp.inverse_kinematics(target, "object", status=True)
    assert not status.any()
    assert pose_distance(grasp.forward_kinematics(q, "object"), target).max() <= TOL * ABOVE
    off, _ = grasp.residual(q, np.zeros_like(q))
    assert np.linalg.norm(off, axis=-1).max() <= TOL * ABOVE


# -- a row's bits are its own -------------------------------------------------------------------


def test_a_rows_bits_do_not_depend_on_the_batch(iiwa: lw.Robot, rng: np.random.Generator) -> None:
    target, q0 = poses(iiwa, "link7", 300), iiwa.random_q(seed=9, size=300)
    target[::50, :3, 3] += 5.0  # out of reach: these take hundreds of times longer
    options: dict[str, Any] = {"restarts": 20, "status": True}
    q, status = iiwa.inverse_kinematics(target, "link7", q0, **options)
    order = rng.permutation(300)
    shuffled, bits = iiwa.inverse_kinematics(target[order], "link7", q0[order], **options)
    assert shuffled.tobytes() == q[order].tobytes() and (bits == status[order]).all()
    for k in (0, 1, 50, 299):
        alone, bit = iiwa.inverse_kinematics(target[k], "link7", q0[k], **options)
        assert alone.tobytes() == q[k].tobytes() and bit == status[k]
    threaded, _ = iiwa.inverse_kinematics(target, "link7", q0, threads=3, **options)
    assert threaded.tobytes() == q.tobytes()
    few, _ = iiwa.inverse_kinematics(target[:3], "link7", q0[:3], **options)
    assert few.tobytes() == q[:3].tobytes()


def test_more_restarts_solve_more_and_change_nothing_else(iiwa: lw.Robot) -> None:
    target = poses(iiwa, "link7", 500)
    _, none = iiwa.inverse_kinematics(target, "link7", restarts=0, status=True)
    with pytest.warns(lw.ConvergenceWarning):
        first = iiwa.inverse_kinematics(target, "link7", restarts=0)
    later = iiwa.inverse_kinematics(target, "link7", restarts=50)
    assert 0.5 < (none == 0).mean() < np.isfinite(later).all(axis=1).mean()
    assert later[none == 0].tobytes() == first[none == 0].tobytes()


def test_batches_broadcast(iiwa: lw.Robot) -> None:
    target = poses(iiwa, "link7", 6).reshape(2, 3, 4, 4)
    starts = iiwa.random_q(seed=0, size=(5, 1, 1))
    q = iiwa.inverse_kinematics(target, "link7", starts)
    assert q.shape == (5, 2, 3, 7)
    one = iiwa.inverse_kinematics(target[1, 2], "link7", starts[4, 0, 0])
    assert one.tobytes() == q[4, 1, 2].tobytes()
    assert iiwa.inverse_kinematics(target[:0], "link7").shape == (0, 3, 7)


def test_out_lists_and_float32(iiwa: lw.Robot) -> None:
    target = poses(iiwa, "link7", 30)
    expected = iiwa.inverse_kinematics(target, "link7")
    out = np.empty((30, 7))
    assert iiwa.inverse_kinematics(target, "link7", out=out) is out
    assert out.tobytes() == expected.tobytes()
    listed = iiwa.inverse_kinematics(target.tolist(), "link7")
    assert listed.tobytes() == expected.tobytes()
    narrow, status = iiwa.inverse_kinematics(target.astype(np.float32), "link7", status=True)
    assert narrow.dtype == np.float32 and not status.any()
    assert_within(iiwa, narrow.astype(float))
    assert (
        pose_distance(iiwa.forward_kinematics(narrow.astype(float), "link7"), target).max() < 4e-6
    )


def test_float32_results_are_rounded_into_the_limits(planar: lw.Robot) -> None:
    """The float32 next to 0.1 is larger: joints that are at such a limit stay below it."""
    arm = planar.with_joint("j0", limits=(-0.1, 0.1)).with_joint("j1", limits=(-0.1, 0.1))
    place = np.array([[0.0, 3.0, 0.0], [0.0, -3.0, 0.0]], np.float32)  # out of reach, on both sides
    best, _ = arm.inverse_kinematics(place, "tip", None, "position", status=True, restarts=3)
    assert best.dtype == np.float32
    assert_within(arm, best.astype(float))
    assert np.abs(np.abs(best[:, :2]) - 0.1).max() < 1e-6, "at the limits"


def test_a_search_is_compiled_once(iiwa: lw.Robot) -> None:
    asked = Asked("pose", True, 1, 1e-6)
    assert _reach(iiwa._calls, "link7", asked, False) is _reach(
        iiwa._calls, "link7", asked._replace(restarts=7), False
    )
    listed = Asked([True] * 6, True, 1, 1e-6)
    assert _reach(iiwa._calls, ["link7"], listed, True) is _reach(
        iiwa._calls, ["link7"], listed, True
    )


def test_the_interpreter_finds_the_same(planar: lw.Robot) -> None:
    """The program without compiler, lanes and refills, on arrays of NumPy."""
    plan = _reach(planar._calls, "tip", Asked("pose", True, 3, TOL), True).plan
    target = poses(planar, "tip", 12)
    target[5, :2, 3] = 9.0
    inputs = {
        "target": target.reshape(12, 16), "q0": np.tile(plan.first, (12, 1)),
        "tol": np.full((12, 1), TOL), "tries": np.full((12, 1), 4.0),
    }  # fmt: skip
    found = interpret(verify(plan.program()), inputs)
    q, status = planar.inverse_kinematics(target, "tip", restarts=3, status=True)
    np.testing.assert_array_equal(np.ravel(found["status"]), status)
    np.testing.assert_allclose(found["result"], q, atol=1e-7)


# -- what has no answer -------------------------------------------------------------------------


def test_an_unreachable_target_is_nan_or_the_best_found(planar: lw.Robot) -> None:
    target = np.tile(np.eye(4), (3, 1, 1))
    target[:, 0, 3] = [0.9, 2.5, 1.2]
    with pytest.warns(lw.ConvergenceWarning):
        q = planar.inverse_kinematics(target, "tip", directions="position", restarts=3)
    assert np.isnan(q).all(axis=1).tolist() == [False, True, False]
    best, status = planar.inverse_kinematics(
        target, "tip", directions="position", restarts=3, status=True
    )
    assert status.tolist() == [0, int(lw.Status.NOT_CONVERGED), 0]
    assert best[[0, 2]].tobytes() == q[[0, 2]].tobytes()
    # stretched out towards it, and no further from it than the arm is short
    there = planar.forward_kinematics(best[1], "tip")[:3, 3]
    assert np.linalg.norm(there - target[1, :3, 3]) == pytest.approx(1.0, abs=1e-3)


def test_a_singular_target_is_reached(planar: lw.Robot) -> None:
    """Stretched out, where the tip cannot move outward: convergence is slow there, not lost."""
    target = planar.forward_kinematics([0.4, 0.0, 0.0], "tip")
    q = planar.inverse_kinematics(target, "tip", directions="position")
    assert np.linalg.norm(planar.forward_kinematics(q, "tip")[:3, 3] - target[:3, 3]) <= TOL


def test_nan_is_flagged_in_its_own_row(iiwa: lw.Robot) -> None:
    target, q0 = poses(iiwa, "link7", 40), iiwa.random_q(seed=2, size=40)
    expected = iiwa.inverse_kinematics(target, "link7", q0)
    target[7, 1, 3], q0[20, 4], target[31, 0, 0] = np.nan, np.inf, np.nan
    q, status = iiwa.inverse_kinematics(target, "link7", q0, status=True)
    bad = np.isin(np.arange(40), (7, 20, 31))
    assert (status[bad] == lw.Status.NOT_FINITE).all() and not status[~bad].any()
    assert np.isnan(q[bad]).all() and q[~bad].tobytes() == expected[~bad].tobytes()


def test_quaternions_of_the_start(kinds: lw.Robot) -> None:
    """One that is not of unit length is used as if it were, and told; one of zeros is no turn."""
    q0 = np.tile(kinds.random_q(seed=5), (3, 1))
    target = kinds.forward_kinematics(kinds.random_q(seed=6), "l1")
    q0[1, :4] *= 2.0
    q0[2, :4] = 0.0
    q, status = kinds.inverse_kinematics(target, "l1", q0, status=True)
    not_unit, overflow = int(lw.Status.NOT_UNIT), int(lw.Status.OVERFLOW)
    assert status.tolist() == [0, not_unit, not_unit | overflow]
    np.testing.assert_allclose(q[1], q[0], atol=1e-9)
    assert np.isnan(q[2]).all()


def test_a_target_that_is_no_rigid_motion(iiwa: lw.Robot) -> None:
    target = poses(iiwa, "link7", 5)
    q, _ = iiwa.inverse_kinematics(target, "link7", status=True)
    wrong = {"stretched": 1.01 * target, "mirrored": target @ np.diag([1.0, 1.0, -1.0, 1.0]),
             "transposed": np.swapaxes(target, 1, 2)}  # fmt: skip
    for bent in wrong.values():
        mixed = target.copy()
        mixed[3] = bent[3]
        expected = r"inverse_kinematics: target\[3\] is no rigid motion; expected a right-handed"
        with pytest.raises(ValueError, match=expected):
            iiwa.inverse_kinematics(mixed, "link7")
        with pytest.raises(ValueError, match=r"inverse_kinematics: target is no rigid motion"):
            iiwa.inverse_kinematics(bent[3], "link7")
        found, status = iiwa.inverse_kinematics(mixed, "link7", status=True)
        assert status.tolist() == [0, 0, 0, int(lw.Status.NOT_RIGID), 0]
        assert np.isnan(found[3]).all() and found[:3].tobytes() == q[:3].tobytes()


def test_places_are_targets_where_no_turn_counts(iiwa: lw.Robot) -> None:
    target = poses(iiwa, "link7", 4)
    target[:, :3, :3] = np.eye(3)
    place = target[:, :3, 3]
    for directions in ("position", [0, 0, 0, 1, 0, 1]):
        expected = iiwa.inverse_kinematics(target, "link7", directions=directions)
        found = iiwa.inverse_kinematics(place, "link7", directions=directions)
        assert found.tobytes() == expected.tobytes() and np.isfinite(found).all()
    one, status = iiwa.inverse_kinematics(list(place[0]), "link7", None, "position", status=True)
    assert status == 0
    np.testing.assert_allclose(iiwa.forward_kinematics(one, "link7")[:3, 3], place[0], atol=1e-6)
    narrow = iiwa.inverse_kinematics(place.astype(np.float32), "link7", None, "position")
    assert narrow.dtype == np.float32
    both = iiwa.inverse_kinematics(
        [[0.0, 0.1, 0.7], [0.3, 0.2, 0.9]], ["link4", "link7"], None, "position", status=True
    )
    assert both[0].shape == (7,)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"frame": "link77"}, r"frame 'link77': robot 'iiwa14' has no such frame; did you mean"),
        ({"frame": 3}, r"frame is 3; expected a name, or a list of names"),
        ({"frame": []}, r"frame is \[\]; expected a name, or a list of names"),
        ({"frame": ["link7", "link7"]}, r"frame 'link7' is there twice"),
        ({"frame": "base"}, r"frame 'base' is moved by 0 degrees of freedom; expected 1 to 120"),
        ({"target": np.eye(3)}, r"target has shape \(3, 3\); expected \(\.\.\., 4, 4\)"),
        ({"target": np.eye(4), "frame": ["link7", "link4"]},
         r"target has shape \(4, 4\); expected \(\.\.\., 2, 4, 4\), one pose for each frame"),
        ({"target": np.zeros(3)}, r"4, 4\); places \(\.\.\., 3\) are for 'position' only"),
        ({"target": np.zeros(4), "directions": "position"},
         r"shape \(4,\); expected \(\.\.\., 4, 4\), or places \(\.\.\., 3\) of NumPy"),
        ({"target": [[1.0], [1.0, 2.0]]}, r"target cannot be read as an array"),
        ({"target": np.eye(4, dtype=complex)}, r"target has dtype complex128; expected float32"),
        ({"q0": np.zeros(6)}, r"q0 has shape \(6,\); expected \(\.\.\., 7\)"),
        ({"target": np.tile(np.eye(4), (3, 1, 1)), "q0": np.zeros((2, 7))},
         r"leading axes do not broadcast"),
        ({"directions": "rotation"}, r"directions is 'rotation'; expected 'pose', 'position'"),
        ({"directions": [True] * 5}, r"or six booleans \(or zeros and ones\), \(angular, linear\)"),
        ({"directions": [False] * 6}, r"at least one of them True"),
        ({"directions": [1, 1, 1, 1, 1, 2]}, r"six booleans \(or zeros and ones\)"),
        ({"directions": 4}, r"directions is 4; expected"),
        ({"tol": 0.0}, r"tol is 0.0; expected a number from 1e-12 on"),
        ({"tol": float("nan")}, r"tol is nan"),
        ({"tol": "small"}, r"tol is 'small'"),
        ({"restarts": -1}, r"restarts is -1; expected an integer from 0 to 10000"),
        ({"restarts": 1.5}, r"restarts is 1.5"),
        ({"restarts": True}, r"restarts is True"),
        ({"limits": "yes"}, r"limits is 'yes'; expected True or False"),
        ({"threads": 0}, r"threads is 0; expected a positive integer or None"),
        ({"out": np.zeros(3)}, r"out has shape \(3,\); expected \(7,\)"),
    ],
    ids=str,
)  # fmt: skip
def test_mistakes_are_named(iiwa: lw.Robot, change: dict[str, Any], message: str) -> None:
    arguments = {"target": np.eye(4), "frame": "link7"} | change
    with pytest.raises((ValueError, TypeError), match=message):
        iiwa.inverse_kinematics(**arguments)


def test_a_robot_with_too_many_joints_is_refused_by_name() -> None:
    robot = lw.chain(200)
    frame = robot.frame_names[-1]
    with pytest.raises(ValueError, match=r"is moved by 200 degrees of freedom; expected 1 to 120"):
        robot.inverse_kinematics(np.eye(4), frame)


# -- limits of all joints -----------------------------------------------------------------------


def hand(sides: int = 2, limits: Any = (0.5, 1.0), pad: Any = None) -> lw.Robot:
    """A hinge that turns an arm, and fingers on branches whose limits exclude 0."""
    b = lw.Builder("hand").link("arm", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b = b.joint("elbow", "revolute", parent="base", child="arm", axis=(0, 0, 1), limits=(0.2, 1.4))
    b = b.frame("tip", "arm", xyz=(0.5, 0, 0))
    for k in range(sides):
        b = b.link(f"finger{k}", mass=0.1, inertia=(0.01, 0.01, 0.01))
        b = b.joint(f"knuckle{k}", "revolute", parent="base", child=f"finger{k}", limits=limits)
    if pad:
        b = b.link("pad", mass=0.1, inertia=(0.01, 0.01, 0.01))
        b = b.joint("pad", "revolute", parent="finger0", child="pad", **pad)
    return b.build()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("start", [None, -7.0, 7.0])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("restarts", [0, 20])
def test_joints_that_move_no_frame_are_within_their_limits(
    dtype: Any, start: float | None, several: bool, restarts: int
) -> None:
    robot = hand(limits=(0.1, 0.3))  # neither is a number of float32
    frames = ["tip", "finger1"] if several else "tip"
    q = robot.random_q(seed=0, size=20)
    target = robot.forward_kinematics(q, frames).astype(dtype)
    q0 = None if start is None else np.full(3, start, dtype)
    tol = 1e-6 if dtype is np.float64 else 1e-4
    found, status = robot.inverse_kinematics(
        target, frames, q0, restarts=restarts, tol=tol, status=True
    )
    assert not status.any() and found.dtype == dtype
    assert_within(robot, found.astype(float))
    one = robot.inverse_kinematics(target[0], frames, q0, tol=tol)
    assert_within(robot, one.astype(float))


def test_limits_of_idle_joints_are_left_out_with_limits_false() -> None:
    robot = hand()
    target = robot.forward_kinematics([0.7, 0.6, 0.6], "tip")
    assert robot.inverse_kinematics(target, "tip", limits=False)[1:].tolist() == [0.0, 0.0]
    assert robot.inverse_kinematics(target, "tip")[1:].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("multiplier", [2.0, -2.0])
@pytest.mark.parametrize("frame", ["tip", "pad"])
def test_followers_are_within_their_limits(multiplier: float, frame: str) -> None:
    """A driver may move no further than the joint that follows it."""
    ends = sorted((0.6 * multiplier + 0.1, 0.8 * multiplier + 0.1))
    robot = hand(1, pad={"mimic": ("knuckle0", multiplier, 0.1), "limits": ends})
    for q in ([0.7, 0.65], [0.7, 0.6], [0.3, 0.8]):
        found, status = robot.inverse_kinematics(
            robot.forward_kinematics(q, frame), frame, [0.0, 9.0], status=True
        )
        assert status == 0 and 0.6 - 1e-12 <= found[1] <= 0.8 + 1e-12
    beyond = robot.forward_kinematics([0.7, 0.95], "pad")
    best, status = robot.inverse_kinematics(beyond, "pad", restarts=3, status=True)
    assert status == lw.Status.NOT_CONVERGED and best[1] <= 0.8 + 1e-12


def test_limits_of_followers_that_exclude_their_drivers_are_named() -> None:
    robot = hand(1, pad={"mimic": ("knuckle0", -1.0, 0.0), "limits": (0.5, 1.0)})
    target = robot.forward_kinematics([0.7, 0.6], "tip")
    message = r"limits of joint 'knuckle0' \(0.5 to 1\) and of the joints that follow it exclude"
    with pytest.warns(lw.LimitWarning, match=message):
        q = robot.inverse_kinematics(target, "tip")
    assert q[1] == 0.5
    robot.inverse_kinematics(target, "tip")  # once per robot and frame


def test_idle_joints_of_a_large_robot_are_within_their_limits() -> None:
    b = lw.Builder("hedgehog")
    for k in range(300):
        b = b.link(f"l{k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        b = b.joint(f"j{k}", "revolute", parent="base", child=f"l{k}", limits=(0.5, 1.0))
    robot = b.build()
    target = robot.forward_kinematics(np.full((3, 300), 0.7), "l7")
    q = robot.inverse_kinematics(target, "l7")
    assert_within(robot, q)
    assert np.abs(q[:, 7] - 0.7).max() < 1e-6


# -- warnings of rows without a solution --------------------------------------------------------


def test_unsolved_rows_warn_once_with_their_number_and_the_first(planar: lw.Robot) -> None:
    target = np.tile(np.eye(4), (2, 3, 1, 1))
    target[..., 0, 3] = [[0.9, 2.5, 1.2], [0.9, 2.5, 2.6]]
    options: Any = {"directions": "position", "restarts": 3}
    message = (
        r"inverse_kinematics: 3 of 6 rows have no solution and are NaN, the first "
        r"target\[0, 1\]: out of reach within the joint limits, .*; status=True returns"
    )
    for threads in (None, 2):  # the second call takes the compiled entry
        with pytest.warns(lw.ConvergenceWarning, match=message) as caught:
            planar.inverse_kinematics(target, "tip", threads=threads, **options)
        assert len(caught) == 1 and caught[0].filename == __file__
    target[0, 1, 0, 3] = np.nan
    with pytest.warns(lw.ConvergenceWarning, match=r"target\[0, 1\]: the target or q0 is NaN"):
        planar.inverse_kinematics(target, "tip", **options)
    with pytest.warns(lw.ConvergenceWarning, match=r"1 of 1 rows .*, the first target: out of"):
        planar.inverse_kinematics(far(), "tip", **options)
    planar.inverse_kinematics(target, "tip", status=True, **options)


def far() -> np.ndarray:
    target = np.eye(4)
    target[0, 3] = 5.0
    return target


# -- any robot ----------------------------------------------------------------------------------


@pytest.mark.full
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), joints=st.integers(1, 8))
def test_random_chains_reach_what_they_reached(seed: int, joints: int) -> None:
    rng = np.random.default_rng(seed)
    b = lw.Builder("random")
    for k in range(joints):
        parent = "base" if k == 0 else f"l{k - 1}"
        kind = rng.choice(["revolute", "revolute", "prismatic", "continuous"])
        more = {} if kind == "continuous" else {"limits": tuple(np.sort(rng.uniform(-2, 2, 2)))}
        b = b.link(f"l{k}", mass=1.0, com=[0, 0, 0], inertia=[0.1, 0.1, 0.1])
        b = b.joint(f"j{k}", str(kind), parent=parent, child=f"l{k}", axis=rng.normal(size=3),
                    xyz=rng.uniform(-0.5, 0.5, 3), rpy=rng.uniform(-3, 3, 3), **more)  # fmt: skip
    robot = b.build()
    frame = f"l{joints - 1}"
    target = poses(robot, frame, 50, seed)
    q, status = robot.inverse_kinematics(target, frame, status=True)
    solved = status == 0
    assert solved.mean() >= 0.9
    assert pose_distance(robot.forward_kinematics(q[solved], frame), target[solved]).max() <= 2e-6
    assert_within(robot, q)
