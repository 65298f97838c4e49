"""What makes a robot one chain that can be cut anywhere: no branch, and inertia in every link."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from linkwise.model.linktable import LinkTable
from linkwise.model.tree import Link, Tree
from linkwise.spatial.matrices import eigenvalues

NOTHING = 1e-14  # of the greatest inertia of a joint: rounding


def first_branch(tree: Tree) -> str:
    """The first link that does not follow the link before it; empty in a chain."""
    odd = np.flatnonzero(tree.parent_numbers != np.arange(-1, tree.n_links - 1))
    return tree.links[int(odd[0])].name if len(odd) else ""


def first_without_own_inertia(tree: Tree) -> str:
    """The first link of a kind whose joint moves no inertia of that link alone, or empty.

    A piece of a chain is eliminated from its last link on, before it is known what follows.
    """
    for places, link in _groups(tree):
        for q in _configurations(link):
            bad = np.flatnonzero(np.atleast_1d(_lost(link, q)))
            if len(bad):
                return tree.links[int(places[bad[0]])].name
    return ""


def _lost(link: Link, q: list[float]) -> Any:
    """Whether a joint moves, of its link alone and rotors included, no inertia in some direction:
    none beside rounding.
    """
    columns = link.joint_state(q).S
    forces = [link.inertia.articulated() @ column for column in columns]
    rows = [[np.asarray(column.dot(f), float) for f in forces] for column in columns]
    for k, rotor in enumerate(link.armature):
        rows[k][k] = rows[k][k] + rotor
    matrices = np.array([np.broadcast_arrays(*row) for row in rows])
    found = eigenvalues(np.moveaxis(matrices, (0, 1), (-2, -1)))
    return ~(found[..., 0] > NOTHING * found[..., -1])


def _configurations(link: Link) -> Iterator[list[float]]:
    """Configurations of a joint: its axes at right angles, where they may be so."""
    neutral = link.joint.neutral()
    yield neutral
    if 1 < link.joint.nq == link.joint.nv:  # of one axis, or of quaternions, columns are constant
        for k in range(len(neutral)):
            yield [np.pi / 2 if i == k else x for i, x in enumerate(neutral)]


def _groups(tree: Tree) -> Iterator[tuple[Any, Link]]:
    """Links of one kind as one, their numbers arrays; which links they are."""
    if isinstance(tree.links, LinkTable):
        yield from tree.links.groups()
    else:
        yield from (([i], link) for i, link in enumerate(tree.links))
