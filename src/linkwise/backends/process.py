"""Compilers in a process: one thread at a time, none left inside at exit or in a forked child.

And work that cannot be interrupted itself, done so that the user's interrupt is answered.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
build_lock = threading.RLock()  # one kernel is made at a time
compiler_lock = threading.RLock()  # a compiler is entered by one thread at a time
# functions that give the locks inside a compiler, in the order in which it takes them
inner_locks: list[Callable[[], list[Any]]] = []
_closing = False  # the interpreter exits


@contextmanager
def entered() -> Iterator[None]:
    """Let this thread into a compiler, alone; once the interpreter exits, only the main thread.

    A thread that comes too late ends quietly: the process is about to end it anyway.
    """
    with compiler_lock:
        if _closing and threading.current_thread() is not threading.main_thread():
            raise SystemExit
        yield


def exiting() -> bool:
    """Whether the interpreter exits: threads that are started now may never run."""
    return _closing


def interruptible(make: Callable[[], T]) -> T:
    """The result of work that cannot be interrupted itself: another thread does it, and goes on
    with it behind an interrupt, which is answered at once.
    """
    if threading.current_thread() is not threading.main_thread() or exiting():
        return make()  # interrupts go to the main thread, and no thread starts at exit
    found: list[T] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            found.append(make())
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    threading.Thread(target=work, name="linkwise work", daemon=True).start()
    while not done.wait(0.2):  # a wait without end is not interrupted on every platform
        pass
    if failed:
        raise failed[0]
    return found[0]


@atexit.register
def _finish() -> None:
    """Wait for the compiler: LLVM crashes in a process that takes its own memory apart.

    An interrupt ends the process on the spot, which is safe at any time.
    """
    global _closing
    _closing = True
    try:
        with compiler_lock:
            pass
    except KeyboardInterrupt:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(130)


_held_over_fork: list[Any] = []


def _before_fork() -> None:
    """Wait until no thread is in a compiler: in the child it would stay there for ever."""
    locks = [build_lock, compiler_lock, *(lock for inner in inner_locks for lock in inner())]
    for lock in locks:
        lock.acquire()
    _held_over_fork.extend(locks)


def _after_fork() -> None:
    locks = list(_held_over_fork)
    _held_over_fork.clear()
    for lock in reversed(locks):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
