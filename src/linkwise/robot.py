"""`Robot`: what users hold. Its functions are in functions.py."""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from linkwise.backends.choice import text_of
from linkwise.conversions import Conversions, layout_of
from linkwise.engine import devices
from linkwise.engine.calls import Array, Calls, Options, Pair, Plain, Result, Told, announce
from linkwise.engine.frames import inverse
from linkwise.engine.tasks import Key, frames_of
from linkwise.errors import FrictionWarning, NoProgram, meant, warn
from linkwise.functions import Functions, names
from linkwise.model import configuration, edit
from linkwise.model.bodies import Policy
from linkwise.model.build import build
from linkwise.model.closures import AnyLoop, Closing, Loop, several
from linkwise.model.contacts import RigidBody
from linkwise.model.description import IDENTITY, BodyInertia, Limits, RobotDescription
from linkwise.model.find import find_link
from linkwise.model.friction import friction_of
from linkwise.model.layouts import Layout
from linkwise.model.order import reorder
from linkwise.model.parameters import KINDS, MOST_LINKS, Parameter, inertial_parameters
from linkwise.model.tree import BASE, Frame, Link, LinkArrays, Tree
from linkwise.model.values import numbers, unknown
from linkwise.spatial.matrices import product
from linkwise.summary import summary
from linkwise.trace.program import OperationCount, count_operations
from linkwise.trace.tracer import Task, evaluate

if TYPE_CHECKING:
    from linkwise.study.operators import Operators
    from linkwise.view.page import Page
    from linkwise.view.server import Viewer


OPEN = Closing()  # no loops
CODEGEN = {"auto": None, "rolled": True, "unrolled": False}


class FramePlace(NamedTuple):
    """Where a frame is fixed on the robot; `Robot.frame` returns it."""

    name: str
    link: str  # the moving link that carries it, or "base"
    pose: Array  # (4, 4), in that link's own frame


class JointPlace(NamedTuple):
    """A joint, and where its numbers are in q and qd; `Robot.joint` returns it."""

    name: str
    kind: str  # "revolute", "continuous", "prismatic", ...
    parent: str  # the moving link that carries it, or "base"
    link: str  # the moving link that it moves
    q_slice: slice  # of a mimic joint: that of the joint it follows
    v_slice: slice
    axis: tuple[float, float, float]  # in the joint's own frame
    limits: Limits  # lower, upper, velocity, effort
    follows: tuple[str, float, float] | None  # of a mimic joint: joint, multiplier, offset


class Robot(Functions, Conversions):
    """A robot and its compiled functions; `load`, `from_dh`, `Builder` and `chain` make one.

    >>> import linkwise as lw
    >>> robot = lw.load("iiwa14")
    >>> q = robot.random_q(seed=0, size=100)
    >>> robot.gravity_torque(q).shape, robot.jacobian(q[0], "link7").shape
    ((100, 7), (6, 7))

    ``q`` (..., nq) is a configuration in rad and m, ``qd`` (..., nv) joint rates in rad/s and m/s,
    ``tau`` (..., nv) joint torques in N m, or N for joints that slide; what they hold for
    spherical, planar and free joints: see `load`. Every function takes one state or any leading
    batch axes, which broadcast as in NumPy, and keeps float32 or float64 (integers and lists become
    float64).

    Spatial vectors are (angular, linear). A frame's velocity is that of its origin in base axes,
    unless ``axes="body"``; on a free-flying base, base axes are those of the world. ``f_ext`` maps
    names of frames to wrenches (..., 6) on the robot, (moment, force) in N m and N at the frame's
    origin in base axes: ``{"link7": [0, 0, 0, 0, 0, -5]}``. Each set of frames is compiled once.

    Options of every function: ``out`` is an array for the result, ``threads`` the most threads that
    a large batch uses, ``device="cuda"`` computes arrays of NumPy on a GPU, and ``status=True``
    returns ``(result, status bits)``, where the bits of `Status` say what was wrong with each
    state. Arrays of CuPy, PyTorch and JAX are computed where they are, on a GPU too.

    A robot does not change once made, and may be called from any number of threads. An edited robot
    of a subclass is of that subclass, with the same attributes; ``__init__`` is not called.
    """

    __slots__ = ("__weakref__", "_closing", "_description", "_opened", "_policy", "_tree")

    def __init__(self, description: RobotDescription, policy: Policy | None = None) -> None:
        if not isinstance(description, RobotDescription):
            raise TypeError(
                f"Robot: description is {description!r}; expected a RobotDescription, which "
                "robot.description is (lw.load takes files and names)"
            )
        policy = policy or Policy()
        self._set(description, policy, Calls(build(description, policy), description.name))

    @classmethod
    def from_tree(cls, tree: Tree, name: str = "robot") -> Robot:
        """A robot made of links and joints directly, for joint kinds that no file format has."""
        return cls._made(RobotDescription(name, (), ()), Policy(), Calls(tree, name))

    @classmethod
    def _made(
        cls,
        description: RobotDescription,
        policy: Policy,
        calls: Calls,
        closing: Closing = OPEN,
    ) -> Robot:
        """A robot whose tree is there already; from its pickle too, which tells nothing again."""
        robot = cls.__new__(cls)
        robot._set(description, policy, calls, closing)
        return robot

    def _set(
        self,
        description: RobotDescription,
        policy: Policy,
        calls: Calls,
        closing: Closing = OPEN,
    ) -> None:
        self._description, self._policy, self._calls = description, policy, calls
        self._tree, self._closing = calls.tasks.tree, closing
        self._opened: Robot | None = None  # made when it is asked for

    # -- what it is -----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The robot's name, from its file."""
        return self._description.name

    @property
    def description(self) -> RobotDescription:
        """The description that the robot was made from: links, joints, limits, geometry."""
        return self._description

    @property
    def tree(self) -> Tree:
        """Links, joints and constants in the form that the algorithms use."""
        return self._tree

    @property
    def nq(self) -> int:
        """How many numbers a configuration ``q`` has."""
        return self._tree.nq

    @property
    def nv(self) -> int:
        """How many degrees of freedom the robot has: the length of ``qd``, ``qdd`` and ``tau``."""
        return self._tree.nv

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints in the order of their numbers in ``q``; mimic joints have none."""
        if self._tree.coupled:
            return tuple(link.joint_name for link in self._tree.links if link.follows is None)
        return tuple(joint for _, joint in self._tree.names())

    @property
    def link_names(self) -> tuple[str, ...]:
        """The moving links, in the order of their joints; links fixed to them are merged in."""
        return tuple(link for link, _ in self._tree.names())

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names that functions take as ``frame``: all links, fixed ones too, joints and sites.

        The frame of a joint is that of its child link. A name that both a link and a joint have is
        the link's.
        """
        return tuple(self._tree.frames)

    @property
    def gravity(self) -> Array:
        """Gravity (3) in base axes, m/s²."""
        return np.array(self._tree.gravity)

    @property
    def mass(self) -> float:
        """Mass in kg of the moving bodies; links that are fixed to the base do not count."""
        return self._tree.mass

    @property
    def body_names(self) -> tuple[str, ...]:
        """The moving bodies, one per row of `inertial_parameters`: the names in `link_names`."""
        return self.link_names

    @property
    def inertial_parameters(self) -> Array:
        """Inertial parameters (n, 10) of the moving bodies: all links fixed together, payloads too.

        ``m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz``: mass in kg, first moment in kg m, and
        rotational inertia in kg m² about the origin of the joint's frame, in its axes (those of the
        joint's child link in a URDF; the frame of the joint's name, unless a link has that name).
        """
        return inertial_parameters(self._tree)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the constants that functions take as arguments: see `parametric`."""
        return tuple(each.name for each in self._calls.tasks.parameters)

    @property
    def position_limits(self) -> Array:
        """Lower and upper limits of ``q`` (2, nq) in rad or m; infinite where there are none."""
        return configuration.position_limits(self._tree)

    @property
    def velocity_limits(self) -> Array:
        """Largest joint rates (nv) in rad/s or m/s, from the file; infinite where not given."""
        return configuration.largest(self._tree, "velocity")

    @property
    def effort_limits(self) -> Array:
        """Largest joint torques (nv) in N m or N, from the file; infinite where not given."""
        return configuration.largest(self._tree, "effort")

    @property
    def actuated(self) -> NDArray[np.bool_]:
        """Whether each degree of freedom (nv) has a motor: see `with_actuated`.

        >>> import linkwise as lw
        >>> lw.load("puma560", base="free").actuated[4:8].tolist()
        [False, False, True, True]
        """
        found = np.ones(self.nv, np.bool_)
        found[list(self._tree.passive)] = False
        return found

    def frame(self, name: str) -> FramePlace:
        """Where a frame is fixed: the moving link that carries it, and its pose (4, 4) there.

        >>> import linkwise as lw
        >>> place = lw.load("puma560").frame("link6")
        >>> place.link, place.pose.shape
        ('link6', (4, 4))
        """
        at = self._calls.tasks.frame(name)
        link = "base" if at.link == BASE else self._tree.links[at.link].name
        # a moving link may be called "base" too
        base = Frame(BASE, (0.0, 0.0, 0.0), IDENTITY)
        own = base if at.link == BASE else self._tree.frames.get(link, at)
        return FramePlace(name, link, _relative(own, at))

    def joint(self, name: str) -> JointPlace:
        """A joint's kind, axis and limits, and where its numbers are in ``q`` and ``qd``.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> robot.joint("joint3").q_slice
        slice(2, 3, None)
        """
        tree = self._tree
        joints = [joint for _, joint in tree.names()]
        if not isinstance(name, str) or name not in joints:
            raise unknown("joint", name, self.name, joints)
        return self._joint_place(tree.links[joints.index(name)])

    def _joint_place(self, link: Link) -> JointPlace:
        links, at = self._tree.links, link.follows
        return JointPlace(
            link.joint_name,
            link.kind,
            "base" if link.parent == BASE else links[link.parent].name,
            link.name,
            slice(link.q_index, link.q_index + link.joint.nq),
            slice(link.v_index, link.v_index + link.joint.nv),
            link.axis,
            link.limits,
            None if at is None else (links[at.link].joint_name, at.multiplier, at.offset),
        )

    def inertia(self, link: str) -> RigidBody:
        """Mass, centre of mass and inertia about it (3, 3) of one link alone, in its own axes.

        In kg, m and kg m², as in the file. Links that are fixed to this one, such as the payload of
        `with_payload`, are links of their own (``robot.inertia("payload")``); what moves together
        is a body, and a row of `inertial_parameters`.

        >>> import linkwise as lw
        >>> body = lw.load("puma560").inertia("link3")
        >>> body.mass
        4.8
        """
        body = find_link(self._described(), link).inertia or BodyInertia(0.0)
        return RigidBody(body.mass, body.com, body.matrix)

    # -- configurations -------------------------------------------------------------------------

    def neutral(self, dtype: DTypeLike = np.float64) -> Array:
        """The configuration (nq) at rest: zeros, and identity quaternions (1, 0, 0, 0).

        >>> import linkwise as lw
        >>> lw.load("iiwa14", base="free").neutral()[:7].tolist()
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        """
        return configuration.neutral(self._tree).astype(dtype, copy=False)

    def random_q(
        self,
        rng: np.random.Generator | None = None,
        *,
        seed: int | None = None,
        size: int | tuple[int, ...] = (),
        dtype: DTypeLike = np.float64,
    ) -> Array:
        """Random configurations (..., nq) within the joint limits.

        Joints without limits are within ±pi rad or ±1 m; quaternions are uniform.

        Args:
            rng: A generator of NumPy. Without one, a new generator from ``seed``.
            seed: An integer that is not negative; None for other draws in each call.
            size: The batch axes: a number of states, or a shape.
            dtype: The dtype of the result.

        Returns:
            Configurations (size, nq), in rad or m.

        >>> import linkwise as lw
        >>> lw.load("puma560").random_q(seed=0, size=(10, 2)).shape
        (10, 2, 6)
        """
        states = configuration.random(self._tree, configuration.generator(rng, seed), size)
        return states.astype(dtype, copy=False)

    @overload
    def integrate(
        self, q: ArrayLike, v: ArrayLike, dt: ArrayLike = ..., **options: Unpack[Plain]
    ) -> Array: ...

    @overload
    def integrate(
        self, q: ArrayLike, v: ArrayLike, dt: ArrayLike = ..., **options: Unpack[Told]
    ) -> Pair: ...

    def integrate(
        self, q: ArrayLike, v: ArrayLike, dt: ArrayLike = 1.0, **options: Unpack[Options]
    ) -> Any:
        """The configuration (..., nq) reached from ``q`` (..., nq) at the rates ``v`` in ``dt``.

        ``v`` (..., nv) in rad/s or m/s is held constant; ``dt`` in seconds is one number, or one
        for each state (...). Quaternions turn by the exponential of their rate and stay of unit
        length.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> robot.integrate(robot.neutral(), [1.0, 0, 0, 0, 0, 2.0], 1e-3).tolist()
        [0.001, 0.0, 0.0, 0.0, 0.0, 0.002]
        """
        return self._calls.run("integrate", (q, v, devices.times(q, v, dt)), options)

    def __str__(self) -> str:
        """A table of joints, axes, limits and masses."""
        return summary(self.name, self._tree)

    def __repr__(self) -> str:
        closed = f", {len(self.loops)} closed loop(s)" if self.loops else ""
        return f"<Robot {self.name!r}: {self.nv} degrees of freedom{closed}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Robot):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[Any, ...]:
        """All that makes one robot differ from another."""
        return self._description, self._policy, self._tree.digest, self._calls.tasks.parameters

    def __reduce__(self) -> tuple[Any, ...]:
        made_of = (self._description, self._policy, self._calls, self._closing)
        return type(self)._made, made_of, (None, self._attributes())

    def _attributes(self) -> dict[str, Any]:
        """What a subclass keeps besides what every robot has."""
        kept: Any = object.__getstate__(self)  # of the instance's dictionary, and of slots
        common = (*Functions.__slots__, *Robot.__slots__)
        return {k: x for part in kept for k, x in (part or {}).items() if k not in common}

    # -- other robots ---------------------------------------------------------------------------

    @property
    def armature(self) -> Array:
        """Rotor inertia (nv) of each degree of freedom, reflected to the joint, kg m² or kg."""
        return self._of_joints("armature")

    @property
    def damping(self) -> Array:
        """Viscous friction (nv) in N m s or N s/m; the dynamics use it with ``friction=True``."""
        return self._of_joints("damping")

    @property
    def friction(self) -> Array:
        """Coulomb friction (nv) in N m or N; the dynamics use it with ``friction=True``."""
        return self._of_joints("friction")

    def lock(self, configuration: Mapping[str, ArrayLike]) -> Robot:
        """The robot with some joints held fixed, and their mimic joints with them.

        ``configuration`` maps each joint to its part of ``q``, in rad or m; limits are not checked.
        The links stay as frames.

        >>> import linkwise as lw
        >>> lw.load("puma560").lock({"joint4": 0.5, "joint6": 0.0}).joint_names
        ('joint1', 'joint2', 'joint3', 'joint5')
        """
        return self._edited(edit.lock(self._described(), configuration))

    def with_payload(
        self,
        link: str,
        mass: float,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia: ArrayLike = (0.0, 0.0, 0.0),
        name: str = "payload",
    ) -> Robot:
        """The robot with a rigid body fixed to a link.

        ``mass`` in kg; ``com`` (3) is its centre of mass in m, in the link's axes; ``inertia``
        about the centre of mass in kg m², as (xx, yy, zz), (xx, xy, xz, yy, yz, zz) or (3, 3); none
        for a point mass. The payload is a link of its own, and a frame, called ``name``: it counts
        in `mass` and `inertial_parameters`, and not in ``inertia(link)``. The new robot compiles
        functions of its own; for many payloads, `parametric` compiles once.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> round(robot.with_payload("link6", 2.0, com=(0, 0, 0.1)).mass - robot.mass, 6)
        2.0
        """
        return self._edited(edit.with_payload(self._described(), link, mass, com, inertia, name))

    def with_attached(
        self, other: Robot, link: str, pose: ArrayLike | None = None, prefix: str = ""
    ) -> Robot:
        """Two robots in one: the other's base fixed at a pose (4, 4) on a link of this one.

        ``prefix`` is put before every name of the other, whose gravity is not used.

        >>> import linkwise as lw
        >>> arm = lw.load("puma560")
        >>> both = arm.with_attached(arm, "link6", prefix="second_")
        >>> both.nv, both.joint_names[-1]
        (12, 'second_joint6')
        """
        if not isinstance(other, Robot):
            raise TypeError(f"with_attached: other is {other!r}; expected a robot")
        theirs = other._closing.renamed(lambda name: prefix + name)
        _refuse_world_loops("with_attached", theirs.loops)
        described = edit.with_attached(self._described(), other._described(), link, pose, prefix)
        return self._edited(described, closing=self._closing.beside(theirs))

    def sub_chain(self, base: str, tip: str) -> Robot:
        """The links from ``base`` out to ``tip``, and links fixed to them, as a robot of its own.

        Gravity is that in the base link's axes with every joint before it at rest.

        >>> import linkwise as lw
        >>> lw.load("iiwa14").sub_chain("link3", "link6").joint_names
        ('joint4', 'joint5', 'joint6')
        """
        return self._edited(edit.sub_chain(self._tree_described("sub_chain"), base, tip))

    def change_base(self, link: str) -> Robot:
        """The same machine held by another link; joints and link frames keep their meaning.

        The order of joints follows the new tree (see ``joint_names``); gravity keeps its direction
        at rest.

        >>> import linkwise as lw
        >>> lw.load("iiwa14").change_base("link7").nv
        7
        """
        _refuse_world_loops("change_base", self.loops)
        return self._edited(edit.change_base(self._described(), link))

    def with_inertia(
        self,
        link: str,
        mass: float | None = None,
        com: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
    ) -> Robot:
        """The robot with another mass, centre of mass or inertia of a link.

        In kg, m and kg m², in the link's axes, the inertia about the centre of mass in the forms of
        `with_payload`. What is not given stays.

        >>> import linkwise as lw
        >>> lw.load("puma560").with_inertia("link6", mass=1.0).inertia("link6").mass
        1.0
        """
        return self._edited(edit.with_inertia(self._described(), link, mass, com, inertia))

    def with_joint(self, joint: str, **fields: Any) -> Robot:
        """The robot with other numbers of a joint.

        ``limits=(lower, upper)``, ``velocity``, ``effort``, ``armature``, ``damping``,
        ``friction``: ``robot.with_joint("elbow", armature=0.1, limits=(-1.0, 1.0))``.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560").with_joint("joint1", damping=0.5)
        >>> robot.damping[:2].tolist()
        [0.5, 0.0]
        """
        return self._edited(edit.with_joint(self._described(), joint, **fields))

    def rename(self, names: Mapping[str, str] | None = None, *, name: str | None = None) -> Robot:
        """The robot with other names of links, joints and frames (``{old: new}``), or of itself.

        A link and a joint that share a name are renamed together. Names may be swapped.

        >>> import linkwise as lw
        >>> lw.load("puma560").rename({"link6": "flange"}).link_names[-1]
        'flange'
        """
        described = edit.rename(self._described(), names, name)
        closing = self._closing.renamed(lambda old: (names or {}).get(old, old))
        return self._edited(described, closing=closing)

    def reorder(self, order: Sequence[str] | str) -> Robot:
        """The same robot with its joints in another order in ``q``, ``qd`` and all results.

        ``order``: the names of all joints, each after the joints that carry it; or ``"pinocchio"``,
        the order in which Pinocchio has the joints of a URDF; or ``"mujoco"``, that of the file.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> robot.reorder(robot.joint_names) == robot.reorder("mujoco")
        True
        """
        return self._edited(reorder(self._tree_described("reorder"), order))

    def with_frame(self, name: str, link: str, pose: ArrayLike | None = None) -> Robot:
        """The robot with one more named frame, at a pose (4, 4) on a link.

        ``robot.with_frame("tool", "link6", pose)``; its name is then a ``frame`` for every
        function.

        >>> import numpy as np, linkwise as lw
        >>> pose = np.eye(4)
        >>> pose[2, 3] = 0.1
        >>> robot = lw.load("puma560").with_frame("tool", "link6", pose)
        >>> "tool" in robot.frame_names
        True
        """
        return self._edited(edit.with_frame(self._described(), name, link, pose))

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The robot under another gravity (3), m/s² in base axes.

        >>> import linkwise as lw
        >>> lw.load("puma560").with_gravity((0, 0, 0)).gravity_torque([0.1] * 6).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        """
        description = edit.with_gravity(self._description, gravity)
        if description.links:
            return self._edited(description)
        tree = dataclasses.replace(self._tree, gravity=description.gravity)  # of chain, from_tree
        return self._like(self._description, self._policy, tree)

    def with_free_base(self, joint: str = "base") -> Robot:
        """The robot on a free-flying base: six more degrees of freedom, first in ``q`` and ``qd``.

        The base link needs mass and inertia; without them forward dynamics is refused.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560").with_free_base()
        >>> robot.nq, robot.nv
        (13, 12)
        """
        return self._edited(edit.with_free_base(self._described(), joint))

    def with_actuated(self, joints: bool | str | Iterable[str]) -> Robot:
        """The robot with motors in some joints only.

        Every joint has a motor unless said otherwise, except free joints: a floating base has none.
        Joints without a motor get no torque from controllers (`linkwise.control`), and none from
        `inverse_dynamics` of closed robots if the loops can hold them; `inverse_dynamics` and
        `gravity_torque` of open robots still return the force that a motion needs there, such as
        the wrench on a floating base. Forward dynamics takes ``tau`` of every joint.

        Args:
            joints: Names of the joints that have a motor; no other joint has one. True for all
                joints, a floating base too, False for none.

        Returns:
            The robot; its `actuated` tells.

        >>> import linkwise as lw
        >>> lw.chain(3).with_actuated(["joint1", "joint3"]).actuated.tolist()
        [True, False, True]
        """
        names, found = self.joint_names, joints
        if isinstance(found, (bool, np.bool_)):
            found = names if found else ()
        if not isinstance(found, Iterable):
            raise ValueError(
                f"with_actuated: joints is {joints!r}; expected names of joints, True or False"
            )
        named = (found,) if isinstance(found, str) else tuple(found)
        known = set(names)
        for joint in named:
            if not isinstance(joint, str) or joint not in known:
                raise unknown("joint", joint, self.name, names)
        chosen = set(named)
        closing = self._closing.with_motors((joint, joint in chosen) for joint in names)
        return self._like(self._description, self._policy, self._tree, closing)

    def with_friction(self, friction: bool = True) -> Robot:
        """The robot whose dynamics include its joints' damping and Coulomb friction, or do not.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> rubbing = robot.with_joint("joint1", damping=0.5).with_friction()
        >>> q, qd = [0.0] * 6, [2.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        >>> tau = rubbing.bias(q, qd) - robot.bias(q, qd)
        >>> round(float(tau[0]), 9)
        1.0
        """
        if not isinstance(friction, bool | np.bool_):
            raise ValueError(f"with_friction: friction is {friction!r}; expected True or False")
        policy = dataclasses.replace(self._policy, friction=bool(friction), friction_known=True)
        return self._edited(self._described(), policy)

    def _warn_of_friction(self, function: str) -> None:
        """Warn once that damping and friction are left out, unless the user has chosen that."""
        if self._policy.friction_known or "friction" in self.parameters:
            return
        self._policy = dataclasses.replace(self._policy, friction_known=True)
        if left_out := friction_of(self._description):
            warn(
                FrictionWarning,
                f"{function}robot {self.name!r}: {left_out} left out of the dynamics; expected "
                "friction=True when it is loaded, or robot.with_friction(), to include them, "
                "friction=False to leave them out without this warning",
            )

    def with_codegen(self, codegen: str) -> Robot:
        """Return the same robot with its functions compiled as rolled or as unrolled code.

        Rolled code is loops over the links: it compiles in a fraction of a second whatever the
        number of links. Unrolled code has instructions of its own for each link, and is faster for
        robots of few links. Methods that cannot be rolled are unrolled all the same.

        Args:
            codegen: ``"rolled"``, ``"unrolled"``, or ``"auto"``, which chooses by the number of
                links and is the default of every robot.

        Returns:
            A robot of the same dynamics.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> bool(np.allclose(robot.with_codegen("rolled").bias(q, qd), robot.bias(q, qd)))
        True
        """
        if not isinstance(codegen, str) or codegen not in CODEGEN:
            known = ", ".join(map(repr, CODEGEN))
            hint = meant(codegen, CODEGEN, 1) if isinstance(codegen, str) else ""
            raise ValueError(f"with_codegen: codegen is {codegen!r}; expected one of {known}{hint}")
        tree = dataclasses.replace(self._tree, loops=CODEGEN[codegen])
        return self._like(self._description, self._policy, tree)

    def parametric(self, *names: str, payload: str | None = None) -> Robot:
        """The same robot, whose functions take some of its constants as arguments.

        One compiled function then serves every payload, every gravity, every guess of the robot's
        masses: one value for all states of a batch, or one for each, as arrays broadcast.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14").parametric("inertia", "gravity")
        >>> q, zero = robot.random_q(seed=0, size=100), np.zeros(7)
        >>> heavy = robot.inertial_parameters * np.linspace(1.0, 2.0, 100)[:, None, None]
        >>> robot.forward_dynamics(q, zero, zero, inertia=heavy, gravity=[0, 0, -1.62]).shape
        (100, 7)

        A constant that is not given has the robot's own value. The names, and their shapes after
        any batch axes:

        - ``"inertia"`` (n, 10): of each moving body, as `inertial_parameters` has them
        - ``"gravity"`` (3): m/s² in base axes
        - ``"payload"`` (10): one more body, in the axes of a frame about its origin, in the form of
          `inertial_parameters`; ``payload`` names the frame, by default that of the last link
        - ``"rotor"`` (nv): inertia of the motors' rotors, as `armature`
        - ``"friction"`` (nv, 2): viscous and Coulomb friction, as `damping` and `friction`
        - ``"placement"`` (n, 6): how far each joint's frame is from where the file has it, a turn
          (rotation vector, rad) and a shift (m) in the axes of that frame: for calibration

        Physically inconsistent bodies (whose pseudo-inertia has a negative eigenvalue) are computed
        like others; ``status=True`` says `Status.NOT_RIGID`. `simulate` takes them by
        ``parameters=``; inverse kinematics uses the robot's own values. ``robot.parametric()`` is
        the robot without parameters again.
        """
        if payload is not None and not isinstance(payload, str):
            raise TypeError(f"parametric: payload is {payload!r}; expected the name of a frame")
        for name in names:
            if not isinstance(name, str) or name not in KINDS:
                raise ValueError(
                    f"parametric: parameter {name!r}; expected one of {', '.join(map(repr, KINDS))}"
                )
            if names.count(name) > 1:
                raise ValueError(f"parametric: parameter {name!r} is named twice; expected once")
        names = (*names, *(["payload"] if payload and "payload" not in names else []))
        if names and self._tree.n_links > MOST_LINKS:
            raise ValueError(
                f"parametric: robot {self.name!r} has {self._tree.n_links:,} moving links; "
                f"expected at most {MOST_LINKS:,}: functions with parameters are written out link "
                "by link, never as loops. robot.with_gravity and the like make another robot"
            )
        own = tuple(
            Parameter(name, self._carrier(payload) if name == "payload" else None) for name in names
        )
        calls = Calls(self._tree, self.name, own)
        return self._copied(self._made(self._description, self._policy, calls, self._closing))

    def _carrier(self, frame: str | None) -> Frame:
        """The frame that a payload is fixed to; the last link's where no frame is named."""
        if frame is None:
            if not self._tree.serial or not self._tree.n_links:
                raise ValueError(
                    f"parametric: robot {self.name!r} is no chain of moving links; expected "
                    "payload='name of the frame that carries it'"
                )
            return self._tree.joint_frames[-1]
        at = self._calls.tasks.frame(frame)
        if at.link == BASE:
            raise ValueError(
                f"parametric: payload {frame!r} is fixed to the base; expected a frame that moves"
            )
        return at

    def close_loops(
        self,
        loops: AnyLoop | Iterable[AnyLoop],
        *,
        at: ArrayLike | None = None,
        passive: Iterable[str] = (),
    ) -> Robot:
        """The robot with closed loops: frames held to others, or to the world (`Loop`), and joints
        held to curves over others (`Coupling`).

        It is a robot in everything: ``q`` and ``qd`` are still those of all joints, and are meant
        to respect the loops (`residual`, `project`). Forward and inverse dynamics and simulations
        are those of the closed robot; mass matrix, bias, energies and kinematics are those of its
        links and joints, loops or not; what has no meaning with closed loops says so. `open` is the
        robot without its loops.

        ``at`` is a configuration (nq): poses that a loop does not give are those that its frames
        have there. ``passive`` names joints without a motor (`with_actuated`), to which
        `inverse_dynamics` gives no torque; a floating base is one.
        ``robot.close_loops(lw.Loop("rod", "pin", [0, 0, 0, 1, 1, 1]), at=q)``.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> q = robot.random_q(seed=0)
        >>> closed = robot.close_loops([lw.Loop("tip", directions=[0, 0, 0, 0, 0, 1])], at=q)
        >>> qdd = closed.forward_dynamics(q, [0.0] * 3, [0.0] * 3)
        >>> bool(abs(robot.jacobian(q, "tip")[5] @ qdd) < 1e-12)  # the tip keeps its height
        True
        """
        given = several(loops)
        if at is not None:
            q = numbers("close_loops: at", at, (self.nq,))
            given = tuple(self._placed(x, q) for x in given)
        if not isinstance(passive, Iterable):
            raise TypeError(f"close_loops: passive is {passive!r}; expected names of joints")
        named = (passive,) if isinstance(passive, str) else tuple(passive)
        for joint in named:
            if not isinstance(joint, str) or joint not in self.joint_names:
                raise unknown("joint", joint, self.name, self.joint_names)
        closing = self._closing.beside(Closing(given, tuple((joint, False) for joint in named)))
        return self._like(self._description, self._policy, self.open._tree, closing)

    def _placed(self, loop: AnyLoop, q: Array) -> AnyLoop:
        """A loop whose pose, unless it was given one, is that of its frames at a configuration."""
        if not isinstance(loop, Loop) or loop.pose is not None:
            return loop
        frames = [self.forward_kinematics(q, name) for name in loop.frames]
        at = product(inverse(frames[1]), frames[0]) if len(frames) > 1 else frames[0]
        return dataclasses.replace(loop, pose=at.tolist())

    def _refuse_unplaced(self, what: str) -> None:
        """Raise where it is not known which pose a loop holds: of contacts of a grasp alone."""

    @property
    def loops(self) -> tuple[AnyLoop, ...]:
        """The loops that were closed, in order."""
        return self._closing.loops

    @property
    def open(self) -> Robot:
        """The robot with its loops open; the robot itself where it has none."""
        if not self.loops:
            return self
        if self._opened is None:
            opened = Closing(motors=self._closing.motors)
            self._opened = self._like(self._description, self._policy, self._tree, opened)
        return self._opened

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the robot as a URDF file, from which `load` makes one of the same dynamics.

        Gravity is not in a URDF. Bodies that were loaded with ``strict=False`` need it again.

        >>> import linkwise as lw
        >>> import tempfile, pathlib
        >>> robot = lw.from_dh([lw.DHRow(a=0.5, mass=2.0, inertia=(0.1, 0.1, 0.1))])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     robot.save(pathlib.Path(folder, "arm.urdf"))
        ...     again = lw.load(pathlib.Path(folder, "arm.urdf"))
        >>> again.nv, again.mass == robot.mass
        (1, True)
        """
        from linkwise.io.urdf_write import save_urdf

        save_urdf(self._tree_described("save"), path)

    def _described(self) -> RobotDescription:
        if not self._description.links:
            raise ValueError(
                f"robot {self.name!r} was made from a tree (chain, from_tree) and cannot be edited "
                "or saved, but for with_gravity and with_codegen; expected one that was loaded, or "
                "made by linkwise.Builder"
            )
        return self._description

    def _tree_described(self, what: str) -> RobotDescription:
        """For what knows no closed loops."""
        if self.loops:
            raise ValueError(
                f"{what}: robot {self.name!r} has closed loops ({self._tree.loop_names[0]}), "
                "which would be lost; expected a robot without, such as robot.open"
            )
        return self._described()

    def _edited(
        self,
        description: RobotDescription,
        policy: Policy | None = None,
        closing: Closing | None = None,
    ) -> Robot:
        policy = policy or self._policy
        tree = dataclasses.replace(build(description, policy), loops=self._tree.loops)
        return self._like(description, policy, tree, closing)

    def _like(
        self,
        description: RobotDescription,
        policy: Policy,
        tree: Tree,
        closing: Closing | None = None,
    ) -> Robot:
        """Another robot of the same class, with the same attributes, and the same closed loops
        unless others are given.
        """
        closing = self._closing if closing is None else closing
        tree = closing.of(tree, description.name)
        parameters = self._calls.tasks.parameters
        calls = Calls(tree, description.name, parameters)
        return self._copied(self._made(description, policy, calls, closing))

    def _copied(self, robot: Robot) -> Robot:
        """Another robot of the same class, with what a subclass keeps."""
        for name, value in self._attributes().items():
            setattr(robot, name, value)
        return robot

    def _layout(self, library: str, model: Any) -> Layout:
        return layout_of(self._tree, self._description, library, model)

    def _of_joints(self, field: str) -> Array:
        """A number of each joint's description, for each of its degrees of freedom."""
        if isinstance(self._tree.links, LinkArrays):
            return self._tree.links.of_joints(field)
        described = {joint.name: joint for joint in self._description.joints}
        own = [link for link in self._tree.links if link.follows is None]
        parts = [getattr(described.get(x.joint_name, x), field) for x in own]
        sizes = [x.joint.nv for x in own]
        return np.concatenate([np.broadcast_to(p, n) for p, n in zip(parts, sizes, strict=True)])

    # -- looking at it --------------------------------------------------------------------------

    def show(
        self,
        q: ArrayLike | None = None,
        *,
        frame: str | None = None,
        forces: Mapping[str, ArrayLike] | None = None,
        port: int = 8080,
        open_browser: bool = True,
        block: bool | None = None,
        live: bool | None = None,
    ) -> Viewer | Page:
        """Show the robot in the browser, live, with a slider for each joint.

        Beside it: the pose of a frame, the torques that hold the robot against gravity, what the
        frame can do in each direction (manipulability, effective mass), and a target to drag,
        which the joints follow by `inverse_kinematics`. Closed loops stay closed, and their forces
        are arrows. Arguments as in `save_html`; of a batch (..., nq) the first is the robot and
        others are its ghosts.

        The page is served to this machine alone, at ``port`` or the next that is free, and answers
        no other web page. A second call for the same port closes the first viewer. In a script
        this returns when it is interrupted by Ctrl-C, elsewhere at once; ``block`` says which. The
        viewer that is returned has ``url``, ``q``, ``update(q)``, ``wait()`` and ``close()``.

        In a notebook there is no server: a `Page` with sliders and inverse kinematics of its own
        is displayed, also where the kernel runs on another machine, and in exported notebooks.
        ``live=True`` serves from there too, ``live=False`` makes a page anywhere.

        Needs viser (``pip install 'linkwise[view]'``) if it serves; a page does not.

        >>> import linkwise as lw
        >>> lw.load("puma560").show([0.1] * 6)  # doctest: +SKIP
        """
        from linkwise.view.show import show

        return show(self, q, None, frame, forces, port, open_browser, block, live)

    def animate(
        self,
        traj: Any,
        *,
        frame: str | None = None,
        forces: Mapping[str, ArrayLike] | None = None,
        port: int = 8080,
        open_browser: bool = True,
        block: bool | None = None,
        live: bool | None = None,
    ) -> Viewer | Page:
        """Show a motion in the browser, with a time line: what `simulate` returns, or ``(t, q)``.

        Times (T) in seconds and configurations (..., T, nq), where rows after the first are ghosts.
        Else as `show`.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> motion = lw.simulate(robot, [0.1] * 6, duration=1.0)  # doctest: +SKIP
        >>> robot.animate(motion)  # doctest: +SKIP
        """
        from linkwise.view.show import show

        return show(self, None, traj, frame, forces, port, open_browser, block, live)

    def save_html(
        self,
        path: str | os.PathLike[str],
        traj: Any = None,
        *,
        q: ArrayLike | None = None,
        frame: str | None = None,
        forces: Mapping[str, ArrayLike] | None = None,
    ) -> Path:
        """Write the robot as one HTML file that any browser opens, without Python or a network.

        It has a slider for each joint, read-outs, and inverse kinematics of a target that is
        dragged. ``traj`` is a motion to play: what `simulate` returns, or times (T) and ``q``
        (..., T, nq) as a pair. Without one, the robot stands at ``q`` (nq), by default at rest; of
        a batch (..., nq) the first is the robot and others are its ghosts, as are other rows of a
        motion. ``frame`` is the frame whose pose is shown first, by default the tip. ``forces``
        maps names of frames to wrenches (6), or (T, 6) of a motion, drawn as arrows: (moment,
        force) in base axes.

        Meshes of the robot file are drawn if trimesh is installed (``pip install
        'linkwise[view]'``) and they lie in folders that the file may name (`load`).

        ``robot.save_html("arm.html", lw.simulate(robot, q0, qd0, duration=2.0))``

        >>> import linkwise as lw
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "arm.html")
        ...     _ = lw.load("puma560").save_html(path)
        ...     path.stat().st_size > 10_000
        True
        """
        from linkwise.view.show import save_html

        return save_html(self, path, traj, q, frame, forces)

    def _repr_html_(self) -> str | None:
        """The robot in three dimensions, for notebooks."""
        from linkwise.view.show import notebook

        return notebook(self)

    # -- looking inside -------------------------------------------------------------------------

    def operation_count(
        self, function: str, method: str = "auto", *, frame: str | None = None
    ) -> OperationCount:
        """Exact number of operations of one evaluation, counted in the program that runs.

        Functions of a frame need ``frame``: ``operation_count("jacobian", frame="tool").total``.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> robot.operation_count("gravity_torque").total
        40
        """
        task = self._calls.tasks.task(Key(function, method, frame))
        kernels = self._calls.kernels
        once = count_operations(kernels.program(kernels.equations(_compiled(task))))
        return once if task.of_columns is None else once.repeated(self.nv)

    def source(
        self,
        function: str,
        backend: str = "c",
        method: str = "auto",
        *,
        frame: str | None = None,
        dtype: str = "float64",
    ) -> str:
        """The generated code: ``"c"`` (readable), ``"llvm"`` or ``"cuda"`` (compiled), ``"asm"``.

        For a matrix whose columns are computed one by one, the code of one column.

        >>> import linkwise as lw
        >>> text = lw.load("puma560").source("gravity_torque")
        >>> "void gravity_torque_rnea(const double q[6], double result[6])" in text
        True
        """
        _check_dtype(dtype)
        text = text_of(backend)
        task = self._calls.tasks.task(Key(function, method, frame), dtype, text.kind)
        kernels = self._calls.kernels
        equations = kernels.equations(_compiled(task))
        program = kernels.ready(equations, lambda p: text.order(p, dtype))
        return text.render(program, dtype, self.name)

    def export(
        self,
        folder: str | os.PathLike[str],
        functions: str | Iterable[str],
        dtype: str = "float64",
        *,
        name: str | None = None,
        axes: str = "base",
        f_ext: Sequence[str] = (),
        status: bool = False,
        math: str = "own",
        shared: bool = False,
        casadi: int | None = None,
    ) -> tuple[Path, ...]:
        """Write functions as C99 that needs nothing of linkwise; returns the paths of the files.

        A header, a source, a program that checks the numbers, and a CMakeLists.txt. Each function
        computes one state: ``void arm_mass_matrix(const double q[6], double result[36])``, without
        allocation, in a number of operations that its comment in the header tells.

        ``functions``: ``"mass_matrix"``, ``"forward_dynamics[aba]"`` (a method) or
        ``"jacobian@tool"`` (a frame), or several. ``dtype``: ``"float64"`` or ``"float32"``.
        ``name``: what names in C begin with, the robot's unless given. ``axes`` is for functions of
        frames. ``f_ext`` names frames: the dynamics then take a wrench for each. ``status``:
        functions also write bits of `Status`.
        ``math``: sine and cosine of ``"own"``, the same bits on every machine with fused
        multiply-adds, or of ``"libm"``. ``shared``: also compile a library, with the C compiler of
        this machine, and write a module that calls it by ctypes. ``casadi``: an order of
        derivatives, 0, 1 or 2; also write the functions and these derivatives in CasADi's own
        interface, as ``casadi.external("arm_mass_matrix_casadi", "./libarm.so")`` and acados take
        them.

        ``robot.export("arm", ["forward_dynamics", "jacobian@tool"], dtype="float32")``

        >>> import linkwise as lw
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in lw.load("puma560").export(folder, ["bias"], name="puma")]
        ['puma.h', 'puma.c', 'puma_test.c', 'CMakeLists.txt']
        """
        from linkwise.export.folder import export

        _check_dtype(dtype)
        options: dict[str, Any] = {"axes": axes, "f_ext": f_ext, "status": status, "math": math}
        options |= {"name": name, "shared": shared, "casadi": casadi}
        return export(self._calls, folder, functions, dtype, **options)

    def casadi(
        self,
        function: str,
        *,
        method: str = "auto",
        frame: str | None = None,
        axes: str = "base",
        f_ext: Sequence[str] = (),
        name: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> Any:
        """A function of one state as a ``casadi.Function``, with all derivatives that CasADi makes.

        Its inputs have the names of the arguments; ``f_ext`` names frames whose wrenches are inputs
        too. It is made of SX, and may be called with numbers, SX or MX: ``f =
        robot.casadi("forward_dynamics"); f.jacobian(); f(q, qd, tau)``. Results of three axes (i,
        j, k) are matrices (i, j k). ``options`` are CasADi's. Methods that iterate are refused.

        >>> import linkwise as lw
        >>> f = lw.load("puma560").casadi("gravity_torque")
        >>> f.size_out(0)
        (6, 1)
        """
        from linkwise.interop.casadi import function as make

        key = Key(function, method, frame, axes, frames_of(f_ext))
        return make(self._calls, key, name, options)

    def sympy(
        self,
        function: str,
        *values: Sequence[Any],
        method: str = "auto",
        frame: str | None = None,
        axes: str = "base",
        f_ext: Sequence[str] = (),
    ) -> Any:
        """A function of one state as expressions of SymPy: a matrix, or an array of three axes.

        Of the values given, numbers or expressions for each argument; unless given, of real symbols
        ``q0, q1, ..., qd0, ...``. ``f_ext`` names frames whose wrenches are arguments too. For
        robots of a few joints: ``robot.sympy("mass_matrix")[0, 0]``. Constants are floats; vectors
        are columns. Methods that iterate are refused, and so are expressions which SymPy would take
        minutes for (`ProgramTooLarge`).

        >>> import linkwise as lw
        >>> lw.chain(1).sympy("mass_matrix").shape
        (1, 1)
        """
        from linkwise.interop.sympy import expressions

        key = Key(function, method, frame, axes, frames_of(f_ext))
        return expressions(self._calls, key, values)

    def evaluate(
        self, function: str, *values: Any, method: str = "auto", frame: str | None = None
    ) -> Any:
        """Run a function's equations on scalars of any kind, uncompiled; returns nested lists.

        With mpmath numbers (after ``import linkwise.spatial.precise``) the result has as many
        digits as asked for; with NumPy arrays as scalars it is a slow second opinion.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> found = robot.evaluate("bias", [0.1, 0.2, 0.3], [1.0, 1.0, 1.0])
        >>> bool(np.allclose(found, robot.bias(q, qd)))
        True
        """
        task = self._calls.tasks.task(Key(function, method, frame))
        given = [len(x) if isinstance(x, Sized) else x for x in values]
        wanted = [(port.name, port.size) for port in task.ports(self._tree)]
        least = len(task.algorithm.inputs)  # iterations also take a tolerance and a limit
        inputs = ", ".join(f"{name} ({size})" for name, size in wanted[:least])
        if len(given) < least or given != [size for _, size in wanted[: len(given)]]:
            raise ValueError(
                f"evaluate: {function} was given values of length {given}; expected {inputs}"
            )
        return evaluate(task, self._tree, *values)

    def method_for(
        self,
        function: str,
        device: str = "cpu",
        *,
        dtype: str = "float64",
        frame: str | None = None,
    ) -> str:
        """The method that ``"auto"`` stands for on the CPU, or on a GPU (``"cuda"``).

        It depends on the robot, the function, its frame, the number type and the kind of device,
        never on the batch.

        >>> import linkwise as lw
        >>> [robot.method_for("forward_dynamics") for robot in (lw.load("puma560"), lw.chain(30))]
        ['crba', 'fd3']
        """
        kind = "cpu" if devices.number(device) is None else "cuda"
        _check_dtype(dtype)
        at = None if frame is None else self._calls.tasks.frame(frame)
        return self._calls.tasks.algorithm(function, "auto", dtype, at, kind).method

    def compute(
        self,
        function: str,
        *values: ArrayLike,
        method: str = "auto",
        frame: str | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """Run any function that `operation_count` knows by its name, compiled.

        ``robot.compute("mass_matrix", q)`` is ``robot.mass_matrix(q)``.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> bool(np.allclose(robot.compute("bias", q, qd), robot.bias(q, qd)))
        True
        """
        algorithm = self._calls.tasks.algorithm(function, method)
        wanted = [name for name, _ in algorithm.inputs]
        if len(values) != len(wanted):
            raise ValueError(
                f"compute: {function} was given {len(values)} array(s); expected {len(wanted)}: "
                + ", ".join(wanted)
            )
        if algorithm.iterates:
            return self._calls.iterate(values, options, algorithm.method)
        return self._calls.run(function, values, options, method=method, frame=frame)

    def operators(self, q: ArrayLike, frame: str | None = None) -> Operators:
        """The spatial operators of a serial robot at one configuration (nq), as dense arrays.

        For study: φ, Φ, ψ, Ψ, H, M, P, D, G, L, S, B, Δφ, Δψ, links counted from the tip. ``frame``
        on the last link is where the tip force of B acts; the last link's own unless given.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> ops = robot.operators(q)
        >>> bool(np.allclose(ops.mass_matrix[::-1, ::-1], robot.mass_matrix(q)))
        True
        """
        from linkwise.study.operators import operators

        return operators(self._tree, q, None if frame is None else self._calls.tasks.frame(frame))


announce(Robot, "_calls", *names())
for _part in Robot.__mro__[1:-1]:  # Python's own messages name functions as users do
    for _name, _function in vars(_part).items():
        if inspect.isfunction(_function):
            _function.__qualname__ = f"Robot.{_name}"
    _module: Any = sys.modules[_part.__module__]
    _module.Robot = Robot  # pickle looks for functions by that name


def _compiled(task: Task) -> Task:
    """What is compiled for a task: of a matrix that is computed column by column, a column."""
    if task.rolled and task.algorithm.products:
        products = ", ".join(map(repr, task.algorithm.products))
        raise NoProgram(
            f"{task.name}: by loops, its iterations run on arrays and have no program; expected "
            f"one of the functions that they call, {products}, or robot.with_codegen('unrolled')"
        )
    return task.of_columns or task


def _refuse_world_loops(what: str, loops: Iterable[AnyLoop]) -> None:
    """Raise for loops to the world where the base becomes another one."""
    for loop in loops:
        if isinstance(loop, Loop) and loop.frame_b is None:
            raise ValueError(
                f"{what}: the loop {loop.title} is fixed in the axes of a base that would not be "
                "the base any more; expected loops between frames, or robot.open"
            )


def _check_dtype(dtype: str) -> None:
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype {dtype!r}: expected 'float64' or 'float32'")


def _relative(a: Frame, b: Frame) -> Array:
    """Pose of frame b in frame a, both on one link."""
    Ra, Rb = np.array(a.rotation), np.array(b.rotation)
    pose = np.eye(4)
    pose[:3, :3] = product(Ra.T, Rb)
    pose[:3, 3] = product(Ra.T, np.array(b.origin) - np.array(a.origin))
    return pose
