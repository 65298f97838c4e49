"""Every door gives the numbers of the NumPy call to rounding; a quaternion has four derivatives."""

import importlib.util
import shutil

import numpy as np
import pytest

import linkwise as lw

# what PyTorch's own forward mode says of itself when it is first used
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
CASES = {
    "forward_dynamics": (("q", "qd", "tau"), {"f_ext": ["ball"]}),
    "inverse_dynamics": (("q", "qd", "qdd"), {"f_ext": ["ball", "rod"]}),
    "mass_matrix": (("q",), {}),
    "potential_energy": (("q",), {}),
    "jacobian": (("q",), {"frame": "ball"}),
}


@pytest.fixture(scope="module")
def robot():
    """A cart, a pole on it, and a spherical joint at its end."""
    b = lw.Builder("pole")
    for name in ("cart", "rod", "ball"):
        b.link(name, mass=1.0, com=(0.1, 0.2, -0.3), inertia=(0.3, 0.2, 0.25))
    b.joint("rail", "prismatic", parent="base", child="cart", axis=(1.0, 0.0, 0.0))
    b.joint("hinge", "revolute", parent="cart", child="rod", axis=(0.0, 1.0, 0.0))
    b.joint("socket", "spherical", parent="rod", child="ball")
    return b.build()


def casadi(robot, function, options, values, folder):
    pytest.importorskip("casadi")
    return robot.casadi(function, **options)(*values)


def casadi_external(robot, function, options, values, folder):
    """The C that is exported for CasADi, compiled."""
    cs = pytest.importorskip("casadi")
    text, more = _exported(function, options)
    path = robot.export(folder, text, shared=True, casadi=0, **more)[-2]
    at = options.get("frame")
    return cs.external(f"pole_{function}{f'_{at}' if at else ''}_casadi", str(path))(*values)


def c(robot, function, options, values, folder):
    text, more = _exported(function, options)
    path = robot.export(folder, text, shared=True, **more)[-1]
    spec = importlib.util.spec_from_file_location("pole", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    at = options.get("frame")
    return getattr(module, f"{function}_{at}" if at else function)(*values)


def _exported(function, options):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    frame = options.get("frame")
    text = f"{function}@{frame}" if frame else function
    return text, {"f_ext": options["f_ext"]} if "f_ext" in options else {}


def sympy(robot, function, options, values, folder):
    sp = pytest.importorskip("sympy")
    return robot.sympy(function, *([sp.Float(x, 20) for x in v] for v in values), **options)


def torch(robot, function, options, values, folder):
    torch = pytest.importorskip("torch")
    return lw.torch.function(robot, function, **options)(*map(torch.from_numpy, values))


def jax(robot, function, options, values, folder):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.jit(lw.jax.function(robot, function, **options))(*values)


@pytest.mark.parametrize("function", CASES)
@pytest.mark.parametrize("door", [casadi, casadi_external, c, sympy, torch, jax])
def test_doors_agree(door, function, robot, rng, tmp_path, monkeypatch):
    monkeypatch.setenv("CFLAGS", "-O0")
    arguments, options = CASES[function]
    values = [robot.random_q(rng), *(rng.normal(size=robot.nv) for _ in arguments[1:])]
    wrenches = {name: rng.normal(size=6) for name in options.get("f_ext", ())}
    usual = {k: v for k, v in options.items() if k != "f_ext"}
    usual |= {"f_ext": wrenches} if wrenches else {}
    expected = getattr(robot, function)(*values, **usual)
    found = door(robot, function, options, [*values, *wrenches.values()], tmp_path)
    found = np.asarray(found, float).reshape(np.shape(expected))
    tolerance = 1e3 * np.finfo(float).eps * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def by_q(door, robot, qd, tau):
    """The derivative of forward dynamics by the numbers of q, as a function of q."""
    if door == "torch":
        t = pytest.importorskip("torch")
        f = t.func.jacrev(lw.torch.forward_dynamics(robot))
        return lambda q: f(*map(t.from_numpy, (q, qd, tau))).numpy()
    if door == "jax":
        j = pytest.importorskip("jax")
        j.config.update("jax_enable_x64", True)
        g = j.jacrev(lw.jax.forward_dynamics(robot))
        return lambda q: np.asarray(g(q, qd, tau))
    pytest.importorskip("casadi")
    f = robot.casadi("forward_dynamics").jacobian()
    return lambda q: np.array(f(q, qd, tau, 0)[0])


@pytest.mark.parametrize("door", ["torch", "jax", "casadi"])
def test_a_quaternion_has_four_derivatives(door, robot, rng):
    """They are those of the normalised quaternion's function: none along it, at any length; turning
    the joint changes q by ``½ q (0, w)``, and the result as in the tangent space.
    """
    q, qd, tau = robot.random_q(rng), rng.normal(size=5), rng.normal(size=5)
    derivative = by_q(door, robot, qd, tau)
    found, p = derivative(q), q[2:]
    scale = np.abs(found).max()
    assert found.shape == (5, 6)
    np.testing.assert_allclose(found[:, 2:] @ p, 0.0, atol=1e-13 * scale)
    longer = np.concatenate((q[:2], 2.0 * p))
    np.testing.assert_allclose(2.0 * derivative(longer)[:, 2:], found[:, 2:], atol=1e-12 * scale)

    h = 1e-5
    steps = np.concatenate((q + h * np.eye(6), q - h * np.eye(6)))
    ahead, behind = np.split(robot.forward_dynamics(robot.normalize(steps), qd, tau), 2)
    np.testing.assert_allclose(found, (ahead - behind).T / (2 * h), atol=1e-8 * scale)

    w, x, y, z = p
    turned = 0.5 * np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])
    tangent = np.hstack((found[:, :2], found[:, 2:] @ turned))
    expected, _, _ = robot.forward_dynamics_derivatives(q, qd, tau)
    np.testing.assert_allclose(tangent, expected, atol=1e-11 * scale)


@pytest.mark.parametrize("door", ["torch", "jax"])
def test_constants_that_are_arguments_have_derivatives(door, robot, rng):
    """Gravity as an argument: torques are linear in it."""
    own = robot.parametric("gravity")
    q, g = robot.random_q(rng), np.array([0.3, -1.0, -9.0])
    package = pytest.importorskip(door)
    if door == "torch":
        f = lw.torch.function(own, "gravity_torque")
        slope = package.func.jacrev(f, argnums=1)(*map(package.from_numpy, (q, g))).numpy()
    else:
        package.config.update("jax_enable_x64", True)
        slope = np.asarray(package.jacrev(lw.jax.function(own, "gravity_torque"), argnums=1)(q, g))
    expected = own.gravity_torque(q, gravity=g)
    np.testing.assert_allclose(slope @ g, expected, atol=1e-12)
    with pytest.raises(TypeError, match=r"gravity_torque: was given 1 .*; expected q, gravity"):
        getattr(lw, door).function(own, "gravity_torque")(q)


@pytest.mark.parametrize("door", ["torch", "jax"])
def test_constants_have_the_shapes_of_the_numpy_call(door, robot, rng):
    """Inertias (..., n, 10), and their gradient with these axes: the regressor."""
    own, package = robot.parametric("inertia"), pytest.importorskip(door)
    q, ten = robot.random_q(rng, size=3), robot.inertial_parameters
    f = getattr(lw, door).function(own, "gravity_torque")
    if door == "torch":
        Y = package.func.jacrev(f, argnums=1)(*map(package.from_numpy, (q[0], ten))).numpy()
        tau = f(*map(package.from_numpy, (q, ten))).numpy()
    else:
        package.config.update("jax_enable_x64", True)
        Y, tau = np.asarray(package.jacrev(f, argnums=1)(q[0], ten)), np.asarray(f(q, ten))
    zero = np.zeros(robot.nv)
    np.testing.assert_allclose(Y.reshape(robot.nv, -1), robot.regressor(q[0], zero, zero),
                               atol=1e-12)  # fmt: skip
    np.testing.assert_allclose(tau, robot.gravity_torque(q), atol=1e-12)
    bodies = len(ten)
    array = package.zeros if door == "torch" else package.numpy.zeros
    with pytest.raises(
        ValueError, match=rf"inertia has shape .*; expected \(\.\.\., {bodies}, 10\)"
    ):
        f(array(robot.nq), array(10 * bodies))
    with pytest.raises(TypeError, match=r"q has dtype complex\d+; expected float32, float64"):
        f(array(robot.nq) + 0j, array((bodies, 10)))
    with pytest.raises(ValueError, match="mass_matrix: f_ext names 'nowhere'; this function takes"):
        getattr(lw, door).function(robot, "mass_matrix", f_ext="nowhere")
