"""A real robot file as a tree that defects can be put into."""

from __future__ import annotations

import copy
import site
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

Element = ET.Element

# files of example-robot-data that linkwise takes as they are: arms, hands, legs, wheels
ROBOTS = {
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "z1": "z1_description/urdf/z1.urdf",
    "so101": "so_arm_description/urdf/so101.urdf",
    "allegro": "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "anymal": "anymal_b_simple_description/robots/anymal.urdf",
    "talos_arm": "talos_data/robots/talos_left_arm.urdf",
    "tiago": "tiago_description/robots/tiago_no_hand.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
}


def robots_folder() -> Path | None:
    """Where example-robot-data keeps its robots, found without importing Pinocchio."""
    for folder in site.getsitepackages():
        robots = Path(folder, "cmeel.prefix", "share", "example-robot-data", "robots")
        if robots.is_dir():
            return robots
    return None


@dataclass
class File:
    """A parsed file of any format."""

    root: Element

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a robot file, one element to a line."""
        root = ET.parse(path).getroot()
        ET.indent(root)
        return cls(root)

    def copy(self) -> Self:
        """The same document, to be spoiled; elements keep their place in `iter` order."""
        return type(self)(copy.deepcopy(self.root))

    def text(self) -> str:
        """The document as a file."""
        return '<?xml version="1.0"?>\n' + ET.tostring(self.root, encoding="unicode") + "\n"


@dataclass
class Document(File):
    """A URDF file, and the questions that defects ask about it."""

    @cached_property
    def links(self) -> list[Element]:
        """Every link."""
        return self.root.findall("link")

    @cached_property
    def joints(self) -> list[Element]:
        """Every joint."""
        return self.root.findall("joint")

    @cached_property
    def moving(self) -> list[Element]:
        """Joints that move."""
        return [joint for joint in self.joints if joint.get("type") != "fixed"]

    @cached_property
    def limited(self) -> list[Element]:
        """Moving joints whose range the file must give."""
        return [joint for joint in self.moving if joint.get("type") in ("revolute", "prismatic")]

    @cached_property
    def driving(self) -> list[Element]:
        """Moving joints that follow no other and that no other follows."""
        led = {m.get("joint") for m in self.root.iter("mimic")}
        free = [j for j in self.limited if j.find("mimic") is None]
        return [j for j in free if j.get("name") not in led]

    @cached_property
    def shapes(self) -> list[Element]:
        """Visual and collision shapes, of any kind."""
        return [g for g in self.root.iter("geometry") if len(g)]

    # -- the tree -------------------------------------------------------------------------------

    def copy(self) -> Self:
        """The same document; defects that ask about its tree ask about the tree without defects."""
        twin = super().copy()
        assert twin.below is not None
        return twin

    @cached_property
    def below(self) -> dict[str, list[tuple[Element, str]]]:
        """Joints and their child links, by their parent link."""
        found: dict[str, list[tuple[Element, str]]] = {}
        for joint in self.joints:
            found.setdefault(end(joint, "parent"), []).append((joint, end(joint, "child")))
        return found

    @cached_property
    def base(self) -> str:
        """The root link."""
        children = {end(joint, "child") for joint in self.joints}
        return next(n for link in self.links if (n := link.get("name", "")) not in children)

    def subtree(self, link: str, stop: Callable[[Element], bool] = lambda _: False) -> list[str]:
        """A link and all that hangs on it, not past the joints at which to stop."""
        found, todo = [], [link]
        while todo:
            name = todo.pop()
            found.append(name)
            todo += [child for j, child in self.below.get(name, []) if not stop(j)]
        return found

    @cached_property
    def sole(self) -> list[Element]:
        """Links that are all the inertia of a moving body: what is wrong there is felt."""
        return self._sole(self.moving)

    @cached_property
    def sole_leaf(self) -> list[Element]:
        """Those of them that carry no other moving joint."""
        leaves = [
            joint
            for joint in self.moving
            if not any(
                j.get("type") != "fixed"
                for name in self.subtree(end(joint, "child"))
                for j, _ in self.below.get(name, [])
            )
        ]
        return self._sole(leaves)

    def _sole(self, joints: list[Element]) -> list[Element]:
        by_name = {link.get("name", ""): link for link in self.links}
        found = []
        for joint in joints:
            names = self.subtree(end(joint, "child"), lambda j: j.get("type") != "fixed")
            heavy = [by_name[n] for n in names if by_name[n].find("inertial") is not None]
            armature = joint.find("dynamics[@armature]")
            if len(heavy) == 1 and armature is None and _mass(heavy[0]) > 0.0:
                found.append(heavy[0])
        return found


def _mass(link: Element) -> float:
    mass = link.find("inertial/mass")
    return 0.0 if mass is None else float(mass.get("value", "0"))


def end(joint: Element, which: str) -> str:
    """The link at one end of a joint."""
    found = joint.find(which)
    return "" if found is None else found.get("link", "")


def part(element: Element, path: str) -> Element:
    """The part of an element that a defect is to spoil."""
    found = element.find(path)
    assert found is not None, path
    return found
