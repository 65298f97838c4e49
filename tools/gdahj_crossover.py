"""GDAHJ against CRBA on general chains, measured: tables and plot of docs/papers/gdahj.md.

    python tools/gdahj_crossover.py                all; writes the tables and the plot
    python tools/gdahj_crossover.py --counts       operations only (seconds); rewrites that table
    python tools/gdahj_crossover.py --most 20      times of chains of at most 20 joints

Chains are those of ``linkwise.study.generic``: revolute, no accidental zeros. Times are of calls
on one core, the least of many samples, methods in turns; the plot needs matplotlib.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from pages import DOCS

import linkwise as lw
from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.bench.timing import Way, measure, one_core, processor
from linkwise.study import counts
from linkwise.study.claims import CLAIMS, formula
from linkwise.study.generic import generic_chain
from linkwise.trace.program import OperationCount

PAGE, PLOT = DOCS / "papers" / "gdahj.md", DOCS / "papers" / "gdahj.svg"
COUNTED = (6, 7, 13, 14, 30)
LENGTHS = (*range(2, 21), 22, 25, 30, 40, 60)
BATCH = 256  # states; the results of 60 joints are then 7 MB
TICKS = (2, 3, 5, 7, 10, 14, 20, 30, 60)
SECONDS = 0.6  # of samples for each length


_CLAIMED = {claim.name: claim.printed for claim in CLAIMS}
PUBLISHED = {
    "gdahj": _CLAIMED["GDAHJ"],
    "gdahj-symmetric": formula((3, 79, 0), ("5/2", "143/2", -9)),  # counted by hand
    "crba": _CLAIMED["CRBA"],
}


# -- what is compared -----------------------------------------------------------------------------


METHODS = {
    name: FUNCTIONS["mass_matrix"][name] for name in ("crba", "gdahj", "gdahj-symmetric", "mixed")
}


def chain(n: int) -> lw.Robot:
    """The chain that is measured."""
    return lw.Robot(generic_chain(n))


def operations(robot: lw.Robot, algorithm: Algorithm) -> OperationCount:
    """Of the program that runs."""
    return counts.count(algorithm, robot.tree)


class Row(NamedTuple):
    """One length of chain: operations, nanoseconds and errors, by method."""

    n: int
    operations: dict[str, int]
    single: dict[str, float]
    batch: dict[str, float]
    error: dict[str, float]  # eq. 32: against CRBA


def one_length(n: int, timed: bool) -> Row:
    """Count, time and compare the methods on one chain."""
    robot = chain(n)
    counts = {name: operations(robot, algorithm).total for name, algorithm in METHODS.items()}
    if not timed:
        return Row(n, counts, {}, {}, {})
    rng = np.random.default_rng(n)
    q, many = robot.random_q(rng), robot.random_q(rng, size=BATCH)
    single, batch, results = {}, {}, {}
    for name in METHODS:
        out = np.empty((BATCH, n, n))
        names = {"robot": robot, "q": q, "many": many, "out": out, "method": name}
        single[name] = Way(name, "robot.mass_matrix(q, method=method)", names)
        call = "robot.mass_matrix(many, out=out, threads=1, method=method)"
        batch[name] = Way(name, call, names, BATCH)
        results[name] = robot.mass_matrix(many, method=name)
    with one_core():
        times = [measure(ways, SECONDS) for ways in (single, batch)]
    errors = {k: metric(M, results["crba"]) for k, M in results.items() if k != "crba"}
    return Row(n, counts, *times, errors)


def metric(A: np.ndarray, B: np.ndarray) -> float:
    """Eq. 32, the largest over the states."""
    total = np.abs(A - B).sum(axis=(1, 2))
    return float((total / np.abs((A + B) / 2).max(axis=(1, 2))).max())


# -- the page -------------------------------------------------------------------------------------


def counts_table() -> str:
    """Multiplications / additions as printed and as counted here."""
    heads = "n", "GDAHJ printed", "ours", "symmetric by hand", "ours", "kinematics"
    lines = [_line(*heads, "CRBA printed", "ours"), "|" + "---|" * 8]
    for n in COUNTED:
        robot = chain(n)
        ours = {name: operations(robot, algorithm) for name, algorithm in METHODS.items()}
        extra = operations(robot, counts.PARTS["kinematics"])
        cells = []
        for name in ("gdahj", "gdahj-symmetric"):
            cells += [_pair(*PUBLISHED[name].at(n)), _less(ours[name], extra)]
        cells += [
            _pair(extra.multiplications, extra.additions),
            _pair(*PUBLISHED["crba"].at(n)),
            _pair(ours["crba"].multiplications, ours["crba"].additions),
        ]
        lines.append(f"| {n} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _pair(m: float, a: float) -> str:
    return f"{m:.0f} / {a:.0f}"


def _less(count: OperationCount, extra: OperationCount) -> str:
    return _pair(count.multiplications - extra.multiplications, count.additions - extra.additions)


def operations_table(rows: Sequence[Row]) -> str:
    """Multiplications and additions together."""
    lines = [
        "| n | CRBA | GDAHJ | symmetric | mixed | printed CRBA | printed GDAHJ |",
        "|" + "---|" * 7,
    ]
    for row in rows:
        printed = [round(sum(PUBLISHED[name].at(row.n))) for name in ("crba", "gdahj")]
        lines.append(_line(row.n, *(row.operations[name] for name in METHODS), *printed))
    return "\n".join(lines)


def times_table(rows: Sequence[Row]) -> str:
    """Nanoseconds of one state, of a state in a batch, and the errors of eq. 32."""
    names = "CRBA", "GDAHJ", "symmetric", "mixed"
    many = [f"batch {name}" for name in names]
    lines = [_line("n", *names, *many, "e GDAHJ", "e symmetric"), "|" + "---|" * 11]
    for row in rows:
        times = [f"{kind[name]:.0f}" for kind in (row.single, row.batch) for name in METHODS]
        errors = [f"{row.error[name]:.1e}" for name in ("gdahj", "gdahj-symmetric")]
        lines.append(_line(row.n, *times, *errors))
    return "\n".join(lines)


def _line(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def crossovers(rows: Sequence[Row]) -> str:
    """The least measured length from which on a method stays below CRBA."""
    lines = ["| below CRBA from n = | GDAHJ | symmetric | mixed |", "|---|---|---|---|"]
    for title, kind in (
        ("operations, kinematics included", "operations"),
        ("time, one state", "single"),
        ("time, batch, per state", "batch"),
    ):
        if getattr(rows[0], kind):
            below = [_from(rows, kind, name) for name in METHODS if name != "crba"]
            lines.append(_line(title, *below))
    return "\n".join(lines)


def _from(rows: Sequence[Row], kind: str, name: str) -> str:
    losing = [r.n for r in rows if getattr(r, kind)[name] >= getattr(r, kind)["crba"]]
    beyond = [r.n for r in rows if not losing or r.n > max(losing)]
    return str(beyond[0]) if beyond else f"never up to {rows[-1].n}"


def put(page: str, mark: str, text: str) -> str:
    """Replace what stands between two marks of a page."""
    pattern = rf"(<!-- {mark} -->\n).*?(<!-- end -->)"
    if not re.search(pattern, page, re.DOTALL):
        raise SystemExit(f"{PAGE}: no mark {mark!r}")
    return re.sub(pattern, lambda m: f"{m[1]}\n{text}\n\n{m[2]}", page, flags=re.DOTALL)


def plot(rows: Sequence[Row]) -> None:
    """Figures 4 and 5 of the paper, with operations beside them."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.hashsalt": "linkwise", "svg.fonttype": "none"})
    figure, axes = pyplot.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
    n = [row.n for row in rows]
    panels = (("operations", "operations", 1.0), ("single", "one state, µs (Fig. 4)", 1e-3),
              ("batch", f"batch of {BATCH}, µs per state", 1e-3))  # fmt: skip
    for axis, (kind, title, scale) in zip(axes, panels, strict=False):
        for name in METHODS:
            axis.plot(n, [getattr(r, kind)[name] * scale for r in rows], ".-", ms=3, label=name)
        axis.set(title=title, xlabel="joints", xscale="log", yscale="log")
        axis.set_xticks(TICKS, [str(n) for n in TICKS])
        axis.minorticks_off()
    for name, colour in (("gdahj", "C1"), ("gdahj-symmetric", "C2")):
        axes[3].plot(n, [r.error[name] for r in rows], f"{colour}.-", ms=3, label=name)
    axes[3].set(title="error e of eq. 32 against CRBA (Fig. 5)", xlabel="joints", yscale="log")
    axes[0].legend(frameon=False)
    figure.savefig(PLOT, metadata={"Date": None})


def main() -> None:
    """Measure, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--counts", action="store_true", help="operations only")
    parser.add_argument("--most", type=int, default=60, help="joints of the longest chain")
    asked = parser.parse_args()
    if not asked.counts and find_spec("matplotlib") is None:
        parser.error("the plot needs matplotlib: pip install matplotlib, or give --counts")
    rows = []
    for n in (n for n in LENGTHS if n <= asked.most):
        rows.append(one_length(n, timed=not asked.counts))
        print(rows[-1], flush=True)
    page = put(PAGE.read_text(), "counts", counts_table())
    page = put(page, "operations", operations_table(rows))
    if not asked.counts:
        page = put(page, "times", times_table(rows))
        page = put(page, "crossover", crossovers(rows))
        page = put(
            page,
            "machine",
            f"Measured on one core of: {processor()}; float64, batch of {BATCH} states.",
        )
        plot(rows)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
