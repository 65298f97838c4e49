"""Defects in robot files and DH tables, and fuzzed bytes: who is refused, and how."""

from __future__ import annotations

import random
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import linkwise as lw
from faults.card import Line, shown
from faults.defects import DEFECTS
from faults.document import ROBOTS, Document, File
from faults.mjcf import MJCF_DEFECTS, Model
from faults.spoil import Defect, F, spoiled
from linkwise.trace.tracer import flatten

# Longer is a hang. The slowest case, half a million elements, takes 1.3 s of processor time on an
# idle machine, and well over 2 s where neighbours share the caches.
SECONDS = 15.0
WAITING = 10.0  # times longer on the clock than on the processor, where others run too
_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+): (?P<label><.*?>(?: <[^>]*>)?): ", re.S)


class Hang(Exception):
    """A case took too long."""


@contextmanager
def deadline(seconds: float = SECONDS) -> Iterator[None]:
    """Interrupt what takes more processor time, or many times that on the clock.

    A machine that is busy with other things is no fault of the reader. Where the system has no
    timers, what took too long is only noticed.
    """

    def stop(*_: object) -> None:
        raise Hang(f"more than {seconds:g} s")

    if not hasattr(signal, "setitimer"):
        began = time.monotonic()
        yield
        if time.monotonic() - began > seconds:
            stop()
        return
    timers = (
        (signal.ITIMER_PROF, signal.SIGPROF, 1.0),
        (signal.ITIMER_REAL, signal.SIGALRM, WAITING),
    )
    before = [signal.signal(number, stop) for _, number, _ in timers]
    for timer, _, factor in timers:
        signal.setitimer(timer, factor * seconds)
    try:
        yield
    finally:
        for (timer, number, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0.0)
            signal.signal(number, handler)


def is_named(message: str, path: str, text: str) -> bool:
    """Whether a message starts with the file, a line, and an element that is on that line."""
    place = _PLACE.match(message)
    if place is None or place["path"] != path:
        return False
    tag = re.findall(r"<([^\s>]+)", place["label"])[-1]
    lines = text.split("\n")
    number = int(place["line"])
    return 1 <= number <= len(lines) and f"<{tag}" in lines[number - 1]


def gives_numbers(robot: lw.Robot) -> bool:
    """Whether the dynamics of a robot that was accepted are finite, at rest and moving.

    A robot with a joint that moves nothing has torques; its accelerations are refused.
    """
    q = [float(x) for x in robot.neutral()]
    ones = [1.0] * robot.nv
    found = [robot.evaluate("inverse_dynamics", q, ones, ones)]
    try:
        found.append(robot.evaluate("forward_dynamics", q, ones, ones))
    except ValueError as refused:
        if "move no inertia to divide by" not in str(refused):
            raise
    return all(isfinite(x) for x in flatten(found))  # type: ignore[arg-type]


def attempt(
    line: Line,
    label: str,
    load: Callable[[], lw.Robot],
    named: Callable[[str], bool],
    usual: frozenset[str] = frozenset(),
) -> None:
    """Try one bad input, and count what happens; ``usual`` warnings are not about its defect."""
    line.cases += 1
    try:
        with deadline(), warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            robot = load()
            _accepted(line, label, robot, [w for w in _told(given) if _gist(w) not in usual], named)
    except lw.RobotFileError as error:
        line.count("refused")
        _count_named(line, label, [str(error)], named)
    except Exception as error:
        line.count("wrong")
        line.fail(f"{label}: {type(error).__name__}: {error}")


def _accepted(
    line: Line, label: str, robot: lw.Robot, told: list[str], named: Callable[[str], bool]
) -> None:
    if told:
        line.count("told")
        _count_named(line, label, told, named)
    else:
        line.count("silent")
        line.fail(f"accepted: {label}")
    if not gives_numbers(robot):
        line.count("non_finite")
        line.fail(f"accepted, not finite: {label}")


def _count_named(line: Line, label: str, said: list[str], named: Callable[[str], bool]) -> None:
    if any(map(named, said)):
        line.count("named")
    else:
        line.fail(f"not named: {label}: {said[0]}")


def _told(given: list[warnings.WarningMessage]) -> list[str]:
    return [str(w.message) for w in given if issubclass(w.category, lw.RobotFileWarning)]


def _gist(message: str) -> str:
    """A message without its numbers: lines move where a defect is put in."""
    return re.sub(r"\d+", "#", message)


def _met(line: Line) -> bool:
    """No defect is silent, and every error and warning names its place."""
    noticed = (line.refused or 0) + (line.told or 0)
    every = noticed == line.cases and line.named == noticed
    return every and not line.non_finite and not line.wrong


def urdf_defects(folder: Path, robots: list[str], scratch: Path) -> Line:
    """Every kind of defect of a URDF in every robot, at three places."""
    documents = {name: Document.read(folder / ROBOTS[name]) for name in robots}
    return _file_defects("URDF", documents, DEFECTS, scratch / "robot.urdf")


def mjcf_defects(folder: Path, robots: list[str], scratch: Path) -> Line:
    """Every kind of defect of an MJCF in every robot, at three places."""
    models = {name: Model.of_urdf(folder / ROBOTS[name]) for name in robots}
    return _file_defects("MJCF", models, MJCF_DEFECTS, scratch / "robot.xml")


def _file_defects(what: str, documents: dict[str, F], defects: list[Defect[F]], path: Path) -> Line:
    line = Line(
        f"{what}, {len(defects)} kinds in {len(documents)} robots",
        "all refused or told, naming file, line and element, none non-finite",
        refused=0, told=0, named=0, silent=0, non_finite=0,
    )  # fmt: skip
    usual = {name: _control(line, name, document, path) for name, document in documents.items()}
    jobs = [(name, defect) for name in documents for defect in defects]
    for name, defect in shown(f"{what} defects", jobs, len(jobs)):
        for place, text in enumerate(spoiled(documents[name], defect)):
            path.write_text(text, encoding="utf-8")
            attempt(
                line,
                f"{defect.name}, {name}, place {place + 1}",
                lambda: lw.load(path),
                lambda message, text=text: is_named(message, str(path), text),  # type: ignore[misc]
                usual[name],
            )
    line.met = _met(line)
    return line


def _control(line: Line, name: str, document: File, path: Path) -> frozenset[str]:
    """Load the file without a defect: what is refused or told later is so for its defect."""
    path.write_text(document.text(), encoding="utf-8")
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            lw.load(path)
        except lw.RobotFileError as error:
            line.wrong += 1
            line.fail(f"{name} is refused as it is: {error}")
    return frozenset(map(_gist, _told(given)))


# -- DH tables ------------------------------------------------------------------------------------

ROW = {"a": 0.3, "alpha": 0.5, "d": 0.1, "mass": 2.0, "com": (0.1, 0.0, 0.0),
       "inertia": (0.02, 0.03, 0.04), "lower": -1.0, "upper": 1.0}  # fmt: skip
DH_DEFECTS: dict[str, dict[str, Any] | Any] = {
    **{f"{key} is {bad!r}": {key: bad} for key in ("a", "alpha", "d", "theta", "mass", "armature")
       for bad in (nan, inf, "x", None, 1j)},
    **{f"com is {bad!r}": {"com": bad} for bad in ((0, 0), (0, 0, nan), 1.0, "abc")},
    **{f"inertia is {bad!r}": {"inertia": bad} for bad in ((1, 2), (1,) * 7, (1, 1, inf), None)},
    "negative mass": {"mass": -1.0},
    "mass next to zero": {"mass": 1e-320},
    "inertia next to zero": {"inertia": (1e-310, 1e-310, 1e-310)},
    "negative armature": {"armature": -1.0},
    "negative motor inertia": {"motor_inertia": -1.0},
    "negative effort": {"effort": -1.0},
    "no mass": {"mass": 0.0, "inertia": (0.0, 0.0, 0.0)},  # of the last row: others carry some
    "negative moment": {"inertia": (-0.02, 0.03, 0.04)},
    "indefinite inertia": {"inertia": (0.02, 0.2, 0.0, 0.03, 0.0, 0.04)},
    "triangle inequality broken": {"inertia": (0.01, 0.01, 0.5)},
    "lower above upper": {"lower": 2.0, "upper": 1.0},
    "limit is NaN": {"upper": nan},
    "unknown kind": {"kind": "screw"},
    "kind is a number": {"kind": 3},
    "unknown column": {"length": 0.3},
    "misspelt column": {"aplha": 0.3},
    "name is a number": {"name": 7},
    "name of another": {"name": "same"},
    "mass beyond all measure": {"mass": 1e308},
    "a length beyond all measure": {"a": 1e300},
    "a row that is a list": [0.3, 0.5, 0.1],
    "a row that is a number": 3.0,
    "a row that is nothing": None,
}  # fmt: skip


def dh_defects(joints: tuple[int, ...] = (3, 5, 6, 7, 9)) -> Line:
    """Every kind of defect in tables of several lengths, at three rows, in both conventions."""
    line = Line(
        f"DH tables, {len(DH_DEFECTS)} kinds",
        "all refused or told, naming table and row, none non-finite",
        refused=0, told=0, named=0, silent=0, non_finite=0,
    )  # fmt: skip
    tables = [(n, c) for n in joints for c in ("standard", "modified")]
    for n, convention in tables:
        for name, change in DH_DEFECTS.items():
            for k in (n - 1,) if name == "no mass" else (0, n // 2, n - 1):
                rows: list[Any] = [dict(ROW) for _ in range(n)]
                rows[k] = {**ROW, **change} if isinstance(change, dict) else change
                rows[(k + 1) % n].update({"name": "same"} if name == "name of another" else {})
                attempt(
                    line,
                    f"{name}, {convention}, row {k + 1} of {n}",
                    lambda rows=rows, c=convention: lw.from_dh(rows, c),  # type: ignore[misc]
                    lambda text: re.match(r"<DH table 'dh'>:\d+: row \d+: ", text) is not None,
                )
    line.met = _met(line)
    return line


# -- fuzzed bytes ---------------------------------------------------------------------------------

TOKENS = [b"<", b">", b"/>", b"</", b'"', b"&", b"]]>", b"<!--", b"-->", b"<?", b"\x00",
          b"\xff\xfe", b"<!DOCTYPE", b"<![CDATA[", b"&#0;", b"&#x110000;", b"nan", b"1e999", b"-",
          b"0", b"e", b"<link", b"</link>", b"<joint", b"xmlns:a='b'", b"\xc3\x28"]  # fmt: skip


def fuzzed(data: bytes, rng: random.Random) -> bytes:
    """The bytes after one to eight accidents."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        at, size = rng.randrange(len(data) + 1), rng.choice((1, 1, 4, 40, 400))
        kind = rng.randrange(6)
        if kind == 0:
            data = data[:at] + data[at + size :]
        elif kind == 1:
            data = data[:at] + rng.randbytes(min(size, 8)) + data[at + min(size, 8) :]
        elif kind == 2:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
        elif kind == 3:
            data = data[:at] + data[at : at + size] + data[at:]
        elif kind == 4:
            other = rng.randrange(len(data) + 1)
            data = data[:at] + data[other : other + size] + data[at + size :]
        elif at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        data = data or b"<"
    return data


def byte_fuzz(folder: Path, robots: list[str], cases: int, scratch: Path) -> Line:
    """Damaged bytes: read, or refused; never anything else, and never slowly."""
    line = Line(
        "fuzzed bytes",
        f"no crash, no hang over {SECONDS:g} s, no exception but RobotFileError, none non-finite",
        refused=0, silent=0, non_finite=0,
    )  # fmt: skip
    path, rng = scratch / "fuzzed.urdf", random.Random(2026)
    originals = [(folder / ROBOTS[name]).read_bytes() for name in robots]
    for k in shown("fuzz", range(cases), cases):
        path.write_bytes(fuzzed(originals[k % len(originals)], rng))
        line.cases += 1
        try:
            with deadline(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                robot = lw.load(path)
                line.count("silent")  # a changed digit leaves a robot, and a file may be just that
                if not gives_numbers(robot):
                    line.count("non_finite")
                    line.fail(f"case {k}: accepted, not finite")
        except lw.RobotFileError:
            line.count("refused")
        except Exception as error:
            line.count("wrong")
            line.fail(f"case {k}: {type(error).__name__}: {error}")
    line.met = not line.wrong and not line.non_finite
    return line
