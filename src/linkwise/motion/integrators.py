"""One step of time, by each method: short bodies over vectors of any kind.

A step is a sequence of phases. Each phase runs a body on the state that the method carries, whose
first two vectors are the configuration q and the rates v reached by the last complete step. Phases
that differ only in numbers share one body, so that compiled code holds one copy of the equations of
motion, however many stages a method has.

    euler      v' = v + h a(q, v),  q' = q ⊕ h v'               semi-implicit, order 1
    implicit   the same with damping and friction at v'        order 1 (algorithms/implicit.py)
    rk4        the classical method of Runge and Kutta         order 4
    midpoint   variational, on the manifold                    order 2

On the manifold q ⊕ u is the configuration reached from q by the rates u held for unit time. A step
of RK4 is taken in the chart u around the q at its start, u = 0, where

    u̇ = v + ½ [u, v] + 1/12 [u, [u, v]] + O(u⁴ v),      v̇ = a(q ⊕ u, v)

[Munthe-Kaas 1999], with the brackets of the joints that turn in all directions; for all others
u̇ = v. The terms left out are of fifth order in the step.

The variational midpoint takes the action of a step as ``h L(q ⊕ u/2, w)``, where u = h w leads
from one configuration to the next. That it is stationary says, for the momenta p before and p'
after the step,

    dexp_u⁻ᵀ (m - h/2 dexp_{u/2}ᵀ F) = p,      p' = dexp_{-u}⁻ᵀ (m + h/2 dexp_{-u/2}ᵀ F)

with m = ∂L/∂w = M w and F = ∂L/∂q at the midpoint, and other forces added to F [Marsden and West
2001, part 1.4; on a group: Bou-Rabee and Marsden 2009]. The first is solved for w by iterations of
``w += M⁻¹ (p - left side)``, each of which gains a factor of about h |w|; the second then gives
the new rates. It conserves the momenta that the mechanism conserves, and its energy error stays
bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from linkwise.motion.vectors import Numbers, Vec
from linkwise.spatial import Scalar, select

State = tuple[Vec, ...]
PROJECT = "project"  # after each step, onto the states in which closed loops are closed


class System(Protocol):
    """The equations of motion, with everything that acts on the robot."""

    def acceleration(self, q: Vec, v: Vec) -> Vec:
        """How the rates change."""

    def moved(self, q: Vec, u: Vec) -> Vec:
        """``q ⊕ u``."""

    def chart_rate(self, u: Vec, v: Vec) -> Vec:
        """How u changes where ``q ⊕ u`` moves at the rates v."""

    def implicit_change(self, q: Vec, v: Vec, h: Scalar) -> Vec:
        """How v changes in a step whose damping and friction act at the new rates."""

    def lagrangian(self, q: Vec, v: Vec) -> tuple[Vec, Vec]:
        """The momentum, and the force at given rates with all that acts on the robot."""

    def solve_mass(self, q: Vec, p: Vec) -> Vec:
        """The rates of a momentum."""

    def pushed(self, u: Vec, p: Vec) -> Vec:
        """``dexp_uᵀ p``."""

    def pulled(self, u: Vec, p: Vec) -> Vec:
        """``dexp_u⁻ᵀ p``."""


# (system, state, h, numbers of the phase) -> state
Body = Callable[[System, State, Scalar, tuple[Scalar, ...]], State]


@dataclass(frozen=True)
class Phase:
    """A body of a method, by its place among them, and the numbers it is run with."""

    body: int
    numbers: tuple[float, ...] = ()
    time: float = 0.0  # where in the step the equations of motion are asked


@dataclass(frozen=True)
class Integrator:
    """A method of fixed steps."""

    name: str
    order: int
    bodies: tuple[Body, ...]
    phases: tuple[Phase, ...]
    begin: Callable[[Vec, Vec], State]  # the state it carries, from q and v
    # it iterates: the last number that it carries is the greatest square of what its last
    # iteration still changed, relative to the rates
    iterates: bool = False


def _euler(system: System, state: State, h: Scalar, _: tuple[Scalar, ...]) -> State:
    q, v = state
    v = v + system.acceleration(q, v) * h
    return system.moved(q, v * h), v


def _begin_stages(q: Vec, v: Vec) -> State:
    none = v * 0.0
    return q, v, q, v, none, none, none


def _stage(system: System, state: State, h: Scalar, numbers: tuple[Scalar, ...]) -> State:
    """One evaluation of an explicit Runge-Kutta method whose stages each use only the one before.

    Carried beside q and v: the stage's own configuration, rates and place u in the chart, and the
    weighted sums of u̇ and v̇. After the last stage ``c`` and ``more`` are 0, and ``last`` is 1.
    """
    q, v, q_stage, v_stage, u, sum_u, sum_v = state
    c, weight, last, more = numbers
    du = system.chart_rate(u, v_stage)
    dv = system.acceleration(q_stage, v_stage)
    sum_u, sum_v = sum_u + du * (h * weight), sum_v + dv * (h * weight)
    q, v = system.moved(q, sum_u * last), v + sum_v * last
    u = du * (h * c)
    return q, v, system.moved(q, u), v + dv * (h * c), u, sum_u * more, sum_v * more


def _stages(c: tuple[float, ...], weights: tuple[float, ...]) -> tuple[Phase, ...]:
    """The phases of such a method: stage k + 1 is ``c_k`` steps on from the start of the step."""
    last, times = len(weights) - 1, (0.0, *c)
    return tuple(
        Phase(0, (c[k] if k < last else 0.0, w, float(k == last), float(k != last)), times[k])
        for k, w in enumerate(weights)
    )


def _implicit(system: System, state: State, h: Scalar, _: tuple[Scalar, ...]) -> State:
    q, v = state
    v = v + system.implicit_change(q, v, h)
    return system.moved(q, v * h), v


ITERATIONS = 12


def _begin_midpoint(q: Vec, v: Vec) -> State:
    return q, v, v, v, Numbers([0.0])


def _midpoint_starts(system: System, state: State, _h: Scalar, _: tuple[Scalar, ...]) -> State:
    """The momentum before the step; the rates are the first guess of those at the midpoint."""
    q, v, _, _, slack = state
    p, _ = system.lagrangian(q, v)
    return q, v, p, v, slack


def _midpoint_iterates(
    system: System, state: State, h: Scalar, numbers: tuple[Scalar, ...]
) -> State:
    q, v, p, w, slack = state
    u = w * h
    middle = system.moved(q, u * 0.5)
    m, F = system.lagrangian(middle, w)
    left = system.pulled(u, m - system.pushed(u * 0.5, F) * (h * 0.5))
    change = system.solve_mass(middle, p - left)
    w = w + change
    off = numbers[0] * _square(change) / (1.0 + _square(w))
    return q, v, p, w, Numbers([select(off - slack[0], off, slack[0])])


def _midpoint_ends(system: System, state: State, h: Scalar, _: tuple[Scalar, ...]) -> State:
    """The new configuration, and the rates of the momentum after the step."""
    q, _, _, w, slack = state
    u = w * h
    m, F = system.lagrangian(system.moved(q, u * 0.5), w)
    p = system.pulled(u * -1.0, m + system.pushed(u * -0.5, F) * (h * 0.5))
    q = system.moved(q, u)
    return q, system.solve_mass(q, p), p, w, slack


def _square(x: Vec) -> Scalar:
    total: Scalar = 0.0
    for own in x:
        total = total + own * own
    return total


_MIDPOINT = (
    Phase(0, (0.0,)),
    *(Phase(1, (float(k == ITERATIONS - 1),)) for k in range(ITERATIONS)),
    Phase(2, (0.0,)),
)

INTEGRATORS = {
    method.name: method
    for method in (
        Integrator("euler", 1, (_euler,), (Phase(0),), lambda q, v: (q, v)),
        Integrator("implicit", 1, (_implicit,), (Phase(0),), lambda q, v: (q, v)),
        Integrator(
            "rk4",
            4,
            (_stage,),
            _stages((0.5, 0.5, 1.0), (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0)),
            _begin_stages,
        ),
        Integrator(
            "midpoint",
            2,
            (_midpoint_starts, _midpoint_iterates, _midpoint_ends),
            _MIDPOINT,
            _begin_midpoint,
            iterates=True,
        ),
    )
}
