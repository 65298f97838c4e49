"""The guard as a pass: legal programs, the right rows refused, not a bit of the others changed."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.backends.reference import interpret
from linkwise.trace.assemble import needed
from linkwise.trace.expr import Graph
from linkwise.trace.guard import guard
from linkwise.trace.program import BYTE, Block, Output, Port, Program, Repeat
from linkwise.trace.tracer import Task, trace
from linkwise.trace.verify import verify

ALL = [a for methods in FUNCTIONS.values() for a in methods.values()]


@pytest.mark.parametrize("status", [False, True])
@pytest.mark.parametrize("algorithm", ALL, ids=lambda a: f"{a.function}-{a.method}")
def test_a_guarded_program_is_legal_and_answers_alike(algorithm: Algorithm, status: bool) -> None:
    robot = lw.load("iiwa14")
    frame = robot.tree.frames["link6"] if algorithm.takes_frame else None
    program = trace(Task(algorithm, frame, status=status and not algorithm.iterates), robot.tree)
    guarded = verify(guard(program))
    assert not guarded.pivots and guarded.signature == program.signature
    rng = np.random.default_rng(3)
    inputs = {p.name: rng.uniform(0.1, 1.0, (6, p.size)) for p in program.inputs}
    plain = interpret(program, inputs)
    for name, value in interpret(guarded, inputs).items():
        np.testing.assert_array_equal(value, plain[name])
    for k, port in enumerate(program.inputs[:4]):
        inputs[port.name][k, -1] = (np.nan, np.inf, -np.inf, np.nan)[k]
    for name, value in interpret(guarded, inputs).items():
        rows, before = value.reshape(6, -1), plain[name].reshape(6, -1)
        broken = np.arange(6) < min(4, len(program.inputs))
        np.testing.assert_array_equal(rows[~broken], before[~broken])
        if value.dtype != np.uint8:
            assert np.isnan(rows[broken]).all()


def by_hand(*, status: bool = False, pivot: bool = False) -> Program:
    """A result that does not depend on its second input, and one that is a constant."""
    graph = Graph()
    x = graph.input("x", 0)
    values = [x * x, graph.const(2.0)]
    pivots = (x + 1.0,) if pivot else ()
    outputs = [Output("result", (2,), tuple(values))]
    if status:
        values.append(graph.node("flag", x))
        outputs.append(Output("status", (), (values[-1],), BYTE))
    block = Block(needed([*values, *pivots]))
    return verify(Program("hand", (Port("x", 2),), (block,), tuple(outputs), pivots))


def rows(program: Program, *states: tuple[float, float]) -> list[bool]:
    """For each state, whether it has an answer: all of its numbers or none."""
    found = interpret(verify(guard(program)), {"x": np.array(states)})["result"]
    finite = np.isfinite(found)
    assert (finite.all(axis=1) == finite.any(axis=1)).all()
    return finite.all(axis=1).tolist()  # type: ignore[no-any-return]


def test_inputs_that_nothing_uses_count() -> None:
    assert rows(by_hand(), (1.0, 2.0), (1.0, np.nan), (1.0, -np.inf)) == [True, False, False]


def test_pivots_must_be_positive() -> None:
    states = ((1.0, 2.0), (-1.0, 2.0), (-2.0, 2.0), (np.nan, 1.0))
    assert rows(by_hand(pivot=True), *states) == [True, False, False, False]


def test_a_pivot_that_is_never_positive_spoils_every_row() -> None:
    graph = Graph()
    x, never = graph.input("x", 0), graph.const(float("nan"))
    program = Program(
        "never", (Port("x", 2),), (Block((x, never)),), (Output("result", (1,), (x,)),), (never,)
    )
    assert rows(program, (1.0, 2.0), (0.0, 0.0)) == [False, False]


def test_with_a_status_no_finite_input_overflows_the_guard() -> None:
    huge = (1e150, 1.7e308), (1e308, 1e308)
    assert rows(by_hand(status=True), huge[0]) == [True]
    found = interpret(guard(by_hand(status=True)), {"x": np.array([(-1.0, np.nan)])})
    assert np.isnan(found["result"]).all() and found["status"] == [0], "a byte is never NaN"


def test_the_sum_is_taken_where_inputs_are_first_used() -> None:
    """One value alive for the guard, not every input to the end."""
    robot = lw.load("iiwa14")
    program = guard(trace(Task(FUNCTIONS["inverse_dynamics"]["rnea"]), robot.tree))
    (block,) = program.regions
    assert isinstance(block, Block)
    place = {node.id: k for k, node in enumerate(block.nodes)}
    first = {}
    for k, node in enumerate(block.nodes):
        for arg in node.args:
            if arg.op == "input":
                first.setdefault(arg.id, k)
    sums = [n for n in block.nodes if n.op == "add" and n.args[1].op == "input"]
    assert len(sums) == 20
    assert all(place[n.id] == first[n.args[1].id] for n in sums[1:])
    sine = min(k for k, n in enumerate(block.nodes) if n.op in ("sin", "cos"))
    assert sum(place[n.id] < sine for n in sums) >= 5, "angles first"


def test_a_loop_keeps_its_body() -> None:
    robot = lw.load("puma560")
    program = trace(Task(FUNCTIONS["forward_dynamics"]["pcg"]), robot.tree)
    loops = [[r for r in p.regions if isinstance(r, Repeat)] for p in (program, guard(program))]
    assert loops[0] == loops[1] and len(loops[0]) == 1
