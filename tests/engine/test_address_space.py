"""Code loads wherever the process has room: constants lie beside the code that uses them.

A child process maps so much, in so many pieces, that neighbouring allocations end up gigabytes
apart. A linker that places code and constants separately fails there, and takes Python with it.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

FRAGMENTED = """
    import numpy as np
    import linkwise as lw
    from linkwise.study.generic import generic_chain

    held = []
    for n in (2, 30, 5, 31):
        robot = lw.Robot(generic_chain(n))
        q = np.zeros((5, n))
        for function in ("mass_matrix", "gravity_torque"):
            many = getattr(robot, function)(q)
            held.append(np.empty(3 * 2**30, np.uint8))  # mapped, never touched
            one = getattr(robot, function)(q[0])
            assert np.array_equal(many[0], one)
        held.append(robot)
    print("well")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_kernels_load_in_a_fragmented_address_space() -> None:
    code = textwrap.dedent(FRAGMENTED)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "well\n"
