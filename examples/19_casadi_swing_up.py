"""A swing-up planned by IPOPT: the robot's equations as a CasADi function.

`robot.casadi` runs the equations of forward dynamics on CasADi's symbols, so that CasADi has their
exact derivatives; `lw.simulate` then takes the plan through the compiled dynamics. A picture is
saved, where matplotlib is installed.
"""

import sys

import numpy as np

import linkwise as lw

try:
    import casadi as cs
except ImportError:
    print("no plan without CasADi: pip install 'linkwise[casadi]'")
    sys.exit()

STEPS, DT, MOST_FORCE = 60, 1 / 30, 25.0  # s, N
cart = lw.Builder("cart_pole").link("cart", mass=1.0, inertia=(0.01, 0.01, 0.01))
cart.link("pole", mass=0.3, com=(0.0, 0.0, -0.25), inertia=(6e-3, 6e-3, 1e-4))
cart.joint("rail", "prismatic", parent="base", child="cart", axis=(1.0, 0.0, 0.0))
cart.joint("hinge", "revolute", parent="cart", child="pole", axis=(0.0, 1.0, 0.0))
robot = cart.build()

state, push = cs.MX.sym("x", 4), cs.MX.sym("u")  # (q, qd); no motor turns the hinge
qdd = robot.casadi("forward_dynamics")(state[:2], state[2:], cs.vertcat(push, 0.0))
rate = {"x": state, "p": push, "ode": cs.vertcat(state[2:], qdd)}
step = cs.integrator("step", "rk", rate, 0.0, DT, {"number_of_finite_elements": 1})

problem = cs.Opti()
x, force = problem.variable(4, STEPS + 1), problem.variable(1, STEPS)
goal = [0.0, np.pi, 0.0, 0.0]  # the pole upright, at rest, the cart where it began
problem.minimize(cs.sumsqr(force))
problem.subject_to(x[:, 0] == 0.0)
problem.subject_to(x[:, -1] == goal)
for k in range(STEPS):
    problem.subject_to(x[:, k + 1] == step(x0=x[:, k], p=force[k])["xf"])
problem.subject_to(problem.bounded(-MOST_FORCE, force, MOST_FORCE))
problem.subject_to(problem.bounded(-1.0, x[0, :], 1.0))  # the rail, m
problem.set_initial(x[1, :], np.linspace(0.0, np.pi, STEPS + 1))
problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
plan = np.column_stack((problem.solve().value(force), np.zeros(STEPS)))  # (steps, nv), N and N m
print(f"planned in {problem.stats()['iter_count']} iterations, at most {np.abs(plan).max():.1f} N")
law = lw.control.constant(robot, lw.control.PerStep(plan))
run = lw.simulate(robot, [0.0, 0.0], None, law, STEPS * DT, DT)
miss = np.abs(np.concatenate(run.final) - goal).max()
print(f"simulated: {miss:.1e} from the goal")
assert miss < 1e-5
try:
    from matplotlib.figure import Figure
except ImportError:
    sys.exit()
axes = (figure := Figure(figsize=(6, 4.6), layout="constrained")).subplots()
for k, (x0, angle) in enumerate(run.q):
    ends = [x0, x0 - 0.5 * np.sin(angle)], [0.0, -0.5 * np.cos(angle)]
    axes.plot(*ends, "o-", lw=2, ms=3, color=str(0.85 - 0.85 * k / STEPS))
axes.set(aspect="equal", xlabel="x, m", ylabel="z, m", title="a swing-up: later is darker")
figure.savefig("casadi_swing_up.png", dpi=110)
print("casadi_swing_up.png saved")
