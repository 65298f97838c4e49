"""Functions and their derivatives as array libraries call them, without one of these libraries."""

from __future__ import annotations

import numpy as np
from small_robots import small_robot

from linkwise.engine.tasks import Key
from linkwise.interop.derived import node


def test_results_without_numbers() -> None:
    """Loops of couplings alone have no contact, and wrenches (0, 6)."""
    robot = small_robot("coupled")
    forces = node(robot._calls, Key("constraint_forces"))
    state = [np.full((4, robot.nv), 0.1)] * 3
    (wrenches,) = forces.run(state)
    assert wrenches.shape == (4, 0, 6)
    gradients = forces.vjp.run([*state, np.zeros((4, 0))])
    assert [x.shape for x in gradients] == [(4, robot.nv)] * 3
    assert not np.any(gradients)
