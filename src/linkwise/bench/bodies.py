"""A tree's links as other libraries want them, so that all compute the same robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.model.tree import BASE, Tree
from linkwise.spatial import RigidInertia, Transform, Vec3

Array = NDArray[Any]


@dataclass(frozen=True)
class Body:
    """A link in the usual terms: pose in its parent at rest, mass, centre, inertia about it."""

    name: str
    parent: int  # index in the list of bodies, -1 for the base
    kind: str
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


def bodies(tree: Tree, order: Sequence[int]) -> list[Body]:
    """The links in the given order."""
    place = {BASE: -1} | {link: k for k, link in enumerate(order)}
    return [_body(tree, i, place[tree.links[i].parent]) for i in order]


def _body(tree: Tree, i: int, parent: int) -> Body:
    link = tree.links[i]
    mass, center, inertia = about_center(link.inertia)
    return Body(
        name=link.joint_name,
        parent=parent,
        kind=type(link.joint).__name__.lower(),
        rotation=rotation(link.placement),
        position=np.array([float(x) for x in link.placement.r]),
        mass=mass,
        center=center,
        inertia=inertia,
        armature=max(link.armature),
    )


def rotation(placement: Transform) -> Array:
    """Child axes as columns, in parent axes."""
    axes = (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))
    return np.array([[float(x) for x in placement.rotate_back(axis)] for axis in axes]).T


def about_center(body: RigidInertia) -> tuple[float, Array, Array]:
    """Mass, centre of mass and rotational inertia about it; a massless body has its centre at 0."""
    m, h, s = float(body.m), np.array([float(x) for x in body.h]), body.rotational()
    inertia = np.array([[s.xx, s.xy, s.xz], [s.xy, s.yy, s.yz], [s.xz, s.yz, s.zz]], dtype=float)
    if m == 0.0:
        return 0.0, np.zeros(3), inertia
    center = h / m
    return m, center, inertia - m * (center @ center * np.eye(3) - np.outer(center, center))
