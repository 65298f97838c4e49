"""What only a machine with a GPU can show. One command there runs this file alone:

    python -m pytest -m "" -n auto --noconftest tests/gpu

Bits are compared with the CPU's kernels where llvmlite is installed, else with their golden table.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw

cupy = pytest.importorskip("cupy")
if not cupy.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)
torch = pytest.importorskip("torch")

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE.parent / "tools"))
_spec = importlib.util.spec_from_file_location("bits", HERE / "engine" / "test_bits.py")
assert _spec is not None and _spec.loader is not None
bits = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bits)


def rows() -> list[tuple[str, str]]:
    return [(name, row) for name, table in bits.golden().items() for row in table]


@pytest.mark.parametrize(("name", "row"), rows())
def test_every_method_has_the_bits_of_the_cpu(name: str, row: str) -> None:
    robot = bits.ROBOTS[name]()
    title, dtype = row.split()
    (algorithm,) = [a for a in bits.algorithms(robot) if f"{a.function}[{a.method}]" == title]
    found = bits.results(robot, algorithm, dtype, cupy.asarray, cupy.asnumpy)
    expected = bits.golden()[name][row]
    if find_spec("llvmlite"):  # constants of a robot may round differently on another processor
        expected = bits.results(robot, algorithm, dtype)
    assert found == expected


def states(robot: lw.Robot, count: int, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    q = robot.random_q(rng, count).astype(dtype)
    return [q, *(rng.normal(size=(count, robot.nv)).astype(dtype) for _ in range(2))]


def test_round_trips_by_every_library() -> None:
    robot = lw.load("iiwa14")
    arrays = states(robot, 100)
    on = [cupy.asarray(x) for x in arrays]
    expected = cupy.asnumpy(robot.forward_dynamics(*on))
    tensors = [torch.from_numpy(x).cuda() for x in arrays]
    found = robot.forward_dynamics(*tensors)
    assert found.is_cuda and found.dtype == torch.float64
    np.testing.assert_array_equal(found.cpu().numpy(), expected)
    seen = [torch.as_tensor(x, device="cuda") for x in on]  # the same memory
    np.testing.assert_array_equal(robot.forward_dynamics(*seen).cpu().numpy(), expected)


def test_arrays_of_jax() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    robot = lw.load("iiwa14")
    arrays = states(robot, 100)
    expected = cupy.asnumpy(robot.mass_matrix(cupy.asarray(arrays[0])))
    found, flags = robot.mass_matrix(jax.numpy.asarray(arrays[0]), status=True)
    assert isinstance(found, jax.Array) and found.devices() == jax.numpy.ones(1).devices()
    np.testing.assert_array_equal(np.asarray(found), expected)
    assert not np.asarray(flags).any()
    with pytest.raises(TypeError, match="out is an array of JAX, which cannot be written"):
        robot.bias(*map(jax.numpy.asarray, arrays[:2]), out=jax.numpy.asarray(arrays[2]))


def test_anything_with_the_array_interface() -> None:
    class Plain:
        def __init__(self, array: Any) -> None:
            self.array = array

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return dict(self.array.__cuda_array_interface__)

    robot = lw.load("iiwa14")
    q, qd, _ = (cupy.asarray(x) for x in states(robot, 33))
    cupy.cuda.Device().synchronize()
    found = cupy.asarray(robot.bias(Plain(q), Plain(qd)))
    np.testing.assert_array_equal(cupy.asnumpy(found), cupy.asnumpy(robot.bias(q, qd)))


def test_work_is_put_on_the_current_stream() -> None:
    """A producer before the call, a consumer after it, on a stream that is not the default one."""
    robot = lw.load("iiwa14")
    arrays = [torch.from_numpy(x).cuda() for x in states(robot, 1 << 16)]
    expected = robot.forward_dynamics(*arrays)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    for _ in range(5):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)  # the arrays are made long after the call returns
            late = [x * 1.0 for x in arrays]
            found = robot.forward_dynamics(*late) * 1.0
        stream.synchronize()
        assert torch.equal(found, expected)
    other = cupy.cuda.Stream(non_blocking=True)
    with other:
        late = [cupy.asarray(x) * 1.0 for x in arrays]
        found = robot.forward_dynamics(*late) * 1.0
    other.synchronize()
    assert (found == cupy.asarray(expected)).all()


def test_a_state_without_an_answer_stays_alone() -> None:
    robot = lw.load("iiwa14")
    q, qd, tau = states(robot, 1000)
    good = cupy.asnumpy(robot.forward_dynamics(*map(cupy.asarray, (q, qd, tau))))
    q[17, 3], tau[999, 0] = np.nan, np.inf
    found, flags = robot.forward_dynamics(*map(cupy.asarray, (q, qd, tau)), status=True)
    found, flags = cupy.asnumpy(found), cupy.asnumpy(flags)
    bad = np.zeros(1000, bool)
    bad[[17, 999]] = True
    assert np.isnan(found[bad]).all() and (flags != 0).tolist() == bad.tolist()
    np.testing.assert_array_equal(found[~bad], good[~bad])


def test_ten_million_states() -> None:
    robot = lw.load("iiwa14")
    q = cupy.asarray(states(robot, 1000, "float32")[0])
    many = cupy.tile(q, (10_000, 1))
    found = robot.mass_matrix(many)
    assert found.shape == (10_000_000, 7, 7)
    assert (found.reshape(10_000, 1000, 7, 7) == robot.mass_matrix(q)).all()


def test_out_of_memory_loses_nothing() -> None:
    """Fails for want of memory in this process, not in those of other tests: a limit of its own."""
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_memory_pool().set_limit(size=1 << 28)
    robot = lw.load("iiwa14")
    q = cupy.asarray(states(robot, 100)[0])
    before = robot.mass_matrix(q)
    many = cupy.zeros((1 << 21, 7))  # 112 MiB; M takes seven times as much
    try:
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
            robot.mass_matrix(many)
    finally:
        cupy.get_default_memory_pool().set_limit(size=0)
    assert (robot.mass_matrix(q) == before).all()


def test_tensors_on_the_cpu_give_tensors_on_the_cpu() -> None:
    robot = lw.load("iiwa14")
    pytest.importorskip("llvmlite")
    q = torch.from_numpy(states(robot, 10)[0])
    found = robot.mass_matrix(q)
    assert found.device.type == "cpu"
    np.testing.assert_array_equal(found.numpy(), robot.mass_matrix(q.numpy()))
    with pytest.raises(TypeError, match=r"expected q\.detach\(\)"):
        robot.mass_matrix(q.requires_grad_())


def test_arrays_of_numpy_are_moved_there_and_back() -> None:
    robot = lw.load("iiwa14")
    q, qd, tau = states(robot, 1000)
    found, flags = robot.forward_dynamics(q, qd, tau, device="cuda", status=True)
    expected = cupy.asnumpy(robot.forward_dynamics(*map(cupy.asarray, (q, qd, tau))))
    assert type(found) is np.ndarray and not flags.any()
    np.testing.assert_array_equal(found, expected)
    one = robot.forward_dynamics(q, qd[0], tau[0], device="cuda:0")
    np.testing.assert_array_equal(one[0], expected[0])


def test_arrays_with_dlpack_alone() -> None:
    class Plain:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    robot = lw.load("iiwa14")
    q, qd, _ = (cupy.asarray(x) for x in states(robot, 33))
    found = cupy.asarray(robot.bias(Plain(q), Plain(qd)))
    np.testing.assert_array_equal(cupy.asnumpy(found), cupy.asnumpy(robot.bias(q, qd)))
    with pytest.raises(TypeError, match="expected arrays of CuPy, PyTorch or JAX"):
        robot.bias(Plain(q), [0.0] * 7)


def test_an_out_of_each_library() -> None:
    robot = lw.load("iiwa14")
    q, qd, tau = states(robot, 64)
    expected = cupy.asnumpy(robot.forward_dynamics(*map(cupy.asarray, (q, qd, tau))))
    for there, empty, back in (
        (cupy.asarray, cupy.empty_like, cupy.asnumpy),
        (lambda x: torch.from_numpy(x).cuda(), torch.empty_like, lambda x: x.cpu().numpy()),
    ):
        on = [there(x) for x in (q, qd, tau)]
        out = empty(on[0])
        assert robot.forward_dynamics(*on, out=out) is out
        np.testing.assert_array_equal(back(out), expected)
        assert robot.forward_dynamics(*on, out=on[1]) is on[1], "in place of an input"
        np.testing.assert_array_equal(back(on[1]), expected)
