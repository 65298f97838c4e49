"""The smallest contact forces: of all contacts, whatever their order, and their derivatives."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import linkwise as lw

BODY = lw.RigidBody(2.0, (0.05, 0.1, 0.2), (0.06, 0.05, 0.02))


def turned(x: float, y: float, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, x], [s, c, 0, y], [0, 0, 1, 0.1 * x], [0, 0, 0, 1.0]])


def arm_of(axes: list[tuple[float, float, float]]) -> lw.Robot:
    b = lw.Builder("arm")
    for i, axis in enumerate(axes):
        b = b.link(f"l{i}", mass=1.0 + 0.1 * i, com=(0.1, 0.02, 0.0), inertia=(0.01, 0.02, 0.02))
        b = b.joint(f"j{i}", "revolute", parent=f"l{i - 1}" if i else "base", child=f"l{i}",
                    axis=axis, xyz=(0.3 if i else 0.0, 0.0, 0.0))  # fmt: skip
    return b.frame("tip", f"l{len(axes) - 1}", xyz=(0.2, 0.1, 0.0)).build()


X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
KINDS = [("rigid", "rigid", "rigid"), ("rigid", "point", "rigid"), ("soft", "soft", "soft")]


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_forces_do_not_depend_on_the_order_of_contacts(
    kinds: tuple[str, ...], evaluate: Any, dense: Any
) -> None:
    """Arms of one or two joints, whose forces no motion determines, at a state that closes all
    contacts; against dense equations of arms and object, every order of contacts.
    """
    arms = [arm_of([Z]), arm_of([Z, X]), arm_of([Y, Z])]
    bases = [turned(0, 0, 0.2), turned(0.9, 0.1, 2.0), turned(0.2, 0.8, -1.0)]
    rng = np.random.default_rng(1)
    q, tau = rng.uniform(-1, 1, 5), rng.uniform(-5, 5, 5)
    place = turned(0.4, 0.3, 0.5)
    hands = [base @ arm.forward_kinematics(x, "tip") for base, arm, x in
             zip(bases, arms, np.split(q, [1, 3]), strict=True)]  # fmt: skip
    contacts = [
        lw.Contact(i, "tip", kind, pose_in_object=np.linalg.inv(place) @ hand)
        for i, (kind, hand) in enumerate(zip(kinds, hands, strict=True))
    ]
    turn = np.arctan2(place[1, 0], place[0, 0]) / 2
    seat = np.array([np.cos(turn), 0, 0, np.sin(turn), *place[:3, 3]])
    for length, orders in ((None, 6), (0.05, 2)):
        found = []
        for order in list(permutations(range(3)))[-orders:]:
            grasp = lw.Grasp(arms, BODY, [contacts[i] for i in order], bases, length=length)
            state = q, 0.0 * q, tau
            if grasp.object_is_state:
                state = (*grasp.state(q, 0.0 * q, seat, np.zeros(6)), grasp.torques(tau))
            answer = dense(grasp, *state).solve()
            assert not answer.determined
            for method in ("ltl", "pv"):
                rows = [x[None] for x in state]
                forces = evaluate(grasp, "contact_forces", *rows, method=method)[0]
                np.testing.assert_allclose(forces, answer.forces, rtol=1e-9, atol=1e-9)
            own = answer.forces[np.argsort(order)]
            found.append(own)
        np.testing.assert_allclose(found, np.broadcast_to(found[0], (orders, 3, 6)), atol=1e-9)
        assert np.abs(found[0]).max() > 1.0


def planar() -> lw.Grasp:
    """Two arms in one plane with rigid contacts: three directions out of it always depend on
    others, so that forces there are the smallest at every configuration.
    """
    arms = [arm_of([Z, Z, Z])] * 2
    bases = [turned(0, 0, 0.0), turned(0.0, 0.7, 0.3)]
    return lw.Grasp(arms, BODY, ["tip", "tip"], bases, gravity=(1.0, -3.0, -9.0))


def test_derivatives_of_the_smallest_forces() -> None:
    grasp, rng = planar(), np.random.default_rng(2)
    q, qd, tau, v = rng.uniform(-1, 1, (4, 6))
    push, rate = rng.uniform(-1, 1, (2, 6))
    f_ext, h = {"object": push}, 1e-6
    names = ("q", "qd", "tau")
    forces, change = grasp.jvp(
        "contact_forces", (q, qd, tau), dict.fromkeys(names, v) | {"f_ext": {"object": rate}},
        f_ext=f_ext,
    )  # fmt: skip
    _, status = grasp.contact_forces(q, qd, tau, f_ext=f_ext, status=True)
    assert status == lw.Status.REDUNDANT
    moved = [
        grasp.contact_forces(*(x + s * v for x in (q, qd, tau)), f_ext={"object": push + s * rate})
        for s in (-h, h)
    ]
    expected = (moved[1] - moved[0]) / (2 * h)
    np.testing.assert_allclose(change, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    w = rng.normal(size=(2, 6))
    value, gradients = grasp.vjp("contact_forces", (q, qd, tau), w, wrt=names, f_ext=f_ext)
    np.testing.assert_allclose(value, forces, rtol=1e-9, atol=1e-9)
    _, alone = grasp.jvp("contact_forces", (q, qd, tau), dict.fromkeys(names, v), f_ext=f_ext)
    found = sum(g @ v for g in gradients)
    assert abs(found - (alone * w).sum()) <= 1e-9 * np.abs(alone).max()


def test_all_functions_mean_the_same_by_small() -> None:
    """Contact forces of a motion that are changed by a squeeze have the same least part; loops'
    forces are reactions to them.
    """
    grasp, rng = planar(), np.random.default_rng(3)
    q, qd, tau = rng.uniform(-1, 1, (3, 6))
    forces = grasp.contact_forces(q, qd, tau)
    loops = grasp.constraint_forces(q, qd, tau)
    np.testing.assert_allclose(loops[0], -forces[1], rtol=1e-9, atol=1e-9)


def test_lengths_that_are_no_lengths_are_refused() -> None:
    arm = arm_of([Z])
    for wrong in (0.0, -1.0, float("nan"), "far"):
        with pytest.raises(ValueError, match=r"^Grasp: length is .*; expected"):
            lw.Grasp([arm], BODY, ["tip"], length=wrong)  # type: ignore[arg-type]
