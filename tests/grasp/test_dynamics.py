"""Forward dynamics of grasps against dense equations, and against single arms with a payload."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import linkwise as lw
from linkwise.backends.reference import interpret
from linkwise.engine.tasks import Key
from linkwise.model import forest
from linkwise.trace.tracer import trace

METHODS = ("ltl", "pv", "recursive")
STATES = 2
# arms by their numbers of joints, and what their contacts are
GRASPS: dict[str, tuple[list[int], list[str]]] = {
    "rigid": ([6, 7], ["rigid", "rigid"]),
    "point": ([6, 7], ["point", "point"]),
    "three points": ([7, 7, 7], ["point", "point", "point"]),
    "soft": ([7, 7], ["soft", "soft"]),
    "frictionless": ([7, 6], ["frictionless", "frictionless"]),
    "mixed": ([7, 7, 7], ["point", "soft", "rigid"]),
    "three rigid": ([7, 7, 7], ["rigid", "rigid", "rigid"]),
    "alone": ([6], ["rigid"]),
    "one point": ([7], ["point"]),
    "few joints": ([4, 7], ["rigid", "rigid"]),
    "few joints, points": ([2, 3, 7], ["point", "point", "point"]),
    "rows": ([3, 7], ["rows", "frictionless"]),
}
SINGULAR = ("few joints", "few joints, points")  # for robots by themselves


def compare(found: Any, answer: Any, arms: int) -> float:
    """The largest error, relative to the largest numbers of each part, over the condition."""
    qdd, acceleration, forces = found
    pairs = [(qdd[:arms], answer.qdd), (acceleration, answer.acceleration)]
    pairs.append((forces, answer.forces))
    errors = [np.abs(a - b).max() / (1.0 + np.abs(b).max()) for a, b in pairs]
    return float(max(errors) / answer.condition)


def parts(grasp: lw.Grasp, row: np.ndarray) -> Any:
    return row[: grasp.nv], row[grasp.nv : grasp.nv + 6], row[grasp.nv + 6 :].reshape(-1, 6)


def worst(grasp: lw.Grasp, state: Any, dense: Any, evaluate: Any, method: str) -> float:
    """Of all states, as equations by NumPy."""
    rows = evaluate(grasp, "motion", *state, method=method)
    arms = sum(robot.nv for robot in grasp.arms)
    return max(
        compare(parts(grasp, row), dense(grasp, *one).solve(), arms)
        for row, *one in zip(rows, *state, strict=True)
    )


BY_TURNS = [
    pytest.param(name, method, marks=() if (i + k) % 3 == 0 else pytest.mark.full)
    for i, name in enumerate(GRASPS)
    for k, method in enumerate(METHODS)
    if not (method == "recursive" and name in SINGULAR)
]


@pytest.mark.parametrize(("name", "method"), BY_TURNS)
def test_against_dense_equations(
    name: str, method: str, random_grasp: Any, moving: Any, dense: Any, evaluate: Any
) -> None:
    rng = np.random.default_rng(list(GRASPS).index(name))
    grasp = random_grasp(rng, *GRASPS[name])
    state = moving(grasp, rng, STATES)
    assert worst(grasp, state, dense, evaluate, method) <= 1e-13


@pytest.mark.parametrize(
    "name",
    [
        "rigid",
        "point",
        *(pytest.param(x, marks=pytest.mark.full) for x in ("mixed", "alone", "few joints")),
    ],
)
def test_wrenches_from_outside(
    name: str, random_grasp: Any, moving: Any, dense: Any, evaluate: Any
) -> None:
    """On a link of each arm, on the frame of a contact, and on the object, which are three bodies
    though a rigid contact makes one of the last two.
    """
    rng = np.random.default_rng(50 + list(GRASPS).index(name))
    grasp = random_grasp(rng, *GRASPS[name])
    q, qd, tau = moving(grasp, rng, 1)
    tips = [(c.arm, c.frame) for c in grasp.contacts]
    inner = [(k, arm.tree.links[arm.tree.n_links // 2].name) for k, arm in enumerate(grasp.arms)]
    pushes = {at: rng.uniform(-9, 9, 6) for at in (*tips, *inner, None)}
    named = {
        "object" if at is None else forest.name_of(grasp.tree, *at): wrench[None]
        for at, wrench in pushes.items()
    }
    answer = dense(grasp, q[0], qd[0], tau[0], tuple(pushes.items())).solve()
    for method in METHODS[: 2 if name in SINGULAR else 3]:
        row = evaluate(grasp, "motion", q, qd, tau, method=method, f_ext=named)[0]
        found = parts(grasp, row)
        assert compare(found, answer, sum(arm.nv for arm in grasp.arms)) <= 1e-13, method
        without = evaluate(grasp, "motion", q, qd, tau, method=method)[0]
        assert np.abs(row - without).max() > 0.1
    weights = np.ones((1, grasp.nv))
    back = evaluate(grasp, "weighted_inverse_dynamics", q, qd, found[0][None], weights, f_ext=named)
    again = evaluate(grasp, "motion", q, qd, back, f_ext=named)[0]
    assert np.allclose(again[: grasp.nv + 6], row[: grasp.nv + 6], rtol=1e-6, atol=1e-6)
    equal = evaluate(grasp, "inverse_dynamics", q, qd, found[0][None], f_ext=named)
    assert np.allclose(equal, back, rtol=1e-9, atol=1e-9)


class Tally(NamedTuple):
    """Of states of random grasps."""

    states: int = 0
    redundant: int = 0
    singular: int = 0  # for robots by themselves
    worst: float = 0.0  # error over the condition
    recursive: float = 0.0  # that of the recursive method, where it has an answer

    def __add__(self, o: Any) -> Tally:
        sums = (x + y for x, y in zip(self[:3], o[:3], strict=True))
        return Tally(*sums, *map(max, self[3:], o[3:]))


def a_random_grasp(rng: np.random.Generator, random_grasp: Any) -> lw.Grasp:
    """One to three arms of two to five joints, some of six or seven, contacts of any kinds, on
    fixed bases or, one in five, on floating ones; one in five has few joints and rigid contacts,
    which hold more than they need to.
    """
    arms, few = int(rng.integers(1, 4)), rng.random() < 0.2
    joints = rng.integers(2, 6, arms) if rng.random() < 0.9 else rng.integers(6, 8, arms)
    kinds = rng.choice(["rigid", "point", "soft", "frictionless"], arms).tolist()
    options = {"base": "free"} if rng.random() < 0.2 else {}
    if few:
        return random_grasp(rng, [2] * max(arms, 2), ["rigid"] * max(arms, 2))
    return random_grasp(rng, joints.tolist(), kinds, **options)


def tallied(
    grasp: lw.Grasp, rng: np.random.Generator, moving: Any, dense: Any, evaluate: Any
) -> Tally:
    """A state of a grasp by each method, and its status by the first; at rest where contacts hold
    more than they need to, so that they do not contradict each other.
    """
    state = q, qd, tau = moving(grasp, rng, 1)
    answer = dense(grasp, q[0], qd[0], tau[0]).solve()
    if not answer.determined:
        state = q, qd * 0.0, tau
        answer = dense(grasp, q[0], qd[0] * 0.0, tau[0]).solve()
    arms = sum(robot.nv for robot in grasp.arms)
    task = grasp._calls.tasks.task(Key("motion", "ltl", status=True))
    found = interpret(trace(task, grasp.tree), dict(zip(("q", "qd", "tau"), state, strict=True)))
    expected = 0 if answer.determined else lw.Status.REDUNDANT
    if grasp.tree.is_closed and np.abs(grasp.evaluate("residual", q[0], state[1][0])).max() > 1e-4:
        expected |= lw.Status.LOOP_OPEN  # random poses close no contact
    assert int(found["status"][0]) == expected
    rows = [found["result"][0], evaluate(grasp, "motion", *state, method="pv")[0]]
    able = all(
        np.linalg.matrix_rank(dense(grasp, *(x[0] for x in state)).at_contacts(k), tol=1e-3) == n
        for k, n in enumerate(held_by_arm(grasp))
    )
    if able:
        rows.append(evaluate(grasp, "motion", *state, method="recursive")[0])
    worst = [compare(parts(grasp, row), answer, arms) for row in rows[:2]]
    apart = [compare(parts(grasp, row), answer, arms) for row in rows[2:]]
    return Tally(1, int(not answer.determined), int(not able), max(worst), max(apart, default=0.0))


def held_by_arm(grasp: lw.Grasp) -> list[int]:
    """How many directions the contacts of each arm hold."""
    ranks = [closure.rank for closure in grasp.held.contacts]
    arms = [c.arm for c in grasp.contacts]
    return [sum(r for r, at in zip(ranks, arms, strict=True) if at == k)
            for k in range(len(grasp.arms))]  # fmt: skip


@pytest.mark.parametrize(
    "part", [pytest.param(k, marks=pytest.mark.full if k else ()) for k in range(21)]
)
def test_a_thousand_random_grasps(
    part: int, random_grasp: Any, moving: Any, dense: Any, evaluate: Any
) -> None:
    """Fifty at a time in full runs. The object's balance asks robots for the inverse of what they
    yield at their contacts, whose condition is not in the bound.
    """
    rng, total = np.random.default_rng(1000 + part), Tally()
    for _ in range(50 if part else 2):
        total = total + tallied(a_random_grasp(rng, random_grasp), rng, moving, dense, evaluate)
    print(total)
    assert total.worst <= 1e-11 and total.recursive <= 1e-8


def test_one_arm_is_the_chain_with_the_object_in_its_last_link(evaluate: Any) -> None:
    arm, rng = lw.load("iiwa14"), np.random.default_rng(5)
    body = lw.RigidBody(2.0, (0.1, 0.0, 0.3), (0.06, 0.05, 0.02))
    grasp = lw.Grasp([arm], body, ["link7"])
    serial = arm.with_payload("link7", 2.0, (0.1, 0.0, 0.3), (0.06, 0.05, 0.02))
    q, qd, tau = arm.random_q(rng, size=6), *rng.uniform(-2, 2, (2, 6, 7))
    expected = evaluate(serial, "forward_dynamics", q, qd, tau, method="aba")
    J, M = evaluate(arm, "jacobian", q, frame="link7"), evaluate(arm, "mass_matrix", q)
    condition = {"recursive": np.linalg.cond(J @ np.linalg.solve(M, J.mT)).max()}
    for method in METHODS:
        found = evaluate(grasp, "motion", q, qd, tau, method=method)
        error = np.abs(found[:, :7] - expected).max() / np.abs(expected).max()
        assert error <= 5e-15 * condition.get(method, 1.0), method
