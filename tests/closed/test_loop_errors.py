"""What is wrong with a loop, a state or a call is said, with what was expected."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linkwise as lw

Make = Callable[..., lw.Robot]
FAR = "expected a robot without, such as robot.open"


def loop(**fields: Any) -> lw.Loop:
    return lw.Loop(**({"frame_a": "coupler_end", "frame_b": "rocker_end"} | fields))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "close_loops: there are no loops; expected at least one linkwise.Loop"),
        ("coupler_end", "close_loops: loop 0 is 'c'; expected a linkwise.Loop"),
        (
            loop(frame_a="coupler_edn"),
            "robot 'four_bar' has no such frame; did you mean 'coupler_end'",
        ),
        (loop(frame_b=3), "frame 3: robot 'four_bar' has no such frame"),
        (
            loop(frame_b="coupler"),
            "loop 0: 'coupler_end' to 'coupler': both are fixed to link 'coupler' and never move "
            "against each other; expected frames of different links",
        ),
        (loop(frame_a="ground", frame_b=None), "both are fixed to the base"),
        (loop(directions=[0] * 6), "directions hold nothing; expected at least one direction"),
        (loop(directions=np.zeros((2, 6))), "directions hold nothing"),
        (loop(directions=[1, 0, 1]), "expected six booleans, or rows (k, 6) of numbers"),
        (loop(directions=[[0, 0, 0, 1, 0, np.nan]]), "expected a 1 by 6 array of finite numbers"),
        (loop(directions=[[0, 0, 0, 1, 0, 0], [0] * 6]), "directions: row 1 is zero"),
        (
            loop(directions=[[0, 0, 0, 1, 0, 0], [0, 0, 0, 2, 0, 0]]),
            "2 rows of rank 1; expected rows that are independent of each other",
        ),
        (loop(directions=np.ones((7, 6))), "7 rows; expected at most 6, independent"),
        (loop(pose=np.ones((4, 4))), "expected a rotation (orthonormal, right-handed)"),
        (loop(pose=[1, 2]), "pose is (1, 2); expected a 4 by 4 array of finite numbers"),
    ],
)
def test_loops_that_have_no_meaning(four_bar_open: Make, given: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        four_bar_open().close_loops(given)


def test_loops_are_placed_at_one_configuration(four_bar_open: Make) -> None:
    expected = re.escape("close_loops: at is") + r".*; expected 3 finite numbers"
    for at in (np.zeros((2, 3)), np.zeros(4), [0.0, np.nan, 0.0], "neutral"):
        with pytest.raises(ValueError, match=re.compile(expected, re.S)):
            four_bar_open().close_loops(loop(), at=at)


def test_passive_joints_are_joints(four_bar_open: Make) -> None:
    with pytest.raises(ValueError, match=r"joint 'bb': robot 'four_bar' has no such joint"):
        four_bar_open().close_loops(loop(), passive=["bb"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda r, x: r.forward_dynamics(x, x, x, method="aba"),
            "method 'aba': is for robots without closed loops, and this one has loop 0: "
            "'coupler_end' to 'rocker_end'; robot.open has none; forward_dynamics expects one of "
            "'auto', 'ltl', 'pv', 'pv-r'",
        ),
        (lambda r, x: r.joint_wrenches(x, x, x), "joint_wrenches: is for robots without closed"),
        (lambda r, x: r.operational_inertia(x, "coupler"), "is for robots without closed loops"),
        (lambda r, x: r.open.delassus(x), "delassus: the robot has no closed loops"),
        (lambda r, x: r.open.project(x), "project: the robot has no closed loops"),
        (lambda r, x: lw.simulate(r, x, integrator="midpoint"), "is for robots without closed l"),
        (lambda r, x: lw.simulate(r, x, drift="always"), "drift is 'always'; expected 'project'"),
        (lambda r, x: lw.simulate(r, x, drift=-1.0), "drift is -1.0; expected 'project', a time"),
        (
            lambda r, x: lw.simulate(r, x),
            "does not respect loop 0: 'coupler_end' to 'rocker_end', which is open by 0.3 m or rad;"
            " expected a state that does, such as q, qd = robot.project(q, qd)",
        ),
        (
            lambda r, x: lw.simulate(r, np.stack([r.project([0.5, 0.6, 1.8])] * 2), np.eye(3)[:2]),
            "the state of row 0 does not respect loop 0: 'coupler_end' to 'rocker_end', which "
            "comes apart at",
        ),
        (lambda r, x: r.save("robot.urdf"), f"which would be lost; {FAR}"),
        (lambda r, x: r.sub_chain("ground", "coupler"), f"which would be lost; {FAR}"),
    ],
)
def test_what_has_no_meaning_says_so(four_bar: Make, call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call(four_bar(), np.zeros(3))


def test_a_base_that_changes_takes_no_loops_to_the_world(four_bar_open: Make) -> None:
    robot = four_bar_open().close_loops(loop(frame_b=None))
    with pytest.raises(ValueError, match=r"change_base: the loop 'coupler_end' to the world is f"):
        robot.change_base("coupler")
    assert four_bar_open().close_loops(loop()).change_base("crank").loops


def test_loops_that_cannot_close_are_flagged(four_bar_open: Make) -> None:
    """A point held to one that is out of reach: that row is NaN, alone."""
    far = np.eye(4)
    far[0, 3] = 3.0
    robot = four_bar_open().close_loops(
        loop(frame_b="ground", directions=(0, 0, 0, 1, 1, 0), pose=far)
    )
    (q, qd), bits = robot.project(np.ones((2, 3)), np.ones((2, 3)), status=True)
    assert np.isnan(q).all() and np.isnan(qd).all()
    assert all(lw.Status(int(x)) & lw.Status.NOT_CONVERGED for x in bits)


def test_edited_robots_keep_their_loops(four_bar: Make) -> None:
    closed = four_bar(passive="b")
    q, qd = closed.project([0.5, 0.6, 1.8], [2.0, 0.0, 0.0])
    heavy = closed.with_payload("coupler", 1.0)
    assert heavy.loops == closed.loops and heavy.tree.passive == (1,)
    assert not np.allclose(heavy.forward_dynamics(q, qd, np.zeros(3)),
                           closed.forward_dynamics(q, qd, np.zeros(3)))  # fmt: skip
    named = closed.rename({"rocker_end": "end", "b": "elbow"})
    assert named.loops[0].frame_b == "end" and named.tree.passive == (1,)
    again = pickle.loads(pickle.dumps(closed))
    assert again == closed and again.loops == closed.loops and again != closed.open
    assert "1 closed loop(s)" in repr(closed) and closed.open.open is closed.open
    weightless = closed.with_gravity((0, 0, 0))
    assert weightless.loops and np.allclose(weightless.gravity_torque(q), 0.0)


def test_poses_at_a_configuration(four_bar_open: Make) -> None:
    """Loops whose poses are not given hold their frames as they are."""
    q = np.array([0.3, 0.4, 1.1])
    weld = four_bar_open().close_loops([loop(), loop(frame_b=None)], at=q)
    assert np.abs(weld.residual(q).position).max() < 1e-15
    assert np.abs(weld.residual(q + 0.1).position).max() > 1e-2


def test_loops_compare_and_keep_what_they_were_given(four_bar):
    rows = np.eye(6)[3:5]
    loop = lw.Loop("coupler_end", "rocker_end", rows, pose=np.eye(4))
    again = lw.Loop("coupler_end", "rocker_end", rows.tolist(), pose=np.eye(4).tolist())
    assert loop == again and hash(loop) == hash(again)
    rows[:] = 0.0
    assert loop == again


def test_an_impulse_of_no_states_has_the_shapes_of_some(four_bar):
    none = np.zeros((0, 3))
    qd, impulses = four_bar().impulse(none, none)
    assert qd.shape == (0, 3) and impulses.shape == (0, 1, 6)


def test_parameters_reach_every_function_of_closed_loops(four_bar: Make) -> None:
    robot = four_bar().parametric("inertia", "placement")
    q, qd = robot.project([0.3, 0.2, 1.5]), np.ones(3)
    light, heavy = robot.impulse(q, qd), robot.impulse(q, qd, inertia=2 * robot.inertial_parameters)
    np.testing.assert_allclose(heavy[0], light[0], rtol=1e-12)
    np.testing.assert_allclose(heavy[1], 2 * light[1], rtol=1e-12)
    moved = np.zeros((3, 6))
    moved[2, 3] = 0.01  # the rocker's pivot, along the ground
    assert np.abs(robot.residual(q, placement=moved).position).max() > 5e-3
    there = robot.project(q, placement=moved)
    assert np.abs(robot.residual(there, placement=moved).position).max() < 1e-14
    with pytest.raises(TypeError, match=r"impulse\(\) got an unexpected keyword argument 'weight'"):
        robot.impulse(q, qd, weight=1.0)
    with pytest.raises(
        TypeError, match=r"residual\(\) got an unexpected keyword argument 'status'"
    ):
        robot.residual(q, status=True)
