"""``linkwise check``: every problem of a robot file, for people and for CI."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from linkwise.check.lint import MOST, Report, lint


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--repair", type=click.Path(dir_okay=False), metavar="OUT",
              help="Write a repaired file here, in its own format; list every change.")  # fmt: skip
@click.option("--strict/--no-strict", default=True, show_default=True,
              help="Whether a body that cannot exist is an error, or a warning.")  # fmt: skip
@click.pass_context
def check(ctx: click.Context, file: str, as_json: bool, repair: str | None, strict: bool) -> None:
    """Check the robot file FILE and print every problem with its place and a suggestion.

    FILE is a URDF or an MJCF; of an MJCF, the files that it includes are checked too.

    Repaired are misspelt words, exchanged limits and children written twice; of a URDF also axes
    that are not of unit length, revolute joints without a range, and inertias that cannot exist.
    FILE and what it includes are never changed. The exit code is 1 if there are errors, 0 if there
    are none or only warnings.
    """
    report = lint(file, strict=strict)
    left = _write(report, file, repair, strict) if repair is not None else None
    if as_json:
        click.echo(json.dumps(_facts(report, repair, left), indent=2, ensure_ascii=False))
    else:
        _show(report, file, repair, left)
    ctx.exit(1 if (left or report).count("error") else 0)


def _write(report: Report, file: str, out: str, strict: bool) -> Report | None:
    """Write the repaired file; returns what is still wrong with it."""
    if Path(out).exists() and Path(out).samefile(file):
        raise click.UsageError("--repair: give another file than FILE, which is never changed")
    if not report.repaired:
        return None
    Path(out).write_text(report.repaired, encoding="utf-8")
    return lint(out, strict=strict)


def _show(report: Report, file: str, out: str | None, left: Report | None) -> None:
    for problem in report.problems:
        click.echo(problem)
    if len(report.problems) >= MOST:
        click.echo(f"stopped after {MOST} problems")
    click.echo(summary(report))
    if out is None:
        return
    if left is None:
        click.echo(f"{out}: not written: the file cannot be read")
        return
    for line, change in report.changes:
        click.echo(f"repaired: {file}:{line}: {change}")
    changes = "1 change" if len(report.changes) == 1 else f"{len(report.changes)} changes"
    click.echo(f"{out}: written, {changes}; left: {summary(left)}")


def summary(report: Report) -> str:
    """``3 errors, 2 warnings``."""
    counts = {word: report.count(word) for word in ("error", "warning")}
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for word, n in counts.items())


def _facts(report: Report, out: str | None, left: Report | None) -> dict[str, object]:
    facts: dict[str, object] = {
        "problems": [asdict(problem) for problem in report.problems],
        "errors": report.count("error"),
        "warnings": report.count("warning"),
    }
    if out is not None:
        facts["repair"] = {
            "path": out if left else None,
            "changes": [{"line": line, "change": change} for line, change in report.changes],
            "errors_left": left.count("error") if left else None,
        }
    return facts
