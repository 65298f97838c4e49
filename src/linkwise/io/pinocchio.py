"""A `pinocchio.Model` in memory -> description, read through its attributes: nothing is imported.

| Pinocchio joint | here |
|---|---|
| RX, RY, RZ, RevoluteUnaligned | revolute |
| RUBX, RUBY, RUBZ, RevoluteUnboundedUnaligned | continuous: an angle, not its cosine and sine |
| PX, PY, PZ, PrismaticUnaligned | prismatic |
| HX, HY, HZ, HelicalUnaligned | helical |
| Universal, Planar, Spherical, FreeFlyer | universal, planar, spherical, free |
| SphericalZYX, Translation | three revolute or prismatic joints with links without mass between |
| Mimic (of a revolute or prismatic joint) | the joint, following another |

Composite and Ellipsoid joints are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from linkwise.errors import Where
from linkwise.io.poses import body_inertia, check_finite, pose, triple, unit
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
        joint = _joint(model, i, links, where)
        chain = list(_in_parts(model, i, joint, taken))
        out_joints += chain
        out_links += [LinkDescription(part.child, where=where) for part in chain[:-1]]
        out_links.append(LinkDescription(links[i], _inertia(body), where=where))
    return RobotDescription(
        name,
        tuple(out_links),
        tuple(out_joints),
        triple(model.gravity.linear),
        whole,
        links[UNIVERSE],
        tuple(_frames(model, links, {*taken, *(joint.name for joint in out_joints)})),
    )


# --- joints --------------------------------------------------------------------------------


def _joint(model: Any, i: int, links: list[str], where: Where) -> JointDescription:
    """A joint as one; those that are chains are taken apart later."""
    joint = model.joints[i]
    word = str(joint.shortname()).removeprefix(PREFIX)
    described = JointDescription(
        name=str(model.names[i]),
        kind="",
        parent=links[int(model.parents[i])],
        child=links[i],
        origin=_pose(model.jointPlacements[i]),
        where=where,
    )
    if word == "Mimic":
        return _mimic(model, i, described)
    described = replace(described, **_rates(model, joint, where))
    if word in SEVERAL:
        return replace(described, kind=SEVERAL[word])
    if word in CHAINS:
        return replace(described, kind=word)
    if word == "Universal":
        return _universal(joint.extract(), described)
    return _one_axis(model, joint, word, described)


def _one_axis(model: Any, joint: Any, word: str, described: JointDescription) -> JointDescription:
    letter = word[-1] if word[-1] in AXES and word[:-1] in ONE_AXIS else ""
    stem = word.removesuffix(letter)
    if stem not in ONE_AXIS:
        raise described.where.error(
            f"a {PREFIX}{word}; expected a revolute, prismatic, helical, universal, planar, "
            "spherical, free-flying, translation or mimic joint"
        )
    kind, own = ONE_AXIS[stem], _extract(joint)
    described = replace(
        described,
        kind=kind,
        axis=AXES[letter] if letter else _axis(joint, own),
        pitch=float(own.pitch) if kind == "helical" else 0.0,
    )
    if kind not in LIMITED:
        return described
    lower, upper = (
        float(limits[joint.idx_q])
        for limits in (model.lowerPositionLimit, model.upperPositionLimit)
    )
    return replace(
        described, limits=replace(described.limits, lower=_open(lower), upper=_open(upper))
    )


def _extract(joint: Any) -> Any:
    return joint.extract() if hasattr(joint, "extract") else joint


def _axis(joint: Any, own: Any) -> Triple:
    """The axis of a joint that is not along x, y or z; from its motion where it does not say."""
    return unit(own.axis if hasattr(own, "axis") else np.array(joint.createData().S).ravel()[3:])


def _open(limit: float) -> float:
    """Pinocchio writes no limit as infinity or as the largest float."""
    return limit if abs(limit) < 1e300 else float(np.copysign(inf, limit))


def _universal(own: Any, described: JointDescription) -> JointDescription:
    axis, second = unit(own.axis1), unit(own.axis2)
    if abs(float(np.dot(axis, second))) > 1e-9:
        raise described.where.error(
            f"axes {axis} and {second} of a universal joint; expected a right angle between them"
        )
    return replace(described, kind="universal", axis=axis, second_axis=second)


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


def _rates(model: Any, joint: Any, where: Where) -> dict[str, Any]:
    """Rotor inertia, damping, friction and limits of rate and effort."""
    v = slice(int(joint.idx_v), int(joint.idx_v) + int(joint.nv))
    friction = getattr(model, "upperDryFrictionLimit", None)
    friction = getattr(model, "friction", None) if friction is None else friction
    velocity = getattr(model, "upperVelocityLimit", None)
    velocity = model.velocityLimit if velocity is None else velocity
    effort = getattr(model, "upperEffortLimit", None)
    effort = model.effortLimit if effort is None else effort
    limits = Limits(velocity=_least(velocity[v]), effort=_least(effort[v]))
    return {
        "armature": _same(model.armature[v], "armature", where),
        "damping": _same(model.damping[v], "damping", where),
        "friction": 0.0 if friction is None else _same(friction[v], "friction", where),
        "limits": limits,
    }


def _least(values: Any) -> float:
    """The tightest limit of a joint; Pinocchio has one per axis, and 0 where nobody set one."""
    least = float(np.min(values))
    return _open(least) if least > 0.0 else inf


def _same(values: Any, what: str, where: Where) -> float:
    values = np.asarray(values)
    check_finite(where, (what, values))
    if values[0] < 0.0:
        raise where.error(f"{what} is {values[0]:g}; expected zero or more")
    if not (values == values[0]).all():
        raise where.error(f"{what} {values.tolist()} differs between its axes; expected one number")
    return float(values[0])


def _in_parts(
    model: Any, i: int, joint: JointDescription, taken: set[str]
) -> Iterator[JointDescription]:
    """A joint that is a chain of simpler ones, part by part; any other as it is."""
    if joint.kind not in CHAINS:
        yield joint
        return
    kind, axes = CHAINS[joint.kind]
    parent, origin, idx_q = joint.parent, joint.origin, int(model.joints[i].idx_q)
    for k, (axis, letter) in enumerate(zip(axes, "123", strict=True)):
        child = joint.child if k == 2 else f"{joint.name}/{letter}"
        taken.add(child)
        lower = _open(float(model.lowerPositionLimit[idx_q + k]))
        upper = _open(float(model.upperPositionLimit[idx_q + k]))
        yield replace(
            joint,
            name=f"{joint.name}/{letter}",
            kind=kind,
            parent=parent,
            child=child,
            origin=origin,
            axis=axis,
            limits=replace(joint.limits, lower=lower, upper=upper),
        )
        parent, origin = child, Pose()


# --- bodies and frames ---------------------------------------------------------------------


def _inertia(inertia: Any) -> Any:
    return body_inertia(float(inertia.mass), inertia.lever, np.array(inertia.inertia))


def _pose(placement: Any) -> Pose:
    return pose(placement.rotation, np.asarray(placement.translation).ravel())


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
