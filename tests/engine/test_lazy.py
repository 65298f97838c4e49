"""Arrays of Dask and xarray: the same numbers, later and with names."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

da = pytest.importorskip("dask.array")
xr = pytest.importorskip("xarray")


@pytest.fixture(scope="module")
def robot() -> lw.Robot:
    return lw.load("puma560")


def test_chunks_are_batches(robot: lw.Robot) -> None:
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 10, 4, 6))
    later = [da.from_array(x, chunks=(3, 2, 6)) for x in (q, qd, qdd)]
    tau = robot.inverse_dynamics(*later)
    assert tau.chunks == ((3, 3, 3, 1), (2, 2), (6,))
    assert np.array_equal(tau.compute(scheduler="sync"), robot.inverse_dynamics(q, qd, qdd))
    J = robot.jacobian(later[0], "link6")
    assert J.shape == (10, 4, 6, 6)
    assert np.array_equal(J.compute(scheduler="sync"), robot.jacobian(q, "link6"))
    push = {"link6": np.ones(6)}
    qdd_, bits = robot.forward_dynamics(*later, f_ext=push, status=True)
    expected, flags = robot.forward_dynamics(q, qd, qdd, f_ext=push, status=True)
    assert np.array_equal(qdd_.compute(scheduler="sync"), expected)
    assert np.array_equal(bits.compute(scheduler="sync"), flags)
    small = robot.gravity_torque(later[0].astype("float32"))
    assert small.dtype == small.compute(scheduler="sync").dtype == np.float32


def test_dask_messages(robot: lw.Robot) -> None:
    q = da.zeros((10, 6), chunks=(5, 3))
    with pytest.raises(ValueError, match=r"q has 2 chunks along its last axis; .*rechunk"):
        robot.gravity_torque(q)
    with pytest.raises(ValueError, match=r"gravity_torque: q has shape \(10, 5\); expected"):
        robot.gravity_torque(da.zeros((10, 5)))
    with pytest.raises(TypeError, match=r"out= is for arrays of NumPy"):
        robot.gravity_torque(da.zeros((10, 6)), out=np.zeros((10, 6)))


def test_joints_by_their_names(robot: lw.Robot) -> None:
    q = np.random.default_rng(0).normal(size=(5, 6))
    named = xr.DataArray(q, dims=("case", "joint"), coords={"joint": list(robot.joint_names)})
    turned = named.sel(joint=list(robot.joint_names)[::-1])
    tau = robot.gravity_torque(turned)
    assert tau.dims == ("case", "joint")
    assert tau.coords["joint"].values.tolist() == list(robot.joint_names)
    assert np.array_equal(tau.values, robot.gravity_torque(q))
    speeds = xr.DataArray(np.ones((3, 6)), dims=("speed", "joint"))
    bias = robot.bias(named, speeds)
    assert bias.dims == ("case", "speed", "joint")
    assert np.array_equal(bias.values, robot.bias(q[:, None], np.ones((3, 6))))
    J = robot.jacobian(named, "link6")
    assert J.dims == ("case", "component", "joint")
    assert J.sel(component="linear z", joint="joint1").shape == (5,)
    assert robot.mass_matrix(named).dims == ("case", "joint", "joint 2")
    with pytest.raises(ValueError, match=r"q has names 'a', .* along 'joint'; expected those of"):
        robot.gravity_torque(named.assign_coords(joint=list("abcdef")))


def test_labelled_and_later(robot: lw.Robot) -> None:
    q = np.random.default_rng(0).normal(size=(8, 6))
    later = xr.DataArray(da.from_array(q, chunks=(3, 6)), dims=("case", "joint"))
    tau = robot.gravity_torque(later)
    assert tau.chunks == ((3, 3, 2), (6,))
    assert np.array_equal(tau.compute(scheduler="sync").values, robot.gravity_torque(q))
