"""Derivatives of a robot's functions: what users call.

By a configuration, a derivative is along the joints' rates, so that its axis has nv numbers in the
convention of ``qd``; docs/derivatives.md has a picture.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from linkwise.differentiation.calls import dynamics_in_columns
from linkwise.engine.arrays import check_out, wrenches
from linkwise.engine.calls import (
    Array,
    Calls,
    Options,
    PlainDynamics,
    ToldDynamics,
    Wrenches,
)

Three = tuple[Array, Array, Array]  # matrices
Four = tuple[Array, Array, Array, Array]  # the value before them


class Derivatives:
    """Derivatives of the dynamics; a part of `Robot`."""

    __slots__ = ()
    _calls: Calls

    @overload
    def inverse_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, value: Literal[False] = ...,
        **options: Unpack[PlainDynamics],
    ) -> Three: ...  # fmt: skip

    @overload
    def inverse_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, value: Literal[True],
        **options: Unpack[PlainDynamics],
    ) -> Four: ...  # fmt: skip

    @overload
    def inverse_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, value: Literal[False] = ...,
        **options: Unpack[ToldDynamics],
    ) -> tuple[Three, Array]: ...  # fmt: skip

    @overload
    def inverse_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, value: Literal[True],
        **options: Unpack[ToldDynamics],
    ) -> tuple[Four, Array]: ...  # fmt: skip

    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        value: bool = False,
        **options: Unpack[Options],
    ) -> Any:
        """``∂τ/∂q``, ``∂τ/∂qd`` and ``∂τ/∂qdd = M`` (..., nv, nv) of `inverse_dynamics`.

        >>> import linkwise as lw
        >>> robot = lw.load("iiwa14")
        >>> by_q, by_qd, M = robot.inverse_dynamics_derivatives([0.1] * 7, [0.2] * 7, [0.3] * 7)
        >>> by_q.shape
        (7, 7)

        In N m (N for sliding joints) per rad, rad/s and rad/s² (m, m/s, m/s²). Entry (i, j) of
        ``∂τ/∂q`` is the rate at which torque i changes while the configuration moves at the rate
        ``qd[j] = 1`` and ``qd`` and ``qdd`` keep their numbers: for a joint whose ``q`` is a
        quaternion, as it turns or shifts along its link's own axes. External wrenches keep their
        numbers in base axes, and their frames move. Coulomb friction has the derivative zero.

        ``value=True`` puts the torques (..., nv) first: ``tau, by_q, by_qd, M``. With
        ``status=True`` the result is ``(those, status bits)``. ``out`` is one array
        (..., 3 nv + 1, nv) for the three matrices and the torques, one below another; what is
        returned are views of it.

        ``method``: ``"composite"`` (composite bodies, in link axes) or ``"forward"`` (the equations
        of RNEA differentiated one by one). Robots of more than 100 links take, unless one is named,
        loops over the links for each column. With closed loops: the derivatives of the smallest
        torques, ``"forward"``, where ``∂τ/∂qdd`` is what loops leave of M.
        """
        values = (q, qd, qdd)
        return self._dynamics("inverse_dynamics", values, method, f_ext, value, options)

    @overload
    def forward_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, value: Literal[False] = ...,
        **options: Unpack[PlainDynamics],
    ) -> Three: ...  # fmt: skip

    @overload
    def forward_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, value: Literal[True],
        **options: Unpack[PlainDynamics],
    ) -> Four: ...  # fmt: skip

    @overload
    def forward_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, value: Literal[False] = ...,
        **options: Unpack[ToldDynamics],
    ) -> tuple[Three, Array]: ...  # fmt: skip

    @overload
    def forward_dynamics_derivatives(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, value: Literal[True],
        **options: Unpack[ToldDynamics],
    ) -> tuple[Four, Array]: ...  # fmt: skip

    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        value: bool = False,
        **options: Unpack[Options],
    ) -> Any:
        """``∂qdd/∂q``, ``∂qdd/∂qd`` and ``∂qdd/∂tau = M⁻¹`` (..., nv, nv) of `forward_dynamics`.

        >>> import linkwise as lw
        >>> robot = lw.load("iiwa14")
        >>> qdd, by_q, by_qd, Minv = robot.forward_dynamics_derivatives(
        ...     [0.1] * 7, [0.2] * 7, [0.3] * 7, value=True)
        >>> Minv.shape
        (7, 7)

        In rad/s² (m/s²) per rad, rad/s and N m (m, m/s, N). Conventions and options are those of
        `inverse_dynamics_derivatives`, ``value=True`` puts the accelerations first. ``method``
        names how inverse dynamics is differentiated, of which ``-M⁻¹`` makes these. With closed
        loops: ``"implicit"``, by the equations that accelerations and forces of the loops solve,
        and ``∂qdd/∂tau`` in place of ``M⁻¹``; flagged where directions depend on each other.
        """
        values = (q, qd, tau)
        return self._dynamics("forward_dynamics", values, method, f_ext, value, options)

    def _dynamics(
        self,
        function: str,
        values: tuple[ArrayLike, ...],
        method: str,
        f_ext: Wrenches | None,
        value: bool,
        options: Options,
    ) -> Any:
        """Three matrices, and perhaps the value; of large robots column by column."""
        calls, n = self._calls, self._calls.tasks.tree.nv
        status, frames = options.get("status", False), wrenches(f_ext)[0]
        is_auto = isinstance(method, str) and method == "auto"
        wide = dynamics_in_columns(calls, function, frames) if is_auto else None
        if wide is None:
            name = f"{function}_derivatives"
            found = calls.run(name, values, options, method=method, f_ext=f_ext)
            return _parted(found, n, status, value)
        out, rest = options.get("out"), {k: x for k, x in options.items() if k != "out"}
        found = wide(*values, f_ext=f_ext, **rest)  # type: ignore[arg-type]
        (first, parts), bits = found if status else (found, None)
        if out is not None:
            whole = np.concatenate([*parts, first[..., None, :]], -2)
            check_out(out, whole.shape, whole.dtype.name)
            out[...] = whole
            return _parted((out, bits) if status else out, n, status, value)
        parts = (first, *parts) if value else parts
        return (parts, bits) if status else parts


def _parted(found: Any, n: int, status: bool, value: bool) -> Any:
    """Three matrices, the value before them where it is asked for, and the status."""
    rows, bits = found if status else (found, None)
    parts = (rows[..., :n, :], rows[..., n : 2 * n, :], rows[..., 2 * n : 3 * n, :])
    if value:
        return ((rows[..., 3 * n, :], *parts), bits) if status else (rows[..., 3 * n, :], *parts)
    return (parts, bits) if status else parts
