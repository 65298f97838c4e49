"""The words of this project: few of the stop list in prose, few of the forbidden identifiers.

CONTRIBUTING.md has the rules and the glossary. Each count below is a ratchet: it may only fall. A
change that lowers one lowers its number here too; a change that raises one says the same in the
words of the field.

    python tests/test_language.py              all counts, as a table of this file
    python tests/test_language.py beside own   the lines in which these words occur
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# a name and a pattern of prose: comments, docstrings and messages of src, and pages
PROSE = {
    "what is": r"what (?:is|was|are|were|it|they)",
    "where it": r"where (?:it|that|there|they|those)",
    "anew": r"anew",
    "beside": r"beside",
    "told": r"told",
    "so many": r"so many",
    "as many": r"as many",
    "mended": r"mend(?:s|ed)?",
    "yields": r"yield(?:s|ed)?",
    "own": r"own",
    "but for": r"but for",
    "cannot exist": r"cannot exist",
    "written out": r"written out",
    "flying base": r"(?:flying|free-flying) base",
    "dearer": r"dearer|cheaper",
}
IDENTIFIERS = (
    "found", "own", "given", "known", "made", "told", "room", "way", "held", "kept", "rest", "left",
    "asked", "wanted", "beside", "beyond", "place", "places", "piece", "pieces", "rates", "turned",
    "moved", "whole", "facts", "settled", "anew", "lent", "pushes", "pulls", "numbers", "more",
)  # fmt: skip

MADE = ("gallery.md", "problems.md")  # pages that `make docs` writes, as docs/examples/

MOST_PROSE = {
    "what is": 451,
    "where it": 270,
    "anew": 13,
    "beside": 127,
    "told": 66,
    "so many": 43,
    "as many": 51,
    "mended": 12,
    "yields": 20,
    "own": 437,
    "but for": 15,
    "cannot exist": 3,
    "written out": 35,
    "flying base": 10,
    "dearer": 11,
}
MOST_IDENTIFIERS = {
    "found": 399,
    "own": 387,
    "given": 161,
    "known": 110,
    "made": 82,
    "told": 38,
    "room": 62,
    "way": 58,
    "held": 59,
    "kept": 39,
    "rest": 80,
    "left": 68,
    "asked": 54,
    "wanted": 49,
    "beside": 41,
    "beyond": 15,
    "place": 107,
    "places": 71,
    "piece": 17,
    "pieces": 15,
    "rates": 66,
    "turned": 61,
    "moved": 52,
    "whole": 66,
    "facts": 68,
    "settled": 9,
    "anew": 4,
    "lent": 8,
    "pushes": 19,
    "pulls": 6,
    "numbers": 203,
    "more": 80,
}


def source_files() -> list[Path]:
    return sorted((ROOT / "src").rglob("*.py"))


def pages() -> list[Path]:
    named = [ROOT / x for x in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    written = (p for p in (ROOT / "docs").glob("**/*.md") if not p.match("docs/examples/*.md"))
    return [*named, *sorted(p for p in written if p.name not in MADE)]


@cache
def prose_of(path: Path) -> list[tuple[int, str]]:
    """Numbered lines of a page, or of the comments and texts of a source file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        if path.name == "CONTRIBUTING.md":  # its glossary names the words to avoid
            text = text.partition("\n## Words\n")[0]
        return list(enumerate(text.splitlines(), 1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    wanted = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
    return [
        (token.start[0] + k, line)
        for token in tokens
        if token.type in wanted
        for k, line in enumerate(token.string.splitlines())
    ]


def names_of(path: Path) -> Iterator[tuple[int, str]]:
    """Names that a source file binds: variables, arguments, functions, classes, fields."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def hits(pattern: str) -> Iterator[tuple[Path, int, str]]:
    words = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    for path in (*source_files(), *pages()):
        for number, line in prose_of(path):
            for _ in words.finditer(line):
                yield path, number, line


@cache
def prose_counts() -> dict[str, int]:
    return {name: sum(1 for _ in hits(pattern)) for name, pattern in PROSE.items()}


@cache
def identifier_counts() -> dict[str, int]:
    names = Counter(name.strip("_") for path in source_files() for _, name in names_of(path))
    return {name: names[name] for name in IDENTIFIERS}


@pytest.mark.parametrize("word", PROSE)
def test_stop_list_of_prose_only_falls(word: str) -> None:
    count = prose_counts()[word]
    assert count <= MOST_PROSE[word], (
        f"{word!r} occurs {count} times in comments, docstrings, messages and pages; expected at "
        f"most {MOST_PROSE[word]}. `python tests/test_language.py {word!r}` lists the lines"
    )


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_forbidden_identifiers_only_fall(name: str) -> None:
    count = identifier_counts()[name]
    assert count <= MOST_IDENTIFIERS[name], (
        f"{name!r} names {count} variables, arguments and functions; expected at most "
        f"{MOST_IDENTIFIERS[name]}: name the quantity (CONTRIBUTING.md has a glossary)"
    )


def main(words: list[str]) -> None:
    for word in words:
        for path, number, line in hits(PROSE.get(word, re.escape(word))):
            print(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
        for path in source_files():
            for number, name in names_of(path):
                if name.strip("_") == word:
                    print(f"{path.relative_to(ROOT)}:{number}: the name {name}")
    if not words:
        print("MOST_PROSE =", prose_counts())
        print("MOST_IDENTIFIERS =", identifier_counts())


if __name__ == "__main__":
    main(sys.argv[1:])
