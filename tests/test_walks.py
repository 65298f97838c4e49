"""No algorithm loops over links, since every walk is in sweep.py; each fits on a page."""

import ast
from pathlib import Path

import pytest

import linkwise

FILES = sorted((Path(linkwise.__file__).parent / "algorithms").glob("*.py"))
PAGE = 100  # lines
LINKS = {"links", "path", "n_links", "parent"}  # attributes that lead from one link to others


def loops(source: str) -> list[str]:
    """Loops and comprehensions over links, and loops that follow parents, as they are written."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.For | ast.comprehension):
            head: ast.AST = node.iter
        elif isinstance(node, ast.While):
            head = node
        else:
            continue
        names = {x.attr for x in ast.walk(head) if isinstance(x, ast.Attribute)}
        if names & LINKS:
            found.append(ast.unparse(head))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_algorithms_leave_loops_over_links_to_the_walks(path: Path) -> None:
    assert loops(path.read_text()) == []


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.stem != "__init__"], ids=lambda path: path.stem
)
def test_an_algorithm_fits_on_a_page(path: Path) -> None:
    """With its equations and derivations; `__init__` is the table of all of them."""
    assert len(path.read_text().splitlines()) <= PAGE


@pytest.mark.parametrize(
    "source",
    [
        "for link in tree.links: pass",
        "for i, link in enumerate(tree.links): pass",
        "x = [f(i) for i in range(len(tree.links))]",
        "x = [f(i) for i in tree.path(3)]",
        "while tree.links[i].parent != -1: i = tree.links[i].parent",
        "while i >= 0:\n    i = links[i].parent",
        "x = {i: f(a) for i, a in zip(range(tree.n_links), b)}",
    ],
)
def test_a_loop_over_links_is_found(source: str) -> None:
    assert len(loops(source)) == 1


def test_loops_over_columns_are_no_loops_over_links() -> None:
    assert loops("for column, rotor in zip(J.S, link.armature): x = link.parent") == []
