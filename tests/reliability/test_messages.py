"""Messages to users name things by users' names, whatever is passed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import linkwise as lw

# words of Python, NumPy and of our own classes that a message to a user must not have
INTERNAL = re.compile(
    r"has no attribute|not subscriptable|unhashable|'NoneType' object|not iterable|Functions\.|"
    r"Derivatives\.|Differentiation\.|Conversions\.|truth value|^could not convert|<lambda>\.<|"
    r"not supported between|unsupported operand|not callable|index out of range"
)
WRONG = [None, "x", 5, [1, 2], object(), {}, [["a"]], np.zeros(0), np.zeros(3), True,
         10**400]  # fmt: skip
ZERO = np.zeros(6)
BODY = lw.RigidBody(1.0, inertia=(0.1, 0.1, 0.1))


@pytest.fixture(scope="module")
def arm() -> lw.Robot:
    return lw.load("puma560")


def message(call: Any) -> str:
    """The message of a call that is refused as documented; empty where it is not."""
    try:
        call()
    except (ValueError, TypeError, lw.BackendUnavailable) as error:
        assert str(error)
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore::linkwise.errors.IdentificationWarning")
@pytest.mark.parametrize("wrong", WRONG, ids=[type(x).__name__ for x in WRONG])
@pytest.mark.parametrize(
    "call",
    [
        lambda robot, x: robot.bias(x, ZERO),
        lambda robot, x: robot.forward_dynamics(ZERO, ZERO, ZERO, f_ext=x),
        lambda robot, x: robot.forward_dynamics(ZERO, ZERO, ZERO, method=x),
        lambda robot, x: robot.forward_dynamics_derivatives(ZERO, ZERO, ZERO, method=x),
        lambda robot, x: robot.integrate(ZERO, ZERO, x),
        lambda robot, x: robot.bias(ZERO, ZERO, device=x),
        lambda robot, x: lw.simulate(robot, ZERO, duration=x, limits="ignore"),
        lambda robot, x: lw.simulate(robot, ZERO, dt=x, limits="ignore"),
        lambda robot, x: lw.simulate(robot, ZERO, duration=0.01, drift=x, limits="ignore"),
        lambda robot, x: lw.simulate(
            robot, ZERO, duration=1e-3, integrator="RK45", rtol=x, limits="ignore"
        ),
        lambda robot, x: lw.identify(robot, ZERO, ZERO, ZERO, ZERO, friction=x),
        lambda robot, x: lw.identify(robot, ZERO, ZERO, ZERO, ZERO, consistent=x),
        lambda robot, x: lw.Grasp([robot], BODY, [lw.Contact(0, "link6", kind=x)]),
        lambda robot, x: lw.Grasp([robot] * 2, BODY, ["link6", lw.Contact(x, "link6")]),
        lambda robot, x: robot.joint(x),
        lambda robot, x: robot.with_friction(x),
        lambda robot, x: robot.parametric(x),
        lambda robot, x: robot.parametric(payload=x),
        lambda robot, x: robot.with_actuated(x),
        lambda robot, x: robot.close_loops(lw.Loop("link6"), passive=x),
        lambda robot, x: robot.forward_kinematics(ZERO, x),
        lambda robot, x: robot.forward_dynamics_derivatives(ZERO, ZERO, ZERO, f_ext=x),
        lambda robot, x: robot.method_for(x),
        lambda robot, x: robot.operation_count(x),
        lambda robot, x: robot.operation_count("bias", frame=x),
        lambda robot, x: robot.source("gravity_torque", backend=x),
        lambda robot, x: robot.operators(x),
        lambda robot, x: robot.sub_chain(x, "link6"),
        lambda robot, x: robot.derivative("inverse_dynamics", f_ext=x),
        lambda robot, x: robot.vjp("bias", ZERO, (ZERO, ZERO), f_ext=x),
        lambda robot, x: lw.simulate(robot, ZERO, duration=0.01, dt=0.01, controller=x),
        lambda robot, x: lw.identify(robot, x, ZERO, ZERO, ZERO),
        lambda robot, x: lw.identify(robot, *np.zeros((4, 9, 6)), bodies=x),
        lambda robot, x: lw.identify(x, *np.zeros((4, 9, 6))),
        lambda robot, x: lw.base_parameters(x),
        lambda robot, x: lw.excitation(x, ZERO, ZERO, ZERO),
        lambda robot, x: robot.parametric(x),
        lambda robot, x: robot.with_actuated(x),
        lambda robot, x: robot.derivative("bias", x),
        lambda robot, x: robot.close_loops(lw.Coupling("joint1", x)),
    ],
)
def test_no_internals_in_messages(arm: lw.Robot, call: Any, wrong: Any) -> None:
    text = message(lambda: call(arm, wrong))
    assert not INTERNAL.search(text), text


def test_missing_arguments_name_the_class_that_users_know(arm: lw.Robot) -> None:
    for call, name in (
        (lambda: arm.forward_dynamics(ZERO), "forward_dynamics"),  # type: ignore[call-overload]
        (lambda: arm.vjp(), "vjp"),  # type: ignore[call-arg]
        (lambda: arm.to_mujoco_v(), "to_mujoco_v"),  # type: ignore[call-arg]
        (lambda: arm.inverse_dynamics_derivatives(ZERO), "inverse_dynamics_derivatives"),
    ):
        with pytest.raises(TypeError, match=rf"^Robot\.{name}\(\) missing \d required"):
            call()


@pytest.mark.parametrize("function", ["casadi", "sympy"])
def test_no_wrenches_are_none(arm: lw.Robot, function: str) -> None:
    pytest.importorskip(function)
    robot = arm.sub_chain(arm.link_names[-2], arm.link_names[-1])
    made = getattr(robot, function)("gravity_torque", f_ext=None)
    assert str(made) == str(getattr(robot, function)("gravity_torque"))


def test_a_controller_of_other_arguments(arm: lw.Robot) -> None:
    def law(q: Any, qd: Any) -> Any:
        return q

    with pytest.raises(TypeError, match=r"controller is law\(q.*; expected .*controller\(t, q, qd"):
        lw.simulate(arm, ZERO, duration=0.01, dt=0.01, controller=law)  # type: ignore[arg-type]


def test_f_ext_names_frames(arm: lw.Robot) -> None:
    with pytest.raises(TypeError, match=r"f_ext is a int; expected names of frames"):
        arm.derivative("inverse_dynamics", f_ext=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"f_ext has a int; expected names of frames"):
        arm.derivative("inverse_dynamics", f_ext=[1, 2])  # type: ignore[list-item]
    assert arm.derivative("bias", "q", f_ext=None) is not None


def test_too_many_states_are_not_said_to_be_unlike(arm: lw.Robot) -> None:
    """Two axes broadcast, to a shape that NumPy cannot have."""
    q, qd = (np.broadcast_to(0.0, (*shape, 6)) for shape in ((2**40, 1), (1, 2**40)))
    with pytest.raises(ValueError, match=r"^bias: leading axes broadcast to more states than an"):
        arm.bias(q, qd)
    with pytest.raises(ValueError, match=r"^bias: leading axes do not broadcast"):
        arm.bias(q[:3], qd[:, :4].repeat(2, 0))
