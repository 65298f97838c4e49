"""Code loads wherever the process has room: constants lie beside the code that uses them.

A child process leaves small holes, maps a large array below them, and fills what is left between.
New code goes below the array; its constants would fit into a hole above. A linker that places the
two separately finds them gigabytes apart, fails, and takes Python with it (LLVM's RuntimeDyld did).
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

FRAGMENTED = """
    import mmap
    import numpy as np
    import linkwise as lw
    from linkwise.study.generic import generic_chain

    still = np.zeros(6)
    lw.load("puma560").bias(still, still)  # the compiler is in memory before the holes are made
    robot, q = lw.Robot(generic_chain(20)), np.zeros((3, 20))
    blocks = [mmap.mmap(-1, 32 * 1024) for _ in range(400)]
    del blocks[::2]  # holes for constants, too small for code
    large = np.empty(3 * 2**30, np.uint8)  # mapped, never touched
    between = [mmap.mmap(-1, 48 * 1024) for _ in range(200)]
    many = robot.coriolis_matrix(q, q + 1.0)
    assert np.array_equal(many[0], robot.coriolis_matrix(q[0], q[0] + 1.0))
    print("well")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_kernels_load_in_a_fragmented_address_space() -> None:
    code = textwrap.dedent(FRAGMENTED)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "well\n"
