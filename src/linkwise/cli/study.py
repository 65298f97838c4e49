"""``linkwise study``: sweeps over many states, on this machine or any scheduler of Dask."""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic
from typing import Any

import click
import numpy as np

from linkwise.cli.output import say, say_json
from linkwise.sampling.reduction import Kept, quantiles
from linkwise.sampling.run import run
from linkwise.sampling.spec import read_spec
from linkwise.sampling.store import SHARES, Store
from linkwise.text import aligned, file_size


@click.command()
@click.argument("spec", type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--output", type=click.Path(), required=True,
              help="Folder for the results (Zarr); a study found there is continued.")  # fmt: skip
@click.option("--scheduler", help="Address of a Dask scheduler, such as tcp://host:8786.")
@click.option("--workers", type=click.IntRange(min=1),
              help="Worker processes on this machine; one per core unless given.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def study(
    spec: str, output: str, scheduler: str | None, workers: int | None, as_json: bool
) -> None:
    """Compute the study that SPEC describes, and print its statistics and worst cases.

    SPEC is a TOML file: a robot, a function of it ("inverse_dynamics"), "workspace" or "rollout",
    how many states, and how they are drawn (docs/studies.md). A study that was interrupted or
    killed continues where it stopped when the same command is given again.
    """
    wanted = read_spec(spec)
    store = Store.opened(output, wanted)
    bar = Bar(wanted.states, wanted.chunk)
    computed = run(store, scheduler, workers, bar.tell)
    bar.close()
    found = store.finish()
    facts = _facts(store, found, computed)
    if as_json:
        say_json(facts)
        return
    say(_table(store, found))
    size = sum(p.stat().st_size for p in Path(output).rglob("*") if p.is_file())
    text = f"{int(found['count']):,} states, {int(found['failed']):,} without an answer"
    if wanted.keep["limit"] is not None:
        text += f", {int(found['beyond_any']):,} beyond a limit"
    say(f"\n{text}; {output}: {file_size(size)}")


class Bar:
    """How far a study is, and how long it will take, on a terminal or in a log."""

    def __init__(self, states: int, chunk: int) -> None:
        self._states, self._chunk = states, chunk
        self._first: tuple[int, float] | None = None  # chunks done, and when
        self._told = 0.0

    def tell(self, done: int, chunks: int) -> None:
        """Say it, at most twice a second on a terminal, and every ten seconds in a log."""
        now, live = monotonic(), sys.stderr.isatty()
        if self._first is None:  # workers have begun
            self._first = done, now
        if done < chunks and now - self._told < (0.5 if live else 10.0):
            return
        self._told = now
        each = (now - self._first[1]) / max(done - self._first[0], 1)
        left = f"{each * (chunks - done):,.0f} s left" if done > self._first[0] else "begun"
        left = left if done < chunks else "done"
        text = f"{min(done * self._chunk, self._states):,} of {self._states:,} states, {left}"
        click.echo(f"\r{text:<78}" if live else text, nl=not live, err=True)

    def close(self) -> None:
        """End the line of a terminal."""
        if sys.stderr.isatty() and self._told:
            click.echo(err=True)


def _table(store: Store, found: Kept) -> str:
    deviation = np.sqrt(found["spread"] / max(int(found["count"]), 1))
    middle, _ = quantiles(found, store.ranges, (0.01, 0.99))
    columns = [found["mean"], deviation, found["least"], *middle.T, found["most"]]
    head = [store.spec.measure, "mean", "deviation", "least", "1 %", "99 %", "most"]
    cells = [[f"{x:.5g}" for x in column] for column in (*columns, found["worst"][:, 0])]
    head.append("largest |.|")
    if store.spec.keep["limit"] is not None:
        head.append("beyond the limit")
        cells.append([f"{x:,}" for x in found["beyond"]])
    return aligned(head, [(name, *(c[k] for c in cells)) for k, name in enumerate(store.labels)])


def _facts(store: Store, found: Kept, computed: int) -> dict[str, Any]:
    values, errors = quantiles(found, store.ranges, SHARES)
    names = ("mean", "least", "most", "beyond", "beyond_any", "worst", "worst_states",
             "least_states", "most_states")  # fmt: skip
    return {
        "measure": store.spec.measure,
        "labels": store.labels,
        "columns": store.columns,
        "states": int(found["count"]),
        "failed": int(found["failed"]),
        "chunks_computed": computed,
        "deviation": np.sqrt(found["spread"] / max(int(found["count"]), 1)).tolist(),
        **{name: found[name].tolist() for name in names},
        "quantiles": {f"{share:g}": values[:, k].tolist() for k, share in enumerate(SHARES)},
        "quantile_errors": errors.max(1).tolist(),
    }
