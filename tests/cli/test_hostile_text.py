"""Names in robot files are data: no command, message or generated code lets them act."""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.backends.cstyle import render
from linkwise.bench.selfcheck import Check
from linkwise.bench.states import exists, tip
from linkwise.cli.main import main
from linkwise.engine import build, kernels
from linkwise.errors import Problem, Where, printable, quote
from linkwise.study.generic import generic_chain

# what can be written in XML 1.0: ends of lines, C1 controls (CSI), direction marks, nothing widths
SPITE = "\n\x9b31m\u202egnp.exe\u2066\u200b\u2028\u0085\ufeff\U000e0041\ufe0f"
CODE = '*/ int main(void) { system("touch owned"); } /* // *//*/'
ROBOT = CODE + SPITE
# a program can name a robot anything at all
WORST = ROBOT + "\x1b]0;title\x07\x00\r\ud800"


def seen(text: str) -> bool:
    """Whether a terminal shows the text as it is: nothing unseen but ends of lines."""
    return text.replace("\n", "") == printable(text.replace("\n", ""))


def xml(text: str) -> str:
    return "".join(c if c.isalnum() else f"&#{ord(c)};" for c in text)


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    """A robot with hostile names, one link without mass."""
    inertia = '<inertia ixx="1.1" ixy="0.1" ixz="0" iyy="1.3" iyz="0" izz="1.7"/>'
    body = f'<inertial><mass value="1"/>{inertia}</inertial>'
    links = "".join(f'<link name="{xml(name + SPITE)}">{{}}</link>' for name in "oabc")
    path = tmp_path / "hostile.urdf"
    path.write_text(
        f'<robot name="{xml(ROBOT)}">{links.format("", "", body, body)}'
        f'<joint name="{xml("one" + CODE + SPITE)}" type="continuous">'
        f'<parent link="{xml("o" + SPITE)}"/><child link="{xml("a" + SPITE)}"/></joint>'
        f'<joint name="{xml("two" + SPITE)}" type="continuous">'
        '<origin xyz="1 0 0"/><axis xyz="0 0 1"/>'
        f'<parent link="{xml("a" + SPITE)}"/><child link="{xml("b" + SPITE)}"/></joint>'
        f'<joint name="three" type="prismatic"><axis xyz="0 1 0"/>'
        f'<parent link="{xml("b" + SPITE)}"/><child link="{xml("c" + SPITE)}"/>'
        '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>',
        encoding="utf-8",
    )
    return str(path)


def run(*arguments: str) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CliRunner().invoke(main, list(arguments))


# -- one function -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain name_1", "plain name_1"),
        ("Gelenk für Größe 日本 Ω", "Gelenk für Größe 日本 Ω"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x1b[31m\x07\x00\x7f\x9b", r"\x1b[31m\x07\x00\x7f\x9b"),
        ("\u202e\u2066\u200b\u200f\u061c\ufeff", r"\u202e\u2066\u200b\u200f\u061c\ufeff"),
        ("\u2028\u2029\u0085\u00a0\u3000", r"\u2028\u2029\x85\xa0\u3000"),
        ("\ud800x\udfff", r"\ud800x\udfff"),
        ("\u3164\ufe0f\u034f\U000e0041\U000e0101", r"\u3164\ufe0f\u034f\U000e0041\U000e0101"),
    ],
)
def test_what_is_not_seen_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown
    assert quote(text) == f'"{shown}"'


@pytest.mark.parametrize("where", [Where("a\x1b.urdf", 3, "<joint \u202e>"), Where("\n")])
def test_places_and_problems_are_one_seen_line(where: Where) -> None:
    error = where.error(f"what {SPITE} was found")
    problem = error.problem
    assert isinstance(problem, Problem)
    for text in (str(where), str(error), problem.message, str(problem)):
        assert printable(text) == text


# -- every command ------------------------------------------------------------------------------

COMMANDS = [
    ("info",),
    ("ops",),
    ("check",),
    ("demo", "--seconds", "0.0001"),
    ("bench", "--seconds", "0.0001", "--batch", "4"),
    ("source", "gravity_torque"),
    ("source", "gravity_torque", "--backend", "llvm"),
    ("source", "jacobian"),
    ("source", "no_such_function"),
    ("source", "jacobian", "--frame", "nowhere"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_print_only_what_is_seen(
    command: tuple[str, ...], hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "linkwise.report.findings.self_check", lambda robot, report: [Check(WORST, WORST, 0.0, 1.0)]
    )
    result = run(command[0], hostile, *command[1:])
    assert result.exit_code in (0, 1, 2)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.output and seen(result.output)


FORGED = "\nforged: a line that no command printed"


@pytest.mark.parametrize(
    "command",
    [
        ("info",), ("ops",), ("check",), ("ik", "tip" + FORGED, "--poses", "2"),
        ("sim", "--duration", "0.01"), ("sim", "--limits", "event", "--duration", "0.01"),
    ],
)  # fmt: skip
def test_a_name_of_several_lines_makes_no_line(command: tuple[str, ...], tmp_path: Path) -> None:
    b = lw.Builder("robot" + FORGED)
    inertia = {"mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": (0.1, 0.1, 0.1)}
    for k, (parent, child) in enumerate((("base", "arm"), ("arm", "tip"))):
        b.link(child + FORGED, **inertia)
        parent = parent if k == 0 else parent + FORGED
        b.joint(f"j{k}{FORGED}", "revolute", parent=parent, child=child + FORGED, limits=(-1, 1))
    path = tmp_path / "robot.urdf"
    b.build().save(path)
    result = run(command[0], str(path), *command[1:])
    assert result.exit_code in (0, 1), result.output
    assert result.output and not any(x.startswith("forged") for x in result.output.splitlines())


def test_long_work_names_the_robot_in_one_seen_line(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def progress(what: str, estimate: float = 0.0) -> AbstractContextManager[None]:
        told.append(what)
        return nullcontext()

    for module in (build, kernels):
        monkeypatch.setattr(module, "progress", progress)
    monkeypatch.setenv("LINKWISE_CACHE", "off")
    robot = lw.Robot(replace(generic_chain(2), name=WORST))
    robot.gravity_torque(np.zeros((2, 2)))
    assert [what.split()[0] for what in dict.fromkeys(told)] == ["tracing", "compiling"]
    assert all(printable(what) == what and "int main" in what for what in told)


@pytest.mark.parametrize("command", ["info", "ops", "check"])
def test_json_is_ascii_and_keeps_names(command: str, hostile: str) -> None:
    result = run(command, hostile, "--json")
    assert result.stdout.isascii() and seen(result.stdout)
    facts = json.loads(result.stdout)
    if command != "check":
        assert facts["name"] == ROBOT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('type="continuous"', 'type="{}"'),
        ('<mass value="1"/>', '<mass value="{}"/>'),
        ('<mass value="1"/>', "<mass value='1' {}='2'/>"),
        ('<parent link="', '<parent link="{}'),
        ('xyz="1 0 0"', 'xyz="1 0 {}"'),
        ("<inertial>", "<inertial><{}/>"),
    ],
)
@pytest.mark.parametrize("command", ["info", "check"])
def test_messages_about_hostile_files_are_seen(
    command: str, old: str, new: str, hostile: str
) -> None:
    path = Path(hostile)
    text = path.read_text(encoding="utf-8")
    assert old in text
    spite = "a\u200d\u2060b" if "{}=" in new or "<{}" in new else xml(SPITE)
    path.write_text(text.replace(old, new.format(spite)), encoding="utf-8")
    result = run(command, hostile)
    assert result.output and seen(result.output)


def test_a_hostile_path_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "arm\x1b[31m\u202e\n.urdf"
    for result in (run("info", str(path)), run("source", str(path), "mass_matrix")):
        assert result.exit_code == 1 and seen(result.output)
        assert r"arm\x1b[31m\u202e\n.urdf" in result.output
    path.write_text("<robot/>")
    for command in ("info", "check"):
        assert seen(run(command, str(path)).output)


# -- from Python --------------------------------------------------------------------------------


def worst() -> lw.Robot:
    link = {"a": 1.0, "mass": 2.0, "com": (-0.5, 0.1, 0.0), "inertia": (0.1, 0.2, 0.3)}
    return lw.from_dh([link] * 2, name=WORST)


def test_a_printed_robot_is_seen(hostile: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = lw.load(hostile)
    for robot in (worst(), loaded):
        assert seen(str(robot)) and repr(robot).isprintable()
        assert len(str(robot).split("\n")) == 4 + len(robot.tree.links), "a name makes no lines"
        str(robot).encode()


def test_errors_about_arguments_are_seen(hostile: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = lw.load(hostile)
    calls: list[Any] = [
        lambda r: r.jacobian(np.zeros(r.nv), WORST),
        lambda r: r.mass_matrix(np.zeros(r.nv + 1)),
        lambda r: r.mass_matrix(np.zeros(r.nv), method=WORST),
        lambda r: r.compute(WORST, np.zeros(r.nv)),
        lambda r: r.bias(np.zeros(r.nv), np.zeros(r.nv), f_ext={WORST: np.zeros(6)}),
        lambda r: r.source(WORST),
        lambda r: r.source("mass_matrix", WORST),
    ]
    for robot in (worst(), loaded):
        for call in calls:
            with pytest.raises(ValueError) as caught:
                call(robot)
            assert str(caught.value).isprintable()


# -- generated code -----------------------------------------------------------------------------


def test_no_name_reaches_generated_code(hostile: str) -> None:
    """Only the first comment of C code names the robot, and nothing in a name ends it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = lw.load(hostile)
    for robot in (loaded, worst()):
        for backend in ("c", "llvm", "asm"):
            for function, methods in FUNCTIONS.items():
                if backend != "c" and function not in ("bias", "jacobian"):
                    continue
                method = next(iter(methods.values()))
                if not (exists(robot, function, tip(robot)) and method.exists_for(robot.tree)):
                    continue
                frame = tip(robot) if method.takes_frame else None
                text = robot.source(function, backend, frame=frame)
                assert seen(text.replace("\t", " "))
                if backend == "c":
                    comment, rest = text.split("*/", 1)
                    assert comment.startswith("/*") and "/*" not in comment[2:]
                    text = rest
                for word in ("system", "main", "owned", "gnp"):
                    assert word not in text.replace("asm.main", ""), (backend, function)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("name", [ROBOT, WORST, "a*", "*/", "/*/*/", "**//", "??/", "\\", "*\\\n/"])
def test_a_c_compiler_sees_one_function(name: str, tmp_path: Path) -> None:
    link = {"a": 1.0, "mass": 2.0, "com": (-0.5, 0.1, 0.0), "inertia": (0.1, 0.2, 0.3)}
    path = tmp_path / "robot.c"
    path.write_text(lw.from_dh([link] * 2, name=name).source("bias"), encoding="utf-8")
    strict = ["-std=c99", "-trigraphs", "-Wall", "-Wextra", "-Werror", "-Wbidi-chars=any", "-c"]
    subprocess.run(["gcc", *strict, str(path), "-o", str(tmp_path / "robot.o")], check=True)
    names = subprocess.run(
        ["nm", "--defined-only", str(tmp_path / "robot.o")],
        capture_output=True,
        text=True,
        check=True,
    )
    symbols = [line.split() for line in names.stdout.splitlines()]
    assert [name for *_, kind, name in symbols if kind.isupper()] == ["bias_rnea"]


def test_comments_keep_stars_and_slashes_apart() -> None:
    for text in ("*/", "/*", "**/", "*/*/", "//", "/*/", "a*/b", "***"):
        inner = render.comment(text).removeprefix("/*").removesuffix("*/")
        assert "*/" not in inner and "/*" not in inner
        assert inner.replace(" ", "") == text.replace(" ", "")
