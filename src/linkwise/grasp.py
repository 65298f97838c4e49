"""Several arms that hold one object: `Grasp`, with `RigidBody` and `Contact`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwise.engine import devices
from linkwise.engine import grasp_states as states
from linkwise.engine.calls import Calls, Constants, Options, Wrenches, with_constants
from linkwise.engine.frames import inverse
from linkwise.engine.tasks import Key
from linkwise.functions import Residual
from linkwise.model import forest, values
from linkwise.model.bodies import Policy
from linkwise.model.closures import Closing, Loop
from linkwise.model.contacts import (
    Contact,
    RigidBody,
    contacts_of,
    grasped,
    normal_in_object,
    refuse_idle,
    turned,
)
from linkwise.model.description import Pose, RobotDescription
from linkwise.model.forest import OBJECT, Held
from linkwise.model.tree import Tree
from linkwise.model.values import Array
from linkwise.robot import Robot
from linkwise.spatial.matrices import product


class GraspMotion(NamedTuple):
    """What a grasp does under torques, as `Grasp.motion` returns it."""

    qdd: Any  # joint accelerations (..., nv) in rad/s² or m/s²
    acceleration: Any  # of the origin of the object's frame (..., 6), world axes
    forces: Any  # of the contacts on the object (..., contacts, 6), (moment, force), world axes


class Loads(NamedTuple):
    """Contact forces (..., contacts) in N: along the normal into the object, across it, and the
    ratio of the two, which a friction coefficient must exceed.
    """

    normal: Any
    tangential: Any
    ratio: Any


class Grasp(Robot):
    """Arms that hold one object: a robot whose joints are those of all arms.

    >>> import linkwise as lw
    >>> arm = lw.load("iiwa14")
    >>> bar = lw.RigidBody(2.0, com=(0, 0, 0.3), inertia=(0.06, 0.06, 0.001))
    >>> grasp = lw.Grasp(arms=[arm, arm], object=bar, contacts=["link7", "link7"])
    >>> grasp.nv, grasp.joint_names[7]
    (14, 'arm1/joint1')

    ``bases``: where each arm stands in the world (4, 4). ``contacts``: a `Contact` each, or the
    name of a frame, which is a rigid contact of the arm in that place of the list. ``gravity`` in
    world axes; that of the arms unless given. Where names of arms are the same, each begins with
    its arm's number: ``arm1/link7``.

    ``length`` in m: where contacts hold more than the motion determines, their forces are the
    smallest, of least ``Σ |f|² + |n|²/length²`` over all contacts, with forces f and moments n at
    the origins of their frames. Unless given, it is the root mean square of the distances between
    these and the object's centre of mass, in each state (1 m where all of them are zero).

    The object is part of the link of the first contact that is rigid: ``q`` and ``qd`` are those of
    the arms, one after another. Where no contact is rigid, or with ``object_state=True``, the
    object has a state of its own, after those of the arms: a unit quaternion and its position in
    ``q``, its velocity in its own axes in ``qd``. The frame ``"object"`` is the object's.
    """

    __slots__ = ("_arms", "_bases", "_body", "_contacts", "_keeps_state")
    _arms: tuple[Robot, ...]
    _bases: tuple[Pose, ...]
    _body: RigidBody
    _contacts: tuple[Contact, ...]
    _keeps_state: bool

    def __init__(
        self,
        arms: Sequence[Robot],
        object: RigidBody,
        contacts: Sequence[Contact | str],
        bases: Sequence[ArrayLike] | None = None,
        gravity: ArrayLike | None = None,
        *,
        object_state: bool = False,
        length: float | None = None,
        name: str = "grasp",
    ) -> None:
        self._arms = _arms(arms)
        self._bases = _bases(bases, len(self._arms))
        self._body = _body(object)
        self._contacts = contacts_of(contacts, [(arm.name, arm.tree) for arm in self._arms])
        if not isinstance(object_state, bool | np.bool_):
            raise TypeError(f"Grasp: object_state is {object_state!r}; expected True or False")
        self._keeps_state = bool(object_state)
        name = values.name("Grasp: name", name)
        trees = [arm.tree for arm in self._arms]
        clash = forest.clash(trees)
        prefixes = [f"arm{i}/" if clash else "" for i in range(len(trees))]
        down = _gravity(gravity, self._arms)
        tree = grasped(
            forest.joined(trees, self._bases, prefixes, down),
            self._body.rigid_inertia,
            self._contacts,
            self._keeps_state,
            _length(length),
        )
        refuse_idle(self._contacts, [arm.name for arm in self._arms])
        closing = Closing(_loops(tree, self._contacts))
        self._set(RobotDescription(name, (), ()), Policy(), Calls(tree, name), closing)

    @property
    def open(self) -> Robot:
        """The arms and the object without contacts; an object that an arm carries stays with it."""
        if self._opened is None:
            tree = self._tree.opened()
            self._opened = Robot.from_tree(tree, f"{self.name} without contacts")
        return self._opened

    def _like(
        self,
        description: RobotDescription,
        policy: Policy,
        tree: Tree,
        closing: Closing | None = None,
    ) -> Robot:
        """The same grasp with another kind of code; contacts are made with a grasp."""
        if closing is not None:
            raise ValueError(
                f"robot {self.name!r} is a grasp, whose loops are its contacts and whose motors "
                "are those of its arms; expected another linkwise.Grasp: with more contacts, or "
                "of arms whose motors arm.with_actuated(...) names"
            )
        other = self._again()
        calls = Calls(tree, self.name, self._calls.tasks.parameters)
        other._set(description, policy, calls, self._closing)
        return other

    def _warn_of_friction(self, function: str) -> None:
        """Warn once of each arm whose damping and friction are left out."""
        for arm in self._arms if "friction" not in self.parameters else ():
            arm._warn_of_friction(function)

    def _described(self) -> RobotDescription:
        raise ValueError(
            f"robot {self.name!r} is a grasp, which is made of its arms and cannot be edited or "
            "saved, but for with_gravity and with_codegen; expected a linkwise.Grasp of arms that "
            "are edited: linkwise.Grasp([arm.with_payload(...), ...], grasp.object, grasp.contacts)"
        )

    # -- what it is -----------------------------------------------------------------------------

    @property
    def arms(self) -> tuple[Robot, ...]:
        """The arms, each on its own."""
        return self._arms

    @property
    def object(self) -> RigidBody:
        """The object."""
        return self._body

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """The contacts, in order."""
        return self._contacts

    @property
    def held(self) -> Held:
        """The object and its contacts in the form that the algorithms use."""
        assert self._tree.held is not None
        return self._tree.held

    @property
    def length(self) -> float | None:
        """What moments are divided by in the size of contact forces, m; None: as contacts lie."""
        return self.held.length

    @property
    def object_is_state(self) -> bool:
        """Whether ``q`` and ``qd`` end with those of the object."""
        return self.held.carrier is None

    def __repr__(self) -> str:
        return (
            f"<Grasp {self.name!r}: {len(self._arms)} arm(s), {len(self._contacts)} contact(s), "
            f"{self.nv} degrees of freedom>"
        )

    def split(self, x: ArrayLike) -> list[Any]:
        """Cut arrays of all joints (..., nq) or (..., nv) into a list, one array per arm.

        If the object has a state of its own, its numbers come last. Torques can be split too;
        those of the object's own joint are a wrench on the object, in its axes. The inverses are
        `state` and `torques`.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> [part.shape for part in grasp.split(grasp.neutral())]
        [(3,), (3,)]
        """
        numbers = states.array_of("split", "x", x, self._sizes)
        width = int(numbers.shape[-1]) if len(numbers.shape) else 1
        return [numbers[..., part] for part in self._parts(width)]

    @property
    def _sizes(self) -> str:
        return f"{self.nq} (q) or {self.nv} (qd, tau)"

    def _parts(self, width: int) -> list[slice]:
        sizes = self._widths("nq"), self._widths("nv")
        whole = [[*own, tail] for own, tail in zip(sizes, (7, 6), strict=True)]
        for own in (*(whole if self.object_is_state else ()), *sizes):
            if width == sum(own):
                return [slice(a, b) for a, b in pairwise(accumulate(own, initial=0))]
        raise ValueError(f"split: an array of {width} numbers a state; expected {self._sizes}")

    def _widths(self, size: str) -> list[int]:
        """Numbers of each arm: ``"nq"`` or ``"nv"``."""
        return [getattr(arm, size) for arm in self._arms]

    def state(
        self,
        q: Any,
        qd: Any,
        object_pose: ArrayLike | None = None,
        object_velocity: ArrayLike | None = None,
    ) -> tuple[Any, Any]:
        """Join the states of the arms, and of the object, into ``q`` (..., nq), ``qd`` (..., nv).

        Args:
            q, qd: Lists with an array for each arm, or arrays of all arms one after another.
            object_pose: Of an object with a state of its own, in world axes: (..., 4, 4), or
                quaternion and position (..., 7).
            object_velocity: (..., 6), (angular, linear) of its frame's origin in world axes.

        Returns:
            ``(q, qd)``, arrays of the library that the arguments are of.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> points = [lw.Contact(i, "link3", "point") for i in (0, 1)]
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=points)
        >>> arms = [np.ones(3), np.zeros(3)]
        >>> q, qd = grasp.state(arms, [np.zeros(3)] * 2, np.eye(4), np.zeros(6))
        >>> q.tolist(), qd.shape
        ([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], (12,))
        """
        what = "state"
        pose, velocity = object_pose, object_velocity
        q = states.joined(what, "q", q, self._widths("nq"))
        qd = states.joined(what, "qd", qd, self._widths("nv"))
        if not self.object_is_state:
            if pose is not None or velocity is not None:
                raise ValueError(
                    f"{what}: contact {self.held.carrier} is rigid, so the object's pose "
                    "and velocity are those of its arm; expected no object_pose, no object_velocity"
                )
            return q, qd
        if pose is None or velocity is None:
            raise ValueError(
                f"{what}: no contact is rigid, so that the arms do not tell where the "
                "object is; expected object_pose (..., 4, 4) and object_velocity (..., 6)"
            )
        names = ("q", "qd", "object_pose", "object_velocity")
        host = states.beside(what, list(zip(names, (q, qd, pose, velocity), strict=True)))
        place = states.place_of(what, host.fetched(pose))
        world = states.numbers(what, "object_velocity", host.fetched(velocity), 6)
        own = states.velocity_in_own_axes(place, world)
        kind = states.float_kind(q)
        q, qd = (
            states.side_by_side(what, [x, host.sent(more.astype(kind))])
            for x, more in ((q, place), (qd, own))
        )
        return q, qd

    def torques(self, tau: Any) -> Any:
        """Join torques of the arms into ``tau`` (..., nv), with none on an object's own joint.

        Args:
            tau: A list with an array for each arm, or an array of all arms one after another.

        Returns:
            Torques (..., nv) in N m or N, of the library that the argument is of.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> grasp.torques([np.ones(3), np.zeros(3)]).tolist()
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
        """
        tau = states.joined("torques", "tau", tau, self._widths("nv"))
        if not self.object_is_state:
            return tau
        host = states.beside("torques", [("tau", tau)])
        return states.side_by_side("torques", [tau, host.sent(np.zeros(6, states.float_kind(tau)))])

    def holding(self, q: ArrayLike) -> Grasp:
        """The same grasp with every contact fixed on the object where it is at ``q`` (nq).

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> held = grasp.holding(grasp.neutral())
        >>> bool(abs(held.residual(grasp.neutral()).position).max() < 1e-12)
        True
        """
        q = values.numbers("holding: q", q, (self.nq,))
        T = inverse(self.forward_kinematics(q, OBJECT))
        contacts = []
        for contact in self._contacts:
            where = contact.pose_in_object
            if where is None:
                name = forest.name_of(self._tree, contact.arm, contact.frame)
                where = product(T, self.forward_kinematics(q, name))
            contacts.append(turned(contact, where))
        return self._again(contacts=contacts)

    def with_gravity(self, gravity: ArrayLike) -> Grasp:
        """The grasp under another gravity, m/s² in world axes.

        >>> import linkwise as lw
        >>> grasp = lw.Grasp([lw.load("iiwa14")], object=lw.RigidBody(1.0), contacts=["link7"])
        >>> grasp.with_gravity((0.0, 0.0, -1.62)).gravity.tolist()
        [0.0, 0.0, -1.62]
        """
        return self._again(gravity=gravity)

    def _again(self, **changes: Any) -> Grasp:
        poses = [_matrix(base) for base in self._bases]
        own: dict[str, Any] = {
            "arms": self._arms,
            "object": self._body,
            "contacts": self._contacts,
            "bases": poses,
            "gravity": self.gravity,
            "object_state": self._keeps_state,
            "length": self.length,
            "name": self.name,
        }
        other, parameters = Grasp(**(own | changes)), self._calls.tasks.parameters
        if parameters:
            calls = Calls(other._tree, other.name, parameters)
            other._set(other._description, other._policy, calls, other._closing)
        return other

    # -- dynamics -------------------------------------------------------------------------------

    def motion(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        threads: int | None = None,
        status: bool = False,
        device: str | None = None,
        **constants: Unpack[Constants],
    ) -> Any:
        """Joint accelerations, the object's acceleration and the forces of the contacts at once.

        `forward_dynamics`, `object_acceleration` and `contact_forces` in one call.

        Args:
            q, qd, tau: (..., nq), (..., nv), (..., nv); `state` and `torques` join those of arms.
            f_ext: Wrenches {frame: (..., 6)} as `Robot` says, on links of any arm, and on the
                object itself at its frame ``"object"``.
            method: As for `contact_forces`.

        Returns:
            A `GraspMotion`: ``qdd``, ``acceleration``, ``forces``. With ``status=True`` the pair of
            it and the status.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> found = grasp.motion(grasp.neutral(), np.zeros(6), np.ones(6))
        >>> found.qdd.shape, found.acceleration.shape, found.forces.shape
        ((6,), (6,), (2, 6))
        """
        options = with_constants("motion", constants, threads=threads, status=status, device=device)
        found = self._calls.run("motion", (q, qd, tau), options, method=method, f_ext=f_ext)
        rows, bits = found if status else (found, None)
        qdd, rest = rows[..., : self.nv], rows[..., self.nv :]
        forces = rest[..., 6:].reshape(*rest.shape[:-1], len(self._contacts), 6)
        result = GraspMotion(qdd, rest[..., :6], forces)
        return (result, bits) if status else result

    def contact_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Forces of the contacts on the object (..., contacts, 6) under joint torques.

        Wrenches of the arms on the object, (moment, force) in N m and N, at the origin of each
        contact's frame, in world axes. If contacts hold more than the motion determines
        (`Status.REDUNDANT`), they are the smallest, whatever the order of contacts (``length`` of
        `Grasp`).

        Args:
            q, qd, tau: (..., nq), (..., nv), (..., nv).
            method: ``"ltl"``, ``"pv"`` or ``"pv-r"``, closed loops of the whole as for
                `forward_dynamics`, or ``"recursive"`` (each arm by itself, then the object), for
                arms that can move in all directions that their contacts hold; others are refused,
                and poses in which they cannot are NaN and `Status.SINGULAR`.
            f_ext: Wrenches {frame: (..., 6)}, on links of any arm and on the frame ``"object"``.

        Returns:
            Wrenches (..., contacts, 6) in N m and N, in world axes.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> q, still = grasp.neutral(), np.zeros(6)
        >>> forces = grasp.contact_forces(q, still, grasp.inverse_dynamics(q, still, still))
        >>> float(forces[:, 5].sum().round(6))  # the weight of the bar
        9.81
        """
        return self._calls.run("contact_forces", (q, qd, tau), options, method=method, f_ext=f_ext)

    def object_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Acceleration of the object (..., 6) under joint torques, (angular, linear).

        Args:
            q, qd, tau: (..., nq), (..., nv), (..., nv).
            method: As for `contact_forces`.
            f_ext: As for `contact_forces`.

        Returns:
            The acceleration of the origin of its frame in world axes, in rad/s² and m/s².

        >>> import numpy as np, linkwise as lw
        >>> grasp = lw.Grasp([lw.load("iiwa14")], object=lw.RigidBody(1.0), contacts=["link7"])
        >>> q, still = np.full(7, 0.3), np.zeros(7)
        >>> tau = grasp.inverse_dynamics(q, still, still)
        >>> bool(abs(grasp.object_acceleration(q, still, tau)).max() < 1e-9)
        True
        """
        return self._calls.run(
            "object_acceleration", (q, qd, tau), options, method=method, f_ext=f_ext
        )

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        method: str = "auto",
        weights: ArrayLike | None = None,
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Joint torques (..., nv) that produce a motion; `contact_forces` has the forces then.

        Arms may squeeze the object without moving it, so that many torques produce a motion: these
        are the smallest, of least Σ w_j tau_j². The object's own joint and passive joints of the
        arms (`Robot.actuated`) get no torque: a state whose motion needs a push on the object that
        contacts cannot give is NaN and `SINGULAR`. A wrench on the floating base of an arm is
        returned as of an open robot.

        Args:
            q, qd, qdd: (..., nq), (..., nv), (..., nv) of a motion that contacts allow.
            weights: w (..., nv), positive; all 1 unless given. A larger weight on the joints of an
                arm takes load off it.
            f_ext: As for `contact_forces`.

        Returns:
            Torques (..., nv) in N m or N.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> tau = grasp.inverse_dynamics(grasp.neutral(), np.zeros(6), np.zeros(6))
        >>> bool(np.allclose(tau[:3], tau[3:]))  # they share the load
        True
        """
        state: tuple[Any, ...] = (q, qd, qdd)
        own: dict[str, Any] = {"method": method, "f_ext": f_ext}
        if weights is None:
            return self._calls.run("inverse_dynamics", state, options, **own)
        state = (*state, self._weights(weights, state))
        return self._calls.run("weighted_inverse_dynamics", state, options, **own)

    def _weights(self, weights: ArrayLike, beside: tuple[Any, ...]) -> Any:
        """Weights of the joints, no wider than the arrays they go with."""
        try:
            share = np.asarray(weights, float)
        except (TypeError, ValueError):
            share = np.empty(0)
        positive = (share > 0) & np.isfinite(share)
        if share.shape[-1:] != (self.nv,) or not positive.all():
            raise ValueError(
                f"inverse_dynamics: weights are {weights!r}; expected {self.nv} positive numbers"
            )
        if devices.elsewhere(beside):
            return share.tolist()
        narrow = all(getattr(x, "dtype", None) == np.float32 for x in beside)
        return share.astype(np.float32) if narrow else share

    def internal_forces(self, q: ArrayLike, forces: ArrayLike, **options: Unpack[Options]) -> Any:
        """The part of contact forces (..., contacts, 6) that squeezes the object and moves nothing.

        ``q`` (..., nq), ``forces`` in N m and N as `contact_forces` returns them. The rest of
        them are the smallest forces, along the directions that contacts hold, that move the object
        in the same way; small as ``length`` of `Grasp` says.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> q, qd, tau = grasp.neutral(), np.zeros(6), np.ones(6)
        >>> forces = grasp.contact_forces(q, qd, tau)
        >>> squeeze = grasp.internal_forces(q, forces)
        >>> bool(abs(squeeze.sum(axis=0)).max() < 1e-12)  # both hands are at one place here
        True
        """
        given = self._contact_forces("internal_forces", forces)
        numbers = given.reshape(*given.shape[:-2], self._tree.n_contact_forces)
        return self._calls.run("internal_forces", (q, numbers), options)

    def residual(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        *,
        threads: int | None = None,
        device: str | None = None,
        **constants: Unpack[Constants],
    ) -> Residual:
        """How far contacts are from closed, as `Robot.residual`; that of a rigid contact which
        carries the object is not among them. Every contact needs a place (`holding`).

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> held = grasp.holding(grasp.neutral())
        >>> apart = held.residual([0.0, 0.0, 0.0, 0.0, 0.0, 0.1]).position
        >>> bool(abs(apart).max() > 0.01)
        True
        """
        self._refuse_unplaced("residual")
        return super().residual(q, qd, threads=threads, device=device, **constants)

    def inverse_kinematics(self, *arguments: Any, **options: Any) -> Any:
        """Configurations that bring frames to target poses with all contacts closed, as
        `Robot.inverse_kinematics`; every contact needs a place (`holding`).

        >>> import numpy as np, linkwise as lw
        >>> arm = lw.load("iiwa14")
        >>> grasp = lw.Grasp([arm], object=lw.RigidBody(1.0), contacts=["link7"])
        >>> wanted = grasp.forward_kinematics(grasp.random_q(seed=0), "object")
        >>> q = grasp.inverse_kinematics(wanted, "object")
        >>> bool(np.allclose(grasp.forward_kinematics(q, "object"), wanted, atol=1e-5))
        True
        """
        self._refuse_unplaced("inverse_kinematics")
        return super().inverse_kinematics(*arguments, **options)

    def project(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        *,
        threads: int | None = None,
        status: bool = False,
        device: str | None = None,
        **constants: Unpack[Constants],
    ) -> Any:
        """The state near by that contacts allow, as `Robot.project`; every contact needs a place
        (`holding`).

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> held = grasp.holding(grasp.neutral())
        >>> q = held.project([0.0, 0.0, 0.0, 0.0, 0.0, 0.1])
        >>> bool(abs(held.residual(q).position).max() < 1e-9)
        True
        """
        self._refuse_unplaced("project")
        return super().project(q, qd, threads=threads, status=status, device=device, **constants)

    def _contact_forces(self, what: str, forces: Any) -> Any:
        """Forces as an array (..., contacts, 6); raises where they are of another shape."""
        wanted = (len(self._contacts), 6)
        given = states.array_of(what, "forces", forces, f"(..., {wanted[0]}, 6)")
        if tuple(given.shape[-2:]) != wanted:
            raise ValueError(
                f"{what}: forces have the shape {tuple(given.shape)}; expected (..., {wanted[0]}, "
                "6), a wrench of each contact"
            )
        return given

    def _key(self, function: Any, *more: Any) -> Key:
        """The kind of call that is differentiated; raises where contacts have no place for it."""
        key = super()._key(function, *more)
        if key.function in ("residual", "project"):
            self._refuse_unplaced(f"derivative of {key.function}")
        return key

    def _refuse_unplaced(self, what: str) -> None:
        for i, (contact, closure) in enumerate(
            zip(self._contacts, self.held.contacts, strict=True)
        ):
            if i and contact.pose_in_object is None:
                raise ValueError(
                    f"{what}: {closure.name} has no place on the object; expected its "
                    "pose_in_object, or grasp.holding(q), where all contacts are as they are at q"
                )

    def loads(self, q: ArrayLike, forces: ArrayLike) -> Loads:
        """Normal and tangential forces (..., contacts), from those of `contact_forces`.

        ``q`` (..., nq), ``forces`` (..., contacts, 6). A normal force is positive where the arm
        pushes along the contact's normal. A real contact would open where it changes its sign, and
        slip where the ratio exceeds the friction coefficient.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> q, qd, tau = grasp.neutral(), np.zeros(6), np.ones(6)
        >>> forces = grasp.contact_forces(q, qd, tau)
        >>> grasp.loads(q, forces).normal.shape
        (2,)
        """
        given = self._contact_forces("loads", forces)
        host = states.beside("loads", [("q", q), ("forces", given)])
        R = host.fetched(self.forward_kinematics(q, OBJECT))[..., :3, :3]
        normals = np.array([normal_in_object(c) for c in self._contacts])
        world = np.einsum("...ij,kj->...ki", R, normals.astype(R.dtype))
        push = host.fetched(given)[..., 3:]
        along = (push * world).sum(axis=-1)
        across = np.linalg.norm(push - along[..., None] * world, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (along, across, across / np.abs(along))
        return Loads(*(host.sent(np.asarray(x)) if np.ndim(x) else x for x in found))


# -- arguments ------------------------------------------------------------------------------------


def _arms(arms: Any) -> tuple[Robot, ...]:
    several = isinstance(arms, Iterable) and not isinstance(arms, str)
    found = tuple(arms) if several else (arms,)
    for i, arm in enumerate(found):
        if not isinstance(arm, Robot):
            raise TypeError(
                f"Grasp: arm {i} is {arm!r}; expected a robot, as linkwise.load makes them"
            )
        if isinstance(arm, Grasp):
            raise ValueError(
                f"Grasp: arm {i} is the grasp {arm.name!r}; expected its arms, grasp.arms"
            )
        if arm.tree.is_closed:
            raise ValueError(
                f"Grasp: arm {i} ({arm.name!r}) has closed loops; expected an open one"
            )
    if not found:
        raise ValueError("Grasp: there are no arms; expected at least one robot")
    return found


def _bases(bases: Any, count: int) -> tuple[Pose, ...]:
    if bases is None:
        return (Pose(),) * count
    if isinstance(bases, str) or not isinstance(bases, Iterable):
        raise TypeError(f"Grasp: bases are {bases!r}; expected a list of poses (4, 4)")
    given = list(bases)
    if len(given) != count:
        raise ValueError(f"Grasp: {len(given)} bases for {count} arm(s); expected one for each")
    return tuple(values.pose(f"Grasp: base {i}", base) for i, base in enumerate(given))


def _body(body: Any) -> RigidBody:
    if not isinstance(body, RigidBody):
        raise TypeError(f"Grasp: object is {body!r}; expected a linkwise.RigidBody")
    body.rigid_inertia  # noqa: B018 - raises where it cannot exist
    return body


def _length(length: Any) -> float | None:
    if length is None:
        return None
    found = values.positive("Grasp: length", length)
    if found == 0.0:
        raise ValueError("Grasp: length is 0; expected a positive number, in m")
    return found


def _gravity(gravity: Any, arms: Sequence[Robot]) -> tuple[float, float, float]:
    if gravity is not None:
        return values.triple("Grasp: gravity", gravity)
    known = {tuple(arm.gravity.tolist()) for arm in arms}
    if len(known) > 1:
        raise ValueError(
            f"Grasp: the arms have different gravity, {sorted(known)}; expected gravity, in world "
            "axes"
        )
    x, y, z = known.pop()
    return x, y, z


def _loops(tree: Tree, contacts: Sequence[Contact]) -> tuple[Loop, ...]:
    """The contacts that are closed loops, as loops."""
    held = tree.held
    assert held is not None
    pairs = list(zip(contacts, held.contacts, strict=True))
    return tuple(
        Loop(forest.name_of(tree, c.arm, c.frame), OBJECT, closure.directions, c.pose_in_object)
        for i, (c, closure) in enumerate(pairs)
        if i != held.carrier
    )


def _matrix(pose: Pose) -> Array:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = pose.rotation, pose.translation
    return T
