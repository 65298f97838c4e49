"""``linkwise sim``: what it prints, saves and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import linkwise as lw
from linkwise.cli.main import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["sim", *arguments])


def test_a_free_swing_in_numbers_and_curves() -> None:
    done = run("puma560", "--duration", "1", "--seed", "3")
    assert done.exit_code == 0, done.output
    assert "1 s by rk4, 1,000 steps of 0.001 s" in done.output
    curves = [line for line in done.output.splitlines() if line.startswith("q joint")]
    assert len(curves) == 6 and all(set("▁█") <= set(line) for line in curves)
    assert "kinetic energy, J" in done.output


def test_as_json_it_is_what_simulate_returns() -> None:
    done = run("puma560", "--duration", "0.5", "--integrator", "midpoint", "--json")
    facts = json.loads(done.stdout)
    robot = lw.load("puma560")
    found = lw.simulate(robot, robot.random_q(seed=0), duration=0.5, integrator="midpoint")
    np.testing.assert_allclose(facts["q"], found.q[-1], rtol=0, atol=0)
    assert facts["status"] == 0 and facts["steps"] == 500 and facts["energy_error"] < 1e-4


@pytest.mark.parametrize("name", ["puma560", "iiwa14"])
@pytest.mark.parametrize("law", ["gravity", "pd", "hold"])
def test_laws(law: str, name: str) -> None:
    """From any start, with steps of any usual length, the robot comes to the target and stays."""
    robot = lw.load(name)
    for seed, dt in (("0", "0.001"), ("7", "0.001"), ("3", "0.04")):
        done = run(name, "--duration", "4", "--dt", dt, "--seed", seed, "--law", law, "--json")
        facts = json.loads(done.stdout)
        target = robot.neutral() if law == "pd" else robot.random_q(seed=int(seed))
        assert facts["status"] == 0 and facts["failed_at"] == -1
        np.testing.assert_allclose(facts["q"], target, atol=1e-2)


def test_a_motion_that_fails_is_told_with_the_results() -> None:
    done = run("iiwa14", "--duration", "100", "--dt", "5")
    assert done.exit_code == 0, done.output
    assert "OVERFLOW; no state from step" in done.output


def test_saved_and_with_an_event(tmp_path: Path) -> None:
    robot = lw.load("iiwa14")
    for joint in robot.joint_names:
        robot = robot.with_joint(joint, limits=(-0.9, 0.9))
    robot.save(tmp_path / "arm.urdf")
    path = tmp_path / "swing.npz"
    done = run(str(tmp_path / "arm.urdf"), "--limits", "event", "--save", str(path))
    assert done.exit_code == 0, done.output
    assert " met its limit at " in done.output and "LIMIT; no state from" in done.output
    assert f"trajectory saved to {path}" in done.output
    read = lw.Trajectory.load(path)
    assert read.status == lw.Status.LIMIT and read.events is not None


def test_limits_that_are_exceeded_are_shown(tmp_path: Path) -> None:
    robot = lw.load("iiwa14").with_joint("joint2", limits=(-0.1, 0.1), velocity=0.5)
    robot.save(tmp_path / "arm.urdf")
    pushed = (str(tmp_path / "arm.urdf"), "--duration", "0.5")
    picture = str(tmp_path / "a.png")
    done = run(*pushed[:3], "--plot", picture)  # from a random start
    assert done.exit_code == 0, done.output
    line = next(x for x in done.output.splitlines() if x.startswith("q joint2"))
    assert "limits -0.1 to 0.1, exceeded" in line and "position of 'joint2'" in done.output
    assert "velocity of 'joint2'" in done.output and "beyond its limit" in done.output
    assert "expected --limits stop or --limits event for positions" in done.output
    assert "--limits ignore for no warning" in done.output and "limits=" not in done.output
    assert "beyond its limit" not in run(*pushed[:3], "--limits", "ignore").output


def test_energy_at_soft_stops_is_said_to_be_estimated() -> None:
    said = "mostly the estimated work of soft stops"
    assert said in run("puma560", "--duration", "1", "--limits", "stop").output
    assert said not in run("puma560", "--duration", "0.1", "--limits", "stop").output


def test_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = run("puma560", "--duration", "0.2", "--plot", str(tmp_path / "a.png"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    done = run("puma560", "--duration", "1", "--dt", "0.3")
    assert done.exit_code == 1
    assert "error: simulate: duration 1.0 is 3.33333 steps of 0.3" in done.output
    free = lw.from_dh([lw.DHRow(a=0.5, mass=1.0, inertia=(0.1, 0.1, 0.1))], name="free")
    free.save(tmp_path / "free.urdf")
    done = run(str(tmp_path / "free.urdf"), "--limits", "stop")
    assert done.exit_code == 1 and "no joint of robot 'free' has limits" in done.output
