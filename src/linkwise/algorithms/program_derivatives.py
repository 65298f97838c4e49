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


def inverse_dynamics_derivatives(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, *, external: External = ()
) -> Matrix:
    """Rows of ∂τ/∂q, of ∂τ/∂q̇, of M, and τ."""
    n = tree.nv
    units = unit(n)
    moved = seeded(q, [tangent(tree, q, e) for e in units], 0)
    rates = seeded(qd, units, n), seeded(qdd, units, 2 * n)
    still = [(frame, [lifted(x) for x in wrench]) for frame, wrench in external]
    found = [lifted(x) for x in rnea(tree, moved, *rates, external=still)]
    parts = ([[x.slope(k + j) for j in range(n)] for x in found] for k in (0, n, 2 * n))
    return [*(row for part in parts for row in part), [x.value for x in found]]
