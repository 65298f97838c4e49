"""Changes to a URDF that make a problem go away, on a tree that keeps the rest of the file."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from math import hypot

import numpy as np

from linkwise.check.pages import Page, other_name
from linkwise.errors import quote, suggestion
from linkwise.io.urdf import JOINT_KINDS
from linkwise.io.xml import parse_number

Element = ET.Element
TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


# -- changes --------------------------------------------------------------------------------------

HARMLESS = {  # a value that reads, by element and attribute
    ("mass", "value"): "1", ("axis", "xyz"): "1 0 0", ("axis2", "xyz"): "0 1 0",
    ("mesh", "filename"): "mesh", ("box", "size"): "1 1 1", ("color", "rgba"): "1 1 1 1",
    ("joint", "type"): "continuous", ("limit", "lower"): "-1e9", ("limit", "upper"): "1e9",
}  # fmt: skip
PARTS = {  # a child that reads, by its tag
    "mass": {"value": "1"},
    "inertia": {"ixx": "1", "ixy": "0", "ixz": "0", "iyy": "1", "iyz": "0", "izz": "1"},
}


def replace_value(page: Page, element: Element, message: str) -> str:
    """Replace a value that cannot be read."""
    found = re.search(r"(?:^|has no )([A-Za-z_]\w*)(?:=| attribute)", message)
    key = found[1] if found else ""
    if key == "name":
        element.set("name", other_name(""))
        page.orphans += element.tag == "link"
    elif element.tag == "inertia":
        element.attrib.update(PARTS["inertia"])  # all of it: entries of two bodies fit no third
    elif (element.tag, key) in HARMLESS:
        element.set(key, HARMLESS[element.tag, key])
    elif element.tag in ("parent", "child"):
        around = page.parent(element)
        return _unhook(page, around, message) if around is not None else ""
    elif element.tag in ("sphere", "cylinder", "capsule"):
        element.set(key, "1")
    elif element.tag == "mimic" and key == "joint":
        page.remove(element)
    else:
        element.attrib.pop(key, None)
    return ""


def drop(page: Page, element: Element, message: str) -> str:
    """Take an element out."""
    page.remove(element)
    return ""


def drop_macros(page: Page, element: Element, message: str) -> str:
    """Take out every macro of xacro; what they would have written is not another problem."""
    page.needs_xacro = True
    for found in [e for e in page.root.iter() if str(e.tag).startswith("xacro:")]:
        page.remove(found)
    return ""


def drop_copy(page: Page, element: Element, message: str) -> str:
    """Take out a second child; a repair only where it says what the first one says."""
    around = page.parent(element)
    first = None if around is None else around.find(element.tag)
    if first is None:
        return ""
    same = ET.tostring(first).strip() == ET.tostring(element).strip()
    if same or not page.is_output:
        page.remove(element)
    return f"removed the second <{element.tag}>" if same else ""


def rename(page: Page, element: Element, message: str) -> str:
    """Write the tag that was meant."""
    found = re.search(r"unknown element <(.*)>; expected <(.*)>", message)
    assert found is not None
    element.tag = found[2]
    return f"<{found[1]}> renamed to <{found[2]}>"


def rename_key(page: Page, element: Element, message: str) -> str:
    """Write the attribute that was meant."""
    found = re.search(r"unknown attribute ([^=]*)=.*; expected (.*)", message, re.S)
    assert found is not None
    wrong, key = found[1], found[2]
    if wrong not in element.attrib:
        return ""
    if " " not in key and key not in element.attrib:
        element.set(key, element.attrib.pop(wrong))
        return f"{wrong}= renamed to {key}="
    if not page.is_output:
        element.attrib.pop(wrong)
    return ""


def add_part(page: Page, element: Element, message: str) -> str:
    """Add a child that is missing; a joint without its ends is taken out."""
    found = re.search(r"has no <(\w+)>", message)
    tag = found[1] if found else ""
    if tag in PARTS:
        element.append(Element(tag, PARTS[tag]))
    elif element.tag == "joint":
        return _unhook(page, element, message)
    else:
        page.remove(element)
    return ""


def _unhook(page: Page, joint: Element, message: str) -> str:
    """Take a joint out; the link it held is not another problem."""
    page.remove(joint)
    page.orphans += 1
    return ""


def drop_shape(page: Page, element: Element, message: str) -> str:
    """Take out the visual or collision around a geometry."""
    around = page.parent(element)
    page.remove(element if around is None else around)
    return ""


def swap_limits(page: Page, element: Element, message: str) -> str:
    """Exchange lower and upper."""
    lower, upper = element.get("lower", "0"), element.get("upper", "0")
    if parse_number(lower) is None or parse_number(upper) is None:
        return ""
    element.set("lower", upper)
    element.set("upper", lower)
    return f"lower={quote(lower)} and upper={quote(upper)} exchanged"


def change_type(page: Page, element: Element, message: str) -> str:
    """Write the joint type that was meant."""
    said = element.get("type", "")
    meant = suggestion(said, frozenset(JOINT_KINDS))
    if meant or not page.is_output:
        element.set("type", meant or "continuous")
    return f"type={quote(said)} changed to {meant}" if meant else ""


def change_end(page: Page, element: Element, message: str) -> str:
    """Hang a joint whose ends are wrong on a link that is there."""
    found = re.search(r'^(parent|child) link .* perhaps "(.*)"$', message, re.S)
    if found is not None:
        end = element.find(found[1])
        if end is None or page.root.find(f"link[@name='{found[2]}']") is None:
            return _unhook(page, element, message) if not page.is_output else ""
        said = end.get("link", "")
        end.set("link", found[2])
        return f"{found[1]} link {quote(said)} changed to {quote(found[2])}"
    if message.startswith("child link") and "does not exist" in message:
        return _unhook(page, element, message)
    parent = element.find("parent")
    child = element.find("child")
    assert parent is not None and child is not None
    other = _root_link(page)
    if other == child.get("link"):
        page.remove(element)
    else:
        parent.set("link", other)
    return ""


def _root_link(page: Page) -> str:
    """A link that hangs on nothing, or any."""
    children = {c.get("link") for c in page.root.iterfind("joint/child")}
    links = [link.get("name", "") for link in page.root.iterfind("link")]
    return next((name for name in links if name not in children), links[0])


def hang_on_root(page: Page, element: Element, message: str) -> str:
    """Fix a stray link to the first root."""
    joint = Element("joint", {"name": f"to {element.get('name')}", "type": "fixed"})
    joint.append(Element("parent", {"link": _root_link(page)}))
    joint.append(Element("child", {"link": element.get("name", "")}))
    page.root.append(joint)
    return ""


def change_name(page: Page, element: Element, message: str) -> str:
    """Take out a second link; give a second joint another name."""
    if element.tag == "link":
        page.remove(element)
    else:
        element.set("name", other_name(element.get("name", "")))
    return ""


def make_continuous(page: Page, element: Element, message: str) -> str:
    """A revolute joint without a range is what URDF calls continuous."""
    joint = element if element.tag == "joint" else page.parent(element)
    if joint is None or joint.get("type") != "revolute":
        return ""
    joint.set("type", "continuous")
    return f"joint {quote(joint.get('name', ''))}: type revolute changed to continuous"


def change_body(page: Page, element: Element, message: str) -> str:
    """Replace inertias that cannot exist, of a link and of what is fixed to it."""
    link = element if element.tag == "link" else None
    if link is None:
        return ""
    changes = [c for member in _fixed_to(page, link) if (c := _nearest(member))]
    if not changes and not page.is_output:
        _healthy(link)
    return "; ".join(changes)


def _fixed_to(page: Page, link: Element) -> list[Element]:
    links = {e.get("name", ""): e for e in page.root.iterfind("link")}
    found: dict[str, Element] = {}
    todo = [link.get("name", "")]
    while todo:
        name = todo.pop()
        if name in found or name not in links:
            continue
        found[name] = links[name]
        for joint in page.root.iterfind("joint[@type='fixed']"):
            parent, child = joint.find("parent"), joint.find("child")
            if parent is not None and child is not None and parent.get("link") == name:
                todo.append(child.get("link", ""))
    return list(found.values())


def _nearest(link: Element) -> str:
    """Clip negative central second moments of a link, where it has mass and any are negative."""
    mass, inertia = link.find("inertial/mass"), link.find("inertial/inertia")
    if mass is None or inertia is None:
        return ""
    entries = [parse_number(inertia.get(key, "")) for key in TENSOR]
    numbers = [x for x in entries if x is not None]
    if len(numbers) < len(entries) or not (parse_number(mass.get("value", "")) or 0.0) > 0.0:
        return ""
    xx, xy, xz, yy, yz, zz = numbers
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    second = 0.5 * np.trace(tensor) * np.eye(3) - tensor
    values, axes = np.linalg.eigh(second)
    clipped = np.maximum(values, 1e-6 * max(float(values.max()), 1e-9))
    if np.array_equal(values, clipped):
        return ""
    second = axes @ np.diag(clipped) @ axes.T
    tensor = np.trace(second) * np.eye(3) - second
    upper = zip(
        TENSOR, (tensor[i, j] for i, j in zip(*np.triu_indices(3), strict=True)), strict=True
    )
    for key, value in upper:
        inertia.set(key, f"{value + 0.0:.12g}")
    return f"inertia of link {quote(link.get('name', ''))} replaced by the nearest that can exist"


def _healthy(link: Element) -> None:
    """Give a link a body that can exist, so that the next one is looked at."""
    for found in link.findall("inertial"):
        link.remove(found)
    inertial = Element("inertial")
    inertial.append(Element("mass", PARTS["mass"]))
    inertial.append(Element("inertia", PARTS["inertia"]))
    link.append(inertial)


def set_axis(page: Page, axis: Element, message: str) -> str:
    """Write some direction."""
    axis.set("xyz", HARMLESS["axis", "xyz"])
    return ""


def set_mesh(page: Page, mesh: Element, message: str) -> str:
    """Write some path."""
    mesh.set("filename", "mesh")
    return ""


def unit_axis(page: Page, axis: Element, message: str) -> str:
    """Write a direction with length 1."""
    said = axis.get("xyz", "")
    numbers = [float(x) for x in said.split()]
    length = hypot(*numbers)
    axis.set("xyz", " ".join(f"{x / length + 0.0:.16g}" for x in numbers))
    return f"axis xyz={quote(said)} normalised"
