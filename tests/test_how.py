"""Examples with output, on pages about how linkwise works and papers, give what they say."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import linkwise

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "how").glob("*.md"))
OTHERS = [ROOT / "docs" / "methods.md", *sorted((ROOT / "docs" / "papers").glob("*.md"))]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NEEDED = {"algorithms": ["mpmath"], "doors": ["sympy", "casadi"]}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda p: p.stem)
def test_examples_of_a_page_give_what_it_says(page, monkeypatch):
    for package in NEEDED.get(page.stem, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(>>> .*?)```", page.read_text(encoding="utf-8"), re.S)
    code = "\n".join(blocks)
    test = doctest.DocTestParser().get_doctest(code, {}, page.stem, str(page), 0)
    assert test.examples
    said = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
    assert not said, "".join(said)


def test_every_folder_has_a_page():
    """A new folder of the package is explained somewhere."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    folders = [path.parent.name for path in (ROOT / "src" / "linkwise").glob("*/__init__.py")]
    missing = [name for name in folders if f"`{name}/" not in text and name != "models"]
    assert not missing


def test_pages_name_files_that_exist():
    """Every `file.py` of a page is a file of the package, in a folder that the page is about."""
    known = {p.name for p in (ROOT / "src" / "linkwise").rglob("*.py")}
    for page in PAGES:
        named = re.findall(r"`(?:[\w/]+/)?(\w+\.py)`", page.read_text(encoding="utf-8"))
        assert set(named) <= known, page.name


def test_the_sweeps_of_inverse_dynamics_are_shown_as_they_are():
    """The driver on the page is that of algorithms/rnea.py, without its types and docstring."""
    page = (ROOT / "docs" / "how" / "algorithms.md").read_text(encoding="utf-8")
    shown = re.search(r"def rnea\(.*?\n```", page, re.S).group().removesuffix("\n```")
    source = (ROOT / "src" / "linkwise" / "algorithms" / "rnea.py").read_text(encoding="utf-8")
    for line in shown.splitlines()[1:]:
        assert line in source, line


def test_the_reference_lists_every_function_of_a_robot_by_its_topic():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    listed = re.findall(r"`~linkwise\.Robot\.(\w+)`", page)
    members = inspect.getmembers(linkwise.Robot, callable)
    assert sorted(listed) == [name for name, _ in members if not name.startswith("_")]
