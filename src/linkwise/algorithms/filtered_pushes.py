"""How a link yields to wrenches, by the innovations factors of the mass matrix.

    J M⁻¹ Jᵀ = Σ ε D⁻¹ εᵀ      ε = F⁻¹ Jᵀ: each unit wrench, filtered from the link inward

[Rodriguez and Kreutz; the Ω recursion read from the tip].
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms import dense
from linkwise.algorithms.innovations import Factored
from linkwise.algorithms.riccati import Gain
from linkwise.model.tree import Link
from linkwise.spatial import Force, Matrix, Vector
from linkwise.sweep import at_links, sum_links


def yielded(f: Factored, link: int, pushes: Sequence[Force]) -> Matrix:
    """``Σ ε D⁻¹ εᵀ`` of wrenches on one link: how it yields to each, along each."""
    tree = f.tree
    loads = [at_links(tree, Force.zero(), [(link, push)]) for push in pushes]
    epsilons = [f.filtered([0.0] * tree.nv, load) for load in loads]  # by push, by link
    total: Matrix = dense.zero(6, 6)
    total = sum_links(tree, add_squares, total, f.gains, *epsilons, inward=True)
    return total


def add_squares(_link: Link, total: Matrix, gains: list[Gain], *epsilons: Vector) -> Matrix:
    """``ε D⁻¹ εᵀ`` of a link, a row of ε per push."""
    part = dense.square(dense.transpose(list(map(list, epsilons))), [g.inv_d for g in gains])
    return dense.plus(total, part)
