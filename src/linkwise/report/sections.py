"""The parts of a report, each a piece of HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from math import isinf
from pathlib import Path
from typing import Any

import numpy as np

from linkwise import plots
from linkwise.errors import printable
from linkwise.load import bundled
from linkwise.model.tree import Link
from linkwise.report import html, treepicture
from linkwise.report.findings import OFFSET, RATE, SECONDS, Findings, attempt
from linkwise.spatial.matrices import dot, eigenvalues
from linkwise.text import nanoseconds, ratio
from linkwise.view.arguments import scene_of
from linkwise.view.page import in_notebook
from linkwise.view.show import NOTEBOOK_FACES

MOST_ROWS = 200  # of a table
NEAREST = 8  # checks that are shown at once


def write_report(findings: Findings, path: str | Path) -> Path:
    """Write the report of a robot as one HTML file."""
    to = Path(path)
    to.write_text(report(findings), encoding="utf-8")
    return to


def report(findings: Findings) -> str:
    """The whole page."""
    parts = (_header, _view, _tree, _joints, _inertias, _problems, _agreement, _peers, _counts,
             _speed, _workspace, _swing, _footer)  # fmt: skip
    body = "\n".join(part(findings) for part in parts)
    return html.page(f"{printable(findings.robot.name)}: report", _css(), body)


@cache
def _css() -> str:
    return resources.files("linkwise.report").joinpath("report.css").read_text(encoding="utf-8")


def _tried(title: str, make: Callable[[], str]) -> str:
    """A section, or a sentence that says why there is none."""
    found: Any = attempt(make)
    if found.startswith("<"):
        return html.section(title, found)
    return html.section(title, html.paragraph(f"Not computed: {found}", "soft"))


def _header(f: Findings) -> str:
    robot = f.robot
    gravity = " ".join(f"{x:g}" for x in robot.gravity)
    facts = [
        (f"{robot.nv:,}", "degrees of freedom"),
        (f"{robot.tree.n_links:,}", "moving links"),
        (f"{robot.mass:.4g} kg", "moving mass"),
        (f"{len(robot.frame_names):,}", "frames"),
        (gravity, "gravity, m/s²"),
    ]
    if robot.loops:
        facts.append((f"{len(robot.loops)}", "closed loops"))
    boxes = "".join(
        f"<div><b>{html.text(value)}</b><span>{html.text(name)}</span></div>"
        for value, name in facts
    )
    source = f.source if f.source != robot.name else "bundled robot"
    return (
        f"<header><h1>{html.text(robot.name)}</h1>{html.paragraph(source)}"
        f'<div class="facts">{boxes}</div></header>'
    )


def _view(f: Findings) -> str:
    """The robot in three dimensions, swinging; on paper there is a picture of the tree."""

    def make() -> str:
        swing = attempt(lambda: f.swing)
        motion = None if isinstance(swing, str) else swing
        made = scene_of(f.robot, motion=motion, most_faces=NOTEBOOK_FACES)
        return in_notebook(made, 520)

    return _tried("Look at it", make).replace("<section>", '<section class="screen">', 1)


def _tree(f: Findings) -> str:
    words = "Blue joints turn, orange ones slide, green ones do more; hollow ones follow others."
    picture = treepicture.picture(f.robot.tree)
    return html.section("Tree", picture, html.paragraph(words, "soft"))


def _joints(f: Findings) -> str:
    tree = f.robot.tree
    shown = [tree.links[i] for i in range(min(tree.n_links, MOST_ROWS))]
    head = ("joint", "type", "link", "axis", "lower", "upper", "max rate", "max effort", "damping",
            "friction", "rotor")  # fmt: skip
    described = {joint.name: joint for joint in f.robot.description.joints}
    rows = [_joint(link, described.get(link.joint_name, link)) for link in shown]
    more = f"and {tree.n_links - len(shown):,} more" if tree.n_links > len(shown) else ""
    units = (
        "rad or m, per second, N m or N; rotor inertia kg m² or kg; – is no limit or none. " + more
    )
    return html.section("Joints", html.table(head, rows, 3), html.paragraph(units, "soft"))


def _joint(link: Link, described: Any) -> tuple[str, ...]:
    limits, rotor = link.limits, max(link.armature, default=0.0)
    numbers = (limits.lower, limits.upper, limits.velocity, limits.effort)
    own = (described.damping, described.friction, rotor)
    return (
        link.joint_name,
        link.kind or type(link.joint).__name__.lower(),
        link.name,
        " ".join(f"{x:.3g}" for x in link.axis),
        *("–" if isinf(x) else f"{x:.4g}" for x in numbers),
        *(f"{x:.3g}" if x else "–" for x in own),
    )


def _inertias(f: Findings) -> str:
    robot = f.robot
    names, parameters = robot.body_names[:MOST_ROWS], robot.inertial_parameters[:MOST_ROWS]
    rows = [_body(name, p) for name, p in zip(names, parameters, strict=True)]
    head = ("body", "mass, kg", "centre of mass, m", "principal moments, kg m²", "can exist")
    words = (
        "Moving bodies with the links that are fixed to them. Centres of mass are in the axes of "
        "the joint, moments about the centre. A body can exist if none of its moments is more than "
        "the sum of the other two."
    )
    return html.section("Inertias", html.table(head, rows), html.paragraph(words, "soft"))


def _body(name: str, p: Any) -> tuple[str, ...]:
    m, h = float(p[0]), p[1:4]
    if m <= 0:
        return name, f"{m:.4g}", "–", "–", "without mass"
    xx, xy, yy, xz, yz, zz = p[4:]
    c = h / m
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    about = about - m * (dot(c, c) * np.eye(3) - np.outer(c, c))
    moments = eigenvalues(about)
    slack = 1e-9 * float(np.abs(moments).max()) + 1e-12 * m
    real = moments[0] >= -slack and moments[2] <= moments[0] + moments[1] + slack
    return (
        name,
        f"{m:.4g}",
        "  ".join(f"{x + 0.0:.4g}" for x in np.where(np.abs(c) < 1e-12, 0.0, c)),
        "  ".join(f"{x:.4g}" for x in np.where(np.abs(moments) <= slack, 0.0, moments)),
        "yes" if real else "no",
    )


def _problems(f: Findings) -> str:
    if f.problems is None:
        return html.section("Published parameters", *_published(f.source))
    if not f.problems:
        return html.section("Problems found", html.paragraph("None.", "good"))
    rows = [(x.severity, x.line or "", x.element or "", x.message) for x in f.problems[:MOST_ROWS]]
    table = html.table(("severity", "line", "element", "problem"), rows, 4)
    return html.section("Problems found", table)


def _published(name: str) -> Iterator[str]:
    """Whose numbers a bundled robot has, and what they lack."""
    known = bundled(name)
    if known is None:
        yield html.paragraph("Not a file.", "soft")
        return
    yield html.paragraph(f"A bundled robot, as published: {known.source}.")
    for note in known.notes:
        yield html.paragraph(f"{note[0].upper()}{note[1:]}.", "soft")


def _agreement(f: Findings) -> str:
    def make() -> str:
        checks = f.checks
        failed = [check for check in checks if not check.ok]
        kind = "bad" if failed else "good"
        words = (
            f"{len(failed)} of {len(checks)} checks failed."
            if failed
            else f"All {len(checks)} checks passed: every function and method against its "
            "equations run uncompiled, and against identities of mechanics."
        )
        nearest = sorted(checks, key=lambda check: -check.error / check.limit)[:NEAREST]
        head = ("function", "against", "error", "limit", "result")
        some, every = (
            html.table(head, [check.cells for check in part], 2) for part in (nearest, checks)
        )
        title = html.paragraph("The nearest to their limits:", "soft")
        return html.paragraph(words, kind) + title + some + html.folded("every check", every)

    return _tried("Agreement of methods", make)


def _peers(f: Findings) -> str:
    if not f.seconds:
        return ""

    def make() -> str:
        contest = f.speed[0].contest
        rows = [
            (peer, function, f"{error:.1e}")
            for peer, errors in contest.agreement.items()
            for function, error in errors.items()
        ]
        table = html.table(("library", "function", "largest difference"), rows, 2) if rows else ""
        missing = [
            html.paragraph(f"{name}: {why}", "soft") for name, why in contest.missing.items()
        ]
        return table + "".join(missing)

    return _tried("Agreement with other libraries", make)


def _counts(f: Findings) -> str:
    def make() -> str:
        rows = [
            (c.function, c.method, *(f"{n:,}" for n in (c.count.multiplications, c.count.additions,
             c.count.divisions, c.count.sincos, c.count.total)))
            for c in f.counts
        ]  # fmt: skip
        head = ("function", "method", "mul", "add", "div", "sincos", "total")
        return html.folded(
            "operations of one state, by the method that is chosen", html.table(head, rows, 2)
        )

    def some() -> str:
        wanted = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "jacobian")
        rows = [
            (c.function, c.method, f"{c.count.total:,}") for c in f.counts if c.function in wanted
        ]
        return html.table(("function", "method", "operations"), rows, 2) + make()

    return _tried("Operation counts", some)


def _speed(f: Findings) -> str:
    if not f.seconds:
        return ""

    def make() -> str:
        speed, rows = f.speed
        present = [name for name in speed.contest.agreement if name not in speed.contest.missing]
        head = ["function", "method", "mode", "linkwise, ns"]
        head += [word for name in present for word in (f"{name}, ns", "ratio")]
        lines = []
        for row in rows:
            line = [row.function, row.method, row.mode, nanoseconds(row.times.ours)]
            for name in present:
                line += [nanoseconds(row.times.peers.get(name)), ratio(row.times.ratio(name))]
            lines.append(line)
        words = (
            f"Nanoseconds per state, least of many. batch: {speed.settings.batch:,} states in one "
            "call on one thread; call: one state per Python call."
        )
        machine = html.folded("the machine", f"<pre>{html.text(speed.settings.head())}</pre>")
        return html.table(head, lines, 3) + html.paragraph(words, "soft") + machine

    return _tried("Speed", make)


def _workspace(f: Findings) -> str:
    wanted: dict[str, Callable[..., Any]] = {
        "Where the tip can be": plots.workspace,
        "How heavy the tip feels": plots.inertia,
        "How far the tip is from singular poses": plots.singularities,
    }
    first, *others = (_picture(f, words, draw) for words, draw in wanted.items())
    pair = f'<div class="pair">{"".join(f"<figure>{each}</figure>" for each in others)}</div>'
    return html.section("Workspace", first, pair)


def _picture(f: Findings, words: str, draw: Callable[..., Any]) -> str:
    found = attempt(lambda: html.picture(draw(f.robot), words))
    return found if found.startswith("<") else html.paragraph(f"{words}: {found}", "soft")


def _swing(f: Findings) -> str:
    def make() -> str:
        swing = f.swing
        energy, words = swing.energy, f"{SECONDS:g} s from {OFFSET:g} rad or m off rest, no motors."
        if f.flies:
            words += f" Without gravity, each joint at {RATE:g} rad/s or m/s when it begins."
        largest = float(np.nanmax(energy.kinetic))
        if largest > 0:
            drift = float(np.nanmax(np.abs(energy.total - energy.total[0]))) / largest
            words += f" Energy changes by {drift:.1e} of its largest kinetic part, {largest:.3g} J."
        return html.picture(swing.plot(), "A swing over time") + html.paragraph(words, "soft")

    return _tried("A swing", make)


def _footer(f: Findings) -> str:
    from linkwise import __version__

    return (
        f"<footer>Written by linkwise {__version__}: linkwise report {html.text(f.source)}</footer>"
    )
