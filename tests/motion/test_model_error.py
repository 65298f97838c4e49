"""Controllers that were made for another model of the robot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw

OPTIONS: dict[str, Any] = {"duration": 0.1, "dt": 2e-3}


@pytest.fixture(scope="module")
def nominal() -> lw.Robot:
    return lw.load("iiwa14")


@pytest.mark.parametrize("integrator", ["rk4", "midpoint", "DOP853"])
def test_the_law_computes_with_its_own_model(nominal: lw.Robot, integrator: str) -> None:
    if integrator == "DOP853":
        pytest.importorskip("scipy")
    loaded = nominal.with_payload("link7", 3.0, (0.0, 0.05, 0.1))
    law = lw.control.computed_torque(nominal, 40.0, 8.0, [0.3] * 7)
    q = np.linspace(-0.4, 0.6, 7)
    options = OPTIONS | {"integrator": integrator, "limits": "ignore"}
    found = lw.simulate(loaded, q, controller=law, **options)
    called = lw.simulate(loaded, q, controller=lambda t, q, qd: law(t, q, qd), **options)
    assert np.allclose(found.q, called.q, rtol=1e-9, atol=1e-10)
    assert np.allclose(found.tau[:-1], called.tau[:-1], rtol=1e-7, atol=1e-7)
    knows = lw.control.computed_torque(loaded, 40.0, 8.0, [0.3] * 7)
    other = lw.simulate(loaded, q, controller=knows, **options)
    assert np.abs(other.final.q - found.final.q).max() > 1e-3
    assert np.array_equal(lw.simulate(nominal, q, controller=law, **options).q[0], found.q[0])


def test_robots_of_loops_over_their_links(nominal: lw.Robot) -> None:
    loaded = nominal.with_payload("link7", 3.0)
    law = lw.control.gravity_compensation(nominal)
    q = np.full(7, 0.4)
    written = lw.simulate(loaded, q, controller=law, limits="ignore", **OPTIONS)
    loops = lw.simulate(
        loaded.with_codegen("rolled"), q, controller=law, limits="ignore", **OPTIONS
    )
    assert np.allclose(written.q, loops.q, rtol=1e-10, atol=1e-11)


def test_other_joints_are_refused(nominal: lw.Robot) -> None:
    law = lw.control.gravity_compensation(nominal)
    with pytest.raises(ValueError, match=r"made for robot 'iiwa14', whose joints .* 'puma560'"):
        lw.simulate(lw.load("puma560"), [0.0] * 6, controller=law)
    renamed = nominal.rename({"joint3": "elbow"}).with_payload("link7", 1.0)
    with pytest.raises(ValueError, match=r"joint 2 is 'elbow' and 'joint3'; expected a law for"):
        lw.simulate(renamed, [0.0] * 7, controller=law)
