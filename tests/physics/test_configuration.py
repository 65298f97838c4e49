"""The configuration manifold: integrate, difference, neutral, random_q, normalize."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.model.description import Limits, Mimic
from linkwise.robot import Robot

MOVING = ("revolute", "prismatic", "helical", "universal", "planar", "spherical", "free")
ROTATING = ("spherical", "free")
STEP = 1e-4


def alone(random_robot: Any, kind: str, **changes: Any) -> Robot:
    """A robot of one joint."""
    described = random_robot(np.random.default_rng(1), 1, kinds=(kind,))
    return Robot(replace(described, joints=(replace(described.joints[0], **changes),)))


@pytest.fixture(scope="module", params=[*MOVING, "tree", "followers on a free base"])
def robot(request: pytest.FixtureRequest, random_robot: Any, all_kinds: Any) -> Robot:
    if request.param in MOVING:
        return alone(random_robot, request.param)
    options = {} if request.param == "tree" else {"mimic": True, "base": "free"}
    return Robot(random_robot(np.random.default_rng(3), 12, kinds=all_kinds, **options))


def same_pose(robot: Robot, q: np.ndarray, other: np.ndarray, assert_close: Any) -> None:
    """Equal but for the signs of quaternions."""
    for link in robot.tree.links:
        a = link.q_index
        if link.kind in ROTATING and link.follows is None:
            turn, back = q[..., a : a + 4], other[..., a : a + 4]
            assert_close(np.abs((turn * back).sum(axis=-1)), np.ones(q.shape[:-1]))
            other = other.copy()
            other[..., a : a + 4] = turn
    assert_close(other, q, scale=1 + np.abs(q).max())


# -- integrate and difference undo each other ---------------------------------------------------


def turns(robot: Robot, rng: np.random.Generator, angle: float) -> np.ndarray:
    """Rates (20, nv) that turn every ball by an angle, about any axis."""
    v = rng.uniform(-1, 1, (20, robot.nv))
    for link in robot.tree.links:
        if link.kind in ROTATING:
            own = v[:, link.v_index : link.v_index + 3]
            own *= angle / np.linalg.norm(own, axis=1, keepdims=True)
    return v


@pytest.mark.parametrize("angle", [0.0, 1e-12, 9.9e-5, 1.1e-4, 1e-2, 1.0, 3.0, np.pi - 1e-9])
def test_difference_undoes_integrate(
    robot: Robot, angle: float, rng: np.random.Generator, assert_close: Any
) -> None:
    q, v = robot.random_q(rng, size=20), turns(robot, rng, angle)
    assert_close(robot.difference(q, robot.integrate(q, v)), v, scale=5.0)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-3, 1.0, np.pi, 4.0, 2 * np.pi, 50.0])
def test_integrate_undoes_difference(
    robot: Robot, angle: float, rng: np.random.Generator, assert_close: Any
) -> None:
    """Turns beyond half a turn come back the short way, to the same place."""
    q0 = robot.random_q(rng, size=20)
    q1 = robot.integrate(q0, turns(robot, rng, angle))
    v = robot.difference(q0, q1)
    same_pose(robot, q1, robot.integrate(q0, v), assert_close)
    for link in robot.tree.links:
        if link.kind in ROTATING:
            turn = np.linalg.norm(v[:, link.v_index : link.v_index + 3], axis=1)
            assert turn.max() <= np.pi + 1e-12


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e-8, 1e-5, 1e-4, 1e-3])
def test_small_steps_keep_their_digits(
    robot: Robot, scale: float, rng: np.random.Generator
) -> None:
    v = scale * rng.uniform(0.5, 1, robot.nv)
    start = robot.neutral()
    assert np.allclose(robot.difference(start, robot.integrate(start, v)), v, rtol=1e-13, atol=0)


@pytest.mark.parametrize("kind", ROTATING)
def test_half_a_turn_exactly(kind: str, random_robot: Any, assert_close: Any) -> None:
    """Both ways round are as short; either will do, and none divides by zero."""
    robot = alone(random_robot, kind)
    start, end = robot.neutral(), robot.neutral()
    end[:4] = 0.0, 0.0, 1.0, 0.0
    v = robot.difference(start, end)
    assert_close(np.abs(v[:3]), np.array([0.0, np.pi, 0.0]))
    same_pose(robot, end[None], robot.integrate(start, v)[None], assert_close)


@pytest.mark.parametrize("kind", ROTATING)
def test_both_signs_of_a_quaternion_are_one_turn(
    kind: str, random_robot: Any, rng: np.random.Generator, assert_close: Any
) -> None:
    robot = alone(random_robot, kind)
    q0, q1 = robot.random_q(rng, size=(2, 20))
    minus = q1.copy()
    minus[:, :4] *= -1
    assert_close(robot.difference(q0, minus), robot.difference(q0, q1), scale=10.0)
    assert_close(robot.difference(q0, q0), np.zeros((20, robot.nv)), scale=1.0)


@pytest.mark.parametrize("length", [0.8, 1 + 1e-7, 1.3])
@pytest.mark.parametrize("kind", ROTATING)
def test_a_quaternion_of_any_length_is_the_turn_it_stands_for(
    kind: str, length: float, random_robot: Any, rng: np.random.Generator, assert_close: Any
) -> None:
    robot = alone(random_robot, kind)
    q0, q1 = robot.random_q(rng, size=(2, 20))
    v = rng.uniform(-1, 1, (20, robot.nv))
    long0, long1 = q0.copy(), q1.copy()
    long0[:, :4] *= length
    long1[:, :4] *= length
    assert_close(robot.normalize(long0), q0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.StateWarning)
        assert_close(robot.integrate(long0, v), robot.integrate(q0, v))
        assert_close(robot.difference(long0, long1), robot.difference(q0, q1), scale=10.0)


# -- the meaning of rates -----------------------------------------------------------------------


def test_integrate_moves_at_the_rates(
    robot: Robot, q_rate: Any, rng: np.random.Generator, assert_close: Any
) -> None:
    """Differences of fourth order: what is left is the step's fourth power, and eps / step."""
    q, v = robot.random_q(rng, size=5), rng.uniform(-1, 1, (5, robot.nv))
    near, far = (
        (robot.integrate(q, v, k * STEP) - robot.integrate(q, v, -k * STEP)) / (2 * k * STEP)
        for k in (1, 2)
    )
    slope = (4 * near - far) / 3
    assert np.abs(slope - q_rate(robot, q, v)).max() < 1e-11


def test_integrating_in_steps_is_integrating_at_once(
    robot: Robot, rng: np.random.Generator, assert_close: Any
) -> None:
    q, v = robot.random_q(rng, size=5), rng.uniform(-2, 2, (5, robot.nv))
    stepped = q
    for _ in range(8):
        stepped = robot.integrate(stepped, v, 0.125)
    same_pose(robot, robot.integrate(q, v), stepped, assert_close)


def test_a_frame_moves_as_its_jacobian_says(
    robot: Robot, evaluate: Any, rng: np.random.Generator
) -> None:
    """FK through integrate() by fourth-order differences: (1e-3)⁴ of its fifth derivative."""
    q, v = robot.random_q(rng, size=5), rng.uniform(-1, 1, (5, robot.nv))
    frame, h = robot.frame_names[-1], 1e-3

    def origin(t: float) -> np.ndarray:
        return evaluate(robot, "forward_kinematics", robot.integrate(q, v, t), frame=frame)[
            :, :3, 3
        ]

    slope = (8 * (origin(h) - origin(-h)) - (origin(2 * h) - origin(-2 * h))) / (12 * h)
    velocity = np.einsum("bij,bj->bi", evaluate(robot, "jacobian", q, frame=frame), v)[:, 3:]
    assert np.abs(slope - velocity).max() < 1e-10 * (1 + np.abs(v).sum() ** 5)


# -- neutral, random, normalize -----------------------------------------------------------------


def test_neutral_is_at_rest(robot: Robot) -> None:
    q = robot.neutral()
    assert q.shape == (robot.nq,)
    assert np.array_equal(robot.normalize(q), q)
    ones = [link.q_index for link in robot.tree.links if link.kind in ROTATING]
    assert np.array_equal(np.flatnonzero(q), sorted(ones))


def test_random_configurations_are_legal(robot: Robot, rng: np.random.Generator) -> None:
    q = robot.random_q(rng, size=(3, 50))
    assert q.shape == (3, 50, robot.nq)
    assert np.abs(robot.normalize(q) - q).max() < 1e-15
    assert len(np.unique(q[..., 0])) == 150


@pytest.mark.parametrize(
    ("kind", "limits"),
    [
        ("revolute", (-0.5, 0.25)),
        ("revolute", (-10.0, 10.0)),
        ("revolute", (4.0, 5.0)),
        ("prismatic", (2.0, 3.0)),
        ("prismatic", (-3.0, 0.5)),
        ("helical", (-20.0, 20.0)),
        ("universal", (-0.3, 0.4)),
    ],
)
def test_random_configurations_fill_the_limits(
    kind: str, limits: tuple[float, float], random_robot: Any, rng: np.random.Generator
) -> None:
    robot = alone(random_robot, kind, limits=Limits(*limits))
    q = robot.random_q(rng, size=500)
    lower, upper = robot.position_limits
    assert np.all((lower <= q) & (q <= upper))
    width = limits[1] - limits[0]
    assert np.all(q.min(axis=0) < limits[0] + 0.05 * width)
    assert np.all(q.max(axis=0) > limits[1] - 0.05 * width)


@pytest.mark.parametrize(
    ("kind", "reach"),
    [
        ("revolute", [np.pi]),
        ("prismatic", [1.0]),
        ("universal", [np.pi] * 2),
        ("planar", [1.0, 1.0, np.pi]),
    ],
)
def test_random_configurations_without_limits(
    kind: str, reach: list[float], random_robot: Any, rng: np.random.Generator
) -> None:
    q = np.abs(alone(random_robot, kind).random_q(rng, size=500)).max(axis=0)
    assert np.all((0.95 * np.array(reach) < q) & (q <= reach))


def test_random_turns_are_spread_evenly(random_robot: Any, rng: np.random.Generator) -> None:
    """Every entry of a uniform unit quaternion has mean 0 and variance 1/4."""
    q = alone(random_robot, "spherical").random_q(rng, size=4000)
    assert np.abs(q.mean(axis=0)).max() < 5 * 0.5 / np.sqrt(4000)
    assert np.abs((q**2).mean(axis=0) - 0.25).max() < 0.02


def test_a_seed_gives_the_same_configurations(robot: Robot) -> None:
    rng = np.random.default_rng(7)
    assert np.array_equal(robot.random_q(seed=7, size=3), robot.random_q(rng, size=3))
    assert robot.random_q().shape == (robot.nq,)
    assert robot.random_q(seed=1, size=0).shape == (0, robot.nq)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((5,), {}, r"rng is 5; .*: random_q\(seed=5\) for a seed, random_q\(size=5\) for a batch"),
        ((np.int64(5),), {}, r"expected a numpy.random.Generator.*random_q\(seed=5\)"),
        (((4, 5),), {}, r"rng is \(4, 5\); expected .* by name: random_q\(size=\(4, 5\)\)"),
        (
            ("x",),
            {},
            r"rng is 'x'; expected a numpy.random.Generator, and seed= and size= by name$",
        ),
        ((np.random.default_rng(0),), {"seed": 1}, r"rng and seed are both given"),
        ((), {"seed": -1}, r"seed is -1; expected an integer that is not negative"),
        ((), {"seed": 0.5}, r"seed is 0.5; expected an integer"),
        ((), {"seed": (1, 2)}, r"seed is \(1, 2\); expected an integer"),
    ],
)
def test_seeds_and_sizes_are_given_by_name(
    robot: Robot, arguments: Any, options: Any, message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        robot.random_q(*arguments, **options)


def test_followers_have_no_numbers(random_robot: Any) -> None:
    described = random_robot(np.random.default_rng(2), 3, kinds=("revolute",), chain=True)
    first, second, third = described.joints
    tied = replace(described, joints=(first, replace(second, mimic=Mimic("j2", 2.0)), third))
    robot = Robot(tied)
    assert (robot.nq, robot.nv, robot.joint_names) == (2, 2, ("j0", "j2"))
    assert robot.integrate([0.1, 0.2], [1.0, 2.0], 0.5).tolist() == [0.6, 1.2]


def test_normalize_changes_lengths_only(
    robot: Robot, rng: np.random.Generator, assert_close: Any
) -> None:
    q = robot.random_q(rng, size=9)
    stretched = q.copy()
    for link in robot.tree.links:
        if link.kind in ROTATING:
            stretched[:, link.q_index : link.q_index + 4] *= rng.uniform(0.5, 2, (9, 1))
    before = stretched.copy()
    assert_close(robot.normalize(stretched), q)
    assert np.array_equal(stretched, before)


# -- shapes, dtypes, errors ---------------------------------------------------------------------


def test_leading_axes_broadcast(robot: Robot, rng: np.random.Generator) -> None:
    q, v = robot.random_q(rng, size=(4, 1)), rng.uniform(-1, 1, (3, robot.nv))
    dt = rng.uniform(0, 1, (2, 1, 1))
    out = robot.integrate(q, v, dt)
    assert out.shape == (2, 4, 3, robot.nq)
    assert np.array_equal(out[1, 2, 0], robot.integrate(q[2, 0], v[0], dt[1, 0, 0]))
    back = robot.difference(q, out)
    assert back.shape == (2, 4, 3, robot.nv)
    assert np.array_equal(back[0, 3, 1], robot.difference(q[3, 0], out[0, 3, 1]))


def test_float32_stays_float32(robot: Robot, rng: np.random.Generator, assert_close: Any) -> None:
    q = robot.random_q(rng, size=5).astype(np.float32)
    v = rng.uniform(-1, 1, (5, robot.nv)).astype(np.float32)
    q1 = robot.integrate(q, v, 0.5)
    assert q1.dtype == np.float32
    assert robot.difference(q, q1).dtype == np.float32
    assert robot.normalize(q).dtype == np.float32
    exact = robot.integrate(q.astype(float), v.astype(float), 0.5)
    assert_close(q1, exact, dtype=np.float32)


@pytest.mark.parametrize("dtype", [int, np.int8, np.uint16])
def test_integers_become_float64(robot: Robot, dtype: Any) -> None:
    q, v = robot.neutral().astype(dtype), np.ones(robot.nv, dtype)
    assert robot.integrate(q, v).dtype == np.float64
    assert robot.difference(q, q).dtype == np.float64
    assert robot.normalize(q.tolist()).dtype == np.float64


def test_a_bad_row_stays_alone(robot: Robot, rng: np.random.Generator) -> None:
    q, v = robot.random_q(rng, size=3), rng.uniform(-1, 1, (3, robot.nv))
    bad = q.copy()
    bad[1] = np.nan
    good = robot.integrate(q, v)
    out = robot.integrate(bad, v)
    assert np.array_equal(out[[0, 2]], good[[0, 2]])
    assert np.isnan(out[1]).all()


@pytest.fixture(scope="module")
def ball(random_robot: Any) -> Robot:
    return alone(random_robot, "spherical")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda r: r.integrate([1, 0, 0], [0, 0, 0]),
            r"q has shape \(3,\); expected \(\.\.\., 4\)",
        ),
        (
            lambda r: r.integrate([1, 0, 0, 0], [0, 0]),
            r"v has shape \(2,\); expected \(\.\.\., 3\)",
        ),
        (lambda r: r.difference([1, 0, 0, 0], 1.0), r"q1 has shape \(\); expected \(\.\.\., 4\)"),
        (lambda r: r.difference([1.0], [1, 0, 0, 0]), r"q0 has shape \(1,\); expected"),
        (lambda r: r.normalize(np.ones((4, 3))), r"q has shape \(4, 3\); expected \(\.\.\., 4\)"),
    ],
)
def test_wrong_shapes_are_named(ball: Robot, call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(ball)


@pytest.mark.parametrize("value", [[1j, 0, 0, 0], ["a", "b", "c", "d"], [True] * 4])
def test_wrong_dtypes_are_named(ball: Robot, value: Any) -> None:
    with pytest.raises(TypeError, match=r"normalize: q has dtype .*; expected float32"):
        ball.normalize(value)
    with pytest.raises(TypeError, match=r"difference: q0 has dtype .*; expected float32"):
        ball.difference(value, ball.neutral())


def test_batches_that_do_not_broadcast_are_named(ball: Robot) -> None:
    q, v = np.tile(ball.neutral(), (2, 1)), np.zeros((3, 3))
    with pytest.raises(ValueError, match=r"q.*\(2,.*v.*\(3,"):
        ball.integrate(q, v)
