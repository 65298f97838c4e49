"""JAX on the CPU: the bits of the NumPy call under jit, vmap, scan; grad, jvp; errors.

`tests/gpu/test_doors.py` has the same on a GPU.
"""

import copy
import ctypes
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import NoProgram


@pytest.fixture
def jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax


@pytest.fixture
def state(jax, rng):
    robot = lw.load("puma560")
    return robot, (robot.random_q(rng, size=5), rng.normal(size=(5, 6)), rng.normal(size=(5, 6)))


def test_arrays_have_the_bits_of_numpy(state, jax):
    robot, values = state
    f, expected = lw.jax.forward_dynamics(robot), robot.forward_dynamics(*values)
    for way in (f, jax.jit(f), jax.vmap(f), jax.jit(jax.vmap(f))):
        np.testing.assert_array_equal(way(*values), expected)
    shared = jax.vmap(f, in_axes=(0, None, 0))(values[0], values[1][0], values[2])
    np.testing.assert_array_equal(
        shared, robot.forward_dynamics(values[0], values[1][0], values[2])
    )
    single = lw.jax.mass_matrix(robot)(values[0].astype("float32"))
    assert single.dtype == "float32" and single.shape == (5, 6, 6)


def test_derivatives(state, jax):
    robot, (q, qd, tau) = state
    f = lw.jax.forward_dynamics(robot)
    by_tau = jax.jit(jax.jacrev(f, argnums=2))(q[0], qd[0], tau[0])
    np.testing.assert_allclose(by_tau, robot.mass_matrix_inverse(q[0]), rtol=1e-9, atol=1e-11)
    forward = jax.jacfwd(f, argnums=0)(q[0], qd[0], tau[0])
    backward = jax.jacrev(f, argnums=0)(q[0], qd[0], tau[0])
    np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-9)
    h = 1e-5 * np.eye(6)
    near = [robot.forward_dynamics(q[0] + s * h, qd[0], tau[0]) for s in (1, -1)]
    np.testing.assert_allclose(forward, ((near[0] - near[1]) / 2e-5).T, rtol=1e-4, atol=1e-4)


def test_scan(state, jax):
    robot, (q, qd, tau) = state
    f = lw.jax.forward_dynamics(robot)

    def step(x, _):
        rate = x[1] + 1e-3 * f(x[0], x[1], tau)
        return (x[0] + 1e-3 * rate, rate), None

    (q1, _), _ = jax.jit(lambda x: jax.lax.scan(step, x, None, length=3))((q, qd))
    for _ in range(3):
        qd = qd + 1e-3 * robot.forward_dynamics(q, qd, tau)
        q = q + 1e-3 * qd
    np.testing.assert_allclose(q1, q, rtol=1e-13)


def test_gradients_through_a_scan(state, jax):
    """Of where three steps lead, by where they began: reverse and forward modes agree."""
    robot, (q, qd, tau) = (state[0], (x[0] for x in state[1]))
    f = lw.jax.inverse_dynamics(robot)

    def end(q):
        step = lambda x, _: (x + 1e-2 * f(x, qd, tau), None)  # noqa: E731
        return jax.lax.scan(step, q, None, length=3)[0]

    forward, backward = jax.jit(jax.jacfwd(end))(q), jax.jit(jax.jacrev(end))(q)
    np.testing.assert_allclose(forward, backward, rtol=1e-10, atol=1e-10)
    _, along = jax.jvp(end, (q,), (qd,))
    np.testing.assert_allclose(along, forward @ qd, rtol=1e-10, atol=1e-10)


@pytest.mark.full
def test_second_order_in_every_mode(state, jax):
    robot, (q, qd, tau) = (state[0], (x[0] for x in state[1]))
    f = lw.jax.forward_dynamics(robot)

    def loss(q):
        return (f(q, qd, tau) ** 2).sum()

    forward, backward = jax.jacfwd, jax.jacrev
    expected = forward(backward(loss))(q)
    for outer, inner in ((forward, forward), (backward, forward), (backward, backward)):
        np.testing.assert_allclose(outer(inner(loss))(q), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.full
def test_second_order(state, jax):
    """The Hessian of the potential energy is the derivative of the torque of gravity."""
    robot, (q, _, _) = state
    energy, torque = (lw.jax.function(robot, f"{name}") for name in
                      ("potential_energy", "gravity_torque"))  # fmt: skip
    np.testing.assert_allclose(jax.hessian(energy)(q[0]), jax.jacfwd(torque)(q[0]), atol=1e-11)


def test_mistakes_are_told(state, jax):
    robot, (q, qd, tau) = state
    f = lw.jax.forward_dynamics(robot)
    with pytest.raises(TypeError, match=r"was given 2 array\(s\); expected q, qd, tau"):
        f(q, qd)
    with pytest.raises(ValueError, match=r"qd has shape \(5, 5\); expected \(\.\.\., 6\)"):
        f(q, qd[:, :5], tau)
    with pytest.raises(NotImplementedError, match=r"\[.*\] is not linear: jax.linear_transpose"):
        jax.linear_transpose(lambda tau: f(q, qd, tau), tau)(tau)
    with pytest.raises(TypeError, match="expected q, qd, tau, f_ext_link6"):
        lw.jax.forward_dynamics(robot, f_ext=["link6"])(q, qd, tau)
    with pytest.raises(ValueError, match="no such function; did you mean 'mass_matrix'"):
        lw.jax.function(robot, "mass_matrx")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool", "complex128"])
def test_dtypes_that_plain_calls_refuse_are_refused(dtype, state, jax):
    robot, (q, _, _) = state
    with pytest.raises(TypeError, match=f"mass_matrix: q has dtype {dtype}; expected float32, "):
        lw.jax.mass_matrix(robot)(jax.numpy.asarray(q).astype(dtype))


def test_masks_values_and_rolled_code_are_refused(state, jax):
    robot, (q, qd, tau) = state
    with pytest.raises(TypeError, match="mask"):
        lw.jax.mass_matrix(robot)(np.ma.masked_array(q, q > 0))
    with pytest.raises(TypeError, match=r"given 3 more .*; expected lw\.jax\.forward_dynamics"):
        lw.jax.forward_dynamics(robot, q, qd, tau)
    with pytest.raises(NoProgram, match=r"with_codegen\('unrolled'\)"):
        lw.jax.forward_dynamics(robot.with_codegen("rolled"))


def test_integers_are_computed_with_as_floats(state, jax):
    """In the number type of Python's floats, which is float64 here, as the NumPy call has it."""
    robot, _ = state
    whole = [0, 1, 0, -1, 0, 2]
    found = lw.jax.mass_matrix(robot)(whole)
    assert found.dtype == "float64"
    pose = lw.jax.forward_kinematics(robot, "link6")(whole)
    np.testing.assert_array_equal(pose, robot.forward_kinematics(whole, "link6"))
    np.testing.assert_array_equal(found, robot.mass_matrix(whole))


def test_a_kernel_without_memory_is_an_error_of_xla(state, jax, monkeypatch):
    """It counts that it got none, and has written nothing."""
    from linkwise.backends.llvm.sites import lacked
    from linkwise.interop.derived import Node

    robot, (q, *_) = state
    kernel = Node.kernel

    def failing(*_):
        lacked.value += 1

    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)(failing)

    def without_memory(self, *which):
        found = copy.copy(kernel(self, *which))
        found.address = ctypes.cast(entry, ctypes.c_void_p).value
        return found

    monkeypatch.setattr(Node, "kernel", without_memory)
    with pytest.raises(Exception, match="out of memory: could not allocate the scratch buffer"):
        jax.block_until_ready(lw.jax.mass_matrix(robot)(q))
    monkeypatch.undo()
    assert np.isfinite(lw.jax.mass_matrix(robot)(q)).all()


def test_methods_point_to_the_door(state, jax):
    robot, (q, _, _) = state
    with pytest.raises(TypeError, match=r"inside jax\.jit, .* or a function of lw\.jax"):
        jax.jit(robot.mass_matrix)(q)


def test_a_missing_package_tells_how_to_install_it(monkeypatch):
    lw.jax._jax.cache_clear()
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(lw.BackendUnavailable, match=r"lw\.jax needs jax, .* pip install"):
        lw.jax.forward_dynamics(lw.load("puma560"))
