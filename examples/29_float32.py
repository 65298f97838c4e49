"""Half the digits at twice the speed: what float32 costs, and where it is enough.

float32 stays float32 through every call. Torques are right to six digits. Accelerations
solve a system with the mass matrix, and lose up to as many digits more as its condition number has.
A picture is saved, where matplotlib is installed.
"""

import time

import numpy as np

import linkwise as lw

robot = lw.load("iiwa14")
rng = np.random.default_rng(0)
q, (qd, tau) = robot.random_q(rng, size=50_000), rng.normal(size=(2, 50_000, robot.nv))
state = {"float64": (q, qd, tau), "float32": tuple(x.astype("f4") for x in (q, qd, tau))}


def fastest(call, *arguments):
    """Seconds of the fastest of ten calls, after one that compiles."""
    times = []
    for _ in range(11):
        start = time.perf_counter()
        call(*arguments)
        times.append(time.perf_counter() - start)
    return min(times[1:])


errors = {}
for name in ("inverse_dynamics", "forward_dynamics"):
    function = getattr(robot, name)
    long, short = (fastest(function, *state[kind]) for kind in ("float64", "float32"))
    # the same rounded states in both, so that only the arithmetic differs
    exact = function(*(x.astype("f8") for x in state["float32"]))
    away = np.abs(function(*state["float32"]) - exact).max(axis=-1)
    errors[name] = away / np.abs(exact).max(axis=-1)
    middle, worst = np.percentile(errors[name], (50, 100))
    print(f"{name:17} {long / short:.1f} times as fast; error {middle:.0e}, at worst {worst:.0e}")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    condition = np.linalg.cond(robot.mass_matrix(q[:4000]))
    axes = (figure := Figure(figsize=(7.5, 4.2), layout="constrained")).subplots()
    for (name, error), style in zip(errors.items(), ("0.1", "0.65"), strict=True):
        label, front = name.replace("_", " "), 3 if style == "0.1" else 2
        axes.loglog(condition, error[:4000] + 1e-9, ".", ms=3, c=style, label=label, zorder=front)
    ends = np.array([condition.min(), condition.max()])
    axes.plot(ends, 6e-8 * ends, "k--", label="rounding times condition")
    axes.set(title="float32 on 4,000 poses of iiwa14", xlabel="condition of the mass matrix",
             ylabel="relative error", ylim=(1e-8, 1e-2))  # fmt: skip
    axes.legend(loc="upper left", markerscale=3)
    figure.savefig("float32.png", dpi=110)
    print("float32.png saved")
