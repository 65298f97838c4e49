"""Simulations against an RK4 of NumPy, MuJoCo, and what physics and arithmetic say."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arms import iiwa14
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise.backends.reference import interpret
from linkwise.engine.tasks import Key
from linkwise.motion.integrators import INTEGRATORS
from linkwise.motion.rollout import Rollout, trace_rollout
from linkwise.trace.program import For
from linkwise.trace.verify import verify

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session", params=["iiwa14", "xarm7", "z1"])
def arm(request: pytest.FixtureRequest, robot_path: Callable[[str], Path]) -> lw.Robot:
    """Arms whose wrists spin up to hundreds of rad/s when they swing freely."""
    if request.param == "iiwa14":
        return lw.load("iiwa14")
    path = robot_path("xarm7")
    path = path if request.param == "xarm7" else path.parents[2] / "z1_description/urdf/z1.urdf"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        return lw.load(path, strict=False, mimic="free", friction=False)


def bent(robot: lw.Robot) -> Any:
    return robot.neutral() + 0.3 * np.cos(np.arange(robot.nq))


# -- judged by others -----------------------------------------------------------------------------


def test_rk4_is_that_of_numpy(arm: lw.Robot, rk4: Callable[..., Any]) -> None:
    """The first second of a free swing, by an integrator that shares nothing but the dynamics."""
    found = lw.simulate(arm, bent(arm), duration=1.0, dt=1e-3)
    q, qd = rk4(arm, bent(arm), np.zeros(arm.nv), 1e-3, 1000)
    assert np.abs(found.q - q).max() <= 1e-9
    assert np.abs(found.qd - qd).max() <= 1e-9 * max(1.0, np.abs(qd).max())
    assert np.allclose(found.t, 1e-3 * np.arange(1001))


def test_the_energy_error_of_fast_wrists_falls_sixteenfold(arm: lw.Robot) -> None:
    errors = []
    for dt in (1e-3, 5e-4, 2.5e-4):
        energy = lw.simulate(arm, bent(arm), duration=0.5, dt=dt).energy
        errors.append(np.abs(energy.total - energy.total[0]).max() / energy.kinetic.max())
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert errors[-1] < 1e-12 or (rates > 3.9).all(), (errors, rates)


def test_the_energy_of_a_free_swing(puma: lw.Robot) -> None:
    """Ten seconds of puma560 at 1 ms: 1e-10 of the greatest kinetic energy."""
    energy = lw.simulate(puma, puma.neutral(), duration=10.0, dt=1e-3).energy
    assert np.abs(energy.total - energy.total[0]).max() <= 1e-10 * energy.kinetic.max()


@pytest.mark.parametrize("name", ["rk4", "euler"])
def test_trajectories_of_mujoco(puma: lw.Robot, name: str) -> None:
    """The same steps by MuJoCo, which takes semi-implicit Euler and the classical RK4."""
    mujoco = pytest.importorskip("mujoco")
    from mujoco import rollout

    from linkwise.bench.mujoco import mujoco_model

    model = mujoco_model(puma)
    model.opt.timestep = 1e-3
    if name == "rk4":
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    q, qd = puma.random_q(seed=1, size=4), np.random.default_rng(2).normal(size=(4, 6))
    start = np.hstack([np.zeros((4, 1)), q, qd])
    states, _ = rollout.rollout([model] * 4, [mujoco.MjData(model)], start, nstep=300)
    found = lw.simulate(puma, q, qd, duration=0.3, integrator=name)
    assert np.abs(found.q[:, 1:] - states[:, :, 1:7]).max() <= 1e-10
    assert np.abs(found.qd[:, 1:] - states[:, :, 7:]).max() <= 1e-8


# -- order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INTEGRATORS)
def test_the_observed_order_is_nominal(name: str, kinds: lw.Robot) -> None:
    """On a tree with every kind of joint, quaternions and a follower among them."""
    order = INTEGRATORS[name].order
    rng = np.random.default_rng(3)
    q, qd = kinds.random_q(rng), 0.7 * rng.normal(size=kinds.nv)
    steps = {1: (512, 1024, 2048), 2: (64, 128, 256), 4: (32, 64, 128)}[order]
    exact = lw.simulate(kinds, q, qd, duration=0.2, dt=0.2 / 2048, integrator="rk4", every=None)
    errors = []
    for n in steps:
        end = lw.simulate(kinds, q, qd, duration=0.2, dt=0.2 / n, integrator=name, every=None)
        off = kinds.difference(exact.q[-1], end.q[-1])
        errors.append(np.linalg.norm([off, end.qd[-1] - exact.qd[-1]]))
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert abs(rates[-1] - order) <= 0.1, (errors, rates)


# -- properties -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INTEGRATORS)
def test_quaternions_stay_of_unit_length(name: str, kinds: lw.Robot) -> None:
    rng = np.random.default_rng(5)
    q, qd = kinds.random_q(rng, size=3), rng.normal(size=(3, kinds.nv))
    found = lw.simulate(kinds, q, qd, duration=0.3, dt=1e-3, integrator=name)
    for part in (found.q[..., :4], found.q[..., 9:13]):
        assert np.abs(np.linalg.norm(part, axis=-1) - 1.0).max() <= 1e-14
    assert found.ok.all()


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 19),
    single=st.booleans(),
    name=st.sampled_from(sorted(INTEGRATORS)),
)
@pytest.mark.filterwarnings("ignore:simulate. .* rows failed:RuntimeWarning")
def test_rows_of_a_batch_do_not_depend_on_each_other(
    seed: int, rows: int, single: bool, name: str
) -> None:
    """To the bit: a row alone, in a batch, and beside a row that is NaN."""
    robot, rng = lw.load("puma560"), np.random.default_rng(seed)
    q, qd = robot.random_q(rng, size=rows), rng.normal(size=(rows, 6))
    if single:
        q, qd = q.astype(np.float32), qd.astype(np.float32)
    law = lw.control.pd(robot, 100.0, 10.0) + lw.control.gravity_compensation(robot)
    run: Any = {"controller": law, "duration": 0.02, "integrator": name, "every": 4}
    whole = lw.simulate(robot, q, qd, **run)
    assert whole.q.dtype == q.dtype
    row = int(rng.integers(rows))
    alone = lw.simulate(robot, q[row], qd[row], **run)
    bad = q.copy()
    bad[np.arange(rows) != row] = np.nan
    beside = lw.simulate(robot, bad, qd, **run)
    for one in (alone.q, beside.q[row]):
        np.testing.assert_array_equal(one, whole.q[row])
    np.testing.assert_array_equal(alone.qd, whole.qd[row])
    others = np.arange(rows) != row
    assert (beside.status[others] == lw.Status.NOT_FINITE).all()
    assert beside.status[row] == 0 and beside.failed_at[row] == -1


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32),
    first=st.integers(1, 300),
    rest=st.integers(1, 80),
    every=st.sampled_from([1, 3, 40, 270, None]),
    name=st.sampled_from(sorted(INTEGRATORS)),
)
def test_a_run_continued_is_the_whole_run(
    seed: int, first: int, rest: int, every: int | None, name: str
) -> None:
    """From the middle on, to the bit, whatever is kept on the way."""
    robot = lw.load("puma560")
    q, h = robot.random_q(seed=seed), 2.0**-10
    whole = lw.simulate(robot, q, duration=(first + rest) * h, dt=h, integrator=name, every=every)
    half = lw.simulate(robot, q, duration=first * h, dt=h, integrator=name, every=None)
    on = lw.simulate(
        robot, half.q[-1], half.qd[-1], duration=rest * h, dt=h, integrator=name, every=None
    )
    np.testing.assert_array_equal(on.q[-1], whole.q[-1])
    np.testing.assert_array_equal(on.qd[-1], whole.qd[-1])


def test_what_is_kept_is_every_kth_state_and_the_last(puma: lw.Robot) -> None:
    full = lw.simulate(puma, bent(puma), duration=0.5)
    for every in (1, 2, 7, 64, 100, 300, 499, 500, 1000):
        some = lw.simulate(puma, bent(puma), duration=0.5, every=every)
        at = sorted({*range(0, 501, every), 500})
        assert some.steps.tolist() == at
        np.testing.assert_array_equal(some.q, full.q[at])
        np.testing.assert_array_equal(some.qd, full.qd[at])
    end = lw.simulate(puma, bent(puma), duration=0.5, every=None)
    assert end.q.shape == (1, 6) and end.t.tolist() == [0.5]
    np.testing.assert_array_equal(end.q[0], full.q[-1])


def test_batches_have_any_leading_shape_and_broadcast(puma: lw.Robot) -> None:
    q = puma.random_q(seed=0, size=(2, 3))
    found = lw.simulate(puma, q, np.zeros(6), duration=0.01)
    assert found.q.shape == (2, 3, 11, 6) and found.status.shape == (2, 3)
    law = lw.control.constant(puma, np.ones((4, 1, 1, 6)))
    wide = lw.simulate(puma, q, controller=law, duration=0.01, f_ext={"link6": np.ones((3, 6))})
    assert wide.q.shape == (4, 2, 3, 11, 6) and wide.tau.shape == wide.qd.shape
    rigid = puma.lock({name: 0.0 for name in puma.joint_names})
    assert lw.simulate(rigid, np.zeros((2, 0)), duration=0.01).q.shape == (2, 11, 0)
    none = lw.simulate(puma, np.zeros((0, 6)), duration=0.01)
    assert none.q.shape == (0, 11, 6) and none.energy.total.shape == (0, 11)


@pytest.mark.parametrize("seed", range(4))
def test_random_trees_step_by_step(
    seed: int, random_robot: Callable[..., Any], all_kinds: tuple[str, ...]
) -> None:
    """One kernel, and Python's steps with the robot's own functions: the same motion."""
    rng = np.random.default_rng(seed)
    robot = lw.Robot(random_robot(rng, 6, kinds=all_kinds, mimic=seed % 2 == 0))
    q, qd = robot.random_q(rng, size=3), rng.normal(size=(3, robot.nv))
    fused = lw.simulate(robot, q, qd, duration=0.02)
    steps = lw.simulate(robot, q, qd, lambda t, q, qd: np.zeros_like(qd), 0.02, hold=False)
    assert np.abs(robot.difference(steps.q, fused.q)).max() <= 1e-9
    energy = fused.energy
    assert np.abs(energy.total - energy.total[:, :1]).max() <= 1e-6 * energy.kinetic.max()


# -- the program ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.parametrize("hold", [True, False])
def test_a_rollout_is_one_loop_and_the_interpreter_agrees(
    name: str, hold: bool, puma: lw.Robot
) -> None:
    """All steps are one counted loop around one copy of each body, as the reference reads it."""
    law = lw.control.pd(puma, 50.0, 5.0) + lw.control.constant(
        puma, lw.control.PerStep(np.sin(np.arange(180.0)).reshape(30, 6))
    )
    task = puma._calls.tasks.task(Key("forward_dynamics", external=("link6",)))
    plan = Rollout(task, name, law.forms, tuple(x.per_step for x in law.inputs), hold, every=5)
    program = verify(trace_rollout(plan, puma.tree))
    assert sum(isinstance(region, For) for region in program.regions) == 1
    rng = np.random.default_rng(0)
    q, qd, push = puma.random_q(rng, size=2), rng.normal(size=(2, 6)), rng.normal(size=(2, 6))
    found = lw.simulate(puma, q, qd, law, 0.02, 1e-3, name, 5, hold, {"link6": push})
    inputs = {port.name: np.zeros((2, port.size)) for port in program.inputs}
    inputs |= {"q": q, "qd": qd, "f_ext[0]": push}
    inputs["dt"][:], inputs["steps"][:] = 1e-3, 20.0
    inputs["law[0].kp"][:], inputs["law[0].kd"][:] = 50.0, 5.0
    inputs["law[1].tau"][:, :180] = np.sin(np.arange(180.0))
    read = interpret(program, inputs)
    expected = np.concatenate([found.q, found.qd], -1)
    np.testing.assert_allclose(read["samples"][:, :4], expected[:, 1:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(read["end"], expected[:, -1], rtol=1e-9, atol=1e-9)
    assert read["health"][:, :2].tolist() == [[20.0, 0.0]] * 2


# -- controllers ----------------------------------------------------------------------------------


def test_a_law_gives_what_its_torques_in_python_do(puma: lw.Robot) -> None:
    """The same steps to rounding, held over a step; torques are those that were applied."""
    target = bent(puma)
    path = lw.control.PerStep(target + 0.1 * np.sin(np.arange(100)[:, None] / 20 + np.arange(6)))
    laws = {
        "zero": lw.control.zero(puma),
        "constant": lw.control.constant(puma, np.arange(6.0)),
        "pd": lw.control.pd(puma, 80.0, [9.0] * 6, target),
        "gravity": lw.control.gravity_compensation(puma),
        "computed": lw.control.computed_torque(puma, 100.0, 20.0, path),
    }
    laws["sum"] = laws["pd"] + laws["gravity"] + laws["constant"]
    for name, law in laws.items():
        compiled = lw.simulate(puma, target, controller=law, duration=0.1)

        def asked(t: float, q: Any, qd: Any, law: Any = law) -> Any:
            return law(t, q, qd, step=round(t / 1e-3))

        python = lw.simulate(puma, target, controller=asked, duration=0.1)
        np.testing.assert_allclose(compiled.q, python.q, rtol=0, atol=1e-12, err_msg=name)
        tau = compiled.tau[:-1], python.tau[:-1]  # at the end a law can be asked once more
        np.testing.assert_allclose(*tau, rtol=0, atol=1e-8, err_msg=name)


def test_equations_of_the_laws(puma: lw.Robot) -> None:
    rng = np.random.default_rng(1)
    q, qd, a = puma.random_q(rng, size=7), *rng.normal(size=(2, 7, 6))
    target = bent(puma)
    error = 30.0 * (target - q) + 4.0 * (0.5 - qd)
    tau = lw.control.pd(puma, 30.0, 4.0, target, rates=0.5)(0.0, q, qd)
    np.testing.assert_allclose(tau, error, atol=1e-12)
    tau = lw.control.gravity_compensation(puma)(0.0, q, qd)
    np.testing.assert_allclose(tau, puma.gravity_torque(q), atol=1e-11)
    tau = lw.control.computed_torque(puma, 30.0, 4.0, target, 0.5, a)(0.0, q, qd)
    np.testing.assert_allclose(tau, puma.inverse_dynamics(q, qd, a + error), atol=1e-9)
    np.testing.assert_allclose(puma.forward_dynamics(q, qd, tau), a + error, atol=1e-8)
    assert lw.control.zero(puma)(0.0, q, qd).tolist() == np.zeros((7, 6)).tolist()


def test_sums_of_laws(puma: lw.Robot) -> None:
    """`sum` adds them; what has a memory is no summand."""
    one, q = lw.control.gravity_compensation(puma), bent(puma)
    two = lw.control.pd(puma, 3.0, 1.0)
    expected = one(0.0, q, np.zeros(6)) + two(0.0, q, np.zeros(6))
    np.testing.assert_allclose(sum([one, two])(0.0, q, np.zeros(6)), expected)
    late = lw.control.delayed(one, 0.01)
    for wrong in (lambda: late + two, lambda: two + late, lambda: late + 3, lambda: 3 + late):
        with pytest.raises(TypeError, match=r"cannot be added; .*delayed\(law \+ law, time"):
            wrong()
    with pytest.raises(TypeError, match="a law and a int cannot be added; expected two laws"):
        3 + two
    path = lw.control.pd(puma, lw.control.PerStep(np.ones((3, 6))), 1.0)
    for law in (two, path):
        with pytest.raises(TypeError, match="law: step is 'a'; expected a whole number of steps"):
            law(0.0, q, q, step="a")
        with pytest.raises(ValueError, match="law: step is -7; expected 0 or more"):
            law(0.0, q, q, step=-7)


@pytest.mark.parametrize("name", ["pd", "computed_torque"])
def test_gains_below_zero_are_told(puma: lw.Robot, name: str) -> None:
    make = getattr(lw.control, name)
    with pytest.warns(lw.ControlWarning, match=rf"^{name}: kp has numbers below zero, .* -3: err"):
        make(puma, [1.0, 2.0, -3.0, 1.0, 1.0, 1.0], 2.0)
    with pytest.warns(lw.ControlWarning, match="kd has numbers below zero, the least -2"):
        make(puma, 0.0, lw.control.PerStep(-2.0 * np.ones((3, 6))))


def test_computed_torque_makes_errors_a_linear_oscillation(puma: lw.Robot) -> None:
    """``ë + kd ė + kp e = 0`` from rest, critically damped: e = e0 (1 + w t) exp(-w t)."""
    w, start = 5.0, bent(puma)
    target = start + 0.4
    law = lw.control.computed_torque(puma, w * w, 2 * w, target)
    found = lw.simulate(puma, start, controller=law, duration=1.0, hold=False)
    expected = -0.4 * (1 + w * found.t) * np.exp(-w * found.t)
    assert np.abs(found.q - target - expected[:, None]).max() <= 1e-9


def test_gravity_compensation_holds_the_robot_still(puma: lw.Robot) -> None:
    found = lw.simulate(puma, bent(puma), controller=lw.control.gravity_compensation(puma))
    assert np.abs(found.q - bent(puma)).max() <= 1e-10


def test_targets_of_turning_joints_are_reached_on_the_manifold(kinds: lw.Robot) -> None:
    """A computed torque brings every joint, quaternions too, to a configuration."""
    q, target = kinds.random_q(seed=1), kinds.random_q(seed=2)
    kinds = kinds.with_actuated(True)
    law = lw.control.computed_torque(kinds, 100.0, 20.0, target)
    found = lw.simulate(kinds, q, controller=law, duration=3.0, every=None, hold=False)
    assert np.abs(kinds.difference(found.q[-1], target)).max() <= 1e-6


def test_a_controller_is_called_once_per_step_with_the_batch(puma: lw.Robot) -> None:
    calls = []

    def controller(t: float, q: Any, qd: Any) -> Any:
        calls.append((t, q.shape, qd.shape))
        return -2.0 * qd

    found = lw.simulate(puma, puma.random_q(seed=0, size=(2, 2)), None, controller, 0.01)
    assert [t for t, *_ in calls] == pytest.approx(found.t[:-1])
    assert {shapes for _, *shapes_ in calls for shapes in shapes_} == {(2, 2, 6)}
    np.testing.assert_array_equal(found.tau[..., :-1, :], -2.0 * found.qd[..., :-1, :])


def test_forces_from_outside(puma: lw.Robot) -> None:
    """A wrench that balances the weight of the links at rest holds the robot as torques do."""
    q = bent(puma)
    push = {"link6": np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])}
    tau = puma.gravity_torque(q, f_ext=push)
    found = lw.simulate(
        puma, q, controller=lw.control.constant(puma, tau), duration=0.05, f_ext=push
    )
    assert np.abs(found.q - q).max() <= 1e-9


# -- failures -------------------------------------------------------------------------------------


def test_a_row_that_fails_is_nan_from_there_on(puma: lw.Robot) -> None:
    """A wrong sign of damping blows one row up; the step says when, and only that row is lost."""
    kd = np.zeros((3, 6))
    kd[1] = -1e4
    with pytest.warns(lw.ControlWarning):
        law = lw.control.pd(puma, 0.0, kd)
    q = puma.random_q(seed=3, size=3)
    fine = lw.simulate(puma, q, np.ones(6), duration=0.2)
    for every in (1, 9):
        with pytest.warns(RuntimeWarning, match="1 of 3 rows failed, .* OVERFLOW; .* a smaller dt"):
            found = lw.simulate(puma, q, np.ones(6), law, 0.2, every=every)
        assert found.status.tolist() == [0, lw.Status.OVERFLOW, 0]
        at = found.failed_at[1]
        assert found.failed_at.tolist() == [-1, at, -1] and 0 < at < 200
        assert np.isfinite(found.q[1, found.steps < at]).all()
        assert np.isnan(found.q[1, found.steps >= at]).all()
        assert np.isnan(found.qd[1, found.steps >= at]).all()
        np.testing.assert_array_equal(found.q[[0, 2]], fine.q[[0, 2]][:, found.steps])
        assert found.ok.tolist() == [True, False, True]


def test_a_failure_is_told_once_at_the_line_of_the_caller() -> None:
    """Held damping of a joint without rotor inertia, at a step that is too long for it."""
    robot = iiwa14()  # its bodies alone
    law = lw.control.pd(robot, 400.0, 40.0) + lw.control.gravity_compensation(robot)
    with pytest.warns(RuntimeWarning) as caught:
        found = lw.simulate(robot, robot.random_q(seed=0), controller=law, duration=0.1)
    assert [x.filename for x in caught] == [__file__]
    assert str(caught[0].message) == (
        f"simulate: 1 of 1 rows failed, the first at step {found.failed_at}: OVERFLOW; expected a "
        "smaller dt, or held torques whose damping times dt is below the joint's inertia"
    )
    with pytest.warns(RuntimeWarning, match="a smaller dt, or torques whose damping times dt is"):
        lw.simulate(robot, robot.random_q(seed=0), controller=law, duration=0.1, hold=False)


def test_input_that_is_not_finite_fails_at_the_first_step(puma: lw.Robot) -> None:
    q = puma.random_q(seed=3, size=3)
    q[2, 1] = np.inf
    with pytest.warns(RuntimeWarning, match="NOT_FINITE; expected finite states, torques and"):
        found = lw.simulate(puma, q, duration=0.01)
    assert found.status.tolist() == [0, 0, lw.Status.NOT_FINITE]
    assert found.failed_at.tolist() == [-1, -1, 1]


def test_torques_per_step_that_are_not_finite_fail_at_their_step(puma: lw.Robot) -> None:
    tau = np.zeros((400, 6))
    tau[123, 2] = np.nan
    law = lw.control.constant(puma, lw.control.PerStep(tau))
    with pytest.warns(RuntimeWarning, match="1 of 1 rows failed, the first at step 124: NOT_FINI"):
        found = lw.simulate(puma, bent(puma), None, law, 0.4, every=50)
    assert found.failed_at == 124 and found.status == lw.Status.NOT_FINITE
    assert found.steps[~np.isnan(found.q[:, 0])].tolist() == [0, 50, 100]


def test_quaternions_that_are_not_of_unit_length_are_told(kinds: lw.Robot) -> None:
    q = kinds.random_q(seed=0, size=2)
    q[1, :4] *= 1.005
    assert lw.simulate(kinds, q, duration=0.01).status.tolist() == [0, lw.Status.NOT_UNIT]


def test_an_interrupt_keeps_what_was_computed(puma: lw.Robot) -> None:
    def controller(t: float, q: Any, qd: Any) -> Any:
        if t > 0.0205:
            raise KeyboardInterrupt
        return -qd

    with pytest.warns(UserWarning, match=r"simulate: interrupted; the trajectory ends at 0\.021 s"):
        found = lw.simulate(puma, bent(puma), None, controller, 1.0)
    assert found.interrupted and len(found) == 22
    whole = lw.simulate(puma, bent(puma), None, lambda t, q, qd: -qd, 0.021)
    np.testing.assert_array_equal(found.q, whole.q)


def test_an_interrupt_of_a_compiled_run(puma: lw.Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """States of whole runs are kept, and only those."""
    from linkwise.motion.progress import Progress

    def at(self: Progress, done: int) -> None:
        if done > 90:
            raise KeyboardInterrupt

    whole = lw.simulate(puma, bent(puma), duration=0.5, every=3)
    monkeypatch.setattr(Progress, "at", at)
    with pytest.warns(UserWarning, match="simulate: interrupted; the trajectory ends at"):
        found = lw.simulate(puma, bent(puma), duration=0.5, every=3)
    assert found.interrupted and 30 < len(found) < len(whole)
    np.testing.assert_array_equal(found.q, whole.q[: len(found)])
    assert found.failed_at == -1 and found.status == 0


@pytest.mark.parametrize("every", [2, 3, 5, 10, 64, 300])
@pytest.mark.parametrize("rows", [None, 3])
def test_states_do_not_depend_on_which_of_them_are_kept(
    puma: lw.Robot, every: int, rows: int | None
) -> None:
    """To the bit, also where the steps that are left are fewer than those between two states."""
    q = bent(puma) if rows is None else puma.random_q(seed=1, size=rows)
    for steps in (1, 2, 3, 4, 5, 7, 9, 11, 13, 63, 65, 257):
        whole = lw.simulate(puma, q, duration=steps * 1e-3)
        found = lw.simulate(puma, q, duration=steps * 1e-3, every=every)
        assert found.steps.tolist() == sorted({*range(0, steps + 1, every), steps})
        np.testing.assert_array_equal(found.q, whole.q[..., found.steps, :])
        np.testing.assert_array_equal(found.qd, whole.qd[..., found.steps, :])
        assert found.ok.all()


@pytest.mark.parametrize("every", [1, 4, 10, None])
@pytest.mark.parametrize("hold", [True, False])
def test_the_state_that_an_interrupt_reached(puma: lw.Robot, every: int | None, hold: bool) -> None:
    """It is the last one, with the last torques beside it, whichever states are kept."""

    def controller(t: float, q: Any, qd: Any) -> Any:
        if t > 0.0205:
            raise KeyboardInterrupt
        return -qd

    with pytest.warns(UserWarning, match="simulate: interrupted"):
        found = lw.simulate(puma, bent(puma), None, controller, 1.0, every=every, hold=hold)
    whole = lw.simulate(puma, bent(puma), None, lambda t, q, qd: -qd, 0.05, hold=hold)
    reached = 21 if hold else 20  # the last stage of a step is asked at its end
    wanted = [*range(0, reached, every), reached] if every else [reached]
    assert found.steps.tolist() == wanted
    np.testing.assert_array_equal(found.q, whole.q[wanted])
    np.testing.assert_array_equal(found.tau[:-1], whole.tau[wanted[:-1]])
    asked = whole.tau[reached - 1 if hold else reached]  # hold=False: in the reached state too
    np.testing.assert_array_equal(found.tau[-1], asked)


def test_an_interrupt_before_the_first_torques(puma: lw.Robot) -> None:
    def controller(t: float, q: Any, qd: Any) -> Any:
        raise KeyboardInterrupt

    for every in (1, None):
        with pytest.warns(UserWarning, match="simulate: interrupted; the trajectory ends at 0 s"):
            found = lw.simulate(puma, bent(puma), None, controller, 1.0, every=every)
        assert found.steps.tolist() == [0] and np.isnan(found.tau).all()
        np.testing.assert_array_equal(found.q, bent(puma)[None])


def test_an_interrupt_of_a_compiled_run_without_states_on_the_way(
    puma: lw.Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    from linkwise.motion.progress import Progress

    def at(self: Progress, done: int) -> None:
        if done > 90:
            raise KeyboardInterrupt

    whole = lw.simulate(puma, bent(puma), duration=0.5)
    monkeypatch.setattr(Progress, "at", at)
    with pytest.warns(UserWarning, match="simulate: interrupted"):
        found = lw.simulate(puma, bent(puma), duration=0.5, every=None)
    assert len(found) == 1 and 90 < found.steps[0] < 500
    np.testing.assert_array_equal(found.q, whole.q[found.steps])
    np.testing.assert_array_equal(found.qd, whole.qd[found.steps])


def test_arrays_of_any_memory_layout(puma: lw.Robot) -> None:
    """Strided and broadcast numbers of a single state are those of plain arrays, to the bit."""
    numbers = np.random.default_rng(2).uniform(0.1, 1.0, size=(6, 2))  # gains, too
    plain, strided = numbers[:, 0].copy(), numbers[:, 0]
    q = np.stack([bent(puma)] * 2, 1)[:, 0]
    run: Any = {"duration": 0.02}
    for name in ("rk4", "implicit"):
        run["integrator"] = name
        pairs: list[tuple[dict[str, Any], dict[str, Any]]] = [
            ({"f_ext": {"link6": strided}}, {"f_ext": {"link6": plain}}),
            ({"qd0": strided}, {"qd0": plain}),
            *(
                ({"controller": law(strided)}, {"controller": law(plain)})
                for law in (
                    lambda x: lw.control.constant(puma, x),
                    lambda x: lw.control.pd(puma, x, 0.1 * x, x),
                )
            ),
            ({"controller": lambda t, q, qd: 0.5}, {"controller": lambda *_: np.full(6, 0.5)}),
            (
                {"controller": lambda t, q, qd: q[::-1]},
                {"controller": lambda t, q, qd: q[::-1].copy()},
            ),
        ]
        for left, right in pairs:
            one = lw.simulate(puma, q, **left, **run)
            other = lw.simulate(puma, bent(puma), **right, **run)
            np.testing.assert_array_equal(one.q, other.q)
            np.testing.assert_array_equal(one.tau, other.tau)


def test_a_trajectory_does_not_change_with_the_arrays_that_were_given(puma: lw.Robot) -> None:
    for rows in ((), (2,)):
        tau, push = np.full((*rows, 6), 0.5), np.full((*rows, 6), 2.0)
        steps = np.full((*rows, 20, 6), 0.25)
        law = lw.control.constant(puma, tau)
        law = law + lw.control.constant(puma, lw.control.PerStep(steps))
        q = np.zeros((*rows, 6))
        found = lw.simulate(puma, q, q, law, 0.02, f_ext={"link6": push})
        same = lw.simulate(puma, q, q, law, 0.02, f_ext={"link6": push})
        expected = found.tau.copy(), found.balance.by_wrenches.copy()
        for x in (tau, push, steps, q):
            x[...] = 99.0
        np.testing.assert_array_equal(same.tau, expected[0])
        np.testing.assert_array_equal(same.balance.by_wrenches, expected[1])
        assert (same.tau == 0.75).all()


# -- arguments ------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "robot": ({"robot": "puma560"}, TypeError, "robot is a str; expected a Robot"),
    "q0": ({"q0": np.zeros(5)}, ValueError, r"q0 has shape \(5,\); expected \(\.\.\., 6\)"),
    "qd0": ({"qd0": np.zeros((6, 2))}, ValueError, r"qd0 has shape \(6, 2\)"),
    "leading": ({"q0": np.zeros((2, 6)), "qd0": np.zeros((3, 6))}, ValueError,
                "leading axes do not broadcast: q0"),
    "integrator": ({"integrator": "rk5"}, ValueError, "integrator 'rk5'; expected one of 'euler'"),
    "integrators": ({"integrator": ["rk4"]}, ValueError, r"integrator \['rk4'\]; expected one of"),
    "every": ({"every": 0}, ValueError, "every is 0; expected a positive integer or None"),
    "hold": ({"hold": 1}, ValueError, "hold is 1; expected True or False"),
    "dt": ({"dt": -1e-3}, ValueError, "dt is -0.001; expected a positive number of seconds"),
    "duration": ({"duration": float("nan")}, ValueError, "duration is nan; expected a positive"),
    "steps": ({"duration": 1.0, "dt": 3e-3}, ValueError,
              r"duration 1\.0 is 333\.333 steps of 0\.003; expected a whole number of steps, such "
              r"as dt=0\.003003003 or duration=0\.999"),
    "years": ({"duration": 1e10}, ValueError,
              r"duration 10000000000\.0 is 1e\+13 steps of 0\.001; expected at most 1e\+12 steps"),
    "controller": ({"controller": np.zeros(6)}, TypeError, "controller is a ndarray; expected a "
                   "law of linkwise.control, or a function"),
    "shape": ({"controller": lambda t, q, qd: np.zeros(5)}, ValueError,
              r"controller returned an array of shape \(5,\); expected torques of shape \(6,\)"),
    "type": ({"controller": lambda t, q, qd: None}, ValueError,
             r"the controller returned NoneType; expected torques of shape \(6,\)"),
    "complex": ({"controller": lambda t, q, qd: q + 1j}, ValueError,
                r"the controller returned an array of shape \(6,\) of type complex128; expected "
                r"torques of shape \(6,\), real numbers"),
    "complexes": ({"controller": lambda t, q, qd: [1j] * 6}, ValueError,
                  "the controller returned list of type complex128; expected torques"),
    "f_ext": ({"f_ext": {"elbow": np.zeros(6)}}, ValueError, "frame 'elbow': robot 'puma560' has"),
    "wrench": ({"f_ext": {"link6": np.zeros(3)}}, ValueError, r"f_ext\['link6'\] has shape \(3,\)"),
    "wrenches": ({"f_ext": {"link6": lw.control.PerStep(np.zeros((9, 6)))}}, TypeError,
                 r"f_ext\['link6'\] is a PerStep; expected a wrench \(\.\.\., 6\) that is con"),
    "threads": ({"threads": 0}, ValueError, "threads is 0; expected a positive integer or None"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_told(case: str, puma: lw.Robot) -> None:
    wrong, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        lw.simulate(**({"robot": puma, "q0": np.zeros(6), "duration": 0.01} | wrong))


@pytest.mark.parametrize("leading", [(), (3,), (2, 2)])
def test_a_robot_without_joints_under_every_controller(leading: tuple[int, ...]) -> None:
    b = lw.Builder("block").link("x", mass=1.0).joint("f", "fixed", parent="base", child="x")
    robot = b.build(strict=False)
    control, empty = lw.control, np.zeros((*leading, 0))
    for controller in (
        None,
        control.constant(robot, np.zeros(0)),
        control.gravity_compensation(robot),
        control.pd(robot, 1.0, 1.0),
        lambda t, q, qd: np.zeros_like(qd),
    ):
        found = lw.simulate(robot, empty, None, controller, 0.01)
        assert found.q.shape == found.tau.shape == (*leading, 11, 0) and found.ok.all()
        assert found.balance.residual.shape == (*leading, 11)


def test_wrong_laws_are_told(puma: lw.Robot) -> None:
    control, other = lw.control, lw.load("iiwa14")
    with pytest.raises(TypeError, match="pd: robot is a str; expected a Robot"):
        control.pd("puma560", 1.0, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"pd: kp has shape \(5,\); expected \(\.\.\., 6\)"):
        control.pd(puma, np.ones(5), 1.0)
    with pytest.raises(TypeError, match=r"pd: kd is 'soft'; expected a number or an array"):
        control.pd(puma, 1.0, "soft")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"constant: tau per step has shape \(6,\); expected"):
        control.constant(puma, control.PerStep(np.zeros(6)))
    with pytest.raises(ValueError, match="constant: tau per step has no step"):
        control.constant(puma, control.PerStep(np.zeros((0, 6))))
    with pytest.raises(TypeError, match="a law and a int cannot be added; expected two laws"):
        control.zero(puma) + 1
    with pytest.raises(ValueError, match="a law for robot 'puma560' and one for robot 'iiwa14'"):
        control.zero(puma) + control.zero(other)
    with pytest.raises(
        ValueError, match="controller was made for robot 'iiwa14', whose joints are not"
    ):
        lw.simulate(puma, puma.neutral(), controller=control.zero(other))
    short = control.constant(puma, control.PerStep(np.zeros((7, 6))))
    with pytest.raises(ValueError, match="numbers for 7 steps; expected at least 10"):
        lw.simulate(puma, puma.neutral(), controller=short, duration=0.01)


def test_a_result_that_would_not_fit_is_refused(
    puma: lw.Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    from linkwise.motion import setup

    monkeypatch.setattr(setup, "free_memory", lambda: 2 * 96 * 50)  # half of it: 50 states
    monkeypatch.setattr(setup, "LITTLE", 0)
    with pytest.raises(
        MemoryError, match=r"simulate: 1,001 states of 1 rows take .* expected every=21"
    ):
        lw.simulate(puma, puma.neutral(), duration=1.0)
    with pytest.raises(MemoryError, match=r"1,000,000,000,001 states of 1 rows"):  # at once
        lw.simulate(puma, puma.neutral(), duration=1e9)
    assert len(lw.simulate(puma, puma.neutral(), duration=1.0, every=21)) <= 50
    assert len(lw.simulate(puma, puma.neutral(), duration=1.0, every=None)) == 1


@pytest.mark.parametrize("integrator", ["rk4", "euler", "RK45"])
def test_more_steps_than_anybody_waits_for_are_refused(integrator: str) -> None:
    robot = lw.chain(1)
    message = r"simulate: duration 1e\+30 is 1e\+33 steps of 0\.001; expected at most 1e\+12 steps"
    with pytest.raises(ValueError, match=message):
        lw.simulate(robot, [0.1], duration=1e30, integrator=integrator)
