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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.model.description import SMALLEST
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import Motion, RigidInertia, Vec3
from linkwise.spatial.matrices import eigenvalues, product, pseudo_inverse

Array = NDArray[np.float64]
Rates = Callable[[Link], Array]  # of a link's joint (configurations, nv)

# A joint's articulated inertia over the inertia it feels with all joints beyond it locked: below
# this it is rounding.
REGULAR = 1e-10
TRIED = 32  # configurations at which a joint may be found to move no inertia

_UNITS = [Vec3(*row) for row in np.eye(3).tolist()]
_ZERO = Vec3(0.0, 0.0, 0.0)
_MOTIONS = [Motion(u, _ZERO) for u in _UNITS] + [Motion(_ZERO, u) for u in _UNITS]


def joints_without_inertia(tree: Tree, suspects: Sequence[int]) -> list[int]:
    """Those of these links whose joint moves no inertia, at almost every configuration."""
    rng = np.random.default_rng(1)
    return _unmoved_at(tree, suspects, lambda link: rng.uniform(0.3, 0.9, (1, link.joint.nv)))


def joints_that_may_lose_inertia(tree: Tree, suspects: Sequence[int]) -> list[int]:
    """Those of these links whose joint moves no inertia at some configuration that was tried.

    Axes that can meet usually do so at right angles, which are tried in many combinations.
    """
    rng = np.random.default_rng(2)

    def right_angles(link: Link) -> Array:
        unit = 1.0 if link.kind == "prismatic" else 0.5 * np.pi
        return np.asarray(unit * rng.integers(-1, 3, (TRIED, link.joint.nv)))

    return _unmoved_at(tree, suspects, right_angles)


def _unmoved_at(tree: Tree, suspects: Sequence[int], rates: Rates) -> list[int]:
    """Those of these links whose joint moves no inertia at one of several configurations.

    A configuration is what ``rates`` of each joint, held for unit time from rest, lead to. Matrices
    have the configurations as their first axis.
    """
    found: list[int] = []
    wanted = set(suspects)
    articulated: list[Any] = [0.0] * len(tree.links)
    locked: list[Any] = [0.0] * len(tree.links)
    for i in reversed(range(len(tree.links)) if wanted else ()):
        link = tree.links[i]
        own, rotors = _inertia(link.inertia), np.diag(link.armature)
        IA, Ic = articulated[i] + own, locked[i] + own
        v = rates(link)
        state = link.joint_state(link.joint.integrate(link.joint.neutral(), list(v.T)))
        S = _columns(state.S, len(v))
        St = S.swapaxes(1, 2)
        D = product(St, IA, S) + rotors
        if i in wanted and not _regular(D, product(St, Ic, S) + rotors):
            found.append(i)
        if link.parent != BASE:
            U = product(IA, S)
            X = _columns([state.X.motion(m) for m in _MOTIONS], len(v))
            Xt = X.swapaxes(1, 2)
            left = IA - product(U, pseudo_inverse(D), U.swapaxes(1, 2))
            articulated[link.parent] = articulated[link.parent] + product(Xt, left, X)
            locked[link.parent] = locked[link.parent] + product(Xt, Ic, X)
    return found[::-1]


def _columns(motions: Sequence[Motion], count: int) -> Array:
    """Motions at several configurations as matrices of six rows: (count, 6, len(motions))."""
    numbers = [[np.broadcast_to(x, count) for x in motion] for motion in motions]
    return np.array(numbers).transpose(2, 1, 0)


def _inertia(body: RigidInertia) -> Array:
    """A rigid inertia as a 6x6 matrix, (angular, linear)."""
    return np.array([list(body @ motion) for motion in _MOTIONS]).T


def _regular(D: Array, whole: Array) -> bool:
    """Whether matrices ``D`` are regular beside those of joints that are locked."""
    diagonal = np.diagonal(whole, axis1=1, axis2=2)
    if not (diagonal >= SMALLEST).all():
        return False
    size = np.sqrt(diagonal)
    scaled = D / (size[:, :, None] * size[:, None, :])
    return bool((eigenvalues(scaled)[:, 0] > REGULAR).all())
