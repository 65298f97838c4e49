"""Joints that follow others, in one place: from independent rates to every joint's own, and back.

    rates of all joints = G v,      forces on v = Gᵀ forces of all joints

A joint has one *column* per degree of freedom it would have alone, numbered link by link. Row c
of ``G`` has one entry: the degree of freedom that moves column c, and its factor (1, or the
multiplier of a follower). Every index of a matrix or tensor over columns is gathered by ``Gᵀ``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.spatial import Scalar

Index = tuple[int, ...]
Tensor = list[list[list[Scalar]]]


class Row(list[Scalar]):
    """Numbers that are added and multiplied one by one, as followers' rows are."""

    def __add__(self, o: list[Scalar]) -> Row:
        return Row(a + b for a, b in zip(self, o, strict=True))

    def __mul__(self, k: Scalar) -> Row:
        return Row(a * k for a in self)

    def __sub__(self, o: list[Scalar]) -> Row:
        return Row(a - b for a, b in zip(self, o, strict=True))

    def dot(self, o: list[Scalar]) -> Scalar:
        """The scalar product."""
        total: Scalar = 0.0
        for a, b in zip(self, o, strict=True):
            total = total + a * b
        return total


@dataclass(frozen=True)
class Projection:
    """``G``, by rows: (degree of freedom, factor) of each column."""

    rows: tuple[tuple[int, float], ...]
    owners: tuple[int, ...]  # for each degree of freedom, the column that is no follower

    def column_rates(self, v: Sequence[Scalar]) -> list[Scalar]:
        """``G v``."""
        return [v[i] if factor == 1.0 else v[i] * factor for i, factor in self.rows]

    def owners_only(self, tau: Sequence[Scalar]) -> list[Scalar]:
        """Torques of the degrees of freedom, each at its own column: followers have no motor."""
        full: list[Scalar] = [0.0] * len(self.rows)
        for c, torque in zip(self.owners, tau, strict=True):
            full[c] = torque
        return full

    def gathered(self, entries: Iterable[tuple[Index, Any]]) -> dict[Index, Any]:
        """``Gᵀ`` on every index: entries by columns -> sums by degrees of freedom.

        An entry is anything that can be added, and multiplied by a number.
        """
        sums: dict[Index, Any] = {}
        for columns, x in entries:
            rows = [self.rows[c] for c in columns]
            factor = math.prod(f for _, f in rows)
            at = tuple(i for i, _ in rows)
            y = x if factor == 1.0 else x * factor
            sums[at] = sums[at] + y if at in sums else y
        return sums

    def vector(self, entries: Iterable[tuple[Index, Any]]) -> list[Any]:
        """The gathered entries of one index, with zeros where there are none."""
        sums = self.gathered(entries)
        return [sums.get((i,), 0.0) for i in range(len(self.owners))]

    def matrix(self, entries: Iterable[tuple[Index, Any]], zero: Any = 0.0) -> list[list[Any]]:
        """The gathered entries of two indices, with zeros where there are none."""
        sums, n = self.gathered(entries), range(len(self.owners))
        return [[sums.get((i, j), zero) for j in n] for i in n]

    def tensor(self, entries: Iterable[tuple[Index, Any]]) -> Tensor:
        """The gathered entries of three indices, with zeros where there are none."""
        sums, n = self.gathered(entries), range(len(self.owners))
        return [[[sums.get((i, j, k), 0.0) for k in n] for j in n] for i in n]

    def ties(self) -> list[dict[int, float]]:
        """``A`` with ``A G = 0``, a row per follower: (its column) - factor (its driver's)."""
        free = set(self.owners)
        followers = [(c, *row) for c, row in enumerate(self.rows) if c not in free]
        return [{c: 1.0, self.owners[i]: -factor} for c, i, factor in followers]

    def push(self, row: Mapping[int, float]) -> list[Scalar]:
        """Torques by column, from those that there are."""
        return [row.get(c, 0.0) for c in range(len(self.rows))]

    def along(self, row: Mapping[int, float], x: Sequence[Scalar]) -> Scalar:
        """``row · x``, both by column."""
        total: Scalar = 0.0
        for c, factor in row.items():
            total = total + x[c] * factor
        return total

    def released(
        self, x: Sequence[Scalar], forces: Sequence[Scalar], Y: Sequence[Sequence[Scalar]]
    ) -> list[Scalar]:
        """``x - Σ force y`` by column, as numbers of the degrees of freedom; what comes after the
        columns comes after these.
        """
        total = list(x)
        for y, force in zip(Y, forces, strict=True):
            total = [a - force * b for a, b in zip(total, y, strict=True)]
        return [total[c] for c in self.owners] + total[len(self.rows) :]
