"""Maps of what a robot can do: their numbers, their colours, and what users are told."""

import sys

import numpy as np
import pytest

import linkwise as lw

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def robot():
    return lw.load("puma560")


def mesh_of(figure):
    return figure.axes[0].collections[0]


def test_a_workspace_holds_every_place_that_was_reached(robot):
    figure = lw.plots.workspace(robot, "link6", samples=2000, seed=3)
    points = robot.forward_kinematics(robot.random_q(seed=3, size=2000), "link6")[:, :3, 3]
    assert mesh_of(figure).get_array().sum() == 2000
    low, high = figure.axes[0].get_xlim()
    assert low <= points[:, 0].min() and points[:, 0].max() <= high
    assert f"{np.linalg.norm(points, axis=1).max():.3g} m" in figure.get_suptitle()


def test_an_inertia_map_is_the_mass_that_a_frame_feels(robot):
    q = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    figure = lw.plots.inertia(robot, "link6", ("joint3", "joint5"), q=q, points=5)
    lower, upper = robot.position_limits
    q[2] = np.linspace(lower[2], upper[2], 5)[1]
    q[4] = np.linspace(lower[4], upper[4], 5)[3]
    J = robot.jacobian(q, "link6")[3:]
    expected = 3 / np.trace(J @ np.linalg.inv(robot.mass_matrix(q)) @ J.T)
    assert mesh_of(figure).get_array().reshape(5, 5)[3, 1] == pytest.approx(expected)
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("joint3, degrees", "joint5, degrees")


def test_a_singularity_map_is_dark_where_the_wrist_is_stretched(robot):
    figure = lw.plots.singularities(robot, "link6", ("joint3", "joint5"), points=5)
    values = mesh_of(figure).get_array().reshape(5, 5)
    assert np.abs(values[2]).max() < 1e-9 and values.max() == 1.0


def test_the_joints_that_matter_are_found(robot):
    """Turning about the axis of the base changes nothing, nor does the last joint."""
    axes = lw.plots.inertia(robot, points=5).axes[0]
    assert {axes.get_xlabel(), axes.get_ylabel()} == {"joint2, degrees", "joint3, degrees"}


def test_colours_are_told_apart_in_grey():
    from matplotlib import colormaps

    rgb = colormaps[lw.plots.COLOURS](np.linspace(0, 1, 50))[:, :3]
    grey = rgb @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(grey) > 0).all() and grey[-1] - grey[0] > 0.6


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda r: lw.plots.workspace(r, "nose"), "nose"),
        (
            lambda r: lw.plots.workspace(r, samples=3),
            "samples is 3; expected a whole number from 100",
        ),
        (lambda r: lw.plots.inertia(r, joints=("joint1",)), "expected the names of two joints"),
        (lambda r: lw.plots.inertia(r, joints=("joint1", "elbow")), "elbow"),
        (lambda r: lw.plots.inertia(r, q=np.zeros(3)), r"q has shape \(3,\); expected \(6,\)"),
        (lambda r: lw.plots.inertia(lw.chain(1)), r"has 1 joint\(s\) with a number of their own"),
    ],
)
def test_wrong_arguments_are_named(robot, draw, message):
    with pytest.raises(ValueError, match=message):
        draw(robot)
    with pytest.raises(TypeError, match="workspace: robot is a str; expected a Robot"):
        lw.plots.workspace("puma560")


def test_a_missing_matplotlib_is_told_with_the_command(robot, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    expected = r"plots.workspace needs matplotlib: pip install 'linkwise\[plot\]'"
    with pytest.raises(ImportError, match=expected):
        lw.plots.workspace(robot, samples=100)
