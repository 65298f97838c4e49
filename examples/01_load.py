"""Load a robot: everything it knows about one state.

The picture has the arm from the side, with its centre of mass, and its mass matrix. It is saved
where matplotlib is installed.
"""

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
energy = robot.kinetic_energy(q, qd) + robot.potential_energy(q)
print(f"energy                      {energy:.3f} J")
M = robot.mass_matrix(q)
print("\nmass matrix\n", M)
print("\npose of link6 in the base\n", robot.forward_kinematics(q, "link6"))
print("\nJacobian of link6, rows (angular, linear)\n", robot.jacobian(q, "link6"))

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    side, cells = figure.subplots(1, 2)
    joints = np.vstack((np.zeros(3), robot.link_poses(q)[:, :3, 3]))  # origins of the links
    middle = robot.center_of_mass(q)
    side.plot(joints[:, 0], joints[:, 2], "o-", color="0.2", lw=4, ms=9, mfc="w", label="links")
    side.plot(middle[0], middle[2], "X", color="#d55e00", ms=12, label="centre of mass")
    side.set(title="puma560 from the side", xlabel="x, m", ylabel="z, m", aspect="equal")
    side.set(xlim=(-0.5, 0.9), ylim=(-0.1, 1.1))
    side.legend(loc="upper left")
    cells.imshow(np.log10(np.abs(M) + 1e-3), cmap="Greys", vmin=-3.5, vmax=1.5)
    for i, k in np.ndindex(M.shape):
        dark = abs(M[i, k]) > 0.3
        cells.text(
            k,
            i,
            f"{M[i, k].round(2) + 0.0:.2f}",
            ha="center",
            va="center",
            color="w" if dark else "k",
        )
    ticks = range(robot.nv)
    cells.set(title="mass matrix, kg m²", xticks=ticks, yticks=ticks)
    cells.set_xticklabels(robot.joint_names, rotation=30)
    cells.set_yticklabels(robot.joint_names)
    figure.savefig("load.png", dpi=110)
    print("\nload.png saved")
