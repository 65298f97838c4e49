"""Constants of a robot as inputs: what they are called, their shapes, and a tree that has others.

    inertia    (n, 10)   each body: m, m c, Ixx Ixy Iyy Ixz Iyz Izz about its joint frame's origin
    gravity    (3)       in base axes
    payload    (10)      a body more, fixed to a frame: the same ten numbers in that frame
    rotor      (nv)      inertia that each degree of freedom's motor adds
    friction   (nv, 2)   viscous and Coulomb friction of each degree of freedom
    placement  (n, 6)    how far each joint's frame is from where the file puts it: a turn (rotation
                         vector), then a shift, both in the axes of the frame as the file has it

A joint's frame and its axes are the file's (`Tree.joint_frames`); sweeps use link frames of their
own (frames.py), so that ten numbers are carried from one to the other, over any scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.model.frames import turns_of
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import Mat3, RigidInertia, Rotation, Scalar, Sym3, Transform, Vec3
from linkwise.spatial.matrices import product
from linkwise.spatial.quaternion import Quaternion
from linkwise.spatial.scalar import select, sincos, sqrt
from linkwise.spatial.se3 import matrix_of

Array = NDArray[np.float64]
TEN = 10  # numbers of a body
MOST_LINKS = 1000  # of a robot with parameters: its functions have no loops, and compile for long
NEAR = 1e-4  # squares of turns below which series are used


@dataclass(frozen=True)
class Parameter:
    """A constant of a robot that is an input of its functions."""

    name: str  # of `KINDS`
    frame: Frame | None = None  # of a payload: what it is fixed to

    def shape(self, tree: Tree) -> tuple[int, ...]:
        """Of its numbers, for one state."""
        return KINDS[self.name].shape(tree)

    def size(self, tree: Tree) -> int:
        """How many numbers it has."""
        return prod(self.shape(tree))

    def value(self, tree: Tree) -> Array:
        """What the tree has: the file's, unless the robot was edited."""
        return KINDS[self.name].value(tree).reshape(self.shape(tree))

    def put(self, tree: Tree, numbers: Sequence[Scalar]) -> Tree:
        """The tree with other numbers."""
        return KINDS[self.name].put(tree, numbers, self.frame)

    def bodies(self, numbers: Sequence[Scalar]) -> list[RigidInertia]:
        """The bodies that the numbers are, where they are bodies."""
        if self.name not in ("inertia", "payload"):
            return []
        return [body_of(numbers[k : k + TEN]) for k in range(0, len(numbers), TEN)]


def put_all(tree: Tree, given: Iterable[tuple[Parameter, Sequence[Scalar]]]) -> Tree:
    """The tree with other numbers of some parameters.

    A payload is added to its link after inertias are replaced, whichever is named first.
    """
    for each, numbers in sorted(given, key=lambda pair: pair[0].name == "payload"):
        tree = each.put(tree, numbers)
    return tree


def body_of(numbers: Sequence[Scalar]) -> RigidInertia:
    """Ten numbers as a body: ``Σ = ½ tr(I) 1 - I`` is its second moment."""
    m, x, y, z, Ixx, Ixy, Iyy, Ixz, Iyz, Izz = numbers
    half = 0.5 * (Ixx + Iyy + Izz)
    return RigidInertia(
        m, Vec3(x, y, z), Sym3(half - Ixx, -Ixy, -Ixz, half - Iyy, -Iyz, half - Izz)
    )


def numbers_of(body: RigidInertia) -> list[Scalar]:
    """A body as ten numbers."""
    inertia = body.rotational()
    own = (inertia.xx, inertia.xy, inertia.yy, inertia.xz, inertia.yz, inertia.zz)
    return [body.m, *body.h, *own]


def place_of(frame: Frame) -> Transform:
    """From a link's own frame to one that is fixed to it; with a matrix where its numbers are
    not known yet.
    """
    origin, R = Vec3(*frame.origin), frame.rotation
    if all(isinstance(x, (int, float)) for row in R for x in row):
        return Transform(origin, turns_of(np.array(R)))
    return Transform(origin, (Rotation(Mat3(*(Vec3(*row) for row in R)).T),))


def inertial_parameters(tree: Tree) -> Array:
    """Ten numbers (n, 10) of each body, in the file's axes about its joint frame's origin."""
    pairs = zip(tree.links, tree.joint_frames, strict=True)
    rows = [numbers_of(in_frame(link.inertia, frame)) for link, frame in pairs]
    return np.array(rows, float).reshape(tree.n_links, TEN)


def in_frame(body: RigidInertia, frame: Frame) -> RigidInertia:
    """A body of a link's own frame in another frame of the link."""
    R, o = np.array(frame.rotation), np.array(frame.origin)
    origin = (-product(R.T, o)).tolist()
    back = place_of(Frame(frame.link, tuple(origin), tuple(map(tuple, R.T.tolist()))))
    return back.body_back(body)


def _with_inertias(tree: Tree, numbers: Sequence[Scalar], _: Any) -> Tree:
    bodies = Parameter("inertia").bodies(numbers)
    placed = (
        place_of(frame).body_back(body)
        for frame, body in zip(tree.joint_frames, bodies, strict=True)
    )
    return _each(tree, lambda link, body: replace(link, inertia=body), placed)


def _with_payload(tree: Tree, numbers: Sequence[Scalar], frame: Frame | None) -> Tree:
    assert frame is not None  # `Robot.parametric` has seen to it
    body, links = body_of(numbers), list(tree.links)
    more, link = place_of(frame).body_back(body), links[frame.link]
    links[frame.link] = replace(link, inertia=link.inertia + more)
    if tree.held is not None and frame.of_object:  # it is the object that weighs more
        tree = replace(tree, held=replace(tree.held, body=tree.held.body + body))
    return tree.with_links(links)


def _own(link: Link, numbers: Sequence[Any], kept: Sequence[Any]) -> tuple[Any, ...]:
    """A link's part of what degrees of freedom have; a follower keeps its own."""
    if link.follows is not None:
        return tuple(kept)
    return tuple(numbers[link.v_index : link.v_index + link.joint.nv])


def _with_rotors(tree: Tree, numbers: Sequence[Scalar], _: Any) -> Tree:
    return _each(tree, lambda link: replace(link, armature=_own(link, numbers, link.armature)))


def _with_friction(tree: Tree, numbers: Sequence[Scalar], _: Any) -> Tree:
    def changed(link: Link) -> Link:
        viscous, coulomb = link.losses
        return replace(
            link,
            damping=_own(link, numbers[0::2], viscous),
            friction=_own(link, numbers[1::2], coulomb),
        )

    return _each(tree, changed)


def _with_placements(tree: Tree, numbers: Sequence[Scalar], _: Any) -> Tree:
    own = (numbers[k : k + 6] for k in range(0, len(numbers), 6))
    return _each(tree, _displaced, tree.joint_frames, own)


def _displaced(link: Link, frame: Frame, by: Sequence[Scalar]) -> Link:
    """A link whose joint is turned by w and shifted by d, in the axes of a frame on it.

    The frame's axes in the link's are R and its origin is o. The link's frame turns with it by
    Q = exp(R w): the link's origin, at -o from the frame's, goes to o + R d - Q o.
    """
    R = place_of(frame)
    w, d, o = R.rotate_back(Vec3(*by[:3])), R.rotate_back(Vec3(*by[3:])), Vec3(*frame.origin)
    Q = matrix_of(_turned(w))
    moved = Transform(o + d - Q @ o, (Rotation(Q.T),))
    return replace(link, placement=link.placement.then(moved))


def _turned(w: Vec3) -> Quaternion:
    """The turn by a rotation vector, with derivatives of every order near no turn too.

    A length has none at zero, so that near there the half-angle's sine over the angle, and its
    cosine, are series in the square; both are good to rounding where they meet.
    """
    square = w.dot(w)
    away = square - NEAR
    angle = sqrt(select(away, square, 1.0))
    s, c = sincos(angle * 0.5)
    near_sine = 0.5 + square * (-1.0 / 48.0 + square * (1.0 / 3840.0 - square * (1.0 / 645120.0)))
    near_cosine = 1.0 + square * (-1.0 / 8.0 + square * (1.0 / 384.0 - square * (1.0 / 46080.0)))
    return Quaternion(select(away, c, near_cosine), w * select(away, s / angle, near_sine))


def _each(tree: Tree, change: Callable[..., Link], *per_link: Any) -> Tree:
    return tree.with_links([change(*own) for own in zip(tree.links, *per_link, strict=True)])


def _of_dofs(tree: Tree, field: Callable[[Link], Sequence[Any]]) -> Array:
    """Numbers that each degree of freedom has, of its own link."""
    own = [x for link in tree.links if link.follows is None for x in field(link)]
    return np.array(own, float)


class Kind(NamedTuple):
    """One kind of parameter: its shape, its value of a tree, and the tree with another."""

    shape: Callable[[Tree], tuple[int, ...]]
    value: Callable[[Tree], Array]
    put: Callable[[Tree, Sequence[Scalar], Frame | None], Tree]


KINDS = {
    "inertia": Kind(lambda tree: (tree.n_links, TEN), inertial_parameters, _with_inertias),
    "gravity": Kind(
        lambda tree: (3,),
        lambda tree: np.array(tree.gravity, float),
        lambda tree, numbers, _: tree.with_gravity(numbers),
    ),
    "payload": Kind(lambda tree: (TEN,), lambda tree: np.zeros(TEN), _with_payload),
    "rotor": Kind(
        lambda tree: (tree.nv,), lambda tree: _of_dofs(tree, lambda x: x.armature), _with_rotors
    ),
    "friction": Kind(
        lambda tree: (tree.nv, 2),
        lambda tree: _of_dofs(tree, lambda x: list(zip(*x.losses, strict=True))),
        _with_friction,
    ),
    "placement": Kind(
        lambda tree: (tree.n_links, 6), lambda tree: np.zeros((tree.n_links, 6)), _with_placements
    ),
}
