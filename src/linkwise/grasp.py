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
    turned,
)
from linkwise.model.description import Pose, RobotDescription
from linkwise.model.forest import OBJECT, Held
from linkwise.model.tree import Tree
from linkwise.model.values import Array
from linkwise.robot import Robot


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
        name: str = "grasp",
    ) -> None:
        self._arms = _arms(arms)
        self._bases = _bases(bases, len(self._arms))
        self._body = _body(object)
        self._contacts = contacts_of(contacts, [(arm.name, arm.tree) for arm in self._arms])
        self._keeps_state = bool(object_state)
        trees = [arm.tree for arm in self._arms]
        clash = forest.clash(trees)
        prefixes = [f"arm{i}/" if clash else "" for i in range(len(trees))]
        down = _gravity(gravity, self._arms)
        tree = grasped(
            forest.joined(trees, self._bases, prefixes, down),
            self._body.rigid_inertia,
            self._contacts,
            self._keeps_state,
        )
        closing = Closing(_loops(tree, self._contacts), (OBJECT,) if tree.passive else ())
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
                f"close_loops: {self.name!r} is a grasp, whose loops are its contacts; expected "
                "another linkwise.Grasp, with more contacts"
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
    def object_is_state(self) -> bool:
        """Whether ``q`` and ``qd`` end with those of the object."""
        return self.held.carrier is None

    def __repr__(self) -> str:
        return (
            f"<Grasp {self.name!r}: {len(self._arms)} arm(s), {len(self._contacts)} contact(s), "
            f"{self.nv} degrees of freedom>"
        )

    def split(self, x: ArrayLike) -> list[Any]:
        """Numbers of all joints (..., nq) or (..., nv) as a list, one array per arm.

        Where the object has a state of its own, its numbers come last. Torques can be split too;
        those of the object's own joint are a wrench on the object, in its axes.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> [part.shape for part in grasp.split(grasp.neutral())]
        [(3,), (3,)]
        """
        numbers: Any = x if hasattr(x, "shape") else np.asarray(x)
        return [numbers[..., part] for part in self._parts(int(numbers.shape[-1]))]

    def _parts(self, width: int) -> list[slice]:
        sizes = [r.nq for r in self._arms], [r.nv for r in self._arms]
        whole = [[*own, tail] for own, tail in zip(sizes, (7, 6), strict=True)]
        for own in (*(whole if self.object_is_state else ()), *sizes):
            if width == sum(own):
                return [slice(a, b) for a, b in pairwise(accumulate(own, initial=0))]
        raise ValueError(
            f"split: an array of {width} numbers a state; expected {self.nq} (q) or {self.nv} "
            "(qd, tau)"
        )

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
        T = np.linalg.inv(self.forward_kinematics(q, OBJECT))
        contacts = []
        for contact in self._contacts:
            where = contact.pose_in_object
            if where is None:
                where = T @ self.forward_kinematics(
                    q, forest.name_of(self._tree, contact.arm, contact.frame)
                )
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
            "name": self.name,
        }
        other, parameters = Grasp(**(own | changes)), self._calls.tasks.parameters
        if parameters:
            calls = Calls(other._tree, other.name, parameters)
            other._set(other._description, other._policy, calls, other._closing)
        return other

    # -- dynamics -------------------------------------------------------------------------------

    def forward_dynamics(  # type: ignore[override]
        self,
        q: Any,
        qd: Any,
        tau: Any,
        object_pose: ArrayLike | None = None,
        object_velocity: ArrayLike | None = None,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        threads: int | None = None,
        status: bool = False,
        device: str | None = None,
        **constants: Unpack[Constants],
    ) -> Any:
        """Joint accelerations, the object's acceleration (..., 6), and the forces of the contacts.

        ``q``, ``qd``, ``tau``: lists with an array for each arm, or arrays of all joints one after
        another (..., nq), (..., nv). Accelerations come as they were given: lists, or (..., nv).
        Forces are wrenches of the arms on the object (..., contacts, 6), (moment, force) at the
        origin of each contact's frame; a list of them for lists. All in world axes, the object's
        acceleration that of the origin of its frame.

        Where the object has a state of its own: ``object_pose``, (..., 4, 4) or quaternion and
        position (..., 7), and ``object_velocity`` (..., 6), (angular, linear) of its frame's origin
        in world axes; or both within ``q`` and ``qd``.

        ``f_ext``: wrenches {frame: (..., 6)} as `Robot` says, on links of any arm, and on the
        object itself at its frame ``"object"``.

        ``method``: ``"dual"`` (closed loops of the whole; ``"auto"``), ``"dual-pv"``, the same from
        articulated bodies, or ``"recursive"`` (each arm by itself, then the object: for arms that
        can move in all directions that their contacts hold). With ``status=True`` the result is
        ``((qdd, acceleration, forces), status bits)``.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> q, qd, tau = grasp.neutral(), np.zeros(6), np.ones(6)
        >>> qdd, acceleration, forces = grasp.forward_dynamics(q, qd, tau)
        >>> qdd.shape, acceleration.shape, forces.shape
        ((6,), (6,), (2, 6))
        """
        lists = self._are_lists(q)
        if lists:
            q, qd, tau = self._joined("forward_dynamics", (q, qd, ("tau", tau)))
        state = self._state(q, qd, tau, object_pose, object_velocity)
        options = with_constants(
            "forward_dynamics", constants, threads=threads, status=status, device=device
        )
        found = self._calls.run("grasp_dynamics", state, options, method=method, f_ext=f_ext)
        rows, bits = found if status else (found, None)
        qdd, rest = rows[..., : self.nv], rows[..., self.nv :]
        qdd, forces = self._as_given(qdd, rest[..., 6:], lists)
        result = (qdd, rest[..., :6], forces)
        return (result, bits) if status else result

    def _are_lists(self, q: Any) -> bool:
        """Whether a configuration is given arm by arm."""
        return states.are_lists(q, [r.nq for r in self._arms])

    def _joined(self, function: str, given: tuple[Any, Any, tuple[str, Any]]) -> list[Any]:
        """Lists of arrays, one for each arm, as arrays of all arms."""
        q, qd, (name, third) = given
        nq, nv = [r.nq for r in self._arms], [r.nv for r in self._arms]
        named = (("q", q, nq), ("qd", qd, nv), (name, third, nv))
        return [states.joined(function, what, value, own) for what, value, own in named]

    def _as_given(self, per_joint: Any, forces: Any, lists: bool) -> tuple[Any, Any]:
        """Numbers of all joints, and wrenches of all contacts, as lists where a state was one."""
        wrenches = forces.reshape(*forces.shape[:-1], len(self._contacts), 6)
        if not lists:
            return per_joint, wrenches
        of_contacts = [wrenches[..., i, :] for i in range(len(self._contacts))]
        return self.split(per_joint)[: len(self._arms)], of_contacts

    def _state(self, q: Any, qd: Any, tau: Any, pose: Any, velocity: Any) -> tuple[Any, Any, Any]:
        """All numbers of the state, and of the torques."""
        what = "forward_dynamics"
        if not self.object_is_state:
            if pose is not None or velocity is not None:
                raise ValueError(
                    f"{what}: contact {self.held.carrier} is rigid, so the object's pose "
                    "and velocity are those of its arm; expected no object_pose, no object_velocity"
                )
            return q, qd, tau
        arms = sum(r.nq for r in self._arms)
        if pose is None and velocity is None and states.width(q) != arms:
            return q, qd, self._with_push(tau)
        if pose is None or velocity is None:
            raise ValueError(
                f"{what}: no contact is rigid, so that the arms do not tell where the "
                "object is; expected object_pose (..., 4, 4) and object_velocity (..., 6), or "
                f"q of {self.nq} numbers and qd of {self.nv}, the object's last"
            )
        names = ("q", "qd", "tau", "object_pose", "object_velocity")
        given = list(zip(names, (q, qd, tau, pose, velocity), strict=True))
        host = states.beside(what, given)
        place = states.place_of(what, host.fetched(pose))
        world = states.numbers(what, "object_velocity", host.fetched(velocity), 6)
        own = states.velocity_in_own_axes(place, world)
        kind = states.float_kind(q)
        q, qd = (
            states.side_by_side([x, host.sent(more.astype(kind))])
            for x, more in ((q, place), (qd, own))
        )
        return q, qd, self._with_push(tau)

    def _with_push(self, tau: Any) -> Any:
        """Torques with nothing that pushes the object, where they are of the arms alone."""
        if states.width(tau) != sum(r.nv for r in self._arms):
            return tau
        host = states.beside("forward_dynamics", [("tau", tau)])
        none = np.zeros(6, states.float_kind(tau))
        return states.side_by_side([tau, host.sent(none)])

    def inverse_dynamics(  # type: ignore[override]
        self,
        q: Any,
        qd: Any,
        qdd: Any,
        *,
        weights: ArrayLike | None = None,
        f_ext: Wrenches | None = None,
        threads: int | None = None,
        status: bool = False,
        device: str | None = None,
        **constants: Unpack[Constants],
    ) -> Any:
        """Joint torques (..., nv) that produce a motion, and the forces of the contacts.

        ``q`` (..., nq), ``qd`` and ``qdd`` (..., nv) of a motion that contacts allow, or where the
        arms alone have a state, lists with an array for each arm; torques and forces come as in
        `forward_dynamics`. Arms may squeeze the object without moving it, so that many torques
        produce a motion: these are the smallest, of least Σ w_j tau_j², with ``weights`` w (...,
        nv), positive; all 1 unless given. A larger weight on the joints of an arm takes load off
        it. The object's own joint gets no torque: a state whose motion needs a push on the object
        that contacts cannot give is NaN and `SINGULAR`. ``f_ext`` as in `forward_dynamics`.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> tau, forces = grasp.inverse_dynamics(grasp.neutral(), np.zeros(6), np.zeros(6))
        >>> float(forces[:, 5].sum().round(6))  # the weight of the bar
        9.81
        """
        lists = self._are_lists(q)
        if lists:
            q, qd, qdd = self._joined("inverse_dynamics", (q, qd, ("qdd", qdd)))
        share = self._weights(weights, (q, qd, qdd))
        options = with_constants(
            "inverse_dynamics", constants, threads=threads, status=status, device=device
        )
        found = self._calls.run("grasp_inverse", (q, qd, qdd, share), options, f_ext=f_ext)
        rows, bits = found if status else (found, None)
        pair = self._as_given(rows[..., : self.nv], rows[..., self.nv :], lists)
        return (pair, bits) if status else pair

    def _weights(self, weights: ArrayLike | None, beside: tuple[Any, ...]) -> Any:
        """Weights of the joints, no wider than the arrays they go with."""
        try:
            share = np.ones(self.nv, np.float32) if weights is None else np.asarray(weights, float)
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

        ``q`` (..., nq), ``forces`` in N m and N as `forward_dynamics` returns them. The rest of
        them are the smallest forces, along the directions that contacts hold, that move the object
        in the same way.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> q, qd, tau = grasp.neutral(), np.zeros(6), np.ones(6)
        >>> forces = grasp.forward_dynamics(q, qd, tau)[2]
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
        given: Any = forces if hasattr(forces, "shape") else np.asarray(forces)
        wanted = (len(self._contacts), 6)
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
        """Normal and tangential forces (..., contacts), from the forces of `forward_dynamics`.

        ``q`` (..., nq), ``forces`` (..., contacts, 6). A normal force is positive where the arm
        pushes along the contact's normal. A real contact would open where it changes its sign, and
        slip where the ratio exceeds the friction coefficient.

        >>> import numpy as np, linkwise as lw
        >>> rows = [lw.DHRow(a=0.3, mass=1.0, inertia=(0.01, 0.01, 0.01)) for _ in range(3)]
        >>> arm, bar = lw.from_dh(rows), lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
        >>> grasp = lw.Grasp([arm, arm], object=bar, contacts=["link3", "link3"])
        >>> q, qd, tau = grasp.neutral(), np.zeros(6), np.ones(6)
        >>> forces = grasp.forward_dynamics(q, qd, tau)[2]
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
    found = tuple(arms) if isinstance(arms, Iterable) else (arms,)
    for i, arm in enumerate(found):
        if not isinstance(arm, Robot):
            raise TypeError(f"Grasp: arm {i} is {arm!r}; expected a robot")
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
    given = list(bases)
    if len(given) != count:
        raise ValueError(f"Grasp: {len(given)} bases for {count} arm(s); expected one for each")
    return tuple(values.pose(f"Grasp: base {i}", base) for i, base in enumerate(given))


def _body(body: Any) -> RigidBody:
    if not isinstance(body, RigidBody):
        raise TypeError(f"Grasp: object is {body!r}; expected a linkwise.RigidBody")
    body.rigid_inertia  # noqa: B018 - raises where it cannot exist
    return body


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
