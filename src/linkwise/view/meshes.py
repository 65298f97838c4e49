"""Meshes of robot files, read by trimesh, from files that the robot file may name and no others."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.interop.package import package
from linkwise.model.description import Geometry
from linkwise.spatial.matrices import product
from linkwise.view.scene import Mesh, Rgba

MOST_FACES = 15_000  # of one mesh; more are merged
LARGEST = 256 * 2**20  # bytes of a file


class Meshes:
    """The meshes of one scene, each file and scale read once, and why some are missing."""

    def __init__(self, most_faces: int = MOST_FACES) -> None:
        self.found: list[Mesh] = []
        self._numbers: dict[tuple[str, Any], tuple[int, Rgba | None] | None] = {}
        self._missing: Counter[str] = Counter()
        self._most_faces = most_faces

    def number(self, geometry: Geometry) -> tuple[int, Rgba | None] | None:
        """The number of a mesh, and its own colour if it has one; nothing where it is missing."""
        key = geometry.file, geometry.scale
        if not geometry.file:
            self._missing["not found in the folders that the robot file may name"] += 1
            return None
        if key not in self._numbers:
            self._numbers[key] = self._read(geometry)
        return self._numbers[key]

    def notes(self) -> tuple[str, ...]:
        """What is missing, a sentence for each reason."""
        return tuple(
            f"{count} mesh{'es' if count > 1 else ''} not shown: {why}"
            for why, count in self._missing.items()
        )

    def _read(self, geometry: Geometry) -> tuple[int, Rgba | None] | None:
        try:
            vertices, faces, rgba = read_mesh(Path(geometry.file))
        except ImportError as error:
            self._missing[str(error)] += 1
            return None
        except Exception as error:  # readers of five formats raise what they like
            said = " ".join(str(error).split())[:120] or type(error).__name__
            self._missing[f"{Path(geometry.file).name} cannot be read ({said})"] += 1
            return None
        scaled = vertices * np.array(geometry.scale)
        if np.prod(geometry.scale) < 0:
            faces = faces[:, ::-1]
        self.found.append(thinned(Mesh(scaled, faces), self._most_faces))
        return len(self.found) - 1, rgba


def read_mesh(path: Path) -> tuple[Any, Any, Rgba | None]:
    """Corners, triangles and the colour of a mesh file; opens that file and no other."""
    trimesh = package("trimesh", "a mesh", "view")
    kind = path.suffix.lower().removeprefix(".")
    if kind == "dae":
        package("collada", "a COLLADA mesh", "view")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path.stat().st_size:,} bytes; expected at most {LARGEST:,}")
    scene = trimesh.load(io.BytesIO(path.read_bytes()), file_type=kind, force="scene")
    parts, colours = [], []
    for node in scene.graph.nodes_geometry:
        transform, name = scene.graph[node]
        part = scene.geometry[name]
        if hasattr(part, "faces") and len(part.faces):
            corners = product(part.vertices, transform[:3, :3].T) + transform[:3, 3]
            parts.append((corners, part.faces))
            colours.append((len(part.faces), _colour(part)))
    if not parts:
        raise ValueError("no triangles")
    starts = np.cumsum([0, *(len(v) for v, _ in parts)])
    vertices = np.concatenate([v for v, _ in parts])
    faces = np.concatenate([f + k for (_, f), k in zip(parts, starts, strict=False)])
    if not np.isfinite(vertices).all():
        raise ValueError("corners that are not finite")
    return vertices, faces.astype(np.int64), max(colours, key=lambda c: c[0])[1]


def _colour(part: Any) -> Rgba | None:
    """The colour of a part, where its file gives it one."""
    material = getattr(part.visual, "material", None)
    colour = getattr(material, "main_color", None)
    if colour is None or part.visual.kind != "texture":
        return None
    red, green, blue, alpha = (float(x) / 255 for x in colour)
    return red, green, blue, alpha if alpha > 0 else 1.0


def thinned(mesh: Mesh, most: int) -> Mesh:
    """A mesh of at most so many triangles: corners in one cell of a grid become one corner."""
    cells = 256.0
    while len(mesh.faces) > most and cells > 4:
        low, high = mesh.vertices.min(0), mesh.vertices.max(0)
        size = float((high - low).max()) / cells
        keys = np.floor((mesh.vertices - low) / max(size, 1e-12)).astype(np.int64)
        _, inverse, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        inverse = inverse.reshape(-1)
        merged = np.zeros((len(counts), 3))
        np.add.at(merged, inverse, mesh.vertices)
        merged /= counts[:, None]
        faces = inverse[mesh.faces]
        solid = (faces != np.roll(faces, 1, axis=1)).all(axis=1)
        faces = np.unique(_rolled(faces[solid]), axis=0)
        mesh, cells = Mesh(merged, faces), cells * 0.7
    return mesh


def _rolled(faces: Any) -> Any:
    """Triangles that begin with their smallest number, so that equal ones are equal rows."""
    first = np.argmin(faces, axis=1)
    return np.take_along_axis(faces, (first[:, None] + np.arange(3)) % 3, axis=1)
