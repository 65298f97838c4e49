"""Denavit-Hartenberg tables -> descriptions, standard and modified (Craig) convention."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from linkwise.errors import Where
from linkwise.model.description import (
    LARGEST,
    BodyInertia,
    JointDescription,
    Limits,
    LinkDescription,
    Pose,
    RobotDescription,
)
from linkwise.model.frames import Array, tidy_rotation


@dataclass(frozen=True)
class DHRow:
    """One joint and its link. Lengths in m, angles in rad, SI units throughout.

    ``theta`` (revolute) or ``d`` (prismatic) is the constant added to the joint's variable. The
    inertia is about the centre of mass, in link axes: (xx, yy, zz) or (xx, xy, xz, yy, yz, zz).
    Rotor inertia is ``armature + gear² motor_inertia``.
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
UNBOUNDED = ("lower", "upper", "velocity", "effort")


def describe_dh(
    rows: Sequence[Row], convention: str, name: str, gravity: Sequence[float]
) -> RobotDescription:
    """Turn a table into a description: links ``base``, ``link1`` ... ``linkN``."""
    table = Where(f"<DH table {name!r}>")
    if convention not in CONVENTIONS:
        raise table.error(f"convention {convention!r}; expected 'standard' or 'modified'")
    rows = list(rows)
    if not rows:
        raise table.error("no rows; expected one per joint")
    checked = [_row(row, Where(table.path, i + 1, f"row {i + 1}")) for i, row in enumerate(rows)]
    links = [LinkDescription("base", where=table)]
    joints: list[JointDescription] = []
    for i, row in enumerate(checked):
        where = Where(table.path, i + 1, f"row {i + 1}")
        parts = _standard if convention == "standard" else _modified
        new_links, new_joints = parts(i + 1, row, links[-1].name, where)
        links += new_links
        joints += new_joints
    _check_names(joints)
    return RobotDescription(
        name, tuple(links), tuple(joints), _vector(gravity, 3, "gravity", table), table, "base"
    )


def _check_names(joints: Sequence[JointDescription]) -> None:
    seen: dict[str, Where] = {}
    for joint in joints:
        if joint.name in seen:
            first = seen[joint.name].element
            raise joint.where.error(f"name {joint.name!r} is {first}'s; expected them to differ")
        seen[joint.name] = joint.where


def _standard(
    i: int, row: DHRow, parent: str, where: Where
) -> tuple[list[LinkDescription], list[JointDescription]]:
    """``Rz(theta) Tz(d) Tx(a) Rx(alpha)``: the joint turns first, the link's frame ends it."""
    end = _compose(_shift(0.0, 0.0, row.d), _shift(row.a, 0.0, 0.0), _about_x(row.alpha))
    axis_link = LinkDescription(f"axis{i}", where=where)
    link = LinkDescription(f"link{i}", _inertia(row), where=where)
    joint = _joint(i, row, parent, axis_link.name, _about_z(row.theta), where)
    mount = JointDescription(f"end{i}", "fixed", axis_link.name, link.name, _pose(end), where=where)
    return [axis_link, link], [joint, mount]


def _modified(
    i: int, row: DHRow, parent: str, where: Where
) -> tuple[list[LinkDescription], list[JointDescription]]:
    """``Rx(alpha) Tx(a) Rz(theta) Tz(d)``: the link's frame is on its joint's axis."""
    place = _compose(
        _about_x(row.alpha), _shift(row.a, 0.0, 0.0), _shift(0.0, 0.0, row.d), _about_z(row.theta)
    )
    link = LinkDescription(f"link{i}", _inertia(row), where=where)
    return [link], [_joint(i, row, parent, link.name, place, where)]


def _joint(
    i: int, row: DHRow, parent: str, child: str, place: Array, where: Where
) -> JointDescription:
    return JointDescription(
        name=row.name or f"joint{i}",
        kind=row.kind,
        parent=parent,
        child=child,
        origin=_pose(place),
        limits=Limits(row.lower, row.upper, row.velocity, row.effort),
        armature=row.armature + row.gear**2 * row.motor_inertia,
        where=where,
    )


def _inertia(row: DHRow) -> BodyInertia:
    tensor = row.inertia
    if len(tensor) == 3:
        tensor = (tensor[0], 0.0, 0.0, tensor[1], 0.0, tensor[2])
    xx, xy, xz, yy, yz, zz = tensor
    return BodyInertia(row.mass, row.com, (xx, xy, xz, yy, yz, zz))


def _row(row: Row, where: Where) -> DHRow:
    """A row with every number checked."""
    known = [field.name for field in fields(DHRow)]
    if isinstance(row, Mapping):
        for key in row:
            if key not in known:
                raise where.error(f"unknown column {key!r}; expected some of {', '.join(known)}")
        row = DHRow(**row)
    if not isinstance(row, DHRow):
        raise where.error(f"a {type(row).__name__}; expected a DHRow or a mapping of its columns")
    if row.kind not in KINDS:
        raise where.error(f"kind {row.kind!r}; expected 'revolute' or 'prismatic'")
    if not isinstance(row.name, str):
        raise where.error(f"name is {row.name!r}; expected text")
    values: dict[str, Any] = {"kind": row.kind, "name": row.name}
    for key in known:
        if key in ("kind", "name", "com", "inertia"):
            continue
        values[key] = _number(getattr(row, key), key, where, unbounded=key in UNBOUNDED)
    values["com"] = _vector(row.com, 3, "com", where)
    values["inertia"] = _vector(row.inertia, (3, 6), "inertia", where)
    return _signs(DHRow(**values), where)


def _signs(row: DHRow, where: Where) -> DHRow:
    for key in ("mass", "armature", "motor_inertia", "velocity", "effort"):
        if getattr(row, key) < 0.0:
            raise where.error(f"{key} is {getattr(row, key):g}; expected zero or more")
    if row.lower > row.upper:
        raise where.error(f"lower {row.lower:g} exceeds upper {row.upper:g}")
    return row


def _number(value: Any, name: str, where: Where, unbounded: bool = False) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise where.error(f"{name} is {value!r}; expected a number") from None
    if math.isnan(number) or (math.isinf(number) and not unbounded):
        raise where.error(f"{name} is {number}; expected a finite number")
    if abs(number) > LARGEST and not unbounded:
        raise where.error(f"{name} is {number:g}; expected at most {LARGEST:g}")
    return number


def _vector(values: Any, sizes: int | tuple[int, ...], name: str, where: Where) -> Any:
    sizes = (sizes,) if isinstance(sizes, int) else sizes
    expected = " or ".join(map(str, sizes))
    try:
        values = tuple(values)
    except TypeError:
        raise where.error(f"{name} is {values!r}; expected {expected} numbers") from None
    if len(values) not in sizes:
        raise where.error(f"{name} has {len(values)} numbers; expected {expected}")
    return tuple(_number(x, name, where) for x in values)


def _about_x(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1.0, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def _about_z(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1]])


def _shift(x: float, y: float, z: float) -> Array:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def _compose(*parts: Array) -> Array:
    whole = np.eye(4)
    for part in parts:
        turn = np.eye(4)
        turn[:3, :3] = tidy_rotation(part[:3, :3])
        turn[:3, 3] = part[:3, 3]
        whole = whole @ turn
    return whole


def _pose(T: Array) -> Pose:
    R = tidy_rotation(T[:3, :3])
    rows = [(float(a), float(b), float(c)) for a, b, c in R]
    x, y, z = (float(v) for v in T[:3, 3])
    return Pose((rows[0], rows[1], rows[2]), (x, y, z))
