"""Every problem of a robot file, in order of its lines.

The readers report problems with codes (`linkwise.errors`); here they are collected instead of
raised, and reading goes on past each. Since the readers are those of `load`, a file that loads has
no error here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from linkwise.codes import ERROR
from linkwise.engine.calls import show_options
from linkwise.errors import Problem, collecting, strictness
from linkwise.io.files import FileRoots
from linkwise.io.read import TEXT, describe, is_text, parse
from linkwise.io.xml import Node, PathLike
from linkwise.load import USUAL, Options, changed, checked, policy_of
from linkwise.model.bodies import Policy
from linkwise.model.build import build, check_bodies
from linkwise.model.description import RobotDescription
from linkwise.model.values import path_text


def check(
    source: PathLike, *, package_dirs: Sequence[PathLike] = (), **options: Unpack[Options]
) -> list[Problem]:
    """Every problem of a URDF or MJCF file (its path, or its text), in order of lines.

    >>> import linkwise as lw
    >>> for problem in lw.check("<robot name='r'><link nam='base'/></robot>"):
    ...     print(problem.code.name, problem.line, problem.severity)
    MISSPELT_ATTRIBUTE 1 error

    Each has a ``code``, the ``file``, ``line`` and ``element``, a ``message``, a ``suggestion``,
    and a ``severity``: with an ``"error"`` the file does not load, a ``"warning"`` is shown when it
    loads, a ``"hint"`` only here. Options as in `load`: ``strict=False`` makes physically
    inconsistent bodies a warning, ``loops="open"`` constraints that close a loop of an MJCF;
    ``base="free"`` also checks the base's own body.
    """
    return examine(source, package_dirs=package_dirs, **options)[0]


def examine(
    source: PathLike,
    *,
    beside: PathLike | None = None,
    package_dirs: Sequence[PathLike] = (),
    **options: Unpack[Options],
) -> tuple[list[Problem], Node | None, RobotDescription | None]:
    """The problems of a file, its elements, and what could be read of it.

    Files that it names are looked for ``beside`` another file, where that is given.
    """
    label = TEXT if is_text(source) else path_text("check: source", source)
    root, description = None, None
    files = FileRoots.of(beside or (None if is_text(source) else source), package_dirs)
    told = checked("check", options)
    with collecting() as notes, strictness(told["strict"]):
        root = parse(source)
        description = changed(describe(root, files, told["loops"], told["mimic"]), told)
        _check_model(description, notes, policy_of(told))
    notes.sort(key=lambda p: (p.file != label, p.file, p.line or 0, p.severity))
    return notes, root, description


def _check_model(description: RobotDescription, notes: list[Problem], policy: Policy) -> None:
    """Report what is wrong with bodies; a description without errors is built."""
    if any(problem.severity == ERROR for problem in notes):
        check_bodies(description, policy)
    else:
        build(description, policy)


show_options(check, Options, USUAL)
