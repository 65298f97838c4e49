"""What is differentiated by what: names and options, checked, and what calls take and return."""

from __future__ import annotations

import difflib
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import NamedTuple

from linkwise.algorithms import functions_of
from linkwise.engine.calls import TITLES
from linkwise.engine.tasks import Key, Tasks
from linkwise.model.parameters import KINDS
from linkwise.trace.diff import Mode
from linkwise.trace.program import Port
from linkwise.trace.tangents import Configurations, Numbers, Poses, Space
from linkwise.trace.tracer import Task

EXTERNAL = "f_ext"
MODES = ("auto", "forward", "reverse")
JACOBIAN, GRADIENT, CURVATURE = "jacobian", "gradient", "curvature"  # of `Robot.derivative`
JVP, VJP, HVP = "jvp", "vjp", "hvp"  # products
WEIGHTS = {GRADIENT: "weights", CURVATURE: "weights", VJP: "cotangent", HVP: "cotangent"}

# why there is no derivative, and what has one
REFUSED = {
    "project": "steps of an iteration are not differentiated; changes dq that keep closed loops "
    "closed are those for which robot.jvp('residual', (q, qd), (dq, None)) is zero",
    "inverse_kinematics": "is a search; near a solution q changes by the inverse of "
    "robot.jacobian times the motion of the target",
    "innovations": "returns factors; expected 'mass_matrix' or 'mass_matrix_inverse'",
    "kic": "returns two results; expected 'jacobian' or 'kinematic_hessian'",
    "operational_dynamics": "returns two results; expected 'forward_dynamics' or "
    "'operational_inertia_inverse'",
}


class Asked(NamedTuple):
    """What is asked for."""

    key: Key
    wrt: tuple[str, ...] | None = None  # None: every argument
    kind: str = JACOBIAN
    mode: Mode = "auto"
    value: bool = False  # also everything of lower order


class Part(NamedTuple):
    """One part of what is returned, and its shape for one state."""

    name: str
    shape: tuple[int, ...]
    size: int


class Plan:
    """A function of one robot, the arguments that it is differentiated by, and what is returned."""

    def __init__(self, tasks: Tasks, asked: Asked) -> None:
        self.asked, self.tree, self.robot = asked, tasks.tree, tasks.name
        self.task = _task(tasks, asked)
        self.ports = self.task.ports(self.tree)
        # the argument that each port belongs to: wrenches of all frames are one
        self.owners = [x.name.split("[")[0] for x in self.ports]
        self.inputs = [name for name, _ in self.task.algorithm.inputs]
        self.wrt = tuple(self.inputs if asked.wrt is None else asked.wrt)
        for name in self.wrt:
            self._check_argument(name)

    @cached_property
    def title(self) -> str:
        """What messages call it."""
        word = self.asked.kind if self.asked.kind in (JVP, VJP, HVP) else "derivative"
        function = self.asked.key.function
        return f"{word} of {TITLES.get(function, function)}"

    def _check_argument(self, name: str) -> None:
        """Raise ValueError where there is no such argument, and say how to get it."""
        if name in self.owners:
            return
        algorithm, known = self.task.algorithm, list(dict.fromkeys(self.owners))
        near = difflib.get_close_matches(str(name), known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        if name == EXTERNAL and algorithm.takes_external:
            hint = "; name the frames that wrenches act on, f_ext=['tool'], and it has them"
        elif name == "damping" and algorithm.takes_damping:
            hint = "; damped=True makes it one"
        elif name in KINDS:
            hint = f"; robot.parametric({name!r}) makes it one"
        raise ValueError(
            f"{self.title}: {name!r} is no argument of it, which takes {', '.join(known)}{hint}"
        )

    def space(self, k: int) -> Space:
        """How the numbers of a port change."""
        inputs = self.task.algorithm.inputs
        if k < len(inputs) and inputs[k][1] == "nq":
            return Configurations(self.tree)
        return Numbers((self.ports[k].size,))

    @cached_property
    def result(self) -> Space:
        """How the result changes."""
        algorithm, shape = self.task.algorithm, self.task.algorithm.output_shape(self.tree)
        if algorithm.function in ("forward_kinematics", "link_poses"):
            return Poses(shape[:-2])
        if algorithm.output == ("nq",):
            return Configurations(self.tree)
        return Numbers(shape)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Of the rates of an argument."""
        if name == EXTERNAL:
            return (len(self.task.external), 6)
        for each in self.task.parameters:
            if each.name == name:
                return each.shape(self.tree)
        return self.space(self.owners.index(name)).shape

    @cached_property
    def chosen(self) -> list[int]:
        """The ports of the arguments, in their order."""
        return [k for name in self.wrt for k, own in enumerate(self.owners) if own == name]

    @cached_property
    def spans(self) -> list[range]:
        """The places of each argument's rates among those of all."""
        ends = list(accumulate(prod(self.shape_of(name)) for name in self.wrt))
        return [range(a, b) for a, b in zip([0, *ends], ends, strict=False)]

    @cached_property
    def more(self) -> tuple[Port, ...]:
        """What calls are given besides the function's own arguments: weights, then rates."""
        weights, moved = WEIGHTS.get(self.asked.kind), self.wrt
        given = [Port(weights, self.result.size)] if weights else []
        if self.asked.kind not in (JVP, HVP):
            return tuple(given)
        return (*given, *(Port(f"tangents[{x!r}]", prod(self.shape_of(x))) for x in moved))

    @cached_property
    def parts(self) -> list[Part]:
        """What is returned, one after another: lower orders first."""
        kind, result = self.asked.kind, self.result.shape
        shapes = {name: self.shape_of(name) for name in self.wrt}
        value = ("value", self.task.algorithm.output_shape(self.tree))
        gradient = list(shapes.items())
        if kind == JACOBIAN:
            own = [(name, result + shape) for name, shape in gradient]
        elif kind == CURVATURE:
            own = [(f"{a} {b}", shapes[a] + shapes[b]) for a in shapes for b in shapes]
        else:
            own = [("result", result)] if kind == JVP else gradient
        lower = [value, *(gradient if kind in (CURVATURE, HVP) else [])]
        named = [*(lower if self.asked.value else []), *own]
        return [Part(name, shape, prod(shape)) for name, shape in named]

    @cached_property
    def size(self) -> int:
        """Numbers of all parts."""
        return sum(part.size for part in self.parts)


def _task(tasks: Tasks, asked: Asked) -> Task:
    """The task that is differentiated, every name checked; its equations are written out."""
    function, known = asked.key.function, functions_of(tasks.tree)
    if function in REFUSED:
        raise ValueError(f"derivative: {function} {REFUSED[function]}")
    if asked.mode not in MODES:
        raise ValueError(f"mode {asked.mode!r}: expected 'auto', 'forward' or 'reverse'")
    task = tasks.task(asked.key)
    if task.algorithm.iterates:
        able = ", ".join(repr(name) for name, x in known[function].items() if not x.iterates)
        raise ValueError(
            f"derivative: {task.name}: steps of an iteration are not differentiated; what they "
            f"lead to is the result of every method, and so are its derivatives: expected 'auto' "
            f"or one of {able}"
        )
    if asked.key.axes != "base" and not task.algorithm.axes:
        raise ValueError(f"derivative: {function} takes no axes; expected axes='base'")
    if asked.key.damped and not task.algorithm.takes_damping:
        raise ValueError(f"derivative: {function} takes no damping; expected damped=False")
    if not tasks.tree.nv:
        raise ValueError(f"derivative: robot {tasks.name!r} has no joints; expected one that moves")
    return replace(task, rolled=False)
