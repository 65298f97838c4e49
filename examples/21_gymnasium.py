"""A thousand pendulums in Gymnasium: a vector environment, one call of `simulate` a step.

The usual task: swing up and stay, with a torque too weak to lift the pendulum at once. One step of
the environment is one compiled rollout of all pendulums, the torque held over it. A picture is
saved, where matplotlib is installed.
"""

import sys

import numpy as np

import linkwise as lw

try:
    import gymnasium as gym
except ImportError:
    print("no environment without Gymnasium: pip install 'linkwise[gymnasium]'")
    sys.exit()
MOST, STEP, LENGTH = 2.0, 0.05, 200  # N m, s, steps of an episode
b = lw.Builder("pendulum").link("rod", mass=1.0, com=(0.0, 0.0, 0.5), inertia=(1 / 12, 1 / 12, 0.0))
ROBOT = b.joint("pivot", "revolute", parent="base", child="rod", axis=(0.0, 1.0, 0.0)).build()


class Pendulums(gym.vector.VectorEnv):
    """Observations (cos, sin, rate); actions are torques; rewards as Gymnasium's Pendulum has."""

    def __init__(self, num_envs):
        self.num_envs, batch = num_envs, gym.vector.utils.batch_space
        self.single_observation_space = gym.spaces.Box(-np.inf, np.inf, (3,))
        self.single_action_space = gym.spaces.Box(-MOST, MOST, (1,))
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.q = self.np_random.uniform(-np.pi, np.pi, (self.num_envs, 1))
        self.qd, self.steps = np.zeros_like(self.q), 0
        return self._seen(), {}

    def step(self, actions):
        tau = np.clip(np.asarray(actions, float), -MOST, MOST)
        angle = (self.q + np.pi) % (2 * np.pi) - np.pi
        reward = -(angle**2 + 0.1 * self.qd**2 + 1e-3 * tau**2)[:, 0]
        law = lw.control.constant(ROBOT, tau)
        run = lw.simulate(ROBOT, self.q, self.qd, law, STEP, STEP / 5, every=None)
        (self.q, self.qd), self.steps = run.final, self.steps + 1
        late = np.full(self.num_envs, self.steps >= LENGTH)
        return self._seen(), reward, np.zeros_like(late), late, {}

    def _seen(self):
        return np.hstack((np.cos(self.q), np.sin(self.q), self.qd)).astype(np.float32)


envs = Pendulums(1000)
seen, late, angles = envs.reset(seed=0)[0], np.zeros(1, bool), []
while not late.all():  # pump energy until the pendulum stands nearly upright, then hold it
    (c, s, rate), energy = seen.T, seen[:, 2] ** 2 / 6 + 9.81 * 0.5 * (seen[:, 0] - 1)
    hold = -12 * np.arctan2(s, c) - 3 * rate
    torque = np.where((c > 0.9) & (np.abs(rate) < 2.5), hold, -3 * np.sign(rate) * energy)
    seen, reward, _, late, _ = envs.step(torque[:, None])
    angles.append(np.rad2deg(np.arctan2(seen[:, 1], seen[:, 0])))
print(f"{envs.num_envs} pendulums, {LENGTH} steps: {np.mean(seen[:, 0] > 0.95):.0%} upright")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    t, degrees = STEP * np.arange(1, LENGTH + 1), np.array(angles)
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    some, share = figure.subplots(2, 1, sharex=True)
    some.plot(t, degrees[:, :40], ".", color="0.2", ms=1.5)
    some.set(title="forty of a thousand pendulums", ylabel="angle, degrees", yticks=(-180, 0, 180))
    share.plot(t, 100 * (np.abs(degrees) < 18).mean(axis=1), color="#0072b2")
    share.set(xlabel="time, s", ylabel="upright, %", ylim=(0, 103))
    figure.savefig("gymnasium.png", dpi=110)
    print("gymnasium.png saved")
