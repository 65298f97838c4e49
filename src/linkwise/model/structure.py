"""The shape of a description: one tree of links, names used once, mimics that can follow.

Readers and builders share these checks; each problem is told at the place it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from linkwise.errors import Where, quote, suggestion
from linkwise.model.description import JointDescription, LinkDescription

FOLLOWING = ("revolute", "continuous", "prismatic", "helical")


def check_tree(links: Sequence[LinkDescription], joints: Sequence[JointDescription]) -> str:
    """Check that links and joints form one tree, and return its root link."""
    _check_unique("link", links)
    _check_unique("joint", joints)
    parents: dict[str, JointDescription] = {}
    names = {link.name for link in links}
    for joint in joints:
        _check_ends(joint, names)
        if joint.child in parents:
            first = parents[joint.child]
            raise joint.where.error(
                f"child link {quote(joint.child)} is also the child of joint {quote(first.name)}"
                f"{_line(first.where)}; expected one parent joint per link"
            )
        parents[joint.child] = joint
    roots = [link for link in links if link.name not in parents]
    if len(roots) > 1:
        raise roots[1].where.error(
            f"no joint has this link as child, nor {quote(roots[0].name)}"
            f"{_line(roots[0].where)}; expected one root link, got {len(roots)}"
        )
    _check_no_cycle((link.name for link in links), parents)
    return roots[0].name


def mimic_problem(
    name: str, kinds: Mapping[str, str], drivers: Mapping[str, str | None], where: Where
) -> str | None:
    """What is wrong with the mimic of a joint: it must follow another of one degree that does not.

    ``kinds`` and ``drivers`` (None: the joint follows nothing) are of all joints by name.
    """
    driver = drivers[name]
    if driver is None:
        return None
    if driver not in drivers:
        return f"joint={quote(driver)} {unknown(driver, drivers, where)}"
    if driver == name:
        return f"joint={quote(driver)} is the joint itself; expected another joint"
    if drivers[driver] is not None:
        return f"joint={quote(driver)} is a mimic too; expected a joint that is not"
    for joint in (name, driver) if kinds[name] != "fixed" else ():
        if kinds[joint] not in FOLLOWING:
            known = ", ".join(FOLLOWING)
            return f"{quote(joint)} is {kinds[joint]}; expected one of {known}"
    return None


def check_mimics(joints: Sequence[JointDescription]) -> None:
    """Check what every mimic joint follows."""
    kinds = {joint.name: joint.kind for joint in joints}
    drivers = {joint.name: joint.mimic.joint if joint.mimic else None for joint in joints}
    for joint in joints:
        problem = mimic_problem(joint.name, kinds, drivers, joint.where)
        if problem is not None:
            raise joint.where.error(f"mimic: {problem}")


def unknown(name: str, known: Iterable[str], where: Where) -> str:
    """Say that a name stands for nothing, and which was probably meant."""
    meant = suggestion(name, frozenset(known))
    hint = f", perhaps {quote(meant)}" if meant else ""
    place = "robot" if where.line is None else "file"
    return f"does not exist; expected a name in this {place}{hint}"


def _check_unique(what: str, records: Sequence[LinkDescription | JointDescription]) -> None:
    seen: dict[str, Where] = {}
    for record in records:
        if record.name in seen:
            raise record.where.error(
                f"{what} name {quote(record.name)} is already used"
                f"{_line(seen[record.name])}; expected a new name"
            )
        seen[record.name] = record.where


def _check_ends(joint: JointDescription, names: set[str]) -> None:
    for end, name in (("parent", joint.parent), ("child", joint.child)):
        if name not in names:
            raise joint.where.error(f"{end} link {quote(name)} {unknown(name, names, joint.where)}")
    if joint.parent == joint.child:
        message = f"parent and child are both {quote(joint.child)}; expected two links"
        raise joint.where.error(message)


def _check_no_cycle(names: Iterable[str], parents: Mapping[str, JointDescription]) -> None:
    """Walk from each link towards the root; a link met twice on the way closes a cycle."""
    hangs: set[str] = set()
    for start in names:
        name, way = start, dict[str, None]()
        while name in parents and name not in hangs and name not in way:
            way[name] = None
            name = parents[name].parent
        if name in way:
            loop = list(way)[list(way).index(name) :]
            shown = " -> ".join(map(quote, loop[:5])) + (" -> ..." if len(loop) > 5 else "")
            message = f"closes a cycle of {len(loop)} links ({shown}); expected a tree"
            raise parents[name].where.error(message)
        hangs.update(way)


def _line(where: Where) -> str:
    return "" if where.line is None else f" (line {where.line})"
