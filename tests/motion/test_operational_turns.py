"""Rotation vectors of matrices, as operational-space control needs them: at every angle."""

from __future__ import annotations

import numpy as np

from linkwise.spatial import Mat3, Vec3
from linkwise.spatial.quaternion import Quaternion, logarithm


def rodrigues(r: np.ndarray) -> np.ndarray:
    """The matrix of a rotation vector."""
    angle = np.linalg.norm(r)
    x, y, z = r / angle
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def vector_of(R: np.ndarray) -> np.ndarray:
    matrix = Mat3(*(Vec3(*row) for row in R.tolist()))
    return np.array([*logarithm(Quaternion.of_matrix(matrix))])


def test_rotation_vectors_of_matrices_are_good_at_every_angle() -> None:
    """Small ones, and those a rounding unit from half a turn, about any axis."""
    rng = np.random.default_rng(0)
    for k in range(600):
        axis = rng.normal(size=3) if k % 4 else np.eye(3)[k % 3]
        near = 10.0 ** rng.uniform(-9, -1)
        angle = (rng.uniform(1e-3, np.pi), np.pi - near, near)[k % 3]
        r = axis / np.linalg.norm(axis) * angle
        np.testing.assert_allclose(vector_of(rodrigues(r)), r, rtol=0, atol=4e-15)


def test_half_a_turn_has_its_whole_length() -> None:
    """About each coordinate axis exactly, where sines say nothing of the axis."""
    for k in range(3):
        R = np.diag([1.0 if i == k else -1.0 for i in range(3)])
        np.testing.assert_array_equal(np.abs(vector_of(R)), np.pi * np.eye(3)[k])
