"""Rigid motions: poses (..., 4, 4) and twists (..., 6), which are (angular, linear).

>>> import linkwise as lw
>>> pose = lw.se3.exp([0.0, 0.0, 1.0, 0.5, 0.0, 0.0])  # one radian about z, moving along an arc
>>> lw.se3.log(pose).round(12).tolist()
[0.0, 0.0, 1.0, 0.5, 0.0, 0.0]

Angles in radians, lengths in metres. Right to rounding at every angle up to half a turn, the
smallest and half a turn itself included, where the axis may have either sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.engine import arrays, devices, lazy, libraries
from linkwise.engine.compiled import CompiledFunction, Runtime
from linkwise.engine.equations import Equations, Values, flags, straight_line
from linkwise.model.tree import Tree
from linkwise.spatial import Mat3, Motion, Vec3, select, sqrt
from linkwise.spatial.se3 import exponential, logarithm
from linkwise.trace.expr import Expr, Graph, summed
from linkwise.trace.program import POSE, TWIST, Port, Slot
from linkwise.trace.status import Status, not_rigid

__all__ = ["error", "exp", "log"]

RIGID = {"float64": 1e-6, "float32": 1e-4}  # how far axes may be from unit length and right angles
SIZES = {POSE: 16, TWIST: 6}
INPUTS = {
    "exp": (("twist", TWIST),),
    "log": (("pose", POSE),),
    "error": (("pose", POSE), ("target", POSE)),
}


def exp(twist: ArrayLike) -> Any:
    """The pose (..., 4, 4) that a twist (..., 6), held for one second, leads to from the identity.

    ``twist`` is (angular, linear) in rad/s and m/s.
    """
    return _called("exp", (twist,))


def log(pose: ArrayLike) -> Any:
    """The twist (..., 6) that leads from the identity to a pose (..., 4, 4) in one second.

    (Angular, linear) in rad/s and m/s, by at most half a turn; the inverse of `exp`.
    """
    return _called("log", (pose,))


def error(pose: ArrayLike, target: ArrayLike) -> Any:
    """The twist (..., 6) that leads from poses to targets (..., 4, 4) in one second.

    ``log(pose⁻¹ target)``, in the pose's own axes: ``pose @ exp(error(pose, target))`` is the
    target. `Robot.inverse_kinematics` brings its norm below ``tol``.
    """
    return _called("error", (pose, target))


def _exp(values: Values) -> list[Any]:
    (x,) = values
    R, p = exponential(Motion(Vec3(*x[:3]), Vec3(*x[3:])))
    rows = [[*row, place] for row, place in zip(R.rows, p, strict=True)]
    return [number for row in rows for number in row] + [0.0, 0.0, 0.0, 1.0]


def _log(values: Values) -> list[Any]:
    return _logarithm(*_parts(values[0]))


def _error(values: Values) -> list[Any]:
    (R, p), (R_target, p_target) = map(_parts, values)
    back = R.T
    between = Mat3(*(back @ column for column in R_target.T.rows)).T
    return _logarithm(between, back @ (p_target - p))


def _parts(x: Sequence[Expr]) -> tuple[Mat3, Vec3]:
    """The rotation and the place of a pose, 16 numbers."""
    rows = [x[4 * k : 4 * k + 4] for k in range(3)]
    return Mat3(*(Vec3(*row[:3]) for row in rows)), Vec3(*(row[3] for row in rows))


def _logarithm(R: Mat3, p: Vec3) -> list[Any]:
    found = logarithm(R, p)
    return [*found.ang, *found.lin]


EQUATIONS = {"exp": _exp, "log": _log, "error": _error}


@cache
def _function(name: str) -> CompiledFunction:
    """A function of poses or twists, compiled when it is first called."""
    ports = tuple(Port(label, SIZES[kind], kind=kind) for label, kind in INPUTS[name])
    watched = any(port.kind == POSE for port in ports)
    outputs = (Slot("result", (6 if watched else 16,)), *flags(watched))

    def equations(dtype: str, _kind: str) -> Equations:
        tolerance = RIGID[dtype]

        def bent(graph: Graph, inputs: Values) -> Expr:
            poses = [x for x, port in zip(inputs, ports, strict=True) if port.kind == POSE]
            return graph.node(
                "flag", summed(graph, (not_rigid(graph, x, tolerance) for x in poses))
            )

        def bits(graph: Graph, inputs: Values, _results: list[Expr]) -> Expr:
            return float(Status.NOT_RIGID) * bent(graph, inputs)

        def trace(graph: Graph, inputs: Values) -> list[Any]:
            results = EQUATIONS[name](inputs)
            if not watched:
                return results
            wrong = sqrt(select(bent(graph, inputs), -1.0, 0.0))  # NaN in place of no answer
            return [x + wrong for x in results]

        return straight_line(
            f"se3.{name}", (dtype,), ports, outputs, trace, bits if watched else None
        )

    inputs = [(port.name, port) for port in ports]
    runtime = Runtime(Tree(()), "se3")  # of no robot
    return CompiledFunction(
        runtime, f"se3.{name}", equations, inputs, outputs, remake=lambda: (_function, (name,))
    )


def _called(name: str, values: tuple[Any, ...]) -> Any:
    """Run a function on arrays of any leading shape."""
    function = _function(name)
    if name == "exp":
        found = function(values)
        return found.reshape((*found.shape[:-1], 4, 4))
    flat = [_flat(name, label, x) for (label, _), x in zip(INPUTS[name], values, strict=True)]
    if len(values) > 1 and any(np.ndim(x) > 2 for x in values):
        _refuse_axes(name, values)
    found, bits = function(flat)
    if lazy.packages((bits,)):  # computed later
        return found
    library = None if isinstance(bits, np.ndarray | np.generic) else libraries.library_of(bits)
    if library is not None and library.place(bits) != "cpu":
        return found  # whether poses are rigid would have to be waited for: rows are NaN if not
    seen = bits if library is None else library.to_numpy(bits)
    if seen.any() if seen.ndim else seen:
        _refuse_bent(name, flat)
    return found


def _flat(function: str, name: str, value: Any) -> Any:
    """Poses (..., 4, 4) as vectors of 16 numbers."""
    if type(value) is np.ndarray and value.shape[-2:] == (4, 4):
        return value.reshape((*value.shape[:-2], 16))
    there = devices.elsewhere((value,)) or lazy.packages((value,))
    if not there and type(value) is not np.ndarray:
        arrays.refuse_mask(f"se3.{function}", name, value)
        try:
            value = np.asarray(value)
        except (ValueError, TypeError) as error:
            raise TypeError(
                f"se3.{function}: {name} cannot be read as an array ({error})"
            ) from None
    shape = tuple(value.shape)
    if shape[-2:] != (4, 4):
        raise ValueError(f"se3.{function}: {name} has shape {shape}; expected (..., 4, 4)")
    return value.reshape(*shape[:-2], 16)


def _refuse_axes(name: str, values: Sequence[Any]) -> None:
    """Raise ValueError if leading axes do not broadcast, by the shapes that the user knows."""
    shapes = [tuple(getattr(x, "shape", None) or np.shape(x)) for x in values]
    if len(set(shapes)) == 1:
        return
    try:
        np.broadcast_shapes(*(shape[:-2] for shape in shapes))
    except ValueError:
        labels = [label for label, _ in INPUTS[name]]
        raise arrays.unlike(f"se3.{name}", labels, shapes, 2) from None


def _refuse_bent(function: str, values: Sequence[Any]) -> None:
    """Raise ValueError for numbers that are no rigid motion."""
    # one of float64 makes the others float64, as it did in the call
    narrow = all("float32" in str(x.dtype) for x in values)
    dtype = "float32" if narrow else "float64"
    for (name, _), x in zip(INPUTS[function], values, strict=True):
        library = libraries.library_of(x)
        array = x if library is None else library.to_numpy(x)
        _, bits = _function("log")((array.astype(dtype, copy=False),))
        if np.any(bits):
            rows = np.ravel(bits)
            tolerance = RIGID[dtype]
            raise ValueError(
                f"se3.{function}: {name} {int(np.argmax(rows > 0))} of {rows.size} is no rigid "
                f"motion; expected a right-handed rotation (rows of unit length at right angles, "
                f"to {tolerance:g}), a place, and a last row 0 0 0 1"
            )
