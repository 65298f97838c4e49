"""Tracing and compiling: interrupts are answered, long work is told, memory is respected."""

from __future__ import annotations

import contextlib
import io
import itertools
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.backends.base import BATCH, ONE, USUAL
from linkwise.backends.choice import cpu
from linkwise.backends.llvm import compile as llvm
from linkwise.backends.llvm.run import MEASURED, SLICE, WRITTEN
from linkwise.backends.llvm.target import host
from linkwise.engine import build, foreseen
from linkwise.engine.tasks import Key
from linkwise.errors import ProgramTooLarge
from linkwise.motion import operational
from linkwise.study.generic import generic_chain
from linkwise.trace.guard import guard
from linkwise.trace.tracer import Task, equations

# Seconds of processor time, of this process and of a compiler that it started and ended: on the
# clock they are more on a busy machine.
ANSWERS = 5.0

INTERRUPTED = """
    import os, signal, threading
    import numpy as np
    import linkwise as lw
    from linkwise.engine import build
    from linkwise.study.generic import generic_chain

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
    robot = lw.Robot(generic_chain({joints}))
    sent = []
    def spent():
        return sum(os.times()[:4])
    def interrupt():
        sent.append(spent())
        os.kill(os.getpid(), signal.SIGINT)
    {when}
    try:
        {call}
    except KeyboardInterrupt:
        print("answered" if spent() - sent[0] < {limit} else "late")
    print(lw.load("puma560").gravity_torque(np.zeros(6)).shape)
"""
WHILE_TRACING = "threading.Timer(1.0, interrupt).start()"
WHILE_COMPILING = """
    from linkwise.backends.llvm.backend import Llvm
    Llvm.effort, whole = Llvm.effort._replace(seconds={seconds}), Llvm.build
    def late(*args, **options):
        Llvm.build = whole
        threading.Timer(0.7, interrupt).start()
        return whole(*args, **options)
    Llvm.build = late
"""


def run(when: str, joints: int, call: str) -> subprocess.CompletedProcess[str]:
    code = textwrap.dedent(INTERRUPTED).format(
        joints=joints, call=call, limit=ANSWERS, when=textwrap.dedent(when).strip()
    )
    command = [sys.executable, "-c", code]
    environment = {"LINKWISE_CACHE": "off", "PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.parametrize(
    ("when", "joints", "call"),
    [
        (WHILE_TRACING, 90, "robot.with_codegen('unrolled').christoffel(np.zeros((3, 90)))"),
        (WHILE_COMPILING.format(seconds=1e-9), 18, "robot.christoffel(np.zeros((3, 18)))"),
        (WHILE_COMPILING.format(seconds=1.0), 24, "robot.christoffel(np.zeros((3, 24)))"),
    ],
    ids=["tracing", "compiling in a thread", "compiling in a process"],
)
def test_an_interrupt_is_answered(when: str, joints: int, call: str) -> None:
    done = run(when, joints, call)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "answered\n(6,)\n", done.stderr[-2000:]


def program(joints: int = 3) -> Any:
    robot = lw.Robot(generic_chain(joints))
    kernels, task = robot._calls.kernels, robot._calls.tasks.task(Key("mass_matrix"))
    return guard(kernels.program(kernels.equations(task)))


def test_another_process_makes_the_same_code() -> None:
    text = cpu().render(program(), "float64", BATCH)
    assert llvm.to_object_apart(text, host()) == cpu().build(text)


def test_a_compiler_that_fails_or_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match=r"the compiler failed: (.|\n)*expected"):
        llvm.to_object_apart("this is no IR", host())
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    monkeypatch.setattr(llvm, "_CHILD", kill)
    with pytest.raises(ProgramTooLarge, match="ended by signal 9, most likely for want of memory"):
        llvm.to_object_apart("", host())


def test_large_programs_go_to_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    backend = cpu()
    monkeypatch.setattr(
        type(backend), "build", lambda self, text, apart=False: seen.append(apart) or b""
    )
    monkeypatch.setenv("LINKWISE_PROGRESS", "off")
    for seconds in (1e-9, 1.0):
        monkeypatch.setattr(type(backend), "effort", USUAL._replace(seconds=seconds))
        build.built(backend, program(), "float64", BATCH, "robot")
    assert seen == [False, True]


def test_what_does_not_fit_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = lw.Robot(generic_chain(5))
    monkeypatch.setattr(build, "free_memory", lambda: 2_000_000)
    with pytest.raises(ProgramTooLarge) as caught:
        robot.christoffel(np.zeros(5))
    message = str(caught.value)
    assert "christoffel" in message and "generic5" in message and "robot.lock" in message
    monkeypatch.undo()
    assert robot.christoffel(np.zeros(5)).shape == (5, 5, 5)


@pytest.mark.parametrize("method", ["crba", "fd1", "schur-published"])
def test_code_of_a_large_robot_is_refused_before_it_is_traced(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """With an estimate from its first links, by which short programs of large robots pass."""
    monkeypatch.setattr(build, "trace", None)  # nothing is traced but the first links
    robot, z = lw.chain(100_000), np.zeros(100_000)
    with pytest.raises(ProgramTooLarge, match=rf"forward_dynamics\[{method}\] of .chain100000.: "
                       r"about \de\+\d+ operations, which cannot be compiled"):  # fmt: skip
        robot.forward_dynamics(z, z, z, method=method)


def test_operations_are_foreseen() -> None:
    """Of chains longer than those that are traced for it, within a factor of SPARE."""
    for method in ("crba", "aba", "schur"):
        tree = lw.chain(60, "random").tree
        task = Task(FUNCTIONS["forward_dynamics"][method])
        exact = len(equations(task, tree).graph.nodes)
        about = foreseen.operations(task, tree, large=60)
        assert exact / foreseen.SPARE <= about <= exact * foreseen.SPARE


def test_a_matrix_by_loops_that_does_not_fit_is_refused() -> None:
    robot = lw.chain(200_000)
    with pytest.raises(ProgramTooLarge, match=r"200,000 by 200,000 .* GiB are free; .*solve_mass"):
        robot.mass_matrix(robot.neutral())


def test_memory_is_known() -> None:
    assert 2**24 < build.free_memory() < 2**50


def told(
    monkeypatch: pytest.MonkeyPatch, estimate: float, until: str, tty: bool, interrupt: bool = False
) -> str:
    """What is printed about work that goes on until some text is, and a little longer."""
    stream = io.StringIO()
    stream.isatty = lambda: tty  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    patience = time.monotonic() + 60.0
    with build.progress("compiling x", estimate):
        while until not in stream.getvalue() and time.monotonic() < patience:
            time.sleep(0.01)
        time.sleep(0.2)
        if interrupt:
            raise KeyboardInterrupt
    return stream.getvalue()


def test_long_work_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LINKWISE_PROGRESS")
    monkeypatch.setattr(build, "LONG", 0.1)
    text = told(monkeypatch, 30.0, "30 s\n", tty=False)
    assert text.startswith("linkwise: compiling x: about 30 s\n") and "done in" in text
    assert told(monkeypatch, 0.0, "...", tty=False).startswith("linkwise: compiling x ...\n")
    assert "\r" in told(monkeypatch, 30.0, "\r", tty=True)
    with pytest.raises(KeyboardInterrupt):
        told(monkeypatch, 0.0, "...", tty=False, interrupt=True)
    assert "stopped after" in sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert "done in" not in sys.stderr.getvalue()  # type: ignore[attr-defined]
    monkeypatch.setenv("LINKWISE_PROGRESS", "off")
    assert told(monkeypatch, 30.0, "", tty=True) == ""


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_an_estimate_counts_with_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """What rendering took beside the processor time that it was given scales the estimate."""
    clock, busy = itertools.count(), itertools.count()
    monkeypatch.setattr(build, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(build, "thread_time", lambda: share * next(busy))
    estimates: list[float] = []

    @contextlib.contextmanager
    def progress(_label: str, estimate: float = 0.0) -> Iterator[None]:
        estimates.append(estimate)
        yield

    monkeypatch.setattr(build, "progress", progress)
    backend: Any = SimpleNamespace(
        effort=SimpleNamespace(estimate=lambda _: 30.0),
        apart=False,
        render=lambda *_: "text",
        build=lambda _: b"code",
    )
    program: Any = SimpleNamespace(name="x", nodes=lambda: range(5))
    assert build.built(backend, program, "float64", ONE, "r") == b"code"
    assert estimates == [0.0, pytest.approx(30.0 / share)]


def test_tracing_a_law_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs that are in no table of algorithms are told of as others are."""
    robot, slow = lw.load("puma560"), operational.follow

    def slower(*values: Any) -> Any:
        time.sleep(0.1)
        return slow(*values)

    monkeypatch.delenv("LINKWISE_PROGRESS")
    monkeypatch.setenv("LINKWISE_CACHE", "off")
    monkeypatch.setattr(build, "LONG", 0.02)
    monkeypatch.setattr(operational, "follow", slower)
    law = lw.control.OperationalSpace(robot, "link6", rows="position")
    law(np.zeros(6), np.zeros(6), np.eye(4))
    assert 'linkwise: tracing OperationalSpace of "puma560" ...' in capsys.readouterr().err


def test_short_work_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LINKWISE_PROGRESS")
    monkeypatch.setattr(build, "LONG", 60.0)
    assert told(monkeypatch, 0.0, "", tty=True) == ""


def test_a_closed_stream_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.close()
    build._say(stream, "text")
    monkeypatch.delenv("LINKWISE_PROGRESS")
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(build, "LONG", 0.01)
    with build.progress("x", 5.0):
        time.sleep(0.05)


def test_slices_follow_the_time_that_states_take() -> None:
    """Whatever an earlier run measured: the next look at the user comes soon."""
    robot, states, row = lw.load("puma560"), 1_000_003, 6 * 6 * 8
    robot.mass_matrix(np.zeros((40, 6)))
    (kernel,) = robot._calls.kernels._kernels.values()
    least, tile = MEASURED * kernel.width, kernel.width
    kernel.cost, last = 500.0, 0
    for begin, end in kernel._slices(states, 1):
        length, time_left = end - begin, SLICE if begin else SLICE / 10
        assert begin == last and (length % tile == 0 or end == states)
        assert length <= max(time_left / kernel.cost, least) + tile
        assert length >= least or end == states
        assert length * row <= WRITTEN + tile * row
        last, kernel.cost = end, 30_000.0 if kernel.cost < 1000.0 else 20.0
    assert last == states
    assert len(list(kernel._slices(states, 4))) >= 4


def test_a_slice_of_states_that_take_long_is_one_tile() -> None:
    """As of a million links; and what a busy machine once made slow is measured again."""
    robot = lw.load("puma560")
    robot.mass_matrix(np.zeros((40, 6)))
    (kernel,) = robot._calls.kernels._kernels.values()
    kernel.cost = 1e9
    assert next(kernel._slices(40, 1)) == (0, kernel.width)
    robot.mass_matrix(np.zeros((20_000, 6)), threads=1)
    assert kernel.cost < 1e7


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_an_interrupt_in_a_large_batch_is_answered() -> None:
    """A batch runs in slices; between two of them the main thread sees the signal."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("the tests do not run in the main thread")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    robot = lw.load("iiwa14")
    q = np.zeros((4_000_000, 7))
    robot.gravity_torque(q[:100_000])
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.process_time())
        signal.raise_signal(signal.SIGINT)

    for threads in (1, 2):
        sent.clear()
        timer = threading.Timer(0.05, interrupt)
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            for _ in range(100):
                robot.gravity_torque(q, threads=threads)
        assert time.process_time() - sent[0] < ANSWERS
        timer.join()
    signal.signal(signal.SIGINT, before)
    assert robot.gravity_torque(q[:3]).shape == (3, 7)
