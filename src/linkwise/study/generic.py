"""Chains without accidental zeros: the arms that papers count operations for."""

from __future__ import annotations

import math

import numpy as np

from linkwise.io.dh import DHRow, describe_dh
from linkwise.model.description import RobotDescription, tensor_of
from linkwise.spatial.matrices import about, of_principal, orthonormal

KINDS = ("revolute", "prismatic")


def generic_chain(
    n: int, seed: int = 0, *, kind: str = "revolute", length: float = 0.3
) -> RobotDescription:
    """A serial robot of ``n`` joints of one kind (``"mixed"``: every third one slides).

    Every Denavit-Hartenberg parameter and every inertial parameter is random and nonzero, and no
    two axes are parallel or cross at right angles. The same seed gives the same robot, and a longer
    chain starts with the shorter one. ``length`` is that of a link, about, in metres.
    """
    if n < 1:
        raise ValueError(f"generic_chain: n is {n}; expected at least 1")
    if kind not in (*KINDS, "mixed"):
        raise ValueError(f"kind {kind!r}: expected 'revolute', 'prismatic' or 'mixed'")
    rows = [_row(i, np.random.default_rng((seed, i)), kind, length) for i in range(n)]
    return describe_dh(rows, "modified", f"generic{n}")


def _row(i: int, rng: np.random.Generator, kind: str, length: float) -> DHRow:
    """One joint and a link that can exist: positive second moments about its centre of mass."""
    if kind == "mixed":
        kind = KINDS[i % 3 == 2]
    mass = float(rng.uniform(1.0, 10.0))
    axes, sizes = orthonormal(rng.normal(size=(3, 3)).T), length * rng.uniform(0.1, 0.4, 3)
    second = of_principal(mass * (sizes * sizes), axes.T)
    return DHRow(
        a=length * _away_from_zero(rng),
        alpha=0.5 * math.pi * _away_from_zero(rng),
        d=length * _away_from_zero(rng),
        theta=math.pi * _away_from_zero(rng),
        kind=kind,
        mass=mass,
        com=tuple(length * _away_from_zero(rng) for _ in range(3)),  # type: ignore[arg-type]
        inertia=tensor_of(about(second)),
    )


def _away_from_zero(rng: np.random.Generator) -> float:
    """Of either sign, between 0.2 and 0.9."""
    return float(rng.uniform(0.2, 0.9) * rng.choice([-1.0, 1.0]))
