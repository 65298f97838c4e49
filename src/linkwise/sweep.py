"""The walks over the links: the only loops over a robot in the library.

    base_to_tip   anticausal: each link from its parent
    tip_to_base   causal: each link from the sum over its children
    each_link     memoryless: each link on its own; every_link, for matrices of columns by link
    sum_links     a running sum over the links
    each_pair     a state that starts at each link meets that link and each of its ancestors
    to_base       the same from one link
    each_beyond   a state that starts at each link meets that link and each one beyond it
    along_path    base to one frame's link
    on_path       each link between the base and one frame's link on its own
    of_link       what a walk has left of one link

and over a chain that is cut into pieces, all of which are walked at once:

    scan          what each piece is given at its ends, found by joining pieces in a balanced tree
    total         all pieces joined to one; scan_and_total, both
    outward       base_to_tip in each piece
    inward        tip_to_base in each piece

A body is a plain function of one link; its contract is in each walk's docstring. The base is a
state that is passed in, never a case inside a body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import singledispatch
from typing import Any, NamedTuple

from linkwise.model.joints import JointState
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import Scalar, Transform, Vec3

Body = Callable[..., Any]
PerLink = Sequence[Any] | Mapping[int, Any]
Given = tuple[Any, ...]  # what scans have found, per piece

NO_JOINT = JointState(Transform(Vec3.zero()), ())


@singledispatch
def base_to_tip(tree: Tree, body: Body, base: Any, *per_link: PerLink) -> list[Any]:
    """``body(link, state_of_parent, *inputs_of_link) -> state``; returns each link's state."""
    states: list[Any] = []
    for i, link in enumerate(tree.links):
        parent = base if link.parent == BASE else states[link.parent]
        states.append(body(link, parent, *(x[i] for x in per_link)))
    return states


@singledispatch
def tip_to_base(tree: Tree, body: Body, empty: Any, *per_link: PerLink) -> tuple[list[Any], Any]:
    """``body(link, sum_over_children, *inputs_of_link) -> (out, to_parent)``.

    Returns each link's ``out``, and the sum of ``to_parent`` over the links on the base.
    """
    sums = [empty] * len(tree.links)
    at_base = empty
    outs: list[Any] = [None] * len(tree.links)
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        outs[i], to_parent = body(link, sums[i], *(x[i] for x in per_link))
        if link.parent == BASE:
            at_base = added(at_base, to_parent)
        else:
            sums[link.parent] = added(sums[link.parent], to_parent)
    return outs, at_base


def added(a: Any, b: Any) -> Any:
    """``a + b``; two records are added field by field."""
    if isinstance(a, tuple) and hasattr(a, "_fields"):
        return type(a)(*(x + y for x, y in zip(a, b, strict=True)))
    return a + b


@singledispatch
def each_link(tree: Tree, body: Body, *per_link: PerLink) -> list[Any]:
    """``body(link, *inputs_of_link) -> out``; returns each link's ``out``."""
    return [body(link, *(x[i] for x in per_link)) for i, link in enumerate(tree.links)]


@singledispatch
def sum_links(tree: Tree, body: Body, total: Any, *per_link: PerLink, inward: bool = False) -> Any:
    """``body(link, total, *inputs_of_link) -> total`` with this link's part added, link by link,
    the first or the last link first.
    """
    order = range(len(tree.links))
    for i in reversed(order) if inward else order:
        total = body(tree.links[i], total, *(x[i] for x in per_link))
    return total


def to_base(
    tree: Tree, start: int, carry: Body, meet: Body, state: Any, *per_link: PerLink
) -> Iterator[tuple[int, Any]]:
    """Carry a state from one link to the base; it meets that link and each ancestor on the way.

    ``carry(link, state, *inputs_of_link) -> state at the parent``;
    ``meet(link, state, *inputs_of_link) -> out``. Yields the link that is met and ``out``,
    ``start`` first; nothing when ``start`` is the base.
    """
    way = tree.path(start)[::-1]
    for i in way[:1]:
        yield i, meet(tree.links[i], state, *(x[i] for x in per_link))
    carried = []
    for i in way[:-1]:
        state = carry(tree.links[i], state, *(x[i] for x in per_link))
        carried.append(state)
    for i, state in zip(way[1:], carried, strict=True):
        yield i, meet(tree.links[i], state, *(x[i] for x in per_link))


@singledispatch
def each_pair(
    tree: Tree, carry: Body, meet: Body, starts: Sequence[Any], *per_link: PerLink
) -> Any:
    """`to_base` from every link, with its own start; yields (link met, start) and ``out``."""
    return (
        ((j, i), out)
        for i, start in enumerate(starts)
        for j, out in to_base(tree, i, carry, meet, start, *per_link)
    )


@singledispatch
def each_beyond(
    tree: Tree, carry: Body, meet: Body, starts: Sequence[Any], *per_link: PerLink
) -> Any:
    """Carry a state from every link outward; it meets that link and each one beyond it.

    ``carry(link, state_of_parent, *inputs_of_link) -> state``;
    ``meet(link, state, *inputs_of_link) -> out``. Yields (start, link met) and ``out``.
    """
    states: list[dict[int, Any]] = []
    for i, link in enumerate(tree.links):
        inputs, inboard = (
            [x[i] for x in per_link],
            {} if link.parent == BASE else states[link.parent],
        )
        states.append({j: carry(link, state, *inputs) for j, state in inboard.items()})
        states[i][i] = starts[i]
        yield from (((j, i), meet(link, state, *inputs)) for j, state in states[i].items())


@singledispatch
def along_path(
    tree: Tree, last: int, body: Body, base: Any, *per_link: PerLink
) -> tuple[dict[int, Any], Any]:
    """``body(link, state_of_parent, *inputs_of_link) -> state`` from the base out to ``last``.

    Returns the states by link, and the last one; that is ``base`` when ``last`` is the base.
    """
    states = {}
    state = base
    for i in tree.path(last):
        state = states[i] = body(tree.links[i], state, *(x[i] for x in per_link))
    return states, state


@singledispatch
def on_path(tree: Tree, last: int, body: Body, *per_link: PerLink) -> Any:
    """``body(link, *inputs_of_link) -> out`` from the base out to ``last``; ``out`` by link."""
    return {i: body(tree.links[i], *(x[i] for x in per_link)) for i in tree.path(last)}


@singledispatch
def every_link(tree: Tree, body: Body, *per_link: PerLink) -> Any:
    """``body(link, *inputs_of_link) -> out`` of every link; ``out`` by link, as `on_path`."""
    return dict(enumerate(each_link(tree, body, *per_link)))


@singledispatch
def of_link(tree: Tree, i: int, per_link: PerLink) -> Any:
    """What one link has."""
    return per_link[i]


class Law(NamedTuple):
    """How pieces of a chain act on what they are given at their ends.

    ``grow(link, piece, *inputs_of_link) -> piece``  with one link more, at its inner end if inward
    ``join(inner, outer) -> piece``                  two neighbours as one; associative
    ``share(inner, outer, given) -> given, given``   what each of two is given; None: only `total`
    """

    grow: Body
    join: Callable[[Any, Any], Any]
    share: Callable[[Any, Any, Any], tuple[Any, Any]] | None
    nothing: Any  # the piece without links
    inward: bool = False


@singledispatch
def scan(tree: Tree, law: Law, given: Any, *per_link: PerLink) -> Any:
    """What each piece of a chain is given, from what the chain is given.

    Pieces are joined two by two, and theirs again; from the whole chain back to the pieces, each
    pair shares what it is given. Here every link is a piece.
    """
    return scan_and_total(tree, law, given, *per_link)[0]


@singledispatch
def scan_and_total(tree: Tree, law: Law, given: Any, *per_link: PerLink) -> tuple[Any, Any]:
    """What each piece of a chain is given, and the whole chain as one piece."""
    node = _joined(law, _pieces(tree, law, per_link))
    return _shared(law, node, given), node.piece


@singledispatch
def total(tree: Tree, law: Law, *per_link: PerLink) -> Any:
    """The whole chain as one piece."""
    return _joined(law, _pieces(tree, law, per_link)).piece


@singledispatch
def outward(tree: Tree, body: Body, start: Body, given: Given, *per_link: PerLink) -> list[Any]:
    """``body(link, state_of_parent, *inputs_of_link) -> state`` in each piece; the first link's
    parent has the state ``start(*given)``, from what scans have found.
    """
    return [
        body(link, start(*(x[i] for x in given)), *(x[i] for x in per_link))
        for i, link in enumerate(tree.links)
    ]


@singledispatch
def inward(tree: Tree, body: Body, start: Body, given: Given, *per_link: PerLink) -> list[Any]:
    """``body(link, sum_over_children, *inputs_of_link) -> (out, to_parent)`` in each piece; the
    last link's children sum up to ``start(*given)``. Returns each link's ``out``.
    """
    return [
        body(link, start(*(x[i] for x in given)), *(x[i] for x in per_link))[0]
        for i, link in enumerate(tree.links)
    ]


class _Node(NamedTuple):
    """Pieces joined: all as one, and both halves."""

    piece: Any
    halves: tuple[_Node, _Node] | None = None


def _pieces(tree: Tree, law: Law, per_link: Sequence[PerLink]) -> list[Any]:
    return each_link(tree, lambda link, *inputs: law.grow(link, law.nothing, *inputs), *per_link)


def _joined(law: Law, pieces: Sequence[Any]) -> _Node:
    if len(pieces) < 2:
        return _Node(pieces[0] if pieces else law.nothing)
    half = (len(pieces) + 1) // 2
    inner, outer = _joined(law, pieces[:half]), _joined(law, pieces[half:])
    return _Node(law.join(inner.piece, outer.piece), (inner, outer))


def _shared(law: Law, node: _Node, given: Any) -> list[Any]:
    if node.halves is None:
        return [given]
    inner, outer = node.halves
    assert law.share is not None  # else only the total is asked for
    shares = law.share(inner.piece, outer.piece, given)
    return [*_shared(law, inner, shares[0]), *_shared(law, outer, shares[1])]


def joint_states(tree: Tree, q: Sequence[Scalar]) -> list[JointState]:
    """Every joint at a configuration."""
    return each_link(tree, Link.joint_state, tree.per_link_q(q))


def joint_states_from_roots(tree: Tree, q: Sequence[Scalar]) -> list[JointState]:
    """Every joint at a configuration, seen as if the first link of each branch were the base.

    Results that are the same in any axes can then be formed in the axes of that first link, which
    no work is needed to reach.
    """
    J = joint_states(tree, q)
    return [
        JointState(NO_JOINT.X, own.S) if link.parent == BASE else own
        for link, own in zip(tree.links, J, strict=True)
    ]


def joint_states_beyond(
    tree: Tree, q: Sequence[Scalar], shared: frozenset[int]
) -> list[JointState]:
    """Every joint at a configuration, seen as if the outermost of some links were the base.

    ``shared`` has that link and all between it and the base: how two links beyond it move against
    each other is the same in any axes.
    """
    J = joint_states(tree, q)
    return [JointState(NO_JOINT.X, own.S) if i in shared else own for i, own in enumerate(J)]


@singledispatch
def at_links(tree: Tree, empty: Any, given: Iterable[tuple[int, Any]]) -> list[Any]:
    """The sum of the values given for each link; values given for the base are left out."""
    sums = [empty] * len(tree.links)
    for i, x in given:
        if i != BASE:
            sums[i] = sums[i] + x
    return sums
