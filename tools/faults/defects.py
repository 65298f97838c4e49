"""Kinds of defect: each leaves a file that no reader should take.

A defect says which elements it can be put into (``where``) and how one is spoiled (``spoil``). A
place where it would do no harm, such as the inertia of a link that never moves, is not eligible.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection

from faults.document import Document, Element, end, part
from faults.spoil import (
    NUMBERS,
    WORST_NUMBERS,
    Defect,
    add,
    cut,
    double,
    drop,
    instead,
    mark,
    nothing,
    one_number,
    only,
    prefixed,
    put,
    remove,
    rename,
    rename_key,
    replaced,
    top,
    within,
)

Spoil = Callable[[Document, Element], None]


def remove_from_root(document: Document, element: Element) -> None:
    """Take a link or joint away."""
    document.root.remove(element)


def double_in_root(document: Document, element: Element) -> None:
    """Have a link or joint twice."""
    document.root.append(copy.deepcopy(element))


def name_of_another(document: Document, element: Element) -> None:
    """Give a link or joint the name of another."""
    others = [e for e in document.root.findall(element.tag) if e is not element]
    element.set("name", others[0].get("name", ""))


def second_parent(document: Document, joint: Element) -> None:
    """Hang a link on a second joint."""
    extra = copy.deepcopy(joint)
    extra.set("name", "one_too_many")
    part(extra, "parent").set("link", document.base)
    document.root.append(extra)


def close_cycle(document: Document, joint: Element) -> None:
    """Hang a joint on a link that it carries."""
    carried = document.subtree(end(joint, "child"))
    part(joint, "parent").set("link", carried[-1])


def turn_round(_: Document, joint: Element) -> None:
    """Exchange parent and child."""
    parent, child = part(joint, "parent"), part(joint, "child")
    a, b = parent.get("link", ""), child.get("link", "")
    parent.set("link", b)
    child.set("link", a)


def stray_link(document: Document, _: Element) -> None:
    """Add a link that no joint holds."""
    document.root.append(Element("link", {"name": "stray"}))


def moved_out(path: str) -> Spoil:
    """Move a part of an element to the top of the file."""

    def spoil(document: Document, element: Element) -> None:
        found = part(element, path)
        element.remove(found)
        document.root.append(found)

    return spoil


def follow(**attributes: str) -> Spoil:
    """Make a joint follow something."""

    def spoil(document: Document, joint: Element) -> None:
        values = {k: _meaning(document, joint, v) for k, v in attributes.items()}
        joint.append(Element("mimic", values))

    return spoil


def _meaning(document: Document, joint: Element, word: str) -> str:
    """What a stand-in for a joint's name stands for."""
    if word == "ITSELF":
        return joint.get("name", "")
    if word == "ANOTHER":
        return next(n for j in document.driving if (n := j.get("name", "")) != joint.get("name"))
    if word == "FIXED":
        fixed = Element("joint", {"name": "rigid", "type": "fixed"})
        fixed.append(Element("parent", {"link": document.base}))
        fixed.append(Element("child", {"link": "rigid_link"}))
        document.root.append(Element("link", {"name": "rigid_link"}))
        document.root.append(fixed)
        return "rigid"
    return word


def follow_each_other(document: Document, joint: Element) -> None:
    """Make two joints follow each other."""
    first = next(j for j in document.driving if j is not joint)
    first.append(Element("mimic", {"joint": joint.get("name", "")}))
    joint.append(Element("mimic", {"joint": first.get("name", "")}))


def scaled_inertia(**factors: float) -> Spoil:
    """Multiply entries of an inertia by the sum of its diagonal, and then by these."""

    def spoil(_: Document, link: Element) -> None:
        inertia = part(link, "inertial/inertia")
        size = sum(abs(float(inertia.get(key, "0"))) for key in ("ixx", "iyy", "izz")) or 1.0
        for key, factor in factors.items():
            inertia.set(key, repr(factor * size))

    return spoil


def inertia_of(value: str) -> Spoil:
    """Give a link an inertia that is the same about every axis."""

    def spoil(_: Document, link: Element) -> None:
        inertia = part(link, "inertial/inertia")
        for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"):
            inertia.set(key, value if key in ("ixx", "iyy", "izz") else "0")

    return spoil


# -- where --------------------------------------------------------------------------------------


def links(document: Document) -> list[Element]:
    """Any link."""
    return document.links


def joints(document: Document) -> list[Element]:
    """Any joint."""
    return document.joints


def moving(document: Document) -> list[Element]:
    """Any joint that moves."""
    return document.moving


def limited(document: Document) -> list[Element]:
    """Any joint with a range, and its limit written with both ends."""
    return [j for j in document.limited if j.find("limit[@lower][@upper]") is not None]


def heavy(document: Document) -> list[Element]:
    """Any link with an inertia."""
    return [link for link in document.links if link.find("inertial/mass") is not None]


def placed(document: Document) -> list[Element]:
    """Any joint with an origin of position and angles."""
    return [j for j in document.joints if j.find("origin[@xyz][@rpy]") is not None]


def carried(document: Document) -> list[Element]:
    """Any moving joint with a position."""
    return [j for j in document.moving if j.find("origin[@xyz]") is not None]


def axed(document: Document) -> list[Element]:
    """Any moving joint with an axis."""
    return [j for j in document.moving if j.find("axis[@xyz]") is not None]


def carrying(document: Document) -> list[Element]:
    """Joints that do not start at the base, so that turning one round breaks the tree."""
    return [j for j in document.joints if end(j, "parent") != document.base]


def drivers(document: Document) -> list[Element]:
    """Joints that could follow another, where there are enough of them to spoil."""
    return document.driving if len(document.driving) >= 3 else []


def sole(document: Document) -> list[Element]:
    """Links that are all the inertia of a moving body."""
    return document.sole


def sole_leaf(document: Document) -> list[Element]:
    """Links that are all the inertia of the last moving body of a branch."""
    return document.sole_leaf


def shapes(document: Document) -> list[Element]:
    """Geometries of links."""
    return document.shapes


def meshes(document: Document) -> list[Element]:
    """Meshes of links."""
    return [mesh for shape in document.shapes for mesh in shape.findall("mesh")]


def dressed(document: Document) -> list[Element]:
    """Links with something to see."""
    return [link for link in document.links if link.find("visual/geometry") is not None]


# -- the table ------------------------------------------------------------------------------------

STRUCTURE = [
    Defect("unknown parent", joints, put("link", "no_such_link", "parent")),
    Defect("unknown child", joints, put("link", "no_such_link", "child")),
    Defect("no <parent>", joints, remove("parent")),
    Defect("no <child>", joints, remove("child")),
    Defect("<parent> names nothing", joints, drop("link", "parent")),
    Defect("<child> names nothing", joints, drop("link", "child")),
    Defect("<parent> names an empty name", joints, put("link", "", "parent")),
    Defect("two links of one name", links, name_of_another),
    Defect("two joints of one name", joints, name_of_another),
    Defect("a link twice", links, double_in_root),
    Defect("a joint twice", joints, double_in_root),
    Defect("two parents", moving, second_parent),
    Defect("a cycle", joints, close_cycle),
    Defect("a joint turned round", carrying, turn_round),
    Defect(
        "a joint to itself", joints, lambda _, j: part(j, "parent").set("link", end(j, "child"))
    ),
    Defect("a stray link", top, stray_link),
    Defect("a joint is missing", joints, remove_from_root),
    Defect("a link is missing", links, remove_from_root),
    Defect("a link without name", links, drop("name")),
    Defect("a joint without name", joints, drop("name")),
    Defect("a link with a blank name", links, put("name", "  ")),
    Defect("a joint without type", joints, drop("type")),
    Defect("a misspelt type", moving, put("type", "revolutte")),
    Defect("an unknown type", joints, put("type", "ball_and_socket")),
    Defect("a blank type", joints, put("type", "")),
    Defect("two <parent>", joints, double("parent")),
    Defect("two <child>", joints, double("child")),
    Defect("two <origin> of a joint", placed, double("origin")),
    Defect("two <axis>", axed, double("axis")),
    Defect("two <limit>", limited, double("limit")),
    Defect("two <inertial>", heavy, double("inertial")),
    Defect("two <mass>", heavy, within("inertial", double("mass"))),
    Defect("two <inertia>", heavy, within("inertial", double("inertia"))),
    Defect("<inertial> outside its link", heavy, moved_out("inertial")),
    Defect("<axis> outside its joint", axed, moved_out("axis")),
    Defect("<limit> in a link", links, add("limit", lower="0", upper="1")),
    Defect("a joint inside a link", links, add("joint", name="inner", type="fixed")),
    Defect("a robot inside the robot", top, add("robot", name="inner")),
]

WORDS = [
    Defect("<lnik>", links, rename("lnik")),
    Defect("<Link>", links, rename("Link")),
    Defect("<jiont>", joints, rename("jiont")),
    Defect("<inertail>", heavy, rename("inertail", "inertial")),
    Defect("<mas>", heavy, rename("mas", "inertial/mass")),
    Defect("<inertai>", heavy, rename("inertai", "inertial/inertia")),
    Defect("<orgin>", placed, rename("orgin", "origin")),
    Defect("<axsi>", axed, rename("axsi", "axis")),
    Defect("<limits>", limited, rename("limits", "limit")),
    Defect("<parrent>", joints, rename("parrent", "parent")),
    Defect("<chld>", joints, rename("chld", "child")),
    Defect("xzy=", placed, rename_key("xyz", "xzy", "origin")),
    Defect("rpi=", placed, rename_key("rpy", "rpi", "origin")),
    Defect("vaule=", heavy, rename_key("value", "vaule", "inertial/mass")),
    Defect("lowr=", limited, rename_key("lower", "lowr", "limit")),
    Defect("ixxx=", heavy, rename_key("ixx", "ixxx", "inertial/inertia")),
    Defect("tpye=", joints, rename_key("type", "tpye")),
    Defect("nmae=", links, rename_key("name", "nmae")),
    Defect("<mesh> without filename", meshes, drop("filename")),
    Defect("<mesh> with a blank filename", meshes, put("filename", "")),
    Defect("<mesh> scaled by two numbers", meshes, put("scale", "1 1")),
    Defect("<visual> without geometry", dressed, within("visual", remove("geometry"))),
    Defect("a geometry without shape", shapes, lambda _, e: e.clear()),
    Defect("a geometry of two shapes", shapes, add("sphere", radius="1")),
    Defect("a sphere of negative radius", shapes, only("sphere", radius="-1")),
    Defect("a box of two lengths", shapes, only("box", size="1 2")),
]  # fmt: skip

VECTORS = [
    Defect("an origin of two numbers", placed, put("xyz", "0 0", "origin")),
    Defect("an origin of four numbers", placed, put("xyz", "0 0 0 0", "origin")),
    Defect("two angles", placed, put("rpy", "0 0", "origin")),
    Defect("an axis of one number", axed, put("xyz", "1", "axis")),
    Defect("two masses in one", heavy, put("value", "1 2", "inertial/mass")),
    *(Defect(f"mass {w!r}", heavy, put("value", w, "inertial/mass")) for w in NUMBERS),
    *(Defect(f"position {w!r}", placed, one_number(1, w, "xyz", "origin")) for w in NUMBERS),
    *(Defect(f"axis {w!r}", axed, one_number(2, w, "xyz", "axis")) for w in WORST_NUMBERS),
    *(Defect(f"inertia {w!r}", heavy, put("izz", w, "inertial/inertia")) for w in WORST_NUMBERS),
    *(Defect(f"angle {w!r}", placed, one_number(0, w, "rpy", "origin")) for w in WORST_NUMBERS),
    *(Defect(f"limit {w!r}", limited, put("upper", w, "limit")) for w in WORST_NUMBERS),
]  # fmt: skip

PHYSICS = [
    Defect("a zero axis", axed, put("xyz", "0 0 0", "axis")),
    Defect("negative mass", heavy, put("value", "-1", "inertial/mass")),
    Defect("zero mass", sole_leaf, put("value", "0", "inertial/mass")),
    Defect("no inertia on a moving body", sole_leaf, remove("inertial")),
    Defect("no <mass>", heavy, within("inertial", remove("mass"))),
    Defect("no <inertia>", heavy, within("inertial", remove("inertia"))),
    Defect("no ixx", heavy, drop("ixx", "inertial/inertia")),
    Defect("no izz", heavy, drop("izz", "inertial/inertia")),
    Defect("no mass value", heavy, drop("value", "inertial/mass")),
    Defect("negative moment", sole, scaled_inertia(izz=-1.0)),
    Defect("all moments negative", sole, scaled_inertia(ixx=-1.0, iyy=-1.0, izz=-1.0)),
    Defect("indefinite inertia", sole, scaled_inertia(ixy=2.0)),
    Defect("triangle inequality broken", sole, scaled_inertia(ixx=1.0, iyy=1.0, izz=3.0)),
    Defect("zero inertia", sole_leaf, inertia_of("0")),
    Defect("inertia next to zero", sole, inertia_of("1e-310")),
    Defect("mass next to zero", sole, put("value", "1e-320", "inertial/mass")),
    Defect("mass beyond all measure", sole, put("value", "1e308", "inertial/mass")),
    Defect("inertia beyond all measure", sole, put("ixx", "1e308", "inertial/inertia")),
    Defect("a length beyond all measure", carried, one_number(0, "1e300", "xyz", "origin")),
    Defect("lower above upper", limited, instead("limit", lower="2", upper="1")),
    Defect("negative effort", limited, put("effort", "-1", "limit")),
    Defect("negative velocity", limited, put("velocity", "-1", "limit")),
    Defect("negative damping", moving, instead("dynamics", damping="-1")),
    Defect("negative friction", moving, instead("dynamics", friction="-1")),
    Defect("follows an unknown joint", drivers, follow(joint="no_such_joint")),
    Defect("follows itself", drivers, follow(joint="ITSELF")),
    Defect("follows a fixed joint", drivers, follow(joint="FIXED")),
    Defect("follows a follower of its own", drivers, follow_each_other),
    Defect("follows nothing", drivers, follow(multiplier="1")),
    Defect("follows NaN times", drivers, follow(joint="ANOTHER", multiplier="nan")),
    Defect("follows by an empty offset", drivers, follow(joint="ANOTHER", offset="")),
]  # fmt: skip


TEXT = [
    Defect("cut off", links, mark, cut),
    Defect("an attribute twice", joints, mark, replaced('name="again"')),
    Defect("an attribute without quotes", joints, mark, replaced("mark=here")),
    Defect("an undefined entity", joints, mark, replaced('mark="&nope;"')),
    Defect("a bare <", links, mark, replaced('mark="<"')),
    Defect("a bare &", links, mark, replaced('mark="a & b"')),
    Defect("a control character", links, mark, replaced('mark="\x01"')),
    Defect("a xacro expression", links, mark, replaced('type="${size}"')),
    Defect("a xacro element", links, add("xacro:box")),
    Defect("a wrong end tag", links, nothing, lambda text: text.replace("</link>", "</joint>", 1)),
    Defect("a wrong root", top, rename("rboot")),
    Defect("MJCF in place of URDF", top, rename("mujoco")),
    Defect("SDF in place of URDF", top, rename("sdf")),
    Defect("two roots", top, nothing, lambda text: text + '<robot name="second"/>'),
    Defect("no links", top, lambda _, root: root.clear()),
    Defect("a DTD", top, nothing, prefixed("<!DOCTYPE robot>")),
    Defect("an entity", top, nothing, prefixed('<!DOCTYPE robot [<!ENTITY a "b">]>')),
]

DEFECTS = [*STRUCTURE, *WORDS, *VECTORS, *PHYSICS, *TEXT]

# -- which go together -----------------------------------------------------------------------------

# of a file that is not XML nothing else is read; joints that others follow are not their own; what
# moves no inertia is judged where nothing else is wrong
_ALONE = (
    "of one name", "a link twice", "a joint twice", "a robot inside", "in place of", "root",
    "xacro", "no links", "follows a", "follows NaN", "follows by", "zero mass", "no inertia on",
    "zero inertia", "inertia next to zero",
)  # fmt: skip
COMBINABLE = [d for d in DEFECTS if d.after is str and not any(words in d.name for words in _ALONE)]
# each leaves a link without a joint, or a joint without a link: with two of them, nobody can say
# which belongs to which
_LOSSES = {
    "unknown parent", "unknown child", "no <child>", "<child> names nothing", "a joint is missing",
    "a stray link", "a link without name", "a link with a blank name", "a link is missing", "nmae=",
    "a cycle", "no <parent>", "<parent> names nothing", "<parent> names an empty name",
    "a joint to itself", "two parents", "a joint turned round",
}  # fmt: skip


# where nobody knows whether a joint moves, or what it holds, bodies beside it are not judged
_UNSURE = _LOSSES | {"an unknown type", "a blank type", "a joint without type"}
_BODIES = {
    "negative moment", "all moments negative", "indefinite inertia", "triangle inequality broken",
    "mass next to zero",
}  # fmt: skip
# a joint without name may be the one that is missing, and is what tells of a missing link
_NAMELESS, _MISSING = {"a joint without name"}, {"a joint is missing", "a link is missing"}
_APART = (
    (_LOSSES, _LOSSES), (_UNSURE, _BODIES), (_BODIES, _UNSURE), (_NAMELESS, _MISSING),
    (_MISSING, _NAMELESS),
)  # fmt: skip


def together(name: str, others: Collection[str]) -> bool:
    """Whether a defect can be told from others in the same file."""
    hidden = any(name in some and not more.isdisjoint(others) for some, more in _APART)
    return name not in others and not hidden
