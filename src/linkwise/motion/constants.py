"""Parameters of a simulated robot (`Robot.parametric`): one value for a batch, or one a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.engine.arrays import read
from linkwise.engine.parameters import flat
from linkwise.model.values import some
from linkwise.robot import Robot

Array = NDArray[Any]


def read_parameters(robot: Robot, given: Any) -> dict[str, Array]:
    """Numbers (..., size) of every parameter of the robot, where any is given."""
    if given is None or (isinstance(given, Mapping) and not given):
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"simulate: parameters is a {type(given).__name__}; expected a mapping from names, "
            "such as {'payload': numbers}"
        )
    own = robot._calls.tasks.parameters
    known = [each.name for each in own]
    for name in given:
        if name not in known:
            raise ValueError(
                f"simulate: parameters has {name!r}, and robot {robot.name!r} takes "
                f"{some(known) if known else 'none'}; expected a robot made by "
                f"robot.parametric({name!r})"
            )
    found = {}
    for each in own:
        shape, size = each.shape(robot.tree), each.size(robot.tree)
        value = given.get(each.name)
        numbers = each.value(robot.tree).ravel() if value is None else value
        if value is not None:
            numbers = flat("simulate", each.name, shape, value)
        found[each.name] = read("simulate", each.name, size, np.asarray(numbers))
    return found
