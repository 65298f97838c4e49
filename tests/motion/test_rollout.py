"""The program of a simulation as other backends see it, and loops told to take fewer steps."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bits import assert_same

import linkwise as lw
from linkwise.backends.base import BATCH
from linkwise.backends.cstyle.render import render_c, word
from linkwise.backends.llvm.backend import Llvm
from linkwise.backends.reference import interpret
from linkwise.engine.tasks import Key
from linkwise.motion.rollout import Rollout, trace_rollout
from linkwise.trace.expr import Expr, Graph
from linkwise.trace.program import For, Port, Program, Slot
from linkwise.trace.rolled import Step, loop, program
from linkwise.trace.verify import IllegalProgram, verify


def doubling() -> Program:
    """``x 2^n``, n an input, of at most nine steps; every second value is written."""
    graph = Graph()

    def body(step: Step, state: list[Expr]) -> list[Expr]:
        step.write("out", state[0], 0, 1, every=2)
        return [state[0] + state[0]]

    end = loop(graph, 9, [graph.input("x", 0)], body, limit=graph.input("n", 0) * 1.0)
    ports = (Port("x", 1), Port("n", 1))
    return verify(program(graph, "doubling", ports, (), [Slot("out", (4,))], end))


@pytest.mark.parametrize("steps", [1, 2, 5, 9, 30])
def test_a_loop_takes_as_many_steps_as_it_is_told(steps: int) -> None:
    made = doubling()
    kernel = Llvm().compile(made, "float64", BATCH)
    x, n = np.arange(1.0, 12.0)[:, None], np.full((11, 1), float(steps))
    out, end = np.empty((11, 4)), np.empty((11, 1))
    kernel([x, n], [out, end], 1)
    taken = min(steps, 9)
    expected = x * 2.0 ** np.arange(1, taken, 2)
    read = interpret(made, {"x": x, "n": n})
    for states, last in ((out, end), (read["out"], read["result"])):
        np.testing.assert_array_equal(states[:, : taken // 2], expected)
        np.testing.assert_array_equal(last, x * 2.0**taken)


def test_a_limit_must_be_known_before_its_loop() -> None:
    made = doubling()
    regions = list(made.regions)
    k = next(k for k, region in enumerate(regions) if isinstance(region, For))
    late = regions[k].cases[0].nexts[0]  # type: ignore[union-attr]
    regions[k] = replace(regions[k], limit=late)  # type: ignore[call-arg]
    with pytest.raises(IllegalProgram, match="the limit of a loop is not known before it"):
        verify(replace(made, regions=tuple(regions)))


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform == "win32", reason="no C compiler")
def test_a_simulation_in_c(tmp_path: Path, puma: lw.Robot) -> None:
    """The very program, printed as C, takes the steps that `simulate` takes, to the bit."""
    law = lw.control.pd(puma, 50.0, 5.0)
    task = puma._calls.tasks.task(Key("forward_dynamics"))
    plan = Rollout(task, "rk4", law.forms, (False,) * 4, hold=True, every=5)
    made = verify(trace_rollout(plan, puma.tree))
    (tmp_path / "k.c").write_text(render_c(made, "puma560"))
    options = ["-O1", "-shared", "-fPIC", "-ffp-contract=off", "-march=native"]
    subprocess.run(["cc", *options, "-o", "k.so", "k.c", "-lm"], cwd=tmp_path, check=True)
    q, qd = puma.random_q(seed=0), np.ones(6)
    found = lw.simulate(puma, q, qd, law, 0.02, every=5)
    given = {port.name: np.zeros(port.size) for port in made.inputs}
    given |= {"q": q, "qd": qd, "dt": np.full(1, 1e-3), "steps": np.full(1, 20.0)}
    given |= {"law[0].kp": np.full(6, 50.0), "law[0].kd": np.full(6, 5.0)}
    out = {o.name: np.empty(o.slot.size) for o in made.outputs}
    arrays = [given[port.name] for port in made.inputs] + list(out.values())
    library = ctypes.CDLL(str(tmp_path / "k.so"))
    library[word(made.name)](*(ctypes.c_void_p(a.ctypes.data) for a in arrays))
    expected = np.concatenate([found.q, found.qd], -1)
    assert_same(out["samples"].reshape(-1, 12)[:4], expected[1:])
    assert out["health"].tolist() == [20.0, 0.0, 0.0]
