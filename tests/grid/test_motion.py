"""The product grid of motion: integrators, controllers and options of `simulate`, pair by pair.

A cell is right, judged by an integrator in plain Python on the dense equations of
tests/shared/dense.py; or it is refused with an exception that names the option: see `REFUSED`.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pytest

import linkwise as lw

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))
from dense import LONG, Array, solve, times, transposed
from dense_functions import Expected
from pairs import Cover, Row, drawn
from small_robots import LIMITS, small_robot

ROBOTS = (
    "open", "floating", "mimic", "closed", "coupled", "grasp", "grasp-object", "rolled",
    "rolled-floating", "rolled-closed", "rolled-grasp",
)  # fmt: skip
INTEGRATORS = ("rk4", "euler", "implicit", "midpoint", "DOP853")
CONTROLLERS = ("none", "constant", "pd", "gravity", "python")
CONSTANTS = ("none", "inertia", "gravity", "rotor", "friction")
DT, STEPS, ROWS = 0.01, 4, 2
FACTORS: dict[str, Sequence[Any]] = {
    "robot": ROBOTS,
    "integrator": INTEGRATORS,
    "controller": CONTROLLERS,
    "hold": (True, False),
    "constants": CONSTANTS,
    "push": ("none", "f_ext"),
    "limits": ("none", "stop", "event"),
    "drift": ("project", "baumgarte", "none"),
    "form": ("plain", "float32", "sparse", "one"),
}
BAUMGARTE = 0.05
STIFFNESS, DAMPING = 200.0, 3.0
FRAMES = {"grasp": "object"}


class Refusal(NamedTuple):
    """Cells that are refused: when, and what the message of the ValueError names."""

    when: Callable[[Row], bool]
    names: str


def _rolls(r: Row) -> bool:
    """Rolled code for forward dynamics: trees of a robot without parameters."""
    return r["robot"] in ("rolled", "rolled-floating") and r["constants"] == "none"


def _loops(r: Row) -> bool:
    return "closed" in r["robot"] or "grasp" in r["robot"] or r["robot"] == "coupled"


REFUSED = {
    "integrators of trees": Refusal(
        lambda r: _loops(r) and r["integrator"] in ("implicit", "midpoint"),
        r"integrator '\w+' is for robots without closed loops",
    ),
    "integrators of rolled code": Refusal(
        lambda r: _rolls(r) and r["integrator"] not in ("rk4", "euler"),
        r"integrator '\w+'.*with_codegen",
    ),
    "a function at every stage": Refusal(
        lambda r: r["controller"] == "python" and not r["hold"]
        and r["integrator"] == "midpoint",
        "hold",
    ),
    "rows of adaptive solvers": Refusal(
        lambda r: r["controller"] == "python" and not r["hold"]
        and r["integrator"] == "DOP853" and r["form"] != "one",
        "hold",
    ),
    "friction of implicit steps": Refusal(
        lambda r: r["integrator"] == "implicit" and r["constants"] == "friction", "friction"
    ),
}  # fmt: skip


def possible(row: Row) -> bool:
    """Whether a row, or a part of one, is a cell, refused or not."""
    robot = row.get("robot")
    tree = robot is not None and not _loops({"robot": robot})
    if tree and row.get("drift", "project") != "project":
        return False  # of no meaning
    if row.get("controller") in ("none", "constant") and row.get("hold") is False:
        return False  # the same
    # friction jumps where a rate changes its sign, within a step of either
    return not (row.get("constants") == "friction" and row.get("integrator") == "midpoint")


def feasible(row: Row) -> bool:
    """Whether it is one that is not refused, as far as it goes."""
    if not possible(row):
        return False
    if len(row) < len(FACTORS):
        return True
    return not any(rule.when(row) for rule in REFUSED.values())


def title(row: Row) -> str:
    options = [
        *(str(row[name]) for name in ("constants", "push") if row[name] != "none"),
        *([row["limits"]] if row["limits"] != "none" else []),
        *([f"drift={row['drift']}"] if _loops(row) else []),
    ] or ["plain"]
    asked = row["controller"] + ("" if row["hold"] else "-ask")
    return f"{row['robot']}-{row['integrator']}-{asked}-{'+'.join(options)}-{row['form']}"


@cache
def cells() -> tuple[Row, ...]:
    return tuple(Cover(FACTORS, feasible).rows())


# -- one cell -------------------------------------------------------------------------------------


@cache
def robot_of(kind: str, constants: str) -> Any:
    robot = small_robot(kind)
    return robot if constants == "none" else robot.parametric(constants)


@cache
def start_of(kind: str) -> tuple[Array, Array]:
    """States (2, n) that loops allow; the first joint of the second meets its limit at once."""
    robot, rng = small_robot(kind), np.random.default_rng(crc32(kind.encode()))
    q = np.full((ROWS, robot.nq), 0.25) + rng.uniform(-0.1, 0.1, (ROWS, robot.nq))
    qd = rng.uniform(-0.5, 0.5, (ROWS, robot.nv))
    q[1, _first(robot)], qd[1, robot.joint(_name(robot)).v_slice] = LIMITS[1] - 0.02, 1.5
    if robot.nq != robot.nv:
        q = robot.normalize(q)
    return robot.project(q, qd) if robot.loops else (q, qd)


def _name(robot: Any) -> str:
    return next(name for name in robot.joint_names if name.endswith("joint0"))


def _first(robot: Any) -> int:
    return int(robot.joint(_name(robot)).q_slice.start)


class Cell:
    """A simulation, and the same by plain Python."""

    def __init__(self, row: Row) -> None:
        self.row, self.kind = row, row["robot"]
        self.robot = robot_of(self.kind, row["constants"])
        # the contacts of a grasp need places, which `holding` gives
        q, qd = start_of(self.kind)
        self.rows = 1 if row["form"] == "one" else ROWS
        if row["form"] == "one":
            q, qd = q[1:], qd[1:]
        self.q, self.qd = q, qd
        self.dtype = np.float32 if row["form"] == "float32" else np.float64
        self.constants: dict[str, Any] = {}
        name = row["constants"]
        if name == "inertia":
            self.constants = {name: self.robot.inertial_parameters * 1.3}
        elif name == "gravity":
            self.constants = {name: np.array([2.0, -4.0, -3.0])}
        elif name != "none":
            shape = (self.robot.nv, 2) if name == "friction" else self.robot.nv
            own = np.full(shape, 0.4)
            own[[d for x in self.robot.tree.links if x.joint.nv > 1 for d, _ in x.dofs]] = 0.0
            self.constants = {name: own}
        self.frame = "object" if "grasp" in self.kind else "tip"
        self.f_ext = np.array([0.5, -1.0, 0.25, 6.0, -9.0, 5.0]) if row["push"] != "none" else None
        own = small_robot(self.kind)
        self.expected = Expected(own, frame=self.frame).put(self.constants)
        self.nominal = Expected(own, frame=self.frame)
        self.tau = np.where(np.asarray(own.actuated), np.linspace(1.0, 2.0, own.nv), 0.0)
        self.driven = np.asarray(own.actuated, float)

    # -- controllers -----------------------------------------------------------------------------

    def controller(self) -> Any:
        """As users give it."""
        robot, control = self.robot, lw.control
        makers = {
            "none": lambda: None,
            "constant": lambda: control.constant(robot, self.tau),
            "pd": lambda: control.pd(robot, 20.0 * self.driven, 2.0 * self.driven),
            "gravity": lambda: control.gravity_compensation(robot),
            "python": lambda: self.asked,
        }
        return makers[self.row["controller"]]()

    def asked(self, t: float, q: Any, qd: Any) -> Any:
        """A function of Python that depends on all that it is given."""
        return self.tau * np.cos(20.0 * t) - 2.0 * self.driven * np.asarray(qd)

    def torques(self, t: float, q: Array, qd: Array) -> Array:
        """The same by dense equations; laws know the robot's own constants alone."""
        name = self.row["controller"]
        if name == "none":
            return 0 * qd
        if name == "constant":
            return 0 * qd + self.tau
        if name == "python":
            return np.asarray(self.tau * np.cos(20.0 * t) - 2.0 * self.driven * qd, LONG)
        if name == "gravity":
            if _loops(self.row):  # smallest torques: motors hold what has none too
                return self.driven * self.nominal.function("inverse_dynamics")(q, 0 * qd, 0 * qd)
            return self.driven * self.nominal.function("gravity_torque")(q)
        off = 0 * qd
        for joint in self.nominal.machine.joints:
            if joint.kind != "free" and not joint.follows:
                off[:, joint.v] = -q[:, joint.q]
        return self.driven * (20.0 * off - 2.0 * qd)

    # -- the same in plain Python ----------------------------------------------------------------

    def acceleration(
        self, t: float, q: Array, qd: Array, held: Array | None, h: float = 0.0
    ) -> Array:
        tau = self.torques(t, q, qd) if held is None else held
        tau = tau + self.stops(q, qd, h)[0]
        push = () if self.f_ext is None else ((self.frame, np.tile(self.f_ext, (len(q), 1))),)
        if self.expected.grip is not None:
            found = self.expected.function("forward_dynamics")(q, qd, tau, f_ext=push)
            found = found[:, : qd.shape[-1]]
            return self.stabilized(q, qd, found)
        T = BAUMGARTE if self.row["drift"] == "baumgarte" else None
        machine = self.expected.machine
        return machine.forward(q, qd, tau, push, T if machine.held else None)[0]

    def stabilized(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Baumgarte's accelerations of a grasp, on top of those without."""
        if self.row["drift"] != "baumgarte" or not self.expected.machine.held:
            return qdd
        machine = self.expected.machine
        J, _, error, moving = machine.constraint(q, qd)
        M = machine.mass_matrix(q)
        off = 2.0 / BAUMGARTE * moving + error / BAUMGARTE**2
        MJ = solve(M, transposed(J))
        return qdd - times(MJ, solve(J @ MJ, off[..., None])[..., 0])

    def stops(self, q: Array, qd: Array, h: float = 0.0) -> tuple[Array, Array]:
        """Torques of soft stops at the limits, and what they resist per unit of rates after h.

        Of an implicit step they are those at its end, which the second corrects.
        """
        tau, slopes = np.zeros_like(qd), np.zeros_like(qd)
        if self.row["limits"] != "stop":
            return tau, slopes
        lower, upper = self.robot.position_limits
        slope = DAMPING + h * STIFFNESS
        for joint in self.expected.machine.joints:
            if joint.kind == "free" or joint.follows:
                continue
            low, high = lower[joint.q], upper[joint.q]
            for side, x in ((1.0, q[:, joint.q] - high), (-1.0, low - q[:, joint.q])):
                outward = side * qd[:, joint.v].real
                push = STIFFNESS * x.real + slope * outward
                touched = (x.real > 0) & (push > 0)
                if h:
                    touched = (x.real > 0) | (x.real + h * outward > 0)
                tau[:, joint.v] -= side * np.where(touched, push, 0.0)
                slopes[:, joint.v] += np.where(touched, slope, 0.0)
        return tau, slopes

    def step(self, t: float, q: Array, qd: Array, held: Array | None, h: float) -> Any:
        """Of the method; of fourth order where it has no scheme of its own here."""
        machine, f = self.expected.machine, self.acceleration
        if self.row["integrator"] == "implicit":
            M, (_, slopes) = machine.mass_matrix(q), self.stops(q, qd, h)
            push = h * times(M, f(t, q, qd, held, h))
            qd = (
                qd
                + solve(M + h * slopes[..., None] * np.eye(qd.shape[-1]), push[..., None])[..., 0]
            )
            return machine.moved(q, h * qd), qd
        if self.row["integrator"] == "euler":
            qd = qd + h * f(t, q, qd, held)
            return machine.moved(q, h * qd), qd
        r = machine.rates_of
        k1, a1 = r(q, qd), f(t, q, qd, held)
        q2, v2 = q + h / 2 * k1, qd + h / 2 * a1
        k2, a2 = r(q2, v2), f(t + h / 2, q2, v2, held)
        q3, v3 = q + h / 2 * k2, qd + h / 2 * a2
        k3, a3 = r(q3, v3), f(t + h / 2, q3, v3, held)
        q4, v4 = q + h * k3, qd + h * a3
        k4, a4 = r(q4, v4), f(t + h, q4, v4, held)
        q = q + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return q, qd + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)

    @property
    def parts(self) -> int:
        """Steps of the judge in one step: several, where the methods are not the same."""
        if self.row["integrator"] in ("euler", "implicit"):
            return 1
        turns = self.robot.nq != self.robot.nv
        return 1 if self.row["integrator"] == "rk4" and not turns else 4

    def motion(self) -> tuple[Array, Array]:
        """States after each step (rows, steps + 1, n)."""
        q, qd = np.asarray(self.q, LONG), np.asarray(self.qd, LONG)
        kept, h = [(q, qd)], DT / self.parts
        for k in range(STEPS):
            held = self.torques(k * DT, q, qd) if self.row["hold"] else None
            for j in range(self.parts):
                q, qd = self.step(k * DT + j * h, q, qd, held, h)
            if self.row["drift"] == "project" and self.row["integrator"] != "DOP853":
                q, qd = self.projected(q, qd)
            kept.append((q, qd))
        qs, qds = zip(*kept, strict=True)
        normal = self.nominal.function("normalize")
        return np.stack([normal(x) for x in qs], 1), np.stack(qds, 1)

    def projected(self, q: Array, qd: Array) -> Any:
        """Closed again, by changes of least kinetic energy."""
        machine = self.expected.machine
        if not machine.held:
            return q, qd
        for last in (False, False, True):
            J, _, error, moving = machine.constraint(q, qd)
            MJ = solve(machine.mass_matrix(q), transposed(J))
            back = solve(J @ MJ, moving[..., None])[..., 0]
            if last:
                qd = qd - times(MJ, back)
                break
            q = machine.moved(q, -times(MJ, solve(J @ MJ, error[..., None])[..., 0]))
        return q, qd

    # -- comparison ------------------------------------------------------------------------------

    def simulate(self) -> Any:
        row = self.row
        limits: Any = {"none": "ignore", "event": "event"}.get(row["limits"])
        if row["limits"] == "stop":
            limits = lw.control.SoftStop(STIFFNESS, DAMPING)
        drift = {"baumgarte": BAUMGARTE, "none": None}.get(row["drift"], row["drift"])
        options: dict[str, Any] = {}
        if self.f_ext is not None:
            options["f_ext"] = {self.frame: self.f_ext}
        if self.constants:
            options["parameters"] = self.constants
        q, qd = (x.astype(self.dtype) for x in (self.q, self.qd))
        if row["form"] == "one":
            q, qd = q[0], qd[0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", lw.LimitWarning)  # of velocities and efforts
            return lw.simulate(
                self.robot, q, qd, self.controller(), STEPS * DT, DT, row["integrator"],
                3 if row["form"] == "sparse" else 1, row["hold"], limits=limits, drift=drift,
                **options,
            )  # fmt: skip

    def run(self) -> None:
        traj = self.simulate()
        q, qd = self.motion()
        at = [0, 3, 4] if self.row["form"] == "sparse" else list(range(STEPS + 1))
        q, qd = (x[:, at].real.astype(float) for x in (q, qd))
        found = [np.asarray(x).reshape(self.rows, len(at), -1) for x in (traj.q, traj.qd)]
        assert all(x.dtype == self.dtype for x in found)
        q, found[0] = self.upright(q), self.upright(found[0])
        compared = np.ones((self.rows, len(at)), bool)
        if self.row["limits"] == "event":
            compared = self.within(q, traj)
        for got, wanted in zip(found, (q, qd), strict=True):
            off = np.abs(np.where(compared[..., None], got - wanted, 0.0))
            size = max(1.0, np.abs(wanted).max())
            assert off.max() <= self.limit * size, (
                f"off by {off.max() / size:.3g}; allowed {self.limit:.3g}; by step "
                f"{off.max(axis=(0, 2)) / size}"
            )

    def upright(self, q: Array) -> Array:
        """Quaternions with a positive first number."""
        q = np.array(q)
        for joint in self.expected.machine.joints:
            if joint.kind == "free":
                own = q[..., joint.q : joint.q + 4]
                own *= np.where(own[..., :1] < 0, -1.0, 1.0)
        return q

    def within(self, q: Array, traj: Any) -> Array:
        """Where no joint has met its limit yet; the event must be at the first that has."""
        lower, upper = self.robot.position_limits
        beyond = ((q > upper) | (q < lower)).any(-1)
        met = np.maximum.accumulate(beyond, axis=1)
        times_ = np.asarray(traj.events.t).reshape(self.rows)
        assert (np.isfinite(times_) == met[:, -1]).all()
        return ~met

    @property
    def limit(self) -> float:
        """What the methods may differ by."""
        if self.row["limits"] == "stop" and self.row["integrator"] in ("midpoint", "DOP853"):
            return 0.1  # stops that are met within a step, at other times
        if self.row["limits"] == "stop" and self.parts > 1:
            return 0.05
        if self.dtype == np.float32:
            return 1e-3 if "grasp" not in self.kind else 2e-2
        if self.row["integrator"] == "midpoint":
            return 2e-3
        if self.row["constants"] == "friction" and self.parts > 1:
            return 5e-3  # a velocity that changes its sign within a step, which the judge divides
        if self.expected.machine.held and self.row["drift"] == "project":
            # one step of Newton or several: of second order in what the step has opened
            return 1e-4 if self.row["integrator"] == "euler" else 2e-6
        if self.row["integrator"] == "DOP853" or self.parts > 1:
            return 2e-6
        return 2e-8


# -- known failures: the aim is none ---------------------------------------------------------------

KNOWN: dict[str, str] = {}


def marked(rows: Sequence[Row]) -> list[Any]:
    """Cells as parameters; those of known failures are expected to fail."""
    found = []
    for row in rows:
        name = title(row)
        why = next((reason for part, reason in KNOWN.items() if re.search(part, name)), None)
        marks = [pytest.mark.xfail(reason=why, strict=True)] if why else []
        found.append(pytest.param(row, id=name, marks=marks))
    return found


@pytest.mark.parametrize("row", marked(cells()))
def test_motions(row: Row) -> None:
    Cell(row).run()


def refusals() -> list[Any]:
    """For each rule and each robot that it is about, a cell that it refuses."""
    found = []
    for name, rule in REFUSED.items():
        for robot in ROBOTS:
            rows = drawn({**FACTORS, "robot": (robot,)}, crc32(f"{name} {robot}".encode()))
            row = next((row for row in rows if possible(row) and rule.when(row)), None)
            if row is not None:
                found.append(pytest.param(row, id=f"{name}-{robot}".replace(" ", "_")))
    return found


@pytest.mark.parametrize("row", refusals())
def test_what_is_refused_says_which_option(row: Row) -> None:
    assert not feasible(row)
    with pytest.raises(ValueError, match=r"^simulate: ") as caught:
        Cell(row).simulate()
    others = [x.names for x in REFUSED.values() if x.when(row)]
    assert any(re.search(names, str(caught.value)) for names in others), str(caught.value)
