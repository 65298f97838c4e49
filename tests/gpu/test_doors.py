"""`lw.torch` and `lw.jax` on a GPU: the bits of the CPU, derivatives, transformations, compilers.

python -m pytest -m "" --noconftest tests/gpu/test_doors.py
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import linkwise as lw

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # other tests need memory too
torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

# what PyTorch's own forward mode says of itself when it is first used
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
ROBOTS = {"arm": lambda: lw.load("puma560"), "flying": lambda: lw.load("puma560").with_free_base()}


def states(robot: lw.Robot, rows: int, dtype: str = "float64") -> list[Any]:
    rng = np.random.default_rng(0)
    both = (rng.normal(size=(rows, robot.nv)) for _ in range(2))
    return [x.astype(dtype) for x in (robot.random_q(rng, size=rows), *both)]


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
class TestTorch:
    def test_values_and_gradients(self, name: str, dtype: str) -> None:
        robot = ROBOTS[name]()
        f, values = lw.torch.forward_dynamics(robot), states(robot, 1000, dtype)
        found = []
        for device in ("cuda", "cpu"):
            given = [torch.from_numpy(x).to(device).requires_grad_() for x in values]
            y = f(*given)
            assert y.device.type == device and str(y.dtype) == f"torch.{dtype}"
            gradients = torch.autograd.grad((y * y).sum(), given)
            assert all(g.device.type == device for g in gradients)
            found.append([x.detach().cpu().numpy() for x in (y, *gradients)])
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_array_equal(ours, theirs)

    def test_transformations(self, name: str, dtype: str) -> None:
        robot = ROBOTS[name]()
        f = lw.torch.forward_dynamics(robot)
        given = [torch.from_numpy(x).cuda() for x in states(robot, 5, dtype)]
        loose = 1e-9 if dtype == "float64" else 3e-3
        inverse = robot.mass_matrix_inverse(given[0].double().cpu().numpy())
        for jacobian in (torch.func.jacrev, torch.func.jacfwd):
            by_tau = torch.func.vmap(jacobian(f, argnums=2))(*given)
            close(by_tau.cpu().numpy(), inverse, loose)
        graph = torch.compile(lambda *x: f(*x) * 2, backend="aot_eager", fullgraph=True)
        assert torch.equal(graph(*given), 2 * f(*given))


def test_torch_gradients_of_gradients() -> None:
    robot = lw.load("puma560")
    given = [torch.from_numpy(x).cuda().requires_grad_() for x in states(robot, 1)]
    assert torch.autograd.gradgradcheck(lw.torch.inverse_dynamics(robot), given)


def test_torch_on_another_stream() -> None:
    robot = lw.load("puma560")
    f, stream = lw.torch.forward_dynamics(robot), torch.cuda.Stream()
    given = [torch.from_numpy(x).cuda() for x in states(robot, 100_000)]
    expected = f(*given)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        later = [x + 0.0 for x in given]
        found = f(*later)
    stream.synchronize()
    assert torch.equal(found, expected)


class TestJax:
    @pytest.fixture(autouse=True)
    def jax(self) -> Any:
        jax = pytest.importorskip("jax")
        if jax.default_backend() != "gpu":
            pytest.skip("JAX without a GPU")
        jax.config.update("jax_enable_x64", True)
        return jax

    @pytest.mark.parametrize("name", ROBOTS)
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_values(self, jax: Any, name: str, dtype: str) -> None:
        robot = ROBOTS[name]()
        values = states(robot, 1000, dtype)
        f, expected = lw.jax.forward_dynamics(robot), robot.forward_dynamics(*values)
        for way in (f, jax.jit(f), jax.jit(jax.vmap(f))):
            found = way(*values)
            assert found.devices() == {jax.devices()[0]} and found.dtype == dtype
            np.testing.assert_array_equal(found, expected)
        twice = jax.vmap(jax.vmap(f))(*(x.reshape(10, 100, -1) for x in values))
        np.testing.assert_array_equal(twice.reshape(expected.shape), expected)
        with jax.default_device(jax.devices("cpu")[0]):
            np.testing.assert_array_equal(jax.jit(f)(*values), expected)
        assert f(*(x[:0] for x in values)).shape == (0, robot.nv)

    def test_derivatives(self, jax: Any) -> None:
        robot = lw.load("puma560")
        f, given = lw.jax.forward_dynamics(robot), states(robot, 50)
        inverse = robot.mass_matrix_inverse(given[0])
        for jacobian in (jax.jacrev, jax.jacfwd):
            close(jax.jit(jax.vmap(jacobian(f, argnums=2)))(*given), inverse)
        loss = jax.grad(lambda q, qd, tau: (f(q, qd, tau) ** 2).sum())
        second = jax.jit(jax.vmap(jax.hessian(lambda q, qd, tau: (f(q, qd, tau) ** 2).sum())))
        assert second(*given).shape == (50, 6, 6)
        tangents = jax.jit(lambda *x: jax.jvp(f, x, x))(*given)[1]
        with jax.default_device(jax.devices("cpu")[0]):
            close(jax.jit(loss)(*given), np.asarray(loss(*given)))
            close(np.asarray(tangents), np.asarray(jax.jvp(f, tuple(given), tuple(given))[1]))

    def test_scan_in_one_graph(self, jax: Any) -> None:
        """Many launches in one computation, which XLA may record and repeat."""
        robot = lw.load("puma560")
        f, (q, qd, tau) = lw.jax.forward_dynamics(robot), states(robot, 64)

        def step(x: Any, _: Any) -> Any:
            rate = x[1] + 1e-3 * f(x[0], x[1], tau)
            return (x[0] + 1e-3 * rate, rate), None

        run = jax.jit(lambda x: jax.lax.scan(step, x, None, length=100))
        for _ in range(3):
            (found, _), _ = run((q, qd))
        for _ in range(100):
            qd = qd + 1e-3 * robot.forward_dynamics(q, qd, tau)
            q = q + 1e-3 * qd
        np.testing.assert_allclose(found, q, rtol=1e-11, atol=1e-11)

        def chained(q: Any, qd: Any, tau: Any) -> Any:
            for _ in range(6):
                qd = qd + 1e-3 * f(q, qd, tau)
            return qd

        once = jax.jit(chained)
        first = [np.asarray(once(q, qd, tau)) for _ in range(4)]
        assert all((x == first[0]).all() for x in first)
