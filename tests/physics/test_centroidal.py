"""The centre of mass and the momentum about it: identities, and what simulations conserve.

Pinocchio's answers for the same functions: test_joint_kinds.py and test_peers.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.backends.reference import interpret
from linkwise.trace.roll import trace_rolled
from linkwise.trace.tracer import Task
from linkwise.trace.verify import verify

STATES, STEP = 5, 1e-30  # a step along the imaginary axis has no cancellation
OF_Q = ("center_of_mass", "com_jacobian", "centroidal_momentum_matrix")
OF_RATES = ("com_bias", "centroidal_momentum_matrix_rate", "centroidal_momentum", "centroidal_bias")
TREES: dict[str, dict[str, Any]] = {
    "arm": {"kinds": ("revolute", "prismatic")},
    "all kinds": {"kinds": ("revolute", "universal", "planar", "helical", "spherical", "free")},
    "flying": {"base": "free"},
    "followers": {"kinds": ("revolute", "prismatic", "helical"), "mimic": True, "base": "free"},
}


@pytest.fixture(scope="module", params=TREES)
def robot(request: pytest.FixtureRequest, random_robot: Any) -> lw.Robot:
    rng = np.random.default_rng(list(TREES).index(request.param))
    return lw.Robot(random_robot(rng, 9, **TREES[request.param]))


@pytest.fixture
def state(robot: lw.Robot, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return robot.random_q(rng, size=STATES), rng.uniform(-2, 2, (STATES, robot.nv))


def along(robot: lw.Robot, function: Any, q: np.ndarray, v: np.ndarray, q_rate: Any) -> np.ndarray:
    """The rate of a function of q in a motion."""
    return np.asarray(function(q + 1j * STEP * q_rate(robot, q, v)).imag / STEP)


def test_jacobian_and_bias_are_derivatives_of_the_centre_of_mass(
    robot: lw.Robot, state: Any, evaluate: Any, q_rate: Any
) -> None:
    q, qd = state
    J = evaluate(robot, "com_jacobian", q)
    speed = along(robot, lambda x: evaluate(robot, "center_of_mass", x), q, qd, q_rate)
    size = 1.0 + np.abs(J).max()
    assert np.abs((J @ qd[..., None])[..., 0] - speed).max() <= 1e-13 * size * np.abs(qd).max()
    rate = along(robot, lambda x: evaluate(robot, "com_jacobian", x), q, qd, q_rate)
    bias = evaluate(robot, "com_bias", q, qd)
    assert np.abs((rate @ qd[..., None])[..., 0] - bias).max() <= 1e-12 * size * (qd**2).max()


def test_momentum_is_the_matrix_times_rates_and_so_is_its_rate(
    robot: lw.Robot, state: Any, evaluate: Any, q_rate: Any
) -> None:
    q, qd = state
    A, h = evaluate(robot, OF_Q[2], q), evaluate(robot, "centroidal_momentum", q, qd)
    rate = evaluate(robot, "centroidal_momentum_matrix_rate", q, qd)
    exact = along(robot, lambda x: evaluate(robot, OF_Q[2], x), q, qd, q_rate)
    size = np.abs(A).max() + robot.mass
    assert np.abs((A @ qd[..., None])[..., 0] - h).max() <= 1e-13 * size * np.abs(qd).max()
    assert np.abs(rate - exact).max() <= 1e-12 * size * np.abs(qd).max()
    bias = evaluate(robot, "centroidal_bias", q, qd)
    assert np.abs((rate @ qd[..., None])[..., 0] - bias).max() <= 1e-12 * size * (qd**2).max()
    assert np.abs(A[:, 3:] - robot.mass * evaluate(robot, "com_jacobian", q)).max() <= 1e-13 * size


def test_external_wrenches_and_weight_are_the_rate_of_the_momentum_of_a_flying_robot(
    random_robot: Any, evaluate: Any, rng: np.random.Generator
) -> None:
    """Torques of joints are inside the robot, and have no part in it."""
    robot = lw.Robot(random_robot(rng, 6, base="free", armature=False))
    q, qd = robot.random_q(rng, size=STATES), rng.uniform(-2, 2, (STATES, robot.nv))
    tau = rng.uniform(-5, 5, (STATES, robot.nv))
    tau[:, :6] = 0.0
    push, frame = rng.uniform(-9, 9, (STATES, 6)), robot.frame_names[-1]
    qdd = evaluate(robot, "forward_dynamics", q, qd, tau, method="aba", f_ext={frame: push})
    A = evaluate(robot, "centroidal_momentum_matrix", q)
    rate = (A @ qdd[..., None])[..., 0] + evaluate(robot, "centroidal_bias", q, qd)
    arm = evaluate(robot, "forward_kinematics", q, frame=frame)[:, :3, 3]
    arm = arm - evaluate(robot, "center_of_mass", q)
    moment = push[:, :3] + np.cross(arm, push[:, 3:])
    weight = robot.mass * robot.gravity
    expected = np.concatenate([moment, push[:, 3:] + weight], axis=1)
    M = evaluate(robot, "mass_matrix", q)
    size = np.abs(expected).max() + np.abs(A).max() * np.abs(qdd).max()
    assert np.abs(rate - expected).max() <= 1e-14 * size * np.linalg.cond(M).max()


LOOPS = [  # one robot for each function, by turns; all in a full run
    pytest.param(name, function, marks=() if (i + k) % len(TREES) == 0 else pytest.mark.full)
    for i, name in enumerate(TREES)
    for k, function in enumerate((*OF_Q, *OF_RATES))
]


@pytest.mark.parametrize(("robot", "function"), LOOPS, indirect=["robot"])
def test_loops_over_links_give_the_same(
    robot: lw.Robot, state: Any, function: str, evaluate: Any
) -> None:
    task = Task(FUNCTIONS[function]["sweep"])
    program = verify(trace_rolled(task, robot.tree))
    given = dict(zip(("q", "qd"), state, strict=True))
    values = {port.name: given[port.name] for port in program.inputs}
    expected = evaluate(robot, function, *values.values())
    found = interpret(program, values)["result"]
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-12 * (np.abs(expected).max() + robot.mass)


def test_a_robot_without_mass_has_no_centre() -> None:
    """An inertia without mass does not exist, but where strict=False asks for it."""
    b = lw.Builder("spinner").link("wheel", mass=0.0, inertia=(1.0, 1.0, 1.0))
    b = b.joint("axle", "revolute", parent="base", child="wheel", axis=(0, 0, 1))
    with pytest.warns(lw.RobotFileWarning, match="inertia and no mass"):
        robot = b.build(strict=False)
    value, status = robot.center_of_mass([[0.3]], status=True)
    assert robot.mass == 0.0 and np.isnan(value).all() and status[0] != 0


# -- simulations ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flyer() -> lw.Robot:
    """An arm of three joints on a body that floats freely."""
    b = lw.Builder("flyer").link("body", mass=5.0, inertia=(0.3, 0.4, 0.5))
    b = b.joint("free", "free", parent="base", child="body")
    for i, axis in enumerate([(0, 0, 1), (0, 1, 0), (1, 0, 0)]):
        b = b.link(f"l{i}", mass=1.0, com=(0.2, 0.05, 0.0), inertia=(0.01, 0.02, 0.02))
        b = b.joint(f"j{i}", "revolute", parent=f"l{i - 1}" if i else "body", child=f"l{i}",
                    axis=axis, xyz=(0.3, 0.0, 0.1))  # fmt: skip
    return b.build(gravity=(0.0, 0.0, 0.0))


def drift(robot: lw.Robot, integrator: str, dt: float) -> tuple[float, float]:
    """How far the momentum goes from where it was within 0.4 s, angular and linear, of its size.

    The angular momentum is taken about the base's origin, where it is conserved without gravity.
    """
    rng = np.random.default_rng(3)
    q, qd = robot.random_q(rng), rng.uniform(-2, 2, robot.nv)
    traj = lw.simulate(robot, q, qd, duration=0.4, dt=dt, integrator=integrator)
    h, c = robot.centroidal_momentum(traj.q, traj.qd), robot.center_of_mass(traj.q)
    about_base = h[:, :3] + np.cross(c, h[:, 3:])
    away = [np.abs(x - x[0]).max() / np.abs(x[0]).max() for x in (about_base, h[:, 3:])]
    return float(away[0]), float(away[1])


def test_momentum_is_conserved_to_the_order_of_the_integrator(flyer: lw.Robot) -> None:
    """RK4: sixteen times less per halved step."""
    coarse, fine = (max(drift(flyer, "rk4", dt)) for dt in (2e-2, 1e-2))
    assert 1e-11 < fine < 1e-5 and 12.0 < coarse / fine < 40.0


def test_the_variational_midpoint_conserves_momentum_to_rounding(flyer: lw.Robot) -> None:
    """Roundings of each of the steps, whatever the step."""
    for dt, steps in ((2e-2, 20), (1e-2, 40)):
        assert max(drift(flyer, "midpoint", dt)) <= 50 * np.finfo(float).eps * steps
