"""An arm swings freely for half an hour: two integrators, and what becomes of its energy.

No torque acts and nothing rubs, so the energy is constant, and what changes is a method's error.
With coarse steps of 50 ms, RK4 is the more precise one at first; but it loses energy all the time,
and after seventeen minutes it is the worse one. The energy of the variational midpoint errs from
the first swing on, to and fro, and by no more after forty thousand steps. A picture is saved, where
matplotlib is installed.
"""

import numpy as np

import linkwise as lw

robot = lw.load("puma560")
start = robot.neutral() + 0.5 * np.cos(np.arange(robot.nq))
runs = {
    name: lw.simulate(robot, start, duration=2000.0, dt=0.05, integrator=name, limits="ignore")
    for name in ("midpoint", "rk4")
}

errors = {}  # the greatest in every 20 s, of the greatest kinetic energy
for name, run in runs.items():
    energy = run.energy
    off = np.abs(energy.total[1:] - energy.total[0]) / energy.kinetic.max()
    errors[name] = off.reshape(100, 400).max(1)

print("greatest energy error in 20 s, of the greatest kinetic energy")
print("seconds    " + "  ".join(f"{20 * k:9}" for k in (1, 25, 50, 75, 100)))
for name, error in errors.items():
    print(f"{name:9}  " + "  ".join(f"{error[k - 1]:9.1e}" for k in (1, 25, 50, 75, 100)))

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(9, 7), layout="constrained")
    top, bottom = figure.subplots(2, 1)
    begin = slice(0, 401)
    energy, t = runs["midpoint"].energy, runs["midpoint"].t
    lowest = energy.potential.min()
    heights = {"potential": energy.potential - lowest, "total": energy.total - lowest}
    shown = {"kinetic": energy.kinetic} | heights
    for (label, values), style in zip(shown.items(), ("k-", "k:", "C1--"), strict=True):
        top.plot(t[begin], values[begin], style, lw=1, label=label)
    top.set(xlabel="t, s", ylabel="energy, J", title="puma560 swings freely, steps of 50 ms")
    for (name, error), style in zip(errors.items(), ("k-", "k--"), strict=True):
        bottom.plot(20.0 * np.arange(1, 101), 100.0 * error, style, lw=1.5, label=name)
    bottom.set(xlabel="t, s", ylabel="greatest energy error in 20 s, %", ylim=(0.0, None))
    for axes in (top, bottom):
        axes.grid(alpha=0.3)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig("free_swing.png", dpi=110)
    print("\nfree_swing.png saved")
