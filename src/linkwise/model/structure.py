"""The shape of a description: one tree of links, names used once, mimics that can follow.

Readers and builders share these checks; each problem is reported at the place it came from. While
problems are collected, one that follows from another is not a problem of its own: a name that
nothing has is explained by a link that lost its name, a second root by a joint that lost its child.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from typing import TypeVar

from linkwise.codes import Code
from linkwise.errors import HOLE, Where, quote, suggestion
from linkwise.model.description import BodyInertia, JointDescription, LinkDescription, Mimic

FOLLOWING = ("revolute", "continuous", "prismatic", "helical")

MOST_SUGGESTED = 100  # unknown names for which a known one is looked for
_DIGITS = re.compile(r"[0-9]+")
_UNNAMED = "\0"  # begins no name of a file

Pair = tuple[JointDescription, JointDescription]
Record = TypeVar("Record", LinkDescription, JointDescription)


def mended_tree(
    links: Sequence[LinkDescription], joints: Sequence[JointDescription]
) -> tuple[str, tuple[LinkDescription, ...], tuple[JointDescription, ...]]:
    """The root link, the links and the joints of the one tree that they form.

    Past problems, every link hangs on the tree, by a joint of six degrees where its own is wrong.
    """
    named, nameless = _by_name("link", links)
    apart, renamed = _by_name("joint", joints)
    kept = set(map(id, (*apart.values(), *renamed)))
    ends = _Ends(named, [joint for joint in joints if id(joint) in kept])
    ends.adopt(nameless)
    for joint in ends.joints:
        ends.hold(joint)
    base = ends.one_root()
    ends.cut_cycles()
    if base is None:  # every link hangs on another, or none has a name: start at one of them
        base = next(iter(ends.parents or ends.links))
        ends.parents.pop(base, None)
    return base, tuple(ends.links.values()), tuple(ends.hung_on(base))


def _by_name(what: str, records: Iterable[Record]) -> tuple[dict[str, Record], list[Record]]:
    """Records by name, and those that have none: it is missing, or an earlier record has it.

    A copy of an earlier record, in all but its place, is left out.
    """
    found: dict[str, Record] = {}
    lost: list[Record] = []
    for record in records:
        first = found.setdefault(record.name, record) if record.name is not HOLE else None
        if first is None:
            lost.append(record)
        elif first is not record:
            line = _line(first.where)
            record.where.report(Code.NAME_TAKEN, what=what, name=record.name, line=line)
            lost += [record] if record != first else []
    return found, lost


@dataclass
class _Ends:
    """Which joint holds which link."""

    links: dict[str, LinkDescription]
    joints: list[JointDescription]
    parents: dict[str, JointDescription] = field(default_factory=dict)  # by the link they hold
    doubled: list[Pair] = field(default_factory=list)  # joints that hold the same link
    loose: int = 0  # joints whose child cannot be known
    stumps: list[str] = field(default_factory=list)  # where joints without a child begin
    told: set[str] = field(default_factory=set)  # names that nothing has

    def __post_init__(self) -> None:
        self.children = Counter(joint.child for joint in self.joints)
        self.uses = self.children + Counter(joint.parent for joint in self.joints)

    def adopt(self, nameless: Sequence[LinkDescription]) -> None:
        """Give links that lost their names the names that joints use and nothing has."""
        free = [name for name in self.uses if name not in self.links and name is not HOLE]
        free.sort(key=lambda name: (name not in self.children, -self.uses[name]))
        free += [f"{_UNNAMED}{k}" for k in range(len(nameless))]
        for name, link in zip(free, nameless, strict=False):
            self.links[name] = replace(link, name=name)

    def hold(self, joint: JointDescription) -> None:
        """Note which link a joint holds, and report what is wrong with its ends.

        A link that cannot be known has an inertia that is not known: NaN.
        """
        parent, child = self._end(joint, "parent"), self._end(joint, "child")
        if parent == child is not HOLE:
            joint.where.report(Code.OWN_PARENT, name=child)
            parent = HOLE
        if child is HOLE:
            self.stumps.append(parent)
            child = f"{_UNNAMED}{joint.where}"
            self.links[child] = LinkDescription(child, BodyInertia(nan), where=joint.where)
        first = self.parents.setdefault(child, replace(joint, parent=parent, child=child))
        if first.where is not joint.where:
            facts = {"child": child, "joint": first.name, "line": _line(first.where)}
            joint.where.report(Code.SECOND_PARENT, **facts)
            self.doubled.append((first, joint))

    def _end(self, joint: JointDescription, end: str) -> str:
        """The link at an end of a joint; past an unknown one, the link that was perhaps meant."""
        name: str = getattr(joint, end)
        if name in self.links:
            return name
        if name is HOLE:
            self.loose += end == "child"
            return HOLE
        meant = self._meant(name)
        if name not in self.told:
            self.told.add(name)
            code = Code.MISSPELT_LINK if meant else Code.UNKNOWN_LINK
            facts = {"end": end, "name": name, "place": _place(joint.where)}
            joint.where.report(code, **facts, meant=meant, joint=joint.name)
        if meant in (self.children if end == "child" else {joint.child}):
            meant = None  # another joint holds that link, or this one ends there
        if meant is None and end == "child":  # a link that is missing leaves no other one loose
            self.loose += self.uses[name] == self.children[name]
        return meant or HOLE

    def _meant(self, name: str) -> str | None:
        """The link that a name was probably meant to be; several joints do not misspell alike."""
        if len(self.told) > MOST_SUGGESTED:
            return None
        known = [link for link in self.links if self.uses[name] == 1 or not self.uses[link]]
        meant = suggestion(name, frozenset(known))
        numbered = meant and _DIGITS.sub("", meant) == _DIGITS.sub("", name)
        return None if numbered else meant

    def one_root(self) -> str | None:
        """The root; other links that hang on nothing are reported, unless that is explained."""
        roots = [name for name in self.links if name not in self.parents and name[0] != _UNNAMED]
        carrying = {joint.parent for joint in self.parents.values()}
        inboard = [name for name in map(self._root_of, self.stumps) if name in roots]
        likely = inboard or [name for name in roots if name in carrying] or roots
        base = likely[0] if likely else None
        swapped = self._turned_round(roots)
        others = [name for name in roots if name != base and name not in swapped]
        explained = sorted(others, key=lambda name: name not in carrying)[: self.loose]
        for name in others:
            if name not in explained and base is not None:
                line = _line(self.links[base].where)
                facts = {"first": base, "line": line, "count": len(roots)}
                self.links[name].where.report(Code.SECOND_ROOT, **facts)
        return base

    def _turned_round(self, roots: Sequence[str]) -> set[str]:
        """Roots that a joint would hold if its ends were exchanged, of those that share a child.

        That leaves a tree where the other joint that holds the link does not hang on the root.
        """
        return {
            joint.parent
            for pair in self.doubled
            for joint, other in (pair, pair[::-1])
            if joint.parent in roots and self._root_of(other.parent) != joint.parent
        }

    def _root_of(self, name: str) -> str:
        """The link that a link hangs on in the end."""
        seen: set[str] = set()
        while name in self.parents and name not in seen:
            seen.add(name)
            name = self.parents[name].parent
        return name

    def cut_cycles(self) -> None:
        """Walk from each link towards the root; a link met twice on the way closes a cycle."""
        hangs: set[str] = set()
        for start in self.links:
            name, way = start, dict[str, None]()
            while name in self.parents and name not in hangs and name not in way:
                way[name] = None
                name = self.parents[name].parent
            if name in way:
                loop = list(way)[list(way).index(name) :]
                shown = " -> ".join(map(quote, loop[:5])) + (" -> ..." if len(loop) > 5 else "")
                joint = self.parents[name]
                joint.where.report(Code.CYCLE, count=len(loop), links=shown)
                self.parents[name] = replace(joint, parent=HOLE)
            hangs.update(way)

    def hung_on(self, base: str) -> Iterable[JointDescription]:
        """Every joint in order of the file, then one for each link that nothing holds."""
        for joint in self.parents.values():
            if joint.parent is HOLE:
                kind = HOLE if joint.kind == "fixed" else joint.kind
                joint = replace(joint, parent=base, kind=kind, mimic=None)
            yield joint
        for name, link in self.links.items():
            if name != base and name not in self.parents:
                yield JointDescription(name, "free", base, name, where=link.where)


# --- mimics --------------------------------------------------------------------------------


def resolved_mimics(joints: Sequence[JointDescription]) -> tuple[JointDescription, ...]:
    """Return the joints with each mimic joint tied to the joint at the end of its chain.

    A mimic joint may follow another one, and so on to a joint of one degree that follows none.
    """
    _check_mimics(joints)
    known = {joint.name: joint for joint in joints}
    return tuple(
        joint if joint.mimic is None else replace(joint, mimic=_end_of_chain(joint.mimic, known))
        for joint in joints
    )


def _end_of_chain(mimic: Mimic, known: Mapping[str, JointDescription]) -> Mimic:
    """The mimic of the joint that moves on its own; in a circle, which is reported, the given."""
    end, driver = mimic, known.get(mimic.joint)
    for _ in known:
        if driver is None or driver.mimic is None:
            return end
        inner = driver.mimic
        offset = end.multiplier * inner.offset + end.offset
        end = Mimic(inner.joint, end.multiplier * inner.multiplier, offset, mimic.where)
        driver = known.get(inner.joint)
    return mimic


def _check_mimics(joints: Sequence[JointDescription]) -> None:
    """Report mimic joints that follow no joint of one degree which moves on its own."""
    known = {joint.name: joint for joint in joints}
    lost = sum(joint.name is HOLE for joint in joints) + len(joints) - len(known)
    strangers = [j.mimic.joint for j in joints if j.mimic and j.mimic.joint not in known]
    explained = {HOLE, *list(dict.fromkeys(strangers))[:lost]}
    for joint in joints:
        if joint.mimic is not None and joint.mimic.joint not in explained:
            _check_mimic(joint, known)


def _check_mimic(joint: JointDescription, known: Mapping[str, JointDescription]) -> None:
    assert joint.mimic is not None
    where, word = (joint.mimic.where, "") if joint.mimic.where else (joint.where, "mimic: ")
    name = joint.mimic.joint
    driver = known.get(name)
    if driver is None:
        meant = suggestion(name, frozenset(known) - {joint.name})
        perhaps = f", perhaps {quote(meant)}" if meant else ""
        place = _place(joint.where)
        where.report(Code.UNKNOWN_DRIVER, mimic=word, name=name, place=place, perhaps=perhaps)
    elif driver is joint:
        where.report(Code.FOLLOWS_ITSELF, mimic=word, name=name)
    elif _in_circle(joint, known):
        where.report(Code.FOLLOWS_IN_CIRCLE, name=joint.name, driver=name)
    else:
        for each in (joint, driver):
            if each.kind not in (*FOLLOWING, HOLE):
                facts = {"name": each.name, "kind": each.kind, "known": ", ".join(FOLLOWING)}
                where.report(Code.CANNOT_FOLLOW, mimic=word, **facts)
                break


def _in_circle(joint: JointDescription, known: Mapping[str, JointDescription]) -> bool:
    """Whether following drivers from a joint leads back to it."""
    driver = joint
    for _ in known:
        if driver.mimic is None or driver.mimic.joint not in known:
            return False
        driver = known[driver.mimic.joint]
        if driver is joint:
            return True
    return False  # its chain ends in a circle of others, which they report


def _place(where: Where) -> str:
    return "robot" if where.line is None else "file"


def _line(where: Where) -> str:
    return "" if where.line is None else f" (line {where.line})"
