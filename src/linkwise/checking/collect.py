"""Every problem of a robot file, in order of its lines.

The readers report problems with codes (`linkwise.errors`); here they are collected instead of
raised, and reading goes on past each. Since the readers are those of `load`, a file that loads has
no error here.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from linkwise.codes import ERROR
from linkwise.errors import Problem, collecting, strictness
from linkwise.io.files import FileRoots
from linkwise.io.read import TEXT, check_option, describe, is_text, parse
from linkwise.io.xml import Node, PathLike
from linkwise.model.bodies import Policy
from linkwise.model.build import build, check_bodies
from linkwise.model.description import RobotDescription


def check(
    source: PathLike,
    *,
    strict: bool = True,
    package_dirs: Sequence[PathLike] = (),
    loops: str = "refuse",
) -> list[Problem]:
    """Return every problem of a URDF or MJCF file (its path, or its text), in order of lines.

    Each has a ``code``, the ``file``, ``line`` and ``element``, a ``message``, a ``suggestion``,
    and a ``severity``: with an ``"error"`` the file does not load, a ``"warning"`` is told when it
    does, a ``"hint"`` only here. Options as in `load`: ``strict=False`` makes bodies that cannot
    exist a warning, ``loops="open"`` constraints that close a loop of an MJCF.

    >>> for problem in check("<robot name='r'><link nam='base'/></robot>"):
    ...     print(problem.code.name, problem.line, problem.severity)
    MISSPELT_ATTRIBUTE 1 error
    """
    check_option("loops", loops)
    return examine(source, strict=strict, package_dirs=package_dirs, loops=loops)[0]


def examine(
    source: PathLike,
    *,
    strict: bool = True,
    beside: PathLike | None = None,
    package_dirs: Sequence[PathLike] = (),
    loops: str = "refuse",
) -> tuple[list[Problem], Node | None, RobotDescription | None]:
    """The problems of a file, its elements, and what could be read of it.

    Files that it names are looked for ``beside`` another file, where that is given.
    """
    label, root, description = TEXT if is_text(source) else os.fspath(source), None, None
    files = FileRoots.of(beside or (None if is_text(source) else source), package_dirs)
    with collecting() as notes, strictness(strict):
        root = parse(source)
        description = describe(root, files, loops)
        _check_model(description, notes, Policy(strict=strict))
    notes.sort(key=lambda p: (p.file != label, p.file, p.line or 0, p.severity))
    return notes, root, description


def _check_model(description: RobotDescription, notes: list[Problem], policy: Policy) -> None:
    """Report what is wrong with bodies; a description without errors is built."""
    if any(problem.severity == ERROR for problem in notes):
        check_bodies(description, policy)
    else:
        build(description, policy)
