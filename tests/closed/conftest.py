"""Linkages that tests of closed loops share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import linkwise as lw

PLANAR = (0, 0, 0, 1, 1, 0)  # what keeps two points of a planar linkage together


def _four_bar_open(
    crank: float = 0.2, coupler: float = 0.6, rocker: float = 0.5, ground: float = 0.6
) -> lw.Robot:
    """Crank, coupler and rocker of a planar four-bar, not yet joined; lengths in metres."""
    b = lw.Builder("four_bar", gravity=(0.0, -9.81, 0.0))
    b.link("ground")
    bars = (("crank", crank, 0.5), ("coupler", coupler, 1.0), ("rocker", rocker, 0.8))
    for name, length, mass in bars:
        slender = mass * length**2 / 12
        b.link(name, mass=mass, com=(length / 2, 0, 0), inertia=(1e-4, slender, slender))
    b.joint("a", "continuous", parent="ground", child="crank")
    b.joint("b", "continuous", parent="crank", child="coupler", xyz=(crank, 0, 0))
    b.joint("d", "continuous", parent="ground", child="rocker", xyz=(ground, 0, 0))
    b.frame("coupler_end", "coupler", xyz=(coupler, 0, 0))
    b.frame("rocker_end", "rocker", xyz=(rocker, 0, 0))
    return b.build()


def _four_bar(directions: Any = PLANAR, **options: Any) -> lw.Robot:
    """A four-bar with its loop closed; its crank goes all the way round."""
    loop = lw.Loop("coupler_end", "rocker_end", directions)
    return _four_bar_open().close_loops(loop, **options)


@pytest.fixture(scope="session")
def four_bar_open() -> Callable[..., lw.Robot]:
    return _four_bar_open


@pytest.fixture(scope="session")
def four_bar() -> Callable[..., lw.Robot]:
    return _four_bar
