"""Links without mass: allowed between links whose mass their joints move, told elsewhere."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.model.bodies import Policy
from linkwise.model.description import (
    BodyInertia,
    JointDescription,
    LinkDescription,
    Pose,
    RobotDescription,
)

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
BODY = BodyInertia(2.0, (0.1, 0.2, 0.3), (0.3, 0.01, 0.02, 0.4, 0.03, 0.5))


def chain(*joints: tuple[Any, ...], armature: float = 0.0) -> RobotDescription:
    """Joints (kind, axis, place, body) one after another."""
    links, described = [LinkDescription("base")], []
    for i, (kind, axis, place, body) in enumerate(joints):
        links.append(LinkDescription(f"l{i}", body))
        described.append(
            JointDescription(
                f"j{i}", kind, links[-2].name, f"l{i}", Pose(translation=place), axis,
                armature=armature if i == 0 else 0.0,
            )
        )  # fmt: skip
    return RobotDescription("chain", tuple(links), tuple(described), base="base")


SLIDE, HINGE, BALL = "prismatic", "revolute", "spherical"
HERE, THERE = (0.0, 0.0, 0.0), (0.3, 0.1, 0.2)
ALLOWED = {
    "gantry": [(SLIDE, X, HERE, None), (SLIDE, Y, HERE, None), (SLIDE, Z, HERE, BODY)],
    "gimbal": [(HINGE, Z, HERE, None), (HINGE, Y, HERE, None), (HINGE, X, HERE, BODY)],
    "parallel hinges apart": [(HINGE, Z, HERE, None), (HINGE, Z, THERE, BODY)],
    "under a ball": [(HINGE, Z, HERE, None), (SLIDE, X, HERE, None), (BALL, Z, THERE, BODY)],
    "after mass": [(HINGE, Z, HERE, BODY), (HINGE, Z, HERE, None), (SLIDE, X, THERE, BODY)],
}
REFUSED = {
    "tip": ([(HINGE, Z, HERE, BODY), (HINGE, X, HERE, None)], "j1"),
    "same axis": ([(HINGE, Z, HERE, None), (HINGE, Z, HERE, BODY)], "j0"),
    "same direction": ([(SLIDE, X, HERE, None), (SLIDE, X, THERE, BODY)], "j0"),
    "ball on a ball": ([(BALL, Z, HERE, None), (BALL, Z, HERE, BODY)], "j0"),
    "four slides": (
        [*((SLIDE, a, HERE, None) for a in (X, Y, Z)), (SLIDE, (0.6, 0.8, 0.0), HERE, BODY)],
        "j0",
    ),
    "free": ([("free", Z, HERE, None), (HINGE, Z, HERE, BODY)], "j0"),
}


@pytest.mark.filterwarnings("ignore:.*links without mass")
@pytest.mark.parametrize("name", ALLOWED)
def test_it_is_the_limit_of_a_small_mass(name: str) -> None:
    robot = lw.Robot(chain(*ALLOWED[name]))
    speck = BodyInertia(1e-9, HERE, (1e-12, 0.0, 0.0, 1e-12, 0.0, 1e-12))
    near = lw.Robot(
        chain(*((kind, axis, at, body or speck) for kind, axis, at, body in ALLOWED[name]))
    )
    q = robot.random_q(seed=3, size=50)
    M = robot.mass_matrix(q)
    assert np.linalg.eigvalsh(M).min() > 0.0
    np.testing.assert_allclose(M, near.mass_matrix(q), rtol=1e-7, atol=1e-7)
    qd, qdd = np.random.default_rng(4).normal(size=(2, 50, robot.nv))
    tau = robot.inverse_dynamics(q, qd, qdd)
    cond = np.linalg.cond(M).max()
    for method in ("crba", "aba"):
        again = robot.forward_dynamics(q, qd, tau, method=method)
        np.testing.assert_allclose(again, qdd, rtol=1e-12 * cond, atol=1e-12 * cond)


@pytest.mark.parametrize("name", REFUSED)
def test_a_joint_that_moves_no_inertia_is_told_and_refused_at_the_call(name: str) -> None:
    joints, blamed = REFUSED[name]
    with pytest.warns(lw.RobotFileWarning) as told:
        robot = lw.Robot(chain(*joints))
    message = f'joints that move no inertia: "{blamed}"; functions that divide'
    if name == "free":
        message = 'link "l0", the floating base, has no mass or inertia: functions that divide'
        assert 'robot.with_inertia("l0", mass=..., inertia=...), or base="fixed"' in str(
            told[0].message
        )
    assert message in str(told[0].message)
    q, zeros = robot.neutral(), np.zeros(robot.nv)
    assert np.isfinite(robot.inverse_dynamics(q, zeros, zeros)).all()
    for call in (
        lambda: robot.forward_dynamics(q, zeros, zeros),
        lambda: robot.forward_dynamics(q, zeros, zeros, method="aba"),
        lambda: robot.mass_matrix_inverse(q),
        lambda: robot.innovations(q),
    ):
        with pytest.raises(ValueError, match=f"joints '{blamed}' move no inertia to divide by"):
            call()


@pytest.mark.parametrize("name", ["tip", "same axis"])
def test_not_strict_gives_nan_with_a_status(name: str) -> None:
    joints, _ = REFUSED[name]
    with pytest.warns(lw.RobotFileWarning, match="are NaN, with the status SINGULAR"):
        robot = lw.Robot(chain(*joints), Policy(strict=False))
    q = robot.random_q(seed=1, size=5)
    for method in ("crba", "aba"):
        qdd, status = robot.forward_dynamics(q, q, q, method=method, status=True)
        assert np.isnan(qdd).all()
        assert (status == lw.Status.SINGULAR).all()


CENTROIDAL = [name for name in FUNCTIONS if name.startswith(("center", "centroidal", "com_"))]


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize("function", CENTROIDAL)
def test_a_free_body_without_mass_has_no_centre(function: str) -> None:
    """Compiled as interpreted: what is divided by no mass stays NaN when it is multiplied by 0."""
    ghost = lw.Builder("ghost").link("a", mass=0.0, com=(0, 0, 0), inertia=(0.1, 0.2, 0.3))
    robot = ghost.build(base="free", strict=False)
    q, qd = robot.random_q(seed=1), np.arange(1.0, 7.0)
    algorithm = FUNCTIONS[function]["sweep"]
    arguments = [q, qd][: len(algorithm.inputs)]
    expected = np.array(robot.evaluate(function, *arguments), float)
    result, status = robot.compute(function, *arguments, status=True)
    assert np.isnan(expected).any()
    assert np.isnan(result[np.isnan(expected)]).all() and status & lw.Status.SINGULAR


def test_a_robot_without_inertia_is_one_for_kinematics() -> None:
    """Nothing is told when it is loaded: poses are what it is for."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = lw.Robot(chain((HINGE, Z, HERE, None), (HINGE, X, THERE, None)))
    assert robot.jacobian([0.1, 0.2], "l1").shape == (6, 2)
    for name in ("inverse_dynamics", "mass_matrix", "potential_energy", "forward_dynamics"):
        arguments = [[0.1, 0.2]] * len(next(iter(FUNCTIONS[name].values())).inputs)
        with pytest.raises(ValueError, match=f"{name}.*no joint moves any inertia"):
            getattr(robot, name)(*arguments)


def test_links_without_mass_are_told_once() -> None:
    """Three hinges through one point: their axes can come to lie in one plane."""
    with pytest.warns(lw.RobotFileWarning) as told:
        lw.Robot(chain(*ALLOWED["gimbal"]))
    assert [str(w.message) for w in told] == [
        '<robot>: joints of links without mass of their own: "j0"; the mass matrix can '
        "become singular"
    ]


@pytest.mark.parametrize("name", ["gantry", "parallel hinges apart"])
def test_links_without_mass_that_do_no_harm_are_silent(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.Robot(chain(*ALLOWED[name]))


def test_many_names_are_cut_short() -> None:
    branches = [LinkDescription(f"l{i}") for i in range(12)]
    joints = [
        JointDescription(f"j{i}", HINGE, "base", f"l{i}", axis=Z) for i in range(len(branches))
    ]
    heavy = LinkDescription("heavy", BODY), JointDescription("j", HINGE, "base", "heavy", axis=Z)
    links = (LinkDescription("base"), heavy[0], *branches)
    with pytest.warns(lw.RobotFileWarning, match=r'"j8", "j9", \.\.\. \(12 in all\)'):
        lw.Robot(RobotDescription("r", links, (heavy[1], *joints), base="base"))


def test_armature_is_enough() -> None:
    lw.Robot(chain(*REFUSED["same axis"][0], armature=0.1))


@pytest.mark.filterwarnings("ignore:.*inertia and no mass")
def test_inertia_without_mass_is_taken() -> None:
    """Like a rotor: its inertia is added to the diagonal of the mass matrix."""
    odd = BodyInertia(0.0, HERE, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    q, qd, tau = [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]
    robot = lw.Robot(chain((HINGE, Z, HERE, odd), (HINGE, X, HERE, BODY)))
    rotor = lw.Robot(chain((HINGE, Z, HERE, None), (HINGE, X, HERE, BODY), armature=1.0))
    np.testing.assert_allclose(robot.mass_matrix(q), rotor.mass_matrix(q), rtol=1e-15)
    expected = rotor.forward_dynamics(q, qd, tau)
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, tau), expected, rtol=1e-14)


def test_a_point_mass_is_taken_where_its_joint_moves_it() -> None:
    point = BodyInertia(2.0, (0.5, 0.0, 0.3), (0.0,) * 6)
    robot = lw.Robot(chain((HINGE, Z, HERE, point)))
    np.testing.assert_allclose(robot.mass_matrix([0.1]), [[2.0 * 0.5**2]], rtol=1e-15)
