"""Real robots as MJCF, and kinds of defect that no reader should take.

The robots are URDF files that MuJoCo itself writes as MJCF; classes, sites, actuators, a tendon
and an equality are added, so that there is something to spoil.
"""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from faults.document import Element, File, part
from faults.spoil import (
    NUMBERS,
    WORST_NUMBERS,
    Defect,
    add,
    cut,
    drop,
    mark,
    nothing,
    one_number,
    prefixed,
    put,
    remove,
    rename,
    rename_key,
    replaced,
    top,
)

# robots of `faults.document` that MuJoCo takes as they are
MJCF_ROBOTS = [
    "ur5", "xarm7", "kinova", "panda", "z1", "so101", "solo12", "a1", "laikago", "talos_arm",
    "baxter",
]  # fmt: skip


@dataclass
class Model(File):
    """An MJCF file, and the questions that defects ask about it."""

    @classmethod
    def of_urdf(cls, path: Path) -> Model:
        """What MuJoCo makes of a URDF file without its meshes, with more to spoil."""
        import mujoco

        spec = mujoco.MjSpec.from_string(_without_meshes(path))
        spec.compile()
        model = cls(ET.fromstring(spec.to_xml()))
        model.dress()
        ET.indent(model.root)
        return model

    def dress(self) -> None:
        """Add classes, sites, an equality, a tendon and actuators."""
        world = part(self.root, "worldbody")
        classes = Element("default")
        classes.append(Element("default", {"class": "arm"}))
        part(classes, "default").append(Element("joint", {"armature": "0"}))
        self.root.insert(list(self.root).index(world), classes)
        for k, joint in enumerate(self.joints):
            joint.set("class", "arm")
            joint.set("damping", "0.1")
            joint.set("axis", joint.get("axis", "0 0 1"))
            part(self.around(joint), ".").append(Element("site", {"name": f"site{k}"}))
        names = [joint.get("name", "") for joint in self.joints]
        if self.root.find("equality") is None:
            tied = Element("joint", {"joint1": names[-1], "joint2": names[-2]})
            ET.SubElement(self.root, "equality").append(tied)
        ET.SubElement(self.root, "tendon").append(_tendon(names[:2]))
        motors = ET.SubElement(self.root, "actuator")
        motors.extend(
            Element("motor", {"name": f"motor{k}", "joint": name, "ctrlrange": "-1 1"})
            for k, name in enumerate(names)
        )

    @cached_property
    def parents(self) -> dict[Element, Element]:
        """The element around each."""
        return {child: parent for parent in self.root.iter() for child in parent}

    def around(self, element: Element) -> Element:
        """The element around this one."""
        return self.parents[element]

    @cached_property
    def bodies(self) -> list[Element]:
        """Every body."""
        return list(part(self.root, "worldbody").iter("body"))

    @cached_property
    def joints(self) -> list[Element]:
        """Every joint of a body."""
        return [joint for body in self.bodies for joint in body.findall("joint")]

    @cached_property
    def moving(self) -> list[Element]:
        """Inertias of bodies that move."""
        return [i for body in self.bodies if body.find("joint") is not None
                for i in body.findall("inertial")]  # fmt: skip

    @cached_property
    def leaves(self) -> list[Element]:
        """Bodies that move and carry no other, with no shape to take an inertia from."""
        return [
            body
            for body in self.bodies
            if body.find("joint") is not None
            and not any(body.find(f".//{tag}") is not None for tag in ("body", "geom"))
        ]


def _tendon(names: list[str]) -> Element:
    tendon = Element("fixed", {"name": "rope"})
    tendon.extend(Element("joint", {"joint": name, "coef": "1"}) for name in names)
    return tendon


def _without_meshes(path: Path) -> str:
    """A URDF as text: links that are fixed are merged, shapes are simple ones."""
    root = ET.parse(path).getroot()
    for link in root.iter("link"):
        shapes = [*link.findall("visual"), *link.findall("collision")]
        for shape in shapes:
            if shape.tag == "visual" or shape.find("geometry/mesh") is not None:
                link.remove(shape)
    for found in [e for e in root if e.tag in ("mujoco", "gazebo", "transmission")]:
        root.remove(found)
    ET.SubElement(ET.SubElement(root, "mujoco"), "compiler", {"fusestatic": "true"})
    return ET.tostring(root, encoding="unicode")


# -- ways to spoil --------------------------------------------------------------------------------

Spoil = Callable[[Model, Element], None]


def name_of_another(model: Model, element: Element) -> None:
    """Give an element the name of another of its kind."""
    kin = model.bodies if element.tag == "body" else list(model.root.iter(element.tag))
    others = [e for e in kin if e is not element and e.get("name")]
    element.set("name", others[0].get("name", ""))


def double_here(model: Model, element: Element) -> None:
    """Have an element twice."""
    model.around(element).append(copy.deepcopy(element))


def wrapped(tag: str) -> Spoil:
    """Put another element around one."""

    def spoil(model: Model, element: Element) -> None:
        around = model.around(element)
        box = Element(tag)
        around.insert(list(around).index(element), box)
        around.remove(element)
        box.append(element)

    return spoil


def to_world(model: Model, element: Element) -> None:
    """Move an element of a body into the world."""
    model.around(element).remove(element)
    part(model.root, "worldbody").append(element)


def tensor(*factors: float) -> Spoil:
    """Write a full inertia: these, times the largest moment that is there."""

    def spoil(_: Model, inertial: Element) -> None:
        inertial.attrib.pop("quat", None)
        size = max(float(word) for word in inertial.attrib.pop("diaginertia").split())
        inertial.set("fullinertia", " ".join(repr(factor * size) for factor in factors))

    return spoil


def moments(*factors: float) -> Spoil:
    """Write principal moments: these, times the largest that is there."""

    def spoil(_: Model, inertial: Element) -> None:
        size = max(float(word) for word in inertial.get("diaginertia", "1").split())
        inertial.set("diaginertia", " ".join(repr(factor * size) for factor in factors))

    return spoil


def section(tag: str, child: str, **attributes: str) -> Spoil:
    """Add a section with one element."""

    def spoil(_: Model, root: Element) -> None:
        ET.SubElement(ET.SubElement(root, tag), child, attributes)

    return spoil


def tie(**attributes: str) -> Spoil:
    """Change the equality between two joints; FIRST stands for the joint that it moves."""

    def spoil(model: Model, _: Element) -> None:
        found = part(model.root, "equality/joint")
        first = found.get("joint1", "")
        for key, value in attributes.items():
            found.set(key, first if value == "FIRST" else value)

    return spoil


# -- where ----------------------------------------------------------------------------------------


def bodies(model: Model) -> list[Element]:
    """Any body."""
    return model.bodies


def joints(model: Model) -> list[Element]:
    """Any joint of a body."""
    return model.joints


def limited(model: Model) -> list[Element]:
    """Any joint with a range."""
    return [joint for joint in model.joints if joint.get("range")]


def inertials(model: Model) -> list[Element]:
    """Inertias of bodies that move."""
    return [i for i in model.moving if i.get("diaginertia")]


def leaves(model: Model) -> list[Element]:
    """Bodies whose inertia nothing replaces."""
    return model.leaves


def shapes(model: Model) -> list[Element]:
    """Any geom."""
    return list(part(model.root, "worldbody").iter("geom"))


def nested_joints(model: Model) -> list[Element]:
    """Joints of bodies in bodies."""
    return [j for j in model.joints if model.around(model.around(j)).tag == "body"]


def placed(model: Model) -> list[Element]:
    """Bodies with a position."""
    return [body for body in model.bodies if body.get("pos")]


def turned(model: Model) -> list[Element]:
    """Bodies with an orientation."""
    return [body for body in model.bodies if body.get("quat")]


def motors(model: Model) -> list[Element]:
    """Any actuator."""
    return model.root.findall("actuator/motor")


def tied(model: Model) -> list[Element]:
    """The equality of two joints."""
    return model.root.findall("equality/joint")


def pulled(model: Model) -> list[Element]:
    """Joints of a tendon."""
    return model.root.findall("tendon/fixed/joint")


def sites(model: Model) -> list[Element]:
    """Any site."""
    return list(part(model.root, "worldbody").iter("site"))


# -- the table ------------------------------------------------------------------------------------

STRUCTURE: list[Defect[Model]] = [
    Defect("two bodies of one name", bodies, name_of_another),
    Defect("two joints of one name", joints, name_of_another),
    Defect("two sites of one name", sites, name_of_another),
    Defect("two actuators of one name", motors, name_of_another),
    Defect("a joint twice", joints, double_here),
    Defect("two <inertial>", inertials, double_here),
    Defect("a class twice", top, section("default", "default", **{"class": "arm"})),
    Defect("a class without name", top, section("default", "default")),
    Defect("unknown class of a joint", joints, put("class", "no_such_class")),
    Defect("unknown class of children", bodies, put("childclass", "no_such_class")),
    Defect("unknown type of a joint", joints, put("type", "revolute")),
    Defect("a misspelt type of a joint", joints, put("type", "hinje")),
    Defect("unknown type of a geom", shapes, put("type", "pyramid")),
    Defect("unknown mesh of a geom", shapes, put("mesh", "no_such_mesh")),
    Defect("a free joint inside a body", nested_joints, put("type", "free")),
    Defect("a free joint beside another", bodies, add("joint", name="afloat", type="free")),
    Defect("a joint of the world", joints, to_world),
    Defect("an inertia of the world", inertials, to_world),
    Defect("a body in a joint", joints, add("body", name="inner")),
    Defect("a body outside the world", top, add("body", name="outer")),
    Defect("a joint in a joint", joints, wrapped("joint")),
    Defect("a robot inside the robot", top, add("mujoco")),
    Defect("equality with an unknown joint", tied, put("joint2", "no_such_joint")),
    Defect("equality of an unknown joint", tied, put("joint1", "no_such_joint")),
    Defect("equality of no joint", tied, drop("joint1")),
    Defect("equality with itself", tied, tie(joint2="FIRST")),
    Defect("equality of five words", tied, put("polycoef", "a b c d e")),
    Defect("tendon over an unknown joint", pulled, put("joint", "no_such_joint")),
    Defect("tendon over no joint", pulled, drop("joint")),
    Defect("actuator of an unknown joint", motors, put("joint", "no_such_joint")),
    Defect("actuator of nothing", motors, drop("joint")),
    Defect("sensor of an unknown joint", top, section("sensor", "jointpos", joint="no_such")),
    Defect("exclude of unknown bodies", top, section("contact", "exclude", body1="x", body2="y")),
    Defect("a model in the model", top, section("asset", "model", name="m", file="m.xml")),
]  # fmt: skip

WORDS: list[Defect[Model]] = [
    Defect("<bdoy>", bodies, rename("bdoy")),
    Defect("<Body>", bodies, rename("Body")),
    Defect("<jiont>", joints, rename("jiont")),
    Defect("<inertail>", inertials, rename("inertail")),
    Defect("<goem>", shapes, rename("goem")),
    Defect("<worldbdoy>", top, rename("worldbdoy", "worldbody")),
    Defect("<equalty>", top, rename("equalty", "equality")),
    Defect("nmae=", joints, rename_key("name", "nmae")),
    Defect("axsi=", joints, rename_key("axis", "axsi")),
    Defect("rnage=", limited, rename_key("range", "rnage")),
    Defect("msas=", inertials, rename_key("mass", "msas")),
    Defect("diaginerta=", inertials, rename_key("diaginertia", "diaginerta")),
    Defect("psoition=", placed, rename_key("pos", "psoition")),
    Defect("limited is maybe", joints, put("limited", "maybe")),
    Defect("angles in grads", top, put("angle", "g", "compiler")),
    Defect("an unknown flag", top, section("option", "flag", gravity="off")),
]  # fmt: skip

VECTORS: list[Defect[Model]] = [
    Defect("a position of two numbers", bodies, put("pos", "0 0")),
    Defect("a position of four numbers", bodies, put("pos", "0 0 0 0")),
    Defect("a quaternion of three numbers", bodies, put("quat", "1 0 0")),
    Defect("two orientations", turned, put("euler", "0 0 1")),
    Defect("an axis of one number", joints, put("axis", "1")),
    Defect("an axis of four numbers", joints, put("axis", "0 0 1 0")),
    Defect("a range of one number", joints, put("range", "1")),
    Defect("a range of three numbers", joints, put("range", "0 1 2")),
    Defect("two masses in one", inertials, put("mass", "1 2")),
    Defect("two moments", inertials, put("diaginertia", "1 1")),
    Defect("a tensor of five numbers", inertials, tensor(1, 1, 1, 0, 0)),
    Defect("gravity of two numbers", top, add("option", gravity="0 0")),
    Defect("a step of NaN", top, add("option", timestep="nan")),
    *(Defect(f"mass {w!r}", inertials, put("mass", w)) for w in NUMBERS),
    *(Defect(f"position {w!r}", placed, one_number(1, w, "pos")) for w in NUMBERS),
    *(Defect(f"axis {w!r}", joints, one_number(2, w, "axis")) for w in WORST_NUMBERS),
    *(Defect(f"moment {w!r}", inertials, one_number(2, w, "diaginertia")) for w in WORST_NUMBERS),
    *(Defect(f"quaternion {w!r}", turned, one_number(0, w, "quat")) for w in WORST_NUMBERS),
    *(Defect(f"range {w!r}", limited, one_number(1, w, "range")) for w in WORST_NUMBERS),
    *(Defect(f"damping {w!r}", joints, put("damping", w)) for w in NUMBERS),
    *(Defect(f"armature {w!r}", joints, put("armature", w)) for w in WORST_NUMBERS),
    *(Defect(f"reference {w!r}", joints, put("ref", w)) for w in WORST_NUMBERS),
    *(Defect(f"gravity {w!r}", top, add("option", gravity=f"0 0 {w}")) for w in WORST_NUMBERS),
]  # fmt: skip

PHYSICS: list[Defect[Model]] = [
    Defect("a zero axis", joints, put("axis", "0 0 0")),
    Defect("an axis next to zero", joints, put("axis", "1e-200 0 0")),
    Defect("a zero quaternion", bodies, put("quat", "0 0 0 0")),
    Defect("a quaternion next to zero", bodies, put("quat", "1e-200 0 1e-200 0")),
    Defect("negative mass", inertials, put("mass", "-1")),
    Defect("zero mass", inertials, put("mass", "0")),
    Defect("mass next to zero", inertials, put("mass", "1e-320")),
    Defect("no mass", inertials, drop("mass")),
    Defect("no moments", inertials, drop("diaginertia")),
    Defect("no inertia on a moving body", leaves, remove("inertial")),
    Defect("negative moment", inertials, moments(1, 1, -1)),
    Defect("zero inertia", inertials, moments(0, 0, 0)),
    Defect("inertia next to zero", inertials, put("diaginertia", "1e-310 1e-310 1e-310")),
    Defect("triangle inequality broken", inertials, moments(1, 1, 3)),
    Defect("indefinite inertia", inertials, tensor(1, 1, 1, 2, 0, 0)),
    Defect("triangle inequality broken in a tensor", inertials, tensor(1, 1, 3, 0, 0, 0)),
    Defect("mass beyond all measure", inertials, put("mass", "1e308")),
    Defect("inertia beyond all measure", inertials, put("diaginertia", "1e308 1e308 1e308")),
    Defect("a length beyond all measure", placed, one_number(0, "1e300", "pos")),
    Defect("lower above upper", joints, put("range", "2 1")),
    Defect("a control range turned round", motors, put("ctrlrange", "1 -1")),
    Defect("negative armature", joints, put("armature", "-1")),
    Defect("negative friction", joints, put("frictionloss", "-1")),
    Defect("a geom of negative size", shapes, put("size", "-1 -1 -1")),
    Defect("a geom without size", shapes, drop("size")),
    Defect("negative density", shapes, put("density", "-1")),
]  # fmt: skip

TEXT: list[Defect[Model]] = [
    Defect("cut off", bodies, mark, cut),
    Defect("an attribute twice", joints, mark, replaced('name="again"')),
    Defect("an attribute without quotes", joints, mark, replaced("mark=here")),
    Defect("an undefined entity", joints, mark, replaced('mark="&nope;"')),
    Defect("a bare <", bodies, mark, replaced('mark="<"')),
    Defect("a bare &", bodies, mark, replaced('mark="a & b"')),
    Defect("a control character", bodies, mark, replaced('mark="\x01"')),
    Defect("a xacro expression", bodies, put("pos", "0 0 ${height}")),
    Defect("a xacro element", bodies, add("xacro:box")),
    Defect("a wrong end tag", top, nothing, lambda text: text.replace("</body>", "</joint>", 1)),
    Defect("a wrong root", top, rename("mujcoo")),
    Defect("URDF in place of MJCF", top, rename("robot")),
    Defect("SDF in place of MJCF", top, rename("sdf")),
    Defect("two roots", top, nothing, lambda text: text + "<mujoco/>"),
    Defect("no bodies", top, lambda _, root: root.clear()),
    Defect("a DTD", top, nothing, prefixed("<!DOCTYPE mujoco>")),
    Defect("an entity", top, nothing, prefixed('<!DOCTYPE mujoco [<!ENTITY a "b">]>')),
    Defect("an include that is not there", bodies, add("include", file="no_such.xml")),
    Defect("an include of nothing", bodies, add("include")),
    Defect("an include out of the folder", bodies, add("include", file="../../../etc/passwd")),
    Defect("an include of a device", bodies, add("include", file="/dev/zero")),
]  # fmt: skip

MJCF_DEFECTS = [*STRUCTURE, *WORDS, *VECTORS, *PHYSICS, *TEXT]

# names that are exchanged undo each other; of a file of another format nothing else is read
APART = ("of one name", "root", "in place of")
COMBINABLE = [d for d in MJCF_DEFECTS if not any(words in d.name for words in APART)]
