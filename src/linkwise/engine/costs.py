"""What a state costs beyond the first method, in nanoseconds: numbers of auto.py.

Made by tools/cost_model.py.
"""

# kind of device -> what was measured on
MACHINES = {
    "cpu": "AMD EPYC",
    "cuda": "NVIDIA H200",
}

# kind of device, dtype, function, method, and a number per feature
_TABLE = """
cpu float64 forward_dynamics aba 0.677 0.195 0.648 -0.187 0.0 0.0
cpu float64 forward_dynamics fd3 0.289 0.003 0.543 -0.185 0.0 0.0
cpu float64 mass_matrix mixed 0.226 0.086 0.161 -0.054 0.0 0.0
cpu float64 mass_matrix gdahj-symmetric 0.197 -0.201 0.396 -0.06 0.0 0.0
cpu float64 mass_matrix_inverse innovations 0.071 2.512 -0.128 -0.049 0.0 0.0
cpu float64 coriolis_matrix mixed -0.213 -0.629 0.516 -0.157 0.0 0.0
cpu float64 operational_inertia recursive 25.023 -18.391 3.762 -0.477 -2.433 0.218
cpu float64 operational_inertia_inverse recursive 23.192 -17.75 3.696 -0.473 -2.0 0.18
cpu float32 forward_dynamics aba 0.288 -0.021 0.338 -0.094 0.0 0.0
cpu float32 forward_dynamics fd3 0.129 -0.164 0.291 -0.094 0.0 0.0
cpu float32 mass_matrix mixed 0.005 0.03 0.107 -0.03 0.0 0.0
cpu float32 mass_matrix gdahj-symmetric -0.062 0.363 0.087 -0.018 0.0 0.0
cpu float32 mass_matrix_inverse innovations -0.234 1.216 -0.022 -0.032 0.0 0.0
cpu float32 coriolis_matrix mixed -0.074 -0.203 0.261 -0.08 0.0 0.0
cpu float32 operational_inertia recursive 14.122 -9.981 1.99 -0.244 -1.387 0.111
cpu float32 operational_inertia_inverse recursive 13.051 -9.529 1.929 -0.239 -1.149 0.095
cuda float64 forward_dynamics aba 2.1763 0.1523 0.0158 0.0011 0.0 0.0
cuda float64 forward_dynamics fd3 2.8048 0.3431 -0.0099 -0.0199 0.0 0.0
cuda float64 mass_matrix mixed 2.0949 0.2656 -0.0015 -0.0095 0.0 0.0
cuda float64 mass_matrix gdahj-symmetric -0.6193 0.3096 0.0178 0.0022 0.0 0.0
cuda float64 mass_matrix_inverse innovations 0.9134 0.2736 0.0294 0.0025 0.0 0.0
cuda float64 coriolis_matrix mixed -3.0217 -0.177 0.0444 0.0204 0.0 0.0
cuda float64 operational_inertia recursive 4.9268 -0.2967 -0.0517 -0.0075 -0.1222 -0.0264
cuda float64 operational_inertia_inverse recursive 6.7263 -0.4344 -0.0729 -0.0103 -0.3173 -0.0419
cuda float32 forward_dynamics aba 2.0482 0.1399 0.0143 0.001 0.0 0.0
cuda float32 forward_dynamics fd3 2.5891 -0.137 -0.0306 -0.0066 0.0 0.0
cuda float32 mass_matrix mixed 1.5615 0.0871 0.0031 0.0001 0.0 0.0
cuda float32 mass_matrix gdahj-symmetric 1.7536 0.1326 0.0063 0.0006 0.0 0.0
cuda float32 mass_matrix_inverse innovations 1.8817 0.1701 0.0176 0.0013 0.0 0.0
cuda float32 coriolis_matrix mixed -0.2837 0.4191 0.0728 0.0059 0.0 0.0
cuda float32 operational_inertia recursive 3.7778 -0.0684 -0.0435 -0.009 0.1169 -0.0179
cuda float32 operational_inertia_inverse recursive 3.8696 -0.051 -0.0444 -0.0094 0.1238 -0.0188
"""

COSTS: dict[tuple[str, ...], tuple[float, ...]] = {
    tuple(words[:4]): tuple(map(float, words[4:]))
    for words in map(str.split, _TABLE.strip().splitlines())
}
