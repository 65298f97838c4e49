"""Where an arm can work: a plane of its workspace, solved point by point and drawn.

Every point of a plane through the base of an iiwa is a target three times over: the flange turned
as it likes, its axis along x, and its axis pointing straight down. The angle about that axis is
free, so that five directions are asked for. Each target is solved from several starts at once, and
of the answers the one that is furthest from singular is kept: the arm has a joint more than it
needs. A picture is saved, where matplotlib is installed.
"""

from time import perf_counter

import numpy as np

import linkwise as lw

robot = lw.load("iiwa14")
x, z = np.linspace(-1.1, 1.1, 56), np.linspace(-0.7, 1.5, 56)
places = np.stack(np.meshgrid(x, 0.0, z, indexing="ij"), axis=-1).reshape(-1, 3)
starts = robot.random_q(seed=0, size=(4, 1))

down = np.diag([1.0, -1.0, -1.0])  # columns are the axes of the flange
level = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
round_tool = [True, True, False, True, True, True]  # free to turn about its own axis
tasks = {
    "any direction": (down, "position"),
    "axis along x": (level, round_tool),
    "axis down": (down, round_tool),
}

found = {}
for name, (turn, directions) in tasks.items():
    target = np.tile(np.eye(4), (len(places), 1, 1))
    target[:, :3, :3], target[:, :3, 3] = turn, places
    began = perf_counter()
    q, status = robot.inverse_kinematics(
        target, "link7", starts, directions, restarts=10, status=True
    )
    took = perf_counter() - began
    reached = status == 0
    freedom = np.where(reached, robot.manipulability(q, "link7"), -1.0)
    best = freedom.argmax(axis=0)
    found[name] = q[best, np.arange(len(places))], freedom.max(axis=0)
    print(
        f"{name:14} {reached.any(axis=0).mean():5.1%} of the plane can be reached; "
        f"{reached.size:,} searches in {took:.2f} s"
    )

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (name, (q, freedom)) in zip(panels, found.items(), strict=True):
        seen = np.ma.masked_less(freedom.reshape(len(x), len(z)).T, 0.0)
        image = axes.pcolormesh(x, z, seen, vmin=0.0, vmax=0.15, cmap="viridis")
        for wanted in ((0.5, 0.3), (0.7, 0.5), (-0.5, 0.6)):  # the arm, where it works
            at = np.linalg.norm(places[:, [0, 2]] - wanted, axis=1).argmin()
            if freedom[at] >= 0.0:
                links = [robot.forward_kinematics(q[at], link)[:3, 3] for link in robot.link_names]
                line = np.array([[0.0, 0.0, 0.0], *links])
                axes.plot(line[:, 0], line[:, 2], "o-", color="w", mec="k", ms=4, lw=2, mew=0.5)
        axes.set(title=name, xlabel="x, m", aspect="equal")
    panels[0].set_ylabel("z, m")
    figure.colorbar(image, ax=panels, label="manipulability, best of four starts", shrink=0.9)
    figure.suptitle("iiwa14: where the flange can be in the plane y = 0")
    figure.savefig("inverse_kinematics.png", dpi=110)
    print("\ninverse_kinematics.png saved")
