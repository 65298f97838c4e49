"""A hundred thousand arms at once: how far do a hundred thousand plans get in one second?

Every row is the same arm, standing upright, with joint positions of its own to go to: a law of
computed torques, compiled into the loop that steps all rows. Among the plans, the one is sought
that brings the tip closest to a goal and has it slow there: random shooting, the simplest of
planners, is one call of `simulate` and one `argmin`. A picture is saved, where matplotlib is
installed.
"""

import time

import numpy as np

import linkwise as lw

ROWS, GOAL = 100_000, np.array([0.45, 0.35, 0.55])  # metres

robot = lw.load("iiwa14")
rng = np.random.default_rng(0)
plans = robot.neutral() + rng.normal(scale=0.9, size=(ROWS, robot.nv))
law = lw.control.computed_torque(robot, 40.0, 12.0, plans)
began = time.perf_counter()
runs = lw.simulate(robot, robot.neutral(), None, law, 1.0, 5e-3, "euler", every=40,
                   limits="ignore")  # bad plans are dropped below  # fmt: skip
took = time.perf_counter() - began
print(f"{ROWS:,} motions of 200 steps in {took:.1f} s: {1e9 * took / ROWS / 200:.0f} ns a step")

tips = runs.path("link7")  # (rows, times, 3)
speed = np.linalg.norm(tips[:, -1] - tips[:, -2], axis=-1) / 0.2  # m/s, over the last part
miss = np.linalg.norm(tips[:, -1] - GOAL, axis=-1)
best = int(np.argmin(miss + 0.2 * speed))
print(f"went well: {np.count_nonzero(runs.ok):,}")
print(f"within 5 cm of the goal: {np.count_nonzero(miss < 0.05):,} plans")
print(f"best plan: {1e3 * miss[best]:.1f} mm from the goal, at {speed[best]:.2f} m/s")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    for axes, k in zip(figure.subplots(1, 3, sharey=True), (1, 2, 5), strict=True):
        across = np.hypot(tips[:, k, 0], tips[:, k, 1]) * np.sign(tips[:, k, 0])
        cells = axes.hexbin(across, tips[:, k, 2], gridsize=70, extent=(-1.0, 1.0, -0.7, 1.4),
                            bins="log", cmap="cividis")  # fmt: skip
        axes.plot(np.hypot(*GOAL[:2]), GOAL[2], "r*", ms=14, mec="w", label="goal")
        way = tips[best, : k + 1]
        axes.plot(np.hypot(way[:, 0], way[:, 1]) * np.sign(way[:, 0]), way[:, 2], "r.-", lw=2,
                  label="best plan")  # fmt: skip
        axes.set(title=f"{runs.t[k]:.1f} s", xlabel="distance from the axis, m", aspect="equal")
    axes.legend(loc="lower left")
    figure.axes[0].set_ylabel("height of the tip, m")
    figure.colorbar(cells, ax=figure.axes, label="arms in a cell", shrink=0.8)
    figure.savefig("rollouts.png", dpi=110)
    print("\nrollouts.png saved")
