"""Parameters recovered from torques that a known robot needs."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.identification import pseudo_inertia


def motion(robot: lw.Robot, rng: Any, states: int = 300) -> Any:
    return robot.random_q(rng, states), *rng.normal(size=(2, states, robot.nv))


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


@pytest.mark.full
def test_an_arm_from_noisy_torques(arm: lw.Robot, rng: Any) -> None:
    """Torques of other motions are foretold to the noise, and every body can exist."""
    noise = 0.05
    m = motion(arm, rng, 1500)
    qd = m[1]
    tau = arm.inverse_dynamics(*m) + 0.3 * qd + 0.2 * np.sign(qd) + 0.1 * m[2]
    off = arm.with_inertia("link4", 4.0).with_inertia("link2", 5.0)
    found = lw.identify(
        off, *m, tau + noise * rng.normal(size=tau.shape), rotor=True, friction=True
    )
    assert all(np.linalg.eigvalsh(pseudo_inertia(x)).min() > 0.0 for x in found.parameters)
    new = motion(arm, rng, 100)
    expected = arm.inverse_dynamics(*new) + 0.3 * new[1] + 0.2 * np.sign(new[1]) + 0.1 * new[2]
    error = found.robot.inverse_dynamics(*new) - expected
    assert np.sqrt(np.mean(error**2)) < 2 * noise
    # two of the published bodies cannot exist, so that friction may be off by a little
    assert np.abs(found.friction - [0.3, 0.2]).max() < 0.05


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


def test_messages(arm: lw.Robot) -> None:
    x = np.zeros((4, 7))
    with pytest.raises(ValueError, match="body 'hand'"):
        lw.identify(arm, x, x, x, x, bodies=["hand"])
    with pytest.raises(ValueError, match=r"tau has shape \(4, 6\); expected \(\.\.\., 7\)"):
        lw.identify(arm, x, x, x, x[:, :6])
    with pytest.raises(ValueError, match="have 4, 4, 4, 3 states; expected as many each"):
        lw.identify(arm, x, x, x, x[:3])
    with pytest.raises(ValueError, match="qd has numbers that are not finite"):
        lw.identify(arm, x, x * np.nan, x, x)


def test_the_example_finds_what_the_arm_holds(capsys: Any) -> None:
    example = Path(__file__).parents[2] / "examples" / "17_identify_payload.py"
    load = runpy.run_path(str(example))["load"]
    assert abs(load[0] - 1.5) < 0.05 and np.abs(load[1:4] - [0.03, 0.0, 0.12]).max() < 0.01
    assert "truth 1.500" in capsys.readouterr().out
