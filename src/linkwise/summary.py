"""A robot as a readable table."""

from __future__ import annotations

from math import isinf

from linkwise.errors import printable
from linkwise.model.tree import BASE, Link, Tree
from linkwise.text import aligned


def summary(name: str, tree: Tree) -> str:
    """Joints, axes, limits and masses, one line per moving link."""
    mass = sum(link.mass for link in tree.links)
    gravity = " ".join(f"{x:g}" for x in tree.gravity)
    title = (
        f"{printable(name)}: {tree.nv} degrees of freedom, {len(tree.frames)} frames, "
        f"{mass:.4g} kg moving, gravity ({gravity}) m/s²"
    )
    head = ("#", "<joint", "<type", "<parent", "<link", "<axis", "lower", "upper", "max rate",
            "max effort", "mass [kg]", "rotor")  # fmt: skip
    rows = [_row(i, link, tree) for i, link in enumerate(tree.links)]
    return "\n".join((title, "", aligned(head, rows, words=0)))


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


def _limit(x: float) -> str:
    return "-" if isinf(x) else f"{x:.4g}"
