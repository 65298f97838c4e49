"""A `pinocchio.Model` in memory -> description, read through its attributes: nothing is imported.

| Pinocchio joint | here |
|---|---|
| RX, RY, RZ, RevoluteUnaligned | revolute |
| RUBX, RUBY, RUBZ, RevoluteUnboundedUnaligned | continuous: an angle, not its cosine and sine |
| PX, PY, PZ, PrismaticUnaligned | prismatic |
| HX, HY, HZ, HelicalUnaligned | helical |
| Universal, Planar, Spherical, FreeFlyer | universal, planar, spherical, free |
| Composite, SphericalZYX, Translation, a Universal without a right angle | its parts, with links without mass between |
| Mimic (of a revolute or prismatic joint) | the joint, following another |

Ellipsoid joints are refused by name.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from linkwise.errors import Where
from linkwise.io.poses import (
    body_inertia,
    check_finite,
    not_negative,
    rotor_inertia,
    shared_damping,
    shared_number,
)
from linkwise.model.description import (
    FrameDescription,
    JointDescription,
    Limits,
    LinkDescription,
    Mimic,
    Pose,
    RobotDescription,
    Triple,
)
from linkwise.model.values import as_triple, at_right_angle, pose_of, unit

UNIVERSE = 0
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
AXES = {"X": X, "Y": Y, "Z": Z}
PREFIX = "JointModel"

# kinds of one axis, without the letter of that axis
ONE_AXIS = {
    "R": "revolute",
    "RevoluteUnaligned": "revolute",
    "RUB": "continuous",
    "RevoluteUnboundedUnaligned": "continuous",
    "P": "prismatic",
    "PrismaticUnaligned": "prismatic",
    "H": "helical",
    "HelicalUnaligned": "helical",
}
SEVERAL = {"FreeFlyer": "free", "Spherical": "spherical", "Planar": "planar"}
CHAINS = {
    "SphericalZYX": ("revolute", (Z, Y, X)),
    "Translation": ("prismatic", (X, Y, Z)),
}
LIMITED = ("revolute", "prismatic", "helical")


def describe_pinocchio(model: Any, name: str = "") -> RobotDescription:
    """Describe a Pinocchio model; links are named by its body frames, else by their joint."""
    name = name or str(model.name) or "robot"
    whole = Where(f"<pinocchio.Model {name!r}>")
    links = _link_names(model)
    taken = set(links)
    out_links = [LinkDescription(links[UNIVERSE], where=whole)]
    out_joints: list[JointDescription] = []
    for i in range(1, int(model.njoints)):
        where = Where(whole.path, None, f'<joint name="{model.names[i]}">')
        place, body = model.jointPlacements[i], model.inertias[i]
        check_finite(where, ("rotation", place.rotation), ("translation", place.translation))
        check_finite(where, ("mass", body.mass), ("lever", body.lever), ("inertia", body.inertia))
        parts = _joints(model, i, links, where)
        taken.update(part.child for part in parts)
        out_joints += parts
        out_links += [LinkDescription(part.child, where=where) for part in parts[:-1]]
        out_links.append(LinkDescription(links[i], _inertia(body), where=where))
    return RobotDescription(
        name,
        tuple(out_links),
        tuple(out_joints),
        as_triple(model.gravity.linear),
        whole,
        links[UNIVERSE],
        tuple(_frames(model, links, {*taken, *(joint.name for joint in out_joints)})),
    )


# --- joints --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """One joint of those that a joint of Pinocchio is made of."""

    kind: str
    placement: Any  # after the part before it; None where there is nothing between
    q: int  # where its numbers start in Pinocchio's q and v
    v: int
    nv: int = 1
    axis: Triple = Z
    second_axis: Triple = X
    pitch: float = 0.0


def _joints(model: Any, i: int, links: list[str], where: Where) -> list[JointDescription]:
    """A joint, or its parts one after another; the last one moves the joint's body."""
    name, parent, child = str(model.names[i]), links[int(model.parents[i])], links[i]
    whole = JointDescription(name, "", parent, child, _pose(model.jointPlacements[i]), where=where)
    if _word(model.joints[i]) == "Mimic":
        return [_mimic(model, i, whole)]
    parts = list(_parts(model.joints[i], model.jointPlacements[i], where))
    if len(parts) == 1:
        return [_described(model, parts[0], whole)]
    out = []
    for k, part in enumerate(parts, 1):
        child = links[i] if k == len(parts) else f"{name}/{k}"
        at = replace(whole, name=f"{name}/{k}", parent=parent, child=child)
        out.append(_described(model, part, at))
        parent = child
    return out


def _word(joint: Any) -> str:
    return str(joint.shortname()).removeprefix(PREFIX)


def _parts(joint: Any, placement: Any, where: Where) -> Iterator[_Part]:
    """Joints of the kinds that linkwise has, in the order in which they act."""
    word, own, q, v = _word(joint), _extract(joint), int(joint.idx_q), int(joint.idx_v)
    if word == "Composite":
        for sub, between in zip(own.joints, own.jointPlacements, strict=True):
            yield from _parts(sub, between if placement is None else placement * between, where)
            placement = None
    elif word in CHAINS:
        kind, axes = CHAINS[word]
        yield from _chain(kind, axes, placement, q, v)
    elif word == "Universal":
        first, second = unit(own.axis1), unit(own.axis2)
        if at_right_angle(first, second):
            yield _Part("universal", placement, q, v, 2, first, second)
        else:
            yield from _chain("revolute", (first, second), placement, q, v)
    elif word in SEVERAL:
        yield _Part(SEVERAL[word], placement, q, v, int(joint.nv))
    else:
        yield _one_axis(joint, word, placement, where)


def _chain(kind: str, axes: tuple[Triple, ...], placement: Any, q: int, v: int) -> Iterator[_Part]:
    """Joints of one axis each, all in one place."""
    for k, axis in enumerate(axes):
        yield _Part(kind, placement if k == 0 else None, q + k, v + k, axis=axis)


def _one_axis(joint: Any, word: str, placement: Any, where: Where) -> _Part:
    letter = word[-1] if word[-1] in AXES and word[:-1] in ONE_AXIS else ""
    stem = word.removesuffix(letter)
    if stem not in ONE_AXIS:
        raise where.error(
            f"a {PREFIX}{word}; expected a revolute, prismatic, helical, universal, planar, "
            "spherical, free-flying, translation, composite or mimic joint"
        )
    kind, own = ONE_AXIS[stem], _extract(joint)
    axis = AXES[letter] if letter else _axis(joint, own)
    pitch = float(own.pitch) if kind == "helical" else 0.0
    return _Part(kind, placement, int(joint.idx_q), int(joint.idx_v), axis=axis, pitch=pitch)


def _extract(joint: Any) -> Any:
    return joint.extract() if hasattr(joint, "extract") else joint


def _axis(joint: Any, own: Any) -> Triple:
    """The axis of a joint that is not along x, y or z; from its motion where it does not say."""
    return unit(own.axis if hasattr(own, "axis") else np.array(joint.createData().S).ravel()[3:])


def _described(model: Any, part: _Part, whole: JointDescription) -> JointDescription:
    """A part with its numbers: rotor inertia, damping, friction and limits."""
    v, where = slice(part.v, part.v + part.nv), whole.where
    friction = _either(model, "upperDryFrictionLimit", "friction")
    return replace(
        whole,
        kind=part.kind,
        origin=Pose() if part.placement is None else _pose(part.placement),
        axis=part.axis,
        second_axis=part.second_axis,
        pitch=part.pitch,
        limits=_limits(model, part),
        armature=_armature(model.armature[v], part.kind, where),
        rotor_axes="link" if part.kind == "planar" else "",
        damping=shared_damping(where, model.damping[v]),
        friction=0.0 if friction is None else shared_number(where, "friction", friction[v]),
    )


def _either(model: Any, new: str, old: str) -> Any:
    """A field of the model under its name in Pinocchio 4, or the one before."""
    found = getattr(model, new, None)
    return getattr(model, old, None) if found is None else found


def _limits(model: Any, part: _Part) -> Limits:
    v = slice(part.v, part.v + part.nv)
    velocity = _least(_either(model, "upperVelocityLimit", "velocityLimit")[v])
    effort = _least(_either(model, "upperEffortLimit", "effortLimit")[v])
    if part.kind not in LIMITED:
        return Limits(velocity=velocity, effort=effort)
    lower, upper = model.lowerPositionLimit[part.q], model.upperPositionLimit[part.q]
    return Limits(_open(float(lower)), _open(float(upper)), velocity, effort)


def _open(limit: float) -> float:
    """Pinocchio writes no limit as infinity or as the largest float."""
    return limit if abs(limit) < 1e300 else float(np.copysign(inf, limit))


def _least(values: Any) -> float:
    """The tightest limit of a joint; Pinocchio has one per axis, and 0 where nobody set one."""
    least = float(np.min(values))
    return _open(least) if least > 0.0 else inf


def _armature(values: Any, kind: str, where: Where) -> float | tuple[float, ...]:
    own = not_negative(where, "armature", values)
    if kind == "planar" and own[0] != own[1]:
        raise where.error(
            f"armature {own.tolist()} of a planar joint differs between the link's axes, and "
            "changes the mass matrix as the link turns; expected one number for both"
        )
    return rotor_inertia(own, kind)


def _mimic(model: Any, i: int, described: JointDescription) -> JointDescription:
    """A joint that follows; Pinocchio says what it does, ``scaling S``, not what it is."""
    joint = model.joints[i]
    own = _extract(joint)
    scaling, offset = float(own.scaling), float(own.offset)
    data = joint.createData()
    S = np.array(data.S).ravel()
    if scaling == 0.0 or not S.any():
        raise described.where.error(
            f"a mimic joint with scaling {scaling:g} whose own kind cannot be read; expected a "
            "revolute or prismatic one, and a scaling that is not zero"
        )
    joint.calc(data, np.full(model.nq, 0.3))
    linear, angular = S[:3] / scaling, S[3:] / scaling
    slides = bool(np.any(data.M.translation))
    if angular.any() and (slides or linear.any()):
        raise described.where.error("a helical mimic joint; expected a revolute or prismatic one")
    position = list(model.mimicking_joints).index(i)
    driver = str(model.names[int(model.mimicked_joints[position])])
    return replace(
        described,
        kind="continuous" if angular.any() else "prismatic",
        axis=unit(angular if angular.any() else linear),
        mimic=Mimic(driver, scaling, offset),
    )


# --- bodies and frames ---------------------------------------------------------------------


def _inertia(inertia: Any) -> Any:
    return body_inertia(float(inertia.mass), inertia.lever, np.array(inertia.inertia))


def _pose(placement: Any) -> Pose:
    return pose_of(placement.rotation, np.asarray(placement.translation).ravel())


def _link_names(model: Any) -> list[str]:
    """A name for each joint's body: that of a body frame in the same place, or the joint's."""
    names = [str(name) for name in model.names]
    taken = set(names)
    found: dict[int, str] = {}
    for frame in model.frames:
        joint, name = int(frame.parentJoint), str(frame.name)
        if str(frame.type) == "BODY" and _pose(frame.placement) == Pose():
            if joint not in found and (name not in taken or name == names[joint]):
                found[joint] = name
                taken.add(name)
    return [found.get(i, name) for i, name in enumerate(names)]


def _frames(model: Any, links: list[str], taken: set[str]) -> Iterator[FrameDescription]:
    """Every other frame with a name of its own."""
    for frame in model.frames:
        name = str(frame.name)
        if name in taken or str(frame.type) == "JOINT":
            continue
        taken.add(name)
        yield FrameDescription(name, links[int(frame.parentJoint)], _pose(frame.placement))
