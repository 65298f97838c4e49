"""Joints held to curves: one joint's position is a polynomial of another's, or a number.

    e = q_1 - p(q_2) = 0,     J = (1, -p'),     J̇ qd = -p'' qd_2²

Rows like those of closed loops, after all of them. Such a row is no wrench between two frames: it
is for methods that know columns of J (closed_ltl.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.model.tree import Tree
from linkwise.spatial import Scalar, Vector, total

Row = dict[int, Scalar]  # numbers by degree of freedom


def why_not(tree: Tree) -> str:
    """For methods that know closed loops by their wrenches alone."""
    if not tree.curves:
        return ""
    return f"{tree.curves[0].name} is no wrench between two frames"


def at(polynomial: Sequence[float], x: Scalar) -> Scalar:
    """A polynomial, its constant first, at a number."""
    total: Scalar = 0.0
    for c in reversed(polynomial):
        total = total * x + c
    return total


def slope(polynomial: Sequence[float]) -> tuple[float, ...]:
    """The derivative of a polynomial."""
    return tuple(k * c for k, c in enumerate(polynomial))[1:]


def curve_errors(tree: Tree, q: Vector) -> list[Scalar]:
    """``q_1 - p(q_2)``."""
    return [q[x.q] - at(x.polynomial, q[x.driver_q] if x.driven else 0.0) for x in tree.curves]


def curve_rows(tree: Tree, q: Vector) -> list[Row]:
    """Rows of J."""
    found = []
    for x in tree.curves:
        row: Row = {x.dof: 1.0}
        if x.driven:
            row[x.driver_dof] = 0.0 - at(slope(x.polynomial), q[x.driver_q])
        found.append(row)
    return found


def curve_velocities(tree: Tree, q: Vector, qd: Vector) -> list[Scalar]:
    """``J qd``."""
    return [total(c * qd[j] for j, c in row.items()) for row in curve_rows(tree, q)]


def curve_drifts(tree: Tree, q: Vector, qd: Vector) -> list[Scalar]:
    """``J̇ qd``."""
    found: list[Scalar] = []
    for x in tree.curves:
        bend = at(slope(slope(x.polynomial)), q[x.driver_q]) if x.driven else 0.0
        found.append(0.0 - bend * (qd[x.driver_dof] * qd[x.driver_dof]) if x.driven else 0.0)
    return found
