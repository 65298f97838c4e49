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
from linkwise.trace.program import BYTE, Block, Output, Program, Repeat


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
    with np.errstate(all="ignore"):
        for region in program.regions:
            if isinstance(region, Block):
                _run_block(region, inputs, state, dtype)
            else:
                _run_repeat(region, inputs, state, dtype, batch)
    return {output.name: _gather(output, state, batch, dtype) for output in program.outputs}


def _gather(output: Output, state: dict[int, Any], batch: int, dtype: Any) -> Any:
    """An output as an array (batch, *shape)."""
    rows = np.empty((batch, len(output.values)), dtype)
    for k, value in enumerate(output.values):
        rows[:, k] = state[value.id]
    if output.kind == BYTE:
        rows = np.real(rows).astype(np.uint8)
    return rows.reshape(batch, *output.shape)


def _run_block(block: Block, inputs: Mapping[str, Any], state: dict[int, Any], dtype: Any) -> None:
    for node in block.nodes:
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
