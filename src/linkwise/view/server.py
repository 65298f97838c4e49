"""A robot live in the browser: viser serves the scene, the robot's functions the numbers."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import printable
from linkwise.interop.package import package
from linkwise.model.frames import axes_along
from linkwise.spatial.matrices import lengths
from linkwise.text import note
from linkwise.view import readings
from linkwise.view.origin import checked_listener, require_checks
from linkwise.view.page import in_notebook
from linkwise.view.scene import (
    AXES,
    BONES,
    INERTIA,
    VISUAL,
    Array,
    Scene,
    configuration,
    values_of,
)
from linkwise.view.stage import Stage

HOST = "127.0.0.1"  # nobody else's machine is served
PORT = 8080  # the first that is tried
RATE = 30.0  # pictures a second while a motion plays
TITLES = {VISUAL: "Shapes", BONES: "Bones", INERTIA: "Inertia ellipsoids", AXES: "Joint axes"}
BLUE, PINK = (0, 114, 178), (204, 121, 167)


class Viewer:
    """A robot in the browser, with a slider for each joint: what `robot.show` returns.

    ``viewer.url`` is its address, on this machine alone; ``viewer.q`` the configuration that is
    shown; ``viewer.update(q)`` shows another; ``viewer.wait()`` returns when it is interrupted;
    ``viewer.close()`` ends it.
    """

    def __init__(self, robot: Any, scene: Scene, port: int = PORT) -> None:
        viser = package("viser", "robot.show", "view")
        self._robot, self._scene = robot, scene
        with contextlib.redirect_stdout(io.StringIO()), checked_listener():  # prints a banner
            self._server = viser.ViserServer(HOST, port, label=printable(robot.name), verbose=False)
        require_checks(self._server, HOST)
        self._server.gui.configure_theme(show_share_button=False, show_logo=False)
        self._lock = threading.RLock()
        self._setting = 0  # the thread that moves the sliders itself: viser calls it back
        self._moved = False  # whether the shown state is not the one that forces belong to
        self._rows = np.array(scene.q)
        self._control: Any = None  # of a target that is dragged
        self._playing = threading.Event()
        self._closed = threading.Event()
        self.stage = Stage(self._server, scene, viser.transforms)
        self._camera()
        self._controls()
        self.refresh()
        if len(scene.t) > 1:
            threading.Thread(target=self._play, name="linkwise viewer", daemon=True).start()

    # -- what users call -------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        return f"http://{HOST}:{self._server.get_port()}"

    @property
    def q(self) -> Array:
        """The configuration (nq) that is shown."""
        return np.array(self._rows[0])

    def update(self, q: ArrayLike) -> None:
        """Show another configuration (nq)."""
        row = np.asarray(q, float)
        if row.shape != (self._robot.nq,) or not np.isfinite(row).all():
            raise ValueError(
                f"update: q has shape {row.shape}; expected ({self._robot.nq},), all finite"
            )
        with self._lock:
            self._stop_clock()
            self._moved = True
            self._show(row)

    def close(self) -> None:
        """End the server; pages that are open lose their connection."""
        if not self._closed.is_set():
            for port in [port for port, viewer in _viewers.items() if viewer is self]:
                del _viewers[port]
            self._closed.set()
            self._playing.set()
            with contextlib.redirect_stdout(io.StringIO()):
                self._server.stop()

    def wait(self) -> None:
        """Return when the viewer is closed, or interrupted by Ctrl-C, which closes it."""
        try:
            while not self._closed.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.close()

    def open(self) -> Viewer:
        """Open the page in the browser of this machine, where there is one."""
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(self.url)
        return self

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        """The scene as a page that needs no server, for notebooks and what they are exported to."""
        return in_notebook(replace(self._scene, q=np.array(self._rows)))

    def __repr__(self) -> str:
        state = "closed" if self._closed.is_set() else self.url
        return f"<Viewer of {self._robot.name!r}: {state}>"

    # -- the page --------------------------------------------------------------------------------

    def _camera(self) -> None:
        low, high = self.stage.extent()
        centre, size = (low + high) / 2, max(float(lengths(high - low)), 0.1)
        up = self._scene.up
        aside = axes_along(up)
        view = 0.85 * aside[:, 0] - 1.0 * aside[:, 1] + 0.45 * up
        camera = self._server.initial_camera
        camera.fov = 0.7
        camera.position = centre + view / lengths(view) * 1.9 * size
        camera.look_at = centre

    def _controls(self) -> None:
        gui, scene = self._server.gui, self._scene
        names = [marker.name for marker in scene.frames]
        self._frame = gui.add_dropdown("Frame", names, initial_value=names[scene.tip])
        self._frame.on_update(lambda _: self.refresh())
        self._text = gui.add_markdown("")
        if len(scene.t) > 1:
            self._clock()
        with gui.add_folder("Joints"):
            values = values_of(scene.sliders, scene.q[0])
            self._sliders = [self._slider(s, x) for s, x in zip(scene.sliders, values, strict=True)]
        with gui.add_folder("Reach for a target"):
            self._target = gui.add_checkbox("Drag a target", False)
            self._turns = gui.add_checkbox("With its orientation", True)
            self._target.on_update(lambda _: self._switch_target())
        with gui.add_folder("Show"):
            self._layers()

    def _layers(self) -> None:
        gui, scene = self._server.gui, self._scene
        for name, title in TITLES.items():
            if name in self.stage.layers:
                on = name == VISUAL or not scene.has_visuals
                box = gui.add_checkbox(title, on)
                box.on_update(lambda _, name=name, box=box: self.stage.show_layer(name, box.value))
                self.stage.show_layer(name, on)
        self._velocity = gui.add_checkbox("Manipulability", False)
        self._mobility = gui.add_checkbox("Mobility", False)
        for box in (self._velocity, self._mobility):
            box.on_update(lambda _: self.refresh())

    def _slider(self, slider: Any, value: float) -> Any:
        low, high = min(slider.lower, value), max(slider.upper, value)
        step = (high - low) / 2000 or 1e-6
        made = self._server.gui.add_slider(
            f"{printable(slider.name)}, {slider.unit}", low, high, step, float(value)
        )
        made.on_update(lambda _: self._slid())
        return made

    def _clock(self) -> None:
        gui, t = self._server.gui, self._scene.t
        with gui.add_folder("Time"):
            self._time = gui.add_slider("t, s", float(t[0]), float(t[-1]),
                                        float(t[-1] - t[0]) / 5000, float(t[0]))  # fmt: skip
            self._plays = gui.add_checkbox("Play", True)
            self._speed = gui.add_slider("Speed", 0.1, 4.0, 0.1, 1.0)
        self._playing.set()
        self._time.on_update(lambda _: self._timed())
        self._plays.on_update(
            lambda _: self._playing.set() if self._plays.value else self._playing.clear()
        )
        self._draw_path()
        self._frame.on_update(lambda _: self._draw_path())

    # -- what happens ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        """Within this, sliders that this thread moves do not act."""
        before, self._setting = self._setting, threading.get_ident()
        try:
            yield
        finally:
            self._setting = before

    def _slid(self) -> None:
        """Sliders were moved by hand; closed loops stay closed."""
        if self._setting == threading.get_ident():
            return
        with self._lock:
            shown = values_of(self._scene.sliders, self.q)
            pairs = zip(self._sliders, shown, strict=True)
            values = [_clipped(slider, slider.min, slider.max, x) for slider, x in pairs]
            q = configuration(self._scene.sliders, values, self._robot.nq)
            if self._scene.ties:
                q = np.asarray(self._robot.project(q), float)
                if not np.isfinite(q).all():  # these joints cannot be so: stay
                    q = self.q
            self._stop_clock()
            self._moved = True
            self._show(q)

    def _stop_clock(self) -> None:
        if len(self._scene.t) > 1 and self._playing.is_set() and not self._closed.is_set():
            self._playing.clear()
            with self._quietly():
                self._plays.value = False

    def _show(self, q: Array) -> None:
        """Show a configuration, with sliders where it has them."""
        with self._lock, self._quietly():
            self._rows[0] = q
            for slider, x in zip(self._sliders, values_of(self._scene.sliders, q), strict=True):
                slider.value = float(np.clip(x, slider.min, slider.max))
            self.refresh()

    def refresh(self) -> None:
        """Draw and read again."""
        with self._lock:
            poses = self.stage.place(self._rows)
            frame = self._shown_frame()
            read = readings.reading(self._robot, self.q, frame)
            self._text.content = readings.text(self._scene, read)
            self.stage.mark(read.pose, frame)
            at, reach = read.pose[:3, 3], self._scene.reach
            shown = read.velocity if self._velocity.value else None
            self.stage.ellipsoid("velocity", shown, at, BLUE, 0.28)
            shown = read.mobility if self._mobility.value else None
            size = 0.0 if shown is None else float(shown.half.max())
            self.stage.ellipsoid("mobility", shown, at, PINK, 0.2 * reach / (size or 1.0))
            self.stage.forces(poses, self._index(), not self._moved)
            self.stage.ties(poses)

    def _shown_frame(self) -> str:
        """The frame whose pose is read: one of the scene, whatever a page has sent."""
        names = [marker.name for marker in self._scene.frames]
        return self._frame.value if self._frame.value in names else names[self._scene.tip]

    def _index(self) -> int:
        if len(self._scene.t) < 2:
            return 0
        return max(int(np.searchsorted(self._scene.t, self._now(), "right")) - 1, 0)

    def _now(self) -> float:
        """The time that is shown, within that of the motion."""
        t = self._scene.t
        return _clipped(self._time, float(t[0]), float(t[-1]), float(t[0]))

    # -- time ------------------------------------------------------------------------------------

    def _timed(self) -> None:
        with self._lock:
            self._moved = False
            self._rows[:] = self._scene.tracks[:, self._index()]
            self._show(self._rows[0].copy())

    def _play(self) -> None:
        """Move the time on until the viewer is closed."""
        t, last = self._scene.t, time.monotonic()
        while not self._closed.is_set():
            if not self._playing.wait(0.2):
                last = time.monotonic()
                continue
            now = time.monotonic()
            at = self._now() + (now - last) * _clipped(self._speed, 0.1, 4.0, 1.0)
            last = now
            self._time.value = float(t[0]) if at > t[-1] else at  # which calls `_timed`
            time.sleep(max(0.0, 1.0 / RATE - (time.monotonic() - now)))

    def _draw_path(self) -> None:
        """The way of the frame that is read."""
        rows = self._scene.tracks[0]
        some = rows[np.unique(np.linspace(0, len(rows) - 1, 300).round().astype(int))]
        poses = self._robot.forward_kinematics(np.ascontiguousarray(some), self._shown_frame())
        self.stage.path(np.asarray(poses)[:, :3, 3])

    # -- inverse kinematics ----------------------------------------------------------------------

    def _switch_target(self) -> None:
        with self._lock:
            if not self._target.value:
                self._control.remove()
                return
            pose = np.asarray(self._robot.forward_kinematics(self.q, self._shown_frame()), float)
            so3 = package("viser", "robot.show", "view").transforms.SO3
            self._control = self._server.scene.add_transform_controls(
                "/target", 0.25 * self._scene.reach, wxyz=so3.from_matrix(pose[:3, :3]).wxyz,
                position=pose[:3, 3], depth_test=False,
            )  # fmt: skip
            self._control.on_update(lambda event: self.reach(_pose(event.target, so3)))

    def reach(self, target: ArrayLike) -> None:
        """Bring the frame that is read as near to a pose (4, 4) as joints and limits allow."""
        if not np.isfinite(np.asarray(target, float)).all():
            return  # a page can send any number
        directions = "pose" if self._turns.value else "position"
        with self._lock:
            self._stop_clock()
            q, _ = self._robot.inverse_kinematics(
                target, self._shown_frame(), self.q, directions, restarts=0, status=True
            )
            if np.isfinite(q).all():
                self._moved = True
                self._show(np.asarray(q, float))


def _clipped(control: Any, low: float, high: float, otherwise: float) -> float:
    """The value of a slider within its range: a page can send any number, or none."""
    try:
        value = float(control.value)
    except (TypeError, ValueError, OverflowError):
        return float(otherwise)
    return min(max(value, low), high) if np.isfinite(value) else float(otherwise)


def _pose(node: Any, so3: Any) -> Array:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = so3(np.asarray(node.wxyz)).as_matrix(), node.position
    return pose


def is_interactive() -> bool:
    """Whether Python itself waits for more to do, so that a viewer need not."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or "IPython" in sys.modules


_viewers: dict[int, Viewer] = {}  # the one that was started last for each port


def serve(make: Callable[[], Viewer], port: int, open_browser: bool, block: bool | None) -> Viewer:
    """Start a viewer, open its page, and in a script wait until it is interrupted.

    A viewer that was started before for the same port is closed, so that repeated calls use one
    port; its page connects to the new one by itself.
    """
    earlier = _viewers.pop(port, None)
    if earlier is not None:
        earlier.close()
    viewer = make()
    if port:
        _viewers[port] = viewer
    waits = not is_interactive() if block is None else block
    if open_browser:
        viewer.open()
    if waits:
        way_out = "" if block else "; show(..., block=False) does not wait"
        note(f"{viewer._robot.name} is at {viewer.url}; waiting until Ctrl-C{way_out}")
        viewer.wait()
    return viewer
