"""What an arm holds, from the torques of its motors: lw.identify with one unknown body."""

import numpy as np

import linkwise as lw

arm = lw.load("iiwa14").with_inertia("link7", 0.4, (0.0, 0.0, 0.02), (0.001, 0.001, 0.001))
held = arm.with_payload("link7", 1.5, (0.02, 0.0, 0.08), (0.004, 0.005, 0.003))

rng = np.random.default_rng(0)
q, qd, qdd = arm.random_q(rng, 300), *rng.normal(size=(2, 300, arm.nv))
tau = held.inverse_dynamics(q, qd, qdd) + 0.02 * rng.normal(size=(300, arm.nv))

found = lw.identify(arm, q, qd, qdd, tau, bodies=["link7"])
load = found.parameters[-1] - arm.inertial_parameters[-1]
print(f"mass {load[0]:.3f} ± {found.errors[-1, 0]:.3f} kg, truth 1.500")
print("centre of mass", np.round(load[1:4] / load[0], 3), "m, truth [0.02 0 0.08]")
