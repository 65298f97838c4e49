"""What a study is: a TOML file, checked.

robot = "iiwa14"                # a name, or a path beside the file
measure = "inverse_dynamics"    # a function of the robot, "workspace" or "rollout"
states = 1_000_000
chunk = 100_000                 # states that are computed at once
seed = 0
sequence = "random"             # or "lattice": evenly spread draws, for means that converge sooner
frame = "link7"                 # where the function takes one

[draw]                          # of each state; what is not named is zero, q and target neutral
q = "limits"                    # uniform within the joints' limits, ±pi or ±1 m without
qd = { normal = 1.0 }           # standard deviation, or [mean, standard deviation]
qdd = { uniform = [-5, 5] }     # either may be a list, a number for each degree of freedom

[draw.payload]                  # a point of mass on a link, or on the last one
link = "link7"
mass = { uniform = [0, 5] }     # kg
com = { uniform = [-0.1, 0.1] } # m, each of three numbers

[draw.parameters]               # what is uncertain about the robot
inertia = { uniform = [0.9, 1.1] }   # times the file's, a number for each body
gravity = { normal = 0.1 }           # m/s² more than the file's, three numbers
rotor = { uniform = [0, 0.1] }       # kg m² or kg, for each degree of freedom
viscous = { uniform = [0, 2] }       # N m s/rad or N s/m, for each degree of freedom
coulomb = { uniform = [0, 2] }       # N m or N, for each degree of freedom

[rollout]                       # of measure = "rollout": how far from the target joints end
law = "computed_torque"         # or "pd", "pd+gravity", "none"; it knows nothing of parameters
kp = 100.0                      # these two may be drawn instead, one number for each state
kd = 20.0
duration = 2.0
dt = 1e-3

[keep]
worst = 10                      # states with the largest value of each number
bins = 64                       # of histograms
limit = [320, 320, 176, 176, 110, 40, 40]  # counts numbers beyond it; "effort": the robot's own
"""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algorithms import functions_of
from linkwise.bench.states import tip
from linkwise.load import load
from linkwise.robot import Robot

Array = NDArray[Any]
WORKSPACE, ROLLOUT, EFFORT = "workspace", "rollout", "effort"
SEQUENCES = ("random", "lattice")
LAWS = ("computed_torque", "pd", "pd+gravity", "none")
MOST_CHUNK = 1_000_000_000
MOST_STEPS = 10_000_000  # of one rollout
KNOWN = ("robot", "measure", "states", "chunk", "seed", "sequence", "frame", "dtype", "draw",
         "rollout", "keep", "strict", "base")  # fmt: skip
OF_PAYLOAD = ("link", "mass", "com")
# what is drawn of each parameter of a study: the robot's parameter that it belongs to
OF_PARAMETERS = {"inertia": "inertia", "gravity": "gravity", "rotor": "rotor",
                 "viscous": "friction", "coulomb": "friction"}  # fmt: skip
OF_ROLLOUT = {"law": LAWS[0], "kp": 100.0, "kd": 20.0, "duration": 1.0, "dt": 1e-3}
OF_KEEP = {"worst": 10, "bins": 64, "limit": None}


@dataclass(frozen=True)
class Spec:
    """A study, every word of it known."""

    robot: str
    measure: str
    states: int
    chunk: int = 100_000
    seed: int = 0
    sequence: str = SEQUENCES[0]
    frame: str = ""
    dtype: str = "float64"
    base: str = "fixed"
    strict: bool = True
    draw: Mapping[str, Any] = field(default_factory=dict)
    rollout: Mapping[str, Any] = field(default_factory=dict)
    keep: Mapping[str, Any] = field(default_factory=dict)

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

    @property
    def parameters(self) -> tuple[str, ...]:
        """The robot's parameters that are drawn, as `Robot.parametric` names them."""
        drawn = [OF_PARAMETERS[name] for name in self.draw.get("parameters", {})]
        return tuple(dict.fromkeys((*drawn, *(["payload"] if "payload" in self.draw else []))))

    def load(self) -> Robot:
        """The robot, with those of its constants as arguments that are drawn."""
        robot = load(self.robot, base=self.base, strict=self.strict)
        if not self.parameters:
            return robot
        link = self.draw.get("payload", {}).get("link", robot.link_names[-1])
        rest = [name for name in self.parameters if name != "payload"]
        return robot.parametric(*rest, payload=link if "payload" in self.draw else None)


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
    _check_words(where, values)
    robot = values["robot"]
    if (folder / robot).is_file():
        values["robot"] = str((folder / robot).resolve())
    for name, least, most in (("states", 1, 10**15), ("chunk", 1, MOST_CHUNK), ("seed", 0, 2**63)):
        _whole(where, name, values.get(name, least), least, most)
    _one_of(where, "dtype", values.get("dtype", "float64"), ("float32", "float64"))
    _one_of(where, "sequence", values.get("sequence", SEQUENCES[0]), SEQUENCES)
    for name, usual in (("rollout", OF_ROLLOUT), ("keep", OF_KEEP)):
        own = values.get(name, {})
        _known(where, f"[{name}]", own, usual)
        values[name] = {**usual, **own}
    _one_of(where, "[rollout] law", values["rollout"]["law"], LAWS)
    _check_rollout(where, values["rollout"])
    for name, least, most in (("worst", 1, 10_000), ("bins", 2, 100_000)):
        _whole(where, f"[keep] {name}", values["keep"][name], least, most)
    spec = Spec(**values)
    _check(where, spec)
    return spec


def _whole(where: str, name: str, x: Any, least: int, most: int) -> None:
    if not isinstance(x, int) or isinstance(x, bool) or not least <= x <= most:
        raise ValueError(f"{where}: {name} is {x!r}; expected a whole number {least:,} to {most:,}")


def _one_of(where: str, name: str, x: Any, words: tuple[str, ...]) -> None:
    if not isinstance(x, str) or x not in words:
        expected = f"{', '.join(map(repr, words[:-1]))} or {words[-1]!r}"
        raise ValueError(f"{where}: {name} is {x!r}; expected {expected}")


def _known(where: str, what: str, found: Any, words: Any) -> None:
    if not isinstance(found, Mapping):
        raise ValueError(f"{where}: {what} is {found!r}; expected a table")
    for name in found:
        if name not in words:
            near = get_close_matches(name, list(words), 1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected {', '.join(words)}"
            raise ValueError(f"{where}: {what} has no {name!r}; {hint}")


def _check_rollout(where: str, how: Mapping[str, Any]) -> None:
    for name in ("kp", "kd", "duration", "dt"):
        x, positive = how[name], name in ("duration", "dt")
        if not _number(x) or not _finite(x) or (positive and x <= 0):
            expected = "a number of seconds above zero" if positive else "a finite number"
            raise ValueError(f"{where}: [rollout] {name} is {x!r}; expected {expected}")
    steps = how["duration"] / how["dt"]
    if steps > MOST_STEPS:
        raise ValueError(
            f"{where}: [rollout] duration is {how['duration']!r} and dt {how['dt']!r}, which are "
            f"{steps:.3g} steps; expected {MOST_STEPS:,} at most"
        )


def _check_words(where: str, values: Mapping[str, Any]) -> None:
    """That texts are texts, tables tables, and truth values true or false."""
    for name in ("robot", "measure", "frame", "base", "dtype", "sequence"):
        if name in values and not isinstance(values[name], str):
            raise ValueError(f"{where}: {name} is {values[name]!r}; expected a text")
    if not isinstance(values.get("strict", True), bool):
        raise ValueError(f"{where}: strict is {values['strict']!r}; expected true or false")
    draw = values.get("draw", {})
    for name, x in (("draw", draw), *(
        (f"draw.{part}", draw[part]) for part in ("payload", "parameters")
        if isinstance(draw, Mapping) and part in draw
    )):  # fmt: skip
        if not isinstance(x, Mapping):
            raise ValueError(f"{where}: [{name}] is {x!r}; expected a table")
    link = draw.get("payload", {}).get("link", "")
    if not isinstance(link, str):
        raise ValueError(f"{where}: [draw.payload] link is {link!r}; expected a text")


def _check(where: str, spec: Spec) -> None:
    """That the robot has the function, and the function what is drawn."""
    if "payload" in spec.draw:
        _check_payload(where, spec.sequence, spec.draw["payload"])
    _known(where, "[draw.parameters]", spec.draw.get("parameters", {}), OF_PARAMETERS)
    robot = spec.load()
    known = functions_of(robot.tree)
    if spec.measure not in (*known, WORKSPACE, ROLLOUT):
        near = get_close_matches(spec.measure, [*known, WORKSPACE, ROLLOUT], 1)
        hint = f"did you mean {near[0]!r}?" if near else "expected a function of the robot"
        raise ValueError(f"{where}: measure is {spec.measure!r}; {hint}")
    if spec.frame:
        robot.frame(spec.frame)  # says what frames there are
    taken = arguments(spec, robot)
    for name, how in spec.draw.items():
        if name not in (*taken, "payload", "parameters"):
            words = ", ".join((*taken, "payload", "parameters"))
            raise ValueError(f"{where}: [draw] has no {name!r}; {spec.measure} takes {words}")
        if name in taken:
            _drawn(where, spec.sequence, name, how, taken[name])
    for name, how in spec.draw.get("parameters", {}).items():
        _drawn(where, spec.sequence, f"parameters {name}", how, sizes_of(robot)[name])
    for name in ("q", "target"):
        turns = spec.draw.get(name) == "limits" and robot.nq != robot.nv
        if turns and spec.sequence == "lattice":
            raise ValueError(
                f'{where}: {name} = "limits" of {robot.name!r}, which has quaternions, is not '
                'drawn from a lattice; expected sequence = "random"'
            )
    limits_of(where, spec, robot)


def _check_payload(where: str, sequence: str, how: Any) -> None:
    _known(where, "[draw.payload]", how, OF_PAYLOAD)
    for part in ("mass", "com"):
        if part in how:
            _drawn(where, sequence, f"payload {part}", how[part], 3 if part == "com" else 1)
    mass = how.get("mass", 1.0)
    least = mass.get("uniform", -1.0) if isinstance(mass, Mapping) else mass
    if min(_flat(least)) < 0:
        raise ValueError(
            f"{where}: payload mass is drawn by {mass!r}, which may be negative; expected a number "
            "or {uniform = [low, high]}, none below zero"
        )


def _drawn(where: str, sequence: str, name: str, how: Any, size: int) -> None:
    """That an argument of some length can be drawn so."""

    def numbers(x: Any) -> bool:
        many = isinstance(x, list) and len(x) == size and all(map(_number, x))
        return _number(x) or many

    pair = isinstance(how, Mapping) and len(how) == 1
    key, value = next(iter(how.items())) if pair else (None, None)
    interval = isinstance(value, list) and len(value) == 2 and all(map(numbers, value))
    good = (key == "uniform" and interval) or (key == "normal" and (interval or _number(value)))
    words = {"q": ("limits", "neutral"), "target": ("limits", "neutral")}.get(name, ())
    if not (good or (isinstance(how, str) and how in words) or numbers(how)):
        raise ValueError(
            f"{where}: {name} is drawn by {how!r}; expected a number, {{uniform = [low, high]}}, "
            f"{{normal = deviation}}, {{normal = [mean, deviation]}}, lists of {size} in place of "
            'such numbers, or for q "limits"'
        )
    _check_numbers(where, name, how)
    if key == "normal" and sequence == "lattice":
        raise ValueError(
            f'{where}: {name} is drawn by {how!r}, and sequence = "lattice" has uniform draws '
            "only; expected {uniform = [low, high]}"
        )


def _check_numbers(where: str, name: str, how: Any) -> None:
    """That the numbers of a draw, whose form is right, are finite, and no deviation negative."""
    value = next(iter(how.values())) if isinstance(how, Mapping) else how
    if not all(map(_finite, _flat(value))):
        raise ValueError(f"{where}: {name} is drawn by {how!r}; expected finite numbers")
    if isinstance(how, Mapping) and "uniform" in how and isinstance(value, list):
        low, high = (np.asarray(x, float) for x in value)
        with np.errstate(over="ignore"):
            widths = np.atleast_1d(high - low)
        if not ((widths >= 0.0) & np.isfinite(widths)).all():
            raise ValueError(
                f"{where}: {name} is drawn by {how!r}; expected [low, high], low not above high, "
                "and their difference finite"
            )
    normal = isinstance(how, Mapping) and "normal" in how
    if normal and min(_flat(value[1] if isinstance(value, list) else value)) < 0:
        raise ValueError(
            f"{where}: {name} is drawn by {how!r}, which has a negative deviation; expected "
            "deviations not below zero"
        )


def _flat(x: Any) -> list[Any]:
    """The numbers of a number, or of lists of them; words are none."""
    if isinstance(x, list):
        return [number for own in x for number in _flat(own)]
    return [x] if _number(x) else []


def _number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)


def _finite(x: float) -> bool:
    return abs(x) <= sys.float_info.max  # also of whole numbers that no float holds


def sizes_of(robot: Robot) -> dict[str, int]:
    """How many numbers are drawn of each parameter."""
    return dict.fromkeys(OF_PARAMETERS, robot.nv) | {"inertia": len(robot.body_names), "gravity": 3}


def arguments(spec: Spec, robot: Robot) -> dict[str, int]:
    """The arguments that a state is made of, and their lengths."""
    if spec.measure == WORKSPACE:
        return {"q": robot.nq}
    if spec.measure == ROLLOUT:
        return {"q": robot.nq, "qd": robot.nv, "target": robot.nq, "kp": 1, "kd": 1}
    algorithm = next(iter(functions_of(robot.tree)[spec.measure].values()))
    return dict(algorithm.input_sizes(robot.tree))


def frame_of(spec: Spec, robot: Robot) -> str:
    """The frame that is measured."""
    return spec.frame or tip(robot)


def limits_of(where: str, spec: Spec, robot: Robot) -> Array | None:
    """The size beyond which each number (m) is counted; one for all of them is (1)."""
    limit = spec.keep["limit"]
    if limit is None:
        return None
    if limit == EFFORT:
        if not np.isfinite(robot.effort_limits).any():
            raise ValueError(
                f"{where}: [keep] limit is 'effort', and robot {robot.name!r} has no effort "
                f"limits; expected a number, or one for each of {robot.nv} joints"
            )
        return robot.effort_limits
    found = limit if isinstance(limit, list) else [limit]
    if not found or not all(_number(x) and x >= 0 for x in found):
        raise ValueError(
            f"{where}: [keep] limit is {limit!r}; expected a number not below zero, one for each "
            "number that is measured, or 'effort'"
        )
    return np.array(found, float)
