"""Arguments of derivatives: what users pass, as the arrays that a kernel is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.differentiation.plan import EXTERNAL, Plan
from linkwise.engine import devices
from linkwise.engine.calls import Calls, Options, unpacked
from linkwise.engine.parameters import flat

USUAL_OPTIONS: tuple[Any, int | None, bool, str | None] = (None, None, False, None)


def gathered(
    calls: Calls, plan: Plan, values: Sequence[Any], f_ext: Any, damping: Any, options: Options
) -> tuple[list[Any], tuple[Any, int | None, bool, str | None]]:
    """The function's own arguments, one for each port; and ``out``, ``threads``, ``status`` and
    ``device``.
    """
    own = list(values)
    if plan.asked.key.function == "integrate":
        own = [*own, 1.0] if len(own) == 2 else own
        own[2:] = [devices.times(*own)] if len(own) == 3 else own[2:]
    if len(own) != len(plan.inputs):
        raise TypeError(
            f"{plan.title}: was given {len(own)} array(s); expected {', '.join(plan.inputs)}"
        )
    rest, constants = options, ()
    if plan.task.parameters:
        rest, constants = calls.parameters.taken(plan.title, own, options)
    if f_ext is not None or plan.task.external:
        own += _wrenches(plan, f_ext)
    if damping is not None or plan.task.damped:
        own += _damping(plan, damping, own[0])
    return [*own, *constants], unpacked(plan.title, rest) if rest else USUAL_OPTIONS


def _wrenches(plan: Plan, f_ext: Any) -> list[Any]:
    """Wrenches in the order of the frames that were named."""
    frames = plan.asked.key.external
    named = ", ".join(map(repr, frames)) or "none"
    if f_ext is None:
        f_ext = {}
    if not isinstance(f_ext, Mapping):
        raise TypeError(
            f"{plan.title}: f_ext is a {type(f_ext).__name__}; expected a mapping "
            "{frame: (..., 6) wrench}"
        )
    if set(f_ext) != set(frames):
        raise ValueError(
            f"{plan.title}: f_ext has wrenches on {', '.join(map(repr, f_ext)) or 'no frame'}; "
            f"expected the frames that it was made for: {named}"
        )
    return [f_ext[name] for name in frames]


def _damping(plan: Plan, value: Any, q: Any) -> list[Any]:
    if not plan.task.damped:
        if value is not None:
            raise ValueError(
                f"{plan.title}: damping is {value!r}; expected none, as it was made with "
                "damped=False"
            )
        return []
    found = devices.damping(value, q)
    return [devices.zeros(6, (q,)) if found is None else found]


def by_name(plan: Plan, what: str, given: Any) -> dict[str, Any]:
    """Values of a sequence, or of a mapping, by the names of arguments; None is left out."""
    names = plan.inputs
    if isinstance(given, Mapping):
        for name in given:
            if what == "inputs" and name in plan.owners and name not in names:
                raise ValueError(
                    f"{plan.title}: inputs has {name!r}; expected it as a keyword, {name}=..., and "
                    f"in inputs some of {', '.join(map(repr, names))}"
                )
            if name not in plan.owners and (what != "inputs" or name not in plan.starts):
                raise ValueError(
                    f"{plan.title}: {what} has {name!r}; expected some of "
                    f"{', '.join(map(repr, dict.fromkeys(plan.owners)))}"
                )
        return {name: x for name, x in given.items() if x is not None}
    if what == "inputs" and isinstance(given, tuple | list) and len(given) > len(names):
        names = [*names, *plan.starts]
    if not isinstance(given, tuple | list) or len(given) != len(names):
        many = f"{len(given)} part(s)" if isinstance(given, tuple | list) else type(given).__name__
        raise TypeError(
            f"{plan.title}: {what}: was given {many}; expected a tuple ({', '.join(names)}), or a "
            "mapping by these names"
        )
    return {name: x for name, x in zip(names, given, strict=True) if x is not None}


def tangents(plan: Plan, given: Mapping[str, Any], beside: Any) -> list[Any]:
    """Rates of the arguments that have some (..., numbers), one array for each."""
    found = []
    for name, x in given.items():
        if name == EXTERNAL and isinstance(x, Mapping):
            parts = [np.asarray(part) for part in _wrenches(plan, x)]
            x = np.stack(np.broadcast_arrays(*parts), axis=-2)
        found.append(rows(plan, f"tangents[{name!r}]", plan.shape_of(name), x, beside))
    return found


def rows(plan: Plan, what: str, shape: tuple[int, ...], x: Any, beside: Any) -> Any:
    """An array (..., shape) as (..., numbers); a plain number widens nothing that it goes with."""
    return flat(plan.title, what, shape, x) if shape else devices.times(beside, beside, x)
