"""Poses of several frames in one call, and of frames seen from another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algorithms.frame_motion import frame_poses
from linkwise.engine import arrays
from linkwise.engine.auto import in_loops
from linkwise.engine.calls import Calls, Options, unpacked
from linkwise.engine.compiled import CompiledFunction
from linkwise.engine.equations import Equations, flags, straight_line
from linkwise.model.tree import BASE, Frame, Tree
from linkwise.spatial.matrices import product
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.program import CONFIGURATION, Port, Slot
from linkwise.trace.status import status_of
from linkwise.trace.tracer import flatten

NAME = "forward_kinematics"


def poses_of(
    calls: Calls, q: Any, frame: Any, relative_to: Any, method: str, options: Options
) -> Any:
    """Poses (..., 4, 4) of a frame, or of several (..., k, 4, 4), seen from the base or a frame."""
    if not options and method in ("auto", "sweep") and type(frame) in (list, tuple):
        try:
            function = calls.functions.get((NAME, tuple(frame), relative_to, False))
        except TypeError:  # a name that is no text
            function = None
        if function is not None:  # every name was checked
            rows = function((q,))
            return rows.reshape(*rows.shape[:-1], len(frame), 4, 4)
    one = isinstance(frame, str)
    names = (frame,) if one else frame
    if not isinstance(names, Sequence) or not names or not _all_names(names):
        raise ValueError(f"{NAME}: frame is {frame!r}; expected a name, or a list of names")
    if relative_to is not None and not isinstance(relative_to, str):
        raise ValueError(f"{NAME}: relative_to is {relative_to!r}; expected a name of a frame")
    if method not in ("auto", "sweep"):
        raise ValueError(
            f"method {method!r}: several frames, or frames seen from another, are computed by "
            "'sweep' only"
        )
    out, status = options.get("out"), bool(options.get("status"))
    rest: Any = {name: x for name, x in options.items() if name != "out"}  # constants among them
    if calls.tasks.parameters or in_loops("link_poses", calls.tasks.tree):
        poses, *more = _from_links(calls, q, *_frames(calls, names, relative_to), rest)
    else:
        poses, *more = _traced(calls, q, tuple(names), relative_to, rest)
    found = _into(out, poses[..., 0, :, :] if one else poses)
    return (found, *more) if status else found


def _all_names(names: Sequence[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def _frames(
    calls: Calls, names: Sequence[Any], relative_to: Any
) -> tuple[tuple[Frame, ...], Frame | None]:
    frames = tuple(calls.tasks.frame(name) for name in names)
    return frames, None if relative_to is None else calls.tasks.frame(relative_to)


def _traced(
    calls: Calls, q: Any, names: tuple[str, ...], relative_to: Any, options: Options
) -> tuple[Any, ...]:
    """By code for just these frames; and the status, where that is asked for."""
    _, threads, status, device = unpacked(NAME, options)
    key = (NAME, names, relative_to, status)
    function = calls.functions.get(key)
    if function is None:
        function = calls.functions[key] = _function(calls, names, relative_to, status)
    found = function((q,), None, threads, device)
    rows, *more = found if status else (found,)
    return rows.reshape(*rows.shape[:-1], len(names), 4, 4), *more


def _function(
    calls: Calls, names: tuple[str, ...], relative_to: str | None, status: bool
) -> CompiledFunction:
    frames = _frames(calls, names, relative_to)
    remake = calls.remade_by(_function, names, relative_to, status)
    return calls.compiled(_equations(calls.tasks.tree, *frames, status), remake)


def _equations(
    tree: Tree, frames: tuple[Frame, ...], origin: Frame | None, status: bool
) -> Equations:
    ports = (Port("q", tree.nq, kind=CONFIGURATION),)

    def trace(_graph: Graph, inputs: list[list[Expr]]) -> list[Expr | float]:
        return list(flatten(frame_poses(tree, inputs[0], frames, origin)))

    def bits(graph: Graph, inputs: list[list[Expr]], results: list[Expr]) -> Expr:
        return status_of(graph, tree, ports, inputs, results)

    key = tuple((f.link, f.origin, f.rotation) for f in (*frames, *([origin] if origin else [])))
    outputs = (Slot("result", (16 * len(frames),)), *flags(status))
    return straight_line(
        NAME, (*key, origin is None, status), ports, outputs, trace, bits if status else None
    )


def _from_links(
    calls: Calls, q: Any, frames: tuple[Frame, ...], origin: Frame | None, options: Options
) -> tuple[Any, ...]:
    """From the poses of all links, where code for each frame would be large, or constants vary."""
    found = calls.run("link_poses", (q,), options)
    links, *more = found if options.get("status") else (found,)
    if not isinstance(links, np.ndarray):
        raise TypeError(
            f"{NAME}: q is a {type(q).__name__}; expected an array of NumPy where a robot is in "
            "loops or parametric and there are several frames (link_poses takes any)"
        )
    own = calls.tasks.tree.joint_frames
    # the base is where it is in any state, but a state that is not finite has no poses at all
    lost = (0.0 * links[..., :1, 0, 0].sum(-1))[..., None, None]

    def offset(frame: Frame) -> Any:
        return (
            matrix(frame)
            if frame.link == BASE
            else product(inverse(matrix(own[frame.link])), matrix(frame))
        )

    def pose(frame: Frame) -> Any:
        if frame.link == BASE:
            return offset(frame) + lost
        return product(links[..., frame.link, :, :], offset(frame))

    poses = np.stack([pose(f) for f in frames], -3)
    if origin is not None:
        poses = product(inverse(pose(origin))[..., None, :, :], poses)
    return poses.astype(links.dtype), *more


def _into(out: Any, poses: Any) -> Any:
    """Poses in ``out`` where one was given, which has to be an array like them."""
    if out is None:
        return poses
    if isinstance(poses, np.ndarray):
        arrays.check_out(out, poses.shape, str(poses.dtype))
    elif tuple(out.shape) != tuple(poses.shape):
        raise ValueError(f"out has shape {tuple(out.shape)}; expected {tuple(poses.shape)}")
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
    found[..., :3, 3] = -product(R, pose[..., :3, 3:])[..., 0]
    found[..., 3, 3] = 1.0
    return found
