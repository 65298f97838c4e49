"""Many threads and processes on the same robots: the bits of a run alone, and no deadlock."""

from __future__ import annotations

import copy
import faulthandler
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.backends.llvm.backend import Llvm
from linkwise.engine import kernels as engine

THREADS, STORM = 16, 24
ROUNDS = 300  # calls of each thread
PATIENCE = 120.0  # seconds: only a deadlock gets there


@pytest.fixture(autouse=True)
def _stacks_of_a_deadlock() -> Iterator[None]:
    """Should a test hang, say where before it is killed."""
    faulthandler.dump_traceback_later(PATIENCE, exit=False, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


def states(robot: lw.Robot, count: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-3, 3, (3, count, robot.nv))


def everything(robot: lw.Robot, count: int = 37, threads: int | None = None) -> list[bytes]:
    """Results of batches and single states of several functions."""
    q, qd, tau = states(robot, count)
    frame = robot.frame_names[-1]
    results = [
        robot.forward_dynamics(q, qd, tau, threads=threads),
        robot.forward_dynamics(q, qd, tau, method="aba"),
        robot.forward_dynamics(q[0], qd[0], tau[0]),
        robot.inverse_dynamics(q[1], qd[1], tau[1]),
        robot.mass_matrix(q.astype("f4"), threads=threads),
        robot.jacobian(q[2], frame),
        robot.jacobian(q, frame, axes="body"),
        robot.kinetic_energy(q[3], qd[3]),
    ]
    return [r.tobytes() for r in results]


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run ``work(0..count-1)`` in threads that start together; returns results, raises errors."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def run(k: int) -> None:
        try:
            barrier.wait(PATIENCE)
            results[k] = work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    if errors:
        raise errors[0]
    return results


# -- threads ------------------------------------------------------------------------------------


def test_threads_on_one_robot() -> None:
    robot = lw.load("puma560")
    expected = everything(lw.load("puma560"))

    def work(k: int) -> int:
        return sum(everything(robot) != expected for _ in range(ROUNDS // 10))

    assert sum(at_once(THREADS, work)) == 0


def test_threads_that_share_single_state_calls() -> None:
    robot = lw.load("iiwa14")
    q, qd, tau = states(robot, 50)
    expected = [robot.forward_dynamics(q[k], qd[k], tau[k]).tobytes() for k in range(50)]

    def work(k: int) -> int:
        out = np.empty(robot.nv)
        wrong = 0
        for i in range(10 * ROUNDS):
            j = (i + k) % 50
            fresh = robot.forward_dynamics(q[j], qd[j], tau[j])
            robot.forward_dynamics(q[j], qd[j], tau[j], out=out)
            wrong += fresh.tobytes() != expected[j] or out.tobytes() != expected[j]
        return wrong

    assert sum(at_once(THREADS, work)) == 0


def test_threads_on_several_robots_with_threads_inside() -> None:
    names = ("puma560", "iiwa14")
    expected = {name: everything(lw.load(name), 1501, threads=1) for name in names}
    shared = {name: lw.load(name) for name in names}
    own = [lw.load(names[k % 2]) for k in range(THREADS)]

    def work(k: int) -> int:
        name = names[k % 2]
        mine = shared[name] if k % 4 < 2 else own[k]
        return sum(everything(mine, 1501, threads=1 + k % 5) != expected[name] for _ in range(2))

    assert sum(at_once(THREADS, work)) == 0


@pytest.mark.parametrize("cached", [True, False])
def test_compile_storm_on_a_fresh_robot(
    cached: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = everything(lw.load("puma560"))
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path / "storm") if cached else "off")
    compiled = []
    build = Llvm.build

    def counted(backend: Llvm, ir: str, **options: bool) -> bytes:
        compiled.append(ir)
        return build(backend, ir, **options)

    monkeypatch.setattr(Llvm, "build", counted)
    robot = lw.load("puma560")
    assert all(result == expected for result in at_once(STORM, lambda k: everything(robot)))
    assert len(compiled) == len(set(compiled)), "a kernel was compiled more than once"


def test_compile_storm_on_many_fresh_robots(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path / "storm"))
    expected = everything(lw.load("puma560"))
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path / "another"))
    robots = [lw.load("puma560") for _ in range(STORM)]
    results = at_once(STORM, lambda k: everything(robots[k]))
    assert all(result == expected for result in results)


def test_loading_bundled_robots_from_many_threads() -> None:
    for _ in range(5):
        assert len(at_once(THREADS, lambda k: [lw.load("puma560") for _ in range(5)])) == THREADS


def test_errors_in_one_thread_do_not_disturb_others() -> None:
    robot = lw.load("puma560")
    expected = everything(lw.load("puma560"))

    def work(k: int) -> bool:
        for _ in range(10):
            if k % 2:
                with pytest.raises(ValueError, match="q has shape"):
                    robot.forward_dynamics(np.zeros(3), np.zeros(6), np.zeros(6))
            elif everything(robot) != expected:
                return False
        return True

    assert all(at_once(THREADS, work))


def test_other_threads_run_while_a_batch_does() -> None:
    """The interpreter is free during a batch: another thread counts on, however long it takes."""
    robot = lw.load("iiwa14")
    q, qd, tau = states(robot, 200_000)
    out = np.empty_like(q)
    robot.forward_dynamics(q[:2], qd[:2], tau[:2])  # compiled
    interval = sys.getswitchinterval()
    ticks = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    # were the GIL held, the counter could run only between calls; make those gaps useless
    sys.setswitchinterval(1000.0)
    try:
        counter.start()
        during = 0
        for _ in range(200):
            before = ticks
            robot.forward_dynamics(q, qd, tau, out=out, threads=1)
            during = max(during, ticks - before)
            if during > 10:
                break
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        counter.join(PATIENCE)
    assert during > 10


def test_an_interrupted_batch_waits_for_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the caller's part: no thread may still be writing when the exception is out."""
    robot = lw.load("iiwa14")
    q, qd, tau = states(robot, 50_000)
    expected = robot.forward_dynamics(q, qd, tau)
    kernel = next(iter(robot._calls.kernels._kernels.values()))
    function, caller = kernel._batch, threading.get_ident()

    def interrupted(*args: Any) -> None:
        function(*args)
        if threading.get_ident() == caller:
            raise KeyboardInterrupt
        time.sleep(0.05)

    monkeypatch.setattr(kernel, "_batch", interrupted)
    out = np.zeros_like(expected)
    with pytest.raises(KeyboardInterrupt):
        robot.forward_dynamics(q, qd, tau, out=out, threads=4)
    left = out.copy()
    time.sleep(0.2)
    assert out.tobytes() == left.tobytes(), "no thread was still writing"
    done = out.any(axis=1)
    assert done.any() and out[done].tobytes() == expected[done].tobytes()


# -- fork ---------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
fork_warning = pytest.mark.filterwarnings(
    "ignore:.*multi-threaded, use of fork.*:DeprecationWarning"
)


def in_child(work: Callable[[], bool]) -> bool:
    """Whether ``work`` is true in a forked child; a child that hangs is killed, and false."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    deadline = time.monotonic() + PATIENCE / 2
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


@needs_fork
@fork_warning
def test_fork_after_use() -> None:
    robot = lw.load("puma560")
    expected = everything(robot, 20_011, threads=4)  # the pool exists, kernels are loaded
    fresh = everything(lw.load("iiwa14"))

    def work() -> bool:
        same = everything(robot, 20_011, threads=4) == expected
        return same and everything(lw.load("iiwa14")) == fresh  # and new ones can be made

    assert in_child(work)
    assert in_child(lambda: in_child(work)), "a grandchild"
    assert everything(robot, 20_011, threads=4) == expected, "the parent goes on"


@needs_fork
@fork_warning
def test_fork_while_other_threads_compute_and_compile() -> None:
    robot = lw.load("puma560")
    expected = everything(robot, 5003, threads=3)
    link = {"a": 1.0, "mass": 1.0, "com": (-0.5, 0.0, 0.0), "inertia": (0.1, 0.1, 0.1)}
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            everything(robot, 5003, threads=3)

    def compile_more() -> None:
        k = 0
        while not stop.is_set():
            k += 1
            lw.from_dh([link, link], gravity=(0.0, 0.0, -float(k))).mass_matrix(np.zeros((2, 2)))

    def work() -> bool:
        new = lw.from_dh([link, link], gravity=(0.0, 1.0, 0.0)).gravity_torque(np.zeros((3, 2)))
        return bool(np.isfinite(new).all()) and everything(robot, 5003, threads=3) == expected

    busy = [threading.Thread(target=f) for f in (compute, compile_more)]
    for thread in busy:
        thread.start()
    try:
        assert all(in_child(work) for _ in range(10))
    finally:
        stop.set()
        for thread in busy:
            thread.join(PATIENCE)


# -- other processes ----------------------------------------------------------------------------


def _in_worker(robot: lw.Robot) -> list[bytes]:
    return everything(robot)


def used_robot() -> tuple[lw.Robot, list[bytes]]:
    robot = lw.load("puma560")
    return robot, everything(robot)


def test_robots_pickle_after_use() -> None:
    robot, expected = used_robot()
    for protocol in (0, 2, pickle.HIGHEST_PROTOCOL):
        again = pickle.loads(pickle.dumps(robot, protocol))
        assert repr(again) == repr(robot)
        assert everything(again) == expected
    for again in (copy.copy(robot), copy.deepcopy(robot)):
        assert everything(again) == expected
    assert everything(robot) == expected


@needs_fork
@fork_warning
def test_robots_travel_to_forked_workers() -> None:
    robot, expected = used_robot()
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        for result in pool.map(_in_worker, [robot] * 4, timeout=PATIENCE):
            assert result == expected


def test_robots_travel_to_a_new_interpreter(tmp_path: Path) -> None:
    robot, _ = used_robot()
    q, qd, tau = states(robot, 9)
    (tmp_path / "job").write_bytes(pickle.dumps((robot, q, qd, tau)))
    code = f"""
        import pickle, sys
        from pathlib import Path
        robot, q, qd, tau = pickle.loads(Path({str(tmp_path / "job")!r}).read_bytes())
        single = robot.forward_dynamics(q[0], qd[0], tau[0])
        batch = robot.forward_dynamics(q, qd, tau)
        Path({str(tmp_path / "done")!r}).write_bytes(pickle.dumps((robot, single, batch)))
    """
    source = str(Path(lw.__file__).parents[1])
    subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        check=True, timeout=PATIENCE, env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip
    back, single, batch = pickle.loads((tmp_path / "done").read_bytes())
    assert batch.tobytes() == robot.forward_dynamics(q, qd, tau).tobytes()
    assert single.tobytes() == batch[0].tobytes()
    assert everything(back) == everything(robot)


def test_compiling_does_not_hold_up_a_loaded_kernel() -> None:
    """A call that has its kernel never waits for the compiler."""
    robot = lw.load("puma560")
    q, qd, tau = states(robot, 9)
    expected = robot.forward_dynamics(q, qd, tau)
    robot.forward_dynamics(q[0], qd[0], tau[0])
    held, release, done = threading.Event(), threading.Event(), threading.Event()

    def compiling() -> None:
        with engine.build_lock:
            held.set()
            release.wait(PATIENCE)

    def calling() -> None:
        assert robot.forward_dynamics(q, qd, tau).tobytes() == expected.tobytes()
        assert robot.forward_dynamics(q[0], qd[0], tau[0]).tobytes() == expected[0].tobytes()
        done.set()

    threads = [threading.Thread(target=f) for f in (compiling, calling)]
    threads[0].start()
    assert held.wait(PATIENCE)
    threads[1].start()
    assert done.wait(PATIENCE)
    release.set()
    for thread in threads:
        thread.join(PATIENCE)


SMALL_STACK = """
    import threading
    import numpy as np
    import linkwise as lw
    from linkwise.backends.base import BATCH
    from linkwise.backends.llvm.backend import Llvm
    from linkwise.trace.expr import Graph
    from linkwise.trace.program import Port, Slot
    from linkwise.trace.tracer import program_of

    def rows(size):
        graph = Graph()
        x = [graph.input("x", k) for k in range(2)]
        values = [x[0] + x[1] * float(k) for k in range(size)]
        program = program_of("rows", (Port("x", 2),), graph, [Slot("result", (size,))], values)
        kernel, out = Llvm().compile(program, "float64", BATCH), np.empty((64, size))
        given = np.random.default_rng(5).normal(size=(64, 2))
        expected = given[:, :1] + given[:, 1:] * np.arange(float(size))
        return lambda: kernel([given], [out], 1), lambda: np.allclose(out, expected)

    robot = lw.chain(60, kind="random").with_codegen("rolled")
    q, qd, tau = np.random.default_rng(6).normal(size=(3, 64, 60))
    expected = robot.forward_dynamics(q, qd, tau)  # compiled with the usual stack
    found = []
    works = [rows(900), rows(3001)]
    runs = [run for run, _ in works] + [lambda: found.append(robot.forward_dynamics(q, qd, tau))]
    threading.stack_size(STACK)
    for run in runs:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert all(right() for _, right in works) and (found[0] == expected).all()
    print("done")
"""


@pytest.mark.parametrize("kibibytes", [128, 256])
def test_kernels_run_in_threads_with_small_stacks(kibibytes: int, tmp_path: Path) -> None:
    """What a tile needs beyond a few pages is on the heap."""
    code = textwrap.dedent(SMALL_STACK.replace("STACK", str(1024 * kibibytes)))
    source = str(Path(lw.__file__).parent.parent)
    env = {**os.environ, "PYTHONPATH": source, "LINKWISE_PROGRESS": "off"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=env
    )
    assert done.stdout.strip() == "done", (done.returncode, done.stderr)
