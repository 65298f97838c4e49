"""Matrices of derivatives of large robots: a product with a vector for each column.

Products are loops over the links (``trace/rolled_tangents.py``), whose code does not grow with the
robot; columns are rows of a batch. A matrix of n columns takes n times the time of a product, where
equations that are written out share most between columns, and take code that grows as n².
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from operator import or_
from typing import Any

import numpy as np

from linkwise.differentiation.plan import JACOBIAN, JVP, Asked, Plan
from linkwise.engine import devices
from linkwise.engine.build import free_memory
from linkwise.engine.tasks import Tasks
from linkwise.errors import ProgramTooLarge, quote

MOST_WRITTEN = 100  # links beyond which matrices of derivatives are not written out


def by_columns(tasks: Tasks, asked: Asked) -> list[Asked] | None:
    """The products that make the columns of each argument; None where they are not loops."""
    if asked.kind != JACOBIAN or asked.mode == "reverse" or tasks.tree.n_links <= MOST_WRITTEN:
        return None
    plan = Plan(tasks, asked)
    found = [asked._replace(kind=JVP, mode="auto", wrt=(name,), value=True) for name in plan.wrt]
    return found if all(Plan(tasks, each).task.rolled for each in found) else None


def columns(
    made: Sequence[Any],
    plan: Plan,
    given: Sequence[Any],
    threads: int | None,
    status: bool,
    device: str | None,
) -> tuple[list[Any], Any]:
    """All parts of a plan, and the status or None; ``made``: the products, with their kernels."""
    there = devices.elsewhere(given)
    wide = [x if hasattr(x, "ndim") else np.asarray(x, float) for x in given]
    narrow = all(getattr(x, "dtype", None) == np.float32 for x in wide)
    _refuse_too_large(made, plan, wide)
    value, parts, bits = None, [], []
    for each, name in zip(made, plan.wrt, strict=True):
        (rates,) = each.plan.more
        unit = np.eye(rates.size, dtype=np.float32 if narrow else np.float64)
        own = [*(x[..., None, :] for x in wide), unit.tolist() if there else unit]
        found, seen = each(own, None, threads, status, device)
        n, size = plan.task.algorithm.output_shape(plan.tree), plan.result.size
        value = found[..., 0, : found.shape[-1] - size].reshape((*found.shape[:-2], *n))
        change = found[..., found.shape[-1] - size :].swapaxes(-1, -2)
        parts.append(change.reshape((*found.shape[:-2], *plan.result.shape, *plan.shape_of(name))))
        bits += [seen[..., k] for k in range(rates.size)] if status else []
    lower = [value] if plan.asked.value else []
    return [*lower, *parts], reduce(or_, bits) if status else None


def _refuse_too_large(made: Sequence[Any], plan: Plan, given: Sequence[Any]) -> None:
    """Raise ProgramTooLarge where all columns do not fit into memory."""
    states = prod(np.broadcast_shapes(*(tuple(x.shape[:-1]) for x in given)))
    columns = sum(each.plan.more[0].size for each in made)
    needed, free = 16 * states * columns * (made[0].plan.size + plan.result.size), free_memory()
    if needed > free:
        raise ProgramTooLarge(
            f"{plan.title} of {quote(plan.robot)}: {columns:,} columns of {states:,} state(s) take "
            f"about {needed / 2**30:,.1f} GiB while they are made, and {free / 2**30:,.1f} GiB are "
            "free; expected fewer states, or products with vectors: robot.jvp"
        )


def weighted(plan: Plan, parts: Sequence[Any], cotangent: Any) -> list[Any]:
    """The value and the gradients of its weighted sum, from the value and its derivatives;
    ``cotangent`` (..., numbers of the result).
    """
    gradients = []
    for part, name in zip(parts[1:], plan.wrt, strict=True):
        shape = plan.shape_of(name)
        lead = tuple(part.shape[: len(part.shape) - len(shape) - len(plan.result.shape)])
        matrix = part.reshape((*lead, plan.result.size, -1))
        row = (cotangent[..., None, :] @ matrix)[..., 0, :]
        gradients.append(row.reshape((*row.shape[:-1], *shape)))
    value, own = parts[0], plan.task.algorithm.output_shape(plan.tree)
    if isinstance(value, np.ndarray):  # for each of the weights, as products of small robots are
        value = np.broadcast_to(value, (*row.shape[:-1], *own)).copy()
    return [value, *gradients]
