"""Derivatives of inverse dynamics by differentiating each operation of RNEA, forward.

    dτ = ∂τ/∂q v + ∂τ/∂q̇ dq̇ + ∂τ/∂q̈ dq̈

Run with numbers that carry derivatives (spatial/dual.py), RNEA gives τ and how it changes: q moves
along the rates v of each degree of freedom, q̇ and q̈ change one number at a time. It takes more
operations than ``torque_derivatives.py``, and knows nothing of mechanics: a second opinion.
"""

from __future__ import annotations

from linkwise.algorithms.configurations import tangent
from linkwise.algorithms.dense import transpose, unit
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import rnea
from linkwise.model.tree import Tree
from linkwise.spatial import Matrix, Scalar, Vector
from linkwise.spatial.dual import Dual, lifted


def seeded(x: Vector, columns: Matrix, first: int) -> list[Dual]:
    """Numbers that change by each of some columns: directions, numbered from the first."""
    rows = transpose(columns)
    return [
        Dual(value, {first + k: s for k, s in enumerate(row) if not _zero(s)})
        for value, row in zip(x, rows, strict=True)
    ]


def _zero(x: Scalar) -> bool:
    return isinstance(x, float) and x == 0.0


def moving(tree: Tree, q: Vector, *others: Vector) -> list[list[Dual]]:
    """q that moves along each rate, and vectors per degree of freedom that change one number at a
    time: directions are numbered one after another.
    """
    n, units = tree.nv, unit(tree.nv)
    moved = seeded(q, [tangent(tree, q, e) for e in units], 0)
    return [moved, *(seeded(x, units, n * k) for k, x in enumerate(others, 1))]


def sorted_slopes(found: Vector, directions: int) -> Matrix:
    """The derivatives of numbers along each of the first directions, a row for each."""
    numbers = [lifted(x) for x in found]
    return [[x.slope(k) for x in numbers] for k in range(directions)]


def inverse_dynamics_derivatives(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, *, external: External = ()
) -> Matrix:
    """Rows of ∂τ/∂q, of ∂τ/∂q̇, of M, and τ."""
    n = tree.nv
    still = [(frame, [lifted(x) for x in wrench]) for frame, wrench in external]
    found = rnea(tree, *moving(tree, q, qd, qdd), external=still)
    columns = sorted_slopes(found, 3 * n)
    parts = (transpose(columns[k : k + n]) for k in (0, n, 2 * n))
    return [*(row for part in parts for row in part), [lifted(x).value for x in found]]
