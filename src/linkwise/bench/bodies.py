"""A tree's links as other libraries want them, so that all compute the same robot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import Vec3

Array = NDArray[Any]
ONE_DEGREE = ("revolute", "prismatic")


@dataclass(frozen=True)
class Body:
    """A link in the usual terms: pose in its parent at rest, mass, centre, inertia about it."""

    name: str
    parent: int  # index in the list of bodies, -1 for the base
    kind: str  # of its joint, about or along z
    rotation: Array  # link axes as columns, in parent axes
    position: Array
    mass: float
    center: Array
    inertia: Array  # (3, 3), about the centre of mass
    armature: float


def depth_first(tree: Tree) -> list[int]:
    """Link indices with every subtree in one piece, as Pinocchio and MuJoCo number them."""
    children: dict[int, list[int]] = {}
    for i, link in enumerate(tree.links):
        children.setdefault(link.parent, []).append(i)
    order, waiting = [], list(reversed(children.get(BASE, [])))
    while waiting:
        i = waiting.pop()
        order.append(i)
        waiting += reversed(children.get(i, []))
    return order


def bodies(tree: Tree) -> list[Body]:
    """The links, depth first; raises ValueError where a joint is not one that peers are given."""
    order = depth_first(tree)
    place = {BASE: -1} | {link: k for k, link in enumerate(order)}
    return [_body(tree.links[i], place[tree.links[i].parent]) for i in order]


def _body(link: Link, parent: int) -> Body:
    kind = type(link.joint).__name__.lower()
    if kind not in ONE_DEGREE:
        raise ValueError(f"{kind} joints are not compared")
    center = link.inertia.centre()
    s = link.inertia.seen_from(-center).rotational()
    axes = [link.placement.rotate_back(Vec3(*unit)) for unit in np.eye(3).tolist()]
    return Body(
        name=link.joint_name,
        parent=parent,
        kind=kind,
        rotation=np.column_stack([_floats(axis) for axis in axes]),
        position=_floats(link.placement.r),
        mass=float(link.inertia.m),
        center=_floats(center),
        inertia=np.array([list(row) for row in s.full().rows], float),
        armature=max(link.armature),
    )


def _floats(v: Vec3) -> Array:
    return np.array([float(x) for x in v])
