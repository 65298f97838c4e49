"""The same call on a GPU: arrays of CuPy or PyTorch are computed where they are.

Where there is no GPU, the script says so and runs on the processor.
"""

import importlib.util
import time

import numpy as np

import linkwise as lw

robot = lw.load("iiwa14")
rng = np.random.default_rng(0)
state = rng.normal(size=(3, 200_000, robot.nv)).astype("float32")

on_host = robot.forward_dynamics(*state)
start = time.perf_counter()
robot.forward_dynamics(*state, out=on_host)
seconds = time.perf_counter() - start
print(f"processor: {len(on_host) / seconds / 1e6:,.0f} million forward dynamics a second")

cupy = None
if importlib.util.find_spec("cupy"):
    import cupy

    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        cupy = None
if cupy is None:
    print(
        "no GPU here (or no CuPy): pip install 'linkwise[cuda]' cupy-cuda13x on a machine with one"
    )
else:
    there = [cupy.asarray(x) for x in state]
    qdd = robot.forward_dynamics(*there)  # compiled for the GPU, once
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(100):
        robot.forward_dynamics(*there, out=qdd)
    end.record()
    end.synchronize()
    rate = 100 * len(on_host) / cupy.cuda.get_elapsed_time(begin, end) / 1e3
    print(f"GPU:       {rate:,.0f} million a second")
    print("the same bits:", np.array_equal(cupy.asnumpy(qdd), on_host))
