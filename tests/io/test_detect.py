"""A robot file's format is known by its content, whatever the file is called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.io.read import parse

URDF = """<?xml version="1.0"?>
<!-- an arm -->
<robot name="arm"><link name="base"/>
<link name="a"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
</robot>"""
MJCF = """<mujoco model="arm"><worldbody><body name="a"><joint name="j"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>"""


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def detect(path: Path) -> str:
    return {"robot": "urdf", "mujoco": "mjcf"}[parse(path).tag]


@pytest.mark.parametrize("name", ["arm.urdf", "arm.xml", "arm.mjcf", "arm"])
def test_the_ending_does_not_matter(tmp_path: Path, name: str) -> None:
    assert detect(write(tmp_path, name, URDF)) == "urdf"
    assert lw.load(tmp_path / name).joint_names == ("j",)
    assert detect(write(tmp_path, name, MJCF)) == "mjcf"
    pytest.importorskip("mujoco")
    assert lw.load(tmp_path / name).joint_names == ("j",)


def test_the_same_options_apply(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    for text in (URDF, MJCF):
        path = write(tmp_path, "arm", text)
        robot = lw.load(path, gravity=(1, 2, 3), base="fixed", friction=True)
        assert robot.gravity.tolist() == [1, 2, 3]
        with pytest.raises(ValueError, match="base 'loose'"):
            lw.load(path, base="loose")


def test_other_encodings(tmp_path: Path) -> None:
    assert detect(write(tmp_path, "a", MJCF.encode("utf-16"))) == "mjcf"
    assert detect(write(tmp_path, "b", b"\xef\xbb\xbf" + MJCF.encode())) == "mjcf"


def test_a_root_after_a_long_comment(tmp_path: Path) -> None:
    assert detect(write(tmp_path, "a", f"<!--{'x' * 200_000}-->{MJCF}")) == "mjcf"


REFUSED = {
    "sdf": (
        "\n<sdf><model/></sdf>",
        r"a\.xml:2: <sdf>: the root element is <sdf>; expected <robot> \(URDF\) or <mujoco> "
        r"\(MJCF\) \(SDF is not read: convert it to URDF first\)",
    ),
    "html": ("<html/>", r"a\.xml:1: <html>: the root element is <html>; expected <robot>"),
    "xacro": (
        '<robot xmlns:xacro="http://x" name="a"><link name="b"/><xacro:if/></robot>',
        r"a\.xml:1: .*xacro",
    ),
    "fragment": ("<mujocoinclude/>", r"a\.xml:1: .*<mujocoinclude>; expected <mujoco>"),
    "dtd": ('<!DOCTYPE robot [<!ENTITY x "y">]><robot/>', r"a\.xml:1: <!DOCTYPE robot>: .*refused"),
    "empty": ("", r"a\.xml:1: the file is empty"),
    "text": ("hello", r"a\.xml:1: .*not well-formed XML"),
    "binary": (bytes(range(256)), r"a\.xml:1: .*not well-formed XML"),
    "comment only": ("<!-- nothing -->", r"a\.xml:1: .*not well-formed XML: no element found"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_else_is_found_is_said(name: str, tmp_path: Path) -> None:
    text, expected = REFUSED[name]
    with pytest.raises(lw.RobotFileError, match=expected):
        lw.load(write(tmp_path, "a.xml", text))


def test_folders_pipes_and_nothing(tmp_path: Path) -> None:
    with pytest.raises(lw.RobotFileError, match="it is a directory; expected a readable file"):
        lw.load(tmp_path)
    with pytest.raises(lw.RobotFileError, match=r"none\.xml: no such file"):
        lw.load(tmp_path / "none.xml")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(lw.RobotFileError, match="it is not a regular file"):
            lw.load(tmp_path / "pipe")


def test_a_text_may_begin_with_a_byte_order_mark() -> None:
    """As that of a file of some editors does, once it is read as UTF-8."""
    assert lw.load("\ufeff" + URDF).nv == lw.load(URDF).nv
    assert lw.check("\ufeff" + URDF) == lw.check(URDF)


def test_a_text_is_read_as_a_file_is(tmp_path: Path) -> None:
    assert lw.load(URDF) == lw.load(write(tmp_path, "arm.urdf", URDF))
    with pytest.raises(lw.RobotFileError, match='<text>:4: <link name="a"> <mass>: value="x"'):
        lw.load("\n" + URDF.replace('value="1"', 'value="x"').partition("\n")[2])
    pytest.importorskip("mujoco")
    assert lw.load(f" {MJCF}").joint_names == ("j",)
