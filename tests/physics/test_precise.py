"""Any function may be run to as many digits as asked for.

That 50 of them are right, and what kernels make of the same states, is in
tests/papers/test_agreement_all.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw

mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
import linkwise.spatial.precise  # noqa: E402  (teaches the algebra mpmath's numbers)


@pytest.mark.parametrize("digits", [30, 50, 120])
@pytest.mark.parametrize("method", ["crba", "aba"])
@pytest.mark.parametrize("name", ["iiwa14", "puma560", "tree"])
def test_forward_undoes_inverse_dynamics_to_all_digits(
    name: str, method: str, digits: int, random_robot: Any, rng: np.random.Generator
) -> None:
    """But those that the solve costs."""
    tree = lw.Robot(random_robot(np.random.default_rng(5), 14)) if name == "tree" else None
    robot = tree or lw.load(name)
    with mpmath.workdps(digits):
        q, qd, qdd = ([mpmath.mpf(x) for x in row] for row in rng.uniform(-2, 2, (3, robot.nv)))
        tau = robot.evaluate("inverse_dynamics", q, qd, qdd)
        back = robot.evaluate("forward_dynamics", q, qd, tau, method=method)
        assert max(abs(a - b) for a, b in zip(back, qdd, strict=True)) < 10.0 ** (8 - digits)
