"""The product grid of functions: what features do where they meet.

Every pair of (robot, function and method, constants, wrenches, form of the call, what is computed)
is in some cell. A cell is right, judged by the dense equations of tests/shared/dense.py in extended
precision, or it is refused with an exception that names the option: `REFUSED` says which are.

    pytest tests/grid -k "closed and vjp"         some cells
    pytest tests/grid -m "" -k all_methods        all robots with all methods, in `make full`
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import functions_of
from linkwise.engine.tasks import Key
from linkwise.errors import NoProgram

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))
from dense import LONG, change, grip_of, machine_of, twist_of, whole_state
from dense_functions import INPUTS, Expected
from pairs import Cover, Row, drawn
from small_robots import KINDS, small_robot

STATES = 3
LIBRARIES = ("torch", "jax")
WANTS = ("values", "derivative", "vjp", *LIBRARIES)
FORMS = ("plain", "status", "out", "float32")
CONSTANTS = ("none", "inertia", "gravity", "payload", "rotor", "friction", "placement")
PUSHES = ("none", "f_ext")
# functions whose expected values are complex steps themselves, or are known up to a product
VALUES_ONLY = (
    "coriolis_matrix", "kinematic_hessian", "regressor", "energy_regressor",
    "inverse_dynamics_derivatives", "forward_dynamics_derivatives",
)  # fmt: skip
IN_BODY_AXES = ("jacobian", "frame_velocity")
FUNCTIONS = (
    "inverse_dynamics", "bias", "gravity_torque", "forward_dynamics", "mass_matrix",
    "mass_matrix_inverse", "solve_mass", "mass_product", "kinetic_energy", "potential_energy",
    "forward_kinematics", "link_poses", "jacobian", "jacobian_dot_qd", "frame_velocity",
    "frame_acceleration", "tip_acceleration", "operational_inertia_inverse", "position_inertia",
    "operational_inertia", "generalized_jacobian", "center_of_mass", "com_jacobian", "com_bias",
    "centroidal_momentum_matrix", "centroidal_momentum", "centroidal_bias", "joint_wrenches",
    "coriolis_matrix", "kinematic_hessian", "regressor", "energy_regressor",
    "inverse_dynamics_derivatives", "forward_dynamics_derivatives", "constraint_forces",
    "delassus", "impulse", "residual", "integrate", "difference", "normalize", "motion",
    "contact_forces", "object_acceleration",
)  # fmt: skip
# of which every run takes all methods
CORE = (
    "forward_dynamics", "inverse_dynamics", "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives", "constraint_forces", "contact_forces", "motion",
)  # fmt: skip


# -- calls ----------------------------------------------------------------------------------------


class Call(NamedTuple):
    """A function by one method, in some axes."""

    function: str
    method: str = "auto"
    axes: str = "base"

    def __str__(self) -> str:
        return ".".join(x for x in self if x not in ("base", "auto"))


def methods_of(kind: str, function: str) -> dict[str, Any]:
    """The methods that a robot has of a function, by name."""
    return functions_of(small_robot(kind).tree).get(function, {})


@cache
def calls(which: str) -> tuple[Call, ...]:
    """All that the robots have between them, by one method or by all."""
    found: dict[Call, None] = {}
    for function in CORE if which == "core" else FUNCTIONS:
        found[Call(function)] = None
        if function in IN_BODY_AXES:
            found[Call(function, axes="body")] = None
        names = dict.fromkeys(m for kind in KINDS for m in methods_of(kind, function))
        if which != "functions" and len(names) > 1:
            found |= dict.fromkeys(Call(function, method) for method in names)
    return tuple(found)


@cache
def why_not(kind: str, call: Call) -> str:
    """Why a robot does not have a call; empty if it has."""
    robot, methods = small_robot(kind), methods_of(kind, call.function)
    chosen = methods if call.method == "auto" else {call.method: methods.get(call.method)}
    if not methods or None in chosen.values():
        return "no such function or method"
    takes = next(iter(chosen.values())).takes_frame
    at = robot.tree.frames[frame_of(kind)] if takes else None
    reasons = [each.why_not(robot.tree, at) for each in chosen.values()]
    return "" if "" in reasons else reasons[0]


def frame_of(kind: str) -> str:
    return "object" if "grasp" in kind else "tip"


def algorithm_of(kind: str, call: Call) -> Any:
    methods = methods_of(kind, call.function)
    return methods[call.method] if call.method in methods else next(iter(methods.values()))


# -- which cells there are ------------------------------------------------------------------------


class Refusal(NamedTuple):
    """Cells that are refused: when, by which exception, and what its message names."""

    when: Callable[[Row], bool]
    exception: type[Exception]
    names: str  # a regular expression


@cache
def rolled(kind: str, call: Call) -> bool:
    """Whether a call of a robot without parameters is code with loops over the links."""
    frame = frame_of(kind) if algorithm_of(kind, call).takes_frame else None
    key = Key(call.function, call.method, frame, call.axes)
    return small_robot(kind)._calls.tasks.task(key).rolled


ITERATIONS = ("ccg", "pcg")
REFUSED = {
    "rotors that may be zero": Refusal(
        lambda r: r["constants"] == "rotor" and r["call"].method.startswith("schur"),
        ValueError, "rotor",
    ),
    "iterations of libraries": Refusal(
        lambda r: r["want"] in LIBRARIES and r["call"].method in ITERATIONS,
        ValueError, "another method",
    ),
    "rolled code of libraries": Refusal(
        lambda r: r["want"] in LIBRARIES and r["robot"].startswith("rolled")
        and r["constants"] == "none" and r["call"].method not in ITERATIONS
        and rolled(r["robot"], r["call"]),
        NoProgram, "with_codegen",
    ),
    "out of vjp": Refusal(
        lambda r: r["form"] == "out" and r["want"] == "vjp", TypeError, "out"
    ),
    "out of several results": Refusal(
        lambda r: r["form"] == "out" and r["want"] == "values"
        and r["call"].function in ("motion", "impulse", "residual"),
        TypeError, "'out'",
    ),
    "status of a residual": Refusal(
        lambda r: r["form"] == "status" and r["want"] == "values"
        and r["call"].function == "residual",
        TypeError, "'status'",
    ),
}  # fmt: skip


def possible(row: Row) -> bool:
    """Whether a row, or a part of one, is a cell, refused or not."""
    kind, call = row.get("robot"), row.get("call")
    if call is not None and kind is not None:
        if why_not(kind, call):
            return False
        algorithm = algorithm_of(kind, call)
        if row.get("push") == "f_ext" and not algorithm.takes_external:
            return False
    want, form = row.get("want", "values"), row.get("form", "plain")
    if want in LIBRARIES and form in ("status", "out"):
        return False
    return want == "values" or call is None or call.function not in VALUES_ONLY


def feasible(row: Row) -> bool:
    """Whether it is one that is not refused, as far as it goes."""
    if not possible(row):
        return False
    needed = ("robot", "call", "push", "form", "want", "constants")
    if any(name not in row for name in needed):
        return True
    return not any(rule.when(row) for rule in REFUSED.values())


def factors(which: str) -> Mapping[str, Sequence[Any]]:
    return {
        "robot": KINDS, "call": calls(which), "constants": CONSTANTS, "push": PUSHES,
        "form": FORMS, "want": WANTS,
    }  # fmt: skip


def title(row: Row) -> str:
    """The name of a cell."""
    options = [x for x in (row["constants"], row["push"]) if x != "none"] or ["plain"]
    return f"{row['robot']}-{row['call']}-{'+'.join(options)}-{row['form']}-{row['want']}"


@cache
def cells(which: str) -> tuple[Row, ...]:
    """The covering array of some calls."""
    return tuple(Cover(factors(which), feasible).rows())


# -- one cell -------------------------------------------------------------------------------------


@cache
def constant_of(kind: str, name: str) -> Any:
    """Numbers of a constant that are not the robot's own."""
    robot, rng = small_robot(kind), np.random.default_rng(crc32(name.encode()))
    n, nv = robot.tree.n_links, robot.nv
    if name == "inertia":
        return robot.inertial_parameters * rng.uniform(1.1, 1.4, (n, 1))
    if name == "gravity":
        return np.array([1.0, -2.0, -3.0])
    if name == "payload":
        return np.array([0.7, 0.07, -0.03, 0.05, 0.03, 0.001, 0.04, 0.002, -0.001, 0.05])
    if name == "placement":
        return rng.uniform(0.05, 0.2, (n, 6))
    found = rng.uniform(0.1, 0.5, (nv, 2) if name == "friction" else nv)
    found[_of_free_joints(robot)] = 0.0
    return found


def _of_free_joints(robot: Any) -> list[int]:
    return [d for link in robot.tree.links if link.joint.nv > 1 for d, _ in link.dofs]


def payload_of(kind: str) -> str:
    return small_robot(kind).link_names[2 if "grasp" in kind else -1]


@cache
def robot_of(kind: str, constants: str) -> Any:
    robot = small_robot(kind)
    if constants == "none":
        return robot
    payload = {"payload": payload_of(kind)} if constants == "payload" else {}
    return robot.parametric(constants, **payload)


@cache
def expected_of(kind: str) -> Expected:
    return Expected(small_robot(kind), frame=frame_of(kind), payload=payload_of(kind))


@cache
def condition_of(kind: str) -> float:
    """Of the equations that are solved, at the states of the cells."""
    robot = small_robot(kind)
    q, qd = (np.asarray(values_of(kind, (name,))[name], LONG) for name in ("q", "qd"))
    if "grasp" in kind:
        grip = grip_of(robot)
        return grip.full.condition(whole_state(grip, q, qd)[0])
    return machine_of(robot).condition(q)


@cache
def mobility_of(kind: str) -> float:
    """Of the inertias of single links, which Schur methods invert: the heaviest by the lightest."""
    sizes = [np.linalg.eigvalsh(spatial(x)) for x in small_robot(kind).inertial_parameters]
    return max(x[-1] for x in sizes) / min(x[0] for x in sizes)


def spatial(ten: np.ndarray) -> np.ndarray:
    """Inertia (6, 6) of a body's ten numbers."""
    mass, x, y, z, *moments = ten
    inertia, cross = np.zeros((3, 3)), np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    inertia[np.tril_indices(3)] = moments
    inertia += np.tril(inertia, -1).T
    return np.block([[inertia, cross], [cross.T, mass * np.eye(3)]])


def values_of(kind: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Random states; the same number for the same name. Of float32, so that all forms agree."""
    robot, found = small_robot(kind), {}
    for name in names:
        rng = np.random.default_rng(crc32(f"{kind} {name}".encode()))
        if INPUTS[name] == "q":
            x = robot.random_q(rng, size=STATES)
        elif name == "dt":
            x = rng.uniform(0.5, 1.5, (STATES, 1))
        elif name == "weights":
            x = rng.uniform(0.5, 2.0, (STATES, robot.nv))
        else:
            x = rng.uniform(-1.0, 1.0, (STATES, robot.nv))
        found[name] = x.astype(np.float32).astype(float)
    return found


class Cell:
    """A row of the grid, run."""

    def __init__(self, row: Row) -> None:
        self.row, self.kind, self.call = row, row["robot"], row["call"]
        self.robot = robot_of(self.kind, row["constants"])
        algorithm = algorithm_of(self.kind, self.call)
        # starts of iterations change nothing, and weights are all one unless they are given
        without = ("qdd0", "weights") if row["want"] == "values" else ("qdd0",)
        self.names = [name for name, _ in algorithm.inputs if name not in without]
        self.values = values_of(self.kind, self.names)
        self.dtype = np.float32 if row["form"] == "float32" else np.float64
        self.constants = {}
        if row["constants"] != "none":
            own = constant_of(self.kind, row["constants"])
            self.constants = {row["constants"]: own.astype(np.float32).astype(float)}
        self.f_ext = {}
        if row["push"] == "f_ext":
            w = np.array([0.5, -1.0, 0.25, 2.0, -3.0, 1.5]) * np.arange(1, STATES + 1)[:, None]
            self.f_ext = {frame_of(self.kind): w}
        self.several = len(methods_of(self.kind, self.call.function)) > 1
        self.takes_frame = algorithm.takes_frame

    # -- what is expected ------------------------------------------------------------------------

    def expected(self, *values: np.ndarray, constants: Any = None, f_ext: Any = None) -> Any:
        """The function of dense equations, of complex arrays."""
        given = self.constants if constants is None else constants
        known = expected_of(self.kind).put(given)
        name = self.call.function
        name = "coriolis_product" if name == "coriolis_matrix" else name
        push = self.f_ext if f_ext is None else f_ext
        options = {"f_ext": tuple(push.items())} if push else {}
        return known.function(name, self.call.axes)(*values, **options)

    def wanted(self) -> np.ndarray:
        return plain(self.expected(*self.long()))

    def long(self) -> list[np.ndarray]:
        return [np.asarray(x, LONG) for x in self.values.values()]

    def changes(self, k: int, along: np.ndarray) -> np.ndarray:
        """How the result changes as argument k moves along a direction, as derivatives have it."""
        args, names = self.long(), [*self.names, *self.constants, *(["f_ext"] * bool(self.f_ext))]
        if k >= len(args):
            return self._changes_of_option(names[k], along)
        machine = expected_of(self.kind).machine
        if INPUTS[names[k]] == "q":
            along = machine.rates_of(args[k], np.asarray(along, LONG))
        found = change(self.expected, args, k, along)
        return self.in_rates(found)

    def _changes_of_option(self, name: str, along: np.ndarray) -> np.ndarray:
        args = self.long()
        if name == "f_ext":
            frame, own = next(iter(self.f_ext.items()))
            return self.in_rates(
                change(lambda w: self.expected(*args, f_ext={frame: w}), [own], 0, along[:, 0])
            )
        own = self.constants[name]
        # a constant is one for all states here, and so is the direction
        return self.in_rates(
            change(lambda x: self.expected(*args, constants={name: x}), [own], 0, along)
        )

    def in_rates(self, found: np.ndarray) -> np.ndarray:
        """Changes of poses as twists, and of configurations as rates."""
        if self.call.function in ("forward_kinematics", "link_poses", "integrate", "normalize"):
            result = self.expected(*self.long()).real.astype(LONG)
            if self.call.function in ("forward_kinematics", "link_poses"):
                return plain(twist_of(result, found))
            return plain(expected_of(self.kind).machine.as_rates(result, found.astype(LONG)))
        return plain(found)

    # -- what the package says -------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.several and self.call.method != "auto":
            found["method"] = self.call.method
        if self.takes_frame:
            found["frame"] = frame_of(self.kind)
        if self.call.axes != "base":
            found["axes"] = self.call.axes
        return found

    def arguments(self, spoilt: bool = False) -> list[np.ndarray]:
        """Arrays of the form; spoilt ones have a row more for each, with a number that is none."""
        found = [x.astype(self.dtype) for x in self.values.values()]
        n = len(found) if spoilt else 0
        wide = [np.concatenate([x, np.repeat(x[:1], n, axis=0)]) for x in found]
        for k, x in enumerate(wide[:n]):
            x[STATES + k, -1] = np.nan
        # times are one number for each state
        pairs = zip(self.names, wide, strict=True)
        return [x[:, 0] if name == "dt" else x for name, x in pairs]

    def keywords(self, rows: int) -> dict[str, Any]:
        """Constants and wrenches."""
        found = {name: x.astype(self.dtype) for name, x in self.constants.items()}
        if self.f_ext:
            frame, w = next(iter(self.f_ext.items()))
            more = np.concatenate([w, np.repeat(w[:1], rows - STATES, axis=0)])
            found["f_ext"] = {frame: more.astype(self.dtype)}
        return found

    def run(self) -> None:
        """Compare, or raise what the package raises."""
        getattr(self, f"run_{self.row['want']}")()

    def run_values(self) -> None:
        form = self.row["form"]
        spoilt = form == "status"
        values, options = self.arguments(spoilt), self.options()
        keywords = options | self.keywords(len(values[0]))
        name = self.call.function
        call = getattr(self.robot, name)
        if name.endswith("_derivatives"):
            keywords["value"] = True
        if form == "status":
            found, told = call(*values, status=True, **keywords)
            bits = getattr(told, "status", told)  # of iterations, with their residuals
            found = self.rows_of(found)
            assert bits.shape == (len(values[0]),)
            sound = bits[:STATES] & ~lw.Status.LOOP_OPEN  # random states leave loops open
            assert not sound.any(), f"status {bits[:STATES]} of sound states"
            lost = bits[STATES:] & int(lw.Status.NOT_FINITE) > 0
            assert lost.all(), f"status of spoilt states is {bits[STATES:]}"
            found = found[:STATES]
        elif form == "out":
            out = np.empty(self.shape_of_out(), self.dtype)
            found = self.rows_of(call(*values, out=out, **keywords))
            assert not np.isnan(out).any()
            if name != "coriolis_matrix":
                # what is returned is a view of it
                assert np.array_equal(np.sort(out.ravel()), np.sort(found.ravel()))
        else:
            found = self.rows_of(call(*values, **keywords))
        assert found.dtype == self.dtype
        self.compare(found, self.wanted())

    def shape_of_out(self) -> tuple[int, ...]:
        algorithm = algorithm_of(self.kind, self.call)
        return (STATES, *algorithm.output_shape(self.robot.tree))

    def rows_of(self, found: Any) -> np.ndarray:
        """Results as one array, in the layout of what is expected."""
        name = self.call.function
        if name == "motion":
            *joint, forces = found
            flat = forces.reshape(*forces.shape[:-2], -1)
            return np.concatenate([*joint, flat], -1)
        if name == "residual":
            return np.stack(found, -2)
        if name == "impulse":
            after, impulses = found
            return np.concatenate([after, impulses.reshape(*after.shape[:-1], -1)], -1)
        if name.endswith("_derivatives"):
            return np.concatenate([*found[1:], found[0][..., None, :]], -2)
        if name == "coriolis_matrix":
            n = len(found)
            qd = np.concatenate([self.values["qd"], np.tile(self.values["qd"][:1], (n, 1))])[:n]
            return (found @ qd.astype(found.dtype)[..., None])[..., 0]
        return np.asarray(found)

    def compare(self, found: np.ndarray, wanted: np.ndarray, scale: float = 1.0) -> None:
        """Within rounding times the condition of what is solved."""
        assert found.shape == wanted.shape, f"shape {found.shape}; expected {wanted.shape}"
        eps = float(np.finfo(self.dtype).eps)
        most = 1e-2 if self.dtype == np.float32 else 1e-8
        iterates = self.call.method in ITERATIONS  # to a tolerance
        condition = condition_of(self.kind)
        if self.call.method.startswith("schur"):  # inverses of links, whatever moves them
            condition = max(condition, mobility_of(self.kind))
        limit = most if iterates else min(100.0 * eps * condition, most)
        size = max(scale, np.abs(wanted).max(initial=0.0))
        off = np.abs(found - wanted).max(initial=0.0)
        assert off <= limit * size, f"off by {off:.3g} of {size:.3g}; allowed {limit * size:.3g}"

    # -- derivatives -----------------------------------------------------------------------------

    def directions(self, k: int) -> np.ndarray:
        """A random direction of argument k: one for each state, or of constants one for all."""
        rng = np.random.default_rng(k)
        if k < len(self.names):
            name = self.names[k]
            size = 1 if name == "dt" else self.robot.nv
            return rng.uniform(-1, 1, (STATES, size))
        if k < len(self.names) + len(self.constants):
            return self.of_joints(rng.uniform(-1, 1, next(iter(self.constants.values())).shape))
        return rng.uniform(-1, 1, (STATES, 1, 6))

    def of_joints(self, along: np.ndarray) -> np.ndarray:
        """A direction of a constant; free joints have no rotors and losses in the equations."""
        if self.row["constants"] in ("rotor", "friction"):
            along[_of_free_joints(self.robot)] = 0.0
        return along

    def each(self, k: int) -> bool:
        """Whether argument k is one for each state, which constants are not here."""
        return not len(self.names) <= k < len(self.names) + len(self.constants)

    @property
    def arguments_by(self) -> list[str]:
        """What derivatives are by."""
        return [*self.names, *self.constants, *(["f_ext"] * bool(self.f_ext))]

    def run_derivative(self) -> None:
        by, form, rows = self.arguments_by, self.row["form"], STATES
        names = tuple(by) if form != "out" else by[0]
        make = self.robot.derivative(
            self.call.function, wrt=names, f_ext=tuple(self.f_ext), **self.options()
        )
        values, keywords = self.arguments(form == "status"), self.keywords(rows)
        if form == "status":
            keywords = self.keywords(len(values[0]))
            parts, bits = make(*values, status=True, **keywords)
            assert bits.shape == (len(values[0]),)
            sound = bits[:STATES] & ~lw.Status.LOOP_OPEN  # random states leave loops open
            assert not sound.any(), f"status {bits[:STATES]} of sound states"
            assert (bits[STATES:] & int(lw.Status.NOT_FINITE)).all(), bits
            parts = [x[:STATES] for x in parts]
        elif form == "out":
            whole = make(*values, **keywords)
            out = np.full_like(whole, np.nan)
            assert make(*values, out=out, **keywords) is out
            parts = [out]
        else:
            parts = make(*values, **keywords)
        for k, part in enumerate(parts):
            assert part.dtype == self.dtype
            along = self.directions(k)
            size = np.abs(part).max(initial=0.0)
            self.compare(contracted(part, along, self.each(k)), self.changes(k, along), size)

    def run_vjp(self) -> None:
        form = self.row["form"]
        values, options = self.arguments(form == "status"), self.options()
        keywords = self.keywords(len(values[0]))
        if form == "out":
            keywords["out"] = np.empty(0)
        shape = self.in_rates(np.zeros(self.wanted().shape, np.longdouble)).shape[1:]
        weights = np.random.default_rng(9).uniform(-1, 1, shape).astype(self.dtype)
        found = self.robot.vjp(
            self.call.function, values, weights, wrt=tuple(self.arguments_by),
            status=form == "status", **options, **keywords,
        )  # fmt: skip
        if form == "status":
            found, bits = found
            sound = bits[:STATES] & ~lw.Status.LOOP_OPEN  # random states leave loops open
            assert not sound.any(), f"status {bits[:STATES]} of sound states"
            assert (bits[STATES:] & int(lw.Status.NOT_FINITE)).all(), bits
        value, gradients = found
        if self.call.function != "coriolis_matrix":
            self.compare(np.asarray(value)[:STATES], self.wanted())
        assert len(gradients) == len(self.arguments_by)
        for k, gradient in enumerate(gradients):
            along = self.directions(k)
            changed = self.changes(k, along)
            wanted = (changed * weights).reshape(STATES, -1).sum(-1)
            got = contracted(gradient[:STATES], along, self.each(k))
            self.compare(got, wanted, max(np.abs(gradient[:STATES]).max(), 1.0))

    # -- array libraries -------------------------------------------------------------------------

    def run_torch(self) -> None:
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        f = lw.torch.function(
            self.robot, self.call.function, f_ext=tuple(self.f_ext), **self.options()
        )
        given = [torch.tensor(x, requires_grad=True) for x in self.all_arrays()]
        result = f(*given)
        weights = np.random.default_rng(9).uniform(-1, 1, tuple(result.shape[1:]))
        weights = weights.astype(self.dtype)
        (result * torch.tensor(weights)).sum().backward()
        gradients = [x.grad.numpy() for x in given]
        self.compare_library(result.detach().numpy(), gradients, weights)

    def run_jax(self) -> None:
        jax = pytest.importorskip("jax", reason="JAX is not installed")
        f = lw.jax.function(
            self.robot, self.call.function, f_ext=tuple(self.f_ext), **self.options()
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            jax.config.update("jax_enable_x64", True)
        given = self.all_arrays()
        result = np.asarray(f(*given))
        weights = np.random.default_rng(9).uniform(-1, 1, result.shape[1:]).astype(self.dtype)
        back = jax.grad(lambda *x: (f(*x) * weights).sum(), argnums=tuple(range(len(given))))
        self.compare_library(result, [np.asarray(x) for x in back(*given)], weights)

    def all_arrays(self) -> list[np.ndarray]:
        """Arguments as libraries take them: wrenches and constants follow, one for each state."""
        more = [np.broadcast_to(x, (STATES, *x.shape)) for x in self.constants.values()]
        found = [*self.values.values(), *self.f_ext.values(), *more]
        return [np.array(x, self.dtype) for x in found]

    def compare_library(
        self, result: np.ndarray, gradients: list[np.ndarray], weights: np.ndarray
    ) -> None:
        """Values, and gradients of a weighted sum by plain numbers, those of quaternions too."""
        assert result.dtype == self.dtype
        result = result.astype(float)
        if self.call.function == "coriolis_matrix":
            result = self.rows_of(result)
        self.compare(result, self.wanted())
        args = [np.asarray(x, LONG) for x in self.all_arrays()]
        frames = list(self.f_ext)

        def whole(*x: np.ndarray) -> np.ndarray:
            own, rest = x[: len(self.names)], x[len(self.names) :]
            push = dict(zip(frames, rest, strict=False))
            constants = {
                name: y[0] for name, y in zip(self.constants, rest[len(frames) :], strict=True)
            }
            return self.expected(*own, f_ext=push, constants=constants)

        for k, gradient in enumerate(gradients):
            rng = np.random.default_rng(k)
            one = k >= len(self.names) + len(frames)  # constants are the same for all states
            along = rng.uniform(-1, 1, args[k].shape[1 if one else 0 :])
            along = self.of_joints(along) if one else along
            along = np.broadcast_to(along, args[k].shape)
            changed = plain(change(whole, args, k, along))
            wanted = (changed * weights).reshape(STATES, -1).sum(-1)
            got = (gradient * along).reshape(STATES, -1).sum(-1)
            self.compare(got, wanted, max(np.abs(gradient).max(), 1.0))


def plain(x: np.ndarray) -> np.ndarray:
    return np.asarray(x).real.astype(float)


def contracted(part: np.ndarray, along: np.ndarray, each: bool) -> np.ndarray:
    """A derivative (states, result, argument) along a direction of the argument.

    ``each``: the direction is (states, argument), one for each state.
    """
    own = along.shape[1:] if each else along.shape
    flat = part.reshape(*part.shape[: part.ndim - len(own)], along[0].size if each else along.size)
    if not each:
        return flat @ along.ravel()
    weights = along.reshape(len(along), *[1] * (flat.ndim - 2), -1)
    return (flat * weights).sum(-1)


# -- known failures: the aim is none ---------------------------------------------------------------

KNOWN: dict[str, str] = {}
# the largest kernels, which take 10 to 30 s to compile
LARGEST = re.compile(
    r"(grasp-object|rolled-grasp)-.*-placement.*-(derivative|vjp)$"
    r"|^grasp-object-inverse_dynamics_derivatives"
)


def marked(rows: Sequence[Row]) -> list[Any]:
    """Cells as parameters; those of known failures are expected to fail."""
    found = []
    for row in rows:
        name = title(row)
        why = next((reason for part, reason in KNOWN.items() if part in name), None)
        marks = [pytest.mark.xfail(reason=why, strict=True)] if why else []
        if LARGEST.search(name):
            marks.append(pytest.mark.full)
        found.append(pytest.param(row, id=name, marks=marks))
    return found


@pytest.mark.parametrize("row", marked(cells("core")))
def test_dynamics_by_every_method(row: Row) -> None:
    Cell(row).run()


@pytest.mark.parametrize("row", marked(cells("functions")))
def test_functions(row: Row) -> None:
    Cell(row).run()


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_all_methods_of_all_functions(kind: str) -> None:
    """Of one robot, every pair of the rest."""
    rows = Cover({**factors("all"), "robot": (kind,)}, feasible).rows()
    failed = []
    for row in rows:
        try:
            Cell(row).run()
        except pytest.skip.Exception:
            continue
        except Exception as error:
            failed.append(f"{title(row)}: {type(error).__name__}: {error}".splitlines()[0])
    assert not failed, "\n".join([f"{len(failed)} of {len(rows)} cells", *failed])


def alone(rule: Refusal, row: Row) -> bool:
    """Whether a rule, and no other one, refuses a cell."""
    return [x for x in REFUSED.values() if x.when(row)] == [rule]


def refusals() -> list[Any]:
    """For each rule and each robot that it is about, a cell that it refuses."""
    found = []
    for name, rule in REFUSED.items():
        for robot in KINDS:
            rows = drawn({**factors("core"), "robot": (robot,)}, crc32(f"{name} {robot}".encode()))
            row = next((row for row in rows if possible(row) and alone(rule, row)), None)
            if row is not None:
                found.append(pytest.param(row, rule, id=f"{name}-{robot}".replace(" ", "_")))
    return found


@pytest.mark.parametrize(("row", "rule"), refusals())
def test_what_is_refused_says_which_option(row: Row, rule: Refusal) -> None:
    with pytest.raises(rule.exception, match=rule.names):
        Cell(row).run()


@pytest.mark.parametrize("kind", KINDS)
def test_methods_that_a_robot_lacks_are_refused_by_name(kind: str) -> None:
    lacking = [call for call in calls("all") if call.axes == "base" and why_not(kind, call)]
    robot = small_robot(kind)
    assert lacking
    for call in lacking:
        known = methods_of(kind, call.function)
        values = [values_of(kind, ("q",))["q"]] if known else []
        if known:
            names = [name for name, _ in next(iter(known.values())).inputs]
            values = list(values_of(kind, [n for n in names if n in INPUTS]).values())
        with pytest.raises((ValueError, TypeError)) as caught:
            frame = (
                {"frame": frame_of(kind)} if known and algorithm_of(kind, call).takes_frame else {}
            )
            method = {} if call.method == "auto" else {"method": call.method}
            robot.derivative(call.function, **method, **frame)(*values)
        said = str(caught.value)
        assert call.function in said or call.method in said, f"{call}: {said}"
