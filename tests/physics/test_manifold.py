"""Integrate, difference and normalize to rounding, against matrix exponentials in 50 digits."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import linkwise as lw
import linkwise.spatial.precise
from linkwise.algorithms import FUNCTIONS, configurations
from linkwise.backends.reference import interpret
from linkwise.trace.tracer import Task, trace

DIGITS = 50
ANGLES = [0.0, 1e-300, 1e-160, 9.9e-16, 1.1e-15, 1e-9, 1e-6, 1e-4, 1e-2, 0.3, 1.0, 2.0, 3.0]
HALF_TURNS = [np.pi - 1e-3, np.pi - 1e-9, np.pi, np.pi + 1e-9, 4.0, 6.0]
AXES = [(1.0, 0.0, 0.0), (0.6, 0.0, -0.8), (1 / 3, 2 / 3, -2 / 3)]
STEP = (0.3, -0.7, 0.2)


@pytest.fixture(scope="module")
def ship() -> lw.Robot:
    """A free body with a ball and a hinge."""
    b = lw.Builder("ship").link("hull", mass=2.0, inertia=(1.0, 2.0, 2.5))
    b = b.joint("sea", "free", parent="base", child="hull")
    b = b.link("mast", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b = b.joint("ball", "spherical", parent="hull", child="mast", xyz=(0.0, 0.0, 1.0))
    b = b.link("vane", mass=1.0, inertia=(0.1, 0.1, 0.1))
    return b.joint("hinge", "revolute", parent="mast", child="vane").build()


def twist(r: Any, v: Any) -> Any:
    x, y, z = r
    return mpmath.matrix([[0, -z, y, v[0]], [z, 0, -x, v[1]], [-y, x, 0, v[2]], [0, 0, 0, 0]])


def matrix(q: Any) -> Any:
    """The pose of a free joint, in 50 digits."""
    w, x, y, z, *p = (mpmath.mpf(float(n)) for n in q)
    k = 2 / (w * w + x * x + y * y + z * z)
    return mpmath.matrix(
        [
            [1 - k * (y * y + z * z), k * (x * y - w * z), k * (x * z + w * y), p[0]],
            [k * (x * y + w * z), 1 - k * (x * x + z * z), k * (y * z - w * x), p[1]],
            [k * (x * z - w * y), k * (y * z + w * x), 1 - k * (x * x + y * y), p[2]],
            [0, 0, 0, 1],
        ]
    )


def states(ship: lw.Robot, angles: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Random starts, and rates that turn hull and mast by the angles."""
    rates = [
        (*np.multiply(axis, angle), *STEP, *np.multiply(axis, angle), 0.4)
        for angle in angles
        for axis in AXES
    ]
    return ship.random_q(seed=5, size=len(rates)), np.array(rates)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_integrate_is_the_exponential_of_the_twist(ship: lw.Robot, dtype: str) -> None:
    q, v = (x.astype(dtype) for x in states(ship, ANGLES + HALF_TURNS))
    moved, eps = ship.integrate(q, v), np.finfo(dtype).eps
    with mpmath.workdps(DIGITS):
        for a, b, rates in zip(q, moved, v, strict=True):
            step = [mpmath.mpf(float(x)) for x in rates]
            expected = matrix(a[:7]) * mpmath.expm(twist(step[:3], step[3:6]), "taylor")
            error = max(abs(x) for x in matrix(b[:7]) - expected)
            assert error < 16 * eps * (1 + np.abs(rates[:3]).max()), rates
    lengths = np.linalg.norm(moved[:, [0, 1, 2, 3]].astype(float), axis=1)
    assert np.abs(lengths - 1).max() < 4 * eps


def test_difference_is_its_inverse(ship: lw.Robot) -> None:
    """The twist between two poses leads from one to the other, 50 digits between."""
    q, v = states(ship, ANGLES + HALF_TURNS)
    end = ship.integrate(q, v)
    back = ship.difference(q, end)
    eps = np.finfo(float).eps
    with mpmath.workdps(DIGITS):
        for a, b, rates in zip(q, end, back, strict=True):
            step = [mpmath.mpf(float(x)) for x in rates]
            reached = matrix(a[:7]) * mpmath.expm(twist(step[:3], step[3:6]), "taylor")
            assert max(abs(x) for x in reached - matrix(b[:7])) < 32 * eps, rates
    assert np.abs(np.linalg.norm(back[:, :3], axis=1)).max() <= np.pi * (1 + eps)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("angle", [1e-30, 9.9e-16, 1.1e-15, 1e-6, 1e-3, 1.0, 3.1])
def test_turns_from_rest_keep_every_digit(ship: lw.Robot, angle: float, dtype: str) -> None:
    """Relative to the turn itself, however small."""
    start = np.tile(ship.neutral(), (len(AXES), 1)).astype(dtype)
    _, v = states(ship, [angle])
    v = v.astype(dtype)
    back, eps = ship.difference(start, ship.integrate(start, v)), np.finfo(dtype).eps
    assert back.dtype == dtype
    assert np.abs(back[:, :3] - v[:, :3]).max() < 8 * eps * angle
    assert np.abs(back[:, 3:6] - v[:, 3:6]).max() < 8 * eps


@pytest.mark.parametrize("function", ["integrate", "difference", "normalize"])
def test_every_kind_of_scalar_agrees(ship: lw.Robot, function: str, rng: Any) -> None:
    """Floats, arrays as scalars, 50 digits, the interpreted program, and the compiled one."""
    (algorithm,) = FUNCTIONS[function].values()
    values = [
        ship.random_q(rng, size=7) if name[0] == "q" else rng.normal(size=(7, size))
        for name, size in algorithm.input_sizes(ship.tree)
    ]
    values = [1.1 * x if function == "normalize" else x for x in values]
    names = [name for name, _ in algorithm.input_sizes(ship.tree)]
    compiled = ship.compute(function, *values)
    program = trace(Task(algorithm), ship.tree)
    interpreted = interpret(program, dict(zip(names, values, strict=True)))["result"]
    columns = algorithm.driver(ship.tree, *(list(x.T) for x in values))
    floats = [algorithm.driver(ship.tree, *(x[k].tolist() for x in values)) for k in range(7)]
    with mpmath.workdps(DIGITS):
        exact = [[[mpmath.mpf(n) for n in x[k]] for x in values] for k in range(7)]
        precise = [[float(n) for n in algorithm.driver(ship.tree, *x)] for x in exact]
    for other in (interpreted, np.array(columns).T, np.array(floats), compiled):
        assert np.abs(other - precise).max() < 1e-14


def test_small_turns_in_fifty_digits(ship: lw.Robot) -> None:
    """Series and quotients meet to all digits, whatever the number."""
    start = [mpmath.mpf(x) for x in ship.neutral()]
    with mpmath.workdps(DIGITS):
        for angle in ("1e-200", "9.999e-16", "1.0001e-15", "1e-6", "1e-3", "3"):
            v = [mpmath.mpf(angle) * x for x in (3, -6, 2)]
            v = [x / 7 for x in v] + [mpmath.mpf(x) for x in STEP] + [mpmath.mpf(0)] * 4
            end = configurations.integrate(ship.tree, start, v, [mpmath.mpf(1)])
            back = configurations.difference(ship.tree, start, end)
            assert max(abs(a - b) for a, b in zip(back[:3], v, strict=False)) < 1e-46 * float(angle)
            assert max(abs(a - b) for a, b in zip(back[3:6], v[3:6], strict=True)) < 1e-46


def test_a_quaternion_without_length_is_told(ship: lw.Robot) -> None:
    q = np.tile(ship.neutral(), (3, 1))
    q[1, :4] = 0.0
    out, status = ship.normalize(q, status=True)
    assert status.tolist() == [0, lw.Status.NOT_UNIT | lw.Status.SINGULAR, 0]
    assert np.isnan(out[1]).all() and np.array_equal(out[[0, 2]], q[[0, 2]])


def test_results_go_where_they_are_wanted(ship: lw.Robot, rng: Any) -> None:
    q, v = ship.random_q(rng, size=5), rng.normal(size=(5, ship.nv))
    out = np.empty((5, ship.nq))
    assert ship.integrate(q, v, 0.5, out=out) is out
    assert np.array_equal(out, ship.integrate(q, v, np.full(5, 0.5), threads=2))
    rates = np.empty((5, ship.nv))
    assert ship.difference(q, out, out=rates) is rates
    with pytest.raises(ValueError, match="out"):
        ship.normalize(q, out=np.empty((5, ship.nq + 1)))


@pytest.mark.parametrize("scale", [10.0**k for k in (-160, -155, -150, -140, 140, 150, 155, 200)])
def test_a_length_out_of_range_is_right_or_no_number(scale: float) -> None:
    """Squares of such lengths overflow, or lose their digits to underflow."""
    robot = lw.Builder().link("a", mass=1.0, inertia=(1, 1, 1))
    robot = robot.joint("j", "spherical", parent="base", child="a").build()
    q = np.array([0.5, 0.1, -0.7, 0.5])
    found, status = robot.normalize(scale * q, status=True)
    assert status and np.array_equal(found, robot.normalize(scale * q), equal_nan=True)
    if 1e-145 < scale < 1e153:
        np.testing.assert_allclose(found, q, rtol=4e-16)
    else:
        assert np.isnan(found).all()
