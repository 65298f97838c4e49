"""Mistakes that users of laws of a frame's motion make, and what they are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import OperationalSpace, PerStep, impedance

ARM = lw.load("iiwa14")
Q, QD, POSE = 0.3 + ARM.neutral(), np.zeros(7), np.eye(4)
NAN = float("nan")


def osc(**changes: Any) -> Any:
    return OperationalSpace(ARM, **({"frame": "link7"} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frame": "hand"}, r"frame 'hand': robot 'iiwa14' has no such frame; it has 'base'"),
        ({"frame": "base"}, r"frame 'base' is fixed to the base, and no joint moves it; expected"),
        ({"frame": 3}, r"frame 3: robot 'iiwa14' has no such frame"),
        ({"rows": "places"}, r"rows is 'places'; expected 'pose', 'position', 'orientation', six"),
        ({"rows": [1, 1, 1, 0, 0, 2]}, r"rows is \[1, .*expected .* six booleans or zeros and on"),
        ({"rows": [False] * 6}, r"six booleans .* of which some are True"),
        ({"rows": [0] * 6}, r"six booleans .* of which some are True"),
        ({"rows": [[1.0, 2.0]]}, r"rows is \[\[1.0, 2.0\]\]; expected .* a finite matrix \(k, 6\)"),
        ({"rows": np.full((2, 6), NAN)}, r"a finite matrix \(k, 6\) of at most six rows"),
        ({"rows": np.eye(6)[[0, 0]]}, r"rows are 2 directions of which some follow from others"),
        ({"force_rows": np.eye(6)[[5]]}, r"rows and force_rows together are 7 directions of which"),
        ({"gains": 100.0}, r"gains is 100.0; expected a pair \(kp, kd\)"),
        ({"gains": (100.0, -1.0)}, r"kd is -1.0; expected a number that is not negative"),
        ({"gains": (np.ones(5), 1.0)}, r"kp has shape \(5,\); expected \(..., 6\)"),
        ({"damping": 0.0}, r"damping is 0.0; expected a positive number, or six of them"),
        ({"damping": -1.0}, r"damping is -1.0; expected a positive number"),
        ({"damping": [NAN] * 6}, r"damping is \[nan.*expected a positive number"),
        ({"gains": (np.ones((4, 6)), np.ones((3, 6)))}, r"axes do not broadcast: kp \(4, 6\)"),
        ({"passive": None}, r"passive is None; expected a sequence of joint names"),
        ({"axes": "tool"}, r"axes is 'tool'; expected 'base' or 'body'"),
        ({"posture": np.zeros(3)}, r"posture has shape \(3,\); expected \(..., 7\)"),
        ({"passive": "elbow"}, r"passive is 'elbow'; expected a sequence of joint names"),
        ({"passive": ["elbow"]}, r"joint 'elbow': robot 'iiwa14' has no such joint; it has"),
        ({"passive": ARM.joint_names[:2]}, r"6 rows of frame 'link7' are to follow, and 5 degree"),
        ({"frame": "link3"}, r"and 3 degree\(s\) of freedom with a motor move it; expected rows="),
    ],
)  # fmt: skip
def test_mistakes_in_a_law_are_named(changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        osc(**changes)
    assert "frame" in str(caught.value) or str(caught.value).startswith(("Oper", "joint"))


def test_wrong_types_are_named() -> None:
    with pytest.raises(TypeError, match=r"OperationalSpace: robot is a str; expected a Robot"):
        OperationalSpace("iiwa14", "link7")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"posture is a str; expected a law of linkwise.control, a"):
        osc(posture="upright")
    with pytest.raises(TypeError, match=r"kp is 'stiff'; expected a number or an array \(..., 6\)"):
        osc(gains=("stiff", 1.0))
    other = lw.control.pd(lw.load("puma560"), 1.0, 1.0)
    with pytest.raises(ValueError, match=r"posture is a law for robot 'puma560', which differs"):
        osc(posture=other)


def test_more_rows_than_joints_are_taken_with_damping() -> None:
    """As the message says: the nearest that can be done."""
    q, qd = Q, QD
    law = osc(frame="link3", damping=1e-3)
    tau, bits = law(q, qd, ARM.forward_kinematics(q, "link3"), status=True)
    assert np.isfinite(tau).all() and bits == 0


def test_robots_that_cannot_are_named() -> None:
    held = ARM.close_loops([lw.Loop("link7", directions=[0, 0, 0, 0, 0, 1])])
    with pytest.raises(ValueError, match=r"method 'recursive', frame 'link7': the robot has closed "
                       r"loops, such as .*; expected one of 'crba'"):  # fmt: skip
        OperationalSpace(held, "link7", method="recursive")
    b = lw.Builder("bare").link("l").joint("j", "revolute", parent="base", child="l")
    with pytest.raises(ValueError, match=r"OperationalSpace: no joint moves any inertia"):
        OperationalSpace(b.build(), "l", rows=np.eye(6)[[2]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((Q[:3], QD, POSE), r"OperationalSpace: q has shape \(3,\); expected \(..., 7\)"),
        ((Q, QD[:2], POSE), r"OperationalSpace: qd has shape \(2,\); expected \(..., 7\)"),
        ((Q, QD, POSE[:3]), r"target has shape \(3, 4\); expected \(..., 4, 4\)"),
        ((Q, QD, np.zeros(3)), r"target has shape \(3,\); expected \(..., 4, 4\)$"),
        ((Q, QD, POSE, np.zeros(3)), r"target_velocity has shape \(3,\); expected \(..., 6\)"),
        ((Q, QD, POSE, None, np.zeros(3)), r"target_acceleration has shape \(3,\); expected"),
        (
            (np.zeros((2, 7)), np.zeros((3, 7)), POSE),
            r"leading axes do not broadcast: q \(2,\), qd",
        ),
        ((np.zeros((2, 7)), QD, np.zeros((3, 4, 4))), r"broadcast: q \(2,\), target \(3,\); exp"),
    ],
)
def test_mistakes_in_a_call_are_named(given: Any, message: str) -> None:
    law = osc()
    with pytest.raises(ValueError, match=message):
        law(*given)
    law(Q, QD, ARM.forward_kinematics(Q, "link7"))  # once compiled, too
    with pytest.raises(ValueError, match=message):
        law(*given)


def test_other_mistakes_in_a_call() -> None:
    law = osc()
    with pytest.raises(TypeError, match=r"force is given, and this law has no use for one; expec"):
        law(Q, QD, POSE, force=np.zeros(6))
    with pytest.raises(TypeError, match=r"q has dtype complex128; expected float32, float64 or"):
        law(Q + 0j, QD, POSE)
    with pytest.raises(TypeError, match=r"q is 0.0; expected .* simulate, the law with its target"):
        lw.simulate(ARM, Q, controller=law, duration=0.01)
    with pytest.raises(TypeError, match=r"target cannot be read as an array"):
        law(Q, QD, [[1.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match=r"out has shape \(3,\); expected \(7,\)"):
        law(Q, QD, POSE, out=np.zeros(3))
    with pytest.raises(ValueError, match=r"threads is 0; expected a positive integer or None"):
        law(Q, QD, POSE, threads=0)
    press = osc(rows=np.eye(6)[:5], force_rows=np.eye(6)[5:])
    with pytest.raises(TypeError, match=r"force is None; expected the wrench \(..., 6\) of force_"):
        press(Q, QD, POSE)
    with pytest.raises(ValueError, match=r"force has shape \(3,\); expected \(..., 6\)"):
        press(Q, QD, POSE, force=np.zeros(3))


def test_mistakes_in_targets_of_a_law() -> None:
    law = osc()
    with pytest.raises(ValueError, match=r"target has shape \(4, 4\); expected \(..., steps, 4"):
        law.law(PerStep(POSE))
    with pytest.raises(ValueError, match=r"target_velocity has shape \(3,\); expected \(..., 6\)"):
        law.law(POSE, np.zeros(3))
    with pytest.raises(TypeError, match=r"force is given, and this law has no use for one"):
        law.law(POSE, force=np.zeros(6))
    with pytest.raises(ValueError, match=r"has numbers for 5 steps; expected at least 10"):
        path = PerStep(np.repeat(POSE[None], 5, 0))
        lw.simulate(ARM, Q, controller=law.law(path), duration=0.01, dt=1e-3)
    moving = lw.control.pd(ARM, 1.0, 1.0, PerStep(np.zeros((9, 7))))
    with pytest.raises(ValueError, match=r"gains or posture have numbers for each step"):
        osc(posture=PerStep(np.zeros((9, 7))))(Q, QD, POSE)
    with pytest.raises(ValueError, match=r"gains or posture have numbers for each step; expe"):
        osc(posture=moving)(Q, QD, POSE)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((-1.0, 1.0), {}, r"impedance: stiffness is -1.0; expected a number that is not negative"),
        ((1.0, np.ones(3)), {}, r"impedance: damping has shape \(3,\); expected \(..., 6\)"),
        ((1.0, 1.0), {"inertia": 0.0}, r"inertia is 0.0; expected a positive number, six of them"),
        ((1.0, 1.0), {"inertia": np.ones((6, 6))}, r"a symmetric positive definite matrix"),
        ((1.0, 1.0), {"inertia": "heavy"}, r"inertia is 'heavy'; expected a positive number"),
        ((1.0, 1.0), {"singular_damping": -1}, r"singular_damping is -1; expected a positive"),
    ],
)
def test_mistakes_in_an_impedance_are_named(given: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        impedance(ARM, "link7", *given, **options)
    with pytest.raises(TypeError, match=r"impedance: force is given.*a law made with inertia="):
        impedance(ARM, "link7", 1.0, 1.0)(Q, QD, POSE, force=np.zeros(6))
