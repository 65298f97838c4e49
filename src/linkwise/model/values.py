"""What users write in code -> numbers and records of a description, checked.

Every function is told what the value is, as messages name it: ``link 'hand': mass``.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.model.bodies import NEARLY
from linkwise.model.description import (
    IDENTITY,
    LARGEST,
    SMALLEST,
    BodyInertia,
    Limits,
    Pose,
    Triple,
)
from linkwise.model.frames import tidy_rotation
from linkwise.spatial.elementary import length
from linkwise.spatial.matrices import (
    determinant,
    dot,
    eigenvalues,
    nearest_rotation,
    product,
)

Array = NDArray[np.float64]
LOOSE = 1e-6  # a rotation may be this far from orthonormal (float32, seven digits): it is tidied
ROUNDING = 2.0**-51  # how far from 1 the length of a unit vector is by rounding
UNBOUNDED = (-math.inf, math.inf)


def numbers(what: str, value: Any, *shapes: tuple[int, ...]) -> Array:
    """An array of finite real numbers of one of some shapes."""
    try:
        array = np.asarray(value)
        real = array.dtype.kind in "fiu" and not np.ma.is_masked(value)
    except (TypeError, ValueError):
        real = False
    if not real or array.shape not in shapes or not np.isfinite(array).all():
        wanted = " or ".join(_shape_words(shape) for shape in shapes)
        raise ValueError(f"{what} is {value!r}; expected {wanted}")
    array = array.astype(np.float64)
    if np.abs(array).max(initial=0.0) > LARGEST:
        raise ValueError(f"{what} is {value!r}; expected at most {LARGEST:g}")
    return array + 0.0


def _shape_words(shape: tuple[int, ...]) -> str:
    if shape == ():
        return "a finite number"
    if shape == (1,):
        return "one in a list"
    if len(shape) == 1:
        return f"{shape[0]} finite numbers"
    return f"a {' by '.join(map(str, shape))} array of finite numbers"


def _part(what: str, part: str) -> str:
    return f"{what}: {part}" if what else part


def number(what: str, value: Any) -> float:
    """A finite number."""
    return float(numbers(what, value, ()))


def positive(what: str, value: Any, *, unbounded: bool = False) -> float:
    """A number that is zero or more, and finite unless it may be unbounded."""
    if unbounded and isinstance(value, float | np.floating) and value == math.inf:
        return math.inf
    checked = number(what, value)
    if checked < 0.0:
        raise ValueError(f"{what} is {checked:g}; expected zero or more")
    return checked


def mask(value: Any) -> NDArray[np.bool_] | None:
    """Six booleans, or six whole numbers that are 0 or 1, as a choice of the six directions
    (turning about x, y, z, moving along x, y, z); None for anything else.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        return None
    if array.shape != (6,) or array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
        return None
    return array.astype(bool)


def triple(what: str, value: Any) -> Triple:
    """Three finite numbers."""
    return as_triple(numbers(what, value, (3,)))


def direction(what: str, value: Any) -> Triple:
    """A unit vector along three numbers; one that is such already stays as it is."""
    vector = numbers(what, value, (3,))
    if not vector.any():
        raise ValueError(f"{what} is {value!r}, which has no direction; expected one not all zero")
    return unit(vector)


def unit(vector: Iterable[float]) -> Triple:
    """A vector, not zero, at unit length; one of that length but for rounding stays as it is."""
    x, y, z = map(float, vector)
    if abs(length((x, y, z)) - 1.0) > ROUNDING:
        largest = max(abs(x), abs(y), abs(z))
        x, y, z = x / largest, y / largest, z / largest  # so that no length overflows
        size = length((x, y, z))
        x, y, z = x / size, y / size, z / size
    return as_triple((x, y, z))


def at_right_angle(first: Triple, second: Triple) -> bool:
    """Whether two unit vectors can be the axes of a universal joint."""
    return bool(abs(dot(first, second)) <= 1e-9)


def body(what: str, mass: Any, com: Any, inertia: Any) -> BodyInertia:
    """A rigid body: centre of mass in link axes, inertia about it in link axes.

    The inertia is (xx, yy, zz), (xx, xy, xz, yy, yz, zz) or a symmetric 3 by 3 matrix.
    """
    named = _part(what, "inertia")
    tensor = numbers(named, inertia, (3,), (6,), (3, 3))
    if tensor.shape == (3,):
        tensor = np.diag(tensor)
    if tensor.shape == (3, 3):
        if np.abs(tensor - tensor.T).max() > 1e-12 * np.abs(tensor).max():
            raise ValueError(f"{named} is {inertia!r}; expected it to be symmetric")
        tensor = tensor[np.triu_indices(3)]
    xx, xy, xz, yy, yz, zz = tensor.tolist()
    if any(0.0 < abs(x) < SMALLEST for x in (xx, yy, zz)):
        raise ValueError(f"{named} is {inertia!r}; expected zero, or at least {SMALLEST:g}")
    return BodyInertia(
        positive(_part(what, "mass"), mass),
        triple(_part(what, "com"), com),
        (xx, xy, xz, yy, yz, zz),
    )


def new_body(what: str, mass: Any, com: Any, inertia: Any) -> BodyInertia:
    """A rigid body that a user writes: its principal moments are not negative."""
    made = body(what, mass, com, inertia)
    least, _, most = (float(x) for x in eigenvalues(made.matrix))
    if least < -1e-9 * max(abs(least), abs(most)):
        six = np.shape(inertia) == (6,)
        order = " (the order of six numbers is xx, xy, xz, yy, yz, zz)" if six else ""
        raise ValueError(
            f"{_part(what, 'inertia')} is {inertia!r}, with a principal moment {least:.4g}; "
            f"expected none below 0{order}"
        )
    return made


def whole_body(what: str, mass: Any, com: Any, inertia: Any) -> BodyInertia:
    """A rigid body of its own, which can exist: no principal moment is above the sum of the other
    two, but by as little as in files, which round their numbers.
    """
    made = new_body(what, mass, com, inertia)
    least, middle, most = (float(x) for x in eigenvalues(made.matrix))
    if most - middle - least > NEARLY * most:
        raise ValueError(
            f"{_part(what, 'inertia')} is {inertia!r}, with principal moments {least:.4g}, "
            f"{middle:.4g} and {most:.4g}; expected each at most the sum of the other two, as of "
            "any body (moments about the centre of mass)"
        )
    return made


def limits(
    what: str, bounds: Any = UNBOUNDED, velocity: Any = math.inf, effort: Any = math.inf
) -> Limits:
    """Joint limits; infinite numbers mean none."""
    if isinstance(bounds, Limits):
        bounds, velocity, effort = (bounds.lower, bounds.upper), bounds.velocity, bounds.effort
    named = _part(what, "limits")
    try:
        lower, upper = (float(x) for x in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"{named} are {bounds!r}; expected (lower, upper)") from None
    if not lower <= upper or lower == math.inf or upper == -math.inf:
        raise ValueError(f"{named} are ({lower:g}, {upper:g}); expected lower <= upper")
    return Limits(
        lower,
        upper,
        positive(_part(what, "velocity"), velocity, unbounded=True),
        positive(_part(what, "effort"), effort, unbounded=True),
    )


def pose(what: str, value: ArrayLike | Pose | None) -> Pose:
    """A pose from a 4 by 4 array; None is the identity."""
    if value is None or isinstance(value, Pose):
        return value or Pose()
    T = numbers(what, value, (4, 4))
    R = T[:3, :3]
    off = float(np.abs(product(R.T, R) - np.eye(3)).max())
    if off > LOOSE or determinant(R) < 0.0 or np.abs(T[3] - [0.0, 0.0, 0.0, 1.0]).max() > LOOSE:
        raise ValueError(
            f"{what} is {T.tolist()}; expected a rotation (orthonormal, right-handed), a "
            "translation, and (0, 0, 0, 1) in the last row"
        )
    if off > 4 * np.finfo(float).eps:
        R = nearest_rotation(R)
    return pose_of(R, T[:3, 3])


def pose_of(R: ArrayLike, p: Iterable[float]) -> Pose:
    """A pose from a rotation and a translation known to be right, without rounding noise."""
    rows = [as_triple(row) for row in tidy_rotation(np.asarray(R, dtype=float))]
    return Pose((rows[0], rows[1], rows[2]), as_triple(p))


def as_triple(values: Iterable[float]) -> Triple:
    """Three floats known to be right; no negative zeros."""
    x, y, z = (float(v) + 0.0 for v in values)
    return x, y, z


def inverse(place: Pose) -> Pose:
    """Where the parent sits in the child."""
    if place.rotation == IDENTITY:
        return pose_of(np.eye(3), -np.array(place.translation))
    R = np.array(place.rotation)
    return pose_of(R.T, -product(R.T, place.translation))


def mapping(what: str, value: Any, of: str) -> dict[Any, Any]:
    """A mapping, copied."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} is {value!r}; expected a mapping {of}")
    return dict(value)


def name(what: str, value: Any) -> str:
    """A text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} is {value!r}; expected some text")
    return value


def freeze(record: Any, *fields: str) -> None:
    """Turn arrays and lists of a frozen record into tuples: it compares, and nobody changes it."""
    for name in fields:
        object.__setattr__(record, name, _frozen(getattr(record, name)))


def _frozen(x: Any) -> Any:
    x = x.tolist() if isinstance(x, np.ndarray) else x
    return tuple(map(_frozen, x)) if isinstance(x, (list, tuple)) else x


def path_text(what: str, value: object) -> str:
    """Return a path as text, or raise for what is no path."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{what} is {value!r}; expected a path")
    return os.fsdecode(os.fspath(value))


def unknown(what: str, given: object, robot: str, known: Iterable[str]) -> ValueError:
    """The error for a name that stands for nothing, with those it is close to."""
    known = list(known)
    near = difflib.get_close_matches(str(given), known, 3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {some(known)}"
    return ValueError(f"{what} {given!r}: robot {robot!r} has no such {what}; {hint}")


def some(names: list[str]) -> str:
    """The first few names, for a message."""
    shown = ", ".join(map(repr, names[:8]))
    return (shown + ", ..." if len(names) > 8 else shown) or "none"
