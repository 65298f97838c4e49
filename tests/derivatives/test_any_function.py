"""Derivatives of any function: against complex steps, 50 digits and Pinocchio; calls; mistakes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import linkwise as lw
import linkwise.spatial.precise
from linkwise.algorithms import FUNCTIONS, Algorithm, functions_of
from linkwise.backends import base
from linkwise.backends.reference import interpret
from linkwise.bench.pinocchio import pinocchio_model
from linkwise.differentiation.equations import equations_of
from linkwise.differentiation.plan import CURVATURE, GRADIENT, Asked, Plan
from linkwise.engine.tasks import Key
from linkwise.errors import ProgramTooLarge
from linkwise.trace.program import Block, Program
from linkwise.trace.tracer import evaluate

EPS = np.finfo(float).eps
ROUNDING = 2e4 * EPS  # relative: robots here have conditions of a few hundred
Small = Callable[[str], lw.Robot]
Step = Callable[[Plan, dict[str, Any]], np.ndarray]

# -- first derivatives ----------------------------------------------------------------------------


def plan_of(robot: lw.Robot, algorithm: Algorithm, mode: Any = "auto", kind: str = "") -> Plan:
    frame = robot.frame_names[-1] if algorithm.takes_frame else None
    external = (robot.frame_names[-1],) if algorithm.takes_external else ()
    wrt = [name for name, _ in algorithm.inputs] + (["f_ext"] if external else [])
    key = Key(algorithm.function, algorithm.method, frame, external=external)
    asked = Asked(key, tuple(wrt), mode=mode)
    return Plan(robot._calls.tasks, asked._replace(kind=kind or asked.kind))


def values_of(robot: lw.Robot, plan: Plan) -> dict[str, np.ndarray]:
    rng, inputs = np.random.default_rng(5), plan.task.algorithm.inputs
    found = {port.name: rng.normal(size=port.size) for port in (*plan.ports, *plan.more)}
    turned = [name for name, size in inputs if size == "nq"]
    return found | {name: robot.random_q(seed=k) for k, name in enumerate(turned)}


def jacobian(plan: Plan, values: dict[str, Any]) -> np.ndarray:
    """(rates of the result, rates of the arguments), by the reference interpreter."""
    program = equations_of(plan, False).trace(base.USUAL)
    found = interpret(program, {name: x[None] for name, x in values.items()})["result"][0]
    rows = plan.result.size
    cuts = np.cumsum([rows * len(span) for span in plan.spans])[:-1]
    return np.concatenate([part.reshape(rows, -1) for part in np.split(found, cuts)], 1)


def agree(robot: lw.Robot, algorithm: Algorithm, step: Step, mode: str = "auto") -> None:
    plan = plan_of(robot, algorithm, mode)
    values = values_of(robot, plan)
    found, expected = jacobian(plan, values), step(plan, values)
    assert np.abs(found - expected).max() <= ROUNDING * np.abs(expected).max()


SOME = [
    ("flying", "forward_kinematics"), ("flying", "integrate"), ("ball", "difference"),
    ("plane", "jacobian"), ("flying", "gravity_torque"), ("arm", "kinetic_energy"),
    ("flying", "forward_dynamics"),
    ("ball", "jacobian_dot_qd"), ("plane", "potential_energy"), ("ball", "normalize"),
]  # fmt: skip
USUAL = [(f, a) for f, methods in FUNCTIONS.items() for a in list(methods.values())[:1]]
EVERY = [(robot, f) for robot in ("flying", "ball", "plane", "arm") for f, _ in USUAL]


@pytest.mark.parametrize(
    ("name", "function"),
    [pytest.param(*x, marks=[] if x in SOME else pytest.mark.full) for x in EVERY],
)
def test_derivatives_are_those_of_a_complex_step(
    name: str, function: str, small: Small, complex_step: Step
) -> None:
    robot, algorithm = small(name), next(iter(FUNCTIONS[function].values()))
    frame = robot.tree.frames[robot.frame_names[-1]] if algorithm.takes_frame else None
    if algorithm.why_not(robot.tree, frame):
        pytest.skip("the robot has no such function")
    agree(robot, algorithm, complex_step)


HEAVY = ("inverse_dynamics", "mass_matrix", "mass_matrix_inverse")


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("ball", "com_jacobian"),
        ("flying", "forward_kinematics"),
        ("flying", "normalize"),
        ("flying", "link_poses"),
        *(pytest.param("ball", f, marks=pytest.mark.full) for f in HEAVY),
    ],
)
def test_both_modes_agree(name: str, function: str, small: Small, complex_step: Step) -> None:
    algorithm = next(iter(FUNCTIONS[function].values()))
    for mode in ("forward", "reverse"):
        agree(small(name), algorithm, complex_step, mode)


def closed_arm() -> lw.Robot:
    held = lw.Loop("link6", directions=[False, False, False, True, True, False])
    return lw.load("puma560").close_loops([held])


@pytest.mark.parametrize(
    ("function", "method"),
    [
        ("forward_dynamics", "ltl"),
        ("residual", "sweep"),
        *(pytest.param(*x, marks=pytest.mark.full)
          for x in (("forward_dynamics", "pv"), ("inverse_dynamics", "least-torque"),
                    ("constraint_forces", "ltl"), ("delassus", "pv-r"), ("impulse", "ltl"))),
    ],
)  # fmt: skip
def test_closed_loops_have_derivatives(function: str, method: str, complex_step: Step) -> None:
    robot = closed_arm()
    agree(robot, functions_of(robot.tree)[function][method], complex_step)


@pytest.mark.full
def test_grasps_have_derivatives(complex_step: Step) -> None:
    arm, away = lw.load("puma560"), np.eye(4)
    away[0, 3] = 1.0
    held = lw.RigidBody(2.0, com=(0.0, 0.0, 0.1), inertia=(0.06, 0.06, 0.01))
    grasp = lw.Grasp([arm, arm], bases=[np.eye(4), away], object=held, contacts=["link6", "link6"])
    agree(grasp, functions_of(grasp.tree)["motion"]["ltl"], complex_step)


def test_no_turn_at_all_has_derivatives(small: Small) -> None:
    """Where a rotation vector has no direction, choices keep quotients of zeros out."""
    robot = small("flying")
    q, still = robot.random_q(seed=1), np.zeros(7)
    by_q, by_v = robot.derivative("integrate", wrt=("q", "v"))(q, still)
    np.testing.assert_allclose(by_q, np.eye(7), atol=8 * EPS)
    np.testing.assert_allclose(by_v, np.eye(7), atol=8 * EPS)
    by_q0, by_q1 = robot.derivative("difference")(q, q)
    np.testing.assert_allclose(by_q0, -np.eye(7), atol=8 * EPS)
    np.testing.assert_allclose(by_q1, np.eye(7), atol=8 * EPS)
    _, (back, _) = robot.vjp("difference", (q, q), np.arange(7.0))
    np.testing.assert_allclose(back, -np.arange(7.0), atol=1e-14)


# -- second derivatives, in 50 digits -------------------------------------------------------------

PRECISE: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "neg": lambda a: -a, "sin": mpmath.sin, "cos": mpmath.cos,
    "sqrt": mpmath.sqrt, "fma": lambda a, b, c: a * b + c, "fms": lambda a, b, c: a * b - c,
    "fnma": lambda a, b, c: c - a * b, "select": lambda c, a, b: a if c > 0 else b,
    "sign": mpmath.sign, "atan2": mpmath.atan2,
}  # fmt: skip


def precisely(program: Program, inputs: dict[str, Any]) -> list[Any]:
    """The program's numbers in 50 digits; its constants are those of float64."""
    known: dict[int, Any] = {}
    for region in program.regions:
        assert isinstance(region, Block)
        for node in region.nodes:
            if node.op == "input":
                port, k = node.value
                known[node.id] = inputs[port][k]
            elif node.op == "const":
                known[node.id] = mpmath.mpf(node.value)
            else:
                known[node.id] = PRECISE[node.op](*(known[a.id] for a in node.args))
    return [known[x.id] for x in program.outputs[0].values]


def moved(plan: Plan, values: dict[str, Any], b: int, h: Any) -> dict[str, Any]:
    """Arguments after a short motion along one rate, that of a configuration by its exponential."""
    k = next(k for k, span in enumerate(plan.spans) if b in span)
    name, unit = plan.wrt[k], [mpmath.mpf(x == b) for x in plan.spans[k]]
    if name == "q":
        task = Plan(TASKS[plan.robot], Asked(Key("integrate"))).task
        return values | {name: evaluate(task, plan.tree, values[name], unit, [h])}
    return values | {name: [x + h * e for x, e in zip(values[name], unit, strict=True)]}


TASKS: dict[str, Any] = {}


def gradient_differences(plan: Plan, values: dict[str, Any], b: int) -> list[Any]:
    program = equations_of(plan, False).trace(base.USUAL)
    h = mpmath.mpf(10) ** -16
    two = [precisely(program, moved(plan, values, b, step)) for step in (h, -h)]
    return [(x - y) / (2 * h) for x, y in zip(*two, strict=True)]


@pytest.mark.parametrize(
    ("name", "function", "directions"),
    [
        ("ball", "gravity_torque", range(5)),
        pytest.param("ball", "inverse_dynamics", range(21), marks=pytest.mark.full),
        pytest.param("flying", "inverse_dynamics", range(21), marks=pytest.mark.full),
        pytest.param("plane", "inverse_dynamics", range(24), marks=pytest.mark.full),
        pytest.param("arm", "forward_dynamics", range(21), marks=pytest.mark.full),
        pytest.param("flying", "forward_dynamics", range(21), marks=pytest.mark.full),
        pytest.param("flying", "forward_kinematics", range(7), marks=pytest.mark.full),
        pytest.param("ball", "jacobian", range(7), marks=pytest.mark.full),
    ],
)
def test_second_derivatives_are_differences_of_first_in_50_digits(
    name: str, function: str, directions: Any, small: Small
) -> None:
    robot, algorithm = small(name), next(iter(FUNCTIONS[function].values()))
    robot = robot.with_friction(False)  # whose derivatives Coulomb's would not have
    TASKS[robot.name] = robot._calls.tasks
    plans = [plan_of(robot, algorithm, kind=kind) for kind in (CURVATURE, GRADIENT)]
    if "f_ext" in plans[0].wrt:
        wrt = tuple(x for x in plans[0].wrt if x != "f_ext")
        plans = [Plan(robot._calls.tasks, x.asked._replace(wrt=wrt)) for x in plans]
    curvature, gradient = plans
    values = values_of(robot, curvature)
    program = equations_of(curvature, False).trace(base.USUAL)
    found = interpret(program, {k: x[None] for k, x in values.items()})["result"][0]
    n = sum(len(span) for span in curvature.spans)
    H = np.empty((n, n))
    start = 0
    for rows in curvature.spans:
        for columns in curvature.spans:
            size = len(rows) * len(columns)
            block = found[start : start + size].reshape(len(rows), -1)
            H[rows.start : rows.stop, columns.start : columns.stop] = block
            start += size
    with mpmath.workdps(50):
        exact = {k: [mpmath.mpf(float(v)) for v in x] for k, x in values.items()}
        for b in directions:
            right = np.array(gradient_differences(gradient, exact, b), float)
            assert np.abs(H[:, b] - right).max() <= ROUNDING * np.abs(H).max(), b


@pytest.mark.parametrize("name", ["puma560", pytest.param("iiwa14", marks=pytest.mark.full)])
def test_curvature_of_torques_costs_little(name: str) -> None:
    robot = lw.load(name)
    whole = robot.derivative("inverse_dynamics", order=2, weighted=True).operation_count.total
    assert whole <= 4 * robot.operation_count("inverse_dynamics_derivatives").total


# -- calls ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def state() -> np.ndarray:
    return np.random.default_rng(5).uniform(-2, 2, (3, 4, 6))


def close(a: Any, b: Any, limit: float = 1e-12) -> None:
    assert a.shape == b.shape
    assert np.abs(a - b).max() <= limit * max(np.abs(b).max(), 1.0)


def test_what_derivatives_return(state: np.ndarray) -> None:
    robot, (q, qd, _) = lw.load("puma560"), state
    of_pose = robot.derivative("forward_kinematics", wrt="q", frame="link6")
    close(of_pose(q), robot.jacobian(q, "link6"))
    out = np.empty((4, 6, 6))
    assert of_pose(q, out=out) is out and (out == of_pose(q)).all()
    assert (of_pose(q[1]) == out[1]).all()
    assert of_pose(q.astype(np.float32)).dtype == np.float32
    energy = robot.derivative(robot.kinetic_energy, value=True)
    (T, (by_q, by_qd)), bits = energy(q[:, None], qd, status=True)
    assert T.shape == (4, 4) and by_q.shape == (4, 4, 6) and not bits.any()
    close(by_qd[1, 2], robot.mass_matrix(q[1]) @ qd[2])
    again = pickle.loads(pickle.dumps(energy))
    assert (again(q, qd)[1][0] == energy(q, qd)[1][0]).all()
    assert repr(again) == "<derivative of kinetic_energy by q, qd, of 'puma560'>"
    gone = np.array([np.nan, *q[0][1:]])
    assert np.isnan(energy(gone, qd[0])[1][1]).all()


def test_products_are_those_with_the_matrices(state: np.ndarray) -> None:
    robot, (q, qd, u) = lw.load("puma560"), state
    value, parts = robot.derivative("centroidal_momentum", value=True)(q, qd)
    same, change = robot.jvp("centroidal_momentum", (q, qd), (u, None))
    close(same, value)
    close(change, np.einsum("nik,nk->ni", parts[0], u))
    weights = np.random.default_rng(2).normal(size=6)
    _, gradients = robot.vjp("centroidal_momentum", {"q": q, "qd": qd}, weights)
    for gradient, part in zip(gradients, parts, strict=True):
        close(gradient, np.einsum("i,nik->nk", weights, part))
    _, alone = robot.vjp("centroidal_momentum", (q, qd), weights, wrt="qd")
    close(alone, gradients[1])


def test_second_derivatives_by_rows_weights_and_vectors_agree(state: np.ndarray) -> None:
    robot, (q, v, _) = lw.load("puma560"), state
    value, first, full = robot.derivative("gravity_torque", "q", order=2, value=True)(q)
    close(value, robot.gravity_torque(q))
    close(first, robot.derivative("gravity_torque", "q")(q))
    assert full.shape == (4, 6, 6, 6)
    weights = np.arange(6.0)
    weighted = robot.derivative("gravity_torque", "q", order=2, weighted=True)
    close(weighted(q, weights), np.einsum("i,nijk->njk", weights, full))
    (gradient,), (change,) = robot.hvp("gravity_torque", (q,), weights, (v,))
    close(gradient, np.einsum("i,nij->nj", weights, first))
    close(change, np.einsum("i,nijk,nk->nj", weights, full, v))
    (tensor,), bits = robot.derivative("potential_energy", order=2)(q, status=True)
    close(tensor[0], first)
    assert bits.shape == (4,) and not bits.any()


def test_wrenches_are_arguments(state: np.ndarray) -> None:
    robot, (q, qd, u) = lw.load("puma560"), state
    made = robot.derivative("inverse_dynamics", wrt=("f_ext", "qdd"), f_ext=["link6", "link3"])
    wrenches = {"link3": np.ones(6), "link6": np.zeros(6)}
    by_wrench, M = made(q, qd, u, f_ext=wrenches)
    assert by_wrench.shape == (4, 6, 2, 6)
    close(by_wrench[:, :, 0], -robot.jacobian(q, "link6").swapaxes(1, 2))
    close(by_wrench[:, :, 1], -robot.jacobian(q, "link3").swapaxes(1, 2))
    close(M, robot.mass_matrix(q))
    push = {"link3": np.ones(6), "link6": 2 * np.ones(6)}
    _, change = robot.jvp("inverse_dynamics", (q, qd, u), {"f_ext": push}, f_ext=wrenches)
    close(change, np.einsum("nikj,kj->ni", by_wrench, [push["link6"], push["link3"]]))


def test_constants_are_arguments(state: np.ndarray) -> None:
    robot, (q, qd, u) = lw.load("puma560"), state
    of_inertia = robot.parametric("inertia").derivative("inverse_dynamics", wrt="inertia")
    found = of_inertia(q, qd, u)
    assert found.shape == (4, 6, 6, 10)
    close(found.reshape(4, 6, 60), robot.regressor(q, qd, u))
    moon = robot.parametric("gravity").derivative("gravity_torque", ("q", "gravity"))
    by_q, by_gravity = moon(q, gravity=(0.0, 0.0, -1.62))
    close(by_gravity @ [0.0, 0.0, -9.81], robot.gravity_torque(q))
    close(by_q, robot.with_gravity((0, 0, -1.62)).derivative("gravity_torque", "q")(q))


def test_tensors_come_back_as_tensors(state: np.ndarray) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch (pip install torch) is not installed")
    robot, (q, qd, _) = lw.load("puma560"), state
    for options in ({}, {"order": 2}):
        made = robot.derivative("gravity_torque", "q", **options)
        assert (made(torch.from_numpy(q)).numpy() == made(q)).all()
    energy, (by_q, _) = robot.vjp(
        "kinetic_energy", (torch.from_numpy(q), torch.from_numpy(qd)), 1.0
    )
    assert isinstance(energy, torch.Tensor) and isinstance(by_q, torch.Tensor)


def test_float32_stays(state: np.ndarray) -> None:
    robot, (q, qd, _) = lw.load("puma560"), state.astype(np.float32)
    value, (by_q, by_qd) = robot.vjp("kinetic_energy", (q, qd), 1.0)
    assert value.dtype == by_q.dtype == by_qd.dtype == np.float32
    assert robot.derivative("potential_energy", "q", order=2)(q).dtype == np.float32


@pytest.mark.full
def test_constants_of_every_kind_have_derivatives(state: np.ndarray) -> None:
    robot, (q, qd, u) = lw.load("puma560"), state
    rng, h = np.random.default_rng(1), 1e-6
    kinds = ("inertia", "gravity", "rotor", "friction", "placement", "payload")
    for name in kinds:
        one = robot.parametric(payload="link6") if name == "payload" else robot.parametric(name)
        found = one.derivative("forward_dynamics", name)(q, qd, u)
        own = one._calls.tasks.parameters[0].value(one.tree)
        way = rng.normal(size=own.shape)
        two = [one.forward_dynamics(q, qd, u, **{name: own + s * h * way}) for s in (1, -1)]
        along = np.tensordot(found, way, way.ndim)
        close(along, (two[0] - two[1]) / (2 * h), 1e-6)


@pytest.mark.full
def test_damping_is_an_argument(state: np.ndarray) -> None:
    robot, q = lw.load("puma560"), state[0]
    made = robot.derivative("operational_inertia", "damping", frame="link6", damped=True)
    lam = robot.operational_inertia(q, "link6", damping=0.1)
    close(made(q, damping=0.1), -np.einsum("nik,nkj->nijk", lam, lam), 1e-10)


# -- against Pinocchio ----------------------------------------------------------------------------


def test_derivatives_are_pinocchios(state: np.ndarray) -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio (pip install pin) is not installed")
    robot, (q, qd, u) = lw.load("puma560"), state
    model = pinocchio_model(robot)
    data = model.createData()
    swap = [3, 4, 5, 0, 1, 2]  # (linear, angular) there
    gravity = robot.derivative("gravity_torque", "q")(q)
    momentum, rate = robot.derivative("centroidal_momentum")(q, qd)
    for k in range(len(q)):
        close(gravity[k], pin.computeGeneralizedGravityDerivatives(model, data, q[k]))
        dh, _, _, A = pin.computeCentroidalDynamicsDerivatives(model, data, q[k], qd[k], u[k])
        close(momentum[k], dh[swap])
        close(rate[k], A[swap])


@pytest.mark.full
def test_the_change_of_a_jacobian_is_pinocchios(state: np.ndarray) -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio (pip install pin) is not installed")
    robot, q = lw.load("puma560"), state[0]
    model = pinocchio_model(robot)
    data = model.createData()
    found = robot.derivative("jacobian", "q", frame="joint6")(q)
    for k in range(len(q)):
        pin.computeJointJacobians(model, data, q[k])
        pin.computeJointKinematicHessians(model, data)
        H = pin.getJointKinematicHessian(model, data, 6, pin.LOCAL_WORLD_ALIGNED)
        close(found[k], H.transpose()[[3, 4, 5, 0, 1, 2]])  # axes as Eigen's tensors have them


def test_steps_on_the_manifold_are_pinocchios() -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio (pip install pin) is not installed")
    robot = lw.Builder("body").link("body", mass=1.0, inertia=(0.1, 0.1, 0.1)).joint(
        "free", "free", parent="base", child="body").build()  # fmt: skip
    model = pin.Model()
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "free")
    q0, q1, v = (
        robot.random_q(seed=1),
        robot.random_q(seed=2),
        np.random.default_rng(3).normal(size=6),
    )
    there = [np.r_[x[4:], x[1:4], x[:1]] for x in (q0, q1)]
    swap = np.ix_([3, 4, 5, 0, 1, 2], [3, 4, 5, 0, 1, 2])
    ours = robot.derivative("integrate", wrt=("q", "v"))(q0, v)
    theirs = pin.dIntegrate(model, there[0], v[[3, 4, 5, 0, 1, 2]])
    for a, b in zip(ours, theirs, strict=True):
        close(a, b[swap])
    for a, b in zip(robot.derivative("difference")(q0, q1), pin.dDifference(model, *there),
                    strict=True):  # fmt: skip
        close(a, b[swap], 1e-11)


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("mas_matrix",), {}, "function 'mas_matrix': robot 'puma560' has no such function; did"),
        (("rnea",), {}, "function 'rnea': is a method; expected 'inverse_dynamics', with method="),
        (("mass_matrix", "qd"), {}, "'qd' is no argument of it, which takes q; did you mean 'q'"),
        (("bias", "inertia"), {}, r"robot.parametric\('inertia'\) makes it one"),
        (("bias", "f_ext"), {}, r"name the frames that wrenches act on, f_ext=\['tool'\]"),
        (("operational_inertia", "damping"), {"frame": "link6"}, "damped=True makes it one"),
        (("mass_matrix",), {"mode": "both"}, "mode 'both': expected 'auto', 'forward' or"),
        (("mass_matrix",), {"order": 3}, "order is 3; expected 1 or 2"),
        (("mass_matrix", ()), {}, "wrt names no argument; expected one or several"),
        (("kic",), {}, "returns two results; expected 'jacobian' or 'kinematic_hessian'"),
        (("forward_kinematics",), {}, "expected a frame"),
        (("forward_kinematics",), {"frame": "link6", "axes": "body"}, "takes no axes"),
        (("delassus",), {}, "the robot has no closed loops"),
        (("bias",), {"damped": True}, "takes no damping"),
        (("bias", ("q", "q")), {}, "wrt names 'q' twice; expected each argument once"),
        (("bias",), {"f_ext": ["link6", "link6"]}, "f_ext names frame 'link6' twice"),
        (("mass_matrix",), {"f_ext": "link6"}, "mass_matrix: f_ext names 'link6'; this function"),
        (("bias",), {"order": 2, "mode": "forward"}, "are always found in reverse"),
    ],
)  # fmt: skip
def test_mistakes_are_named(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lw.load("puma560").derivative(*arguments, **options)


def test_mistakes_of_calls_are_named(state: np.ndarray) -> None:
    robot, (q, qd, _) = lw.load("puma560"), state
    made = robot.derivative("bias", "q", f_ext="link6")
    with pytest.raises(TypeError, match=r"bias: was given 1 array\(s\); expected q, qd"):
        made(q, f_ext={"link6": np.zeros(6)})
    with pytest.raises(ValueError, match="no frame; expected the frames that it was made for: 'l"):
        made(q, qd)
    with pytest.raises(TypeError, match="f_ext is a list; expected a mapping"):
        made(q, qd, f_ext=[1])
    with pytest.raises(ValueError, match=r"derivative of mass_matrix: q has shape \(4, 5\)"):
        robot.derivative("mass_matrix")(q[:, :5])
    with pytest.raises(ValueError, match=r"out has shape \(6, 6\).*expected \(..., 6, 6, 6\)"):
        robot.derivative("mass_matrix", "q")(q[0], out=np.empty((6, 6)))
    with pytest.raises(ValueError, match=r"damping is 1\.0; expected none"):
        robot.derivative("mass_matrix")(q, damping=1.0)
    with pytest.raises(TypeError, match=r"tangents: was given 1 part\(s\); expected a tuple \(q,"):
        robot.jvp("bias", (q, qd), (q,))
    with pytest.raises(ValueError, match="tangents has 'tau'; expected some of 'q', 'qd'"):
        robot.jvp("bias", (q, qd), {"tau": q})
    with pytest.raises(ValueError, match="tangents has no arrays; expected one or several"):
        robot.jvp("bias", (q, qd), (None, None))
    with pytest.raises(ValueError, match=r"vjp of bias: cotangent has shape \(4, 5\); e"):
        robot.vjp("bias", (q, qd), q[:, :5])
    with pytest.raises(TypeError, match="function is 3; expected its name"):
        robot.derivative(3)
    with pytest.raises(TypeError, match="wrt is 3; expected the name of an argument, such as 'q'"):
        robot.derivative("bias", 3)
    with pytest.raises(TypeError, match=r"was given 0 array\(s\); expected .* at last, weights"):
        robot.derivative("bias", weighted=True)()


def test_repeated_products_are_checked_as_the_first_one() -> None:
    """Arrays that would be enough, in the wrong arguments, and names in a list, after a usual call;
    numbers are numbers.
    """
    robot, q = lw.load("puma560"), np.full((4, 6), 0.1) * np.arange(4.0)[:, None]
    robot.jvp("bias", tuple(q[:2]), tuple(q[2:]))
    for count in (0, 1, 3, 4):
        with pytest.raises(TypeError, match=r"was given \d part\(s\); expected a tuple \(q, qd\)"):
            robot.jvp("bias", tuple(q[:count]), tuple(q[count:]))
    for wrt in (["q"], ("q",), "q"):
        for function in ("bias", robot.bias):
            _, found = robot.vjp(function, (q[1], q[2]), q[3], wrt=wrt)
            (alone,) = (found,) if isinstance(wrt, str) else found
            np.testing.assert_array_equal(alone, robot.vjp("bias", (q[1], q[2]), q[3])[1][0])
    for _ in range(2):
        value, change = robot.jvp("kinetic_energy", (q[0], q[1]), (q[2], q[3]))
        assert type(value) is type(change) is np.float64


def test_what_does_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linkwise.differentiation.equations.free_memory", lambda: 1_000_000)
    robot = lw.load("puma560")
    with pytest.raises(ProgramTooLarge, match=r"robot\.jvp, robot\.vjp"):
        robot.derivative("mass_matrix_inverse", "q", mode="forward")(np.zeros(6))


def test_constants_of_products_are_keywords() -> None:
    robot = lw.load("puma560").parametric("gravity")
    inputs = {"q": np.ones(6), "gravity": [0.0, 0.0, 0.0]}
    with pytest.raises(
        ValueError, match=r"inputs has 'gravity'; expected it as a keyword, gravity="
    ):
        robot.jvp("gravity_torque", inputs, {"q": np.ones(6)})
