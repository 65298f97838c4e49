"""Several robots and an object that they hold, as one tree.

Robots stand at their bases under one world. The object is a body on a free joint of its own, the
last link; or, where a contact holds it in all six directions, part of the link that it is held by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from linkwise.model.closures import Closure
from linkwise.model.description import IDENTITY, Pose
from linkwise.model.frames import pose_arrays, turns_of
from linkwise.model.joints import Free
from linkwise.model.tree import BASE, Frame, Link, Tree
from linkwise.model.values import Array, as_triple, pose_of
from linkwise.spatial import RigidInertia, Scalar, Sym3, Transform, Vec3
from linkwise.spatial.matrices import orthonormal, product

OBJECT = "object"  # its link, joint and frame
FREE = Free()
ROUNDED = 2.0**-50  # beside the whole, what is left of a part that was added and taken off


@dataclass(frozen=True)
class Held:
    """An object that arms hold."""

    frame: Frame  # the object's, on the link of the tree that it moves with
    body: RigidInertia  # in the object's own frame
    contacts: tuple[Closure, ...]  # a: frames of arms; b: frames on the link of the object
    carrier: int | None  # the contact by which an arm's link has the object in its body
    length: float | None = None  # in m, by which moments are divided; None: of the contacts
    placed: bool = True  # whether the pose of every contact on the object is known

    @property
    def n_contacts(self) -> int:
        """Contacts, all together."""
        return len(self.contacts)

    @cached_property
    def orthonormal(self) -> tuple[tuple[tuple[float, ...], ...], ...]:
        """Of each contact, orthonormal rows that span the directions that it holds."""
        rows = (orthonormal(x.directions) for x in self.contacts)
        return tuple(tuple(tuple(row) for row in own.tolist()) for own in rows)

    @property
    def content(self) -> tuple[object, ...]:
        """What programs depend on."""
        body = (self.body.m, *self.body.h, *self.body.second)
        contacts = [(x.a, x.b, x.directions) for x in self.contacts]
        return (self.frame, body, contacts, self.carrier, self.length, self.placed)


def joined(
    trees: Sequence[Tree],
    bases: Sequence[Pose],
    prefixes: Sequence[str],
    gravity: tuple[float, float, float],
) -> Tree:
    """Trees under one world, in their order; each one's names begin with its prefix."""
    links: list[Link] = []
    frames: dict[str, Frame] = {}
    unmoved: list[str] = []
    passive: list[int] = []
    nq = nv = 0
    for i, (tree, base, prefix) in enumerate(zip(trees, bases, prefixes, strict=True)):
        first = len(links)
        links += [_moved(link, base, prefix, first, nq, nv) for link in tree.links]
        for own, frame in tree.frames.items():
            name = prefix + own  # frames of bases may have names of other bases
            known = f"arm{i}/{own}" if name in frames else name
            frames[known] = _on(frame, base, first)
        unmoved += [prefix + name for name in tree.unmoved]
        passive += [nv + j for j in tree.passive]
        nq, nv = nq + tree.nq, nv + tree.nv
    return Tree(tuple(links), gravity, frames, tuple(unmoved), unactuated=tuple(passive))


def name_of(tree: Tree, arm: int, frame: str) -> str:
    """The name that an arm's frame has in the forest."""
    prefixed = f"arm{arm}/{frame}"
    return prefixed if prefixed in tree.frames else frame


def _moved(link: Link, base: Pose, prefix: str, first: int, nq: int, nv: int) -> Link:
    on_base = link.parent == BASE
    follows = link.follows
    return replace(
        link,
        name=prefix + link.name,
        joint_name=prefix + link.joint_name,
        parent=BASE if on_base else link.parent + first,
        placement=_placed(base, link.placement) if on_base else link.placement,
        q_index=link.q_index + nq,
        v_index=link.v_index + nv,
        follows=follows and replace(follows, link=follows.link + first),
    )


def _placed(base: Pose, X: Transform) -> Transform:
    """A joint on a robot's base, seen from the world; unchanged where they are the same."""
    R, p = pose_arrays(base)
    r = Vec3(*(p + product(R, list(X.r))).tolist())
    if base.rotation == IDENTITY:
        return Transform(r, X.turns)
    columns = [list(X.rotate_back(Vec3(*row))) for row in np.eye(3).tolist()]
    return Transform(r, turns_of(product(R, np.array(columns).T)))


def _on(frame: Frame, base: Pose, first: int) -> Frame:
    if frame.link != BASE:
        return replace(frame, link=frame.link + first)
    R, p = pose_arrays(base)
    return placed(Frame(BASE, as_triple(p), _rows(R)), pose_of(frame.rotation, frame.origin))


def _rows(R: Array) -> tuple[tuple[float, float, float], ...]:
    return tuple(as_triple(row) for row in R)


def placed(frame: Frame, at: Pose) -> Frame:
    """The frame at a pose in another frame, on the same link."""
    R, own = np.array(frame.rotation), pose_of(at.rotation, at.translation)
    p = np.array(frame.origin) + product(R, own.translation)
    found = pose_of(product(R, own.rotation), p)
    return Frame(frame.link, found.translation, found.rotation)


def with_object(tree: Tree, body: RigidInertia) -> Tree:
    """The tree and a body on a free joint of the world, its last link; the frame is its own."""
    link = Link(
        name=OBJECT,
        joint_name=OBJECT,
        parent=BASE,
        joint=FREE,
        placement=Transform(Vec3.zero()),
        inertia=body,
        armature=(0.0,) * 6,
        q_index=tree.nq,
        v_index=tree.nv,
        mass=float(body.m),
        kind="free",
    )
    frame = Frame(tree.n_links, (0.0, 0.0, 0.0), IDENTITY, of_object=True)
    return replace(tree, links=(*tree.links, link), frames=dict(tree.frames) | {OBJECT: frame})


def with_payload(tree: Tree, body: RigidInertia, frame: Frame) -> Tree:
    """The tree with a body, given in a frame, as part of the frame's link."""
    R, r = np.array(frame.rotation), Vec3(*frame.origin)
    moved = Transform(r, turns_of(R)).body_back(body)
    links = [
        replace(link, inertia=link.inertia + moved, mass=link.mass + float(body.m))
        if i == frame.link
        else link
        for i, link in enumerate(tree.links)
    ]
    own = replace(frame, of_object=True)
    return replace(tree, links=tuple(links), frames=dict(tree.frames) | {OBJECT: own})


def arms_alone(tree: Tree) -> Tree:
    """The arms of a grasp without the object; links have the numbers that they have in the tree.

    The carrier's link gets the object's inertia taken off. Entries that are zero but for the
    rounding of that difference are zero.
    """
    held = tree.held
    assert held is not None
    links = list(tree.links)
    if held.carrier is None:
        links.pop()
    else:
        link = links[held.frame.link]
        links[held.frame.link] = replace(link, inertia=_less(link.inertia, on_link(held)))
    return replace(tree, links=tuple(links), closures=(), unactuated=(), held=None)


def on_link(held: Held) -> RigidInertia:
    """The object's body in the frame of the link that it moves with."""
    turns = turns_of(np.array(held.frame.rotation))
    return Transform(Vec3(*held.frame.origin), turns).body_back(held.body)


def _less(whole: RigidInertia, part: RigidInertia) -> RigidInertia:
    pairs = (zip(x, y, strict=True) for x, y in ((whole.h, part.h), (whole.second, part.second)))
    h, second = ([_difference(a, b) for a, b in own] for own in pairs)
    return RigidInertia(_difference(whole.m, part.m), Vec3(*h), Sym3(*second))


def _difference(a: Scalar, b: Scalar) -> Scalar:
    left = a - b
    if isinstance(left, float) and abs(left) <= ROUNDED * abs(a):
        return 0.0
    return left


def directions_of_robots(tree: Tree) -> dict[int, list[int]]:
    """Numbers of the directions that contacts hold, those of each robot together, by its root."""
    assert tree.held is not None
    found: dict[int, list[int]] = {}
    first = 0
    for contact in tree.held.contacts:
        root = (tree.path(contact.a.link) or [BASE])[0]
        found.setdefault(root, []).extend(range(first, first + contact.rank))
        first += contact.rank
    return found


def too_few_joints(tree: Tree) -> str:
    """Why some robot can never move in all directions that its contacts hold; empty if each can."""
    assert tree.held is not None
    for root in directions_of_robots(tree):
        own = [x for x in tree.held.contacts if (tree.path(x.a.link) or [BASE])[0] == root]
        on_way = {i for x in own for i in tree.path(x.a.link)}
        held, able = sum(x.rank for x in own), sum(tree.links[i].joint.nv for i in on_way)
        names, verb = " and ".join(x.name for x in own), "hold" if len(own) > 1 else "holds"
        if held > able:
            return f"{names} {verb} {held} directions, and {able} degrees of freedom move them"
        if any(sum(x.rank for x in own if x.a.link == y.a.link) > 6 for y in own):
            return f"{names} hold more directions of one link than it can move in"
    return ""


def clash(trees: Iterable[Tree]) -> bool:
    """Whether some name of what moves is used by two robots, or is that of the object."""
    seen = {OBJECT}
    for tree in trees:
        names = {name for name, frame in tree.frames.items() if frame.link != BASE}
        names |= {name for pair in tree.names() for name in pair}
        if seen & names:
            return True
        seen |= names
    return False
