"""The constraint-space inverse inertia of closed loops by extended force propagators.

    base -> tip   Ω_i = S D⁻¹ Sᵀ + Pᵀ Ω_parent P,      P K = X* (K - G Sᵀ K)
    inward        K   <- P K                            the wrench of a direction, past each joint
    each pair     K_kᵀ Ω_j K_l                          at the last link j that both wrenches pass

[Wensing, Featherstone and Orin 2012, EFPA]. Ω_i is how link i yields to a wrench on it, with gains
G from riccati.py. A direction between two links has a wrench on each of them, and each goes its own
way. The cost is O(n + m d + m²), d the depth of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms.closures import seams
from linkwise.algorithms.dense import dot, plus, square, times, transpose, zero
from linkwise.algorithms.grip import Grip
from linkwise.algorithms.innovations import factored
from linkwise.algorithms.passing import wrenches
from linkwise.algorithms.riccati import Gain
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Mat3, Matrix, Scalar, Vec3, Vector
from linkwise.sweep import base_to_tip, joint_states, to_base

UNITS = Grip(Mat3.identity(), Vec3.zero()).pushes()


class End(NamedTuple):
    """Wrenches of a loop's directions on one of its links, and on each link between it and the
    base, before that link's joint.
    """

    first: int  # number of the first direction
    link: int
    on: dict[int, list[Force]]


def propagate(J: JointState, gains: list[Gain], K: Force) -> tuple[list[Scalar], Force]:
    """``Sᵀ K`` of the joint's columns, each once those after it move freely, and ``P K``."""
    felt: list[Scalar] = []
    for column, gain in zip(reversed(J.S), reversed(gains), strict=True):
        felt.insert(0, column.dot(K))
        K = K - gain.G * felt[0]
    return felt, J.X.force_back(K)


def yielding(_link: Link, parent: Matrix, J: JointState, gains: list[Gain]) -> Matrix:
    """``Ω_i``, rows and columns (angular, linear)."""
    felt, carried = zip(*(propagate(J, gains, unit) for unit in UNITS), strict=True)
    own = square(transpose([list(e) for e in felt]), [gain.inv_d for gain in gains])
    columns = [list(K) for K in carried]  # of P
    inner = times(columns, parent)
    n = range(6)
    return plus(own, [[dot(columns[max(i, j)], inner[min(i, j)]) for j in n] for i in n])


def carry(_link: Link, K: list[Force], J: JointState, gains: list[Gain]) -> list[Force]:
    """Wrenches past a joint."""
    return [propagate(J, gains, own)[1] for own in K]


def delassus(tree: Tree, q: Vector) -> Matrix:
    """``J M⁻¹ Jᵀ``."""
    f = factored(tree, joint_states(tree, q))
    Omega = base_to_tip(tree, yielding, zero(6, 6), f.J, f.gains)
    ends = []
    for link, bundle in wrenches(seams(tree, q)):
        way = to_base(tree, link, carry, _met, [*bundle.values()], f.J, f.gains)
        ends.append(End(min(bundle), link, dict(way)))
    total = zero(tree.n_constraints, tree.n_constraints)
    for a in ends:
        for b in ends:
            shared = tree.shared(a.link, b.link)
            if shared and a.first >= b.first:
                last = max(shared)  # links come after their parents
                _add(total, a, b, Omega[last], last)
    return [[total[max(i, j)][min(i, j)] for j in range(len(total))] for i in range(len(total))]


def _met(_link: Link, K: list[Force], _J: JointState, _gains: list[Gain]) -> list[Force]:
    return K


def _add(total: Matrix, a: End, b: End, Omega: Sequence[Vector], link: int) -> None:
    """Add how the directions of two ends yield to each other; the lower half is enough."""
    felt = [[dot(row, list(K)) for row in Omega] for K in b.on[link]]
    for i, K in enumerate(a.on[link], a.first):
        for j, x in enumerate(felt, b.first):
            if j <= i:
                total[i][j] = total[i][j] + dot(list(K), x)
