"""``linkwise cache``: where compiled kernels are kept, how large they are, and clearing them."""

from __future__ import annotations

import json

import click

from linkwise.engine.cache import default_cache
from linkwise.text import file_size, pairs


@click.command()
@click.option("--clear", is_flag=True, help="Delete every entry.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def cache(clear: bool, as_json: bool) -> None:
    """Show or clear the cache of compiled kernels.

    The environment variable LINKWISE_CACHE names its folder; LINKWISE_CACHE=off turns it off.
    """
    found = default_cache()
    removed = found.clear() if found and clear else 0
    facts = {
        "enabled": found is not None,
        "folder": str(found.folder) if found else None,
        "entries": len(found.entries()) if found else 0,
        "bytes": found.size() if found else 0,
        "removed": removed,
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    elif found is None:
        click.echo("kernel cache is off (LINKWISE_CACHE)")
    else:
        if clear:
            click.echo(f"removed {removed} {'entry' if removed == 1 else 'entries'}")
        entries, size = len(found.entries()), file_size(found.size())
        click.echo(
            pairs([("folder", str(found.folder)), ("entries", str(entries)), ("size", size)])
        )
