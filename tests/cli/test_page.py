"""docs/command_line.md has every command; its examples run, and its keys are those of JSON."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from linkwise.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
SECTIONS = {
    part.split("\n", 1)[0]: part for part in re.split(r"^## ", PAGE, flags=re.M)[1:]
}  # title -> text
COMMANDS = sorted(main.commands)


def examples(command: str) -> list[tuple[list[str], list[str]]]:
    """Arguments of each example, and the lines of its output that the page shows."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", SECTIONS[command], re.S):
        for example in block.split("$ linkwise ")[1:]:
            line, *shown = example.rstrip("\n").split("\n")
            found.append((shlex.split(line), shown))
    return found


def keys(command: str) -> dict[str, str]:
    """Keys of a command's table, with what the page says about them."""
    found = {}
    for names, text in re.findall(r"^\| (`.*?) \| (.*) \|$", SECTIONS[command], re.M):
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", names), text)
    return found


def paths(facts: Any, path: str = "") -> Iterator[str]:
    """Every path to a value: ``joints[].name``."""
    if isinstance(facts, dict) and facts:
        for key, value in facts.items():
            yield from paths(value, f"{path}.{key}" if path else key)
    elif isinstance(facts, list) and any(isinstance(x, dict) for x in facts):
        for value in facts:
            yield from paths(value, f"{path}[]")
    else:
        yield path


def key_of(path: str, command: str) -> str | None:
    """The key of the table that stands for a path: itself, or the record that it is part of."""
    known = keys(command)
    while path:
        if path in known:
            return path
        several = re.sub(r"\.[^.]+$", ".*", path)
        if several in known:
            return several
        path = path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0]
    return None


def test_every_command_has_its_section() -> None:
    assert set(COMMANDS) <= set(SECTIONS)
    assert re.findall(r"^\| \[`(\w+)`\]", PAGE, re.M) == [x for x in SECTIONS if x in COMMANDS]
    with_json = {c for c in COMMANDS if any("--json" in p.opts for p in main.commands[c].params)}
    assert with_json == {c for c in COMMANDS if keys(c)} == set(COMMANDS) - {"view", "source"}


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_run_and_have_the_keys_of_the_page(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command == "study":
        pytest.importorskip("zarr")
        pytest.importorskip("distributed")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    for text in re.findall(r"```toml\n(.*?)```", SECTIONS[command], re.S):
        (tmp_path / "torques.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    met = set()
    for words, shown in examples(command):
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, (words, result.output)
        at = 0
        for line in filter(None, shown):  # these lines, one after another, perhaps with others
            at = at if line == "..." else result.stdout.index(line.removesuffix("..."), at)
        if "--json" in words:
            found = {path: key_of(path, command) for path in paths(json.loads(result.stdout))}
            assert None not in found.values(), found
            met |= set(found.values())
    assert met == set(keys(command))


def test_records_within_records_are_those_of_other_commands() -> None:
    """Where the page says "as of `info`", it means a command whose keys it lists."""
    for command in COMMANDS:
        for text in keys(command).values():
            for other in re.findall(r"as of `(\w+)`", text):
                assert keys(other), (command, other)
