"""Configurations of a whole robot: each joint's own rule, joint by joint, on arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.model.tree import Link, Tree

Array = NDArray[Any]

# spread of random values where a joint has no limits
WIDE = {"prismatic": (1.0,), "planar": (1.0, 1.0, np.pi)}


def _own(tree: Tree) -> Iterator[tuple[Link, slice, slice]]:
    """Joints with numbers of their own, and where these are in q and v."""
    for link in tree.links:
        if link.follows is None:
            q, v = link.q_index, link.v_index
            yield link, slice(q, q + link.joint.nq), slice(v, v + link.joint.nv)


def _last_axis(name: str, value: ArrayLike, size: int) -> Array:
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} has dtype {array.dtype}; expected real numbers")
    if array.ndim == 0 or array.shape[-1] != size:
        raise ValueError(f"{name} has shape {array.shape}; expected (..., {size})")
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    return array.astype(np.result_type(array.dtype, np.float32), copy=False)


def _common(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        given = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"leading axes do not broadcast: {given}") from None


def neutral(tree: Tree) -> Array:
    """Every joint at rest."""
    return np.concatenate([link.joint.neutral() for link, _, _ in _own(tree)])


def position_limits(tree: Tree) -> Array:
    """Lower and upper limits of each number of q."""
    limits = np.empty((2, tree.nq))
    for link, q, _ in _own(tree):
        limits[0, q], limits[1, q] = link.limits.lower, link.limits.upper
    return limits


def _range(link: Link) -> tuple[Array, Array]:
    """Limits; where one is missing, as far from the other as an unlimited joint reaches."""
    wide = np.array(WIDE.get(link.kind, (np.pi,) * link.joint.nq))
    lower, upper = link.limits.lower, link.limits.upper
    low = (
        np.full(link.joint.nq, lower) if np.isfinite(lower) else np.minimum(-wide, upper - 2 * wide)
    )
    high = (
        np.full(link.joint.nq, upper) if np.isfinite(upper) else np.maximum(wide, lower + 2 * wide)
    )
    return low, high


def random(tree: Tree, rng: np.random.Generator, size: int | tuple[int, ...]) -> Array:
    """Configurations within limits."""
    shape = (size,) if isinstance(size, int) else tuple(size)
    out = np.empty((*shape, tree.nq))
    for index in np.ndindex(*shape):
        for link, q, _ in _own(tree):
            lower, upper = _range(link)
            out[(*index, q)] = link.joint.random(rng, lower, upper)
    return out


def integrate(tree: Tree, q: ArrayLike, v: ArrayLike, dt: ArrayLike) -> Array:
    """Hold the rates v for a time dt."""
    start = _last_axis("q", q, tree.nq)
    rates = _last_axis("v", v, tree.nv)
    time = np.asarray(dt)
    weak = type(dt) in (int, float)  # as in NumPy, they do not widen float32
    shape = _common({"q": start.shape[:-1], "v": rates.shape[:-1], "dt": time.shape})
    step = rates * (dt if weak else time[..., None])
    start = np.broadcast_to(start, (*shape, tree.nq))
    step = np.broadcast_to(step, (*shape, tree.nv))
    parts = [link.joint.integrate(start[..., a], step[..., b]) for link, a, b in _own(tree)]
    return np.concatenate(parts, axis=-1)


def rate(tree: Tree, q: ArrayLike, v: ArrayLike) -> Array:
    """``dq/dt`` at rates v."""
    at, rates = _last_axis("q", q, tree.nq), _last_axis("v", v, tree.nv)
    parts = [link.joint.rate(at[..., a], rates[..., b]) for link, a, b in _own(tree)]
    return np.concatenate(parts, axis=-1)


def difference(tree: Tree, q0: ArrayLike, q1: ArrayLike) -> Array:
    """Rates that lead from q0 to q1 in unit time."""
    start, end = _last_axis("q0", q0, tree.nq), _last_axis("q1", q1, tree.nq)
    shape = _common({"q0": start.shape[:-1], "q1": end.shape[:-1]})
    start, end = (np.broadcast_to(x, (*shape, tree.nq)) for x in (start, end))
    parts = [link.joint.difference(start[..., a], end[..., a]) for link, a, _ in _own(tree)]
    return np.concatenate(parts, axis=-1)


def normalize(tree: Tree, q: ArrayLike) -> Array:
    """Every quaternion at unit length."""
    q = _last_axis("q", q, tree.nq)
    return np.concatenate([link.joint.normalize(q[..., a]) for link, a, _ in _own(tree)], axis=-1)
