"""Geoms of a compiled MuJoCo model, as shapes for viewers."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from linkwise.io.poses import quaternion_matrix
from linkwise.model.description import Geometry
from linkwise.model.values import as_triple, pose_of
from linkwise.spatial.matrices import product

SPHERE, CAPSULE, CYLINDER, BOX, MESH = 2, 3, 5, 6, 7  # mjtGeom
SHOWN = 3  # groups below this are drawn by MuJoCo's viewer

Shapes = tuple[Geometry, ...]


def text_at(texts: Any, address: int) -> str:
    """The text that starts at an address of a model's names or paths."""
    return bytes(texts[address:]).split(b"\0", 1)[0].decode(errors="replace")


def body_shapes(m: Any, body: int) -> tuple[Shapes, Shapes]:
    """Visual and collision shapes of a body; kinds that descriptions do not know are left out."""
    start = m.body_geomadr[body]
    visuals: list[Geometry] = []
    collisions: list[Geometry] = []
    for geom in range(start, start + m.body_geomnum[body]):
        shape = _shape(m, geom)
        if shape is None:
            continue
        if m.geom_group[geom] < SHOWN:
            visuals.append(shape)
        if m.geom_contype[geom] or m.geom_conaffinity[geom]:
            collisions.append(shape)
    return tuple(visuals), tuple(collisions)


def _shape(m: Any, geom: int) -> Geometry | None:
    kind = int(m.geom_type[geom])
    R, p = quaternion_matrix(m.geom_quat[geom]), np.array(m.geom_pos[geom])
    red, green, blue, alpha = (float(x) for x in m.geom_rgba[geom])
    rgba = red, green, blue, alpha
    radius, half, depth = (float(x) for x in m.geom_size[geom])
    if kind == SPHERE:
        return Geometry("sphere", (radius,), origin=pose_of(R, p), rgba=rgba)
    if kind in (CAPSULE, CYLINDER):
        word = "capsule" if kind == CAPSULE else "cylinder"
        return Geometry(word, (radius, 2 * half), origin=pose_of(R, p), rgba=rgba)
    if kind == BOX:
        return Geometry("box", (2 * radius, 2 * half, 2 * depth), origin=pose_of(R, p), rgba=rgba)
    return _mesh(m, geom, R, p, rgba) if kind == MESH else None


def _mesh(m: Any, geom: int, R: Any, p: Any, rgba: Any) -> Geometry | None:
    """A mesh in the axes of its file: MuJoCo moves it to its centre and principal axes."""
    mesh = int(m.geom_dataid[geom])
    address = int(m.mesh_pathadr[mesh])
    path = text_at(m.paths, address) if address >= 0 else ""
    if not path:
        return None
    R = product(R, quaternion_matrix(m.mesh_quat[mesh]).T)
    origin = pose_of(R, p - product(R, m.mesh_pos[mesh]))
    scale = as_triple(m.mesh_scale[mesh])
    file = path if os.path.isabs(path) else ""  # MuJoCo has opened it
    return Geometry("mesh", path=path, scale=scale, origin=origin, rgba=rgba, file=file)
