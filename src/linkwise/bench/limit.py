"""The processor's limit: vector instructions per nanosecond, measured, and what it implies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.backends.base import BATCH
from linkwise.backends.llvm.backend import Llvm
from linkwise.bench.timing import Way, measure
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.program import OperationCount, Port, Program
from linkwise.trace.rolled import Step, loop, program

SINCOS, SINCOS_MULTIPLIES = 26, 19  # vector instructions of an inline sine and cosine
TURNS = 200_000  # of the measured loop, so that the call around it counts little
CHAINS = 14  # independent sums, enough to hide latency and few enough for 16 registers


@dataclass(frozen=True)
class Peak:
    """Full-width vector instructions per nanosecond on this core, now."""

    multiplies: float  # multiplications and fused multiply-adds alone
    mixed: float  # as many additions beside them

    def bound(self, count: OperationCount, lanes: int) -> float:
        """Nanoseconds per state that no code with these operations can beat.

        Loads, stores, spills and the latency of divisions come on top.
        """
        multiplies = count.multiplications + count.divisions + SINCOS_MULTIPLIES * count.sincos
        instructions = count.total - count.fused + SINCOS * count.sincos
        return max(multiplies / self.multiplies, instructions / self.mixed) / lanes


def measure_peak(seconds: float = 0.2) -> Peak:
    """Run independent multiply-adds, alone and with additions, as fast as they go."""
    ways = {"multiplies": _way(CHAINS), "mixed": _way(CHAINS // 2)}
    times = measure(ways, seconds)
    multiplies = 1.0 / times["multiplies"]
    return Peak(multiplies, max(1.0 / times["mixed"], multiplies))


def _way(fused: int) -> Way:
    """The chains on one tile; times per state are then times per vector instruction."""
    backend = Llvm()
    target = backend.target
    kernel = backend.compile(chains(fused), "float64", BATCH)
    numbers = np.full((target.lanes(8), CHAINS + 1), 0.25)
    names = {"kernel": kernel, "numbers": [numbers], "out": [np.empty_like(numbers[:, 1:])]}
    instructions = CHAINS if target.fused else CHAINS + fused
    return Way("", "kernel(numbers, out, 1)", names, TURNS * instructions)


def chains(fused: int) -> Program:
    """A loop without memory traffic: ``c x + x`` in the first chains, ``c + x`` in the others."""
    graph = Graph()
    half, *starts = (graph.input("numbers", k) for k in range(CHAINS + 1))
    x = half + half  # a sum is formed before the loop, an input read in every turn

    def turn(_: Step, sums: list[Expr]) -> list[Expr]:
        return [c * x + x if k < fused else c + x for k, c in enumerate(sums)]

    sums = loop(graph, TURNS, starts, turn)
    return program(graph, "chains", [Port("numbers", CHAINS + 1)], [], results=sums)
