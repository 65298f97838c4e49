"""What a study is: a TOML file, checked.

robot = "iiwa14"                # a name, or a path beside the file
measure = "inverse_dynamics"    # a function of the robot, "workspace" or "rollout"
states = 1_000_000
chunk = 100_000                 # states that are computed at once
seed = 0
frame = "link7"                 # where the function takes one

[draw]                          # of each state; what is not named is zero, q neutral
q = "limits"                    # uniform within the joints' limits, ±pi or ±1 m without
qd = { normal = 1.0 }           # standard deviation
qdd = { uniform = [-5, 5] }

[draw.payload]                  # a body on a link, or on the last one
link = "link7"
mass = { uniform = [0, 5] }     # kg
com = { uniform = [-0.1, 0.1] } # m, each of three numbers

[rollout]                       # of measure = "rollout": how far from the target joints end
kp = 100.0
kd = 20.0
duration = 2.0
dt = 1e-3

[keep]
worst = 10                      # states with the largest value of each number
bins = 64                       # of histograms
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from linkwise.algorithms import functions_of
from linkwise.bench.states import tip
from linkwise.load import load
from linkwise.robot import Robot

WORKSPACE, ROLLOUT = "workspace", "rollout"
MOST_CHUNK = 10_000_000
KNOWN = ("robot", "measure", "states", "chunk", "seed", "frame", "dtype", "draw", "rollout", "keep",
         "strict", "base")  # fmt: skip
OF_PAYLOAD = ("link", "mass", "com")
OF_ROLLOUT = {"kp": 100.0, "kd": 20.0, "duration": 1.0, "dt": 1e-3}
OF_KEEP = {"worst": 10, "bins": 64}


@dataclass(frozen=True)
class Spec:
    """A study, every word of it known."""

    robot: str
    measure: str
    states: int
    chunk: int = 100_000
    seed: int = 0
    frame: str = ""
    dtype: str = "float64"
    base: str = "fixed"
    strict: bool = True
    draw: Mapping[str, Any] = field(default_factory=dict)
    rollout: Mapping[str, float] = field(default_factory=dict)
    keep: Mapping[str, int] = field(default_factory=dict)

    @property
    def chunks(self) -> int:
        """How many."""
        return -(-self.states // self.chunk)

    def size(self, index: int) -> int:
        """States of a chunk; the last may be shorter."""
        return min(self.chunk, self.states - index * self.chunk)

    @property
    def digest(self) -> str:
        """What makes one study differ from another."""
        return hashlib.sha256(json.dumps(self.__dict__, sort_keys=True).encode()).hexdigest()

    def load(self) -> Robot:
        """The robot, with a payload as an argument where one is drawn."""
        robot = load(self.robot, base=self.base, strict=self.strict)
        if "payload" in self.draw:
            link = self.draw["payload"].get("link", robot.link_names[-1])
            return robot.parametric("payload", payload=link)
        return robot


def read_spec(path: str | Path) -> Spec:
    """A study from a file."""
    file = Path(path)
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not TOML: {error}") from error
    return spec_of(found, str(path), file.parent)


def spec_of(found: Mapping[str, Any], where: str = "study", folder: Path = Path()) -> Spec:
    """A study from a mapping; ``folder`` is where the paths in it begin."""
    _known(where, "the study", found, KNOWN)
    for name in ("robot", "measure", "states"):
        if name not in found:
            raise ValueError(f"{where}: {name} is missing; expected {name} = ...")
    values = dict(found)
    robot = values["robot"] = str(values["robot"])
    if (folder / robot).is_file():
        values["robot"] = str((folder / robot).resolve())
    for name, least, most in (("states", 1, 10**15), ("chunk", 1, MOST_CHUNK), ("seed", 0, 2**63)):
        x = values.get(name, least)
        if not isinstance(x, int) or isinstance(x, bool) or not least <= x <= most:
            raise ValueError(
                f"{where}: {name} is {x!r}; expected a whole number {least:,} to {most:,}"
            )
    if values.get("dtype", "float64") not in ("float32", "float64"):
        raise ValueError(f"{where}: dtype is {values['dtype']!r}; expected 'float32' or 'float64'")
    for name, usual in (("rollout", OF_ROLLOUT), ("keep", OF_KEEP)):
        own = values.get(name, {})
        _known(where, f"[{name}]", own, usual)
        values[name] = {**usual, **own}
    spec = Spec(**values)
    _check(where, spec)
    return spec


def _known(where: str, what: str, found: Any, words: Any) -> None:
    if not isinstance(found, Mapping):
        raise ValueError(f"{where}: {what} is {found!r}; expected a table")
    for name in found:
        if name not in words:
            near = get_close_matches(name, list(words), 1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected {', '.join(words)}"
            raise ValueError(f"{where}: {what} has no {name!r}; {hint}")


def _check(where: str, spec: Spec) -> None:
    """That the robot has the function, and the function what is drawn."""
    robot = spec.load()
    known = functions_of(robot.tree)
    if spec.measure not in (*known, WORKSPACE, ROLLOUT):
        near = get_close_matches(spec.measure, [*known, WORKSPACE, ROLLOUT], 1)
        hint = f"did you mean {near[0]!r}?" if near else "expected a function of the robot"
        raise ValueError(f"{where}: measure is {spec.measure!r}; {hint}")
    if spec.frame:
        robot.frame(spec.frame)  # says what frames there are
    for name, how in spec.draw.items():
        if name == "payload":
            _known(where, "[draw.payload]", how, OF_PAYLOAD)
            for part in ("mass", "com"):
                if part in how:
                    _drawn(where, f"payload {part}", how[part])
        elif name not in arguments(spec, robot):
            words = ", ".join((*arguments(spec, robot), "payload"))
            raise ValueError(f"{where}: [draw] has no {name!r}; {spec.measure} takes {words}")
        else:
            _drawn(where, name, how)


def _drawn(where: str, name: str, how: Any) -> None:
    pair = isinstance(how, Mapping) and len(how) == 1
    key, value = next(iter(how.items())) if pair else (None, None)
    interval = isinstance(value, list) and len(value) == 2
    good = (key == "uniform" and interval) or (key == "normal" and isinstance(value, int | float))
    limits = how == "limits" and name == "q"
    if not (good or limits or isinstance(how, int | float)):
        raise ValueError(
            f"{where}: {name} is drawn by {how!r}; expected a number, {{uniform = [low, high]}}, "
            '{normal = deviation}, or for q "limits"'
        )


def arguments(spec: Spec, robot: Robot) -> dict[str, int]:
    """The arguments that a state is made of, and their lengths."""
    if spec.measure == WORKSPACE:
        return {"q": robot.nq}
    if spec.measure == ROLLOUT:
        return {"q": robot.nq, "qd": robot.nv}
    algorithm = next(iter(functions_of(robot.tree)[spec.measure].values()))
    return dict(algorithm.input_sizes(robot.tree))


def frame_of(spec: Spec, robot: Robot) -> str:
    """The frame that is measured."""
    return spec.frame or tip(robot)
