"""What format a robot file is in, by its content: the root element, not the file's ending."""

from __future__ import annotations

import os
from xml.parsers import expat

from linkwise.codes import Code
from linkwise.errors import RobotFileError, Where, plain
from linkwise.io.xml import DEFAULT_LIMITS, PathLike, ReadLimits, read_xml

URDF, MJCF = "urdf", "mjcf"

_ROOTS = {"robot": URDF, "mujoco": MJCF, "mujocoinclude": MJCF}
_KNOWN = {
    "sdf": "SDF is not read: convert it to URDF first",
    "COLLADA": "a COLLADA mesh describes no robot",
    "launch": "a ROS launch file describes no robot",
}
_HEAD = 1 << 16


class _FoundError(Exception):
    """Stops the parser at the root element."""


def detect(path: PathLike, limits: ReadLimits = DEFAULT_LIMITS) -> str:
    """The format of a robot file: ``"urdf"`` or ``"mjcf"``."""
    found = _root(path)
    if found is None:  # not in the first bytes: let the reader say what is wrong
        root = read_xml(path, limits)
        found = root.tag, root.line
    tag, line = found
    if tag in _ROOTS:
        return _ROOTS[tag]
    raise _unknown(os.fspath(path), tag, line)


def _unknown(path: str, tag: str, line: int) -> RobotFileError:
    word = plain(tag)
    hint = f" ({_KNOWN[tag]})" if tag in _KNOWN else ""
    expected = f"<robot> (URDF) or <mujoco> (MJCF){hint}"
    return Where(path, line, f"<{word}>").problem(Code.UNKNOWN_ROOT, tag=word, expected=expected)


def _root(path: PathLike) -> tuple[str, int] | None:
    """Tag and line of the root element, if it is near the start and nothing odd comes first."""
    found: list[tuple[str, int]] = []
    parser = expat.ParserCreate()

    def start(tag: str, _attributes: object) -> None:
        found.append((tag, parser.CurrentLineNumber))
        raise _FoundError

    def stop(*_: object) -> None:
        raise _FoundError

    parser.StartElementHandler, parser.StartDoctypeDeclHandler = start, stop
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            parser.Parse(file.read(_HEAD), False)
    except (_FoundError, expat.ExpatError, OSError, ValueError, LookupError):
        pass
    return found[0] if found else None
