"""What a simulation returns: energies, paths, files, tables and pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw


@pytest.fixture(scope="module")
def swing(puma: lw.Robot) -> lw.Trajectory:
    """Three states under a law and a wrench, of a robot with friction."""
    robot = lw.load("puma560").with_friction()
    for joint in robot.joint_names:
        robot = robot.with_joint(joint, damping=0.3)
    law = lw.control.pd(robot, 20.0, 2.0) + lw.control.gravity_compensation(robot)
    push = {"link6": [0.0, 0.1, 0.0, 1.0, 0.0, 2.0], "link3": [0.0] * 5 + [1.0]}
    return lw.simulate(
        robot, robot.random_q(seed=0, size=3), None, law, 0.4, hold=False, f_ext=push
    )


def test_energy_is_that_of_the_robot(swing: lw.Trajectory) -> None:
    robot, energy = swing.robot, swing.energy
    assert robot is not None
    np.testing.assert_array_equal(energy.kinetic, robot.kinetic_energy(swing.q, swing.qd))
    np.testing.assert_array_equal(energy.potential, robot.potential_energy(swing.q))
    np.testing.assert_array_equal(energy.total, energy.kinetic + energy.potential)


def test_the_power_of_everything_that_acts_adds_up(swing: lw.Trajectory) -> None:
    """Torques, wrenches, damping: what is left falls with the square of the time between states."""
    left = np.abs(swing.balance.residual).max()
    for work in (swing.balance.lost, swing.balance.by_wrenches):
        assert np.abs(work).max() > 0.01
    assert left <= 1e-4 * np.abs(swing.balance.by_controller).max()
    law, robot = swing.controller, swing.robot
    fine = lw.simulate(robot, swing.q[:, 0], None, law, 0.4, 5e-4, hold=False, f_ext=swing.f_ext)
    assert np.abs(fine.balance.residual).max() == pytest.approx(left / 4, rel=0.1)


def test_held_torques_do_their_own_work(puma: lw.Robot) -> None:
    law = lw.control.pd(puma, 50.0, 5.0)
    q = puma.random_q(seed=0)
    compiled = lw.simulate(puma, q, None, law, 0.2)
    python = lw.simulate(puma, q, None, lambda t, q, qd: law(t, q, qd), 0.2)
    for found in (compiled, python):
        work = np.abs(found.balance.by_controller).max()
        assert np.abs(found.balance.residual).max() <= 1e-4 * work


@pytest.mark.parametrize("hold", [True, False])
def test_the_balance_of_states_far_apart_is_of_second_order(puma: lw.Robot, hold: bool) -> None:
    """Held torques change between two kept states; how much they did follows from both."""
    law, q = lw.control.pd(puma, 50.0, 5.0), puma.neutral() + 0.3
    for controller in (law, lambda t, q, qd: -50.0 * q - 5.0 * qd):
        left = []
        for every in (8, 16, 32, 64):
            found = lw.simulate(puma, q, None, controller, 0.256, 2e-4, every=every, hold=hold)
            work = np.abs(found.balance.by_controller).max()
            left.append(np.abs(found.balance.residual).max() / work)
        orders = np.log2(np.array(left[1:]) / left[:-1])
        assert left[0] <= 1e-3 and (np.abs(orders - 2.0) <= 0.1).all(), (left, orders)


def test_the_balance_of_torques_that_jump_at_every_step(puma: lw.Robot) -> None:
    """Of second order where every state is kept; torques of a function and of a law alike."""
    tau, left = 20.0 * np.random.default_rng(0).normal(size=(64, 6)), []
    for times in (1, 2, 4):
        rows, dt = np.repeat(tau, times, 0), 4e-3 / times
        law = lw.control.constant(puma, lw.control.PerStep(rows))
        found = lw.simulate(puma, puma.neutral(), None, law, 0.256, dt)
        steps = iter(rows)
        python = lw.simulate(puma, puma.neutral(), None, lambda *_, s=steps: next(s), 0.256, dt)
        np.testing.assert_array_equal(found.balance.residual, python.balance.residual)
        left.append(
            np.abs(found.balance.residual).max() / np.abs(found.balance.by_controller).max()
        )
    assert left[0] <= 1e-5
    np.testing.assert_allclose(np.log2(np.array(left[:-1]) / left[1:]), 2.0, atol=0.1)


def test_the_path_of_a_frame(swing: lw.Trajectory) -> None:
    poses = swing.robot.forward_kinematics(swing.q, "link6")  # type: ignore[union-attr]
    np.testing.assert_array_equal(swing.path("link6"), poses[..., :3, 3])


def test_one_row_of_a_batch(swing: lw.Trajectory) -> None:
    one = swing.at(2)
    for name in ("q", "qd", "tau"):
        np.testing.assert_array_equal(getattr(one, name), getattr(swing, name)[2])
    np.testing.assert_allclose(one.balance.residual, swing.balance.residual[2], atol=1e-12)
    assert one.status == 0
    with pytest.raises(
        IndexError, match=r"at: 2 indices; expected 1, one for each batch axis, such as at\(0\)"
    ):
        swing.at(0, 1)


def test_a_trajectory_equals_itself_alone(swing: lw.Trajectory) -> None:
    one, other = swing.at(1), swing.at(1)
    assert one == one and one != other and len({one, other, one}) == 2


def test_a_trajectory_says_what_it_is(swing: lw.Trajectory) -> None:
    assert repr(swing) == "<Trajectory of 'puma560': 3 states, 401 times, 0 to 0.4 s>"
    assert repr(swing.controller) == "<Law for 'puma560': pd + gravity compensation>"


def test_rows_that_ended_at_a_limit_did_not_fail() -> None:
    robot = lw.load("puma560").with_joint("joint1", limits=(-0.1, 0.1))
    q, qd = np.zeros((2, 6)), np.zeros((2, 6))
    qd[1, 0] = 9.0
    ended = lw.simulate(robot, q, qd, duration=0.05, limits="event")
    assert repr(ended).endswith(": 2 states, 51 times, 0 to 0.05 s, 1 ended at a limit>")


def test_the_figure_names_the_row(swing: lw.Trajectory) -> None:
    pytest.importorskip("matplotlib")
    titles = (swing.plot(), swing.plot(row=2), swing.at(1).plot())
    ends = [figure.get_suptitle().partition(" s")[2] for figure in titles]
    assert ends == [", row 0 of 3", ", row 2 of 3", ""]


def test_saved_and_loaded(swing: lw.Trajectory, tmp_path: Path) -> None:
    path = tmp_path / "swing.npz"
    swing.save(path)
    bare, found = lw.Trajectory.load(path), lw.Trajectory.load(path, swing.robot)
    for name in ("t", "q", "qd", "tau", "status", "failed_at", "steps"):
        np.testing.assert_array_equal(getattr(bare, name), getattr(swing, name))
    np.testing.assert_array_equal(found.balance.residual, swing.balance.residual)
    assert (bare.dt, bare.integrator) == (swing.dt, "rk4")
    with pytest.raises(ValueError, match=r"Trajectory\.energy needs the robot; expected .*robot="):
        _ = bare.energy
    with pytest.raises(ValueError, match="of robot 'puma560', which differs from 'iiwa14'"):
        lw.Trajectory.load(path, lw.load("iiwa14"))
    with pytest.raises(TypeError, match="robot is a str; expected a Robot"):
        lw.Trajectory.load(path, "puma560")  # type: ignore[arg-type]


def test_files_that_are_none(tmp_path: Path) -> None:
    """Other files of NumPy, text, and pickles, which are never opened."""
    other, text, pickle = (tmp_path / name for name in ("a.npz", "b.npz", "c.npz"))
    np.savez(other, t=np.zeros(3))
    text.write_text("no archive")
    np.savez(pickle, facts=np.array([{"format": 1}], dtype=object))
    for path in (other, text, pickle):
        with pytest.raises(ValueError, match=r"npz: not a trajectory that Trajectory\.save wrote"):
            lw.Trajectory.load(path)
    with pytest.raises(FileNotFoundError):
        lw.Trajectory.load(tmp_path / "none.npz")


DAMAGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no digest": ({"digest": None}, {}, r"\('digest' is missing\)"),
    "no times": ({}, {"t": None}, r"\('t' is missing\)"),
    "no rates": ({}, {"qd": None}, r"\('qd' is missing\)"),
    "no wrench": ({}, {"f_ext1": None}, r"\('f_ext1' is missing\)"),
    "dt": ({"dt": "x"}, {}, r"\(could not convert string to float: 'x'\)"),
    "robot": ({"robot": 3}, {}, r"\(names that are no text\)"),
    "frames": ({"frames": 3}, {}, r"\('int' object is not iterable\)"),
    "shape": ({}, {"q": np.zeros((3, 4, 6))}, r"q has shape \(3, 4, 6\); expected \(3, 401, 6\)"),
    "status": ({}, {"status": np.zeros(2)}, r"failed_at has shape \(3,\); expected \(2,\)"),
    "scalar": ({}, {"t": np.array(1.0)}, r"\(len\(\) of unsized object\)"),
    "stops": ({"stops": {"joints": [[0]]}}, {}, "damaged"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_damaged_files_are_told(case: str, swing: lw.Trajectory, tmp_path: Path) -> None:
    path = tmp_path / "swing.npz"
    swing.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    changed, replaced, message = DAMAGES[case]
    facts = json.loads(str(arrays.pop("facts"))) | changed
    facts = {name: x for name, x in facts.items() if x is not None or name == "stops"}
    arrays = {name: x for name, x in (arrays | replaced).items() if x is not None}
    np.savez(path, facts=np.array(json.dumps(facts)), **arrays)
    for robot in (None, swing.robot):
        with pytest.raises(ValueError, match=message) as told:
            lw.Trajectory.load(path, robot)
        assert "swing.npz: not a trajectory that Trajectory.save wrote, or a d" in str(told.value)


def test_as_a_table_of_pandas(swing: lw.Trajectory) -> None:
    pytest.importorskip("pandas")
    table = swing.to_pandas()
    assert table.shape == (3 * 401, 18) and list(table.columns[:2]) == ["q.joint1", "q.joint2"]
    np.testing.assert_array_equal(table.loc[1]["qd.joint3"], swing.qd[1, :, 2])
    one = swing.at(0).to_pandas()
    assert one.index.name == "t" and one["tau.joint1"].iloc[5] == swing.tau[0, 5, 0]


def test_a_picture(swing: lw.Trajectory, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = swing.plot(row=1, frame="link6")
    axes = figure.axes
    curves, speeds = ([x for x in at.lines if len(x.get_xdata()) == 401] for at in axes[:2])
    assert len(axes) == 6 and len(curves) == 6 and len(axes[3].lines) == 3
    np.testing.assert_array_equal(speeds[4].get_ydata(), swing.qd[1, :, 4])
    limits = {float(x.get_ydata()[0]) for x in axes[0].lines if x not in curves}
    assert limits and limits <= {float(x) for x in np.ravel(swing.robot.position_limits)}
    figure.savefig(tmp_path / "swing.png")
    assert (tmp_path / "swing.png").stat().st_size > 10_000


def test_a_picture_of_many_joints_draws_a_dozen_and_a_band(tmp_path: Path) -> None:
    """Those that are drawn are said, and the band holds the least and the most of all joints."""
    pytest.importorskip("matplotlib")
    robot = lw.chain(100)
    swing = lw.simulate(robot, 0.1 * np.cos(np.arange(100.0)), duration=0.01)
    figure = swing.plot()
    at = figure.axes[0]
    assert len(at.lines) == 12 and at.get_title() == "12 of 100: joint1, joint10, … joint100"
    np.testing.assert_array_equal(at.lines[-1].get_ydata(), swing.q[:, -1])
    edges = at.collections[0].get_paths()[0].vertices[:, 1]
    assert edges.min() == swing.q.min() and edges.max() == swing.q.max()
    assert at.get_legend().get_texts()[0].get_text() == "all 100"
    figure.savefig(tmp_path / "chain.png")


def test_too_few_times_for_a_picture(puma: lw.Robot) -> None:
    pytest.importorskip("matplotlib")
    end = lw.simulate(puma, puma.neutral(), duration=0.01, every=None)
    with pytest.raises(ValueError, match=r"1 time\(s\) were kept; expected at least two"):
        end.plot()


@pytest.mark.parametrize("module, method", [("matplotlib", "plot"), ("pandas", "to_pandas")])
def test_extras_that_are_missing_are_named(
    module: str, method: str, swing: lw.Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for name in [m for m in sys.modules if m.split(".")[0] == module] + [module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, f"{module}.figure", None)
    with pytest.raises(ImportError, match=rf"needs {module}: pip install 'linkwise\[plot\]'"):
        getattr(swing, method)()


def test_progress_is_told_after_two_seconds(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from linkwise.motion import progress

    clock = iter(np.arange(0.0, 100.0, 1.0))
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    monkeypatch.setenv("LINKWISE_PROGRESS", "on")
    with progress.Progress("simulating", 1000) as told:
        for step in range(100, 1001, 100):
            told.at(step)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "linkwise: simulating: 300 of 1,000 steps, 7 s left"
    assert lines[-1].startswith("linkwise: simulating: 1,000 steps in")
    assert told.worth(500) == 50  # half a second of them


def test_the_final_state_of_one_robot_and_of_batches() -> None:
    robot = lw.chain(3)
    for size in ((), (4,), (2, 3)):
        q = robot.random_q(seed=0, size=size)
        run = lw.simulate(robot, q, 0.1 + 0 * q, duration=0.02)
        assert run.final.q.shape == run.final.qd.shape == (*size, 3)
        assert np.array_equal(run.final.q, run.q[..., -1, :])
        assert np.array_equal(run.final.qd, run.qd[..., -1, :])
        whole = lw.simulate(robot, q, 0.1 + 0 * q, duration=0.04)
        assert np.array_equal(lw.simulate(robot, *run.final, duration=0.02).final.q, whole.final.q)
