"""``linkwise study``: sweeps over many states, on this machine or any scheduler of Dask."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from linkwise.cli.options import json_option
from linkwise.cli.output import answer, say
from linkwise.sampling.reduction import Kept, quantiles
from linkwise.sampling.run import run
from linkwise.sampling.spec import read_spec
from linkwise.sampling.store import SHARES, Store
from linkwise.text import aligned, file_size, progress


@click.command()
@click.argument("spec", type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--output", type=click.Path(), required=True,
              help="Folder for the results (Zarr); a study found there is continued.")  # fmt: skip
@click.option("--scheduler", help="Address of a Dask scheduler, such as tcp://host:8786.")
@click.option("--workers", type=click.IntRange(min=1),
              help="Worker processes on this machine; one per core unless given.")  # fmt: skip
@json_option
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
    told = partial(progress, f"chunks of {wanted.chunk:,} states")
    computed = run(store, scheduler, workers, told)
    found = store.finish()
    answer(as_json, lambda: _facts(store, found, computed), lambda: _show(store, found, output))


def _show(store: Store, found: Kept, output: str) -> None:
    say(_table(store, found))
    size = sum(p.stat().st_size for p in Path(output).rglob("*") if p.is_file())
    text = f"{int(found['count']):,} states, {int(found['failed']):,} without an answer"
    if store.spec.keep["limit"] is not None:
        text += f", {int(found['beyond_any']):,} beyond a limit"
    say(f"\n{text}; {output}: {file_size(size)}")


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
