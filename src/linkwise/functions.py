"""The functions of a robot: what users call; ``engine/calls.py`` does the work.

Those that take ``**options`` hand their arguments on as they are, so that compiled methods may take
their place: see `announce`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Unpack, overload

from numpy.typing import ArrayLike

from linkwise.derivatives import Derivatives
from linkwise.differentiation.calls import Differentiation
from linkwise.engine import devices
from linkwise.engine.calls import (
    Array,
    Constants,
    Options,
    Pair,
    Plain,
    PlainDynamics,
    Result,
    Told,
    ToldDynamics,
    Wrenches,
    with_constants,
)
from linkwise.engine.frames import poses_of
from linkwise.engine.iterative import Stop
from linkwise.engine.reaching import Asked, inverse_kinematics
from linkwise.factors import Innovations


class Residual(NamedTuple):
    """How far closed loops are from closed, along the m directions that they hold (..., m)."""

    position: Any  # m and rad
    velocity: Any  # m/s and rad/s


class Functions(Derivatives, Differentiation):
    """Configurations, dynamics and kinematics; `Robot` says what all of them have in common."""

    __slots__ = ("_calls",)

    # -- configurations -------------------------------------------------------------------------

    @overload
    def difference(self, q0: ArrayLike, q1: ArrayLike, **options: Unpack[Plain]) -> Array: ...

    @overload
    def difference(self, q0: ArrayLike, q1: ArrayLike, **options: Unpack[Told]) -> Pair: ...

    def difference(self, q0: ArrayLike, q1: ArrayLike, **options: Unpack[Options]) -> Any:
        """The joint rates (..., nv) that lead from ``q0`` to ``q1`` in one second.

        ``q0`` and ``q1`` (..., nq) are configurations; the result is in rad/s, of sliding joints in
        m/s. `integrate` is the inverse: ``integrate(q0, difference(q0, q1))`` is ``q1``. Angles of
        joints without a quaternion are not taken modulo a turn.

        >>> import linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q0, q1 = robot.random_q(seed=0), robot.random_q(seed=1)
        >>> rates = robot.difference(q0, q1)
        >>> bool(abs(robot.integrate(q0, rates) - q1).max() < 1e-12)
        True
        """
        return self._calls.run("difference", (q0, q1), options)

    @overload
    def normalize(self, q: ArrayLike, **options: Unpack[Plain]) -> Array: ...

    @overload
    def normalize(self, q: ArrayLike, **options: Unpack[Told]) -> Pair: ...

    def normalize(self, q: ArrayLike, **options: Unpack[Options]) -> Any:
        """The configuration ``q`` (..., nq) with every quaternion scaled to unit length.

        NaN where a quaternion is zero, or so long or short that its square leaves the range of
        numbers: above 1e153 or below 1e-146; in float32 above 1e18, and below 1e-19 it loses
        digits.

        >>> import linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q = robot.neutral()
        >>> q[:4] = 2.0
        >>> robot.normalize(q)[:4].tolist()
        [0.5, 0.5, 0.5, 0.5]
        """
        return self._calls.run("normalize", (q,), options)

    # -- dynamics -------------------------------------------------------------------------------

    @overload
    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[PlainDynamics]
    ) -> Array: ...

    @overload
    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[ToldDynamics]
    ) -> Pair: ...

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Joint torques (..., nv) in N m that produce the accelerations ``qdd``.

        ``M qdd + C qd + g - Jᵀ f_ext``, in N for joints that slide. ``q`` (..., nq) in rad or m,
        ``qd`` (..., nv) in rad/s or m/s, ``qdd`` (..., nv) in rad/s² or m/s²; ``f_ext`` are
        external wrenches ``{frame: (..., 6)}`` (see `Robot`).

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("puma560")
        >>> q, qd, qdd = robot.neutral(), np.zeros(6), np.ones(6)
        >>> tau = robot.inverse_dynamics(q, qd, qdd)
        >>> bool(np.allclose(tau, robot.mass_matrix(q) @ qdd + robot.gravity_torque(q)))
        True

        With closed loops many torques produce a motion; these are the smallest (``"least-torque"``:
        least sum of squares), zero on joints that `Robot.close_loops` was told to be passive; NaN
        where the passive joints cannot be held (`Status.SINGULAR`).

        ``method``: ``"rnea"`` (recursive Newton-Euler), or ``"scan"``, for one long chain on many
        cores.
        """
        return self._calls.run(
            "inverse_dynamics", (q, qd, qdd), options, method=method, f_ext=f_ext
        )

    @overload
    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        tol: float | None = ...,
        max_iterations: int | None = ...,
        qdd0: ArrayLike | None = ...,
        **options: Unpack[PlainDynamics],
    ) -> Array: ...

    @overload
    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        tol: float | None = ...,
        max_iterations: int | None = ...,
        qdd0: ArrayLike | None = ...,
        **options: Unpack[ToldDynamics],
    ) -> tuple[Array, Any]: ...

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
    ) -> Any:
        """Joint accelerations (..., nv) in rad/s² under the joint torques ``tau``.

        ``M⁻¹ (tau + Jᵀ f_ext - C qd - g)``, in m/s² for joints that slide. ``q`` (..., nq) in rad
        or m, ``qd`` (..., nv) in rad/s or m/s, ``tau`` (..., nv) in N m or N; ``f_ext`` are
        external wrenches ``{frame: (..., 6)}`` (see `Robot`).

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("puma560")
        >>> q, qd = robot.neutral(), np.zeros(6)
        >>> qdd = robot.forward_dynamics(q, qd, robot.gravity_torque(q))
        >>> bool(np.allclose(qdd, 0.0))
        True

        With closed loops: ``M⁻¹ (tau + Jᵀ f_ext + Jᵀ λ - C qd - g)`` with the forces λ that hold
        them. ``method`` is then ``"ltl"`` (factors of the mass matrix), ``"pv"`` (articulated
        bodies and one more sweep) or ``"pv-r"`` (the same, at a cost per joint that does not grow
        with the number of directions held).

        ``method`` of a robot without loops: ``"crba"`` (mass matrix and LᵀDL factors), ``"aba"``
        (articulated bodies), or ``"auto"``, whichever is faster for this robot. By spatial
        operators: ``"fd1"``, ``"fd2"`` (the same program; what it adds is `tip_acceleration`),
        ``"fd3"``, ``"fd4"`` (the same as ``"aba"``). By the forces between bodies: ``"schur"``
        (block LDLᵀ), ``"schur-bcr"`` (block cyclic reduction) and, for study,
        ``"schur-published"``, which loses digits on long chains; these need every link to have an
        inertia that can be inverted, and raise where one has not. By conjugate gradients: ``"ccg"``
        and ``"pcg"`` (scaled), which take ``tol``, ``max_iterations`` and a start ``qdd0`` (...,
        nv), and with ``status=True`` return `Iterations` as the second part; a state that does not
        converge is solved by ``"aba"`` and flagged. By pieces of one long chain on many cores:
        ``"scan"``.
        """
        if isinstance(method, str) and method in ("ccg", "pcg"):
            nv, stop = self._calls.tasks.tree.nv, Stop(tol, max_iterations)
            start = devices.zeros(nv, (q, qd, tau)) if qdd0 is None else qdd0
            return self._calls.iterate((q, qd, tau, start), options, method, f_ext, stop)
        if not (tol is max_iterations is qdd0 is None):
            raise ValueError(f"tol, max_iterations and qdd0 are for 'ccg', 'pcg'; not {method!r}")
        values = (q, qd, tau)
        return self._calls.run("forward_dynamics", values, options, method=method, f_ext=f_ext)

    @overload
    def mass_matrix(
        self, q: ArrayLike, *, method: str = ..., **options: Unpack[Plain]
    ) -> Array: ...

    @overload
    def mass_matrix(self, q: ArrayLike, *, method: str = ..., **options: Unpack[Told]) -> Pair: ...

    def mass_matrix(self, q: ArrayLike, *, method: str = "auto", **options: Unpack[Options]) -> Any:
        """Mass matrix ``M`` (..., nv, nv) in kg m², the rotors of motors included.

        Symmetric and positive definite; rows and columns of sliding joints are in kg and kg m.
        ``q`` (..., nq) in rad or m.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> M = robot.mass_matrix(robot.random_q(seed=0, size=100))
        >>> M.shape
        (100, 6, 6)

        ``method``: ``"crba"`` (composite bodies, in link axes), ``"gdahj"`` (in one fixed frame, as
        published), ``"gdahj-symmetric"`` (the same with symmetric sums) or ``"mixed"`` (sums as in
        CRBA, entries as in GDAHJ; fewest operations on chains of 12 joints or more).
        """
        return self._calls.run("mass_matrix", (q,), options, method=method)

    @overload
    def mass_matrix_inverse(
        self, q: ArrayLike, *, method: str = ..., **options: Unpack[Plain]
    ) -> Array: ...

    @overload
    def mass_matrix_inverse(
        self, q: ArrayLike, *, method: str = ..., **options: Unpack[Told]
    ) -> Pair: ...

    def mass_matrix_inverse(
        self, q: ArrayLike, *, method: str = "auto", **options: Unpack[Options]
    ) -> Any:
        """Inverse ``M⁻¹`` (..., nv, nv) of the mass matrix at ``q`` (..., nq).

        Entry (i, j) is the acceleration of joint i per unit torque of joint j. For ``M⁻¹`` times a
        vector, `solve_mass` is faster.

        ``method``: ``"crba"`` (factors of M), ``"innovations"`` (factors of M⁻¹ itself), ``"aba"``
        (a column per unit torque) or ``"schur"`` (forces between bodies).

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> bool(np.allclose(robot.mass_matrix_inverse(q) @ robot.mass_matrix(q), np.eye(3)))
        True
        """
        return self._calls.run("mass_matrix_inverse", (q,), options, method=method)

    def solve_mass(self, q: ArrayLike, rhs: ArrayLike, **options: Unpack[Options]) -> Result:
        """``M⁻¹ rhs`` (..., nv): the accelerations that torques ``rhs`` (..., nv) alone produce.

        At ``q`` (..., nq), without forming M. Several right-hand sides go on a leading axis.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> bool(np.allclose(robot.solve_mass(q, robot.mass_matrix(q) @ qd), qd))
        True
        """
        return self._calls.run("solve_mass", (q, rhs), options)

    def mass_product(self, q: ArrayLike, x: ArrayLike, **options: Unpack[Options]) -> Result:
        """``M x`` (..., nv): the torques that accelerations ``x`` (..., nv) alone need.

        At ``q`` (..., nq), in O(nv) and without forming M. Several vectors go on a leading axis.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> bool(np.allclose(robot.mass_product(q, qd), robot.mass_matrix(q) @ qd))
        True
        """
        return self._calls.run("mass_product", (q, x), options)

    @overload
    def innovations(
        self, q: ArrayLike, *, inverse: bool = False, out: None = None,
        threads: int | None = None, status: Literal[False] = False, device: str | None = None,
    ) -> Innovations: ...  # fmt: skip

    @overload
    def innovations(
        self, q: ArrayLike, *, inverse: bool = False, out: None = None,
        threads: int | None = None, status: Literal[True], device: str | None = None,
    ) -> tuple[Innovations, Any]: ...  # fmt: skip

    def innovations(
        self, q: ArrayLike, *, inverse: bool = False, out: None = None,
        threads: int | None = None, status: bool = False, device: str | None = None,
    ) -> Any:  # fmt: skip
        """Factors of ``M = F D Fᵀ`` at configurations ``q`` (..., nq), or of ``M⁻¹ = Fᵀ D F``.

        The result has ``factor`` F (..., nv, nv) and ``D`` (..., nv), and unpacks into these two;
        ``apply(x, transpose=...)`` takes a vector through F in O(nv) without forming it. With
        ``inverse=True`` they are the factors of M⁻¹; `solve_mass` applies all of it. Not for robots
        with mimic joints. With ``status=True`` the result is ``(factors, status bits)``. There is
        no ``out``: factors are formed when they are first read.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> factors = robot.innovations(q)
        >>> F, D = factors
        >>> bool(np.allclose(F * D @ F.T, robot.mass_matrix(q)))
        True
        >>> bool(np.allclose(factors.apply(qd), F @ qd))
        True
        """
        if out is not None:
            raise TypeError(
                f"innovations: out is a {type(out).__name__}; its factors are formed when they are "
                "read, so that it takes none; expected robot.compute('factor', q, out=...) or "
                "robot.compute('pivots', q, out=...)"
            )
        factors = Innovations(self._calls, q, inverse, threads, device, status)
        return (factors, factors.status) if status else factors

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

        (Angular, linear) in rad/s² and m/s², without a Jacobian. ``q`` (..., nq), ``qd`` and
        ``tau`` (..., nv) and ``f_ext`` as for `forward_dynamics`; ``axes`` as for
        `jacobian_dot_qd`.

        ``method``: ``"fd3"``, or ``"fd2"``, as published, which loses digits on long chains.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> qdd = robot.forward_dynamics(q, qd, np.ones(3))
        >>> wanted = robot.frame_acceleration(q, qd, qdd, "tip")
        >>> bool(np.allclose(robot.tip_acceleration(q, qd, np.ones(3), "tip"), wanted))
        True
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

    @overload
    def bias(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[PlainDynamics]) -> Array: ...

    @overload
    def bias(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[ToldDynamics]) -> Pair: ...

    def bias(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Joint torques (..., nv) in N m of a motion without acceleration: ``C qd + g - Jᵀ f_ext``.

        ``q`` (..., nq) in rad or m, ``qd`` (..., nv) in rad/s or m/s, ``f_ext`` and ``method`` as
        for `inverse_dynamics`.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> C, g = robot.coriolis_matrix(q, qd), robot.gravity_torque(q)
        >>> bool(np.allclose(robot.bias(q, qd), C @ qd + g))
        True
        """
        return self._calls.run("bias", (q, qd), options, method=method, f_ext=f_ext)

    @overload
    def gravity_torque(self, q: ArrayLike, **options: Unpack[PlainDynamics]) -> Array: ...

    @overload
    def gravity_torque(self, q: ArrayLike, **options: Unpack[ToldDynamics]) -> Pair: ...

    def gravity_torque(
        self,
        q: ArrayLike,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Joint torques (..., nv) in N m that hold the robot still: ``g - Jᵀ f_ext``.

        ``q`` (..., nq) in rad or m; ``f_ext`` and ``method`` as for `inverse_dynamics`.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> robot.gravity_torque(robot.neutral()).round(2).tolist()
        [0.0, 37.48, 0.25, 0.0, 0.0, 0.0]
        """
        return self._calls.run("gravity_torque", (q,), options, method=method, f_ext=f_ext)

    def joint_wrenches(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """Wrenches (..., links, 6) that joints transmit in a motion, in the order of `link_names`.

        Each is (moment, force) in N m and N that the parent puts on the link, at the origin of the
        joint's frame and in its axes (that of the joint's child link in the file). Its component
        along the joint is the torque of `inverse_dynamics` without rotor and friction. Arguments as
        for `inverse_dynamics`.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> robot.joint_wrenches(q, qd, np.zeros(3)).shape
        (3, 6)
        """
        return self._calls.run("joint_wrenches", (q, qd, qdd), options, f_ext=f_ext)

    @overload
    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Plain]) -> Array: ...

    @overload
    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Told]) -> Pair: ...

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Any:
        """Kinetic energy (...) in J, the rotors of motors included.

        ``q`` (..., nq) in rad or m, ``qd`` (..., nv) in rad/s or m/s.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> bool(np.allclose(robot.kinetic_energy(q, qd), 0.5 * qd @ robot.mass_matrix(q) @ qd))
        True
        """
        return self._calls.run("kinetic_energy", (q, qd), options)

    @overload
    def potential_energy(self, q: ArrayLike, **options: Unpack[Plain]) -> Array: ...

    @overload
    def potential_energy(self, q: ArrayLike, **options: Unpack[Told]) -> Pair: ...

    def potential_energy(self, q: ArrayLike, **options: Unpack[Options]) -> Any:
        """Potential energy (...) in J of the moving bodies in gravity, at ``q`` (..., nq).

        Links that are fixed to the base do not count. Zero if the centre of mass of the others is
        at the height of the base.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> slope = robot.derivative("potential_energy", "q")(q)
        >>> bool(np.allclose(slope, robot.gravity_torque(q)))
        True
        """
        return self._calls.run("potential_energy", (q,), options)

    @overload
    def coriolis_matrix(
        self, q: ArrayLike, qd: ArrayLike, *, method: str = ..., **options: Unpack[Plain]
    ) -> Array: ...

    @overload
    def coriolis_matrix(
        self, q: ArrayLike, qd: ArrayLike, *, method: str = ..., **options: Unpack[Told]
    ) -> Pair: ...

    def coriolis_matrix(
        self, q: ArrayLike, qd: ArrayLike, *, method: str = "auto", **options: Unpack[Options]
    ) -> Any:
        """Coriolis matrix ``C`` (..., nv, nv): ``C qd`` is `bias` without gravity and friction.

        ``q`` (..., nq) in rad or m, ``qd`` (..., nv) in rad/s or m/s. Of all such matrices, this is
        Christoffel's: ``C_ij = Σ_k Γ_ijk qd_k`` with Γ of `christoffel`, and ``Ṁ - 2C`` is skew,
        for every kind of joint.

        ``method``: ``"composite"`` (in link axes) or ``"mixed"`` (entries in one frame; fewer
        operations from 8 joints on).

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> bool(np.allclose(robot.coriolis_matrix(q, qd), robot.christoffel(q) @ qd))
        True
        """
        return self._calls.run("coriolis_matrix", (q, qd), options, method=method)

    def christoffel(self, q: ArrayLike, **options: Unpack[Options]) -> Result:
        """Christoffel symbols of the first kind ``Γ`` (..., nv, nv, nv) of the mass matrix.

        ``Γ_ijk = ½ (∂M_ij/∂q_k + ∂M_ik/∂q_j - ∂M_jk/∂q_i)`` at ``q`` (..., nq), symmetric in j and
        k. For a spherical or free joint, whose rates are no derivatives of coordinates, that
        formula has no meaning; the result is then the connection for which `coriolis_matrix` keeps
        its two properties. In it ``Γ_ijk - Γ_ikj`` is row i of M times the bracket of k and j.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> G = robot.christoffel(q)
        >>> G.shape, bool(np.allclose(G, G.swapaxes(-1, -2)))
        ((3, 3, 3), True)
        """
        return self._calls.run("christoffel", (q,), options)

    def inertial_power(
        self, q: ArrayLike, *, method: str = "auto", **options: Unpack[Options]
    ) -> Result:
        """Kang's inertial power array ``P*`` (..., nv, nv, nv): ``Σ_jk P*_ijk qd_j qd_k = C qd``.

        At ``q`` (..., nq). For a spherical or free joint, which has no second derivatives that
        ``P*`` could be made of, changes along its rates take their place; the equation above still
        holds.

        ``method``: ``"augmented"`` (bodies of whole subtrees; ``"auto"``) or ``"per-link"`` (a sum
        over links, its cost growing with the fourth power of a chain). The two arrays differ, and
        agree once made symmetric in j and k: then they are `christoffel`'s.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> P = robot.inertial_power(q)
        >>> bool(np.allclose(np.einsum("ijk,j,k", P, qd, qd), robot.coriolis_matrix(q, qd) @ qd))
        True
        """
        return self._calls.run("inertial_power", (q,), options, method=method)

    # -- inertial parameters --------------------------------------------------------------------

    @overload
    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[Plain]
    ) -> Array: ...

    @overload
    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[Told]
    ) -> Pair: ...

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **options: Unpack[Options]
    ) -> Any:
        """Regressor ``Y`` (..., nv, 10 n): joint torques per unit of the inertial parameters.

        ``tau = Y π``: the torques of `inverse_dynamics` without rotors and friction, with π
        `Robot.inertial_parameters` as one vector: m, m c, Ixx Ixy Iyy Ixz Iyz Izz of the first
        body, then of the second. ``q`` (..., nq), ``qd`` and ``qdd`` (..., nv) as there.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14")
        >>> q, qd, qdd = np.random.default_rng(0).normal(size=(3, 7))
        >>> tau = robot.regressor(q, qd, qdd) @ robot.inertial_parameters.ravel()
        >>> bool(np.allclose(tau + robot.armature * qdd, robot.inverse_dynamics(q, qd, qdd)))
        True
        """
        return self._calls.run("regressor", (q, qd, qdd), options)

    def energy_regressor(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Result:
        """``E`` (..., 2, 10 n): kinetic and potential energy per unit of the inertial parameters.

        ``E π`` is (`kinetic_energy`, `potential_energy`) in J, without rotors; π, ``q`` (..., nq)
        and ``qd`` (..., nv) as for `regressor`.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> E = robot.energy_regressor(q, qd)
        >>> kinetic, potential = E @ robot.inertial_parameters.ravel()
        >>> bool(np.allclose(kinetic, robot.kinetic_energy(q, qd)))
        True
        """
        return self._calls.run("energy_regressor", (q, qd), options)

    # -- centre of mass -------------------------------------------------------------------------

    @overload
    def center_of_mass(self, q: ArrayLike, **options: Unpack[Plain]) -> Array: ...

    @overload
    def center_of_mass(self, q: ArrayLike, **options: Unpack[Told]) -> Pair: ...

    def center_of_mass(self, q: ArrayLike, **options: Unpack[Options]) -> Any:
        """Centre of mass (..., 3) in m of the moving bodies, in base axes, at ``q`` (..., nq).

        Links that are fixed to the base do not count.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> robot.center_of_mass(robot.neutral()).round(3).tolist()
        [0.15, 0.0, 0.0]
        """
        return self._calls.run("center_of_mass", (q,), options)

    @overload
    def com_jacobian(self, q: ArrayLike, **options: Unpack[Plain]) -> Array: ...

    @overload
    def com_jacobian(self, q: ArrayLike, **options: Unpack[Told]) -> Pair: ...

    def com_jacobian(self, q: ArrayLike, **options: Unpack[Options]) -> Any:
        """Jacobian of the centre of mass (..., 3, nv): its velocity per joint rate, in base axes.

        ``com_jacobian(q) @ qd`` is in m/s; ``q`` (..., nq).

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> v = robot.com_jacobian(q) @ qd
        >>> bool(np.allclose(robot.centroidal_momentum(q, qd)[3:], robot.mass * v))
        True
        """
        return self._calls.run("com_jacobian", (q,), options)

    def com_bias(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Result:
        """``J̇ qd`` (..., 3) in m/s²: acceleration of the centre of mass at constant joint rates.

        Its whole acceleration is ``com_jacobian(q) @ qdd + com_bias(q, qd)``, without gravity.
        ``q`` (..., nq), ``qd`` (..., nv).

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> rate = robot.centroidal_bias(q, qd)
        >>> bool(np.allclose(robot.com_bias(q, qd), rate[3:] / robot.mass))
        True
        """
        return self._calls.run("com_bias", (q, qd), options)

    def centroidal_momentum_matrix(self, q: ArrayLike, **options: Unpack[Options]) -> Result:
        """Centroidal momentum matrix ``A`` (..., 6, nv) at ``q`` (..., nq).

        ``A qd`` is `centroidal_momentum`.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> A = robot.centroidal_momentum_matrix(q)
        >>> bool(np.allclose(A @ qd, robot.centroidal_momentum(q, qd)))
        True
        """
        return self._calls.run("centroidal_momentum_matrix", (q,), options)

    def centroidal_momentum_matrix_rate(
        self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]
    ) -> Result:
        """``Ȧ`` (..., 6, nv): time derivative of `centroidal_momentum_matrix` in a motion.

        ``q`` (..., nq), ``qd`` (..., nv). Where only ``Ȧ qd`` is needed, `centroidal_bias` takes
        far fewer operations.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> A_dot = robot.centroidal_momentum_matrix_rate(q, qd)
        >>> bool(np.allclose(A_dot @ qd, robot.centroidal_bias(q, qd)))
        True
        """
        return self._calls.run("centroidal_momentum_matrix_rate", (q, qd), options)

    @overload
    def centroidal_momentum(
        self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Plain]
    ) -> Array: ...

    @overload
    def centroidal_momentum(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Told]) -> Pair: ...

    def centroidal_momentum(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Any:
        """Momentum (..., 6) of the moving links: angular about their centre of mass, then linear.

        In kg m²/s and kg m/s, in base axes, without the rotors of motors. ``q`` (..., nq), ``qd``
        (..., nv).

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> robot.centroidal_momentum(q, qd).shape
        (6,)
        """
        return self._calls.run("centroidal_momentum", (q, qd), options)

    def centroidal_bias(self, q: ArrayLike, qd: ArrayLike, **options: Unpack[Options]) -> Result:
        """``Ȧ qd`` (..., 6): rate of `centroidal_momentum` at constant joint rates, in N m and N.

        The whole rate is ``A qdd + Ȧ qd``: the sum of all forces on the robot, gravity included,
        and their moment about the centre of mass. ``q`` (..., nq), ``qd`` (..., nv).

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> robot.centroidal_bias(q, np.zeros(3)).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        """
        return self._calls.run("centroidal_bias", (q, qd), options)

    # -- closed loops ---------------------------------------------------------------------------

    def constraint_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        **options: Unpack[Options],
    ) -> Result:
        """Wrenches (..., loops, 6) on the frames a of closed loops, under the torques ``tau``.

        (Moment, force) in N m and N at the frame's origin in base axes, like ``f_ext``; frame b
        gets the opposite. Where directions that loops hold depend on each other
        (`Status.REDUNDANT`), these are the smallest forces. Arguments and ``method`` as for
        `forward_dynamics`.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> q = robot.random_q(seed=0)
        >>> closed = robot.close_loops([lw.Loop("tip", directions=[0, 0, 0, 0, 0, 1])], at=q)
        >>> forces = closed.constraint_forces(q, [0.0] * 3, [0.0] * 3)
        >>> forces.shape
        (1, 6)
        """
        values = (q, qd, tau)
        return self._calls.run("constraint_forces", values, options, method=method, f_ext=f_ext)

    def delassus(self, q: ArrayLike, *, method: str = "auto", **options: Unpack[Options]) -> Result:
        """Delassus matrix ``J M⁻¹ Jᵀ`` (..., m, m) of the closed loops, at ``q`` (..., nq).

        Entry (i, j) is the acceleration along direction i per unit force along direction j, of the
        m directions that all loops hold, one loop after another. It is singular where directions
        depend on each other.

        ``method`` as for `forward_dynamics`, or ``"efp"`` (extended force propagators).

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> q = robot.random_q(seed=0)
        >>> closed = robot.close_loops([lw.Loop("tip", directions=[0, 0, 0, 0, 0, 1])], at=q)
        >>> closed.delassus(q).shape
        (1, 1)
        """
        return self._calls.run("delassus", (q,), options, method=method)

    def residual(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        *,
        threads: int | None = None,
        device: str | None = None,
        **constants: Unpack[Constants],
    ) -> Residual:
        """How far closed loops are from closed: ``position`` and ``velocity`` (..., m).

        In m and rad, m/s and rad/s, along the m directions of all loops, one loop after another.
        ``q`` (..., nq); ``qd`` (..., nv) is zero unless given.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> q = robot.random_q(seed=0)
        >>> closed = robot.close_loops([lw.Loop("tip", directions=[0, 0, 0, 0, 0, 1])], at=q)
        >>> bool(abs(closed.residual(q).position).max() < 1e-12)
        True
        """
        rates = devices.zeros(self._calls.tasks.tree.nv, (q,)) if qd is None else qd
        options = with_constants("residual", constants, threads=threads, device=device)
        found = self._calls.run("residual", (q, rates), options)
        return Residual(found[..., 0, :], found[..., 1, :])

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
        """The nearest state in which all loops are closed: ``q`` (..., nq) and ``qd`` (..., nv).

        Only ``q`` where no ``qd`` is given. Newton's method, which takes, of all changes that close
        the loops, those of least kinetic energy. NaN where the loops cannot be closed, which
        ``status=True`` calls `Status.NOT_CONVERGED`: the result is then ``((q, qd), status bits)``.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> q = robot.random_q(seed=0)
        >>> closed = robot.close_loops([lw.Loop("tip", directions=[0, 0, 0, 0, 0, 1])], at=q)
        >>> near = closed.project(q + 0.01)
        >>> bool(abs(closed.residual(near).position).max() < 1e-9)
        True
        """
        tree = self._calls.tasks.tree
        rates = devices.zeros(tree.nv, (q,)) if qd is None else qd
        options = with_constants(
            "project", constants, threads=threads, status=status, device=device
        )
        found = self._calls.run("project", (q, rates), options)
        rows, bits = found if status else (found, None)
        state = rows[..., : tree.nq] if qd is None else (rows[..., : tree.nq], rows[..., tree.nq :])
        return (state, bits) if status else state

    def impulse(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        *,
        method: str = "auto",
        threads: int | None = None,
        status: bool = False,
        device: str | None = None,
        **constants: Unpack[Constants],
    ) -> Any:
        """Joint rates (..., nv) right after all loops closed, and the impulses (..., loops, 6).

        The loops close all at once, inelastically. ``q`` (..., nq); ``qd`` (..., nv) are the rates
        before. Impulses act on frames a like the wrenches of `constraint_forces`, in N m s and N s.
        With ``status=True`` the result is ``((qd, impulses), status bits)``. ``method`` as for
        `forward_dynamics`.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> q = robot.random_q(seed=0)
        >>> closed = robot.close_loops([lw.Loop("tip", directions=[0, 0, 0, 0, 0, 1])], at=q)
        >>> after, impulses = closed.impulse(q, [1.0] * 3)
        >>> bool(abs(closed.residual(q, after).velocity).max() < 1e-12)
        True
        """
        options = with_constants(
            "impulse", constants, threads=threads, status=status, device=device
        )
        found = self._calls.run("impulse", (q, qd), options, method=method)
        rows, bits = found if status else (found, None)
        nv = self._calls.tasks.tree.nv
        loops = (int(rows.shape[-1]) - nv) // 6
        pair = (rows[..., :nv], rows[..., nv:].reshape(*rows.shape[:-1], loops, 6))
        return (pair, bits) if status else pair

    # -- kinematics -----------------------------------------------------------------------------

    @overload
    def forward_kinematics(
        self,
        q: ArrayLike,
        frame: str | Sequence[str],
        *,
        relative_to: str | None = ...,
        method: str = ...,
        **options: Unpack[Plain],
    ) -> Array: ...

    @overload
    def forward_kinematics(
        self,
        q: ArrayLike,
        frame: str | Sequence[str],
        *,
        relative_to: str | None = ...,
        method: str = ...,
        **options: Unpack[Told],
    ) -> Pair: ...

    def forward_kinematics(
        self,
        q: ArrayLike,
        frame: str | Sequence[str],
        *,
        relative_to: str | None = None,
        method: str = "auto",
        **options: Unpack[Options],
    ) -> Any:
        """Pose of a frame (..., 4, 4): takes its coordinates to base coordinates, in m.

        ``q`` (..., nq) in rad or m. ``frame`` is one of ``robot.frame_names``, or a list of k
        names, whose poses are (..., k, 4, 4). With ``relative_to``, another frame, coordinates are
        taken to that frame's instead of the base's.

        >>> import linkwise as lw
        >>> robot = lw.load("iiwa14")
        >>> robot.forward_kinematics(robot.neutral(), ["link3", "link7"])[:, 2, 3].tolist()
        [0.78, 1.306]
        >>> robot.forward_kinematics(robot.neutral(), "link7", relative_to="link3")[2, 3].tolist()
        0.526

        ``method``: ``"sweep"``, or ``"scan"`` for a frame at the tip of one long chain.
        """
        if isinstance(frame, str) and relative_to is None:
            return self._calls.run("forward_kinematics", (q,), options, method=method, frame=frame)
        return poses_of(self._calls, q, frame, relative_to, method, options)

    @overload
    def link_poses(self, q: ArrayLike, **options: Unpack[Plain]) -> Array: ...

    @overload
    def link_poses(self, q: ArrayLike, **options: Unpack[Told]) -> Pair: ...

    def link_poses(self, q: ArrayLike, **options: Unpack[Options]) -> Any:
        """Poses (..., links, 4, 4) of all moving links, in the order of `link_names`, in m.

        Each takes coordinates of the frame of the link's joint (that of its child link in the file)
        to base coordinates. ``q`` (..., nq) in rad or m.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> poses = robot.link_poses(q)
        >>> bool(np.allclose(poses[2], robot.forward_kinematics(q, "link3")))
        True
        """
        return self._calls.run("link_poses", (q,), options)

    @overload
    def inverse_kinematics(
        self,
        target: ArrayLike,
        frame: str | Sequence[str],
        q0: ArrayLike | None = ...,
        directions: str | Sequence[bool] = ...,
        restarts: int = ...,
        tol: float = ...,
        *,
        limits: bool = ...,
        out: Any = ...,
        threads: int | None = ...,
        status: Literal[False] = ...,
        device: str | None = ...,
    ) -> Array: ...

    @overload
    def inverse_kinematics(
        self,
        target: ArrayLike,
        frame: str | Sequence[str],
        q0: ArrayLike | None = ...,
        directions: str | Sequence[bool] = ...,
        restarts: int = ...,
        tol: float = ...,
        *,
        limits: bool = ...,
        out: Any = ...,
        threads: int | None = ...,
        status: Literal[True],
        device: str | None = ...,
    ) -> Pair: ...

    def inverse_kinematics(
        self,
        target: ArrayLike,
        frame: str | Sequence[str],
        q0: ArrayLike | None = None,
        directions: str | Sequence[bool] = "pose",
        restarts: int = 100,
        tol: float = 1e-6,
        *,
        limits: bool = True,
        out: Any = None,
        threads: int | None = None,
        status: bool = False,
        device: str | None = None,
    ) -> Any:
        """Configurations (..., nq) that bring a frame to target poses (..., 4, 4) in base axes.

        >>> import linkwise as lw
        >>> robot = lw.load("iiwa14")
        >>> target = robot.forward_kinematics([0.3, 0.5, 0.1, -1.2, 0.2, 0.9, 0.0], "link7")
        >>> q = robot.inverse_kinematics(target, "link7")
        >>> bool(abs(robot.forward_kinematics(q, "link7") - target).max() < 1e-6)
        True

        ``q`` is in rad or m, within the joints' limits unless ``limits=False``. A state is solved
        where the norm of the SE(3) logarithm from the frame to its target (rad and m,
        `linkwise.se3.error`) is at most ``tol``. A state that is not solved is NaN, and a call with
        such states warns once (`ConvergenceWarning`; not of arrays on a GPU). ``status=True`` also
        returns bits of `Status` (...): 0 where solved, `NOT_CONVERGED` where not, and the result is
        then the best found; it does not warn.

        The search begins at ``q0`` (..., nq), or in the middle of the joints' ranges. Where it gets
        stuck, it begins again, up to ``restarts`` times, at points of one fixed sequence, so that a
        state's result does not depend on the rest of the batch. Joints that do not move the frame
        stay as they are in ``q0``, or else at rest, clamped to their limits. A joint that others
        follow stays where these are within their limits, too.

        ``directions``: ``"pose"``, ``"position"`` (the frame may turn freely, and places (..., 3)
        are targets enough), ``"orientation"`` (it may be anywhere) or six booleans, (angular,
        linear) along the target's axes: with
        ``[True, True, False, True, True, True]`` the frame may turn about the target's z axis.
        Several frames: a list of k names, and targets (..., k, 4, 4). Closed loops of the robot are
        closed too, to ``tol``; `project` closes them to rounding.

        A floating base moves too, as any joint does, so that almost any target is reached: for
        joints alone, load the robot with a fixed base, or `lock` the joint of its base.

        Axes of targets are right-handed, perpendicular and of unit length, to 1e-6. The rotation
        that is nearest to a matrix R of measurements is ``U @ Vt``, with ``U, _, Vt =
        numpy.linalg.svd(R)``, where its determinant is positive.

        Computed in float64; for float32 arguments the result is rounded.
        """
        asked = Asked(directions, limits, restarts, tol)
        options = (out, threads, status, device)
        found: Result = inverse_kinematics(self._calls, target, frame, q0, asked, *options)
        return found

    @overload
    def jacobian(
        self, q: ArrayLike, frame: str, *, axes: str = ..., **options: Unpack[Plain]
    ) -> Array: ...

    @overload
    def jacobian(
        self, q: ArrayLike, frame: str, *, axes: str = ..., **options: Unpack[Told]
    ) -> Pair: ...

    def jacobian(
        self, q: ArrayLike, frame: str, *, axes: str = "base", **options: Unpack[Options]
    ) -> Any:
        """Jacobian of a frame (..., 6, nv): its velocity per joint rate, rows (angular, linear).

        ``J @ qd`` is the velocity of the frame's origin, in rad/s and m/s. ``q`` (..., nq) in rad
        or m. In base axes (Pinocchio's LOCAL_WORLD_ALIGNED with the row blocks swapped), or with
        ``axes="body"`` in the frame's own (its LOCAL).

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> robot.jacobian(robot.neutral(), "link6")[:3, 0].tolist()  # joint 1 turns it about z
        [0.0, 0.0, 1.0]
        """
        return self._calls.run("jacobian", (q,), options, frame=frame, axes=axes)

    def generalized_jacobian(
        self, q: ArrayLike, frame: str, *, axes: str = "base", **options: Unpack[Options]
    ) -> Result:
        """Generalised Jacobian (..., 6, nv - 6) of a frame of a robot with a free-flying base.

        ``J_g = J_m - J_b M_bb⁻¹ M_bm``, with b the six rates of the base and m those of the joints:
        the frame's velocity per joint rate while the base floats freely and the robot as a whole
        has no momentum, so that the base moves by reaction. ``q`` (..., nq); rows and ``axes`` as
        for `jacobian`.

        >>> import linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> robot.generalized_jacobian(robot.random_q(seed=0), "link7").shape
        (6, 7)
        """
        return self._calls.run("generalized_jacobian", (q,), options, frame=frame, axes=axes)

    @overload
    def jacobian_dot_qd(
        self, q: ArrayLike, qd: ArrayLike, frame: str, *, axes: str = ..., **options: Unpack[Plain]
    ) -> Array: ...

    @overload
    def jacobian_dot_qd(
        self, q: ArrayLike, qd: ArrayLike, frame: str, *, axes: str = ..., **options: Unpack[Told]
    ) -> Pair: ...

    def jacobian_dot_qd(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        *,
        axes: str = "base",
        **options: Unpack[Options],
    ) -> Any:
        """``J̇ qd`` (..., 6): acceleration of a frame at constant joint rates, without gravity.

        (Angular, linear) in rad/s² and m/s², in base axes, or with ``axes="body"`` in the frame's
        own. ``q`` (..., nq), ``qd`` (..., nv). ``axes="moving"`` is instead the rate of change of
        the numbers of the body-axes velocity (Pinocchio's LOCAL): its linear part is less by ``w x
        v``.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> J_dot = robot.derivative("jacobian", "q", frame="tip")(q) @ qd
        >>> bool(np.allclose(robot.jacobian_dot_qd(q, qd, "tip"), J_dot @ qd))
        True
        """
        return self._calls.run("jacobian_dot_qd", (q, qd), options, frame=frame, axes=axes)

    @overload
    def frame_velocity(
        self, q: ArrayLike, qd: ArrayLike, frame: str, *, axes: str = ..., **options: Unpack[Plain]
    ) -> Array: ...

    @overload
    def frame_velocity(
        self, q: ArrayLike, qd: ArrayLike, frame: str, *, axes: str = ..., **options: Unpack[Told]
    ) -> Pair: ...

    def frame_velocity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        *,
        axes: str = "base",
        **options: Unpack[Options],
    ) -> Any:
        """Velocity (..., 6) of a frame, ``J qd``: angular, then that of its origin.

        In rad/s and m/s; in base axes, or with ``axes="body"`` in the frame's own. ``q`` (..., nq),
        ``qd`` (..., nv).

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> bool(np.allclose(robot.frame_velocity(q, qd, "tip"), robot.jacobian(q, "tip") @ qd))
        True
        """
        return self._calls.run("frame_velocity", (q, qd), options, frame=frame, axes=axes)

    @overload
    def frame_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        frame: str,
        *,
        axes: str = ...,
        **options: Unpack[Plain],
    ) -> Array: ...

    @overload
    def frame_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        frame: str,
        *,
        axes: str = ...,
        **options: Unpack[Told],
    ) -> Pair: ...

    def frame_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        frame: str,
        *,
        axes: str = "base",
        **options: Unpack[Options],
    ) -> Any:
        """Acceleration (..., 6) of a frame, ``J qdd + J̇ qd``, without gravity.

        (Angular, linear) in rad/s² and m/s²; ``q`` (..., nq), ``qd`` and ``qdd`` (..., nv);
        ``axes`` as for `jacobian_dot_qd`.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> found = robot.frame_acceleration(q, np.zeros(3), qd, "tip")  # qd stands for qdd here
        >>> bool(np.allclose(found, robot.jacobian(q, "tip") @ qd))
        True
        """
        return self._calls.run("frame_acceleration", (q, qd, qdd), options, frame=frame, axes=axes)

    @overload
    def position_inertia(
        self,
        q: ArrayLike,
        frame: str,
        *,
        method: str = ...,
        axes: str = ...,
        **options: Unpack[Plain],
    ) -> Array: ...

    @overload
    def position_inertia(
        self,
        q: ArrayLike,
        frame: str,
        *,
        method: str = ...,
        axes: str = ...,
        **options: Unpack[Told],
    ) -> Pair: ...

    def position_inertia(
        self,
        q: ArrayLike,
        frame: str,
        *,
        method: str = "auto",
        axes: str = "base",
        **options: Unpack[Options],
    ) -> Any:
        """Inertia ``(J_v M⁻¹ J_vᵀ)⁻¹`` (..., 3, 3) in kg that a force at a frame's origin feels.

        J_v are the linear rows of `jacobian`: the frame is free to turn. ``q`` (..., nq). Needs
        three degrees of freedom between base and frame; singular poses as for
        `operational_inertia`.

        ``method``: ``"crba"`` or ``"recursive"``.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> inverse = robot.operational_inertia_inverse(q, "tip")[3:, 3:]
        >>> bool(np.allclose(np.linalg.inv(inverse), robot.position_inertia(q, "tip")))
        True
        """
        return self._calls.run(
            "position_inertia", (q,), options, method=method, frame=frame, axes=axes
        )

    @overload
    def operational_inertia(
        self,
        q: ArrayLike,
        frame: str,
        *,
        method: str = ...,
        axes: str = ...,
        damping: ArrayLike | None = ...,
        **options: Unpack[Plain],
    ) -> Array: ...

    @overload
    def operational_inertia(
        self,
        q: ArrayLike,
        frame: str,
        *,
        method: str = ...,
        axes: str = ...,
        damping: ArrayLike | None = ...,
        **options: Unpack[Told],
    ) -> Pair: ...

    def operational_inertia(
        self,
        q: ArrayLike,
        frame: str,
        *,
        method: str = "auto",
        axes: str = "base",
        damping: ArrayLike | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Operational-space inertia ``(J M⁻¹ Jᵀ)⁻¹`` (..., 6, 6) of a frame, at ``q`` (..., nq).

        The wrench (moment, force) at the frame's origin per unit of its acceleration (angular,
        linear): kg m² and kg, in base axes, or with ``axes="body"`` in the frame's own. Needs six
        degrees of freedom between base and frame. At a singular pose it does not exist: entries are
        then huge or not finite, and ``status=True`` says `Status.SINGULAR`.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> robot.operational_inertia([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "link6").shape
        (6, 6)

        With ``damping`` d it is ``(J M⁻¹ Jᵀ + diag(d))⁻¹``, which exists at every pose and for any
        number of joints: as if the frame yielded by d per unit of force beyond what the robot does,
        so that no direction feels more than 1/d. One number, in rad/s² per N m for the first three
        directions and m/s² per N for the others, or six of them (..., 6), in ``axes``.

        ``method``: ``"crba"`` (factors of the mass matrix), ``"recursive"`` (articulated bodies),
        ``"schur"``, ``"schur-bcr"`` and, for no damping, ``"schur-direct"`` (forces between
        bodies), or ``"scan"`` for a frame at the tip of one long chain.
        """
        d = devices.damping(damping, q)
        return self._calls.run(
            "operational_inertia", (q,), options, method=method, frame=frame, axes=axes, damping=d
        )

    @overload
    def operational_inertia_inverse(
        self,
        q: ArrayLike,
        frame: str,
        *,
        method: str = ...,
        axes: str = ...,
        **options: Unpack[Plain],
    ) -> Array: ...

    @overload
    def operational_inertia_inverse(
        self,
        q: ArrayLike,
        frame: str,
        *,
        method: str = ...,
        axes: str = ...,
        **options: Unpack[Told],
    ) -> Pair: ...

    def operational_inertia_inverse(
        self,
        q: ArrayLike,
        frame: str,
        *,
        method: str = "auto",
        axes: str = "base",
        **options: Unpack[Options],
    ) -> Any:
        """``J M⁻¹ Jᵀ`` (..., 6, 6) of a frame: its acceleration per unit wrench at its origin.

        Exists at every pose ``q`` (..., nq) and for any number of joints; rows, columns and
        ``axes`` as for `operational_inertia`.

        ``method``: ``"crba"``, ``"recursive"``, ``"schur"``, ``"schur-bcr"`` or ``"scan"``, as for
        `operational_inertia`.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> J, M = robot.jacobian(q, "tip"), robot.mass_matrix(q)
        >>> mobility = J @ np.linalg.solve(M, J.T)
        >>> bool(np.allclose(robot.operational_inertia_inverse(q, "tip"), mobility))
        True
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
        method: str = "schur",
        axes: str = "base",
        f_ext: Wrenches | None = None,
        threads: int | None = None,
        status: bool = False,
    ) -> Any:
        """`forward_dynamics` (..., nv) and `operational_inertia_inverse` (..., 6, 6) as a pair.

        Of one frame, from one factorization with seven right-hand sides; arguments as for those
        two. With ``status=True`` the result is ``((qdd, inverse), status bits)``.

        ``method``: by Schur complements, ``"schur"`` (block LDLᵀ) or ``"schur-bcr"`` (block cyclic
        reduction), for study: the two functions on their own take fewer operations; or ``"scan"``,
        for a frame at the tip of one long chain.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14")
        >>> q, qd, tau = robot.random_q(seed=0), np.ones(7), np.ones(7)
        >>> qdd, mobility = robot.operational_dynamics(q, qd, tau, "link7")
        >>> bool(np.allclose(qdd, robot.forward_dynamics(q, qd, tau)))
        True
        """
        found = self._calls.run(
            "dynamics_and_inverse",
            (q, qd, tau),
            {"threads": threads, "status": status},
            method=method,
            frame=frame,
            axes=axes,
            f_ext=f_ext,
        )
        rows, bits = found if status else (found, None)
        qdd, inverse = rows[..., :-36], rows[..., -36:]
        pair = (qdd, inverse.reshape(*rows.shape[:-1], 6, 6))
        return (pair, bits) if status else pair

    @overload
    def manipulability(self, q: ArrayLike, frame: str, **options: Unpack[Plain]) -> Array: ...

    @overload
    def manipulability(self, q: ArrayLike, frame: str, **options: Unpack[Told]) -> Pair: ...

    def manipulability(self, q: ArrayLike, frame: str, **options: Unpack[Options]) -> Any:
        """Yoshikawa's manipulability ``√det(J Jᵀ)`` (...) of a frame: zero at singular poses.

        ``q`` (..., nq); J has angular rows in rad/s and linear ones in m/s. Where fewer than six
        degrees of freedom move the frame, ``√det(Jᵀ J)``.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> bent, straight = [0.1, -0.5, 0.4, 0.0, 0.6, 0.2], [0.0] * 6
        >>> robot.manipulability([bent, straight], "link6").round(4).tolist()
        [0.0437, 0.0]
        """
        return self._calls.run("manipulability", (q,), options, frame=frame)

    def manipulability_gradient(
        self, q: ArrayLike, frame: str, **options: Unpack[Options]
    ) -> Result:
        """Gradient (..., nv) of `manipulability` along each degree of freedom, at ``q`` (..., nq).

        A motion along it leads away from singular poses. At a singular pose the gradient does not
        exist: the row is NaN or meaningless, and ``status=True`` says `Status.SINGULAR`.

        >>> import linkwise as lw
        >>> robot = lw.load("puma560")
        >>> q = [0.1, -0.5, 0.4, 0.0, 0.6, 0.2]
        >>> robot.manipulability_gradient(q, "link6").shape
        (6,)
        """
        return self._calls.run("manipulability_gradient", (q,), options, frame=frame)

    def kinematic_hessian(self, q: ArrayLike, frame: str, **options: Unpack[Options]) -> Result:
        """Change of the Jacobian of a frame, ``H`` (..., 6, nv, nv), in base axes.

        At ``q`` (..., nq), ``H[..., :, j, k]`` is the change of column k of `jacobian` per unit
        rate of j, so that ``J̇ qd = Σ_jk H_jk qd_j qd_k``. The linear rows are symmetric in j and k
        except for spherical and free joints, whose rates are no derivatives of coordinates; the
        angular rows are not.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> H = robot.kinematic_hessian(q, "tip")
        >>> bool(np.allclose(np.einsum("rjk,j,k", H, qd, qd), robot.jacobian_dot_qd(q, qd, "tip")))
        True
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
        device: str | None = None,
    ) -> Any:
        """Kinematic influence coefficients of a frame: ``G`` (..., 6, nv), ``H`` (..., 6, nv, nv).

        The frame's velocity is ``G qd`` and its acceleration ``G qdd + Σ_jk H_jk qd_j qd_k``: G is
        `jacobian` and H `kinematic_hessian`, in base axes, at ``q`` (..., nq). ``out`` is a pair of
        arrays; with ``status=True`` the result is ``((G, H), status bits)``.

        >>> import numpy as np, linkwise as lw
        >>> robot, q, qd = lw.chain(3), np.array([0.1, 0.2, 0.3]), np.ones(3)
        >>> G, H = robot.kic(q, "tip")
        >>> G.shape, H.shape
        ((6, 3), (6, 3, 3))
        """
        if out is not None and not (isinstance(out, tuple | list) and len(out) == 2):
            raise TypeError(f"kic: out is a {type(out).__name__}; expected two arrays, G and H")
        first, second = (None, None) if out is None else out
        G = self.jacobian(q, frame, out=first, threads=threads, device=device)
        if not status:
            H = self.kinematic_hessian(q, frame, out=second, threads=threads, device=device)
            return G, H
        H, bits = self.kinematic_hessian(
            q, frame, out=second, threads=threads, device=device, status=True
        )
        return (G, H), bits


def names() -> list[str]:
    """The functions that take ``**options``."""
    found = {**vars(Derivatives), **vars(Functions)}.items()
    return [name for name, method in found if "options" in getattr(method, "__annotations__", ())]
