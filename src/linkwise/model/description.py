"""What a robot file says, before any mechanics: links, joints, limits, geometry.

Readers in ``io/`` produce a `RobotDescription`; ``model/build`` turns it into a `Tree`.
Lengths in metres, angles in radians, masses in kilograms. All records are frozen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import NOWHERE, Where

Triple = tuple[float, float, float]
Tensor = tuple[float, float, float, float, float, float]  # xx xy xz yy yz zz: symmetric
Rotation = tuple[Triple, Triple, Triple]  # rows; takes child coordinates to parent coordinates

LARGEST = 1e30  # no mass, length or inertia is larger; products of a few stay finite
SMALLEST = 1e-60  # no mass or inertia that a joint moves is smaller; its square keeps its digits
IDENTITY: Rotation = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class Pose:
    """Where a child frame sits in its parent: ``x_parent = rotation @ x_child + translation``."""

    rotation: Rotation = IDENTITY
    translation: Triple = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class BodyInertia:
    """Mass, centre of mass in link axes, and inertia about that centre in link axes."""

    mass: float
    com: Triple = (0.0, 0.0, 0.0)
    tensor: Tensor = (0.0,) * 6

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The tensor as a 3 by 3 matrix."""
        xx, xy, xz, yy, yz, zz = self.tensor
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def tensor_of(matrix: NDArray[Any]) -> Tensor:
    """The six numbers of a symmetric 3 by 3 matrix."""
    xx, xy, xz, yy, yz, zz = (float(x) for x in matrix[np.triu_indices(3)])
    return xx, xy, xz, yy, yz, zz


@dataclass(frozen=True)
class Geometry:
    """One visual or collision shape, kept for viewers; dynamics never reads it."""

    kind: str  # "mesh", "box", "cylinder", "sphere", "capsule"
    size: tuple[float, ...] = ()  # box: x y z; cylinder, capsule: radius length; sphere: radius
    path: str = ""  # mesh: the resolved file, or what the robot file says where there is none
    scale: Triple = (1.0, 1.0, 1.0)
    origin: Pose = Pose()
    rgba: tuple[float, float, float, float] | None = None
    file: str = ""  # mesh: its real path, where the robot file may name it; nothing else is opened


@dataclass(frozen=True)
class LinkDescription:
    """One link as the file names it."""

    name: str
    inertia: BodyInertia | None = None
    visuals: tuple[Geometry, ...] = ()
    collisions: tuple[Geometry, ...] = ()
    where: Where = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Limits:
    """Joint limits; infinite where the file gives none."""

    lower: float = -inf
    upper: float = inf
    velocity: float = inf
    effort: float = inf


@dataclass(frozen=True)
class Mimic:
    """A joint tied to another: ``q = multiplier q_driver + offset``."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0
    where: Where | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class JointDescription:
    """One joint as the file names it; ``axis`` is a unit vector in the joint's own frame."""

    name: str
    kind: str  # "fixed" or a kind of model/joints.py
    parent: str
    child: str
    origin: Pose = Pose()
    axis: Triple = (0.0, 0.0, 1.0)  # readers set it; of no meaning to spherical, free and fixed
    second_axis: Triple = (1.0, 0.0, 0.0)  # universal only: the axis of the second angle
    pitch: float = 0.0  # helical only: metres per radian
    mimic: Mimic | None = None
    limits: Limits = Limits()
    # rotor inertia on the diagonal of the mass matrix: one number, or one per degree of freedom
    armature: float | tuple[float, ...] = 0.0
    damping: float = 0.0
    friction: float = 0.0
    where: Where = field(default=NOWHERE, compare=False, repr=False)
    # axes of the linear rates that rotors resist, where they are not those of the joint's rates:
    # "parent" (free, as in MuJoCo) or "link" (planar, as in Pinocchio)
    rotor_axes: str = ""

    @property
    def least_armature(self) -> float:
        """The smallest rotor inertia of the joint's degrees of freedom."""
        return min(self.armature) if isinstance(self.armature, tuple) else self.armature


@dataclass(frozen=True)
class FrameDescription:
    """A frame of interest fixed to a link: a tool point, a sensor."""

    name: str
    link: str
    origin: Pose = Pose()


@dataclass(frozen=True)
class LoopDescription:
    """A frame that a file holds to another, at a pose in it, in some directions: `Loop`."""

    frame_a: str
    frame_b: str
    directions: tuple[bool, ...]
    pose: Pose = Pose()


@dataclass(frozen=True)
class CouplingDescription:
    """A joint that a file holds to a polynomial of another, the constant first: `Coupling`."""

    joint: str
    driver: str | None
    polynomial: tuple[float, ...]


@dataclass(frozen=True)
class RobotDescription:
    """A whole robot as the file describes it, structure already validated by the reader."""

    name: str
    links: tuple[LinkDescription, ...]
    joints: tuple[JointDescription, ...]
    gravity: Triple = (0.0, 0.0, -9.81)
    where: Where = field(default=NOWHERE, compare=False, repr=False)
    base: str = ""  # the root link
    frames: tuple[FrameDescription, ...] = ()  # besides those of links and joints
    # that the file closes; a robot keeps them itself
    loops: tuple[LoopDescription | CouplingDescription, ...] = ()
    order: tuple[str, ...] = ()  # of joints in q, parents first; those not named go depth first
    # damping and friction always act in the library that the description is written for
    friction_acts: bool = field(default=False, compare=False)
