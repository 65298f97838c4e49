"""The robot as the sweeps see it: moving links, parents before children."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linkwise.model.description import IDENTITY, Limits
from linkwise.model.joints import Free, Joint, JointState, Spherical
from linkwise.model.projection import Index, Projection, Row, Tensor
from linkwise.spatial import (
    Mat3,
    Matrix,
    RigidInertia,
    Rotation,
    Scalar,
    Sym3,
    Transform,
    Turn,
    Vec3,
    constant,
    sign,
)
from linkwise.spatial.matrices import added

if TYPE_CHECKING:
    from linkwise.model.closures import Closure, Curve
    from linkwise.model.forest import Held

Whole = NDArray[np.int64]
UNLIMITED = Limits()
BASE = -1  # index of the link that does not move

# a block per pair of links: its rows are the first link's columns, its columns the second's
Blocks = Iterable[tuple[tuple[int, int], Sequence[Sequence[Scalar]]]]


@dataclass(frozen=True)
class Follows:
    """A joint tied to another: ``q = multiplier q_driver + offset``."""

    link: int  # the driver's link
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Link:
    """A moving body, its inboard joint, and its constants in its own frame."""

    name: str
    joint_name: str
    parent: int
    joint: Joint
    placement: Transform  # parent's frame -> joint frame at rest
    inertia: RigidInertia
    armature: tuple[float, ...]
    q_index: int  # of the driver, where the joint follows one
    v_index: int
    follows: Follows | None = None
    rotor_turn: float = 0.0  # of the axes of linear rates against the rotors'
    damping: Scalar = 0.0  # viscous, and Coulomb's, of every column; a tuple has one for each
    friction: Scalar = 0.0
    limits: Limits = UNLIMITED
    mass: float = 0.0  # as described: regrouping moves inertia between links, not this number
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)  # as described, in the link's named frame
    kind: str = ""  # as described
    # origin and axes (rows; frame axes -> link axes) of the frame that the file gives the joint
    frame_origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    frame_rotation: tuple[tuple[float, float, float], ...] = IDENTITY

    def joint_state(self, q: Sequence[Scalar]) -> JointState:
        """The joint at a configuration, seen from the parent's frame."""
        X = self.placement.then(self.joint.transform(q))
        return JointState(X, self.joint.columns(q))

    @cached_property
    def dofs(self) -> tuple[tuple[int, float], ...]:
        """For each column of the joint: which degree of freedom moves it, and how much."""
        factor = self.follows.multiplier if self.follows else 1.0
        return tuple((self.v_index + k, factor) for k in range(self.joint.nv))

    @cached_property
    def geared(self) -> tuple[int, ...]:
        """The joint's columns that turn a rotor."""
        return tuple(k for k, rotor in enumerate(self.armature) if rotor != 0.0)

    def resistance(self, rates: Sequence[Scalar]) -> list[Scalar]:
        """Torques that damping, Coulomb friction and turning rotors take from the motors."""
        turned = self.turned_rotors(rates, rates)
        own = zip(*self.losses, rates, turned, strict=True)
        return [viscous * rate + dry * sign(rate) + t for viscous, dry, rate, t in own]

    @property
    def losses(self) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
        """Viscous and Coulomb friction of each column."""
        n = self.joint.nv
        viscous, dry = (
            x if isinstance(x, tuple) else (x,) * n for x in (self.damping, self.friction)
        )
        return viscous, dry

    def turned_rotors(self, rates: Sequence[Scalar], moved: Sequence[Scalar]) -> list[Scalar]:
        """Torques, linear in both arguments, of rotors whose axes are not those of the rates.

        A rotor ``a`` resists the change of a velocity ``v`` in its own axes, ``a (v̇ + k w x v)``
        where the axes of ``v`` turn against them with ``k w``.
        """
        swept = self.joint.swept(rates, moved)
        return [rotor * self.rotor_turn * x for rotor, x in zip(self.armature, swept, strict=True)]


class Links(Protocol):
    """What a tree asks of all its links at once."""

    nq: int
    nv: int
    parent: Whole
    q_index: Whole
    v_index: Whole
    coupled: bool  # whether some joint follows another

    @property
    def mass(self) -> float:
        """Of all links together."""

    @property
    def geared_alike(self) -> bool:
        """Whether of each kind of joint all have rotors on the same columns."""

    def names(self, i: int) -> tuple[str, str]:
        """Of a link and its joint."""

    def check(self) -> None:
        """Hold the links to the contract of a tree: parents first, slices in order."""


class OneByOne:
    """The answers of links that are looked at one by one."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links = links
        free = [link.joint for link in links if link.follows is None]
        self.nq, self.nv = sum(joint.nq for joint in free), sum(joint.nv for joint in free)
        self.parent, self.q_index, self.v_index = (
            np.array([getattr(link, field) for link in links], np.int64)
            for field in ("parent", "q_index", "v_index")
        )
        self.coupled = len(free) < len(links)

    @property
    def mass(self) -> float:
        """Of all links together."""
        return float(added([float(link.inertia.m) for link in self._links]))

    @property
    def geared_alike(self) -> bool:
        """Whether of each kind of joint all have rotors on the same columns."""
        found = {(type(link.joint), link.geared) for link in self._links}
        return len(found) == len({kind for kind, _ in found})

    def names(self, i: int) -> tuple[str, str]:
        """Of a link and its joint."""
        return self._links[i].name, self._links[i].joint_name

    def check(self) -> None:
        """Hold the links to the contract of a tree: parents first, slices in order."""
        nq = nv = 0
        for i, link in enumerate(self._links):
            if not BASE <= link.parent < i:
                raise ValueError(f"link {i}: parent {link.parent} must be in [-1, {i})")
            if link.follows is not None:
                self._check_driver(i, link, link.follows)
                continue
            if (link.q_index, link.v_index) != (nq, nv):
                raise ValueError(f"link {i}: q and v slices must follow each other")
            nq, nv = nq + link.joint.nq, nv + link.joint.nv

    def _check_driver(self, i: int, link: Link, follows: Follows) -> None:
        driver = self._links[follows.link]
        if driver.follows is not None or (driver.joint.nv, link.joint.nv) != (1, 1):
            raise ValueError(
                f"link {i} ({link.name!r}) follows link {follows.link} ({driver.name!r}): driver "
                "and follower must both have one degree of freedom, and the driver must not follow "
                "another joint"
            )
        if (link.q_index, link.v_index) != (driver.q_index, driver.v_index):
            raise ValueError(f"link {i}: q and v slices must be its driver's")


class LinkArrays(Sequence[Link], ABC):
    """Links that answer for all of them from arrays (linktable.py)."""

    nq: int
    nv: int
    parent: Whole
    q_index: Whole
    v_index: Whole
    coupled = False

    @property
    @abstractmethod
    def mass(self) -> float:
        """Of all links together."""

    @property
    @abstractmethod
    def geared_alike(self) -> bool:
        """Whether of each kind of joint all have rotors on the same columns."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """Hash of all that equations compute with."""

    @abstractmethod
    def names(self, i: int) -> tuple[str, str]:
        """Of a link and its joint."""

    @abstractmethod
    def bodies(self) -> Iterator[RigidInertia]:
        """Inertias whose numbers are arrays, of many links each."""

    @abstractmethod
    def of_joints(self, field: str) -> NDArray[np.float64]:
        """``"armature"``, ``"damping"`` or ``"friction"`` of each degree of freedom."""

    def check(self) -> None:
        """Nothing: tables are made as a tree asks."""


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a link: origin and axes in the link's frame."""

    link: int
    origin: tuple[float, float, float]
    rotation: tuple[tuple[float, float, float], ...]  # rows; frame axes -> link axes
    of_object: bool = False  # fixed to the object that the link carries (forest.py)


@dataclass(frozen=True)
class Tree:
    """Links in order, gravity in base axes, and named frames."""

    links: Sequence[Link]  # a tuple, or a table (linktable.py)
    gravity: tuple[Scalar, Scalar, Scalar] = (0.0, 0.0, -9.81)
    frames: Mapping[str, Frame] = field(default_factory=dict)
    unmoved: tuple[str, ...] = ()  # joints that move no inertia; none with strict=False
    # whether code is loops over the links, or written out for each; None: as their number says
    loops: bool | None = None
    closures: tuple[Closure, ...] = ()  # closed loops: the links are a tree with all of them open
    curves: tuple[Curve, ...] = ()  # joints that are held to curves: closed loops of a kind
    # degrees of freedom without a motor; None: those of free joints, as a floating base has
    unactuated: tuple[int, ...] | None = None
    held: Held | None = None  # an object that arms hold: some of the closed loops are contacts

    def __post_init__(self) -> None:
        """Hold the links to the contract of a tree."""
        self.whole.check()

    def __getstate__(self) -> dict[str, Any]:
        """What a tree is made of, without what is computed from it and kept."""
        return {each.name: self.__dict__[each.name] for each in fields(self)}

    @cached_property
    def whole(self) -> Links:
        """The links as one."""
        return self.links if isinstance(self.links, LinkArrays) else OneByOne(self.links)

    @property
    def nq(self) -> int:
        """Numbers in a configuration."""
        return self.whole.nq

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return self.whole.nv

    @property
    def mass(self) -> float:
        """Of all moving links."""
        return self.whole.mass

    def names(self) -> Iterator[tuple[str, str]]:
        """Of each link and its joint."""
        return map(self.whole.names, range(self.n_links))

    @property
    def parent_numbers(self) -> Whole:
        """The parent of each link."""
        return self.whole.parent

    @property
    def q_indices(self) -> Whole:
        """Where each link's numbers begin in a configuration."""
        return self.whole.q_index

    @property
    def v_indices(self) -> Whole:
        """Where each link's numbers begin in joint rates."""
        return self.whole.v_index

    @property
    def n_links(self) -> int:
        """Moving links."""
        return len(self.links)

    def per_link_q(self, q: Sequence[Scalar]) -> list[Sequence[Scalar]]:
        """Split a configuration into each link's own numbers."""
        return [_own_q(link, q) for link in self.links]

    def own_numbers(self, per_link: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Each link's numbers, one after another; followers have none of their own."""
        pairs = zip(self.links, per_link, strict=True)
        return [x for link, own in pairs if link.follows is None for x in own]

    @cached_property
    def passive(self) -> tuple[int, ...]:
        """Degrees of freedom without a motor."""
        return self.free_dofs if self.unactuated is None else self.unactuated

    @cached_property
    def free_dofs(self) -> tuple[int, ...]:
        """Degrees of freedom of free joints, as a floating base has."""
        if self.nq == self.nv:  # no quaternion
            return ()
        free = (x for x in self.links if isinstance(x.joint, Free) and x.follows is None)
        return tuple(x.v_index + k for x in free for k in range(x.joint.nv))

    @cached_property
    def quaternions(self) -> tuple[int, ...]:
        """Where the quaternions of a configuration begin."""
        if self.nq == self.nv:
            return ()
        turning = (x for x in self.links if isinstance(x.joint, Free | Spherical))
        return tuple(x.q_index for x in turning if x.follows is None)

    @property
    def unilateral(self) -> bool:
        """Whether some contact can only push."""
        return any(x.normal is not None for x in self.closures)

    @cached_property
    def reacting(self) -> tuple[int, ...]:
        """Passive degrees of freedom that no closed loop holds: others' motion moves them."""
        ends = [(x, i) for x in self.closures for i in (x.a.link, x.b.link)]
        seen = ((i, self.shared(x.a.link, x.b.link)) for x, end in ends for i in self.path(end))
        links = {i for i, shared in seen if i not in shared}
        held = {j for i in links for j, _ in self.links[i].dofs}
        held |= {j for x in self.curves for j in (x.dof, x.driver_dof)}
        return tuple(j for j in self.passive if j not in held)

    @cached_property
    def column_numbers(self) -> tuple[range, ...]:
        """Numbers of each joint's columns; all joints' columns are counted link by link."""
        ends = list(accumulate((link.joint.nv for link in self.links), initial=0))
        return tuple(range(a, b) for a, b in pairwise(ends))

    @cached_property
    def projection(self) -> Projection:
        """From rates of the degrees of freedom to those of every joint's columns, and back."""
        pairs = list(zip(self.links, self.column_numbers, strict=True))
        owners = [c for link, own in pairs if link.follows is None for c in own]
        return Projection(tuple(row for link in self.links for row in link.dofs), tuple(owners))

    def per_link_v(self, v: Sequence[Scalar]) -> list[Sequence[Scalar]]:
        """Split joint rates (or accelerations) into each link's own numbers."""
        rates = self.projection.column_rates(v)
        return [rates[own.start : own.stop] for own in self.column_numbers]

    def gather(self, per_link: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Each link's joint forces -> one per degree of freedom."""
        own = enumerate(x for forces in per_link for x in forces)
        return self.projection.vector(((c,), x) for c, x in own)

    def gather_matrix(self, blocks: Blocks) -> Matrix:
        """Blocks between two links' columns -> a matrix over degrees of freedom."""
        return self.projection.matrix(self._entries(blocks))

    def gather_pairs(
        self,
        met: Iterable[tuple[tuple[int, int], Any]],
        inner: Callable[..., Matrix],
        outer: Callable[..., Matrix],
        own: Iterable[Matrix],
    ) -> Matrix:
        """A matrix from what each link meets at itself and at its ancestors.

        ``inner(*met)`` is the block of an ancestor's rows and the link's columns, or of a link with
        itself, to which its ``own`` block is added; ``outer(*met)`` that of the link's rows.
        """
        blocks = [((i, i), block) for i, block in enumerate(own)]
        for (j, i), meeting in met:
            blocks.append(((j, i), inner(*meeting)))
            if i != j:
                blocks.append(((i, j), outer(*meeting)))
        return self.gather_matrix(blocks)

    def gather_symmetric(self, blocks: Blocks) -> Matrix:
        """The same of a symmetric matrix: one block per pair of links, mirrored here.

        Of a link's own block, only the entries on and below the diagonal are used.
        """
        half = self._entries(blocks, half=True)
        both = ((at, x) for (i, j), x in half for at in dict.fromkeys([(i, j), (j, i)]))
        return self.projection.matrix(both)

    def _entries(self, blocks: Blocks, *, half: bool = False) -> Iterator[tuple[Index, Scalar]]:
        for (i, j), block in blocks:
            for row, numbers in zip(self.column_numbers[i], block, strict=True):
                for column, x in zip(self.column_numbers[j], numbers, strict=True):
                    if not (half and i == j and column > row):
                        yield (row, column), x

    def gather_columns(
        self, by_link: Mapping[int, Sequence[Any]], finish: Callable[[Any], list[Scalar]]
    ) -> dict[int, list[Scalar]]:
        """Something of each joint's columns -> numbers by degree of freedom, where there are any.

        What followers have is added to their drivers' before it is finished.
        """
        entries = (
            ((c,), x)
            for i, columns in by_link.items()
            for c, x in zip(self.column_numbers[i], columns, strict=True)
        )
        sums = self.projection.gathered(entries)
        return {k: finish(x) for (k,), x in sums.items()}

    def as_matrix(self, columns: Mapping[int, Sequence[Scalar]], rows: int) -> Matrix:
        """Columns by degree of freedom as a matrix, with zeros where there are none."""
        zero = [0.0] * rows
        return [[columns.get(j, zero)[row] for j in range(self.nv)] for row in range(rows)]

    def short_side(self, columns: Mapping[int, Sequence[Scalar]], rows: int) -> list[Row]:
        """The rows of the matrix that has these columns, or where they are fewer, the columns."""
        own = list(columns.values())
        return [Row(x) for x in (own if len(own) < rows else zip(*own, strict=True))]

    def side_by_side(self, per_link: Sequence[Matrix]) -> Matrix:
        """A block of each link, side by side."""
        return [[x for row in rows for x in row] for rows in zip(*per_link, strict=True)]

    def with_rotors(self, M: Matrix) -> Matrix:
        """Add the rotors' inertias to the diagonal of M."""
        for k, rotor in enumerate(self.rotors):
            M[k][k] = M[k][k] + rotor
        return M

    def gather_rows(
        self, met: Iterable[tuple[tuple[int, int], Sequence[Sequence[Scalar]]]], width: int
    ) -> Matrix:
        """A row per degree of freedom, from (joint, link) and the ``width`` numbers that the link
        has of each of the joint's columns; zeros where there are none.
        """
        by_link: list[list[tuple[Index, Row]]] = [[] for _ in self.links]
        for (j, i), numbers in met:
            own = zip(self.column_numbers[j], numbers, strict=True)
            by_link[i] += [((c,), Row(row)) for c, row in own]
        sums = [self.projection.gathered(entries) for entries in by_link]
        none = Row([0.0] * width)
        return [[x for own in sums for x in own.get((k,), none)] for k in range(self.nv)]

    def gather_tensor(self, entries: Iterable[tuple[Index, Scalar]]) -> Tensor:
        """Entries by three columns -> a tensor over degrees of freedom."""
        return self.projection.tensor(entries)

    @cached_property
    def rotors(self) -> list[Scalar]:
        """Inertia that the motors' rotors add to the diagonal of the mass matrix."""
        own = enumerate(rotor for link in self.links for rotor in link.armature)
        sums = self.projection.gathered(((c, c), rotor) for c, rotor in own)
        return [sums[i, i] for i in range(self.nv)]

    @cached_property
    def previous_of_joint(self) -> tuple[int, ...]:
        """For each degree of freedom, the one before it in the same joint; -1 for the first."""
        free = (link for link in self.links if link.follows is None)
        return tuple(
            link.v_index + k - 1 if k else -1 for link in free for k in range(link.joint.nv)
        )

    @cached_property
    def joint_frames(self) -> tuple[Frame, ...]:
        """The frame that the file gives each joint.

        Not looked up by name: a link may have the name of a joint, and its frame is another one.
        """
        if isinstance(self.links, LinkArrays):  # these have the frames of the sweeps
            return tuple(Frame(i, (0.0, 0.0, 0.0), IDENTITY) for i in range(self.n_links))
        return tuple(
            Frame(i, link.frame_origin, link.frame_rotation) for i, link in enumerate(self.links)
        )

    @property
    def coupled(self) -> bool:
        """Whether some joint follows another."""
        return self.whole.coupled

    @property
    def first_follower(self) -> tuple[str, str]:
        """Names of the first joint that follows another, and of the joint it follows."""
        pairs = ((link, link.follows) for link in self.links)
        name, driver = next((k.joint_name, f.link) for k, f in pairs if f is not None)
        return name, self.links[driver].joint_name

    @cached_property
    def n_followers(self) -> int:
        """How many joints follow others."""
        return sum(link.follows is not None for link in self.links) if self.coupled else 0

    def beside(self, rates: list[Scalar], more: list[Scalar]) -> list[Scalar]:
        """Numbers of the degrees of freedom, and more numbers after them."""
        return [*rates, *more]

    def beside_of(self, numbers: list[Scalar]) -> list[Scalar]:
        """The numbers that come after those of the degrees of freedom."""
        return numbers[self.nv :]

    def uncoupled_q(self, q: Sequence[Scalar]) -> list[Scalar]:
        """A configuration of this tree as one of `uncoupled`."""
        return [x for own in self.per_link_q(q) for x in own]

    def uncoupled(self) -> Tree:
        """The same links with every joint on its own."""
        links = []
        nq = nv = 0
        for link in self.links:
            links.append(replace(link, follows=None, q_index=nq, v_index=nv))
            nq, nv = nq + link.joint.nq, nv + link.joint.nv
        return self.with_links(links)

    @cached_property
    def dof_parent(self) -> tuple[int, ...]:
        """For each degree of freedom, the next one toward the base that it is eliminated into.

        Without ties between joints this is the tree itself; with them, the elimination tree of the
        mass matrix.
        """
        near: list[set[int]] = [set() for _ in range(self.nv)]
        ways: list[list[int]] = []  # for each link, the degrees of freedom from the base to it
        for link in self.links:
            way = [] if link.parent == BASE else list(ways[link.parent])
            for j, _ in link.dofs:
                at = bisect_left(way, j)
                if j in way[at : at + 1]:
                    continue
                # all on one way depend on each other; neighbours say so, pair by pair
                near[j].update(way[at - 1 : at] if at else ())
                for k in way[at : at + 1]:
                    near[k].add(j)
                way.insert(at, j)
            ways.append(way)
        parents = [BASE] * self.nv
        for k in reversed(range(self.nv)):
            if near[k]:
                parents[k] = max(near[k])
                near[parents[k]] |= near[k] - {parents[k]}
        return tuple(parents)

    def dofs_inward(self, link: int, enough: int) -> set[int]:
        """Degrees of freedom between a link and the base, the nearest first, until enough."""
        found: set[int] = set()
        while link != BASE and len(found) < enough:
            found |= {dof for dof, _ in self.links[link].dofs}
            link = int(self.parent_numbers[link])
        return found

    @cached_property
    def serial(self) -> bool:
        """Whether each link's parent is the link before."""
        return bool((self.parent_numbers == np.arange(self.n_links) - 1).all())

    @cached_property
    def geared_alike(self) -> bool:
        """Whether of each kind of joint all have rotors on the same columns."""
        return self.whole.geared_alike

    def path(self, link: int) -> list[int]:
        """Links from the base out to ``link``, both ends included."""
        links, parents = [], self.parent_numbers
        while link != BASE:
            links.append(link)
            link = int(parents[link])
        return links[::-1]

    @cached_property
    def base_acceleration(self) -> Vec3:
        """Gravity enters as an upward acceleration of the base."""
        x, y, z = self.gravity
        return Vec3(0.0 - x, 0.0 - y, 0.0 - z)

    @property
    def n_closures(self) -> int:
        """Closed loops."""
        return len(self.closures)

    @property
    def n_contact_forces(self) -> int:
        """Numbers of the wrenches of all contacts on an object that is held."""
        return 6 * self.held.n_contacts if self.held else 0

    @property
    def n_constraints(self) -> int:
        """Directions that closed loops hold, all together, and curves of joints."""
        return sum(closure.rank for closure in self.closures) + len(self.curves)

    @property
    def is_closed(self) -> bool:
        """Whether it has closed loops, or joints that are held to curves."""
        return bool(self.closures or self.curves)

    @property
    def loop_names(self) -> list[str]:
        """Names of closed loops and curves, for messages."""
        return [*(x.name for x in self.closures), *(x.name for x in self.curves)]

    def loop_of_row(self, row: int) -> str:
        """The name of what one of the constraints belongs to."""
        names = [x.name for x in self.closures for _ in range(x.rank)]
        return [*names, *(x.name for x in self.curves)][row]

    def shared(self, a: int, b: int) -> frozenset[int]:
        """Links between the base and both of two links."""
        return frozenset(self.path(a)) & frozenset(self.path(b))

    def opened(self) -> Tree:
        """The same tree without its closed loops."""
        return replace(self, closures=(), curves=(), held=None)

    def without_gravity(self) -> Tree:
        """The same tree, weightless."""
        return replace(self, gravity=(0.0, 0.0, 0.0))

    def without_rotors(self) -> Tree:
        """The same tree, its motors' rotors weightless."""
        bare = [replace(link, armature=(0.0,) * len(link.armature)) for link in self.links]
        return self.with_links(bare)

    def with_gravity(self, gravity: Sequence[Scalar]) -> Tree:
        """The same tree under another gravity, three scalars in base axes."""
        x, y, z = gravity
        return replace(self, gravity=(x, y, z))

    def with_links(self, links: Sequence[Link]) -> Tree:
        """The same tree with other links."""
        return replace(self, links=tuple(links))

    def with_constants_like(self, like: Scalar) -> Tree:
        """The same tree with constants of another kind of number, where that kind asks for it.

        Sums of two constants then keep its precision, and turns are turns to its last digit.
        """
        if isinstance(constant(like, 1.0), float):
            return self
        links = [_precise(link, like) for link in self.links]
        gravity = tuple(constant(like, x) for x in self.gravity)
        return replace(self, links=tuple(links), gravity=(gravity[0], gravity[1], gravity[2]))

    @cached_property
    def digest(self) -> str:
        """Hash of structure, constants, gravity, joint frames and closed loops: equal digests mean
        equal programs.
        """
        closed: list[object] = [(x.a, x.b, x.directions) for x in self.closures]
        closed += [("normals", *(x.normal for x in self.closures))] if self.unilateral else []
        closed += [x.content for x in self.curves]
        closed += [] if self.unactuated is None else [("unactuated", self.unactuated)]
        if isinstance(self.links, LinkArrays):
            whole: tuple[object, ...] = (self.links.digest, self.gravity)
        else:
            parts = [_constants(link) for link in self.links]
            seen_in = [(frame.origin, frame.rotation) for frame in self.joint_frames]
            whole = (parts, self.gravity, seen_in)
        content = (*whole, closed) if closed else whole
        content = (*content, self.held.content) if self.held else content
        return hashlib.sha256(repr(content).encode()).hexdigest()


def _precise(link: Link, like: Scalar) -> Link:
    def lift(values: Iterable[float]) -> list[Scalar]:
        return [constant(like, x) for x in values]

    def turn(t: Turn | Rotation) -> Turn | Rotation:
        if isinstance(t, Rotation):
            return Rotation(Mat3(*(Vec3(*lift(row)) for row in t.E.rows)))
        c, s = lift((t.c, t.s))
        size = (c * c + s * s) ** 0.5
        return Turn(t.axis, c / size, s / size)

    body, place = link.inertia, link.placement
    mass = constant(like, body.m)
    return replace(
        link,
        placement=Transform(Vec3(*lift(place.r)), tuple(turn(t) for t in place.turns)),
        inertia=RigidInertia(mass, Vec3(*lift(body.h)), Sym3(*lift(body.second))),
        armature=tuple(lift(link.armature)),
    )


def _own_q(link: Link, q: Sequence[Scalar]) -> Sequence[Scalar]:
    own = q[link.q_index : link.q_index + link.joint.nq]
    if link.follows is None:
        return own
    return [own[0] * link.follows.multiplier + link.follows.offset]


def _constants(link: Link) -> tuple[object, ...]:
    turns = [
        (t.axis, t.c, t.s) if isinstance(t, Turn) else [tuple(row) for row in t.E.rows]
        for t in link.placement.turns
    ]
    return (
        link.parent, link.joint, link.follows, tuple(link.placement.r), turns, link.inertia.m,
        tuple(link.inertia.h), tuple(link.inertia.second), link.armature, link.rotor_turn,
        link.damping, link.friction,
    )  # fmt: skip
