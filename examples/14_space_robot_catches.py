"""A space robot catches a target: it drifts and tumbles, and is brought to rest.

Nothing holds the robot: as its arms reach out, its body moves by reaction. When both hands close
on the target at once, an impulse passes through the arms; then they are damped, and everything
moves on as one body. Momentum is what it was all the time; energy is lost in the catch and in the
dampers. A picture is saved, where matplotlib is installed.
"""

import numpy as np

import linkwise as lw

REACH, HOLD, DT = 2.0, 4.0, 4e-3  # s
STIFF = np.tile([300.0, 300.0, 200.0, 20.0, 20.0, 20.0], 2)  # N m/rad, of each joint
DAMP = np.tile([80.0, 80.0, 40.0, 2.0, 2.0, 2.0], 2)  # N m s/rad


def pose(p: list[float], R: np.ndarray | None = None) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = p
    T[:3, :3] = np.eye(3) if R is None else R
    return T


# -- a body that floats, with two arms of six joints ----------------------------------------------

b = lw.Builder("catcher").link("body", mass=120.0, inertia=(12.0, 12.0, 10.0))
b = b.joint("float", "free", parent="base", child="body")
axes = {"yaw": (0, 0, 1), "pitch": (0, 1, 0), "elbow": (0, 1, 0), "roll": (1, 0, 0),
        "bend": (0, 1, 0), "turn": (0, 0, 1)}  # fmt: skip
lengths = [0.0, 0.1, 0.8, 0.7, 0.1, 0.1]
for side, y in (("left", 0.4), ("right", -0.4)):
    parent = "body"
    for (name, axis), length in zip(axes.items(), lengths, strict=True):
        link = f"{side}_{name}"
        long = name in ("pitch", "elbow")
        b = b.link(link, mass=5.0 if long else 1.5, com=(0.35 if long else 0.05, 0, 0),
                   inertia=(0.02, 0.3, 0.3) if long else (0.01, 0.01, 0.01))  # fmt: skip
        at = (0.5, y, 0.0) if parent == "body" else (length, 0.0, 0.0)
        b = b.joint(f"{link}_joint", "revolute", parent=parent, child=link, axis=axis, xyz=at)
        parent = link
    b = b.frame(f"{side}_hand", parent, xyz=(0.2, 0.0, 0.0))
robot = b.build(gravity=(0.0, 0.0, 0.0))

# -- reaching out: the target is not there yet ----------------------------------------------------

folded = np.array([0.9, 1.0, -2.0, 0.0, 1.0, -0.9, -0.9, 1.0, -2.0, 0.0, 1.0, 0.9])
spread = np.array([0.25, 0.5, -1.0, 0.0, 0.5, -0.25, -0.25, 0.5, -1.0, 0.0, 0.5, 0.25])


def reach(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    s = min(t / (0.8 * REACH), 1.0)
    goal = folded + (spread - folded) * s**3 * (10 - 15 * s + 6 * s**2)
    tau = np.zeros(robot.nv)
    tau[6:] = STIFF * (goal - q[7:]) - DAMP * qd[6:]
    return tau


start = robot.neutral()
start[7:] = folded
before = lw.simulate(robot, start, controller=reach, duration=REACH, dt=DT)
ready = before.final.q

# -- the target: between the hands when they close ------------------------------------------------

target = lw.RigidBody(mass=60.0, inertia=(4.0, 3.0, 5.0))
hands = [robot.forward_kinematics(ready, f"{side}_hand") for side in ("left", "right")]
there = pose(list((hands[0] + hands[1])[:3, 3] / 2))
places = [np.linalg.inv(there) @ hand for hand in hands]
contacts = [lw.Contact(0, f"{side}_hand", pose_in_object=place)
            for side, place in zip(("left", "right"), places, strict=True)]  # fmt: skip
catch = lw.Grasp([robot], target, contacts, object_state=True, name="catch")
held = lw.Grasp([robot], target, contacts, name="held")

drift = np.array([0.05, 0.1, -0.15, -0.25, 0.05, 0.02])  # its rates when it is caught, in its axes
place = np.array([1.0, 0.0, 0.0, 0.0, *there[:3, 3]])
b = lw.Builder("target").link("target", mass=60.0, inertia=(4.0, 3.0, 5.0))
alone = b.joint("float", "free", parent="base", child="target").build(gravity=(0.0, 0.0, 0.0))
came = lw.simulate(alone, place, -drift, duration=REACH, dt=DT)  # backwards in time

# -- the catch ------------------------------------------------------------------------------------

q = np.concatenate([ready, place])
qd = np.concatenate([before.final.qd, drift])
after, impulses = catch.impulse(q, qd)

damping = np.concatenate([np.zeros(6), 0.5 * DAMP])
run = lw.simulate(held, ready, after[:-6], controller=lambda t, q, qd: -damping * qd,
                  duration=HOLD, dt=DT)  # fmt: skip

momenta = {
    "before": catch.centroidal_momentum(q, qd),
    "after": catch.centroidal_momentum(q, after),
    "at rest": held.centroidal_momentum(run.final.q, run.final.qd),
}
c = [catch.center_of_mass(q), catch.center_of_mass(q), held.center_of_mass(run.final.q)]
print("              angular momentum, N m s (about the origin)   linear momentum, N s")
for (name, h), at in zip(momenta.items(), c, strict=True):
    angular = h[:3] + np.cross(at, h[3:])
    print(f"{name:8}   {angular[0]:12.9f} {angular[1]:12.9f} {angular[2]:12.9f}"
          f"   {h[3]:12.9f} {h[4]:12.9f} {h[5]:12.9f}")  # fmt: skip
energy = [catch.kinetic_energy(q, qd), catch.kinetic_energy(q, after), run.energy.kinetic[-1]]
print(
    "\nkinetic energy: {:.3f} J before, {:.3f} J after the catch, {:.3f} J at the end".format(
        *energy
    )
)
for side, p in zip(("left", "right"), impulses, strict=True):
    print(f"impulse on the {side} hand: {np.linalg.norm(p[3:]):.2f} N s, "
          f"{np.linalg.norm(p[:3]):.2f} N m s")  # fmt: skip
still = np.abs(run.qd[-1, 6:]).max()
print(f"joints move by at most {still:.1e} rad/s in the end; hands hold to "
      f"{np.abs(held.residual(run.q).position).max():.0e} m and rad")  # fmt: skip

# -- a picture ------------------------------------------------------------------------------------

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    moments = [("0 s", before.q[0], came.final.q),
               (f"{REACH:.0f} s, the catch", ready, place),
               (f"{REACH + HOLD:.0f} s", run.final.q, None)]  # fmt: skip
    cube = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    edges = [(i, j) for i in range(8) for j in range(i) if np.abs(cube[i] - cube[j]).sum() == 2]

    def box(scene: object, T: np.ndarray, half: list[float], colour: str) -> None:
        corners = cube * half @ T[:3, :3].T + T[:3, 3]
        for i, j in edges:
            scene.plot(*corners[[i, j]].T, color=colour, lw=1.5)

    for k, (title, q, of_target) in enumerate(moments):
        scene = figure.add_subplot(1, 4, k + 1, projection="3d")
        box(scene, robot.forward_kinematics(q, "body"), [0.5, 0.4, 0.4], "0.3")
        for side, colour in (("left", "tab:blue"), ("right", "tab:orange")):
            names = [f"{side}_{name}" for name in (*axes, "hand")]
            line = [robot.forward_kinematics(q, name)[:3, 3] for name in names]
            scene.plot(*np.array(line).T, "-o", color=colour, lw=2.5, ms=3)
        T = (held.forward_kinematics(q, "object") if of_target is None
             else alone.forward_kinematics(of_target, "target"))  # fmt: skip
        box(scene, T, [0.25, 0.25, 0.25], "tab:red")
        scene.set(title=title, xlim=(-0.6, 3.0), ylim=(-1.8, 1.8), zlim=(-1.8, 1.8),
                  xticks=[0, 1, 2, 3], yticks=[-1, 0, 1], zticks=[-1, 0, 1])  # fmt: skip
        scene.set_box_aspect((1, 1, 1))
        scene.view_init(28, -60)
    plot = figure.add_subplot(1, 4, 4)
    rates = np.concatenate([before.qd[:, 6:], run.qd[:, 6:]])
    t = np.concatenate([before.t, REACH + run.t])
    plot.plot(t, rates, lw=0.8, color="tab:blue", alpha=0.6)
    plot.axvline(REACH, color="tab:red", lw=1)
    plot.set(xlabel="t, s", ylabel="rad/s", title="rates of the joints")
    plot.grid(alpha=0.3)
    figure.savefig("space_robot_catches.png", dpi=110)
    print("\nspace_robot_catches.png saved")
