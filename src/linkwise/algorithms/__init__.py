"""The table of algorithms: public name and method -> driver, inputs, output shape.

A driver is written over any scalar. ``regrouped`` says that it is linear in the link inertias and
may be given the tree of ``model/regroup.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from linkwise.algorithms import (
    aba,
    augmented,
    christoffel,
    configurations,
    conjugate_gradient,
    coriolis,
    crba,
    energy,
    gdahj,
    innovations,
    innovations_factors,
    kic,
    kinematics,
    mobility,
    operational,
    operator_dynamics,
    rnea,
    schur,
    tied,
    unmoved,
    wrenches,
)
from linkwise.model.tree import Tree

Q, V, LINKS = "nq", "nv", "n_links"  # lengths of inputs and outputs, as attributes of a Tree


def _always(_tree: Tree) -> bool:
    return True


def _nothing(_tree: Tree) -> str:
    return "does not apply to this robot"


@dataclass(frozen=True)
class Algorithm:
    """One way to compute one public function."""

    function: str
    method: str
    driver: Callable[..., Any]
    inputs: tuple[tuple[str, str | int], ...]  # (argument, its length)
    output: tuple[str | int | Callable[[Tree], int], ...]
    regrouped: bool = False
    takes_frame: bool = False
    axes: tuple[str, ...] = ()  # axes that a frame's result can be given in
    takes_external: bool = False
    takes_damping: bool = False  # of the inverse that is inverted, one number per direction
    iterates: bool = False  # also returns iterations and the squared relative residual
    exists_for: Callable[[Tree], bool] = _always
    why_not: Callable[[Tree], str] = _nothing  # where it does not exist: the reason

    @property
    def takes_axes(self) -> bool:
        """Whether the driver is told in which axes the result is wanted."""
        return bool(self.axes)

    def output_shape(self, tree: Tree) -> tuple[int, ...]:
        """Shape of the result for one state."""
        return tuple(
            n(tree) if callable(n) else n if isinstance(n, int) else getattr(tree, n)
            for n in self.output
        )

    def input_sizes(self, tree: Tree) -> tuple[tuple[str, int], ...]:
        """Arguments and their lengths for one state."""
        return tuple(
            (name, size if isinstance(size, int) else getattr(tree, size))
            for name, size in self.inputs
        )


_q, _qd, _qdd, _tau, _qdd0 = ("q", Q), ("qd", V), ("qdd", V), ("tau", V), ("qdd0", V)
_x = ("x", V)
_frame: dict[str, Any] = {"takes_frame": True, "axes": ("base", "body")}
_moving: dict[str, Any] = _frame | {"axes": ("base", "body", kinematics.MOVING)}
_damped: dict[str, Any] = _frame | {"takes_damping": True}
_needs_inertia_inverse: dict[str, Any] = {
    "exists_for": mobility.possible,
    "why_not": mobility.why_not,
}
_needs_no_followers: dict[str, Any] = {"exists_for": tied.possible, "why_not": tied.why_not}

_TABLE = [
    Algorithm("inverse_dynamics", "rnea", rnea.rnea, (_q, _qd, _qdd), (V,), True,
              takes_external=True),
    Algorithm("bias", "rnea", rnea.bias, (_q, _qd), (V,), True, takes_external=True),
    Algorithm("gravity_torque", "rnea", rnea.gravity_torque, (_q,), (V,), True,
              takes_external=True),
    Algorithm("forward_dynamics", "crba", crba.forward_dynamics, (_q, _qd, _tau), (V,), True,
              takes_external=True),
    Algorithm("forward_dynamics", "aba", aba.aba, (_q, _qd, _tau), (V,), takes_external=True),
    Algorithm("mass_matrix", "crba", crba.crba, (_q,), (V, V), True),
    Algorithm("mass_matrix", "gdahj", gdahj.gdahj, (_q,), (V, V)),
    Algorithm("mass_matrix", "gdahj-symmetric", gdahj.gdahj_symmetric, (_q,), (V, V), True),
    Algorithm("mass_matrix", "mixed", gdahj.mixed, (_q,), (V, V), True),
    Algorithm("mass_matrix_inverse", "crba", crba.mass_matrix_inverse, (_q,), (V, V), True),
    Algorithm("mass_matrix_inverse", "aba", aba.mass_matrix_inverse, (_q,), (V, V)),
    Algorithm("kinetic_energy", "sweep", energy.kinetic_energy, (_q, _qd), ()),
    Algorithm("potential_energy", "sweep", energy.potential_energy, (_q,), ()),
    Algorithm("forward_kinematics", "sweep", kinematics.forward_kinematics, (_q,), (4, 4),
              takes_frame=True),
    Algorithm("jacobian", "sweep", kinematics.jacobian, (_q,), (6, V), **_frame),
    Algorithm("jacobian_dot_qd", "sweep", kinematics.jacobian_dot_qd, (_q, _qd), (6,), **_moving),
    Algorithm("operational_inertia", "crba", operational.operational_inertia, (_q,), (6, 6), True,
              **_damped),
    Algorithm("forward_dynamics", "fd1", operator_dynamics.fd1, (_q, _qd, _tau), (V,),
              takes_external=True),
    Algorithm("forward_dynamics", "fd2", operator_dynamics.fd1, (_q, _qd, _tau), (V,),
              takes_external=True),
    Algorithm("forward_dynamics", "fd3", operator_dynamics.fd3, (_q, _qd, _tau), (V,),
              takes_external=True),
    Algorithm("forward_dynamics", "fd4", aba.aba, (_q, _qd, _tau), (V,), takes_external=True),
    Algorithm("forward_dynamics", "ccg", conjugate_gradient.ccg, (_q, _qd, _tau, _qdd0), (V,),
              True, takes_external=True, iterates=True),
    Algorithm("forward_dynamics", "pcg", conjugate_gradient.pcg, (_q, _qd, _tau, _qdd0), (V,),
              True, takes_external=True, iterates=True),
    Algorithm("tip_acceleration", "fd3", operator_dynamics.fd3_tip, (_q, _qd, _tau), (6,),
              takes_external=True, **_moving),
    Algorithm("tip_acceleration", "fd2", operator_dynamics.fd2_tip, (_q, _qd, _tau), (6,),
              takes_external=True, **_moving),
    Algorithm("solve_mass", "innovations", innovations.solve_mass, (_q, ("rhs", V)), (V,)),
    Algorithm("mass_matrix_inverse", "innovations", innovations_factors.mass_matrix_inverse, (_q,),
              (V, V)),
    # M = F D Fᵀ, behind Robot.innovations
    Algorithm("pivots", "innovations", innovations_factors.pivots, (_q,), (V,),
              **_needs_no_followers),
    Algorithm("factor", "innovations", innovations_factors.factor, (_q,), (V, V),
              **_needs_no_followers),
    Algorithm("factor_inverse", "innovations", innovations_factors.factor_inverse, (_q,), (V, V),
              **_needs_no_followers),
    Algorithm("apply_factor", "innovations", innovations_factors.apply_factor, (_q, _x), (V,),
              **_needs_no_followers),
    Algorithm("apply_factor_inverse", "innovations", innovations_factors.apply_factor_inverse,
              (_q, _x), (V,), **_needs_no_followers),
    Algorithm("apply_factor_transpose", "innovations", innovations_factors.apply_factor_transpose,
              (_q, _x), (V,), **_needs_no_followers),
    Algorithm("apply_factor_inverse_transpose", "innovations",
              innovations_factors.apply_factor_inverse_transpose, (_q, _x), (V,),
              **_needs_no_followers),
    # Schur complements
    Algorithm("forward_dynamics", "schur", schur.forward_dynamics, (_q, _qd, _tau), (V,),
              takes_external=True, **_needs_inertia_inverse),
    Algorithm("forward_dynamics", "schur-bcr", schur.forward_dynamics_bcr, (_q, _qd, _tau), (V,),
              takes_external=True, **_needs_inertia_inverse),
    Algorithm("forward_dynamics", "schur-published", schur.forward_dynamics_published,
              (_q, _qd, _tau), (V,), takes_external=True, **_needs_inertia_inverse),
    Algorithm("mass_matrix_inverse", "schur", schur.mass_matrix_inverse, (_q,), (V, V),
              **_needs_inertia_inverse),
    Algorithm("operational_inertia", "schur", operational.schur_inertia, (_q,), (6, 6),
              **_needs_inertia_inverse, **_damped),
    Algorithm("operational_inertia", "schur-direct", operational.schur_direct_inertia, (_q,),
              (6, 6), **_needs_inertia_inverse, **_frame),
    Algorithm("operational_inertia", "recursive", operational.recursive_inertia, (_q,), (6, 6),
              **_needs_no_followers, **_damped),
    Algorithm("operational_inertia_inverse", "crba", operational.operational_inertia_inverse,
              (_q,), (6, 6), True, **_frame),
    Algorithm("operational_inertia_inverse", "schur", operational.schur_inverse, (_q,), (6, 6),
              **_needs_inertia_inverse, **_frame),
    Algorithm("operational_inertia_inverse", "recursive", operational.recursive_inverse, (_q,),
              (6, 6), **_needs_no_followers, **_frame),
    Algorithm("dynamics_and_inverse", "schur", operational.dynamics_and_inverse, (_q, _qd, _tau),
              (lambda tree: tree.nv + 36,), takes_external=True,
              exists_for=lambda tree: mobility.possible(tree) and tied.possible(tree),
              why_not=lambda tree: (mobility if tied.possible(tree) else tied).why_not(tree),
              **_frame),
    Algorithm("joint_wrenches", "rnea", wrenches.joint_wrenches, (_q, _qd, _qdd), (LINKS, 6),
              takes_external=True),
    Algorithm("coriolis_matrix", "composite", coriolis.coriolis_matrix, (_q, _qd), (V, V), True),
    Algorithm("coriolis_matrix", "mixed", coriolis.mixed, (_q, _qd), (V, V), True),
    Algorithm("christoffel", "composite", christoffel.christoffel, (_q,), (V, V, V), True),
    Algorithm("inertial_power", "augmented", augmented.augmented, (_q,), (V, V, V)),
    Algorithm("inertial_power", "per-link", kic.per_link, (_q,), (V, V, V)),
    # the configuration manifold
    Algorithm("integrate", "exponential", configurations.integrate, (_q, ("v", V), ("dt", 1)),
              (Q,)),
    Algorithm("difference", "logarithm", configurations.difference, (("q0", Q), ("q1", Q)), (V,)),
    Algorithm("normalize", "length", configurations.normalize, (_q,), (Q,)),
    Algorithm("kinematic_hessian", "sweep", kic.kinematic_hessian, (_q,), (6, V, V),
              takes_frame=True),
]  # fmt: skip


def _with_inertia(entry: Algorithm) -> Algorithm:
    """The algorithm, for robots whose joints move the inertia that it needs."""

    def exists_for(tree: Tree) -> bool:
        return unmoved.possible(entry.function, tree) and entry.exists_for(tree)

    def why_not(tree: Tree) -> str:
        possible = unmoved.possible(entry.function, tree)
        return entry.why_not(tree) if possible else unmoved.why_not(tree)

    return replace(entry, exists_for=exists_for, why_not=why_not)


FUNCTIONS: dict[str, dict[str, Algorithm]] = {}
for _entry in map(_with_inertia, _TABLE):
    FUNCTIONS.setdefault(_entry.function, {})[_entry.method] = _entry
