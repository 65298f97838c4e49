"""Parameters recovered from torques that a known robot needs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.identification import pseudo_inertia
from linkwise.identification.bodies import UNITS, _Squares, best_bodies, can_exist
from linkwise.identification.fit import fitted
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
    # to what the weight of the prior, 1e-5 of the data's, moves the best fit
    assert np.abs(found.parameters - truth.inertial_parameters).max() < 1e-4
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
    assert found.converged and found.steps > 0 and not found.missed
    assert all(np.linalg.eigvalsh(pseudo_inertia(x)).min() > 0.0 for x in found.parameters)
    new = motion(arm, rng, 100)
    error = found.robot.inverse_dynamics(*new) - joints_too(arm, *new)
    assert np.sqrt(np.mean(error**2)) < NOISE
    # two of the published bodies cannot exist, so that friction may be off by a little
    assert np.abs(found.friction - [0.3, 0.2]).max() < 0.05
    own = found.robot
    assert own.parametric("inertia").bias(m[0], m[1], status=True)[1].max() == 0  # NOT_RIGID: none


def test_no_other_bodies_fit_better(noisy: Any) -> None:
    """At the best of all bodies that can exist, the slope S of the squares by each pseudo-inertia J
    is positive semidefinite, and tr(S J) = 0: no direction inside leads down.
    """
    off, m, tau = noisy
    asked = Unknowns(off, None, True, True)
    states, torques = measured(off, *m, tau)
    A = asked.matrix(states)
    b = torques - asked.known(states, A)
    fit = fitted(A, b, asked.start)
    found = best_bodies(A, b, fit, asked.start, 7)
    problem = _Squares(A, b, fit, asked.start, 7)
    slope = problem.H @ found.values - problem.g
    least = problem.squares(found.values)
    for k in range(0, 70, 10):
        S = np.tensordot(slope[k : k + 10], DUAL, 1)
        J = pseudo_inertia(found.values[k : k + 10])
        assert abs(np.trace(S @ J)) < 1e-6 * least
        root = np.linalg.cholesky(J)  # of bodies of this size, the slope is nowhere down
        assert np.linalg.eigvalsh(root.T @ S @ root).min() > -1e-6 * least
    assert (slope[70:] * found.values[70:] < 1e-6 * least).all()


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
    with pytest.warns(UserWarning, match=r"tell \d+ of the 43 combinations .* of mx\[link2\], "):
        found = lw.identify(arm, q, qd, qdd, tau, consistent=False)
    assert found.rank < found.combinations == 43 and "mx[link2]" in found.missed
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
    assert one.told.all() and one.covariance.shape == (10, 10) and one.residuals.shape == (60, 7)
    assert one.names[0] == "m[link7]" and "m[link7]" in str(one) and one.unknowns == 10
    assert repr(one).startswith("identification of iiwa14: 10 of 10 combinations told")
    with pytest.raises(ValueError, match=r"what was found is no robot \(link 'link7': inertia is"):
        next(x.robot for x in found if not can_exist(x.parameters[6]))


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
    with pytest.warns(UserWarning, match="the data tell 6 of the 10 combinations"):
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
    assert "62 of 62 combinations told" in capsys.readouterr().out


@pytest.mark.full
def test_the_page_runs(capsys: Any) -> None:
    text = (ROOT / "docs" / "identification.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, space := globals() | {"lw": lw, "np": np})
    assert space["base"].rank == 36
    assert "10 of 10 combinations told" in capsys.readouterr().out
