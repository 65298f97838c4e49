"""Covering arrays: few rows in which all pairs (or triples) of values of some factors occur."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import combinations, product
from random import Random
from typing import Any

Row = dict[str, Any]
Factors = Mapping[str, Sequence[Hashable]]
Rule = Callable[[Row], bool]  # whether a row, or a part of one, is feasible so far


class Cover:
    """Greedy, one row after another, and the same rows in every run."""

    def __init__(self, factors: Factors, feasible: Rule, strength: int = 2) -> None:
        self.factors, self.feasible, self.strength = factors, feasible, strength
        self._completed: dict[Any, bool] = {}

    def can_complete(self, part: Row) -> bool:
        """Whether some row has this part."""
        if not self.feasible(part):
            return False
        key = frozenset(part.items())
        if key not in self._completed:
            free = [name for name in self.factors if name not in part]
            self._completed[key] = not free or any(
                self.can_complete(part | {free[0]: value}) for value in self.factors[free[0]]
            )
        return self._completed[key]

    def targets(self) -> list[frozenset[tuple[str, Any]]]:
        """All combinations of values that some row has, in the order of the factors."""
        found = []
        for names in combinations(self.factors, self.strength):
            for values in product(*(self.factors[name] for name in names)):
                if self.can_complete(dict(zip(names, values, strict=True))):
                    found.append(frozenset(zip(names, values, strict=True)))
        return found

    def rows(self) -> list[Row]:
        """Rows that have every target."""
        left = dict.fromkeys(self.targets())
        done: list[Row] = []
        while left:
            row = self._grown(dict(next(iter(left))), left, len(done))
            done.append({name: row[name] for name in self.factors})
            for target in covered(row, self.strength):
                left.pop(target, None)
        return done

    def _grown(self, row: Row, left: Mapping[Any, None], turn: int) -> Row:
        """A complete row; each factor in turn takes the value with most targets left."""
        for name in self.factors:
            if name in row:
                continue
            values = self.factors[name]
            # begin elsewhere in each row, so that ties are spread over the values
            order = [values[(k + turn) % len(values)] for k in range(len(values))]
            able = [value for value in order if self.can_complete(row | {name: value})]
            row = row | {name: max(able, key=lambda v: self._gain(row, name, v, left))}
        return row

    def _gain(self, row: Row, name: str, value: Any, left: Mapping[Any, None]) -> int:
        others = combinations(row.items(), self.strength - 1)
        return sum(frozenset((*some, (name, value))) in left for some in others)


def covered(row: Row, strength: int = 2) -> Iterable[frozenset[tuple[str, Any]]]:
    """The targets that a row has."""
    return map(frozenset, combinations(row.items(), strength))


def drawn(factors: Factors, seed: int, count: int = 300) -> Iterable[Row]:
    """Random rows, feasible or not, and the same in every run."""
    rng = Random(seed)
    for _ in range(count):
        yield {name: rng.choice(values) for name, values in factors.items()}
