"""Manipulability: against singular values and differences, zero where an arm is singular."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw


@pytest.fixture(scope="module")
def iiwa() -> lw.Robot:
    return lw.load("iiwa14")


def test_it_is_the_product_of_the_singular_values(iiwa: lw.Robot) -> None:
    q = iiwa.random_q(seed=0, size=100)
    values = np.linalg.svd(iiwa.jacobian(q, "link7"), compute_uv=False)
    expected = values.prod(axis=1)
    spread = values[:, 0] / values[:, -1]
    error = np.abs(iiwa.manipulability(q, "link7") - expected) / expected
    assert (error <= 20 * np.finfo(float).eps * spread).all()


def test_fewer_joints_than_directions(iiwa: lw.Robot) -> None:
    q = iiwa.random_q(seed=1, size=20)
    J = iiwa.jacobian(q, "link3")[:, :, :3]
    expected = np.linalg.svd(J, compute_uv=False).prod(axis=1)
    np.testing.assert_allclose(iiwa.manipulability(q, "link3"), expected, rtol=1e-12)


def test_a_singular_pose_has_none(iiwa: lw.Robot) -> None:
    """Stretched out: three axes meet no more, and rounding alone is left."""
    q = np.zeros((3, 7))
    q[1:, 0] = [0.3, -1.2]
    assert (np.abs(iiwa.manipulability(q, "link7")) < 1e-15).all()
    q[1] = iiwa.random_q(seed=0)
    _, status = iiwa.manipulability_gradient(q, "link7", status=True)
    assert (status == [lw.Status.SINGULAR, 0, lw.Status.SINGULAR]).all()


def test_the_gradient_is_the_slope(iiwa: lw.Robot) -> None:
    q, h = iiwa.random_q(seed=2, size=30), 1e-6
    found = iiwa.manipulability_gradient(q, "link7")
    for k in range(7):
        v = np.eye(7)[k] * h
        ahead, behind = (iiwa.manipulability(iiwa.integrate(q, s * v), "link7") for s in (1, -1))
        np.testing.assert_allclose(found[:, k], (ahead - behind) / (2 * h), atol=1e-8)


@pytest.mark.full
def test_the_gradient_of_every_kind_of_joint(kinds: lw.Robot) -> None:
    """Along rates, which of quaternions are no derivatives of numbers."""
    q, h = kinds.random_q(seed=2, size=4), 1e-6
    found = kinds.manipulability_gradient(q, "l8")
    for k in range(kinds.nv):
        v = np.eye(kinds.nv)[k] * h
        ahead, behind = (kinds.manipulability(kinds.integrate(q, s * v), "l8") for s in (1, -1))
        slope = (ahead - behind) / (2 * h)
        np.testing.assert_allclose(found[:, k], slope, atol=1e-7 * (1 + np.abs(found).max()))


def test_nan_stays_in_its_row(iiwa: lw.Robot) -> None:
    q = iiwa.random_q(seed=0, size=9)
    expected = iiwa.manipulability(q, "link7")
    q[4, 2] = np.nan
    found, status = iiwa.manipulability(q, "link7", status=True)
    assert np.isnan(found[4]) and status[4] == lw.Status.NOT_FINITE
    assert np.delete(found, 4).tobytes() == np.delete(expected, 4).tobytes()
    with pytest.raises(ValueError, match=r"frame 'hand': robot 'iiwa14' has no such frame"):
        iiwa.manipulability(q, "hand")
