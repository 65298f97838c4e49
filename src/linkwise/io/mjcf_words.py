"""The words of MJCF: which elements and attributes may stand where, as MuJoCo prints them.

MuJoCo checks words too, but not inside a ``<frame>``, and it passes over a ``<body>`` beside the
world; what is misspelt there would be missing without a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from linkwise.codes import XACRO
from linkwise.errors import quote, suggestion
from linkwise.io.mjcf_text import Document
from linkwise.io.xml import Node

_ROW = re.compile(r"^( *)([\w()]+) \(([!?*R])\) *(.*)$")
_PLACED = frozenset("name class childclass pos quat axisangle xyaxes zaxis euler".split())
_IN_BODY = {"frame": frozenset[str](), "replicate": frozenset("count offset sep".split())}


@dataclass
class Grammar:
    """What one element may have: attributes, and children with a grammar each."""

    attributes: set[str] = field(default_factory=set)
    children: dict[str, Grammar] = field(default_factory=dict)
    once: set[str] = field(default_factory=set)  # children of which there is at most one


@lru_cache(maxsize=4)
def grammar_of(schema: str) -> Grammar:
    """The grammar that MuJoCo prints as indented rows; `frame` and `replicate` it leaves out."""
    top = Grammar()
    stack = [(-1, top)]
    for line in schema.splitlines():
        row = _ROW.match(line)
        if row is None:
            stack[-1][1].attributes.update(line.split())
            continue
        depth, tag = len(row[1]), row[2]
        while stack[-1][0] >= depth:
            stack.pop()
        grammar = Grammar(set(row[4].split()))
        stack[-1][1].children[tag.replace("(world)", "world")] = grammar
        if row[3] == "?":
            stack[-1][1].once.add(tag)
        if row[3] == "R":
            grammar.children[tag.replace("(world)", "")] = grammar
        stack.append((depth, grammar))
    _add_repeats(top)
    return top


def _add_repeats(top: Grammar) -> None:
    """A frame, or what is replicated, holds what a body holds."""
    world = top.children.get("mujoco", top).children.get("worldbody", Grammar())
    for body in (world, world.children.get("body", world)):
        for tag, own in _IN_BODY.items():
            body.children[tag] = Grammar(set(_PLACED | own), body.children, body.once)


def check_words(document: Document, schema: str) -> None:
    """Refuse the first element or attribute that is not MJCF, with the word that was meant."""
    stack = [grammar_of(schema)]
    for e in document.elements:
        if e.closes:
            stack.pop()
            continue
        grammar = stack[-1].children.get(e.node.tag)
        if grammar is None:
            _refuse_element(e.node, e.inside[-1:], stack[-1], stack[0])
            return  # a schema that cannot be read says nothing
        for tag in sorted(grammar.once):
            e.node.child(tag)
        for key in sorted(e.node.attributes.keys() - grammar.attributes):
            _refuse_attribute(e.node, key, grammar)
        stack.append(grammar)


def _refuse_element(node: Node, inside: tuple[str, ...], around: Grammar, top: Grammar) -> None:
    if not inside:
        return
    tag = quote(node.tag)[1:-1]
    if tag.startswith("xacro:"):
        raise node.error(f"this file needs xacro; {XACRO}")
    if meant := suggestion(node.tag, frozenset(around.children)):
        raise node.error(f"unknown element <{tag}>; expected <{meant}>")
    homes = " or ".join(_homes(node.tag, top))
    wanted = f"it inside {homes}" if homes else f"an element that <{inside[0]}> takes"
    raise node.error(f"<{tag}> inside <{inside[0]}>; expected {wanted}")


def _homes(tag: str, top: Grammar) -> list[str]:
    """Elements that take a tag, in the order of the grammar."""
    found: list[str] = []
    todo, seen = list(top.children.items()), set[int]()
    while todo:
        name, grammar = todo.pop(0)
        if id(grammar) not in seen and name not in _IN_BODY:
            seen.add(id(grammar))
            todo += grammar.children.items()
            if tag in grammar.children:
                found.append(name)
    if "worldbody" in found:  # its grammar is that of bodies
        at = found.index("worldbody")
        found[at : at + 1] = ["worldbody", "body"] if tag == "body" else ["body"]
    return [f"<{name}>" for name in found]


def _refuse_attribute(node: Node, key: str, grammar: Grammar) -> None:
    if ":" in key:
        return  # a word of another namespace
    found = f"unknown attribute {quote(key)[1:-1]}={quote(node.attributes[key])}"
    meant = suggestion(key, frozenset(grammar.attributes))
    if meant is None and node.tag in _IN_BODY:  # MuJoCo's table does not say what these take
        node.where.warn(f"unknown attribute {quote(key)} ignored")
        return
    raise node.error(f"{found}; expected {meant or f'one that <{node.tag}> takes'}")
