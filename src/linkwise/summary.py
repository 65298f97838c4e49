"""A robot as a readable table."""

from __future__ import annotations

from math import isinf

from linkwise.errors import printable
from linkwise.model.tree import BASE, Link, Tree
from linkwise.text import aligned

MOST_SHOWN = 200  # links
MOST_DRAWN = 20  # links of a chain without branches


def summary(name: str, tree: Tree) -> str:
    """Joints, axes, limits and masses, a line per moving link; of many the first and the last."""
    gravity = " ".join(f"{x:g}" for x in tree.gravity)
    title = (
        f"{printable(name)}: {tree.nv} degrees of freedom, {len(tree.frames)} frames, "
        f"{tree.mass:.4g} kg moving, gravity ({gravity}) m/s²"
    )
    head = ("#", "<joint", "<type", "<parent", "<link", "<axis", "lower", "upper", "max rate",
            "max effort", "mass [kg]", "rotor")  # fmt: skip
    count = tree.n_links
    shown = range(count) if count <= MOST_SHOWN else (*range(20), *range(count - 5, count))
    rows = [_row(i, tree.links[i], tree) for i in shown]
    table = aligned(head, rows, words=0)
    if len(rows) < count:
        lines = table.splitlines()
        lines.insert(-5, f"... {count - len(rows):,} links more")
        table = "\n".join(lines)
    ties = [_tie(tree.links[i], tree) for i in shown if tree.links[i].follows is not None]
    ties += [f"closed: {printable(name)}" for name in tree.loop_names]
    return "\n".join((title, "", table, *(["", *ties] if ties else [])))


def drawn(tree: Tree) -> str:
    """The moving links as a tree of text, each with the joint that moves it."""
    children: dict[int, list[int]] = {}
    for i in range(tree.n_links):
        children.setdefault(int(tree.parent_numbers[i]), []).append(i)
    if tree.n_links > MOST_DRAWN and all(len(own) == 1 for own in children.values()):
        return f"base\n└─ a chain of {tree.n_links:,} links"
    lines, todo = ["base"], [(i, "") for i in reversed(children.get(BASE, []))]
    last = {own[-1] for own in children.values()}
    while todo and len(lines) <= MOST_SHOWN:
        i, before = todo.pop()
        link, end = tree.links[i], i in last
        words = f"{printable(link.name)}  ({printable(link.joint_name)}, {link.kind})"
        lines.append(f"{before}{'└─' if end else '├─'} {words}")
        inner = before + ("   " if end else "│  ")
        todo += [(k, inner) for k in reversed(children.get(i, []))]
    if len(lines) <= tree.n_links:
        lines.append(f"... {tree.n_links + 1 - len(lines):,} links more")
    return "\n".join(lines)


def _row(i: int, link: Link, tree: Tree) -> tuple[str, ...]:
    parent = "base" if link.parent == BASE else tree.links[link.parent].name
    limits = link.limits
    rotor = max(link.armature)
    return (
        str(i),
        link.joint_name,
        link.kind,
        parent,
        link.name,
        " ".join(f"{x:.4g}" for x in link.axis),
        *(_limit(x) for x in (limits.lower, limits.upper, limits.velocity, limits.effort)),
        f"{link.mass:.4g}",
        f"{rotor:.4g}" if rotor else "-",
    )


def _tie(link: Link, tree: Tree) -> str:
    """How a joint follows another."""
    tie = link.follows
    assert tie is not None
    offset = f" {'-' if tie.offset < 0 else '+'} {abs(tie.offset):g}" if tie.offset else ""
    own, driver = printable(link.joint_name), printable(tree.links[tie.link].joint_name)
    return f"{own} has no number of its own in q: it is {tie.multiplier:g} × {driver}{offset}"


def _limit(x: float) -> str:
    return "-" if isinf(x) else f"{x:.4g}"
