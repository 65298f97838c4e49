"""`robot.show`, `animate` and `save_html`."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from linkwise.model.values import path_text
from linkwise.view.arguments import Forces, scene_of
from linkwise.view.page import Page, in_notebook
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
    file = path_text("save_html: path", path)
    return Page(scene_of(robot, q, motion, frame=frame, forces=forces)).save(file)


def show(
    robot: Viewed,
    q: ArrayLike | None,
    motion: Any,
    frame: str | None,
    forces: Forces | None,
    port: int = PORT,
    open_browser: bool = True,
    block: bool | None = None,
    live: bool | None = None,
) -> Viewer | Page:
    """Serve the scene to the browser of this machine; in a notebook, put it into the page."""
    made = scene_of(robot, q, motion, frame=frame, forces=forces)
    for note in made.notes:
        LOG.warning("%s", note)
    if not (live if live is not None else not runs_in_notebook()):
        return Page(made)
    return serve(lambda: Viewer(robot, made, port), port, open_browser, block)


def runs_in_notebook() -> bool:
    """Whether code is run by the kernel of a notebook, which displays what a cell returns."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return hasattr(get_ipython() if get_ipython else None, "kernel")


def notebook(robot: Viewed | None, motion: Any = None) -> str | None:
    """Return what a notebook shows for a robot or its motion; None if it cannot be drawn."""
    if robot is None or robot.tree.n_links > MOST_BODIES or not robot.tree.n_links:
        return None
    return in_notebook(scene_of(robot, None, motion, most_faces=NOTEBOOK_FACES))
