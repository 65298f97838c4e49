"""Inverse dynamics with closed loops: of all torques that produce a motion, the smallest.

    tau = t - Jᵀ λ,   t = M qdd + bias,      least |tau|:   J Jᵀ λ = J t

The loops take the part λ of what the motion needs. Where joints have no motor, their part of tau
must vanish, Pᵀ tau = 0 with unit columns P. With H = J Jᵀ and the smallest torques tau_0 above,

    S η = Pᵀ tau_0,   S = Pᵀ Jᵀ H⁻¹ J P,      tau = tau_0 - Jᵀ H⁻¹ J P η

which is the smallest that is left. S is singular where motors and loops cannot hold those joints:
such a state has no answer. Passive joints on which no loop acts are not among them: as in an open
robot, their part of tau is the force that the motion needs there (the wrench on a floating base).
The motion is taken as it is given, whether the loops allow it or not.
"""

from __future__ import annotations

from linkwise.algorithms import dense, ldl
from linkwise.algorithms.closed_ltl import Columns, jacobian_columns
from linkwise.algorithms.closures import seams
from linkwise.algorithms.constrained import Factors
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import rnea
from linkwise.algorithms.yielding import combined
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar, Vector
from linkwise.spatial.scalar import reciprocal_if_regular


def inverse_dynamics(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, *, external: External = ()
) -> list[Scalar]:
    """The smallest joint torques for a motion."""
    needed = rnea(tree, q, qd, qdd, external=external)
    J, most = jacobian_columns(tree, q, seams(tree, q))
    ones = [1.0] * len(J)
    scale = [dense.dot(column, ones) for column in zip(*most.values(), strict=True)]
    H = dense.square(list(J.values()), ones)
    factors = Factors(*ldl.factor_independent(H, scale))
    least = _less(needed, J, factors.solve(combined(J, needed, len(H))))
    passive = [j for j in tree.passive if j not in tree.reacting]
    if not passive:
        return least
    P = [J.get(j, [0.0] * len(H)) for j in passive]  # rows of Pᵀ Jᵀ
    Z = [factors.solve(row) for row in P]
    S = [[dense.dot(row, z) for z in Z] for row in P]
    # S is part of a projection: a pivot that is rounding beside 1 is none, whatever its sign
    L, inv_d = ldl.factor_independent(S, [1.0] * len(P), reciprocal_if_regular)
    half = dense.scaled(ldl.forward(L, [[least[j]] for j in passive]), inv_d)
    eta = [row[0] for row in ldl.backward(L, half)]
    tau = _less(least, J, [dense.dot(column, eta) for column in zip(*Z, strict=True)])
    exact = passive if len(passive) < tree.nv else []  # some result depends on each pivot
    return [0.0 if j in exact else x for j, x in enumerate(tau)]


def _less(tau: Vector, J: Columns, forces: Vector) -> list[Scalar]:
    """``tau - Jᵀ λ``."""
    return [x - dense.dot(J[j], forces) if j in J else x for j, x in enumerate(tau)]
