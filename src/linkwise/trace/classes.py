"""Links in classes: what is alike in many links, and tables of the numbers in which they differ.

A class has one kind of joint, one pattern of turns between parent and link, and the same zeros,
ones and minus ones. A number that is the same in all its links is a constant of the code; any other
is read from a table, a row per link. There are at most `MOST` classes: of rarer patterns each joint
kind has one class that is general, whose turns are matrices, and one for joints that follow others.
Where even those are more, revolute joints are helical ones that do not advance.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.model.joints import Helical, Revolute
from linkwise.model.linktable import LinkTable, numbers
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Mat3, Rotation, Transform, Vec3
from linkwise.spatial.records import leaves

MOST = 8
SOME = -2  # the parent of an example: neither the base nor any link in particular
ALIKE = (0.0, 1.0, -1.0)  # numbers that make a pattern: arithmetic with them costs nothing


@dataclass(frozen=True)
class LinkClass:
    """Links that are computed by the same code; any one of them as an example."""

    example: Link
    columns: tuple[int | None, ...]  # of each number: its column of the table; None: a constant


@dataclass(frozen=True)
class Classes:
    """The classes of a tree, the class of each link, and the table of the links' numbers."""

    classes: tuple[LinkClass, ...]
    of_link: NDArray[np.int64]
    table: NDArray[np.float64]  # (links, columns)


def general(link: Link) -> Link:
    """The same link with its turns multiplied out."""
    rows = [link.placement.rotate(Vec3(*unit)) for unit in np.eye(3).tolist()]
    turn = Rotation(Mat3(*rows).T)
    return replace(link, placement=Transform(link.placement.r, (turn,)))


def as_helical(link: Link) -> Link:
    """A revolute joint as one that moves by no length along its axis as it turns."""
    return replace(link, joint=Helical(0.0)) if isinstance(link.joint, Revolute) else link


KEPT = "classes of links"


def classes_of(tree: Tree) -> Classes:
    """The links of a tree in classes; all functions of a robot share them and their table."""
    kept = tree.__dict__
    if KEPT not in kept:
        kept[KEPT] = _classified(tree)
    return kept[KEPT]  # type: ignore[no-any-return]


def _classified(tree: Tree) -> Classes:
    if isinstance(tree.links, LinkTable):
        table = tree.links
        rows = [(table.first_of(k), kind.rows) for k, kind in enumerate(table.kinds)]
        return _classes(rows, table.kind_of)
    links = list(tree.links)
    if len({_kind(link) for link in links}) > MOST:
        links = [as_helical(link) for link in links]
    patterns = [_pattern(link) for link in links]
    common = {p for p, _ in Counter(patterns).most_common(_room(links, patterns))}
    for i, pattern in enumerate(patterns):
        if pattern not in common:
            links[i] = general(links[i])
            patterns[i] = (*_kind(links[i]), "general")
    order = {pattern: k for k, pattern in enumerate(dict.fromkeys(patterns))}
    of_link = np.array([order[p] for p in patterns], np.int64)
    members: list[list[Link]] = [[] for _ in order]
    for link, k in zip(links, of_link, strict=True):
        members[k].append(link)
    rows = [(own[0], np.array([leaves(numbers(x)) for x in own], float)) for own in members]
    return _classes(rows, of_link)


def _classes(kinds: list[tuple[Link, NDArray[np.float64]]], of_link: NDArray[np.int64]) -> Classes:
    """Classes from an example of each and the numbers of its links, a row per link."""
    varying = [(rows != rows[:1]).any(0) for _, rows in kinds]
    table = np.zeros((len(of_link), max((int(v.sum()) for v in varying), default=0)))
    found = []
    for k, ((example, rows), varies) in enumerate(zip(kinds, varying, strict=True)):
        places = iter(range(int(varies.sum())))
        columns = tuple(next(places) if v else None for v in varies)
        found.append(LinkClass(replace(example, parent=SOME), columns))
        table[of_link == k, : int(varies.sum())] = rows[:, varies]
    return Classes(tuple(found), of_link, table)


def _room(links: list[Link], patterns: list[Any]) -> int:
    """How many patterns can have a class of their own."""
    if len(set(patterns)) <= MOST:
        return MOST
    return max(MOST - len({_kind(link) for link in links}), 0)


def _kind(link: Link) -> tuple[type, bool]:
    """What code of links of one class has in common at least."""
    return type(link.joint), link.follows is not None


def _pattern(link: Link) -> tuple[Any, ...]:
    record = numbers(link)
    alike = tuple(x if x in ALIKE else None for x in leaves(record))
    return (*_kind(link), _made(link.placement.turns), alike)


def _made(turns: tuple[Any, ...]) -> tuple[str, ...]:
    """How turns are written: axes, or matrices."""
    return tuple(getattr(turn, "axis", "matrix") for turn in turns)
