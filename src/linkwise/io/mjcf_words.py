"""The words of MJCF: which elements and attributes may stand where, as MuJoCo prints them.

MuJoCo checks words too, but not inside a ``<frame>``, and it passes over a ``<body>`` beside the
world; what is misspelt there would be missing without a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from linkwise.codes import Code
from linkwise.errors import plain, suggestion
from linkwise.io.mjcf_text import Document, Element
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
    """Report elements and attributes that are not MJCF, with the word that was meant."""
    top = grammar_of(schema)
    if "mujoco" not in top.children:
        return  # a schema that cannot be read says nothing
    grammars: dict[int, Grammar] = {}
    seen: dict[tuple[int, str], Node] = {}
    for i, e in document.opened():
        around = grammars[e.parent] if i else top
        if i and e.tag not in around.children and not _is_renamed(document, i, around, top):
            document.remove(i)
            continue
        grammars[i] = around.children[e.tag]
        first = seen.setdefault((e.parent, e.tag), e.node)
        if e.tag in around.once and first is not e.node:
            same = e.node.content == first.content
            e.node.report(Code.SECOND_CHILD, tag=e.tag, first=first.line, same=same)
            document.remove(i)
            continue
        for key in sorted(e.attributes.keys() - grammars[i].attributes):
            _check_attribute(e, key, grammars[i])


def _is_renamed(document: Document, index: int, around: Grammar, top: Grammar) -> bool:
    """Report an unknown element; True where it can be read by the tag that was meant."""
    e = document.elements[index]
    tag, parent = plain(e.tag), document.elements[e.parent].tag
    if tag.startswith("xacro:"):
        raise e.node.problem(Code.NEEDS_XACRO)
    if meant := suggestion(e.tag, frozenset(around.children)):
        e.node.report(Code.MISSPELT_ELEMENT, tag=tag, meant=meant)
        e.tag = document.elements[e.partner].tag = meant
        return True
    if homes := " or ".join(_homes(e.tag, top)):
        e.node.report(Code.MISPLACED_ELEMENT, tag=tag, parent=parent, home=homes)
    else:
        e.node.report(Code.FOREIGN_ELEMENT, tag=tag, parent=parent)
    return False


def _check_attribute(e: Element, key: str, grammar: Grammar) -> None:
    """Report an unknown attribute, and take it for the one that was meant, or for none."""
    if ":" in key:
        return  # a word of another namespace
    value = e.attributes[key]
    meant = suggestion(key, frozenset(grammar.attributes))
    if meant is not None:
        e.node.report(Code.MISSPELT_ATTRIBUTE, key=plain(key), value=value, meant=meant)
        e.attributes.setdefault(meant, e.attributes.pop(key))
    elif e.tag in _IN_BODY:  # MuJoCo's table does not say what these take
        e.node.report(Code.UNKNOWN_ATTRIBUTE, key=key)
    else:
        e.node.report(Code.NO_SUCH_ATTRIBUTE, key=plain(key), value=value, tag=e.tag)
        del e.attributes[key]


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
