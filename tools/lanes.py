"""Run a tool as if registers held four float64 numbers, or two: kernels for AVX2 or SSE2.

    python tools/lanes.py 4 tools/rollouts.py ...

What a tool writes to the pages of docs/ is then measured so too: run it in a copy of the
repository. It is the environment variable LINKWISE_TARGET, for tools that know nothing of it.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from linkwise.backends.llvm.target import VARIABLE, host

LEVELS = {4: "x86-64-v3", 2: "x86-64"}


def narrow(lanes: int) -> None:
    """Compile for narrower registers in this process and those that it starts."""
    os.environ[VARIABLE] = LEVELS[lanes]
    host.cache_clear()
    if host().lanes(8) != lanes:
        raise SystemExit(f"this processor has {host().lanes(8)} lanes; expected {lanes}")


if __name__ == "__main__":
    narrow(int(sys.argv[1]))
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
