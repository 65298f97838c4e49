"""The robot as the sweeps see it: moving links, parents before children."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from linkwise.model.description import Limits
from linkwise.model.joints import Joint
from linkwise.spatial import Force, Motion, RigidInertia, Scalar, Transform, Vec3

UNLIMITED = Limits()
BASE = -1  # index of the link that does not move


@dataclass(frozen=True)
class Link:
    """A moving body, its inboard joint, and its constants in its own frame."""

    name: str
    joint_name: str
    parent: int
    joint: Joint
    placement: Transform  # parent's frame -> joint frame at rest
    inertia: RigidInertia
    armature: tuple[float, ...]
    q_index: int
    v_index: int
    limits: Limits = UNLIMITED
    damping: float = 0.0
    friction: float = 0.0
    mass: float = 0.0  # as described: regrouping moves inertia between links, not this number
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)  # as described, in the link's named frame
    kind: str = ""  # as described

    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Parent's frame -> this link's frame, at this link's configuration."""
        return self.placement.then(self.joint.transform(q))

    def motion(self, rates: Sequence[Scalar]) -> Motion:
        """``S rates``: motion across the joint."""
        total = Motion.zero()
        for column, rate in zip(self.joint.columns, rates, strict=True):
            total = total + column * rate
        return total

    def project(self, f: Force) -> tuple[Scalar, ...]:
        """``Sᵀ f``: the part of a wrench that the joint's motors feel."""
        return tuple(column.dot(f) for column in self.joint.columns)


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a link: origin and axes in the link's frame."""

    link: int
    origin: tuple[float, float, float]
    rotation: tuple[tuple[float, float, float], ...]  # rows; frame axes -> link axes


@dataclass(frozen=True)
class Tree:
    """Links in order, gravity in base axes, and named frames."""

    links: tuple[Link, ...]
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    frames: dict[str, Frame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Hold the tree to its contract: parents first, slices in order."""
        nq = nv = 0
        for i, link in enumerate(self.links):
            if not BASE <= link.parent < i:
                raise ValueError(f"link {i}: parent {link.parent} must be in [-1, {i})")
            if (link.q_index, link.v_index) != (nq, nv):
                raise ValueError(f"link {i}: q and v slices must follow each other")
            nq, nv = nq + link.joint.nq, nv + link.joint.nv

    @cached_property
    def nq(self) -> int:
        """Numbers in a configuration."""
        return sum(link.joint.nq for link in self.links)

    @cached_property
    def nv(self) -> int:
        """Degrees of freedom."""
        return sum(link.joint.nv for link in self.links)

    def per_link_q(self, q: Sequence[Scalar]) -> list[Sequence[Scalar]]:
        """Split a configuration into each link's own numbers."""
        return [q[k.q_index : k.q_index + k.joint.nq] for k in self.links]

    def per_link_v(self, v: Sequence[Scalar]) -> list[Sequence[Scalar]]:
        """Split a joint-space vector into each link's own numbers."""
        return [v[k.v_index : k.v_index + k.joint.nv] for k in self.links]

    @cached_property
    def dof_parent(self) -> tuple[int, ...]:
        """For each degree of freedom, the next one toward the base (-1 at the base)."""
        last = [k.v_index + k.joint.nv - 1 for k in self.links]
        parents = []
        for k in self.links:
            inboard = last[k.parent] if k.parent != BASE else BASE
            parents += [inboard, *range(k.v_index, k.v_index + k.joint.nv - 1)]
        return tuple(parents)

    def path(self, link: int) -> list[int]:
        """Links from the base out to ``link``, both ends included."""
        links = []
        while link != BASE:
            links.append(link)
            link = self.links[link].parent
        return links[::-1]

    @cached_property
    def base_acceleration(self) -> Vec3:
        """Gravity enters as an upward acceleration of the base."""
        x, y, z = self.gravity
        return Vec3(0.0 - x, 0.0 - y, 0.0 - z)

    def without_gravity(self) -> Tree:
        """The same tree, weightless."""
        return replace(self, gravity=(0.0, 0.0, 0.0))

    def with_links(self, links: Sequence[Link]) -> Tree:
        """The same tree with other links."""
        return replace(self, links=tuple(links))

    @cached_property
    def digest(self) -> str:
        """Hash of structure, constants and gravity: equal digests mean equal programs."""
        text = repr(
            [
                [
                    k.parent,
                    k.joint.kind,
                    *map(float, k.placement.r),
                    *((t.axis, float(t.c), float(t.s)) for t in k.placement.turns),
                    float(k.inertia.m),
                    *map(float, k.inertia.h),
                    *map(float, k.inertia.second),
                    k.armature,
                ]
                for k in self.links
            ]
            + [self.gravity]
        )
        return hashlib.sha256(text.encode()).hexdigest()
