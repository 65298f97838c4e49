"""A study on many machines: torques of an arm with an unknown payload.

The chunks are computed one after another here; ``linkwise study`` computes them on all cores, or
on all machines of a Dask cluster, and can be stopped at any time. A picture is saved, where
matplotlib is installed.
"""

import importlib.util

import numpy as np

from linkwise.sampling.chunks import computed, merged, pilot
from linkwise.sampling.spec import spec_of

study = spec_of({
    "robot": "iiwa14", "measure": "inverse_dynamics", "states": 200_000, "chunk": 50_000,
    "draw": {
        "q": "limits", "qd": {"normal": 0.5}, "qdd": {"normal": 2.0},
        "payload": {"link": "link7", "mass": {"uniform": [0, 10]}, "com": {"uniform": [-0.1, 0.1]}},
    },
})  # fmt: skip
ranges = pilot(study)
found = merged([computed(study, k, ranges) for k in range(study.chunks)])

names = study.load().joint_names
deviation = np.sqrt(found["spread"] / found["count"])
print(f"torques of {int(found['count']):,} states, N m")
print("joint    deviation  least   most   payload of the worst case, kg")
for k, name in enumerate(names):
    mass = found["worst_states"][k, 0, 21]  # after q, qd and qdd
    print(
        f"{name:8} {deviation[k]:8.2f} {found['least'][k]:7.1f} {found['most'][k]:6.1f} {mass:8.2f}"
    )

if importlib.util.find_spec("matplotlib"):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(10, 4), layout="constrained")
    for axis, name, counts, (low, high) in zip(axes.flat, names, found["histogram"], ranges):  # noqa: B905 - one of the eight stays empty
        edges = np.linspace(low, high, len(counts) + 1)
        axis.stairs(counts / counts.sum() / np.diff(edges), edges, fill=True, color="#0072b2")
        axis.set(title=name, xlabel="N m", yticks=[])
    axes.flat[7].axis("off")
    figure.savefig("many_machines.png", dpi=110)
    print("many_machines.png saved")
