"""Errors of forward dynamics of long chains, by every method, as a page: docs/chain_accuracy.md.

    python tools/chain_accuracy.py              measure, write the page and its picture (minutes)
    python tools/chain_accuracy.py page         the page again, from benchmarks/results
    python tools/chain_accuracy.py gpu          scans on a GPU, on a machine with one and CuPy
    python tools/chain_accuracy.py aba scan     only these methods, printed; chains up to 10,000

Up to 100,000 links an error is the largest difference from the accelerations in 60 digits
(`precise_chain.py`, a recursion of its own), over the largest of them. A chain of 100,000 links
takes the judge 20 s. Beyond, there is the residual of inverse dynamics, in units of the residual
that rounding the accelerations makes. The numbers of links and states are numbers of float32, so
that every kernel and the judge are given the same problem.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import precise_chain
from pages import DOCS, markdown
from precise_chain import Rod

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.model.description import IDENTITY
from linkwise.model.joints import Revolute
from linkwise.model.linktable import Kind, LinkFrames, LinkTable, numbers
from linkwise.model.tree import Frame, Link, Tree
from linkwise.spatial import RigidInertia, Sym3, Transform, Turn, Vec3
from linkwise.spatial.records import leaves

PAGE, PICTURE = DOCS / "chain_accuracy.md", DOCS / "pictures" / "chain_accuracy.svg"
RESULTS = DOCS.parent / "benchmarks" / "results" / "chain_accuracy.json"
ON_GPU = RESULTS.with_name("chain_accuracy_h200.json")
KEPT = Path(tempfile.gettempdir()) / "linkwise-chain-accuracy"
JUDGED = (10, 100, 1_000, 10_000, 100_000)  # lengths with an exact result
RESIDUAL = (1_000_000, 10_000_000)
LONGEST = ("falling", "wavy")  # cases that are measured at the longest length too
WRITTEN_OUT = 10  # longest chain of methods that have no loops
ROOMY = 1_000_000  # longest chain of Schur complements, which keep whole matrices of each link
DENSE = 1_000  # longest chain whose mass matrix is formed, for its condition
DTYPES = ("float64", "float32")
ITERATED = 1_000  # longest chain of iterations: there they need thousands of steps, and fail
RANDOM, SEEDS, SAMPLED = "random", 10, (10_000, 100_000, 1_000_000)  # chains of many seeds
NUDGE = 1e-7  # relative, of inputs and constants, to see what the problem makes of it
DOWN = (0.0, 0.0, -9.8125)
Array = np.ndarray
State = tuple[Array, Array, Array]


# -- chains and states ----------------------------------------------------------------------------


def rod(mass: float = 0.125, length: float = 0.125, turns: bool = True) -> Rod:
    """A slender link: a little heavier at its ends than an even one, so that its numbers are short.

    An even rod has a third of m l² where this one has 11/32.
    """
    size = mass * length**2
    return Rod(mass, length, (size * 11 / 32, size / 512, size / 512), turns)


@dataclass(frozen=True)
class Case:
    """A kind of chain and its state."""

    name: str
    text: str
    rods: tuple[Rod, ...]  # links that take turns along the chain
    state: Callable[[int, np.random.Generator], State]


def hanging(n: int, rng: np.random.Generator) -> State:
    """Nearly straight down."""
    q = 0.01 * rng.normal(size=n)
    q[0] = np.pi / 2
    return q, np.zeros(n), 1e-3 * rng.normal(size=n)


def falling(n: int, rng: np.random.Generator) -> State:
    """At rest in mid-air, bent at random."""
    return 0.3 * rng.normal(size=n), np.zeros(n), np.zeros(n)


def wavy(n: int, rng: np.random.Generator) -> State:
    """A wave that moves along."""
    k = np.arange(n)
    return 0.3 * np.sin(0.2 * k), 0.5 * np.cos(0.2 * k), 0.01 * rng.normal(size=n)


def straight(n: int, rng: np.random.Generator) -> State:
    """On the x axis."""
    return np.zeros(n), 0.1 * rng.normal(size=n), 0.01 * rng.normal(size=n)


def stiff(n: int, rng: np.random.Generator) -> State:
    """Springs of 1,000 N m at every joint, a thousand times what the weight of links makes."""
    q, qd, _ = wavy(n, rng)
    return q, qd, -1e3 * q


def driven(n: int, rng: np.random.Generator) -> State:
    """The torques of chosen accelerations."""
    q, qd, _ = wavy(n, rng)
    q, qd = rounded(q), rounded(qd)
    return q, qd, robot_of(CASES["driven"], n).inverse_dynamics(q, qd, rng.normal(size=n))


_LIGHT, _HEAVY = rod(2.0**-13, 2.0**-3), rod(2.0**7, 2.0**-3)
CASES = {
    case.name: case
    for case in (
        Case("hanging", "nearly straight down, at rest, small random torques", (rod(),), hanging),
        Case("falling", "random angles of 0.3 rad, released from rest", (rod(),), falling),
        Case("wavy", "angles and rates along a wave, random torques", (rod(),), wavy),
        Case("straight", "all angles zero, random rates and torques", (rod(),), straight),
        Case("stiff", "the wave with a spring of 1,000 N m at every joint", (rod(),), stiff),
        Case("mixed mass", "the wave, neighbours' masses a million apart", (_LIGHT, _HEAVY), wavy),
        Case("driven", "the wave, torques of random accelerations", (rod(),), driven),
    )
}  # fmt: skip


def rounded(x: Array) -> Array:
    """The nearest numbers of float32."""
    return x.astype(np.float32).astype(float)


def state_of(case: Case, n: int) -> State:
    """Angles, rates and torques that float32 holds."""
    q, qd, tau = case.state(n, np.random.default_rng(n))
    return rounded(q), rounded(qd), rounded(tau)


def robot_of(case: Case, n: int, nudge: float = 0.0) -> lw.Robot:
    """The chain; with a nudge, every number of its links is off by about as much."""
    links = [_link(one, case.rods[i - 1].length) for i, one in enumerate(case.rods)]
    rows = np.array([leaves(numbers(link)) for link in links])[np.arange(n) % len(links)]
    if nudge:
        rows *= 1.0 + nudge * signs(n, rows.shape) * (np.abs(rows) != 1.0)  # turns stay exact
    table = LinkTable([Kind(links[0], rows)], np.zeros(n, np.int64), np.arange(n) - 1, _names)
    tip = Frame(n - 1, (case.rods[-1].length, 0.0, 0.0), IDENTITY)
    return lw.Robot.from_tree(
        Tree(table, DOWN, LinkFrames(n, "link", {"tip": tip})), case.name
    ).with_codegen("rolled")


def _link(one: Rod, before: float) -> Link:
    body = RigidInertia(
        one.mass, Vec3(one.mass * one.length / 2, 0.0, 0.0),
        Sym3(one.second[0], 0.0, 0.0, one.second[1], 0.0, one.second[2]),
    )  # fmt: skip
    place = Transform(Vec3(before, 0.0, 0.0), (Turn("x", 0.0, 1.0),))
    return Link("", "", -1, Revolute(), place, body, (0.0,), 0, 0)


def _names(i: int) -> tuple[str, str]:
    return f"link{i + 1}", f"joint{i + 1}"


def signs(seed: int, shape: int | tuple[int, ...]) -> Array:
    """Random -1 and 1."""
    return np.random.default_rng(seed + 1).integers(0, 2, shape) * 2.0 - 1.0


# -- measuring ------------------------------------------------------------------------------------


def methods(robot: lw.Robot) -> Iterator[str]:
    """Methods of forward dynamics that a chain has; of those that are one program, the first."""
    seen = set()
    for name, algorithm in FUNCTIONS["forward_dynamics"].items():
        able = algorithm.can_roll(robot.tree) or robot.nv <= WRITTEN_OUT
        able &= not algorithm.iterates or robot.nv <= ITERATED
        able &= not name.startswith("schur") or robot.nv <= ROOMY
        if able and algorithm.exists_for(robot.tree) and algorithm.driver not in seen:
            seen.add(algorithm.driver)
            yield name


def run(robot: lw.Robot, method: str, state: State, dtype: str) -> Array:
    """Accelerations by a method in a number type; no numbers if it does not converge."""
    algorithm = FUNCTIONS["forward_dynamics"][method]
    chain = robot if algorithm.can_roll(robot.tree) else robot.with_codegen("unrolled")
    values = (x.astype(dtype) for x in state)
    found, told = chain.forward_dynamics(*values, method=method, status=True)
    lost = algorithm.iterates and told.status == lw.Status.NOT_CONVERGED
    return np.full(robot.nv, np.nan) if lost else np.asarray(found).astype(float)


def judged(job: tuple[str, int]) -> Array:
    """The accelerations of a case in 60 digits, rounded; kept in a file of the same problem."""
    case, n = CASES[job[0]], job[1]
    state, judge = state_of(case, n), Path(precise_chain.__file__).read_bytes()
    problem = (judge, repr((case.rods, DOWN)).encode(), *(x.tobytes() for x in state))
    file = KEPT / f"{hashlib.sha256(b''.join(problem)).hexdigest()}.npy"
    if not file.exists():
        rods = [case.rods[i % len(case.rods)] for i in range(n)]
        found = precise_chain.accelerations(rods, *state, DOWN)
        file.parent.mkdir(exist_ok=True)
        np.save(file, found)
    return np.load(file)


def largest(x: Array) -> float:
    """The largest entry; infinite where one is no number."""
    return float(np.abs(x).max()) if np.isfinite(x).all() else float("inf")


def sensitivity(case: Case, n: int) -> float:
    """How much larger than a relative change of inputs and link constants that of the result is.

    Every number is changed by `NUDGE` up or down at random; the largest of three trials.
    """
    state, exact = state_of(case, n), run(robot_of(case, n), "aba", state_of(case, n), "float64")
    found = []
    for trial in range(3):
        other = [x * (1.0 + NUDGE * signs(n + 7 * trial + k, n)) for k, x in enumerate(state)]
        nudged = run(robot_of(case, n, NUDGE), "aba", tuple(other), "float64")
        found.append(largest(nudged - exact) / largest(exact) / NUDGE)
    return max(found)


def unit_of_residuals(robot: lw.Robot, state: State, qdd: Array) -> float:
    """What relative changes of q, qd and qdd make of inverse dynamics, over the changes."""
    q, qd, _ = state
    other = [x * (1.0 + NUDGE * signs(k, len(x))) for k, x in enumerate((q, qd, qdd))]
    changed = robot.inverse_dynamics(*other) - robot.inverse_dynamics(q, qd, qdd)
    return largest(changed) / NUDGE


def rounding(dtype: str) -> float:
    """The largest relative error of rounding a number once."""
    return float(np.finfo(dtype).eps) / 2


def measure(
    robot: lw.Robot, state: State, exact: Array | None, chosen: Sequence[str]
) -> dict[str, Any]:
    """Errors and residuals of methods in each number type.

    Without an exact result, the difference from articulated bodies in float64 stands for errors.
    """
    q, qd, tau = state
    aba = run(robot, "aba", state, "float64")
    truth, unit = aba if exact is None else exact, unit_of_residuals(robot, state, aba)
    found: dict[str, Any] = {"n": robot.nv, "error": {}, "residual": {}}
    for method in chosen:
        for dtype in DTYPES:
            with np.errstate(all="ignore"):
                qdd = run(robot, method, state, dtype)
                left = robot.inverse_dynamics(q, qd, qdd) - tau
            found["error"][f"{method} {dtype}"] = largest(qdd - truth) / largest(truth)
            found["residual"][f"{method} {dtype}"] = largest(left) / unit / rounding(dtype)
    return found


def conditions(case: Case, n: int) -> dict[str, float]:
    """What errors of a problem are measured by."""
    found = {"sensitivity": sensitivity(case, n)}
    if n <= DENSE:
        M = robot_of(case, n).mass_matrix(state_of(case, n)[0])
        scale = np.sqrt(np.diagonal(M))
        found["condition"] = float(np.linalg.cond(M / np.multiply.outer(scale, scale)))
    return found


def measured(case: Case, lengths: Sequence[int], only: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A chain at every length."""
    for n in lengths:
        robot, state = robot_of(case, n), state_of(case, n)
        exact = judged((case.name, n)) if n <= max(JUDGED) else None
        chosen = [m for m in methods(robot) if not only or m in only]
        row = {"case": case.name} | measure(robot, state, exact, chosen)
        yield row | ({} if exact is None else conditions(case, n))
        print(f"{case.name}, {n:,} links", file=sys.stderr, flush=True)


def on_gpu() -> Iterator[dict[str, Any]]:
    """Differences of scans on a GPU from articulated bodies in float64, on the processor."""
    import cupy

    for n, case in product((1_000, 10_000, 100_000, 1_000_000), CASES.values()):
        robot, state = robot_of(case, n), state_of(case, n)
        truth, row = run(robot, "aba", state, "float64"), {"case": case.name, "n": n}
        for dtype in DTYPES:
            values = (cupy.asarray(x.astype(dtype)) for x in state)
            found = robot.forward_dynamics(*values, method="scan").get().astype(float)
            row[f"scan {dtype}"] = largest(found - truth) / largest(truth)
            for method in ("scan", "aba") if dtype == "float32" else ("scan",):
                here = run(robot, method, state, dtype)
                row[f"{method} {dtype} here"] = largest(here - truth) / largest(truth)
        yield row


def random_on_gpu() -> Iterator[dict[str, Any]]:
    """Errors in float32 of random chains in random states, by a scan on a GPU and one after another
    on the processor, against float64.
    """
    import cupy

    for n in SAMPLED:
        row: dict[str, Any] = {"case": RANDOM, "n": n, "scan": [], "aba": []}
        for seed in range(SEEDS):
            robot, rng = lw.chain(n, "random", seed=seed), np.random.default_rng(100 + seed)
            state = [rounded(size * rng.normal(size=n)) for size in (0.3, 0.1, 0.01)]
            values = [x.astype(np.float32) for x in state]
            truth = robot.forward_dynamics(*state, method="aba")
            there = robot.forward_dynamics(*map(cupy.asarray, values), method="scan").get()
            here = robot.forward_dynamics(*values, method="aba")
            for method, found in (("scan", there), ("aba", here)):
                row[method].append(largest(found.astype(float) - truth) / largest(truth))
        yield row


def all_judged(lengths: Sequence[int]) -> None:
    """The exact results of all cases, into their files: what takes longest, on every core."""
    jobs = [(name, n) for n in sorted(lengths, reverse=True) for name in CASES if n <= max(JUDGED)]
    with multiprocessing.get_context("spawn").Pool() as pool:
        pool.map(judged, jobs, chunksize=1)


def lengths_of(case: Case) -> tuple[int, ...]:
    """Lengths that a case is measured at."""
    return (*JUDGED, *(n for n in RESIDUAL if n < max(RESIDUAL) or case.name in LONGEST))


def kept_rows() -> list[dict[str, Any]]:
    """What was measured before."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []


# -- the page -------------------------------------------------------------------------------------

INTRODUCTION = """\
# How accurate forward dynamics of long chains is

Made by `python tools/chain_accuracy.py` (`make chain-accuracy`): {cases} chains of {shortest} to
{longest:,} links, float64 and float32, every method of forward dynamics that applies. The page is
about accelerations; `docs/accuracy.md` has every function of chains of up to 100 links.

**Error**: the largest difference from the accelerations in 60 digits, over the largest of them. The
judge is a short recursion of its own (`tools/precise_chain.py`: articulated bodies with 6 × 6
matrices of 200-bit numbers), which shares neither equations nor code with the library. Links,
angles, rates and torques are numbers that float32 holds, so that every kernel and the judge are
given the same problem.

**κ u** says what error can be asked for. u is the largest relative error of rounding a number once
(1.1e-16 in float64, 6e-8 in float32). κ is how much larger than relative changes of the inputs and
of the links' constants the change of the result is; it is measured, with random changes of 1e-7. A
method that is as good as the exact result of rounded inputs has an error of about κ u. The usual
number, cond(M), foretells nothing here: it grows with the fourth power of the length (last row of
each table, of the matrix scaled to a unit diagonal), and no good method solves with M.

**Residual**, for chains that are too long for the judge: the largest difference between inverse
dynamics of the accelerations and the torques, in units of the change that rounding q, q̇ and q̈ once
makes of inverse dynamics. About 1 is as good as the number type allows. (Not the residual over the
largest torque: inverse dynamics multiplies the rounding of q̈ by M, so that this number reaches 1 at
100,000 links even when every acceleration is right to the last bit.)

| chain | what it is |
|---|---|
{table}

All links but those of the mixed chain have 0.125 kg and 0.125 m, each joint turned by a right angle
from the one before. Methods without loops are compiled link by link, and measured at {shortest}
links only, iterations up to {iterated:,} links, Schur complements, which take most memory, up to
{roomy:,}; the longest chains are falling and wavy. A cell says "fails" where the result is not
finite or an iteration does not converge (a call then answers by `aba`).

![errors against length](pictures/chain_accuracy.svg)

"""


def numbers_of(rows: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The rows of a case, by length."""
    return sorted((row for row in rows if row["case"] == name), key=lambda row: row["n"])


def short(x: float | None) -> str:
    """A number of a table; an empty cell for none."""
    return "" if x is None else "fails" if not np.isfinite(x) else f"{x:.0e}"


def labels(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Methods with their number type, float64 first."""
    found = dict.fromkeys(label for row in rows for label in row["error"])
    return sorted(found, key=lambda label: DTYPES.index(label.split()[1]))


def error_table(rows: Sequence[dict[str, Any]]) -> str:
    """Errors of a case, by methods that have loops."""
    own = [row for row in rows if row["n"] <= max(JUDGED)]
    names = labels([row for row in rows if row["n"] > WRITTEN_OUT])
    head = ["method", "bits", *(f"{row['n']:,}" for row in own)]
    body: list[list[str]] = []
    for dtype in DTYPES:
        for label in (label for label in names if label.endswith(dtype)):
            cells = (short(row["error"].get(label)) for row in own)
            body.append([f"`{label.split()[0]}`", dtype[5:], *cells])
        limit = [short(row["sensitivity"] * rounding(dtype)) for row in own]
        body.append(["**κ u**", dtype[5:], *limit])
    body.append(["cond(M)", "", *(short(row.get("condition")) for row in own)])
    return markdown(head, body)


def written_table(rows: Sequence[dict[str, Any]]) -> str:
    """Errors of the shortest chains, by methods that have no loops."""
    own = [row for row in rows if row["n"] == WRITTEN_OUT]
    looped = labels([row for row in rows if row["n"] > WRITTEN_OUT])
    names = [label for label in labels(own) if label not in looped]
    body = [
        [
            f"`{label.split()[0]}`",
            label.split()[1][5:],
            *(short(row["error"][label]) for row in own),
        ]
        for label in names
    ]
    return markdown(["method", "bits", *(row["case"] for row in own)], body)


def residual_table(rows: Sequence[dict[str, Any]]) -> str:
    """Residuals of all cases, a column for each method that long chains have."""
    own = [row for row in rows if row["n"] >= 1_000 and row["residual"]]
    long = [row for row in own if row["n"] > max(JUDGED)] or own
    names = labels(long)
    lengths = sorted({row["n"] for row in own})
    head = ["chain", "method", "bits", *(f"{n:,}" for n in lengths)]
    at = {(row["case"], row["n"]): row["residual"] for row in own}
    body = [
        [case, f"`{label.split()[0]}`", label.split()[1][5:],
         *(short(at.get((case, n), {}).get(label)) for n in lengths)]
        for case in CASES for label in names
    ]  # fmt: skip
    return markdown(head, body)


def worst(ratios: Sequence[tuple[float, dict[str, Any]]]) -> str:
    """The largest ratio, and where."""
    ratio, row = max(ratios, key=lambda x: x[0])
    where = f"{row['case']}, {row['n']:,}"
    if not np.isfinite(ratio):
        return f"fails ({where})"
    return f"{ratio:.1f} ({where})" if ratio < 1e3 else f"{ratio:.0e} ({where})"


def summary_table(rows: Sequence[dict[str, Any]]) -> str:
    """Each method beside articulated bodies, and beside what the problem allows."""
    body = []
    for label in labels(rows):
        method, dtype = label.split()
        u, aba = rounding(dtype), f"aba {dtype}"
        own = [(r["error"][label], r) for r in rows if label in r["error"] and "sensitivity" in r]
        beside = worst([(error / max(r["error"][aba], u), r) for error, r in own])
        allowed = worst([(error / (max(r["sensitivity"], 1.0) * u), r) for error, r in own])
        longest = max(r["n"] for _, r in own)
        body.append([f"`{method}`", dtype[5:], f"{longest:,}", beside, allowed])
    head = ["method", "bits", "up to", "largest error / error of `aba`", "largest error / κ u"]
    return markdown(head, body)


def page(rows: Sequence[dict[str, Any]], by_hand: str) -> str:
    """The whole text."""
    cases = "\n".join(f"| {case.name} | {case.text} |" for case in CASES.values())
    head = INTRODUCTION.format(
        cases=len(CASES), shortest=min(JUDGED), longest=max(RESIDUAL), table=cases,
        iterated=ITERATED, roomy=ROOMY,
    )  # fmt: skip
    parts = [f"### {name}\n\n{error_table(numbers_of(rows, name))}\n" for name in CASES]
    return (
        f"{head}{by_hand}\n## Beside articulated bodies, and beside κ u\n\n{BESIDE}\n"
        f"{summary_table(rows)}\n\n## Errors\n\n" + "\n".join(parts) + "\n"
        f"### Methods without loops, chains of {WRITTEN_OUT} links\n\n{written_table(rows)}\n\n"
        f"## Residuals\n\n{residual_table(rows)}\n{gpu_section()}"
    )


def gpu_section() -> str:
    """Scans on a GPU, if they were measured."""
    if not ON_GPU.exists():
        return ""
    rows = json.loads(ON_GPU.read_text(encoding="utf-8"))
    lengths = sorted({row["n"] for row in rows})
    at = {(row["case"], row["n"]): row for row in rows}
    lengths = [n for n in lengths if all((name, n) in at for name in CASES)]
    ways = [("scan, GPU", "scan {}"), ("scan, processor", "scan {} here"), ("aba", "aba {} here")]
    body = [
        [name, dtype[5:], title, *(short(at[name, n][key.format(dtype)]) for n in lengths)]
        for name in CASES for dtype in DTYPES for title, key in ways
        if all(key.format(dtype) in at[name, n] for n in lengths)
    ]  # fmt: skip
    table = markdown(["chain", "bits", "by", *(f"{n:,}" for n in lengths)], body)
    sampled = [
        [f"{n:,}", *(f"{short(pick(at[RANDOM, n][way]))}" for way in ("scan", "aba")
                     for pick in (np.median, max))]
        for n in SAMPLED if (RANDOM, n) in at
    ]  # fmt: skip
    head = ["links", "scan, median", "scan, largest", "aba, median", "aba, largest"]
    return f"\n{ON_A_GPU}\n{table}\n\n{OF_SEEDS}\n{markdown(head, sampled)}\n"


ON_A_GPU = """\
## Scans on a GPU

Where a chain is cut depends on the device, so scans of a GPU and of a processor differ by rounding.
Differences from `aba` in float64, of scans on an H200 and on its host's processor, and of `aba` in
float32:
"""

OF_SEEDS = f"""\
Random chains (`lw.chain(n, "random", seed=k)`, k from 0 to {SEEDS - 1}) in states of as many seeds
(normal, 0.3 rad, 0.1 rad/s, 0.01 N m), float32: errors of the scan on an H200 and of `aba` on its
host, against `aba` in float64, over all seeds:
"""


BESIDE = """\
The largest ratio over all chains and lengths, and where. An error of `aba` smaller than u counts as
u, a κ smaller than 1 as 1.
"""


def kept(text: str) -> str:
    """What the page says by hand: between its introduction and its tables."""
    start, end = text.find("## What to take away"), text.find("## Beside articulated")
    return text[start:end].rstrip() + "\n" if 0 <= start < end else "## What to take away\n"


def draw(rows: Sequence[dict[str, Any]]) -> None:
    """Errors against length, a panel for each kind of chain; methods that long chains have."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "linkwise", "svg.fonttype": "none", "font.size": 9})
    figure, grid = plt.subplots(2, 4, figsize=(11, 5.6), sharex=True, sharey=True)
    names = labels([row for row in rows if row["n"] > WRITTEN_OUT])
    known = list(dict.fromkeys(label.split()[0] for label in names))
    panels = grid.ravel()
    for axes, name in zip(panels, CASES, strict=False):
        own = [row for row in numbers_of(rows, name) if row["n"] <= max(JUDGED)]
        for dtype, style in zip(DTYPES, ("o-", "s--"), strict=True):
            limit = [row["sensitivity"] * rounding(dtype) for row in own]
            axes.fill_between([row["n"] for row in own], 1e-18, limit, color="0.5", alpha=0.15)
            for method in known:
                xy = [(row["n"], row["error"].get(f"{method} {dtype}")) for row in own]
                xy = [(n, max(e, 2e-17)) for n, e in xy if e is not None and np.isfinite(e)]
                colour = f"C{known.index(method)}"
                axes.plot(*zip(*xy, strict=True), style, color=colour, ms=3.5, lw=1.2)
        axes.set(xscale="log", yscale="log", ylim=(2e-17, 30.0), title=name)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    _legend(panels[-1], known)
    for axes in grid[1]:
        axes.set_xlabel("links")
    panels[3].tick_params(labelbottom=True)
    for axes in grid[:, 0]:
        axes.set_ylabel("relative error")
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


def _legend(axes: Any, known: Sequence[str]) -> None:
    """The last panel tells what is what."""
    axes.axis("off")
    marks = [axes.plot([], [], "-", color=f"C{k}")[0] for k in range(len(known))]
    marks += [axes.plot([], [], style, color="0.3", ms=3.5)[0] for style in ("o-", "s--")]
    marks.append(axes.fill_between([], [], color="0.5", alpha=0.3))
    axes.legend(
        marks, [*known, *DTYPES, "up to κ u: what rounded\ninputs alone make"], loc="center"
    )


def main(words: Sequence[str]) -> None:
    """Measure, and write or print."""
    if words[:1] == ["gpu"]:
        file, rows = Path(words[1]) if words[1:] else ON_GPU, []
        for row in chain(random_on_gpu(), on_gpu()):
            rows.append(row)
            file.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
        return
    if words and words[0] != "page":
        all_judged(JUDGED[:4])
        for case in CASES.values():
            for row in measured(case, JUDGED[:4], words):
                print(row["case"], row["n"], {k: short(x) for k, x in row["error"].items()})
        return
    if not words:
        all_judged(JUDGED)
        for case in CASES.values():
            rows = [row for row in kept_rows() if row["case"] != case.name]
            rows += measured(case, lengths_of(case), ())
            RESULTS.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
    by_hand = kept(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else kept("")
    PAGE.write_text(page(kept_rows(), by_hand), encoding="utf-8")
    draw(kept_rows())


if __name__ == "__main__":
    main(sys.argv[1:])
