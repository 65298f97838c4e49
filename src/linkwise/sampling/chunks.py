"""One chunk of a study: its states, drawn from the seed and the chunk's number, and what is kept.

A chunk depends on nothing but the study and its own number, so that it does not matter which worker
computes it, when, or how often.
"""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.robot import Robot
from linkwise.sampling.draws import Draws
from linkwise.sampling.measures import Measure
from linkwise.sampling.reduction import Kept, Reduction, merged
from linkwise.sampling.spec import ROLLOUT, Spec, limits_of

Array = NDArray[Any]
PILOT, PILOT_MOTIONS = 20_000, 200  # states, and motions, that tell the range of histograms
PILOT_STREAM = 2**32 - 1  # of random numbers, which no chunk has
BEYOND = 1.25  # how much further histograms go than these

FLOOR, SMALLEST = 1e-9, 1e-12  # least half ranges, beside the middle and at all


def loaded(spec: Spec, robot: bytes | None = None) -> Robot:
    """The robot of a study: of its pickle, or of its file as that is now."""
    return spec.load() if robot is None else _unpickled(robot)


@lru_cache(maxsize=1)  # a worker gets the same bytes with every chunk
def _unpickled(robot: bytes) -> Robot:
    found: Robot = pickle.loads(robot)
    return found


def pilot(spec: Spec, robot: Robot | None = None) -> Array:
    """The range (m, 2) of histograms, from some states of a study of the same kind."""
    robot = loaded(spec) if robot is None else robot
    count = min(spec.states, PILOT_MOTIONS if spec.measure == ROLLOUT else PILOT)
    pieces = Draws(spec, robot).pieces(PILOT_STREAM, 0, count)
    measure = Measure(spec, robot)
    found = np.concatenate([measure(state).astype(float) for state in pieces])
    _check_limits(spec, robot, found.shape[1])
    found = found[np.isfinite(found).all(1)]
    low, high = (found.min(0), found.max(0)) if len(found) else np.zeros((2, found.shape[1]))
    middle = (low + high) / 2
    least = np.maximum(SMALLEST, FLOOR * np.abs(middle))  # of numbers that are constant
    half = np.maximum((high - low) / 2, least) * BEYOND
    return np.stack([middle - half, middle + half], -1)


def _check_limits(spec: Spec, robot: Robot, m: int) -> None:
    limits = limits_of("study", spec, robot)
    if limits is not None and len(limits) not in (1, m):
        raise ValueError(
            f"study: [keep] limit has {len(limits)} numbers, and {spec.measure} has {m}; expected "
            f"one for all, or {m}"
        )


def computed(spec: Spec, index: int, ranges: Array, robot: bytes | None = None) -> Kept:
    """What is kept of a chunk."""
    model = loaded(spec, robot)
    draws, measure = Draws(spec, model), Measure(spec, model)
    limits = limits_of("study", spec, model)
    kept = Reduction(len(ranges), len(draws.columns), spec.keep, ranges, limits)
    with np.errstate(all="ignore"):  # states without an answer are counted
        for state in draws.chunk(index):
            kept.add(measure(state), state)
    return kept.result()


__all__ = ["computed", "loaded", "merged", "pilot"]
