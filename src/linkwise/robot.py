"""`Robot`: what users hold; calls.py does the work."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwise.backends.base import BATCH
from linkwise.backends.choice import text_of
from linkwise.engine import arrays
from linkwise.engine.calls import Array, Calls, Options, Result, Wrenches, announce
from linkwise.engine.iterative import Stop
from linkwise.engine.tasks import Key
from linkwise.factors import Innovations
from linkwise.model import configuration, edit
from linkwise.model.bodies import Policy
from linkwise.model.build import build
from linkwise.model.description import RobotDescription
from linkwise.model.tree import BASE, Frame, Tree
from linkwise.summary import summary
from linkwise.trace.program import OperationCount, count_operations
from linkwise.trace.tracer import evaluate

if TYPE_CHECKING:
    from linkwise.study.operators import Operators


class FramePlace(NamedTuple):
    """A frame's place on the robot."""

    name: str
    link: str  # the moving link that carries it, or "base"
    pose: Array  # (4, 4), in that link's own frame


class Robot:
    """A robot and its compiled functions.

    >>> import linkwise as lw
    >>> robot = lw.load("iiwa14")
    >>> q = robot.random_q(0, size=100)
    >>> robot.gravity_torque(q).shape, robot.jacobian(q[0], "link7").shape
    ((100, 7), (6, 7))

    Every function takes one state or any leading batch axes, which broadcast as in NumPy; keeps
    float32 or float64 (integers and lists become float64); and accepts ``out=`` and, for large
    batches, ``threads=``. ``status=True`` also returns what was wrong with each state: `Status`.

    SI units. Spatial vectors are (angular, linear). A frame's velocity is that of its origin in
    base axes, unless ``axes="body"``. ``f_ext`` maps names of frames to wrenches (..., 6) on the
    robot, (moment, force) at the frame's origin in base axes: ``{"link7": [0, 0, 0, 0, 0, -5]}``.
    ``q`` and ``qd`` of spherical, planar and free joints: see `load`.

    A robot does not change once made, and may be called from any number of threads.
    """

    __slots__ = ("__weakref__", "_calls", "_description", "_policy", "_tree")

    def __init__(self, description: RobotDescription, policy: Policy | None = None) -> None:
        policy = policy or Policy()
        self._set(description, policy, build(description, policy))

    @classmethod
    def from_tree(cls, tree: Tree, name: str = "robot") -> Robot:
        """A robot made of links and joints directly, for joint kinds that no file knows."""
        robot = cls.__new__(cls)
        robot._set(RobotDescription(name, (), ()), Policy(), tree)
        return robot

    def _set(self, description: RobotDescription, policy: Policy, tree: Tree) -> None:
        self._description, self._policy, self._tree = description, policy, tree
        self._calls = Calls(tree, description.name)

    # -- what it is -----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The robot's name."""
        return self._description.name

    @property
    def description(self) -> RobotDescription:
        """What the robot was made from: links, joints, limits, geometry."""
        return self._description

    @property
    def tree(self) -> Tree:
        """Links, joints and constants, as the algorithms see them."""
        return self._tree

    @property
    def nq(self) -> int:
        """Numbers in a configuration."""
        return self._tree.nq

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return self._tree.nv

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints with numbers of their own in ``q``, in that order; followers have none."""
        return tuple(link.joint_name for link in self._tree.links if link.follows is None)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Moving links, in the order of their joints; fixed links are merged into them."""
        return tuple(link.name for link in self._tree.links)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Frames that kinematics can be asked for: links, fixed ones too, joints, sites, frames.

        The frame of a joint moves with its child link. A name that both a link and a joint have
        is the link's.
        """
        return tuple(self._tree.frames)

    @property
    def gravity(self) -> Array:
        """Gravity in base axes, m/s²."""
        return np.array(self._tree.gravity)

    @property
    def position_limits(self) -> Array:
        """Lower and upper limits of ``q`` (2, nq); infinite where there are none."""
        return configuration.position_limits(self._tree)

    def frame(self, name: str) -> FramePlace:
        """Where a frame is fixed: the moving link that carries it, and its pose in that link."""
        at = self._calls.tasks.frame(name)
        link = "base" if at.link == BASE else self._tree.links[at.link].name
        own = self._tree.frames.get(link, at)
        return FramePlace(name, link, _relative(own, at))

    # -- configurations -------------------------------------------------------------------------

    def neutral(self) -> Array:
        """The configuration (nq) at rest: zeros, and unit quaternions."""
        return configuration.neutral(self._tree)

    def random_q(
        self, rng: np.random.Generator | int | None = None, size: int | tuple[int, ...] = ()
    ) -> Array:
        """Random configurations (..., nq) within limits; joints without, in ±pi or ±1 m."""
        return configuration.random(self._tree, np.random.default_rng(rng), size)

    def integrate(
        self, q: ArrayLike, v: ArrayLike, dt: ArrayLike = 1.0, **options: Unpack[Options]
    ) -> Result:
        """The configuration (..., nq) reached from ``q`` by holding the rates ``v`` for ``dt``.

        ``dt`` in seconds, one number or one for each state (...). Quaternions turn by the
        exponential of their rate and stay of unit length: ``q = robot.integrate(q, qd, 1e-3)``.
        """
        return self._calls.run("integrate", (q, v, configuration.times(q, v, dt)), options)

    def difference(self, q0: ArrayLike, q1: ArrayLike, **options: Unpack[Options]) -> Result:
        """The rates (..., nv) that lead from ``q0`` to ``q1`` in unit time.

        ``integrate(q0, difference(q0, q1))`` is ``q1``; angles of joints without a quaternion are
        not taken modulo a turn.
        """
        return self._calls.run("difference", (q0, q1), options)

    def normalize(self, q: ArrayLike, **options: Unpack[Options]) -> Result:
        """The configuration (..., nq) with every quaternion at unit length."""
        return self._calls.run("normalize", (q,), options)

    def __str__(self) -> str:
        """A table of joints, axes, limits and masses."""
        return summary(self.name, self._tree)

    def __repr__(self) -> str:
        return f"<Robot {self.name!r}: {self.nv} degrees of freedom>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Robot):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[Any, ...]:
        """All that makes one robot differ from another."""
        return self._description, self._policy, self._tree.digest

    def __reduce__(self) -> tuple[Any, ...]:
        made_of = (type(self), self._description, self._policy, self._tree)
        return _remade, made_of, getattr(self, "__dict__", None)

    # -- other robots ---------------------------------------------------------------------------

    @property
    def armature(self) -> Array:
        """Rotor inertia (nv) of each degree of freedom."""
        return self._of_joints("armature")

    @property
    def damping(self) -> Array:
        """Viscous friction (nv), as described; dynamics uses it after ``friction=True``."""
        return self._of_joints("damping")

    @property
    def friction(self) -> Array:
        """Coulomb friction (nv), as described; dynamics uses it after ``friction=True``."""
        return self._of_joints("friction")

    def lock(self, configuration: Mapping[str, ArrayLike]) -> Robot:
        """A robot with joints held at values, ``{"elbow": 1.2}``; their followers are held too.

        The value is the joint's part of ``q``; limits are not looked at. The joint's links stay as
        frames.
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
        """A robot with a rigid body fixed to a link: ``com`` in the link's axes, inertia about it.

        Inertia as (xx, yy, zz), (xx, xy, xz, yy, yz, zz) or 3 by 3; none for a point mass. The
        payload is a frame too, called ``name``. The new robot compiles functions of its own.
        """
        return self._edited(edit.with_payload(self._described(), link, mass, com, inertia, name))

    def with_attached(
        self, other: Robot, link: str, pose: ArrayLike | None = None, prefix: str = ""
    ) -> Robot:
        """Two robots in one: the other's base fixed at a pose (4, 4) on a link of this one.

        ``prefix`` goes before every name of the other.
        """
        return self._edited(
            edit.with_attached(self._described(), other._described(), link, pose, prefix)
        )

    def sub_chain(self, base: str, tip: str) -> Robot:
        """The links from one to another further out, and what is fixed to them, as a robot.

        Gravity is that of the base link with every joint inboard of it at rest.
        """
        return self._edited(edit.sub_chain(self._described(), base, tip))

    def change_base(self, link: str) -> Robot:
        """The same machine held by another link; joints and link frames keep their meaning.

        The order of joints follows the new tree (see ``joint_names``); gravity keeps its direction
        at rest.
        """
        return self._edited(edit.change_base(self._described(), link))

    def with_inertia(
        self,
        link: str,
        mass: float | None = None,
        com: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
    ) -> Robot:
        """A robot with another mass, centre of mass or inertia about it on a link.

        In the link's axes; forms of the inertia as in `with_payload`. What is not given stays.
        """
        return self._edited(edit.with_inertia(self._described(), link, mass, com, inertia))

    def with_joint(self, joint: str, **fields: Any) -> Robot:
        """A robot with other numbers on a joint.

        ``limits=(lower, upper)``, ``velocity``, ``effort``, ``armature``, ``damping``,
        ``friction``: ``robot.with_joint("elbow", armature=0.1, limits=(-1.0, 1.0))``.
        """
        return self._edited(edit.with_joint(self._described(), joint, **fields))

    def rename(self, names: Mapping[str, str] | None = None, *, name: str | None = None) -> Robot:
        """A robot whose links, joints and frames (``{old: new}``), or itself, have other names."""
        return self._edited(edit.rename(self._described(), names, name))

    def with_frame(self, name: str, link: str, pose: ArrayLike | None = None) -> Robot:
        """A robot with one more named frame, at a pose (4, 4) on a link."""
        return self._edited(edit.with_frame(self._described(), name, link, pose))

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The robot under another gravity, m/s² in base axes."""
        return self._edited(edit.with_gravity(self._described(), gravity))

    def with_free_base(self, joint: str = "base") -> Robot:
        """The robot on a free-flying base: six more degrees of freedom, first in ``q``, ``qd``."""
        return self._edited(edit.with_free_base(self._described(), joint))

    def with_friction(self, friction: bool = True) -> Robot:
        """The robot whose dynamics uses its joints' damping and Coulomb friction, or not."""
        return Robot(self._described(), dataclasses.replace(self._policy, friction=bool(friction)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the robot as a URDF file; `load` gives it back. Gravity is not in a URDF."""
        from linkwise.io.urdf_write import save_urdf

        save_urdf(self._described(), path)

    def _described(self) -> RobotDescription:
        if not self._description.links:
            raise ValueError(f"robot {self.name!r} was made from a tree; expected a description")
        return self._description

    def _edited(self, description: RobotDescription) -> Robot:
        return Robot(description, self._policy)

    def _of_joints(self, field: str) -> Array:
        """A number of each joint's description, for each of its degrees of freedom."""
        described = {joint.name: joint for joint in self._description.joints}
        own = [link for link in self._tree.links if link.follows is None]
        parts = [getattr(described.get(x.joint_name, x), field) for x in own]
        sizes = [x.joint.nv for x in own]
        return np.concatenate([np.broadcast_to(p, n) for p, n in zip(parts, sizes, strict=True)])

    # -- dynamics -------------------------------------------------------------------------------

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """Joint torques (..., nv) that produce ``qdd``: ``M qdd + C qd + g - Jᵀ f_ext``.

        ``q`` (..., nq); ``qd`` and ``qdd`` (..., nv); ``f_ext`` as `Robot` says.
        """
        return self._calls.run("inverse_dynamics", (q, qd, qdd), options, f_ext=f_ext)

    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        tol: float | None = None,
        max_iterations: int | None = None,
        qdd0: ArrayLike | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """Joint accelerations (..., nv) under torques ``tau``: ``M⁻¹ (tau + Jᵀ f_ext - C qd - g)``.

        ``q`` (..., nq); ``qd`` and ``tau`` (..., nv); ``f_ext`` as `Robot` says.

        ``method``: ``"crba"`` (mass matrix and LᵀDL factors), ``"aba"`` (articulated bodies), or
        ``"auto"``, whichever is faster for this robot. By spatial operators: ``"fd1"``, ``"fd2"``
        (the same program; what it adds is `tip_acceleration`), ``"fd3"``, ``"fd4"`` (the same as
        ``"aba"``). By the forces between bodies: ``"schur"`` (block LDLᵀ), ``"schur-bcr"`` (block
        cyclic reduction) and, for study, ``"schur-published"``, which loses digits on long chains;
        these need an inertia that has an inverse for every link, and say so. By conjugate
        gradients: ``"ccg"`` and ``"pcg"`` (scaled), which take ``tol``, ``max_iterations`` and a
        start ``qdd0``, and with ``status=True`` return `Iterations` as the second part; a state
        that does not converge is solved by ``"aba"`` and flagged.
        """
        if method in ("ccg", "pcg"):
            start = np.zeros(self.nv, np.float32) if qdd0 is None else qdd0  # no wider than tau
            stop = Stop(tol, max_iterations)
            return self._calls.iterate((q, qd, tau, start), options, method, f_ext, stop)
        if not (tol is max_iterations is qdd0 is None):
            raise ValueError(f"tol, max_iterations and qdd0 are for 'ccg', 'pcg'; not {method!r}")
        values = (q, qd, tau)
        return self._calls.run("forward_dynamics", values, options, method=method, f_ext=f_ext)

    def mass_matrix(
        self, q: ArrayLike, *, method: str = "auto", **options: Unpack[Options]
    ) -> Result:
        """Mass matrix (..., nv, nv), rotors included.

        ``method``: ``"crba"`` (composite bodies, in link axes), ``"gdahj"`` (in one fixed frame, as
        published), ``"gdahj-symmetric"`` (the same with symmetric sums) or ``"mixed"`` (sums as in
        CRBA, entries as in GDAHJ; fewest operations on chains of 12 joints or more).
        """
        return self._calls.run("mass_matrix", (q,), options, method=method)

    def mass_matrix_inverse(
        self, q: ArrayLike, *, method: str = "auto", **options: Unpack[Options]
    ) -> Result:
        """Inverse of the mass matrix (..., nv, nv).

        ``method``: ``"crba"`` (factors of M), ``"innovations"`` (factors of M⁻¹ itself), ``"aba"``
        (a column per unit torque) or ``"schur"`` (forces between bodies).
        """
        return self._calls.run("mass_matrix_inverse", (q,), options, method=method)

    def solve_mass(self, q: ArrayLike, rhs: ArrayLike, **options: Unpack[Options]) -> Result:
        """``M⁻¹ rhs`` (..., nv) without forming M; several right-hand sides on a leading axis."""
        return self._calls.run("solve_mass", (q, rhs), options)

    def innovations(
        self, q: ArrayLike, *, inverse: bool = False, threads: int | None = None
    ) -> Innovations:
        """Factors of ``M = F D Fᵀ`` at configurations (..., nq), or of ``M⁻¹ = Fᵀ D F``.

        The result has ``factor`` F (..., nv, nv), ``D`` (..., nv), unpacks into these two, and
        ``apply(x, transpose=...)`` takes a vector through F in O(nv) without forming it.
        `solve_mass` applies all of M⁻¹. Not for robots with joints that follow others.
        """
        return Innovations(self._calls, q, inverse, threads)

    def tip_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        frame: str,
        *,
        method: str = "auto",
        axes: str = "base",
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """Acceleration (..., 6) of a frame under torques ``tau``: ``J qdd + J̇ qd``.

        ``axes`` as for `jacobian_dot_qd`.
        Comes out of the sweeps of forward dynamics without a Jacobian. ``method``: ``"fd3"`` or
        ``"fd2"``, as published, which loses digits on long chains.
        """
        return self._calls.run(
            "tip_acceleration",
            (q, qd, tau),
            options,
            method=method,
            frame=frame,
            axes=axes,
            f_ext=f_ext,
        )

    def bias(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        *,
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """``C qd + g - Jᵀ f_ext`` (..., nv): torques of a motion without acceleration."""
        return self._calls.run("bias", (q, qd), options, f_ext=f_ext)

    def gravity_torque(
        self, q: ArrayLike, *, f_ext: Wrenches | None = None, **options: Unpack[Options]
    ) -> Result:
        """``g - Jᵀ f_ext`` (..., nv): torques that hold the robot still."""
        return self._calls.run("gravity_torque", (q,), options, f_ext=f_ext)

    def joint_wrenches(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """Wrenches (..., links, 6) across the joints in a motion, in the order of `link_names`.

        Each is (moment, force) on the link from its parent's side, in the axes of the joint's
        frame (`frame` of the joint's name: its child link's in the file) about that frame's
        origin. Along the joint it is the torque of `inverse_dynamics` less rotor and friction.
        """
        return self._calls.run("joint_wrenches", (q, qd, qdd), options, f_ext=f_ext)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Result:
        """Kinetic energy (...), rotors included."""
        return self._calls.run("kinetic_energy", (q, qd), options)

    def potential_energy(self, q: ArrayLike, **options: Unpack[Options]) -> Result:
        """Potential energy (...) of the moving links; zero with their mass at base height."""
        return self._calls.run("potential_energy", (q,), options)

    def coriolis_matrix(
        self, q: ArrayLike, qd: ArrayLike, *, method: str = "auto", **options: Unpack[Options]
    ) -> Result:
        """Coriolis matrix ``C`` (..., nv, nv): ``C qd = bias - g``, friction aside.

        Of all such matrices, Christoffel's: ``C_ij = Σ_k Γ_ijk qd_k`` with `christoffel`'s Γ, and
        ``Ṁ - 2C`` is skew, for every kind of joint. ``method``: ``"composite"`` (in link axes; what
        ``"auto"`` takes) or ``"mixed"`` (entries in one frame; fewer operations from 8 joints on).
        """
        return self._calls.run("coriolis_matrix", (q, qd), options, method=method)

    def christoffel(self, q: ArrayLike, **options: Unpack[Options]) -> Result:
        """Christoffel symbols of the first kind ``Γ`` (..., nv, nv, nv), of the mass matrix.

        ``Γ_ijk = ½ (∂M_ij/∂q_k + ∂M_ik/∂q_j - ∂M_jk/∂q_i)``, symmetric in j and k. The rates of a
        spherical or free joint are no derivatives of coordinates, so that formula has no meaning
        there; returned is what takes its place, the connection for which `coriolis_matrix` keeps
        its two properties. In it ``Γ_ijk - Γ_ikj`` is row i of M times the bracket of k and j.
        """
        return self._calls.run("christoffel", (q,), options)

    def inertial_power(
        self, q: ArrayLike, *, method: str = "auto", **options: Unpack[Options]
    ) -> Result:
        """Kang's inertial power array ``P*`` (..., nv, nv, nv): ``Σ_jk P*_ijk qd_j qd_k = C qd``.

        ``method``: ``"augmented"`` (bodies of whole subtrees; ``"auto"``) or ``"per-link"`` (a sum
        over links, its cost growing with the fourth power of a chain). The two arrays differ, and
        agree once made symmetric in j and k: then they are `christoffel`'s. A spherical or free
        joint has no second derivatives for ``P*`` to be made of; changes along its rates take
        their place, which keeps the equation above and nothing else.
        """
        return self._calls.run("inertial_power", (q,), options, method=method)

    # -- kinematics -----------------------------------------------------------------------------

    def forward_kinematics(self, q: ArrayLike, frame: str, **options: Unpack[Options]) -> Result:
        """Pose of a frame (..., 4, 4): takes its coordinates to base coordinates, in metres."""
        return self._calls.run("forward_kinematics", (q,), options, frame=frame)

    def jacobian(
        self, q: ArrayLike, frame: str, *, axes: str = "base", **options: Unpack[Options]
    ) -> Result:
        """Jacobian of a frame (..., 6, nv): rows (angular, linear) of its velocity at its origin.

        In base axes (Pinocchio's LOCAL_WORLD_ALIGNED with the row blocks swapped), or with
        ``axes="body"`` in the frame's own (its LOCAL).
        """
        return self._calls.run("jacobian", (q,), options, frame=frame, axes=axes)

    def jacobian_dot_qd(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        *,
        axes: str = "base",
        **options: Unpack[Options],
    ) -> Result:
        """``J̇ qd`` (..., 6): the frame's acceleration at constant joint rates, gravity aside.

        That is how the frame's origin accelerates and its turning rate changes, in base axes, or
        with ``axes="body"`` in the frame's own. ``axes="moving"`` tells instead how the numbers of
        the body-axes velocity change (Pinocchio's LOCAL): its linear part is less by ``w x v``.
        """
        return self._calls.run("jacobian_dot_qd", (q, qd), options, frame=frame, axes=axes)

    def operational_inertia(
        self,
        q: ArrayLike,
        frame: str,
        *,
        method: str = "auto",
        axes: str = "base",
        damping: ArrayLike | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """Operational-space inertia ``(J M⁻¹ Jᵀ)⁻¹`` (..., 6, 6) of a frame.

        Needs six degrees of freedom between base and frame. At a singular pose it does not exist:
        entries are then huge or not finite, and ``status=True`` says `Status.SINGULAR`.

        With ``damping`` d it is ``(J M⁻¹ Jᵀ + diag(d))⁻¹``, which exists at every pose and for any
        number of joints: as if the frame yielded by d per unit of force beyond what the robot does,
        so that no direction feels more than 1/d. One number, in rad/s² per N m for the first three
        directions and m/s² per N for the others, or six of them (..., 6), in ``axes``.

        ``method``: ``"crba"`` (factors of the mass matrix), ``"recursive"`` (articulated bodies),
        ``"schur"`` and, for no damping, ``"schur-direct"`` (forces between bodies).
        """
        d = arrays.damping(damping, q)
        return self._calls.run(
            "operational_inertia", (q,), options, method=method, frame=frame, axes=axes, damping=d
        )

    def operational_inertia_inverse(
        self,
        q: ArrayLike,
        frame: str,
        *,
        method: str = "auto",
        axes: str = "base",
        **options: Unpack[Options],
    ) -> Result:
        """``J M⁻¹ Jᵀ`` (..., 6, 6) of a frame: its acceleration per unit wrench at its origin.

        Exists at every pose and for any number of joints. ``method``: ``"crba"``, ``"recursive"``
        or ``"schur"``, as in `operational_inertia`.
        """
        return self._calls.run(
            "operational_inertia_inverse", (q,), options, method=method, frame=frame, axes=axes
        )

    def operational_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        frame: str,
        *,
        axes: str = "base",
        f_ext: Wrenches | None = None,
        threads: int | None = None,
        status: bool = False,
    ) -> Any:
        """`forward_dynamics` (..., nv) and `operational_inertia_inverse` (..., 6, 6) of a frame.

        By Schur complements, as a pair: seven right-hand sides of one factorization. With
        ``status=True`` the result is ``((qdd, inverse), status bits)``.
        """
        found = self._calls.run(
            "dynamics_and_inverse",
            (q, qd, tau),
            {"threads": threads, "status": status},
            method="schur",
            frame=frame,
            axes=axes,
            f_ext=f_ext,
        )
        rows, bits = found if status else (found, None)
        qdd, inverse = rows[..., : self.nv], rows[..., self.nv :]
        pair = (qdd, inverse.reshape(*rows.shape[:-1], 6, 6))
        return (pair, bits) if status else pair

    def kinematic_hessian(self, q: ArrayLike, frame: str, **options: Unpack[Options]) -> Result:
        """How the Jacobian of a frame changes, ``H`` (..., 6, nv, nv), in base axes.

        ``H[..., :, j, k]`` is the change of column k of `jacobian` per unit rate of j, so that
        ``J̇ qd = Σ_jk H_jk qd_j qd_k``. The linear rows are symmetric in j and k but for spherical
        and free joints, whose rates are no derivatives of coordinates; the angular rows are not.
        """
        return self._calls.run("kinematic_hessian", (q,), options, frame=frame)

    def kic(
        self,
        q: ArrayLike,
        frame: str,
        *,
        out: tuple[Array, Array] | None = None,
        threads: int | None = None,
        status: bool = False,
    ) -> Result:
        """Kinematic influence coefficients of a frame: ``G`` (..., 6, nv), ``H`` (..., 6, nv, nv).

        Its velocity is ``G qd`` and its acceleration ``G qdd + Σ_jk H_jk qd_j qd_k``: G is
        `jacobian` and H `kinematic_hessian`, in base axes. ``out`` is a pair of arrays; with
        ``status=True`` the result is ``((G, H), status bits)``.
        """
        first, second = (None, None) if out is None else out
        G = self.jacobian(q, frame, out=first, threads=threads)
        if not status:
            return G, self.kinematic_hessian(q, frame, out=second, threads=threads)
        H, bits = self.kinematic_hessian(q, frame, out=second, threads=threads, status=True)
        return (G, H), bits

    # -- looking inside -------------------------------------------------------------------------

    def operation_count(
        self, function: str, method: str = "auto", *, frame: str | None = None
    ) -> OperationCount:
        """Exact operations of one evaluation of the program that runs.

        Functions of a frame need ``frame``: ``operation_count("jacobian", frame="tool").total``.
        """
        task = self._calls.tasks.task(Key(function, method, frame))
        return count_operations(self._calls.kernels.program(task))

    def source(
        self,
        function: str,
        backend: str = "c",
        method: str = "auto",
        *,
        frame: str | None = None,
        dtype: str = "float64",
    ) -> str:
        """Generated code: ``"c"`` (readable), ``"llvm"`` (what is compiled) or ``"asm"``."""
        task = self._calls.tasks.task(Key(function, method, frame))
        text = text_of(backend)
        return text(self._calls.kernels.ready(task, BATCH), dtype, self.name)

    def evaluate(
        self, function: str, *values: Any, method: str = "auto", frame: str | None = None
    ) -> Any:
        """Run a function's equations on scalars of any kind, uncompiled; returns nested lists.

        With mpmath numbers (after ``import linkwise.spatial.precise``) the result has as many
        digits as asked for; with NumPy arrays as scalars it is a slow second opinion.
        """
        return evaluate(self._calls.tasks.task(Key(function, method, frame)), self._tree, *values)

    def compute(
        self,
        function: str,
        *values: ArrayLike,
        method: str = "auto",
        frame: str | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """Run any function that `operation_count` knows, compiled, by its name."""
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
        """
        from linkwise.study.operators import operators

        return operators(self._tree, q, None if frame is None else self._calls.tasks.frame(frame))


announce(
    Robot, "_calls", "inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse",
    "solve_mass", "tip_acceleration", "bias", "gravity_torque", "joint_wrenches", "kinetic_energy",
    "potential_energy", "coriolis_matrix", "christoffel", "inertial_power", "forward_kinematics",
    "jacobian", "jacobian_dot_qd", "operational_inertia", "operational_inertia_inverse",
    "kinematic_hessian", "difference", "normalize",
)  # fmt: skip


def _relative(a: Frame, b: Frame) -> Array:
    """Pose of frame b in frame a, both on one link."""
    Ra, Rb = np.array(a.rotation), np.array(b.rotation)
    pose = np.eye(4)
    pose[:3, :3] = Ra.T @ Rb
    pose[:3, 3] = Ra.T @ (np.array(b.origin) - np.array(a.origin))
    return pose


def _remade(kind: type[Robot], description: RobotDescription, policy: Policy, tree: Tree) -> Robot:
    """A robot from its pickle; what loading had to say about it was said then."""
    robot = kind.__new__(kind)
    robot._set(description, policy, tree)
    return robot
