"""Parameters recovered from torques that a known robot needs."""

from __future__ import annotations

import re
import runpy
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import IdentificationWarning
from linkwise.identification import pseudo_inertia
from linkwise.identification.bodies import UNITS, best_bodies, can_exist
from linkwise.identification.fit import Rows, fitted
from linkwise.identification.logs import Filter
from linkwise.identification.residues import P, Residue, exact_turn, independent_columns
from linkwise.identification.unknowns import Unknowns, measured
from linkwise.spatial import Turn
from linkwise.spatial.scalar import sincos

ROOT = Path(__file__).parents[2]


def motion(robot: lw.Robot, rng: Any, states: int = 300) -> Any:
    return robot.random_q(rng, size=states), *rng.normal(size=(2, states, robot.nv))


@pytest.fixture(scope="module")
def arm() -> lw.Robot:
    return lw.load("iiwa14")


def test_a_payload_is_recovered(arm: lw.Robot, rng: Any) -> None:
    truth = arm.with_inertia("link7", 2.0, (0.01, 0.02, 0.05), (0.02, 0.03, 0.025))
    m = motion(arm, rng)
    found = lw.identify(arm, *m, truth.inverse_dynamics(*m), bodies=["link7"])
    assert np.abs(found.parameters - truth.inertial_parameters).max() < 1e-6
    assert np.abs(found.robot.inertial_parameters - found.parameters).max() < 1e-9
    assert found.residual.max() < 1e-2 and (found.rank, found.unknowns) == (10, 10)
    assert (found.errors[:6] == 0.0).all() and np.isfinite(found.errors[6]).all()


@pytest.fixture(scope="module")
def noisy(arm: lw.Robot) -> Any:
    """Motions and noisy torques of an arm with friction and rotors, and a robot that is off."""
    rng = np.random.default_rng(4)
    m = motion(arm, rng, 1000)
    tau = joints_too(arm, *m) + NOISE * rng.normal(size=m[1].shape)
    return arm.with_inertia("link4", 4.0).with_inertia("link2", 5.0), m, tau


NOISE = 0.05


def joints_too(arm: lw.Robot, q: Any, qd: Any, qdd: Any) -> Any:
    return arm.inverse_dynamics(q, qd, qdd) + 0.3 * qd + 0.2 * np.sign(qd) + 0.1 * qdd


def test_an_arm_from_noisy_torques(arm: lw.Robot, noisy: Any, rng: Any) -> None:
    """Torques of other motions are foretold to the noise, and every body can exist."""
    off, m, tau = noisy
    found = lw.identify(off, *m, tau, rotor=True, friction=True)
    assert found.converged and found.steps > 0 and not found.unidentifiable
    assert all(np.linalg.eigvalsh(pseudo_inertia(x)).min() > 0.0 for x in found.parameters)
    new = motion(arm, rng, 100)
    error = found.robot.inverse_dynamics(*new) - joints_too(arm, *new)
    assert np.sqrt(np.mean(error**2)) < NOISE
    # two of the published bodies cannot exist, so that friction may be off by a little
    assert np.abs(found.friction - [0.3, 0.2]).max() < 0.05
    own = found.robot
    assert own.parametric("inertia").bias(m[0], m[1], status=True)[1].max() == 0  # NOT_RIGID: none


def test_no_other_bodies_fit_better(noisy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the best of all bodies that can exist, the slope S of the squares by each pseudo-inertia J
    is positive semidefinite, and tr(S J) = 0: no direction inside leads down.
    """
    off, m, tau = noisy
    asked = Unknowns(off, None, True, True)
    states, torques = measured(off, *m, tau)
    A = asked.matrix(states)
    b = torques - asked.known(states, A)
    fit = fitted(A, b, asked.start)
    rows = Rows.of(A, b, fit.weights)
    near = best_bodies(rows, fit, asked.start, 7)
    monkeypatch.setattr("linkwise.identification.bodies.NEAR", 1e-2)
    found = best_bodies(rows, fit, asked.start, 7)
    W, y = (A * fit.weights[:, None]).reshape(-1, A.shape[-1]), (b * fit.weights).ravel()
    slope = W.T @ (W @ found.values - y)
    least = 0.5 * float(np.sum((W @ found.values - y) ** 2))
    assert near.converged and found.converged and near.gap < 1e-6
    # near the prior, and squares above the least by less than chance explains
    assert 0.5 * float(np.sum((W @ near.values - y) ** 2)) - least < 0.5
    for k in range(0, 70, 10):
        S = np.tensordot(slope[k : k + 10], DUAL, 1)
        J = pseudo_inertia(found.values[k : k + 10])
        assert abs(np.trace(S @ J)) < 1e-4 * least
        root = np.linalg.cholesky(J)  # of bodies of this size, the slope is nowhere down
        assert np.linalg.eigvalsh(root.T @ S @ root).min() > -1e-4 * least
    assert (slope[70:] * found.values[70:] < 1e-4 * least).all()


ARMS = (
    "ur_description/urdf/ur10_robot", "ur_description/urdf/ur3_robot",
    "xarm_description/urdf/xarm7",
    "ur_description/urdf/ur5_robot", "panda_description/urdf/panda", "z1_description/urdf/z1",
    "talos_data/robots/talos_left_arm", "so_arm_description/urdf/so100",
    "so_arm_description/urdf/so101", "kinova_description/robots/kinova",
    "double_pendulum_description/urdf/double_pendulum", "finger_edu_description/robots/finger_edu",
    "asr_twodof_description/urdf/TwoDofs", "iiwa14", "puma560",
)  # fmt: skip
QUICK = ("ur_description/urdf/ur10_robot", "so_arm_description/urdf/so101", "iiwa14")


def scaled_bodies(robot: lw.Robot, factor: float) -> lw.Robot:
    for link in robot.link_names:
        body = robot.inertia(link)
        if body.mass > 0.0:
            inertia = factor * np.array(body.inertia)
            robot = robot.with_inertia(link, factor * body.mass, body.com, inertia)
    return robot


@pytest.mark.filterwarnings("ignore::linkwise.errors.RobotFileWarning")
@pytest.mark.parametrize("factor", [3.0, 0.3])
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=() if x in QUICK else pytest.mark.full) for x in ARMS]
)
def test_the_truth_fits_no_better(name: str, factor: float) -> None:
    """The prior is far off, and the true bodies, which are consistent, bound the best fit."""
    robots = pytest.importorskip("pinocchio") and next(
        Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in sys.path
        if (Path(p) / "cmeel.prefix/share/example-robot-data").is_dir()
    )  # fmt: skip
    robot = lw.load(name if "/" not in name else robots / f"{name}.urdf")
    truth, rng = scaled_bodies(robot, factor), np.random.default_rng(0)
    m = motion(robot, rng, 200)
    exact = truth.inverse_dynamics(*m)
    noise = NOISE * rng.normal(size=exact.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)  # light joints: noise
        found = lw.identify(robot, *m, exact + noise)
    assert found.converged and found.gap < 1e-4
    assert np.sum(found.residuals**2) < np.sum(noise**2)
    assert all(np.linalg.eigvalsh(pseudo_inertia(x)).min() > 0.0 for x in found.parameters)


# the slope by J of a function with given slopes by ten numbers: S with tr(S dJ) = slope @ dten
DUAL = np.linalg.inv(
    np.array([[np.sum(a * b) for b in UNITS] for a in UNITS])
).dot(UNITS.reshape(10, -1)).reshape(10, 4, 4)  # fmt: skip


def test_base_parameters(arm: lw.Robot, rng: Any) -> None:
    """As many as regrouping leaves: 7 of each body beyond the first, less what gravity spares."""
    base = lw.base_parameters(arm)
    assert base.rank == 43  # a chain of seven revolute joints, the first along gravity
    Y, pi = arm.regressor(*motion(arm, rng, 5)), arm.inertial_parameters.ravel()
    assert np.allclose(Y[..., base.columns] @ (base.combinations @ pi), Y @ pi, atol=1e-9)
    assert 1.0 < lw.excitation(arm, *motion(arm, rng)) < 1e4
    assert lw.excitation(arm, *np.zeros((3, 50, 7))) == np.inf


def test_what_is_not_told_stays(arm: lw.Robot, rng: Any) -> None:
    m = motion(arm, rng)
    found = lw.identify(arm, *m, arm.inverse_dynamics(*m), consistent=False)
    assert found.rank == 43 and np.isinf(found.errors).any()
    assert np.abs(found.parameters - arm.inertial_parameters).max() < 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_base_parameters_by_structure(random_robot: Any, seed: int) -> None:
    """Both ways find as many: trees, all kinds of joints, free bases."""
    kinds = ("revolute", "prismatic", "continuous", "helical", "universal", "planar", "spherical")
    base = "free" if seed == 4 else "fixed"
    robot = lw.Robot(random_robot(np.random.default_rng(seed), 4, kinds=kinds, base=base))
    found, exact = (lw.base_parameters(robot, by=by) for by in ("numbers", "structure"))
    assert found.rank == exact.rank
    rng = np.random.default_rng(seed)
    qd, qdd, pi = *rng.normal(size=(2, 9, robot.nv)), rng.normal(size=exact.combinations.shape[1])
    Y = robot.regressor(robot.random_q(rng, size=9), qd, qdd)
    expected = Y @ pi
    tau = Y[..., exact.columns] @ (exact.combinations @ pi)
    assert np.abs(tau - expected).max() < 1e-6 * np.abs(expected).max()


def test_base_parameters_of_robots_in_papers(arm: lw.Robot) -> None:
    """PUMA 560 has 36 [Gautier and Khalil 1990], a chain of seven revolute joints 43."""
    puma = lw.base_parameters(lw.load("puma560"), by="structure")
    assert puma.rank == 36 and lw.base_parameters(arm, by="structure").rank == 43
    assert puma.names[1].startswith("mx[link2] + 0.4318 m[link3] + 0.4318 m[link4]")
    assert puma.names[2] == "my[link2]" and str(puma).count("\n") == 35


def test_exact_numbers() -> None:
    """Residues do as fractions do; a sine and a cosine have squares that add up to 1."""
    x, y = Residue([3, 5]), Residue([7, P - 1])
    assert ((x * y - 0.5) / y * y + 0.5).x.tolist() == [21, P - 5]
    s, c = sincos(x)
    assert (s * s + c * c).x.tolist() == [1, 1]
    turn = exact_turn(Turn("z", 0.6, 0.8))
    assert (turn.c * 5.0).x == 3 and (1.0 - turn.s * turn.s - turn.c * turn.c).x == 0
    rows = np.array([[1, 2, 3, 0], [2, 4, 6, 0], [0, 0, 0, 5]])
    assert independent_columns(rows) == [0, 3]


def test_data_that_tell_too_little(arm: lw.Robot, rng: Any) -> None:
    """One joint moves, the first, about a vertical axis: gravity and inertia about it show."""
    q, qd, qdd = np.zeros((3, 50, 7))
    q[:, 0], qd[:, 0], qdd[:, 0] = rng.normal(size=(3, 50))
    tau = arm.inverse_dynamics(q, qd, qdd)
    with pytest.warns(
        UserWarning, match=r"determine \d+ of the 43 combinations .* of mx\[link2\], "
    ):
        found = lw.identify(arm, q, qd, qdd, tau, consistent=False)
    assert found.rank < found.combinations == 43 and "mx[link2]" in found.unidentifiable
    assert "not excited: mx[link2], " in repr(found) and "link7" not in repr(found)
    assert np.abs(found.parameters - arm.inertial_parameters).max() < 1e-9
    still = arm.with_gravity((0.0, 0.0, 0.0))
    with pytest.raises(
        ValueError, match=r"in these 50 states no torque depends on any of m\[link1"
    ):
        lw.identify(still, q, *np.zeros((3, 50, 7)))


def test_data_that_tell_apart_poorly(arm: lw.Robot, rng: Any) -> None:
    q, qd, qdd = motion(arm, rng, 200)
    q = 1e-5 * q + 0.3  # always about the same place
    with pytest.warns(UserWarning, match=r"tell combinations apart only poorly \(condition \d"):
        lw.identify(arm, q, qd, qdd, arm.inverse_dynamics(q, qd, qdd), consistent=False)


def test_what_is_known_and_how_well(arm: lw.Robot, rng: Any) -> None:
    """Standard errors are those of many repeated measurements."""
    m = motion(arm, rng, 60)
    tau = arm.inverse_dynamics(*m)
    found = [
        lw.identify(arm, *m, tau + 0.1 * rng.normal(size=tau.shape), bodies=["link7"],
                    consistent=False)
        for _ in range(60)
    ]  # fmt: skip
    spread = np.std([x.values for x in found], axis=0)
    expected = np.mean([x.standard_errors for x in found], axis=0)
    assert (np.abs(spread / expected - 1.0) < 0.4).all()  # 60 draws: 9 % standard deviation
    one = found[0]
    assert (
        one.identifiable.all()
        and one.covariance.shape == (10, 10)
        and one.residuals.shape == (60, 7)
    )
    assert one.names[0] == "m[link7]" and "m[link7]" in str(one) and one.unknowns == 10
    assert repr(one).startswith("identification of iiwa14: 10 of 10 combinations identified")
    with pytest.raises(ValueError, match=r"what was found is no robot \(link 'link7': inertia is"):
        [x.robot for x in found if not can_exist(x.parameters[6])]  # those far enough from it raise


def test_only_friction(arm: lw.Robot, rng: Any) -> None:
    """Of joints alone, bodies known; what is not below zero stays so."""
    m = motion(arm, rng, 100)
    tau = arm.inverse_dynamics(*m) + 0.3 * m[1]
    found = lw.identify(arm, *m, tau, bodies=[], friction=True)
    assert np.abs(found.friction - [0.3, 0.0]).max() < 1e-6 and (found.friction >= 0.0).all()
    assert np.array_equal(found.parameters, arm.inertial_parameters)


def test_joints_that_follow_keep_their_friction(rng: Any) -> None:
    """A gripper whose second finger follows the first, with rotors and friction of its own; and a
    wrist that turns freely, with damping.
    """
    b = lw.Builder("gripper").link("palm", mass=1.0)
    for name in ("wrist", "left", "right"):
        b.link(name, mass=0.3, com=(0.1, 0.02, 0.05), inertia=(0.002, 0.003, 0.004))
    b.joint("turn", "spherical", parent="palm", child="wrist", damping=0.4)
    b.joint("a", "prismatic", parent="wrist", child="left", axis=(0, 1, 0), damping=0.3)
    b.joint("b", "prismatic", parent="wrist", child="right", axis=(0, -1, 0),
            mimic=("a", 0.5, 0.0), damping=0.8, friction=0.6, armature=0.2)  # fmt: skip
    plain = b.build()
    m, truth = motion(plain, rng, 100), plain.with_friction()
    tau = truth.inverse_dynamics(*m)
    for robot, asked in ((truth, {}), (truth, {"rotor": True}), (plain, {"friction": True})):
        found = lw.identify(robot, *m, tau, **asked)
        assert found.residual.max() < 1e-6
        assert np.allclose(found.robot.inverse_dynamics(*m), tau, atol=1e-5)
        assert np.allclose(found.friction, [[0.4, 0.0]] * 3 + [[0.3, 0.0]], atol=1e-5)


def test_one_state_weighs_all_joints_alike(arm: lw.Robot) -> None:
    """Seven torques and ten numbers: what a joint fits by chance does not outweigh the others."""
    rng = np.random.default_rng(0)
    m = motion(arm, rng, 1)
    heavy = arm.with_inertia("link7", 1.5, (0.02, 0.0, 0.08), (0.004, 0.005, 0.003))
    tau = heavy.inverse_dynamics(*m) + 0.02 * rng.normal(size=(1, 7))
    with pytest.warns(UserWarning, match="the data determine 6 of the 10 combinations"):
        found = lw.identify(arm, *m, tau, bodies=["link7"], consistent=False)
    assert found.residual.max() < 0.05


def test_closed_loops_are_refused(arm: lw.Robot) -> None:
    x, closed = np.zeros((4, 7)), arm.close_loops(lw.Loop("link7", "base", [0, 0, 0, 0, 0, 1]))
    for call in (lambda: lw.identify(closed, x, x, x, x), lambda: lw.base_parameters(closed),
                 lambda: lw.excitation(closed, x, x, x)):  # fmt: skip
        with pytest.raises(ValueError, match=r"without closed loops.*loop 0: 'link7' to 'base',"):
            call()


def test_messages(arm: lw.Robot) -> None:
    x = np.zeros((4, 7))
    with pytest.raises(ValueError, match="body 'hand'"):
        lw.identify(arm, x, x, x, x, bodies=["hand"])
    with pytest.raises(
        TypeError, match=r"bodies is the text 'link7'; expected a list: \['link7'\]"
    ):
        lw.identify(arm, x, x, x, x, bodies="link7")
    with pytest.raises(ValueError, match="bodies names none, and neither rotor nor friction"):
        lw.identify(arm, x, x, x, x, bodies=[])
    with pytest.raises(ValueError, match=r"tau has shape \(4, 6\); expected \(\.\.\., 7\), many"):
        lw.identify(arm, x, x, x, x[:, :6])
    with pytest.raises(
        ValueError, match=r"q has shape \(7,\); expected \(\.\.\., 7\), many states"
    ):
        lw.identify(arm, x[0], x, x, x)
    with pytest.raises(TypeError, match="qd cannot be read as numbers"):
        lw.identify(arm, x, "fast", x, x)
    with pytest.raises(ValueError, match="have 4, 4, 4, 3 states; expected as many each"):
        lw.identify(arm, x, x, x, x[:3])
    with pytest.raises(ValueError, match="have no states; expected many"):
        lw.identify(arm, x[:0], x[:0], x[:0], x[:0])
    with pytest.raises(ValueError, match="qd has numbers that are not finite"):
        lw.identify(arm, x, x * np.nan, x, x)
    with pytest.raises(ValueError, match="by is 'hand'; expected 'numbers' or 'structure'"):
        lw.base_parameters(arm, by="hand")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="states is -1; expected 0 or a positive number"):
        lw.base_parameters(arm, states=-1)
    with pytest.raises(ValueError, match="excitation: q, qd or qdd has numbers that are not fin"):
        lw.excitation(arm, x, x * np.nan, x)


def test_the_example_finds_what_the_arm_holds(
    capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # it saves a picture
    example = ROOT / "examples" / "17_identify_payload.py"
    load = runpy.run_path(str(example))["load"]
    assert abs(load[0] - 1.5) < 0.05 and np.abs(load[1:4] - [0.03, 0.0, 0.12]).max() < 0.01
    assert "truth 1.5\n" in capsys.readouterr().out


@pytest.mark.full
def test_the_example_finds_an_arm(
    capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    example = runpy.run_path(str(ROOT / "examples" / "18_identify_arm.py"))
    errors, noise = example["errors"], example["TORQUE"]
    assert (errors["identified"] < 0.3 * noise).all() and (errors["before"] > noise).all()
    assert all(np.linalg.eigvalsh(pseudo_inertia(x)).min() > 0 for x in example["found"].parameters)
    assert "62 of 62 combinations identified" in capsys.readouterr().out


@pytest.mark.full
def test_the_page_runs(capsys: Any) -> None:
    text = (ROOT / "docs" / "identification.md").read_text(encoding="utf-8")
    space = globals() | {"lw": lw, "np": np}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, space)
    assert space["base"].rank == 36
    assert "10 of 10 combinations identified" in capsys.readouterr().out


# -- doubts, logs and validation -------------------------------------------------------------------


@pytest.fixture(scope="module")
def record() -> Any:
    """A log of an arm with a payload at 1 kHz, encoders with noise; its exact motion."""
    arm, t, rng = lw.load("puma560"), np.arange(0.0, 8.0, 0.001), np.random.default_rng(0)
    w = 2.0 * np.pi * np.arange(1, 4)[:, None] / 4.0
    size, phase = rng.uniform(0.2, 0.5, (3, 6)), rng.uniform(0.0, 6.0, (3, 6))
    angle = w * t[:, None, None] + phase
    q = (size * np.sin(angle)).sum(1)
    qd, qdd = (size * w * np.cos(angle)).sum(1), -(size * w**2 * np.sin(angle)).sum(1)
    tau = arm.with_payload("link6", 2.19, com=(0, 0, 0.1)).inverse_dynamics(q, qd, qdd)
    return arm, t, q + 1e-4 * rng.normal(size=q.shape), tau + 0.1 * rng.normal(size=q.shape), qd


def test_a_log_is_filtered(record: Any) -> None:
    """Mass from positions and torques alone, within its standard error; the end validates it."""
    arm, t, q, tau, _ = record
    found = lw.identify(
        arm, q, tau=tau, t=t, bandwidth=10, bodies=["link6"], validation=0.25
    )  # fmt: skip
    load = found.parameters[5, 0] - arm.inertial_parameters[5, 0]
    assert abs(load - 2.19) < 4.0 * found.errors[5, 0] < 0.03 and found.doubts == ()
    assert (found.validation < 1.5 * found.residual).all()
    assert (found.residual < 0.3).all()  # noise of encoders, too, is filtered
    short = q[: len(q) // 8], tau[: len(q) // 8], t[: len(q) // 8]
    other = lw.identify(arm, short[0], tau=short[1], t=short[2], bandwidth=10, bodies=["link6"])
    assert np.isnan(other.validation).all()


def test_the_filter_has_its_bandwidth_and_no_phase() -> None:
    lowpass, t = Filter(5.0, 0.001, slice(None)), np.arange(0.0, 4.0, 0.001)
    inside = slice(1000, 3000)
    for hertz, gain in ((1.0, 1.0), (5.0, 0.5), (20.0, 0.0)):
        w = 2.0 * np.pi * hertz
        expected = (gain * np.sin(w * t), gain * w * np.cos(w * t), -gain * w**2 * np.sin(w * t))
        for k, x in enumerate(expected):
            error = lowpass(np.sin(w * t)[:, None], k)[:, 0] - x
            assert np.abs(error[inside]).max() < 1e-3 * w**k


def test_uneven_times_and_jumps_of_a_turn(record: Any) -> None:
    arm, t, q, tau, _ = record
    ask = {"tau": tau, "bandwidth": 10, "bodies": ["link6"]}
    even = lw.identify(arm, q, t=t, **ask)
    jitter = t + 1e-4 * np.random.default_rng(0).uniform(-1, 1, t.shape)
    wrapped = (q + np.pi) % (2.0 * np.pi) - np.pi + 2.0 * np.pi * (t[:, None] > 4.0)
    for other in (lw.identify(arm, q, t=jitter, **ask), lw.identify(arm, wrapped, t=t, **ask)):
        assert abs(other.parameters[5, 0] - even.parameters[5, 0]) < 0.02


def test_useless_accelerations_are_named(record: Any) -> None:
    arm, t, q, tau, _ = record
    qd = np.gradient(q, t, axis=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = lw.identify(arm, q, qd, np.gradient(qd, t, axis=0), tau, bodies=["link6"])
    assert re.search("accelerations are mostly noise.*joint1.*bandwidth=10", found.doubts[0])
    assert [str(x.message) for x in caught] == [f"identify: {text}" for text in found.doubts]
    assert "doubtful: accelerations" in repr(found)


@pytest.mark.parametrize("bodies", [["link6"], None])
def test_torques_of_the_opposite_sign(bodies: Any) -> None:
    arm, rng = lw.load("puma560"), np.random.default_rng(0)
    m = motion(arm, rng, 100)
    tau = arm.with_payload("link6", 2.0, com=(0, 0, 0.1)).inverse_dynamics(*m)
    tau = tau + 0.01 * rng.normal(size=tau.shape)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = lw.identify(arm, *m, -tau, bodies=bodies)
    assert {x.category for x in caught} == {IdentificationWarning}
    assert "the torques seem to have the opposite sign" in found.doubts[0]
    assert any("physically consistent bodies explain the torques much worse" in x
               for x in found.doubts)  # fmt: skip
    assert "link6" in found.boundary
    assert lw.identify(arm, *m, tau, bodies=bodies).doubts == ()


@pytest.mark.parametrize("joint", range(6))
@pytest.mark.parametrize("bodies", [["link6"], None])
def test_one_motor_of_the_opposite_sign(joint: int, bodies: Any) -> None:
    """Noise too: the joint that does not fit has next to no weight in the fit."""
    arm, rng = lw.load("puma560"), np.random.default_rng(0)
    m = motion(arm, rng, 100)
    tau = arm.inverse_dynamics(*m)
    tau[:, joint] *= -1
    tau += 0.01 * rng.normal(size=tau.shape)
    with pytest.warns(IdentificationWarning):
        found = lw.identify(arm, *m, tau, bodies=bodies)
    expected = f"the torques of joint{joint + 1} seem to have the opposite sign"
    assert expected in found.doubts[0]


def test_torques_that_nothing_explains(arm: lw.Robot, rng: Any) -> None:
    m = motion(arm, rng, 100)
    with pytest.warns(IdentificationWarning, match=r"much of the torques is left unexplained, of"):
        found = lw.identify(arm, *m, 50.0 * rng.normal(size=(100, 7)), bodies=["link7"])
    assert found.unexplained.max() > 0.5


def test_samples_that_validate_nothing(arm: lw.Robot, rng: Any) -> None:
    m = motion(arm, rng, 100)
    tau = arm.inverse_dynamics(*m) + 0.01 * rng.normal(size=(100, 7))
    tau[80:] += 1.0
    with pytest.warns(IdentificationWarning, match=r"times as large in the samples kept for valid"):
        lw.identify(arm, *m, tau, bodies=["link7"], validation=0.2)


@pytest.mark.parametrize("lag", [0.02, -0.02, 0.04])
@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_torques_that_come_late(record: Any, lag: float, friction: float) -> None:
    """The lag is estimated, and friction that nothing describes is not taken for one."""
    arm, t, q, tau, qd = record
    tau = tau + friction * (np.sign(qd) + qd)
    ask = {"t": t, "bandwidth": 10, "bodies": ["link6"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = lw.identify(arm, q, tau=np.roll(tau, round(lag / 0.001), axis=0), **ask)
        unmoved = lw.identify(arm, q, tau=tau, **ask)
    (text,) = (x for x in found.doubts if "seem to come" in x)
    number, seen = re.search(r"come (\S+) s (\w+) the motion", text).groups()
    assert abs(float(number) - abs(lag)) < 0.002 and seen == ("after" if lag > 0 else "before")
    assert {f"identify: {x}" for x in found.doubts} <= {str(x.message) for x in caught}
    assert not any("seem to come" in x for x in unmoved.doubts)


def test_errors_are_doubted_where_residuals_follow_the_motion(arm: lw.Robot) -> None:
    """A lag leads to the boundary, where standard errors say nothing of the missing mass."""
    t, rng = np.arange(0.0, 8.0, 0.002), np.random.default_rng(0)
    w = 2.0 * np.pi * np.array([0.3, 0.5, 0.4, 0.7, 0.6, 0.9, 0.8])
    q, qd = np.sin(w * t[:, None]), w * np.cos(w * t[:, None])
    truth = arm.with_inertia("link7", 1.5, (0.02, 0.0, 0.08), (0.004, 0.005, 0.003))
    tau = truth.inverse_dynamics(q, qd, -(w**2) * q) + 0.05 * rng.normal(size=q.shape)
    ask = {"t": t, "bandwidth": 10, "bodies": ["link7"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        found = lw.identify(arm, q, tau=np.roll(tau, 10, axis=0), **ask)
    match = r"standard errors are too small: .*joint1 \(0.* link7: on the boundary of physical"
    assert any(re.match(match, x) for x in found.doubts) and found.boundary == ("link7",)
    assert any("seem to come 0.02 s after the motion" in x for x in found.doubts)
    assert lw.identify(arm, q, tau=tau, **ask).doubts == ()


def test_messages_of_logs(arm: lw.Robot) -> None:
    t, x = np.arange(0.0, 10.0, 0.01), np.zeros((1000, 7))
    cases = [
        (TypeError, "tau cannot be read as numbers .it is complex", {"tau": x + 1j, "t": t}),
        (TypeError, "t is given, and qd or qdd", {"qd": x, "tau": x, "t": t}),
        (TypeError, "qd is missing; expected q, qd, qdd and tau, or a log", {"tau": x}),
        (TypeError, "bandwidth is that of a log's filter, and t is missing", {"bandwidth": 5}),
        (TypeError, "bandwidth is None; expected Hz", {"tau": x, "t": t, "bandwidth": None}),
        (ValueError, "bandwidth is 80 Hz; expected .* half", {"tau": x, "t": t, "bandwidth": 80}),
        (ValueError, "too short for a bandwidth", {"tau": x, "t": t, "bandwidth": 0.11}),
        (ValueError, r"t, q and tau have shapes \(9,\)", {"tau": x, "t": t[:9]}),
        (ValueError, r"t\[500\] - t\[499\] is 1.01 s", {"tau": x, "t": t + (t > 4.995)}),
        (TypeError, "validation is 'some'", {"tau": x, "t": t, "validation": "some"}),
        (ValueError, "validation is 1.5; expected a share", {"tau": x, "t": t, "validation": 1.5}),
    ]  # fmt: skip
    for error, match, words in cases:
        words = {"bandwidth": 5.0} | words if "t" in words else words
        with pytest.raises(error, match=match):
            lw.identify(arm, x, **words)
    for name in ("q", "qd", "qdd", "tau"):
        states = {"q": x, "qd": x, "qdd": x, "tau": x} | {name: x + 1e200}
        with pytest.raises(ValueError, match=f"{name} has numbers as large as 1e.200; expected at"):
            lw.identify(arm, **states)
        states = {"q": x, "qd": x, "qdd": x, "tau": x} | {name: x + 1j}
        with pytest.raises(TypeError, match=f"{name} cannot be read as numbers .it is complex"):
            lw.identify(arm, **states)
    with pytest.raises(ValueError, match="whose positions are not angles or lengths"):
        lw.identify(lw.load("puma560", base="free"), x, tau=x, t=t, bandwidth=5)
