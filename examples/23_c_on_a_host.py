"""Gravity compensation in C: exported, compiled and run as a program of its own, then compared.

`robot.export` writes C99 that needs nothing of linkwise. Here a small main program holds an arm by
torques of gravity and a damper in a loop of 1 kHz, as a controller on a real-time host would, with
the exported dynamics as the arm; NumPy calls repeat the motion and must agree. A picture of both is
saved, where matplotlib is installed.
"""

import shutil
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np

import linkwise as lw

MAIN = """
#include "arm.h"
#include <stdio.h>
int main(void)
{
    double q[ARM_NQ] = {0.1, 0.6, -0.3, 0.9, 0.2, -0.5, 0.4};
    double qd[ARM_NV] = {1.0, -1.0, 0.5, 1.0, -2.0, 1.0, 3.0}, tau[ARM_NV], qdd[ARM_NV];
    for (int k = 0; k < 1000; ++k) {
        arm_gravity_torque(q, tau);
        for (int i = 0; i < ARM_NV; ++i) tau[i] -= 0.2 * qd[i];
        arm_forward_dynamics(q, qd, tau, qdd);
        for (int i = 0; i < ARM_NV; ++i) qd[i] += 1e-3 * qdd[i];
        for (int i = 0; i < ARM_NQ; ++i) q[i] += 1e-3 * qd[i];
        for (int i = 0; i < ARM_NQ; ++i) printf("%.17g ", q[i]);
    }
    return 0;
}
"""

if shutil.which("cc") is None:
    print("no program without a C compiler: apt install gcc")
    sys.exit()
robot = lw.load("iiwa14")
with tempfile.TemporaryDirectory() as made:
    folder = Path(made)
    paths = robot.export(folder, ["gravity_torque", "forward_dynamics"], name="arm")
    (folder / "main.c").write_text(MAIN)
    print(f"written: {', '.join(path.name for path in paths)}")
    flags = ["-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    for name in ("arm_test", "main"):  # the self-test, then our program
        sources = [f"{name}.c", "arm.c"]
        subprocess.run(["cc", *flags, *sources, "-o", name, "-lm"], cwd=folder, check=True)
    run = [subprocess.run([folder / x], capture_output=True, text=True, check=True).stdout
           for x in ("arm_test", "main")]  # fmt: skip
print(f"self-test: {run[0].strip()}")
q, qd = np.array([0.1, 0.6, -0.3, 0.9, 0.2, -0.5, 0.4]), np.array([1, -1, 0.5, 1, -2, 1, 3.0])
motion = []
for _ in range(1000):
    qd = qd + 1e-3 * robot.forward_dynamics(q, qd, robot.gravity_torque(q) - 0.2 * qd)
    q = q + 1e-3 * qd
    motion.append(q)
in_c = np.array(run[1].split(), float).reshape(-1, robot.nq)
difference = np.abs(in_c - motion).max()
print(f"1000 steps in C and in NumPy: at most {difference:.1e} rad apart")
assert difference < 1e-12

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    axes = (figure := Figure(figsize=(8, 4), layout="constrained")).subplots()
    t, every = 1e-3 * np.arange(1, 1001), slice(49, None, 50)
    heights = np.rad2deg(in_c[-1])
    for below, above in pairwise(np.argsort(heights)):  # names that do not overlap
        heights[above] = max(heights[above], heights[below] + 12)
    for k, line in enumerate(np.rad2deg(in_c).T):
        axes.plot(t, line, color="0.6", lw=3, label="" if k else "the C program")
        dots = np.rad2deg(np.array(motion)[every, k])
        axes.plot(t[every], dots, "k.", ms=5, label="" if k else "calls from Python")
        axes.text(1.02, heights[k], robot.joint_names[k], va="center")
    axes.set(title="iiwa14 held by its torques of gravity and a damper, pushed at the start",
             xlabel="time, s", ylabel="joint angle, degrees", xlim=(0, 1.1))  # fmt: skip
    axes.legend(loc="upper left")
    figure.savefig("c_on_a_host.png", dpi=110)
    print("c_on_a_host.png saved")
