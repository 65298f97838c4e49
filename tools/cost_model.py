"""What each method costs, and a formula for it: src/linkwise/engine/costs.py.

    python tools/cost_model.py measure   time every method on many robots: costs.json
    python tools/cost_model.py fit       costs.json -> engine/costs.py, docs/choosing.md
    python tools/cost_model.py roofline  benchmarks/results/h200.json -> docs/pictures/roofline.svg

`method="auto"` takes the method whose formula gives the least time. The formula is linear in the
features of `linkwise.engine.auto`; its numbers come from here. The page says, for robots used
in the fit and for robots kept out of it, which method was fastest, which one `auto` takes, and what
that costs. With ``--device cuda`` all of that is of the first GPU, and so are the parts of the two
files that are written; the CPU's stay.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from pages import DOCS, example, markdown

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.backends.base import BATCH
from linkwise.backends.choice import gpu
from linkwise.backends.llvm.backend import Llvm
from linkwise.bench.gpu import Clock
from linkwise.bench.timing import one_core, processor
from linkwise.engine.auto import CANDIDATES, features
from linkwise.engine.costs import COSTS, MACHINES
from linkwise.study.generic import generic_chain
from linkwise.trace.guard import guard
from linkwise.trace.schedule import together
from linkwise.trace.tracer import Task, trace

Table = dict[str, dict[str, dict[str, list[float]]]]  # dtype, function, method; one per feature
TABLE, PAGE = DOCS.parent / "src" / "linkwise" / "engine" / "costs.py", DOCS / "choosing.md"
DTYPES = ("float64", "float32")
MODES = (*DTYPES, "one state")
RESULTS = DOCS.parent / "benchmarks" / "results" / "h200.json"  # of linkwise bench --device cuda
STATES = 512
ON_A_GPU = "## On a GPU\n"  # the second part of the page
MANY = 2**32  # bytes of results of a batch on a GPU, at most
MOST = 10_000  # nodes of a program that a GPU is given: larger ones compile for a minute
SECONDS = 0.01  # of one sample
STEPS = 1500  # of the descent to the numbers for a GPU
FIT = [
    *(("chain", n) for n in (2, 3, 5, 7, 10, 13, 16, 20, 26, 36)),
    *(("mixed", n) for n in (6, 14, 28)),
]
KEPT_OUT = [*(("chain", n) for n in (4, 6, 8, 12, 18, 30)), ("mixed", 9), ("mixed", 20)]
REAL_FIT = (
    "ur_description/urdf/ur5_robot.urdf", "panda_description/urdf/panda.urdf",
    "solo_description/robots/solo12.urdf", "anymal_b_simple_description/robots/anymal.urdf",
    "talos_data/robots/talos_reduced.urdf", "icub_description/robots/icub_reduced.urdf",
    "romeo_description/urdf/romeo_small.urdf",
    "allegro_hand_description/urdf/allegro_right_hand.urdf",
)  # fmt: skip
REAL_KEPT_OUT = (
    "xarm_description/urdf/xarm7.urdf", "ur_description/urdf/ur10_robot.urdf",
    "go2_description/urdf/go2.urdf", "tiago_description/robots/tiago.urdf",
    "talos_data/robots/talos_full_v2.urdf", "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "bolt_description/robots/bolt.urdf", "hyq_description/robots/hyq_no_sensors.urdf",
)  # fmt: skip


# -- robots ---------------------------------------------------------------------------------------


def robots(quick: bool) -> Iterator[tuple[str, bool, lw.Robot]]:
    """Name, whether it is kept out of the fit, and the robot."""
    for chosen, kept_out in ((FIT, False), (KEPT_OUT, True)):
        for kind, n in chosen[:: 3 if quick else 1]:
            made = generic_chain(n, kind="mixed" if kind == "mixed" else "revolute")
            yield f"{kind} {n}", kept_out, lw.Robot(made)
    for paths, kept_out in ((REAL_FIT, False), (REAL_KEPT_OUT, True)):
        for path in paths[:: 4 if quick else 1]:
            found = example(path, strict=False, mimic="free")
            yield Path(path).stem, kept_out, found
            if not kept_out:
                yield f"{Path(path).stem}, free", kept_out, found.with_free_base()


# -- measuring ------------------------------------------------------------------------------------


def tasks(robot: lw.Robot) -> Iterator[tuple[str, dict[str, Task]]]:
    """Functions with several methods, and those methods that this robot has."""
    frame = robot.tree.frames[robot.frame_names[-1]]
    for function, methods in CANDIDATES.items():
        algorithms = [FUNCTIONS[function][m] for m in methods]
        if algorithms[0].takes_frame and len(robot.tree.path(frame.link)) < 6:
            continue
        at = frame if algorithms[0].takes_frame else None
        yield function, {a.method: Task(a, at) for a in algorithms if a.exists_for(robot.tree)}


def measure(quick: bool) -> list[dict[str, Any]]:
    """Nanoseconds per state of every candidate on every robot, in every mode of the CPU."""
    rows = []
    for name, kept_out, robot in robots(quick):
        for function, able in tasks(robot):
            for mode in MODES:
                times = _times(robot, able, mode)
                rows.append(_row(name, kept_out, robot, function, mode, able, times))
    return rows


def _row(
    name: str,
    kept_out: bool,
    robot: lw.Robot,
    function: str,
    mode: str,
    able: dict[str, Task],
    times: dict[str, float],
) -> dict[str, Any]:
    told = "  ".join(f"{m} {t:,.3g}" for m, t in times.items())
    print(f"{name:24} {function:28} {mode:10} {told}", flush=True)
    at = next(iter(able.values())).frame
    return {
        "robot": name, "kept_out": kept_out, "nv": robot.nv, "function": function,
        "mode": mode, "features": features(robot.tree, at), "times": times,
    }  # fmt: skip


def measure_gpu(quick: bool) -> list[dict[str, Any]]:
    """The same on a GPU, in both number types: compiled by all cores, then timed one by one."""
    clock, rows = Clock(), []
    known = [x for x in robots(quick) if x[2].nv <= 20 or x[2].tree.dof_parent.count(-1) > 1]
    work = [(x, f, able) for x in known for f, able in tasks(x[2])]
    work.sort(key=lambda x: -x[0][2].nv)
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        jobs = [
            (x, f, able, {m: pool.submit(_compiled, x[2], f, m) for m in able})
            for x, f, able in work
        ]
        for (name, kept_out, robot), function, able, made in jobs:
            here = {m: task for m, task in able.items() if made[m].result()}
            for mode in DTYPES if next(iter(able)) in here else ():
                times = {m: _gpu_time(clock, robot, task, mode) for m, task in here.items()}
                rows.append(_row(name, kept_out, robot, function, mode, able, times))
    return rows


def _compiled(robot: lw.Robot, function: str, method: str) -> bool:
    """Put the kernels of a method into the cache, unless its program is too large."""
    kernels, task = robot._calls.kernels, dict(tasks(robot))[function][method]
    small = sum(1 for _ in kernels.program(kernels.equations(task)).nodes()) <= MOST
    for dtype in DTYPES if small else ():
        kernels.kernel(kernels.equations(task), dtype, BATCH, gpu(0))
    return small


def _gpu_time(clock: Clock, robot: lw.Robot, task: Task, dtype: str) -> float:
    """Nanoseconds of a state among many."""
    xp, algorithm = clock.cupy, task.algorithm
    sizes = algorithm.input_sizes(robot.tree)
    numbers = sum(n for _, n in sizes) + int(np.prod(algorithm.output_shape(robot.tree)))
    count = min(2**22, 2 ** int(np.log2(MANY / numbers / np.dtype(dtype).itemsize)))
    few = _inputs(robot, sizes, (1024,), dtype)
    arrays = [xp.tile(xp.asarray(x), (count // 1024, 1)) for x in few]
    frame = robot.frame_names[-1] if algorithm.takes_frame else None
    call = partial(robot.compute, algorithm.function, *arrays, method=algorithm.method, frame=frame)
    return clock.device_seconds(call) / count * 1e9


def _inputs(
    robot: lw.Robot, sizes: Sequence[tuple[str, int]], many: tuple[int, ...], dtype: str
) -> list[Any]:
    rng = np.random.default_rng(0)
    inputs = [
        robot.random_q(rng, size=many) if name == "q" else rng.normal(size=(*many, size))
        for name, size in sizes
    ]
    return [np.ascontiguousarray(x, dtype) for x in inputs]


def _times(robot: lw.Robot, tasks: dict[str, Task], mode: str) -> dict[str, float]:
    """Each method's least time, in turns."""
    calls = {m: _call(robot, task, mode) for m, task in tasks.items()}
    best = dict.fromkeys(calls, np.inf)
    for _ in range(7):
        for m, (call, states) in calls.items():
            best[m] = min(best[m], _sample(call) / states * 1e9)
    return {m: float(t) for m, t in best.items()}


def _sample(call: Any) -> float:
    """Seconds of one call, over as many as fill a sample."""
    begin, calls = time.process_time(), 0
    while time.process_time() - begin < SECONDS:
        for _ in range(8):
            call()
        calls += 8
    return (time.process_time() - begin) / calls


def _call(robot: lw.Robot, task: Task, mode: str) -> tuple[Any, int]:
    """Something to time, and how many states it works through."""
    many = () if mode == "one state" else (STATES,)
    dtype = "float64" if mode == "one state" else mode
    inputs = _inputs(robot, task.algorithm.input_sizes(robot.tree), many, dtype)
    if mode == "one state":
        algorithm = task.algorithm
        options = {"frame": robot.frame_names[-1]} if algorithm.takes_frame else {}
        call = partial(getattr(robot, algorithm.function), *inputs, **options)
        return partial(call, method=algorithm.method), 1
    program = guard(together(trace(task, robot.tree)))
    kernel = Llvm().compile(program, dtype, BATCH)
    out = [np.empty((STATES, slot.size), dtype) for slot in program.signature.outputs]
    return (lambda: kernel(inputs, out, 1)), STATES


# -- fitting --------------------------------------------------------------------------------------


def fit(rows: Sequence[dict[str, Any]]) -> Table:
    """Numbers of the formula for a CPU, from the robots that are not kept out."""
    return {
        mode: {
            function: {
                method: _extra([r for r in rows if _fits(r, mode, function, method)], first, method)
                for method in others
            }
            for function, (first, *others) in CANDIDATES.items()
        }
        for mode in DTYPES
    }


def _fits(row: dict[str, Any], mode: str, function: str, method: str) -> bool:
    """Whether a row takes part in a fit."""
    same = (row["mode"], row["function"]) == (mode, function)
    return same and not row["kept_out"] and method in row["times"]


def _extra(rows: Sequence[dict[str, Any]], first: str, method: str) -> list[float]:
    """Least squares of the difference to the first method, beside the faster of the two."""
    X = np.array([row["features"] for row in rows], float)
    a, b = (np.array([row["times"][m] for row in rows]) for m in (first, method))
    least = np.minimum(a, b)
    found, *_ = np.linalg.lstsq(X / least[:, None], (b - a) / least, rcond=None)
    return [round(float(x), 3) for x in found]


def fit_gpu(rows: Sequence[dict[str, Any]]) -> Table:
    """Numbers of the formula for a GPU, from all robots."""
    return {
        mode: {
            function: _least_loss(
                [r for r in rows if (r["mode"], r["function"]) == (mode, function)], methods
            )
            for function, methods in CANDIDATES.items()
        }
        for mode in DTYPES
    }


def _least_loss(rows: Sequence[dict[str, Any]], methods: Sequence[str]) -> dict[str, list[float]]:
    """Scores by which the least loss is expected, were each method taken with exp(-score).

    Times on a GPU jump where registers run out, by factors that no sum over links follows. What a
    choice needs is which method is faster, and a wrong one matters as much as it costs: the loss is
    the logarithm of how much longer a method takes than the fastest, least by gradient descent.
    """
    X = np.array([row["features"] for row in rows], float)
    size = np.maximum(X.max(axis=0), 1.0)
    X /= size
    times = np.array([[row["times"].get(m, np.inf) for m in methods] for row in rows])
    loss = np.minimum(np.log(times / times.min(axis=1, keepdims=True)), 10.0)
    found = np.zeros((X.shape[1], len(methods) - 1))
    mean, square = np.zeros_like(found), np.zeros_like(found)  # of gradients, recent ones first
    for k in range(1, STEPS + 1):
        score = np.hstack((np.zeros((len(X), 1)), X @ found))
        p = np.exp(score.min(axis=1, keepdims=True) - score)
        p /= p.sum(axis=1, keepdims=True)
        slope = p * ((p * loss).sum(axis=1, keepdims=True) - loss)
        gradient = X.T @ slope[:, 1:] / len(X) + 1e-5 * found
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        found -= 0.3 * mean / (1 - 0.9**k) / (np.sqrt(square / (1 - 0.99**k)) + 1e-9)
    numbers = (found / size[:, None]).T
    return {m: [round(float(x), 4) for x in n] for m, n in zip(methods[1:], numbers, strict=True)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or fit and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["measure", "fit", "roofline"])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--quick", action="store_true", help="few robots")
    parser.add_argument("--json", type=Path, default=Path("costs.json"))
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", lw.RobotFileWarning)  # what is wrong with the files is known
    if given.what == "roofline":
        roofline(json.loads(RESULTS.read_text()))
        return
    if given.what == "measure":
        given.json.write_text(json.dumps(_measured(given.device, given.quick)))
        return
    saved = json.loads(given.json.read_text())
    rows, machine = saved["rows"], saved["processor"]
    table = fit(rows) if given.device == "cpu" else fit_gpu(rows)
    machines, costs = MACHINES | {given.device: machine}, COSTS | _flat(given.device, table)
    TABLE.write_text(module(machines, costs), encoding="utf-8")
    parts = PAGE.read_text(encoding="utf-8").partition(ON_A_GPU)
    if given.device == "cpu":
        text = page(rows, table, machine) + "".join(parts[1:])
    else:
        text = parts[0] + ON_A_GPU + gpu_page(rows, table, machine)
    PAGE.write_text(text, encoding="utf-8")


def _measured(device: str, quick: bool) -> dict[str, Any]:
    if device == "cuda":
        return {"processor": Clock().name, "rows": measure_gpu(quick)}
    with one_core():
        return {"processor": processor(), "rows": measure(quick)}


# -- what is written ------------------------------------------------------------------------------


def module(machines: dict[str, str], costs: dict[tuple[str, ...], Sequence[float]]) -> str:
    """src/linkwise/engine/costs.py."""
    order = {dtype: k for k, dtype in enumerate(DTYPES)}
    rows = sorted(costs.items(), key=lambda row: (row[0][0], order[row[0][1]]))
    lines = [
        '"""What a state costs beyond the first method, in nanoseconds: numbers of auto.py.',
        "",
        "Made by tools/cost_model.py.",
        '"""',
        "",
        "# kind of device -> what was measured on",
        "MACHINES = {",
        *(f'    "{device}": "{machine}",' for device, machine in machines.items()),
        "}",
        "",
        "# kind of device, dtype, function, method, and a number per feature",
        '_TABLE = """',
        *(" ".join((*key, *map(str, numbers))) for key, numbers in rows),
        '"""',
        "",
        "COSTS: dict[tuple[str, ...], tuple[float, ...]] = {",
        "    tuple(words[:4]): tuple(map(float, words[4:]))",
        "    for words in map(str.split, _TABLE.strip().splitlines())",
        "}",
    ]
    return "\n".join([*lines, ""])


def _flat(device: str, table: Any) -> dict[tuple[str, ...], Sequence[float]]:
    """Numbers of one kind of device, by device, dtype, function and method."""
    return {
        (device, dtype, function, method): numbers
        for dtype, functions in table.items()
        for function, methods in functions.items()
        for method, numbers in methods.items()
    }


def _choice(row: dict[str, Any], table: Any) -> tuple[str, str, float]:
    """The fastest method, the chosen one, and how much slower that is."""
    numbers = table["float64" if row["mode"] == "one state" else row["mode"]][row["function"]]
    first = CANDIDATES[row["function"]][0]
    cost = {
        m: 0.0 if m == first else float(np.dot(numbers[m], row["features"])) for m in row["times"]
    }
    chosen = min(cost, key=lambda m: cost[m])
    best = min(row["times"], key=lambda m: row["times"][m])
    return best, chosen, row["times"][chosen] / row["times"][best] - 1.0


def _loss(rows: Sequence[dict[str, Any]], table: Table) -> str:
    """Mean and worst loss by mode, on robots in the fit and out of it."""
    lost = [(r, _choice(r, table)[2]) for r in rows]
    inside = [x for x in lost if not x[0]["kept_out"]]
    outside = [x for x in lost if x[0]["kept_out"]]
    return _losses(MODES, {"fitted": inside, "kept out": outside})


def _gpu_loss(rows: Sequence[dict[str, Any]], table: Table) -> str:
    """Mean and worst loss, and that of a robot by numbers which all others gave."""
    inside = [(r, _choice(r, table)[2]) for r in rows]
    outside = []
    for robot in dict.fromkeys(r["robot"] for r in rows):
        without = fit_gpu([r for r in rows if r["robot"] != robot])
        outside += [(r, _choice(r, without)[2]) for r in rows if r["robot"] == robot]
    return _losses(DTYPES, {"fitted": inside, "by the others": outside})


def _losses(modes: Sequence[str], kinds: dict[str, list[tuple[dict[str, Any], float]]]) -> str:
    body = []
    for function in CANDIDATES:
        for mode in modes:
            cells = [f"`{function}`", mode]
            for lost in kinds.values():
                own = [
                    (x, r["robot"])
                    for r, x in lost
                    if (r["function"], r["mode"]) == (function, mode)
                ]
                worst, name = max(own)
                mean = np.mean([x for x, _ in own])
                cells += [f"{mean:.1%}", f"{worst:.0%} ({name})" if worst > 0.005 else "0%"]
            body.append(cells)
    head = [f"{what}, {kind}" for kind in kinds for what in ("mean", "worst")]
    return markdown(["function", "kernel", *head], body)


def _times_table(
    rows: Sequence[dict[str, Any]], table: Any, function: str, mode: str, scale: float = 1.0
) -> str:
    """Times of one function, of a batch in one number type."""
    chosen = [r for r in rows if r["function"] == function and r["mode"] == mode]
    methods = CANDIDATES[function]
    body = []
    for row in sorted(chosen, key=lambda r: (r["kept_out"], r["nv"])):
        best, auto, loss = _choice(row, table)
        known = {m: f"{t * scale:,.0f}" for m, t in row["times"].items()}
        mark = auto if auto == best else f"{auto} (+{loss:.0%})"
        out = "kept out" if row["kept_out"] else ""
        body.append(
            [row["robot"], str(row["nv"]), *(known.get(m, "-") for m in methods), mark, out]
        )
    return markdown(["robot", "n", *methods, "auto", ""], body)


def page(rows: Sequence[dict[str, Any]], table: Any, machine: str) -> str:
    """docs/choosing.md."""
    parts = [f"## `{f}`\n\n{_times_table(rows, table, f, 'float64')}\n" for f in CANDIDATES]
    one = [r for r in rows if r["mode"] == "one state"]
    loss = max((_choice(r, table)[2], r["robot"], r["function"]) for r in one)
    return f"""# Which method `auto` takes

Made by `tools/cost_model.py` on {machine}, one core. Every method worth having was timed on chains
without accidental zeros ("mixed": every third joint slides) and on robots of example-robot-data,
some also on a free base; a formula for how much longer it takes than the first method listed for
that function (`engine/auto.py`) was fitted to some of them and tried on the others. `auto` takes
the method whose formula gives the least. How much slower that is than the fastest of the measured
ones:

{_loss(rows, table)}

"one state" are single calls from Python, cost of the call included. They are given the method that
batches are given, so that a state has the same bits alone and in any row; at worst that costs
{loss[0]:.0%} ({loss[2]}, {loss[1]}). The size of a batch does not matter beyond that: its kernel is
the same, and so is the order of the methods. `linkwise bench ROBOT --methods` times all methods of
one robot, those for study too.

Large robots are compiled as loops over their links, where written out their code would take more
than about two seconds to compile: beyond 44 links, for matrices over the joints beyond 40, or 36 in
one chain (30 and 25 for M⁻¹, 21 in one chain for the Coriolis matrix). `auto` then takes a method
that can be loops. `robot.with_codegen("rolled")` and `with_codegen("unrolled")` force either kind
of code; `docs/long_chains.md` has times of both.

Below, nanoseconds per state, float64, {STATES} states; (+x %) where `auto` does not take the
fastest.

{chr(10).join(parts)}"""


def gpu_page(rows: Sequence[dict[str, Any]], table: Table, machine: str) -> str:
    """The second part of docs/choosing.md."""
    parts = [
        f"## `{f}` on a GPU, {dtype}\n\n{_times_table(rows, table, f, dtype, 1e3)}\n"
        for f in CANDIDATES
        for dtype in DTYPES
    ]
    return f"""
The same on one {machine} (`tools/cost_model.py measure --device cuda`): what is short there is
registers, so another method may be the fastest, and `auto` has numbers of its own. It depends on
the robot, the function, the number type and on whether the arrays are on a GPU, never on how many
states there are; `robot.method_for(function, "cuda")` names its choice. Where a method is named,
states have the same bits on both.

Times jump where registers run out, which no sum over the links foretells; so the numbers were
chosen for the least loss by a wrong choice, on all robots ("fitted"), and each robot was also
judged by numbers that came from the others:

{_gpu_loss(rows, table)}

Below, picoseconds per state, up to 2^22 states; a dash where a robot has no such method or its
program has more than {MOST:,} operations.

{chr(10).join(parts)}"""


MARKS = {"forward_dynamics": "o", "inverse_dynamics": "s", "mass_matrix": "^"}


def roofline(results: dict[str, Any]) -> None:
    """docs/pictures/roofline.svg: how near functions are to what the GPU's memory and units allow.

    Shapes and filled marks tell functions and number types apart, without colours too.
    """
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "linkwise", "svg.fonttype": "none", "font.size": 9})
    figure, axes = plt.subplots(figsize=(7.2, 4.6))
    first = next(iter(results.values()))
    reach = np.geomspace(0.3, 40, 200)
    for (dtype, peak), line in zip(first["starts"].items(), ("-", "--"), strict=True):
        roof = np.minimum(reach * first["copied"], peak) / 1e12
        axes.plot(reach, roof, line, color="black", linewidth=1)
        axes.text(39, peak / 1e12 * 1.05, f"{dtype} units", ha="right")
    axes.text(0.36, 1.9, f"memory, {first['copied'] / 1e12:.2f} TB/s", rotation=35)
    for name, facts in results.items():
        for row in facts["rows"] if not name.startswith("panda") else ():  # as near as its like
            x = row["operations"] / row["bytes"]
            y = row["operations"] / row["device_ns"] / 1e3
            narrow = row["dtype"] == "float32"
            face, edge = ("#0072B2", "#0072B2") if narrow else ("white", "#D55E00")
            axes.plot(x, y, MARKS[row["function"]], color=edge, markerfacecolor=face, markersize=6)
            label = name.split(".")[0].split("_")[0] if row["function"] != "mass_matrix" else ""
            axes.annotate(label, (x, y), (4, -9), textcoords="offset points", fontsize=7)
    for function, mark in MARKS.items():
        axes.plot([], [], mark, color="black", label=function.replace("_", " "))
    axes.plot([], [], "D", color="#0072B2", label="float32: filled")
    axes.plot([], [], "D", color="#D55E00", markerfacecolor="white", label="float64: hollow")
    axes.set(xscale="log", yscale="log", xlim=(0.3, 40), ylim=(0.8, 60),
             xlabel="operations per byte of arguments and results",
             ylabel="10¹² operations a second")  # fmt: skip
    axes.legend(loc="lower right", frameon=False)
    figure.tight_layout()
    figure.savefig(DOCS / "pictures" / "roofline.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
