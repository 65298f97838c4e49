"""What the rotors of motors add to M, C and Christoffel's symbols.

A rotor adds its inertia to the diagonal of M. Of a planar or free joint whose rotors' axes do not
turn with the axes of its rates, the rotors also feel the rates' directions change
(`Link.turned_rotors`): a term of C and of the symbols. For all other joints it is zero.
"""

from __future__ import annotations

from linkwise.algorithms.dense import transpose, unit
from linkwise.model.projection import Index
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Matrix, Scalar, Vector
from linkwise.sweep import each_link


def rotor_blocks(tree: Tree, qd: Vector) -> list[Matrix]:
    """The rotors' part of C: a block per joint."""
    found: list[Matrix] = each_link(tree, _block, tree.per_link_v(qd))
    return found


def _block(link: Link, qd: Vector) -> Matrix:
    return transpose([link.turned_rotors(qd, column) for column in unit(link.joint.nv)])


def rotor_symbols(tree: Tree) -> list[tuple[Index, Scalar]]:
    """The rotors' part of Christoffel's symbols, by column."""
    found = each_link(tree, _symbols, tree.column_numbers)
    return [entry for own in found for entry in own]


def _symbols(link: Link, numbers: range) -> list[tuple[Index, Scalar]]:
    columns = list(zip(numbers, unit(link.joint.nv), strict=True))
    return [
        ((i, j, k), x)
        for k, rates in columns
        for j, moved in columns
        for i, x in zip(numbers, link.turned_rotors(rates, moved), strict=True)
    ]
