"""Poses of several frames in one call, and of frames seen from another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algorithms.frame_motion import frame_poses
from linkwise.engine.auto import in_loops
from linkwise.engine.calls import Calls, Options, unpacked
from linkwise.engine.served import Function, Served
from linkwise.model.tree import BASE, Frame, Tree
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.program import Port
from linkwise.trace.status import status_of
from linkwise.trace.tracer import flatten

NAME = "forward_kinematics"


class _Owner:
    """What a function of states asks of a robot."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls


def poses_of(
    calls: Calls, q: Any, frame: Any, relative_to: Any, method: str, options: Options
) -> Any:
    """Poses (..., 4, 4) of a frame, or of several (..., k, 4, 4), seen from the base or a frame."""
    names = (frame,) if isinstance(frame, str) else frame
    if not isinstance(names, Sequence) or not names:
        raise ValueError(f"{NAME}: frame is {frame!r}; expected a name, or a list of names")
    if method not in ("auto", "sweep"):
        raise ValueError(
            f"method {method!r}: several frames, or frames seen from another, are computed by "
            "'sweep' only"
        )
    if calls.tasks.parameters or in_loops("link_poses", calls.tasks.tree):
        found = _from_links(calls, q, *_frames(calls, names, relative_to), options)
    else:
        found = _traced(calls, q, tuple(names), relative_to, options)
    return _one(found, options) if isinstance(frame, str) else found


def _frames(
    calls: Calls, names: Sequence[Any], relative_to: Any
) -> tuple[tuple[Frame, ...], Frame | None]:
    frames = tuple(calls.tasks.frame(name) for name in names)
    return frames, None if relative_to is None else calls.tasks.frame(relative_to)


def _one(found: Any, options: Options) -> Any:
    """The only frame's pose, of several frames' poses."""
    if options.get("status"):
        return found[0][..., 0, :, :], found[1]
    return found[..., 0, :, :]


def _traced(
    calls: Calls, q: Any, names: tuple[Any, ...], relative_to: Any, options: Options
) -> Any:
    """By code for just these frames."""
    out, threads, status, device = unpacked(NAME, options)
    key = (NAME, names, relative_to, status)
    served = calls.served.get(key)
    if served is None:
        function = _function(calls.tasks.tree, *_frames(calls, names, relative_to), status)
        served = calls.served.setdefault(key, Served(_Owner(calls), function))
    found = NotImplemented if device or threads else served.fast(q)
    if found is NotImplemented:
        found = served((q,), None, threads, device)
    rows, *more = found if status else (found,)
    poses = _into(out, rows.reshape(*rows.shape[:-1], len(names), 4, 4))
    return (poses, *more) if status else poses


def _function(
    tree: Tree, frames: tuple[Frame, ...], origin: Frame | None, status: bool
) -> Function:
    def trace(_graph: Graph, inputs: list[list[Expr]]) -> list[Expr | float]:
        return list(flatten(frame_poses(tree, inputs[0], frames, origin)))

    def bits(graph: Graph, inputs: list[list[Expr]], results: list[Expr]) -> Expr:
        return status_of(graph, tree, inputs, results)

    key = tuple((f.link, f.origin, f.rotation) for f in (*frames, *([origin] if origin else [])))
    return Function(
        NAME,
        (*key, origin is None),
        (Port("q", tree.nq),),
        16 * len(frames),
        trace,
        status=bits if status else None,
        source="algorithms",
    )


def _from_links(
    calls: Calls, q: Any, frames: tuple[Frame, ...], origin: Frame | None, options: Options
) -> Any:
    """From the poses of all links, where code for each frame would be large, or constants vary."""
    out = options.get("out")
    rest: Any = {name: value for name, value in options.items() if name != "out"}
    found = calls.run("link_poses", (q,), rest)
    links, *more = found if options.get("status") else (found,)
    if not isinstance(links, np.ndarray):
        raise TypeError(
            f"{NAME}: q is a {type(q).__name__}; expected an array of NumPy where a robot is in "
            "loops or parametric and there are several frames (link_poses takes any)"
        )
    own = calls.tasks.tree.joint_frames

    def offset(frame: Frame) -> Any:
        return (
            matrix(frame)
            if frame.link == BASE
            else inverse(matrix(own[frame.link])) @ matrix(frame)
        )

    def pose(frame: Frame) -> Any:
        return offset(frame) if frame.link == BASE else links[..., frame.link, :, :] @ offset(frame)

    poses = np.stack(np.broadcast_arrays(*(pose(f) for f in frames)), -3)
    if origin is not None:
        poses = inverse(pose(origin))[..., None, :, :] @ poses
    shape = (*links.shape[:-3], len(frames), 4, 4)
    poses = _into(out, np.broadcast_to(poses, shape).astype(links.dtype))
    return (poses, *more) if more else poses


def _into(out: Any, poses: Any) -> Any:
    if out is None:
        return poses
    out[...] = poses
    return out


def matrix(frame: Frame) -> Any:
    """A frame's pose in its link as a 4 by 4 matrix."""
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = frame.rotation, frame.origin
    return found


def inverse(pose: Any) -> Any:
    """The inverse of poses (..., 4, 4)."""
    found = np.zeros_like(pose)
    R = np.swapaxes(pose[..., :3, :3], -1, -2)
    found[..., :3, :3] = R
    found[..., :3, 3] = -(R @ pose[..., :3, 3:])[..., 0]
    found[..., 3, 3] = 1.0
    return found
