"""Constants of a robot: what the file says (description) and what the sweeps use (tree)."""
