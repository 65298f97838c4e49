"""Arrays of Dask and xarray: the same numbers, later and with names."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.engine.compiled import CompiledFunction

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


CALLS = {
    "derivative": lambda robot, x: robot.derivative("forward_dynamics", wrt="q")(x, x, x),
    "vjp": lambda robot, x: robot.vjp("bias", (x, x), x)[1][0],
    "controller": lambda robot, x: lw.control.pd(robot, 1.0, 2.0)(0.0, x, x),
    "iteration": lambda robot, x: robot.forward_dynamics(x, x, x, method="pcg"),
    "frames": lambda robot, x: robot.forward_kinematics(x, ["link6", "link3"]),
    "parameters": lambda robot, x: robot.parametric("gravity").bias(x, x, gravity=[0.0, 0.0, -3.0]),
    "search": lambda robot, x: robot.inverse_kinematics(
        x[..., None, :4] * 0.0 + POSE, "link6", directions="position", status=True
    )[0],
    "poses": lambda _, x: lw.se3.log(x[..., None, :4] * 0.0 + POSE),
}
POSE = np.eye(4)
POSE[:3, 3] = 0.3, 0.2, 0.4


@pytest.mark.parametrize("name", CALLS)
def test_whatever_is_compiled_takes_arrays_of_dask(robot: lw.Robot, name: str) -> None:
    q = np.random.default_rng(1).normal(size=(5, 6))
    expected = CALLS[name](robot, q)
    later = CALLS[name](robot, da.from_array(q, chunks=(3, 6)))
    assert later.shape == expected.shape
    assert np.array_equal(later.compute(scheduler="sync"), expected)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "poses"])
def test_compiled_functions_are_pickled_by_how_they_are_made(robot: lw.Robot, name: str) -> None:
    """As a worker of Dask gets them."""
    values = []

    def noted(self: CompiledFunction, *given: Any, **options: Any) -> Any:
        values.append((self, given))
        return general(self, *given, **options)

    general = CompiledFunction.general
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledFunction, "general", noted)
        # a robot that is gone when its function is pickled
        CALLS[name](robot.with_gravity((0.0, 0.1, -9.0 - len(name) / 100)), np.ones((2, 6)))
    function, given = values[-1]
    again, results = pickle.loads(pickle.dumps(function))(*given), function(*given)
    pairs = zip(again, results, strict=True) if isinstance(results, tuple) else [(again, results)]
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)


def test_functions_of_no_robot_are_pickled() -> None:
    log = lw.se3._function("log")
    assert pickle.loads(pickle.dumps(log)) is log


def test_dask_messages(robot: lw.Robot) -> None:
    q = da.zeros((10, 6), chunks=(5, 3))
    with pytest.raises(ValueError, match=r"q has 2 chunks along its last axis; .*rechunk"):
        robot.gravity_torque(q)
    with pytest.raises(ValueError, match=r"gravity_torque: q has shape \(10, 5\); expected"):
        robot.gravity_torque(da.zeros((10, 5)))
    with pytest.raises(TypeError, match=r"out= is for arrays of NumPy"):
        robot.gravity_torque(da.zeros((10, 6)), out=np.zeros((10, 6)))


def test_arrays_of_numpy_beside_chunks(robot: lw.Robot) -> None:
    """They are divided as the chunks are, also those of a controller's numbers."""
    x = np.linspace(-0.5, 0.5, 5 * robot.nv).reshape(5, robot.nv)
    later = da.from_array(x, chunks=(2, robot.nv))
    law = lw.control.pd(robot, 1.0, 2.0, target=x)
    pairs = (
        (robot.inverse_dynamics(later, x, x[0]), robot.inverse_dynamics(x, x, x[0])),
        (law(0.0, later, later), law(0.0, x, x)),
        (robot.bias(later[:, None], x), robot.bias(x[:, None], x)),
    )
    for lazily, at_once in pairs:
        np.testing.assert_allclose(lazily.compute(), at_once, rtol=1e-12, atol=1e-12)


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
