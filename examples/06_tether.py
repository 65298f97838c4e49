"""A tether of 2,000 links: released from rest, stepped by semi-implicit Euler.

It lies level, held at one end, and falls under gravity. No energy is lost: what the method adds or
loses is its error, shown relative to the kinetic energy. It halves with the step. A picture of the
tether on its way is saved, where matplotlib is installed.
"""

import time

import numpy as np

import linkwise as lw

tether = lw.chain(2000, length=0.01, mass=0.002)  # 20 m, 4 kg
tau = np.zeros(tether.nv)  # no torques at the joints
tether.forward_dynamics(tether.neutral(), tau, tau)  # compiles
steps_taken, began, shapes = 0, time.perf_counter(), []

print("step, ms  time, s  tip x, m  tip z, m  kinetic energy, J  relative energy error")
for h in (1e-3, 5e-4):
    q, qd = tether.neutral(), np.zeros(tether.nv)
    at_rest = tether.potential_energy(q)
    steps = round(0.4 / h)
    for k in range(1, steps + 1):
        qd += h * tether.forward_dynamics(q, qd, tau)
        q = tether.integrate(q, qd, h)  # with the new rates: semi-implicit
        if k % (steps // 4) == 0:
            kinetic = tether.kinetic_energy(q, qd)
            error = (kinetic + tether.potential_energy(q) - at_rest) / kinetic
            x, _, z = tether.forward_kinematics(q, "tip")[:3, 3]
            shapes.append((h, k * h, tether.link_poses(q)[:, :3, 3]))
            print(
                f"{1e3 * h:8.2f}  {k * h:7.2f}  {x:8.4f}  {z:8.4f}  {kinetic:17.3f}  {error:21.1e}"
            )
    steps_taken += steps
print(f"\n{1e6 * (time.perf_counter() - began) / steps_taken:.0f} µs a step")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    axes = (figure := Figure(figsize=(8, 3.4), layout="constrained")).subplots()
    axes.plot((0, 20), (0, 0), ":", color="0.6", label="let go")
    for (_, t, places), style in zip(shapes[4:], ("0.65", "0.45", "0.25", "0.0"), strict=True):
        axes.plot(places[:, 0], places[:, 2], color=style, label=f"{t:.1f} s")
    axes.plot(0, 0, "ks", ms=8)
    axes.set(title="a tether of 2,000 links, held at its left end", xlabel="x, m", ylabel="z, m")
    axes.legend(loc="lower left")
    figure.savefig("tether.png", dpi=110)
    print("tether.png saved")
