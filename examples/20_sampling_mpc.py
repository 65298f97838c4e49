"""Sampling MPC: a cart swings its pole up, by trying five hundred futures at every step.

Model-predictive path integral control: random pushes around the last plan, one compiled batch of
rollouts, and the mean of the pushes, weighted by how well each went. No derivatives are needed. A
picture is saved, where matplotlib is installed.
"""

import numpy as np

import linkwise as lw

STEPS, ROWS, AHEAD, DT = 140, 500, 40, 0.025  # at each step so many futures; seconds
SPREAD, HEAT = 8.0, 0.05  # of pushes, N; of costs

b = lw.Builder("cart and pole").link("cart", mass=1.0)
b = b.joint("slide", "prismatic", parent="base", child="cart", axis=(1.0, 0.0, 0.0))
b = b.link("pole", mass=0.2, com=(0.0, 0.0, 0.5), inertia=(0.017, 0.017, 0.0))
robot = b.joint("pivot", "revolute", parent="cart", child="pole", axis=(0.0, 1.0, 0.0)).build()


def futures(q, qd, pushes):
    """States (rows, steps, 4) under pushes (rows, steps) of the cart; the pole has no motor."""
    tau = np.stack([pushes, np.zeros_like(pushes)], -1)
    law = lw.control.constant(robot, lw.control.PerStep(tau))
    run = lw.simulate(robot, q, qd, law, DT * pushes.shape[-1], DT, "euler")
    return np.concatenate([run.q, run.qd], -1)[..., 1:, :]


def costs(states):
    """Upright (angle 0), in the middle, and slow."""
    x, angle, speed, rate = np.moveaxis(states, -1, 0)
    return (4.0 * (1.0 - np.cos(angle)) + 0.5 * x**2 + 0.05 * speed**2 + 0.05 * rate**2).mean(-1)


rng = np.random.default_rng(0)
q, qd, plan = np.array([0.0, np.pi]), np.zeros(2), np.zeros(AHEAD)
states, done, seen = [np.r_[q, qd]], [], []
for step in range(STEPS):
    noise = rng.normal(scale=SPREAD, size=(ROWS, AHEAD))
    pushes = np.clip(plan + 0.5 * (noise + np.roll(noise, 1, axis=1)), -15.0, 15.0)
    tried = futures(q, qd, pushes)
    cost = costs(tried)
    weights = np.exp((cost.min() - cost) / HEAT)
    plan = weights @ pushes / weights.sum()
    state = futures(q, qd, plan[:1])[-1]
    q, qd = state[:2], state[2:]
    states.append(state)
    done.append(plan[0])
    if step == 12:
        seen = tried[np.argsort(cost)[:: ROWS // 50], :, 1]
    plan = np.r_[plan[1:], 0.0]
states = np.array(states)
late = np.abs(np.angle(np.exp(1j * states[-40:, 1]))).max()
print(f"{STEPS * ROWS:,} futures of {AHEAD} steps; pushes up to {np.abs(done).max():.1f} N")
print(f"in the last second the pole leaned by {np.degrees(late):.1f} degrees at most")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure, t = Figure(figsize=(9, 4.5), layout="constrained"), DT * np.arange(STEPS + 1)
    top, bottom = figure.subplots(2, 1, sharex=True)
    for row in seen:
        top.plot(DT * (13 + np.arange(AHEAD)), np.degrees(row), color="0.8", lw=0.7)
    top.plot(t, np.degrees(states[:, 1]), "C3", lw=2)
    top.set(ylabel="angle of the pole, °", title="fifty futures tried at 0.3 s, and what came")
    bottom.plot(t, states[:, 0], "k", label="place of the cart, m")
    bottom.step(t[1:], np.array(done) / 10.0, lw=1, label="push, 10 N")
    bottom.set(xlabel="t, s")
    bottom.legend(loc="upper right")
    figure.savefig("sampling_mpc.png", dpi=110)
    print("\nsampling_mpc.png saved")
