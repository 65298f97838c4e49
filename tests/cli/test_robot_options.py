"""Options of commands that load a robot."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from linkwise.cli.main import main

pytest.importorskip("mujoco", reason="MuJoCo (pip install mujoco) is not installed")

ARM = """<mujoco><worldbody>
  <body name="a"><joint name="ja"/><geom size=".1" pos="0 .2 0"/></body>
</worldbody>{rest}</mujoco>"""


def info(path: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["info", str(path), *options])
    return result.exit_code, result.output


@pytest.mark.filterwarnings("ignore:.*left out:linkwise.RobotFileWarning")
def test_loops_are_closed_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(ARM.format(rest='<equality><weld body1="a"/></equality>'))
    code, output = info(path)
    assert code == 0 and "loop" in output
    code, output = info(path, "--loops", "open")
    assert code == 0 and "1 degrees of freedom" in output.replace("degree of", "degrees of")


def test_folders_are_declared(tmp_path: Path) -> None:
    inner = tmp_path / "up" / "in"
    inner.mkdir(parents=True)
    (tmp_path / "arm.xml").write_text(ARM.format(rest=""))
    path = inner / "main.xml"
    path.write_text('<mujoco><include file="../../arm.xml"/></mujoco>')
    code, output = info(path)
    assert code != 0 and "leads out of the declared folders" in output
    code, output = info(path, "--package-dir", str(tmp_path))
    assert code == 0 and "ja" in output
