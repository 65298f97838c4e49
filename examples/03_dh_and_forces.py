"""A robot from a DH table: pushed at its tip, and left to swing.

The picture has the swing, and the energy's error along it. It is saved where matplotlib is
installed.
"""

import numpy as np

import linkwise as lw

rows = [
    lw.DHRow(a=0.5, mass=2.0, com=(-0.25, 0.0, 0.0), inertia=(0.002, 0.04, 0.04)),
    lw.DHRow(a=0.4, mass=1.0, com=(-0.2, 0.0, 0.0), inertia=(0.001, 0.02, 0.02), gear=50.0,
             motor_inertia=1e-5),
]  # fmt: skip
robot = lw.from_dh(rows, "standard", name="two links", gravity=(0.0, -9.81, 0.0))

q, qd = np.array([0.3, 0.8]), np.zeros(2)
push = {"link2": [0.0, 0.0, 0.0, 10.0, 0.0, 0.0]}  # (moment, force) at link2's origin, base axes
held = robot.gravity_torque(q) - robot.gravity_torque(q, f_ext=push)
print("torque of a 10 N push    ", held)
print("the same, Jᵀ f           ", robot.jacobian(q, "link2").T @ push["link2"])


def rate(state: np.ndarray) -> np.ndarray:
    return np.concatenate([state[2:], robot.forward_dynamics(state[:2], state[2:], np.zeros(2))])


state, h = np.concatenate([q, qd]), 1e-3
states = [state]
for _ in range(2000):
    k1 = rate(state)
    k2 = rate(state + h / 2 * k1)
    k3 = rate(state + h / 2 * k2)
    state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(state + h * k3))
    states.append(state)
q, qd = np.split(np.array(states), 2, axis=1)  # (2001, 2) each: all steps at once
energy = robot.kinetic_energy(q, qd) + robot.potential_energy(q)
drift = np.abs(energy / energy[0] - 1)
print(f"energy after 2 s of swing: relative drift {drift[-1]:.1e}")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(9, 4), layout="constrained")
    plane, error = figure.subplots(1, 2)
    joints = robot.forward_kinematics(q, ["base", "link1", "link2"])[..., :2, 3]  # (2001, 3, 2)
    for k in range(0, 900, 50):
        shade = str(0.85 - 0.85 * k / 900)  # later is darker
        plane.plot(joints[k, :, 0], joints[k, :, 1], "o-", color=shade, lw=2, ms=4)
    plane.set(title="the first 0.9 s, later is darker", xlabel="x, m", ylabel="y, m",
              aspect="equal")  # fmt: skip
    error.semilogy(h * np.arange(1, len(drift)), np.maximum(drift[1:], 1e-16), color="#0072b2")
    error.set(title="relative error of the energy, RK4 at 1 ms", xlabel="time, s")
    error.grid(alpha=0.3)
    figure.savefig("dh_and_forces.png", dpi=110)
    print("dh_and_forces.png saved")
