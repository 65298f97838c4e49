"""What is differentiated by what: names and options, checked, and what calls take and return."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np

from linkwise.algorithms import Algorithm, functions_of
from linkwise.engine import reach_plan, reaching
from linkwise.engine.reaching import Asked as ReachAsked
from linkwise.engine.tasks import TITLES, Key, Tasks
from linkwise.model.parameters import KINDS
from linkwise.model.tree import Tree
from linkwise.trace.diff import Mode
from linkwise.trace.program import CONFIGURATION, NUMBERS, Port
from linkwise.trace.tangents import Configurations, Numbers, Poses, Space, States
from linkwise.trace.tracer import Task

EXTERNAL = "f_ext"
MODES = ("auto", "forward", "reverse")
JACOBIAN, GRADIENT, CURVATURE = "jacobian", "gradient", "curvature"  # of `Robot.derivative`
JVP, VJP, HVP = "jvp", "vjp", "hvp"  # products
MOST_PIECES = 40  # links of a scan whose derivatives are written out
# links from which products are rolled: unrolled they take 10 to 30 % less time a state, and 1.5 s
# and more to compile instead of 0.1 (forward dynamics of chains)
ROLLED_PRODUCTS = 32
LOOPS = (JVP, VJP, HVP, GRADIENT)  # what there is as loops over the links
WEIGHTS = {GRADIENT: "weights", CURVATURE: "weights", VJP: "cotangent", HVP: "cotangent"}

# why there is no derivative, and what has one
REFUSED = {
    "innovations": "returns factors; expected 'mass_matrix' or 'mass_matrix_inverse'",
    "kic": "returns two results; expected 'jacobian' or 'kinematic_hessian'",
    "operational_dynamics": "returns two results; expected 'forward_dynamics' or "
    "'operational_inertia_inverse'",
}


def _never(*_: Any) -> Any:
    raise AssertionError("a search is no straight-line equation")


class Asked(NamedTuple):
    """What is asked for."""

    key: Key
    wrt: tuple[str, ...] | None = None  # None: every argument
    kind: str = JACOBIAN
    mode: Mode = "auto"
    value: bool = False  # also everything of lower order
    search: tuple[tuple[str, Any], ...] = ()  # options of inverse kinematics, by name


class Part(NamedTuple):
    """One part of what is returned, and its shape for one state."""

    name: str
    shape: tuple[int, ...]
    size: int


class Plan:
    """A function of one robot, the arguments that it is differentiated by, and what is returned."""

    def __init__(self, tasks: Tasks, asked: Asked) -> None:
        self.asked, self.tree, self.robot = asked, tasks.tree, tasks.name
        self.reach = _search(tasks, asked)  # of inverse kinematics
        self.task, self.iteration = _task(tasks, asked, self.reach)
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
        elif self.reach is not None and name == "q0":
            hint = ", and q0, where a search starts: a solution jumps from one to another with it"
        elif isinstance(name, str) and name in KINDS:
            hint = f"; robot.parametric({name!r}) makes it one"
        raise ValueError(
            f"{self.title}: {name!r} is no argument of it, which takes {', '.join(known)}{hint}"
        )

    def space(self, k: int) -> Space:
        """How the numbers of a port change."""
        if self.reach is not None:
            return Poses()
        if self.ports[k].configuration:
            return Configurations(self.tree)
        return Numbers((self.ports[k].size,))

    @cached_property
    def result(self) -> Space:
        """How the result changes."""
        algorithm, shape = self.task.algorithm, self.task.algorithm.output_shape(self.tree)
        if algorithm.function in ("forward_kinematics", "link_poses"):
            return Poses(shape[:-2])
        if algorithm.function == "project":
            return States(self.tree)
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
    def solution(self) -> tuple[Port, ...]:
        """What an iteration has found before a call, where the function is one."""
        if self.reach is None and not self.iteration:
            return ()
        algorithm = self.task.algorithm
        size, found_q = prod(algorithm.output_shape(self.tree)), algorithm.output == ("nq",)
        return (Port("solution", size, kind=CONFIGURATION if found_q else NUMBERS),)

    @property
    def starts(self) -> tuple[str, ...]:
        """Arguments that may be given besides, for an iteration to start from."""
        return ("q0",) if self.reach is not None else ()

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


SEARCH = "inverse_kinematics"
SEARCH_OPTIONS = {"directions": "pose", "limits": True, "restarts": 100, "tol": 1e-6}
_IK = Algorithm(SEARCH, "search", _never, (("target", 16),), ("nq",), takes_frame=True, needs=())


def options_of(search: Any) -> tuple[tuple[str, Any], ...]:
    """Options of a search as users give them, so that they can be compared."""
    if search is None:
        return ()
    if not isinstance(search, Mapping):
        raise TypeError(
            f"derivative: search is a {type(search).__name__}; expected a mapping of options of "
            f"{SEARCH}, such as {{'directions': 'position'}}"
        )
    given = sorted(search.items(), key=lambda item: str(item[0]))
    return tuple((k, tuple(x) if isinstance(x, list | np.ndarray) else x) for k, x in given)


def _search(tasks: Tasks, asked: Asked) -> reach_plan.Plan | None:
    """The search whose solution is differentiated, every option checked; None of others."""
    key, given = asked.key, dict(asked.search)
    if key.function != SEARCH:
        if given:
            raise ValueError(
                f"derivative: search is given; expected none, as {key.function} is no {SEARCH}"
            )
        return None
    for name in given:
        if name not in SEARCH_OPTIONS:
            known = ", ".join(map(repr, SEARCH_OPTIONS))
            raise ValueError(f"derivative: search has {name!r}; expected some of {known}")
    for reason in _no_derivative_of_a_search(tasks.tree, asked):
        raise ValueError(f"derivative: {SEARCH} {reason}")
    wanted = ReachAsked(**{**SEARCH_OPTIONS, **given})
    found = reaching.new_plan(tasks, key.frame, wanted, True)
    rows, able = sum(found.directions), len(found.search.dofs)
    if able < rows:
        raise ValueError(
            f"derivative: {SEARCH} of frame {key.frame!r} has {rows} directions, and {able} degrees"
            " of freedom move it, so that no configuration follows most motions of the target; "
            "expected fewer directions, search={'directions': 'position'} or six booleans"
        )
    return found


def _no_derivative_of_a_search(tree: Tree, asked: Asked) -> Iterator[str]:
    """Why a solution has no derivatives."""
    if not isinstance(asked.key.frame, str):
        yield f"is differentiated for one frame; frame is {asked.key.frame!r}, expected a name"
    if tree.is_closed:
        yield (
            f"is differentiated for robots without closed loops, and this one has "
            f"{tree.loop_names[0]}; expected robot.open, or 'project' for configurations that "
            "close loops"
        )
    if asked.kind in (CURVATURE, HVP):
        yield (
            "has first derivatives only: its solution is known to a tolerance, and is one of "
            "many; expected order=1, jvp or vjp"
        )


def _task(tasks: Tasks, asked: Asked, reach: reach_plan.Plan | None) -> tuple[Task, str]:
    """The task that is differentiated, every name checked, its equations written out; and the name
    of the iteration that is to find its result.
    """
    function, known = asked.key.function, functions_of(tasks.tree)
    if function in REFUSED:
        raise ValueError(f"derivative: {function} {REFUSED[function]}")
    if asked.mode not in MODES:
        raise ValueError(f"mode {asked.mode!r}: expected 'auto', 'forward' or 'reverse'")
    if reach is not None:
        return Task(_IK, reach.frames[0]), ""
    task, iteration = tasks.task(asked.key), ""
    if task.algorithm.iterates:
        iteration = task.algorithm.method
        task = replace(task, algorithm=known[function]["crba"])
    if iteration and asked.mode != "auto":
        raise ValueError(
            f"derivative: mode is {asked.mode!r}; expected 'auto', as steps of {iteration!r} are "
            "not differentiated but the equations that they solve"
        )
    if task.in_pieces and tasks.tree.n_links > MOST_PIECES:
        raise ValueError(
            f"derivative: method {task.algorithm.method!r} cuts a chain into pieces, which have no "
            f"derivatives of more than {MOST_PIECES} links, and there are {tasks.tree.n_links}; "
            "expected method='auto', whose products are loops over the links"
        )
    if asked.key.axes != "base" and not task.algorithm.axes:
        raise ValueError(f"derivative: {function} takes no axes; expected axes='base'")
    if asked.key.damped and not task.algorithm.takes_damping:
        raise ValueError(f"derivative: {function} takes no damping; expected damped=False")
    if not tasks.tree.nv:
        raise ValueError(f"derivative: robot {tasks.name!r} has no joints; expected one that moves")
    return replace(task, rolled=_in_loops(task, tasks.tree, asked.kind)), iteration


def _in_loops(task: Task, tree: Tree, kind: str) -> bool:
    """Whether a product with a vector is rolled: its program is several times that of the function.

    Only if the result's numbers change one by one, or are few.
    """
    several = task.in_pieces or task.of_columns is not None or bool(task.algorithm.products)
    manifold = task.algorithm.output == ("nq",) or task.algorithm.function == "link_poses"
    lost = kind != JVP and task.algorithm.in_place(tree)
    small = tree.loops is False or tree.n_links < ROLLED_PRODUCTS or task.parameters
    rolled = task.rolled or not (small or not task.algorithm.can_roll(tree))
    return bool(rolled) and kind in LOOPS and not (several or manifold or lost)
