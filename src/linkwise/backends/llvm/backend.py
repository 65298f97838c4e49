"""The CPU as a backend: LLVM IR, object code, kernels, and the compiled entry."""

from __future__ import annotations

from functools import cached_property, partial

from linkwise.backends.base import BATCH, ONE, USUAL, Keep, Methods
from linkwise.backends.llvm.compile import (
    Loaded,
    apart_possible,
    to_assembly,
    to_object,
    to_object_apart,
)
from linkwise.backends.llvm.front import LlvmFront
from linkwise.backends.llvm.loops import render_batch, render_one
from linkwise.backends.llvm.memory import given_when_loaded, takes_heap
from linkwise.backends.llvm.refill import render_refill, uneven
from linkwise.backends.llvm.render import Renderer
from linkwise.backends.llvm.run import LlvmKernel
from linkwise.backends.llvm.target import Target, host
from linkwise.backends.llvm.types import NUMBERS, Lanes
from linkwise.trace.program import Program, Signature
from linkwise.trace.schedule import alone, together


class Llvm:
    """Kernels for the processor of this machine, or of another to look at."""

    name = "llvm"
    kind = "cpu"
    apart = True
    effort = USUAL

    def __init__(self, target: Target | None = None) -> None:
        self._target = target

    @cached_property
    def target(self) -> Target:
        """The processor."""
        return self._target or host()

    @property
    def identity(self) -> str:
        """Everything that built code depends on besides its program."""
        return self.target.identity

    def lanes(self, dtype: str, form: str) -> Lanes:
        """One state alone, or a register full of a batch."""
        number = NUMBERS[dtype]
        return Lanes(number, 1 if form == ONE else self.target.lanes(number.bytes))

    def tile(self, dtype: str) -> int:
        """As many as a register holds."""
        return self.lanes(dtype, BATCH).width

    def ordered(self, program: Program, dtype: str, form: str) -> Program:
        """In an order for one state, or for many side by side."""
        return alone(program) if form == ONE else together(program)

    def render(self, program: Program, dtype: str, form: str) -> str:
        """The program as LLVM IR: a tile, a way in, and the declarations they need."""
        lanes, register = self.lanes(dtype, form), self.lanes(dtype, BATCH)
        wrap = render_one if form == ONE else render_batch
        if lanes.width > 1 and uneven(program):
            code = [render_refill(program, lanes, register, self.target.fused)]
        else:
            renderer = Renderer(program, lanes, register, self.target.fused)
            code = [renderer.tile(), wrap(program, lanes)]
        if takes_heap(program.signature, lanes):
            code.insert(0, given_when_loaded(program))
        return "\n".join(
            (
                f"; {program.name}, {dtype}, {lanes.width} state(s) side by side",
                f'target triple = "{self.target.triple}"',
                *code,
                _declarations(lanes, register),
                _attributes(self.target),
            )
        )

    def build(self, text: str, *, apart: bool = False) -> bytes:
        """IR -> object code; ``apart`` in a process of its own, where one can be started."""
        if apart and apart_possible():
            return to_object_apart(text, self.target)
        return to_object(text, self.target)

    def assembly(self, text: str) -> str:
        """IR -> machine code as text."""
        return to_assembly(text, self.target)

    def load(self, code: bytes, signature: Signature, dtype: str, form: str) -> LlvmKernel:
        """Object code -> a kernel."""
        lanes = self.lanes(dtype, form)
        beside = ["tables"] if takes_heap(signature, lanes) else []
        beside += [] if form == ONE else ["stream"]
        loaded = Loaded(code, self.target, [form, *beside])
        return LlvmKernel(loaded, signature, dtype, form, lanes.width)

    def compile(self, program: Program, dtype: str, form: str) -> LlvmKernel:
        """A kernel of a program, all three steps."""
        code = self.build(self.render(program, dtype, form))
        return self.load(code, program.signature, dtype, form)

    def front(self, methods: Methods, keep: Keep) -> LlvmFront:
        """The compiled entry, and a robot's table of sites for it."""
        return LlvmFront(methods, partial(keep, self))


def _declarations(*layouts: Lanes) -> str:
    lines = {
        *(f"declare {x.type} @llvm.fma.{x.suffix}({', '.join([x.type] * 3)})" for x in layouts),
        *(f"declare {x.type} @llvm.fabs.{x.suffix}({x.type})" for x in layouts),
        *(f"declare {x.type} @llvm.sqrt.{x.suffix}({x.type})" for x in layouts),
        "declare double @llvm.fabs.f64(double)",
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    }
    return "\n".join(sorted(lines))


def _attributes(target: Target) -> str:
    bits = target.register_bytes * 8
    # stack probes would call into a runtime library that is not there
    common = f'nounwind "no-stack-arg-probe" "prefer-vector-width"="{bits}" \
"min-legal-vector-width"="{bits}"'
    return f"""
attributes #0 = {{ noinline {common} }}
attributes #1 = {{ noinline cold {common} }}
attributes #2 = {{ {common} }}
!0 = !{{!"branch_weights", i32 1, i32 1000000}}
!1 = !{{!"branch_weights", i32 1000000, i32 1}}
"""
