"""Joints that move no inertia: whether links without mass leave the mass matrix regular.

The mass matrix is positive definite exactly when the articulated inertia that each joint feels,
``D = Sᵀ IA S``, is [RBDA section 7.3]. One configuration decides: a joint that moves inertia at
some configuration moves it at almost every one.

Joints that follow others are judged as if they were on their own: the recursive algorithms know
only such joints and add the ties afterwards (algorithms/tied.py). What passes is regular with the
ties too, ``Gᵀ M G`` with ``G`` of full rank; a link without inertia at the end of a branch does
not pass although its driver may move some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from linkwise.model.description import SMALLEST
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import Motion, RigidInertia, Vec3

Array = NDArray[np.float64]
Place = Callable[[Link], list[float]]  # the configuration of a link's joint

# A joint's articulated inertia over the inertia it feels with all joints beyond it locked: below
# this it is rounding.
REGULAR = 1e-10
TRIED = 32  # configurations at which a joint may be found to move no inertia

_UNITS = [Vec3(*row) for row in np.eye(3).tolist()]
_ZERO = Vec3(0.0, 0.0, 0.0)
_MOTIONS = [Motion(u, _ZERO) for u in _UNITS] + [Motion(_ZERO, u) for u in _UNITS]


def joints_without_inertia(tree: Tree, suspects: Sequence[int]) -> list[int]:
    """Those of these links whose joint moves no inertia, at almost every configuration."""
    return _unmoved_at(tree, set(suspects), _anywhere(np.random.default_rng(1)))


def joints_that_may_lose_inertia(tree: Tree, suspects: Sequence[int]) -> list[int]:
    """Those of these links whose joint moves no inertia at some configuration that was tried.

    Axes that can meet usually do so at right angles, which are tried in many combinations.
    """
    rng = np.random.default_rng(2)
    found = set[int]()
    for _ in range(TRIED if suspects else 0):
        found |= set(_unmoved_at(tree, set(suspects) - found, _at_right_angles(rng)))
    return sorted(found)


def _unmoved_at(tree: Tree, wanted: set[int], place: Place) -> list[int]:
    """Those of these links whose joint moves no inertia at one configuration."""
    found: list[int] = []
    articulated = [np.zeros((6, 6)) for _ in tree.links]
    locked = [np.zeros((6, 6)) for _ in tree.links]
    for i in reversed(range(len(tree.links)) if wanted else ()):
        link = tree.links[i]
        own = _inertia(link.inertia)
        IA, Ic = articulated[i] + own, locked[i] + own
        state = link.joint_state(place(link))
        S = np.array([list(column) for column in state.S]).T
        D = S.T @ IA @ S + np.diag(link.armature)
        if i in wanted and not _regular(D, S.T @ Ic @ S + np.diag(link.armature)):
            found.append(i)
        if link.parent != BASE:
            U = IA @ S
            X = np.array([list(state.X.motion(m)) for m in _MOTIONS]).T
            articulated[link.parent] += X.T @ (IA - U @ np.linalg.pinv(D, hermitian=True) @ U.T) @ X
            locked[link.parent] += X.T @ Ic @ X
    return found[::-1]


def _anywhere(rng: np.random.Generator) -> Place:
    """Configurations that are special in no way."""

    def place(link: Link) -> list[float]:
        joint = link.joint
        return joint.integrate(joint.neutral(), rng.uniform(0.3, 0.9, joint.nv).tolist())

    return place


def _at_right_angles(rng: np.random.Generator) -> Place:
    """Configurations at multiples of a right angle, or of a metre."""

    def place(link: Link) -> list[float]:
        joint = link.joint
        unit = 1.0 if link.kind == "prismatic" else 0.5 * np.pi
        return joint.integrate(joint.neutral(), (unit * rng.integers(-1, 3, joint.nv)).tolist())

    return place


def _inertia(body: RigidInertia) -> Array:
    """A rigid inertia as a 6x6 matrix, (angular, linear)."""
    r, h = body.rotational(), body.h
    coupling = np.array([[0.0, -h.z, h.y], [h.z, 0.0, -h.x], [-h.y, h.x, 0.0]])
    rotational = np.array([[r.xx, r.xy, r.xz], [r.xy, r.yy, r.yz], [r.xz, r.yz, r.zz]])
    return np.block([[rotational, coupling], [coupling.T, body.m * np.eye(3)]])


def _regular(D: Array, whole: Array) -> bool:
    diagonal = np.diag(whole)
    if not (diagonal >= SMALLEST).all():
        return False
    size = np.sqrt(diagonal)
    return bool(np.linalg.eigvalsh(D / np.outer(size, size))[0] > REGULAR)
