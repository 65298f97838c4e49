"""Tags of a page; text is escaped here and nowhere else."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from typing import Any

from linkwise.errors import printable


def text(value: object) -> str:
    """Text as HTML, whatever a robot file wrote."""
    return html.escape(printable(str(value)))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> str:
    """A table whose first columns are words, and the others numbers."""

    def cells(row: Sequence[object], tag: str) -> str:
        kinds = ("" if k < words else ' class="n"' for k in range(len(row)))
        return "".join(f"<{tag}{k}>{text(x)}</{tag}>" for k, x in zip(kinds, row, strict=True))

    lines = "\n".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    top = f"<thead><tr>{cells(head, 'th')}</tr></thead>"
    return f'<div class="wide"><table>{top}<tbody>\n{lines}\n</tbody></table></div>'


def paragraph(words: object, kind: str = "") -> str:
    """A paragraph of text."""
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def section(title: str, *parts: str) -> str:
    """A part of the page under its title."""
    body = "\n".join(part for part in parts if part)
    return f"<section><h2>{text(title)}</h2>\n{body}\n</section>"


def folded(summary: str, body: str) -> str:
    """Something that is shown when it is asked for."""
    return f"<details><summary>{text(summary)}</summary>\n{body}\n</details>"


def picture(figure: Any, words: str) -> str:
    """A figure of matplotlib inside the page."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="{text(words)}" src="data:image/png;base64,{data}">'


def page(title: str, css: str, body: str) -> str:
    """The whole file; it may load nothing from anywhere."""
    policy = (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src data: blob:"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{text(title)}</title>\n<style>\n{css}\n</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
