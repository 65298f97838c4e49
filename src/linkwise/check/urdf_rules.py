"""Kinds of problem in a URDF, and in any XML: what to advise, and how to make them go away.

A change that says exactly what the file must have meant, or what the user asks for by asking for
a repair, is a repair and is written. Any other change only clears the view on the next problem.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import hypot

from linkwise.check import repairs
from linkwise.check.pages import Page
from linkwise.errors import quote
from linkwise.io.xml import parse_number

Element = ET.Element
Fix = Callable[[Page, Element, str], str]  # changes a page, and says what it did
_MISSING = re.compile(r"has no <link>|does not exist|expected one root link|no moving joint")
UNIT = 1e-6  # how far from 1 the length of an axis may be and pass for rounding


@dataclass(frozen=True)
class Rule:
    """What to do about problems whose message matches a pattern."""

    pattern: re.Pattern[str]
    advice: str  # groups of the pattern as {0}, {1} ..., the element's tag as {tag}
    fix: Fix
    repairs: bool = False

    def advise(self, message: str, element: str) -> str:
        """One line that tells the user what to do."""
        found, tags = self.pattern.search(message), re.findall(r"<([^\s>]+)", element)
        return self.advice.format(*found.groups(), tag=(tags or [""])[-1]) if found else ""


def rule(pattern: str, advice: str, fix: Fix, repairs: bool = False) -> Rule:
    """A row of a table of rules."""
    return Rule(re.compile(pattern, re.S), advice, fix, repairs)


def rule_for(message: str, rules: Sequence[Rule]) -> Rule | None:
    """The first rule whose pattern is in the message."""
    return next((rule for rule in rules if rule.pattern.search(message)), None)


def orphaned(page: Page, message: str) -> bool:
    """Whether a link is missing or hangs on nothing because of an earlier change."""
    if page.needs_xacro and _MISSING.search(message):
        return True
    if page.orphans and "expected one root link" in message:
        page.orphans -= 1
        return True
    return False


# -- what is accepted, and worth a word -----------------------------------------------------------


def style_problems(page: Page) -> Iterator[tuple[Element, str, str, Fix]]:
    """Axes that are not of unit length: (element, message, advice, repair)."""
    for axis in page.root.iterfind("joint/axis") if page.root.tag == "robot" else ():
        joint = page.parent(axis)
        words = axis.get("xyz", "").split()
        numbers = [x for x in map(parse_number, words) if x is not None]
        kind = "" if joint is None else joint.get("type", "")
        if len(words) != 3 or len(numbers) != 3 or kind in ("fixed", "floating"):
            continue
        length = hypot(*numbers)
        if 0.0 < length < 1e300 and abs(length - 1.0) > UNIT:
            unit = " ".join(f"{x / length + 0.0:.16g}" for x in numbers)
            message = (
                f"xyz={quote(axis.get('xyz', ''))} has length {length:.6g}; taken as a unit vector"
            )
            yield axis, message, f'write xyz="{unit}"', repairs.unit_axis


# -- the table ------------------------------------------------------------------------------------


XML_RULES = [
    rule(
        r"not well-formed|file is empty|DOCTYPE|is not read; expected one of",
        "repair the XML first: the rest of the file was not looked at",
        repairs.drop,
    ),
    rule(
        r"too many elements|too large; expected at most \d+ bytes|cannot be read",
        "give a file that can be read within the limits of linkwise.io.xml.ReadLimits",
        repairs.drop,
    ),
    rule(r"unknown element <.*>; expected <(.*)>", "rename it to <{0}>", repairs.rename, True),
    rule(
        r"unknown attribute .*; expected (\w+(?: or \w+)*)$",
        "rename it to {0}=",
        repairs.rename_key,
        True,
    ),
    rule(r"^a second <(\w+)>", "keep one <{0}> and delete the other", repairs.drop_copy, True),
    rule(r"inside <.*>; expected it inside (.*)", "move it into {0}", repairs.drop),
    rule(r"has no moving joint", "a robot has at least one joint that is not fixed", repairs.drop),
]

URDF_RULES = [
    *XML_RULES,
    rule(
        r"the root element is",
        "give a URDF file, whose root element is <robot>, or an MJCF file, with <mujoco>",
        repairs.drop,
    ),
    rule(
        r"is a xacro expression",
        "run xacro on this file and check what it writes",
        repairs.replace_value,
    ),
    rule(
        r"this file needs xacro",
        "run xacro on this file and check what it writes",
        repairs.drop_macros,
    ),
    rule(
        r"has no <(parent|child)>",
        'add <{0} link="..."/> with the name of a link',
        repairs.add_part,
    ),
    rule(
        r"has no <mass>",
        'add <mass value="..."/>, or delete the whole <inertial>',
        repairs.add_part,
    ),
    rule(
        r"has no <inertia>",
        "add <inertia ixx=... ixy=... ixz=... iyy=... iyz=... izz=.../>",
        repairs.add_part,
    ),
    rule(
        r"has no <limit>",
        'add <limit lower="..." upper="..." .../>, or make the joint continuous',
        repairs.make_continuous,
        True,
    ),
    rule(
        r"has neither lower nor upper",
        "write lower= and upper=, or make the joint continuous",
        repairs.make_continuous,
        True,
    ),
    rule(r"has no <(\w+)>; expected [a-z ]*one", "add one <{0}>", repairs.add_part),
    rule(
        r"has \d+ shapes",
        "keep one shape; write a second <visual> or <collision> for another",
        repairs.drop_shape,
    ),
    rule(
        r"has no direction",
        'write the direction the joint moves in, such as xyz="0 0 1"',
        repairs.set_axis,
    ),
    rule(
        r"is above upper", "exchange lower and upper, if that was meant", repairs.swap_limits, True
    ),
    rule(
        r"^type=.* is not supported",
        "use revolute, continuous, prismatic, fixed, floating or planar",
        repairs.change_type,
        True,
    ),
    rule(r"name .* is already used", "give one of them another name", repairs.change_name),
    rule(
        r'link .* does not exist.*perhaps "(.*)"$',
        'write "{0}", if that was meant',
        repairs.change_end,
        True,
    ),
    rule(
        r"link .* does not exist", "name a link of this file, or add that link", repairs.change_end
    ),
    rule(r"parent and child are both", "name two different links", repairs.change_end),
    rule(
        r"is also the child of joint",
        "delete one of the two joints; loops need a constraint, not a joint",
        repairs.drop,
    ),
    rule(
        r"expected one root link",
        "add a joint that holds this link, or delete the link",
        repairs.hang_on_root,
    ),
    rule(
        r"closes a cycle",
        "let one of these joints start at a link outside the cycle",
        repairs.change_end,
    ),
    rule(
        r"^joint=.*(?:does not exist|joint itself|mimic too)|^\"[^\"]*\" is \w+; expected",
        "follow a revolute, continuous or prismatic joint that follows none",
        repairs.drop,
    ),
    rule(
        r"leads out of the declared folders|is no path",
        "keep meshes in the package of the file, and name them by package://",
        repairs.set_mesh,
    ),
    rule(r"not at a right angle", "make the two axes perpendicular", repairs.drop),
    rule(r"products would vanish", "check the unit and the exponent", repairs.change_body),
    rule(
        r"has principal inertias",
        "take mass, centre and inertia from one source; --repair writes the nearest possible",
        repairs.change_body,
        True,
    ),
    rule(
        r"has mass .* kg; expected",
        "add an <inertial> to the link, or make its joint fixed",
        repairs.change_body,
    ),
    rule(
        r"is not read: ignored|unknown attribute .* ignored",
        "delete it if it is not needed",
        repairs.drop,
    ),
    rule(r"has no name attribute", "give it a name", repairs.replace_value),
    rule(
        r"never followed",
        "copy the file into the package and name it by package://",
        repairs.replace_value,
    ),
    rule(
        r"is empty; expected some text|has no \w+ attribute",
        "write the value",
        repairs.replace_value,
    ),
    rule(
        r"is too small; expected at least (\S+)",
        "write a number of {0} or more",
        repairs.replace_value,
    ),
    rule(
        r"is too large; expected at most (\S+)",
        "check the unit and the exponent",
        repairs.replace_value,
    ),
    rule(
        r"; expected (\d+ finite decimal numbers?)",
        "write {0}, such as 0.5 or 1e-3",
        repairs.replace_value,
    ),
    rule(r"is negative; expected", "write lengths of 0 or more", repairs.replace_value),
]
