"""Kinds of problem in a URDF: what to advise, and how to change the file so that it goes away.

A change that says exactly what the file must have meant, or what the user asks for by asking for
a repair, is a repair and is written. Any other change only clears the view on the next problem.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import hypot

from linkwise.cli import repairs
from linkwise.cli.repairs import Page
from linkwise.errors import quote
from linkwise.io.xml import parse_number

Element = ET.Element
Fix = Callable[[Page, Element, str], str]  # changes a page, and says what it did
UNIT = 1e-6  # how far from 1 the length of an axis may be and pass for rounding


@dataclass(frozen=True)
class Rule:
    """What to do about problems whose message matches a pattern."""

    pattern: re.Pattern[str]
    advice: str  # groups of the pattern as {0}, {1} ...
    fix: Fix
    repairs: bool = False

    def advise(self, message: str) -> str:
        """One line that tells the user what to do."""
        found = self.pattern.search(message)
        return self.advice.format(*found.groups()) if found else ""

    def follows_from(self, page: Page, message: str) -> bool:
        """Whether the problem was made by an earlier change, and is not the file's."""
        if page.orphans and "expected one root link" in message:
            page.orphans -= 1
            return True
        return False


def rule_for(message: str) -> Rule | None:
    """The first rule whose pattern is in the message."""
    return next((rule for rule in RULES if rule.pattern.search(message)), None)


# -- what is accepted, and worth a word -----------------------------------------------------------


def style_problems(page: Page) -> Iterator[tuple[Element, str, str, Fix]]:
    """Axes that are not of unit length: (element, message, advice, repair)."""
    for axis in page.root.iterfind("joint/axis"):
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


def _rule(pattern: str, advice: str, fix: Fix, repairs: bool = False) -> Rule:
    return Rule(re.compile(pattern, re.S), advice, fix, repairs)


RULES = [
    _rule(
        r"not well-formed|file is empty|DOCTYPE|is not read; expected one of",
        "repair the XML first: the rest of the file was not looked at",
        repairs.drop,
    ),
    _rule(r"the root element is", "give a URDF file, whose root element is <robot>", repairs.drop),
    _rule(r"has no moving joint", "a robot has at least one joint that is not fixed", repairs.drop),
    _rule(r"unknown element <.*>; expected <(.*)>", "rename it to <{0}>", repairs.rename, True),
    _rule(r"unknown attribute .*; expected (.*)", "rename it to {0}=", repairs.rename_key, True),
    _rule(r"^a second <(\w+)>", "keep one <{0}> and delete the other", repairs.drop_copy, True),
    _rule(
        r"is a xacro expression",
        "run xacro on this file and check what it writes",
        repairs.replace_value,
    ),
    _rule(
        r"this file needs xacro", "run xacro on this file and check what it writes", repairs.drop
    ),
    _rule(r"inside <.*>; expected it inside (.*)", "move it into {0}", repairs.drop),
    _rule(
        r"has no <(parent|child)>",
        'add <{0} link="..."/> with the name of a link',
        repairs.add_part,
    ),
    _rule(
        r"has no <mass>",
        'add <mass value="..."/>, or delete the whole <inertial>',
        repairs.add_part,
    ),
    _rule(
        r"has no <inertia>",
        "add <inertia ixx=... ixy=... ixz=... iyy=... iyz=... izz=.../>",
        repairs.add_part,
    ),
    _rule(
        r"has no <limit>",
        'add <limit lower="..." upper="..." .../>, or make the joint continuous',
        repairs.make_continuous,
        True,
    ),
    _rule(
        r"has neither lower nor upper",
        "write lower= and upper=, or make the joint continuous",
        repairs.make_continuous,
        True,
    ),
    _rule(r"has no <(\w+)>; expected [a-z ]*one", "add one <{0}>", repairs.add_part),
    _rule(
        r"has \d+ shapes",
        "keep one shape; write a second <visual> or <collision> for another",
        repairs.drop_shape,
    ),
    _rule(
        r"has no direction",
        'write the direction the joint moves in, such as xyz="0 0 1"',
        repairs.set_axis,
    ),
    _rule(
        r"is above upper", "exchange lower and upper, if that was meant", repairs.swap_limits, True
    ),
    _rule(
        r"^type=.* is not supported",
        "use revolute, continuous, prismatic, fixed, floating or planar",
        repairs.change_type,
        True,
    ),
    _rule(r"name .* is already used", "give one of them another name", repairs.change_name),
    _rule(
        r'link .* does not exist.*perhaps "(.*)"$',
        'write "{0}", if that was meant',
        repairs.change_end,
        True,
    ),
    _rule(
        r"link .* does not exist", "name a link of this file, or add that link", repairs.change_end
    ),
    _rule(r"parent and child are both", "name two different links", repairs.change_end),
    _rule(
        r"is also the child of joint",
        "delete one of the two joints; loops need a constraint, not a joint",
        repairs.drop,
    ),
    _rule(
        r"expected one root link",
        "add a joint that holds this link, or delete the link",
        repairs.hang_on_root,
    ),
    _rule(
        r"closes a cycle",
        "let one of these joints start at a link outside the cycle",
        repairs.change_end,
    ),
    _rule(
        r"^joint=.*(?:does not exist|joint itself|mimic too)|^\"[^\"]*\" is \w+; expected",
        "follow a revolute, continuous or prismatic joint that follows none",
        repairs.drop,
    ),
    _rule(
        r"leads out of the declared folders|is no path",
        "keep meshes in the package of the file, and name them by package://",
        repairs.set_mesh,
    ),
    _rule(r"not at a right angle", "make the two axes perpendicular", repairs.drop),
    _rule(
        r"has principal inertias",
        "take mass, centre and inertia from one source; --repair writes the nearest possible",
        repairs.change_body,
        True,
    ),
    _rule(
        r"has mass .* kg; expected",
        "add an <inertial> to the link, or make its joint fixed",
        repairs.change_body,
    ),
    _rule(
        r"is not read: ignored|unknown attribute .* ignored",
        "delete it if it is not needed",
        repairs.drop,
    ),
    _rule(r"has no name attribute", "give it a name", repairs.replace_value),
    _rule(
        r"never followed",
        "copy the file into the package and name it by package://",
        repairs.replace_value,
    ),
    _rule(
        r"is empty; expected some text|has no \w+ attribute",
        "write the value",
        repairs.replace_value,
    ),
    _rule(
        r"is too small; expected at least (\S+)",
        "write a number of {0} or more",
        repairs.replace_value,
    ),
    _rule(
        r"is too large; expected at most (\S+)",
        "check the unit and the exponent",
        repairs.replace_value,
    ),
    _rule(
        r"; expected (\d+ finite decimal numbers?)",
        "write {0}, such as 0.5 or 1e-3",
        repairs.replace_value,
    ),
    _rule(r"is negative; expected", "write lengths of 0 or more", repairs.replace_value),
]
