"""``linkwise cache``: where compiled kernels are kept, the room they take, and clearing them."""

from __future__ import annotations

from typing import Any

import click

from linkwise.cli.options import json_option
from linkwise.cli.output import answer, say
from linkwise.engine.cache import KernelCache, default_cache
from linkwise.text import file_size, pairs


@click.command()
@click.option("--clear", is_flag=True, help="Delete every entry.")
@json_option
def cache(clear: bool, as_json: bool) -> None:
    """Show or clear the cache of compiled kernels.

    Two environment variables: LINKWISE_CACHE is the folder of the cache, or "off" for none;
    LINKWISE_CACHE_SIZE is its largest size, such as 500M; 1G unless given. When it is full, the
    least recently used kernels are deleted.
    """
    found = default_cache()
    removed = found.clear() if found and clear else 0
    facts = _facts(found) | {"removed": removed}
    answer(as_json, lambda: facts, lambda: _show(facts, clear))


def _facts(found: KernelCache | None) -> dict[str, Any]:
    entries = found.entries() if found else []
    return {
        "enabled": found is not None,
        "folder": str(found.folder) if found else None,
        "problem": found.problem() if found else None,
        "entries": len(entries),
        "bytes": sum(entry.size for entry in entries),
        "limit": found.limit if found else None,
    }


def _show(facts: dict[str, Any], cleared: bool) -> None:
    if cleared:
        say(f"removed {facts['removed']} {'entry' if facts['removed'] == 1 else 'entries'}")
    say(_shown(facts))


def _shown(facts: dict[str, Any]) -> str:
    if not facts["enabled"]:
        return "kernel cache is off (LINKWISE_CACHE)"
    problem = f", not used: {facts['problem']}" if facts["problem"] else ""
    return pairs(
        [
            ("folder", f"{facts['folder']}{problem}"),
            ("entries", str(facts["entries"])),
            ("size", f"{file_size(facts['bytes'])} of {file_size(facts['limit'])}"),
        ]
    )
