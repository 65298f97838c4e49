"""A scene as one HTML file: its data, a style and a script, and nothing from anywhere else.

The script (`script/`) has kinematics of its own, from the exported tree, so that sliders work
without Python; `tests/view` hold it to `Robot.forward_kinematics`.
"""

from __future__ import annotations

import base64
import html
import json
import os
from functools import cache
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from linkwise.errors import printable
from linkwise.model.tree import Link
from linkwise.view.scene import KINDS, Mesh, Scene, Shape, placement, values_of

MOST_NUMBERS = 400_000  # of the tracks that a page has; longer ones are thinned
SCRIPTS = ("matrices", "robot", "geometry", "drawing", "controls")
DIGITS = 7  # of numbers that are only looked at


@cache
def _part(name: str) -> str:
    return resources.files("linkwise.view").joinpath(name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """The parts of the script as one function, so that their names are nobody else's."""
    parts = "\n".join(_part(f"script/{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();'


def page(scene: Scene) -> str:
    """The whole file."""
    # "<" is not in the data as such, so that no text of a robot file can end the script
    data = json.dumps(data_of(scene), separators=(",", ":"), allow_nan=False)
    return Template(_part("page.html")).substitute(
        title=html.escape(printable(scene.name)),
        css=_part("page.css"),
        scene=data.replace("<", "\\u003c"),
        script=_script(),
    )


def in_notebook(scene: Scene, height: int = 480) -> str:
    """The file inside a frame of a notebook's page, where it can reach nothing of the notebook."""
    text = html.escape(page(scene), quote=True)
    style = f"width:100%;height:{height}px;border:1px solid #d5dbe1;border-radius:8px"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{text}"></iframe>'


class Page:
    """A scene as a page that needs no server: what `Robot.show` returns in a notebook.

    A notebook displays it; it has sliders, inverse kinematics of a target that is dragged, and the
    motion, and stays alive in what the notebook is exported to.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page as one HTML file.

        Args:
            path: Where to write it.

        Returns:
            The path of the file.
        """
        to = Path(path)
        to.write_text(page(self._scene), encoding="utf-8")
        return to

    def _repr_html_(self) -> str:
        """The page in a frame."""
        return in_notebook(self._scene)

    def __repr__(self) -> str:
        return f"<Page of {self._scene.name!r}: a notebook displays it, save(path) writes it>"


def data_of(scene: Scene) -> dict[str, Any]:
    """What the script reads."""
    t, tracks, pushes = _thinned(scene)
    return {
        "name": printable(scene.name),
        "nq": scene.tree.nq,
        "gravity": [float(x) for x in scene.tree.gravity],
        "up": scene.up.tolist(),
        "reach": scene.reach,
        "visuals": scene.has_visuals,
        "bodies": [_body(link) for link in scene.bodies],
        "shapes": [_shape(shape) for shape in scene.shapes],
        "meshes": [_mesh(mesh) for mesh in scene.meshes],
        "frames": [
            {"name": printable(f.name), "body": f.body, "pose": _rows(f.pose)} for f in scene.frames
        ],
        "tip": scene.tip,
        "sliders": [_slider(slider) for slider in scene.sliders],
        "ties": [
            {
                "name": printable(tie.name),
                "bodies": tie.bodies,
                "poses": [_rows(pose) for pose in tie.poses],
                "directions": tie.directions,
            }
            for tie in scene.ties
        ],
        "values": [values_of(scene.sliders, q).tolist() for q in scene.q],
        "q": scene.q.tolist(),
        "t": t.tolist(),
        "tracks": _floats(tracks),
        "pushes": pushes,
        "notes": [printable(note) for note in scene.notes],
    }


def _thinned(scene: Scene) -> tuple[Any, Any, list[dict[str, Any]]]:
    """Times, tracks and wrenches, at every few of the times where they are many."""
    rows, times, nq = scene.tracks.shape
    most = max(2, MOST_NUMBERS // max(rows * nq, 1))
    step = max(1, -(-times // most))
    pushes = [
        {"frame": p.frame, "name": printable(p.name), "wrenches": _short(p.wrenches[::step])}
        for p in scene.pushes
    ]
    return scene.t[::step], scene.tracks[:, ::step], pushes


def _body(link: Link) -> dict[str, Any]:
    xx, xy, xz, yy, yz, zz = (float(x) for x in link.inertia.second)
    x, y, z = (float(x) for x in link.inertia.h)
    follows = link.follows
    return {
        "name": printable(link.name),
        "joint": printable(link.joint_name),
        "parent": link.parent,
        "kind": KINDS[type(link.joint)],
        "pitch": float(getattr(link.joint, "pitch", 0.0)),
        "q": link.q_index,
        "times": follows.multiplier if follows else 1.0,
        "plus": follows.offset if follows else 0.0,
        "placement": _rows(placement(link)),
        # pseudo-inertia: second moments, first moments and mass in link axes, rows of 4 by 4
        "inertia": [xx, xy, xz, x, xy, yy, yz, y, xz, yz, zz, z, x, y, z, float(link.inertia.m)],
        "armature": [float(a) for a in link.armature],
    }


def _shape(shape: Shape) -> dict[str, Any]:
    return {
        "body": shape.body,
        "kind": shape.kind,
        "size": _short(np.array(shape.size)),
        "pose": _short(shape.pose[:3].reshape(-1)),
        "rgba": _short(np.array(shape.rgba)),
        "layer": shape.layer,
        "mesh": shape.mesh,
    }


def _slider(slider: Any) -> dict[str, Any]:
    return {
        "name": printable(slider.name),
        "unit": slider.unit,
        "lower": slider.lower,
        "upper": slider.upper,
        "q": slider.q,
        "angle": slider.angle,
    }


def _mesh(mesh: Mesh) -> dict[str, Any]:
    """Corners as whole numbers from 0 to 65535 between the ends of a box, and triangles."""
    low, high = mesh.vertices.min(0), mesh.vertices.max(0)
    size = np.maximum(high - low, 1e-9)
    corners = np.rint((mesh.vertices - low) / size * 65535).astype("<u2")
    return {
        "low": low.tolist(),
        "size": size.tolist(),
        "corners": _text(corners),
        "faces": _text(mesh.faces.astype("<u4")),
    }


def _rows(pose: Any) -> list[float]:
    """The first three rows of a pose, one after another."""
    return [float(x) for x in np.asarray(pose)[:3].reshape(-1)]


def _short(values: Any) -> Any:
    """Numbers with as many digits as a picture needs."""
    if np.ndim(values) > 1:
        return [_short(row) for row in values]
    return [float(f"{x:.{DIGITS}g}") for x in values]


def _floats(values: Any) -> dict[str, Any]:
    return {"shape": list(values.shape), "data": _text(values.astype("<f4"))}


def _text(values: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
