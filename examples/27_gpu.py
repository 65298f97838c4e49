"""The same call on a GPU: arrays of CuPy or PyTorch are computed where they are.

Where there is no GPU, the script says so and measures the processor alone. The picture has the rate
over the size of the batch; it is saved where matplotlib is installed.
"""

import importlib.util
import time

import numpy as np

import linkwise as lw

robot = lw.load("iiwa14")
rng = np.random.default_rng(0)
state = rng.normal(size=(3, 200_000, robot.nv)).astype("float32")
on_host = robot.forward_dynamics(*state)


def rate(arrays, wait=lambda: None):
    """Million states a second, the best of five calls after one that compiles."""
    times, out = [], robot.forward_dynamics(*arrays)
    for _ in range(5):
        wait()
        start = time.perf_counter()
        robot.forward_dynamics(*arrays, out=out)
        wait()
        times.append(time.perf_counter() - start)
    return len(out) / min(times) / 1e6


sizes = [1000, 10_000, 100_000, 200_000]
rates = {"processor": {n: rate(state[:, :n]) for n in sizes}}

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
    there = cupy.asarray(state)
    print("the same bits:", np.array_equal(cupy.asnumpy(robot.forward_dynamics(*there)), on_host))
    many = cupy.tile(there, (1, 50, 1))  # ten million states
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    rates[name] = {
        n: rate(many[:, :n], cupy.cuda.Device().synchronize)
        for n in (*sizes, 1_000_000, 10_000_000)
    }
for place, found in rates.items():
    for n, million in found.items():
        print(f"{place:12} {n:10,} states: {million:9,.0f} million forward dynamics a second")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    axes = (figure := Figure(figsize=(7, 4), layout="constrained")).subplots()
    for (place, found), style in zip(rates.items(), ("ks--", "ko-"), strict=False):
        axes.loglog(list(found), list(found.values()), style, label=place)
    axes.set(title="forward dynamics of iiwa14, float32", xlabel="states in a call",
             ylabel="million states a second")  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig("gpu.png", dpi=110)
    print("gpu.png saved")
