"""`lw.Grasp` as users meet it: states, lists, methods, status, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import linkwise as lw

BODY = lw.RigidBody(2.0, (0.0, 0.1, 0.3), (0.06, 0.05, 0.02))


def base(x: float = 0.0, turn: float = 0.0) -> np.ndarray:
    c, s = np.cos(turn), np.sin(turn)
    return np.array([[c, -s, 0, x], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


@pytest.fixture(scope="module")
def short() -> lw.Robot:
    """An arm of three joints, which compiles fast."""
    b = lw.Builder("short")
    for i, axis in enumerate([(0, 0, 1), (0, 1, 0), (0, 1, 0)]):
        b = b.link(f"l{i}", mass=1.0, com=(0.1, 0.0, 0.0), inertia=(0.01, 0.02, 0.02))
        b = b.joint(f"j{i}", "revolute", parent=f"l{i - 1}" if i else "base", child=f"l{i}",
                    axis=axis, xyz=(0.3 if i else 0.0, 0.0, 0.0))  # fmt: skip
    return b.frame("tip", "l2", xyz=(0.3, 0.0, 0.0)).build()


@pytest.fixture(scope="module")
def pinch(short: lw.Robot) -> lw.Grasp:
    """Two short arms with the object between two points: it has a state of its own."""
    contacts = [lw.Contact(i, "tip", "point", normal=(1, 0, 0)) for i in range(2)]
    return lw.Grasp([short, short], BODY, contacts, bases=[base(), base(1.5, np.pi)])


@pytest.fixture(scope="module")
def carry(short: lw.Robot) -> lw.Grasp:
    """The first of two short arms carries the object, the second holds a point of it."""
    contacts = ["tip", lw.Contact(1, "tip", "point")]
    return lw.Grasp(
        arms=[short, short], bases=[base(), base(1.5, np.pi)], object=BODY, contacts=contacts
    )


def state(grasp: lw.Grasp, states: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return grasp.random_q(rng, size=states), *rng.uniform(-1, 1, (2, states, grasp.nv))


def test_it_is_a_robot_of_all_joints(carry: lw.Grasp, pinch: lw.Grasp) -> None:
    assert (carry.nq, carry.nv, carry.object_is_state) == (6, 6, False)
    assert (pinch.nq, pinch.nv, pinch.object_is_state) == (13, 12, True)
    assert carry.joint_names[3] == "arm1/j0" and "arm1/tip" in carry.frame_names
    assert pinch.joint_names[-1] == "object" and "object" in carry.frame_names
    assert abs(carry.mass - 8.0) < 1e-12 and abs(pinch.mass - 8.0) < 1e-12
    assert repr(carry) == "<Grasp 'grasp': 2 arm(s), 2 contact(s), 6 degrees of freedom>"
    assert len(carry.loops) == 1 and len(pinch.loops) == 2
    assert carry.open.mass_matrix(carry.neutral()).shape == (6, 6)
    np.testing.assert_array_equal(
        carry.forward_kinematics(carry.neutral(), "arm0/tip"),
        carry.forward_kinematics(carry.neutral(), "object"),
    )


def test_names_that_do_not_clash_stay(short: lw.Robot) -> None:
    other = short.rename({x: f"left_{x}" for x in (*short.link_names, *short.joint_names, "tip")})
    grasp = lw.Grasp([short, other], BODY, ["tip", "left_tip"])
    assert grasp.joint_names == ("j0", "j1", "j2", "left_j0", "left_j1", "left_j2")


def test_functions_of_a_motion_are_its_parts(carry: lw.Grasp) -> None:
    q, qd, tau = state(carry, 5)
    found = carry.motion(q, qd, tau)
    assert [x.shape for x in found] == [(5, 6), (5, 6), (5, 2, 6)]
    parts = carry.forward_dynamics, carry.object_acceleration, carry.contact_forces
    for part, function in zip(found, parts, strict=True):
        np.testing.assert_allclose(function(q, qd, tau), part, rtol=1e-12, atol=1e-10)
    one = carry.motion(q[3], qd[3], tau[3])
    assert one.qdd.tobytes() == found.qdd[3].tobytes()
    assert one.forces.tobytes() == found.forces[3].tobytes()
    single = carry.contact_forces(*(x.astype(np.float32) for x in (q, qd, tau)))
    assert single.dtype == np.float32
    assert np.abs(single - found.forces).max() <= 1e-3 * np.abs(found.forces).max()
    again, status = carry.motion(q, qd, tau, status=True)
    assert (status == 0).all() and again.qdd.tobytes() == found.qdd.tobytes()
    qdd, status = carry.forward_dynamics(q, qd, tau, status=True)
    assert (status == 0).all() and qdd.shape == (5, 6)
    out = np.empty((5, 2, 6))
    assert carry.contact_forces(q, qd, tau, out=out) is out


def test_states_are_joined_of_arms_and_object(carry: lw.Grasp, pinch: lw.Grasp) -> None:
    q, qd, tau = state(pinch, 4)
    tau[:, -6:] = 0.0
    T = pinch.forward_kinematics(q, "object")
    v = np.einsum("bij,bj->bi", pinch.jacobian(q, "object"), qd)
    arms, rates, torques = (pinch.split(x)[:2] for x in (q, qd, tau))
    for pose in (T, q[:, -7:]):
        for own in ((arms, rates), (q[:, :6], qd[:, :6])):
            joined = pinch.state(*own, pose, v)
            sign = np.sign((joined[0][:, 6:10] * q[:, 6:10]).sum(axis=1, keepdims=True))
            joined[0][:, 6:10] *= sign  # the same turn
            for found, expected in zip(joined, (q, qd), strict=True):
                np.testing.assert_allclose(found, expected, atol=1e-12)
    for given in (torques, tau[:, :6]):
        np.testing.assert_array_equal(pinch.torques(given), tau)
    q, qd, tau = state(carry, 2)
    for found, expected in zip(carry.state(carry.split(q), qd), (q, qd), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(carry.torques(carry.split(tau)), tau)


def test_forces_and_the_objects_acceleration_are_in_balance(pinch: lw.Grasp) -> None:
    """Newton's law of the object, from the outputs alone."""
    q, qd, tau = state(pinch, 3)
    tau[:, -6:] = 0.0
    _, a, f = pinch.motion(q, qd, tau)
    T = pinch.forward_kinematics(q, "object")
    R, w = T[:, :3, :3], np.einsum("bij,bj->bi", pinch.jacobian(q, "object"), qd)[:, :3]
    com = R @ np.array(BODY.com)
    of_com = a[:, 3:] + np.cross(a[:, :3], com) + np.cross(w, np.cross(w, com))
    needed = BODY.mass * (of_com - pinch.gravity)
    np.testing.assert_allclose(f[:, :, 3:].sum(axis=1), needed, rtol=1e-9, atol=1e-9)
    assert np.abs(f[:, :, :3]).max() == 0.0, "points take no moments"


def test_a_hand_for_each_arm_of_one_robot(
    chain: Any, dense: Any, evaluate: Any, moving: Any
) -> None:
    """Contacts of one robot share all of its inertia; on a flying base too."""
    rng = np.random.default_rng(4)
    b = lw.Builder("two arms").link("body", mass=8.0, inertia=(0.5, 0.6, 0.7))
    b = b.joint("free", "free", parent="base", child="body")
    for side in ("left", "right"):
        for i in range(6):
            parent = f"{side}{i - 1}" if i else "body"
            b = b.link(f"{side}{i}", mass=1.0, com=rng.uniform(-0.1, 0.1, 3),
                       inertia=(0.01, 0.02, 0.02))  # fmt: skip
            b = b.joint(f"{side}_joint{i}", "revolute", parent=parent, child=f"{side}{i}",
                        axis=rng.normal(size=3), xyz=rng.uniform(0.1, 0.3, 3))  # fmt: skip
    robot = b.build(gravity=(0.0, 0.0, 0.0))
    contacts = [lw.Contact(0, "left5"), lw.Contact(0, "right5", "rigid")]
    grasp = lw.Grasp([robot], BODY, contacts)
    q, qd, tau = moving(grasp, rng, 2)
    tau[:, :6] = 0.0
    answers = [dense(grasp, *row).solve() for row in zip(q, qd, tau, strict=True)]
    for method in ("ltl", "pv", "recursive"):
        found = evaluate(grasp, "motion", q, qd, tau, method=method)
        for row, answer in zip(found, answers, strict=True):
            size = 1.0 + np.abs(answer.qdd).max()
            assert np.abs(row[:18] - answer.qdd).max() <= 1e-13 * answer.condition * size
            assert np.abs(row[18:24] - answer.acceleration).max() <= 1e-13 * answer.condition * size
        # nothing from outside: the momentum of all of it stays
        A = evaluate(grasp, "centroidal_momentum_matrix", q)
        rate = (A @ found[:, :18, None])[..., 0] + evaluate(grasp, "centroidal_bias", q, qd)
        assert np.abs(rate).max() <= 1e-9 * np.abs(A).max() * np.abs(found[:, :18]).max()


def test_holding_reads_the_places_of_contacts_from_a_state(carry: lw.Grasp) -> None:
    q = carry.random_q(seed=3)
    held = carry.holding(q)
    place = np.asarray(held.contacts[1].pose_in_object)
    expected = np.linalg.inv(carry.forward_kinematics(q, "object")) @ carry.forward_kinematics(
        q, "arm1/tip"
    )
    np.testing.assert_allclose(place, expected, atol=1e-14)
    assert np.abs(held.residual(q).position).max() <= 1e-14
    assert np.abs(held.residual(q + 0.1).position).max() > 1e-3
    near = held.project(q + 1e-3)
    assert np.abs(held.residual(near).position).max() <= 1e-12


def test_holding_changes_no_force(short: lw.Robot) -> None:
    """Normals and directions of a contact without a place are in the object's axes, and stay so."""
    rows = [[0.3, 0.0, 1.0, 0.0, 0.5, 0.2], [0.0, 0.7, 0.0, 1.0, 0.0, -0.4]]
    contacts = [lw.Contact(0, "tip"), lw.Contact(1, "tip", "soft", normal=(0.6, 0.0, 0.8))]
    for second in (contacts[1], lw.Contact(1, "tip", directions=rows)):
        bases = [base(), base(1.5, np.pi)]
        grasp = lw.Grasp([short, short], BODY, [contacts[0], second], bases=bases)
        q, _, tau = (x[0] for x in state(grasp, 1))
        held = grasp.holding(q)
        np.testing.assert_allclose(held.forward_kinematics(q, "arm1/base"), bases[1], atol=1e-15)
        found, expected = (g.motion(q, 0.0 * tau, tau) for g in (held, grasp))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
        for a, b in zip(held.loads(q, found[2]), grasp.loads(q, expected[2]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_contacts_without_a_place_cannot_be_told_to_be_closed(carry: lw.Grasp) -> None:
    q, _, _ = (x[0] for x in state(carry, 1))
    words = (
        r"contact 1 \(arm 1, 'tip'\) has no place on the object; expected its pose_in_object, or"
    )
    calls = {
        "residual": carry.residual,
        "project": carry.project,
        "simulate": lambda q: lw.simulate(carry, q, duration=0.01),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"^{name}: {words}"):
            call(q)


def test_a_state_of_its_own_changes_nothing(short: lw.Robot, evaluate: Any, moving: Any) -> None:
    """The object on an arm's link, or on a joint of its own with one more closed loop."""
    parts: Any = ([short, short], BODY, ["tip", lw.Contact(1, "tip", "point")])
    bases = [base(), base(1.5, np.pi)]
    carried = lw.Grasp(*parts, bases=bases)
    free = lw.Grasp(*parts, bases=bases, object_state=True)
    assert free.object_is_state and len(free.loops) == 2
    q, qd, tau = moving(carried, np.random.default_rng(3), 2)
    T = evaluate(carried, "forward_kinematics", q, frame="object")
    v = np.einsum("bij,bj->bi", evaluate(carried, "jacobian", q, frame="object"), qd)
    whole = (*free.state(q, qd, T, v), free.torques(tau))
    expected = evaluate(carried, "motion", q, qd, tau)
    for method in ("ltl", "pv"):
        found = evaluate(free, "motion", *whole, method=method)
        found = np.delete(found, np.s_[6:12], axis=1)  # the object's own joint
        assert np.abs(found - expected).max() <= 1e-10 * np.abs(expected).max()


def test_hands_that_close_at_once_keep_momentum(short: lw.Robot) -> None:
    """On a floating body: an impulse inside, after which contacts do not come apart."""
    flying = short.with_inertia("base", mass=5.0, inertia=(0.4, 0.5, 0.6)).with_free_base()
    catch = lw.Grasp([flying], BODY, ["tip"], gravity=(0, 0, 0), object_state=True)
    q, qd, _ = (x[0] for x in state(catch, 1))
    T = catch.forward_kinematics(q, "tip")
    q[-7:] = [1, 0, 0, 0, *T[:3, 3]]
    held = lw.Grasp([flying], BODY, [lw.Contact(0, "tip", pose_in_object=np.block(
        [[T[:3, :3], np.zeros((3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]]))],
        gravity=(0, 0, 0), object_state=True)  # fmt: skip
    after, impulses = held.impulse(q, qd)
    assert np.abs(held.residual(q, after).velocity).max() <= 1e-12
    h = [held.centroidal_momentum(q, x) for x in (qd, after)]
    np.testing.assert_allclose(h[0], h[1], atol=1e-12)
    assert held.kinetic_energy(q, after) < held.kinetic_energy(q, qd)
    assert impulses.shape == (1, 6)


def test_arms_with_joints_that_follow_others(
    chain: Any, dense: Any, moving: Any, evaluate: Any
) -> None:
    rng = np.random.default_rng(6)
    arms = [chain(rng, 9, kinds=("revolute", "prismatic"), mimic=True) for _ in range(2)]
    tips = [arm.tree.links[-1].name for arm in arms]
    grasp = lw.Grasp(arms, BODY, [lw.Contact(i, x, "point") for i, x in enumerate(tips)],
                     gravity=(0, 0, -9))  # fmt: skip
    q, qd, tau = moving(grasp, rng, 1)
    answer = dense(grasp, q[0], qd[0], tau[0]).solve()
    found = evaluate(grasp, "motion", q, qd, tau)[0]
    n = len(answer.qdd)
    error = np.abs(found[:n] - answer.qdd).max() / (1 + np.abs(answer.qdd).max())
    assert error <= 1e-13 * answer.condition
    with pytest.raises(ValueError, match=r"method 'recursive': joint '.*' follows '.*'"):
        grasp.forward_dynamics(q, qd, tau, method="recursive")


def test_loads_are_along_and_across_the_normal(pinch: lw.Grasp) -> None:
    q, _, _ = state(pinch, 2)
    R = pinch.forward_kinematics(q, "object")[:, :3, :3]
    forces = np.zeros((2, 2, 6))
    forces[:, 0, 3:] = R @ np.array([3.0, 0.0, 4.0])
    loads = pinch.loads(q, forces)
    np.testing.assert_allclose(loads.normal[:, 0], 3.0)
    np.testing.assert_allclose(loads.tangential[:, 0], 4.0)
    np.testing.assert_allclose(loads.ratio[:, 0], 4.0 / 3.0)


def test_singular_and_redundant_grasps_are_flagged(short: lw.Robot, evaluate: Any) -> None:
    """Nine joints, twelve directions that are held beyond the first contact's: forces are not
    determined, and the object's balance is refused, for no arm can move in six directions.
    """
    bases = [base(), base(1.5, np.pi), base(0.7, 0.5)]
    grasp = lw.Grasp([short] * 3, BODY, ["tip"] * 3, bases=bases)
    q, qd, tau = state(grasp, 2)
    _, status = grasp.forward_dynamics(q, 0 * qd, tau, status=True)
    assert ((status & lw.Status.REDUNDANT) > 0).all()
    with pytest.raises(
        ValueError,
        match=r"^forward_dynamics, method 'recursive': contact 0 \(arm 0, 'tip'\) holds 6 "
        r"directions, and 3 degrees of freedom move them; expected one of 'ltl', 'pv', 'pv-r'$",
    ):
        grasp.forward_dynamics(q, qd, tau, method="recursive")
    q[1, 2] = np.nan
    qdd, status = grasp.forward_dynamics(q, 0 * qd, tau, status=True)
    assert np.isfinite(qdd[0]).all() and np.isnan(qdd[1]).all()
    assert status[1] & lw.Status.NOT_FINITE


@pytest.mark.parametrize("codegen", ["unrolled", "rolled"])
@pytest.mark.parametrize("object_state", [False, True])
def test_a_state_whose_contacts_are_open_is_flagged(
    short: lw.Robot, object_state: bool, codegen: str
) -> None:
    """Where the poses of all contacts on the object are known, by every function of a motion."""
    bases = [base(), base(1.5, np.pi)]
    grasp = lw.Grasp([short] * 2, BODY, ["tip", "tip"], bases=bases, object_state=object_state)
    q, zero = grasp.neutral(), np.zeros(grasp.nv)
    _, status = grasp.forward_dynamics(
        q + 0.1 * (np.arange(grasp.nq) == 1), zero, zero, status=True
    )
    assert not status & lw.Status.LOOP_OPEN  # without a pose every state is one of this grasp
    known = grasp.holding(q).with_codegen(codegen)
    states = np.array([q, q + 1e-3 * (np.arange(grasp.nq) == 1), q])
    rates = np.zeros((3, grasp.nv))
    rates[2, 0] = 1e-3
    for function in ("forward_dynamics", "contact_forces", "object_acceleration", "motion"):
        _, status = getattr(known, function)(states, rates, zero, status=True)
        assert ((status & lw.Status.LOOP_OPEN) > 0).tolist() == [False, True, True]


def test_pickles_and_other_gravity(carry: lw.Grasp) -> None:
    other = pickle.loads(pickle.dumps(carry))
    q, qd, tau = state(carry, 2)
    expected = carry.forward_dynamics(q, qd, tau)
    assert other.forward_dynamics(q, qd, tau).tobytes() == expected.tobytes()
    light = carry.with_gravity((0, 0, 0))
    assert isinstance(light, lw.Grasp) and not light.gravity.any()


REFUSED: list[tuple[str, type[Exception], dict[str, Any]]] = [
    (r"Grasp: arm 0 is 'arm'; expected a robot", TypeError, {"arms": ["arm"]}),
    (r"Grasp: there are no arms", ValueError, {"arms": []}),
    (r"Grasp: object is 3; expected a linkwise.RigidBody", TypeError, {"object": 3}),
    (r"RigidBody: mass is -1; expected zero or more", ValueError, {"object": lw.RigidBody(-1.0)}),
    (r"Grasp: there are no contacts", ValueError, {"contacts": []}),
    (r"Grasp: contacts are 'tip'; expected a list", TypeError, {"contacts": "tip"}),
    (r"Grasp: contact 1 is 5; expected a linkwise.Contact", TypeError, {"contacts": ["tip", 5]}),
    (r"contact 0: arm 7; expected the number of one of the 2", ValueError,
     {"contacts": [lw.Contact(7, "tip")]}),
    (r"contact 2: arm 2; expected", ValueError, {"contacts": ["tip", "tip", "tip"]}),
    (r"contact 0: frame 'tup': robot 'short' has no such.*did you mean 'tip'", ValueError,
     {"contacts": ["tup"]}),
    (r"contact 0: kind 'glue'; expected one of 'rigid', 'point'", ValueError,
     {"contacts": [lw.Contact(0, "tip", "glue")]}),
    (r"contact 0: both kind 'soft' and directions", ValueError,
     {"contacts": [lw.Contact(0, "tip", "soft", directions=[1, 0, 0, 0, 0, 0])]}),
    (r"contact 0: directions is .*; expected six booleans", ValueError,
     {"contacts": [lw.Contact(0, "tip", directions=[1, 2])]}),
    (r"contact 0: normal is \(0, 0, 0\), which has no direction", ValueError,
     {"contacts": [lw.Contact(0, "tip", "soft", normal=(0, 0, 0))]}),
    (r"contact 1 is rigid and carries the object, whose frame is that of contact 0; expected "
     r"pose_in_object of contact 1", ValueError,
     {"contacts": [lw.Contact(0, "tip", "point"), lw.Contact(1, "tip")]}),
    (r"contact 0 is rigid and its frame 'base' is fixed to the base", ValueError,
     {"contacts": ["base", lw.Contact(1, "tip", "point")]}),
    (r"contact 1 \(arm 0, 'l2'\) is on link 'arm0/l2', which carries the object", ValueError,
     {"contacts": ["tip", lw.Contact(0, "l2", "point")]}),
    (r"1 bases for 2 arm\(s\); expected one for each", ValueError, {"bases": [np.eye(4)]}),
    (r"base 1 is .*; expected a rotation", ValueError, {"bases": [np.eye(4), np.ones((4, 4))]}),
    (r"arm 0 is 'iiwa14'; expected a robot, as linkwise.load makes", TypeError, {"arms": "iiwa14"}),
    (r"bases are 3; expected a list of poses \(4, 4\)", TypeError, {"bases": 3}),
    (r"base 0 is \(1, 2\); expected a 4 by 4 array", ValueError, {"bases": [(1, 2), np.eye(4)]}),
    (r"contact 0: frame \('tip',\): robot 'short' has no such frame", ValueError,
     {"contacts": [lw.Contact(0, ("tip",))]}),  # type: ignore[arg-type]
    (r"name is 3; expected some text", ValueError, {"name": 3}),
    (r"object_state is 'no'; expected True or False", TypeError, {"object_state": "no"}),
    (r"gravity is 'down'; expected 3 finite numbers", ValueError, {"gravity": "down"}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "kind", "wrong"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_wrong_is_told(
    short: lw.Robot, words: str, kind: type[Exception], wrong: dict[str, Any]
) -> None:
    right: dict[str, Any] = {"arms": [short, short], "object": BODY, "contacts": ["tip", "tip"]}
    with pytest.raises(kind, match=words):
        lw.Grasp(**(right | wrong))


def test_a_grasp_is_no_arm(carry: lw.Grasp, short: lw.Robot) -> None:
    alone = lw.Grasp([short], BODY, ["tip"], name="one hand")
    with pytest.raises(ValueError, match=r"^Grasp: arm 0 is the grasp 'one hand'; expected its"):
        lw.Grasp([alone], BODY, ["tip"])
    for function in (carry.loads, carry.internal_forces):
        for wrong in ("x", [[1.0], [2.0, 3.0]]):
            with pytest.raises(
                ValueError, match=r": forces is .*; expected numbers, \(..., 2, 6\)"
            ):
                function(np.zeros(6), wrong)  # type: ignore[arg-type]


def test_arms_that_fall_in_different_directions_need_to_be_told(short: lw.Robot) -> None:
    with pytest.raises(ValueError, match=r"the arms have different gravity.*expected gravity, in"):
        lw.Grasp([short, short.with_gravity((0, 0, 0))], BODY, ["tip", "tip"])


def test_states_that_do_not_fit_are_named(carry: lw.Grasp, pinch: lw.Grasp) -> None:
    q, qd, tau = (x[0] for x in state(pinch, 1))
    with pytest.raises(ValueError, match=r"^state: no contact is rigid, so that the arms do not"):
        pinch.state(q[:6], qd[:6])
    with pytest.raises(ValueError, match=r"^state: object_pose has the shape \(3,\); expected \("):
        pinch.state(q[:6], qd[:6], np.zeros(3), np.zeros(6))
    with pytest.raises(ValueError, match=r"object_velocity has the shape \(2,\); expected"):
        pinch.state(q[:6], qd[:6], np.eye(4), np.zeros(2))
    with pytest.raises(ValueError, match=r"^state: q is a list of 3; expected 2 arrays, one for"):
        pinch.state(pinch.split(q), qd[:6])
    with pytest.raises(ValueError, match=r"^state: qd of arm 1 has the shape \(2,\); expected \("):
        pinch.state(q[:6], [np.zeros(3), np.zeros(2)])
    with pytest.raises(ValueError, match=r"^torques: tau is 'much'; expected numbers, \(..., 6\)"):
        pinch.torques("much")
    with pytest.raises(ValueError, match=r"^split: an array of 5 numbers a state; expected 13"):
        pinch.split(np.zeros(5))
    for wrong in ("x", [[1.0, 2.0], [3.0]], None):
        with pytest.raises(ValueError, match=r"^split: x is .*; expected numbers, 13 \(q\) or 12"):
            pinch.split(wrong)
    with pytest.raises(ValueError, match=r"^split: an array of 1 numbers a state; expected 13"):
        pinch.split(2.0)
    q, qd, tau = (x[0] for x in state(carry, 1))
    with pytest.raises(ValueError, match="contact 0 is rigid, so the object's pose and velocity"):
        carry.state(q, qd, object_pose=np.eye(4))
    with pytest.raises(
        ValueError,
        match=r"method 'aba'.*forward_dynamics expects one of 'auto', 'ltl', 'pv', "
        r"'pv-r', 'recursive'",
    ):
        carry.forward_dynamics(q, qd, tau, method="aba")


def test_places_of_contacts_are_asked_for_and_constants_kept():
    arm, body = lw.load("puma560"), lw.RigidBody(1.0, inertia=np.full(3, 0.01))
    grasp = lw.Grasp([arm, arm], body, ["link6", "link6"])
    with pytest.raises(
        ValueError, match=r"inverse_kinematics: contact 1 .* has no place on the ob"
    ):
        grasp.inverse_kinematics(np.eye(4), "object")
    heavy = grasp.parametric("gravity")
    for other in (pickle.loads(pickle.dumps(heavy)), heavy.holding(np.zeros(12)),
                  heavy.with_codegen("unrolled")):  # fmt: skip
        assert isinstance(other, lw.Grasp) and other.parameters == ("gravity",)
    q, still = np.full(12, 0.3), np.zeros(12)
    pair = (heavy.forward_dynamics(q, still, still, gravity=[0, 0, -1.62]),
            grasp.with_gravity([0, 0, -1.62]).forward_dynamics(q, still, still))  # fmt: skip
    np.testing.assert_allclose(*pair, rtol=1e-9, atol=1e-9)
    tau = heavy.inverse_dynamics(q, still, still, gravity=[0, 0, 0])
    np.testing.assert_allclose(tau, 0.0, atol=1e-12)
    assert body == lw.RigidBody(1.0, inertia=(0.01, 0.01, 0.01))
    with pytest.raises(
        ValueError, match=r"Grasp: contact 0: frame 'lnk6': .* has no such frame; did"
    ):
        lw.Grasp([arm, arm], body, ["lnk6", "link6"])
    with pytest.raises(ValueError, match=r"no contact is on arm 1 \('puma560'\), .*Contact\(1, fr"):
        lw.Grasp([arm, arm], body, ["link6"])
    for function in (grasp.loads, grasp.internal_forces):
        with pytest.raises(
            ValueError, match=r"forces have the shape \(1, 6\); expected \(..., 2, 6"
        ):
            function(np.zeros(12), np.zeros((1, 6)))
    with pytest.raises(
        ValueError, match=r"^forward_dynamics: q has shape \(5,\); expected \(..., 12"
    ):
        grasp.forward_dynamics(np.zeros(5), still, still)
    with pytest.raises(
        ValueError, match=r"^inverse_dynamics: qd has shape \(5,\); expected \(..., 12"
    ):
        grasp.inverse_dynamics(q, np.zeros(5), still)


@pytest.mark.full
def test_wrenches_from_outside_reach_the_compiled_functions(carry: lw.Grasp) -> None:
    q, qd, tau = state(carry, 3)
    push = {"object": np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])}
    qdd, acceleration, forces = carry.motion(q, qd, tau, f_ext=push)
    assert np.abs(acceleration - carry.object_acceleration(q, qd, tau)).max() > 0.1
    for function, part in (
        (carry.object_acceleration, acceleration),
        (carry.contact_forces, forces),
    ):
        np.testing.assert_allclose(function(q, qd, tau, f_ext=push), part, rtol=1e-9, atol=1e-9)
    torques = carry.inverse_dynamics(q, qd, qdd, f_ext=push)
    again = carry.forward_dynamics(q, qd, torques, f_ext=push)
    np.testing.assert_allclose(again, qdd, rtol=1e-7, atol=1e-7)
    with pytest.raises(ValueError, match=r"'objekt'.*did you mean 'object'"):
        carry.forward_dynamics(q, qd, tau, f_ext={"objekt": np.zeros(6)})


def test_arrays_of_torch_come_back_as_such(carry: lw.Grasp, pinch: lw.Grasp) -> None:
    torch = pytest.importorskip("torch")
    q, qd, tau = state(pinch, 4)
    T = pinch.forward_kinematics(q, "object")
    v = np.einsum("bij,bj->bi", pinch.jacobian(q, "object"), qd)
    arms = [pinch.split(x)[:2] for x in (q, qd, tau)]
    expected = (*pinch.state(*arms[:2], T, v), pinch.torques(arms[2]))
    tensors = [[torch.tensor(x) for x in parts] for parts in arms]
    found = pinch.state(*tensors[:2], torch.tensor(T), torch.tensor(v))
    found = (*found, pinch.torques(tensors[2]))
    for mine, its in zip(found, expected, strict=True):
        assert isinstance(mine, torch.Tensor)
        np.testing.assert_array_equal(mine.numpy(), its)
    moved = pinch.motion(*found)
    for mine, its in zip(moved, pinch.motion(*expected), strict=True):
        assert isinstance(mine, torch.Tensor)
        np.testing.assert_array_equal(mine.numpy(), its)
    loads = pinch.loads(torch.tensor(q), moved.forces)
    assert all(isinstance(x, torch.Tensor) for x in loads)
    with pytest.raises(TypeError, match="object_pose is an array of NumPy on cpu, q one of PyTor"):
        pinch.state(*(torch.tensor(x[:, :6]) for x in (q, qd)), T, v)


def test_a_grasp_is_edited_by_its_arms(short: lw.Robot) -> None:
    grasp = lw.Grasp([short], lw.RigidBody(1.0, inertia=(1, 1, 1)), ["tip"])
    with pytest.raises(
        ValueError, match=r"is a grasp, .* cannot be edited .*expected a linkwise\.G"
    ):
        grasp.with_frame("eye", "tip")


def test_a_body_that_cannot_exist_is_refused(short: lw.Robot) -> None:
    flat = lw.RigidBody(1.0, inertia=(1, 1, 5))
    with pytest.raises(ValueError, match=r"RigidBody: inertia is .* moments 1, 1 and 5; expected"):
        lw.Grasp([short], flat, ["tip"])
