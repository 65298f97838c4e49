"""Whole IR modules: a tile, a way in, and the declarations they need."""

from __future__ import annotations

from linkwise.backends.base import BATCH, ONE
from linkwise.backends.llvm.loops import render_batch, render_one
from linkwise.backends.llvm.render import Renderer
from linkwise.backends.llvm.target import Target
from linkwise.backends.llvm.types import NUMBERS, Lanes
from linkwise.trace.program import Program


def lanes_for(target: Target, dtype: str, form: str) -> Lanes:
    """One state alone, or a register full of a batch."""
    number = NUMBERS[dtype]
    return Lanes(number, 1 if form == ONE else target.lanes(number.bytes))


def render_module(program: Program, target: Target, dtype: str, form: str) -> str:
    """IR text of one kernel."""
    lanes = lanes_for(target, dtype, form)
    register = lanes_for(target, dtype, BATCH)
    tile = Renderer(program, lanes, register, target.fused).tile()
    wrap = render_one if form == ONE else render_batch
    return "\n".join(
        (
            f"; {program.name}, {dtype}, {lanes.width} state(s) side by side",
            f'target triple = "{target.triple}"',
            tile,
            wrap(program.signature, lanes),
            _declarations(lanes, register),
            _attributes(target),
        )
    )


def _declarations(*layouts: Lanes) -> str:
    lines = {
        *(f"declare {x.type} @llvm.fma.{x.suffix}({', '.join([x.type] * 3)})" for x in layouts),
        *(f"declare {x.type} @llvm.fabs.{x.suffix}({x.type})" for x in layouts),
        *(f"declare {x.type} @llvm.sqrt.{x.suffix}({x.type})" for x in layouts),
        "declare double @llvm.fabs.f64(double)",
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
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
