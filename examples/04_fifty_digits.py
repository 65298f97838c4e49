"""The same equations on other numbers: 50 digits, and the exact cost of what is compiled."""

import mpmath
import numpy as np

import linkwise as lw
import linkwise.spatial.precise  # teaches the equations mpmath's numbers

robot = lw.load("iiwa14")
rng = np.random.default_rng(3)
q, qd, tau = rng.normal(size=(3, robot.nv))

mpmath.mp.dps = 50
exact = robot.evaluate("forward_dynamics", *([mpmath.mpf(x) for x in v] for v in (q, qd, tau)))
for method in ("crba", "aba"):
    found = robot.forward_dynamics(q, qd, tau, method=method)
    error = max(abs((mpmath.mpf(a) - b) / b) for a, b in zip(found, exact, strict=True))
    count = robot.operation_count("forward_dynamics", method)
    print(f"{method}: largest relative error {mpmath.nstr(error, 2)}; {count}")
print("qdd[0] =", mpmath.nstr(exact[0], 50))
print(robot.source("gravity_torque")[:400], "...")
