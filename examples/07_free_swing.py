"""An arm swings freely: three integrators, and what becomes of its energy.

No torque acts and nothing rubs, so the energy is constant, and what changes is a method's error.
RK4 is the most precise by far, and loses a little with every second. The variational midpoint errs
more at each step, and no more after a thousand of them. A picture is saved, where matplotlib is
installed.
"""

import numpy as np

import linkwise as lw

robot = lw.load("puma560")
start = robot.neutral() + 0.5 * np.cos(np.arange(robot.nq))
runs = {
    "euler": lw.simulate(robot, start, duration=30.0, dt=1e-2, integrator="euler"),
    "midpoint": lw.simulate(robot, start, duration=30.0, dt=1e-2, integrator="midpoint"),
    "rk4": lw.simulate(robot, start, duration=30.0, dt=1e-2, integrator="rk4"),
}

errors = {}
print("method     first 10 s  last 10 s   greatest energy error, of the greatest kinetic energy")
for name, run in runs.items():
    energy = run.energy
    errors[name] = np.abs(energy.total - energy.total[0]) / energy.kinetic.max()
    print(f"{name:9}  {errors[name][:1001].max():10.1e}  {errors[name][-1000:].max():9.1e}")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(9, 7), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    energy = runs["rk4"].energy
    lowest = energy.potential.min()
    heights = {"potential": energy.potential - lowest, "total": energy.total - lowest}
    for label, values in ({"kinetic": energy.kinetic} | heights).items():
        top.plot(runs["rk4"].t, values, lw=1, label=label)
    top.set(ylabel="energy, J", title="puma560 swings freely, steps of 10 ms")
    top.legend(loc="center right")
    for name, error in errors.items():
        bottom.semilogy(runs[name].t[1:], np.maximum(error[1:], 1e-16), lw=0.8, label=name)
    bottom.set(xlabel="t, s", ylabel="energy error, relative", ylim=(1e-12, 1.0))
    bottom.legend(loc="lower right", ncols=3)
    for axes in (top, bottom):
        axes.grid(alpha=0.3)
    figure.savefig("free_swing.png", dpi=110)
    print("\nfree_swing.png saved")
