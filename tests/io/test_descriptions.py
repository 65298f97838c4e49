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
