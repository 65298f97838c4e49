"""A hundred thousand states at once: leading axes broadcast as in NumPy, float32 stays float32."""

import time

import numpy as np

import linkwise as lw

robot = lw.load("iiwa14")
rng = np.random.default_rng(0)
q, qd, tau = rng.normal(size=(3, 100_000, robot.nv))

qdd = robot.forward_dynamics(q, qd, tau)  # compiles once, then is cached on disk
start = time.perf_counter()
robot.forward_dynamics(q, qd, tau, out=qdd)
print(f"{len(q) / (time.perf_counter() - start) / 1e6:.1f} million forward dynamics a second")

one_pose = q[0]  # one configuration, many torques
print("broadcast:", robot.forward_dynamics(one_pose, qd[0], tau).shape)
grid = rng.normal(size=(20, 30, robot.nv))
print("any leading axes:", robot.mass_matrix(grid).shape)
print("float32 stays:", robot.inverse_dynamics(*(x.astype("f4") for x in (q, qd, tau))).dtype)

residual = robot.inverse_dynamics(q, qd, qdd) - tau
print(f"inverse of forward dynamics: worst residual {np.abs(residual).max():.1e} N m")
