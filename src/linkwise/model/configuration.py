"""Configurations of a whole robot as arrays: at rest, random, limits, and rates of change.

`integrate`, `difference` and `normalize` are algorithms like any other
(``algorithms/configurations.py``), made of each joint's own rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.model.linktable import LinkTable
from linkwise.model.tree import Link, Tree
from linkwise.spatial.matrices import lengths

Array = NDArray[Any]

# spread of random values where a joint has no limits
WIDE = {"prismatic": (1.0,), "planar": (1.0, 1.0, np.pi)}


def own_joints(tree: Tree) -> Iterator[tuple[Link, slice, slice]]:
    """Joints with numbers of their own, and where these are in q and v."""
    for link in tree.links:
        if link.follows is None:
            q, v = link.q_index, link.v_index
            yield link, slice(q, q + link.joint.nq), slice(v, v + link.joint.nv)


def _groups(tree: Tree) -> Iterator[tuple[Link, Array]]:
    """Joints with numbers of their own: an example, and where the joints like it begin in q.

    Of links in tables those of one kind are a group; of others, each is one.
    """
    if isinstance(tree.links, LinkTable):
        for k in range(len(tree.links.kinds)):
            yield tree.links.first_of(k), tree.q_indices[tree.links.kind_of == k]
    else:
        yield from ((link, np.array([q.start])) for link, q, _ in own_joints(tree))


def neutral(tree: Tree) -> Array:
    """Every joint at rest."""
    out = np.empty(tree.nq)
    for link, starts in _groups(tree):
        out[starts[:, None] + np.arange(link.joint.nq)] = link.joint.neutral()
    return out


def position_limits(tree: Tree) -> Array:
    """Lower and upper limits of each number of q."""
    limits = np.empty((2, tree.nq))
    for link, starts in _groups(tree):
        at = starts[:, None] + np.arange(link.joint.nq)
        limits[0, at], limits[1, at] = link.limits.lower, link.limits.upper
    return limits


def allowed(tree: Tree) -> dict[int, tuple[float, float]]:
    """Range that the limits of a joint and of all joints that follow it allow.

    By the joint's first index in q. A range whose ends are in the wrong order is empty.
    """
    found = {q.start: (x.limits.lower, x.limits.upper) for x, q, _ in own_joints(tree)}
    for link in tree.links if tree.coupled else ():
        tie, limits = link.follows, (link.limits.lower, link.limits.upper)
        if tie is not None and tie.multiplier != 0.0:
            low, high = sorted((x - tie.offset) / tie.multiplier for x in limits)
            least, most = found[link.q_index]
            found[link.q_index] = max(low, least), min(high, most)
    return found


def largest(tree: Tree, field: str) -> Array:
    """The limit ``"velocity"`` or ``"effort"`` of each degree of freedom."""
    links = tree.links
    each: Any = slice(None)
    if isinstance(links, LinkTable):
        own, each = [kind.example for kind in links.kinds], links.kind_of
    else:
        own = [link for link in links if link.follows is None]
    limits = np.array([getattr(link.limits, field) for link in own], float)
    return np.repeat(limits[each], np.array([link.joint.nv for link in own], int)[each])


def spread(
    link: Link, limited: bool = True, limits: tuple[float, float] | None = None
) -> tuple[Array, Array]:
    """Limits; where one is missing, as far from the other as an unlimited joint reaches.

    Not ``limited``: as if all were missing. Of a joint with a quaternion, a range of its rates.
    ``limits`` are used instead of the joint's.
    """
    wide = np.array(WIDE.get(link.kind, (np.pi,) * link.joint.nq))
    if link.joint.quasi:
        wide = np.array([np.pi] * 3 + [1.0] * (link.joint.nv - 3))
    lower, upper = limits or (link.limits.lower, link.limits.upper)
    if link.joint.quasi or not limited:
        lower, upper = -np.inf, np.inf
    low = np.full(len(wide), lower) if np.isfinite(lower) else np.minimum(-wide, upper - 2 * wide)
    high = np.full(len(wide), upper) if np.isfinite(upper) else np.maximum(wide, lower + 2 * wide)
    return low, high


def generator(rng: Any, seed: Any) -> np.random.Generator:
    """The generator of a call; raise for a seed or a size in its place."""
    if isinstance(rng, np.random.Generator):
        if seed is None:
            return rng
        raise TypeError("random_q: rng and seed are both given; expected one of them")
    if rng is not None:
        shown, way = repr(rng)[:80], ""
        if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
            way = f": random_q(seed={int(rng)}) for a seed, random_q(size={int(rng)}) for a batch"
        elif isinstance(rng, tuple | list):
            way = f": random_q(size={shown})"
        raise TypeError(
            f"random_q: rng is {shown}; expected a numpy.random.Generator, and seed= and size= by "
            f"name{way}"
        )
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if seed is not None and not (whole and seed >= 0):
        raise ValueError(f"random_q: seed is {seed!r}; expected an integer that is not negative")
    return np.random.default_rng(seed)


def random(tree: Tree, rng: np.random.Generator, size: int | tuple[int, ...]) -> Array:
    """Configurations within limits, drawn one after another."""
    try:
        shape = tuple(size) if isinstance(size, Iterable) else (index(size),)
        out = np.empty((*shape, tree.nq))
    except (TypeError, ValueError):
        message = f"random_q: size is {size!r}; expected a number of states, or a shape"
        raise ValueError(message) from None
    if isinstance(tree.links, LinkTable):
        return _random_table(tree, rng, out)
    if not any(link.joint.quasi for link, _, _ in own_joints(tree)):
        ranges = (spread(link) for link, _, _ in own_joints(tree))
        low, high = np.hstack([np.empty((2, 0)), *ranges])
        return np.asarray(rng.uniform(low, high, (*shape, tree.nq)))  # the same draws, at once
    for state in np.ndindex(*shape):
        for link, q, _ in own_joints(tree):
            out[(*state, q)] = _random(link, rng)
    return out


def _random_table(tree: Tree, rng: np.random.Generator, out: Array) -> Array:
    """The same of links in tables: alike joints are drawn together."""
    for link, starts in _groups(tree):
        count = (*out.shape[:-1], len(starts))
        if link.joint.quasi:
            turns = rng.normal(size=(*count, 4))
            turns /= lengths(turns)[..., None]
            for k in range(4):
                out[..., starts + k] = turns[..., k]
        else:
            low, high = spread(link)
            for k in range(link.joint.nq):
                out[..., starts + k] = rng.uniform(low[k], high[k], count)
    return out


def _random(link: Link, rng: np.random.Generator) -> Array:
    """Evenly spread within limits; turns of balls over all turns, positions over ±1 m."""
    if not link.joint.quasi:
        return np.asarray(rng.uniform(*spread(link)))
    turn = rng.normal(size=4)
    place = rng.uniform(-1.0, 1.0, link.joint.nq - 4)
    return np.concatenate([turn / lengths(turn), place])


def rate(tree: Tree, q: Array, v: Array) -> Array:
    """``dq/dt`` (..., nq) at rates v (..., nv)."""
    columns, rates = list(np.moveaxis(q, -1, 0)), list(np.moveaxis(v, -1, 0))
    parts = [x for link, a, b in own_joints(tree) for x in link.joint.rate(columns[a], rates[b])]
    return np.stack(parts, axis=-1)
