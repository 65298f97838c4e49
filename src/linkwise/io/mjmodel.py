"""A compiled `mujoco.MjModel` -> description: bodies, joints, sites; what else there is is named.

The model is only read, so this needs no import of mujoco. MuJoCo's conventions, and linkwise's:

| joint | MuJoCo qpos, qvel | linkwise q, qd |
|---|---|---|
| hinge, slide | value, rate | the same numbers, ``ref`` included |
| ball | quaternion (w, x, y, z), angular velocity in body axes | the same |
| free | position, quaternion; linear velocity in world axes, angular in body axes | quaternion, position; angular, linear velocity, both in body axes |

A body's joints act one after another, each about its own anchor. All but the last move a link
without mass named ``body/joint``; so does the last where its anchor is not the body's origin.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from linkwise.codes import Code
from linkwise.errors import Where, quote
from linkwise.io.mjefforts import biased_actuators, effort_limits
from linkwise.io.mjequality import Locate, Reading, curves, library, loops, ties
from linkwise.io.mjrotors import geared, more_armature
from linkwise.io.mjshapes import body_shapes, text_at
from linkwise.io.poses import (
    body_inertia,
    check_finite,
    check_unit,
    not_negative,
    quaternion_matrix,
    rotor_inertia,
    shared_damping,
    shared_number,
    turn_matrix,
)
from linkwise.model.description import (
    CouplingDescription,
    FrameDescription,
    JointDescription,
    Limits,
    LinkDescription,
    LoopDescription,
    Mimic,
    Pose,
    RobotDescription,
    Triple,
)
from linkwise.model.values import as_triple, pose_of, unit
from linkwise.spatial.matrices import congruence, product

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
COLUMNS = {FREE: 6, BALL: 3}  # degrees of freedom; one for the others
WORLD = 0
BODY_NUMBERS = ("body_pos", "body_quat", "body_mass", "body_ipos", "body_iquat", "body_inertia")
JOINT_NUMBERS = ("jnt_pos", "jnt_axis", "jnt_range")
TREES = Reading()


def describe_mjmodel(
    model: Any, name: str = "", locate: Locate | None = None, reading: Reading = TREES
) -> RobotDescription:
    """Describe a compiled model; ``locate`` says where an element of it was written."""
    name = name or text_at(model.names, 0) or "robot"
    whole = Where(f"<mujoco.MjModel {name!r}>")
    names = _Names(model)
    reader = _Reader(model, names, locate or _in_memory(whole, names), reading)
    _name_what_is_left_out(model, reader.locate)
    for body in range(1, model.nbody):
        reader.add_body(body)
    frames = list(_sites(model, names, reader))
    closed = _loops(model, names, reader, frames, reading)
    return RobotDescription(
        name,
        tuple(reader.links),
        tuple(reader.joints),
        _gravity(model),
        whole if locate is None else locate("model", 0),
        reader.links[0].name,
        tuple(frames),
        closed,
        friction_acts=True,
    )


def _gravity(model: Any) -> Triple:
    off = int(library(model).mjtDisableBit.mjDSBL_GRAVITY)
    return (0.0, 0.0, 0.0) if model.opt.disableflags & off else as_triple(model.opt.gravity)


def _in_memory(whole: Where, names: _Names) -> Locate:
    def locate(kind: str, index: int) -> Where:
        known = {"body": names.bodies, "joint": names.joints}.get(kind)
        label = f"<{kind} {index}>" if known is None else f'<{kind} name="{known[index]}">'
        return whole if kind == "model" else Where(whole.path, None, label)

    return locate


class _Names:
    """Names for all bodies and joints: MuJoCo's own, or their number where they have none."""

    def __init__(self, model: Any) -> None:
        self.bodies = _filled("body", [text_at(model.names, a) for a in model.name_bodyadr])
        self.joints = _filled("joint", [text_at(model.names, a) for a in model.name_jntadr])
        self.sites = _filled("site", [text_at(model.names, a) for a in model.name_siteadr])


def joint_names(model: Any) -> list[str]:
    """Return the names that a robot read from a model has for its joints, in the model's order."""
    return _Names(model).joints


def _filled(kind: str, names: list[str]) -> list[str]:
    """Names with no gaps: ``body3`` for the body 3 that has none."""
    taken = set(names)
    return [name or unused(f"{kind}{i}", taken) for i, name in enumerate(names)]


def unused(name: str, taken: set[str]) -> str:
    """The name, made longer until nothing else has it."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


class _Reader:
    """Collects links and joints, body by body; MuJoCo's bodies come depth first."""

    def __init__(self, model: Any, names: _Names, locate: Locate, reading: Reading) -> None:
        self.model, self.names, self.locate = model, names, locate
        self.taken_links, self.taken_joints = set(names.bodies), set(names.joints)
        self.ties = ties(model, names.joints, locate, reading)
        self.more_armature = more_armature(model, self.ties, locate, reading)
        self.more_damping, _ = geared(model, "actuator_damping")
        self.efforts = effort_limits(model)
        world = locate("body", WORLD)
        self.links = [
            LinkDescription(names.bodies[WORLD], None, *body_shapes(model, WORLD), where=world)
        ]
        self.joints: list[JointDescription] = []

    def add_body(self, body: int) -> None:
        """The body's joints, one after another, then the body itself."""
        m, where = self.model, self.locate("body", body)
        check_finite(where, *((key, getattr(m, key)[body]) for key in BODY_NUMBERS))
        check_unit(where, *((key, getattr(m, key)[body]) for key in ("body_quat", "body_iquat")))
        name, parent = self.names.bodies[body], self.names.bodies[m.body_parentid[body]]
        R, p = quaternion_matrix(m.body_quat[body]), np.array(m.body_pos[body])
        joints = range(m.body_jntadr[body], m.body_jntadr[body] + m.body_jntnum[body])
        for joint in joints:
            self._check_joint(joint)
            anchor = _anchor(m, joint)
            if m.jnt_type[joint] == FREE:
                R, p = np.eye(3), np.zeros(3)
            R, p = _placed(m, joint, R, p + product(R, anchor))
            last = joint == joints[-1] and not anchor.any()
            child = name if last else unused(f"{name}/{self.names.joints[joint]}", self.taken_links)
            self._add_joint(joint, parent, child, pose_of(R, p))
            if not last:
                self.links.append(LinkDescription(child, where=where))
            parent, R, p = child, np.eye(3), -anchor
        visuals, collisions = body_shapes(m, body)
        self.links.append(LinkDescription(name, _inertia(m, body), visuals, collisions, where))
        if parent != name:
            mount = unused(f"{name}/mount" if joints else f"{name}/weld", self.taken_joints)
            weld = JointDescription(mount, "fixed", parent, name, pose_of(R, p), where=where)
            self.joints.append(weld)

    def _check_joint(self, joint: int) -> None:
        m, where = self.model, self.locate("joint", joint)
        check_finite(where, *((key, getattr(m, key)[joint]) for key in JOINT_NUMBERS))
        check_finite(where, ("qpos0", m.qpos0[m.jnt_qposadr[joint]]))
        if m.jnt_type[joint] in (HINGE, SLIDE):
            check_unit(where, ("jnt_axis", m.jnt_axis[joint]))

    def _add_joint(self, joint: int, parent: str, child: str, origin: Pose) -> None:
        m, where = self.model, self.locate("joint", joint)
        one_axis = m.jnt_type[joint] in (HINGE, SLIDE)
        friction = shared_number(where, "frictionloss", _own(m.dof_frictionloss, m, joint))
        damping = shared_damping(where, _own(m.dof_damping, m, joint))
        if friction and m.jnt_type[joint] == FREE:
            where.report(Code.FREE_JOINT_FRICTION, value=friction)
        self.joints.append(
            JointDescription(
                name=self.names.joints[joint],
                kind=_kind(m, joint),
                parent=parent,
                child=child,
                origin=origin,
                axis=unit(m.jnt_axis[joint]) if one_axis else (0.0, 0.0, 1.0),
                mimic=self._mimic(joint),
                limits=_limits(m, joint, float(self.efforts[joint])),
                armature=_armature(m, joint, self.more_armature[joint], where),
                rotor_axes="parent" if m.jnt_type[joint] == FREE else "",
                damping=damping + self.more_damping[joint],
                friction=friction,
                where=where,
            )
        )

    def _mimic(self, joint: int) -> Mimic | None:
        tie = self.ties.get(joint)
        if tie is None:
            return None
        return Mimic(self.names.joints[tie.driver], tie.multiplier, tie.offset)


def _anchor(m: Any, joint: int) -> Any:
    """The point a joint turns about, in body axes; a slide and a free joint have none."""
    turns = m.jnt_type[joint] in (HINGE, BALL)
    return np.array(m.jnt_pos[joint]) if turns else np.zeros(3)


def _placed(m: Any, joint: int, R: Any, p: Any) -> tuple[Any, Any]:
    """A joint's frame, moved back by its value at rest: ``qpos0`` is where the body is drawn."""
    axis, rest = unit(m.jnt_axis[joint]), float(m.qpos0[m.jnt_qposadr[joint]])
    kind = m.jnt_type[joint]
    if kind == HINGE and rest != 0.0:
        R = product(R, turn_matrix(axis, -rest))
    if kind == SLIDE:
        p = p - product(R, rest * np.array(axis))
    return R, p


def _kind(m: Any, joint: int) -> str:
    kind = m.jnt_type[joint]
    if kind == HINGE:
        return "revolute" if m.jnt_limited[joint] else "continuous"
    return {FREE: "free", BALL: "spherical", SLIDE: "prismatic"}[int(kind)]


def _limits(m: Any, joint: int, effort: float) -> Limits:
    """Limits of a joint; those of a ball joint are a cone, which is not kept."""
    if not m.jnt_limited[joint] or m.jnt_type[joint] not in (HINGE, SLIDE):
        return Limits(effort=effort)
    lower, upper = (float(x) for x in m.jnt_range[joint])
    return Limits(lower, upper, effort=effort)


def _own(values: Any, m: Any, joint: int) -> Any:
    """A joint's own part of an array that has a number for each degree of freedom."""
    start = m.jnt_dofadr[joint]
    return values[start : start + COLUMNS.get(int(m.jnt_type[joint]), 1)]


def _armature(m: Any, joint: int, more: float, where: Where) -> float | tuple[float, ...]:
    own = not_negative(where, "armature", _own(m.dof_armature, m, joint)) + more
    if m.jnt_type[joint] == FREE and not (own[:3] == own[0]).all():
        raise where.error(
            f"armature {own[:3].tolist()} of a free joint differs between world axes, and "
            "changes the mass matrix as the body turns; expected one number for all three"
        )
    return rotor_inertia(own, _kind(m, joint))


def _inertia(m: Any, body: int) -> Any:
    turn = quaternion_matrix(m.body_iquat[body])
    tensor = congruence(turn, np.diag(m.body_inertia[body]))
    return body_inertia(float(m.body_mass[body]), m.body_ipos[body], tensor)


def _sites(m: Any, names: _Names, reader: _Reader) -> Iterable[FrameDescription]:
    """Frames at the sites; one that shares its name with a body or joint is renamed."""
    taken = reader.taken_links | reader.taken_joints | set(names.sites)
    for i, name in enumerate(names.sites):
        used = name
        if name in reader.taken_links or name in reader.taken_joints:
            used = unused(f"{name}_site", taken)
            reader.locate("site", i).report(Code.SITE_RENAMED, used=used)
        where = pose_of(quaternion_matrix(m.site_quat[i]), m.site_pos[i])
        yield FrameDescription(used, names.bodies[m.site_bodyid[i]], where)


def _loops(
    m: Any, names: _Names, reader: _Reader, frames: list[FrameDescription], reading: Reading
) -> tuple[LoopDescription | CouplingDescription, ...]:
    """The closed loops; the frames that they hold are added to the others."""
    taken = reader.taken_links | reader.taken_joints | {frame.name for frame in frames}
    found: list[LoopDescription | CouplingDescription] = []
    for ends in loops(m, reading):
        own = text_at(m.names, m.name_eqadr[ends.number]) or f"loop{ends.number}"
        (a, b), (at_a, at_b) = ends.bodies, ends.poses
        held, other = unused(own, taken), unused(f"{own}/to", taken)
        frames.append(FrameDescription(held, names.bodies[a], at_a))
        frames.append(FrameDescription(other, names.bodies[b], at_b))
        found.append(LoopDescription(held, other, (ends.turns,) * 3 + (True,) * 3))
    return (*found, *_couplings(m, names, reader, reading))


def _couplings(
    m: Any, names: _Names, reader: _Reader, reading: Reading
) -> Iterable[CouplingDescription]:
    """The joints that are held to curves over others."""
    for x in curves(m, reader.ties, reading):
        driver = None if x.driver is None else names.joints[x.driver]
        yield CouplingDescription(names.joints[x.joint], driver, x.polynomial)


def few(names: list[str], most: int = 10) -> str:
    """The first names of a list, in quotes, and how many more there are."""
    ending = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(quote, names[:most])) + ending


def _any(m: Any, *fields: str) -> Any:
    """For each element, whether one of these is not zero; older models have not all of them."""
    values = [np.asarray(getattr(m, field)) for field in fields if hasattr(m, field)]
    rows = [value.any(axis=tuple(range(1, value.ndim))) for value in values]
    return np.any(rows, axis=0) if rows else np.zeros(0, bool)


def _name_what_is_left_out(m: Any, locate: Locate) -> None:
    """Warn of forces and motions that MuJoCo computes and linkwise does not.

    Contacts, limits and motors are no part of a robot's dynamics here, and no reason to warn; an
    actuator that acts without control is.
    """
    pulls = ("tendon_stiffness", "tendon_damping", "tendon_stiffnesspoly", "tendon_dampingpoly")
    curved = m.dof_jntid[np.flatnonzero(_any(m, "dof_dampingpoly"))]
    found = (
        ("body", m.body_gravcomp, Code.GRAVCOMP),
        ("body", m.body_mocapid >= 0, Code.MOCAP),
        ("joint", _any(m, "jnt_stiffness", "jnt_stiffnesspoly"), Code.SPRING),
        ("joint", np.isin(np.arange(m.njnt), curved), Code.CURVED_DAMPING),
        ("tendon", _any(m, *pulls) | (geared(m, "actuator_damping")[1] != 0.0), Code.TENDON_FORCES),
    )
    for kind, where, code in found:
        for index in np.flatnonzero(where):
            locate(kind, int(index)).report(code)
    biased = biased_actuators(m)
    if biased:
        names = [text_at(m.names, m.name_actuatoradr[i]) or f"actuator{i}" for i in biased]
        locate("actuator", biased[0]).report(Code.ACTUATOR_FORCES, names=few(names))
    if getattr(m, "nflex", 0):
        locate("flex", 0).report(Code.FLEX)
    if m.opt.density or m.opt.viscosity:
        locate("model", 0).report(Code.FLUID)
