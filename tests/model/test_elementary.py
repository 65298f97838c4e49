"""Angles, lengths and small matrices of ``spatial/``, judged by 60 digits and by identities."""

from __future__ import annotations

import itertools
import math
import random

import mpmath
import numpy as np
import pytest

from linkwise.spatial import elementary, matrices

EPS = 2.0**-52
ENDS = (math.pi / 2, -math.pi, math.pi / 4, 1e-9, 1e300, -1e22, 0.0, 3e-8, 5e-324)


def numbers(count: int, seed: int = 0) -> list[float]:
    rng = random.Random(seed)
    return [rng.uniform(-2.0, 2.0) * 10.0 ** rng.randint(-9, 9) for _ in range(count)]


def test_sine_cosine_angle_and_length_are_correctly_rounded() -> None:
    a, b = numbers(300), numbers(300, 1)
    with mpmath.workprec(1400):
        for x in (*a, *ENDS):
            assert elementary.sincos(x) == (float(mpmath.sin(x)), float(mpmath.cos(x)))
        for x, y in zip(a, b, strict=True):
            assert elementary.atan2(y, x) == float(mpmath.atan2(y, x))
            square = mpmath.mpf(x) ** 2 + mpmath.mpf(y) ** 2
            assert elementary.length((x, y)) == float(mpmath.sqrt(square))
    assert elementary.length((3e300, 4e300)) == 5e300 and elementary.length((0.0, 0.0)) == 0.0
    assert all(map(math.isnan, elementary.sincos(math.inf)))


def test_angles_of_zeros_and_infinite_points_are_those_of_c() -> None:
    odd = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-320, 1e308)
    for y, x in itertools.product(odd, odd):
        ours, theirs = elementary.atan2(y, x), math.atan2(y, x)
        assert str(ours) == str(theirs), (y, x)


def test_sines_of_arrays_are_off_by_one_place_at_most() -> None:
    x = np.random.default_rng(0).uniform(-9.0, 9.0, 500)
    x[:4] = 1e6, -1e22, math.inf, 0.0
    s, c = elementary.sincos_array(x.reshape(5, 100))
    each = np.array([elementary.sincos(v) for v in x.tolist()])
    for found, expected in ((s, each[:, 0]), (c, each[:, 1])):
        off = np.abs(found.ravel() - expected)
        assert (off <= np.spacing(np.abs(expected))).sum() == 499  # all but the infinite one
    assert math.isnan(s[0, 2]) and math.isnan(c[0, 2])


def test_golden_steps_are_powers_of_a_root() -> None:
    """Of x^(n+1) = x + 1, correctly rounded, also for many dimensions."""
    assert elementary.golden_steps(0) == []
    with mpmath.workdps(60):
        for n in (1, 2, 7, 120):
            phi = mpmath.findroot(lambda x, n=n: x ** (n + 1) - x - 1, 1.0 + 0.7 / n)
            expected = [float(phi ** -(k + 1)) for k in range(n)]
            assert [float(x) for x in elementary.golden_steps(n)] == expected


def test_powers_are_a_geometric_series() -> None:
    found = elementary.powers(0.1, 1000)
    assert found[0] == 1.0 and found[-1] == pytest.approx(0.1, rel=4 * EPS)
    assert np.abs(found / 0.1 ** (np.arange(1000) / 999) - 1.0).max() < 8 * EPS


@pytest.mark.parametrize("batch", [(), (7,)])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_principal_axes_diagonalise_and_are_orthonormal(n: int, batch: tuple[int, ...]) -> None:
    A = matrices.mirrored(np.random.default_rng(n).normal(size=(*batch, n, n)))
    values, axes = matrices.principal(A)
    unit = matrices.product(np.swapaxes(axes, -1, -2), axes)
    assert np.abs(unit - np.eye(n)).max() < 16 * EPS
    assert np.abs(matrices.of_principal(values, axes) - A).max() < 64 * EPS * np.abs(A).max()
    assert (np.diff(values, axis=-1) >= 0).all()
    whole = matrices.product(A, matrices.pseudo_inverse(A), A)
    assert np.abs(whole - A).max() < 1e-11


def test_principal_values_of_special_matrices() -> None:
    assert matrices.eigenvalues(np.diag([2.0, 1e-20, 1.0])).tolist() == [1e-20, 1.0, 2.0]
    assert matrices.eigenvalues(np.zeros((3, 3))).tolist() == [0.0, 0.0, 0.0]
    tiny = matrices.eigenvalues(1e-250 * np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert tiny == pytest.approx([-1e-250, 3e-250], rel=8 * EPS)
    assert np.isnan(matrices.eigenvalues(np.full((3, 3), np.nan))).all()


def test_congruence_is_symmetric_and_rotations_are_found_again() -> None:
    rng = np.random.default_rng(3)
    R = matrices.orthonormal(rng.normal(size=(3, 3)))
    S = matrices.mirrored(rng.normal(size=(3, 3)))
    moved = matrices.congruence(R, S)
    assert (moved == moved.T).all()
    assert np.abs(matrices.congruence(R.T, moved) - S).max() < 32 * EPS
    near = matrices.nearest_rotation(R + 1e-7 * rng.normal(size=(3, 3)))
    assert np.abs(matrices.product(near.T, near) - np.eye(3)).max() < 8 * EPS
    assert np.abs(near - R).max() < 1e-6


def test_dependent_rows_are_dropped() -> None:
    rows = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 0.0]])
    assert matrices.orthonormal(rows).shape == (2, 3)
