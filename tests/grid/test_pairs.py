"""The generator of covering arrays: every feasible pair is covered, no infeasible row is made."""

from __future__ import annotations

import sys
from itertools import combinations, product
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))
from pairs import Cover, covered


@settings(max_examples=50, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=2, max_size=5),
    seed=st.integers(0, 10**6),
    strength=st.integers(2, 3),
)
def test_every_feasible_combination_is_covered(sizes: list[int], seed: int, strength: int) -> None:
    factors = {f"f{k}": tuple(range(n)) for k, n in enumerate(sizes)}
    names = list(factors)
    # pairs of values that may not meet, at random
    pairs = [
        frozenset([(a, x), (b, y)])
        for a, b in combinations(names, 2)
        for x, y in product(factors[a], factors[b])
    ]
    forbidden = {pair for k, pair in enumerate(pairs) if (k * 7919 + seed) % 5 == 0}

    def feasible(part: dict[str, Any]) -> bool:
        return not any(pair in forbidden for pair in covered(part))

    strength = min(strength, len(names))
    rows = Cover(factors, feasible, strength).rows()
    assert rows == Cover(factors, feasible, strength).rows()
    whole = [dict(zip(names, values, strict=True)) for values in product(*factors.values())]
    wanted = {x for row in whole if feasible(row) for x in covered(row, strength)}
    assert all(feasible(row) and list(row) == names for row in rows)
    assert {x for row in rows for x in covered(row, strength)} == wanted
    assert len(rows) <= len(wanted)


def test_a_cover_is_far_smaller_than_the_product() -> None:
    factors = {name: tuple(range(5)) for name in "abcdef"}
    rows = Cover(factors, lambda part: True).rows()
    assert 25 <= len(rows) <= 50  # of 15,625
