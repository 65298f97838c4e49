"""Controllers as actuators follow them: within limits, at a limited rate, after a delay.

    saturated        -limit <= τ <= limit
    rate limited     |τ_k - τ_k-1| <= rate dt
    delayed          τ_k = u_k-d

A saturated control law is a law, compiled like others. The other two remember torques of earlier
steps: `simulate` asks them once per step, each simulation with a memory of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.engine.arrays import read
from linkwise.model.tree import Tree
from linkwise.motion.laws import (
    Form,
    Law,
    Numbered,
    Term,
    law_torques,
    torques_by_calls,
)
from linkwise.robot import Robot
from linkwise.spatial import Scalar, Vector, select

Array = NDArray[Any]
Asked = Callable[[float, Any, Any], Any]  # (t, q, qd) -> tau
Change = Callable[[Array], Array]  # of the torques of one step
UNLIMITED = 1e30  # stands for infinity in kernels, which take finite numbers
LONGEST = 1e12  # seconds of a delay
WHOLE = 1e-6  # steps by which a delay may miss a whole number of them


@final
class Remembering:
    """A controller with a memory, made by `rate_limited` or `delayed`, for `simulate`."""

    def __init__(self, controller: Any, name: str, actuator: Actuator) -> None:
        self.controller, self.name, self._actuator = controller, name, actuator

    def __call__(self, t: float, q: ArrayLike, qd: ArrayLike) -> Any:
        """Raise TypeError: without a simulation there is no memory."""
        raise TypeError(
            f"a {self.name} controller has a memory, which begins with a simulation; expected "
            "lw.simulate(robot, q, controller=...), and no call"
        )

    def __add__(self, other: object) -> Any:
        """Raise TypeError: torques that are remembered are those of one controller."""
        raise TypeError(
            f"a {self.name} controller and a {type(other).__name__} cannot be added; expected one "
            "around the sum of two laws, such as linkwise.control.delayed(law + law, time)"
        )

    __radd__ = __add__

    def begun(self, dt: float) -> Asked:
        """The controller of one simulation, to be asked once per step of ``dt`` seconds."""
        return _Asked(asked_of(self.controller, dt), self._actuator.begin(dt))

    @property
    def innermost(self) -> Any:
        """The law or function at the end of the chain."""
        inner = self.controller
        return inner.innermost if isinstance(inner, Remembering) else inner

    def around(self, wrap: Callable[[Any], Any]) -> Remembering:
        """The same of the innermost controller with something around it."""
        own = self.controller
        inner = own.around(wrap) if isinstance(own, Remembering | Saturated) else wrap(own)
        return Remembering(inner, self.name, self._actuator)

    def __repr__(self) -> str:
        return f"<{self.name} {self.controller!r}>"


class Actuator(Protocol):
    """What changes the torques of a controller."""

    def begin(self, dt: float) -> Change:
        """Return what changes the torques of one simulation with steps of dt seconds."""


@dataclass(frozen=True)
class _Asked:
    """A controller and what changes its torques."""

    controller: Asked
    change: Change

    def __call__(self, t: float, q: Any, qd: Any) -> Array:
        return self.change(np.array(self.controller(t, q, qd)))


@dataclass(frozen=True)
class _LawByStep:
    """A law whose numbers per step are those of a time."""

    law: Law
    dt: float

    def __call__(self, t: float, q: Any, qd: Any) -> Any:
        return self.law(t, q, qd, step=round(t / self.dt))


@dataclass(frozen=True)
class _Saturation:
    """Torques within limits."""

    most: Array

    def begin(self, _dt: float) -> Change:
        return self

    def __call__(self, tau: Any) -> Array:
        tau = _torques("saturated", "limit", self.most, tau)
        array: Array = np.clip(tau, -self.most, self.most)
        return array


@dataclass(frozen=True)
class _RateLimit:
    """Torques that change at a limited rate."""

    rate: Array

    def begin(self, dt: float) -> Change:
        return _RateLimited(self.rate, dt)


class _RateLimited:
    """Those of one simulation."""

    def __init__(self, rate: Array, dt: float) -> None:
        self.rate, self.dt = rate, dt
        self.last: Array | None = None

    def __call__(self, tau: Array) -> Array:
        tau = _torques("rate_limited", "rate", self.rate, tau)
        if self.last is not None:
            most = self.rate * self.dt
            tau = np.clip(tau, self.last - most, self.last + most)
        self.last = tau
        return tau


@dataclass(frozen=True)
class _Delay:
    """Torques of earlier steps."""

    delay: float

    def begin(self, dt: float) -> Change:
        delay, steps = self.delay, round(self.delay / dt)
        if abs(delay / dt - steps) > WHOLE * max(1.0, steps):
            raise ValueError(
                f"simulate: the controller's delay {delay} is {delay / dt:.6g} steps of dt {dt}; "
                f"expected a whole number of steps, such as delay={steps * dt:.9g}"
            )
        return _Delayed(steps)


class _Delayed:
    """Those of one simulation."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.waiting: deque[Array] = deque()

    def __call__(self, tau: Array) -> Array:
        self.waiting.append(tau)
        return self.waiting.popleft() if len(self.waiting) > self.steps else self.waiting[0]


@dataclass(frozen=True)
class Saturated:
    """A function of Python and limits of its torques."""

    controller: Asked
    change: _Saturation

    def around(self, wrap: Callable[[Any], Any]) -> Saturated:
        """The same of the innermost function with something around it."""
        inner: Any = self.controller
        inner = inner.around(wrap) if isinstance(inner, Saturated) else wrap(inner)
        return replace(self, controller=inner)

    def __call__(self, t: float, q: Any, qd: Any) -> Array:
        """Return the torques within their limits."""
        return self.change(self.controller(t, q, qd))


def asked_of(controller: Any, dt: float) -> Asked:
    """A controller as a function of one simulation."""
    if isinstance(controller, Remembering):
        return controller.begun(dt)
    if isinstance(controller, Law):
        return _LawByStep(controller, dt)
    return controller  # type: ignore[no-any-return]


def saturated(controller: Any, limit: ArrayLike | Robot | None = None) -> Any:
    """Keep the torques of a controller within limits: ``-limit <= tau <= limit``.

    Args:
        controller: A law of `linkwise.control`; the result is a law too, compiled into
            simulations. Or a function ``controller(t, q, qd) -> tau``; the result is a function.
        limit: Greatest torques (nv) or one number, in N m or N, or a robot, whose `effort_limits`
            they are. Those of the law's robot unless given.

    Returns:
        The controller with its torques clipped.

    >>> import linkwise as lw
    >>> robot = lw.load("puma560")
    >>> law = lw.control.saturated(lw.control.pd(robot, 1000.0, 20.0, [0.5] * 6), limit=50.0)
    >>> law(0.0, [0.0] * 6, [0.0] * 6).tolist()
    [50.0, 50.0, 50.0, 50.0, 50.0, 50.0]
    """
    _a_controller("saturated", controller)
    if limit is None:
        inner = _innermost(controller)
        if not isinstance(inner, Law):
            raise TypeError(
                "saturated: limit is None, and a function of Python has no robot; expected "
                "limit=robot, or torques (nv)"
            )
        limit = inner.robot
    most = _real_array(limit.effort_limits if isinstance(limit, Robot) else limit)
    if most is None or not (most >= 0).all():
        raise ValueError(f"saturated: limit is {limit!r}; expected torques that are not negative")
    _refuse_sizes("saturated", "limit", most, controller)
    if isinstance(controller, Law):
        return _saturated_law(controller, most)
    change = _Saturation(most)
    if isinstance(controller, Remembering):
        return Remembering(controller, "saturated", change)
    return Saturated(controller, change)


def rate_limited(controller: Any, rate: ArrayLike) -> Remembering:
    """Limit how fast the torques of a controller change; the first ones are taken as they are.

    Args:
        controller: A law of `linkwise.control`, a function ``controller(t, q, qd) -> tau``, or a
            controller that is delayed, saturated or rate limited already.
        rate: Greatest change per second (nv), or one number, in N m/s or N/s.

    Returns:
        A controller for `simulate`, asked once per step, with a memory for each row.

    >>> import linkwise as lw
    >>> robot = lw.load("puma560")
    >>> law = lw.control.rate_limited(lw.control.pd(robot, 100.0, 20.0), 200.0)
    >>> motion = lw.simulate(robot, [0.1] * 6, controller=law, duration=0.1)
    >>> bool(abs(motion.tau[1:] - motion.tau[:-1]).max() <= 0.2 + 1e-9)
    True
    """
    _a_controller("rate_limited", controller)
    most = _real_array(rate)
    if most is None or not (most > 0).all():
        raise ValueError(f"rate_limited: rate is {rate!r}; expected positive numbers, N m/s")
    _refuse_sizes("rate_limited", "rate", most, controller)
    return Remembering(controller, "rate-limited", _RateLimit(most))


def delayed(controller: Any, delay: float) -> Remembering:
    """Delay the torques of a controller; until they arrive, the first ones act.

    Args:
        controller: A law of `linkwise.control`, a function ``controller(t, q, qd) -> tau``, or a
            controller that is delayed, saturated or rate limited already.
        delay: Seconds: a whole number of steps ``dt`` of the simulation.

    Returns:
        A controller for `simulate`, asked once per step, with a memory for each row.

    >>> import linkwise as lw
    >>> robot = lw.load("puma560")
    >>> law = lw.control.delayed(lw.control.pd(robot, 100.0, 20.0), 0.005)
    >>> motion = lw.simulate(robot, [0.1] * 6, controller=law, duration=0.1, dt=1e-3)
    >>> bool((motion.tau[5] == motion.tau[0]).all())
    True
    """
    _a_controller("delayed", controller)
    number = isinstance(delay, int | float | np.floating | np.integer)
    if not number or isinstance(delay, bool) or not 0 <= delay < LONGEST:
        raise ValueError(f"delayed: delay is {delay!r}; expected seconds, 0 to {LONGEST:.0e}")
    return Remembering(controller, "delayed", _Delay(float(delay)))


def _a_controller(function: str, controller: Any) -> None:
    if not callable(controller):
        raise TypeError(
            f"{function}: controller is a {type(controller).__name__}; expected a law of "
            "linkwise.control, or a function controller(t, q, qd) -> tau"
        )


def _innermost(controller: Any) -> Any:
    """The law or function that a controller was made of."""
    return controller.innermost if isinstance(controller, Remembering) else controller


def _real_array(value: Any) -> Array | None:
    """Real numbers as an array; None for anything else."""
    try:
        array = np.array(value)
    except ValueError:  # lists of several lengths
        return None
    return array if array.dtype.kind in "iuf" else None


def _refuse_sizes(function: str, name: str, most: Array, controller: Any) -> None:
    """Raise unless there is one number, or one for each degree of freedom of a law's robot."""
    inner = _innermost(controller)
    if isinstance(inner, Law) and most.ndim and most.shape[-1] != inner.robot.nv:
        raise ValueError(
            f"{function}: {name} has shape {most.shape}; expected a number or an array "
            f"({inner.robot.nv}) for robot {inner.robot.name!r}"
        )


def _torques(function: str, name: str, most: Array, tau: Any) -> Array:
    """Torques of a controller as an array that limits can be applied to."""
    array = _real_array(tau)
    if array is None:
        raise ValueError(
            f"{function}: the controller returned {type(tau).__name__}; expected torques "
            "(..., nv), real numbers"
        )
    if most.ndim and array.ndim and array.shape[-1] != most.shape[-1]:
        raise ValueError(
            f"{function}: {name} has shape {most.shape}, and the controller returned torques of "
            f"shape {array.shape}; expected a number, or one for each degree of freedom"
        )
    return array


def _saturated_law(law: Law, most: Array) -> Law:
    """The law within limits, as a law of one term."""
    size = law.robot.nv
    limit = read("saturated", "limit", size, np.broadcast_to(most, _wide(most, size)))
    forms = law.forms
    parts = [
        Numbered(f"{k}.{x.name}", x.values, x.per_step)
        for k, term in enumerate(law.terms)
        for x in term.inputs
    ]
    finite = Numbered("limit", np.minimum(limit.astype(np.float64), UNLIMITED), False)
    return Law(law.robot, (Term(_clipped(forms, law.robot.tree), (*parts, finite)),))


class _Clipped(NamedTuple):
    """The equations of a saturated law."""

    forms: tuple[Form, ...]

    def torques(self, tree: Tree, numbers: Sequence[Vector], q: Vector, v: Vector) -> list[Scalar]:
        """On scalars of any kind."""
        *own, limit = numbers
        tau = law_torques(self.forms, tree, own, q, v)
        return [_clip(x, most) for x, most in zip(tau, limit, strict=True)]

    def called(
        self, robot: Robot, numbers: Sequence[Array], q: Array, v: Array, threads: Any
    ) -> Array:
        """By calls of the robot's functions."""
        *own, limit = numbers
        return np.clip(torques_by_calls(robot, self.forms, own, q, v, threads), -limit, limit)


def _clipped(forms: tuple[Form, ...], tree: Tree) -> Form:
    """The kind of term that a sum of terms within limits is."""
    sizes = [
        (f"{k}.{name}", size) for k, form in enumerate(forms) for name, size in form.sizes(tree)
    ]
    law, keys = _Clipped(forms), tuple(form.key for form in forms)
    inputs = (*sizes, ("limit", tree.nv))
    return Form("saturated", inputs, law.torques, content=keys, called=law.called)


def _clip(x: Scalar, most: Scalar) -> Scalar:
    above = select(-most - x, -most, x)  # NaN stays
    return select(above - most, most, above)


def _wide(x: Array, size: int) -> tuple[int, ...]:
    return x.shape if x.ndim and x.shape[-1] == size else (*x.shape[:-1], size)
