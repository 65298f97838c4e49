"""Joint kinds: one final class each, and the only place that knows one from another.

A joint has a configuration of its own size (``nq``), and a motion subspace of one to six columns
(``nv``) in the link's axes at the link's origin, which may depend on the configuration. The joint
frame is chosen so that the axis, where there is one, is z.

| kind | q | qd |
|---|---|---|
| revolute, continuous | angle about z | its rate |
| prismatic | distance along z | its rate |
| helical | angle about z; the link also slides ``pitch`` metres per radian | its rate |
| universal | angle about z, then about x | their rates |
| planar | x, y in the plane normal to z, then angle about z | their rates |
| spherical | unit quaternion (w, x, y, z) | angular velocity in link axes |
| free | unit quaternion, position | (angular, linear) velocity in link axes |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

from linkwise.spatial import (
    Force,
    Motion,
    RigidInertia,
    Rotation,
    Scalar,
    Sym3,
    Transform,
    Turn,
    Vec3,
    Vector,
    cross,
    sincos,
)
from linkwise.spatial.quaternion import Quaternion, exponential, logarithm, moved_by, moved_from

Subspace = tuple[Motion, ...]  # columns, in link axes at the link's origin

_NONE = Vec3(0.0, 0.0, 0.0)
_X, _Y, _Z = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0)


def _spin(axis: Vec3) -> Motion:
    return Motion(axis, _NONE)


def _push(axis: Vec3) -> Motion:
    return Motion(_NONE, axis)


def _moment(axis: Vec3) -> Force:
    return Force(axis, _NONE)


def _force(axis: Vec3) -> Force:
    return Force(_NONE, axis)


_WRENCHES = (_moment(_X), _moment(_Y), _moment(_Z), _force(_X), _force(_Y), _force(_Z))


def _unit_index(column: Motion) -> int | None:
    """Which coordinate a column moves, where it is one alone."""
    numbers = list(column)
    if not all(isinstance(x, float) for x in numbers) or sorted(numbers) != [0.0] * 5 + [1.0]:
        return None
    return numbers.index(1.0)


class JointState(NamedTuple):
    """A joint at one configuration: frame change from the parent's link, and motion subspace."""

    X: Transform
    S: Subspace

    def motion(self, rates: Vector) -> Motion:
        """``S rates``: motion across the joint."""
        total = Motion.zero()
        for column, rate in zip(self.S, rates, strict=True):
            total = total + column * rate
        return total

    def project(self, f: Force) -> list[Scalar]:
        """``Sᵀ f``: the part of a wrench that the joint's motors feel."""
        return [column.dot(f) for column in self.S]


class Directions(NamedTuple):
    """Wrenches across a joint: ``F = drive tau + hold f``, for any torques and any ``f``.

    ``driveᵀ S = 1``, one direction per column; ``holdᵀ S = 0``, wrenches that the joint withstands.
    """

    drive: tuple[Force, ...]
    hold: tuple[Force, ...]


class Joint(ABC):
    """The interface of a joint kind to the algorithms."""

    nq: ClassVar[int]
    nv: ClassVar[int]
    # freedom in the choice of the link's frame: turn it about z; move its origin
    turns_freely: ClassVar[bool] = False
    slides_freely: ClassVar[str] = "not"  # "not", "along z" or "anywhere"
    # whether its rates are no derivatives of its configuration, but motions along the link's axes
    quasi: ClassVar[bool] = False

    @abstractmethod
    def transform(self, q: Vector) -> Transform:
        """Joint frame at rest -> link frame."""

    @abstractmethod
    def columns(self, q: Vector) -> Subspace:
        """The motion subspace ``S``."""

    def drift(self, q: Vector, qd: Vector) -> Motion:
        """``Ṡ qd`` in link axes: zero where S does not depend on q."""
        return Motion.zero()

    def directions(self, q: Vector) -> Directions:
        """Wrenches that drive the joint and those it withstands; of unit columns, unit vectors."""
        driven = [_unit_index(column) for column in self.columns(q)]
        if None in driven:
            raise ValueError(
                f"joint {type(self).__name__}: its columns are not unit vectors; expected it to "
                "define directions(q) (methods 'crba' and 'aba' do without)"
            )
        hold = tuple(unit for i, unit in enumerate(_WRENCHES) if i not in driven)
        return Directions(tuple(_WRENCHES[i] for i in driven if i is not None), hold)

    def column_rates(self, q: Vector, qd: Vector) -> Subspace:
        """``Ṡ`` in link axes, of which `drift` is the product with ``qd``."""
        return (Motion.zero(),) * self.nv

    def swept(self, rates: Vector, moved: Vector) -> list[Scalar]:
        """``w x v``, w of ``rates`` and v of ``moved``: how linear rates change in turning axes."""
        return [0.0] * self.nv

    def unaffected(self, body: RigidInertia) -> RigidInertia:
        """The part of the link's inertia that does not notice the joint's motion."""
        return RigidInertia.zero()

    # the configuration manifold

    def neutral(self) -> list[float]:
        """The configuration at rest."""
        return [0.0] * self.nq

    def integrate(self, q: Vector, v: Vector) -> list[Scalar]:
        """The configuration reached by holding the rates v for unit time."""
        return [a + b for a, b in zip(q, v, strict=True)]

    def difference(self, q0: Vector, q1: Vector) -> list[Scalar]:
        """The rates that lead from q0 to q1 in unit time."""
        return [b - a for a, b in zip(q0, q1, strict=True)]

    def rate(self, q: Vector, v: Vector) -> list[Scalar]:
        """How fast the numbers of q change at rates v."""
        return list(v)

    def tangent(self, q: Vector, v: Vector) -> list[Scalar]:
        """`rate` of a configuration whose quaternion may have any length, which stays the same."""
        return self.rate(q, v)

    def bracket(self, u: Vector, v: Vector) -> list[Scalar]:
        """``[u, v]``: twice what moving by u and then by v turns and shifts more than by u + v."""
        return [0.0] * self.nv

    def cobracket(self, u: Vector, p: Vector) -> list[Scalar]:
        """``adᵀ p``: a force for which ``p · [u, v]`` is the power at the rates v."""
        return [0.0] * self.nv

    def normalize(self, q: Vector) -> list[Scalar]:
        """The nearest legal configuration."""
        return list(q)


def _line_mass(body: RigidInertia) -> Sym3:
    return Sym3(0.0, 0.0, 0.0, 0.0, 0.0, body.second.zz)


@final
@dataclass(frozen=True)
class Revolute(Joint):
    """Turns about z."""

    nq = nv = 1
    turns_freely = True
    slides_freely = "along z"

    def transform(self, q: Vector) -> Transform:
        s, c = sincos(q[0])
        return Transform(_NONE, (Turn("z", c, s),))

    def columns(self, q: Vector) -> Subspace:
        return (_spin(_Z),)

    def unaffected(self, body: RigidInertia) -> RigidInertia:
        """Mass spread along the axis stays where it is when the link turns about that axis."""
        return RigidInertia(body.m, Vec3(0.0, 0.0, body.h.z), _line_mass(body))


@final
@dataclass(frozen=True)
class Prismatic(Joint):
    """Slides along z."""

    nq = nv = 1
    turns_freely = True
    slides_freely = "anywhere"

    def transform(self, q: Vector) -> Transform:
        return Transform(Vec3(0.0, 0.0, q[0]))

    def columns(self, q: Vector) -> Subspace:
        return (_push(_Z),)

    def unaffected(self, body: RigidInertia) -> RigidInertia:
        """A link that only slides turns as its parent does."""
        return RigidInertia(0.0, _NONE, body.second)


@final
@dataclass(frozen=True)
class Helical(Joint):
    """Turns about z and slides along it, ``pitch`` metres per radian."""

    pitch: float
    nq = nv = 1
    turns_freely = True
    slides_freely = "along z"

    def transform(self, q: Vector) -> Transform:
        s, c = sincos(q[0])
        return Transform(Vec3(0.0, 0.0, self.pitch * q[0]), (Turn("z", c, s),))

    def columns(self, q: Vector) -> Subspace:
        return (Motion(_Z, Vec3(0.0, 0.0, self.pitch)),)

    def directions(self, q: Vector) -> Directions:
        along = Force(Vec3(0.0, 0.0, -self.pitch), _Z)
        return Directions((_moment(_Z),), (*_WRENCHES[:2], *_WRENCHES[3:5], along))

    def unaffected(self, body: RigidInertia) -> RigidInertia:
        """The second moment along z is felt only by turning about x and y."""
        return RigidInertia(0.0, _NONE, _line_mass(body))


@final
@dataclass(frozen=True)
class Universal(Joint):
    """Turns about z, then about the turned x; both axes meet at the origin."""

    nq = nv = 2

    def transform(self, q: Vector) -> Transform:
        (s1, c1), (s2, c2) = sincos(q[0]), sincos(q[1])
        return Transform(_NONE, (Turn("z", c1, s1), Turn("x", c2, s2)))

    def columns(self, q: Vector) -> Subspace:
        s, c = sincos(q[1])
        return (_spin(Vec3(0.0, s, c)), _spin(_X))

    def directions(self, q: Vector) -> Directions:
        s, c = sincos(q[1])
        drive = (_moment(Vec3(0.0, s, c)), _moment(_X))
        return Directions(drive, (_moment(Vec3(0.0, c, -s)), *_WRENCHES[3:]))

    def drift(self, q: Vector, qd: Vector) -> Motion:
        s, c = sincos(q[1])
        both = qd[0] * qd[1]
        return _spin(Vec3(0.0, c * both, -(s * both)))

    def column_rates(self, q: Vector, qd: Vector) -> Subspace:
        s, c = sincos(q[1])
        return (_spin(Vec3(0.0, c * qd[1], -(s * qd[1]))), Motion.zero())

    def unaffected(self, body: RigidInertia) -> RigidInertia:
        """Mass at the point where the axes meet."""
        return RigidInertia(body.m, _NONE, Sym3.zero())


@final
@dataclass(frozen=True)
class Planar(Joint):
    """Slides along x and y of the joint frame, then turns about z."""

    nq = nv = 3

    def transform(self, q: Vector) -> Transform:
        s, c = sincos(q[2])
        return Transform(Vec3(q[0], q[1], 0.0), (Turn("z", c, s),))

    def columns(self, q: Vector) -> Subspace:
        s, c = sincos(q[2])
        return (_push(Vec3(c, -s, 0.0)), _push(Vec3(s, c, 0.0)), _spin(_Z))

    def directions(self, q: Vector) -> Directions:
        s, c = sincos(q[2])
        drive = (_force(Vec3(c, -s, 0.0)), _force(Vec3(s, c, 0.0)), _moment(_Z))
        return Directions(drive, (*_WRENCHES[:2], _WRENCHES[5]))

    def drift(self, q: Vector, qd: Vector) -> Motion:
        s, c = sincos(q[2])
        x, y = c * qd[0] + s * qd[1], c * qd[1] - s * qd[0]
        return _push(Vec3(y * qd[2], -(x * qd[2]), 0.0))

    def column_rates(self, q: Vector, qd: Vector) -> Subspace:
        s, c = sincos(q[2])
        x, y = s * qd[2], c * qd[2]
        return (_push(Vec3(-x, -y, 0.0)), _push(Vec3(y, -x, 0.0)), Motion.zero())

    def swept(self, rates: Vector, moved: Vector) -> list[Scalar]:
        return [-(rates[2] * moved[1]), rates[2] * moved[0], 0.0]

    def unaffected(self, body: RigidInertia) -> RigidInertia:
        """The second moment along z is felt only by turning about x and y."""
        return RigidInertia(0.0, _NONE, _line_mass(body))


@final
@dataclass(frozen=True)
class Spherical(Joint):
    """Turns about its centre in every direction."""

    nq, nv = 4, 3
    quasi = True

    def transform(self, q: Vector) -> Transform:
        return Transform(_NONE, (Rotation.of_quaternion(*q),))

    def columns(self, q: Vector) -> Subspace:
        return (_spin(_X), _spin(_Y), _spin(_Z))

    def unaffected(self, body: RigidInertia) -> RigidInertia:
        """Mass at the centre."""
        return RigidInertia(body.m, _NONE, Sym3.zero())

    def neutral(self) -> list[float]:
        return [1.0, 0.0, 0.0, 0.0]

    def integrate(self, q: Vector, v: Vector) -> list[Scalar]:
        return list((Quaternion.of(q).unit() @ exponential(Vec3(*v))).numbers())

    def difference(self, q0: Vector, q1: Vector) -> list[Scalar]:
        return list(logarithm((Quaternion.of(q0).back @ Quaternion.of(q1)).unit()))

    def rate(self, q: Vector, v: Vector) -> list[Scalar]:
        return list(_quaternion_rate(Quaternion.of(q), v).numbers())

    def bracket(self, u: Vector, v: Vector) -> list[Scalar]:
        return list(cross(Vec3(*u), Vec3(*v)))

    def cobracket(self, u: Vector, p: Vector) -> list[Scalar]:
        return list(cross(Vec3(*p), Vec3(*u)))

    def normalize(self, q: Vector) -> list[Scalar]:
        return list(Quaternion.of(q).unit().numbers())


@final
@dataclass(frozen=True)
class Free(Joint):
    """Moves in every way."""

    nq, nv = 7, 6
    quasi = True

    def transform(self, q: Vector) -> Transform:
        return Transform(Vec3(*q[4:7]), (Rotation.of_quaternion(*q[:4]),))

    def columns(self, q: Vector) -> Subspace:
        return (_spin(_X), _spin(_Y), _spin(_Z), _push(_X), _push(_Y), _push(_Z))

    def swept(self, rates: Vector, moved: Vector) -> list[Scalar]:
        return [0.0, 0.0, 0.0, *cross(Vec3(*rates[:3]), Vec3(*moved[3:]))]

    def neutral(self) -> list[float]:
        return [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]

    def integrate(self, q: Vector, v: Vector) -> list[Scalar]:
        start, r = Quaternion.of(q).unit(), Vec3(*v[:3])
        place = Vec3(*q[4:]) + start.turn(moved_by(r, Vec3(*v[3:])))
        return [*(start @ exponential(r)).numbers(), *place]

    def difference(self, q0: Vector, q1: Vector) -> list[Scalar]:
        back = Quaternion.of(q0).unit().back
        turn = (back @ Quaternion.of(q1)).unit()
        step = back.turn(Vec3(*q1[4:]) - Vec3(*q0[4:]))
        return [*logarithm(turn), *moved_from(turn, step)]

    def rate(self, q: Vector, v: Vector) -> list[Scalar]:
        at = Quaternion.of(q)
        return [*_quaternion_rate(at, v[:3]).numbers(), *at.turn(Vec3(*v[3:]))]

    def tangent(self, q: Vector, v: Vector) -> list[Scalar]:
        shift = self.transform(q).rotate_back(Vec3(*v[3:]))
        return [*_quaternion_rate(Quaternion.of(q), v[:3]).numbers(), *shift]

    def bracket(self, u: Vector, v: Vector) -> list[Scalar]:
        turn, shift, other = Vec3(*u[:3]), Vec3(*u[3:]), Vec3(*v[:3])
        return [*cross(turn, other), *(cross(turn, Vec3(*v[3:])) + cross(shift, other))]

    def cobracket(self, u: Vector, p: Vector) -> list[Scalar]:
        turn, moment, force = Vec3(*u[:3]), Vec3(*p[:3]), Vec3(*p[3:])
        return [*(cross(moment, turn) + cross(force, Vec3(*u[3:]))), *cross(force, turn)]

    def normalize(self, q: Vector) -> list[Scalar]:
        return [*Quaternion.of(q).unit().numbers(), *q[4:]]


def _quaternion_rate(q: Quaternion, w: Vector) -> Quaternion:
    """``½ q (0, w)``: how q changes at an angular velocity in turned axes."""
    return (q @ Quaternion(0.0, Vec3(*w))).scaled(0.5)


# kinds as descriptions name them; "helical" takes its pitch
JOINTS: dict[str, type[Joint]] = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "helical": Helical,
    "universal": Universal,
    "planar": Planar,
    "spherical": Spherical,
    "free": Free,
}
FIXED = "fixed"


def make_joint(kind: str, pitch: float = 0.0) -> Joint:
    """The joint of a kind."""
    return Helical(pitch) if kind == "helical" else JOINTS[kind]()
