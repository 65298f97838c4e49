"""The equations of motion of a simulation: torques, stops, wrenches, parameters, drift control.

`TracedSystem` has them on traced scalars. The compiled loop (``rollout.py``) steps it as it is; the
steppers of Python and of SciPy call its acceleration as a compiled function (`acceleration_of`). So
all of them know the same options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwise.algorithms import ltl
from linkwise.algorithms.closed_dynamics import WAYS
from linkwise.algorithms.closure_projection import corrected, stabilized
from linkwise.algorithms.configurations import chart_rate, integrate, normalize, rate
from linkwise.algorithms.crba import crba
from linkwise.algorithms.implicit import implicit_change
from linkwise.algorithms.momentum import lagrangian, pulled, pushed
from linkwise.engine.calls import Calls
from linkwise.engine.compiled import CompiledFunction
from linkwise.engine.equations import Values, flags, straight_line
from linkwise.model.parameters import put_all
from linkwise.model.regroup import regroup
from linkwise.model.tree import Tree
from linkwise.motion.laws import law_torques, ports_of
from linkwise.motion.limits import NO_STEP, stop_forces
from linkwise.motion.vectors import Numbers
from linkwise.spatial import Scalar, Vector
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.program import (
    CONFIGURATION,
    PARAMETER,
    TORQUE,
    VELOCITY,
    WRENCH,
    Port,
    Slot,
)
from linkwise.trace.status import status_of
from linkwise.trace.tracer import evaluate

if TYPE_CHECKING:
    from linkwise.motion.rollout import Rollout


class TracedSystem:
    """The equations of motion of a tree, on traced scalars, under given torques or by a law."""

    def __init__(
        self,
        plan: Rollout,
        tree: Tree,
        law: Sequence[Vector],
        wrenches: Sequence[Vector],
        limits: Sequence[Vector] = (),
        constants: Sequence[Vector] = (),
    ) -> None:
        self.plan, self.tree, self.law, self.limits = plan, tree, law, limits
        self.constants = constants
        self.loaded = put_all(tree, zip(plan.parameters, constants, strict=True))
        self.grouped = regroup(self.loaded)
        self.controlled = plan.law_tree or tree
        self.wrenches = wrenches
        self.external = tuple(zip(plan.dynamics.external, wrenches, strict=True))
        self.held: Vector | None = None

    def torques(self, q: Vector, v: Vector) -> Numbers:
        """What the law asks for."""
        return Numbers(law_torques(self.plan.forms, self.controlled, self.law, q, v))

    def acting(self, q: Vector, v: Vector, h: Scalar = NO_STEP) -> tuple[Numbers, list[Scalar]]:
        """Torques of law and stops, and what stops resist per unit of the rates after h."""
        tau = self.torques(q, v) if self.held is None else Numbers(self.held)
        if not self.plan.stop:
            return tau, [0.0] * self.tree.nv
        push, slopes = stop_forces(self.plan.limited, self.limits, q, v, h)
        return tau + push, slopes

    def acceleration(self, q: Numbers, v: Numbers) -> Numbers:
        """How the rates change."""
        tau, _ = self.acting(q, v)
        if isinstance(self.plan.drift, float):
            way = WAYS[self.plan.dynamics.algorithm.method]
            found = stabilized(way, self.loaded, q, v, tau, self.external, self.plan.drift)
            return Numbers(found)
        return Numbers(evaluate(self.plan.dynamics, self.tree, q, v, tau, *self.wrenches,
                                *self.constants))  # fmt: skip

    def projected(self, q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
        """The state with its closed loops closed, but for errors of second order."""
        q_new, v_new = corrected(self.grouped, q, v)
        return Numbers(q_new), Numbers(v_new)

    def implicit_change(self, q: Numbers, v: Numbers, h: Scalar) -> Numbers:
        """How v changes in a step whose damping and friction act at the new rates."""
        tau, stiff = self.acting(q, v, h)
        found = implicit_change(self.grouped, q, v, tau, h, stiff, external=self.external)
        return Numbers(found)

    def lagrangian(self, q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
        """The momentum, and the force at given rates with all that acts on the robot."""
        momentum, force = lagrangian(self.grouped, q, v, external=self.external)
        tau, _ = self.acting(q, v)
        return Numbers(momentum), Numbers(force) + tau

    def solve_mass(self, q: Numbers, p: Numbers) -> Numbers:
        """The rates of a momentum."""
        factors = ltl.factor(crba(self.grouped, q), self.tree.dof_parent)
        return Numbers(ltl.solve(factors, list(p)))

    def moved(self, q: Numbers, u: Numbers) -> Numbers:
        """``q ⊕ u``."""
        return Numbers(integrate(self.tree, q, u, [1.0]))

    def chart_rate(self, u: Numbers, v: Numbers) -> Numbers:
        """How u changes where ``q ⊕ u`` moves at the rates v."""
        return Numbers(chart_rate(self.tree, u, v))

    def pushed(self, u: Numbers, p: Numbers) -> Numbers:
        """``dexp_uᵀ p``."""
        return Numbers(pushed(self.tree, u, p))

    def pulled(self, u: Numbers, p: Numbers) -> Numbers:
        """``dexp_u⁻ᵀ p``."""
        return Numbers(pulled(self.tree, u, p))


def inputs_of(plan: Rollout, tree: Tree) -> tuple[Port, ...]:
    """Inputs of the acceleration: the state, torques, numbers of the controller, and all that acts.

    Torques are those of a controller that was asked before; one whose equations are in the plan is
    evaluated at the state, and then they are not read.
    """
    return (
        Port("q", tree.nq, kind=CONFIGURATION),
        Port("qd", tree.nv, kind=VELOCITY),
        Port("tau", tree.nv, kind=TORQUE),
        *ports_of(plan.forms, tree),
        *(Port(f"f_ext[{k}]", 6, kind=WRENCH) for k in range(len(plan.dynamics.external))),
        *(Port(name, len(plan.limited)) for name in plan.limit_names),
        *(Port(f"parameter {x.name}", x.size(tree), kind=PARAMETER) for x in plan.parameters),
    )


def system_of(plan: Rollout, tree: Tree, values: Values) -> TracedSystem:
    """The system that has these inputs, after the state."""
    _, _, tau, *acting = values
    sizes = (
        len(ports_of(plan.forms, tree)), len(plan.dynamics.external), len(plan.limit_names),
        len(plan.parameters),
    )  # fmt: skip
    parts = []
    for size in sizes:
        parts.append(acting[:size])
        acting = acting[size:]
    system = TracedSystem(plan, tree, *parts)
    if not plan.forms:
        system.held = tau
    return system


def acceleration_of(
    calls: Calls, plan: Rollout, tree: Tree, *, velocity: bool = False
) -> CompiledFunction:
    """Return the joint accelerations, and status flags, as a compiled function of `inputs_of`.

    Args:
        velocity: the change of q per second too, before the accelerations and instead of the flags,
            at quaternions of any length: what solvers of SciPy ask for.
    """
    ports = inputs_of(plan, tree)

    def trace(_graph: Graph, values: Values) -> list[Expr]:
        q, v = map(Numbers, values[:2])
        system = system_of(plan, tree, values)
        if not velocity:
            return list(system.acceleration(q, v))
        at = Numbers(normalize(tree, q))
        return [*rate(tree, at, v), *system.acceleration(at, v)]

    def bits(graph: Graph, values: Values, results: list[Expr]) -> Expr:
        return status_of(graph, tree, ports, values, results)

    key = (velocity, *plan.content)
    outputs = (Slot("result", (tree.nv + velocity * tree.nq,)), *flags(not velocity))
    equations = straight_line(
        "equations of motion", key, ports, outputs, trace, None if velocity else bits
    )
    return calls.compiled(equations)
