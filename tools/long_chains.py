"""Times of one long chain, ours and the peers': docs/long_chains.md and its picture.

    python tools/long_chains.py             measure on this machine, then write the page
    python tools/long_chains.py 1e3 1e5     measure these lengths only, and print
    python tools/long_chains.py peers       Pinocchio and MuJoCo anew, then write the page
    python tools/long_chains.py gpu FILE    on a machine with a GPU and CuPy: numbers into FILE
    python tools/long_chains.py gpu-results FILE     those numbers into the page
    python tools/long_chains.py page        write the page from benchmarks/results/long_chains.json
    python tools/long_chains.py compare     batches, written out and by loops

Every length is measured in a process of its own, so that its peak of memory is its own. Peers have
8 GB and five minutes of processor time for each length; what they say when they fail is kept as it
is. Lengths at which they failed are tried again only when asked for, because that takes long.
"""

from __future__ import annotations

import json
import math
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

if sys.argv[1:2] != ["gpu"]:
    os.environ["LINKWISE_CACHE"] = "off"  # the first call compiles

import numpy as np
from pages import DOCS, markdown

import linkwise as lw
from linkwise.algorithms import FUNCTIONS

STATES = 256
LENGTHS = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
PEERS = ("pinocchio", "mujoco")
MEMORY, PATIENCE = 8 << 30, 300.0  # of a peer, at each length
LONGEST_OTHERS = 1_000_000  # links of methods that are neither the usual one nor a scan
LONGEST_SERIAL = 10_000  # links that one thread of a GPU walks through, in milliseconds
TIMED = {"forward_dynamics": "fd", "inverse_dynamics": "id"}
RESULTS = DOCS.parent / "benchmarks" / "results" / "long_chains.json"
PAGE, PICTURE = DOCS / "long_chains.md", DOCS / "pictures" / "long_chains.svg"
BEGIN, END = "<!-- made by tools/long_chains.py -->", "<!-- end -->"
Row = dict[str, Any]


# -- one length, in a process of its own ----------------------------------------------------------


def state_of(n: int) -> tuple[np.ndarray, ...]:
    """Angles, rates and torques of a random chain."""
    rng = np.random.default_rng(0)
    return 0.3 * rng.normal(size=n), 0.1 * rng.normal(size=n), 0.01 * rng.normal(size=n)


def ours(n: int) -> Row:
    """Seconds of each function and method that is loops; of building and of the first call."""
    start = time.perf_counter()
    robot = lw.chain(n, "random").with_codegen("rolled")
    row: Row = {"n": n, "who": "linkwise", "built": time.perf_counter() - start, "seconds": {}}
    values = state_of(n)
    for function, label in TIMED.items():
        known = in_loops(robot, function)
        for method in known:
            if n > LONGEST_OTHERS and not (method == known[0] or scans(function, method)):
                continue
            for threads in threads_of(function, method):
                first, seconds = timed(
                    call_of(robot, function, method, values, threads), 0.3 if n < 1e6 else 1.0
                )
                row.setdefault("first", first)
                row["seconds"][f"{label} {method} {threads}"] = seconds
    return row | {"peak": peak()}


def in_loops(robot: lw.Robot, function: str) -> list[str]:
    """Methods of a function that are loops over the links and end after a fixed number of steps.

    Of methods that are one program, the first.
    """
    found: dict[Any, str] = {}
    for method, algorithm in FUNCTIONS[function].items():
        able = algorithm.can_roll(robot.tree) and algorithm.exists_for(robot.tree)
        if able and not algorithm.iterates:
            found.setdefault(algorithm.driver, method)
    return list(found.values())


def threads_of(function: str, method: str) -> tuple[int, ...]:
    """Numbers of threads worth measuring: only scans share the links of one state among them."""
    return (1, os.cpu_count() or 1) if scans(function, method) else (1,)


def scans(function: str, method: str) -> bool:
    """Whether a method cuts a chain into pieces."""
    return FUNCTIONS[function][method].scans


def call_of(
    robot: lw.Robot, function: str, method: str, values: Sequence[Any], threads: int | None
) -> Callable[[], object]:
    """A call as users write it."""
    options: dict[str, Any] = {} if len(FUNCTIONS[function]) == 1 else {"method": method}
    options |= {} if threads is None else {"threads": threads}
    call = getattr(robot, function)
    return lambda: call(*values, **options)


def timed(call: Callable[[], object], patience: float = 0.3) -> tuple[float, float]:
    """Seconds of the first call, and of the best of later ones."""
    start = time.perf_counter()
    call()
    first, best, since = time.perf_counter() - start, float("inf"), time.perf_counter()
    while best == float("inf") or time.perf_counter() - since < patience:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return first, best


def peak() -> int:
    """Megabytes that the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def peer(name: str, n: int) -> Row:
    """The same chain in another library, checked against ours."""
    from linkwise.bench.mujoco import mujoco_peer
    from linkwise.bench.pinocchio import pinocchio_peer

    robot = lw.chain(n, "random")
    start = time.perf_counter()
    made = {"pinocchio": pinocchio_peer, "mujoco": mujoco_peer}[name](robot, "tip")
    row: Row = {"n": n, "who": name, "built": time.perf_counter() - start, "seconds": {}}
    for function, label in TIMED.items():
        known = made.calls[function]
        names = dict(made.names) | dict(zip(("q", "qd", "tau"), state_of(n), strict=True))
        once = partial(exec, compile(known.statement, "<peer>", "exec"), names)
        row["seconds"][f"{label} {known.label} 1"] = timed(once, 1.0)[1]
        result = np.asarray(eval(known.result, names)).ravel()
        expected = getattr(robot, function)(*state_of(n))
        row[f"difference {label}"] = float(np.abs(result - expected).max() / np.abs(expected).max())
    return row | {"peak": peak()}


def gpu(n: int) -> Row:
    """Seconds on a GPU, with all arrays there, and on its host; a serial walk is one thread."""
    import cupy

    robot = lw.chain(n, "random").with_codegen("rolled")
    row: Row = {"n": n, "who": "gpu", "device": _device(cupy), "seconds": {}, "refused": {}}
    for dtype, (function, label) in product(("float64", "float32"), TIMED.items()):
        values = [cupy.asarray(x.astype(dtype)) for x in state_of(n)]
        for k, method in enumerate(in_loops(robot, function)):
            serial = k == 0 and n <= LONGEST_SERIAL
            if not (serial or scans(function, method)):
                continue
            key = f"{label} {method} {dtype}"
            try:
                call = call_of(robot, function, method, values, None)
                row["seconds"][key] = _on_stream(cupy, call)
            except (ValueError, TypeError, RuntimeError) as error:
                row["refused"][key] = str(error)
    for function, label in TIMED.items():
        for method in in_loops(robot, function):
            if scans(function, method):
                cores = os.cpu_count() or 1
                call = call_of(robot, function, method, state_of(n), cores)
                row["seconds"][f"{label} {method} {cores}"] = timed(call)[1]
    return row


def _device(cupy: Any) -> str:
    return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())


def _on_stream(cupy: Any, call: Callable[[], object]) -> float:
    """Seconds of a call between events around several, the best of five."""
    call()
    stream, best = cupy.cuda.get_current_stream(), float("inf")
    stream.synchronize()
    start = time.perf_counter()
    call()
    stream.synchronize()
    count = max(1, min(20, int(0.1 / (time.perf_counter() - start))))
    for _ in range(5):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record(stream)
        for _ in range(count):
            call()
        end.record(stream)
        end.synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(begin, end) / count / 1e3)
    return best


# -- all lengths ----------------------------------------------------------------------------------


def child(what: str, n: int, limited: bool = False) -> Row:
    """One length in a new process; why there is no result, if there is none."""
    start = time.perf_counter()
    base: Row = {"n": n, "who": what}
    try:
        done = subprocess.run(
            [sys.executable, __file__, "one", what, str(n)], capture_output=True, text=True,
            timeout=4 * PATIENCE if limited else None, preexec_fn=_limit if limited else None,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return base | {"failed": f"no result after {4 * PATIENCE:.0f} s"}
    if done.returncode == -signal.SIGXCPU:
        return base | {"failed": f"no result after {PATIENCE:.0f} s of processor time"}
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    told = [line for line in done.stderr.splitlines() if line.strip()]
    ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit {done.returncode}"
    why = told[-1][:200] if told else "no message"
    return base | {"failed": f"{why} ({ended}, {time.perf_counter() - start:.0f} s)"}


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(PATIENCE), int(PATIENCE) + 5))


def one(what: str, n: int) -> None:
    """The work of a child: a row, as the last line that it prints."""
    found = {"linkwise": ours, "gpu": gpu}.get(what) or (lambda n: peer(what, n))
    print(json.dumps(found(n)))


def peers() -> list[Row]:
    """Each peer at each length, up to the second length at which it fails."""
    rows: list[Row] = []
    for name in PEERS:
        failures = 0
        for n in LENGTHS:
            if failures == 2:
                break
            rows.append(child(name, n, limited=True))
            failures += "failed" in rows[-1]
            print(name, n, rows[-1], file=sys.stderr, flush=True)
    return rows


def peers_again(kept: Sequence[Row]) -> list[Row]:
    """Times of the peers anew, at lengths at which they did not fail before."""
    return [row if "failed" in row else child(row["who"], row["n"], limited=True) for row in kept]


def results() -> dict[str, Any]:
    """What was measured before."""
    if not RESULTS.exists():
        return {"linkwise": [], "peers": [], "gpu": []}
    return dict(json.loads(RESULTS.read_text(encoding="utf-8")))


def save(**new: Any) -> None:
    """Replace some of the results."""
    text = json.dumps(results() | new, indent=1)
    RESULTS.write_text(text + "\n", encoding="utf-8")


def machine() -> str:
    """The processor, and how many of its cores there are."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    names = [line.split(":", 1)[1].strip() for line in info.splitlines() if "model name" in line]
    wide = "AVX-512" if "avx512f" in info else "AVX2" if "avx2" in info else "no AVX2"
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, {wide}"


# -- the page -------------------------------------------------------------------------------------


def duration(seconds: float | None) -> str:
    """Three digits and a unit."""
    if seconds is None:
        return ""
    scale, unit = next(
        (s, u) for s, u in ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")) if seconds < 1e3 * s or u == "s"
    )
    value = seconds / scale
    return f"{value:.3g} {unit}" if value < 1e3 else f"{value:.0f} {unit}"


def columns(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """(who, key in seconds, head, kind) of every column that was measured."""
    chosen: list[tuple[str, str, str, str]] = []
    for row in found["linkwise"]:
        for key in row["seconds"]:
            label, method, threads = key.split()
            many = f", {threads} threads" if threads != "1" else ""
            chosen.append(("linkwise", key, f"`{method}`{many}", label))
    for row in found["gpu"]:
        for key in row["seconds"]:
            label, method, where = key.split()
            if where == "float32" and method in ("aba", "rnea"):
                continue  # as long as in float64: one thread waits for itself
            told = f", {where} threads of its host" if where.isdigit() else f" {where}"
            chosen.append(("gpu", key, f"`{method}`{told}", label))
    return sorted(dict.fromkeys(chosen), key=lambda c: c[3] == "id")


def _device_of(column: tuple[str, str, str, str]) -> str:
    """What a column's name begins with."""
    return "GPU " if column[0] == "gpu" and not column[1].split()[2].isdigit() else ""


def rows_of(found: dict[str, Any]) -> dict[tuple[str, int], Row]:
    """All rows, by who and length."""
    every = [*found["linkwise"], *found["gpu"], *found["peers"]]
    return {(row["who"], row["n"]): row for row in every}


def times_table(found: dict[str, Any], kind: str) -> str:
    """A row per length: our methods, then the peers."""
    at = rows_of(found)
    own = [c for c in columns(found) if c[3] == kind and c[0] == "linkwise"]
    head = ["links", *(c[2] for c in own), *PEERS]
    body = []
    for n in sorted({row["n"] for row in found["linkwise"]}):
        cells = [duration(at.get((c[0], n), {}).get("seconds", {}).get(c[1])) for c in own]
        body.append([f"{n:,}", *cells, *(_peer_cell(at.get((name, n)), kind) for name in PEERS)])
    return markdown(head, body)


def _peer_cell(row: Row | None, kind: str) -> str:
    if row is None:
        return "not tried"
    if "failed" in row:
        return "fails"
    return duration(next(s for key, s in row["seconds"].items() if key.startswith(kind)))


def gpu_section(found: dict[str, Any]) -> str:
    """A row per length: the serial walk on one thread of a GPU, and scans."""
    own = [c for c in columns(found) if c[0] == "gpu"]
    if not own:
        return ""
    at = rows_of(found)
    body = [
        [f"{row['n']:,}", *(duration(at["gpu", row["n"]]["seconds"].get(c[1])) for c in own)]
        for row in found["gpu"]
    ]
    devices = ", ".join(sorted({row["device"] for row in found["gpu"]}))
    head = ["links", *(f"{c[3].upper()} {c[2]}" for c in own)]
    return f"On a GPU ({devices}), all arrays there:\n\n{markdown(head, body)}\n\n"


def making_table(found: dict[str, Any]) -> str:
    """What comes before the first result: seconds and memory."""
    body = [
        [f"{row['n']:,}", f"{row['built']:.2f}", f"{row['first']:.2f}", f"{row['peak']:,}"]
        for row in sorted(found["linkwise"], key=lambda row: row["n"])
    ]
    return markdown(["links", "built in, s", "first call, s", "peak MB"], body)


def failures(found: dict[str, Any]) -> str:
    """What became of each peer at each length, in its own words."""
    body = []
    for row in found["peers"]:
        name, n = row["who"], f"{row['n']:,}"
        if "failed" in row:
            body.append([name, n, "", "", row["failed"].replace("|", "\\|")])
            continue
        worst = max(row["difference fd"], row["difference id"])
        told = f"agrees with linkwise to {worst:.0e}"
        body.append([name, n, f"{row['built']:.2g}", f"{row['peak']:,}", told])
    return markdown(["peer", "links", "built in, s", "peak MB", "what happened"], body)


def slopes(found: dict[str, Any]) -> str:
    """Time per tenfold length where depth decides it, and per link where work does."""
    at, lines = rows_of(found), []
    for who, key, head, kind in columns(found):
        have = {n: row["seconds"][key] for (w, n), row in at.items()
                if w == who and key in row.get("seconds", {})}  # fmt: skip
        lengths = sorted(have)
        if len(lengths) < 2:
            continue
        growth = [math.log10(have[b] / have[a]) / math.log10(b / a)
                  for a, b in pairwise(lengths)]  # fmt: skip
        per_link = have[lengths[-1]] / lengths[-1] * 1e9
        where = _device_of((who, key, head, kind))
        lines.append(
            [f"{kind.upper()} {where}{head}", *(f"{g:.2f}" for g in growth), f"{per_link:.3g}"]
        )
    lengths = sorted({n for _, n in at})
    steps = [f"to {b:,}" for b in lengths[1:]]
    lines = [[x[0], *x[1:-1], *[""] * (len(steps) + 2 - len(x)), x[-1]] for x in lines]
    return markdown(["", *steps, "ns per link of the longest"], lines)


def section(found: dict[str, Any]) -> str:
    """The part of the page that is measured."""
    return f"""\
One state of a random chain of revolute joints, float64, on {found["machine"]}. The best
of repeated calls, from Python, all checks included. Peers are on the same core, in processes with
8 GB and five minutes of processor time for each length, their model made from the same links
(`linkwise.bench`).

Forward dynamics:

{times_table(found, "fd")}

Inverse dynamics:

{times_table(found, "id")}

{gpu_section(found)}![time against length](pictures/long_chains.svg)

Before the first result:

{making_table(found)}

What became of the peers (Pinocchio {found["versions"]["pinocchio"]}, MuJoCo \
{found["versions"]["mujoco"]}; not tried after two failures):

{failures(found)}

How fast time grows from each length to the next: 1 is in proportion to the length, 0 is not at all.
Where the depth of the computation decides, as on a GPU up to a hundred thousand links, an O(log N)
method is near 0.

{slopes(found)}
"""


def write(found: dict[str, Any]) -> None:
    """The page's measured part, between its marks, and the picture."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{section(found)}{END}{after}", encoding="utf-8")
    draw(found)


def draw(found: dict[str, Any]) -> None:
    """Time against length, both axes logarithmic: forward dynamics of everyone."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "linkwise", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(figsize=(9.0, 4.6))
    at = rows_of(found)
    own = [c for c in columns(found) if c[3] == "fd" and c[1].split()[1] not in ("fd3", "schur")]
    lines = [
        (c[0], c[1], _device_of(c) + c[2].replace("`", ""), "-" if c[0] == "linkwise" else "--")
        for c in own
    ]
    for name in PEERS:
        key = next((k for row in found["peers"] if row["who"] == name and "seconds" in row
                    for k in row["seconds"] if k.startswith("fd")), "")  # fmt: skip
        lines.append((name, key, f"{name}, fails beyond ×", ":"))
    for k, (who, key, text, style) in enumerate(lines):
        xy = sorted((n, row["seconds"][key]) for (w, n), row in at.items()
                    if w == who and key in row.get("seconds", {}))  # fmt: skip
        if xy:
            axes.plot(*zip(*xy, strict=True), style, marker="o", ms=4, color=f"C{k}", label=text)
            if who in PEERS:
                axes.plot(*xy[-1], "x", ms=10, color=f"C{k}")
    axes.set(xscale="log", yscale="log", xlabel="links", ylabel="seconds of forward dynamics")
    axes.grid(alpha=0.25, which="major")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})
    plt.close(figure)


# -- batches, written out and by loops ------------------------------------------------------------


def compare() -> None:
    """First calls and batches, written out and by loops."""
    print("| links | function | first call, s | by loops | ns per link of a state | by loops |")
    print("|--:|---|--:|--:|--:|--:|")
    for n in (8, 16, 32, 64, 128):
        robot, rng = lw.chain(n, "random"), np.random.default_rng(0)
        x = rng.normal(size=(3, STATES, n))
        for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
            inputs = x[:1] if function == "mass_matrix" else x
            written, loops = (
                _batch(robot.with_codegen(kind), function, inputs)
                for kind in ("unrolled", "rolled")
            )
            times = (written[0], loops[0]), (written[1] / n, loops[1] / n)
            first, each = (" | ".join(f"{t:.2g}" for t in pair) for pair in times)
            print(f"| {n} | {function} | {first} | {each} |", flush=True)


def _batch(robot: lw.Robot, function: str, inputs: np.ndarray) -> tuple[float, float]:
    """Seconds of the first call, and nanoseconds per state of later ones."""
    call = getattr(robot, function)
    first, seconds = timed(lambda: call(*inputs, threads=1))
    return first, seconds / STATES * 1e9


def measured(lengths: Sequence[int]) -> list[Row]:
    """Our rows, one process after another."""
    rows = []
    for n in lengths:
        rows.append(child("linkwise", n))
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def versions() -> dict[str, str]:
    """Of the peers."""
    from importlib.metadata import version

    return {"pinocchio": version("pin"), "mujoco": version("mujoco")}


def main(words: Sequence[str]) -> None:
    """One of the uses above."""
    match list(words):
        case ["one", what, n]:
            one(what, int(n))
        case ["compare"]:
            compare()
        case ["gpu", path]:
            rows: list[Row] = []
            for n in LENGTHS:
                rows.append(gpu(n))
                Path(path).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        case ["gpu-results", path]:
            save(gpu=json.loads(Path(path).read_text(encoding="utf-8")))
            write(results())
        case ["peers"]:
            save(peers=peers(), versions=versions())
            if results()["linkwise"]:
                write(results())
        case ["page"]:
            write(results())
        case []:
            save(linkwise=measured(LENGTHS), machine=machine())
            save(peers=peers_again(results()["peers"]), versions=versions())
            write(results())
        case _:
            found = {"linkwise": measured([int(float(x)) for x in words]), "peers": [], "gpu": []}
            print(
                making_table(found), times_table(found, "fd"), times_table(found, "id"), sep="\n\n"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
