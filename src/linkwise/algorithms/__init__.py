"""The table of algorithms: public name and method -> driver, inputs, output shape, needs.

A driver is written over any scalar. A need is a function of the tree that returns why the robot
does not meet it, or an empty text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms import (
    aba,
    acceleration_derivatives,
    augmented,
    centroidal,
    centroidal_matrix_rate,
    centroidal_rates,
    christoffel,
    closed_derivatives,
    closed_inverse,
    closure_errors,
    closure_projection,
    configurations,
    conjugate_gradient,
    coriolis,
    crba,
    curves,
    efp,
    energy,
    energy_regressor,
    frame_motion,
    gdahj,
    grasp_functions,
    grasp_inverse,
    grasp_recursive,
    grasp_squeeze,
    inertial_power,
    innovations,
    kic,
    kinematics,
    manipulability,
    mixed,
    mobility,
    operational,
    operator_dynamics,
    orders,
    products,
    program_derivatives,
    reaches,
    reaction,
    regressor,
    rnea,
    scan,
    scan_inverse,
    scan_operational,
    schur,
    schur_inverses,
    schur_operational,
    tied,
    tip_acceleration,
    torque_derivatives,
    unmoved,
    wrenches,
)
from linkwise.algorithms import innovations_factors as factors
from linkwise.algorithms import innovations_matrices as matrices
from linkwise.algorithms.closed_dynamics import WAYS, by_ltl, by_pv, by_pvr
from linkwise.model.forest import too_few_joints
from linkwise.model.tree import Frame, Tree

Q, V, LINKS = "nq", "nv", "n_links"  # lengths of inputs and outputs, as attributes of a Tree
LOOPS, ROWS = "n_closures", "n_constraints"
Driver = Callable[..., Any]
DIVIDES = (unmoved.joints_without_inertia,)  # by the inertia that each joint moves


@dataclass(frozen=True)
class Algorithm:
    """One way to compute one public function."""

    function: str
    method: str
    driver: Driver
    inputs: tuple[tuple[str, str | int], ...]  # (argument, its length)
    output: tuple[str | int | Callable[[Tree], int], ...]
    regrouped: bool = False  # linear in the links' inertias: may use those of model/regroup.py
    takes_frame: bool = False
    axes: tuple[str, ...] = ()  # axes that a frame's result can be given in
    takes_external: bool = False
    takes_damping: bool = False  # of the inverse that is inverted, one number per direction
    iterates: bool = False  # also returns iterations and the squared relative residual
    needs: tuple[Callable[[Tree], str], ...] = DIVIDES
    tip_only: bool = False  # of frames, those on the last link
    needs_of_frame: Callable[[Tree, Frame], str] | None = None  # unless there is damping
    scans: bool = False  # cuts a chain into pieces (`sweep.scan`)
    # why its walks cannot be loops over the links of a robot; None: of no robot
    rolls: Callable[[Tree], str] | None = None
    # why gradients cannot take those loops back (trace/rolled_adjoints.py); empty: they can
    in_place: Callable[[Tree], str] = lambda tree: ""
    # the function of (q, x) whose results for unit vectors x are the columns of this one's matrix,
    # or the matrices along the last axis of its array: how those of a large robot are computed,
    # many columns side by side (engine/columns.py)
    columns: str = ""
    symmetric: bool = False  # that matrix; else a triangle
    # the functions of (q, x) that an iteration of a large robot calls in each step, the product
    # with M first (engine/iterative.py)
    products: tuple[str, ...] = ()
    # square matrices that the result begins with, one below another: calls return each by itself
    matrices: int = 0
    closed: bool | None = None  # for robots with closed loops only (True), without (False), or all

    def __hash__(self) -> int:
        """By name, which is quick: every call that finds its kernel in Python asks for it."""
        return hash((self.function, self.method))

    @property
    def takes_axes(self) -> bool:
        """Whether the driver is told in which axes the result is wanted."""
        return bool(self.axes)

    def why_not(self, tree: Tree, frame: Frame | None = None, damped: bool = False) -> str:
        """Why the algorithm does not apply to a robot, and to a frame of it; empty if it does."""
        reason = next(filter(None, (need(tree) for need in self.needs)), "")
        if not reason and damped and not self.takes_damping:
            return "takes no damping, for it never forms the inverse that damping is added to"
        if not reason and frame and self.tip_only:
            reason = reaches.not_at_tip(tree, frame)
        if not reason and frame and self.needs_of_frame and not damped:
            return self.needs_of_frame(tree, frame)
        return reason

    def can_roll(self, tree: Tree, device: str = "cpu") -> bool:
        """Whether its walks can be loops: code whose size does not depend on the robot's.

        What is put together of other functions' results is so on the processor only.
        """
        others = (self.columns,) if self.columns else self.products
        if others:
            return device == "cpu" and all(first_method(name).can_roll(tree) for name in others)
        return self.rolls is not None and not self.rolls(tree)

    @property
    def of_columns(self) -> Algorithm:
        """The algorithm that computes a column of the matrix."""
        return first_method(self.columns)

    def exists_for(self, tree: Tree, frame: Frame | None = None) -> bool:
        """Whether the algorithm applies to a robot, and to a frame of it."""
        return not self.why_not(tree, frame)

    def output_shape(self, tree: Tree) -> tuple[int, ...]:
        """Shape of the result for one state."""
        return tuple(
            n(tree) if callable(n) else n if isinstance(n, int) else getattr(tree, n)
            for n in self.output
        )

    @property
    def configurations(self) -> frozenset[str]:
        """Arguments that are configurations of the robot."""
        return frozenset(name for name, size in self.inputs if size == Q)

    def input_sizes(self, tree: Tree) -> tuple[tuple[str, int], ...]:
        """Arguments and their lengths for one state."""
        return tuple(
            (name, size if isinstance(size, int) else getattr(tree, size))
            for name, size in self.inputs
        )


Own = dict[str, Any]  # fields of an Algorithm
_q, _qd, _qdd, _tau, _qdd0 = ("q", Q), ("qd", V), ("qdd", V), ("tau", V), ("qdd0", V)
_x = ("x", V)

_forced: Own = {"takes_external": True}
_frame: Own = {"takes_frame": True, "axes": ("base", "body")}
_moving: Own = _frame | {"axes": ("base", "body", kinematics.MOVING)}
_regrouped: Own = {"regrouped": True}
_iterated: Own = {"inputs": (_q, _qd, _tau, _qdd0), "iterates": True} | _regrouped
_product = ("mass_product",)
_rolls: Own = {"rolls": lambda tree: ""}
_rolls_tied: Own = {"rolls": tied.many_ties}
_rolls_alone: Own = {"rolls": tied.why_not}
_rolls_chains: Own = {
    "rolls": orders.no_chain,
    "in_place": lambda tree: "loops over blocks write over what they have read",
}
_scans: Own = {"scans": True, "rolls": lambda tree: "", "needs": (reaches.branches,)}
_scans_bodies: Own = _scans | {"needs": (unmoved.no_inertia, reaches.branches)}
_tip: Own = {"tip_only": True}
_scans_joints: Own = _scans | {"needs": (*DIVIDES, reaches.branches, reaches.hollow)}
_damped: Own = {"takes_damping": True}
_kinematic: Own = {"needs": ()}
_mass: Own = {"needs": (unmoved.no_inertia,)}
_weighty: Own = {"needs": (unmoved.no_inertia, unmoved.nothing_moves)} | _rolls
_flies: Own = {"needs": (*DIVIDES, reaction.no_flying_base)}
_inverts_inertias: Own = {"needs": (*DIVIDES, mobility.why_not)}
_open: Own = {"closed": False}
_closed: Own = {"closed": True}
_closed_alone: Own = _closed | {"needs": (*DIVIDES, tied.why_not, curves.why_not)}
_rates: Own = {"matrices": 3} | _forced
_no_followers: Own = {"needs": (*DIVIDES, tied.why_not)}


def _ten_per_body(tree: Tree) -> int:
    return 10 * tree.n_links


def _methods(
    function: str, inputs: Any, output: Any, shared: Own, *methods: tuple[str, Driver, Own]
) -> list[Algorithm]:
    """The methods of a function: fields they share, and (name, driver, own fields) of each."""
    common = {"inputs": inputs, "output": output} | shared
    return [Algorithm(function, name, driver, **(common | own)) for name, driver, own in methods]


_RATES = (lambda tree: 3 * tree.nv + 1, V)

_TABLE = [
    *_methods("inverse_dynamics", (_q, _qd, _qdd), (V,), _forced | _mass | _open,
              ("rnea", rnea.rnea, _regrouped | _rolls),
              ("scan", scan_inverse.inverse_dynamics, _scans_bodies)),
    *_methods("inverse_dynamics", (_q, _qd, _qdd), (V,), _forced | _mass | _closed,
              ("least-torque", closed_inverse.inverse_dynamics, _regrouped)),
    *_methods("bias", (_q, _qd), (V,), _forced | _mass,
              ("rnea", rnea.bias, _regrouped | _rolls),
              ("scan", scan_inverse.bias, _scans_bodies)),
    *_methods("gravity_torque", (_q,), (V,), _forced | _mass,
              ("rnea", rnea.gravity_torque, _regrouped | _rolls),
              ("scan", scan_inverse.gravity_torque, _scans_bodies)),
    *_methods("forward_dynamics", (_q, _qd, _tau), (V,), _forced | _open,
              ("crba", crba.forward_dynamics, _regrouped),
              ("aba", aba.aba, _rolls_tied),
              ("fd1", operator_dynamics.fd1, {}),
              ("fd2", operator_dynamics.fd1, {}),
              ("fd3", operator_dynamics.fd3, _rolls_tied),
              ("fd4", aba.aba, _rolls_tied),
              ("scan", scan.forward_dynamics, _scans_joints),
              ("ccg", conjugate_gradient.ccg, _iterated | {"products": _product}),
              ("pcg", conjugate_gradient.pcg,
               _iterated | {"products": (*_product, "diagonal_solve")}),
              ("schur", schur.forward_dynamics, _inverts_inertias | _rolls_chains),
              ("schur-bcr", schur.forward_dynamics_bcr, _inverts_inertias | _rolls_chains),
              ("schur-published", schur.forward_dynamics_published, _inverts_inertias),
              ("ltl", by_ltl.forward_dynamics, _closed | _regrouped),
              ("pv", by_pv.forward_dynamics, _closed_alone),
              ("pv-r", by_pvr.forward_dynamics, _closed_alone)),
    *_methods("constraint_forces", (_q, _qd, _tau), (LOOPS, 6), _forced,
              ("ltl", by_ltl.constraint_forces, _closed | _regrouped),
              ("pv", by_pv.constraint_forces, _closed_alone),
              ("pv-r", by_pvr.constraint_forces, _closed_alone)),
    *_methods("delassus", (_q,), (ROWS, ROWS), {},
              ("ltl", by_ltl.delassus, _closed | _regrouped),
              ("pv", by_pv.delassus, _closed_alone),
              ("pv-r", by_pvr.delassus, _closed_alone),
              ("efp", efp.delassus, _closed_alone)),
    *_methods("impulse", (_q, _qd), (lambda tree: tree.nv + 6 * tree.n_closures,), {},
              ("ltl", by_ltl.impulse, _closed | _regrouped),
              ("pv", by_pv.impulse, _closed_alone),
              ("pv-r", by_pvr.impulse, _closed_alone)),
    Algorithm("residual", "sweep", closure_errors.residual, (_q, _qd), (2, ROWS), **_closed,
              **_kinematic),
    Algorithm("project", "newton", closure_projection.project, (_q, _qd),
              (lambda tree: tree.nq + tree.nv,), **_closed, **_regrouped),
    # derivatives: three matrices and the value, one below another
    *_methods("inverse_dynamics_derivatives", (_q, _qd, _qdd), _RATES, _rates | _mass | _open,
              ("composite", torque_derivatives.inverse_dynamics_derivatives, _regrouped),
              ("forward", program_derivatives.inverse_dynamics_derivatives, _regrouped)),
    *_methods("inverse_dynamics_derivatives", (_q, _qd, _qdd), _RATES, _rates | _mass | _closed,
              ("forward", closed_derivatives.inverse_dynamics_derivatives, _regrouped)),
    *_methods("forward_dynamics_derivatives", (_q, _qd, _tau), _RATES, _rates | _open,
              ("composite", acceleration_derivatives.by_composites, _regrouped),
              ("forward", acceleration_derivatives.forward, _regrouped)),
    *_methods("forward_dynamics_derivatives", (_q, _qd, _tau), _RATES, _rates | _closed,
              ("implicit", closed_derivatives.forward_dynamics_derivatives, _regrouped)),
    *_methods("mass_matrix", (_q,), (V, V), _mass,
              ("crba", crba.crba, _regrouped | _rolls),
              ("gdahj", gdahj.gdahj, {}),
              ("gdahj-symmetric", gdahj.gdahj_symmetric, _regrouped),
              ("mixed", mixed.mass_matrix, _regrouped)),
    *_methods("mass_matrix_inverse", (_q,), (V, V), {},
              ("crba", crba.mass_matrix_inverse, _regrouped),
              ("aba", aba.mass_matrix_inverse, {}),
              ("innovations", matrices.mass_matrix_inverse,
               {"columns": "solve_mass", "symmetric": True}),
              ("schur", schur_inverses.mass_matrix_inverse, _inverts_inertias)),
    Algorithm("kinetic_energy", "sweep", energy.kinetic_energy, (_q, _qd), (), **_mass,
              **_rolls),
    Algorithm("potential_energy", "sweep", energy.potential_energy, (_q,), (), **_mass,
              **_rolls),
    *_methods("forward_kinematics", (_q,), (4, 4), _kinematic | {"takes_frame": True},
              ("sweep", kinematics.forward_kinematics, _rolls),
              ("scan", scan.forward_kinematics, _scans | _tip)),
    Algorithm("jacobian", "sweep", kinematics.jacobian, (_q,), (6, V), **_frame, **_kinematic,
              **_rolls),
    Algorithm("jacobian_dot_qd", "sweep", kinematics.jacobian_dot_qd, (_q, _qd), (6,), **_moving,
              **_kinematic, **_rolls),
    Algorithm("link_poses", "sweep", frame_motion.link_poses, (_q,), (LINKS, 4, 4), **_kinematic,
              **_rolls),
    Algorithm("frame_velocity", "sweep", frame_motion.frame_velocity, (_q, _qd), (6,), **_frame,
              **_kinematic, **_rolls),
    Algorithm("frame_acceleration", "sweep", frame_motion.frame_acceleration, (_q, _qd, _qdd),
              (6,), **_moving, **_kinematic, **_rolls),
    *_methods("position_inertia", (_q,), (3, 3),
              _frame | _open | {"needs_of_frame": operational.too_few_for_positions},
              ("crba", operational.position_inertia, _regrouped),
              ("recursive", operational.recursive_position_inertia, _no_followers | _rolls_alone)),
    *_methods("operational_inertia", (_q,), (6, 6),
              _frame | _open | {"needs_of_frame": operational.too_few_directions},
              ("crba", operational.operational_inertia, _regrouped | _damped),
              ("recursive", operational.recursive_inertia,
               _no_followers | _damped | _rolls_alone),
              ("schur", schur_operational.operational_inertia,
               _inverts_inertias | _damped | _rolls_chains),
              ("schur-bcr", schur_operational.operational_inertia_bcr,
               _inverts_inertias | _damped | _rolls_chains),
              ("schur-direct", schur_operational.direct_operational_inertia, _inverts_inertias),
              ("scan", scan_operational.operational_inertia, _scans_joints | _damped | _tip)),
    *_methods("tip_acceleration", (_q, _qd, _tau), (6,), _forced | _moving | _open,
              ("fd3", tip_acceleration.fd3, _rolls_tied),
              ("fd2", tip_acceleration.fd2, {})),
    Algorithm("solve_mass", "innovations", innovations.solve_mass, (_q, ("rhs", V)), (V,),
              **_rolls_tied),
    Algorithm("mass_product", "rnea", products.mass_product, (_q, _x), (V,), **_mass,
              **_regrouped, **_rolls),
    Algorithm("diagonal_solve", "composite", products.diagonal_solve, (_q, _x), (V,),
              **_regrouped, **_no_followers, **_rolls_alone),  # behind "pcg"
    # M = F D Fᵀ, behind Robot.innovations
    Algorithm("pivots", "innovations", matrices.pivots, (_q,), (V,), **_no_followers,
              **_rolls_alone),
    Algorithm("factor", "innovations", matrices.factor, (_q,), (V, V), **_no_followers,
              columns="apply_factor"),
    Algorithm("factor_inverse", "innovations", matrices.factor_inverse, (_q,), (V, V),
              **_no_followers, columns="apply_factor_inverse"),
    Algorithm("apply_factor", "innovations", factors.apply_factor, (_q, _x), (V,), **_no_followers,
              **_rolls_alone),
    Algorithm("apply_factor_inverse", "innovations", factors.apply_factor_inverse, (_q, _x), (V,),
              **_no_followers, **_rolls_alone),
    Algorithm("apply_factor_transpose", "innovations", factors.apply_factor_transpose, (_q, _x),
              (V,), **_no_followers, **_rolls_alone),
    Algorithm("apply_factor_inverse_transpose", "innovations",
              factors.apply_factor_inverse_transpose, (_q, _x), (V,), **_no_followers,
              **_rolls_alone),
    *_methods("operational_inertia_inverse", (_q,), (6, 6), _frame | _open,
              ("crba", operational.operational_inertia_inverse, _regrouped),
              ("recursive", operational.recursive_inverse, _no_followers | _rolls_alone),
              ("schur", schur_operational.operational_inertia_inverse,
               _inverts_inertias | _rolls_chains),
              ("schur-bcr", schur_operational.operational_inertia_inverse_bcr,
               _inverts_inertias | _rolls_chains),
              ("scan", scan_operational.operational_inertia_inverse, _scans_joints | _tip)),
    *_methods("dynamics_and_inverse", (_q, _qd, _tau), (lambda tree: tree.nv + 36,),
              _forced | _frame | _rolls_chains | _open
              | {"needs": (*DIVIDES, tied.why_not, mobility.why_not)},
              ("schur", schur_operational.dynamics_and_inverse, {}),
              ("schur-bcr", schur_operational.dynamics_and_inverse_bcr, {}),
              ("scan", scan_operational.dynamics_and_inverse, _scans_joints | _tip)),
    Algorithm("joint_wrenches", "rnea", wrenches.joint_wrenches, (_q, _qd, _qdd), (LINKS, 6),
              **_forced, **_mass, **_rolls, **_open),
    *_methods("coriolis_matrix", (_q, _qd), (V, V), _regrouped | _mass,
              ("composite", coriolis.coriolis_matrix, _rolls),
              ("mixed", mixed.coriolis_matrix, {})),
    Algorithm("christoffel", "composite", christoffel.christoffel, (_q,), (V, V, V), **_regrouped,
              **_mass, columns="coriolis_matrix"),
    *_methods("inertial_power", (_q,), (V, V, V), _mass,
              ("augmented", augmented.augmented, {}),
              ("per-link", inertial_power.per_link, {})),
    # torques and energies per unit of the inertial parameters
    Algorithm("regressor", "sweep", regressor.regressor, (_q, _qd, _qdd), (V, _ten_per_body),
              **_kinematic, **_rolls, in_place=regressor.branches),
    Algorithm("energy_regressor", "sweep", energy_regressor.energy_regressor, (_q, _qd),
              (2, _ten_per_body), **_kinematic, **_rolls),
    # the centre of mass, and the momentum about it
    Algorithm("center_of_mass", "sweep", centroidal.center_of_mass, (_q,), (3,), **_weighty),
    Algorithm("com_jacobian", "sweep", centroidal.com_jacobian, (_q,), (3, V), **_weighty),
    Algorithm("com_bias", "sweep", centroidal_rates.com_bias, (_q, _qd), (3,), **_weighty),
    Algorithm("centroidal_momentum_matrix", "sweep", centroidal.centroidal_momentum_matrix, (_q,),
              (6, V), **_weighty),
    Algorithm("centroidal_momentum_matrix_rate", "sweep",
              centroidal_matrix_rate.centroidal_momentum_matrix_rate, (_q, _qd), (6, V),
              **_weighty),
    Algorithm("centroidal_momentum", "sweep", centroidal_rates.centroidal_momentum, (_q, _qd),
              (6,), **_weighty),
    Algorithm("centroidal_bias", "sweep", centroidal_rates.centroidal_bias, (_q, _qd), (6,),
              **_weighty),
    Algorithm("generalized_jacobian", "composite", reaction.generalized_jacobian, (_q,),
              (6, lambda tree: tree.nv - len(reaction.BASE_DOFS)), **_frame, **_regrouped,
              **_flies),
    # the configuration manifold
    Algorithm("integrate", "exponential", configurations.integrate, (_q, ("v", V), ("dt", 1)),
              (Q,), **_kinematic, **_rolls),
    Algorithm("difference", "logarithm", configurations.difference, (("q0", Q), ("q1", Q)), (V,),
              **_kinematic, **_rolls),
    Algorithm("normalize", "length", configurations.normalize, (_q,), (Q,), **_kinematic,
              **_rolls),
    Algorithm("manipulability", "orthogonal", manipulability.manipulability, (_q,), (),
              takes_frame=True, **_kinematic, **_rolls),
    Algorithm("manipulability_gradient", "orthogonal", manipulability.manipulability_gradient,
              (_q,), (V,), takes_frame=True, **_kinematic),
    Algorithm("kinematic_hessian", "sweep", kic.kinematic_hessian, (_q,), (6, V, V),
              takes_frame=True, **_kinematic),
]  # fmt: skip

_BY_LTL, _BY_PV, _BY_PVR = map(grasp_functions.by, WAYS.values())
_BY_BALANCE = grasp_functions.drivers(grasp_recursive.recursive)
_balanced: Own = {"needs": (*DIVIDES, tied.why_not, too_few_joints)}


def _of_grasp(function: str, output: Any) -> list[Algorithm]:
    """A part of what a grasp does, by every method."""
    ltl, pv, pvr, balance = (getattr(x, function) for x in (_BY_LTL, _BY_PV, _BY_PVR, _BY_BALANCE))
    return _methods(function, (_q, _qd, _tau), output, _forced,
                    ("ltl", ltl, _regrouped), ("pv", pv, _no_followers),
                    ("pv-r", pvr, _no_followers), ("recursive", balance, _balanced))  # fmt: skip


_GRASPS = [  # of arms that hold an object, besides all others or in their place
    Algorithm("forward_dynamics", "recursive", _BY_BALANCE.forward_dynamics, (_q, _qd, _tau), (V,),
              **_forced | _balanced),
    *_of_grasp("contact_forces", (lambda tree: tree.n_contact_forces // 6, 6)),
    *_of_grasp("object_acceleration", (6,)),
    *_of_grasp("motion", (lambda tree: tree.nv + 6 + tree.n_contact_forces,)),
    Algorithm("inverse_dynamics", "least-torque", grasp_inverse.inverse_dynamics, (_q, _qd, _qdd),
              (V,), **_mass | _forced | _closed | _regrouped),
    Algorithm("weighted_inverse_dynamics", "least-torque", grasp_inverse.weighted,
              (_q, _qd, _qdd, ("weights", V)), (V,), **_mass | _forced | _regrouped),
    Algorithm("internal_forces", "least", grasp_squeeze.internal_forces,
              (_q, ("forces", "n_contact_forces")), (lambda tree: tree.n_contact_forces // 6, 6),
              **_kinematic),
]  # fmt: skip

Functions = dict[str, dict[str, Algorithm]]


def _functions(of_loops: bool, table: list[Algorithm] = _TABLE) -> Functions:
    found: Functions = {}
    for entry in table:
        if entry.closed in (None, of_loops):
            found.setdefault(entry.function, {})[entry.method] = entry
    return found


FUNCTIONS, CLOSED_FUNCTIONS = _functions(False), _functions(True)
GRASP_FUNCTIONS = {closed: _functions(closed, _TABLE + _GRASPS) for closed in (False, True)}


def functions_of(tree: Tree) -> Functions:
    """The functions of a robot, and the methods of each: with closed loops, or of a tree."""
    if tree.held:
        return GRASP_FUNCTIONS[tree.is_closed]
    return CLOSED_FUNCTIONS if tree.is_closed else FUNCTIONS


def wrong_kind(tree: Tree, function: Any, method: Any = None) -> str:
    """Why a robot lacks a function or method that robots of the other kind have, if these do."""
    others = FUNCTIONS if tree.is_closed else CLOSED_FUNCTIONS
    known = others.get(function) if isinstance(function, str) else None
    if known is None or not (method is None or (isinstance(method, str) and method in known)):
        return ""
    if not tree.is_closed:
        return "the robot has no closed loops; robot.close_loops makes some"
    name = tree.loop_names[0]
    return f"is for robots without closed loops, and this one has {name}; robot.open has none"


def first_method(function: str) -> Algorithm:
    """The method of a function that every robot has."""
    return next(iter(FUNCTIONS[function].values()))
