"""Every problem of a robot file, in order of its lines.

The readers report problems with codes (`linkwise.errors`); here they are collected instead of
raised, and reading goes on past each. There is one reader: what it takes has no error here.
"""

from __future__ import annotations

import os

from linkwise.codes import ERROR
from linkwise.errors import Problem, collecting, strictness
from linkwise.io.files import FileRoots
from linkwise.io.mjcf import describe_mjcf
from linkwise.io.mjequality import Reading
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
    path: PathLike, *, strict: bool = True, beside: PathLike | None = None
) -> tuple[list[Problem], Node | None, RobotDescription | None]:
    """The problems of a file, its elements, and what could be read of it.

    Files that it names are looked for ``beside`` another file, where that is given.
    """
    label, root, description = os.fspath(path), None, None
    files = FileRoots.of(path if beside is None else beside)
    with collecting() as notes, strictness(strict):
        root = read_xml(path)
        if root.tag in MJCF_ROOTS:
            description = describe_mjcf(root, files, reading=Reading(strict=strict))
        else:
            description = describe_urdf(root, files)
        _check_model(description, notes, Policy(strict=strict))
    notes.sort(key=lambda p: (p.file != label, p.file, p.line or 0, p.severity))
    return notes, root, description


def _check_model(description: RobotDescription, notes: list[Problem], policy: Policy) -> None:
    """Report what is wrong with bodies; a description without errors is built."""
    if any(problem.severity == ERROR for problem in notes):
        check_bodies(description, policy)
    else:
        build(description, policy)
