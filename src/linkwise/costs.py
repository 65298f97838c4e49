"""What a state costs by each method, in nanoseconds: the numbers of choose.py.

Made by tools/cost_model.py on AMD EPYC.
"""

# dtype -> function -> method -> a number per feature
COSTS: dict[str, dict[str, dict[str, tuple[float, ...]]]] = {
    "float64": {
        "forward_dynamics": {
            "crba": (0.0, 6.37, 1.56, 0.0, 0.18, 0.05, 0.0, 0.0),
            "aba": (8.34, 3.11, 3.56, 0.0, 0.04, 0.11, 0.0, 0.0),
            "fd3": (0.0, 6.9, 3.65, 0.0, 0.05, 0.05, 0.0, 0.0),
        },
        "mass_matrix": {
            "crba": (0.0, 3.79, 0.96, 0.0, 0.09, 0.16, 0.0, 0.0),
            "mixed": (0.0, 4.03, 0.34, 0.0, 0.05, 0.24, 0.0, 0.0),
            "gdahj-symmetric": (0.0, 4.13, 0.06, 0.0, 0.07, 0.28, 0.0, 0.0),
        },
        "mass_matrix_inverse": {
            "crba": (2.65, 2.45, 0.1, 0.0, 0.26, 0.28, 0.0, 0.0),
            "innovations": (0.0, 3.97, 0.83, 0.0, 0.19, 0.34, 0.0, 0.0),
        },
        "operational_inertia": {
            "crba": (0.0, 0.0, 0.0, 0.0, 0.15, 0.0, 8.27, 0.0),
            "recursive": (0.0, 0.0, 1.05, 0.0, 0.02, 0.0, 10.56, 0.0),
        },
        "operational_inertia_inverse": {
            "crba": (0.0, 0.0, 0.0, 0.0, 0.16, 0.0, 7.03, 0.0),
            "recursive": (0.0, 0.0, 1.11, 0.0, 0.02, 0.0, 9.11, 0.0),
        },
    },
    "float32": {
        "forward_dynamics": {
            "crba": (0.0, 4.74, 1.38, 0.0, 0.09, 0.01, 0.0, 0.0),
            "aba": (6.7, 1.89, 2.15, 0.07, 0.01, 0.04, 0.0, 0.0),
            "fd3": (0.0, 4.97, 1.94, 0.14, 0.01, 0.01, 0.0, 0.0),
        },
        "mass_matrix": {
            "crba": (0.0, 3.43, 0.18, 0.0, 0.04, 0.12, 0.0, 0.0),
            "mixed": (0.0, 3.36, 0.21, 0.0, 0.03, 0.15, 0.0, 0.0),
            "gdahj-symmetric": (0.0, 3.46, 0.0, 0.0, 0.03, 0.17, 0.0, 0.0),
        },
        "mass_matrix_inverse": {
            "crba": (0.0, 3.1, 0.0, 0.0, 0.1, 0.23, 0.0, 0.0),
            "innovations": (0.0, 3.42, 0.08, 0.0, 0.08, 0.24, 0.0, 0.0),
        },
        "operational_inertia": {
            "crba": (0.0, 0.0, 0.0, 0.0, 0.07, 0.0, 4.74, 0.0),
            "recursive": (0.0, 0.0, 0.58, 0.0, 0.0, 0.0, 5.87, 0.0),
        },
        "operational_inertia_inverse": {
            "crba": (0.0, 0.0, 0.0, 0.0, 0.08, 0.0, 4.22, 0.0),
            "recursive": (0.0, 0.0, 0.54, 0.0, 0.01, 0.0, 5.35, 0.0),
        },
    },
}
