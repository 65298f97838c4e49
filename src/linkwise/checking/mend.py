"""Repairs of robot files: one per code, for what a file must have meant.

A repair changes the text of the element that the problem is about, and says what it did. Where
what was meant is not certain, nothing is changed and the problem stays.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.checking.collect import examine
from linkwise.checking.edits import Edits, Span
from linkwise.codes import Code
from linkwise.errors import Problem, quote
from linkwise.io.xml import Node, PathLike, parse_number
from linkwise.model.bodies import REPAIRABLE, Moments, body_problem, moments, nearest
from linkwise.model.build import members_of
from linkwise.model.description import BodyInertia, RobotDescription

ROUNDS = 10  # a repair can bring another problem to light
TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_BYTES = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")  # UTF-16


@dataclass(frozen=True)
class Page:
    """A file that is being repaired: its text, its elements, and what was read of it."""

    edits: Edits
    nodes: dict[Span, Node]
    description: RobotDescription | None

    def node(self, problem: Problem) -> Node | None:
        """The element that a problem is about."""
        return self.nodes.get(problem.where.span) if problem.where.span else None


@dataclass
class Repaired:
    """A repaired file, and what was changed in which line."""

    data: bytes
    changes: list[tuple[int, str]] = field(default_factory=list)


def repair(path: PathLike, **options: Any) -> Repaired | None:
    """Repair what can be repaired, until nothing more can be; None for a file that is no XML.

    The file itself stays as it is. Options as in `check`.
    """
    _, root, _ = examine(path, **options)
    if root is None:
        return None
    out = Repaired(Path(path).read_bytes())
    if out.data.startswith(_BYTES):
        return out
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        for _ in range(ROUNDS):
            copy.write_bytes(out.data)
            changes = _one_round(copy, out, path, options)
            if not changes:
                break
            out.changes += changes
    out.changes.sort(key=lambda change: change[0])
    return out


def _one_round(
    copy: Path, out: Repaired, path: PathLike, options: Mapping[str, Any]
) -> list[tuple[int, str]]:
    found, root, description = examine(copy, beside=path, **options)
    if root is None:
        return []
    problems = [problem for problem in found if problem.file == os.fspath(copy)]
    page = Page(Edits(out.data), {n.span: n for n in _all(root) if n.span}, description)
    done = [(p.line or 0, REPAIRS[p.code](page, p)) for p in problems if p.code in REPAIRS]
    out.data = page.edits.result()
    return [(line, change) for line, change in done if change]


def _all(root: Node) -> Iterator[Node]:
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo += node.children


# --- repairs -------------------------------------------------------------------------------


def _rename(page: Page, problem: Problem) -> str:
    """Write the tag that was meant."""
    tag, meant = problem.facts["tag"], problem.facts["meant"]
    assert problem.where.span is not None
    page.edits.rename(problem.where.span, meant)
    return f"<{tag}> renamed to <{meant}>"


def _rename_key(page: Page, problem: Problem) -> str:
    """Write the attribute that was meant, unless it is there as well."""
    key, meant = problem.facts["key"], problem.facts["meant"]
    node = page.node(problem)
    if node is None or node.span is None or meant in node.attributes:
        return ""
    page.edits.rename_key(node.span, key, meant)
    return f"{key}= renamed to {meant}="


def _remove_copy(page: Page, problem: Problem) -> str:
    """Take out a second child that says what the first one says."""
    if not problem.facts["same"] or problem.where.span is None:
        return ""
    page.edits.remove(problem.where.span)
    return f"removed the second <{problem.facts['tag']}>"


def _exchange_limits(page: Page, problem: Problem) -> str:
    node = page.node(problem)
    if node is None or node.span is None:
        return ""
    lower, upper = node.attributes.get("lower", "0"), node.attributes.get("upper", "0")
    page.edits.set(node.span, "lower", upper)
    page.edits.set(node.span, "upper", lower)
    return f"lower={quote(lower)} and upper={quote(upper)} exchanged"


def _make_continuous(page: Page, problem: Problem) -> str:
    """A revolute joint without a range is what URDF calls continuous."""
    joint = page.node(problem)
    if joint is not None and joint.tag != "joint":
        joint = next((n for n in page.nodes.values() if joint in n.children), None)
    if joint is None or joint.span is None or joint.attributes.get("type") != "revolute":
        return ""
    page.edits.set(joint.span, "type", "continuous")
    name = quote(joint.attributes.get("name", ""))
    return f"joint {name}: type revolute changed to continuous"


def _exchange_range(page: Page, problem: Problem) -> str:
    node, key = page.node(problem), problem.facts["key"]
    if node is None or node.span is None or key not in node.attributes:
        return ""
    words = node.attributes[key].split()
    page.edits.set(node.span, key, " ".join(reversed(words)))
    return f"{key}={quote(' '.join(words))} exchanged"


def _change_keyword(page: Page, problem: Problem) -> str:
    """Write the word that was meant."""
    meant, key, value = (problem.facts[fact] for fact in ("meant", "key", "value"))
    if meant is None or problem.where.span is None:
        return ""
    page.edits.set(problem.where.span, key, meant)
    return f"{key}={quote(value)} changed to {meant}"


def _change_type(page: Page, problem: Problem) -> str:
    """Write the joint type that was meant."""
    meant = problem.facts["meant"]
    if meant is None or problem.where.span is None:
        return ""
    page.edits.set(problem.where.span, "type", meant)
    return f"type={quote(problem.facts['type'])} changed to {meant}"


def _change_end(page: Page, problem: Problem) -> str:
    """Write the name of the link that was meant."""
    joint, end, meant = page.node(problem), problem.facts["end"], problem.facts["meant"]
    node = None if joint is None else next(joint.all(end), None)
    joints = page.description.joints if page.description else ()
    held = {other.child for other in joints if other.name != problem.facts["joint"]}
    if node is None or node.span is None or (end == "child" and meant in held):
        return ""
    page.edits.set(node.span, "link", meant)
    return f"{end} link {quote(problem.facts['name'])} changed to {quote(meant)}"


def _unit_axis(page: Page, problem: Problem) -> str:
    assert problem.where.span is not None
    page.edits.set(problem.where.span, "xyz", problem.facts["unit"])
    return f"axis xyz={quote(problem.facts['value'])} normalised"


def _nearest_bodies(page: Page, problem: Problem) -> str:
    """Write the nearest inertia that can exist for every link of a body that needs one."""
    if page.description is None:
        return ""
    spans = [link.where.span for link in members_of(page.description, problem.facts["joint"])]
    links = [page.nodes[span] for span in spans if span in page.nodes]
    return "; ".join(change for link in links if (change := _nearest(page, link)))


def _nearest(page: Page, link: Node) -> str:
    parts = [part for inertial in link.all("inertial") for part in inertial.children]
    mass = next((n.attributes.get("value", "") for n in parts if n.tag == "mass"), "")
    inertia = next((n for n in parts if n.tag == "inertia"), None)
    if inertia is None or inertia.span is None:
        return ""
    numbers = [parse_number(text) for text in (mass, *map(inertia.attributes.get, TENSOR)) if text]
    m, *entries = [x for x in numbers if x is not None]
    if len(entries) < len(TENSOR):
        return ""
    xx, xy, xz, yy, yz, zz = entries
    body = moments(BodyInertia(m, tensor=(xx, xy, xz, yy, yz, zz)))
    found = body_problem(body, "")
    if found is None or found[0] not in REPAIRABLE:
        return ""
    for key, value in zip(TENSOR, _tensor(nearest(body)), strict=True):
        page.edits.set(inertia.span, key, f"{value + 0.0:.12g}")
    name = quote(link.attributes.get("name", ""))
    return f"inertia of link {name} replaced by the nearest that can exist"


def _tensor(body: Moments) -> list[float]:
    """The inertia of a body with its centre at the origin: xx, xy, xz, yy, yz, zz."""
    tensor = np.trace(body.second) * np.eye(3) - body.second
    return [float(tensor[i, j]) for i, j in zip(*np.triu_indices(3), strict=True)]


REPAIRS: dict[Code, Callable[[Page, Problem], str]] = {
    Code.MISSPELT_ELEMENT: _rename,
    Code.MISSPELT_ATTRIBUTE: _rename_key,
    Code.SECOND_CHILD: _remove_copy,
    Code.LIMITS_SWAPPED: _exchange_limits,
    Code.RANGE_SWAPPED: _exchange_range,
    Code.UNKNOWN_KEYWORD: _change_keyword,
    Code.NO_LIMIT: _make_continuous,
    Code.NO_RANGE: _make_continuous,
    Code.UNKNOWN_TYPE: _change_type,
    Code.MISSPELT_LINK: _change_end,
    Code.AXIS_LENGTH: _unit_axis,
    Code.TRIANGLE: _nearest_bodies,
    Code.TRIANGLE_NEARLY: _nearest_bodies,
    Code.NEGATIVE_INERTIA: _nearest_bodies,
}
