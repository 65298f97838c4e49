"""Actuator sizing: torques for any tip speed along a path, from coefficients of position alone.

Along a path with unit tip speed, joint rates q' and their change q'' depend on the place s only:

    tau(s, v) = g + v² t,      t = M q'' + q'ᵀ P* q',      q'' = -J⁻¹ q'ᵀ H q'

so that one pass over the path sizes the motors for every speed v, and says which speed motors of a
given size allow [Kang]. The tip moves on a straight line without turning.
"""

import importlib.util

import numpy as np

import linkwise as lw

robot, tip = lw.load("puma560"), "link6"
start = np.array([0.3, -0.6, 0.5, 0.2, 0.7, 0.1])
direction = np.array([0.0, 0.0, 0.0, 0.6, 0.64, -0.48])  # of the tip: (angular, linear)
s, ds = np.linspace(0.0, 0.4, 201, retstep=True)  # metres


def slope(q: np.ndarray) -> np.ndarray:
    return np.linalg.solve(robot.jacobian(q, tip), direction)


q = [start]
for _ in s[1:]:  # fourth-order Runge-Kutta along the line
    k1 = slope(q[-1])
    k2 = slope(q[-1] + ds / 2 * k1)
    k3 = slope(q[-1] + ds / 2 * k2)
    q.append(q[-1] + ds / 6 * (k1 + 2 * k2 + 2 * k3 + slope(q[-1] + ds * k3)))
q = np.array(q)

G, H = robot.kic(q, tip)
dq = np.linalg.solve(G, direction[:, None])[..., 0]
ddq = -np.linalg.solve(G, np.einsum("srjk,sj,sk->sr", H, dq, dq)[..., None])[..., 0]
P = robot.inertial_power(q)
t = np.einsum("sij,sj->si", robot.mass_matrix(q), ddq) + np.einsum("sijk,sj,sk->si", P, dq, dq)
g = robot.gravity_torque(q)

speeds = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
needed = np.abs(g + speeds[:, None, None] ** 2 * t).max(axis=1)
print("largest torque along the path, N m")
print("tip speed " + "".join(f"{name:>9}" for name in robot.joint_names))
for v, row in zip(speeds, needed, strict=True):
    print(f"{v:5.1f} m/s " + "".join(f"{x:9.2f}" for x in row))

motors = 2.0 * np.abs(g).max(axis=0) + 5.0
room = np.where(t > 0, motors - g, motors + g) / np.maximum(np.abs(t), 1e-12)
place, joint = np.unravel_index(np.argmin(room), room.shape)
top = float(np.sqrt(room[place, joint]))
print(f"\nwith motors of {np.array2string(motors, precision=1)} N m the tip may do {top:.2f} m/s;")
print(f"{robot.joint_names[joint]} is what limits it, {s[place]:.2f} m along the path")
check = robot.inverse_dynamics(q, top * dq, top**2 * ddq)
print(f"inverse dynamics at that speed agrees to {np.abs(check - g - top**2 * t).max():.0e} N m")

if importlib.util.find_spec("matplotlib"):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10, 5), sharex=True, layout="constrained")
    for i, axis in enumerate(axes.flat):
        for v in speeds:
            shade = str(0.7 - 0.35 * v)  # faster is darker
            axis.plot(s, g[:, i] + v**2 * t[:, i], color=shade, label=f"{v:.1f} m/s")
        axis.axhspan(-motors[i], motors[i], color="0.9", zorder=0)
        axis.set(title=robot.joint_names[i], xlabel="path, m", ylabel="torque, N m")
    axes[0, 0].legend(fontsize="small")
    figure.savefig("actuator_sizing.png", dpi=120)
    print("plot in actuator_sizing.png")
