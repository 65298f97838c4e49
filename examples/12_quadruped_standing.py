"""A quadruped stands on four feet: it leans until a foot would lift.

A foot on the ground is a closed loop: a point held to the world. With four of them, 6 of the 18
degrees of freedom are left, those of the trunk. Inverse kinematics leans the trunk while the feet
stay; of all joint torques that hold it there, inverse dynamics takes the smallest, none at the
floating base; and loops tell the force on each foot. What is held is held both ways: where a force
would pull, a real foot lifts. A picture is saved, where matplotlib is installed.
"""

import numpy as np

import linkwise as lw

LEGS = {"left front": (1, 1), "right front": (1, -1), "left hind": (-1, 1), "right hind": (-1, -1)}
THIGH = SHANK = 0.2  # m
BEND = np.radians(40.0)
POINT = [0, 0, 0, 1, 1, 1]  # (turning, moving): held against moving only

# -- a trunk on four legs -------------------------------------------------------------------------

b = lw.Builder("quadruped").link("trunk", mass=8.0, inertia=(0.05, 0.15, 0.18))
b.joint("float", "free", parent="base", child="trunk")
for leg, (front, left) in LEGS.items():
    b.link(f"{leg} hip", mass=0.5, inertia=(5e-4, 5e-4, 5e-4))
    b.link(f"{leg} thigh", mass=0.8, com=(0, 0, -THIGH / 2), inertia=(3e-3, 3e-3, 3e-4))
    b.link(f"{leg} shank", mass=0.2, com=(0, 0, -SHANK / 2), inertia=(8e-4, 8e-4, 5e-5))
    b.joint(f"{leg} roll", "revolute", parent="trunk", child=f"{leg} hip", axis=(1, 0, 0),
            xyz=(0.2 * front, 0.06 * left, 0))  # fmt: skip
    b.joint(f"{leg} pitch", "revolute", parent=f"{leg} hip", child=f"{leg} thigh", axis=(0, 1, 0),
            xyz=(0, 0.06 * left, 0))  # fmt: skip
    b.joint(f"{leg} knee", "revolute", parent=f"{leg} thigh", child=f"{leg} shank", axis=(0, 1, 0),
            xyz=(0, 0, -THIGH))  # fmt: skip
    b.frame(f"{leg} foot", f"{leg} shank", xyz=(0, 0, -SHANK))
robot = b.build()

stance = robot.neutral()
stance[6] = (THIGH + SHANK) * np.cos(BEND)
stance[7:] = np.tile([0.0, BEND, -2 * BEND], 4)
feet = []
for leg, (front, left) in LEGS.items():
    place = np.eye(4)
    place[:2, 3] = 0.2 * front, 0.12 * left  # on the ground, below its hip
    feet.append(lw.Loop(f"{leg} foot", None, POINT, pose=place))
standing = robot.close_loops(feet, passive=["float"])
print(repr(standing))

# -- leaning forward and sideways, as far as feet push --------------------------------------------

lean = np.linspace(0.0, 0.24, 61)
trunk = np.tile(np.eye(4), (61, 1, 1))
trunk[:, :3, 3] = stance[4:7] + lean[:, None] * [0.8, 0.4, -0.15]
q = standing.inverse_kinematics(trunk, "trunk", q0=stance)
still = np.zeros((61, standing.nv))
tau = standing.inverse_dynamics(q, still, still)
forces = standing.constraint_forces(q, still, tau)[..., 3:]
weight = 9.81 * standing.mass
assert np.allclose(forces[..., 2].sum(axis=1), weight)
lifts = int(np.argmax(forces[..., 2].min(axis=1) < 0))
print(
    f"\nweight {weight:.1f} N; upward force of the ground on each foot, N, and greatest torque, N m"
)
print(f"{'lean, m':>8}", *(f"{leg:>12}" for leg in LEGS), f"{'torque':>8}")
for k in (0, 15, 30, lifts):
    print(
        f"{lean[k]:8.3f}", *(f"{f:12.1f}" for f in forces[k, :, 2]), f"{np.abs(tau[k]).max():8.1f}"
    )
print(
    f"at {lean[lifts]:.3f} m the {list(LEGS)[int(np.argmin(forces[lifts, :, 2]))]} foot would lift"
)

# -- a picture ------------------------------------------------------------------------------------

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(11, 5), layout="constrained")
    scene = figure.add_subplot(1, 2, 1, projection="3d")
    plot = figure.add_subplot(1, 2, 2)
    colours = dict(zip(LEGS, ("tab:blue", "tab:orange", "tab:green", "tab:red"), strict=True))
    for k, alpha in ((0, 0.25), (lifts, 1.0)):
        for i, (leg, (front, left)) in enumerate(LEGS.items()):
            roll, pitch, knee = q[k, 7 + 3 * i : 10 + 3 * i]
            side = np.array([0.0, np.cos(roll), np.sin(roll)])
            down = np.array([0.0, np.sin(roll), -np.cos(roll)])
            line = [q[k, 4:7] + [0.2 * front, 0.06 * left, 0.0]]  # the trunk stays level
            line.append(line[-1] + 0.06 * left * side)
            for length, angle in ((THIGH, pitch), (SHANK, pitch + knee)):
                line.append(line[-1] + length * (np.cos(angle) * down - [np.sin(angle), 0, 0]))
            scene.plot(*np.array(line).T, "-o", color=colours[leg], lw=3, ms=4, alpha=alpha)
            if k:
                push = np.array([line[-1], line[-1] + 2e-3 * forces[k, i]])
                scene.plot(*push.T, color="0.4", lw=2)
        corners = [(1, 1), (1, -1), (-1, -1), (-1, 1), (1, 1)]
        body = [q[k, 4:7] + [0.2 * front, 0.06 * left, 0.0] for front, left in corners]
        scene.plot(*np.array(body).T, color="0.2", lw=5, alpha=alpha)
    scene.set(xlabel="x, m", ylabel="y, m", title="leaning until a foot would lift")
    scene.set(xticks=[-0.2, 0.0, 0.2], yticks=[-0.2, 0.0, 0.2], zticks=[0.0, 0.2], zlim=(0.0, 0.35))
    scene.set_aspect("equal")
    scene.view_init(20, -60)
    for i, (leg, style) in enumerate(zip(LEGS, ("-", "--", "-.", ":"), strict=True)):
        plot.plot(lean, forces[:, i, 2], style, color=colours[leg], lw=2, label=leg)
    plot.axhline(0.0, color="0.3", lw=1)
    plot.axvline(lean[lifts], color="0.3", lw=1, ls=":")
    plot.set(xlabel="lean, m", ylabel="upward force on the foot, N", title="who carries the weight")
    plot.grid(alpha=0.3)
    plot.legend(frameon=False)
    figure.savefig("quadruped_standing.png", dpi=110)
    print("\nquadruped_standing.png saved")
