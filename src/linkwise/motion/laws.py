"""Laws of control: joint torques from the state, written over any scalar.

    constant               tau
    PD                     kp (target ⊖ q) + kd (rates - v)
    gravity compensation   g(q)
    computed torque        M (acceleration + kp (target ⊖ q) + kd (rates - v)) + C v + g
    operational space      of a frame's motion: ``operational.py``

With closed loops, gravity compensation and computed torque are the smallest torques that do the
same (closed_inverse.py). Passive joints u get no torque. Computed torque then linearises the other
joints a only (partial feedback linearisation [Spong 1994]): with τ = M a + C v + g,

    M_uu v̇_u = -(M_ua v̇_a + h_u),      τ_a = M_aa v̇_a + M_au v̇_u + h_a

A `Law` is a sum of such terms with their numbers. The numbers are inputs of compiled code, so that
other gains or targets compile nothing. They may be the same for all states, one for each state, or
one for each step as well (`PerStep`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.algorithms import functions_of, ldl
from linkwise.algorithms.configurations import difference
from linkwise.algorithms.reaction import reaction
from linkwise.engine import lazy
from linkwise.engine.arrays import read
from linkwise.engine.auto import in_loops
from linkwise.engine.calls import Calls
from linkwise.engine.compiled import CompiledFunction
from linkwise.engine.equations import Equations, straight_line
from linkwise.engine.quaternions import warn_of_norms
from linkwise.errors import ControlWarning, warn
from linkwise.model.tree import Tree
from linkwise.robot import Robot
from linkwise.spatial import Scalar, Vector
from linkwise.trace.program import CONFIGURATION, VELOCITY, Port, Slot
from linkwise.trace.tracer import Task, evaluate

Array = NDArray[Any]
# (tree, the term's numbers, q, v) -> torques
Torques = Callable[[Tree, Sequence[Vector], Vector, Vector], Sequence[Scalar]]


@dataclass(frozen=True)
class Form:
    """A kind of term: its name, the numbers it takes, and its equation."""

    name: str
    inputs: tuple[tuple[str, str | int], ...]  # (argument, its length or an attribute of a tree)
    torques: Torques = field(compare=False)
    # of a form whose torques are M a + C v + g: the accelerations a
    accelerations: Torques | None = field(default=None, compare=False)
    content: tuple[Any, ...] = ()  # what the code depends on besides the name
    # the same by functions of a robot of many links: (robot, numbers, q, v, threads) -> torques
    called: Callable[..., Array] | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[Any, ...]:
        """What kernels are kept by."""
        return (self.name, *self.content)

    def sizes(self, tree: Tree) -> list[tuple[str, int]]:
        """Its arguments, and how many numbers each has."""
        return [(name, x if isinstance(x, int) else getattr(tree, x)) for name, x in self.inputs]


@dataclass(frozen=True)
class PerStep:
    """Numbers (..., steps, n) for a law: step k of a simulation uses the k-th."""

    values: ArrayLike


class Numbered(NamedTuple):
    """The numbers of one input of a term: (..., size), or (..., steps, size)."""

    name: str
    values: Array
    per_step: bool

    @property
    def leading(self) -> tuple[int, ...]:
        """The batch axes."""
        return self.values.shape[: -2 if self.per_step else -1]

    def at(self, steps: Any) -> Array:
        """The numbers of a step, or of each of several steps in place of the axis of all."""
        if not self.per_step:
            return self.values if np.ndim(steps) == 0 else self.values[..., None, :]
        return self.values[..., np.minimum(steps, self.values.shape[-2] - 1), :]


class Term(NamedTuple):
    """A form with its numbers."""

    form: Form
    inputs: tuple[Numbered, ...]


@final
class Law:
    """A control law, made by the functions of `linkwise.control`; laws can be added.

    As a controller of `simulate` it is compiled into the simulation. ``law(t, q, qd)`` returns its
    torques (..., nv) in N m at states ``q`` (..., nq), ``qd`` (..., nv).
    """

    def __init__(self, robot: Robot, terms: tuple[Term, ...]) -> None:
        self.robot, self.terms = robot, terms
        self._function: CompiledFunction | None = None
        # the same with its numbers as float64, unless they differ from step to step
        self._usual: tuple[CompiledFunction, list[Array]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Law, (self.robot, self.terms)

    def __add__(self, other: object) -> Law:
        """Both laws at once."""
        if not isinstance(other, Law):
            raise TypeError(
                f"a law and a {type(other).__name__} cannot be added; expected two laws, made by "
                "functions of linkwise.control (of controllers with a memory, those inside: "
                "delayed(law + law, time))"
            )
        if other.robot.tree.digest != self.robot.tree.digest:
            raise ValueError(
                f"a law for robot {self.robot.name!r} and one for robot {other.robot.name!r} "
                "cannot be added; expected two laws for the same robot"
            )
        return Law(self.robot, self.terms + other.terms)

    def __radd__(self, other: object) -> Law:
        """The law itself, added to the 0 that `sum` begins with."""
        if isinstance(other, int) and other == 0:
            return self
        return self + other

    def __call__(self, t: Any, q: ArrayLike, qd: ArrayLike, step: Any = 0) -> Any:
        """Torques (..., nv) in states; numbers per step are those of ``step``."""
        if not (isinstance(step, int) and step >= 0):
            _check_steps(step)
        robot = self.robot
        if self._usual is not None and type(q) is type(qd) is np.ndarray and type(step) is int:
            function, numbers = self._usual
            if q.dtype == qd.dtype == np.float64:
                return function((q, qd, *numbers))
        if lazy.packages((q, qd)):
            values = [x.at(step) for x in self.inputs]
            return _function(robot._calls, self.forms)((q, qd, *values))
        q, qd = read("controller", "q", robot.nq, q), read("controller", "qd", robot.nv, qd)
        kind = np.result_type(q, qd)  # numbers of the controller do not widen it
        numbers = [x.at(step).astype(kind, copy=False) for x in self.inputs]
        if in_loops("inverse_dynamics", robot.tree):
            return torques_by_calls(robot, self.forms, numbers, q, qd)
        if self._function is None:
            self._function = _function(robot._calls, self.forms)
            if self.steps is None:
                wide = [x.values.astype(np.float64, copy=False) for x in self.inputs]
                self._usual = self._function, wide
        return self._function((q, qd, *numbers))

    @property
    def forms(self) -> tuple[Form, ...]:
        """Its terms without their numbers."""
        return tuple(term.form for term in self.terms)

    @property
    def inputs(self) -> tuple[Numbered, ...]:
        """The numbers of all its terms."""
        return tuple(x for term in self.terms for x in term.inputs)

    @property
    def steps(self) -> int | None:
        """How many steps it has numbers for; None: any number of them."""
        return min((x.values.shape[-2] for x in self.inputs if x.per_step), default=None)

    @property
    def depends_on_state(self) -> bool:
        """Whether its torques change within a step."""
        return any(term.form is not CONSTANT for term in self.terms)

    def __repr__(self) -> str:
        names = " + ".join(term.form.name for term in self.terms) or "zero"
        return f"<Law for {self.robot.name!r}: {names}>"


def _check_steps(step: Any) -> None:
    """Raise unless it is the number of a step, or an array of them."""
    try:
        steps = np.asarray(step)
    except ValueError:
        steps = np.empty(0, object)
    if steps.dtype.kind not in "iu":
        raise TypeError(f"law: step is {step!r}; expected a whole number of steps, from 0 on")
    if steps.size and steps.min() < 0:
        raise ValueError(f"law: step is {int(steps.min())}; expected 0 or more")


def ports_of(forms: Sequence[Form], tree: Tree) -> list[Port]:
    """The inputs of a law, each with a name of its own."""
    return [
        Port(f"law[{k}].{name}", size)
        for k, form in enumerate(forms)
        for name, size in form.sizes(tree)
    ]


def law_torques(
    forms: Sequence[Form], tree: Tree, numbers: Sequence[Vector], q: Vector, v: Vector
) -> list[Scalar]:
    """The sum of all terms: torques by degree of freedom."""
    total: list[Scalar] = [0.0] * tree.nv
    rest = list(numbers)
    for form in forms:
        own, rest = rest[: len(form.inputs)], rest[len(form.inputs) :]
        torques = form.torques(tree, own, q, v)
        total = [a + b for a, b in zip(total, torques, strict=True)]
    return total


def torques_by_calls(
    robot: Robot,
    forms: Sequence[Form],
    numbers: Sequence[Array],
    q: Array,
    v: Array,
    threads: int | None = None,
) -> Array:
    """The sum of all terms by functions of the robot, where code for each link would be long."""
    leading = np.broadcast_shapes(*(x.shape[:-1] for x in (q, v, *numbers)))
    total, rest = np.zeros((*leading, robot.nv), np.result_type(q, v)), list(numbers)
    for form in forms:
        own, rest = rest[: len(form.inputs)], rest[len(form.inputs) :]
        assert form.called is not None  # every form of `linkwise.control` has it
        total += form.called(robot, own, q, v, threads)
    return total


def _function(calls: Calls, forms: tuple[Form, ...]) -> CompiledFunction:
    equations = law_equations(calls.tasks.tree, forms)
    return calls.compiled(equations, calls.remade_by(_function, forms))


def law_equations(tree: Tree, forms: tuple[Form, ...]) -> Equations:
    """The torques of a controller as a function of states and its numbers."""
    state = (Port("q", tree.nq, kind=CONFIGURATION), Port("qd", tree.nv, kind=VELOCITY))
    ports = (*state, *ports_of(forms, tree))

    def trace(_graph: Any, inputs: list[Any]) -> list[Scalar]:
        q, v, *numbers = inputs
        return law_torques(forms, tree, numbers, q, v)

    key = tuple(form.key for form in forms)
    return straight_line("controller", key, ports, (Slot("result", (tree.nv,)),), trace)


# -- the terms ------------------------------------------------------------------------------------


def _task(function: str, tree: Tree) -> Task:
    """A function of the robot as it is: with closed loops, or of a tree."""
    return Task(next(iter(functions_of(tree)[function].values())))


def _of_motors(tree: Tree, torques: Sequence[Scalar]) -> list[Scalar]:
    """The torques of joints with motors, and 0 for the others."""
    return [0.0 if j in tree.passive else x for j, x in enumerate(torques)]


def _motors(tree: Tree, numbers: Sequence[Vector], q: Vector, v: Vector) -> list[Scalar]:
    """A PD law, where there are motors."""
    return _of_motors(tree, _pd(tree, numbers, q, v))


def _pd(tree: Tree, numbers: Sequence[Vector], q: Vector, v: Vector) -> list[Scalar]:
    kp, kd, target, rates = numbers
    errors = difference(tree, q, target)
    terms = zip(kp, errors, kd, rates, v, strict=True)
    return [a * e + b * (w - x) for a, e, b, w, x in terms]


def _gravity(tree: Tree, _numbers: Sequence[Vector], q: Vector, _v: Vector) -> list[Scalar]:
    found: list[Scalar]
    if tree.is_closed:  # `gravity_torque` is that of links and joints, which loops help to hold
        still = [0.0] * tree.nv
        found = evaluate(_task("inverse_dynamics", tree), tree, q, still, still)
    else:
        found = evaluate(_task("gravity_torque", tree), tree, q)
    return _of_motors(tree, found)


def _wanted(tree: Tree, numbers: Sequence[Vector], q: Vector, v: Vector) -> list[Scalar]:
    *gains, acceleration = numbers
    return [a + b for a, b in zip(acceleration, _pd(tree, gains, q, v), strict=True)]


def _computed(tree: Tree, numbers: Sequence[Vector], q: Vector, v: Vector) -> list[Scalar]:
    wanted, passive = _wanted(tree, numbers, q, v), tree.reacting
    if passive:
        wanted = [0.0 if j in passive else a for j, a in enumerate(wanted)]
        free = tree.opened()
        needed = evaluate(_task("inverse_dynamics", free), free, q, v, wanted)
        reacts = reaction(evaluate(_task("mass_matrix", free), free, q), passive)
        met = reacts.met(needed)  # -v̇_u
        if not tree.is_closed:
            return _of_motors(tree, [reacts.left(j, x, met) for j, x in enumerate(needed)])
        for j, x in zip(passive, met, strict=True):
            wanted[j] = -x
    return _of_motors(tree, evaluate(_task("inverse_dynamics", tree), tree, q, v, wanted))


def _pull_called(robot: Robot, numbers: Sequence[Array], q: Array, v: Array, threads: Any) -> Array:
    kp, kd, target, rates = numbers
    errors = robot.difference(q, target, threads=threads)
    return np.asarray(kp * errors + kd * (rates - v))


def _of_motors_called(robot: Robot, torques: Any) -> Array:
    """The torques of joints with motors, and 0 for the others."""
    passive = list(robot.tree.passive)
    found = np.array(torques) if passive else np.asarray(torques)
    found[..., passive] = 0.0
    return found


def _pd_called(robot: Robot, numbers: Sequence[Array], q: Array, v: Array, threads: Any) -> Array:
    return _of_motors_called(robot, _pull_called(robot, numbers, q, v, threads))


def _gravity_called(
    robot: Robot, _numbers: Sequence[Array], q: Array, _v: Array, threads: Any
) -> Array:
    if robot.tree.is_closed:
        still = np.zeros(robot.nv, q.dtype)
        return _of_motors_called(robot, robot.inverse_dynamics(q, still, still, threads=threads))
    return _of_motors_called(robot, robot.gravity_torque(q, threads=threads))


def computed_called(
    robot: Robot,
    numbers: Sequence[Array],
    q: Array,
    v: Array,
    threads: Any,
    f_ext: Mapping[str, Array] | None = None,
) -> Array:
    """Computed torques by calls, which make up for known wrenches."""
    *gains, acceleration = numbers
    wanted = acceleration + _pull_called(robot, gains, q, v, threads)
    passive = list(robot.tree.reacting)
    if passive:
        wanted[..., passive] = 0.0
        needed = robot.open.inverse_dynamics(q, v, wanted, f_ext=f_ext, threads=threads)
        units = np.eye(robot.nv, dtype=q.dtype)[passive]
        rows = robot.open.compute("mass_product", q[..., None, :], units, threads=threads)
        block = rows[..., passive].reshape(*q.shape[:-1], -1)
        solve = robot._calls.compiled(_reaction(len(passive)))
        met = solve([block, needed[..., passive]], threads=threads)
        if not robot.tree.is_closed:
            return _of_motors_called(robot, needed - (met[..., None] * rows).sum(-2))
        wanted[..., passive] = -met
    found = robot.inverse_dynamics(q, v, wanted, f_ext=f_ext, threads=threads)
    return _of_motors_called(robot, found)


def _reaction(n: int) -> Equations:
    """``M⁻¹ x`` of n passive degrees of freedom, as a function of M by rows and x."""

    def trace(_graph: Any, inputs: list[Any]) -> list[Scalar]:
        M, x = inputs
        rows = [M[n * k : n * k + n] for k in range(n)]
        return ldl.solve(ldl.factor(rows, [row[k] for k, row in enumerate(rows)]), x)

    ports = (Port("M", n * n), Port("x", n))
    return straight_line("reaction", (n,), ports, (Slot("result", (n,)),), trace)


def _constant_called(
    _robot: Robot, numbers: Sequence[Array], _q: Array, _v: Array, _threads: Any
) -> Array:
    return numbers[0]


_GAINS = (("kp", "nv"), ("kd", "nv"), ("target", "nq"), ("rates", "nv"))
CONSTANT = Form("constant", (("tau", "nv"),), lambda _tree, numbers, _q, _v: numbers[0],
                called=_constant_called)  # fmt: skip
PD = Form("pd", _GAINS, _motors, called=_pd_called)
GRAVITY = Form("gravity compensation", (), _gravity, called=_gravity_called)
COMPUTED = Form("computed torque", (*_GAINS, ("acceleration", "nv")), _computed, _wanted,
                called=computed_called)  # fmt: skip


# -- public: functions of linkwise.control --------------------------------------------------------


def zero(robot: Robot) -> Law:
    """No torques."""
    return Law(a_robot("zero", robot), ())


def constant(robot: Robot, tau: ArrayLike | PerStep) -> Law:
    """Given torques (..., nv) in N m, the same at all times.

    ``PerStep(tau)`` (..., steps, nv) plays torques back, one row in each step.
    """
    return law_of("constant", robot, CONSTANT, tau)


def gravity_compensation(robot: Robot) -> Law:
    """The torques of `Robot.gravity_torque`, which hold the robot still; none on joints without a
    motor (`Robot.actuated`), such as a floating base.

    They hold the joints only while something holds the base. In free fall joints without torques
    stay still, and these torques move them; `computed_torque` takes the fall into account.

    With closed loops, the smallest torques that do.
    """
    return law_of("gravity_compensation", robot, GRAVITY)


def pd(
    robot: Robot,
    kp: ArrayLike | PerStep,
    kd: ArrayLike | PerStep,
    target: ArrayLike | PerStep | None = None,
    rates: ArrayLike | PerStep = 0.0,
) -> Law:
    """Proportional-derivative control: ``kp (target - q) + kd (rates - qd)``, in N m.

    Gains are one number, or one for each degree of freedom (..., nv), in N m/rad and N m s/rad;
    ``target`` (..., nq) is the neutral configuration unless given, ``rates`` (..., nv) are zero.
    `PerStep` of any of them follows a path. Quaternions are subtracted as `Robot.difference` does.
    Joints without a motor (`Robot.actuated`), such as a floating base, get no torque.

    >>> import linkwise as lw
    >>> robot = lw.load("puma560")
    >>> law = lw.control.pd(robot, 100.0, 20.0) + lw.control.gravity_compensation(robot)
    >>> motion = lw.simulate(robot, [0.1] * 6, controller=law, duration=0.1)
    """
    return law_of("pd", robot, PD, kp, kd, _target(robot, target), rates)


def computed_torque(
    robot: Robot,
    kp: ArrayLike | PerStep,
    kd: ArrayLike | PerStep,
    target: ArrayLike | PerStep | None = None,
    rates: ArrayLike | PerStep = 0.0,
    acceleration: ArrayLike | PerStep = 0.0,
) -> Law:
    """Computed torque: the joints accelerate by ``acceleration`` and a `pd` term.

    ``M (acceleration + kp (target - q) + kd (rates - qd)) + C qd + g``: the error then obeys ``ë +
    kd ė + kp e = 0``, gains in 1/s² and 1/s. Arguments as for `pd`.

    Joints without a motor (`Robot.actuated`), such as a floating base, get no torque: the others
    have the accelerations asked for, and these react (partial feedback linearisation). A grasp on
    whose floating bases contact forces act is refused, unless all contacts are on one robot and its
    link carries the object.

    With closed loops, the smallest torques that do the same, as `Robot.inverse_dynamics` gives
    them: accelerations that the loops do not allow become the nearest ones that they do, in the
    sense of kinetic energy.
    """
    _refuse_bases_in_contact("computed_torque", a_robot("computed_torque", robot))
    target = _target(robot, target)
    return law_of("computed_torque", robot, COMPUTED, kp, kd, target, rates, acceleration)


def _refuse_bases_in_contact(function: str, robot: Robot) -> None:
    """Raise where contact forces on an object act on a floating base: how it reacts depends on
    them, and they on the torques.
    """
    tree = robot.tree
    if tree.held is None:
        return
    reacting, bases = set(tree.reacting), set(tree.passive) & set(tree.free_dofs)
    if tree.held.carrier is None:
        bases -= set(range(tree.nv - 6, tree.nv))  # of the object
    if bases - reacting:
        first = min(bases - reacting)
        joint = next(x.joint_name for x in tree.links if first in dict(x.dofs))
        raise ValueError(
            f"{function}: contact forces move the floating base {joint!r} of {robot.name!r}, and "
            "how it reacts is not known before them; expected linkwise.control.pd, arms on fixed "
            "bases, or all contacts on one robot, the first rigid, without object_state=True"
        )


def _target(robot: Any, target: Any) -> Any:
    return robot.neutral() if target is None and isinstance(robot, Robot) else target


def a_robot(function: str, robot: Any) -> Robot:
    """The robot; raises TypeError for anything else."""
    if not isinstance(robot, Robot):
        raise TypeError(f"{function}: robot is a {type(robot).__name__}; expected a Robot")
    return robot


def law_of(function: str, robot: Any, form: Form, *values: Any) -> Law:
    """A law of one term, from the arguments of a public function."""
    sizes = form.sizes(a_robot(function, robot).tree)
    named = zip(sizes, values, strict=True)
    read_ = [numbers_of(function, name, size, x) for (name, size), x in named]
    for x in read_:
        if x.name == "target":
            warn_of_norms(robot.tree, function, "target", x.values)
        elif x.name in ("kp", "kd"):
            warn_of_negative(function, x)
    return Law(robot, (Term(form, tuple(read_)),))


def warn_of_negative(function: str, gain: Numbered) -> None:
    """Warn of a gain below zero, which drives joints away from their target."""
    if (gain.values < 0.0).any():
        least = float(gain.values.min())
        warn(
            ControlWarning,
            f"{function}: {gain.name} has numbers below zero, the least {least:g}: errors grow; "
            "expected zero or more",
        )


def numbers_of(function: str, name: str, size: int, value: Any) -> Numbered:
    """An argument of a law as an array; one number stands for all degrees of freedom."""
    per_step = isinstance(value, PerStep)
    given = value.values if isinstance(value, PerStep) else value
    if np.ndim(given) == 0 and name != "target":
        array = np.asarray(given)
        if array.dtype.kind not in "iuf":
            raise TypeError(
                f"{function}: {name} is {given!r}; expected a number or an array (..., {size})"
            )
        given = np.full(size, given, np.float64)
    array = read(function, name, size, given)
    if per_step and array.ndim < 2:
        raise ValueError(
            f"{function}: {name} per step has shape {array.shape}; expected (..., steps, {size})"
        )
    if per_step and not array.shape[-2]:
        raise ValueError(f"{function}: {name} per step has no step; expected at least one")
    return Numbered(name, np.array(array, order="C"), per_step)  # the caller's may change
