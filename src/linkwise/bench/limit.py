"""The processor's limit: vector instructions per nanosecond, measured, and what it implies."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from linkwise.backends.llvm.compile import Loaded, to_object
from linkwise.backends.llvm.target import Target, host
from linkwise.backends.llvm.types import NUMBERS, Lanes
from linkwise.bench.timing import Way, measure
from linkwise.trace.program import OperationCount

SINCOS, SINCOS_MULTIPLIES = 26, 19  # vector instructions of an inline sine and cosine
LOOP = "loop"
TURNS = 2000  # of the measured loop
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
    multiplies = _Loop(host(), CHAINS, 0)
    mixed = _Loop(host(), CHAINS // 2, CHAINS // 2)
    fast, both = measure([multiplies.way(), mixed.way()], seconds)
    assert fast is not None and both is not None
    return Peak(1.0 / fast, max(1.0 / both, 1.0 / fast))


class _Loop:
    """A compiled loop of chains; it has no memory traffic."""

    def __init__(self, target: Target, fused: int, added: int) -> None:
        self._loaded = Loaded(to_object(_ir(target, fused, added), target), target, [LOOP])
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._loaded.address[LOOP])
        self._per_turn = fused * (1 if target.fused else 2) + added

    def way(self) -> Way:
        """The loop as something to time, with instructions for states."""
        names = {"run": self._run, "turns": TURNS}
        return Way("", "run(turns)", names, TURNS * self._per_turn)


def _ir(target: Target, fused: int, added: int) -> str:
    lanes = Lanes(NUMBERS["float64"], target.lanes(8))
    T, n, bits = lanes.type, fused + added, target.register_bytes * 8
    step = _fused if target.fused else _separate
    heads = [f"%c{k} = phi {T} [ %x, %entry ], [ %d{k}, %loop ]" for k in range(n)]
    steps = [step(lanes, k) for k in range(fused)]
    steps += [f"%d{k} = fadd {T} %c{k}, %x" for k in range(fused, n)]
    sums = [f"%s{k} = fadd {T} {f'%s{k - 1}' if k else '%x'}, %d{k}" for k in range(n)]
    body, total = "\n  ".join((*heads, *steps)), "\n  ".join(sums)
    return f"""
target triple = "{target.triple}"
declare {T} @llvm.fma.{lanes.suffix}({T}, {T}, {T})
@sink = internal global {T} zeroinitializer
@seed = internal global {T} {lanes.constant(0.5)}
define void @{LOOP}(i64 %stop) #0 {{
entry:
  %x = load volatile {T}, ptr @seed
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  {body}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %stop
  br i1 %more, label %loop, label %done
done:
  {total}
  store volatile {T} %s{n - 1}, ptr @sink
  ret void
}}
attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}
"""


def _fused(lanes: Lanes, k: int) -> str:
    T = lanes.type
    return f"%d{k} = call {T} @llvm.fma.{lanes.suffix}({T} %c{k}, {T} %x, {T} %x)"


def _separate(lanes: Lanes, k: int) -> str:
    return f"%p{k} = fmul {lanes.type} %c{k}, %x\n  %d{k} = fadd {lanes.type} %p{k}, %x"
