"""A control loop in Python: computed torque with a payload that the controller does not know.

The robot's own model computes the torques, once a millisecond; the arm that moves carries half a
kilogram more. What is left of the error is what the controller is not told. A picture is saved,
where matplotlib is installed.
"""

import importlib.util

import numpy as np

import linkwise as lw

model = lw.load("iiwa14")  # what the controller knows
arm = model.with_payload("link7", 0.5, com=(0.0, 0.0, 0.1))  # what moves
h, steps = 1e-3, 3000
t = h * np.arange(steps)
wanted = np.stack([0.4 * np.sin(2 * t + k) - 0.4 * np.sin(k) for k in range(7)], -1)
rates = np.gradient(wanted, h, axis=0)
accelerations = np.gradient(rates, h, axis=0)

errors = {}
for name, known in (("payload unknown", model), ("payload known", arm)):
    q, qd = wanted[0].copy(), rates[0].copy()
    off = np.empty((steps, 7))
    for k in range(steps):
        off[k] = wanted[k] - q
        qdd = accelerations[k] + 400 * off[k] + 40 * (rates[k] - qd)
        tau = known.inverse_dynamics(q, qd, qdd)
        qd = qd + h * arm.forward_dynamics(q, qd, tau)
        q = arm.integrate(q, qd, h)
    errors[name] = np.rad2deg(np.abs(off).max(1))
    print(f"{name:16}: largest error {errors[name].max():.3f}°, at the end {errors[name][-1]:.3f}°")

if importlib.util.find_spec("matplotlib"):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
    for (name, error), style in zip(errors.items(), ("-", "--"), strict=True):
        axis.semilogy(t, error, style, label=name)
    axis.set(xlabel="time, s", ylabel="largest joint error, degrees", title="computed torque")
    axis.legend()
    figure.savefig("control_loop.png", dpi=110)
    print("control_loop.png saved")
