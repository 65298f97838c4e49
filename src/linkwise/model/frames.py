"""Choice of link frames: any frame fixed to a link will do, so take the one with most zeros.

The frame of a link with a joint axis has z along it. Two freedoms remain, a turn about z and a
slide along z; they are spent so that

  - the axis of the link's first child has no x component: one turn about x leads to it;
  - the origin, seen from the parent, has one zero component.

Joint-space results do not depend on the choice; named frames are carried along. A rotation is
written as turns about z, x, z, which every rotation is; a quarter turn keeps exact zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.model.description import Pose
from linkwise.model.joints import Free, Joint, Spherical, Universal
from linkwise.spatial import Transform, Turn, Vec3

Array = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
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
        R = tidy_rotation(G_in.T @ joint.R @ G)
        r = G_in.T @ (joint.p - p_in)
        slide = _slide(joint.joint, R, r)
        noise = 8 * EPS * float(np.abs(joint.p).max() + np.abs(p_in).max() + np.abs(slide).max())
        r = _tidy(r + R @ slide, noise)
        frames.append((G, G @ slide))
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
            G = tidy_rotation(G @ _about_z(*_facing(G, child)))
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
    return _axes_along(z)


def _facing(G: Array, child: Placed) -> tuple[float, float]:
    """Cosine and sine of the turn about z that makes the child's axis (or origin) fit."""
    z = G.T @ child.R @ own_axes(child)[:, 2]
    r = G.T @ child.p
    if np.hypot(z[0], z[1]) > 8 * EPS:
        c, s = z[1], -z[0]  # the new y lies along the axis
    elif np.hypot(r[0], r[1]) > 0.0:
        c, s = r[0], r[1]  # parallel axes: the new x points at the child
    else:
        return 1.0, 0.0
    if c < 0.0:
        c, s = -c, -s
    size = np.hypot(c, s)
    return float(c / size), float(s / size)


def _slide(joint: Joint, R: Array, r: Array) -> Array:
    """Where to put the origin, in joint axes, as far as the joint lets it be chosen."""
    if joint.slides_freely == "not":
        return np.zeros(3)
    if joint.slides_freely == "anywhere":
        return -R.T @ r
    z = R[:, 2]
    row = 1 if abs(z[1]) > TWIST else (0 if abs(z[0]) > TWIST else 2)
    return np.array([0.0, 0.0, -r[row] / z[row]])


def turns_of(R: Array) -> tuple[Turn, ...]:
    """Turns about z, x, z from parent axes to child axes; R takes child axes to parent axes."""
    tilt = float(np.hypot(R[0, 2], R[1, 2]))
    sign = 1.0 if R[1, 2] <= 0.0 else -1.0
    if tilt == 0.0:
        cb, sb, sa = 1.0, 0.0, 0.0
    else:
        cb, sb, sa = -sign * R[1, 2] / tilt, sign * R[0, 2] / tilt, sign * tilt
    new_x = R.T @ np.array([cb, sb, 0.0])
    size = float(np.hypot(new_x[0], new_x[1]))
    turns = (
        Turn("z", _exact(cb), _exact(sb)),
        Turn("x", _exact(R[2, 2]), _exact(sa)),
        Turn("z", _exact(new_x[0] / size), _exact(-new_x[1] / size)),
    )
    return _without_idle(turns)


def _without_idle(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Drop turns by nothing; merge the two about z when none is left between them."""
    z1, x, z2 = turns
    if (x.c, x.s) == (1.0, 0.0):
        both = z1.then(z2)
        turns = (Turn("z", _exact(both.c), _exact(both.s)),)
    return tuple(turn for turn in turns if (turn.c, turn.s) != (1.0, 0.0))


def _exact(x: float) -> float:
    """A sine or cosine; 0 or ±1 exactly where it is that to rounding."""
    x = float(x)
    if abs(x) <= 2 * EPS:
        return 0.0
    if abs(abs(x) - 1.0) <= 2 * EPS:
        return float(np.sign(x))
    return x


def tidy_rotation(R: Array) -> Array:
    """A rotation matrix with rounding noise around 0 and ±1 removed."""
    R = _tidy(R, 2 * EPS)
    whole = np.abs(np.abs(R) - 1.0) <= 2 * EPS
    return np.where(whole, np.sign(R), R)


def _tidy(x: Array, noise: float) -> Array:
    return np.where(np.abs(x) <= noise, 0.0, x)


def _about_z(c: float, s: float) -> Array:
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _axes_along(z: Array) -> Array:
    """Right-handed axes whose third column is the unit vector z."""
    if z[2] == 1.0:
        return np.eye(3)
    k = int(np.argmin(np.abs(z)))
    x = np.cross(np.eye(3)[k], z)
    x /= np.linalg.norm(x)
    return tidy_rotation(np.column_stack([x, np.cross(z, x), z]))
