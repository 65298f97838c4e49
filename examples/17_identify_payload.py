"""What an arm holds: one unknown body, from the torques of its motors.

The picture has the mass that is found over the number of measured states. It is saved where
matplotlib is installed.
"""

import numpy as np

import linkwise as lw

arm = lw.load("iiwa14").with_inertia("link7", 0.4, (0.0, 0.0, 0.02), (0.001, 0.001, 0.001))
held = arm.with_payload("link7", 1.5, (0.02, 0.0, 0.08), (0.004, 0.005, 0.003))

rng = np.random.default_rng(0)
q, qd, qdd = arm.random_q(rng, size=300), *rng.normal(size=(2, 300, arm.nv))
tau = held.inverse_dynamics(q, qd, qdd) + 0.02 * rng.normal(size=(300, arm.nv))

found = lw.identify(arm, q, qd, qdd, tau, bodies=["link7"])
load = found.parameters[-1] - arm.inertial_parameters[-1]
print(f"mass {load[0]:.4f} ± {found.errors[-1, 0]:.4f} kg, truth 1.5")
print("centre of mass", np.round(load[1:4] / load[0], 3), "m, truth [0.02 0 0.08]")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    sizes = (5, 10, 20, 40, 80, 160, 300)
    parts = [lw.identify(arm, q[:n], qd[:n], qdd[:n], tau[:n], bodies=["link7"]) for n in sizes]
    mass = [part.parameters[-1, 0] - arm.inertial_parameters[-1, 0] for part in parts]
    band = [2 * part.errors[-1, 0] for part in parts]
    axes = (figure := Figure(figsize=(7, 3.6), layout="constrained")).subplots()
    axes.axhline(1.5, color="0.6", ls="--", label="truth")
    axes.errorbar(sizes, mass, band, fmt="o", color="k", capsize=4, label="found, ± 2 deviations")
    axes.set(xscale="log", title="a payload at the hand of iiwa14, torques with 0.02 N m of noise",
             xlabel="measured states", ylabel="mass, kg")  # fmt: skip
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.legend()
    figure.savefig("identify_payload.png", dpi=110)
    print("identify_payload.png saved")
