"""The walks over the links: the only loops over a robot in the library.

    base_to_tip   anticausal: each link from its parent
    tip_to_base   causal: each link from the sum over its children
    to_base       along the ancestors of one link
    along_path    base to one frame's link

A body is a plain function of one link; its contract is in each walk's docstring. The base is a
state that is passed in, never a case inside a body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linkwise.model.tree import BASE, Tree


def base_to_tip(tree: Tree, body: Callable[..., Any], base: Any, *per_link: Sequence[Any]) -> list:
    """``body(link, state_of_parent, *inputs_of_link) -> state``; returns each link's state."""
    states: list[Any] = []
    for i, link in enumerate(tree.links):
        parent = base if link.parent == BASE else states[link.parent]
        states.append(body(link, parent, *(x[i] for x in per_link)))
    return states


def tip_to_base(
    tree: Tree, body: Callable[..., Any], empty: Any, *per_link: Sequence[Any]
) -> tuple[list, Any]:
    """``body(link, sum_over_children, *inputs_of_link) -> (out, to_parent)``.

    Returns each link's ``out``, and the sum of what reached the base.
    """
    sums = [empty] * len(tree.links)
    at_base = empty
    outs: list[Any] = [None] * len(tree.links)
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        outs[i], to_parent = body(link, sums[i], *(x[i] for x in per_link))
        if link.parent == BASE:
            at_base = at_base + to_parent
        else:
            sums[link.parent] = sums[link.parent] + to_parent
    return outs, at_base


def to_base(
    tree: Tree, start: int, body: Callable[..., Any], state: Any, *per_link: Sequence[Any]
) -> list[tuple[int, Any]]:
    """``body(child_link, state, *inputs_of_child) -> state`` carried from ``start`` inward.

    Returns (ancestor, state at it) for each ancestor of ``start``, nearest first.
    """
    states = []
    i = start
    while tree.links[i].parent != BASE:
        state = body(tree.links[i], state, *(x[i] for x in per_link))
        i = tree.links[i].parent
        states.append((i, state))
    return states


def along_path(
    tree: Tree, last: int, body: Callable[..., Any], base: Any, *per_link: Sequence[Any]
) -> list[tuple[int, Any]]:
    """``body(link, state_of_parent, *inputs_of_link) -> state`` from the base out to ``last``.

    Returns (link, its state) for each link on the way; empty when the frame is on the base.
    """
    states = []
    state = base
    for i in tree.path(last):
        state = body(tree.links[i], state, *(x[i] for x in per_link))
        states.append((i, state))
    return states
