"""Robots by names of the package robot_descriptions, which a folder stands in for here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import linkwise as lw

ARM = """<robot name="arm"><link name="base"/>
<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint>
</robot>"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "robot_descriptions"
    folder.mkdir()
    (folder / "__init__.py").write_text('DESCRIPTIONS = {"arm_description": None}\n')
    (tmp_path / "arm.urdf").write_text(ARM)
    (folder / "arm_description.py").write_text(f"URDF_PATH = {str(tmp_path / 'arm.urdf')!r}\n")
    (folder / "odd_description.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    yield folder
    forget()


def forget() -> None:
    for name in [x for x in sys.modules if x.startswith("robot_descriptions")]:
        del sys.modules[name]


def test_a_robot_by_its_name(package: Path) -> None:
    assert lw.load("arm_description").joint_names == ("j",)
    with pytest.raises(lw.RobotFileError, match=r"no such robot; did you mean 'arm_description'"):
        lw.load("amr_description")
    with pytest.raises(lw.RobotFileError, match=r"odd_description: has neither URDF_PATH nor MJCF"):
        lw.load("odd_description")


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(lw.BackendUnavailable, match=r"pip install 'linkwise\[descriptions\]'"):
        lw.load("panda_description")


def test_a_robot_that_cannot_be_fetched(package: Path) -> None:
    """Offline, git's own error, of many lines, says neither what failed nor the way out."""
    text = "class GitCommandError(Exception):\n    pass\n\n"
    text += "raise GitCommandError('Cmd(git) failed\\n  exit code(128)')\n"
    (package / "far_description.py").write_text(text)
    match = (
        r"^far_description: robot_descriptions could not fetch it \(GitCommandError: "
        r'"Cmd\(git\) failed exit code\(128\)"\).* lw\.load\(\'path/to/file\.urdf\'\)'
    )
    with pytest.raises(lw.RobotFileError, match=match):
        lw.load("far_description")


def test_what_is_no_path_is_named(tmp_path: Path) -> None:
    robot = lw.load("puma560")
    for call, name in (
        (lambda: robot.save(5), "save: path"),  # type: ignore[arg-type]
        (lambda: robot.save_html(5), "save_html: path"),  # type: ignore[arg-type]
        (lambda: robot.export(5, "bias"), "export: folder"),  # type: ignore[arg-type]
        (lambda: lw.check(5), "check: source"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=f"{name} is 5; expected a path"):
            call()
    (tmp_path / "arm.urdf").write_text(ARM)
    with pytest.raises(TypeError, match="package_dirs is 5; expected folders"):
        lw.load(tmp_path / "arm.urdf", package_dirs=5)  # type: ignore[arg-type]
