"""Equality constraints of MuJoCo that tie one joint to another, as mimic joints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.errors import Where
from linkwise.model.description import Mimic

Locate = Callable[[str, int], Where]

KINDS = ("connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain", "distance")
JOINT = 2  # mjEQ_JOINT
ONE_AXIS = (2, 3)  # mjJNT_SLIDE, mjJNT_HINGE


@dataclass(frozen=True)
class _Tie:
    driver: int
    multiplier: float
    offset: float


def mimics(m: Any, names: Sequence[str], locate: Locate) -> dict[int, Mimic]:
    """Joints tied to others by ``q - q0 = c0 + c1 (q_driver - q0_driver)``; others are named."""
    ties: dict[int, _Tie] = {}
    for i in range(m.neq):
        joint, problem = int(m.eq_obj1id[i]), _why_not(m, i)
        if problem is None and joint in ties:
            problem = "the joint is already tied to another"
        if problem is not None:
            locate("equality", i).warn(f"not read: ignored ({problem})")
            continue
        driver = int(m.eq_obj2id[i])
        c0, c1 = (float(c) for c in m.eq_data[i][:2])
        rest, driver_rest = (float(m.qpos0[m.jnt_qposadr[j]]) for j in (joint, driver))
        ties[joint] = _Tie(driver, c1, rest + c0 - c1 * driver_rest)
        if _end(ties, joint) is None:
            raise locate("equality", i).error(
                f'joint "{names[joint]}" follows itself through "{names[driver]}"; expected '
                "joints that end at one that follows none"
            )
    ends = {joint: _end(ties, joint) for joint in ties}
    return {
        joint: Mimic(names[end.driver], end.multiplier, end.offset)
        for joint, end in ends.items()
        if end is not None
    }


def _why_not(m: Any, i: int) -> str | None:
    """Why a constraint is no mimic joint, None where it is one."""
    kind = int(m.eq_type[i])
    if kind != JOINT:
        word = KINDS[kind] if kind < len(KINDS) else str(kind)
        return f"of equality constraints, only those between two joints are read, not <{word}>"
    if not m.eq_active0[i]:
        return "it is not active"
    if m.eq_obj2id[i] < 0:
        return "it holds one joint still; expected two joints"
    if m.eq_data[i][2:5].any():
        return f"polycoef {m.eq_data[i][:5].tolist()} is not a straight line"
    if not all(int(m.jnt_type[int(j)]) in ONE_AXIS for j in (m.eq_obj1id[i], m.eq_obj2id[i])):
        return "expected hinges or slides"
    return None


def _end(ties: dict[int, _Tie], joint: int) -> _Tie | None:
    """What a joint follows in the end, through others that follow; None for a circle."""
    tie = ties[joint]
    for _ in ties:
        if tie.driver not in ties:
            return tie
        inner = ties[tie.driver]
        multiplier, offset = tie.multiplier, tie.offset
        tie = _Tie(inner.driver, multiplier * inner.multiplier, multiplier * inner.offset + offset)
    return None
