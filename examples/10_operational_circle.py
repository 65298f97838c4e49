"""A hand goes round a circle: operational-space control of a seven-joint arm.

The law computes torques with which the hand accelerates as it should, whatever the inertia of the
arm, its gravity and its velocities do. Told how fast its target moves, the hand stays within a
tenth of a millimetre of it, with torques that are held for steps of 1 ms; told the pose alone, it
lags by centimetres. Six directions of the hand leave a seventh joint something else to do: with a
posture the arm stays near where it began, without one it falls where gravity takes it, and the
hand does not notice. A picture is saved, where matplotlib is installed.
"""

import numpy as np

import linkwise as lw

FRAME, RADIUS, TURN, DT = "link7", 0.12, 1.5, 1e-3  # m, s, s

robot = lw.load("iiwa14")
start = np.array([0.3, 0.6, 0.2, -1.4, 0.1, 0.7, 0.0])
first = robot.forward_kinematics(start, FRAME)

steps = round(2 * TURN / DT)
t = np.arange(steps) * DT
angle = 2 * np.pi / TURN * (np.hypot(t, 0.3) - 0.3)  # begins at rest
side, up = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
round_ = RADIUS * (np.outer(np.cos(angle) - 1, up) + np.outer(np.sin(angle), side))

poses = np.repeat(first[None], steps, axis=0)  # its axes stay as they are
poses[:, :3, 3] += round_
velocity, acceleration = np.zeros((2, steps, 6))  # (angular, linear)
velocity[:, 3:] = np.gradient(round_, DT, axis=0)
acceleration[:, 3:] = np.gradient(velocity[:, 3:], DT, axis=0)

held = lw.control.OperationalSpace(robot, FRAME, gains=(400.0, 40.0), posture=start)
loose = lw.control.OperationalSpace(robot, FRAME, gains=(400.0, 40.0))
path, *rates = map(lw.control.PerStep, (poses, velocity, acceleration))
laws = {
    "pose, velocity, acceleration": held.law(path, *rates),
    "pose alone": held.law(path),
    "no posture": loose.law(path, *rates),
}
runs = {  # without a posture the arm folds beyond its limits, which is what is shown
    name: lw.simulate(robot, start, controller=law, duration=steps * DT, dt=DT, limits="ignore")
    for name, law in laws.items()
}

tips = {name: run.path(FRAME)[:-1] for name, run in runs.items()}
errors = {name: np.linalg.norm(tip - poses[:, :3, 3], axis=-1) for name, tip in tips.items()}
swept = {name: np.abs(run.q - start).max(1) for name, run in runs.items()}
print("told                           farthest from target   joints moved by")
for name, error in errors.items():
    print(f"{name:29}  {1e3 * error.max():17.4f} mm  {swept[name].max():11.2f} rad")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(10, 7), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.2))
    circle, far, joints = (figure.add_subplot(grid[k]) for k in ((slice(0, 2), 0), (0, 1), (1, 1)))
    circle.plot(*poses[:, 1:3, 3].T, "k", lw=5, alpha=0.15, label="target")
    for name, tip in tips.items():
        style = "--" if name == "no posture" else "-"
        circle.plot(*tip[:, 1:].T, style, lw=1.2, label=name)
        far.semilogy(t, 1e3 * np.maximum(errors[name], 1e-9), style, lw=1.2, label=name)
        joints.plot(runs[name].t, swept[name], style, lw=1.2, label=name)
    circle.set(xlabel="y, m", ylabel="z, m", title="the hand of an iiwa14", aspect="equal")
    far.set(xlabel="t, s", ylabel="from the target, mm", ylim=(1e-3, None))
    joints.set(xlabel="t, s", ylabel="greatest angle from the start, rad", ylim=(0.0, None))
    circle.legend(loc="center", frameon=False)
    for axes in (circle, far, joints):
        axes.grid(alpha=0.3)
    figure.savefig("operational_circle.png", dpi=110)
    print("\noperational_circle.png saved")
