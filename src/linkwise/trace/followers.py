"""Joints of a rolled tree that follow others: what `model/projection.py` is to a tree."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.model.projection import Projection
from linkwise.spatial import Scalar
from linkwise.trace.rolledtree import Gathered, Lazy, Place, RolledTree, Visit


class RolledProjection:
    """Followers of a rolled tree; a vector by column is `Gathered`."""

    def __init__(self, tree: RolledTree, plain: Projection) -> None:
        self._tree, self._plain = tree, plain

    def column_rates(self, v: Any) -> Gathered:
        """``G v``."""
        return Gathered(self._tree.per_link_v(v))

    def owners_only(self, tau: Any) -> Gathered:
        """Torques of the degrees of freedom, each at its own column: followers have no motor."""
        given = self._tree.per_link_v(tau)

        def own(visit: Visit) -> list[Scalar]:
            return [0.0] if visit.link.follows else given.at(visit)

        return Gathered(Lazy(own))

    def ties(self) -> list[dict[int, float]]:
        """A row per follower: (its column) - factor (its driver's)."""
        return self._plain.ties()

    def push(self, row: dict[int, float]) -> Gathered:
        """Torques of joints with one column, from a table."""
        name = f"push of {sorted(row)}"
        torques = np.zeros(self._tree.n_links)
        for c, torque in row.items():
            torques[self._link(c)] = torque
        self._tree.tables[name] = torques

        def own(visit: Visit) -> list[Scalar]:
            nv = visit.link.joint.nv
            return [visit.read(Place(name, 0, 1))] if nv == 1 else [0.0] * nv

        return Gathered(Lazy(own))

    def along(self, row: dict[int, float], x: Gathered) -> Scalar:
        """``row · x``, both by column; of joints with one column."""
        columns = sorted({c for tie in self.ties() for c in tie})
        links = [self._link(c) for c in columns]
        found = self._tree.asked_once(
            "some",
            (x.per_link,),
            lambda: dict(zip(columns, self._tree.some(links, x.per_link), strict=True)),
        )
        total: Scalar = 0.0
        for c, factor in row.items():
            total = total + found[c] * factor
        return total

    def released(self, x: Gathered, forces: Sequence[Scalar], Y: Sequence[Gathered]) -> Gathered:
        """``x - Σ force y`` of the joints that follow no other, and of what is beside."""

        def less(own: Sequence[Scalar], others: Sequence[Sequence[Scalar]]) -> list[Scalar]:
            total = list(own)
            for y, force in zip(others, forces, strict=True):
                total = [a - force * b for a, b in zip(total, y, strict=True)]
            return total

        def left(visit: Visit) -> list[Scalar]:
            return less(x.per_link.at(visit), [y.per_link.at(visit) for y in Y])

        beside = tuple(less(x.beside, [y.beside for y in Y]))
        return Gathered(Lazy(left), added=False, beside=beside)

    def _link(self, column: int) -> int:
        """The link of a column."""
        ends = [own.stop for own in self._tree.column_numbers]
        return bisect_right(ends, column)
