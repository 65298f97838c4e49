"""Two arms carry a bar: round a circle, its weight shared in two ways.

A grasp is one robot: the joints of both arms, and a bar that is held at both ends. Many torques
move the bar in the same way, for the arms can also pull at each other through it. Of these,
`inverse_dynamics` takes the smallest, in a weighted sense: once all joints count alike, once those
of the left arm count ten times as much. The bar moves the same; who carries it changes, and the arm
that is spared even hangs on the bar, so that the other carries part of its weight too. A picture is
saved, where matplotlib is installed.
"""

import numpy as np

import linkwise as lw

HALF, RADIUS, TURN, DT = 0.25, 0.12, 2.0, 4e-3  # m, m, s, s
DOWN = np.diag([-1.0, 1.0, -1.0])  # the hands' z axes point down


def pose(p: list[float], R: np.ndarray | None = None) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = p
    T[:3, :3] = np.eye(3) if R is None else R
    return T


# -- two arms, and a bar whose ends they hold -----------------------------------------------------

arm = lw.load("iiwa14")
bar = lw.RigidBody(mass=4.0, inertia=(0.22, 0.002, 0.22))  # along y, 0.8 m long
ends = [pose([0, HALF, 0], DOWN), pose([0, -HALF, 0], DOWN)]
bases = [pose([0, 0.45, 0]), pose([0, -0.45, 0])]
grasp = lw.Grasp(
    arms=[arm, arm],
    bases=bases,
    object=bar,
    contacts=[lw.Contact(i, "link7", pose_in_object=ends[i]) for i in (0, 1)],
)
middle = pose([0.55, 0.0, 0.55])
hand = np.linalg.inv(bases[0]) @ middle @ ends[0]
left = arm.inverse_kinematics(hand, "link7", q0=[0.0, 0.6, 0.0, -1.4, 0.0, 1.1, 0.0])
right = left * [-1, 1, -1, 1, -1, 1, -1]  # its mirror image
start = grasp.project(np.concatenate([left, right]))
first = grasp.forward_kinematics(start, "object")

# -- the motion of the bar, and a controller of it ------------------------------------------------


def wanted(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pose, velocity and acceleration of the bar: a circle in the plane of x and z, from rest."""
    w = 2 * np.pi / TURN
    angle = w * (np.hypot(t, 0.4) - 0.4)
    rate, more = w * t / np.hypot(t, 0.4), w * 0.16 / np.hypot(t, 0.4) ** 3
    out = np.array([np.sin(angle), 0, np.cos(angle)])
    round_ = np.array([np.cos(angle), 0, -np.sin(angle)])
    T = first.copy()
    T[:3, 3] += RADIUS * (out - [0, 0, 1])
    still = np.zeros(3)
    velocity = np.concatenate([still, RADIUS * rate * round_])
    return T, velocity, np.concatenate([still, RADIUS * (more * round_ - rate**2 * out)])


def controller(weights: np.ndarray) -> object:
    """Accelerates the bar toward the path, each hand with it, and shares the load by weights."""

    def torques(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        target, velocity, acceleration = wanted(t)
        here, speed = grasp.forward_kinematics(q, "object"), grasp.jacobian(q, "object") @ qd
        error = lw.se3.error(here, target)  # in the bar's axes: it is not turned, so the world's
        a = acceleration + 40.0 * (velocity - speed) + 400.0 * error
        w, qdd = speed[:3], np.zeros(14)
        for i, joints in enumerate((slice(0, 7), slice(7, 14))):
            name = f"arm{i}/link7"
            r = grasp.forward_kinematics(q, name)[:3, 3] - here[:3, 3]
            carried = np.cross(a[:3], r) + np.cross(w, np.cross(w, r))
            hand = np.concatenate([a[:3], a[3:] + carried])
            J = grasp.jacobian(q, name)[:, joints]
            inverse = np.linalg.pinv(J)
            rest = qd[joints] - inverse @ (J @ qd[joints])  # elbows that wander come to rest
            qdd[joints] = inverse @ (hand - grasp.jacobian_dot_qd(q, qd, name)) - 10.0 * rest
        return grasp.inverse_dynamics(q, qd, qdd, weights=weights)

    return torques


shares = {"alike": np.ones(14), "left arm spared": np.repeat([10.0, 1.0], 7)}
runs, forces, off = {}, {}, {}
for name, weights in shares.items():
    law = controller(weights)
    run = lw.simulate(grasp, start, controller=law, duration=TURN, dt=DT)
    forces[name] = grasp.contact_forces(run.q, run.qd, run.tau)
    path = np.array([wanted(t)[0][:3, 3] for t in run.t])
    off[name] = np.linalg.norm(grasp.forward_kinematics(run.q, "object")[:, :3, 3] - path, axis=1)
    runs[name] = run

print("                    bar off by   hands open by   weight carried, N   greatest torque, N m")
print("                    m            m, rad          left     right      left     right")
for name, run in runs.items():
    open_by = np.abs(grasp.residual(run.q, run.qd).position).max()
    left, right = (forces[name][:, i, 5].mean() for i in (0, 1))
    most = [np.abs(part).max() for part in grasp.split(run.tau)]
    print(f"{name:18}  {off[name].max():.1e}      {open_by:.1e}         {left:5.1f}    {right:5.1f}"
          f"      {most[0]:5.1f}    {most[1]:5.1f}")  # fmt: skip
squeeze = grasp.internal_forces(runs["alike"].q, forces["alike"])
print(f"\nthe hands squeeze the bar with at most {np.abs(squeeze[..., 3:]).max():.1f} N")

# -- a picture ------------------------------------------------------------------------------------

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(11, 5), layout="constrained")
    scene = figure.add_subplot(1, 2, 1, projection="3d")
    plot = figure.add_subplot(1, 2, 2)
    run = runs["alike"]
    for k, alpha in ((0, 0.25), (len(run.t) // 3, 0.5), (2 * len(run.t) // 3, 1.0)):
        q = run.q[k]
        tips = []
        for i, colour in enumerate(("tab:blue", "tab:orange")):
            names = [f"arm{i}/link{n}" for n in range(1, 8)]
            line = [bases[i][:3, 3], *(grasp.forward_kinematics(q, n)[:3, 3] for n in names)]
            scene.plot(*np.array(line).T, "-o", color=colour, alpha=alpha, lw=3, ms=4)
            tips.append(line[-1])
        T = grasp.forward_kinematics(q, "object")
        bar_ends = [T[:3, 3] + T[:3, 1] * y for y in (-0.4, 0.4)]
        scene.plot(*np.array(bar_ends).T, color="0.2", alpha=alpha, lw=6, solid_capstyle="round")
    path = grasp.forward_kinematics(run.q, "object")[:, :3, 3]
    scene.plot(*path.T, color="tab:red", lw=1.5)
    scene.set(
        xlabel="x, m", ylabel="y, m", zlabel="z, m", title="two arms carry a bar round a circle"
    )
    scene.set_box_aspect((1.0, 1.3, 1.0), zoom=0.9)
    scene.set(xticks=[0.0, 0.3, 0.6], yticks=[-0.4, 0.0, 0.4], zticks=[0.0, 0.3, 0.6])
    scene.view_init(18, -35)
    for name, style in (("alike", "-"), ("left arm spared", "--")):
        for i, (side, colour) in enumerate((("left", "tab:blue"), ("right", "tab:orange"))):
            plot.plot(runs[name].t, forces[name][:, i, 5], style, color=colour,
                      label=f"{side}, {name}")  # fmt: skip
    plot.set(xlabel="t, s", ylabel="upward force of a hand on the bar, N",
             title="who carries it")  # fmt: skip
    plot.grid(alpha=0.3)
    plot.legend(frameon=False, ncols=2, loc="upper center")
    plot.set_ylim(top=105.0)
    figure.savefig("two_arms_carry_a_bar.png", dpi=110)
    print("\ntwo_arms_carry_a_bar.png saved")
