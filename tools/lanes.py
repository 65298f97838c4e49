"""Run a tool as if registers held four float64 numbers, or two: kernels for AVX2 or SSE.

    python tools/lanes.py 4 tools/rollouts.py ...

What a tool writes to the pages of docs/ is then measured so too: run it in a copy of the
repository.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from linkwise.backends.llvm.target import binding, host

WITHOUT = {4: ("avx512",), 2: ("avx", "fma", "f16c", "vaes", "vpclmul", "gfni")}


def narrow(lanes: int) -> None:
    """Hide the features of wider registers from all that is compiled in this process."""
    llvm = binding()
    features = llvm.get_host_cpu_features()
    gone = tuple(word for n, words in WITHOUT.items() if n >= lanes for word in words)
    features.update((name, False) for name in features if name.startswith(gone))
    llvm.get_host_cpu_features = lambda: features
    if host().lanes(8) != lanes:
        raise SystemExit(f"this processor has {host().lanes(8)} lanes; expected {lanes}")


if __name__ == "__main__":
    narrow(int(sys.argv[1]))
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
