"""The README's Python blocks and the examples run as they stand."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from linkwise.cli.main import main
from linkwise.codes import Code

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
MADE = ("docs/examples/*.md", "docs/gallery.md", "docs/problems.md")  # by `make docs`
WRITTEN = [p for p in (ROOT / "docs").rglob("*.md") if not any(map(p.match, MADE))]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(WRITTEN)]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_the_readme_has_a_short_example():
    assert BLOCKS
    assert len(BLOCKS[0].strip().splitlines()) <= 12


@pytest.mark.parametrize("block", BLOCKS)
def test_readme_blocks_run(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "block.py"
    script.write_text(block)
    runpy.run_path(str(script))


@pytest.mark.parametrize("page", ["start", "features"])
def test_blocks_of_a_page_run_one_after_another(page, tmp_path, monkeypatch):
    run_blocks((ROOT / "docs" / f"{page}.md").read_text(), tmp_path, monkeypatch)


@pytest.mark.parametrize("library", ["Pinocchio", "MuJoCo", "Drake", "roboticstoolbox"])
def test_lines_side_by_side_agree(library, tmp_path, monkeypatch):
    """The part of coming_from.md about a library, after what all have in common."""
    pytest.importorskip({"Drake": "pydrake"}.get(library, library.lower()))
    common, *parts = re.split(r"^## ", (ROOT / "docs" / "coming_from.md").read_text(), flags=re.M)
    (own,) = [part for part in parts if part.startswith(f"{library}\n")]
    assert "assert np.allclose" in own
    run_blocks(common + own, tmp_path, monkeypatch)


def run_blocks(text, folder, monkeypatch):
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))
    script = folder / "page.py"
    script.write_text(code.replace('"docs/', f'"{ROOT}/docs/'))
    monkeypatch.chdir(folder)
    runpy.run_path(str(script))


def test_the_readme_names_commands_that_exist():
    text = (ROOT / "README.md").read_text()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"make ([a-z]+)", text)) <= targets


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_pages_show_commands_that_exist(path):
    """Every `linkwise ...` in backticks is a command with those options, every tool is there."""
    text = path.read_text(encoding="utf-8")
    for words in re.findall(r"`linkwise ([^`]+)`", text):
        name, *arguments = words.split(">")[0].split()
        command = main.commands[name]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in arguments if word.startswith("-")} <= known, words
    for tool in re.findall(r"tools/\w+\.py", text):
        assert (ROOT / tool).is_file(), tool
    for page in re.findall(r"docs/[\w/-]+\.md", text):
        assert (ROOT / page).is_file(), page


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_run_and_make_a_picture(path, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    if re.search(r"^no .* without ", done.stdout):
        return  # the package, or the compiler, that it is about is missing: it says so
    picture = tmp_path / f"{path.stem.split('_', 1)[1]}.png"
    assert picture.read_bytes().startswith(b"\x89PNG"), "no picture"


def test_the_gallery_shows_every_example_with_its_picture(tmp_path):
    gallery = runpy.run_path(str(ROOT / "docs" / "extensions" / "example_pages.py"))
    shown = [number for numbers in gallery["SECTIONS"].values() for number in numbers]
    assert sorted(shown) == sorted(path.name[:2] for path in EXAMPLES)
    gallery["write"](tmp_path)
    text = (tmp_path / "gallery.md").read_text()
    for path in EXAMPLES:
        picture = gallery["picture_of"](path)
        assert f"pictures/{picture}" in text
        assert (ROOT / "docs" / "pictures" / picture).is_file(), picture
        assert f"examples/{path.stem}" in text


def test_the_page_of_problems_has_every_code(tmp_path):
    page = runpy.run_path(str(ROOT / "docs" / "extensions" / "problem_pages.py"))
    page["write"](tmp_path)
    text = (tmp_path / "problems.md").read_text(encoding="utf-8")
    missing = [code.name for code in Code if f"| `{code.name}`" not in text]
    assert missing == ["OTHER", "OTHER_TOLD"]  # whose words are their places' own
    assert "{" not in text
