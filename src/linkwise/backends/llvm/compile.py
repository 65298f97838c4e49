"""IR text -> object code -> loaded functions."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from linkwise.backends.llvm.target import Target, binding
from linkwise.backends.process import compiler_lock, entered, exiting, inner_locks
from linkwise.errors import ProgramTooLarge

_ROOM = 32  # libraries that share one JIT
LOOK = 0.5  # seconds between two looks of the other process at whether this one is still there
_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from linkwise.backends.llvm.compile import main; main(sys.argv[2])"
)


# Address space that LLVM must find, for it ends the process if it finds none: to compile a module,
# more for each byte of its text, and to load code. Measured with limits (RLIMIT_AS) on Linux.
COMPILING, PER_BYTE, LOADING = 64 << 20, 32, 16 << 20


def _require_memory(size: int) -> None:
    """Raise MemoryError unless so many bytes of address space can be had."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        raise MemoryError(
            f"out of memory: the compiler needs about {size >> 20} MiB of address space, and less "
            "is left; expected a larger limit (ulimit -v), or memory that other objects give up"
        ) from None


def _llvmlite_lock() -> list[Any]:
    """The lock that llvmlite takes around every call of LLVM, once it was imported."""
    own = getattr(getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None), "_lock", None)
    inner = getattr(own, "_lock", None)
    return [] if inner is None else [inner]


inner_locks.append(_llvmlite_lock)


def to_object(ir: str, target: Target, *, optimize: bool = False) -> bytes:
    """Compile a module for the target; kernels come optimized from the tracer."""
    with entered():
        _require_memory(COMPILING + PER_BYTE * len(ir))
        return bytes(target.machine_for(ir).emit_object(_parsed(ir, target, optimize)))


def to_assembly(ir: str, target: Target) -> str:
    """Machine code of a module, as text."""
    with entered():
        _require_memory(COMPILING + PER_BYTE * len(ir))
        return str(target.machine_for(ir).emit_assembly(_parsed(ir, target, optimize=False)))


def _parsed(ir: str, target: Target, optimize: bool) -> Any:
    llvm = binding()
    module = llvm.parse_assembly(ir)
    module.verify()
    if optimize:
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        passes = llvm.create_pass_builder(target.machine, options)
        passes.getModulePassManager().run(module, passes)
    return module


def apart_possible() -> bool:
    """Whether this program can start another Python: one frozen into a single file cannot."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def to_object_apart(ir: str, target: Target) -> bytes:
    """Compile a module in another process, which ends with this call whatever ends it.

    For programs that take seconds: LLVM cannot be interrupted, and what it runs out of, the process
    runs out of. Another process can be ended at any time, and takes nothing with it.
    """
    command = [sys.executable, "-c", _CHILD, json.dumps(sys.path), json.dumps(asdict(target))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, start_new_session=True, **pipes) as child:  # type: ignore[call-overload]
        try:
            code, said = child.communicate(ir.encode())
        except BaseException:
            child.kill()
            raise
    if child.returncode < 0:
        raise ProgramTooLarge(
            f"the compiler was ended by signal {-child.returncode}, most likely for want of "
            f"memory (a program of {len(ir) >> 20} MiB); expected a smaller robot or a method that "
            "takes fewer operations"
        )
    if child.returncode:
        raise RuntimeError(f"the compiler failed: {said.decode(errors='replace').strip()}")
    return bytes(code)


def main(target: str) -> None:
    """In the other process: IR from stdin, object code to stdout."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    ir = sys.stdin.buffer.read().decode()
    sys.stdout.buffer.write(to_object(ir, Target(**json.loads(target))))


def _end_with(parent: int) -> None:
    """End this process once its parent has ended, by whatever signal, where the system gives it
    another parent then. (One that ended before this began has left half of the IR, if any.)
    """
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)


class _Room:
    """A JIT and the libraries in it.

    A library that is closed gives its memory back, but a JIT remembers its name for ever. So a JIT
    takes a limited number of libraries, and is closed with the last of them.
    """

    def __init__(self, target: Target) -> None:
        # JITLink places code and constants of an object side by side, whatever else is mapped
        self.jit = binding().create_lljit_compiler(target.machine, use_jit_link=True)
        self.taken = self.alive = 0

    def free(self, tracker: Any) -> None:
        """One library less; the functions in it must not be called any more.

        While the interpreter exits, other threads may still be in them, and the system frees all.
        """
        if exiting():
            return
        _dropped.append((self, tracker))
        if compiler_lock.acquire(blocking=False):  # nobody who drops a robot waits for the compiler
            try:
                _free_dropped()
            finally:
                compiler_lock.release()


_rooms: dict[Target, _Room] = {}
_dropped: list[tuple[_Room, Any]] = []


def _free_dropped() -> None:
    while _dropped:
        room, tracker = _dropped.pop()
        tracker.close()
        room.alive -= 1
        if room.alive == 0 and room.taken >= _ROOM:
            room.jit.close()


class Loaded:
    """Object code in this process; its memory is given back when this record is dropped."""

    def __init__(self, code: bytes, target: Target, symbols: Sequence[str]) -> None:
        with entered():
            _free_dropped()
            _require_memory(LOADING)
            room = _rooms.get(target)
            if room is None or room.taken >= _ROOM:
                room = _rooms[target] = _Room(target)
            builder = binding().JITLibraryBuilder().add_object_img(code)
            for symbol in symbols:
                builder.export_symbol(symbol)
            tracker = builder.link(room.jit, f"library{room.taken}")
            room.taken, room.alive = room.taken + 1, room.alive + 1
        self.address = {symbol: int(tracker[symbol]) for symbol in symbols}
        weakref.finalize(self, room.free, tracker).atexit = False
