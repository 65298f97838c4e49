"""Description -> tree: order the joints, merge fixed ones, check bodies, choose link frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from heapq import heappop, heappush

import numpy as np

from linkwise.codes import Code
from linkwise.errors import HOLE, Where, quote
from linkwise.model.bodies import (
    HIDDEN,
    NOTHING,
    Moments,
    Policy,
    body_problem,
    check_body,
    moments,
    rigid_inertia,
)
from linkwise.model.description import SMALLEST, JointDescription, LinkDescription, RobotDescription
from linkwise.model.frames import (
    Array,
    Placed,
    choose_frames,
    pose_arrays,
    seen_from,
    tidy_rotation,
)
from linkwise.model.joints import FIXED, Joint, make_joint
from linkwise.model.massless import joints_that_may_lose_inertia, joints_without_inertia
from linkwise.model.tree import BASE, Follows, Frame, Link, Tree
from linkwise.spatial import Transform
from linkwise.spatial.matrices import product

# how the axes of a joint's linear rates turn against those of its rotors, in units of the joint's
# angular velocity
ROTOR_TURNS = {"": 0.0, "parent": 1.0, "link": -1.0}
MOST_NAMES = 10  # in one warning


@dataclass
class Body:
    """Links that move together: the child of a moving joint and all that is fixed to it."""

    parent: int  # index among bodies; the base body is BASE
    joint: JointDescription
    R: Array  # joint frame in the parent body's frame
    p: Array
    members: list[tuple[LinkDescription, Array, Array]] = field(default_factory=list)

    @cached_property
    def kind(self) -> Joint:
        """What kind of joint moves the body."""
        return make_joint(self.joint.kind, self.joint.pitch)

    @property
    def placed(self) -> Placed:
        """The joint, as link frames are chosen by it."""
        axes = self.joint.axis, self.joint.second_axis
        return Placed(self.parent, self.kind, *axes, self.R, self.p)

    @property
    def name(self) -> str:
        """The first member that has mass, or else the joint's own child."""
        named = [link.name for link, _, _ in self.members if link.inertia is not None]
        return (named or [self.members[0][0].name])[0]

    def moments(self) -> Moments:
        """Mass properties of all members together."""
        parts = (moments(link.inertia).placed(R, p) for link, R, p in self.members)
        return reduce(Moments.__add__, parts, NOTHING)

    @property
    def where(self) -> Where:
        """Where to say that something is wrong with the body: its link, or else its joint."""
        link = self.members[0][0]
        return link.where if link.where.line is not None else self.joint.where

    def checked(self, policy: Policy) -> Moments:
        """Mass properties of a body that can exist, or as the policy says."""
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused, by name
            return check_body(self.moments(), self.joint.name, self.where, policy)

    def check_members(self, policy: Policy) -> None:
        """Warn of inconsistent inertials that the inertia of the whole body hides."""
        heavy = [link for link, _, _ in self.members if link.inertia is not None]
        if len(heavy) < 2 or policy.quiet or body_problem(self.moments(), self.joint.name):
            return
        for link in heavy:
            problem = body_problem(moments(link.inertia), self.joint.name)
            if problem is not None and problem[0] in HIDDEN:
                link.where.report(HIDDEN[problem[0]], **problem[1], link=link.name)


def check_bodies(description: RobotDescription, policy: Policy) -> None:
    """Report what is wrong with bodies of a description that has holes.

    A body is judged where all its members and their places are known, and whether the joints
    between it and others move.
    """
    bodies = _merge_fixed(description)[0]
    unsure = {i for i, body in enumerate(bodies) if body.joint.kind is HOLE}
    unsure |= {bodies[i].parent for i in unsure if not bodies[i].moments().is_nothing}
    for i, body in enumerate(bodies):
        heavy = [member for member in body.members if member[0].inertia is not None]
        whole = replace(body, members=heavy).moments()
        if i not in unsure and _is_known(whole):
            check_body(whole, body.joint.name, body.where, policy)
            body.check_members(policy)


def members_of(description: RobotDescription, joint: str) -> list[LinkDescription]:
    """The links that a moving joint moves together."""
    bodies = [body for body in _merge_fixed(description)[0] if body.joint.name == joint]
    return [link for body in bodies for link, _, _ in body.members]


def _is_known(body: Moments) -> bool:
    return not np.isnan([body.mass, *body.first, *body.second.ravel()]).any()


def build(description: RobotDescription, policy: Policy | None = None) -> Tree:
    """Turn a description into a tree ready for the sweeps."""
    policy = policy or Policy()
    bodies, on_base = _merge_fixed(description)
    checked = [body.checked(policy) for body in bodies]
    for body in bodies:
        body.check_members(policy)
    chosen = choose_frames([body.placed for body in bodies])
    parts = zip(bodies, checked, chosen, _slices(bodies), strict=True)
    links = [
        _link(body, mass.seen_in(*at), _joint_frame(i, *at), placement, policy.friction, *place)
        for i, (body, mass, (at, placement), place) in enumerate(parts)
    ]
    places = {link.name: _frame(BASE, R, p) for link, R, p in on_base}
    for i, (body, (frame, _)) in enumerate(zip(bodies, chosen, strict=True)):
        places |= _link_frames(i, body, *frame)
    tree = Tree(tuple(links), description.gravity, _all_frames(description, places))
    unmoved = _unmoved(tree, bodies, checked, policy)
    return replace(tree, unmoved=unmoved) if policy.strict else tree


def _unmoved(
    tree: Tree, bodies: list[Body], checked: list[Moments], policy: Policy
) -> tuple[str, ...]:
    """Names of the joints that move no inertia, at almost any configuration.

    Told are those joints, bodies that are points, and links without mass whose joints move inertia
    at most configurations and none at some.
    """
    thin = [i for i, body in enumerate(checked) if body.is_thin]
    bare = [i for i in thin if bodies[i].joint.least_armature < SMALLEST]
    unmoved = joints_without_inertia(tree, thin) if bare else []
    for i in thin if not policy.quiet else ():
        if checked[i].is_point and bodies[i].where.span:  # in code, a point was asked for
            facts = {"joint": bodies[i].joint.name, "mass": checked[i].mass}
            bodies[i].where.report(Code.POINT_MASS, **facts)
    if len(unmoved) == len(bodies):  # a robot for kinematics
        return tuple(bodies[i].joint.name for i in unmoved)
    effect = "refused" if policy.strict else "NaN, with the status SINGULAR (strict=False)"
    bases = [bodies[i] for i in unmoved if _is_floating_base(bodies[i])]
    for body in bases:  # said of bundled robots too
        body.where.report(Code.BASE_WITHOUT_INERTIA, link=body.name, effect=effect)
    if not policy.quiet:
        others = [bodies[i] for i in unmoved if not _is_floating_base(bodies[i])]
        _tell(Code.UNMOVED, others, effect=effect)
        massless = [i for i in bare if checked[i].is_nothing and i not in unmoved]
        _tell(Code.MASSLESS, [bodies[i] for i in joints_that_may_lose_inertia(tree, massless)])
    return tuple(bodies[i].joint.name for i in unmoved)


def _is_floating_base(body: Body) -> bool:
    return body.parent == BASE and body.joint.kind == "free"


def _tell(code: Code, bodies: list[Body], **facts: str) -> None:
    """Tell one thing about many bodies, once, with the first few joints by name."""
    if bodies:
        names = ", ".join(quote(body.joint.name) for body in bodies[:MOST_NAMES])
        names += f", ... ({len(bodies)} in all)" if len(bodies) > MOST_NAMES else ""
        bodies[0].where.report(code, names=names, **facts)


def _slices(bodies: list[Body]) -> list[tuple[int, int, Follows | None]]:
    """Where each joint's numbers start in q and qd; a follower shares its driver's."""
    starts: dict[str, tuple[int, int]] = {}
    nq = nv = 0
    for body in bodies:
        if body.joint.mimic is None:
            starts[body.joint.name] = nq, nv
            nq, nv = nq + body.kind.nq, nv + body.kind.nv
    index = {body.joint.name: i for i, body in enumerate(bodies)}
    out: list[tuple[int, int, Follows | None]] = []
    for body in bodies:
        mimic = body.joint.mimic
        if mimic is None:
            out.append((*starts[body.joint.name], None))
        else:
            follows = Follows(index[mimic.joint], mimic.multiplier, mimic.offset)
            out.append((*starts[mimic.joint], follows))
    return out


def _link(
    body: Body,
    mass: Moments,
    frame: Frame,
    placement: Transform,
    friction: bool,
    q_index: int,
    v_index: int,
    follows: Follows | None,
) -> Link:
    joint, rotors = body.joint, body.joint.armature
    return Link(
        name=body.name,
        joint_name=joint.name,
        parent=body.parent,
        joint=body.kind,
        placement=placement,
        inertia=rigid_inertia(mass),
        armature=rotors if isinstance(rotors, tuple) else (rotors,) * body.kind.nv,
        rotor_turn=ROTOR_TURNS[joint.rotor_axes],
        q_index=q_index,
        v_index=v_index,
        follows=follows,
        limits=joint.limits,
        damping=joint.damping if friction else 0.0,
        friction=joint.friction if friction else 0.0,
        mass=mass.mass,
        axis=joint.axis,
        kind=joint.kind,
        frame_origin=frame.origin,
        frame_rotation=frame.rotation,
    )


def _merge_fixed(
    description: RobotDescription,
) -> tuple[list[Body], list[tuple[LinkDescription, Array, Array]]]:
    """Walk out from the base, starting a body at each moving joint.

    Depth first in file order, but for joints whose order is given: of all that can be reached, the
    first of these is taken once fixed joints and joints without a place in it are done.
    """
    links = {link.name: link for link in description.links}
    children: dict[str, list[JointDescription]] = {}
    for joint in description.joints:
        children.setdefault(joint.parent, []).append(joint)
    bodies: list[Body] = []
    on_base = [(links[description.base], np.eye(3), np.zeros(3))]
    reached = _Reached(description.order)
    reached.add(
        (joint, BASE, np.eye(3), np.zeros(3)) for joint in children.get(description.base, [])
    )
    for joint, at, R, p in reached:
        origin_R, origin_p = pose_arrays(joint.origin)
        R, p = tidy_rotation(product(R, origin_R)), p + product(R, origin_p)
        if joint.kind != FIXED:
            bodies.append(Body(at, joint, R, p))
            at, R, p = len(bodies) - 1, np.eye(3), np.zeros(3)
        members = on_base if at == BASE else bodies[at].members
        members.append((links[joint.child], R, p))
        reached.add((child, at, R, p) for child in children.get(joint.child, []))
    return bodies, on_base


_Step = tuple[
    JointDescription, int, Array, Array
]  # a joint, the body it is on, and its parent's pose


class _Reached:
    """Joints whose parents are placed, and which of them is next."""

    def __init__(self, order: Sequence[str]) -> None:
        self._rank = {name: k for k, name in enumerate(order)}
        self._stack: list[_Step] = []  # the last is next
        self._ranked: list[tuple[int, _Step]] = []  # a heap

    def add(self, steps: Iterable[_Step]) -> None:
        """Joints of one link, in file order."""
        for step in reversed(list(steps)):
            rank = self._rank.get(step[0].name)
            if rank is None or step[0].kind == FIXED:
                self._stack.append(step)
            else:
                heappush(self._ranked, (rank, step))

    def __iter__(self) -> Iterator[_Step]:
        while self._stack or self._ranked:
            yield self._stack.pop() if self._stack else heappop(self._ranked)[1]


def _frame(link: int, R: Array, p: Array) -> Frame:
    rows = tuple((float(a), float(b), float(c)) for a, b, c in tidy_rotation(R))
    return Frame(link, (float(p[0]), float(p[1]), float(p[2])), rows)


def _joint_frame(i: int, G: Array, origin: Array) -> Frame:
    """The frame of a body's joint in the frame chosen for the body."""
    return _frame(i, G.T, seen_from(G, origin, np.zeros(3)))


def _link_frames(i: int, body: Body, G: Array, origin: Array) -> dict[str, Frame]:
    """Frames of a body's links, seen from the frame chosen for it."""
    return {
        link.name: _frame(i, product(G.T, R), seen_from(G, origin, p))
        for link, R, p in body.members
    }


def _all_frames(description: RobotDescription, links: dict[str, Frame]) -> dict[str, Frame]:
    """Frames of links; of joints, which are their child's, unless a link has the name; others."""
    frames = dict(links)
    for joint in description.joints:
        frames.setdefault(joint.name, links[joint.child])
    for extra in description.frames:
        if extra.name in frames:
            raise description.where.error(f"frame '{extra.name}' is already a link or joint")
        if extra.link not in links:
            raise description.where.error(f"frame '{extra.name}': no link '{extra.link}'")
        at = links[extra.link]
        R, p = np.array(at.rotation), np.array(at.origin)
        own_R, own_p = pose_arrays(extra.origin)
        frames[extra.name] = _frame(at.link, product(R, own_R), p + product(R, own_p))
    return frames
