"""States of a grasp as users give them: arm by arm, and the object beside the arms.

Arrays of any library are joined by that library, where they are. The pose and the velocity of an
object are turned into numbers of a state in the memory of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.engine import devices
from linkwise.engine.libraries import library_of
from linkwise.spatial import Mat3, Vec3
from linkwise.spatial.quaternion import Quaternion

Array = NDArray[Any]


class Beside(NamedTuple):
    """Where the arrays of a call are, and how numbers of the host come there."""

    fetched: Callable[[Any], Array]  # in the memory of the host
    sent: Callable[[Array], Any]  # back to where the arrays are


def beside(function: str, named: Sequence[tuple[str, Any]]) -> Beside:
    """Of the arguments of a call; raises unless they are arrays of one library on one device."""
    given = [(name, x) for name, x in named if x is not None]
    if not devices.elsewhere([x for _, x in given]):
        return Beside(np.asarray, lambda x: x)
    library, place = at = devices.where(function, *zip(*given, strict=True))
    if place == "cpu":
        return Beside(library.fetched, library.from_numpy)
    return Beside(
        lambda x: library.fetched(x) if library_of(x) else np.asarray(x),
        lambda x: library.constant(np.ascontiguousarray(x), at.device),
    )


def joined(function: str, what: str, parts: Any, widths: Sequence[int]) -> Any:
    """One array of all arms, from a list with one for each or from such an array."""
    if not isinstance(parts, (list, tuple)) or all(map(_is_number, parts)):
        return numbers(function, what, parts, sum(widths))
    if len(parts) != len(widths):
        raise ValueError(
            f"{function}: {what} is a list of {len(parts)}; expected {len(widths)} arrays, one for "
            "each arm"
        )
    given = enumerate(zip(parts, widths, strict=True))
    each = [numbers(function, f"{what} of arm {i}", x, n) for i, (x, n) in given]
    return side_by_side(function, each)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float))


def numbers(function: str, what: str, x: Any, width: int) -> Any:
    """An array of so many numbers a state: as it is where it is another library's, else of floats
    of NumPy.
    """
    found = array_of(function, what, x, f"(..., {width})")
    if found.ndim == 0 or found.shape[-1] != width:
        raise ValueError(
            f"{function}: {what} has the shape {tuple(found.shape)}; expected (..., {width})"
        )
    return found


def array_of(function: str, what: str, x: Any, wanted: str) -> Any:
    """An array of another library as it is, anything else as floats of NumPy."""
    if library_of(x) is not None:
        return x
    try:
        found = np.asarray(x)
    except ValueError:  # parts of several lengths
        found = np.empty(0, object)
    if found.dtype.kind not in "fiu":
        raise ValueError(f"{function}: {what} is {x!r:.60}; expected numbers, {wanted}")
    return found if found.dtype.kind == "f" else found.astype(float)


def side_by_side(function: str, parts: Iterable[Any]) -> Any:
    """Numbers of each state one after another, by the library that the arrays are of."""
    arrays = [x if hasattr(x, "shape") else np.asarray(x, float) for x in parts]
    own = next((x for x in map(library_of, arrays) if x is not None), None)
    host = beside(function, [("an array of the state", x) for x in arrays])
    xp: Any = np if own is None else getattr(own, "xp", None)
    if xp is None:  # memory on a GPU that no library computes with
        arrays, xp = [host.fetched(x) for x in arrays], np
    shape = np.broadcast_shapes(*(tuple(x.shape[:-1]) for x in arrays))
    wide = [xp.broadcast_to(x, (*shape, x.shape[-1])) for x in arrays]
    found = xp.concatenate(wide, axis=-1)
    return found if own is None or xp is not np else host.sent(found)


def float_kind(x: Any) -> np.dtype[Any]:
    """The number type of an array of any library; float64 for lists and whole numbers."""
    name = str(getattr(x, "dtype", "float64")).removeprefix("torch.")
    return np.dtype(name if name.startswith("float") else "float64")


def place_of(function: str, pose: Any) -> Array:
    """A pose (..., 4, 4) or (..., 7) as quaternion and position."""
    given = np.asarray(pose)
    given = given if given.dtype.kind == "f" else given.astype(float)
    if given.shape[-1:] == (7,):
        return given
    if given.shape[-2:] != (4, 4):
        raise ValueError(
            f"{function}: object_pose has the shape {given.shape}; expected (..., 4, 4), or "
            "quaternion and position (..., 7)"
        )
    rows = [Vec3(*(given[..., i, j] for j in range(3))) for i in range(3)]
    turn = np.stack(list(Quaternion.of_matrix(Mat3(*rows)).numbers()), axis=-1)
    return np.concatenate([turn, given[..., :3, 3]], axis=-1)


def velocity_in_own_axes(place: Array, world: Array) -> Array:
    """A velocity (..., 6) in world axes, in those of a body at a place."""
    turn = Quaternion(place[..., 0], Vec3(*(place[..., k] for k in (1, 2, 3))))
    units = (Vec3(*row) for row in np.eye(3).tolist())
    R = np.stack([np.stack(list(turn.turn(unit)), axis=-1) for unit in units], axis=-1)
    parts = (np.einsum("...ji,...j->...i", R, world[..., k : k + 3]) for k in (0, 3))
    return np.concatenate(list(parts), axis=-1)
