"""PyTorch: the bits of the NumPy call, gradients of two orders, torch.func, compile, and errors."""

import gc
import sys
import weakref

import numpy as np
import pytest

import linkwise as lw
from linkwise.engine.tasks import Key


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def state(torch, rng):
    robot = lw.load("puma560")
    values = (robot.random_q(rng, size=3), rng.normal(size=(3, 6)), rng.normal(size=(3, 6)))
    return robot, [torch.from_numpy(x).requires_grad_() for x in values]


def test_tensors_have_the_bits_of_numpy(state, torch):
    robot, values = state
    arrays = [x.detach().numpy() for x in values]
    found = lw.torch.forward_dynamics(robot)(*values)
    np.testing.assert_array_equal(found.detach().numpy(), robot.forward_dynamics(*arrays))
    single = lw.torch.mass_matrix(robot)(values[0].float())
    assert single.dtype == torch.float32 and single.shape == (3, 6, 6)
    poses = lw.torch.forward_kinematics(robot, "link6")(values[0][0])
    assert poses.shape == (4, 4)


def test_gradients(state, torch):
    robot, values = state
    f = lw.torch.forward_dynamics(robot)
    assert torch.autograd.gradcheck(f, values)
    by_tau = torch.autograd.grad(f(*values)[0, 2], values[2])[0][0]
    inverse = robot.mass_matrix_inverse(values[0][0].detach().numpy())
    np.testing.assert_allclose(by_tau.numpy(), inverse[2], rtol=1e-10, atol=1e-12)
    energy = lw.torch.function(robot, "potential_energy")(values[0]).sum()
    (torque,) = torch.autograd.grad(energy, values[0])
    expected = robot.gravity_torque(values[0].detach().numpy())
    np.testing.assert_allclose(torque.numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.full
def test_gradients_of_gradients(state, torch):
    robot, values = state
    one = [x[:1].detach().requires_grad_() for x in values]
    assert torch.autograd.gradgradcheck(lw.torch.forward_dynamics(robot), one)
    assert torch.autograd.gradgradcheck(lw.torch.inverse_dynamics(robot), one)


# what PyTorch's own forward mode says of itself when it is first used
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_transformations_of_functions(state, torch):
    robot, values = state
    f, func = lw.torch.inverse_dynamics(robot), torch.func
    q, qd, qdd = (x.detach() for x in values)
    masses = robot.mass_matrix(q.numpy())
    for jacobian in (func.jacrev, func.jacfwd):
        by_qdd = func.vmap(jacobian(f, argnums=2))(q, qd, qdd)
        np.testing.assert_allclose(by_qdd.numpy(), masses, rtol=1e-12, atol=1e-13)

    def loss(q, qd, qdd):
        return (f(q, qd, qdd) ** 2).sum()

    (usual,) = torch.autograd.grad(loss(*values), values[0])
    torch.testing.assert_close(func.vmap(func.grad(loss))(q, qd, qdd), usual)
    _, along = func.jvp(lambda q: f(q, qd, qdd), (q,), (qd,))
    torch.testing.assert_close((func.jacrev(f)(q[0], qd[0], qdd[0]) @ qd[0]), along[0])


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_transformations_of_second_order(state, torch):
    robot, values = state
    f = lw.torch.function(robot, "potential_energy")
    q = values[0][0].detach()
    stiffness = torch.func.hessian(f)(q)
    torque = lw.torch.function(robot, "gravity_torque")
    torch.testing.assert_close(stiffness, torch.func.jacrev(torque)(q))


def test_leading_axes_broadcast(state, torch):
    robot, (q, qd, tau) = state
    f = lw.torch.forward_dynamics(robot)
    f(q, qd[0], tau).sum().backward()
    assert qd.grad.shape == (3, 6) and not qd.grad[1:].any()
    mapped = torch.vmap(f, in_dims=(0, None, 0))(q, qd[0], tau)
    assert torch.equal(mapped, f(q, qd[0], tau))


def test_compile_does_not_break(state, torch):
    robot, values = state
    f = lw.torch.forward_dynamics(robot)

    def loss(q, qd, tau):
        return (f(torch.sin(q), qd, tau) ** 2).sum()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    ours = torch.autograd.grad(compiled(*values), values)
    for a, b in zip(ours, torch.autograd.grad(loss(*values), values), strict=True):
        torch.testing.assert_close(a, b)


def test_mistakes_are_told(state):
    robot, values = state
    f = lw.torch.forward_dynamics(robot)
    with pytest.raises(TypeError, match=r"was given 2 tensor\(s\); expected q, qd, tau"):
        f(*values[:2])
    with pytest.raises(TypeError, match=r"qd is a list; expected a torch\.Tensor"):
        f(values[0], [0.0] * 6, values[2])
    with pytest.raises(ValueError, match=r"tau has shape \(3, 5\); expected \(\.\.\., 6\)"):
        f(*values[:2], values[2][:, :5])
    push = lw.torch.forward_dynamics(robot, f_ext="link6")
    with pytest.raises(TypeError, match=r"expected q, qd, tau, f_ext_link6"):
        push(*values)
    with pytest.raises(ValueError, match=r"\[pcg\]: an iteration has no derivatives here"):
        lw.torch.forward_dynamics(robot, method="pcg")


def test_methods_point_to_the_door(state, torch):
    robot, values = state
    with pytest.raises(TypeError, match=r"q\.detach\(\), or a function of lw\.torch, which does"):
        robot.forward_dynamics(*values)
    with pytest.raises(TypeError, match=r"inside torch\.vmap .* or a function of lw\.torch"):
        torch.vmap(robot.mass_matrix)(values[0].detach())


def test_a_missing_package_tells_how_to_install_it(monkeypatch):
    lw.torch._torch.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(lw.BackendUnavailable, match=r"lw\.torch needs torch, .* pip install"):
        lw.torch.forward_dynamics(lw.load("puma560"))


def test_nothing_is_kept_of_robots_that_are_gone(state, torch):
    """One operator for each number of arguments, whichever robot they are of."""
    from linkwise.interop import torch as door

    def use(gravity):
        robot = lw.load("puma560", gravity=(0.0, 0.0, gravity))
        values = [x.detach().requires_grad_() for x in state[1]]
        f = lw.torch.inverse_dynamics(robot)
        f(*values).sum().backward()
        own = robot._calls.functions["node", Key("inverse_dynamics")]
        result = door._called(own, *values)  # as a graph of torch.compile calls it
        result.sum().backward()
        return weakref.ref(own), result.detach()

    first, before = use(-9.81)
    gc.collect()
    operators = door._operator_of.cache_info().currsize
    others = [use(-1.0 - k)[0] for k in range(3)]
    gc.collect()
    assert door._operator_of.cache_info().currsize == operators
    assert not any(node() for node in (first, *others))
    assert torch.equal(before, use(-9.81)[1])


def test_values_where_a_function_is_made_are_refused_with_the_way(state):
    robot, values = state
    with pytest.raises(TypeError, match=r"lw\.torch\.forward_dynamics\(robot\)\(q, \.\."):
        lw.torch.forward_dynamics(robot, *values)
    with pytest.raises(TypeError, match=r"lw\.torch\.forward_kinematics\(robot, frame\)\(q, \."):
        lw.torch.forward_kinematics(robot, values[0], "link6")
    with pytest.raises(TypeError, match=r"lw\.jax\.mass_matrix: was given 1 more"):
        lw.jax.mass_matrix(robot, values[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool", "complex128"])
def test_dtypes_that_plain_calls_refuse(state, torch, dtype):
    robot, (q, *_) = state
    with pytest.raises(TypeError, match=f"q has dtype {dtype}; expected float32, float64 or int"):
        lw.torch.mass_matrix(robot)(q.to(getattr(torch, dtype)))


def test_robots_in_loops_are_refused_at_once_with_the_way(torch):
    from linkwise.errors import NoProgram

    robot = lw.chain(50_000)
    for door in (lw.torch, lw.jax):
        with pytest.raises(NoProgram, match=r"expected robot\.vjp and robot\.jvp"):
            door.forward_dynamics(robot)
    small = lw.chain(3).with_codegen("rolled")
    with pytest.raises(NoProgram, match=r"robot\.with_codegen\('unrolled'\)"):
        lw.torch.forward_dynamics(small)
    q = torch.ones(3, dtype=torch.float64)
    assert lw.torch.forward_dynamics(small.with_codegen("unrolled"))(q, q, q).shape == (3,)


def test_the_message_of_a_gradient_names_a_function_that_exists(state):
    robot, (q, *_) = state
    with pytest.raises(TypeError, match=r"lw\.torch\.function\(robot, 'forward_dynamics'\)"):
        lw.simulate(robot, q, duration=0.1)
    assert callable(lw.torch.function(robot, "forward_dynamics"))
