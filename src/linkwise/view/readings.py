"""What a viewer tells about a configuration, by the robot's compiled functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.spatial.matrices import determinant, principal, product
from linkwise.view.scene import Array, Scene

SINGULAR = 1e-9  # mobility of a direction, by that of the freest, below which none is left


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """Half axes (3), the largest first, and their directions as columns, in base axes."""

    half: Array
    axes: Array


@dataclass(frozen=True, eq=False)
class Reading:
    """A frame's pose, and what the robot can do there; parts that do not exist are None."""

    pose: Array  # (4, 4)
    gravity: Array | None  # (nv): torques that hold the robot still
    velocity: Ellipsoid | None  # speeds of the frame at unit joint rates, m
    mobility: (
        Ellipsoid | None
    )  # its accelerations per unit force, 1/kg: half axes are squares' roots
    missing: tuple[str, ...] = ()  # why parts do not exist

    @property
    def masses(self) -> Array | None:
        """Effective masses (3) of the frame along the axes of its mobility, the least first."""
        if self.mobility is None:
            return None
        squares = self.mobility.half**2
        gone = squares <= SINGULAR * squares.max(initial=0.0)
        return np.where(gone, np.inf, 1.0 / np.where(gone, 1.0, squares))


def reading(robot: Any, q: Array, frame: str) -> Reading:
    """Read a robot at a configuration (nq)."""
    missing: list[str] = []

    def tried(function: Any, *arguments: Any) -> Any:
        try:
            return np.asarray(function(*arguments), float)
        except (ValueError, RuntimeError) as error:  # functions that do not exist for this robot
            missing.append(" ".join(str(error).split()))
            return None

    pose = np.asarray(robot.forward_kinematics(q, frame), float)
    gravity = tried(robot.gravity_torque, q)
    J = tried(robot.jacobian, q, frame)
    yielding = None if robot.tree.is_closed else tried(robot.operational_inertia_inverse, q, frame)
    return Reading(
        pose,
        gravity,
        None if J is None else ellipsoid_of(product(J[3:], J[3:].T)),
        None if yielding is None else ellipsoid_of(yielding[3:, 3:]),
        tuple(dict.fromkeys(missing)),
    )


def ellipsoid_of(matrix: Array) -> Ellipsoid | None:
    """The ellipsoid whose half axes are roots of the eigenvalues of a symmetric matrix (3, 3)."""
    if not np.isfinite(matrix).all():
        return None
    values, axes = principal(matrix)
    axes = axes[:, ::-1] * np.array([1.0, 1.0, np.sign(determinant(axes[:, ::-1]))])
    return Ellipsoid(np.sqrt(np.clip(values[::-1], 0.0, None)), axes)


def text(scene: Scene, read: Reading) -> str:
    """A reading as Markdown."""
    x, y, z = read.pose[:3, 3]
    R = read.pose[:3, :3]
    angles = np.degrees(
        [
            np.arctan2(R[2, 1], R[2, 2]),
            np.arcsin(np.clip(-R[2, 0], -1, 1)),
            np.arctan2(R[1, 0], R[0, 0]),
        ]
    )
    rows = [
        ("position", f"{x:.3f}, {y:.3f}, {z:.3f} m"),
        ("roll, pitch, yaw", ", ".join(f"{a + 0.0:.1f}" for a in angles) + " °"),
    ]
    if read.velocity is not None:
        rows.append(("manipulability", ", ".join(f"{s:.3g}" for s in read.velocity.half) + " m"))
    if read.masses is not None:
        shown = ("∞" if np.isinf(m) else f"{m:.3g}" for m in read.masses)
        rows.append(("effective mass", ", ".join(shown) + " kg"))
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    if read.gravity is not None and len(read.gravity):
        own = [(s.name, s.unit, read.gravity[s.dof]) for s in scene.sliders if s.dof >= 0]
        least = 1e-12 * max(abs(t) for _, _, t in own) if own else 0.0  # rounding
        lines += ["", "| gravity torque | |", "|---|---|"]
        lines += [
            f"| {_plain(n)} | {0.0 if abs(t) < least else t:.3g} {'N m' if u == 'rad' else 'N'} |"
            for n, u, t in own
        ]
    lines += ["", *(_plain(why) for why in read.missing)]
    return "\n".join(lines)


def _plain(name: str) -> str:
    """Text of a robot file in which Markdown has nothing to read."""
    return "".join(c if c.isalnum() or c in " .,:;()=-'" else f"&#{ord(c)};" for c in name)
