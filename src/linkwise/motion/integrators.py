"""One step of time, by each method: short bodies over vectors of any kind.

A step is a sequence of phases. Each phase runs a body on the state that the method carries, whose
first two vectors are the configuration q and the rates v reached by the last complete step. Phases
that differ only in numbers share one body, so that compiled code holds one copy of the equations of
motion, however many stages a method has.

    euler        v' = v + h a(q, v),  q' = q ⊕ h v'                  semi-implicit, order 1
    rk4          the classical method of order 4

On the manifold q ⊕ u is the configuration reached from q by the rates u held for unit time. A step
of RK4 is taken in the chart u around the q at its start, u = 0, where

    u̇ = v + ½ [u, v] + 1/12 [u, [u, v]] + O(u⁴ v),      v̇ = a(q ⊕ u, v)

[Munthe-Kaas 1999], with the brackets of the joints that turn in all directions; for all others
u̇ = v. The terms left out are of fifth order in the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from linkwise.motion.vectors import Vec
from linkwise.spatial import Scalar

State = tuple[Vec, ...]


class System(Protocol):
    """The equations of motion, with everything that acts on the robot."""

    def acceleration(self, q: Vec, v: Vec) -> Vec:
        """How the rates change."""

    def moved(self, q: Vec, u: Vec) -> Vec:
        """``q ⊕ u``."""

    def chart_rate(self, u: Vec, v: Vec) -> Vec:
        """How u changes where ``q ⊕ u`` moves at the rates v."""


# (system, state, h, numbers of the phase) -> state
Body = Callable[[System, State, Scalar, tuple[Scalar, ...]], State]


@dataclass(frozen=True)
class Phase:
    """A body of a method, by its place among them, and the numbers it is run with."""

    body: int
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Integrator:
    """A method of fixed steps."""

    name: str
    order: int
    bodies: tuple[Body, ...]
    phases: tuple[Phase, ...]
    begin: Callable[[Vec, Vec], State]  # the state it carries, from q and v


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
    last = len(weights) - 1
    return tuple(
        Phase(0, (c[k] if k < last else 0.0, w, float(k == last), float(k != last)))
        for k, w in enumerate(weights)
    )


INTEGRATORS = {
    method.name: method
    for method in (
        Integrator("euler", 1, (_euler,), (Phase(0),), lambda q, v: (q, v)),
        Integrator(
            "rk4",
            4,
            (_stage,),
            _stages((0.5, 0.5, 1.0), (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0)),
            _begin_stages,
        ),
    )
}
