"""A study of 10^9 states on this machine: its figures in docs/studies.md, and a picture.

    python tools/big_study.py run      the study, with a worker killed, then all of it, then resumed
    python tools/big_study.py race     two workers of Dask beside two processes without Dask
    python tools/big_study.py costs    what a chunk costs besides its states, and where their time goes
    python tools/big_study.py page     docs/studies.md and the picture, from what was measured

What is measured is kept in benchmarks/results/big_study.json. `make study` does all four.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np
from pages import DOCS, markdown

from linkwise.sampling import run as running
from linkwise.sampling.chunks import computed, loaded, pilot
from linkwise.sampling.draws import PIECE, Draws
from linkwise.sampling.measures import Measure
from linkwise.sampling.reduction import Reduction, packed
from linkwise.sampling.spec import Spec, read_spec
from linkwise.sampling.store import Store

ROOT = DOCS.parent
SPEC = ROOT / "examples" / "studies" / "worst_torques.toml"
RESULTS = ROOT / "benchmarks" / "results" / "big_study.json"
PICTURE = DOCS / "pictures" / "worst_torques.png"
WORKERS = 2
KILL_WORKER, KILL_ALL = 0.25, 0.55  # of the chunks
AGAIN = 4  # chunks of the result that are computed once more and compared
RACE, ROUNDS = 6, 5  # chunks of a heat, and heats
ECHOES = 500  # chunks without states


# -- the study, killed and resumed ----------------------------------------------------------------


def processes(parent: int) -> dict[int, str]:
    """A process and its workers, by what they are."""
    found = {parent: "client and scheduler"}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            above = int(path.read_text().rsplit(")", 1)[1].split()[1])
            words = (path.parent / "cmdline").read_bytes().decode()
        except (OSError, IndexError):
            continue  # it ended meanwhile
        if above == parent and "spawn_main" in words:
            found[int(path.parent.name)] = "worker"
    return found


def peak(process: int) -> int:
    """The most memory in bytes that a process has had."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+)", text)
    return 1024 * int(found[1]) if found else 0


def chunks_done(output: Path) -> int:
    """How many rows are marked, from the names of Zarr's files."""
    return sum(p.name.isdigit() for p in (output / "done" / "c").glob("*"))


def watched(output: Path, chunks: int, killing: bool) -> dict[str, Any]:
    """Run the command until it ends or is killed; what happened meanwhile."""
    words = ["-m", "linkwise", "study", str(SPEC), "-o", str(output), "--workers", str(WORKERS)]
    before, began = chunks_done(output), perf_counter()
    study = subprocess.Popen([sys.executable, *words, "--json"], text=True, start_new_session=True,
                             stdout=subprocess.PIPE)  # fmt: skip
    peaks, first, killed = dict[int, tuple[str, int]](), 0.0, list[int]()
    while study.poll() is None:
        sleep(0.2)
        done, own = chunks_done(output), processes(study.pid)
        first = first or (perf_counter() if done > before else 0.0)
        for number, kind in own.items():
            peaks[number] = kind, max(peak(number), peaks.get(number, ("", 0))[1])
        workers = [number for number, kind in own.items() if kind == "worker"]
        if killing and not killed and done > KILL_WORKER * chunks and len(workers) == WORKERS:
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)
        if killing and done > KILL_ALL * chunks:
            os.killpg(study.pid, signal.SIGKILL)
            break
    text = study.communicate()[0]
    kinds = {k: max(x for kind, x in peaks.values() if kind == k) for k in dict(peaks.values())}
    return {"wall": perf_counter() - began, "computing": perf_counter() - first,
            "chunks": chunks_done(output) - before, "workers_killed": len(killed),
            "processes": len(peaks), "peaks": kinds,
            "said": json.loads(text) if text else None}  # fmt: skip


def run_study(output: Path) -> dict[str, Any]:
    """The whole study: killed in the middle, and resumed."""
    spec = read_spec(SPEC)
    shutil.rmtree(output, ignore_errors=True)
    parts = [watched(output, spec.chunks, killing=True)]
    parts.append(watched(output, spec.chunks, killing=False))
    store = Store.opened(output)
    total, rows = store.read(), list(store.chunks())
    rng = np.random.default_rng(0)
    some = [int(k) for k in rng.choice(spec.chunks, min(AGAIN, spec.chunks), replace=False)]
    same = sum(packed(computed(spec, k, store.ranges)).tobytes() == packed(rows[k]).tobytes()
               for k in some)  # fmt: skip
    files = [p.stat() for p in output.rglob("*") if p.is_file()]
    facts = parts[-1].pop("said")
    parts[0].pop("said")
    return {
        "states": spec.states, "chunks": spec.chunks, "parts": parts,
        "counted": int(total["count"]), "failed": int(total["failed"]),
        "histograms": [int(x.sum()) for x in total["histogram"]],
        "chunks_resumed": facts["chunks_computed"], "checked": len(some), "same": same,
        "bytes": sum(f.st_size for f in files), "disk": sum(512 * f.st_blocks for f in files),
        "files": len(files), "result": facts,
    }  # fmt: skip


# -- beside two processes without Dask ------------------------------------------------------------


def alone(spec: Spec, ranges: Any, door: Any) -> None:
    """A process that computes the chunks it is told, and tells its seconds and processor time."""
    computed(replace(spec, states=1000, chunk=1000), 0, ranges)
    while True:
        door.send("ready")
        own = door.recv()
        if own is None:
            return
        began, used = perf_counter(), process_time()
        kept = [packed(computed(spec, k, ranges)) for k in own]
        door.send((perf_counter() - began, process_time() - used, len(kept)))


@contextmanager
def two_processes(spec: Spec, ranges: Any) -> Iterator[list[Any]]:
    """Two processes without Dask, and the doors to them."""
    context = get_context("spawn")
    pipes = [context.Pipe() for _ in range(WORKERS)]
    both = [context.Process(target=alone, args=(spec, ranges, inner)) for _, inner in pipes]
    for process in both:
        process.start()
    doors = [outer for outer, _ in pipes]
    yield doors
    for door, process in zip(doors, both, strict=True):
        door.recv()
        door.send(None)
        process.join()


def without_dask(doors: list[Any], spec: Spec) -> tuple[float, float]:
    """Wall and processor seconds of two processes that share the chunks."""
    for door in doors:
        door.recv()
    for w, door in enumerate(doors):
        door.send(list(range(w, spec.chunks, WORKERS)))
    walls, used, _ = zip(*(door.recv() for door in doors), strict=True)
    return max(walls), sum(used)


def warmed(spec: Spec, robot: bytes, ranges: Any) -> None:
    """Load a worker's robot and kernel."""
    loaded(spec, robot)
    computed(replace(spec, states=1000, chunk=1000), 0, ranges, robot)


def with_dask(client: Any, spec: Spec) -> tuple[float, float]:
    """The same of a whole study on workers that are there: sent, computed, fetched, written."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.opened(Path(folder) / "s.zarr", spec)
        client.run(warmed, spec, pickle.dumps(loaded(spec)), store.ranges)
        used, began = sum(client.run(process_time).values()) + process_time(), perf_counter()
        running.run(store, scheduler=client.scheduler.address)
        wall = perf_counter() - began
        return wall, sum(client.run(process_time).values()) + process_time() - used


def race() -> dict[str, Any]:
    """Both in turns: an odd heat begins with one, an even heat with the other."""
    whole = read_spec(SPEC)
    spec = replace(whole, states=RACE * whole.chunk)
    ranges = pilot(spec)
    found: dict[str, list[tuple[float, float]]] = {"alone": [], "dask": []}
    with running._client(None, WORKERS) as client, two_processes(spec, ranges) as doors:
        with_dask(client, spec)
        ways = {"alone": lambda: without_dask(doors, spec), "dask": lambda: with_dask(client, spec)}
        for k in range(ROUNDS):
            for name in sorted(ways, reverse=bool(k % 2)):
                found[name].append(ways[name]())
    return {"states": spec.states, "chunks": spec.chunks, **found}


# -- what a chunk costs ---------------------------------------------------------------------------


def echo(spec: Spec, _index: int, ranges: Any, robot: bytes) -> Any:
    """As much as a chunk sends back, without its states."""
    columns = len(Draws(spec, loaded(spec, robot)).columns)
    return Reduction(len(ranges), columns, spec.keep, ranges, None).result()


def empty_chunks(folder: Path) -> dict[str, float]:
    """Seconds for each chunk without states: in all, of the client's process, and of the end."""
    whole = read_spec(SPEC)
    spec = replace(whole, states=ECHOES * whole.chunk)
    store = Store.opened(folder / "empty.zarr", spec)
    row = computed(replace(spec, states=1000, chunk=1000), 0, store.ranges)
    began = perf_counter()
    for k in range(100):
        store.write(k, row)
    write = (perf_counter() - began) / 100
    store = Store.opened(folder / "empty2.zarr", spec)
    running.computed, kept = echo, running.computed
    try:
        with running._client(None, WORKERS) as client:
            client.run(warmed, spec, pickle.dumps(loaded(spec)), store.ranges)
            began, own = perf_counter(), process_time()
            running.run(store, scheduler=client.scheduler.address)
            wall, own = perf_counter() - began, process_time() - own
    finally:
        running.computed = kept
    began = perf_counter()
    store.read()
    sent = len(pickle.dumps((spec, 0, store.ranges, pickle.dumps(loaded(spec)))))
    return {"wall": wall / ECHOES, "client": own / ECHOES, "write": write,
            "read": (perf_counter() - began) / ECHOES, "sent": sent,
            "returned": len(pickle.dumps(row)), "row": packed(row).nbytes}  # fmt: skip


def timed_pieces(spec: Spec) -> Iterator[tuple[float, ...]]:
    """Seconds of each piece of a chunk: drawn, made parameters of, computed, reduced."""
    robot, ranges = loaded(spec), pilot(spec)
    draws, measure = Draws(spec, robot), Measure(spec, robot)
    kept = Reduction(len(ranges), len(draws.columns), spec.keep, ranges, None)
    pieces = draws.chunk(0)
    while True:
        clock = [perf_counter()]
        state = next(pieces, None)
        if state is None:
            return
        clock.append(perf_counter())
        constants = measure.parameters(state)
        clock.append(perf_counter())
        found = measure.computed(state, constants)
        clock.append(perf_counter())
        kept.add(found, state)
        clock.append(perf_counter())
        yield tuple(np.diff(clock))


def costs() -> dict[str, Any]:
    """Of a chunk besides its states; and nanoseconds of a state, by what is done."""
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = {"empty": empty_chunks(Path(folder))}
    spec = read_spec(SPEC)
    each = np.median(np.array(list(timed_pieces(spec)))[:-1], axis=0) / PIECE * 1e9
    names = ("drawing states", "payloads as ten numbers", "the kernel", "reducing")
    found["split"] = dict(zip(names, each.tolist(), strict=True))
    return found


# -- the page -------------------------------------------------------------------------------------


def study_table(facts: dict[str, Any]) -> str:
    """What the study took."""
    parts = facts["parts"]
    seconds = sum(p["wall"] for p in parts)
    peaks = {k: max(p["peaks"].get(k, 0) for p in parts) for k in parts[0]["peaks"]}
    rows = [
        ["states counted, of those asked for", f"{facts['counted']:,} of {facts['states']:,}"],
        ["wall time, all starts included", f"{seconds:.0f} s ({parts[0]['wall']:.0f} s until "
         f"`kill -9` of all, {parts[1]['wall']:.0f} s resumed)"],
        ["states a second, two cores", f"{facts['states'] / seconds / 1e6:.1f} million"],
        ["chunks: before, and after the kill", f"{parts[0]['chunks']} + "
         f"{facts['chunks_resumed']} = {facts['chunks']}"],
        ["workers killed on the way", f"{parts[0]['workers_killed']}, "
         f"at {KILL_WORKER:.0%} of the chunks"],
        ["chunks computed again by another process", f"{facts['checked']}, the same bits in "
         f"{facts['same']}"],
        ["results on disk", f"{facts['bytes'] / 1e6:.1f} MB in {facts['files']:,} files "
         f"({facts['disk'] / 1e6:.0f} MB of blocks)"],
        *([f"most memory, {name}", f"{size / 1e6:.0f} MB"] for name, size in peaks.items()),
    ]  # fmt: skip
    return markdown(["", ""], rows)


def torque_table(facts: dict[str, Any]) -> str:
    """What it found."""
    found = facts["result"]
    limits = read_spec(SPEC).keep["limit"]
    rows = []
    for k, name in enumerate(found["labels"]):
        mass = found["worst_states"][k][0][found["columns"].index("payload mass")]
        rows.append([name, f"{found['deviation'][k]:.2f}", f"{found['quantiles']['0.999'][k]:.1f}",
                     f"{found['worst'][k][0]:.1f}", f"{mass:.2f}", f"{limits[k]}",
                     f"{found['beyond'][k]:,}"])  # fmt: skip
    head = ["joint", "deviation, N m", "99.9 %", "largest", "payload then, kg", "limit",
            "states beyond it"]  # fmt: skip
    return markdown(head, rows)


def race_table(facts: dict[str, Any]) -> str:
    """Every heat of both ways, and the medians."""
    alone, dask = (np.array(facts[name]) for name in ("alone", "dask"))
    both = [(f"heat {k + 1}", a, d) for k, (a, d) in enumerate(zip(alone, dask, strict=True))]
    both.append(("medians", np.median(alone, axis=0), np.median(dask, axis=0)))
    rows = [
        [name, *(text for x, y in zip(a, d, strict=True)
                 for text in (f"{x:.2f}", f"{y:.2f}", f"{x / y:.1%}"))]
        for name, a, d in both
    ]  # fmt: skip
    head = ["", "two processes, wall s", "Dask, wall s", "of their speed",
            "two processes, processor s", "Dask, processor s", "of their speed"]  # fmt: skip
    return markdown(head, rows)


def split_table(facts: dict[str, Any]) -> str:
    """Where the time of a state goes."""
    split = facts["split"]
    total = sum(split.values())
    rows = [[name, f"{x:.0f}", f"{x / total:.0%}"] for name, x in split.items()]
    return markdown(["", "ns a state", "share"], [*rows, ["together", f"{total:.0f}", ""]])


def scaling_table(facts: dict[str, Any], workers: int = 1000, states: float = 1e13) -> str:
    """What chunks of some size would ask of the scheduler of many workers."""
    each = 1e-9 * sum(facts["split"].values())
    empty, rows = facts["empty"], []
    for chunk in (2e6, 2e7, 1e8, 5e8):
        seconds = chunk * each  # of a chunk
        rate = min(workers / seconds, 1 / empty["client"])  # chunks a second
        whole = states / chunk / rate + seconds / 2  # the last chunks end one by one
        whole += states / chunk * empty["read"]
        rows.append([f"{chunk:,.0f}", f"{seconds:.2g} s", f"{workers / seconds:,.0f}",
                     f"{min(1.0, workers / seconds * empty['client']):.0%}",
                     f"{rate * (empty['sent'] + empty['returned']) / 1e6:.1f} MB/s",
                     f"{states / chunk * empty['read'] / whole:.1%}",
                     f"{states * each / workers / whole:.0%}"])  # fmt: skip
    head = ["states a chunk", "its time", "chunks/s asked", "client busy", "traffic",
            "merging at the end", "efficiency"]  # fmt: skip
    return markdown(head, rows)


def picture(facts: dict[str, Any], output: Path) -> None:
    """Histograms of all torques, their limits, and the worst cases."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    store = Store.opened(output)
    found, limits = store.read(), store.spec.keep["limit"]
    figure, axes = plt.subplots(2, 4, figsize=(11, 5), layout="constrained")
    for k, (axis, name) in enumerate(zip(axes.flat, store.labels, strict=False)):
        edges = np.linspace(*store.ranges[k], store.spec.keep["bins"] + 1)
        edges[0], edges[-1] = min(edges[0], found["least"][k]), max(edges[-1], found["most"][k])
        density = found["histogram"][k] / found["count"] / np.diff(edges)
        axis.stairs(density, edges, fill=True, color="#0072b2")
        least, most = found["least"][k], found["most"][k]
        axis.plot([least, most], [density[density > 0].min()] * 2, "v", color="#d55e00", ms=6)
        for x in (-limits[k], limits[k]):
            axis.axvline(x, color="0.25", ls="--", lw=1)
        axis.set(title=f"{name}: {least:.0f} to {most:.0f}", yscale="log", xlabel="N m")
        axis.set_xlim(-1.15 * max(limits[k], most, -least), 1.15 * max(limits[k], most, -least))
    last = axes.flat[7]
    last.axis("off")
    last.text(0, 0.5, f"{int(found['count']):,} states\nblue: density of torques, 1/(N m)\n"
              "orange: least and most\ndashed: limits as published", va="center")  # fmt: skip
    figure.savefig(PICTURE, dpi=110)


def write_page(results: dict[str, Any]) -> None:
    """Every table between its marks."""
    page = DOCS / "studies.md"
    text = page.read_text(encoding="utf-8")
    tables = {"study": study_table(results["run"]), "torques": torque_table(results["run"]),
              "race": race_table(results["race"]), "split": split_table(results["costs"]),
              "scaling": scaling_table(results["costs"])}  # fmt: skip
    for name, table in tables.items():
        mark = f"<!-- {name} -->"
        if text.count(mark) != 2:
            raise SystemExit(f"{page}: expected {mark} twice")
        text = re.sub(f"{mark}.*?{mark}", f"{mark}\n{table}\n{mark}".replace("\\", r"\\"), text,
                      flags=re.S)  # fmt: skip
    page.write_text(text, encoding="utf-8")


def main() -> None:
    """Measure what is asked for, keep it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "race", "costs", "page"), nargs="+")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "worst_torques.zarr")
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    for what in given.what:
        if what == "page":
            write_page(results)
            picture(results["run"], given.output)
            continue
        given.output.parent.mkdir(parents=True, exist_ok=True)
        found = {"run": lambda: run_study(given.output), "race": race, "costs": costs}[what]()
        results[what] = {**found, "machine": f"{os.cpu_count()} cores, {platform.machine()}"}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        print(json.dumps({k: v for k, v in found.items() if k != "result"}, indent=1))


if __name__ == "__main__":
    main()
