"""Numbers of the formula in choose.py."""

COSTS: dict[str, dict[str, dict[str, tuple[float, ...]]]] = {"float64": {}, "float32": {}}
