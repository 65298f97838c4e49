"""Closed loops from factors of the mass matrix.

    M = Lᵀ D L,   Y = J L⁻¹,   y = L⁻ᵀ (tau - bias)
    Ω = Y D⁻¹ Yᵀ,   free = Y D⁻¹ y + J̇ qd,   qdd = L⁻¹ D⁻¹ (y + Yᵀ λ)

[RBDA section 8.4; Featherstone 2010, LTL-OSIM]. Columns of J are those of the joints between a
frame and the last link that carries both frames of its loop, seen from that link. Joints that
follow others need nothing of their own: M and J are over the degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms import dense, ltl
from linkwise.algorithms.closure_rates import drifts
from linkwise.algorithms.closures import Seam, seams
from linkwise.algorithms.constrained import Constrained
from linkwise.algorithms.crba import crba
from linkwise.algorithms.curves import curve_rows
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import unbiased
from linkwise.algorithms.yielding import reached
from linkwise.model.tree import Tree
from linkwise.spatial import Force, Motion, Scalar, Vector, cross

Columns = dict[int, list[Scalar]]  # numbers of all directions, by degree of freedom


def wrenches(seam: Seam) -> list[Force]:
    """The unit wrenches of a loop on link a, at the origin and in the axes of its poses."""
    at = seam.a.p + seam.a.R @ seam.origin
    turned = [(seam.b.R @ row.ang, seam.b.R @ row.lin) for row in seam.rows]
    return [Force(n + cross(at, f), f) for n, f in turned]


def motions(seam: Seam) -> dict[int, list[Motion]]:
    """Columns of the joints beyond the links that carry both ends, those toward b reversed."""
    toward_a = {i: pose.S for i, pose in seam.on_a.items()}
    return toward_a | {i: [m * -1.0 for m in pose.S] for i, pose in seam.on_b.items()}


def along(pushes: list[Force]) -> Callable[[Motion], list[Scalar]]:
    """What a motion does along wrenches; then the most that it could."""

    def finish(m: Motion) -> list[Scalar]:
        ang, lin = m.ang.dot(m.ang), m.lin.dot(m.lin)
        most = [f.ang.dot(f.ang) * ang + f.lin.dot(f.lin) * lin for f in pushes]
        return [m.dot(f) for f in pushes] + most

    return finish


def jacobian_columns(tree: Tree, q: Vector, closed: list[Seam]) -> tuple[Columns, Columns]:
    """Columns of J, and squares that bound their entries, by degrees of freedom that move loops."""
    J: Columns = {}
    most: Columns = {}
    first, rows = 0, tree.n_constraints
    for seam in closed:
        k = seam.closure.rank
        found = tree.gather_columns(motions(seam), along(wrenches(seam)))
        for j, numbers in found.items():
            J.setdefault(j, [0.0] * rows)[first : first + k] = numbers[:k]
            most.setdefault(j, [0.0] * rows)[first : first + k] = numbers[k:]
        first += k
    for k, row in enumerate(curve_rows(tree, q), first):
        for j, x in row.items():
            J.setdefault(j, [0.0] * rows)[k] = x
            most.setdefault(j, [0.0] * rows)[k] = 1.0 + x * x
    return J, most


def constrained(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External = ()
) -> Constrained:
    """Closed loops at a state."""
    closed, rows = seams(tree, q), tree.n_constraints
    factors = ltl.factor(crba(tree, q), tree.dof_parent)
    L, inv_d, inward = factors
    J, most = jacobian_columns(tree, q, closed)
    driven = unbiased(tree, q, qd, tau, external)
    both = {j: [*J.get(j, [0.0] * rows), x] for j, x in enumerate(driven)}
    Y = reached(factors, both, rows + 1)
    gram = dense.square(list(Y.values()), [inv_d[j] for j in Y])
    free = [gram[k][rows] + x for k, x in enumerate(drifts(tree, q, qd, closed))]
    bounds = dense.scaled(list(most.values()), [inv_d[j] for j in most])
    scale = [dense.dot(column, [1.0] * len(most)) for column in zip(*bounds, strict=True)]

    def released(forces: Vector) -> list[Scalar]:
        x = [(Y[j][rows] + dense.dot(Y[j], forces)) * inv_d[j] for j in range(tree.nv)]
        for k in range(tree.nv):
            for i in ltl.ancestors(inward, k):
                x[k] = x[k] - L[k][i] * x[i]
        return x

    return Constrained(closed, [row[:rows] for row in gram[:rows]], scale, free, released)
