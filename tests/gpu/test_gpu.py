"""What only a machine with a GPU can show. One command there runs this file alone:

    python -m pytest -m "" -n auto --noconftest tests/gpu

Bits are compared with the CPU's kernels where llvmlite is installed, else with their golden table.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.backends.choice import gpu

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # other tests need memory too
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


LOOPING = {
    "chain": lambda: lw.chain(9, "random"),
    "long": lambda: lw.chain(300, "random", joints=("revolute", "spherical", "prismatic")),
    "tree": bits.ROBOTS["tree"],
    "arm": lambda: lw.load("puma560"),
}
ROLLED = [(f, m) for f, methods in FUNCTIONS.items() for m, x in methods.items()
          if x.rolls and not x.scans]  # fmt: skip


@pytest.mark.parametrize("name", LOOPING)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("function", "method"), ROLLED)
def test_loops_have_the_bits_of_the_cpu(name: str, function: str, method: str, dtype: str) -> None:
    pytest.importorskip("llvmlite")
    robot = LOOPING[name]().with_codegen("rolled")
    algorithm = FUNCTIONS[function][method]
    if not algorithm.exists_for(robot.tree) or not algorithm.can_roll(robot.tree):
        pytest.skip("not for this robot")
    found = bits.results(robot, algorithm, dtype, cupy.asarray, cupy.asnumpy)
    assert found == bits.results(robot, algorithm, dtype)


@pytest.mark.parametrize("count", [1, 33, 5_000, 100_000])
def test_loops_of_any_number_of_chains(count: int) -> None:
    """More states than run at once are taken in turns; a graph may hold such a call."""
    robot = lw.chain(150)
    few = [cupy.asarray(x) for x in states(robot, min(count, 100))]
    expected = robot.forward_dynamics(*few)
    on = [repeated(x, count) for x in few]
    found = robot.forward_dynamics(*on)
    assert (found == repeated(expected, count)).all()
    out, stream = cupy.zeros_like(found), cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        robot.forward_dynamics(*on, out=out)
        graph = stream.end_capture()
        for _ in range(2):
            out[...] = 0
            graph.launch()
            stream.synchronize()
            assert (out == found).all()
    tensors = [torch.as_tensor(x, device="cuda") for x in on]
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        robot.forward_dynamics(*tensors)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        captured = robot.forward_dynamics(*tensors)
    graph.replay()
    torch.cuda.synchronize()
    assert (cupy.asarray(captured) == found).all()


@pytest.mark.parametrize("function", ["forward_dynamics", "inverse_dynamics"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_scans_have_the_same_bits_every_time(function: str, dtype: str) -> None:
    """What a loop has sent itself ahead must have landed before its place is used again."""
    robot, rng = lw.chain(1_000_000, "random", seed=1), np.random.default_rng(0)
    on = [
        cupy.asarray((scale * rng.normal(size=robot.nv)).astype(dtype)) for scale in (0.3, 0.1, 1)
    ]
    first = getattr(robot, function)(*on, method="scan")
    for _ in range(50):
        assert (getattr(robot, function)(*on, method="scan") == first).all()


@pytest.mark.parametrize("links", [1, 500, 100_003, 1_000_000])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_scans_agree_with_serial_recursions(links: int, dtype: str) -> None:
    """To rounding, which grows with the root of the links; alone, in a graph, from two streams."""
    robot = lw.chain(links, "random", seed=1).with_codegen("rolled")
    rng = np.random.default_rng(0)
    values = [(scale * rng.normal(size=links)).astype(dtype) for scale in (0.3, 0.1, 1.0)]
    on = [cupy.asarray(x) for x in values]
    for function, method in (("forward_dynamics", "aba"), ("inverse_dynamics", "rnea")):
        exact = getattr(robot, function)(*(x.astype(float) for x in values), method=method)
        found = getattr(robot, function)(*on, method="scan")
        error = float(np.abs(cupy.asnumpy(found) - exact).max() / np.abs(exact).max())
        assert error < 30 * np.finfo(dtype).eps * links**0.5
    expected = robot.forward_dynamics(*on, method="scan")
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    cupy.cuda.Device().synchronize()
    found = []
    for stream in streams:
        with stream:
            found.append(robot.forward_dynamics(*on, method="scan"))
    cupy.cuda.Device().synchronize()
    assert all((x == expected).all() for x in found)
    out = cupy.zeros_like(expected)
    with streams[0]:
        streams[0].begin_capture()
        robot.forward_dynamics(*on, method="scan", out=out)
        graph = streams[0].end_capture()
        graph.launch()
        streams[0].synchronize()
    assert (out == expected).all()


SEVERAL_AXES = {
    "ball": (5_003, ("spherical",)),
    "planar": (5_003, ("planar",)),
    "mixed": (5_003, ("revolute", "spherical", "prismatic")),
}


@pytest.mark.parametrize("name", SEVERAL_AXES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_scans_of_joints_of_several_axes(name: str, dtype: str) -> None:
    """As on a processor, to rounding; with a status of each state."""
    links, joints = SEVERAL_AXES[name]
    robot, rng = lw.chain(links, "random", joints=joints, seed=1), np.random.default_rng(0)
    q = robot.random_q(seed=0, size=3).astype(dtype)
    qd, tau = ((0.1 * rng.normal(size=(3, robot.nv))).astype(dtype) for _ in range(2))
    qd[1, 7] = np.nan
    expected, told = robot.forward_dynamics(q, qd, tau, method="scan", status=True)
    found, there = robot.forward_dynamics(
        *map(cupy.asarray, (q, qd, tau)), method="scan", status=True
    )
    assert list(told) == [0, lw.Status.NOT_FINITE, 0]
    np.testing.assert_array_equal(cupy.asnumpy(there), told)
    exact = robot.forward_dynamics(*(x[::2].astype(float) for x in (q, qd, tau)), method="aba")
    error = np.abs(cupy.asnumpy(found)[::2] - exact).max()
    scale = 30 * np.finfo(dtype).eps * links**0.5 * np.abs(exact).max()
    assert error < max(10 * np.abs(expected[::2] - exact).max(), scale)
    assert np.isnan(cupy.asnumpy(found)[1]).all()


def test_loops_take_only_the_memory_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of 20,000 links keeps 3.5 MB of each state, and 4,096 chains at once 14 GB."""
    robot = lw.chain(20_000)
    few = [cupy.asarray(x) for x in states(robot, 2)]
    expected = robot.forward_dynamics(*few)
    monkeypatch.setattr(gpu(0).driver, "memory_bytes", 2 << 30)
    many = [repeated(x, 4_096) for x in few]
    found = robot.forward_dynamics(*many)
    assert (found.reshape(2_048, 2, 20_000) == expected).all()


def repeated(rows: Any, count: int) -> Any:
    return rows[cupy.arange(count) % len(rows)]


def states(robot: lw.Robot, count: int, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    q = robot.random_q(rng, size=count).astype(dtype)
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


@pytest.fixture
def jax() -> Any:
    found = pytest.importorskip("jax")
    found.config.update("jax_enable_x64", True)
    return found


def test_arrays_of_jax(jax: Any) -> None:
    robot = lw.load("iiwa14")
    arrays = states(robot, 100)
    expected = cupy.asnumpy(robot.mass_matrix(cupy.asarray(arrays[0])))
    found, flags = robot.mass_matrix(jax.numpy.asarray(arrays[0]), status=True)
    assert isinstance(found, jax.Array) and found.devices() == jax.numpy.ones(1).devices()
    np.testing.assert_array_equal(np.asarray(found), expected)
    assert found.shape == (100, 7, 7) and not np.asarray(flags).any()
    with pytest.raises(TypeError, match="out is an array of JAX, which cannot be written"):
        robot.bias(*map(jax.numpy.asarray, arrays[:2]), out=jax.numpy.asarray(arrays[2]))


def test_jax_orders_calls_among_its_own_work(jax: Any) -> None:
    """Arguments that are computed late, results that are used at once: nothing waits, all agree."""
    robot = lw.load("iiwa14")
    q, qd, tau = (jax.numpy.asarray(x) for x in states(robot, 1 << 14))
    big = jax.numpy.ones((6000, 6000))
    expected = np.asarray(robot.forward_dynamics(q, qd, tau)) * 2.0
    for _ in range(5):
        late = (big @ big)[0, 0] / 6000.0  # 1, after a while
        found = robot.forward_dynamics(q * late, qd * late, tau * late) * 2.0
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_calls_inside_jit(jax: Any) -> None:
    robot = lw.load("iiwa14")
    q, qd, tau = (jax.numpy.asarray(x) for x in states(robot, 50))

    @jax.jit
    def step(q: Any, qd: Any, tau: Any) -> Any:
        qdd = robot.forward_dynamics(q, qd, tau)
        return robot.integrate(q, qd + 0.01 * qdd, 0.01)

    qdd = robot.forward_dynamics(q, qd, tau)
    expected = robot.integrate(q, qd + 0.01 * qdd, 0.01)
    np.testing.assert_allclose(np.asarray(step(q, qd, tau)), np.asarray(expected), rtol=1e-13)


def test_jax_broadcasts_and_iterates(jax: Any) -> None:
    robot = lw.load("iiwa14")
    q, qd, tau = states(robot, 12)
    for there, back in ((jax.numpy.asarray, np.asarray), (cupy.asarray, cupy.asnumpy)):
        grid = there(q.reshape(3, 4, 7))
        one = robot.forward_dynamics(grid, there(qd[:4]), [0.5] * 7)
        found, info = robot.forward_dynamics(
            grid, there(qd[:4]), there(tau[0]), method="pcg", status=True
        )
        mixed = robot.forward_dynamics(there(q), there(qd.astype("float32")), there(tau))
        mixed = robot.forward_dynamics(there(q), there(qd.astype("float32")), there(tau))
        results = [back(x) for x in (one, mixed, found, *info)]
        if there is jax.numpy.asarray:
            expected = results
    for a, b in zip(results, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


class Interface:
    """Only ``__cuda_array_interface__``."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self.array.__cuda_array_interface__)


class Packed:
    """Only DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("kind", [Interface, Packed])
def test_arrays_of_unknown_libraries(kind: Any) -> None:
    robot = lw.load("iiwa14")
    q, qd, tau = (cupy.asarray(x) for x in states(robot, 36))
    grid, narrow = q.reshape(3, 12, 7), tau.astype("float32")
    for arguments in ((q, qd, tau), (grid, qd[:12], narrow[0]), (q, qd[::-1], narrow)):
        found = cupy.asarray(robot.forward_dynamics(*map(kind, arguments)))
        assert (found == robot.forward_dynamics(*arguments)).all()
        found, info = robot.forward_dynamics(*map(kind, arguments), method="pcg", status=True)
        expected, own = robot.forward_dynamics(*arguments, method="pcg", status=True)
        assert (cupy.asarray(found) == expected).all()
        for a, b in zip(info, own, strict=True):
            assert (cupy.asarray(a) == b).all() and cupy.asarray(a).dtype == b.dtype
    many, still = cupy.tile(q, (10_000, 1)), cupy.tile(qd, (10_000, 1))
    expected = robot.bias(many, still)
    found = robot.bias(kind(many), kind(still))
    many[...] = 0.0  # after the call, which reads it first
    assert (cupy.asarray(found) == expected).all()
    found = cupy.asarray(robot.bias(kind(q), [0.5] * 7))
    assert (found == robot.bias(q, [0.5] * 7)).all()
    out = cupy.zeros((36, 14))[:, ::2]
    robot.bias(kind(q), kind(qd), out=kind(out))
    assert (out == robot.bias(q, qd)).all()


def test_graphs_of_cupy() -> None:
    robot = lw.load("iiwa14")
    first, second = states(robot, 500), [x[::-1].copy() for x in states(robot, 500)]
    on = [cupy.asarray(x) for x in first]
    out, stream = cupy.empty_like(on[0]), cupy.cuda.Stream(non_blocking=True)
    expected = [robot.forward_dynamics(*map(cupy.asarray, x)) for x in (first, second)]
    with stream:
        stream.begin_capture()
        robot.forward_dynamics(*on, out=out)
        graph = stream.end_capture()
        for given, wanted in zip((first, second), expected, strict=True):
            for array, numbers in zip(on, given, strict=True):
                array.set(numbers)
            out[...] = 0
            graph.launch()
            stream.synchronize()
            assert (out == wanted).all()
        stream.begin_capture()
        try:
            with pytest.raises(RuntimeError, match="tau is not on the GPU"):
                robot.forward_dynamics(*on[:2], list(range(7)), out=out)
            with pytest.raises(RuntimeError, match="needs room for a result beside out"):
                robot.forward_dynamics(*on, out=on[1])
            with pytest.raises(RuntimeError, match="mass_matrix: its kernel is not loaded"):
                robot.mass_matrix(on[0])
        finally:
            stream.end_capture()


def test_graphs_of_torch() -> None:
    """Whole steps, with PyTorch's own operations, temporary arrays and iterations in between."""
    robot = lw.load("iiwa14")
    q, qd, tau = (torch.from_numpy(x).cuda() for x in states(robot, 500))

    def step(q: Any, qd: Any) -> Any:
        qdd = robot.forward_dynamics(q, qd, tau)
        rest = robot.forward_dynamics(q, qd, tau[0], method="pcg")
        return robot.integrate(q, qd + 1e-3 * (qdd + rest), 1e-3)

    expected = [step(q, qd), step(q.flip(0), qd.flip(0))]
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step(q, qd)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        found = step(q, qd)
    graph.replay()
    assert torch.equal(found, expected[0])
    q.copy_(q.flip(0))
    qd.copy_(qd.flip(0))
    graph.replay()
    assert torch.equal(found, expected[1])


def test_the_examples_of_the_page() -> None:
    """The Python of docs/gpu.md, block after block, with arrays of the library it is about."""
    text = (HERE.parent / "docs" / "gpu.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    robot = lw.load("iiwa14")
    q, qd, tau = states(robot, 50)
    for block in blocks:
        there = cupy.asarray if "torch" not in block else lambda x: torch.from_numpy(x).cuda()
        given = dict(zip(("q", "qd", "tau"), map(there, (q, qd, tau)), strict=True))
        names = {"robot": robot, "cupy": cupy, "torch": torch, **given}
        exec(block, names)
        cupy.cuda.Device().synchronize()
        if "PyTorch" in block:  # two steps were done
            qd1 = qd + 1e-3 * robot.forward_dynamics(q, qd, tau, device="cuda")
            q1 = robot.integrate(q, qd1, 1e-3, device="cuda")
            qd2 = qd1 + 1e-3 * robot.forward_dynamics(q1, qd1, tau, device="cuda")
            expected = robot.integrate(q1, qd2, 1e-3, device="cuda")
            np.testing.assert_allclose(names["q"].cpu().numpy(), expected, rtol=1e-12)
    assert len(blocks) == 3


def test_repeated_calls_read_the_arrays_they_are_given() -> None:
    """The second call of a layout goes by a plan: new arrays, outs, streams, grids, statuses."""
    robot = lw.load("iiwa14")
    for there, back in (
        (cupy.asarray, cupy.asnumpy),
        (lambda x: torch.from_numpy(x).cuda(), lambda x: x.cpu().numpy()),
    ):
        for turn in range(3):
            q, qd, tau = (x * (turn + 1.0) for x in states(robot, 24))
            expected = cupy.asnumpy(robot.forward_dynamics(*map(cupy.asarray, (q, qd, tau))))
            on = [there(x) for x in (q, qd, tau)]
            found, flags = robot.forward_dynamics(*on, status=True)
            np.testing.assert_array_equal(back(found), expected)
            assert not back(flags).any()
            np.testing.assert_array_equal(back(robot.forward_dynamics(*on)), expected)
            out = there(np.zeros((24, 7)))
            assert robot.forward_dynamics(*on, out=out) is out
            np.testing.assert_array_equal(back(out), expected)
            grid = [there(x.reshape(2, 12, 7)) for x in (q, qd, tau)]
            found = robot.forward_dynamics(*grid)
            np.testing.assert_array_equal(back(found).reshape(24, 7), expected)
            matrix = back(robot.mass_matrix(on[0]))
            assert matrix.shape == (24, 7, 7) and np.isfinite(matrix).all()


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_tensors_that_are_not_plain(device: str) -> None:
    robot = lw.load("iiwa14")
    q = torch.zeros((4, 7), dtype=torch.float64, device=device)
    if device == "cpu":
        pytest.importorskip("llvmlite")
    for _ in range(2):  # the second time there is a plan
        for wrong, message in (
            (q.bfloat16(), "q has dtype bfloat16; expected float32 or float64"),
            (q.half(), "q has dtype float16; expected float32 or float64"),
            (q.to_sparse(), r"q is a sparse tensor.*q\.to_dense\(\)"),
            (torch.complex(q, q).conj().imag, r"negated.*expected q\.resolve_neg\(\)"),
            (q.clone().requires_grad_(), r"expected q\.detach\(\)"),
            (q[0, 0], r"q has shape \(\); expected \(\.\.\., 7\)"),
            (q.to("meta"), "q is on meta; expected cpu or cuda"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                robot.gravity_torque(wrong)
        with pytest.raises(TypeError, match="q has no memory, as inside"):
            torch.vmap(robot.gravity_torque)(q)
        with pytest.raises(TypeError, match=r"out requires a gradient.*out\.detach\(\)"):
            robot.gravity_torque(q, out=q.clone().requires_grad_())
        robot.gravity_torque(q)


def test_damping_as_a_tensor() -> None:
    robot = lw.load("iiwa14")
    q = torch.zeros((4, 7), dtype=torch.float64, device="cuda")
    frame = robot.frame_names[-1]
    number = robot.operational_inertia(q, frame, damping=0.5)
    for damping in (torch.full((6,), 0.5).cuda().double(), torch.tensor(0.5).cuda().double()):
        assert torch.equal(robot.operational_inertia(q, frame, damping=damping), number)


def test_two_devices() -> None:
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one GPU")
    robot = lw.load("iiwa14")
    q = states(robot, 100)[0]
    found = []
    for device in (0, 1, 0, 1):
        with cupy.cuda.Device(device):
            there = cupy.asarray(q)
        tensor = torch.from_numpy(q).to(f"cuda:{device}")
        for array in (there, tensor):
            result = robot.mass_matrix(array)  # device 0 is current
            assert result.device == array.device
            found.append(result.get() if hasattr(result, "get") else result.cpu().numpy())
    assert all((x == found[0]).all() for x in found)
    assert cupy.cuda.runtime.getDevice() == 0


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


def test_out_of_memory_of_other_libraries() -> None:
    robot = lw.load("iiwa14")
    q = torch.from_numpy(states(robot, 100)[0]).cuda()
    before = robot.mass_matrix(q)
    many = q[:1].expand(1 << 40, 7)  # no memory; M would take 431 TB
    with pytest.raises(torch.OutOfMemoryError):
        robot.mass_matrix(many)
    assert torch.equal(robot.mass_matrix(q), before)
    few = Interface(cupy.broadcast_to(cupy.zeros((1, 7)), (1 << 40, 7)))
    with pytest.raises(MemoryError, match="the GPU has no room for 431008558088192 bytes"):
        robot.mass_matrix(few)
    assert torch.equal(robot.mass_matrix(q), before)


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
