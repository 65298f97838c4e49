"""Configurations whose quaternions are far from unit length: probably not the state that was meant.

Looked at by Python, on the host, and so in the first call of each kind only (the compiled fast path
of later calls has no part in it), and for all rows at the start of a simulation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.errors import StateWarning, warn
from linkwise.model.tree import Tree

FAR = 0.01  # by how much a norm may differ from 1 without a warning


def warn_of_norms(tree: Tree, title: str, name: str, q: Any) -> None:
    """Warn if a quaternion of some row of ``q`` (..., nq) has a norm off by more than 1 %."""
    rows = np.asarray(q, float)
    for at in tree.quaternions:
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt((rows[..., at : at + 4] ** 2).sum(-1))
            far = (np.abs(norms - 1.0) > FAR) & np.isfinite(norms)
        if far.any():
            first = np.unravel_index(int(far.argmax()), far.shape)
            index = ", ".join(map(str, first))
            where = f"{name}[{index}, {at}:{at + 4}]" if far.ndim else f"{name}[{at}:{at + 4}]"
            count = f" ({int(far.sum()):,} of {far.size:,} rows are off)" if far.ndim else ""
            use = "is used normalised" if norms[first] > 0.0 else "cannot be normalised"
            warn(
                StateWarning,
                f"{title}: the quaternion {where} has the norm {norms[first]:.3g}{count} and "
                f"{use}; expected a unit quaternion (w, x, y, z), in the order of "
                "robot.neutral(); robot.from_pinocchio_q(q) converts Pinocchio's order",
            )
            return
