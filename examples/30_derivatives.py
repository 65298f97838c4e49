"""Derivatives of the dynamics: exact to rounding, beside what finite differences make of them.

The slope of torques along each joint comes from equations of its own, in one call. A difference
quotient is at best right to eight or ten digits, and only with the right step. A picture is saved,
where matplotlib is installed.
"""

import numpy as np

import linkwise as lw

robot = lw.load("iiwa14")
rng = np.random.default_rng(1)
q, qd, qdd = robot.random_q(rng), *rng.normal(size=(2, robot.nv))

by_q, by_qd, M = robot.inverse_dynamics_derivatives(q, qd, qdd)
print("by q", by_q.shape, "by qd", by_qd.shape, "by qdd: the mass matrix,", M.shape)
assert np.allclose(M, robot.mass_matrix(q))

steps = np.logspace(-12, -1, 45)
moved = np.eye(robot.nv) * steps[:, None, None]  # (45, 7, 7): each joint, by each step
ahead = robot.inverse_dynamics(robot.integrate(q, moved), qd, qdd)  # all of them in one batch
behind = robot.inverse_dynamics(robot.integrate(q, -moved), qd, qdd)
here = robot.inverse_dynamics(q, qd, qdd)
quotients = {
    "forward difference": (ahead - here) / steps[:, None, None],
    "central difference": (ahead - behind) / (2 * steps[:, None, None]),
}
errors = {
    k: np.abs(x.mT - by_q).max(axis=(1, 2)) / np.abs(by_q).max() for k, x in quotients.items()
}
for name, error in errors.items():
    print(f"{name}: at best {error.min():.0e}, with a step of {steps[error.argmin()]:.0e} rad")

slope = robot.derivative("gravity_torque", "q")(q)  # of any function, by any argument
curvature = robot.derivative("potential_energy", "q", order=2)(q)
print(
    f"slope of gravity's torques is the energy's curvature: {np.abs(slope - curvature).max():.0e}"
)

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(10, 4), layout="constrained")
    cells, lines = figure.subplots(1, 2, width_ratios=(1, 1.3))
    cells.imshow(np.abs(by_q) ** 0.5, cmap="Greys", vmax=1.6 * np.abs(by_q).max() ** 0.5)
    for i, k in np.ndindex(by_q.shape):
        cells.text(k, i, f"{by_q[i, k].round(1) + 0.0:.1f}", ha="center", va="center", fontsize=9)
    cells.set(title="torques by angles, N m/rad", xlabel="angle of joint", ylabel="torque of joint")
    cells.set_xticks(range(7), range(1, 8))
    cells.set_yticks(range(7), range(1, 8))
    for (name, error), style in zip(errors.items(), ("k-", "k--"), strict=True):
        lines.loglog(steps, error, style, label=name)
    lines.axhline(2**-52, color="0.6", lw=3, label="rounding")
    lines.set(title="difference quotients beside the exact slopes", xlabel="step, rad",
              ylabel="relative difference")  # fmt: skip
    lines.legend()
    figure.savefig("derivatives.png", dpi=110)
    print("derivatives.png saved")
