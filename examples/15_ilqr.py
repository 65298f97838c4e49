"""iLQR on an arm: torques that bring the tip to a place at rest, with as little effort as it takes.

Each round, the dynamics of all steps are linearised in one call, a backward pass finds gains, and
one batch of rollouts tries eight lengths of the step. A picture is saved, where matplotlib is
installed.
"""

import numpy as np

import linkwise as lw

STEPS, DT, GOAL = 100, 0.01, np.array([-0.3, 0.5, 0.4])  # one second; metres
EFFORT, MISS, SPEED = 1e-4, 1e5, 100.0  # prices
robot = lw.load("puma560")
n, tip_rates = robot.nv, robot.derivative("forward_kinematics", "q", frame="link6", value=True)
start = np.r_[robot.neutral() + 0.3, np.zeros(n)]
rest = robot.gravity_torque(start[:n])


def rollouts(xs, us, ks, Ks, sizes):
    """Motions (sizes, steps + 1, 2n) and torques, for steps of several sizes (sizes, 1) at once."""
    x, motions, torques = np.tile(start, (len(sizes), 1)), [], []
    for x0, u, k, K in zip(xs, us, ks, Ks, strict=False):
        motions.append(x)
        torques.append(u + sizes * k + (x - x0) @ K.T)
        rates = x[:, n:] + DT * robot.forward_dynamics(x[:, :n], x[:, n:], torques[-1])
        x = np.hstack([x[:, :n] + DT * rates, rates])
    return np.stack([*motions, x], 1), np.stack(torques, 1)


def costs(xs, us):
    miss = robot.forward_kinematics(xs[:, -1, :n], "link6")[:, :3, 3] - GOAL
    end = MISS * (miss**2).sum(-1) + SPEED * (xs[:, -1, n:] ** 2).sum(-1)
    return 0.5 * (end + EFFORT * ((us - rest) ** 2).sum((1, 2)))


us, ks, Ks = np.tile(rest, (STEPS, 1)), np.zeros((STEPS, n)), np.zeros((STEPS, n, 2 * n))
motions, torques = rollouts(np.tile(start, (STEPS, 1)), us, ks, Ks, np.ones((1, 1)))
rounds = [(costs(motions, torques)[0], motions[0], torques[0])]
while len(rounds) < 50:
    cost, xs, us = rounds[-1]
    by_q, by_qd, Minv = robot.forward_dynamics_derivatives(xs[:-1, :n], xs[:-1, n:], us)
    rates = np.concatenate([DT * by_q, np.eye(n) + DT * by_qd], -1)  # after a step, by the state
    A = np.concatenate([np.eye(n, 2 * n) + DT * rates, rates], 1)
    B = np.concatenate([DT * DT * Minv, DT * Minv], 1)
    pose, J = tip_rates(xs[-1, :n])
    J = J[3:] @ np.eye(n, 2 * n)  # of the place, by the state
    still = np.diag(np.r_[np.zeros(n), np.full(n, SPEED)])
    v, V = MISS * J.T @ (pose[:3, 3] - GOAL) + still @ xs[-1], MISS * J.T @ J + still
    for t in reversed(range(STEPS)):  # v, V: gradient and Hessian of the cost from t on
        Quu, Qux = EFFORT * np.eye(n) + B[t].T @ V @ B[t], B[t].T @ V @ A[t]
        ks[t] = -np.linalg.solve(Quu, EFFORT * (us[t] - rest) + B[t].T @ v)
        Ks[t] = -np.linalg.solve(Quu, Qux)
        v, V = A[t].T @ v + Qux.T @ ks[t], A[t].T @ V @ A[t] + Qux.T @ Ks[t]
    motions, torques = rollouts(xs, us, ks, Ks, 0.5 ** np.arange(8)[:, None])
    found = costs(motions, torques)
    best = int(np.nanargmin(found))
    if found[best] > cost * (1 - 1e-4):
        break
    rounds.append((found[best], motions[best], torques[best]))

cost, xs, us = rounds[-1]
miss = robot.forward_kinematics(xs[-1, :n], "link6")[:3, 3] - GOAL
print(f"{len(rounds) - 1} rounds: the cost went from {rounds[0][0]:.0f} to {cost:.1f}")
print(f"{1e3 * np.linalg.norm(miss):.1f} mm from the goal, at {np.abs(xs[-1, n:]).max():.3f} rad/s")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    paths, fall, push = figure.subplots(1, 3)
    for k, (_, motion, _) in enumerate(rounds):
        way = robot.forward_kinematics(motion[:, :n], "link6")[:, :3, 3]
        last = k == len(rounds) - 1
        paths.plot(way[:, 1], way[:, 2], color="C3" if last else "0.7", lw=2 if last else 1,
                   label="last round" if last else "rounds before" if k == 0 else None)  # fmt: skip
    paths.plot(*GOAL[1:], "k*", ms=12, label="goal")
    paths.set(xlabel="y, m", ylabel="z, m", title="the tip, seen along x", aspect="equal")
    fall.semilogy([cost for cost, _, _ in rounds], "o-")
    fall.set(xlabel="round", title="cost")
    for k, style in zip(range(n), ("-", "--", "-.", ":", "-", "--"), strict=True):
        push.plot(DT * np.arange(STEPS), us[:, k], style, lw=1 + k // 4, label=f"joint {k + 1}")
    push.set(xlabel="t, s", title="torques of the last round, N m")
    for axes in (paths, push):
        axes.legend(fontsize=8)
    figure.savefig("ilqr.png", dpi=110)
    print("\nilqr.png saved")
