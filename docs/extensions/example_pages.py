"""A page for each script of examples/, and the gallery with them: made when Sphinx starts."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
# of scripts that make a page, or print: what belongs to them
OTHERS = {
    "load": "view_iiwa14.png", "my_own_urdf": "view_report.png", "gpu": "roofline.svg",
    "tether": "long_chains.svg", "casadi_swing_up": "swing_up.png",
}  # fmt: skip


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir)))
    return {"parallel_read_safe": True}


def write(docs: Path) -> None:
    """The gallery, and a page for each script."""
    folder = docs / "examples"
    folder.mkdir(exist_ok=True)
    cards, pages = [], []
    for script in sorted((ROOT / "examples").glob("[0-9]*.py")):
        title, text = described(script)
        picture = picture_of(script)
        (folder / f"{script.stem}.md").write_text(page(script, title, text, picture))
        cards.append(card(script, title, picture))
        pages.append(f"examples/{script.stem}")
    lines = [
        "# Gallery",
        "",
        "Each script runs as it stands, and in the tests.",
        "",
        FENCE,
        *cards,
        ":::::",
    ]
    tree = ["```{toctree}", ":hidden:", "", *pages, "```"]
    (docs / "gallery.md").write_text("\n".join([*lines, "", *tree, ""]))


FENCE = ":::::{grid} 1 2 2 3\n:gutter: 3\n"


def described(script: Path) -> tuple[str, str]:
    """The first sentence of a script's docstring, and the rest."""
    text = ast.get_docstring(ast.parse(script.read_text())) or script.stem
    title, _, rest = text.partition("\n\n")
    return " ".join(title.split()).rstrip("."), rest


def picture_of(script: Path) -> str:
    """The picture that a script makes, where docs/pictures has it."""
    name = script.stem.split("_", 1)[1]
    return OTHERS.get(name) or next((p.name for p in sorted(PICTURES.glob(f"{name}.*"))), "")


def page(script: Path, title: str, text: str, picture: str) -> str:
    """One script with its words and its picture."""
    figure = f"```{{image}} ../pictures/{picture}\n:alt: {title}\n```\n" if picture else ""
    code = f"```{{literalinclude}} ../../examples/{script.name}\n:language: python\n```\n"
    return f"# {title}\n\n{text}\n\n{figure}\n`examples/{script.name}`\n\n{code}"


def card(script: Path, title: str, picture: str) -> str:
    """A card of the gallery."""
    image = f":img-top: pictures/{picture}\n" if picture else ""
    link = f":link: examples/{script.stem}\n:link-type: doc\n"
    return f"::::{{grid-item-card}} {title}\n{link}{image}::::\n"
