"""`Builder`: a robot written in Python, link by link and joint by joint."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Unpack

from numpy.typing import ArrayLike

from linkwise.engine.calls import show_options
from linkwise.errors import Where, quote
from linkwise.io.rpy import rpy_rotation
from linkwise.load import USUAL, Options, checked, make
from linkwise.model import edit, values
from linkwise.model.description import (
    FrameDescription,
    Geometry,
    JointDescription,
    Limits,
    LinkDescription,
    Mimic,
    Pose,
    RobotDescription,
    Triple,
)
from linkwise.model.joints import FIXED, JOINTS
from linkwise.model.structure import mended_tree, resolved_mimics
from linkwise.robot import Robot

KINDS = (FIXED, *JOINTS)
BASE = "base"  # a parent of this name need not be declared
ZEROS = (0.0, 0.0, 0.0)


class Builder:
    """A robot written in Python, link by link and joint by joint.

    >>> import linkwise as lw
    >>> b = lw.Builder("pendulum")
    >>> b = b.link("rod", mass=1.0, com=(0.0, 0.0, -0.5), inertia=(0.1, 0.1, 0.01))
    >>> b = b.joint("pivot", "revolute", parent="base", child="rod", axis=(0.0, 1.0, 0.0))
    >>> b.build().nv
    1

    Links and joints come in any order; `build` checks that they make one tree.
    Every method returns the builder. Values are checked when given, names when built. SI units;
    ``gravity`` (3) is in m/s².
    """

    def __init__(self, name: str = "robot", *, gravity: ArrayLike = (0.0, 0.0, -9.81)) -> None:
        self._name = values.name("builder: name", name)
        self._gravity = values.triple("gravity", gravity)
        self._links: list[LinkDescription] = []
        self._joints: list[JointDescription] = []
        self._frames: list[FrameDescription] = []

    def __repr__(self) -> str:
        return f"<Builder {self._name!r}: {len(self._links)} links, {len(self._joints)} joints>"

    def link(
        self,
        name: str,
        *,
        mass: float | None = None,
        com: ArrayLike = ZEROS,
        inertia: ArrayLike = ZEROS,
        visuals: Iterable[Geometry] = (),
        collisions: Iterable[Geometry] = (),
    ) -> Builder:
        """Add a link of ``mass`` kg with its centre of mass ``com`` (3) in m, in the link's axes.

        ``inertia`` in kg m² is about the centre of mass, in the link's axes: (xx, yy, zz), (xx, xy,
        xz, yy, yz, zz) or (3, 3). A link without mass is a mere frame. ``visuals`` and
        ``collisions`` are shapes for viewers.
        """
        values.name("link: name", name)
        body = None if mass is None else values.body(f"link {name!r}", mass, com, inertia)
        shapes = _shapes(f"link {name!r}: visuals", visuals)
        solids = _shapes(f"link {name!r}: collisions", collisions)
        self._links.append(
            LinkDescription(name, body, shapes, solids, self._where(f"link {quote(name)}"))
        )
        return self

    def joint(
        self,
        name: str,
        kind: str,
        *,
        parent: str,
        child: str,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        xyz: ArrayLike = ZEROS,
        rpy: ArrayLike = ZEROS,
        limits: Sequence[float] | Limits = values.UNBOUNDED,
        velocity: float = math.inf,
        effort: float = math.inf,
        armature: float = 0.0,
        damping: float = 0.0,
        friction: float = 0.0,
        mimic: str | tuple[str, float, float] | None = None,
        second_axis: ArrayLike = (1.0, 0.0, 0.0),
        pitch: float = 0.0,
    ) -> Builder:
        """Add a joint that carries the link ``child`` on the link ``parent``.

        The joint's frame is its child's, at ``xyz`` (3) in m and ``rpy`` (3) in rad in the parent's
        frame. ``kind``: fixed, revolute, continuous, prismatic, helical (``pitch`` in m/rad),
        universal (``second_axis``), planar, spherical or free. ``axis`` (3) is in the joint's
        frame; ``limits`` are (lower, upper) in rad or m, ``velocity`` and ``effort`` the largest
        rate and torque; ``armature`` is the rotor inertia, ``damping`` and ``friction`` are viscous
        and Coulomb friction. ``mimic`` names the joint to follow, or is (joint, multiplier,
        offset).
        """
        what = f"joint {values.name('joint: name', name)!r}"
        if kind not in KINDS:
            raise ValueError(f"{what}: kind is {kind!r}; expected one of {', '.join(KINDS)}")
        for end, link in (("parent", parent), ("child", child)):
            values.name(f"{what}: {end}", link)
        first, second = _axes(what, kind, axis, second_axis)
        follows = None if mimic is None else _mimic(what, mimic)
        self._joints.append(
            JointDescription(
                name, kind, parent, child, _pose(what, xyz, rpy), first, second,
                values.number(f"{what}: pitch", pitch), follows,
                values.limits(what, limits, velocity, effort),
                values.positive(f"{what}: armature", armature),
                values.positive(f"{what}: damping", damping),
                values.positive(f"{what}: friction", friction),
                self._where(f"joint {quote(name)}"),
            )
        )  # fmt: skip
        return self

    def frame(
        self, name: str, link: str, *, xyz: ArrayLike = ZEROS, rpy: ArrayLike = ZEROS
    ) -> Builder:
        """Add a named frame on a link, at ``xyz`` in m and ``rpy`` in rad, such as a tool point."""
        what = f"frame {values.name('frame: name', name)!r}"
        self._frames.append(FrameDescription(name, link, _pose(what, xyz, rpy)))
        return self

    def describe(self) -> RobotDescription:
        """The description of what was added so far, checked to be one tree of links."""
        where, links = self._where(), list(self._links)
        declared = {link.name for link in links}
        if BASE not in declared and any(joint.parent == BASE for joint in self._joints):
            links.insert(0, LinkDescription(BASE, where=where))
        if not links:
            raise where.error("has no link; expected at least one")
        base, *_ = mended_tree(links, self._joints)
        joints = resolved_mimics(self._joints)
        robot = RobotDescription(self._name, tuple(links), joints, self._gravity, where, base)
        for frame in self._frames:
            robot = edit.with_frame(robot, frame.name, frame.link, frame.origin)
        return robot

    def build(self, **options: Unpack[Options]) -> Robot:
        """The robot; options as in `load`."""
        return make(self.describe, checked("build", options))

    def _where(self, element: str = "") -> Where:
        return Where(f"<builder {self._name!r}>", None, element)


show_options(Builder.build, Options, USUAL)


def _axes(what: str, kind: str, axis: ArrayLike, second: ArrayLike) -> tuple[Triple, Triple]:
    """The axis, and the second of a universal joint; the defaults where there is none."""
    first = values.direction(f"{what}: axis", axis)
    if kind in (FIXED, "spherical", "free"):
        first = JointDescription.axis
    if kind != "universal":
        return first, JointDescription.second_axis
    other = values.direction(f"{what}: second_axis", second)
    if not values.at_right_angle(first, other):
        raise ValueError(
            f"{what}: second_axis is {second!r}; expected a right angle to axis {axis!r}"
        )
    return first, other


def _mimic(what: str, mimic: str | tuple[str, float, float]) -> Mimic:
    parts = (mimic, 1.0, 0.0) if isinstance(mimic, str) else mimic
    if not isinstance(parts, tuple | list) or len(parts) != 3 or not isinstance(parts[0], str):
        raise ValueError(
            f"{what}: mimic is {mimic!r}; expected a joint's name, or (name, multiplier, offset)"
        )
    driver, multiplier, offset = parts
    return Mimic(
        str(driver),
        values.number(f"{what}: mimic multiplier", multiplier),
        values.number(f"{what}: mimic offset", offset),
    )


def _shapes(what: str, shapes: Iterable[Geometry]) -> tuple[Geometry, ...]:
    found = tuple(shapes) if isinstance(shapes, Iterable) else (shapes,)
    for shape in found:
        if not isinstance(shape, Geometry):
            raise TypeError(f"{what} has {shape!r}; expected linkwise.model.description.Geometry")
    return found


def _pose(what: str, xyz: ArrayLike, rpy: ArrayLike) -> Pose:
    angles = values.triple(f"{what}: rpy", rpy)
    return Pose(rpy_rotation(*angles), values.triple(f"{what}: xyz", xyz))
