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

from linkwise.trace.expr import Expr, whole
from linkwise.trace.program import FLAGS, FLAGS_DTYPE, Block, For, Output, Program, Region, Repeat


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
    run = _Run(program, {port.name: np.asarray(inputs[port.name]) for port in program.inputs})
    with np.errstate(all="ignore"):
        for region in program.regions:
            run.region(region)
    return {output.name: run.output(output) for output in program.outputs}


class _Run:
    """Values of a batch, as far as they are computed."""

    def __init__(self, program: Program, inputs: dict[str, NDArray[Any]]) -> None:
        self.dtype = np.result_type(*inputs.values())
        self.batch = next(iter(inputs.values())).shape[0]
        self.state: dict[int, Any] = {}  # by node
        # what counted loops read and write, by name: (batch, size) each; NaN until written
        self.lists = program.lists
        tables = {a.name: np.tile(np.asarray(a.values), (self.batch, 1)) for a in program.tables}
        sizes = {a.name: a.size for a in program.arrays if a.values is None}
        sizes |= {o.name: o.slot.size for o in program.outputs if not o.values}
        room = {name: np.full((self.batch, n), np.nan, self.dtype) for name, n in sizes.items()}
        self.memory = inputs | tables | room

    def region(self, region: Region) -> None:
        """Run a block or a loop."""
        if isinstance(region, Block):
            self._block(region, 0)
        else:
            for carry in region.carries:
                start = np.broadcast_to(self.state[carry.start.id], (self.batch,))
                self.state[carry.value.id] = start.astype(self.dtype)
            if isinstance(region, Repeat):
                self._repeat(region)
            else:
                self._for(region)

    def _block(self, block: Block, step: int) -> None:
        for node in block.nodes:
            self.state[node.id] = self._value(node, step)

    def _value(self, node: Expr, step: int) -> Any:
        if node.op == "const":
            return np.asarray(node.value, self.dtype)
        if node.op == "eps":
            return np.asarray(np.finfo(self.dtype).eps, self.dtype)
        if node.op == "input":
            port, index = node.value
            return self.memory[port][:, index]
        if node.op == "read":
            array, at = node.value
            return self.memory[array][:, at.element(step, self.lists)].astype(self.dtype)
        return OPS[node.op](*(self.state[a.id] for a in node.args))

    def _for(self, loop: For) -> None:
        limit = [] if loop.limit is None else [int(np.ravel(self.state[loop.limit.id])[0])]
        for k in range(min([whole(loop.count, self.lists), *limit])):
            case = loop.cases[loop.which.element(k, self.lists) if loop.which else 0]
            self._block(case.body, k)
            for write in case.writes:
                if (k + 1) % write.every == 0:
                    element = write.at.element(k // write.every, self.lists)
                    column = self.memory[write.array][:, element]
                    column[...] = (column if write.add else 0.0) + self.state[write.value.id]
            pairs = zip(loop.carries, case.nexts, strict=True)
            self.state |= {c.value.id: self.state[x.id] for c, x in pairs}

    def _repeat(self, loop: Repeat) -> None:
        for k in itertools.count():
            self._block(loop.body, k)
            active, limit = (np.real(self.state[x.id]) for x in (loop.active, loop.limit))
            going = np.broadcast_to((active > 0) & (k < limit), (self.batch,))
            if not going.any():
                return
            self.state |= {
                c.value.id: np.where(going, self.state[c.next.id], self.state[c.value.id])
                for c in loop.carries
            }

    def output(self, output: Output) -> Any:
        """An output as an array (batch, *shape)."""
        rows = np.empty((self.batch, output.slot.size), self.dtype)
        if not output.values:
            rows[:] = self.memory[output.name]
        for k, value in enumerate(output.values):
            rows[:, k] = self.state[value.id]
        if output.kind == FLAGS:
            rows = np.real(rows).astype(FLAGS_DTYPE)
        return rows.reshape(self.batch, *output.shape)
