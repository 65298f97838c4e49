"""A robot file of any format, which its root element tells, not the file's ending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwise.codes import Code
from linkwise.errors import plain
from linkwise.io.files import FileRoots
from linkwise.io.mjequality import Reading
from linkwise.io.urdf import describe_urdf
from linkwise.io.xml import DEFAULT_LIMITS, Node, PathLike, ReadLimits, parse_xml, read_xml
from linkwise.model.description import RobotDescription

# what options of reading may be
WORDS: dict[str, tuple[str | bool | None, ...]] = {
    "strict": (True, False),
    "friction": (None, False, True),
    "base": ("fixed", "free"),
    "mimic": ("follow", "free"),
    "repair": (None, "nearest"),
    "loops": ("closed", "open"),
}
TEXT = "<text>"  # the path of a robot that is given as text
OTHERS = {
    "sdf": "SDF is not read: convert it to URDF first",
    "COLLADA": "a COLLADA mesh describes no robot",
    "launch": "a ROS launch file describes no robot",
}


def check_words(options: Mapping[str, object]) -> None:
    """Raise ValueError where an option has a value that it cannot have."""
    for option, words in WORDS.items():
        value = options.get(option, words[0])
        if value not in words:
            expected = " or ".join(map(repr, words[-2:]))
            raise ValueError(f"{option} {value!r}: expected {expected}")


def is_text(source: PathLike) -> bool:
    """Whether a robot is given as XML itself, not as the path of a file."""
    return isinstance(source, str) and source.removeprefix("\ufeff").lstrip().startswith("<")


def parse(source: PathLike) -> Node:
    """The root element of a robot, given by the path of its file or as text."""
    return parse_xml(str(source), TEXT) if is_text(source) else read_xml(source)


def read(
    source: PathLike,
    package_dirs: Sequence[PathLike] = (),
    loops: str = "closed",
    mimic: str = "follow",
) -> RobotDescription:
    """Describe the robot of a file or a text; options as in `load`."""
    files = FileRoots.of(None if is_text(source) else source, package_dirs)
    return describe(parse(source), files, loops, mimic)


def describe(
    root: Node,
    files: FileRoots,
    loops: str = "closed",
    mimic: str = "follow",
    limits: ReadLimits = DEFAULT_LIMITS,
) -> RobotDescription:
    """Turn the parsed file of a robot, which may name ``files``, into a description."""
    if root.tag == "robot":
        return describe_urdf(root, files, limits, mimic)
    if root.tag == "mujoco":
        from linkwise.io.mjcf import describe_mjcf  # where MuJoCo is installed, this takes long

        return describe_mjcf(root, files, limits, Reading(loops, mimic == "follow"))
    if root.tag == "mujocoinclude":
        raise root.problem(Code.INCLUDE_ALONE)
    why = f" ({OTHERS[root.tag]})" if root.tag in OTHERS else ""
    raise root.problem(Code.UNKNOWN_ROOT, tag=plain(root.tag), why=why)
