"""The tree of a robot as a picture: a line per moving link, below and right of its parent."""

from __future__ import annotations

from linkwise.model.tree import BASE, Tree
from linkwise.report.html import text

MOST = 120  # links that are drawn
STEP, INDENT, TOP = 26, 22, 16
DOT = {"revolute": "#0072b2", "continuous": "#0072b2", "prismatic": "#d55e00", "base": "#1d2733"}
OTHER = "#009e73"  # of joints of other kinds


def picture(tree: Tree) -> str:
    """The picture, as SVG; of many links the first."""
    shown = range(min(tree.n_links, MOST))
    depth, deep = {BASE: 0}, 0
    for i in shown:
        depth[i] = depth[int(tree.parent_numbers[i])] + 1
        deep = max(deep, depth[i])
    indent = min(INDENT, 300 / max(deep, 1))  # deep trees are drawn steeper
    place = {i: (14 + indent * depth[i], TOP + STEP * (i + 1)) for i in (BASE, *shown)}
    lines = [_edge(place[int(tree.parent_numbers[i])], place[i]) for i in shown]
    rows = [_row(*place[BASE], "base", "", "base")]
    widest = 0
    for i in shown:
        link = tree.links[i]
        kind = link.kind or type(link.joint).__name__.lower()
        also = f"{kind} {link.joint_name}"
        rows.append(_row(*place[i], link.name, also, kind, link.follows is not None))
        widest = max(widest, round(place[i][0]) + 8 * (len(link.name) + len(also)))
    height = TOP + STEP * (len(shown) + 1)
    more = tree.n_links - len(shown)
    note = f"<p class='soft'>and {more:,} links more</p>" if more else ""
    return (
        f'<svg viewBox="0 0 {widest + 50} {height}" width="{widest + 50}" role="img" '
        f'aria-label="The tree of links" font-family="system-ui, sans-serif" font-size="13">'
        f"{''.join(lines)}{''.join(rows)}</svg>{note}"
    )


def _edge(parent: tuple[float, float], child: tuple[float, float]) -> str:
    (x0, y0), (x1, y1) = parent, child
    return f'<path d="M{x0:g} {y0:g}V{y1:g}H{x1:g}" fill="none" stroke="#aab4be"/>'


def _row(x: float, y: float, name: str, also: str, kind: str, follows: bool = False) -> str:
    """A dot in the colour of the joint, hollow where it follows another, and the names."""
    colour = DOT.get(kind, OTHER)
    fill = "#fff" if follows else colour
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{fill}" stroke="{colour}" stroke-width="2"/>'
        f'<text x="{x + 11:g}" y="{y + 4.5:g}"><tspan font-weight="600">{text(name)}</tspan>'
        f'<tspan dx="8" fill="#5b6875">{text(also)}</tspan></text>'
    )
