"""`robot.show`, `animate` and `save_html`."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from linkwise.view.arguments import Forces, scene_of
from linkwise.view.page import in_notebook, page
from linkwise.view.scene import MOST_BODIES, Viewed
from linkwise.view.server import PORT, Viewer, serve

LOG = logging.getLogger("linkwise")
NOTEBOOK_FACES = 2_000  # of a mesh, in the picture that a notebook shows


def save_html(
    robot: Viewed,
    path: str | os.PathLike[str],
    motion: Any = None,
    q: ArrayLike | None = None,
    frame: str | None = None,
    forces: Forces | None = None,
) -> Path:
    """Write the scene as one file."""
    if motion is not None and q is not None:
        raise ValueError("save_html: both a motion and q are given; expected one of them")
    text = page(scene_of(robot, q, motion, frame=frame, forces=forces))
    to = Path(path)
    to.write_text(text, encoding="utf-8")
    return to


def show(
    robot: Viewed,
    q: ArrayLike | None,
    motion: Any,
    frame: str | None,
    forces: Forces | None,
    port: int = PORT,
    open_browser: bool = True,
    block: bool | None = None,
) -> Viewer:
    """Serve the scene to the browser of this machine."""
    made = scene_of(robot, q, motion, frame=frame, forces=forces)
    for note in made.notes:
        LOG.warning("%s", note)
    return serve(lambda: Viewer(robot, made, port), open_browser, block)


def notebook(robot: Viewed) -> str | None:
    """What a notebook shows for a robot; nothing where it cannot be drawn."""
    if robot.tree.n_links > MOST_BODIES or not robot.tree.n_links:
        return None
    return in_notebook(scene_of(robot, most_faces=NOTEBOOK_FACES))
