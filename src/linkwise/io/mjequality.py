"""Equality constraints of MuJoCo: joints that follow others, and closed loops.

| constraint | here |
|---|---|
| joint, two joints on a straight line | the first follows the second (mimic) |
| connect, weld | a closed loop; ``loops="open"`` leaves it out with a warning |
| joint held still, or on a curve over another; fixed tendons of one or two joints | a coupling; ``loops="open"`` leaves it out with a warning |
| other tendons, flex | refused; ``loops="open"`` leaves it out with a warning |
| any of them to a mocap body | left out with a warning: the user moves that body, as a motor would |
| any that is not active, or ties a body to itself; all where a flag disables them | nothing |
"""  # noqa: E501

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from linkwise.codes import Code
from linkwise.errors import Where
from linkwise.io.mjtendons import Length, Tie, length_of
from linkwise.io.poses import quaternion_matrix
from linkwise.model.description import Pose
from linkwise.model.values import pose_of

Locate = Callable[[str, int], Where]  # ("joint", 3) -> its place

CONNECT, WELD, JOINT, TENDON = range(4)  # mjEQ_CONNECT, mjEQ_WELD, mjEQ_JOINT, mjEQ_TENDON
SITE = 6  # mjOBJ_SITE
ONE_AXIS = (2, 3)  # mjJNT_SLIDE, mjJNT_HINGE


def library(model: Any) -> Any:
    """The module that a model comes from: some numbers differ between versions of MuJoCo."""
    return sys.modules[type(model).__module__.partition(".")[0]]


@dataclass(frozen=True)
class Reading:
    """What to do about a model that is more than a tree of joints."""

    loops: str = "closed"  # or "open": leave out what closes a loop
    follow: bool = True  # whether tied joints will follow, or get numbers of their own


def ties(m: Any, names: Sequence[str], locate: Locate, reading: Reading) -> dict[int, Tie]:
    """Joints tied to others by ``q - q0 = c0 + c1 (q_driver - q0_driver)``, by their number."""
    found: dict[int, Tie] = {}
    for i in range(m.neq):
        if not _acts(m, i) or (_is_loop(m, i) and reading.loops != "open"):
            continue
        joint = int(m.eq_obj1id[i])
        problem = _why_no_tie(m, i)
        if problem is None and joint in found:
            problem = f'a second one on joint "{names[joint]}"'
        if problem is not None and _is_coupling(m, i) and reading.loops != "open":
            continue
        if problem is not None:
            _leave_out(m, i, problem, locate, reading)
            continue
        found[joint] = _tie(m, i)
        if _end(found, joint) is None:
            driver = names[found[joint].driver]
            locate("equality", i).report(Code.FOLLOWS_IN_CIRCLE, name=names[joint], driver=driver)
            del found[joint]
    ends = {joint: _end(found, joint) for joint in found}
    return {joint: end for joint, end in ends.items() if end is not None}


class Curved(NamedTuple):
    """A joint held to a polynomial of another, the constant first; to a number without a driver."""

    joint: int
    driver: int | None
    polynomial: tuple[float, ...]


def curves(m: Any, followers: dict[int, Tie], reading: Reading) -> list[Curved]:
    """The joints that are held by constraints which are no ties, unless they are left out."""
    found, tied = [], set[int]()
    for i in range(m.neq) if reading.loops != "open" else ():
        if not _acts(m, i) or not _is_coupling(m, i):
            continue
        if int(m.eq_type[i]) == TENDON:
            coupling = _tendon_coupling(m, i, followers if reading.follow else {})
            found += [coupling] if coupling is not None else []
            continue
        joint = int(m.eq_obj1id[i])
        if _why_no_tie(m, i) is None and joint in followers and joint not in tied:
            tied.add(joint)
            continue
        found.append(_curve(m, i, followers if reading.follow else {}))
    return found


def _is_coupling(m: Any, i: int) -> bool:
    """Whether a constraint can be read as a coupling of one joint, or of two."""
    return _is_curve(m, i) or (int(m.eq_type[i]) == TENDON and _why_no_coupling(m, i) is None)


def _why_no_coupling(m: Any, i: int) -> str | None:
    """Why a constraint of tendons is no coupling, None where it is one."""
    first, second = _lengths(m, i, {})
    if first is None or second is None:
        return "<tendon> of a tendon that is not <fixed>"
    joints = first.coefficients.keys() | second.coefficients.keys()
    if not all(int(m.jnt_type[joint]) in ONE_AXIS for joint in joints):
        return "<tendon> of joints that are no hinges or slides"
    if m.eq_data[i][2:5].any():
        one_each = len(first.coefficients) == len(second.coefficients) == 1 and len(joints) == 2
        return None if one_each else "<tendon> that is a curve over sums of joints"
    return None if 1 <= len(joints) <= 2 else f"<tendon> that ties {len(joints)} joints together"


def _lengths(m: Any, i: int, followers: dict[int, Tie]) -> tuple[Length | None, Length | None]:
    """Lengths of a constraint's two tendons, from those at rest; 0 without a second one."""
    ends = [int(m.eq_obj1id[i]), int(m.eq_obj2id[i])]
    first, second = (Length({}, 0.0) if t < 0 else length_of(m, t, followers) for t in ends)
    rest = [0.0 if t < 0 else float(m.tendon_length0[t]) for t in ends]
    if first is not None:
        first = first._replace(constant=first.constant - rest[0])
    if second is not None:
        second = second._replace(constant=second.constant - rest[1])
    return first, second


def _tendon_coupling(m: Any, i: int, followers: dict[int, Tie]) -> Curved | None:
    """``L1 = p(L2)`` of lengths from rest, solved for a joint; None where it holds by itself."""
    terms = [float(c) for c in m.eq_data[i][:5]]
    if any(terms[2:]):
        return _tendon_curve(m, i, terms, followers)
    first, second = _lengths(m, i, followers)
    assert first is not None and second is not None  # else it is no coupling
    total = dict(first.coefficients)
    for each, coefficient in second.coefficients.items():
        total[each] = total.get(each, 0.0) - terms[1] * coefficient
    constant = terms[0] + terms[1] * second.constant - first.constant
    moving = [(each, c) for each, c in total.items() if c != 0.0]
    if not moving:
        return None
    (joint, slope), *others = moving
    first_other = others[0][0] if others else None
    return Curved(joint, first_other, (constant / slope, *(-c / slope for _, c in others)))


def _tendon_curve(m: Any, i: int, terms: list[float], followers: dict[int, Tie]) -> Curved:
    """The curve of a tendon of one joint over another such tendon."""
    first, second = _lengths(m, i, {})
    assert first is not None and second is not None
    ((joint, slope),), ((driver, along),) = first.coefficients.items(), second.coefficients.items()
    inner = np.polynomial.Polynomial([second.constant, along])
    if driver in followers:  # x = multiplier q + offset
        tie = followers[driver]
        driver = tie.driver
        inner = inner(np.polynomial.Polynomial([tie.offset, tie.multiplier]))
    curve = (np.polynomial.Polynomial(terms)(inner) - first.constant) / slope
    return _of_driver(Curved(joint, driver, tuple(curve.coef.tolist())), followers)


def _is_curve(m: Any, i: int) -> bool:
    """Whether a constraint is between joints of one axis, or holds one still."""
    if int(m.eq_type[i]) != JOINT:
        return False
    joints = [int(j) for j in (m.eq_obj1id[i], m.eq_obj2id[i]) if j >= 0]
    return all(int(m.jnt_type[j]) in ONE_AXIS for j in joints)


def _curve(m: Any, i: int, followers: dict[int, Tie]) -> Curved:
    """``q - q0 = p(q_driver - q0_driver)``, told of the joints that move on their own."""
    joint, driver = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
    rest = float(m.qpos0[m.jnt_qposadr[joint]])
    terms = [float(c) for c in m.eq_data[i][:5]]
    if driver < 0:
        return _of_driver(Curved(joint, None, (rest + terms[0],)), followers)
    start = float(m.qpos0[m.jnt_qposadr[driver]])
    along, slope = -start, 1.0
    if driver in followers:  # x = multiplier q + offset
        tie = followers[driver]
        driver, along, slope = tie.driver, tie.offset - start, tie.multiplier
    curve = np.polynomial.Polynomial(terms)(np.polynomial.Polynomial([along, slope])) + rest
    return _of_driver(Curved(joint, driver, tuple(curve.coef.tolist())), followers)


def _of_driver(curve: Curved, followers: dict[int, Tie]) -> Curved:
    """The curve of the joint that is followed, where the held one follows another."""
    tie = followers.get(curve.joint)
    if tie is None:
        return curve
    first, *rest = curve.polynomial
    shifted = ((first - tie.offset) / tie.multiplier, *(c / tie.multiplier for c in rest))
    return Curved(tie.driver, curve.driver, shifted)


def _tie(m: Any, i: int) -> Tie:
    joint, driver = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
    c0, c1 = (float(c) for c in m.eq_data[i][:2])
    rest, driver_rest = (float(m.qpos0[m.jnt_qposadr[j]]) for j in (joint, driver))
    return Tie(driver, c1, rest + c0 - c1 * driver_rest)


def _why_no_tie(m: Any, i: int) -> str | None:
    """Why a constraint is no follower of another joint, None where it is one."""
    kind = int(m.eq_type[i])
    if kind == TENDON:
        return _why_no_coupling(m, i) or "<tendon>"
    if kind != JOINT:
        return f"<{library(m).mjtEq(kind).name.removeprefix('mjEQ_').lower()}>"
    if m.eq_obj2id[i] < 0:
        return "<joint> that holds one joint still"
    if m.eq_data[i][2:5].any():
        return f"<joint> whose polycoef {m.eq_data[i][:5].tolist()} is not a straight line"
    if not all(int(m.jnt_type[int(j)]) in ONE_AXIS for j in (m.eq_obj1id[i], m.eq_obj2id[i])):
        return "<joint> between joints that are no hinges or slides"
    return None


def _leave_out(m: Any, i: int, problem: str, locate: Locate, reading: Reading) -> None:
    """Refuse a constraint that a tree of joints cannot hold, or warn that it is left out."""
    where = locate("equality", i)
    if any(m.body_mocapid[body] >= 0 for body in _bodies(m, i)):
        where.report(Code.TIED_TO_MOCAP)
    else:
        code = Code.LOOP_OPENED if reading.loops == "open" else Code.CLOSES_LOOP
        where.report(code, which=problem)


class Ends(NamedTuple):
    """A <connect> or <weld>: a frame on each of two bodies, which shall be one."""

    number: int
    bodies: tuple[int, int]
    poses: tuple[Pose, Pose]
    turns: bool  # whether turning is held too


def loops(m: Any, reading: Reading) -> list[Ends]:
    """The constraints that close a loop, unless they are to be left out."""
    found = range(m.neq) if reading.loops != "open" else ()
    return [_ends(m, i) for i in found if _acts(m, i) and _is_loop(m, i)]


def _is_loop(m: Any, i: int) -> bool:
    """Whether a constraint is a closed loop, and no end of it a mocap body."""
    tied = _bodies(m, i)
    return bool(tied) and all(m.body_mocapid[body] < 0 for body in tied)


def _ends(m: Any, i: int) -> Ends:
    """The two frames of a loop.

    MuJoCo keeps for a <connect> the anchor on both bodies; for a <weld> the anchor on the second,
    the same point on the first, and the turn of the second against the first.
    """
    weld, data = int(m.eq_type[i]) == WELD, np.array(m.eq_data[i], float)
    a, b = _bodies(m, i)
    turns = bool(data[10])  # torquescale; a weld without any is a <connect>
    if _on_sites(m, i):
        at = (int(m.eq_obj1id[i]), int(m.eq_obj2id[i]))
        first, second = (pose_of(quaternion_matrix(m.site_quat[k]), m.site_pos[k]) for k in at)
        return Ends(i, (a, b), (first, second), weld and turns)
    if weld:
        turned = pose_of(quaternion_matrix(data[6:10]), data[3:6])
        return Ends(i, (a, b), (turned, pose_of(np.eye(3), data[:3])), turns)
    straight = np.eye(3)
    return Ends(i, (a, b), (pose_of(straight, data[:3]), pose_of(straight, data[3:6])), False)


def _bodies(m: Any, i: int) -> list[int]:
    """The two bodies that a <connect> or <weld> ties together."""
    if int(m.eq_type[i]) not in (CONNECT, WELD):
        return []
    ends = [int(m.eq_obj1id[i]), int(m.eq_obj2id[i])]
    return [int(m.site_bodyid[end]) for end in ends] if _on_sites(m, i) else ends


def _on_sites(m: Any, i: int) -> bool:
    return hasattr(m, "eq_objtype") and int(m.eq_objtype[i]) == SITE


def _acts(m: Any, i: int) -> bool:
    """Whether a constraint holds anything."""
    off = m.opt.disableflags & library(m).mjtDisableBit.mjDSBL_EQUALITY
    return bool(m.eq_active0[i]) and not off and not _is_empty(m, i)


def _is_empty(m: Any, i: int) -> bool:
    """Whether both ends are on one rigid body."""
    return len({int(m.body_weldid[body]) for body in _bodies(m, i)}) == 1


def _end(found: dict[int, Tie], joint: int) -> Tie | None:
    """What a joint follows in the end, through others that follow; None for a circle."""
    tie = found[joint]
    for _ in found:
        if tie.driver not in found:
            return tie
        inner = found[tie.driver]
        multiplier, offset = tie.multiplier, tie.offset
        tie = Tie(inner.driver, multiplier * inner.multiplier, multiplier * inner.offset + offset)
    return None
