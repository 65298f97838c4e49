"""Closed loops of a robot: two frames that are held together in some directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from linkwise.model.description import IDENTITY
from linkwise.model.tree import BASE, Frame, Tree
from linkwise.model.values import Array, as_triple, freeze, mask, numbers, pose, unknown
from linkwise.spatial.matrices import lengths, orthonormal, product

Row = tuple[float, float, float, float, float, float]
ALL = (True,) * 6
WORLD = Frame(BASE, (0.0, 0.0, 0.0), IDENTITY)
MOST_TERMS = 16  # of a polynomial
LEAST_ANGLE = 1e-9  # directions closer to each other than that (rad) are taken for dependent


@dataclass(frozen=True)
class Loop:
    """A closed loop: a frame that is held to another one, or to the world, in some directions.

    ``directions``: six booleans (turning about x, y, z, moving along x, y, z), or rows (k, 6) of
    numbers (angular, linear) along which frame a does not move relative to frame b. They are fixed
    in the axes of frame b (base axes for the world); the velocity is that of the origin of frame a.
    ``pose`` (4, 4) is where frame a is to be, in frame b or in the world: the identity unless given
    here or by `Robot.close_loops`. It does not turn the directions.

    ``unilateral`` (3) declares a contact that can only push: the direction in which frame a is
    pushed, in the axes of frame b (base axes for the world), such as (0, 0, 1) for a foot on the
    ground. The equations hold it both ways; a state in which it pulls has `Status.PULLING`, and a
    call of `Robot.forward_dynamics`, `Robot.constraint_forces` or `simulate` warns of it.

    >>> import linkwise as lw
    >>> pin = lw.Loop("rod", "crank", [False, False, False, True, True, True])  # a ball joint
    """

    frame_a: str
    frame_b: str | None = None
    directions: Any = ALL
    pose: Any = None
    unilateral: Any = None

    def __post_init__(self) -> None:
        freeze(self, "directions", "pose", "unilateral")

    @property
    def frames(self) -> tuple[str, ...]:
        """The names of its frames."""
        return (self.frame_a,) if self.frame_b is None else (self.frame_a, self.frame_b)

    @property
    def title(self) -> str:
        """Its ends, for messages."""
        other = "the world" if self.frame_b is None else repr(self.frame_b)
        return f"{self.frame_a!r} to {other}"

    def renamed(self, new: Callable[[str], str]) -> Loop:
        """The same loop with other names of its frames."""
        other = None if self.frame_b is None else new(self.frame_b)
        return replace(self, frame_a=new(self.frame_a), frame_b=other)


@dataclass(frozen=True)
class Coupling:
    """A joint held to a curve over another joint: ``joint = c0 + c1 x + c2 x² + ...``.

    x is the position of that other joint, the ``driver``; without one, the joint is held at the
    constant c0. Both are joints of one degree of freedom that are no mimic joints. Like any loop it
    acts both ways: each joint pushes the other.

    >>> import linkwise as lw
    >>> robot = lw.load("puma560").close_loops([lw.Coupling("joint3", "joint2", (0.0, -1.0))])
    >>> float(robot.residual([0.0, 0.3, -0.3, 0.0, 0.0, 0.0]).position[0])  # joint3 = -joint2
    0.0
    """

    joint: str
    driver: str | None = None
    polynomial: Any = (0.0,)

    def __post_init__(self) -> None:
        freeze(self, "polynomial")

    @property
    def title(self) -> str:
        """Its joints, for messages."""
        other = "a number" if self.driver is None else f"a curve over joint {self.driver!r}"
        return f"joint {self.joint!r} on {other}"

    def renamed(self, new: Callable[[str], str]) -> Coupling:
        """The same coupling with other names of its joints."""
        other = None if self.driver is None else new(self.driver)
        return replace(self, joint=new(self.joint), driver=other)


@dataclass(frozen=True)
class Curve:
    """A `Coupling` as algorithms see it: places in q, degrees of freedom, numbers."""

    name: str  # in messages
    q: int
    dof: int
    driver_q: int  # -1: there is none
    driver_dof: int
    polynomial: tuple[float, ...]

    @property
    def driven(self) -> bool:
        """Whether there is a driver."""
        return self.driver_q >= 0

    @property
    def dofs(self) -> tuple[int, ...]:
        """The degrees of freedom that it holds."""
        return (self.dof, self.driver_dof) if self.driven else (self.dof,)

    @property
    def content(self) -> tuple[object, ...]:
        """What programs depend on."""
        return (self.q, self.dof, self.driver_q, self.driver_dof, self.polynomial)


AnyLoop = Loop | Coupling


@dataclass(frozen=True)
class Closure:
    """Frame a does not move against frame b in some directions: rows (angular, linear), which are
    fixed in the axes of b and taken at the origin of a.
    """

    name: str  # in messages
    a: Frame
    b: Frame  # where a shall be
    directions: tuple[Row, ...]
    normal: tuple[float, float, float] | None = None  # in axes of b: frame a is pushed along it

    @property
    def rank(self) -> int:
        """How many directions are held."""
        return len(self.directions)

    @cached_property
    def turning(self) -> int:
        """How many independent directions of turning take part."""
        return len(self._turns)

    @cached_property
    def hinge(self) -> tuple[float, float, float]:
        """The axis, in axes of b, that is left to turn about where two directions are held."""
        x, y, z = np.cross(*self._turns).tolist()
        return x, y, z

    @cached_property
    def _turns(self) -> Array:
        """Orthonormal axes of turning that take part."""
        return orthonormal(np.array(self.directions)[:, :3])


def directions_of(what: str, value: Any) -> tuple[Row, ...]:
    """Directions from six booleans, or rows (k, 6) of numbers; raises unless independent."""
    array, chosen = np.asarray(value), mask(value)
    if chosen is not None:
        rows: Array = np.eye(6)[chosen]
    elif array.ndim == 2 and array.dtype != bool and 1 <= len(array) <= 6:
        rows = numbers(what, value, (len(array), 6))
    elif array.ndim == 2 and array.shape[-1] == 6 and len(array) > 6:
        raise ValueError(f"{what}: {len(array)} rows; expected at most 6, independent")
    else:
        raise ValueError(
            f"{what} is {value!r}; expected six booleans, or rows (k, 6) of numbers (angular, "
            "linear) with k from 1 to 6"
        )
    if not len(rows) or not rows.any():
        raise ValueError(f"{what} hold nothing; expected at least one direction")
    _refuse_dependent(what, rows)
    return tuple(_row(row) for row in rows.tolist())


def _row(numbers: Sequence[float]) -> Row:
    a, b, c, d, e, f = (x + 0.0 for x in numbers)
    return a, b, c, d, e, f


def _refuse_dependent(what: str, rows: Array) -> None:
    """Raise where a row is a sum of others, all taken at unit length."""
    sizes = lengths(rows)
    if not sizes.all():
        raise ValueError(f"{what}: row {int(np.argmin(sizes))} is zero; expected a direction")
    rank = len(orthonormal(rows / sizes[:, None], LEAST_ANGLE))
    if rank < len(rows):
        raise ValueError(
            f"{what}: {len(rows)} rows of rank {rank}; expected rows that are independent of each "
            "other"
        )


class Closing(NamedTuple):
    """What a user added to a tree: closed loops, and which joints have a motor."""

    loops: tuple[AnyLoop, ...] = ()
    motors: tuple[tuple[str, bool], ...] = ()  # joints of which it was said; later ones win

    def of(self, tree: Tree, robot: str) -> Tree:
        """The tree closed; raises where a loop has no meaning on the robot of that name."""
        tree = self._with_motors(tree)
        if not (self.loops or tree.is_closed):
            return tree
        closures = tuple(
            _closure(tree, robot, k, loop)
            for k, loop in enumerate(self.loops)
            if isinstance(loop, Loop)
        )
        curves = tuple(
            _curve(tree, robot, k, loop)
            for k, loop in enumerate(self.loops)
            if isinstance(loop, Coupling)
        )
        return replace(tree, closures=closures, curves=curves)

    def _with_motors(self, tree: Tree) -> Tree:
        """The tree whose joints have the motors that were named, or else as they had."""
        if not self.motors:
            return tree
        joints = {link.joint_name: link for link in tree.links if link.follows is None}
        passive = set(tree.passive)
        for name, motor in self.motors:
            dofs = {j for j, _ in joints[name].dofs} if name in joints else set()
            passive = passive - dofs if motor else passive | dofs
        usual = passive == set(tree.free_dofs)
        return replace(tree, unactuated=None if usual else tuple(sorted(passive)))

    def renamed(self, new: Callable[[str], str]) -> Closing:
        """The same with other names of frames and joints."""
        loops = tuple(loop.renamed(new) for loop in self.loops)
        return Closing(loops, tuple((new(name), motor) for name, motor in self.motors))

    def beside(self, other: Closing) -> Closing:
        """Both."""
        return Closing(self.loops + other.loops, self.with_motors(other.motors).motors)

    def with_motors(self, motors: Iterable[tuple[str, bool]]) -> Closing:
        """The same with motors of other joints too."""
        return self._replace(motors=tuple((dict(self.motors) | dict(motors)).items()))


def several(loops: Any) -> tuple[AnyLoop, ...]:
    """Loops from a list of them, or from one."""
    found = tuple(loops) if isinstance(loops, Iterable) else (loops,)
    for k, loop in enumerate(found):
        if not isinstance(loop, Loop | Coupling):
            raise TypeError(
                f"close_loops: loop {k} is {loop!r}; expected a linkwise.Loop or linkwise.Coupling"
            )
    if not found:
        raise ValueError("close_loops: there are no loops; expected at least one linkwise.Loop")
    return found


def _curve(tree: Tree, robot: str, k: int, loop: Coupling) -> Curve:
    """A coupling of joints that the tree has."""
    title = f"loop {k}: {loop.title}"
    places = [_place(tree, robot, f"close_loops: {title}", x) for x in (loop.joint, loop.driver)]
    given = np.asarray(loop.polynomial)
    if given.dtype.kind not in "iuf" or given.ndim != 1 or not 1 <= len(given) <= MOST_TERMS:
        raise ValueError(
            f"close_loops: {title}: polynomial is {loop.polynomial!r}; expected one to "
            f"{MOST_TERMS} numbers, the constant first"
        )
    terms = numbers(f"close_loops: {title}: polynomial", given, given.shape).tolist()
    if loop.driver is None and len(terms) > 1:
        raise ValueError(
            f"close_loops: {title}: polynomial is {loop.polynomial!r} without a driver; expected "
            "one number, or the name of a driver"
        )
    if loop.driver == loop.joint:
        raise ValueError(f"close_loops: {title}: it is its own driver; expected another joint")
    (q, dof), (driver_q, driver_dof) = places
    return Curve(title, q, dof, driver_q, driver_dof, tuple(terms))


def _place(tree: Tree, robot: str, what: str, joint: str | None) -> tuple[int, int]:
    """A joint's place in q and qd; -1 where there is none."""
    if joint is None:
        return -1, -1
    links = {link.joint_name: link for link in tree.links}
    if not isinstance(joint, str) or joint not in links:
        raise unknown("joint", joint, robot, links)
    link = links[joint]
    if link.follows is not None or link.joint.nq != 1 or link.joint.nv != 1:
        raise ValueError(
            f"{what}: joint {joint!r} follows another, or has not one degree of freedom; expected "
            "a joint of one that moves on its own"
        )
    return link.q_index, link.v_index


def _closure(tree: Tree, robot: str, k: int, loop: Loop) -> Closure:
    """A loop whose frames have the same axes when it is closed."""
    for name in loop.frames:
        if not isinstance(name, str) or name not in tree.frames:
            raise unknown("frame", name, robot, tree.frames)
    a, b = tree.frames[loop.frame_a], WORLD if loop.frame_b is None else tree.frames[loop.frame_b]
    title = f"loop {k}: {loop.title}"
    what = f"close_loops: {title}"
    if a.link == b.link:
        on = "the base" if a.link == BASE else f"link {tree.links[a.link].name!r}"
        raise ValueError(
            f"{what}: both are fixed to {on} and never move against each other; expected frames of "
            "different links"
        )
    rows, place = (
        directions_of(f"{what}: directions", loop.directions),
        pose(f"{what}: pose", loop.pose),
    )
    turned = product(a.rotation, np.array(place.rotation).T)
    origin = np.array(b.origin) + product(b.rotation, place.translation)
    first = replace(a, rotation=tuple(as_triple(row) for row in turned))
    normal = _normal(f"{what}: unilateral", loop.unilateral)
    return Closure(title, first, replace(b, origin=as_triple(origin)), rows, normal)


def _normal(what: str, value: Any) -> tuple[float, float, float] | None:
    """The direction in which a contact pushes, of unit length."""
    if value is None:
        return None
    expected = "expected a direction (3 numbers), such as (0, 0, 1)"
    try:
        found = numbers(what, value, (3,))
    except ValueError as error:
        raise ValueError(str(error).replace("expected 3 finite numbers", expected)) from None
    size = float(lengths(found))
    if not size:
        raise ValueError(f"{what} is {value!r}; {expected}")
    return as_triple(found / size)
