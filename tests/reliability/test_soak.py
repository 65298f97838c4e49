"""A short soak: the same random calls each time; ``make soak`` runs ten minutes of them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

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


def measured(leak: float, steps: bool = False, noise: float = 1.0) -> soak.Card:
    """Ten minutes in which memory grows by MB per minute, with noise, and by kernels in steps."""
    rng, t = np.random.default_rng(0), np.arange(0.0, 600.0, 1.0)
    m = 200.0 * (1.0 - np.exp(-t / 60.0)) + leak * t / 60.0 + noise * rng.normal(size=t.shape)
    if steps:  # a robot that is compiled late
        m += 40.0 * (t > 450.0)
    return soak.Card(0, memory=list(zip(t.tolist(), m.tolist(), strict=True)))


@pytest.mark.parametrize("leak", [2.0, 7.0, 20.0])
def test_leaks_are_noticed(leak: float) -> None:
    card = measured(leak)
    assert not card.is_flat and "NOT FLAT" in str(card)
    assert abs(card.slope - leak) < 0.5


@pytest.mark.parametrize("card", [measured(0.0), measured(0.5), measured(0.0, True),
                                  measured(0.0, noise=20.0), soak.Card(0, memory=[(0.0, 1.0)] * 9)]
                         )  # fmt: skip
def test_memory_that_stays_is_flat(card: soak.Card) -> None:
    assert card.is_flat
