"""Solutions that iterations find before derivatives at them are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwise.differentiation.arguments import USUAL_OPTIONS, gathered
from linkwise.differentiation.plan import SEARCH, SEARCH_OPTIONS, Plan
from linkwise.engine import devices, reaching
from linkwise.engine.calls import Calls, Options, unpacked
from linkwise.trace.status import Status

Usual = tuple[Any, int | None, bool, str | None]  # out, threads, status, device


class Given(NamedTuple):
    """Arrays for a kernel: the function's arguments, then a solution, where there is one."""

    arrays: list[Any]
    usual: Usual
    bits: Any = None  # of the iteration

    def status(self, bits: Any) -> Any:
        """The status of derivatives, beside that of the solution they are at."""
        if self.bits is None or bits is None:
            return bits
        if isinstance(bits, np.ndarray | np.generic):  # of NaN in place of a solution that is none
            lost: Any = (self.bits & UNSOLVED) > 0
            bits = np.where(lost, np.bitwise_and(bits, ~NOT_FINITE), bits)[()]
        return self.bits | bits


UNSOLVED = np.uint16(Status.NOT_CONVERGED | Status.NOT_RIGID | Status.OVERFLOW)
NOT_FINITE = np.uint16(Status.NOT_FINITE)


def given(
    calls: Calls, plan: Plan, values: Sequence[Any], f_ext: Any, damping: Any, options: Options
) -> Given:
    """What a call gives, and what an iteration makes of it."""
    if plan.reach is not None:
        return _searched(calls, plan, values, f_ext, damping, options)
    own, usual = gathered(calls, plan, values, f_ext, damping, options)
    if not plan.iteration:
        return Given(own, usual)
    told: Any = {name: x for name, x in options.items() if name != "out"} | {"status": True}
    start = devices.zeros(plan.tree.nv, own[:3])
    found, went = calls.iterate((*own[:3], start), told, plan.iteration, f_ext)
    return Given([*own, found], usual, went.status if usual[2] else None)


def _searched(
    calls: Calls, plan: Plan, values: Sequence[Any], f_ext: Any, damping: Any, options: Options
) -> Given:
    """A target, and the configuration that a search finds for it; NaN where it finds none."""
    if len(values) not in (1, 2):
        raise TypeError(
            f"{plan.title}: was given {len(values)} array(s); expected target, and q0 if the search"
            " is to start there"
        )
    if f_ext is not None or damping is not None:
        raise TypeError(f"{plan.title}: takes neither f_ext nor damping")
    usual = unpacked(SEARCH, options) if options else USUAL_OPTIONS
    reach = plan.reach
    assert reach is not None
    asked = reaching.Asked(**{**SEARCH_OPTIONS, **dict(plan.asked.search)})
    start = values[1] if len(values) == 2 else None
    found = reaching.inverse_kinematics(
        calls, values[0], plan.asked.key.frame, start, asked, None, *usual[1:]
    )
    q, bits = found if usual[2] else (found, None)
    if bits is not None:
        q = _only_solved(q, bits)
    return Given([reaching.flat(values[0], None, reach.turning), q], usual, bits)


def _only_solved(q: Any, bits: Any) -> Any:
    """Configurations, NaN where they are the best that was met and no solution."""
    lost = (bits & UNSOLVED) > 0
    if isinstance(q, np.ndarray):
        return np.where(lost[..., None] if np.ndim(lost) else lost, np.nan, q).astype(q.dtype)
    return q + ((lost * -1.0) ** 0.5)[..., None]
