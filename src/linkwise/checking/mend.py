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

from linkwise.checking.collect import examine
from linkwise.checking.edits import Edits, Span
from linkwise.codes import Code
from linkwise.errors import Problem, quote
from linkwise.io.urdf import TENSOR
from linkwise.io.xml import Node, PathLike, parse_number
from linkwise.model.bodies import REPAIRABLE, body_problem, moments, nearest
from linkwise.model.build import members_of
from linkwise.model.description import BodyInertia, RobotDescription, tensor_of
from linkwise.spatial.matrices import about

ROUNDS = 10  # a repair can bring another problem to light
Facts = Mapping[str, Any]  # what a problem says about its element
_BYTES = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")  # UTF-16


@dataclass(frozen=True)
class Page:
    """A file that is being repaired: its text, its elements, and what was read of it."""

    edits: Edits
    nodes: dict[Span | None, Node]
    description: RobotDescription | None

    def repair(self, problem: Problem) -> str:
        """Repair what is wrong with an element, and say how; nothing where that is not certain."""
        node, mend = self.nodes.get(problem.where.span), REPAIRS.get(problem.code)
        return mend(self, node, problem.facts) if node is not None and mend is not None else ""


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
    done = [(problem.line or 0, page.repair(problem)) for problem in problems]
    out.data = page.edits.result()
    return [(line, change) for line, change in done if change]


def _all(root: Node) -> Iterator[Node]:
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo += node.children


# --- repairs -------------------------------------------------------------------------------


def _rename(page: Page, node: Node, facts: Facts) -> str:
    """Write the tag that was meant."""
    page.edits.rename(node, facts["meant"])
    return f"<{facts['tag']}> renamed to <{facts['meant']}>"


def _rename_key(page: Page, node: Node, facts: Facts) -> str:
    """Write the attribute that was meant, unless it is there as well."""
    key, meant = facts["key"], facts["meant"]
    if meant in node.attributes:
        return ""
    page.edits.rename_key(node, key, meant)
    return f"{key}= renamed to {meant}="


def _remove_copy(page: Page, node: Node, facts: Facts) -> str:
    """Take out a second child that says what the first one says."""
    if not facts["same"]:
        return ""
    page.edits.remove(node)
    return f"removed the second <{facts['tag']}>"


def _exchange_limits(page: Page, node: Node, _: Facts) -> str:
    lower, upper = node.attributes.get("lower", "0"), node.attributes.get("upper", "0")
    page.edits.set(node, "lower", upper)
    page.edits.set(node, "upper", lower)
    return f"lower={quote(lower)} and upper={quote(upper)} exchanged"


def _make_continuous(page: Page, node: Node, _: Facts) -> str:
    """A revolute joint without a range is what URDF calls continuous."""
    joints = [n for n in page.nodes.values() if n is node or node in n.children]
    joint = next((n for n in joints if n.attributes.get("type") == "revolute"), None)
    if joint is None:
        return ""
    page.edits.set(joint, "type", "continuous")
    name = quote(joint.attributes.get("name", ""))
    return f"joint {name}: type revolute changed to continuous"


def _exchange_range(page: Page, node: Node, facts: Facts) -> str:
    key = facts["key"]
    if key not in node.attributes:
        return ""
    words = node.attributes[key].split()
    page.edits.set(node, key, " ".join(reversed(words)))
    return f"{key}={quote(' '.join(words))} exchanged"


def _change_word(page: Page, node: Node, facts: Facts) -> str:
    """Write the word that was meant, where there is one."""
    if facts["meant"] is None:
        return ""
    page.edits.set(node, facts["key"], facts["meant"])
    return f"{facts['key']}={quote(facts['value'])} changed to {facts['meant']}"


def _change_end(page: Page, node: Node, facts: Facts) -> str:
    """Write the name of the link that was meant."""
    end, meant = facts["end"], facts["meant"]
    joints = page.description.joints if page.description else ()
    held = {other.child for other in joints if other.name != facts["joint"]}
    named = next(node.all(end), None)
    if named is None or (end == "child" and meant in held):
        return ""
    page.edits.set(named, "link", meant)
    return f"{end} link {quote(facts['name'])} changed to {quote(meant)}"


def _unit_axis(page: Page, node: Node, facts: Facts) -> str:
    page.edits.set(node, "xyz", facts["unit"])
    return f"axis xyz={quote(facts['value'])} normalised"


def _nearest_bodies(page: Page, _: Node, facts: Facts) -> str:
    """Write the nearest inertia that can exist for every link of a body that needs one."""
    members = members_of(page.description, facts["joint"]) if page.description else []
    links = [page.nodes[link.where.span] for link in members if link.where.span in page.nodes]
    return "; ".join(change for link in links if (change := _nearest(page, link)))


def _nearest_of_link(page: Page, link: Node, _: Facts) -> str:
    """Write the nearest inertia that can exist for one link of a body."""
    return _nearest(page, link)


def _nearest(page: Page, link: Node) -> str:
    parts = [part for inertial in link.all("inertial") for part in inertial.children]
    mass = next((n.attributes.get("value", "") for n in parts if n.tag == "mass"), "")
    inertia = next((n for n in parts if n.tag == "inertia"), None)
    if inertia is None:
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
    second = nearest(body).second
    tensor = tensor_of(about(second))
    for key, value in zip(TENSOR, tensor, strict=True):
        page.edits.set(inertia, key, f"{value + 0.0:.12g}")
    name = quote(link.attributes.get("name", ""))
    return f"inertia of link {name} replaced by the nearest consistent one"


REPAIRS: dict[Code, Callable[[Page, Node, Facts], str]] = {
    Code.MISSPELT_ELEMENT: _rename,
    Code.MISSPELT_ATTRIBUTE: _rename_key,
    Code.SECOND_CHILD: _remove_copy,
    Code.LIMITS_SWAPPED: _exchange_limits,
    Code.RANGE_SWAPPED: _exchange_range,
    Code.UNKNOWN_KEYWORD: _change_word,
    Code.NO_LIMIT: _make_continuous,
    Code.NO_RANGE: _make_continuous,
    Code.UNKNOWN_TYPE: _change_word,
    Code.MISSPELT_LINK: _change_end,
    Code.AXIS_LENGTH: _unit_axis,
    Code.TRIANGLE: _nearest_bodies,
    Code.TRIANGLE_NEARLY: _nearest_bodies,
    Code.NEGATIVE_INERTIA: _nearest_bodies,
    Code.HIDDEN_TRIANGLE: _nearest_of_link,
    Code.HIDDEN_NEGATIVE_INERTIA: _nearest_of_link,
}
