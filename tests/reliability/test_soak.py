"""A short soak: the same random calls each time; ``make soak`` runs ten minutes of them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import soak


def test_random_calls_raise_what_is_documented() -> None:
    card = soak.soak(seed=0, calls=96)
    assert not card.findings, card
    assert card.calls.total() == 96 and 0 < card.refused.total() < 48, card
    assert set(card.calls) == set(soak.CALLS)


def test_the_card_notices() -> None:
    """Messages with internals, exceptions that are not documented, and memory that grows."""
    run = soak.Soak(seed=0)
    for error in (AttributeError("x"), TypeError("'NoneType' object is not iterable")):
        soak.CALLS["broken"] = lambda *_, error=error: (_ for _ in ()).throw(error)
        while not run.card.calls["broken"]:
            run.one()
        run.card.calls["broken"] = 0
    del soak.CALLS["broken"]
    assert sum(key.startswith("broken: ") for key in run.card.findings) == 2
    run.card.memory = [(60.0 * k, 100.0) for k in range(9)]
    assert run.card.is_flat
    run.card.memory = [(60.0 * k, 100.0 + 20.0 * k) for k in range(9)]
    assert not run.card.is_flat and "NOT FLAT" in str(run.card)
