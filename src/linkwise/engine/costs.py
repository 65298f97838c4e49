"""What a state costs beyond the first method, in nanoseconds: numbers of auto.py.

Made by tools/cost_model.py.
"""

MACHINES = {
    "cpu": "AMD EPYC",
}

# kind of device -> dtype -> function -> method -> a number per feature
COSTS: dict[str, dict[str, dict[str, dict[str, tuple[float, ...]]]]] = {
    "cpu": {
        "float64": {
            "forward_dynamics": {
                "aba": (0.677, 0.195, 0.648, -0.187, 0.0, 0.0),
                "fd3": (0.289, 0.003, 0.543, -0.185, 0.0, 0.0),
            },
            "mass_matrix": {
                "mixed": (0.226, 0.086, 0.161, -0.054, 0.0, 0.0),
                "gdahj-symmetric": (0.197, -0.201, 0.396, -0.06, 0.0, 0.0),
            },
            "mass_matrix_inverse": {
                "innovations": (0.071, 2.512, -0.128, -0.049, 0.0, 0.0),
            },
            "coriolis_matrix": {
                "mixed": (-0.213, -0.629, 0.516, -0.157, 0.0, 0.0),
            },
            "operational_inertia": {
                "recursive": (25.023, -18.391, 3.762, -0.477, -2.433, 0.218),
            },
            "operational_inertia_inverse": {
                "recursive": (23.192, -17.75, 3.696, -0.473, -2.0, 0.18),
            },
        },
        "float32": {
            "forward_dynamics": {
                "aba": (0.288, -0.021, 0.338, -0.094, 0.0, 0.0),
                "fd3": (0.129, -0.164, 0.291, -0.094, 0.0, 0.0),
            },
            "mass_matrix": {
                "mixed": (0.005, 0.03, 0.107, -0.03, 0.0, 0.0),
                "gdahj-symmetric": (-0.062, 0.363, 0.087, -0.018, 0.0, 0.0),
            },
            "mass_matrix_inverse": {
                "innovations": (-0.234, 1.216, -0.022, -0.032, 0.0, 0.0),
            },
            "coriolis_matrix": {
                "mixed": (-0.074, -0.203, 0.261, -0.08, 0.0, 0.0),
            },
            "operational_inertia": {
                "recursive": (14.122, -9.981, 1.99, -0.244, -1.387, 0.111),
            },
            "operational_inertia_inverse": {
                "recursive": (13.051, -9.529, 1.929, -0.239, -1.149, 0.095),
            },
        },
    },
}
COSTS["cuda"] = COSTS["cpu"]
