"""JAX on the CPU: the bits of the NumPy call under jit, vmap, scan; grad, jvp; errors.

`tests/gpu/test_doors.py` has the same on a GPU.
"""

import copy
import ctypes
import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import linkwise as lw
from linkwise.backends.llvm import xla
from linkwise.engine.tasks import Key
from linkwise.errors import NoProgram
from linkwise.interop import jax as door
from linkwise.interop.derived import Node


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
    assert np.isfinite(lw.jax.mass_matrix(lw.load("puma560"))(q)).all()


def pendulum(gravity):
    return lw.chain(2, gravity=(0.0, 0.0, gravity))


def freed():
    """How many kernels can be freed now."""
    gc.collect()
    number = len(xla._retired)
    door._sweep()
    assert not xla._retired
    return number


USES = {
    "plain": lambda jax, f, q: f(q),
    "jit": lambda jax, f, q: jax.jit(f)(q),
    "vmap": lambda jax, f, q: jax.vmap(f)(np.stack([q, q])),
    "jacrev": lambda jax, f, q: jax.jacrev(f)(q),
    "jit of jacfwd": lambda jax, f, q: jax.jit(jax.jacfwd(f))(q),
    "scan": lambda jax, f, q: jax.lax.scan(lambda x, _: (x + f(x), None), q, None, length=2)[0],
    "lower": lambda jax, f, q: jax.jit(f).lower(q).compile()(q),
}


@pytest.mark.parametrize("use", USES)
def test_nothing_is_kept_of_robots_that_are_gone(use, jax):
    """One handler for each number of arguments, one slot after another for their kernels."""

    def run(gravity):
        robot, q = pendulum(gravity), np.array([0.3, 0.4])
        result = np.asarray(USES[use](jax, lw.jax.function(robot, "gravity_torque"), q))
        if use == "scan":  # a cache of JAX has scans outside of jit
            jax.clear_caches()
        return weakref.ref(robot._calls.functions["node", Key("gravity_torque")]), result

    jax.clear_caches()
    freed()
    entries = len(door._entries)
    first, before = run(-9.81)
    freed()
    handlers, slots = xla.handler.cache_info().currsize, len(xla._free)
    others = []
    for k in range(3):
        others.append(run(-1.0 - k)[0])
        assert freed() >= 1
    assert not any(node() for node in (first, *others)) and len(door._entries) == entries
    assert xla.handler.cache_info().currsize == handlers and len(xla._free) == slots
    np.testing.assert_array_equal(before, run(-9.81)[1])


def test_compiled_functions_outlive_their_robots(jax):
    """What is compiled before it is called, and a robot that is loaded in a function under jit."""
    jax.clear_caches()
    freed()
    entries = len(door._entries)
    q, expected = np.array([0.3, 0.4]), pendulum(-9.0).gravity_torque([0.3, 0.4])
    function = jax.jit(lambda q: lw.jax.function(pendulum(-9.0), "gravity_torque")(q))
    compiled = jax.jit(lw.jax.function(pendulum(-9.0), "gravity_torque")).lower(q).compile()
    function(q)
    jax.clear_caches()
    for _ in range(2):
        freed()
        np.testing.assert_array_equal(compiled(q), expected)
        np.testing.assert_array_equal(function(q), expected)
    np.testing.assert_allclose(jax.jacrev(function)(q), jax.jacfwd(function)(q), atol=1e-12)
    del compiled, function
    assert freed() and len(door._entries) == entries


def test_executables_that_were_read_back_are_errors_without_the_robot(jax):
    """They hold no kernel; their slot is not that of a robot that comes later."""
    serialize = pytest.importorskip("jax.experimental.serialize_executable")
    q, robot = np.array([0.3, 0.4]), pendulum(-9.0)
    function = lw.jax.function(robot, "gravity_torque")
    parts = serialize.serialize(jax.jit(function).lower(q).compile())
    compiled = serialize.deserialize_and_load(*parts)
    np.testing.assert_array_equal(compiled(q), robot.gravity_torque(q))
    del robot, function
    assert freed() and xla._free
    for gravity in (-9.0, -8.0):
        with pytest.raises(Exception, match=r"the robot of this function is gone; keep lw\.jax's"):
            jax.block_until_ready(compiled(q))
        kept = lw.jax.function(pendulum(gravity), "gravity_torque")
        np.testing.assert_array_equal(kept(q), pendulum(gravity).gravity_torque(q))


@pytest.fixture
def slow(monkeypatch):
    """Kernels run until they are told to end: events of that, and weak references to kernels."""
    begun, end, kernel, kernels = threading.Event(), threading.Event(), Node.kernel, []

    def run(*_):
        begun.set()
        assert end.wait(60)

    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)(run)

    def replaced(self, *which):
        result = copy.copy(kernel(self, *which))
        result.address = ctypes.cast(entry, ctypes.c_void_p).value
        kernels.append(weakref.ref(result))
        return result

    monkeypatch.setattr(Node, "kernel", replaced)
    yield begun, end, kernels
    end.set()


def test_calls_that_have_not_begun_keep_their_kernels(jax, slow, monkeypatch):
    """A call waits for another, and its robot is gone meanwhile."""
    begun, end, _ = slow
    q, matrix, first = np.array([0.3, 0.4]), np.eye(300), pendulum(-9.0)
    wait = lw.jax.function(first, "gravity_torque")  # what JAX deems costly, it does not wait for
    costly = jax.jit(lambda q, a: (q, wait(q + (a @ a)[0, :2]))).lower(q, matrix).compile()
    monkeypatch.undo()
    robot = pendulum(-9.0)
    expected, function = robot.gravity_torque(q), lw.jax.function(robot, "gravity_torque")
    function(q)
    freed()
    before, _ = costly(q, matrix)
    assert begun.wait(60)
    result = function(before)
    assert not result.is_ready()
    del robot, function, before
    gc.collect()
    for _ in range(2):
        assert len(xla._retired) == 1
        door._sweep()
    end.set()
    np.testing.assert_array_equal(result, expected)
    assert freed() == 1


def test_a_call_that_runs_keeps_its_kernel(jax, slow):
    """Even where nothing else does: each slot counts its calls."""
    serialize = pytest.importorskip("jax.experimental.serialize_executable")
    begun, end, kernels = slow
    freed()
    function, q = lw.jax.function(pendulum(-9.0), "gravity_torque"), np.zeros(2)
    parts = serialize.serialize(jax.jit(function).lower(q).compile())
    compiled = serialize.deserialize_and_load(*parts)
    thread = threading.Thread(target=lambda: jax.block_until_ready(compiled(q)))
    thread.start()
    assert begun.wait(60)
    del function
    gc.collect()
    for _ in range(2):
        xla.sweep(lambda: True)
        assert len(xla._retired) == 1 and kernels[0]() is not None
    end.set()
    thread.join()
    xla.sweep(lambda: True)
    assert not xla._retired and kernels[0]() is None
    with pytest.raises(Exception, match="the robot of this function is gone"):
        jax.block_until_ready(compiled(q))


def test_threads_that_call_while_robots_go(jax):
    """Robots come and go, and executables without one are called: results or errors."""
    serialize = pytest.importorskip("jax.experimental.serialize_executable")
    q, stop, seen, wrong = np.array([0.3, 0.4]), threading.Event(), set(), []
    expected = pendulum(-9.0).gravity_torque(q)
    function = lw.jax.function(pendulum(-9.0), "gravity_torque")
    parts = serialize.serialize(jax.jit(function).lower(q).compile())
    compiled = serialize.deserialize_and_load(*parts)

    def call():
        while not stop.is_set():
            try:
                same = (np.asarray(compiled(q)) == expected).all()
                wrong.extend([] if same else [q])
                seen.add("result")
            except Exception as error:
                seen.add("gone" if xla.GONE in str(error) else str(error))

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    while not seen:
        stop.wait(0.01)
    del function
    for k in range(10):
        lw.jax.function(pendulum(-1.0 - k), "gravity_torque")(q)
        gc.collect()
        door._sweep()
    stop.set()
    for thread in threads:
        thread.join()
    assert seen == {"result", "gone"} and not wrong


def test_methods_point_to_the_door(state, jax):
    robot, (q, _, _) = state
    with pytest.raises(TypeError, match=r"inside jax\.jit, .* or a function of lw\.jax"):
        jax.jit(robot.mass_matrix)(q)


def test_a_missing_package_tells_how_to_install_it(monkeypatch):
    lw.jax._jax.cache_clear()
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(lw.BackendUnavailable, match=r"lw\.jax needs jax, .* pip install"):
        lw.jax.forward_dynamics(lw.load("puma560"))
