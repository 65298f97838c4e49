"""Links in tables: a robot of a million links as arrays, each link made when it is looked at."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from linkwise.model.description import IDENTITY
from linkwise.model.joints import Helical, Joint
from linkwise.model.tree import Follows, Frame, Link, LinkArrays, Whole
from linkwise.spatial import RigidInertia
from linkwise.spatial.matrices import added
from linkwise.spatial.records import leaves, mapped

Numbers = NDArray[np.float64]


def numbers(link: Link) -> tuple[Any, ...]:
    """Everything of a link that equations compute with, as a record."""
    follows = link.follows
    tie = (follows.multiplier, follows.offset) if follows else ()
    pitch = link.joint.pitch if isinstance(link.joint, Helical) else ()
    own = (link.rotor_turn, link.damping, link.friction)
    return (link.placement, link.inertia, link.armature, own, pitch, tie)


def with_numbers(link: Link, record: tuple[Any, ...]) -> Link:
    """The link with other numbers."""
    placement, inertia, armature, (turn, damping, friction), pitch, tie = record
    joint: Joint = Helical(pitch) if isinstance(link.joint, Helical) else link.joint
    follows = Follows(link.follows.link, *tie) if link.follows else None
    return replace(
        link, joint=joint, placement=placement, inertia=inertia, armature=armature,
        rotor_turn=turn, damping=damping, friction=friction, follows=follows,
    )  # fmt: skip


def _columns(link: Link, part: str) -> slice:
    """Which of a link's numbers are its inertia, or its joint's armature, damping or friction."""
    sizes = [len(leaves(record)) for record in numbers(link)]
    inertia, armature, own = sizes[0], sum(sizes[:2]), sum(sizes[:3])
    return {
        "inertia": slice(inertia, armature),
        "armature": slice(armature, own),
        "damping": slice(own + 1, own + 2),
        "friction": slice(own + 2, own + 3),
    }[part]


@dataclass(frozen=True)
class Kind:
    """Links that differ only in their numbers: one whose numbers do not count, and a row of numbers
    per link.
    """

    example: Link
    rows: Numbers


def _in_turn(rows: Numbers) -> Callable[[Any], Numbers]:
    """Gives the columns of a table, one after another."""
    columns = iter(rows.T)
    return lambda _: next(columns)


class LinkTable(LinkArrays):
    """Links of a few kinds; none of their joints follows another.

    ``kind_of`` says of which kind each link is; the rows of a kind are its links in order.
    """

    def __init__(
        self,
        kinds: Sequence[Kind],
        kind_of: Whole,
        parent: Whole,
        names: Callable[[int], tuple[str, str]],
    ) -> None:
        self.kinds, self.kind_of, self.parent, self._named = tuple(kinds), kind_of, parent, names
        if not ((parent >= -1) & (parent < np.arange(len(parent)))).all():
            raise ValueError("links: expected every parent before its children")
        self.row_of = np.empty(len(kind_of), np.int64)
        for k, kind in enumerate(self.kinds):
            own = np.flatnonzero(kind_of == k)
            if len(own) != len(kind.rows):
                raise ValueError(f"kind {k}: {len(kind.rows)} rows; expected {len(own)}")
            self.row_of[own] = np.arange(len(own))
        joints = [kind.example.joint for kind in self.kinds]
        q_sizes, v_sizes = (
            np.array([getattr(joint, n) for joint in joints], np.int64)[kind_of]
            for n in ("nq", "nv")
        )
        self.nq, self.nv = int(q_sizes.sum()), int(v_sizes.sum())
        self.q_index, self.v_index = np.cumsum(q_sizes) - q_sizes, np.cumsum(v_sizes) - v_sizes

    def __len__(self) -> int:
        return len(self.kind_of)

    @property
    def mass(self) -> float:
        """Of all links together."""
        return float(added(np.concatenate([np.ravel(body.m) for body in self.bodies()])))

    @property
    def geared_alike(self) -> bool:
        """Whether of each kind of joint all have rotors on the same columns."""
        rotors = [kind.rows[:, _columns(kind.example, "armature")] != 0.0 for kind in self.kinds]
        return all(bool((own == own[:1]).all()) for own in rotors)

    def bodies(self) -> Iterator[RigidInertia]:
        """The inertias of each kind of link, their numbers arrays."""
        for kind in self.kinds:
            rows = iter(kind.rows[:, _columns(kind.example, "inertia")].T)
            yield mapped(lambda _: next(rows), kind.example.inertia)  # noqa: B023 - used at once

    def of_joints(self, field: str) -> Numbers:
        """``"armature"``, ``"damping"`` or ``"friction"`` of each degree of freedom."""
        found = np.empty(self.nv)
        for k, kind in enumerate(self.kinds):
            starts, nv = self.v_index[self.kind_of == k], kind.example.joint.nv
            own = kind.rows[:, _columns(kind.example, field)]
            found[starts[:, None] + np.arange(nv)] = np.broadcast_to(own, (len(starts), nv))
        return found

    @property
    def digest(self) -> str:
        """Hash of the kinds of links, their numbers and their order."""
        found = hashlib.sha256(self.kind_of.tobytes() + self.parent.tobytes())
        for kind in self.kinds:
            turns = [getattr(turn, "axis", "matrix") for turn in kind.example.placement.turns]
            found.update(repr((kind.example.joint, turns)).encode() + kind.rows.tobytes())
        return found.hexdigest()

    def names(self, i: int) -> tuple[str, str]:
        """Of a link and its joint."""
        return self._named(i)

    def groups(self) -> Iterator[tuple[Whole, Link]]:
        """The links of each kind as one, whose numbers are arrays; and which they are."""
        for k, kind in enumerate(self.kinds):
            record = mapped(_in_turn(kind.rows), numbers(kind.example))
            yield np.flatnonzero(self.kind_of == k), with_numbers(kind.example, record)

    def first_of(self, kind: int) -> Link:
        """The first link of a kind."""
        return self[int(np.argmax(self.kind_of == kind))]

    @overload
    def __getitem__(self, i: int) -> Link: ...
    @overload
    def __getitem__(self, i: slice) -> tuple[Link, ...]: ...
    def __getitem__(self, i: int | slice) -> Link | tuple[Link, ...]:
        """One link, or some of them."""
        if isinstance(i, slice):
            return tuple(self[k] for k in range(*i.indices(len(self))))
        i = range(len(self))[i]
        kind = self.kinds[self.kind_of[i]]
        row = iter(kind.rows[self.row_of[i]].tolist())
        link = with_numbers(kind.example, mapped(lambda _: next(row), numbers(kind.example)))
        name, joint = self.names(i)
        return replace(
            link, name=name, joint_name=joint, parent=int(self.parent[i]), mass=link.inertia.m,
            q_index=int(self.q_index[i]), v_index=int(self.v_index[i]),
        )  # fmt: skip


class LinkFrames(Mapping[str, Frame]):
    """A frame per link, by its name and number, and a few others."""

    def __init__(self, count: int, stem: str, others: Mapping[str, Frame]) -> None:
        self._count, self._stem, self._others = count, stem, dict(others)

    def __getitem__(self, name: str) -> Frame:
        """A frame by its name."""
        if name in self._others:
            return self._others[name]
        number = name.removeprefix(self._stem)
        own = name.startswith(self._stem) and number.isdecimal()
        if own and len(number) <= len(str(self._count)):  # Python reads no number of any length
            if 1 <= int(number) <= self._count and number == str(int(number)):
                return Frame(int(number) - 1, (0.0, 0.0, 0.0), IDENTITY)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from (f"{self._stem}{i + 1}" for i in range(self._count))
        yield from self._others

    def __len__(self) -> int:
        return self._count + len(self._others)
