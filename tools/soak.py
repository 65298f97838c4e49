"""Random public calls with random arguments, right and wrong, for minutes: what breaks, what leaks.

    python tools/soak.py                     ten minutes
    python tools/soak.py --minutes 1 --seed 7
    python tools/soak.py --calls 300         a number of calls instead: the same ones each time

Every call either returns or raises what is documented, in words without internals of Python or of
linkwise; memory is flat in the second half of the time. Exit status 1 where that does not hold.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw

DOCUMENTED = (ValueError, TypeError, lw.RobotFileError, lw.BackendUnavailable, MemoryError)
INTERNAL = re.compile(
    r"has no attribute|not subscriptable|unhashable|'NoneType' object|not iterable|Functions\.|"
    r"Derivatives\.|Differentiation\.|Conversions\.|truth value|^could not convert|not callable|"
    r"not supported between|unsupported operand|index out of range|^$"
)
FLAT = 1.0  # MB of memory per minute in the second half of the time, and
CERTAIN = 4.0  # standard errors of that slope: less is chance
PARTS = 4  # of the second half; a leak grows in each, a kernel that comes late in one
CACHED = 64  # calls of one kind before memory is measured


def resident() -> float:
    """Resident memory of this process in MB; NaN where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * 4096 / 1e6


@dataclass
class Card:
    """What a soak found."""

    seed: int
    calls: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    findings: dict[str, str] = field(default_factory=dict)  # by function, type and message
    memory: list[tuple[float, float]] = field(default_factory=list)  # seconds, MB

    @property
    def slope(self) -> float:
        """MB per minute, in the second half of the time."""
        return self._trend()[0]

    @property
    def is_flat(self) -> bool:
        """Whether memory stays what it was: a leak grows by more than chance, and all the time."""
        slope, error, parts = self._trend()
        leaks = slope > FLAT and slope > CERTAIN * error
        return not (leaks and all(x > 0.25 * slope for x in parts))

    def _trend(self) -> tuple[float, float, list[float]]:
        """MB per minute in the second half of the time, its standard error, and that of its parts.

        The error counts neighbouring measurements as one where their residuals are alike.
        """
        t, m = np.array(self.memory).T / [[60.0], [1.0]]
        t, m = (x[t >= t[-1] / 2.0] for x in (t, m))
        if len(t) < 3 * PARTS or not np.isfinite(m).all():
            return 0.0, 0.0, []
        line = np.polyfit(t, m, 1)
        residual = m - np.polyval(line, t)
        square, spread = float(residual @ residual), float(np.sum((t - t.mean()) ** 2))
        alike = float(residual[1:] @ residual[:-1]) / square if square > 0.0 else 0.0
        factor = (1.0 + max(alike, 0.0)) / max(1.0 - max(alike, 0.0), 1.0 / len(t))
        error = (factor * square / (len(t) - 2) / spread) ** 0.5
        parts = zip(np.array_split(t, PARTS), np.array_split(m, PARTS), strict=True)
        return float(line[0]), error, [float(np.polyfit(a, b, 1)[0]) for a, b in parts]

    def __str__(self) -> str:
        """Write the card."""
        rows = [f"soak, seed {self.seed}: {self.calls.total():,} calls of {len(self.calls)} kinds, "
                f"{self.refused.total():,} refused as documented",
                f"memory: {self.memory[-1][1]:.0f} MB, {self.slope:+.2f} MB/min after warm-up "
                f"({'flat' if self.is_flat else 'NOT FLAT'})"]  # fmt: skip
        rows += [f"  {name:28s} {n:7,} calls, {self.refused[name]:6,} refused"
                 for name, n in sorted(self.calls.items())]  # fmt: skip
        rows += [f"FOUND {key}\n      by {call}" for key, call in sorted(self.findings.items())]
        return "\n".join([*rows, f"{len(self.findings)} findings"])


class Soak:
    """Robots, arguments and calls, by one generator of random numbers."""

    def __init__(self, seed: int) -> None:
        self.rng, self.card = np.random.default_rng(seed), Card(seed)
        self.robots = list(_robots())
        self.folder = Path(tempfile.mkdtemp(prefix="soak"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def one(self) -> None:
        """One call."""
        robot = self.robots[self.rng.integers(len(self.robots))]
        names = list(CALLS)
        name = names[self.rng.integers(len(names))]
        self.card.calls[name] += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                CALLS[name](self, robot)
            except DOCUMENTED as error:
                self.card.refused[name] += 1
                if INTERNAL.search(str(error)):
                    self.note(name, robot, error)
            except Exception as error:  # the soak is there to find these
                self.note(name, robot, error)

    def note(self, name: str, robot: lw.Robot, error: Exception) -> None:
        """Keep one example of each kind of finding."""
        text = re.sub(r"0x[0-9a-f]+|\d{3,}", "N", str(error))[:200]
        call = f"call {self.card.calls.total()} of seed {self.card.seed}, robot {robot.name}"
        self.card.findings.setdefault(f"{name}: {type(error).__name__}: {text}", call)

    def maybe(self, x: Any, share: float = 0.04) -> Any:
        """The argument, or sometimes a wrong one."""
        if self.rng.random() >= share:
            return x
        wrong = (None, "x", 5, [1, 2], object(), {}, [["a"]], np.nan, np.zeros((2, 3, 1)), 1j, True,
                 np.zeros(0), -1, b"x", [None], np.array(["a"]), 10**30, np.zeros(3, complex),
                 x[..., :-1] if isinstance(x, np.ndarray) and x.ndim else "no such")  # fmt: skip
        return wrong[self.rng.integers(len(wrong))]

    def state(self, robot: lw.Robot, count: int) -> list[Any]:
        """A configuration, and vectors of joints."""
        shape = ((), (1,), (3,), (2, 2), (0,))[self.rng.integers(5)]
        kind = (np.float64, np.float64, np.float32)[self.rng.integers(3)]
        q = robot.integrate(robot.neutral(), self.rng.normal(size=(*shape, robot.nv)))
        more = [self.rng.normal(size=(*shape, robot.nv)) for _ in range(count - 1)]
        return [self.maybe(np.asarray(x, kind)) for x in (q, *more)]

    def frame(self, robot: lw.Robot) -> Any:
        """A frame of the robot."""
        return self.maybe(robot.frame_names[self.rng.integers(len(robot.frame_names))])


def _robots() -> Iterator[lw.Robot]:
    """Of every kind: small, so that little is compiled."""
    arm = lw.load("puma560")
    yield arm.sub_chain("link3", "link6")
    yield arm.sub_chain("link1", "link3").with_free_base()
    b = lw.Builder("tree").link("base", mass=1.0)
    for name in ("a", "b", "c"):
        b.link(name, mass=1.0, com=(0.1, 0.0, 0.2), inertia=(0.02, 0.03, 0.04))
    b.joint("one", "revolute", parent="base", child="a", axis=(0, 0, 1))
    b.joint("two", "prismatic", parent="a", child="b", axis=(1, 0, 0), xyz=(0, 0, 1))
    b.joint("three", "spherical", parent="a", child="c", xyz=(0.3, 0, 0))
    yield b.build()
    bars = lw.Builder("bars").link("ground")
    for k, (name, parent) in enumerate((("p", "ground"), ("q", "p"), ("r", "q"))):
        bars.link(name, mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.01, 0.1, 0.1))
        place = (0, 0, 0) if k == 0 else (1, 0, 0)
        bars.joint(f"j{k}", "revolute", parent=parent, child=name, axis=(0, 1, 0), xyz=place)
    yield bars.build().close_loops(lw.Loop("r", "ground", [0, 0, 0, 1, 0, 1]))
    yield arm.sub_chain("link1", "link3").with_codegen("rolled")


def _function(name: str, vectors: int, *, frame: bool = False, **words: Any) -> Callable[..., Any]:
    """A call of a function of states."""

    def call(soak: Soak, robot: lw.Robot) -> Any:
        options = {k: soak.maybe(v) for k, v in words.items() if soak.rng.random() < 0.3}
        frames = [soak.frame(robot)] if frame else []
        return getattr(robot, name)(*soak.state(robot, vectors), *frames, **options)

    return call


def _simulate(soak: Soak, robot: lw.Robot) -> Any:
    q, qd = soak.state(robot, 2)
    words = {"duration": soak.maybe(0.01), "dt": soak.maybe(0.002), "hold": soak.maybe(True),
             "integrator": soak.maybe("rk4"), "every": soak.maybe(1)}  # fmt: skip
    if soak.rng.random() < 0.3:
        words["controller"] = soak.maybe(lambda t, q, qd: -qd)
    return lw.simulate(robot, q, qd, **words)


def _difference(soak: Soak, robot: lw.Robot) -> Any:
    q = soak.state(robot, 1)[0]
    return robot.difference(q, soak.maybe(robot.neutral()), status=soak.maybe(False))


def _reach(soak: Soak, robot: lw.Robot) -> Any:
    frame = robot.frame_names[-1]
    target = robot.forward_kinematics(soak.state(robot, 1)[0], frame)
    words = {"restarts": soak.maybe(2)} if soak.rng.random() < 0.2 else {}
    return robot.inverse_kinematics(soak.maybe(target), soak.maybe(frame), **words)


def _edit(soak: Soak, robot: lw.Robot) -> Any:
    link, joint = soak.maybe(robot.link_names[-1]), soak.maybe(robot.joint_names[0])
    edits: list[Callable[[], Any]] = [
        lambda: robot.with_payload(link, soak.maybe(1.0), com=soak.maybe((0, 0, 0.1))),
        lambda: robot.with_gravity(soak.maybe((0.0, 0.0, -3.0))),
        lambda: robot.with_joint(joint, damping=soak.maybe(0.1)),
        lambda: robot.with_frame("tip", link, xyz=soak.maybe((0, 0, 0.1))),
        lambda: robot.rename(soak.maybe({robot.link_names[-1]: "last"})),
        lambda: robot.lock(soak.maybe([joint])),
        lambda: robot.with_inertia(link, soak.maybe(1.0), soak.maybe((0, 0, 0)), (1, 1, 1)),
    ]
    return edits[soak.rng.integers(len(edits))]()


def _look(soak: Soak, robot: lw.Robot) -> Any:
    looks: list[Callable[[], Any]] = [
        lambda: str(robot), lambda: robot.joint(soak.maybe(robot.joint_names[0])),
        lambda: robot.frame(soak.frame(robot)), lambda: robot.method_for(soak.maybe("bias")),
        lambda: robot.random_q(seed=soak.maybe(3), size=soak.maybe(2)),
        lambda: robot.operation_count(soak.maybe("gravity_torque")),
        lambda: robot.save(soak.folder / "robot.urdf"),
    ]  # fmt: skip
    return looks[soak.rng.integers(len(looks))]()


def _identify(soak: Soak, robot: lw.Robot) -> Any:
    if robot.nv > 10:
        return None
    q = robot.integrate(robot.neutral(), soak.rng.normal(size=(30, robot.nv)))
    qd, qdd, tau = soak.rng.normal(size=(3, 30, robot.nv))
    values = [soak.maybe(x, 0.1) for x in (q, qd, qdd, tau)]
    return lw.identify(robot, *values, bodies=soak.maybe([robot.body_names[-1]]),
                       validation=soak.maybe(0.2))  # fmt: skip


CALLS: dict[str, Callable[[Soak, lw.Robot], Any]] = {
    "inverse_dynamics": _function("inverse_dynamics", 3, method="auto", f_ext=None, status=True),
    "forward_dynamics": _function("forward_dynamics", 3, method="auto", f_ext=None, threads=1),
    "mass_matrix": _function("mass_matrix", 1, method="auto", status=True),
    "bias": _function("bias", 2, threads=2),
    "jacobian": _function("jacobian", 1, frame=True, axes="world"),
    "forward_kinematics": _function("forward_kinematics", 1, frame=True),
    "difference": _difference,
    "derivatives": _function("inverse_dynamics_derivatives", 3),
    "energy": _function("kinetic_energy", 2),
    "simulate": _simulate,
    "inverse_kinematics": _reach,
    "edit": _edit,
    "look": _look,
    "identify": _identify,
}


def soak(seed: int, calls: int = 0, minutes: float = 0.0) -> Card:
    """Call for a number of calls, or of minutes."""
    lw_soak, began, done = Soak(seed), time.monotonic(), 0
    while done < calls if calls else time.monotonic() - began < 60.0 * minutes:
        lw_soak.one()
        done += 1
        if done % CACHED == 0 or done == calls:
            lw_soak.card.memory.append((time.monotonic() - began, resident()))
    if not lw_soak.card.memory:
        lw_soak.card.memory.append((time.monotonic() - began, resident()))
    return lw_soak.card


def main() -> int:
    """Run a soak, and print its card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    card = soak(asked.seed, asked.calls, asked.minutes)
    print(card)
    return int(bool(card.findings) or not card.is_flat)


if __name__ == "__main__":
    sys.exit(main())
