"""Random rotations, with the same bits on every processor."""

from __future__ import annotations

import numpy as np

from linkwise.spatial.matrices import determinant, orthonormal


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    """Return a rotation matrix (3, 3) of a uniformly distributed direction."""
    Q = orthonormal(rng.normal(size=(3, 3)))
    return Q * np.sign(determinant(Q))
