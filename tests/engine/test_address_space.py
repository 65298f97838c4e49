"""Code loads wherever the process has room: constants lie beside the code that uses them.

A child process leaves small holes, maps a large array below them, and fills what is left between.
New code goes below the array; its constants would fit into a hole above. A linker that places the
two separately finds them gigabytes apart, fails, and takes Python with it (LLVM's RuntimeDyld did).
"""

from __future__ import annotations

import os
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


LIMITED = """
    import resource
    import sys
    import numpy as np
    import linkwise as lw
    from linkwise.backends.llvm.target import host

    robot, q = lw.load("puma560"), np.zeros((8, 6))
    host()  # the compiler's library is loaded; it has compiled nothing
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    limit = size + (int(sys.argv[1]) << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        result = robot.mass_matrix(q).shape
    except (MemoryError, RuntimeError) as error:  # RuntimeError: no memory for a thread's stack
        result = type(error).__name__
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(result, robot.mass_matrix(q).shape)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space as Linux does")
@pytest.mark.parametrize("mebibytes", [12, 24, 40, 60, 600])
def test_too_little_address_space_is_an_error_and_ends_no_process(mebibytes: int) -> None:
    """The compiler would end it; once there is memory again, the call works."""
    command = [sys.executable, "-c", textwrap.dedent(LIMITED), str(mebibytes)]
    env = {**os.environ, "LINKWISE_CACHE": "off"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    known = ("(8, 6, 6)",) if mebibytes == 600 else ("MemoryError", "RuntimeError")
    assert done.stdout.strip() in [f"{result} (8, 6, 6)" for result in known]
