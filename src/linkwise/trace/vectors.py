"""Vectors over the degrees of freedom of a rolled tree: numbers of scratch, and sums of them.

Sums and multiples are formed where they are read; each product of two vectors is a loop.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.model.projection import Row
from linkwise.spatial import Scalar
from linkwise.trace.expr import Expr
from linkwise.trace.rolled import Step, loop
from linkwise.trace.rolledtree import Columns, Place, RolledTree, Visit, copied, zeroed
from linkwise.trace.status import not_finite


class Line:
    """A vector of ``length`` numbers; ``at(step)`` is the one of a step of a loop over them."""

    def __init__(self, tree: RolledTree, length: int, at: Callable[[Step], Expr]) -> None:
        self._tree, self._length, self.at = tree, length, at

    def __mul__(self, k: Scalar) -> Line:
        return Line(self._tree, self._length, lambda step: self.at(step) * k)

    def __sub__(self, o: Line) -> Line:
        return Line(self._tree, self._length, lambda step: self.at(step) - o.at(step))

    def dot(self, o: Line) -> Scalar:
        """The scalar product."""

        def body(step: Step, state: list[Expr]) -> list[Expr]:
            return [state[0] + self.at(step) * o.at(step)]

        return loop(self._tree.graph, self._length, [0.0], body)[0]


def short_side(tree: RolledTree, columns: Columns, rows: int) -> list[Line] | list[Row]:
    """The rows of a matrix over the degrees of freedom, or the columns that are not zero, where
    those are fewer.
    """
    nv, moving = tree.nv, _moving(tree, columns)
    room = tree.room(rows * nv)
    write_columns(tree, columns._replace(rows=rows), room)
    if len(moving) >= rows:
        starts = [row * nv for row in range(rows)]
        return [Line(tree, nv, lambda step, k=k: step.read(room, k, 1)) for k in starts]  # type: ignore[misc]
    places = [row * nv + k for k in moving for row in range(rows)]
    found = tree.once(lambda step: [step.read(room, k) for k in places], len(places))
    return [Row(found[k : k + rows]) for k in range(0, len(found), rows)]


def _moving(tree: RolledTree, columns: Columns) -> list[int]:
    """The degrees of freedom that have columns."""
    if columns.way is None:
        return []
    through, kinds = columns.way.through, tree.classes
    links = tree.lists[through].tolist() if through else range(columns.way.length)
    of = [(int(tree.v_indices[i]), kinds.classes[kinds.of_link[i]].example.joint.nv) for i in links]
    return sorted({start + k for start, count in of for k in range(count)})


def write_columns(tree: RolledTree, columns: Columns, name: str) -> Expr:
    """Loops that write a matrix by its columns: zeros, then the columns that there are.

    Where joints follow others, columns of the same degree of freedom are added up first.
    """
    nv, graph, added = tree.nv, tree.graph, tree.coupled
    size = columns.rows * nv
    into = tree.cleared(size) if added else name
    if not added:
        loop(graph, size, [], lambda step, _: zeroed(step, name))
    start, stride, places = tree.dofs

    def body(visit: Visit, state: list[Expr]) -> list[Expr]:
        (broken,) = state
        for k, column in enumerate(columns.per_link.at(visit)):
            for row, value in enumerate(column):
                own = value * follows.multiplier if (follows := visit.link.follows) else value
                at = tree.on(visit.way, Place(into, row * nv + start + k, stride, places))
                visit.step.write(at.array, own, at.start, at.stride, at.places, add=added)
                broken = broken + not_finite(graph, own)
        return [broken]

    # nothing moves the base
    broken = graph.zero if columns.way is None else tree.walk(columns.way, [0.0], body)[0]
    if added:
        loop(graph, size, [], lambda step, _: copied(step, into, name))
    return broken
