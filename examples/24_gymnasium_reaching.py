"""A thousand arms in Gymnasium: a vector environment whose arms reach for goals.

An action is where the joints shall go from here; a step of the environment is one compiled rollout
of all arms under a law of computed torques, which is part of the compiled loop. A picture is saved,
where matplotlib is installed.
"""

import sys

import numpy as np

import linkwise as lw

try:
    import gymnasium as gym
except ImportError:
    print("no environment without Gymnasium: pip install 'linkwise[gymnasium]'")
    sys.exit()

MOST, STEP, LENGTH = 0.5, 0.05, 60  # rad, s, steps of an episode
ROBOT, TIP = lw.load("iiwa14"), "link7"
NEAR, FAR = (0.3, -0.4, 0.4), (0.6, 0.4, 0.9)  # corners of the goals' box, m


class Arms(gym.vector.VectorEnv):
    """Observations (q, qd, way to the goal); rewards are distances, negative."""

    def __init__(self, num_envs):
        self.num_envs, batch = num_envs, gym.vector.utils.batch_space
        self.single_observation_space = gym.spaces.Box(-np.inf, np.inf, (2 * ROBOT.nv + 3,))
        self.single_action_space = gym.spaces.Box(-MOST, MOST, (ROBOT.nv,))
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.q = self.np_random.uniform(-0.5, 0.5, (self.num_envs, ROBOT.nv))
        self.qd, self.steps = np.zeros_like(self.q), 0
        self.goals = self.np_random.uniform(NEAR, FAR, (self.num_envs, 3))
        return self._seen(), {}

    def step(self, actions):
        target = self.q + np.clip(np.asarray(actions, float), -MOST, MOST)
        law = lw.control.computed_torque(ROBOT, 100.0, 20.0, target)
        run = lw.simulate(ROBOT, self.q, self.qd, law, STEP, STEP / 5, every=None)
        (self.q, self.qd), self.steps = run.final, self.steps + 1
        seen, late = self._seen(), np.full(self.num_envs, self.steps >= LENGTH)
        return seen, -np.linalg.norm(seen[:, -3:], axis=1), np.zeros_like(late), late, {}

    def _seen(self):
        way = self.goals - ROBOT.forward_kinematics(self.q, TIP)[:, :3, 3]
        return np.hstack((self.q, self.qd, way)).astype(np.float32)


envs = Arms(1000)
seen, late, ways = envs.reset(seed=0)[0], np.zeros(1, bool), []
while not late.all():  # by damped least squares, where a policy that has learnt would stand
    J = ROBOT.jacobian(envs.q, TIP)[:, 3:]
    action = J.mT @ np.linalg.solve(J @ J.mT + 0.05 * np.eye(3), seen[:, -3:, None])
    seen, reward, _, late, _ = envs.step(action[..., 0])
    ways.append(seen[:, -3:])
print(f"{envs.num_envs} arms, {LENGTH} steps: {np.mean(reward > -0.01):.0%} within 1 cm at last")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    t, away = STEP * np.arange(1, LENGTH + 1), 100 * np.linalg.norm(ways, axis=-1)  # cm
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    far, above = figure.subplots(1, 2)
    far.fill_between(t, *np.percentile(away, (5, 95), axis=1), color="0.8", label="nine of ten")
    far.semilogy(t, np.median(away, axis=1), color="k", label="median")
    far.set(title="distance of a thousand hands from their goals", xlabel="time, s", ylabel="cm")
    far.legend()
    for goal, way in zip(envs.goals[:12], np.array(ways)[:, :12].swapaxes(0, 1), strict=True):
        above.plot(*(goal - way)[:, :2].T, color="0.4", lw=1)
        above.plot(*goal[:2], "k*", ms=8)
    above.set(title="twelve of them from above, to their goals", xlabel="x, m", ylabel="y, m",
              aspect="equal")  # fmt: skip
    figure.savefig("gymnasium_reaching.png", dpi=110)
    print("gymnasium_reaching.png saved")
