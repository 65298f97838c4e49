"""What bodies look like: shapes of the robot's file, or bones, inertia ellipsoids and joint axes.

A robot without visual shapes is drawn by what is known of it: a capsule from each joint to the
next, a drum on each axis, and the ellipsoid of even density that has the body's inertia.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.model import forest
from linkwise.model.description import Geometry, LinkDescription
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial.elementary import length
from linkwise.spatial.matrices import determinant, dot, principal, product
from linkwise.view import scene
from linkwise.view.meshes import Meshes
from linkwise.view.scene import AXES, BONES, INERTIA, VISUAL, Array, Rgba, Shape, Viewed

# colours of Okabe and Ito, which colour-blind people tell apart
BONE: Rgba = (0.80, 0.82, 0.85, 1.0)
DRUM: Rgba = (0.10, 0.36, 0.58, 1.0)
PLATE: Rgba = (0.30, 0.33, 0.37, 1.0)
MASS: Rgba = (0.90, 0.62, 0.0, 0.26)
AXIS: Rgba = (0.84, 0.37, 0.0, 1.0)
PLAIN: Rgba = (0.72, 0.74, 0.77, 1.0)  # of shapes that have no colour
OBJECT: Rgba = (0.34, 0.71, 0.91, 1.0)
THICK, THIN, SLENDER = 0.036, 0.008, 0.24  # radii of bones, by reach, and by a bone's length
WITH_AXIS = ("revolute", "prismatic", "helical")


@dataclass(frozen=True)
class Skeleton:
    """A point on each joint's axis, and where the bones from there end, all in link axes."""

    tree: Tree
    nodes: Array  # (links, 3)
    ends: tuple[tuple[Array, ...], ...]  # of each link
    lengths: Array  # (links): of the longest bone at each joint, on either side
    reach: float

    def radius(self, i: int) -> float:
        """Of the bones of a link: slender, and thinner toward the tip."""
        most = THICK * (1.0 - 0.45 * i / max(self.tree.n_links, 1))
        least = THIN if self.tree.n_links < 40 else THIN / 4
        return self.reach * float(np.clip(SLENDER * self.lengths[i] / self.reach, least, most))


def skeleton(tree: Tree) -> Skeleton:
    """Joints and bones of a tree."""
    nodes = np.array([_node(tree, i) for i in range(tree.n_links)]).reshape(-1, 3)
    ends: list[list[Array]] = [[] for _ in range(tree.n_links)]
    inward, stretched = np.zeros(tree.n_links), np.zeros(tree.n_links)
    for i, link in enumerate(tree.links):
        at = scene.placement(link)
        start = product(at[:3, :3], nodes[i]) + at[:3, 3]
        base = link.parent == BASE
        inward[i] = length(start if base else start - nodes[link.parent])
        stretched[i] = inward[i] + (0.0 if base else stretched[link.parent])
        if not base:
            ends[link.parent].append(start)
    reach = float(stretched.max(initial=0.0)) or 1.0
    for i, link in enumerate(tree.links):
        ends[i] = ends[i] or _last(tree, i, link, nodes[i], 0.08 * reach)
    outward = [
        max((length(end - nodes[i]) for end in ends[i]), default=0.0) for i in range(tree.n_links)
    ]
    reach = float((stretched + outward).max(initial=0.0)) or 1.0
    return Skeleton(tree, nodes, tuple(map(tuple, ends)), np.maximum(inward, outward), reach)


def _node(tree: Tree, i: int) -> Array:
    """A point of a joint's axis: where the file has the joint, or the nearest on the axis."""
    x, y, z = tree.joint_frames[i].origin
    on_axis = scene.KINDS[type(tree.links[i].joint)] in ("revolute", "helical")
    return np.array([0.0, 0.0, z] if on_axis else [x, y, z])


def _last(tree: Tree, i: int, link: Link, node: Array, least: float) -> list[Array]:
    """Where the bone of a link without children ends: its farthest frame, or its centre of mass."""
    own = [np.array(f.origin) for f in tree.frames.values() if f.link == i]
    if link.inertia.m > 0:
        com = np.array(list(link.inertia.h)) / link.inertia.m
        own += [com] if length(com - node) > least else []
    return sorted(own, key=lambda end: length(end - node))[-1:]


def shapes_of(robot: Viewed, bones: Skeleton, meshes: Meshes) -> tuple[Shape, ...]:
    """All shapes of a robot: its file's, and those that are made of its joints and inertias."""
    visuals = list(_visuals(robot, meshes))
    return (
        *visuals,
        *_object(robot, VISUAL if visuals else BONES),
        *_bones(bones),
        *_inertias(robot.tree, bones.reach),
        *_axes(bones),
    )


# --- shapes of the file --------------------------------------------------------------------


def _visuals(robot: Viewed, meshes: Meshes) -> Iterator[Shape]:
    """Visual shapes, or collision shapes of a robot without."""
    links = list(_described(robot))
    shown = "visuals" if any(link.visuals for _, link in links) else "collisions"
    for name, link in links:
        frame = robot.tree.frames.get(name)
        if frame is None:
            continue
        at = scene.pose_of_frame(frame)
        for geometry in getattr(link, shown):
            shape = _visual(frame.link, at, geometry, meshes)
            if shape is not None:
                yield shape


def _described(robot: Viewed) -> Iterator[tuple[str, LinkDescription]]:
    """Links as files describe them, with the names that their frames have in the tree."""
    for link in robot.description.links:
        yield link.name, link
    for i, arm in enumerate(getattr(robot, "arms", ())):
        for name, link in _described(arm):
            if name in arm.tree.frames:
                yield forest.name_of(robot.tree, i, name), link


def _visual(body: int, at: Array, geometry: Geometry, meshes: Meshes) -> Shape | None:
    origin = np.eye(4)
    origin[:3, :3], origin[:3, 3] = geometry.origin.rotation, geometry.origin.translation
    pose, rgba = product(at, origin), geometry.rgba or PLAIN
    if geometry.kind != "mesh":
        return Shape(body, geometry.kind, geometry.size, pose, rgba, VISUAL)
    found = meshes.number(geometry)
    if found is None:
        return None
    number, own = found
    return Shape(body, "mesh", (), pose, geometry.rgba or own or PLAIN, VISUAL, number)


def _object(robot: Viewed, layer: str) -> Iterator[Shape]:
    """The ellipsoid of an object that arms hold, where the robot is a grasp."""
    held: Any = getattr(robot, "object", None)
    frame = robot.tree.frames.get(forest.OBJECT)
    if held is not None and frame is not None:
        at = scene.pose_of_frame(frame)
        found = ellipsoid(held.rigid_inertia, frame.link, OBJECT, layer, at)
        yield from () if found is None else (found,)


# --- what is made of joints and inertias ----------------------------------------------------


def _bones(bones: Skeleton) -> Iterator[Shape]:
    for i, link in enumerate(bones.tree.links):
        r, node = bones.radius(i), bones.nodes[i]
        if link.parent == BASE and scene.KINDS[type(link.joint)] != "free":
            yield from _pillar(bones, i)
        for end in bones.ends[i]:
            yield from _bone(i, node, end, r, BONE)
        yield _drum(i, link, node, r)


def _pillar(bones: Skeleton, i: int) -> Iterator[Shape]:
    """What a robot stands on: a column below a joint that is above the ground, and its plate."""
    reach, up = bones.reach, scene.upward(bones.tree)
    at = scene.placement(bones.tree.links[i])
    top = product(at[:3, :3], bones.nodes[i]) + at[:3, 3]
    height = dot(up, top)
    foot = top - up * height if height > 0.02 * reach else np.zeros(3)
    yield from _bone(BASE, foot, top, 1.15 * bones.radius(i), PLATE, "cylinder")
    plate = _along(foot, foot + 0.016 * reach * up)
    yield Shape(BASE, "cylinder", (0.075 * reach, 0.016 * reach), plate, PLATE, BONES)


def _bone(
    body: int, start: Array, end: Array, r: float, rgba: Rgba, kind: str = "capsule"
) -> Iterator[Shape]:
    distance = length(end - start)
    if distance > 1e-9:
        yield Shape(body, kind, (r, distance), _along(start, end), rgba, BONES)


def _drum(i: int, link: Link, node: Array, r: float) -> Shape:
    """A joint: a drum about its axis, a sleeve along it, or a ball."""
    kind, pose = scene.KINDS[type(link.joint)], np.eye(4)
    pose[:3, 3] = node
    if kind in ("revolute", "helical"):
        return Shape(i, "cylinder", (1.45 * r, 2.9 * r), pose, DRUM, BONES)
    if kind == "prismatic":
        return Shape(i, "box", (2.4 * r, 2.4 * r, 4.0 * r), pose, DRUM, BONES)
    return Shape(i, "sphere", (1.6 * r,), pose, DRUM, BONES)


def _along(start: Array, end: Array) -> Array:
    """A pose in the middle of two points whose z leads from one to the other."""
    z = (end - start) / length(end - start)
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= length(x)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = np.column_stack([x, np.cross(z, x), z]), (start + end) / 2
    return pose


def _inertias(tree: Tree, reach: float) -> Iterator[Shape]:
    for i, link in enumerate(tree.links):
        found = ellipsoid(link.inertia, i, MASS, INERTIA, np.eye(4), 0.006 * reach)
        if found is not None:
            yield found


def ellipsoid(
    body: Any, link: int, rgba: Rgba, layer: str, at: Array, least: float = 1e-4
) -> Shape | None:
    """The ellipsoid of even density with a body's inertia; none of a body without mass.

    The second moment of an ellipsoid about its centre is ``m/5 diag(a²)``, a its half axes.
    """
    m = float(body.m)
    if m <= 0:
        return None
    com = np.array(list(body.h)) / m
    xx, xy, xz, yy, yz, zz = body.second
    about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * np.outer(com, com)
    values, axes = principal(about_com)
    half = np.sqrt(np.clip(5 * values / m, 0, None)).clip(least)
    axes[:, 0] *= np.sign(determinant(axes))  # right-handed
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = axes, com
    a, b, c = half.tolist()
    return Shape(link, "ellipsoid", (a, b, c), product(at, pose), rgba, layer)


def _axes(bones: Skeleton) -> Iterator[Shape]:
    """An arrow along the axis of each joint that has one."""
    for i, link in enumerate(bones.tree.links):
        if scene.KINDS[type(link.joint)] in WITH_AXIS:
            pose = np.eye(4)
            pose[:3, :3] = _turned_to(np.array(link.axis), bones.tree, i)
            pose[:3, 3] = bones.nodes[i]
            r = bones.radius(i)
            size = (0.22 * r, max(5.5 * r, 0.09 * bones.reach))
            yield Shape(i, "arrow", size, pose, AXIS, AXES)


def _turned_to(axis: Array, tree: Tree, i: int) -> Array:
    """Axes whose z is a joint's axis, of which the tree may have the opposite in its frame."""
    described = product(tree.joint_frames[i].rotation, axis)
    flip = np.diag([1.0, -1.0, -1.0])
    return flip if described[2] < 0 else np.eye(3)
