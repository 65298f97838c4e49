"""Tracing and compiling: interruptible, with progress when they take long, within memory.

A compiler cannot be stopped once it runs. So the user's main thread lets another thread run it: an
interrupt is answered at once, and what is still made is thrown away when it comes. What is expected
to take longer than that is worth a process of its own, which is ended with the call.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, thread_time
from typing import TextIO

from linkwise.backends.base import Backend, Effort
from linkwise.backends.process import interruptible
from linkwise.engine.foreseen import too_many
from linkwise.errors import ProgramTooLarge, quote
from linkwise.model.tree import Tree
from linkwise.trace.expr import TooManyNodes
from linkwise.trace.program import Program
from linkwise.trace.roll import trace_rolled
from linkwise.trace.tracer import Task, trace

MEASURABLE = 0.02  # seconds of work that tell how busy the machine is
LONG = 2.0  # seconds beyond which work says that it goes on
TRACING = 1_600  # bytes per operation, measured on chains of 7 to 60 joints
PAIR = 60  # bytes per entry of a matrix made by loops, measured on 6,000 joints


def traced(task: Task, tree: Tree, robot: str, effort: Effort) -> Program:
    """The program of a task; refused if it could not be compiled in this machine's memory."""
    most = free_memory() // (TRACING + effort.bytes)
    if task.rolled:
        _refuse_too_large(task, tree, robot)
        return trace_rolled(task, tree)
    _refuse_many_results(task, tree, robot, most)
    about = too_many(task, tree, most)
    if about:
        raise _too_large(task, tree, robot, f"about {about:.0e}")
    try:
        return trace(task, tree, most)
    except TooManyNodes:
        raise _too_large(task, tree, robot, f"more than {most:,}") from None


def _too_large(task: Task, tree: Tree, robot: str, count: str) -> ProgramTooLarge:
    """What is said of a program that could not be compiled."""
    reason = task.algorithm.rolls(tree) if task.algorithm.rolls else ""
    loops = f" (and it cannot be loops: {reason})" if reason else ""
    return ProgramTooLarge(
        f"{task.name} of {quote(robot)}: {count} operations, which cannot be compiled in the free "
        f"memory ({free_memory() / 2**30:.1f} GiB){loops}; expected a smaller robot (robot.lock, "
        "robot.sub_chain), a method that takes fewer operations ('aba' and 'fd3' grow with the "
        "links, not with their square), or robot.evaluate, which compiles nothing"
    )


def _refuse_too_large(task: Task, tree: Tree, robot: str) -> None:
    """Raise ProgramTooLarge where a matrix over the joints, made by loops, does not fit."""
    size = task.slots(tree)[0].size
    if size >= tree.nv**2:
        _refuse_bytes(task, tree, robot, PAIR * size)


def refuse_large_matrix(task: Task, tree: Tree, robot: str, states: int) -> None:
    """Raise ProgramTooLarge where matrices that are computed column by column do not fit."""
    _refuse_bytes(task, tree, robot, 8 * task.slots(tree)[0].size * max(states, 1))


def _refuse_many_results(task: Task, tree: Tree, robot: str, most: int) -> None:
    """Raise ProgramTooLarge where a result alone has more numbers than could be compiled."""
    size = task.slots(tree)[0].size
    if size > most:
        _refuse_bytes(task, tree, robot, max(size * TRACING, free_memory() + 1))


def _refuse_bytes(task: Task, tree: Tree, robot: str, needed: int) -> None:
    free = free_memory()
    if needed <= free:
        return
    shape = " by ".join(f"{n:,}" for n in task.slots(tree)[0].shape)
    raise ProgramTooLarge(
        f"{task.name} of {quote(robot)}: a result of {shape} takes about "
        f"{needed / 2**30:,.1f} GiB while it is made, and {free / 2**30:,.1f} GiB are "
        "free; expected a smaller robot, or functions of vectors, such as robot.solve_mass, "
        "forward_dynamics and inverse_dynamics"
    )


def built(backend: Backend, program: Program, dtype: str, form: str, robot: str) -> bytes:
    """Render and compile a program."""
    size = sum(1 for _ in program.nodes())
    label = f"compiling {program.name} of {quote(robot)} ({size:,} operations)"
    estimate = backend.effort.estimate(size)
    wall, busy = monotonic(), thread_time()
    with progress(label):
        text = backend.render(program, dtype, form)
    wall, busy = monotonic() - wall, thread_time() - busy
    # a busy machine gives this process a share of a core: so it did while rendering
    slower = wall / busy if busy > MEASURABLE and wall > busy else 1.0
    with progress(label, estimate * slower):
        if estimate > LONG and backend.apart:
            return backend.build(text, apart=True)
        return interruptible(lambda: backend.build(text))


def free_memory() -> int:
    """Bytes that this machine could still hand out; 4 GiB where it does not say."""
    try:
        with open("/proc/meminfo") as file:
            facts = dict(line.split(":") for line in file)
        return int(facts["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 4 * 2**30


@contextmanager
def progress(what: str, estimate: float = 0.0) -> Iterator[None]:
    """Say on stderr what takes long, at once where that is foreseen, and how far it has come.

    ``LINKWISE_PROGRESS=off`` keeps it quiet.
    """
    if os.environ.get("LINKWISE_PROGRESS", "").lower() in ("off", "0"):
        yield
        return
    done, failed = threading.Event(), threading.Event()
    start = 0.0 if estimate > LONG else LONG
    ticker = threading.Thread(target=_tick, args=(done, failed, what, estimate, start), daemon=True)
    ticker.start()
    try:
        yield
    except BaseException:
        failed.set()
        raise
    finally:
        done.set()
        if not sys.is_finalizing():
            ticker.join(1.0)


def _tick(
    done: threading.Event, failed: threading.Event, what: str, estimate: float, start: float
) -> None:
    """Lines for a log, or one line that counts the seconds on a terminal."""
    began = monotonic()
    if done.wait(start):
        return
    stream = sys.stderr
    if stream is None:
        return
    live = stream.isatty()
    about = f" of about {estimate:.0f} s" if estimate > LONG else " s so far"
    _say(stream, f"linkwise: {what}{f': about {estimate:.0f} s' if estimate > LONG else ' ...'}\n")
    while not done.wait(0.5):
        now = monotonic() - began
        late = ", longer than that so far" if LONG < estimate < now else ""
        if live:
            _say(stream, f"\r  {now:.0f}{about}{late} ")
    if monotonic() - began > LONG:
        word, end = "stopped after" if failed.is_set() else "done in", " " * 12
        _say(stream, f"{chr(13) if live else ''}  {word} {monotonic() - began:.1f} s{end}\n")


def _say(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):  # a closed stream is no reason to fail
        pass
