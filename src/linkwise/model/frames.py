"""Choice of link frames: any frame fixed to a link will do, so take the one with most zeros.

The frame of a link with a joint axis has z along it. Two freedoms remain, a turn about z and a
slide along z; they are spent so that

  - the axis of the link's first child has no x component: one turn about x leads to it;
  - the origin, seen from the parent, has one zero component.

Joint-space results do not depend on the choice; named frames are carried along. A rotation is
written as turns about z, x, z, which every rotation is; a quarter turn keeps exact zeros.

An entry of a rotation is zero where it is at most `NOISE`: what it is off by as a product of three
rotations, whose entries are off by 1.5 eps each, with two sums of three terms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.model.description import Pose
from linkwise.model.joints import Free, Joint, Spherical, Universal
from linkwise.spatial import Transform, Turn, Vec3
from linkwise.spatial.elementary import length
from linkwise.spatial.matrices import product

Array = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
NOISE = 8 * EPS
TWIST = 0.1  # sine of the twist above which the origin slides to the common normal


@dataclass(frozen=True)
class Placed:
    """A moving joint: index of the parent (-1: base), its kind, axes and place in the parent."""

    parent: int
    joint: Joint
    axis: tuple[float, float, float]
    second_axis: tuple[float, float, float]
    R: Array
    p: Array


def pose_arrays(pose: Pose) -> tuple[Array, Array]:
    """A pose's rotation and translation as arrays."""
    return np.array(pose.rotation), np.array(pose.translation)


def choose_frames(joints: list[Placed]) -> list[tuple[tuple[Array, Array], Transform]]:
    """For each joint: its link's frame in the body's own frame, and the placement transform."""
    turned = _turn_to_first_child(joints)
    base = (np.eye(3), np.zeros(3))
    frames: list[tuple[Array, Array]] = []
    out = []
    for joint, G in zip(joints, turned, strict=True):
        G_in, p_in = frames[joint.parent] if joint.parent >= 0 else base
        R = tidy_rotation(product(G_in.T, joint.R, G))
        r = product(G_in.T, joint.p - p_in)
        slide = _slide(joint.joint, R, r)
        noise = 8 * EPS * float(np.abs(joint.p).max() + np.abs(p_in).max() + np.abs(slide).max())
        r = _tidy(r + product(R, slide), noise)
        frames.append((G, product(G, slide)))
        out.append((frames[-1], Transform(Vec3(*map(float, r)), turns_of(R))))
    return out


def _turn_to_first_child(joints: list[Placed]) -> list[Array]:
    """Axes of each link: z on the joint axis, x normal to the first child's axis too."""
    first = {joint.parent: joint for joint in reversed(joints)}
    axes = []
    for i, joint in enumerate(joints):
        G = own_axes(joint)
        child = first.get(i)
        if child is not None and joint.joint.turns_freely:
            G = tidy_rotation(product(G, _about_z(*_facing(G, child))))
        axes.append(G)
    return axes


def own_axes(joint: Placed) -> Array:
    """Axes a joint kind asks for: z on its axis; x on a second one; a ball keeps the file's."""
    if isinstance(joint.joint, (Spherical, Free)):
        return np.eye(3)
    z = np.array(joint.axis)
    if isinstance(joint.joint, Universal):
        x = np.array(joint.second_axis)
        return tidy_rotation(np.column_stack([x, np.cross(z, x), z]))
    return axes_along(z)


def _facing(G: Array, child: Placed) -> tuple[float, float]:
    """Cosine and sine of the turn about z that makes the child's axis (or origin) fit."""
    x, y, _ = _tidy(product(G.T, child.R, own_axes(child)[:, 2]), NOISE).tolist()
    across = _tidy(product(G.T, child.p), NOISE * float(np.abs(child.p).max())).tolist()
    if x or y:
        c, s = y, -x  # the new y lies along the axis
    elif across[0] or across[1]:
        c, s = across[0], across[1]  # parallel axes: the new x points at the child
    else:
        return 1.0, 0.0
    if c < 0.0:
        c, s = -c, -s
    size = length((c, s))
    return c / size, s / size


def _slide(joint: Joint, R: Array, r: Array) -> Array:
    """Where to put the origin, in joint axes, as far as the joint lets it be chosen."""
    if joint.slides_freely == "not":
        return np.zeros(3)
    if joint.slides_freely == "anywhere":
        return -product(R.T, r)
    z = R[:, 2]
    row = 1 if abs(z[1]) > TWIST else (0 if abs(z[0]) > TWIST else 2)
    return np.array([0.0, 0.0, -r[row] / z[row]])


def turns_of(R: Array) -> tuple[Turn, ...]:
    """Turns about z, x, z from parent axes to child axes; R takes child axes to parent axes."""
    x, y, z = R[:, 2].tolist()
    tilt = length((x, y))
    sign = 1.0 if y <= 0.0 else -1.0
    cb, sb, sa = (-sign * y / tilt, sign * x / tilt, sign * tilt) if tilt else (1.0, 0.0, 0.0)
    c, s, _ = product(R.T, np.array([cb, sb, 0.0])).tolist()
    size = length((c, s))
    return _without_idle((_turn("z", cb, sb), _turn("x", z, sa), _turn("z", c / size, -s / size)))


def _without_idle(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Drop turns by nothing; merge the two about z when none is left between them."""
    z1, x, z2 = turns
    if (x.c, x.s) == (1.0, 0.0):
        both = z1.then(z2)
        turns = (_turn("z", both.c, both.s),)
    return tuple(turn for turn in turns if (turn.c, turn.s) != (1.0, 0.0))


def _turn(axis: str, c: float, s: float) -> Turn:
    """A turn by a cosine and a sine, without rounding noise."""
    c, s = tidy_rotation(np.array([c, s])).tolist()
    return Turn(axis, c, s)


def tidy_rotation(R: Array) -> Array:
    """A rotation matrix with rounding noise around 0 and ±1 removed; a row that has one entry left
    is a unit vector.
    """
    R = _tidy(R, NOISE)
    alone = np.count_nonzero(R, axis=-1, keepdims=True) == 1
    whole = (np.abs(np.abs(R) - 1.0) <= 2 * EPS) | (alone & (R != 0.0))
    return np.where(whole, np.sign(R), R)


def seen_from(G: Array, origin: Array, p: Array) -> Array:
    """A point from a frame at ``origin`` with axes G, without the rounding noise of both."""
    noise = NOISE * float(np.abs(p).max() + np.abs(origin).max())
    return _tidy(product(G.T, p - origin), noise)


def _tidy(x: Array, noise: float) -> Array:
    return np.where(np.abs(x) <= noise, 0.0, x)


def _about_z(c: float, s: float) -> Array:
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def axes_along(z: Array) -> Array:
    """Right-handed axes whose third column is the unit vector z."""
    if z[2] == 1.0:
        return np.eye(3)
    k = int(np.argmin(np.abs(z)))
    x = np.cross(np.eye(3)[k], z)
    x /= length(x.tolist())
    return tidy_rotation(np.column_stack([x, np.cross(z, x), z]))
