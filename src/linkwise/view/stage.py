"""A scene's bodies and shapes as nodes of viser, and their poses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import printable
from linkwise.model.frames import axes_along
from linkwise.spatial.matrices import dot, lengths, product
from linkwise.view.readings import Ellipsoid
from linkwise.view.scene import VISUAL, Array, Scene, Shape, link_poses

GHOST = 0.25  # opacity
FORCE, TIE, PATH = (212, 38, 26), (0, 158, 115), (230, 115, 0)


class Stage:
    """What viser draws: the robot, its ghosts, ellipsoids, forces and loops."""

    def __init__(self, server: Any, scene: Scene, transforms: Any) -> None:
        self._scene, self._api, self._so3 = scene, server.scene, transforms.SO3
        self._atomic = server.atomic
        self.layers: dict[str, list[Any]] = {}
        self._robots = [self._robot("robot", 1.0)]
        self._robots += [self._robot(f"ghost{k}", GHOST) for k in range(1, len(scene.q))]
        self._extra: dict[str, Any] = {}
        self._ground()

    def _ground(self) -> None:
        scene, api = self._scene, self._api
        api.set_up_direction(tuple(scene.up))
        low, _ = self.extent()
        lowest = float(dot(scene.up, low))
        height = lowest if lowest < -0.02 * scene.reach else 0.0
        R = axes_along(scene.up)
        size = 12 * scene.reach
        cell = 10.0 ** np.floor(np.log10(scene.reach / 3))
        api.add_grid(
            "/ground", size, size, cell_size=cell, section_size=5 * cell, fade_distance=size,
            wxyz=self._so3.from_matrix(R).wxyz, position=height * scene.up,
            cell_color=(215, 220, 226), section_color=(180, 188, 197),
        )  # fmt: skip

    def extent(self) -> tuple[Array, Array]:
        """Two corners of a box around the robot, in base axes."""
        poses = link_poses(self._scene.tree, self._scene.q[0])
        points = [np.zeros(3)]
        for shape in self._scene.shapes:
            if shape.layer == (VISUAL if self._scene.has_visuals else "bones"):
                own = shape.pose if shape.body < 0 else product(poses[shape.body], shape.pose)
                half = max(shape.size, default=0.0) / 2
                points += [own[:3, 3] - half, own[:3, 3] + half]
        return np.min(points, axis=0), np.max(points, axis=0)

    def _robot(self, name: str, opacity: float) -> list[Any]:
        """Frames of the bodies, with their shapes below; a ghost has those of one layer."""
        count = len(self._scene.bodies)
        frames = [self._api.add_frame(f"/{name}/{i}", show_axes=False) for i in range(count)]
        self._api.add_frame(f"/{name}/base", show_axes=False)
        solid = VISUAL if self._scene.has_visuals else "bones"
        for k, shape in enumerate(self._scene.shapes):
            if opacity < 1 and (shape.layer != solid or shape.body < 0):
                continue
            parent = f"/{name}/{'base' if shape.body < 0 else shape.body}"
            nodes = self._shape(f"{parent}/{shape.layer}{k}", shape, opacity)
            if opacity == 1:
                self.layers.setdefault(shape.layer, []).extend(nodes)
        return frames

    def _shape(self, name: str, shape: Shape, opacity: float) -> list[Any]:
        alpha = shape.rgba[3] * opacity
        colour = tuple(round(255 * x) for x in shape.rgba[:3])
        common = {
            "wxyz": self._so3.from_matrix(shape.pose[:3, :3]).wxyz,
            "position": shape.pose[:3, 3],
        }
        looks: dict[str, Any] = {"color": colour, "opacity": None if alpha >= 1 else alpha}
        api, size = self._api, shape.size
        if shape.kind == "mesh":
            mesh = self._scene.meshes[shape.mesh]
            return [api.add_mesh_simple(name, mesh.vertices, mesh.faces, side="double",
                                        flat_shading=True, **common, **looks)]  # fmt: skip
        if shape.kind == "box":
            return [api.add_box(name, dimensions=size, **common, **looks)]
        if shape.kind in ("sphere", "ellipsoid"):
            scale = size * 3 if shape.kind == "sphere" else size
            return [api.add_icosphere(name, 1.0, scale=scale, **common, **looks)]
        if shape.kind == "arrow":
            ends = np.array([[[0, 0, 0], [0, 0, size[1]]]], float)
            r = size[0]
            return [api.add_arrows(name, ends, colour, shaft_radius=r, head_radius=2.6 * r,
                                   head_length=7 * r, **common)]  # fmt: skip
        return self._round(name, shape, common, looks)

    def _round(self, name: str, shape: Shape, common: Any, looks: Any) -> list[Any]:
        """A cylinder, or with its caps a capsule."""
        radius, length = shape.size
        nodes = [self._api.add_cylinder(name, radius, length, **common, **looks)]
        if shape.kind == "capsule":
            for end in (-1.0, 1.0):
                place = shape.pose[:3, 3] + shape.pose[:3, 2] * (end * length / 2)
                nodes.append(
                    self._api.add_icosphere(f"{name}{end:+.0f}", radius, position=place, **looks)
                )
        return nodes

    def place(self, rows: ArrayLike) -> Array:
        """Bring the robot and its ghosts to configurations (n, nq); returns the robot's poses."""
        poses = link_poses(self._scene.tree, rows)
        turns = self._so3.from_matrix(poses[..., :3, :3]).wxyz
        with self._atomic():
            for frames, own, turn in zip(self._robots, poses, turns, strict=False):
                for frame, pose, wxyz in zip(frames, own, turn, strict=True):
                    frame.wxyz, frame.position = wxyz, pose[:3, 3]
        return np.asarray(poses[0])

    def mark(self, pose: Array, name: str) -> None:
        """Show the axes of the frame that is read, and its name."""
        wxyz, reach = self._so3.from_matrix(pose[:3, :3]).wxyz, self._scene.reach
        if "frame" not in self._extra:
            size = {"axes_length": 0.09 * reach, "axes_radius": 0.004 * reach}
            self._put("frame", self._api.add_frame("/frame", **size))
            self._put("label", self._api.add_label("/frame/name", printable(name)))
        with self._atomic():
            self._extra["frame"].wxyz, self._extra["frame"].position = wxyz, pose[:3, 3]
            self._extra["label"].text = printable(name)

    def ellipsoid(
        self, key: str, found: Ellipsoid | None, at: Array, rgb: Any, scale: float
    ) -> None:
        """Show an ellipsoid at a place, or none."""
        node = None
        if found is not None:
            half = tuple(np.maximum(scale * found.half, 0.004 * self._scene.reach))
            wxyz = self._so3.from_matrix(found.axes).wxyz
            node = self._api.add_icosphere(f"/{key}", 1.0, rgb, scale=half, opacity=0.3, wxyz=wxyz,
                                           position=at)  # fmt: skip
        self._put(key, node)

    def forces(self, poses: Array, index: int, shown: bool) -> None:
        """Arrows that end where forces act; ``index`` is that of the time."""
        reach, arrows = self._scene.reach, []
        pushes = self._scene.pushes if shown else ()
        largest = max((lengths(p.wrenches[:, 3:]).max() for p in pushes), default=0.0)
        for push in pushes:
            marker, wrench = (
                self._scene.frames[push.frame],
                push.wrenches[min(index, len(push.wrenches) - 1)],
            )
            at = marker.pose if marker.body < 0 else product(poses[marker.body], marker.pose)
            vector = wrench[3:] * (0.35 * reach / largest) if largest > 0 else np.zeros(3)
            if lengths(vector) > 1e-6 * reach:
                arrows.append([at[:3, 3] - vector, at[:3, 3]])
        r = 0.008 * reach
        node = None
        if arrows:
            node = self._api.add_arrows("/forces", np.array(arrows), FORCE, shaft_radius=r,
                                        head_radius=2.6 * r, head_length=6 * r)  # fmt: skip
        self._put("forces", node)

    def ties(self, poses: Array) -> None:
        """Lines between the ends of closed loops, and points on both."""
        pairs = []
        for tie in self._scene.ties:
            both = zip(tie.bodies, tie.poses, strict=True)
            pairs.append([(own if b < 0 else product(poses[b], own))[:3, 3] for b, own in both])
        if pairs:
            points = np.array(pairs)
            self._put(
                "ties",
                self._api.add_line_segments(
                    "/ties", points, TIE, thickness=0.008 * self._scene.reach
                ),
            )
            self._put("ends", self._api.add_point_cloud("/ends", points.reshape(-1, 3), TIE,
                      point_size=0.03 * self._scene.reach, point_shape="circle"))  # fmt: skip

    def path(self, points: Array | None) -> None:
        """The way of a frame (n, 3), or none."""
        node = None
        if points is not None and len(points) > 1:
            node = self._api.add_spline_catmull_rom(
                "/path", points, thickness=0.005 * self._scene.reach, color=PATH
            )
        self._put("path", node)

    def show_layer(self, name: str, visible: bool) -> None:
        """Show or hide all shapes of a layer."""
        with self._atomic():
            for node in self.layers.get(name, []):
                node.visible = visible

    def _put(self, key: str, node: Any) -> None:
        """Keep a node under a key; viser itself replaces a node of the same name."""
        old = self._extra.pop(key, None)
        if node is None and old is not None:
            old.remove()
        if node is not None:
            self._extra[key] = node
