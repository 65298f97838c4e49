"""The same equations on other numbers: 50 digits, and the exact cost of what is compiled.

The picture has the error of each method of forward dynamics beside its operations. It is saved
where matplotlib is installed.
"""

import mpmath
import numpy as np

import linkwise as lw
import linkwise.spatial.precise  # teaches the equations mpmath's numbers

robot = lw.load("iiwa14")
rng = np.random.default_rng(3)
q, qd, tau = rng.normal(size=(3, robot.nv))

mpmath.mp.dps = 50
exact = robot.evaluate("forward_dynamics", *([mpmath.mpf(x) for x in v] for v in (q, qd, tau)))
costs, errors = {}, {}
for method in ("crba", "aba", "fd1", "schur"):
    found = robot.forward_dynamics(q, qd, tau, method=method)
    error = max(abs((mpmath.mpf(a) - b) / b) for a, b in zip(found, exact, strict=True))
    count = robot.operation_count("forward_dynamics", method)
    print(f"{method}: largest relative error {mpmath.nstr(error, 2)}; {count}")
    costs[method], errors[method] = count.total, float(error)
print("qdd[0] =", mpmath.nstr(exact[0], 50))
print(robot.source("gravity_torque")[:400], "...")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    axes = (figure := Figure(figsize=(7, 4), layout="constrained")).subplots()
    axes.loglog(list(costs.values()), list(errors.values()), "o", color="0.2")
    for method in costs:
        place, beside = (costs[method], errors[method]), (7, -10 if method == "aba" else 4)
        axes.annotate(method, place, xytext=beside, textcoords="offset points")
    axes.set(title="forward dynamics of iiwa14, one state, against 50 digits",
             xlabel="multiplications, additions, divisions and square roots",
             ylabel="largest relative error")  # fmt: skip
    axes.margins(0.15)
    axes.grid(alpha=0.3)
    figure.savefig("fifty_digits.png", dpi=110)
    print("fifty_digits.png saved")
