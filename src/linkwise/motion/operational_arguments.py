"""The arguments of laws of a frame's motion, each checked, with errors that help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algorithms.unmoved import joints_without_inertia
from linkwise.engine.arrays import broadcast, read
from linkwise.engine.auto import in_loops
from linkwise.model.tree import Frame
from linkwise.model.values import mask, unknown
from linkwise.motion.laws import Law, Numbered, PerStep, a_robot, computed_torque, numbers_of
from linkwise.motion.operational import TITLE, WRITTEN_OUT, Plan
from linkwise.motion.operational_response import RESPONSES
from linkwise.robot import Robot

Array = NDArray[Any]
NAMED: dict[str, Array] = {  # rows by name, as `inverse_kinematics` calls them
    "pose": np.eye(6),
    "orientation": np.eye(6)[:3],
    "position": np.eye(6)[3:],
}
POSTURE_GAINS = (25.0, 10.0)  # of a posture that is given as a configuration
LEAST = 1e-9  # of the largest singular value of rows, below which they depend on each other


def planned(
    robot: Any,
    frame: Any,
    rows: Any,
    force_rows: Any,
    gains: Sequence[tuple[str, Any]],
    posture: Any,
    damping: tuple[str, Any],
    axes: Any,
    passive: Any,
    method: Any,
    *,
    impedance: bool = False,
    inertia: Any = None,
) -> tuple[Plan, list[Numbered]]:
    """What is compiled, and the numbers that are given once."""
    title = TITLE[impedance]
    place = _frame(title, a_robot(title, robot), frame)
    if not isinstance(axes, str) or axes not in ("base", "body"):
        raise ValueError(f"{title}: axes is {axes!r}; expected 'base' or 'body'")
    motion = _rows(title, "rows", rows)
    force = np.zeros((0, 6)) if force_rows is None else _rows(title, "force_rows", force_rows)
    both = np.vstack([motion, force])
    _refuse_dependent(title, both, force_rows is not None)
    idle = _passive(title, robot, passive)
    way = _method(title, robot, place, frame, method, idle)
    damped = _damping(title, *damping, both)
    _refuse_too_many_rows(title, robot, place, frame, both, idle, damping[0], damped is not None)
    law = _posture(title, robot, posture)
    numbers = [_gain(title, name, x) for name, x in gains]
    numbers += [] if inertia is None else [_mobility(title, inertia)]
    numbers += [] if damped is None else [damped]
    numbers += [] if law is None else law.inputs
    shapes = [(*x.leading, x.values.shape[-1]) for x in numbers]
    broadcast(
        title, [(x.name, shape[-1]) for x, shape in zip(numbers, shapes, strict=True)], shapes
    )
    duals = np.vstack([np.linalg.solve(x @ x.T, x) for x in (motion, force)])
    plan = Plan(
        place, axes, _tuples(both), _tuples(duals), len(motion), impedance, inertia is not None,
        inertia is not None or force_rows is not None, damped is not None,
        () if law is None else law.forms, idle, way,
    )  # fmt: skip
    return plan, numbers


def _tuples(x: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(number) for number in row) for row in x)


def _frame(title: str, robot: Robot, name: Any) -> Frame:
    reason = joints_without_inertia(robot.tree)
    if reason:
        raise ValueError(f"{title}: {reason}")
    place: Frame = robot._calls.tasks.frame(name)
    if not robot.tree.dofs_inward(place.link, 1):
        raise ValueError(
            f"{title}: frame {name!r} is fixed to the base, and no joint moves it; expected a "
            "frame of a moving link"
        )
    return place


def _method(
    title: str, robot: Robot, place: Frame, frame: str, method: Any, passive: Sequence[int]
) -> str:
    """How the law is computed: written out link by link, or by kernels for any number of links."""
    tree, names = robot.tree, ("auto", WRITTEN_OUT, *RESPONSES)
    if not isinstance(method, str) or method not in names:
        known = ", ".join(map(repr, names))
        raise ValueError(f"{title}: method is {method!r}; expected one of {known}")
    large = in_loops("mass_matrix", tree) and not tree.is_closed
    chosen = ("recursive" if large else WRITTEN_OUT) if method == "auto" else method
    if chosen == WRITTEN_OUT:
        return chosen
    reason = RESPONSES[chosen].why_not(tree, place)
    if tree.is_closed:
        reason = f"the robot has closed loops, such as {tree.loop_names[0]}"
    elif passive:
        reason = "joints without a motor are for code that is written out link by link"
    if reason:
        size = f" (which is taken because the robot has {tree.n_links:,} links)"
        others = () if passive or tree.is_closed else RESPONSES
        able = [x for x in others if not RESPONSES[x].why_not(tree, place)]
        raise ValueError(
            f"{title}, method {chosen!r}{size if method == 'auto' else ''}, frame {frame!r}: "
            f"{reason}; expected one of {', '.join(map(repr, [WRITTEN_OUT, *able]))}"
        )
    return chosen


def _rows(title: str, name: str, rows: Any) -> Array:
    """Directions as a matrix (k, 6)."""
    if rows is None:
        return NAMED["pose"]
    if isinstance(rows, str) and rows in NAMED:
        return NAMED[rows]
    try:
        given = np.asarray(rows)
    except (ValueError, TypeError):
        given = np.empty(0, object)
    chosen = mask(rows)
    if chosen is not None and chosen.any():
        return np.compress(chosen, NAMED["pose"], axis=0)
    matrix = given.ndim == 2 and given.shape[-1] == 6 and 1 <= len(given) <= 6
    if not matrix or given.dtype.kind not in "iuf" or not np.isfinite(given).all():
        raise ValueError(
            f"{title}: {name} is {rows!r}; expected 'pose', 'position', 'orientation', six "
            "booleans or zeros and ones (turning about x, y, z, moving along x, y, z) of which "
            "some are True, or a finite matrix (k, 6) of at most six rows"
        )
    found: Array = given.astype(np.float64)
    return found


def _refuse_dependent(title: str, rows: Array, with_force: bool) -> None:
    """Raise unless all rows, of motion and of force, are independent."""
    sizes = np.linalg.svd(rows, compute_uv=False)
    if len(rows) > 6 or sizes[-1] <= LEAST * sizes[0]:
        names = "rows and force_rows together" if with_force else "rows"
        raise ValueError(
            f"{title}: {names} are {len(rows)} directions of which some follow from others; "
            "expected independent rows: each direction has a motion or a force, not both"
        )


def _refuse_too_many_rows(
    title: str,
    robot: Robot,
    place: Frame,
    frame: str,
    rows: Array,
    passive: Sequence[int],
    damping: str,
    damped: bool,
) -> None:
    """Raise where no pose exists in which the joints can move all rows."""
    enough = robot.nv if passive else len(rows)
    own = robot.tree.dofs_inward(place.link, enough)
    # where passive joints react, or loops are closed, a motor anywhere may move the frame
    anywhere = bool(own & set(passive) or robot.tree.is_closed)
    moving = (set(range(robot.nv)) if anywhere else own) - set(passive)
    if len(rows) > len(moving) and not damped:
        raise ValueError(
            f"{title}: {len(rows)} rows of frame {frame!r} are to follow, and {len(moving)} "
            f"degree(s) of freedom with a motor move it; expected rows= with at most so many, or "
            f"{damping}= for the nearest that can be done"
        )


def _passive(title: str, robot: Robot, passive: Any) -> tuple[int, ...]:
    """Degrees of freedom without a motor: those of the robot, and of the joints named."""
    named = isinstance(passive, list | tuple | set | frozenset)
    if not named or not all(isinstance(name, str) for name in passive):
        raise ValueError(f"{title}: passive is {passive!r}; expected a sequence of joint names")
    for name in passive:
        if name not in robot.joint_names:
            raise unknown("joint", name, robot.name, robot.joint_names)
    places = (robot.joint(name).v_slice for name in passive)
    found = {j for place in places for j in range(place.start, place.stop)}
    return tuple(sorted(found | set(robot.tree.passive)))


def _gain(title: str, name: str, value: Any) -> Numbered:
    """A gain: a number, or one for each direction (..., 6); none is negative."""
    found = numbers_of(title, name, 6, value)
    if not (found.values >= 0).all() or not np.isfinite(found.values).all():
        raise ValueError(
            f"{title}: {name} is {value!r}; expected a number that is not negative, or six of "
            "them (..., 6), (angular, linear)"
        )
    return found


def gain_pair(title: str, gains: Any) -> list[tuple[str, Any]]:
    """``(kp, kd)`` with their names."""
    if not isinstance(gains, tuple | list) or len(gains) != 2:
        raise ValueError(
            f"{title}: gains is {gains!r}; expected a pair (kp, kd), of numbers or of six each"
        )
    return [("kp", gains[0]), ("kd", gains[1])]


def _damping(title: str, name: str, value: Any, rows: Array) -> Numbered | None:
    """Damping of each row; None where there is none."""
    if value is None:
        return None
    found = numbers_of(title, name, 6, value)
    if not (found.values > 0).all() or not np.isfinite(found.values).all():
        raise ValueError(
            f"{title}: {name} is {value!r}; expected a positive number, or six of them (..., 6), "
            "in rad/s² per N m and m/s² per N; or None"
        )
    return Numbered(name, found.values @ (rows * rows).T, found.per_step)


def _mobility(title: str, inertia: Any) -> Numbered:
    """The inverse of the wanted inertia, by rows."""
    given = np.asarray(inertia) if not isinstance(inertia, PerStep) else np.empty(0)
    full = None
    if given.dtype.kind in "iuf" and given.shape in ((), (6,), (6, 6)):
        full = given if given.ndim == 2 else np.diag(np.broadcast_to(given, 6))
    if full is None or not np.isfinite(full).all() or not _positive(full):
        raise ValueError(
            f"{title}: inertia is {inertia!r}; expected a positive number, six of them, or a "
            "symmetric positive definite matrix (6, 6), in kg m² and kg"
        )
    return Numbered("mobility", np.linalg.inv(full.astype(float)).ravel(), per_step=False)


def _positive(matrix: Array) -> bool:
    return bool(np.allclose(matrix, matrix.T) and np.linalg.eigvalsh(matrix)[0] > 0)


def _posture(title: str, robot: Robot, posture: Any) -> Law | None:
    """The law that acts where it does not move the frame."""
    if posture is None:
        return None
    if isinstance(posture, PerStep):
        return computed_torque(robot, *POSTURE_GAINS, posture)
    if not isinstance(posture, Law):
        try:
            at = read(title, "posture", robot.nq, posture)
        except TypeError:
            raise TypeError(
                f"{title}: posture is a {type(posture).__name__}; expected a law of "
                f"linkwise.control, a configuration (..., {robot.nq}) or None"
            ) from None
        return computed_torque(robot, *POSTURE_GAINS, at)
    if posture.robot.tree.digest != robot.tree.digest:
        raise ValueError(
            f"{title}: posture is a law for robot {posture.robot.name!r}, which differs from "
            f"{robot.name!r}; expected a law made for the robot that is controlled"
        )
    return posture if posture.terms else None


# -- what calls are given -------------------------------------------------------------------------


def as_poses(title: str, target: Any, turns: bool, per_step: bool = False) -> Array:
    """Targets (..., 4, 4), or places (..., 3) where axes do not matter, as 16 numbers each."""
    try:
        given = np.asarray(target)
    except (ValueError, TypeError) as error:
        raise TypeError(f"{title}: target cannot be read as an array ({error})") from None
    shape = "(..., 4, 4)" if turns else "(..., 4, 4), or a place (..., 3)"
    shape = shape.replace("...", "..., steps") if per_step else shape
    placed = not turns and given.ndim > per_step and given.shape[-1:] == (3,)
    if not placed and (given.shape[-2:] != (4, 4) or given.ndim < 2 + per_step):
        raise ValueError(f"{title}: target has shape {given.shape}; expected {shape}")
    if not placed:
        return read(title, "target", 16, given.reshape(*given.shape[:-2], 16))
    place = read(title, "target", 3, given)
    found = np.zeros((*place.shape[:-1], 4, 4), place.dtype)
    found[...] = np.eye(4)
    found[..., :3, 3] = place
    return found.reshape(*place.shape[:-1], 16)


def asked_numbers(plan: Plan, given: Sequence[Any]) -> list[Numbered]:
    """The targets of a law, for all times or for each step."""
    target, *rest, wrenches = given
    per_step = isinstance(target, PerStep)
    poses = as_poses(plan.title, target.values if per_step else target, plan.turns, per_step)
    wrapped = PerStep(poses) if per_step else poses
    values = [wrapped, *(0.0 if x is None else x for x in rest[:2])]
    if plan.force:
        values.append(force_of(plan, rest[2]))
    elif rest[2] is not None:
        refuse_force(plan)
    pairs = zip(plan.asked, [*values, *wrenches], strict=True)
    return [numbers_of(plan.title, name, size, x) for (name, size), x in pairs]


def force_of(plan: Plan, force: Any) -> Any:
    """The wrench of a call: an impedance goes without."""
    if force is None and not plan.impedance:
        raise TypeError(
            f"{plan.title}: force is None; expected the wrench (..., 6) of force_rows, (moment, "
            "force) in base axes"
        )
    return np.zeros(6, np.float32) if force is None else force


def refuse_force(plan: Plan) -> None:
    """Raise where a wrench is given and the law has no use for it."""
    way = "inertia=" if plan.impedance else "force_rows="
    raise TypeError(
        f"{plan.title}: force is given, and this law has no use for one; expected force=None, or "
        f"a law made with {way}"
    )
