"""Torques of arms that move an object, with the load shared as asked for.

    tau = t - Jᵀ λ,   t = M qdd + bias,       least Σ w_j tau_j² with no torque on the object

Torques and contact forces λ are not determined by the motion: arms may squeeze the object without
moving it. Of all λ, those that make the weighted sum of squares of the torques smallest. With D the
weights, where the object's own six numbers of tau, and those of joints without a motor, have the
weight 1, and P the unit columns that belong to them,

    H λ_0 = J D t,   H = J D Jᵀ,     tau_0 = t - Jᵀ λ_0
    S η = Pᵀ tau_0,  S = Pᵀ Jᵀ H⁻¹ J P,      λ = λ_0 + H⁻¹ J P η

as in ``closed_inverse.py``: adding squares that are then made zero changes nothing. Where the
object is part of an arm's link and every joint has a motor there is no P. Floating bases, and
joints on which no contact acts, are not in P: as in an open robot, their part of tau is the force
that the motion needs there. Directions of contacts that H finds to depend on others get no force,
and the state is flagged. S is at most 1, and zero along what contacts leave free. A motion that
needs a push there has no answer: what is left of Pᵀ tau tells (`_verdict`).
"""

from __future__ import annotations

from linkwise.algorithms import dense, ldl
from linkwise.algorithms.closed_ltl import jacobian_columns
from linkwise.algorithms.closures import seams
from linkwise.algorithms.constrained import Factors
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import rnea
from linkwise.algorithms.yielding import combined
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar, Vector, reciprocal, rounding, select


def inverse_dynamics(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, *, external: External = ()
) -> list[Scalar]:
    """Joint torques, all joints alike."""
    return weighted(tree, q, qd, qdd, [1.0] * tree.nv, external=external)


def weighted(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, weights: Vector, *, external: External = ()
) -> list[Scalar]:
    """Joint torques."""
    needed = rnea(tree, q, qd, qdd, external=external)
    return shared(tree, q, needed, weights) if tree.closures else needed


def shared(tree: Tree, q: Vector, needed: Vector, weights: Vector) -> list[Scalar]:
    """The smallest torques, where contacts are closed loops."""
    closed = seams(tree, q)
    J, most = jacobian_columns(tree, q, closed)
    passive = _without_torque(tree)
    D = [1.0 if j in passive else w for j, w in enumerate(weights)]
    own = [D[j] for j in J]
    scale = [dense.dot(column, own) for column in zip(*most.values(), strict=True)]
    H = dense.square(list(J.values()), own)
    factors = Factors(*ldl.factor_independent(H, scale))
    weighed = [x * d for x, d in zip(needed, D, strict=True)]
    f = factors.solve(combined(J, weighed, len(H)))
    least: list[list[Scalar]] = []  # Pᵀ tau_0
    if passive:
        P = [J.get(j, [0.0] * len(H)) for j in passive]  # rows of Pᵀ Jᵀ
        Z = [factors.solve(row) for row in P]
        S = [[dense.dot(row, z) for z in Z] for row in P]
        least = [[needed[j] - dense.dot(row, f)] for j, row in zip(passive, P, strict=True)]
        L, inv_d = ldl.factor_independent(S, [1.0] * len(S))
        eta = ldl.backward(L, dense.scaled(ldl.forward(L, least), inv_d))
        more = [dense.dot(z, [x[0] for x in eta]) for z in zip(*Z, strict=True)]
        f = [x + y for x, y in zip(f, more, strict=True)]
    tau = [t - dense.dot(J[j], f) if j in J else t for j, t in enumerate(needed)]
    if passive:
        terms = [*(needed[j] for j in passive), *(x for (x,) in least)]
        answer = _verdict([tau[j] for j in passive], terms)
        tau = [0.0 if j in passive else x * answer for j, x in enumerate(tau)]
    return tau


def _without_torque(tree: Tree) -> list[int]:
    """Degrees of freedom whose torque must vanish: of the object, and of passive joints that
    contacts act on; the wrench on the floating base of an arm is returned, as of an open robot.
    """
    assert tree.held is not None
    of_object = range(tree.nv - 6, tree.nv) if tree.held.carrier is None else ()
    bases = [j for j in tree.free_dofs if j not in of_object]
    return [j for j in tree.passive if j not in tree.reacting and j not in bases]


def _verdict(left: list[Scalar], terms: list[Scalar]) -> Scalar:
    """1; where contacts leave more than the rounding of the terms of a sum, a zero pivot."""
    square = dense.dot(terms, terms)
    beyond = dense.dot(left, left) - rounding(square) * square  # squares: half of all digits
    return reciprocal(select(beyond, 0.0, 1.0), 1.0)
