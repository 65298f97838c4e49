"""What MuJoCo's compiler objects to: the kind of problem, by the words that MuJoCo uses.

MuJoCo stops at the first objection and says it in English, with the line of the text it was given
or with the name of an element. A row says which code an objection has, and which hole it leaves
where reading goes on: the attribute ``key``, the element, or the inertia of the body.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from linkwise.codes import Code
from linkwise.errors import suggestion
from linkwise.io.mjcf_text import Document
from linkwise.io.xml import Node

ELEMENT, INERTIA, JOINTS = "element", "inertia", "joints"  # holes besides attributes

# the place that MuJoCo gives at the end, as of version 3.1 and before
_LINE = re.compile(r"\b[Ll]ine(?: number)?[ =]+(\d+)")
_ELEMENT = re.compile(r"\s*(?:Element (?:name )?'|Object name =).*", re.DOTALL)
_PREFIX = re.compile(r"^(?:XML )?(?:[Pp]arse )?(?:Error: ?|error )+")
_QUOTED = re.compile(r"'([^']+)'")

# objection -> code, hole, facts; of several rows that match, the first counts
_ROWS: list[tuple[str, Code, str, dict[str, str]]] = [
    (r"invalid keyword: '(?P<value>.*)'", Code.UNKNOWN_KEYWORD, "key", {}),
    (r"'(?P<key>\w+)' does not have enough data", Code.WRONG_AMOUNT, "key", {"amount": "more"}),
    (r"'(?P<key>\w+)' has too much data", Code.WRONG_AMOUNT, "key", {"amount": "fewer"}),
    (r"(?:bad format|problem reading).*'(?P<key>\w+)'", Code.WRONG_AMOUNT, "key",
     {"amount": "plain"}),
    (r"required attribute missing: '(?P<key>\w+)'", Code.ABSENT_ATTRIBUTE, ELEMENT, {}),
    (r"repeated default class name", Code.REPEATED_CLASS, ELEMENT, {}),
    (r"repeated name '.*' in \w+", Code.REPEATED_NAME, "key", {"key": "name"}),
    (r"empty class name", Code.EMPTY_CLASS, ELEMENT, {}),
    (r"unknown default (?P<key>(?:child)?class)", Code.UNKNOWN_NAME, "key",
     {"advice": "name a class that <default> declares, or declare it there"}),
    (r"multiple orientation|at most one of .* can be specified", Code.SECOND_ORIENTATION,
     "orientation", {}),
    (r"free joint can only be used on top level", Code.INNER_FREE_JOINT, JOINTS, {}),
    (r"more than 6 dofs", Code.TOO_MANY_JOINTS, JOINTS, {}),
    (r"World body cannot have", Code.NO_WORLD_JOINT, ELEMENT, {}),
    (r"range\[0\] should be smaller|has `range` but not `limited`", Code.LIMITED_BY_NOTHING,
     "key", {"key": "limited"}),
    (r"mass and inertia of moving bodies", Code.NO_BODY_MASS, INERTIA, {}),
    (r"inertia must satisfy A \+ B >= C", Code.BODY_TRIANGLE, INERTIA, {}),
    (r"inertia must have positive eigenvalues", Code.BODY_INDEFINITE, INERTIA, {}),
    (r"sizes? (?:\d )?must be positive", Code.NO_SIZE, ELEMENT, {}),
    (r"must have valid meshid", Code.NO_MESH, ELEMENT, {}),
    (r"(?P<kind>mesh|hfield|material) '.*' not found in (?:geom|site)", Code.UNKNOWN_NAME, ELEMENT,
     {"advice": "name a {kind} of <asset>, or add it there"}),
    (r"(?P<kind>body|joint) '.*' not found", Code.UNKNOWN_NAME, ELEMENT,
     {"advice": "name a {kind} of this model"}),
    (r"unknown transmission target", Code.UNKNOWN_NAME, ELEMENT,
     {"advice": "name a joint, tendon, site or body of this model"}),
    (r"must be slide or hinge|only HINGE and SLIDE", Code.NO_HINGE, ELEMENT, {}),
    (r"is repeated in equality", Code.NAMED_TWICE, ELEMENT, {}),
    (r"missing transmission target", Code.NO_TARGET, ELEMENT, {}),
    (r"unknown|not found|unrecognized name", Code.UNKNOWN_NAME, ELEMENT,
     {"advice": "name an element of this model"}),
    (r"", Code.MUJOCO_ERROR, ELEMENT, {}),
]  # fmt: skip

_JOINT_TYPES = frozenset(("hinge", "slide", "ball", "free"))
_URDF_TYPES = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide"}
_KEYWORDS = {  # what to use, by element and attribute; by attribute of any element; of a flag
    ("joint", "type"): "use hinge, slide, ball or free",
    ("geom", "type"): "use plane, hfield, sphere, capsule, ellipsoid, cylinder, box or mesh",
    ("", "angle"): "use degree or radian",
    ("flag", ""): "use enable or disable",
}


class Objection(NamedTuple):
    """An objection at its place, and the hole that it leaves."""

    at: int  # the element's index in the document; 0 is the root
    code: Code
    facts: dict[str, Any]
    hole: str  # an attribute, or one of the constants above
    names: frozenset[str]  # that MuJoCo quotes


def objection(document: Document, message: str) -> Objection:
    """Classify what MuJoCo said about the text of a document."""
    words = " ".join(_PREFIX.sub("", _ELEMENT.sub("", message).strip()).split())[:300]
    at = _place(document, message)
    node = document.elements[at].node
    code, hole, more, named = _kind(words)
    tag = document.elements[at].tag
    facts = {"words": words, "tag": tag, "advice": "", **named, **more}
    facts["advice"] = facts["advice"].format(**named)
    if code is Code.UNKNOWN_KEYWORD:
        facts |= _keyword(document.elements[at].attributes, tag, named["value"])
    elif code is Code.UNKNOWN_NAME and (meant := _meant(document, node, words)):
        code, facts["meant"] = Code.MISSPELT_NAME, meant
    hole = facts.get("key", ELEMENT) if hole == "key" else hole
    return Objection(at, code, facts, hole, frozenset(_QUOTED.findall(message)))


def _kind(words: str) -> tuple[Code, str, dict[str, str], dict[str, str]]:
    """Code, hole and facts of an objection; the last row matches any."""
    for pattern, code, hole, more in _ROWS:
        if found := re.search(pattern, words):
            named = {key: value for key, value in found.groupdict().items() if value is not None}
            return code, hole, more, named
    raise AssertionError("the last row matches any words")


def _place(document: Document, message: str) -> int:
    """The element on the line that MuJoCo names, or else the only one of a name that it quotes."""
    line = _LINE.search(message)
    if line is not None and 0 < int(line[1]) <= len(document.elements):
        return int(line[1]) - 1
    for name in _QUOTED.findall(message):
        named = [i for i, e in document.opened() if e.attributes.get("name") == name]
        if len(named) == 1:
            return named[0]
    return 0


def _keyword(attributes: dict[str, str], tag: str, value: str) -> dict[str, Any]:
    """Which attribute holds a keyword that MuJoCo does not know, and what was meant."""
    key = next((key for key, said in attributes.items() if said == value), "")
    places = ((tag, key), ("", key), (tag, ""))
    advice = next((_KEYWORDS[place] for place in places if place in _KEYWORDS), "")
    if key.endswith("limited"):
        advice = "use true, false or auto"
    meant = None
    if (tag, key) == ("joint", "type"):
        meant = suggestion(value, _JOINT_TYPES)
        if value in _URDF_TYPES:
            advice = f'write type="{_URDF_TYPES[value]}"'
    advice = advice or f"see {key}= of <{tag}> in MuJoCo's XML reference"
    return {"key": key, "value": value, "advice": advice, "meant": meant}


def _meant(document: Document, node: Node, words: str) -> str | None:
    """The name that an unknown one was probably meant to be, of elements of the kind asked for."""
    unknown = set(_QUOTED.findall(words)) or {node.attributes.get("childclass")}
    for key, value in node.attributes.items():
        if value in unknown and key != "name":
            kind = key.rstrip("12").removeprefix("child")
            tag, name = ("default", "class") if kind == "class" else (kind, "name")
            nodes = [e.node for _, e in document.opened() if e.tag == tag]
            known = frozenset(n.attributes[name] for n in nodes if n.attributes.get(name))
            return suggestion(value, known)
    return None
