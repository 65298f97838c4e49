"""Load a robot and ask it for everything it knows about one state."""

import numpy as np

import linkwise as lw

robot = lw.load("puma560")
print(robot)

q = np.array([0.1, -0.5, 0.4, 0.0, 0.6, 0.2])
qd = np.array([0.5, 0.2, -0.1, 0.3, 0.0, -0.4])
np.set_printoptions(precision=4, suppress=True)

print("\ntorques that hold it still ", robot.gravity_torque(q))
print("torques for qdd = 1        ", robot.inverse_dynamics(q, qd, np.ones(6)))
print("free fall                  ", robot.forward_dynamics(q, qd, np.zeros(6)))
print(
    "energy                      %.3f J" % (robot.kinetic_energy(q, qd) + robot.potential_energy(q))
)
print("\nmass matrix\n", robot.mass_matrix(q))
print("\npose of link6 in the base\n", robot.forward_kinematics(q, "link6"))
print("\nJacobian of link6, rows (angular, linear)\n", robot.jacobian(q, "link6"))
