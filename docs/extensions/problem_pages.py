"""The page of all problems of robot files, from their table: made when Sphinx starts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from linkwise.checking.mend import REPAIRS
from linkwise.codes import ERROR, HINT, WARNING, Code

TITLES = {
    ERROR: ("Errors", "The file is refused; `lw.check` lists them all."),
    WARNING: ("Warnings", "The robot can be used; a `RobotFileWarning` says what was left out."),
    HINT: ("Hints", "For `linkwise check` alone: nothing changes for linkwise."),
}
HEAD = """# All problems of robot files

What `lw.check` and `linkwise check` can find, by code. Words in ‹brackets› stand for
what the file has there. What is marked *mended*, `linkwise check FILE --repair OUT`
mends in a copy, where the file leaves no doubt what it meant.
"""


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir)))
    return {"parallel_read_safe": True}


def write(docs: Path) -> None:
    """One table for each severity."""
    (docs / "problems.md").write_text("\n".join([HEAD, *map(table, TITLES)]), encoding="utf-8")


def table(severity: str) -> str:
    """The codes of one severity; those with words of their own place have none to show."""
    title, words = TITLES[severity]
    codes = [c for c in Code if c.severity == severity and not c.text.startswith("{message}")]
    rows = [row(code) for code in codes]
    return "\n".join(
        [f"## {title}\n", words, "", "| code | message | what to do |", RULE, *rows, ""]
    )


RULE = "|---|---|---|"


def row(code: Code) -> str:
    """One code: its message and advice, with names of facts in brackets."""
    name = f"`{code.name}`" + (" *mended*" if code in REPAIRS else "")
    return f"| {name} | {shown(code.text)} | {shown(code.advice)} |"


def shown(text: str) -> str:
    """A text of the table for people: facts in brackets, nothing that Markdown would read."""
    plain = re.sub(r"\{(\w+)[^}]*\}", r"‹\1›", text)
    return re.sub(r"([<|*_$\\`])", r"\\\1", plain)
