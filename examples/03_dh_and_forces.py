"""A robot from a DH table, pushed at its tip; and its swing conserves energy."""

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
start = robot.potential_energy(q)
for _ in range(2000):
    k1 = rate(state)
    k2 = rate(state + h / 2 * k1)
    k3 = rate(state + h / 2 * k2)
    state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(state + h * k3))
energy = robot.kinetic_energy(state[:2], state[2:]) + robot.potential_energy(state[:2])
print(f"energy after 2 s of swing: relative drift {abs(energy - start) / abs(start):.1e}")
