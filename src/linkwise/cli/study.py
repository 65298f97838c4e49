"""``linkwise study``: sweeps over many states, on this machine or any scheduler of Dask."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from linkwise.cli.options import json_option
from linkwise.cli.output import answer, say
from linkwise.sampling.chunks import loaded
from linkwise.sampling.run import run
from linkwise.sampling.spec import read_spec
from linkwise.sampling.store import Store
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
    with np.errstate(all="ignore"):
        computed = run(
            store, scheduler, workers, partial(progress, f"chunks of {wanted.chunk:,} states")
        )
    found = store.read()
    answer(as_json, lambda: _facts(store, found, computed), lambda: _show(store, found, output))


def _show(store: Store, found: dict[str, Any], output: str) -> None:
    say(_table(store, found))
    size = sum(p.stat().st_size for p in Path(output).rglob("*") if p.is_file())
    failed = f"{int(found['failed']):,} without an answer"
    say(f"\n{int(found['count']):,} states, {failed}; {output}: {file_size(size)}")


def _labels(store: Store, count: int) -> list[str]:
    robot = loaded(store.spec)
    if store.spec.measure == "workspace":
        return ["x", "y", "z"]
    if count == robot.nv and robot.nv == len(robot.joint_names):
        return list(robot.joint_names)
    return [str(k) for k in range(count)]


def _table(store: Store, found: dict[str, Any]) -> str:
    deviation = np.sqrt(found["spread"] / max(int(found["count"]), 1))
    labels = _labels(store, len(deviation))
    columns = (found["mean"], deviation, found["least"], found["most"], found["worst"][:, 0])
    rows = [(name, *(f"{c[k]:.5g}" for c in columns)) for k, name in enumerate(labels)]
    head = (store.spec.measure, "mean", "deviation", "least", "most", "largest |.|")
    return aligned(head, rows)


def _facts(store: Store, found: dict[str, Any], computed: int) -> dict[str, Any]:
    names = ("mean", "least", "most")
    return {
        "measure": store.spec.measure,
        "labels": _labels(store, len(found["mean"])),
        "states": int(found["count"]),
        "failed": int(found["failed"]),
        "chunks_computed": computed,
        **{name: found[name].tolist() for name in names},
        "deviation": np.sqrt(found["spread"] / max(int(found["count"]), 1)).tolist(),
        "worst": found["worst"].tolist(),
        "worst_states": found["worst_states"].tolist(),
    }
