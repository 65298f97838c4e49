"""Every problem of a robot file, in order of its lines.

The readers report problems with codes (`linkwise.errors`); here they are collected instead of
raised, and reading goes on past each. There is one reader: what it takes has no error here.
"""

from __future__ import annotations

import os

from linkwise.check.lint import lint
from linkwise.codes import ERROR, Code
from linkwise.errors import Problem, Where, collecting
from linkwise.io.files import FileRoots
from linkwise.io.urdf import describe_urdf
from linkwise.io.xml import Node, PathLike, read_xml
from linkwise.model.bodies import Policy
from linkwise.model.build import build, check_bodies
from linkwise.model.description import RobotDescription

MJCF_ROOTS = ("mujoco", "mujocoinclude")


def check(path: PathLike, *, strict: bool = True) -> list[Problem]:
    """Return every problem of a URDF or MJCF file, by lines.

    Each has a ``code``, the ``file``, ``line`` and ``element``, a ``message``, a ``suggestion``,
    and a ``severity``: with an ``"error"`` the file does not load, a ``"warning"`` is told when it
    does, a ``"hint"`` only here. ``strict=False`` makes bodies that cannot exist a warning, as in
    `load`.
    """
    return examine(path, strict=strict)[0]


def examine(
    path: PathLike, *, strict: bool = True
) -> tuple[list[Problem], Node | None, RobotDescription | None]:
    """The problems of a file, its elements, and what could be read of it."""
    label, root, description = os.fspath(path), None, None
    with collecting() as notes:
        root = read_xml(path)
        if root.tag not in MJCF_ROOTS:
            description = describe_urdf(root, FileRoots.of(path))
            _check_model(description, notes, Policy(strict=strict))
    if root is not None and root.tag in MJCF_ROOTS:
        return _check_mjcf(label, strict), root, None
    notes.sort(key=lambda p: (p.file != label, p.file, p.line or 0, p.severity))
    return notes, root, description


def _check_model(description: RobotDescription, notes: list[Problem], policy: Policy) -> None:
    """Report what is wrong with bodies; a description without errors is built."""
    if any(problem.severity == ERROR for problem in notes):
        check_bodies(description, policy)
    else:
        build(description, policy)


def _check_mjcf(label: str, strict: bool) -> list[Problem]:
    """Problems of an MJCF, in words of their own."""
    codes = {"error": Code.OTHER, "warning": Code.OTHER_TOLD}
    return [
        Problem(
            codes[found.severity],
            Where(found.path, found.line, found.element),
            {"message": found.message, "advice": found.suggestion},
        )
        for found in lint(label, strict=strict).problems
    ]
