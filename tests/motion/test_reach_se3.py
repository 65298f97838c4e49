"""SE(3) logarithm and exponential: to rounding at every angle, in batches, bad rows alone."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw

EPS = 2.0**-52
ANGLES = [0.0, 1e-300, 1e-160, 1e-20, 1e-15, 1e-9, 1e-4, 0.1, 1.0, 3.0, np.pi - 1e-4,
          np.pi - 1e-9, np.pi - 1e-15]  # fmt: skip


def precise_exp(x: np.ndarray) -> np.ndarray:
    """The exponential of a twist in 60 digits, by mpmath's matrix exponential."""
    with mpmath.workdps(60):
        (a, b, c), v = x[:3], x[3:]
        generator = mpmath.matrix([[0, -c, b, v[0]], [c, 0, -a, v[1]], [-b, a, 0, v[2]], [0] * 4])
        found = mpmath.expm(generator)
        return np.array([[float(found[i, j]) for j in range(4)] for i in range(4)])


def twists(count: int, angle: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=(count, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    return np.hstack([axis * angle, rng.normal(size=(count, 3))])


@pytest.mark.parametrize("angle", ANGLES)
def test_exponentials_in_sixty_digits(angle: float) -> None:
    x = twists(4, angle)
    expected = np.array([precise_exp(row) for row in x])
    np.testing.assert_allclose(lw.se3.exp(x), expected, rtol=0, atol=16 * EPS)
    # numbers of a small turn keep their digits
    small = np.abs(expected[:, 2, 1] - expected[:, 1, 2])
    found = np.abs(lw.se3.exp(x)[:, 2, 1] - lw.se3.exp(x)[:, 1, 2])
    np.testing.assert_allclose(found, small, rtol=8 * EPS, atol=1e-14 * (angle > 1e-3))


@pytest.mark.parametrize("angle", ANGLES)
def test_the_logarithm_undoes_the_exponential(angle: float) -> None:
    """A pose given in rounded numbers: its rotation is known to EPS, its twist to that too."""
    x = twists(50, angle)
    found = lw.se3.log(lw.se3.exp(x))
    np.testing.assert_allclose(found, x, rtol=0, atol=40 * EPS)
    np.testing.assert_allclose(found[:, :3], x[:, :3], rtol=64 * EPS * max(1.0, 1 / max(angle, 1)),
                               atol=16 * EPS * (angle > 1e-3))  # fmt: skip


def test_half_a_turn_about_any_axis() -> None:
    rng = np.random.default_rng(3)
    axes = np.vstack([np.eye(3), -np.eye(3), rng.normal(size=(40, 3))])
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    poses = np.tile(np.eye(4), (len(axes), 1, 1))
    poses[:, :3, :3] = 2 * axes[:, :, None] * axes[:, None, :] - np.eye(3)
    found = lw.se3.log(poses)
    np.testing.assert_allclose(np.linalg.norm(found[:, :3], axis=1), np.pi, rtol=4 * EPS)
    along = np.abs(np.einsum("ij,ij->i", found[:, :3], axes)) / np.pi  # either sign
    np.testing.assert_allclose(along, 1.0, rtol=8 * EPS)
    assert not found[:, 3:].any()


def test_against_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    x = np.vstack([twists(30, angle, seed=1) for angle in (1e-12, 1e-5, 0.3, 2.0, 3.1)])
    for row in x:
        swapped = np.concatenate([row[3:], row[:3]])  # Pinocchio has (linear, angular)
        pose = pin.exp6(swapped).homogeneous
        np.testing.assert_allclose(lw.se3.exp(row), pose, atol=1e-13)
        theirs = pin.log6(pin.SE3(pose)).vector
        np.testing.assert_allclose(lw.se3.log(pose), [*theirs[3:], *theirs[:3]], atol=2e-7)


def test_the_error_leads_to_the_target() -> None:
    a, b = lw.se3.exp(twists(5, 2.0))[:, None], lw.se3.exp(twists(7, 1.0, seed=2))
    found = lw.se3.error(a, b)
    assert found.shape == (5, 7, 6)
    np.testing.assert_allclose(a @ lw.se3.exp(found), np.broadcast_to(b, (5, 7, 4, 4)), atol=2e-15)
    np.testing.assert_allclose(lw.se3.error(np.eye(4), b), lw.se3.log(b), atol=1e-15)
    assert not lw.se3.error(b, b)[:, :3].round(15).any()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1.8, 1.8), min_size=6, max_size=6))
def test_any_twist_comes_back(numbers: list[float]) -> None:
    found = lw.se3.log(lw.se3.exp(numbers))  # |angular| < pi: three of 1.8 at most 3.12
    np.testing.assert_allclose(found, numbers, rtol=0, atol=200 * EPS)


def test_float32_lists_and_shapes() -> None:
    x = twists(6, 1.0).astype(np.float32).reshape(2, 3, 6)
    pose = lw.se3.exp(x)
    assert pose.shape == (2, 3, 4, 4) and pose.dtype == np.float32
    np.testing.assert_allclose(lw.se3.log(pose), x, atol=2e-6)
    assert lw.se3.log(pose.tolist()).dtype == np.float64
    assert lw.se3.exp(np.zeros((0, 6))).shape == (0, 4, 4)
    assert lw.se3.log(np.zeros((0, 4, 4))).shape == (0, 6)
    np.testing.assert_array_equal(lw.se3.exp([0] * 6), np.eye(4))


def test_a_row_alone_is_nan() -> None:
    pose = lw.se3.exp(twists(5, 1.0))
    expected = lw.se3.log(pose)
    pose[2, 0, 1] = np.nan
    found = lw.se3.log(pose)
    assert np.isnan(found[2]).any() and (np.delete(found, 2, 0) == np.delete(expected, 2, 0)).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: lw.se3.exp(np.zeros(5)), r"se3.exp: twist has shape \(5,\); expected \(..., 6\)"),
        (lambda: lw.se3.log(np.eye(3)), r"se3.log: pose has shape \(3, 3\); expected \(..., 4, 4"),
        (lambda: lw.se3.log(2 * np.eye(4)), r"se3.log: pose 0 of 1 is no rigid motion; expected"),
        (lambda: lw.se3.log(np.diag([1.0, 1.0, -1.0, 1.0])), r"is no rigid motion"),
        (lambda: lw.se3.error(np.eye(4), np.stack([np.eye(4), np.eye(4) + 0.1])),
         r"se3.error: target 1 of 2 is no rigid motion"),
        (lambda: lw.se3.error(np.zeros((2, 4, 4)), np.zeros((3, 4, 4))),
         r"broadcast: pose \(2, 4, 4\), target \(3, 4, 4\); .* apart from the last 2 axes"),
        (lambda: lw.se3.log("pose"), r"se3.log: pose has shape \(\)"),
        (lambda: lw.se3.log(np.eye(4) * 1j), r"pose has dtype complex128; expected float32"),
        (lambda: lw.se3.log([[1.0], [1.0, 2.0]]), r"se3.log: pose cannot be read as an array"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_bent_poses_of_float32_with_those_of_float64_are_judged_as_the_call_does() -> None:
    straight = lw.se3.exp([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    bent = straight.copy()
    bent[:3] *= 1.0 + 1e-5
    narrow = bent.astype(np.float32)
    for pose, target, name in ((narrow, straight, "pose"), (straight, narrow, "target")):
        with pytest.raises(ValueError, match=f"{name} 0 of 1 is no rigid motion.*to 1e-06"):
            lw.se3.error(pose, target)
    assert np.isfinite(lw.se3.error(narrow, straight.astype(np.float32))).all()
