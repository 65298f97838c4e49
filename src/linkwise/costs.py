"""What a state costs beyond the first method, in nanoseconds: numbers of choose.py.

Made by tools/cost_model.py on AMD EPYC.
"""

# dtype -> function -> method -> a number per feature
COSTS: dict[str, dict[str, dict[str, tuple[float, ...]]]] = {
    "float64": {
        "forward_dynamics": {
            "aba": (0.661, 0.198, 0.663, -0.192, 0.0, 0.0),
            "fd3": (0.304, -0.088, 0.559, -0.189, 0.0, 0.0),
        },
        "mass_matrix": {
            "mixed": (0.022, -0.327, 0.295, -0.068, 0.0, 0.0),
            "gdahj-symmetric": (0.261, 0.989, 0.075, -0.022, 0.0, 0.0),
        },
        "mass_matrix_inverse": {
            "innovations": (-0.161, 2.153, -0.018, -0.062, 0.0, 0.0),
        },
        "coriolis_matrix": {
            "mixed": (-0.416, -1.066, 0.642, -0.177, 0.0, 0.0),
        },
        "operational_inertia": {
            "recursive": (24.901, -17.999, 3.701, -0.473, -2.469, 0.216),
        },
        "operational_inertia_inverse": {
            "recursive": (23.622, -17.483, 3.666, -0.479, -2.501, 0.226),
        },
    },
    "float32": {
        "forward_dynamics": {
            "aba": (0.246, 0.051, 0.332, -0.096, 0.0, 0.0),
            "fd3": (0.115, -0.125, 0.286, -0.094, 0.0, 0.0),
        },
        "mass_matrix": {
            "mixed": (0.128, -0.659, 0.273, -0.05, 0.0, 0.0),
            "gdahj-symmetric": (-0.019, 0.111, 0.155, -0.025, 0.0, 0.0),
        },
        "mass_matrix_inverse": {
            "innovations": (-0.123, 1.387, -0.076, -0.025, 0.0, 0.0),
        },
        "coriolis_matrix": {
            "mixed": (-0.166, -0.256, 0.336, -0.097, 0.0, 0.0),
        },
        "operational_inertia": {
            "recursive": (11.96, -8.847, 1.813, -0.232, -0.992, 0.095),
        },
        "operational_inertia_inverse": {
            "recursive": (12.789, -9.383, 1.913, -0.241, -1.182, 0.103),
        },
    },
}
