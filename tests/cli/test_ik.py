"""``linkwise ik``: what it prints and refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner, Result

import linkwise as lw
from linkwise.cli.main import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["ik", *arguments])


POSE = ("--xyz", "0.4", "0.1", "0.5", "--rpy", "0.3", "2.8", "-0.2")


def test_a_pose_in_numbers() -> None:
    done = run("iiwa14", "link7", *POSE, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    there = lw.load("iiwa14").forward_kinematics(facts["q"], "link7")
    np.testing.assert_allclose(there[:3, 3], [0.4, 0.1, 0.5], atol=1e-6)
    assert facts["solved"] and max(facts["error_rad"], facts["error_m"]) <= 1e-6
    shown = run("iiwa14", "link7", *POSE).output
    assert "reached" in shown and f"{facts['q'][6]:.12g}" in shown


def test_a_place_and_a_free_axis() -> None:
    facts = json.loads(run("iiwa14", "link7", *POSE[:4], "--json").stdout)
    assert facts["solved"] and "error_rad" not in facts
    facts = json.loads(run("iiwa14", "link7", *POSE, "--free-axis", "z", "--json").stdout)
    there = lw.load("iiwa14").forward_kinematics(facts["q"], "link7")
    full = json.loads(run("iiwa14", "link7", *POSE, "--json").stdout)
    target = lw.load("iiwa14").forward_kinematics(full["q"], "link7")
    np.testing.assert_allclose(there[:3, 2:], target[:3, 2:], atol=3e-6)


def test_what_cannot_be_reached_ends_with_a_code() -> None:
    done = run("iiwa14", "link7", "--xyz", "5", "0", "0", "--restarts", "2")
    assert done.exit_code == 1 and "no; the nearest found" in done.output


def test_many_poses() -> None:
    done = run("puma560", "link6", "--poses", "200")
    assert done.exit_code == 0 and "of 200 poses" in done.output
    assert json.loads(run("puma560", "link6", "--json").stdout)["share_solved"] >= 0.99


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("iiwa14", "hand", *POSE), "frame 'hand': robot 'iiwa14' has no such frame"),
        (("iiwa14", "link7", *POSE, "--tol", "0"), "tol is 0.0; expected a number from 1e-12 on"),
        (("iiwa14", "link7", *POSE, "--restarts", "-1"), "Invalid value for '--restarts'"),
        (("iiwa14", "link7", "--xyz", "1", "2"), "requires 3 arguments"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code != 0 and message in done.output
