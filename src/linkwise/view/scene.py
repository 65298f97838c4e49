"""A robot as a scene: plain data from which a page or a server draws it.

Bodies are the moving links of the tree, in the tree's own frames, whose z lies on the joint's axis.
Shapes, frames and wrenches are fixed to bodies; body ``BASE`` does not move. Poses of all bodies
come from the sweep that forward kinematics is made of (`link_poses`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.algorithms.poses import BASE_POSE, place
from linkwise.model.description import RobotDescription
from linkwise.model.joints import JOINTS
from linkwise.model.tree import BASE, Frame, Link, Tree
from linkwise.spatial import Mat3, atan2, sincos
from linkwise.spatial.elementary import length
from linkwise.sweep import base_to_tip, joint_states

Array = NDArray[np.float64]
Rgba = tuple[float, float, float, float]

MOST_BODIES = 2000  # of a scene: more are neither drawn nor seen one by one
VISUAL, BONES, INERTIA, AXES = "visual", "bones", "inertia", "axes"  # layers of shapes
KINDS = {joint: joint.__name__.lower() for joint in JOINTS.values()}
TURN, SHIFT = "rad", "m"


class Viewed(Protocol):
    """What a scene asks of a robot."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def description(self) -> RobotDescription:
        """What it was made from."""

    @property
    def tree(self) -> Tree:
        """Its links and joints."""

    def neutral(self) -> Any:
        """Its configuration at rest."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles: corners (n, 3) in metres, and numbers of corners (m, 3)."""

    vertices: Array
    faces: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Shape:
    """Something solid that is fixed to a body."""

    body: int
    kind: str  # "box", "sphere", "cylinder", "capsule", "ellipsoid", "arrow" or "mesh"
    size: tuple[float, ...]  # box: edges; sphere: radius; ellipsoid: half axes; others: radius,
    # length along z, which a capsule's caps come on top of, and which an arrow begins at
    pose: Array  # (4, 4), in the body's frame
    rgba: Rgba
    layer: str
    mesh: int = -1  # of `Scene.meshes`


@dataclass(frozen=True)
class Slider:
    """One number that moves the robot: a number of ``q``, or an angle of a quaternion in it."""

    name: str
    unit: str  # TURN or SHIFT
    lower: float
    upper: float
    q: int  # which number of q; of a quaternion, where it begins
    angle: int = -1  # of a quaternion: 0 roll, 1 pitch, 2 yaw; -1: q is the number itself
    dof: int = -1  # its degree of freedom, where its rate is one


@dataclass(frozen=True)
class Marker:
    """A named frame on a body."""

    name: str
    body: int
    pose: Any  # (4, 4)


@dataclass(frozen=True)
class Tie:
    """Two frames that a closed loop holds together, each on its body.

    Directions are rows (angular, linear) in axes of the second frame, at the origin of the first.
    """

    name: str
    bodies: tuple[int, int]
    poses: tuple[Any, Any]  # (4, 4) each, in the body's frame
    directions: Any  # (k, 6)


@dataclass(frozen=True, eq=False)
class Pushes:
    """Wrenches on a frame, (moment, force) at its origin in base axes: one (1, 6), or (T, 6)."""

    frame: int
    wrenches: Array
    name: str = ""


@dataclass(frozen=True, eq=False)
class Scene:
    """All that is shown; the first row of ``tracks`` is the robot, others are its ghosts."""

    name: str
    tree: Tree
    bodies: tuple[Link, ...]
    shapes: tuple[Shape, ...]
    meshes: tuple[Mesh, ...]
    frames: tuple[Marker, ...]
    sliders: tuple[Slider, ...]
    ties: tuple[Tie, ...]
    tip: int  # of `frames`
    reach: float  # of the longest branch when it is stretched out, m
    q: Array  # (rows, nq): what is shown first, and ghosts
    t: Array = field(default_factory=lambda: np.zeros(0))  # (T), of tracks
    tracks: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))  # (rows, T, nq)
    pushes: tuple[Pushes, ...] = ()
    notes: tuple[str, ...] = ()  # what could not be shown, and why

    @property
    def up(self) -> Array:
        """The direction against gravity, z where there is none."""
        return upward(self.tree)

    @property
    def has_visuals(self) -> bool:
        """Whether the robot's file says what it looks like."""
        return any(shape.layer == VISUAL for shape in self.shapes)


def upward(tree: Tree) -> Array:
    """The direction (3) against gravity, z where there is none."""
    gravity = np.array(tree.gravity, float)
    size = length(gravity)
    return -gravity / size if size > 0 else np.array([0.0, 0.0, 1.0])


def link_poses(tree: Tree, q: ArrayLike) -> Array:
    """Poses (..., links, 4, 4) of all links in base axes, by the tree's sweep, uncompiled."""
    numbers = np.asarray(q, float)
    states = joint_states(tree, list(np.moveaxis(numbers, -1, 0)))
    found = base_to_tip(tree, place, BASE_POSE, states)
    out = np.zeros((*numbers.shape[:-1], tree.n_links, 4, 4))
    out[..., 3, 3] = 1.0
    for i, pose in enumerate(found):
        for row, (axes, x) in enumerate(zip(pose.R.rows, pose.p, strict=True)):
            for column, entry in enumerate((*axes, x)):
                out[..., i, row, column] = entry
    return out


def pose_of_frame(frame: Frame) -> Array:
    """A frame's pose (4, 4) in its link."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = frame.rotation, frame.origin
    return out


def placement(link: Link) -> Array:
    """The pose (4, 4) of a joint's frame at rest in the parent link."""
    out = np.eye(4)
    out[:3, :3] = [list(link.placement.rotate(row)) for row in Mat3.identity().rows]
    out[:3, 3] = list(link.placement.r)
    return out


def check_shown(robot: Viewed) -> None:
    """Raise where a robot cannot be drawn link by link."""
    tree = robot.tree
    if tree.n_links > MOST_BODIES:
        raise ValueError(
            f"robot {robot.name!r} has {tree.n_links:,} moving links; expected at most "
            f"{MOST_BODIES:,}, which can be drawn one by one"
        )
    for link in tree.links:
        if type(link.joint) not in KINDS:
            raise ValueError(
                f"joint {link.joint_name!r} of robot {robot.name!r} is a "
                f"{type(link.joint).__name__}; expected one of {', '.join(KINDS.values())}, "
                "which viewers know"
            )


def sliders_of(tree: Tree, reach: float, shown: ArrayLike = ()) -> tuple[Slider, ...]:
    """A slider for each number that a joint of its own may have.

    Where a joint has no limit, its slider reaches as far as the configurations (..., nq) that are
    ``shown``.
    """
    own = (link for link in tree.links if link.follows is None)
    seen = np.zeros((1, tree.nq))
    if np.size(shown):
        seen = np.nan_to_num(np.reshape(shown, (-1, tree.nq)), posinf=0.0, neginf=0.0)
    ends = seen.min(axis=0), seen.max(axis=0)
    return tuple(slider for link in own for slider in _sliders(link, reach, *ends))


def _sliders(link: Link, reach: float, least: Array, most: Array) -> list[Slider]:
    name, kind, k, v = link.joint_name, KINDS[type(link.joint)], link.q_index, link.v_index
    low, high = link.limits.lower, link.limits.upper
    if kind in ("spherical", "free"):
        angles = [
            Slider(f"{name} {word}", TURN, -half, half, k, angle)
            for angle, (word, half) in enumerate(
                (("roll", np.pi), ("pitch", np.pi / 2), ("yaw", np.pi))
            )
        ]
        shifts = [
            Slider(
                f"{name} {axis}", SHIFT, *_wide(reach, least[k + 4 + i], most[k + 4 + i]), k + 4 + i
            )
            for i, axis in enumerate("xyz" if kind == "free" else "")
        ]
        return angles + shifts
    units = {"prismatic": (SHIFT,), "universal": (TURN, TURN), "planar": (SHIFT, SHIFT, TURN)}
    found = []
    for i, unit in enumerate(units.get(kind, (TURN,))):
        wide = _wide(np.pi if unit == TURN else max(reach, 0.1), least[k + i], most[k + i])
        ends = (low, high) if link.joint.nq == 1 else (-np.inf, np.inf)
        lower, upper = (x if np.isfinite(x) else d for x, d in zip(ends, wide, strict=True))
        label = name if link.joint.nq == 1 else f"{name}[{i}]"
        found.append(Slider(label, unit, min(lower, upper), max(lower, upper), k + i, dof=v + i))
    return found


def _wide(half: float, least: float, most: float) -> tuple[float, float]:
    """Ends at whole multiples of ``half``, at least one to each side, with all seen in between."""
    return min(-half, half * np.floor(least / half)), max(half, half * np.ceil(most / half))


def values_of(sliders: Sequence[Slider], q: ArrayLike) -> Array:
    """Where the sliders are at a configuration (nq)."""
    numbers = np.asarray(q, float)
    angles = {s.q: _angles(numbers[s.q : s.q + 4]) for s in sliders if s.angle == 0}
    return np.array([numbers[s.q] if s.angle < 0 else angles[s.q][s.angle] for s in sliders])


def configuration(sliders: Sequence[Slider], values: ArrayLike, nq: int) -> Array:
    """The configuration (nq) that sliders stand for."""
    q = np.zeros(nq)
    for k, (slider, x) in enumerate(zip(sliders, np.asarray(values, float), strict=True)):
        if slider.angle < 0:
            q[slider.q] = x
        elif slider.angle == 0:
            q[slider.q : slider.q + 4] = _quaternion(np.asarray(values, float)[k : k + 3])
    return q


def _quaternion(angles: Array) -> Array:
    """The quaternion (w, x, y, z) of roll, pitch and yaw."""
    (sr, sp, sy), (cr, cp, cy) = sincos(angles / 2)
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def _angles(quaternion: Array) -> Array:
    """Roll, pitch and yaw of a quaternion."""
    w, x, y, z = (quaternion / length(quaternion)).tolist()
    roll = atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    ahead, aside = 1 - 2 * (y * y + z * z), 2 * (w * z + x * y)  # of the x axis, level
    pitch = atan2(2 * (w * y - z * x), length((ahead, aside)))
    return np.array([roll, pitch, atan2(aside, ahead)])


def markers_of(tree: Tree) -> tuple[Marker, ...]:
    """All named frames."""
    return tuple(Marker(name, f.link, pose_of_frame(f)) for name, f in tree.frames.items())


def tip_of(robot: Viewed) -> str:
    """The frame that the most joints move: of several the last, one of a link before a joint's."""
    tree, depth = robot.tree, {BASE: 0}
    for i, parent in enumerate(tree.parent_numbers.tolist()):
        depth[i] = depth[parent] + 1
    joints = {joint for _, joint in tree.names()} | {x.name for x in robot.description.joints}
    links = {link for link, _ in tree.names()} | {x.name for x in robot.description.links}
    order = {name: k for k, name in enumerate(tree.frames)}
    return max(
        tree.frames,
        key=lambda name: (depth[tree.frames[name].link], name not in joints - links, order[name]),
    )


def ties_of(tree: Tree) -> tuple[Tie, ...]:
    """The ends of all closed loops."""
    return tuple(
        Tie(c.name, (c.a.link, c.b.link), (pose_of_frame(c.a), pose_of_frame(c.b)), c.directions)
        for c in tree.closures
    )


def pushes_of(
    frames: Sequence[Marker], forces: Mapping[str, ArrayLike] | None, times: int
) -> tuple[Pushes, ...]:
    """Wrenches that a user gives by the names of frames, one (6) or one for each time (T, 6)."""
    numbers = {marker.name: k for k, marker in enumerate(frames)}
    found = []
    for name, wrench in (forces or {}).items():
        if name not in numbers:
            raise ValueError(f"forces: no frame is called {name!r}; robot.frame_names lists them")
        rows = np.atleast_2d(np.asarray(wrench, float))
        if rows.shape not in ((1, 6), (times, 6)):
            wanted = f"(6), or ({times}, 6), one for each time" if times else "(6)"
            raise ValueError(
                f"forces: the wrench on {name!r} has shape {np.shape(wrench)}; expected {wanted}"
            )
        found.append(Pushes(numbers[name], rows, name))
    return tuple(found)
