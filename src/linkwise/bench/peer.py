"""A peer: another library that holds the same robot, and the statements that it is timed by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from linkwise.bench.bodies import Array
from linkwise.bench.states import States
from linkwise.bench.timing import Way

LOOP = "loop over "  # how the label of a Python loop begins


class Call(NamedTuple):
    """How a library computes a function of one state."""

    label: str
    arguments: str  # those of q, qd and tau that the statement reads
    statement: str
    result: str  # an expression: the result, once the statement has run


@dataclass(frozen=True)
class Peer:
    """Another library that holds the robot: the statements that compute its functions.

    `batches` says how it works through many states: by a call of its own, or by a Python loop.
    """

    name: str
    order: list[int]  # our joints in the order of its joints
    names: Mapping[str, Any]  # what its statements refer to beside q, qd and tau
    calls: Mapping[str, Call]
    batches: Mapping[str, Callable[[Peer, str, States, int], Way]]

    def single(self, function: str, states: States) -> Way | None:
        """One state, the first, per Python call; None where it has no such function."""
        call = self.calls.get(function)
        if call is None:
            return None
        return Way(call.label, call.statement, self._names(states.columns(self.order), 0))

    def loop(self, function: str, states: States, _threads: int = 1) -> Way:
        """A Python loop over its call for one state."""
        call, mine = self.calls[function], states.columns(self.order)
        chosen = [getattr(mine, name) for name in call.arguments.split(", ")]
        rows = list(zip(*chosen, strict=True)) if len(chosen) > 1 else list(chosen[0])
        statement = f"for {call.arguments} in rows: {call.statement}"
        return Way(LOOP + call.label, statement, {**self.names, "rows": rows}, len(states))

    def batch(self, function: str, states: States, threads: int) -> Way | None:
        """The fastest way it has over many states, or None."""
        make = self.batches.get(function)
        return None if make is None else make(self, function, states, threads)

    def evaluate(self, function: str, states: States) -> Array | None:
        """Results to compare with ours, joints in its own order."""
        call, mine, results = self.calls.get(function), states.columns(self.order), []
        if call is None:
            return None
        for k in range(len(states)):
            names = self._names(mine, k)
            exec(call.statement, names)
            results.append(np.array(eval(call.result, names)))
        return np.array(results)

    def _names(self, mine: States, k: int) -> dict[str, Any]:
        return {**self.names, "q": mine.q[k], "qd": mine.qd[k], "tau": mine.tau[k]}
