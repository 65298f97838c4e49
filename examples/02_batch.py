"""A hundred thousand states at once: leading axes broadcast as in NumPy, float32 stays float32.

The picture has the rate over the size of the batch, on this machine, and what a batch is good for:
the torques that gravity asks of each motor over all poses within the limits. It is saved where
matplotlib is installed.
"""

import time

import numpy as np

import linkwise as lw

robot = lw.load("iiwa14")
rng = np.random.default_rng(0)
q, qd, tau = rng.normal(size=(3, 100_000, robot.nv))

qdd = robot.forward_dynamics(q, qd, tau)  # compiles once, then is cached on disk
rates = {}
for size in (1, 10, 100, 1000, 10_000, 100_000):
    some, times = [x[:size] for x in (q, qd, tau)], []
    for _ in range(20):
        start = time.perf_counter()
        robot.forward_dynamics(*some)
        times.append(time.perf_counter() - start)
    rates[size] = size / min(times) / 1e6
    print(f"{size:7,} states a call: {rates[size]:5.1f} million forward dynamics a second")

one_pose = q[0]  # one configuration, many torques
print("broadcast:", robot.forward_dynamics(one_pose, qd[0], tau).shape)
grid = rng.normal(size=(20, 30, robot.nv))
print("any leading axes:", robot.mass_matrix(grid).shape)
print("float32 stays:", robot.inverse_dynamics(*(x.astype("f4") for x in (q, qd, tau))).dtype)

residual = robot.inverse_dynamics(q, qd, qdd) - tau
print(f"inverse of forward dynamics: worst residual {np.abs(residual).max():.1e} N m")

weight = robot.gravity_torque(
    robot.random_q(seed=0, size=100_000)
)  # (100000, 7), within the limits
print("largest torque of gravity, N m:", np.abs(weight).max(axis=0).round(1))

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    speed, torques = figure.subplots(1, 2)
    speed.semilogx(list(rates), list(rates.values()), "o-", color="k")
    speed.set(title="forward dynamics of iiwa14", xlabel="states in a call",
              ylabel="million states a second", ylim=(0, None))  # fmt: skip
    speed.grid(alpha=0.3)
    marks = np.percentile(weight, (0, 5, 50, 95, 100), axis=0)
    names = [name.removeprefix("joint") for name in robot.joint_names]
    torques.vlines(names, marks[0], marks[4], color="0.6", label="all poses")
    torques.vlines(names, marks[1], marks[3], color="0.1", lw=8, label="nine of ten")
    torques.plot(names, marks[2], "o", color="w", mec="k", label="median")
    torques.set(title="torques of gravity over 100,000 poses", xlabel="joint", ylabel="N m")
    torques.legend()
    figure.savefig("batch.png", dpi=110)
    print("batch.png saved")
