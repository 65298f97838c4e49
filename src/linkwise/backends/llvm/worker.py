"""Compiling in a process of its own: for programs so large that it takes seconds.

LLVM cannot be interrupted, and what it runs out of, the process runs out of. Another process can be
ended at any time, and takes nothing with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

from linkwise.backends.llvm.target import Target
from linkwise.errors import ProgramTooLarge

_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from linkwise.backends.llvm.worker import main; main(sys.argv[2])"
)


def possible() -> bool:
    """Whether this program can start another Python: one frozen into a single file cannot."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def to_object_apart(ir: str, target: Target) -> bytes:
    """Compile a module in another process, which ends with this call whatever ends it."""
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
    from linkwise.backends.llvm.compile import to_object

    ir = sys.stdin.buffer.read().decode()
    sys.stdout.buffer.write(to_object(ir, Target(**json.loads(target))))
