"""A page for each script of examples/, and the gallery with them: made when Sphinx starts."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = {  # headings of the gallery, and the numbers of their scripts
    "First steps": ("01", "26", "25", "03"),
    "Many states, other numbers, other machines": ("02", "29", "27", "28", "04"),
    "Reaching and control": ("09", "10", "05"),
    "Motion": ("08", "16", "06", "07"),
    "Closed loops, legs and grasps": ("11", "12", "13", "14"),
    "Derivatives and optimisation": ("30", "15", "19", "20"),
    "Identification": ("17", "18"),
    "Other tools": ("23", "21", "24", "22"),
}
HEAD = """# Gallery

Each script runs as it stands, and in the tests; each picture is the one that its script saves.
"""


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir)))
    return {"parallel_read_safe": True}


def write(docs: Path) -> None:
    """The gallery, and a page for each script."""
    (docs / "examples").mkdir(exist_ok=True)
    scripts = {script.name[:2]: script for script in sorted((ROOT / "examples").glob("[0-9]*.py"))}
    for script in scripts.values():
        (docs / "examples" / f"{script.stem}.md").write_text(page(script))
    parts = [section(title, [scripts[n] for n in ns]) for title, ns in SECTIONS.items()]
    pages = [entry(scripts[n]) for ns in SECTIONS.values() for n in ns]
    tree = "\n".join(["```{toctree}", ":hidden:", "", *pages, "```", ""])
    (docs / "gallery.md").write_text("\n".join([HEAD, *parts, tree]))


def section(title: str, scripts: list[Path]) -> str:
    """A heading and a card for each script."""
    fence = ":::::{grid} 1 2 2 3\n:gutter: 3\n"
    return "\n".join([f"## {title}\n", fence, *map(card, scripts), ":::::\n"])


def described(script: Path) -> tuple[str, str]:
    """The first sentence of a script's docstring, and the rest."""
    text = ast.get_docstring(ast.parse(script.read_text())) or script.stem
    title, _, rest = text.partition("\n\n")
    return " ".join(title.split()).rstrip("."), rest


def picture_of(script: Path) -> str:
    """The name of the picture that a script saves; docs/pictures has a copy."""
    return f"{script.stem.split('_', 1)[1]}.png"


def entry(script: Path) -> str:
    """A line of the table of contents: what comes before a colon is the title."""
    return f"{described(script)[0].partition(': ')[0]} <examples/{script.stem}>"


def page(script: Path) -> str:
    """One script with its words and its picture."""
    title, text = described(script)
    figure = f"```{{image}} ../pictures/{picture_of(script)}\n:alt: {title}\n```\n"
    code = f"```{{literalinclude}} ../../examples/{script.name}\n:language: python\n```\n"
    return f"# {title}\n\n{text}\n\n{figure}\n`examples/{script.name}`\n\n{code}"


def card(script: Path) -> str:
    """A card of the gallery: what comes before a colon is its title."""
    title, _, rest = described(script)[0].partition(": ")
    image = f":img-top: pictures/{picture_of(script)}\n:img-alt: {title}\n"
    link = f":link: examples/{script.stem}\n:link-type: doc\n"
    return f"::::{{grid-item-card}} {title}\n{link}{image}{rest[:1].upper()}{rest[1:]}\n::::\n"
