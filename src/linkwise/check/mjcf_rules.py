"""Kinds of problem in an MJCF: what to advise, and how to make them go away.

Words in quotes before "(says MuJoCo's compiler)" are MuJoCo's; the others are our reader's. As in
`linkwise.check.urdf_rules`, a change that is a repair is written, any other clears the view.
"""

from __future__ import annotations

import os
import re

from linkwise.check import repairs
from linkwise.check.pages import Element, Page, other_name
from linkwise.check.repairs import drop
from linkwise.check.urdf_rules import XML_RULES, rule
from linkwise.errors import quote, suggestion

HARMLESS = {  # a value that reads, by element and attribute; others are left out
    ("inertial", "mass"): "1", ("inertial", "pos"): "0 0 0",
    ("inertial", "diaginertia"): "1 1 1", ("inertial", "fullinertia"): "1 1 1 0 0 0",
    ("geom", "size"): "1 1 1", ("replicate", "count"): "1",
}  # fmt: skip
BODY = {"pos": "0 0 0", "mass": "1", "diaginertia": "1 1 1"}  # an inertia that can exist
ORIENTATIONS = ("fullinertia", "quat", "axisangle", "euler", "xyaxes", "zaxis")
JOINT_TYPES = frozenset(("hinge", "slide", "ball", "free"))
WRITTEN_AS = {"body_pos": "pos", "body_quat": "quat", "jnt_axis": "axis", "jnt_pos": "pos",
              "jnt_range": "range", "qpos0": "ref"}  # fmt: skip
TETRAHEDRON = "0 0 0 1 0 0 0 1 0 0 0 1"


def named_what_is_gone(page: Page, message: str) -> bool:
    """Whether a name is missed because an earlier change took its element away."""
    missed = re.search(r"unknown|unrecognized|not found", message)
    return bool(missed and page.gone.intersection(re.findall(r"'([^']*)'", message)))


# -- changes --------------------------------------------------------------------------------------


def drop_value(page: Page, element: Element, message: str) -> str:
    """Replace a value that cannot be read, or leave it out."""
    found = re.search(r"^(\w+)=|(?:attribute|missing:) '(\w+)'|^(\w+) is", message)
    key = next(filter(None, found.groups()), "") if found else ""
    key = WRITTEN_AS.get(key, key)
    if (element.tag, key) in HARMLESS:
        element.set(key, HARMLESS[element.tag, key])
    elif key in element.attrib:
        element.attrib.pop(key)
    elif key in ("armature", "damping", "frictionloss"):  # said by a class
        element.set(key, "0")
    elif element.tag == "body":
        give_inertia(page, element, message)
    else:
        drop(page, element, message)
    return ""


def drop_word(page: Page, element: Element, message: str) -> str:
    """Leave out the attribute whose value is quoted."""
    words = re.findall(r"'([^']*)'|=\"([^\"]*)\"", message)
    said = {word for pair in words for word in pair if word}
    keys = [key for key, value in element.attrib.items() if value in said and key != "name"]
    for key in keys:
        element.attrib.pop(key)
    if not keys:
        drop(page, element, message)
    return ""


def drop_reference(page: Page, element: Element, message: str) -> str:
    """Take out what refers to nothing; a geom without its material is still a geom."""
    return (drop_word if element.tag in ("geom", "site") else drop)(page, element, message)


def drop_class(page: Page, element: Element, message: str) -> str:
    """Leave out the class."""
    element.attrib.pop("childclass" if "childclass" in message else "class", None)
    return ""


def drop_shape(page: Page, element: Element, message: str) -> str:
    """Make a geom a sphere."""
    for key in ("mesh", "hfield", "fromto"):
        element.attrib.pop(key, None)
    element.attrib.update({"type": "sphere", "size": "1"})
    return ""


def drop_file(page: Page, element: Element, message: str) -> str:
    """Leave out the file that an element names."""
    if element.tag == "include":
        return drop(page, element, message)
    for key in [key for key in element.attrib if key.startswith("file")]:
        stem = os.path.splitext(os.path.basename(element.attrib.pop(key)))[0]
        element.attrib.setdefault("name", stem or "file")
    if element.tag == "mesh":
        element.set("vertex", TETRAHEDRON)
    elif element.tag == "hfield":
        element.attrib.update({"nrow": "2", "ncol": "2"})
    return ""


def change_name(page: Page, element: Element, message: str) -> str:
    """Give it a name that nothing else has; a copy of what is beside it is taken out."""
    around = page.parent(element)
    if around is not None and sum(e.attrib == element.attrib for e in around) > 1:
        around.remove(element)
        return ""
    key = "class" if element.tag == "default" else "name"
    element.set(key, other_name(element.get(key, "")))
    return ""


def change_keyword(page: Page, element: Element, message: str) -> str:
    """Write the joint type that was meant; another word that is none is left out."""
    said = element.get("type", "")
    meant = suggestion(said, JOINT_TYPES) if element.tag == "joint" else None
    if quote(said) in message and meant:
        element.set("type", meant)
        return f"type={quote(said)} changed to {meant}"
    return "" if page.is_output else drop_word(page, element, message)


def swap_range(page: Page, element: Element, message: str) -> str:
    """Exchange the ends of a range."""
    key = message.partition("=")[0]
    words = element.get(key, "").split()
    element.set(key, " ".join(reversed(words)))
    return f"{key}={quote(' '.join(words))} exchanged"


def one_orientation(page: Page, element: Element, message: str) -> str:
    """Keep the first."""
    for key in [key for key in ORIENTATIONS if key in element.attrib][1:]:
        element.attrib.pop(key)
    return ""


def give_inertia(page: Page, body: Element, message: str) -> str:
    """Give a body an inertia that can exist, so that the next one is looked at."""
    for found in body.findall("inertial"):
        body.remove(found)
    body.insert(0, Element("inertial", BODY))
    if "moves no inertia" in message:
        for joint in body.findall("joint"):
            joint.set("armature", "1")
    return ""


def hold(page: Page, element: Element, message: str) -> str:
    """Take out a free joint that is not alone, or not at the top."""
    body = page.parent(element) if element.tag in ("joint", "freejoint") else element
    joints = [] if body is None else [e for e in body if e.tag in ("joint", "freejoint")]
    free = [e for e in joints if e.tag == "freejoint" or e.get("type") == "free"]
    for joint in free or joints[1:]:
        drop(page, joint, message)
    return ""


def limit(page: Page, element: Element, message: str) -> str:
    """Say whether the joint is limited, as its range does."""
    element.attrib.pop("limited", None)
    element.attrib.pop("range", None)
    return ""


def as_include(page: Page, root: Element, message: str) -> str:
    """Take an included file that is no MJCF for an empty one."""
    root.clear()
    root.tag = "mujocoinclude"
    return ""


def drop_leaf(page: Page, element: Element, message: str) -> str:
    """Take out what MuJoCo objects to, unless bodies hang on it."""
    if element.find(".//body") is None and element.tag not in ("body", "worldbody"):
        drop(page, element, message)
    return ""


# -- the table ------------------------------------------------------------------------------------

ONE_SOURCE = "take mass, centre and inertia from one source"

MJCF_RULES = [
    *XML_RULES,
    rule(
        r"the root element is <mujocoinclude>",
        "check the file that includes this one",
        as_include,
    ),
    rule(r"the root element is", "include a file whose root element is <mujoco>", as_include),
    rule(
        r"unknown attribute (\w+)=.*; expected one",
        "delete {0}=, or see <{tag}> in MuJoCo's XML reference",
        repairs.rename_key,
    ),
    rule(r"unknown attribute .* ignored", "delete it if it is not needed", drop),
    rule(r"inside <.*>; expected an element", "delete it", drop),
    rule(r"World body cannot have", "move it into a <body>", drop),
    rule(r"has no direction", "write a direction, such as 0 0 1 (quaternions: 1 0 0 0)",
         drop_value),
    rule(r"starts above its end", "exchange its two numbers, if that was meant", swap_range, True),
    rule(r"is negative; expected", "write a number of 0 or more", drop_value),
    rule(r"^count=|copies; expected at most", "write a smaller whole number", drop_value),
    rule(r"^(\w+)=.*; expected (finite decimal numbers|\d+ finite decimal numbers?)",
         "write {1}, such as 0.5 or 1e-3", drop_value),
    rule(r"attribute '(\w+)' does not have enough data", "write more numbers in {0}=",
         drop_value),
    rule(r"attribute '(\w+)' has too much data", "write fewer numbers in {0}=", drop_value),
    rule(r"(?:bad format|problem reading).*'(\w+)'", "write plain numbers in {0}=", drop_value),
    rule(r"required attribute missing: '(\w+)'", 'write {0}="..."', drop_value),
    rule(r"is already included", "include it once", drop),
    rule(r"is not there; expected a file to include",
         "put the file into the folder of the model, or delete the <include>", drop),
    rule(r"more than \d+ files are included", "write some of them into one file", drop),
    rule(r"this file needs xacro", "run xacro on this file and check what it writes", drop),
    rule(r"leads out of the declared folders|is no path|files are not read here|is not there; exp",
         "keep the file in the folder of the model, or delete the attribute", drop_file),
    rule(r"has no (\w+) attribute|^(\w+)=.* is empty", "write the value, or delete <{tag}>", drop),
    rule(r"a model inside a model", "write its elements here, or <include> them", drop),
    rule(r"its inertia comes from its shapes",
         "give the body an <inertial>, or put the mesh where the file says", give_inertia),
    rule(r"repeated name '(.*)' in (\w+)", "give one of the two another name", change_name),
    rule(r"repeated default class name", "give one of the classes another name", change_name),
    rule(r"empty class name", 'write class="..."', change_name),
    rule(r"unknown default (?:child)?class.*perhaps \"(.*)\"$", 'write "{0}", if that was meant',
         drop_class),
    rule(r"unknown default (?:child)?class",
         "name a class that <default> declares, or declare it there", drop_class),
    rule(r"invalid keyword: type=\"(revolute|continuous)\"", 'write type="hinge"',
         change_keyword),
    rule(r"invalid keyword: type=\"prismatic\"", 'write type="slide"', change_keyword),
    rule(r"invalid keyword: type=.* of a <joint>", "use hinge, slide, ball or free",
         change_keyword, True),
    rule(r"invalid keyword: type=.* of a <geom>",
         "use plane, hfield, sphere, capsule, ellipsoid, cylinder, box or mesh", change_keyword),
    rule(r"invalid keyword: \w*limited=", "use true, false or auto", change_keyword),
    rule(r"invalid keyword: angle=", "use degree or radian", change_keyword),
    rule(r"invalid keyword: .* of a <flag>", "use enable or disable", change_keyword),
    rule(r"invalid keyword: (\w+)", "see {0}= of <{tag}> in MuJoCo's XML reference",
         change_keyword),
    rule(r"multiple orientation|at most one of .* can be specified",
         "keep one of quat, axisangle, euler, xyaxes and zaxis; none beside fullinertia",
         one_orientation),
    rule(r"free joint can only be used on top level",
         'make it type="ball", or move the body into <worldbody>', hold),
    rule(r"more than 6 dofs", "a free joint is the only joint of its body: delete the others",
         hold),
    rule(r"range\[0\] should be smaller|has `range` but not `limited`",
         "write range= with lower < upper, or leave limited= out", limit),
    rule(r"mass and inertia of moving bodies",
         "give the body an <inertial> or a <geom> with mass, or delete its joint", give_inertia),
    rule(r"inertia must satisfy A \+ B >= C|has principal inertias",
         ONE_SOURCE + '; <compiler balanceinertia="true"/> averages it', give_inertia),
    rule(r"inertia must have positive eigenvalues", ONE_SOURCE, give_inertia),
    rule(r"moves no inertia", "give the joint armature=, or the body a mass that it moves",
         give_inertia),
    rule(r"(?:body_|jnt_|qpos0).* is .*; expected", "check the unit and the exponent", drop_value),
    rule(r"(\w+) is .*; expected zero or more", "write a number of 0 or more in its class",
         drop_value),
    rule(r"(\w+) .* differs between its axes", "write one number", drop_value),
    rule(r"(?:unknown|not found|unrecognized name).*perhaps \"(.*)\"$",
         'write "{0}", if that was meant', drop_reference),
    rule(r"(mesh|hfield) '.*' not found in geom", "name a {0} of <asset>, or add it there",
         drop_shape),
    rule(r"must have valid meshid", "write mesh= with the name of a mesh of <asset>", drop_shape),
    rule(r"(\w+) '.*' not found in (?:geom|site)", "name a {0} of <asset>, or add it there",
         drop_word),
    rule(r"body '.*' not found", "name a body of this model", drop),
    rule(r"unknown transmission target", "name a joint, tendon, site or body of this model", drop),
    rule(r"joint '.*' not found", "name a joint of this model", drop),
    rule(r"unknown|not found|unrecognized name", "name an element of this model", drop),
    rule(r"must be slide or hinge|only HINGE and SLIDE", "name a hinge or a slide", drop),
    rule(r"is repeated in equality", "name two different elements", drop),
    rule(r"makes this more than a tree",
         'load it with loops="open", if a tree without this constraint will do', drop),
    rule(r"armature .* of the tendon", "give the armature to joints instead", drop_value),
    rule(r"follows itself", "let one of these joints follow none", drop),
    rule(r"missing transmission target", "write joint= with the joint that it drives", drop),
    rule(r"size \d must be positive", "write size= with lengths above 0", drop_shape),
    rule(r"never followed|the shape is left out", "copy the file into the folder of the model",
         drop_file),
    rule(r"not read: ignored|is left out|are left out|is taken",
         "delete it if linkwise is all that reads this file", drop),
    rule(r"called \"(.*)\"$", "give it a name of its own", drop),
    rule(r"says MuJoCo's compiler", "see <{tag}> in MuJoCo's XML reference", drop_leaf),
]  # fmt: skip
