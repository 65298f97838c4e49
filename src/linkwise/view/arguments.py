"""What `show`, `animate` and `save_html` are given, checked, and made into a scene."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.model import forest
from linkwise.model.closures import Loop
from linkwise.model.values import unknown
from linkwise.view import look, scene
from linkwise.view.meshes import MOST_FACES, Meshes
from linkwise.view.scene import Array, Pushes, Scene, Viewed

MOST_GHOSTS = 24  # beside the robot itself; of more, some are shown
Forces = Mapping[str, ArrayLike]


def scene_of(
    robot: Viewed,
    q: ArrayLike | None = None,
    motion: Any = None,
    *,
    frame: str | None = None,
    forces: Forces | None = None,
    most_faces: int = MOST_FACES,
) -> Scene:
    """The scene of a robot at configurations (..., nq), or during a motion."""
    scene.check_shown(robot)
    tree, meshes = robot.tree, Meshes(most_faces)
    if frame is not None and frame not in tree.frames:
        raise unknown("frame", frame, robot.name, tree.frames)
    bones = look.skeleton(tree)
    shapes = look.shapes_of(robot, bones, meshes)
    t, tracks = _motion(robot, motion)
    rows = tracks[:, 0] if len(t) else _configurations(robot, q)
    frames = scene.markers_of(tree)
    names = [marker.name for marker in frames]
    pushes = scene.pushes_of(frames, forces, len(t))
    return Scene(
        name=robot.name,
        tree=tree,
        bodies=tuple(tree.links),
        shapes=shapes,
        meshes=tuple(meshes.found),
        frames=frames,
        sliders=scene.sliders_of(tree, bones.reach, tracks if len(t) else rows),
        ties=scene.ties_of(tree),
        tip=names.index(frame or scene.tip_of(robot)),
        reach=bones.reach,
        q=rows,
        t=t,
        tracks=tracks,
        pushes=(*pushes, *_loop_forces(robot, frames, rows[0], motion, len(t))),
        notes=meshes.notes(),
    )


def home(robot: Viewed) -> Array:
    """The configuration at rest, moved into the limits of the joints."""
    q = np.array(robot.neutral(), float)
    for link in robot.tree.links:
        if link.follows is None and link.joint.nq == 1:
            low, high = link.limits.lower, link.limits.upper
            outside = not low <= 0.0 <= high
            if outside:
                q[link.q_index] = (
                    (low + high) / 2 if np.isfinite(low + high) else max(low, min(high, 0.0))
                )
    return q


def _configurations(robot: Viewed, q: ArrayLike | None) -> Array:
    """Rows (n, nq): the robot, then ghosts."""
    if q is None:
        return home(robot)[None]
    rows = np.asarray(q, float)
    nq = robot.tree.nq
    if rows.ndim < 1 or rows.shape[-1] != nq or not rows.size:
        raise ValueError(f"q has shape {rows.shape}; expected (..., {nq}) of robot {robot.name!r}")
    rows = rows.reshape(-1, nq)
    if not np.isfinite(rows).all():
        raise ValueError(f"q has numbers that are not finite in {_bad(rows)} of {len(rows)} rows")
    return rows[_some(len(rows))]


def _motion(robot: Viewed, motion: Any) -> tuple[Array, Array]:
    """Times (T), and rows (n, T, nq): the robot, then ghosts."""
    nq = robot.tree.nq
    if motion is None:
        return np.zeros(0), np.zeros((0, 0, nq))
    if isinstance(motion, tuple) and len(motion) == 2:
        t, q = (np.asarray(x, float) for x in motion)
    elif hasattr(motion, "t") and hasattr(motion, "q"):
        own = motion.numpy() if hasattr(motion, "numpy") else motion
        t, q = np.asarray(own.t, float), np.asarray(own.q, float)
    else:
        raise TypeError(
            f"a motion is a {type(motion).__name__}; expected a linkwise.Trajectory, or a pair of "
            "times (T) and configurations (..., T, nq); for one configuration, give q="
        )
    if t.ndim != 1 or q.ndim < 2 or q.shape[-2:] != (len(t), nq) or not len(t):
        raise ValueError(
            f"a motion has times {t.shape} and q {q.shape}; expected (T) and (..., T, {nq}) of "
            f"robot {robot.name!r}"
        )
    rows = q.reshape(-1, len(t), nq)
    rows = rows[np.isfinite(rows[:, 0]).all(-1)]
    if not len(rows):
        raise ValueError("a motion has no row that begins with finite numbers")
    rows = rows[_some(len(rows))]
    whole = np.isfinite(rows).all(-1)
    last = np.maximum.accumulate(np.where(whole, np.arange(len(t)), 0), axis=1)
    return t, np.take_along_axis(rows, last[..., None], axis=1)  # what failed stays where it was


def _some(count: int) -> NDArray[np.int64]:
    """Numbers of the rows that are shown: all, or the first and others evenly spread."""
    most = min(count, MOST_GHOSTS + 1)
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))


def _bad(rows: Array) -> int:
    return int((~np.isfinite(rows).all(-1)).sum())


def _loop_forces(robot: Any, frames: Any, q: Array, motion: Any, times: int) -> tuple[Pushes, ...]:
    """Wrenches of closed loops on their frames, and of arms on an object that they hold.

    During a motion, or where there is none, standing still at q.
    """
    between = [loop for loop in getattr(robot, "loops", ()) if isinstance(loop, Loop)]
    if not between or (times and not hasattr(motion, "qd")):
        return ()
    grasped = hasattr(robot, "contacts")
    if times:
        own = motion.numpy()
        parts = (own.q, own.qd, own.tau)
        state = [np.asarray(x, float).reshape(-1, times, x.shape[-1])[0] for x in parts]
    else:
        still = np.zeros(robot.nv)
        state = [q, still, robot.inverse_dynamics(q, still, still)]
    found = robot.contact_forces(*state) if grasped else robot.constraint_forces(*state)
    if grasped:
        held = [forest.name_of(robot.tree, c.arm, c.frame) for c in robot.contacts]
        titles = [f"contact of {name}" for name in held]
    else:
        held = [loop.frame_a for loop in between]
        titles = [f"loop {loop.title}" for loop in between]
    wrenches = np.nan_to_num(np.asarray(found, float).reshape(-1, len(held), 6))
    numbers = {marker.name: k for k, marker in enumerate(frames)}
    named = enumerate(zip(held, titles, strict=True))
    return tuple(Pushes(numbers[name], wrenches[:, k], title) for k, (name, title) in named)
