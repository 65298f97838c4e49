"""What format a robot file is in, by its content: the root element, not the file's ending."""

from __future__ import annotations

from linkwise.codes import Code
from linkwise.errors import RobotFileError, plain
from linkwise.io.xml import Node

URDF, MJCF = "urdf", "mjcf"

_ROOTS = {"robot": URDF, "mujoco": MJCF, "mujocoinclude": MJCF}
_KNOWN = {
    "sdf": "SDF is not read: convert it to URDF first",
    "COLLADA": "a COLLADA mesh describes no robot",
    "launch": "a ROS launch file describes no robot",
}


def format_of(root: Node) -> str:
    """The format of a robot file by its root element: ``"urdf"`` or ``"mjcf"``."""
    if root.tag in _ROOTS:
        return _ROOTS[root.tag]
    raise _unknown(root)


def _unknown(root: Node) -> RobotFileError:
    hint = f" ({_KNOWN[root.tag]})" if root.tag in _KNOWN else ""
    expected = f"<robot> (URDF) or <mujoco> (MJCF){hint}"
    return root.problem(Code.UNKNOWN_ROOT, tag=plain(root.tag), expected=expected)
