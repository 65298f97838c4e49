"""Doors to other packages: CasADi, SymPy, PyTorch and JAX, each imported when it is used."""
