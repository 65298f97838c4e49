"""The arguments of a simulation, each checked, with errors that help."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.backends.base import Backend
from linkwise.backends.choice import cpu, gpu
from linkwise.engine import devices
from linkwise.engine.arrays import broadcast, check_count, read, wrenches
from linkwise.engine.build import free_memory
from linkwise.engine.quaternions import warn_of_norms
from linkwise.engine.tasks import Key
from linkwise.errors import meant
from linkwise.model.parameters import Parameter
from linkwise.model.tree import Tree
from linkwise.motion.actuators import Remembering
from linkwise.motion.constants import read_parameters
from linkwise.motion.integrators import INTEGRATORS, PROJECT
from linkwise.motion.laws import CONSTANT, Law, Numbered, PerStep, Term, zero
from linkwise.motion.limits import Limits, read_limits
from linkwise.robot import Robot
from linkwise.trace.tracer import Task

Array = NDArray[Any]
Controller = Callable[[float, Array, Array], ArrayLike]  # (t, q, qd) -> tau
ASKED_IN_PYTHON = ("rk4", "euler")  # methods whose steps can be taken in Python
ONE_STEP, MULTISTEP = ("DOP853", "RK45", "RK23", "Radau"), ("BDF", "LSODA")
SOLVERS = (*ONE_STEP, *MULTISTEP)  # of SciPy
RTOL, ATOL = 1e-9, 1e-9  # of them, unless told
LITTLE = 1 << 26  # bytes that are there in any case
OPEN = 1e-6  # m, rad, and per second: by how much loops may miss being closed at the start
MOST_STEPS = 1e12  # of a simulation: years of computing
LARGEST = sys.float_info.max
UNEVEN = 1e-6  # steps by which a duration may miss a whole number of them


@dataclass(frozen=True)
class Setup:
    """A simulation with every argument checked; rows of states (batch, n)."""

    robot: Robot
    q: Array
    qd: Array
    leading: tuple[int, ...]  # axes of the batch
    law: Law
    controller: Controller | None  # a function of Python, asked once per step
    dt: float
    steps: int
    every: int | None
    integrator: str
    hold: bool
    f_ext: tuple[tuple[str, Array], ...]
    limits: Limits
    dynamics: Task  # forward dynamics, with the frames of the wrenches
    machine: Backend  # that the steps are taken on
    drift: str | float | None = None  # what is done about that of closed loops
    rtol: float = RTOL  # of adaptive solvers
    atol: float = ATOL
    # of a robot with parameters: the numbers (batch, size) of each, where any is given
    parameters: tuple[tuple[Parameter, Array], ...] = ()

    @property
    def adaptive(self) -> bool:
        """Whether a solver of SciPy chooses the steps."""
        return self.integrator in SOLVERS

    @cached_property
    def stepped(self) -> bool:
        """Whether Python takes the steps, because they cannot be one kernel."""
        if self.adaptive:
            return False
        method = INTEGRATORS[self.integrator]
        asked = self.controller is not None and not self.hold and len(method.phases) > 1
        return asked or self.dynamics.rolled

    @cached_property
    def law_tree(self) -> Tree | None:
        """The law's model of the robot, if it is another than the robot itself."""
        tree = self.law.robot.tree
        return None if tree.digest == self.robot.tree.digest else tree

    @cached_property
    def dtype(self) -> str:
        """Number type of the states."""
        return self.q.dtype.name

    @property
    def samples(self) -> int:
        """How many states are kept of each row: the length of `sampled`, which may be huge."""
        return 1 if self.every is None else -(-self.steps // self.every) + 1

    @cached_property
    def sampled(self) -> Array:
        """The steps at which the state is kept."""
        if self.every is None:
            return np.array([self.steps])
        at = np.arange(0, self.steps + 1, self.every)
        return at if at[-1] == self.steps else np.append(at, self.steps)


def prepare(
    robot: Any,
    q0: Any,
    qd0: Any,
    controller: Any,
    duration: Any,
    dt: Any,
    integrator: Any,
    every: Any,
    hold: Any,
    f_ext: Any,
    limits: Any,
    rtol: Any,
    atol: Any,
    device: Any,
    drift: Any = PROJECT,
    parameters: Any = None,
) -> Setup:
    """Check every argument."""
    _refuse_choices(robot, integrator, every, hold)
    steps = _steps(duration, dt)
    law, function = _controller(robot, controller, steps, float(dt), bool(hold))
    constants = read_parameters(robot, parameters)
    start = _start(robot, q0, qd0, f_ext, law, constants)
    number = None if device is None else devices.number(device)
    machine = cpu() if number is None else gpu(number)
    key = Key("forward_dynamics", external=tuple(name for name, _ in start.f_ext))
    task = robot._calls.tasks.task(key, start.q.dtype.name, machine.kind)
    if task.rolled:
        _refuse_with_loops(robot, integrator, None if number is None else device)
    made = Setup(
        robot, start.q, start.qd, start.leading, law, function, float(dt), steps,
        None if every is None else int(every), integrator, bool(hold), start.f_ext,
        read_limits(robot, limits), task, machine, _drift(robot, integrator, drift),
        *_tolerances(integrator, rtol, atol),
        tuple(zip(task.parameters, start.parameters, strict=True)) if constants else (),
    )  # fmt: skip
    _refuse_open_loops(made)
    warn_of_norms(robot.tree, "simulate", "q0", made.q.reshape(*made.leading, robot.nq))
    _refuse_too_large(made)
    _refuse_steps_in_python(made)
    _refuse_solver(made)
    robot._warn_of_friction("simulate: ")
    if number is not None:
        _refuse_device(made, device)
    return made


def _refuse_choices(robot: Any, integrator: Any, every: Any, hold: Any) -> None:
    """Raise for a robot, method or option that is none."""
    if not isinstance(robot, Robot):
        raise TypeError(f"simulate: robot is a {type(robot).__name__}; expected a Robot")
    if not isinstance(integrator, str) or integrator not in (*INTEGRATORS, *SOLVERS):
        known = ", ".join(map(repr, (*INTEGRATORS, *SOLVERS)))
        hint = meant(integrator, (*INTEGRATORS, *SOLVERS), 1)
        raise ValueError(f"simulate: integrator {integrator!r}; expected one of {known}{hint}")
    if not isinstance(hold, bool | np.bool_):
        raise ValueError(f"simulate: hold is {hold!r}; expected True or False")
    check_count("simulate: every", every)


class Start(NamedTuple):
    """States to begin with, and wrenches, as rows of one number type."""

    q: Array
    qd: Array
    f_ext: tuple[tuple[str, Array], ...]
    leading: tuple[int, ...]  # axes of the batch
    parameters: tuple[Array, ...]


def _start(
    robot: Robot, q0: Any, qd0: Any, f_ext: Any, law: Law, constants: dict[str, Array]
) -> Start:
    """The states, the wrenches and the numbers of the law share their leading axes."""
    frames, forces = wrenches(f_ext)
    for name, wrench in zip(frames, forces, strict=True):
        if isinstance(wrench, PerStep):
            raise TypeError(
                f"simulate: f_ext[{name!r}] is a PerStep; expected a wrench (..., 6) that is "
                "constant over the simulation. A wrench that changes: one simulation for each "
                "stretch of time, each from the last state of the one before"
            )
    q = read("simulate", "q0", robot.nq, q0)
    qd = np.zeros(robot.nv, q.dtype) if qd0 is None else read("simulate", "qd0", robot.nv, qd0)
    pushes = [read("simulate", f"f_ext[{n!r}]", 6, x) for n, x in zip(frames, forces, strict=True)]
    dtype = np.result_type(q, qd)
    given = [("q0", q.shape), ("qd0", qd.shape)]
    given += [(f"f_ext[{name!r}]", x.shape) for name, x in zip(frames, pushes, strict=True)]
    given += [(name, x.shape) for name, x in constants.items()]
    given += [(f"controller: {x.name}", (*x.leading, x.values.shape[-1])) for x in law.inputs]
    named = [(name, shape[-1]) for name, shape in given]
    leading = broadcast("simulate", named, [shape for _, shape in given])

    def rows(x: Array) -> Array:
        own = np.array(x, dtype, order="C")  # the caller's array may change afterwards
        wide = np.broadcast_to(own, (*leading, x.shape[-1]))
        return wide.reshape(prod(leading), x.shape[-1])

    forced = tuple((name, rows(x)) for name, x in zip(frames, pushes, strict=True))
    return Start(rows(q), rows(qd), forced, leading, tuple(map(rows, constants.values())))


def _refuse_device(setup: Setup, device: Any) -> None:
    """Raise where a simulation that cannot be one kernel is asked for on a GPU."""
    if setup.stepped or setup.adaptive:
        raise ValueError(
            f"simulate: device {device!r} is for simulations that are one kernel; expected a "
            "method of fixed steps, hold=True or a law of linkwise.control, and few links"
        )


def _drift(robot: Robot, integrator: str, drift: Any) -> str | float | None:
    """What is done about the drift of closed loops."""
    number = isinstance(drift, int | float | np.floating) and not isinstance(drift, bool)
    word = drift is None or (isinstance(drift, str) and drift == PROJECT)
    if not (word or (number and 0 < drift <= LARGEST)):
        raise ValueError(
            f"simulate: drift is {drift!r}; expected {PROJECT!r}, a time constant in seconds for "
            "Baumgarte's stabilisation, or None"
        )
    if not robot.loops:
        return None
    if integrator not in (*ASKED_IN_PYTHON, *SOLVERS):
        names = ", ".join(map(repr, (*ASKED_IN_PYTHON, *SOLVERS)))
        raise ValueError(
            f"simulate: integrator {integrator!r} is for robots without closed loops, and "
            f"{robot.name!r} has {len(robot.loops)}; expected one of {names}"
        )
    if drift == PROJECT and integrator in MULTISTEP:
        raise ValueError(
            f"simulate: drift is 'project', and integrator {integrator!r} goes on from several "
            "states, not from a projected one; expected drift=None, a time constant in seconds, or "
            f"an integrator of single steps ({', '.join(map(repr, ONE_STEP))})"
        )
    return PROJECT if drift == PROJECT else None if drift is None else float(drift)


def _refuse_open_loops(setup: Setup) -> None:
    """Raise where a loop is not closed at the start."""
    robot = setup.robot
    if not robot.loops or not len(setup.q):
        return
    robot._refuse_unplaced("simulate")
    numbers: dict[str, Any] = {
        x.name: v.reshape(-1, *x.shape(robot.tree)) for x, v in setup.parameters
    }
    position, velocity = (np.abs(x) for x in robot.residual(setup.q, setup.qd, **numbers))
    for moving, off, unit in ((False, position, "m or rad"), (True, velocity, "m/s or rad/s")):
        off = np.where(np.isfinite(off), off, 0.0)  # rows that are NaN are told by their status
        if off.max() > OPEN:
            row, column = np.unravel_index(int(off.argmax()), off.shape)
            name = robot.tree.loop_of_row(int(column))
            of_row = f" of row {row}" if setup.leading else ""
            error = f"{'comes apart at' if moving else 'is open by'} {off.max():.3g} {unit}"
            raise ValueError(
                f"simulate: the state{of_row} does not respect {name}, which {error}; "
                "expected a state that does, such as q, qd = robot.project(q, qd)"
            )


def _steps(duration: Any, dt: Any) -> int:
    """How many steps make a duration."""
    for name, x in (("duration", duration), ("dt", dt)):
        number = isinstance(x, int | float | np.integer | np.floating) and not isinstance(x, bool)
        if not number or not 0 < x <= LARGEST:
            raise ValueError(f"simulate: {name} is {x!r}; expected a positive number of seconds")
    if float(duration) / float(dt) > MOST_STEPS:
        raise ValueError(
            f"simulate: duration {duration} is {float(duration) / float(dt):.3g} steps of {dt}; "
            f"expected at most {MOST_STEPS:.0e} steps: a shorter duration, or a larger dt"
        )
    steps: int = round(float(duration / dt))
    if steps < 1 or abs(duration / dt - steps) > UNEVEN * max(1.0, steps * 1e-6):
        whole = max(steps, 1)
        raise ValueError(
            f"simulate: duration {duration} is {duration / dt:.6g} steps of {dt}; expected a whole "
            f"number of steps, such as dt={duration / whole:.9g} or duration={whole * dt:.9g}"
        )
    return steps


def _check_arguments(controller: Any) -> None:
    """Raise TypeError for a controller that cannot be called with t, q and qd."""
    try:
        signature = inspect.signature(controller)
    except (TypeError, ValueError):  # of compiled functions it is not known
        return
    try:
        signature.bind(0.0, None, None)
    except TypeError:
        name = getattr(controller, "__name__", type(controller).__name__)
        raise TypeError(
            f"simulate: controller is {name}{signature}; expected a function of three arguments, "
            "controller(t, q, qd) -> tau"
        ) from None


def _controller(
    robot: Robot, controller: Any, steps: int, dt: float, hold: bool
) -> tuple[Law, Any]:
    """The law that is compiled, and the function of Python that is asked, where there is one."""
    if controller is None:
        return zero(robot), None
    inner = controller.innermost if isinstance(controller, Remembering) else controller
    if isinstance(inner, Law):
        _refuse_other_joints(robot, inner.robot)
        if inner.steps is not None and inner.steps < steps:
            raise ValueError(
                f"simulate: the controller has numbers for {inner.steps} steps; expected at "
                f"least {steps}, as duration and dt ask for"
            )
    if isinstance(controller, Law):
        return controller, None
    if not callable(controller):
        raise TypeError(
            f"simulate: controller is a {type(controller).__name__}; expected a law of "
            "linkwise.control, or a function controller(t, q, qd) -> tau"
        )
    if not isinstance(inner, Law):
        _check_arguments(inner)
    if isinstance(controller, Remembering):
        if not hold:
            raise ValueError(
                f"simulate: hold=False, and the controller is {controller.name}: it remembers one "
                "torque per step; expected hold=True"
            )
        controller = controller.begun(dt)
    given = Numbered("tau", np.zeros(robot.nv), False)
    return Law(robot, (Term(CONSTANT, (given,)),)), controller


def _refuse_other_joints(robot: Robot, modelled: Robot) -> None:
    """Raise unless a law's model of the robot has the joints of the robot."""
    if modelled.tree.digest == robot.tree.digest:
        return
    own, other = (
        [(x.joint_name, x.joint.nq, x.joint.nv) for x in tree.links if x.follows is None]
        for tree in (robot.tree, modelled.tree)
    )
    if own != other:
        pairs = zip_longest((x[0] for x in own), (x[0] for x in other))
        k, names = next(((k, pair) for k, pair in enumerate(pairs) if pair[0] != pair[1]), (0, ()))
        said = f"joint {k} is {names[0]!r} and {names[1]!r}" if names else "kinds of joints differ"
        raise ValueError(
            f"simulate: the controller was made for robot {modelled.name!r}, whose joints are not "
            f"those of {robot.name!r}: {said}; expected a law for a robot with the same joints in "
            "the same order, of any inertias, geometry, gravity and loops"
        )


def _tolerances(integrator: str, rtol: Any, atol: Any) -> tuple[float, float]:
    """Of an adaptive solver; a method of fixed steps has none."""
    for name, x in (("rtol", rtol), ("atol", atol)):
        number = isinstance(x, int | float | np.integer | np.floating) and not isinstance(x, bool)
        if x is not None and integrator not in SOLVERS:
            raise ValueError(
                f"simulate: {name} is {x!r}, and integrator {integrator!r} takes steps of dt; "
                f"expected {name}=None, or one of {', '.join(map(repr, SOLVERS))}"
            )
        if x is not None and not (number and 0 < x <= LARGEST):
            raise ValueError(f"simulate: {name} is {x!r}; expected a positive number")
    return float(RTOL if rtol is None else rtol), float(ATOL if atol is None else atol)


def _refuse_solver(setup: Setup) -> None:
    """Raise where SciPy, which solves each row on its own, is missing or does not apply."""
    if not setup.adaptive:
        return
    try:
        import scipy.integrate  # noqa: F401
    except ImportError:
        raise ImportError(
            f"simulate: integrator {setup.integrator!r} needs SciPy: pip install 'linkwise[ode]'"
        ) from None
    if setup.controller is not None and not setup.hold and setup.leading:
        raise ValueError(
            f"simulate: integrator {setup.integrator!r} takes each row at times of its own, and a "
            "function of Python is asked for the whole batch; expected one state, hold=True, or a "
            "law of linkwise.control"
        )


def _refuse_with_loops(robot: Robot, integrator: str, device: Any) -> None:
    """Raise for what only one kernel can, where the robot's functions are loops over its links."""
    wrong = None
    if integrator not in ASKED_IN_PYTHON:
        wrong = f"integrator {integrator!r} is"
    elif device is not None:
        wrong = f"device {device!r} is"
    if wrong is not None:
        raise ValueError(
            f"simulate: robot {robot.name!r} has so many links that its functions are loops over "
            f"them, and {wrong} for code written out link by link; expected integrator 'rk4' or "
            "'euler', and device=None; or, of a robot of few links, "
            "robot.with_codegen('unrolled')"
        )


def _refuse_steps_in_python(setup: Setup) -> None:
    """Raise where a function of Python would have to be asked within a step, and cannot be."""
    if setup.integrator == "implicit" and any(x.name == "friction" for x, _ in setup.parameters):
        raise ValueError(
            "simulate: integrator 'implicit' takes friction from the robot, not from parameters; "
            "expected 'rk4', 'euler' or 'midpoint'"
        )
    if not setup.stepped:
        return
    why = "hold=False asks a function of Python at every stage"
    if setup.integrator not in ASKED_IN_PYTHON:
        raise ValueError(
            f"simulate: {why}, which integrator {setup.integrator!r} cannot; expected 'rk4' or "
            "'euler', or else hold=True or a law of linkwise.control"
        )


def _refuse_too_large(setup: Setup) -> None:
    """Raise MemoryError where the states to keep would take over half of the free memory."""
    robot, rows = setup.robot, len(setup.q)
    extra = robot.nv if setup.controller else 0
    each = rows * (robot.nq + robot.nv + extra) * setup.q.dtype.itemsize
    needed = each * setup.samples
    if setup.every is None or needed < LITTLE:
        return
    half = free_memory() // 2
    if needed > half:
        least = -(-setup.steps // max(half // each - 2, 1))
        raise MemoryError(
            f"simulate: {setup.samples:,} states of {rows:,} rows take {needed / 2**30:,.1f} "
            f"GiB, and half of the free memory is {half / 2**30:,.1f} GiB; expected "
            f"every={least:,} or more, or every=None for the end only"
        )
