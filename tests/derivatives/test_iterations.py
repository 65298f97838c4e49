"""Derivatives of what iterations find: projections, conjugate gradients, inverse kinematics."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.reach_rates import follower
from linkwise.backends.reference import interpret
from linkwise.differentiation.plan import Asked, Plan
from linkwise.engine.reach_plan import goal_of
from linkwise.engine.tasks import Key
from linkwise.se3 import exp
from linkwise.spatial import repeat
from linkwise.trace.diff import NotDifferentiable, jvp, vjp
from linkwise.trace.expr import Graph
from linkwise.trace.program import Port, Slot
from linkwise.trace.tracer import program_of

EPS = np.finfo(float).eps
Step = Callable[[Plan, dict[str, Any]], np.ndarray]


def close(found: Any, expected: Any, limit: float) -> None:
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= limit * np.abs(expected).max()


# -- loops ----------------------------------------------------------------------------------------


def test_a_loop_carries_tangents() -> None:
    """Newton's square root of a, from 1: three steps, and as many as it takes."""
    for limit, value in ((3.0, None), (50.0, np.sqrt(7.0))):
        graph = Graph()
        a = graph.input("a", 0)

        def step(state: list[Any], a: Any = a) -> tuple[list[Any], Any]:
            (x,) = state
            new = 0.5 * (x + a / x)
            return [new], (new - x) * (new - x) - 1e-24

        (root,) = repeat(step, [1.0 + 0.0 * a], limit)
        (slope,) = jvp([root * a], [a], [1.0])
        (curve,) = jvp([slope], [a], [1.0])
        slots = [Slot("x"), Slot("slope"), Slot("curve")]
        program = program_of("root", (Port("a", 1),), graph, slots, [root, slope, curve])
        found = interpret(program, {"a": np.array([[7.0], [7.0 + 1e-5], [7.0 - 1e-5]])})
        product = found["x"] * [7.0, 7.0 + 1e-5, 7.0 - 1e-5]
        expected = (product[1] - product[2]) / 2e-5
        assert abs(found["slope"][0] - expected) < 1e-8
        assert abs(found["curve"][0] - (found["slope"][1] - found["slope"][2]) / 2e-5) < 1e-8
        if value is not None:
            assert abs(found["slope"][0] - 1.5 * value) < 8 * EPS
        with pytest.raises(NotDifferentiable, match="what a loop carries or reads"):
            vjp([root], [a], [1.0])


# -- projection to closed loops -------------------------------------------------------------------


def four_bar() -> lw.Robot:
    b = lw.Builder("four_bar", gravity=(0.0, -9.81, 0.0))
    b.link("ground")
    for name, length in (("crank", 0.2), ("coupler", 0.6), ("rocker", 0.5)):
        b.link(name, mass=length, com=(length / 2, 0, 0), inertia=(1e-3, 1e-2, 1e-2))
    b.joint("a", "continuous", parent="ground", child="crank")
    b.joint("b", "continuous", parent="crank", child="coupler", xyz=(0.2, 0, 0))
    b.joint("d", "continuous", parent="ground", child="rocker", xyz=(0.6, 0, 0))
    b.frame("one", "coupler", xyz=(0.6, 0, 0))
    b.frame("other", "rocker", xyz=(0.5, 0, 0))
    return b.build().close_loops(lw.Loop("one", "other", (0, 0, 0, 1, 1, 0)))


@pytest.mark.parametrize("off", [0.0, 0.05])
def test_projections_have_derivatives(off: float, complex_step: Step) -> None:
    """Also where loops are far from closed, several steps away."""
    robot = four_bar()
    q, qd = robot.project([0.5, 0.6, 1.8], [2.0, 0.0, 0.0])
    plan = Plan(robot._calls.tasks, Asked(Key("project")))
    values = {"q": q + off * np.array([1.0, -2.0, 1.0]), "qd": qd + 0.1}
    expected = complex_step(plan, values)
    (value, (by_q, by_qd)), bits = robot.derivative("project", value=True)(
        values["q"], values["qd"], status=True
    )
    assert not bits
    close(np.concatenate([by_q, by_qd], 1), expected, 1e3 * EPS)
    close(value, np.concatenate(robot.project(values["q"], values["qd"])), 8 * EPS)
    w = np.arange(1.0, 7.0)
    _, gradients = robot.vjp("project", (values["q"], values["qd"]), w)
    close(np.concatenate(gradients), w @ expected, 1e3 * EPS)
    _, change = robot.jvp("project", (values["q"], values["qd"]), (qd, None))
    close(change, by_q @ qd, 1e3 * EPS)


def test_a_projection_of_a_closed_state_projects_rates() -> None:
    robot = four_bar()
    q, qd = robot.project([0.5, 0.6, 1.8], [2.0, 0.0, 0.0])
    by_q, by_qd = robot.derivative("project")(q, qd)
    P = by_q[:3]
    close(P @ P, P, 1e3 * EPS)
    close(by_qd[3:], P, 1e3 * EPS)
    close(P @ qd, qd, 1e3 * EPS)


def test_a_projection_that_fails_has_no_derivative() -> None:
    robot = lw.load("puma560")
    far = np.eye(4)
    far[0, 3] = 10.0
    robot = robot.close_loops(lw.Loop("link6", directions=(0, 0, 0, 1, 1, 1), pose=far))
    by_q, bits = robot.derivative("project", "q")(np.full(6, 0.3), np.zeros(6), status=True)
    assert np.isnan(by_q).all() and lw.Status(int(bits)) & lw.Status.NOT_CONVERGED


# -- conjugate gradients --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ccg", "pcg"])
def test_conjugate_gradients_have_the_derivatives_of_what_they_solve(method: str) -> None:
    robot, rng = lw.load("puma560"), np.random.default_rng(1)
    q, qd, tau, v, w = rng.uniform(-1, 1, (5, 3, 6))
    pull = {"link6": rng.normal(size=6)}
    options: Any = {"f_ext": pull, "method": method}
    J, by = (
        robot.derivative("forward_dynamics", ("q", "qd", "tau", "f_ext"), f_ext=["link6"], **x)(
            q, qd, tau, f_ext=pull
        )
        for x in ({"method": method}, {})
    )
    for found, expected in zip(J, by, strict=True):
        close(found, expected, 1e-9)
    given = {"q": v, "tau": w}
    value, change = robot.jvp("forward_dynamics", (q, qd, tau), given, **options)
    close(value, robot.forward_dynamics(q, qd, tau, f_ext=pull), 1e-8)
    along = np.einsum("nij,nj->ni", by[0], v) + np.einsum("nij,nj->ni", by[2], w)
    close(change, along, 1e-8)
    (_, gradients), bits = robot.vjp("forward_dynamics", (q, qd, tau), w, status=True, **options)
    assert bits.shape == (3,) and not bits.any()
    for found, part in zip(gradients, by, strict=False):
        close(found, np.einsum("ni,nij->nj", w, part), 1e-8)
    _, (found, _) = robot.hvp("forward_dynamics", (q, qd, tau), w, {"q": v, "qd": w}, **options)
    _, (same, _) = robot.hvp("forward_dynamics", (q, qd, tau), w, {"q": v, "qd": w}, f_ext=pull)
    close(found, same, 1e-7)


def test_an_iteration_is_not_differentiated_step_by_step() -> None:
    with pytest.raises(ValueError, match="mode is 'forward'; expected 'auto', as steps of 'pcg'"):
        lw.load("puma560").derivative("forward_dynamics", method="pcg", mode="forward")


# -- inverse kinematics ---------------------------------------------------------------------------

TOOL = "link7"


def reachable(rng: Any, robot: lw.Robot) -> tuple[np.ndarray, np.ndarray]:
    q = rng.uniform(0.4, 1.2, (3, robot.nq))
    return q, robot.forward_kinematics(q, robot.frame_names[-1])


@pytest.mark.parametrize(
    "directions", ["pose", "position", "orientation", [True, True, False, True, True, True]]
)
def test_a_solution_follows_its_target(directions: Any) -> None:
    """J dq is the motion of the target in the directions that count, and dq the smallest."""
    robot, rng = lw.load("iiwa14"), np.random.default_rng(2)
    frame, search = robot.frame_names[-1], {"directions": directions, "tol": 1e-11}
    start, target = reachable(rng, robot)
    by = robot.derivative("inverse_kinematics", "target", frame=frame, search=search, value=True)
    q, D = by(target, start)
    masks = {"pose": [1] * 6, "position": [0] * 3 + [1] * 3, "orientation": [1] * 3 + [0] * 3}
    mask = np.array(masks.get(directions, directions) if isinstance(directions, str)
                    else directions, bool)  # fmt: skip
    for k in range(3):
        R = target[k, :3, :3].T
        rows = np.block([[R, np.zeros((3, 3))], [np.zeros((3, 3)), R]])[mask]
        J = rows @ robot.jacobian(q[k], frame)
        close(D[k], np.linalg.pinv(J) @ rows, 1e-8)
    v, w = rng.normal(size=(3, 6)), rng.normal(size=(3, 7))
    options: Any = {"frame": frame, "search": search}
    same, change = robot.jvp("inverse_kinematics", (target, start), (v,), **options)
    close(same, q, 1e-14)
    close(change, np.einsum("nij,nj->ni", D, v), 1e-12)
    inputs = {"target": target, "q0": start}
    _, (gradient,) = robot.vjp("inverse_kinematics", inputs, w, **options)
    close(gradient, np.einsum("nij,ni->nj", D, w), 1e-12)


def test_a_search_from_the_solution_moves_so() -> None:
    """Differences of searches that start at the solution, for an arm with a joint too many."""
    robot, rng = lw.load("iiwa14"), np.random.default_rng(2)
    frame = robot.frame_names[-1]
    start, target = reachable(rng, robot)
    q, D = robot.derivative(
        "inverse_kinematics", "target", frame=frame, value=True, search={"tol": 1e-12}
    )(target, start)
    v, h = rng.normal(size=(3, 6)), 1e-6
    found = []
    for step in (h, -h):
        turned = exp(np.concatenate([step * v[:, :3], np.zeros((3, 3))], 1))
        moved = target.copy()
        moved[:, :3, :3] = turned[:, :3, :3] @ target[:, :3, :3]
        moved[:, :3, 3] += step * v[:, 3:]
        found.append(robot.inverse_kinematics(moved, frame, q, tol=1e-12))
    close((found[0] - found[1]) / (2 * h), np.einsum("nij,nj->ni", D, v), 1e-4)


def test_a_joint_at_its_limit_stays_there() -> None:
    robot, q = lw.load("iiwa14"), np.full(7, 0.7)
    plan = robot.derivative("inverse_kinematics", frame=TOOL)._plan
    assert plan.reach is not None
    search = replace(plan.reach.search, limits={2: (2, None, 0.7), 5: (5, 0.7, 2), 1: (1, 0, 2)})
    target = robot.forward_kinematics(q, TOOL).ravel().tolist()
    goal = goal_of(plan.reach.frames[0], target)
    one = replace(search, limits={2: search.limits[2], 1: search.limits[1]})
    rates = np.array(follower(plan.tree, one, goal, q.tolist()).along([1, 2, 3, 4, 5, 6]), float)
    assert rates[2] == 0.0 and rates[1] != 0.0
    close(robot.jacobian(q, TOOL) @ rates, np.arange(1.0, 7.0), 1e-10)
    places = replace(search, directions=(False,) * 3 + (True,) * 3)
    both = np.array(follower(plan.tree, places, goal, q.tolist()).along([0] * 3 + [1] * 3), float)
    assert both[2] == both[5] == 0.0
    close((robot.jacobian(q, TOOL) @ both)[3:], np.ones(3), 1e-10)


def test_what_is_not_solved_has_no_derivative() -> None:
    robot = lw.load("iiwa14")
    target = np.stack([robot.forward_kinematics(np.full(7, 0.6), TOOL)] * 3)
    target[1, 0, 3] = 50.0
    target[2, 0, 0] = 3.0
    by = robot.derivative("inverse_kinematics", frame=TOOL, search={"restarts": 2})
    (D,), bits = by(target, status=True)
    assert np.isfinite(D[0]).all() and np.isnan(D[1:]).all()
    assert [lw.Status(x) for x in bits] == [0, lw.Status.NOT_CONVERGED, lw.Status.NOT_RIGID]
    with pytest.warns(lw.ConvergenceWarning, match=r"1 of 2 rows have no solution"):
        (alone,) = by(target[:2])
    assert (alone[0] == D[0]).all() and np.isnan(alone[1]).all()
    with pytest.raises(ValueError, match=r"target\[2\] is no rigid motion"):
        by(target)
    (one,), bit = by(target[1], status=True)
    assert one.shape == (7, 6) and np.isnan(one).all() and bit == lw.Status.NOT_CONVERGED


def test_a_stretched_arm_is_singular() -> None:
    robot = lw.load("iiwa14")
    q = np.zeros(7)
    target = robot.forward_kinematics(q, TOOL)
    by = robot.derivative("inverse_kinematics", "target", frame=TOOL)
    _, bits = by(target, q, status=True)
    assert lw.Status(int(bits)) & lw.Status.SINGULAR


def test_searches_are_kept_and_pickled() -> None:
    robot = lw.load("puma560")
    by = robot.derivative("inverse_kinematics", "target", frame="link6", search={"tol": 1e-9})
    target = robot.forward_kinematics(np.full(6, 0.4), "link6")
    q = robot.inverse_kinematics(target, "link6", tol=1e-9)
    close(by(target), np.linalg.inv(robot.jacobian(q, "link6")), 1e-7)
    assert (pickle.loads(pickle.dumps(by))(target) == by(target)).all()
    assert by(target.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frame": "link3"}, "has 6 directions, and 3 degrees of freedom move it"),
        ({"wrt": "q0", "frame": "link6"}, "a solution jumps from one to another with it"),
        ({"frame": "link6", "order": 2}, "has first derivatives only"),
        ({"frame": "link6", "search": {"steps": 3}}, "search has 'steps'; expected some of 'dire"),
        ({"frame": "link6", "search": {"directions": "up"}}, "directions is 'up'; expected"),
        ({}, "frame is None, expected a name"),
    ],
)
def test_mistakes_of_searches_are_named(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lw.load("puma560").derivative("inverse_kinematics", **options)


def test_more_mistakes_of_searches() -> None:
    robot = lw.load("puma560")
    with pytest.raises(TypeError, match="search is a str; expected a mapping of options"):
        robot.derivative("inverse_kinematics", frame="link6", search="position")
    with pytest.raises(ValueError, match="search is given; expected none, as bias is no inverse"):
        robot.derivative("bias", search={"tol": 1e-9})
    with pytest.raises(ValueError, match="is differentiated for robots without closed loops"):
        four_bar().derivative("inverse_kinematics", frame="one")
    by = robot.derivative("inverse_kinematics", frame="link6")
    with pytest.raises(TypeError, match=r"was given 3 array\(s\); expected target, and q0"):
        by(np.eye(4), np.zeros(6), np.zeros(6))
    with pytest.raises(TypeError, match="takes neither f_ext nor damping"):
        by(np.eye(4), f_ext={})
