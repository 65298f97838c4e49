"""Every joint kind alone, in chains and in trees, against Pinocchio models built by hand.

Pinocchio's numbers differ from linkwise's: quaternions are (x, y, z, w) there, free joints put the
linear part first, and the rates of a planar joint are in body axes, so that its accelerations gain
a term. Followers have no counterpart that all of Pinocchio's functions know: the reference is the
robot without ties, seen through ``v_full = G v``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from linkwise.model.bodies import Policy
from linkwise.model.description import JointDescription, Limits, Mimic, RobotDescription
from linkwise.robot import Robot
from linkwise.trace.status import Status

pin = pytest.importorskip("pinocchio", reason="Pinocchio (pip install pin) is not installed")

STATES = 9  # more than one SIMD register holds, and a remainder
KINDS = ("revolute", "prismatic", "helical", "universal", "planar", "spherical", "free")
METHODS = ("crba", "aba")
SWAP = [3, 4, 5, 0, 1, 2]  # Pinocchio orders spatial vectors (linear, angular)
REFERENCE = {"base": pin.LOCAL_WORLD_ALIGNED, "body": pin.LOCAL}


# -- the same robot in Pinocchio ----------------------------------------------------------------


def pin_joint(joint: JointDescription) -> Any:
    axis = np.array(joint.axis)
    return {
        "revolute": lambda: pin.JointModelRevoluteUnaligned(axis),
        "continuous": lambda: pin.JointModelRevoluteUnaligned(axis),
        "prismatic": lambda: pin.JointModelPrismaticUnaligned(axis),
        "helical": lambda: pin.JointModelHelicalUnaligned(axis, joint.pitch),
        "universal": lambda: pin.JointModelUniversal(axis, np.array(joint.second_axis)),
        "planar": pin.JointModelPlanar,
        "spherical": pin.JointModelSpherical,
        "free": pin.JointModelFreeFlyer,
    }[joint.kind]()


def pin_model(description: RobotDescription) -> Any:
    model = pin.Model()
    model.gravity.linear = np.array(description.gravity)
    links = {link.name: link for link in description.links}
    at = {description.base: (0, pin.SE3.Identity())}
    waiting = list(description.joints)
    order = [description.base]  # depth first, as Pinocchio's algorithms ask for
    while waiting:
        joint = next(j for link in reversed(order) for j in waiting if j.parent == link)
        waiting.remove(joint)
        order.append(joint.child)
        parent, placement = at[joint.parent]
        origin = pin.SE3(np.array(joint.origin.rotation), np.array(joint.origin.translation))
        placement = placement * origin
        if joint.kind != "fixed":
            parent = model.addJoint(parent, pin_joint(joint), placement, joint.name)
            added = model.joints[parent]
            model.armature[added.idx_v : added.idx_v + added.nv] = joint.armature
            placement = pin.SE3.Identity()
        at[joint.child] = (parent, placement)
        body = links[joint.child].inertia
        if body is not None and parent > 0:
            model.appendBodyToJoint(parent, pin_inertia(body), placement)
        frame = pin.Frame(joint.child, parent, 0, placement, pin.FrameType.BODY)
        model.addFrame(frame, False)
    return model


def pin_inertia(body: Any) -> Any:
    full = np.zeros((3, 3))
    full[np.triu_indices(3)] = body.tensor
    return pin.Inertia(body.mass, np.array(body.com), full + np.triu(full, 1).T)


def pin_q(kind: str, own: np.ndarray) -> Any:
    if kind == "spherical":
        return [*own[1:], own[0]]
    if kind == "free":
        return [*own[4:], *own[1:4], own[0]]
    if kind == "planar":
        return [own[0], own[1], np.cos(own[2]), np.sin(own[2])]
    return own


def pin_rates(kind: str, own: np.ndarray, nv: int) -> np.ndarray:
    """The matrix from linkwise's rates of a joint to Pinocchio's."""
    if kind == "free":
        return np.eye(6)[SWAP]
    if kind == "planar":
        c, s = np.cos(own[2]), np.sin(own[2])
        return np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    return np.eye(nv)


def pin_drift(kind: str, own: np.ndarray, v: np.ndarray) -> np.ndarray:
    """How Pinocchio's rates change while linkwise's do not."""
    if kind != "planar":
        return np.zeros(len(v))
    c, s = np.cos(own[2]), np.sin(own[2])
    return v[2] * np.array([-s * v[0] + c * v[1], -c * v[0] - s * v[1], 0.0])


@dataclass
class At:
    """One state in Pinocchio's numbers: v = B v_linkwise, a = B a_linkwise + drift."""

    q: np.ndarray
    B: np.ndarray
    drift: np.ndarray


@dataclass
class Case:
    """A robot in both libraries, and random states."""

    robot: Robot
    model: Any
    data: Any
    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray  # joint accelerations or torques
    uncompiled: Callable[..., np.ndarray] | None = None

    def call(self, function: str, *values: np.ndarray, **options: Any) -> np.ndarray:
        """By its kernel, or as equations by NumPy."""
        if self.uncompiled:
            return self.uncompiled(self.robot, function, *values, **options)
        return np.asarray(getattr(self.robot, function)(*values, **options))

    @property
    def frames(self) -> list[str]:
        described = self.robot.description
        return [link.name for link in described.links if link.name != described.base][-3:]

    def at(self, q: np.ndarray, qd: np.ndarray) -> At:
        robot, model = self.robot, self.model
        out = At(np.zeros(model.nq), np.zeros((model.nv, robot.nv)), np.zeros(model.nv))
        described = {joint.name: joint for joint in robot.description.joints}
        for link in robot.tree.links:
            own, rates = q[link.q_index :][: link.joint.nq], qd[link.v_index :][: link.joint.nv]
            tie = described[link.joint_name].mimic or Mimic("")
            own = own * tie.multiplier + tie.offset
            joint = model.joints[model.getJointId(link.joint_name)]
            rows = slice(joint.idx_v, joint.idx_v + joint.nv)
            columns = slice(link.v_index, link.v_index + link.joint.nv)
            out.q[joint.idx_q : joint.idx_q + joint.nq] = pin_q(link.kind, own)
            out.B[rows, columns] = tie.multiplier * pin_rates(link.kind, own, joint.nv)
            out.drift[rows] = pin_drift(link.kind, own, rates)
        return out

    def each(self, one: Callable[..., Any]) -> np.ndarray:
        """``one(at, qd, u)`` at every state."""
        rows = zip(self.q, self.qd, self.u, strict=True)
        return np.array([one(self.at(q, qd), qd, u) for q, qd, u in rows])

    def rnea(self, at: At, v: np.ndarray, a: np.ndarray, *forces: Any) -> np.ndarray:
        moving = at.drift if np.any(v) else 0.0
        tau = pin.rnea(self.model, self.data, at.q, at.B @ v, at.B @ a + moving, *forces)
        return at.B.T @ tau

    def mass(self, at: At) -> np.ndarray:
        upper = np.triu(pin.crba(self.model, self.data, at.q))
        return at.B.T @ (upper + np.triu(upper, 1).T) @ at.B

    def masses(self) -> np.ndarray:
        return self.each(lambda at, qd, u: self.mass(at))

    def jacobian(self, at: At, name: str, axes: str) -> np.ndarray:
        frame = self.model.getFrameId(name)
        J = pin.computeFrameJacobian(self.model, self.data, at.q, frame, REFERENCE[axes])
        return J.reshape(6, self.model.nv)[SWAP] @ at.B

    def forces(self, at: At, wrenches: dict[str, np.ndarray]) -> Any:
        """Wrenches at frames in base axes, moved to Pinocchio's joints."""
        pin.framesForwardKinematics(self.model, self.data, at.q)
        forces = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for name, wrench in wrenches.items():
            frame = self.model.getFrameId(name)
            here = pin.Force(wrench[3:], wrench[:3])
            world = pin.SE3(np.eye(3), self.data.oMf[frame].translation).act(here)
            joint = self.model.frames[frame].parentJoint
            forces[joint] += self.data.oMi[joint].actInv(world)
        vector = pin.StdVec_Force()
        vector.extend(forces)
        return vector


# -- the robots ---------------------------------------------------------------------------------


def upright(description: RobotDescription) -> RobotDescription:
    """Pinocchio's planar joint knows one axis, and takes a rotor in body axes."""
    joints = [
        replace(j, axis=(0.0, 0.0, 1.0), armature=0.0) if j.kind == "planar" else j
        for j in description.joints
    ]
    return replace(description, joints=tuple(joints))


def of_kinds(
    random_robot: Any, rng: np.random.Generator, kinds: tuple[str, ...], **options: Any
) -> RobotDescription:
    """Joints of these kinds, in this order."""
    drawn = random_robot(rng, len(kinds), kinds=("revolute",), **options)
    flies = options.get("base") == "free"
    chosen = ("free", *kinds) if flies else kinds
    second = [np.cross(j.axis, np.eye(3)[np.argmin(np.abs(j.axis))]) for j in drawn.joints]
    joints = [
        replace(j, kind=kind, second_axis=tuple((x / np.linalg.norm(x)).tolist()), pitch=0.3)
        for j, kind, x in zip(drawn.joints, chosen, second, strict=True)
    ]
    return replace(drawn, joints=tuple(joints))


SINGLE = ("revolute", "helical", "prismatic", "continuous", "revolute", "helical")
TREES = {
    "tree": (("spherical", "revolute", "universal", "planar", "fixed", "helical", "prismatic"), {}),
    "flight in a tree": (("revolute", "universal", "free", "fixed", "continuous", "planar"), {}),
    "free base": (("revolute", "spherical", "fixed", "planar", "helical"), {"base": "free"}),
    "followers": (SINGLE, {"mimic": True}),
    "followers on a free base": (SINGLE, {"mimic": True, "base": "free"}),
}
CASES = [*KINDS, "continuous", *(f"{kind} chain" for kind in KINDS), *TREES]


def only(*short: str) -> pytest.MarkDecorator:
    """These cases; a full run has all."""
    cases = [pytest.param(x, marks=() if x in short else pytest.mark.full) for x in CASES]
    return pytest.mark.parametrize("case", cases, indirect=True)


# the methods by turns, from case to case; a full run has all
one_method = pytest.mark.parametrize(
    ("case", "method"),
    [
        pytest.param(case, method, marks=() if method == METHODS[k % 2] else pytest.mark.full)
        for k, case in enumerate(CASES)
        for method in METHODS
    ],
    indirect=["case"],
)


@pytest.fixture(scope="module", params=CASES)
def case(
    request: pytest.FixtureRequest, random_robot: Any, random_states: Any, evaluate: Any
) -> Case:
    """Single joints run as kernels. Chains and trees run uncompiled where equations are tested;
    `compiled` compiles them, too.
    """
    return case_of(request.param, random_robot, random_states, evaluate)


@cache  # kernels stay with their robot, however a test names it
def case_of(name: str, random_robot: Any, random_states: Any, evaluate: Any) -> Case:
    rng = np.random.default_rng(CASES.index(name))
    kind = name.removesuffix(" chain")
    kinds, options = TREES.get(name) or ((kind,), {})
    if name.endswith(" chain"):
        kinds, options = (kind, "revolute", kind, "prismatic"), {"chain": True}
    description = upright(of_kinds(random_robot, rng, kinds, **options))
    assert not options.get("mimic") or any(joint.mimic for joint in description.joints)
    robot, model = Robot(description), pin_model(description)
    states = random_states(robot, rng, STATES)
    return Case(robot, model, model.createData(), *states, evaluate if len(kinds) > 1 else None)


def test_the_cases_have_every_kind(all_kinds: Any) -> None:
    assert set(all_kinds) == {kind for kinds, _ in TREES.values() for kind in kinds}


# -- kinematics ---------------------------------------------------------------------------------


def test_forward_kinematics(case: Case, assert_close: Any) -> None:
    for name in case.frames:

        def one(at: At, qd: np.ndarray, u: np.ndarray, name: str = name) -> Any:
            pin.framesForwardKinematics(case.model, case.data, at.q)
            return case.data.oMf[case.model.getFrameId(name)].homogeneous

        assert_close(case.call("forward_kinematics", case.q, frame=name), case.each(one))


@pytest.mark.parametrize("axes", REFERENCE)
def test_jacobian(case: Case, axes: str, assert_close: Any) -> None:
    for name in case.frames[-2:]:
        expected = case.each(lambda at, qd, u, name=name: case.jacobian(at, name, axes))
        actual = case.call("jacobian", case.q, frame=name, axes=axes)
        assert_close(actual, expected, scale=1.0 + np.abs(expected).max())


@pytest.mark.parametrize("axes", [*REFERENCE, "moving"])
def test_jacobian_dot_qd(case: Case, axes: str, assert_close: Any) -> None:
    frame = case.model.getFrameId(case.frames[-1])
    moving = axes == "moving"
    acceleration = pin.getFrameAcceleration if moving else pin.getFrameClassicalAcceleration
    reference = REFERENCE["body" if moving else axes]

    def one(at: At, qd: np.ndarray, u: np.ndarray) -> Any:
        pin.forwardKinematics(case.model, case.data, at.q, at.B @ qd, at.drift)
        return acceleration(case.model, case.data, frame, reference).vector[SWAP]

    expected = case.each(one)
    actual = case.call("jacobian_dot_qd", case.q, case.qd, frame=case.frames[-1], axes=axes)
    assert_close(actual, expected, scale=np.abs(expected).max() + (case.qd**2).sum(axis=1))


# -- dynamics -----------------------------------------------------------------------------------


def test_mass_matrix(case: Case, assert_close: Any) -> None:
    M = case.call("mass_matrix", case.q)
    assert_close(M, case.masses())
    assert np.array_equal(M, M.mT)


@one_method
def test_mass_matrix_inverse(case: Case, method: str, assert_close: Any) -> None:
    M = case.masses()
    actual = case.call("mass_matrix_inverse", case.q, method=method)
    assert_close(actual, np.linalg.inv(M), cond=np.linalg.cond(M))


def test_inverse_dynamics(case: Case, assert_close: Any) -> None:
    expected = case.each(lambda at, qd, u: case.rnea(at, qd, u))
    assert_close(case.call("inverse_dynamics", case.q, case.qd, case.u), expected)


def test_bias(case: Case, assert_close: Any) -> None:
    expected = case.each(lambda at, qd, u: case.rnea(at, qd, 0 * u))
    assert_close(case.call("bias", case.q, case.qd), expected, scale=1 + np.abs(expected).max())


def test_gravity_torque(case: Case, assert_close: Any) -> None:
    expected = case.each(lambda at, qd, u: case.rnea(at, 0 * qd, 0 * u))
    assert_close(case.call("gravity_torque", case.q), expected)


@pytest.mark.parametrize("method", METHODS)
def test_forward_dynamics(case: Case, method: str, assert_close: Any) -> None:
    M = case.masses()
    bias = case.each(lambda at, qd, u: case.rnea(at, qd, 0 * u))
    expected = np.linalg.solve(M, (case.u - bias)[..., None])[..., 0]
    actual = case.call("forward_dynamics", case.q, case.qd, case.u, method=method)
    assert_close(actual, expected, cond=np.linalg.cond(M))


def test_forward_dynamics_is_pinocchios_aba(case: Case, assert_close: Any) -> None:
    if case.robot.tree.coupled:
        pytest.skip("Pinocchio's ABA does not know followers")

    def one(at: At, qd: np.ndarray, u: np.ndarray) -> Any:
        tau = np.linalg.solve(at.B.T, u)
        qdd = pin.aba(case.model, case.data, at.q, at.B @ qd, tau)
        return np.linalg.solve(at.B, qdd - at.drift)

    actual = case.call("forward_dynamics", case.q, case.qd, case.u)
    assert_close(actual, case.each(one), cond=np.linalg.cond(case.masses()))


@one_method
def test_external_wrenches(
    case: Case, method: str, rng: np.random.Generator, assert_close: Any
) -> None:
    f_ext = {name: rng.uniform(-20, 20, (STATES, 6)) for name in case.frames[-2:]}
    states = iter(range(STATES))

    def one(at: At, qd: np.ndarray, u: np.ndarray) -> Any:
        k = next(states)
        forces = case.forces(at, {name: wrench[k] for name, wrench in f_ext.items()})
        return case.rnea(at, qd, u, forces)

    tau = case.each(one)
    actual = case.call("inverse_dynamics", case.q, case.qd, case.u, f_ext=f_ext)
    assert_close(actual, tau, scale=np.abs(tau).max() + 100.0)
    M = case.masses()
    back = case.call("forward_dynamics", case.q, case.qd, tau, method=method, f_ext=f_ext)
    size = np.abs(tau).max() / np.linalg.eigvalsh(M)[:, 0]
    assert_close(back, case.u, scale=size + np.abs(case.u).max(axis=1))


def test_energies(case: Case, assert_close: Any) -> None:
    half = 0.5 * np.einsum("bi,bij,bj->b", case.qd, case.masses(), case.qd)
    assert_close(case.call("kinetic_energy", case.q, case.qd), half)
    expected = case.each(lambda at, qd, u: pin.computePotentialEnergy(case.model, case.data, at.q))
    actual = case.call("potential_energy", case.q)
    assert_close(actual, expected, scale=np.abs(expected).max() + 10.0)


def test_operational_inertia(case: Case, assert_close: Any) -> None:
    frame = case.frames[-1]
    M, J = case.masses(), case.each(lambda at, qd, u: case.jacobian(at, frame, "base"))
    if np.linalg.matrix_rank(J[0]) < 6:
        pytest.skip("the tip cannot move in six directions")
    inverse = J @ np.linalg.solve(M, J.mT)
    actual = case.call("operational_inertia", case.q, frame=frame)
    cond = np.linalg.cond(M) + np.linalg.cond(inverse)
    assert_close(actual, np.linalg.inv(inverse), cond=cond)


# -- the centre of mass, and momentum about it -------------------------------------------------


def centroidal(case: Case, at: At, v: np.ndarray) -> dict[str, np.ndarray]:
    """Pinocchio's answers, in our numbers."""
    model, data, rates = case.model, case.data, at.B @ v
    pin.centerOfMass(model, data, at.q, rates, at.drift)
    found = {"center_of_mass": data.com[0].copy(), "com_bias": data.acom[0].copy()}
    J, A = pin.jacobianCenterOfMass(model, data, at.q), pin.ccrba(model, data, at.q, rates)
    found["com_jacobian"] = J.reshape(3, model.nv) @ at.B
    found["centroidal_momentum_matrix"] = A.reshape(6, model.nv)[SWAP] @ at.B
    found["centroidal_momentum"] = data.hg.vector[SWAP]
    pin.computeCentroidalMomentumTimeVariation(model, data, at.q, rates, at.drift)
    return found | {"centroidal_bias": data.dhg.vector[SWAP]}


@only("planar chain", "tree", "free base", "followers on a free base")
def test_centre_of_mass_and_momentum(case: Case) -> None:
    """To 1e-12 of the sizes that are added up: lengths of metres, and all of the mass."""
    states = zip(case.q, case.qd, strict=True)
    expected = [centroidal(case, case.at(q, qd), qd) for q, qd in states]
    reach = 1.0 + np.abs([each["center_of_mass"] for each in expected]).max()
    speed, mass = np.abs(case.qd).max(), case.robot.mass
    assert abs(mass - pin.computeTotalMass(case.model)) <= 1e-14 * mass
    scales = {
        "center_of_mass": reach, "com_jacobian": reach, "com_bias": reach * speed**2,
        "centroidal_momentum_matrix": mass * reach**2,
        "centroidal_momentum": mass * reach**2 * speed,
        "centroidal_bias": mass * reach**2 * speed**2,
    }  # fmt: skip
    for name, scale in scales.items():
        rates = (case.qd,) if name in ("com_bias", "centroidal_momentum", "centroidal_bias") else ()
        found = case.call(name, case.q, *rates)
        worst = np.abs(found - np.array([each[name] for each in expected])).max()
        assert worst <= 1e-12 * scale, name


# -- single states, precision, quaternions ------------------------------------------------------


def every_function(
    call: Callable[..., Any], frame: str, q: np.ndarray, qd: np.ndarray, u: np.ndarray
) -> dict[str, np.ndarray]:
    """Results of ``call(function, *values, **options)`` by name."""
    results = {
        "forward_kinematics": call("forward_kinematics", q, frame=frame),
        "jacobian": call("jacobian", q, frame=frame),
        "jacobian_dot_qd": call("jacobian_dot_qd", q, qd, frame=frame),
        "mass_matrix": call("mass_matrix", q),
        "inverse_dynamics": call("inverse_dynamics", q, qd, u),
        "bias": call("bias", q, qd),
        "gravity_torque": call("gravity_torque", q),
        "kinetic_energy": call("kinetic_energy", q, qd),
        "potential_energy": call("potential_energy", q),
    }
    for method in METHODS:
        results[f"forward_dynamics {method}"] = call("forward_dynamics", q, qd, u, method=method)
    return results | {"mass_matrix_inverse": call("mass_matrix_inverse", q)}


def compiled(robot: Robot, *state: np.ndarray) -> dict[str, np.ndarray]:
    """Results of every function by its kernel."""

    def call(function: str, *values: np.ndarray, **options: Any) -> Any:
        return getattr(robot, function)(*values, **options)

    return every_function(call, robot.frame_names[-1], *state)


def same_results(
    case: Case, actual: dict[str, Any], expected: dict[str, Any], dtype: Any, assert_close: Any
) -> None:
    """Agree to rounding; sizes are those of the largest state, as small results are differences."""
    cond = np.linalg.cond(case.masses())
    for name, result in expected.items():
        solves = name.startswith(("forward_dynamics", "mass_matrix_inverse"))
        size = np.abs(result).max() + (10.0 if not solves else 0.0)
        assert actual[name].dtype == dtype, name
        assert_close(actual[name], result, cond=cond if solves else 1.0, scale=size, dtype=dtype)


# every kind alone or in a chain of more, and a tree
@only("revolute", "helical", "planar", "free", "universal chain", "spherical chain", "followers")
def test_float32(case: Case, assert_close: Any) -> None:
    single = [x.astype(np.float32) for x in (case.q, case.qd, case.u)]
    double = [x.astype(np.float64) for x in single]
    expected = every_function(case.call, case.robot.frame_names[-1], *double)
    same_results(case, compiled(case.robot, *single), expected, np.float32, assert_close)


# what the test above has alone is in a chain or a tree here, and the other way round
@only("prismatic", "universal", "spherical", "continuous", "helical chain", "flight in a tree")
def test_one_state_is_a_row_of_the_batch(case: Case, assert_close: Any) -> None:
    batch = compiled(case.robot, case.q, case.qd, case.u)
    rows = [compiled(case.robot, *state) for state in zip(case.q, case.qd, case.u, strict=True)]
    single = {name: np.array([row[name] for row in rows]) for name in batch}
    same_results(case, single, batch, np.float64, assert_close)


@pytest.mark.parametrize("length", [0.5, 1.0 + 1e-9, 1.1, 30.0])
def test_a_quaternion_of_any_length_is_the_turn_it_stands_for(
    case: Case, length: float, assert_close: Any
) -> None:
    balls = [link for link in case.robot.tree.links if link.kind in ("spherical", "free")]
    if not balls:
        pytest.skip("no joint has a quaternion")
    q = case.q.copy()
    for link in balls:
        q[:, link.q_index : link.q_index + 4] *= length
    assert_close(case.robot.normalize(q), case.q)
    tip = case.robot.frame_names[-1]
    expected = every_function(case.call, tip, case.q, case.qd, case.u)
    actual = every_function(case.call, tip, q, case.qd, case.u)
    same_results(case, actual, expected, np.float64, assert_close)


@only("revolute", "spherical", "free", "universal chain", "free chain", "tree", "free base")
def test_status_says_that_a_quaternion_is_not_unit(case: Case) -> None:
    balls = [link for link in case.robot.tree.links if link.kind in ("spherical", "free")]
    q = case.q.copy()
    for link in balls:
        q[3, link.q_index : link.q_index + 4] *= 1.01
    _, status = case.robot.forward_dynamics(q, case.qd, case.u, status=True)
    expected = np.zeros(STATES, np.uint16)
    expected[3] = Status.NOT_UNIT if balls else 0
    assert np.array_equal(status, expected)


# -- followers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, *(pytest.param(k, marks=pytest.mark.full) for k in (0, 2, 3))])
def test_followers_are_the_robot_without_ties_seen_through_G(
    seed: int, random_robot: Any, random_states: Any, all_kinds: Any, assert_close: Any
) -> None:
    """``M = Gᵀ M_full G``, ``tau = Gᵀ tau_full``: losses and rotors included."""
    rng = np.random.default_rng(seed)
    described = random_robot(rng, 8, kinds=all_kinds, mimic=True, friction=True)
    policy = Policy(friction=True)
    robot = Robot(described, policy)
    loose = [replace(joint, mimic=None) for joint in described.joints]
    full = Robot(replace(described, joints=tuple(loose)), policy)
    q, qd, u = random_states(robot, rng, STATES)
    Gq, Gv = np.zeros((full.nq, robot.nq)), np.zeros((full.nv, robot.nv))
    offset = np.zeros(full.nq)
    ties = {joint.name: joint.mimic for joint in described.joints}
    for own, alone in zip(robot.tree.links, full.tree.links, strict=True):
        tie = ties[own.joint_name] or Mimic("")
        size = own.joint.nq
        Gq[alone.q_index :, own.q_index :][:size, :size] = np.eye(size) * tie.multiplier
        size = own.joint.nv
        Gv[alone.v_index :, own.v_index :][:size, :size] = np.eye(size) * tie.multiplier
        offset[alone.q_index] += tie.offset
    full_q, full_qd, full_u = q @ Gq.T + offset, qd @ Gv.T, u @ Gv.T
    M = Gv.T @ full.mass_matrix(full_q) @ Gv
    assert_close(robot.mass_matrix(q), M)
    tau = full.inverse_dynamics(full_q, full_qd, full_u) @ Gv
    assert_close(robot.inverse_dynamics(q, qd, u), tau)
    least = np.linalg.eigvalsh(M)[:, 0]
    for method in METHODS:
        qdd = robot.forward_dynamics(q, qd, tau, method=method)
        assert_close(qdd, u, cond=np.linalg.cond(M), scale=3.0 + np.abs(tau).max() / least)


def test_the_limits_of_a_driver_are_in_its_column(
    random_robot: Any, rng: np.random.Generator
) -> None:
    described = random_robot(rng, 3, kinds=("revolute",), chain=True)
    limits = Limits(-0.5, 0.25)
    joints = [replace(j, limits=limits) for j in described.joints]
    joints[2] = replace(joints[2], mimic=Mimic("j0", 2.0))
    robot = Robot(replace(described, joints=tuple(joints)))
    assert robot.joint_names == ("j0", "j1")
    assert np.array_equal(robot.position_limits, [[-0.5, -0.5], [0.25, 0.25]])
