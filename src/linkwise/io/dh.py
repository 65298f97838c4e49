"""Denavit-Hartenberg tables -> descriptions, standard and modified (Craig) convention."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from linkwise.errors import RobotFileError, Where
from linkwise.model import values
from linkwise.model.description import JointDescription, LinkDescription, Pose, RobotDescription
from linkwise.model.frames import Array, tidy_rotation
from linkwise.model.joints import FIXED
from linkwise.spatial.elementary import sincos
from linkwise.spatial.matrices import product


@dataclass(frozen=True)
class DHRow:
    """One joint of a Denavit-Hartenberg table and its link; in m, rad and kg.

    ``theta`` (revolute) or ``d`` (prismatic) is the constant added to the joint's variable. The
    inertia in kg m² is about the centre of mass, in link axes: (xx, yy, zz) or (xx, xy, xz, yy, yz,
    zz). Rotor inertia is ``armature + gear² motor_inertia``.

    >>> import linkwise as lw
    >>> robot = lw.from_dh([lw.DHRow(a=0.5, mass=2.0), lw.DHRow(a=0.4, mass=1.0)], "standard")
    >>> robot.forward_kinematics([0.0, 0.0], "link2")[0, 3].item()
    0.9
    """

    a: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    kind: str = "revolute"
    name: str = ""
    mass: float = 0.0
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inertia: tuple[float, ...] = (0.0,) * 6
    armature: float = 0.0
    motor_inertia: float = 0.0
    gear: float = 1.0
    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf


Row = DHRow | Mapping[str, Any]
CONVENTIONS = ("standard", "modified")
KINDS = ("revolute", "prismatic")


def describe_dh(rows: Sequence[Row], convention: str, name: str) -> RobotDescription:
    """Turn a table into a description: links ``base``, ``link1`` ... ``linkN``."""
    table = Where(f"<DH table {values.name('from_dh: name', name)!r}>")
    if convention not in CONVENTIONS:
        raise table.error(f"convention {convention!r}; expected 'standard' or 'modified'")
    if not isinstance(rows, Iterable):
        raise table.error(f"rows is {rows!r}; expected one DHRow or mapping per joint")
    rows = list(rows)
    if not rows:
        raise table.error("no rows; expected one per joint")
    links = [LinkDescription("base", where=table)]
    joints: list[JointDescription] = []
    for i, row in enumerate(rows, 1):
        with _located(Where(table.path, i, f"row {i}")) as where:
            parts = _standard if convention == "standard" else _modified
            new_links, new_joints = parts(i, _record(row), links[-1].name, where)
        links += new_links
        joints += new_joints
    _check_names(joints)
    return RobotDescription(name, tuple(links), tuple(joints), where=table, base="base")


@contextmanager
def _located(where: Where) -> Iterator[Where]:
    """Within the block, the error for a value says which row of which table the value is in."""
    try:
        yield where
    except RobotFileError:
        raise
    except ValueError as problem:
        raise where.error(str(problem)) from None


def _check_names(joints: Sequence[JointDescription]) -> None:
    seen: dict[str, Where] = {}
    for joint in joints:
        if joint.name in seen:
            first = seen[joint.name].element
            raise joint.where.error(f"name {joint.name!r} is {first}'s; expected them to differ")
        seen[joint.name] = joint.where


def _record(row: Row) -> DHRow:
    """A row with known columns, and words where there should be words."""
    known = [field.name for field in fields(DHRow)]
    if isinstance(row, Mapping):
        for key in row:
            if key not in known:
                raise ValueError(f"unknown column {key!r}; expected some of {', '.join(known)}")
        row = DHRow(**row)
    if not isinstance(row, DHRow):
        raise ValueError(f"a {type(row).__name__}; expected a DHRow or a mapping of its columns")
    if row.kind not in KINDS:
        raise ValueError(f"kind {row.kind!r}; expected 'revolute' or 'prismatic'")
    if not isinstance(row.name, str):
        raise ValueError(f"name is {row.name!r}; expected text")
    return row


Parts = tuple[list[LinkDescription], list[JointDescription]]


def _standard(i: int, row: DHRow, parent: str, where: Where) -> Parts:
    """``Rz(theta) Tz(d) Tx(a) Rx(alpha)``: the joint turns first, the link's frame ends it."""
    turn, lift, reach, tilt = _moves(row)
    axis, link = LinkDescription(f"axis{i}", where=where), _link(i, row, where)
    end = _pose(product(lift, reach, tilt))
    mount = JointDescription(f"end{i}", FIXED, axis.name, link.name, end, where=where)
    return [axis, link], [_joint(i, row, parent, axis.name, turn, where), mount]


def _modified(i: int, row: DHRow, parent: str, where: Where) -> Parts:
    """``Rx(alpha) Tx(a) Rz(theta) Tz(d)``: the link's frame is on its joint's axis."""
    turn, lift, reach, tilt = _moves(row)
    link = _link(i, row, where)
    place = product(tilt, reach, lift, turn)
    return [link], [_joint(i, row, parent, link.name, place, where)]


def _moves(row: DHRow) -> tuple[Array, Array, Array, Array]:
    """``Rz(theta), Tz(d), Tx(a), Rx(alpha)`` as 4 by 4 matrices."""
    theta, d = values.number("theta", row.theta), values.number("d", row.d)
    a, alpha = values.number("a", row.a), values.number("alpha", row.alpha)
    return _turn(0, 1, theta), _shift(0.0, 0.0, d), _shift(a, 0.0, 0.0), _turn(1, 2, alpha)


def _link(i: int, row: DHRow, where: Where) -> LinkDescription:
    body = values.body("", row.mass, row.com, row.inertia)
    return LinkDescription(f"link{i}", body, where=where)


def _joint(
    i: int, row: DHRow, parent: str, child: str, place: Array, where: Where
) -> JointDescription:
    armature = values.positive("armature", row.armature)
    motor = values.positive("motor_inertia", row.motor_inertia)
    gear = values.number("gear", row.gear)
    return JointDescription(
        name=row.name or f"joint{i}",
        kind=row.kind,
        parent=parent,
        child=child,
        origin=_pose(place),
        limits=values.limits("", (row.lower, row.upper), row.velocity, row.effort),
        armature=armature + gear * gear * motor,
        where=where,
    )


def _turn(j: int, k: int, angle: float) -> Array:
    """The turn that takes axis ``j`` towards axis ``k``; a right angle is exact."""
    s, c = sincos(angle)
    T = np.eye(4)
    T[j, j], T[j, k], T[k, j], T[k, k] = c, -s, s, c
    T[:3, :3] = tidy_rotation(T[:3, :3])
    return T


def _shift(x: float, y: float, z: float) -> Array:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def _pose(T: Array) -> Pose:
    return values.pose_of(T[:3, :3], T[:3, 3])
