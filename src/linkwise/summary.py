"""A robot as a readable table."""

from __future__ import annotations

from math import isinf

from linkwise.model.tree import BASE, Link, Tree


def summary(name: str, tree: Tree) -> str:
    """Joints, axes, limits and masses, one line per moving link."""
    mass = sum(link.mass for link in tree.links)
    gravity = " ".join(f"{x:g}" for x in tree.gravity)
    title = (
        f"{name}: {tree.nv} degrees of freedom, {len(tree.frames)} frames, "
        f"{mass:.4g} kg moving, gravity ({gravity}) m/s²"
    )
    head = ("#", "joint", "type", "parent", "link", "axis", "lower", "upper", "max rate",
            "max effort", "mass [kg]", "rotor")  # fmt: skip
    rows = [_row(i, link, tree) for i, link in enumerate(tree.links)]
    return "\n".join((title, "", table(head, rows)))


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


def table(head: tuple[str, ...], rows: list[tuple[str, ...]], left: tuple[int, ...] = ()) -> str:
    """Columns that line up: words to the left, numbers to the right."""
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    words = [k in left or any(not _numeric(row[k]) for row in rows) for k in range(len(head))]

    def line(cells: tuple[str, ...]) -> str:
        parts = (
            cell.ljust(w) if is_word else cell.rjust(w)
            for cell, w, is_word in zip(cells, widths, words, strict=True)
        )
        return "  ".join(parts).rstrip()

    rule = "  ".join("-" * w for w in widths)
    return "\n".join((line(head), rule, *map(line, rows)))


def _numeric(cell: str) -> bool:
    return cell in ("", "-") or (
        cell.lstrip("+-").replace(".", "", 1)[:1].isdigit() and " " not in cell
    )
