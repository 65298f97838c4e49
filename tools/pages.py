"""What the tools that write pages of docs/ share: public robots, and tables in Markdown."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import linkwise as lw

DOCS = Path(__file__).resolve().parents[1] / "docs"


def robots_folder() -> Path:
    """Where example-robot-data keeps its robots."""
    for folder in map(Path, sys.path):
        robots = folder / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
        if robots.is_dir():
            return robots
    raise SystemExit("example-robot-data is not installed (pip install example-robot-data)")


def example(path: str, **options: Any) -> lw.Robot:
    """A robot of example-robot-data; what its file leaves to be told is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        return lw.load(robots_folder() / path, **options)


def bundled(name: str) -> lw.Robot:
    """A bundled robot as tables of counts and errors have it: iiwa14 without its rotors."""
    robot = lw.load(name)
    for joint in robot.joint_names if name == "iiwa14" else ():
        robot = robot.with_joint(joint, armature=0.0)
    return robot


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns line up."""
    lines = [head, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    text = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([text[0], rule, *text[1:]])
