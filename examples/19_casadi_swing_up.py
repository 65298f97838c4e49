"""Swing up a pole on a cart, planned by IPOPT: the robot's equations as a CasADi function.

`robot.casadi` runs the equations of forward dynamics on CasADi's symbols, so that CasADi has their
exact derivatives; the plan is a multiple shooting with steps of RK4, torques held over each. Then
`lw.simulate` takes the same plan through the compiled dynamics: both must arrive.
"""

import sys

import numpy as np

import linkwise as lw

try:
    import casadi as cs
except ImportError:
    print("no plan without CasADi: pip install 'linkwise[casadi]'")
    sys.exit()

STEPS, DURATION, MOST_FORCE = 60, 2.0, 25.0  # s, N

cart = lw.Builder("cart_pole")
cart.link("cart", mass=1.0, inertia=(0.01, 0.01, 0.01))
cart.link("pole", mass=0.3, com=(0.0, 0.0, -0.25), inertia=(6e-3, 6e-3, 1e-4))
cart.joint("rail", "prismatic", parent="base", child="cart", axis=(1.0, 0.0, 0.0))
cart.joint("hinge", "revolute", parent="cart", child="pole", axis=(0.0, 1.0, 0.0))
robot = cart.build()
dynamics = robot.casadi("forward_dynamics")  # (q, qd, tau) -> qdd
dt = DURATION / STEPS


def rate(x, force):
    """How the state (q, qd) changes; no motor turns the hinge."""
    return cs.vertcat(x[2:], dynamics(x[:2], x[2:], cs.vertcat(force, 0.0)))


def step(x, force):
    k1 = rate(x, force)
    k2 = rate(x + dt / 2 * k1, force)
    k3 = rate(x + dt / 2 * k2, force)
    k4 = rate(x + dt * k3, force)
    return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


problem = cs.Opti()
x, force = problem.variable(4, STEPS + 1), problem.variable(1, STEPS)
goal = [0.0, np.pi, 0.0, 0.0]  # the pole upright, at rest, the cart where it began
problem.minimize(cs.sumsqr(force))
problem.subject_to(x[:, 0] == 0.0)
problem.subject_to(x[:, -1] == goal)
for k in range(STEPS):
    problem.subject_to(x[:, k + 1] == step(x[:, k], force[k]))
problem.subject_to(problem.bounded(-MOST_FORCE, force, MOST_FORCE))
problem.subject_to(problem.bounded(-1.0, x[0, :], 1.0))  # the rail, m
problem.set_initial(x[1, :], np.linspace(0.0, np.pi, STEPS + 1))
problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
found = problem.solve()

plan = np.column_stack((found.value(force), np.zeros(STEPS)))  # (steps, nv), N and N m
work = float(np.sum(plan**2) * dt)
print(f"planned in {problem.stats()['iter_count']} iterations: effort {work:.1f} N² s, "
      f"at most {np.abs(plan).max():.1f} N")  # fmt: skip
run = lw.simulate(robot, [0.0, 0.0], None, lw.control.constant(robot, lw.control.PerStep(plan)),
                  DURATION, dt)  # fmt: skip
miss = np.abs(np.concatenate((run.q[-1], run.qd[-1])) - goal).max()
print(f"simulated: cart at {run.q[-1, 0]:+.1e} m, pole {run.q[-1, 1] / np.pi:.6f} half turns, "
      f"{miss:.1e} from the goal")  # fmt: skip
assert miss < 1e-5
