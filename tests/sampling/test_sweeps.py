"""Every kind of sweep: payloads, parameters, initial states, controllers, each state by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.sampling import chunks
from linkwise.sampling.draws import Draws
from linkwise.sampling.measures import Measure
from linkwise.sampling.spec import Spec, read_spec, spec_of

SPECS = sorted((Path(__file__).resolve().parents[2] / "examples" / "studies").glob("*.toml"))


def few(change: dict[str, Any]) -> tuple[Spec, lw.Robot, dict[str, Any], Any]:
    """Three states of a study of the Puma, and what it measures of them."""
    base = {"robot": "puma560", "states": 3, "chunk": 3, "strict": False}
    spec = spec_of(base | change)
    robot = spec.load()
    state = next(iter(Draws(spec, robot).chunk(0)))
    return spec, lw.load("puma560", strict=False), state, Measure(spec, robot)(state)


def test_payloads_are_points_of_mass() -> None:
    payload = {
        "link": "link6",
        "mass": {"uniform": [1, 2]},
        "com": {"uniform": [0, [0.1, 0.2, 0.3]]},
    }
    draw = {"q": "limits", "payload": payload}
    _, robot, state, found = few({"measure": "gravity_torque", "draw": draw})
    for k in range(3):
        mass, com = state["payload mass"][k, 0], state["payload com"][k]
        assert 1 <= mass <= 2 and (com <= [0.1, 0.2, 0.3]).all()
        expected = robot.with_payload("link6", mass, com).gravity_torque(state["q"][k])
        assert np.allclose(expected, found[k], rtol=1e-10, atol=1e-10)


def test_parameters_of_the_robot() -> None:
    draw = {
        "q": "limits", "qd": {"normal": 1.0}, "payload": {"mass": 1.5},
        "parameters": {
            "inertia": {"uniform": [0.5, 2]}, "gravity": {"normal": 1.0},
            "rotor": {"uniform": [0, 1]}, "viscous": {"uniform": [0, 3]},
            "coulomb": {"uniform": [0, 3]},
        },
    }  # fmt: skip
    _, robot, state, found = few({"measure": "bias", "draw": draw})
    for k in range(3):
        one = robot.with_gravity(robot.gravity + state["gravity"][k])
        for link, factor in zip(robot.body_names, state["inertia"][k], strict=True):
            own = one.inertia(link)
            one = one.with_inertia(link, own.mass * factor, own.com,
                                   np.asarray(own.inertia) * factor)  # fmt: skip
        one = one.with_payload("link6", 1.5)
        q, qd = state["q"][k], state["qd"][k]
        losses = state["viscous"][k] * qd + state["coulomb"][k] * np.sign(qd)
        assert np.allclose(one.bias(q, qd) + losses, found[k], rtol=1e-9, atol=1e-9)
    rotor = {"draw": {"parameters": {"rotor": {"uniform": [0, 1]}}}, "measure": "mass_matrix"}
    _, robot, state, found = few(rotor)
    own = robot.mass_matrix(robot.neutral()) - np.diag(robot.armature)
    assert np.allclose(found.reshape(3, 6, 6)[1] - own, np.diag(state["rotor"][1]))


def law_of(name: str, robot: lw.Robot, kp: float, kd: float, target: Any) -> lw.control.Law:
    if name == "none":
        return lw.control.zero(robot)
    if name == "computed_torque":
        return lw.control.computed_torque(robot, kp, kd, target)
    law = lw.control.pd(robot, kp, kd, target)
    return law + lw.control.gravity_compensation(robot) if name == "pd+gravity" else law


@pytest.mark.parametrize("law", ["computed_torque", "pd", "pd+gravity", "none"])
def test_controllers_that_do_not_know_the_payload(law: str) -> None:
    """Initial states, targets, gains and payloads are drawn; the law knows nothing of payloads."""
    draw = {"q": {"normal": 0.5}, "qd": {"normal": 0.5}, "target": {"uniform": [-0.2, 0.2]},
            "kp": {"uniform": [10, 30]}, "kd": 5.0,
            "payload": {"mass": {"uniform": [0, 2]}, "com": 0.05}}  # fmt: skip
    rollout = {"law": law, "duration": 0.1, "dt": 2e-3}
    _, robot, state, found = few({"measure": "rollout", "draw": draw, "rollout": rollout})
    for k in range(3):
        kp, kd, target = state["kp"][k, 0], state["kd"][k, 0], state["target"][k]
        assert 10 <= kp <= 30 and kd == 5.0
        own = law_of(law, robot, kp, kd, target)
        heavy = robot.with_payload("link6", state["payload mass"][k, 0], state["payload com"][k])
        run = lw.simulate(heavy, state["q"][k], state["qd"][k], duration=0.1, dt=2e-3,
                          controller=lambda t, q, qd, own=own: own(t, q, qd))  # fmt: skip
        assert np.allclose(found[k], robot.difference(run.q[-1], target), rtol=1e-9, atol=1e-11)


def test_motions_that_fail_are_counted() -> None:
    draw = {"q": "limits", "kp": 1e9, "kd": 1e9}
    spec, *_ = few({"measure": "rollout", "draw": draw, "rollout": {"law": "pd"}})
    kept = chunks.computed(spec, 0, np.tile([-1.0, 1.0], (6, 1)))
    assert int(kept["failed"]) == 3 and int(kept["count"]) == 0


@pytest.mark.parametrize("measure", ["workspace", "manipulability", "mass_matrix"])
def test_other_measures(measure: str) -> None:
    spec = spec_of({"robot": "puma560", "measure": measure, "states": 40, "chunk": 40,
                    "draw": {"q": "limits"}})  # fmt: skip
    kept = chunks.computed(spec, 0, chunks.pilot(spec))
    assert int(kept["count"]) == 40
    reach = {"workspace": 2.0, "manipulability": 5.0, "mass_matrix": 10.0}
    assert 0.0 < np.abs(kept["most"]).max() < reach[measure]


def test_free_bodies_are_drawn_over_all_turns() -> None:
    spec = spec_of({"robot": "puma560", "measure": "potential_energy", "states": 40, "chunk": 40,
                    "draw": {"q": "limits"}, "base": "free"})  # fmt: skip
    robot = spec.load()
    state = next(iter(Draws(spec, robot).chunk(0)))
    assert np.allclose(np.linalg.norm(state["q"][:, :4], axis=1), 1.0)
    assert np.abs(state["q"][:, 4:7]).max() <= 1.0
    lower, upper = robot.position_limits[:, 7:]
    joints = state["q"][:, 7:]
    assert ((lower <= joints) & (joints <= upper)).all() and np.abs(joints).max() > np.pi
    with pytest.raises(ValueError, match=r"has quaternions, is not drawn from a lattice"):
        spec_of({**spec.__dict__, "sequence": "lattice"})
    wanted = {"measure": "rollout", "sequence": "lattice", "draw": {"target": "limits"}}
    with pytest.raises(ValueError, match=r'target = "limits" of .* not drawn from a lattice'):
        spec_of({**spec.__dict__, **wanted})


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_studies_of_the_examples_run(path: Path) -> None:
    """Each with few of its states, whole otherwise."""
    whole = read_spec(path)
    spec = spec_of(whole.__dict__ | {"states": 50, "chunk": 25})
    ranges = chunks.pilot(spec)
    kept = chunks.merged([chunks.computed(spec, k, ranges) for k in range(2)])
    assert int(kept["count"]) + int(kept["failed"]) == 50
    assert int(kept["count"]) >= 40 and np.isfinite(kept["worst_states"]).all()


def test_there_is_an_example_of_every_kind() -> None:
    assert [p.stem for p in SPECS] == [
        "controller_gains", "monte_carlo", "robustness", "workspace", "worst_torques",
    ]  # fmt: skip
