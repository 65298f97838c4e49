"""``linkwise study``: sweeps over many states, on this machine or any scheduler of Dask."""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic
from typing import Any

import click
import numpy as np

from linkwise.cli.output import say, say_json
from linkwise.sampling.chunks import loaded
from linkwise.sampling.run import run
from linkwise.sampling.spec import read_spec
from linkwise.sampling.store import Store
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
    with np.errstate(all="ignore"):
        computed = run(store, scheduler, workers, bar.tell)
    bar.close()
    found = store.read()
    facts = _facts(store, found, computed)
    if as_json:
        say_json(facts)
        return
    say(_table(store, found))
    size = sum(p.stat().st_size for p in Path(output).rglob("*") if p.is_file())
    failed = f"{int(found['failed']):,} without an answer"
    say(f"\n{int(found['count']):,} states, {failed}; {output}: {file_size(size)}")


class Bar:
    """How far a study is, and how long it will take, on a terminal or in a log."""

    def __init__(self, states: int, chunk: int) -> None:
        self._states, self._chunk, self._began = states, chunk, monotonic()
        self._first: int | None = None
        self._told = 0.0

    def tell(self, done: int, chunks: int) -> None:
        """Say it, at most twice a second on a terminal, and every ten seconds in a log."""
        if self._first is None:
            self._first = done - 1
        now, live = monotonic(), sys.stderr.isatty()
        if done < chunks and now - self._told < (0.5 if live else 10.0):
            return
        self._told = now
        each = (now - self._began) / max(done - self._first, 1)
        left = f"{each * (chunks - done):,.0f} s left" if done < chunks else "done"
        text = f"{min(done * self._chunk, self._states):,} of {self._states:,} states, {left}"
        click.echo(f"\r{text:<78}" if live else text, nl=not live, err=True)

    def close(self) -> None:
        """End the line of a terminal."""
        if sys.stderr.isatty() and self._told:
            click.echo(err=True)


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
