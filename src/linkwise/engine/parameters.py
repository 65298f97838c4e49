"""Parameters of a robot among the keywords of a call: their values, as arguments of a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from linkwise.engine import arrays, devices
from linkwise.engine.libraries import library_of
from linkwise.model.parameters import Parameter
from linkwise.model.tree import Tree


class Parameters:
    """The parameters of one robot: what calls are given, or else what the robot has."""

    def __init__(self, tree: Tree, parameters: tuple[Parameter, ...]) -> None:
        self._shapes = {each.name: each.shape(tree) for each in parameters}
        wide = {each.name: each.value(tree).ravel() for each in parameters}
        self._usual = {
            np.dtype(t): {k: x.astype(t) for k, x in wide.items()} for t in arrays.FLOATS
        }

    def taken(
        self, function: str, values: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[Any, tuple[Any, ...]]:
        """The keywords that are no parameters, and every parameter's numbers (..., size)."""
        shapes = self._shapes
        if not shapes:
            return options, ()
        rest: dict[str, Any] = {}
        given: dict[str, Any] = {}
        for name, x in options.items():
            shape = shapes.get(name)
            if shape is None:
                rest[name] = x
            elif x is not None:
                given[name] = x if len(shape) == 1 else flat(function, name, shape, x)
        if len(given) == len(shapes):
            return rest, tuple([given[name] for name in shapes])
        usual = self._usual_like((*values, *given.values()))
        return rest, tuple(given.get(name, usual.get(name)) for name in shapes)

    def _usual_like(self, values: Sequence[Any]) -> Mapping[str, Any]:
        """The robot's own numbers, no wider than the arrays that they go with."""
        if devices.elsewhere(values):
            return {name: x.tolist() for name, x in self._usual[np.dtype("float64")].items()}
        narrow = all(getattr(x, "dtype", None) == np.float32 for x in values)
        return self._usual[np.dtype("float32" if narrow else "float64")]


def flat(function: str, name: str, shape: tuple[int, ...], value: Any) -> Any:
    """A parameter of two axes for each state as a vector for each; others as they are."""
    if len(shape) == 1:
        return value
    wanted = ", ".join(map(str, shape))
    if library_of(value) is None:
        arrays.refuse_mask(function, name, value)
        try:
            value = np.asarray(value)
        except (ValueError, TypeError) as error:
            raise TypeError(
                f"{function}: {name} cannot be read as an array ({error}); expected numbers of "
                f"shape (..., {wanted})"
            ) from None
    given = tuple(value.shape)
    if given[-len(shape) :] != shape:
        raise ValueError(f"{function}: {name} has shape {given}; expected (..., {wanted})")
    return value.reshape((*given[: -len(shape)], prod(shape)))
