"""The reference interpreter: runs a program node by node with NumPy. The judge of every backend.

Values are arrays over the batch, of any NumPy float or complex dtype. A fused multiply-add is a
product and a sum here, so results agree with compiled ones to rounding, not to the bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.trace.expr import Expr
from linkwise.trace.program import BYTE, Block, For, Output, Program, Repeat


def _atan2(y: Any, x: Any) -> Any:
    """The angle of (x, y); of complex numbers, as a function with a derivative."""
    near = np.arctan2(np.real(y), np.real(x))
    if not (np.iscomplexobj(y) or np.iscomplexobj(x)):
        return near
    return near + np.arctan((y - x * np.tan(near)) / (x + y * np.tan(near)))


OPS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "sign": lambda a: np.sign(np.real(a)),
    "flag": lambda a: np.where(np.real(a) > 0, 1.0, 0.0),
    "finite": lambda a: np.where(np.isfinite(a), 1.0, 0.0),
    "sqrt": np.sqrt,
    "select": lambda c, a, b: np.where(np.real(c) > 0, a, b),
    "atan2": _atan2,
    "sin": np.sin,
    "cos": np.cos,
    "fma": lambda a, b, c: a * b + c,
    "fms": lambda a, b, c: a * b - c,
    "fnma": lambda a, b, c: c - a * b,
}


def interpret(program: Program, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Evaluate for a batch: inputs (batch, size) by port; returns (batch, *shape) by output."""
    arrays = [np.asarray(inputs[port.name]) for port in program.inputs]
    dtype = np.result_type(*arrays)
    batch = arrays[0].shape[0]
    state: dict[int, Any] = {}
    memory = _memory(program, inputs, batch, dtype)
    with np.errstate(all="ignore"):
        for region in program.regions:
            if isinstance(region, Block):
                _run_block(region, inputs, state, dtype)
            elif isinstance(region, Repeat):
                _run_repeat(region, inputs, state, dtype, batch)
            else:
                _run_for(region, inputs, state, dtype, memory)
    return {output.name: _gather(output, state, memory, batch, dtype) for output in program.outputs}


def _memory(
    program: Program, inputs: Mapping[str, Any], batch: int, dtype: Any
) -> dict[str, NDArray[Any]]:
    """What counted loops read and write, by name: (batch, size) each; NaN until written."""
    tables = {a.name: np.tile(a.values, (batch, 1)) for a in program.arrays if a.values}
    sizes = {a.name: a.size for a in program.arrays if not a.values}
    sizes |= {o.name: o.slot.size for o in program.outputs if not o.values}
    room = {name: np.full((batch, size), np.nan, dtype) for name, size in sizes.items()}
    return {name: np.asarray(x) for name, x in inputs.items()} | tables | room


def _gather(
    output: Output, state: dict[int, Any], memory: dict[str, Any], batch: int, dtype: Any
) -> Any:
    """An output as an array (batch, *shape)."""
    rows = np.empty((batch, output.slot.size), dtype)
    if not output.values:
        rows[:] = memory[output.name]
    for k, value in enumerate(output.values):
        rows[:, k] = state[value.id]
    if output.kind == BYTE:
        rows = np.real(rows).astype(np.uint8)
    return rows.reshape(batch, *output.shape)


def _run_for(
    loop: For, inputs: Mapping[str, Any], state: dict[int, Any], dtype: Any, memory: dict[str, Any]
) -> None:
    for carry in loop.carries:
        state[carry.value.id] = state[carry.start.id]
    reads = [node for node in loop.body.nodes if node.op == "read"]
    for k in range(loop.count):
        for node in reads:
            array, at = node.value
            state[node.id] = memory[array][:, at.element(k)].astype(dtype)
        _run_block(loop.body, inputs, state, dtype)
        for write in loop.writes:
            if (k + 1) % write.every == 0:
                column = memory[write.array][:, write.at.element(k // write.every)]
                column[...] = (column if write.add else 0.0) + state[write.value.id]
        stepped = {c.value.id: state[c.next.id] for c in loop.carries}
        state |= stepped


def _run_block(block: Block, inputs: Mapping[str, Any], state: dict[int, Any], dtype: Any) -> None:
    for node in block.nodes:
        if node.op == "read":
            continue
        state[node.id] = _value(node, inputs, state, dtype)


def _value(node: Expr, inputs: Mapping[str, Any], state: dict[int, Any], dtype: Any) -> Any:
    if node.op == "const":
        return np.asarray(node.value, dtype)
    if node.op == "eps":
        return np.asarray(np.finfo(dtype).eps, dtype)
    if node.op == "input":
        port, index = node.value
        return np.asarray(inputs[port])[:, index]
    return OPS[node.op](*(state[a.id] for a in node.args))


def _run_repeat(
    loop: Repeat, inputs: Mapping[str, Any], state: dict[int, Any], dtype: Any, batch: int
) -> None:
    for carry in loop.carries:
        state[carry.value.id] = np.broadcast_to(state[carry.start.id], (batch,)).astype(dtype)
    for k in itertools.count():
        _run_block(loop.body, inputs, state, dtype)
        going = (np.real(state[loop.active.id]) > 0) & (k < np.real(state[loop.limit.id]))
        active = np.broadcast_to(going, (batch,))
        if not active.any():
            return
        stepped = {c.value.id: state[c.next.id] for c in loop.carries}
        for id_, new in stepped.items():
            state[id_] = np.where(active, new, state[id_])
