"""A four-bar linkage: three joints and a closed loop, turned by a motor and left to swing.

Where the end of the coupler is held to that of the rocker, one degree of freedom is left. The
linkage goes once round; inverse dynamics tells the torque of its motor, which is at the crank
alone, and the force in the pin of the loop. Then it swings freely, with each of three ways to deal
with what errors of integration do to the loop. A picture is saved, where matplotlib is installed.
"""

import numpy as np

import linkwise as lw

BARS = {"crank": (0.2, 0.5), "coupler": (0.6, 1.0), "rocker": (0.5, 0.8)}  # m, kg
GROUND, SPEED = 0.6, 6.0  # m between the two fixed pins, rad/s of the crank

# -- three bars, and the loop that they close -----------------------------------------------------

b = lw.Builder("four_bar", gravity=(0.0, -9.81, 0.0)).link("ground")
for name, (length, mass) in BARS.items():
    slender = mass * length**2 / 12
    b.link(name, mass=mass, com=(length / 2, 0, 0), inertia=(1e-4, slender, slender))
b.joint("a", "continuous", parent="ground", child="crank")
b.joint("b", "continuous", parent="crank", child="coupler", xyz=(0.2, 0, 0))
b.joint("d", "continuous", parent="ground", child="rocker", xyz=(GROUND, 0, 0))
b.frame("coupler_end", "coupler", xyz=(0.6, 0, 0)).frame("rocker_end", "rocker", xyz=(0.5, 0, 0))
b.frame("pen", "coupler", xyz=(0.35, 0.2, 0))
pin = lw.Loop("coupler_end", "rocker_end", [0, 0, 0, 1, 1, 0])  # held together along x and y
robot = b.build().close_loops(pin, passive=["b", "d"])  # no motors but that of joint a
print(robot)

# -- once round -----------------------------------------------------------------------------------

q, rates = robot.project([0.0, 0.6, 1.8], [1.0, 0.0, 0.0])
turn, slopes = [q], [rates / rates[0]]  # rates per rate of the crank: one degree of freedom
while turn[-1][0] < turn[0][0] + 2 * np.pi:
    q, rates = robot.project(turn[-1] + 0.03 * slopes[-1], slopes[-1])
    turn.append(q)
    slopes.append(rates / rates[0])
q, slope = np.array(turn), np.array(slopes)
qd = SPEED * slope
coasting = robot.forward_dynamics(q, qd, np.zeros(3))
qdd = coasting - slope * coasting[:, :1]  # so that the crank keeps its speed
tau = robot.inverse_dynamics(q, qd, qdd)
force = robot.constraint_forces(q, qd, tau)[:, 0, 3:]
print(
    f"\na turn at {SPEED:g} rad/s needs {tau[:, 0].min():.2f} to {tau[:, 0].max():.2f} N m at the"
)
print(f"crank, none elsewhere, and up to {np.linalg.norm(force, axis=1).max():.1f} N in the pin")

# -- left to swing, and how far the pin comes apart -----------------------------------------------

start = robot.project([0.5, 0.6, 1.8], [2.0, 0.0, 0.0])
errors = {}
print("\npin apart by at most, in 10 s of steps of 2 ms:")
for drift, name in (("project", "projected"), (0.02, "Baumgarte, 0.02 s"), (None, "nothing done")):
    swing = lw.simulate(robot, *start, duration=10.0, dt=2e-3, every=10, drift=drift)
    errors[name] = np.linalg.norm(robot.residual(swing.q).position, axis=1)
    total = swing.energy.total
    lost = np.abs(total - total[0]).max() / swing.energy.kinetic.max()
    print(f"{name:>20}: {errors[name].max():.0e} m; energy off by {lost:.0e}")

# -- a picture ------------------------------------------------------------------------------------

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(12.5, 4), layout="constrained")
    scene, plot, apart = figure.subplots(1, 3, width_ratios=[1.2, 1, 1])
    names = ("crank", "coupler", "coupler_end", "rocker", "pen")
    at = {name: robot.forward_kinematics(q, name)[:, :2, 3] for name in names}
    for k in np.linspace(0, len(q), 6, endpoint=False, dtype=int):
        alpha = 1.0 if k == 0 else 0.18
        bars = np.array([at[name][k] for name in ("crank", "coupler", "coupler_end", "rocker")])
        plate = np.array([at[name][k] for name in ("coupler", "pen", "coupler_end")])
        scene.fill(*plate.T, color="tab:orange", alpha=0.25 * alpha)
        scene.plot(*bars.T, "-o", color="0.25", lw=3, ms=6, alpha=alpha, mfc="white")
    scene.plot(*at["pen"].T, color="tab:red", lw=1.8)
    scene.plot([0.0, GROUND], [0.0, 0.0], "^", color="0.25", ms=12, zorder=0)
    scene.set(
        aspect="equal", xlabel="x, m", ylabel="y, m", title="a four-bar, and what its coupler draws"
    )
    degrees = np.degrees(q[:, 0] - q[0, 0])
    plot.plot(degrees, tau[:, 0], color="tab:blue", label="torque at the crank, N m")
    plot.plot(
        degrees,
        np.linalg.norm(force, axis=1) / 10,
        "--",
        color="tab:orange",
        label="force in the pin, 10 N",
    )
    plot.set(
        xlabel="crank, degrees", xticks=range(0, 361, 90), title=f"once round at {SPEED:g} rad/s"
    )
    plot.grid(alpha=0.3)
    plot.legend(frameon=False)
    for (name, off), shade in zip(errors.items(), ("0.0", "0.45", "0.75"), strict=True):
        apart.semilogy(swing.t, np.maximum(off, 1e-17), color=shade, lw=1.2, label=name)
    apart.set(
        xlabel="t, s", ylabel="pin apart by, m", ylim=(1e-18, 1e0), title="free swing, RK4 at 2 ms"
    )
    apart.grid(alpha=0.3)
    apart.legend(frameon=False, loc="upper right", fontsize="small")
    figure.savefig("four_bar.png", dpi=110)
    print("\nfour_bar.png saved")
