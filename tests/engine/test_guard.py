"""The guard as a pass: legal programs, the right rows refused, not a bit of the others changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.backends.reference import interpret
from linkwise.spatial import sqrt
from linkwise.spatial.scalar import reciprocal
from linkwise.study.generic import generic_chain
from linkwise.trace import rolled
from linkwise.trace.assemble import needed
from linkwise.trace.expr import At, Expr, Graph, Write
from linkwise.trace.guard import guard
from linkwise.trace.program import (
    FLAGS,
    Array,
    Block,
    Carry,
    Case,
    For,
    Output,
    Port,
    Program,
    Repeat,
    Slot,
)
from linkwise.trace.tracer import Task, trace
from linkwise.trace.verify import verify

ALL = [a for methods in FUNCTIONS.values() for a in methods.values()]


@pytest.mark.parametrize("status", [False, True])
@pytest.mark.parametrize("algorithm", ALL, ids=lambda a: f"{a.function}-{a.method}")
def test_a_guarded_program_is_legal_and_answers_alike(algorithm: Algorithm, status: bool) -> None:
    six = algorithm.function == "operational_inertia"  # degrees of freedom that it asks for
    robot = lw.load("puma560") if six else lw.Robot(generic_chain(3, kind="mixed"))
    if not algorithm.exists_for(robot.tree):
        pytest.skip(algorithm.why_not(robot.tree))
    frame = robot.tree.frames[robot.frame_names[-1]] if algorithm.takes_frame else None
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
        if value.dtype != np.uint16:
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
        outputs.append(Output("status", (), (values[-1],), FLAGS))
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


@pytest.mark.parametrize("status", [False, True])
def test_no_finite_input_overflows_the_guard(status: bool) -> None:
    assert rows(by_hand(status=status), (1e150, 1.7e308), (1e150, -1.7e308)) == [True, True]
    robot, q = lw.chain(3), np.array([1.7e308, 1.7e308, 0.1])
    with_status, bits = robot.normalize(q, status=True)
    assert np.array_equal(robot.normalize(q), q) and np.array_equal(with_status, q) and not bits


def test_a_status_is_never_guarded() -> None:
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
    sums = [n for n in block.nodes if n.op == "fma" and n.args[0].op == "input"]
    sums = [n for n in sums if n.args[1].value == 0.0]
    assert len(sums) == 21
    assert all(place[n.id] == first[n.args[0].id] for n in sums)
    sine = min(k for k, n in enumerate(block.nodes) if n.op in ("sin", "cos"))
    assert sum(place[n.id] < sine for n in sums) >= 5, "angles first"


def test_a_loop_keeps_its_body() -> None:
    robot = lw.load("puma560")
    program = trace(Task(FUNCTIONS["forward_dynamics"]["pcg"]), robot.tree)
    loops = [[r for r in p.regions if isinstance(r, Repeat)] for p in (program, guard(program))]
    assert loops[0] == loops[1] and len(loops[0]) == 1


def test_a_program_that_computes_nothing_stays() -> None:
    program = Program("nothing", (Port("x", 1),), (Block(()),), (Output("result", (0,), ()),))
    assert guard(program) is program


@pytest.mark.parametrize("op", ["sin", "cos"])
def test_angles_are_added_before_anything_else(op: str) -> None:
    graph = Graph()
    x, angle = graph.input("x", 0), graph.input("x", 1)
    value = graph.node("mul", graph.node("sqrt", x), graph.node(op, angle))
    block = Block((x, value.args[0], angle, value.args[1], value))
    program = Program("angles", (Port("x", 2),), (block,), (Output("result", (1,), (value,)),))
    order = [node.op for node in verify(guard(program)).nodes()]
    assert order == ["input", "const", "fma", "input", "fma", "sqrt", op, "mul", "add"]


def test_a_result_is_guarded_where_it_is_made() -> None:
    """So that it can be written at once; a pivot may still come, and then all of them wait."""
    graph = Graph()
    x = graph.input("x", 0)
    values = [graph.node("mul", x, x), graph.node("sqrt", x)]
    nodes = (x, values[0], graph.node("neg", values[0]), values[1])
    outputs = (Output("result", (2,), tuple(values)),)
    program = Program("early", (Port("x", 1),), (Block(nodes),), outputs)
    assert [n.op for n in guard(program).nodes()] == [
        "input", "const", "fma", "mul", "add", "neg", "sqrt", "add",
    ]  # fmt: skip
    late = Program("late", (Port("x", 1),), (Block(nodes),), outputs, pivots=(values[1],))
    assert [n.op for n in guard(late).nodes()] == [
        "input", "const", "fma", "mul", "neg", "sqrt", "const", "sub", "add", "const", "sub",
        "select", "add", "add",
    ]  # fmt: skip


def test_only_the_last_block_guards() -> None:
    """A result made before a loop waits: the other inputs are added where they are used."""
    graph = Graph()
    x, y, two = graph.input("x", 0), graph.input("x", 1), graph.const(2.0)
    state = graph.node("carry", value="state")
    half = graph.node("mul", state, graph.const(0.5))
    loop = Repeat(two, (Carry(state, x, half),), Block((half.args[1], half)), half)
    early, late = graph.node("neg", x), graph.node("add", state, y)
    regions = (Block((x, two, early)), loop, Block((y, late)))
    outputs = (Output("result", (2,), (early, late)),)
    program = verify(Program("loop", (Port("x", 2),), regions, outputs))
    guarded = verify(guard(program))
    first, _, last = guarded.regions
    assert isinstance(first, Block) and isinstance(last, Block)
    assert [n.op for n in first.nodes] == ["input", "const", "const", "fma", "neg"]
    assert [n.op for n in last.nodes].count("input") == 1
    states = np.array([(1.0, 2.0), (np.nan, 1.0), (1.0, np.inf), (np.inf, 1.0)])
    found = interpret(guarded, {"x": states})["result"]
    assert np.isfinite(found[0]).all() and np.isnan(found[1:]).all()
    ended = replace(program, regions=(Block((x, y, two, early)), loop), outputs=(
        Output("result", (2,), (early, state)),))  # fmt: skip
    found = interpret(verify(guard(ended)), {"x": states})["result"]
    assert found[0].tolist() == [-1.0, 0.25] and np.isnan(found[1:]).all()


def copying(*, byte: bool) -> Program:
    """Writes each input doubled, and whether it is positive, in a counted loop; adds nothing up."""
    graph = Graph()
    read = graph.node("read", value=("x", At(0, 1)))
    twice, positive = graph.node("add", read, read), graph.node("flag", read)
    writes = [Write("out", At(0, 1), twice), Write("room", At(0, 1), read)]
    outputs = [Output("out", (2,), ())]
    if byte:
        writes.append(Write("sign", At(0, 1), positive))
        outputs.append(Output("sign", (2,), (), FLAGS))
    loop = For(2, (), (Case(Block((read, twice, positive)), (), tuple(writes)),))
    ports = (Port("none", 0), Port("x", 2), Port("unused", 1))
    return verify(Program("copy", ports, (loop,), tuple(outputs), arrays=(Array("room", 2),)))


@pytest.mark.parametrize("byte", [False, True])
def test_counted_loops_guard_what_they_write(byte: bool) -> None:
    guarded = verify(guard(copying(byte=byte)))
    bad = [(1.0, np.nan), (np.inf, 1.0), (-np.inf, -1.0), (1.0, 1.0)]
    x = np.array([(1.0, -2.0), *bad])
    unused = np.array([[5.0], [5.0], [5.0], [5.0], [np.nan]])
    found = interpret(guarded, {"x": x, "unused": unused, "none": np.empty((5, 0))})
    assert found["out"][0].tolist() == [2.0, -4.0] and np.isnan(found["out"][1:]).all()
    if byte:
        assert found["sign"].tolist() == [[1, 0], [1, 0], [1, 1], [0, 0], [1, 1]]
    huge = {"x": np.array([(1e308, 1e308)]), "unused": np.zeros((1, 1)), "none": np.empty((1, 0))}
    assert np.isinf(interpret(guarded, huge)["out"]).all(), "0 times each never overflows"


def test_counted_loops_add_inputs_up_in_loops() -> None:
    """The program does not grow with the number of its inputs."""
    guarded = guard(copying(byte=False))
    loops = [region for region in guarded.regions if isinstance(region, For)]
    assert [loop.count for loop in loops] == [2, 1, 2]
    assert not [node for node in guarded.nodes() if node.op == "input"]
    assert sorted(n.op for n in guarded.nodes()) == sorted(
        ["const", "read", "fma", "read", "fma", "read", "add", "flag", "add"]
    )
    assert loops[-1].writes[1].value.op == "read", "scratch is not guarded"


def test_a_program_without_inputs_needs_no_guard() -> None:
    block = (
        lw.Builder("block")
        .link("block", mass=1.0, inertia=(0.1, 0.1, 0.1))
        .joint("weld", "fixed", parent="base", child="block")
    )
    for backend in ("c", "llvm", "cuda"):
        assert block.build().source("forward_kinematics", backend, frame="block")


def test_a_length_that_is_a_pivot_is_neither_tiny_nor_infinite() -> None:
    """Its square loses digits below 2**-972, and overflows."""
    graph = Graph()
    square = graph.input("x", 0) * graph.input("x", 1)
    length = graph.node("sqrt", square)
    block = Block(needed([square, length]))
    outputs = (Output("result", (1,), (length,)),)
    program = verify(Program("length", (Port("x", 2),), (block,), outputs, (length,)))
    least = 2.0**-486
    states = [(1.0, 4.0), (1e150, 1e150), (least, least * (1 + 1e-15))]
    assert rows(program, *states) == [True] * 3
    refused = [(least, least), (least, 0.0), (1e-200, 1e-200), (-1.0, 1.0), (1e200, 1e200)]
    assert rows(program, *refused) == [False] * 5


def test_pivots_of_counted_loops_spoil_what_comes_after_them() -> None:
    """From the step that shows it on: a later step, a later loop, and the results."""
    graph = Graph()

    def inverse(step: rolled.Step, state: list[Expr]) -> list[Expr]:
        x = step.read("x", 0, 1)
        step.write("a", reciprocal(x), 0, 1)
        return [state[0] + x]

    def of_length(step: rolled.Step, state: list[Expr]) -> list[Expr]:
        y = step.read("y", 0, 1)
        step.write("b", reciprocal(sqrt(y * y)), 0, 1)
        return [state[0] + y]

    (end,) = rolled.loop(graph, 3, [graph.zero], inverse)
    (total,) = rolled.loop(graph, 3, [end], of_length)
    ports, slots = [Port("x", 3), Port("y", 3)], [Slot("a", (3,)), Slot("b", (3,))]
    program = verify(rolled.program(graph, "inverses", ports, [], slots, [total]))
    x, y = np.ones((7, 3)), np.full((7, 3), 4.0)
    x[1, 1], x[2, 2] = 0.0, -1.0
    y[3, 0], y[4, 1], y[5, 2], y[6, 1] = 0.0, 2.0**-487, np.nan, 1e200
    found = interpret(verify(guard(program)), {"x": x, "y": y})
    first_spoiled = {"a": [3, 1, 2, 3, 3, 0, 3], "b": [3, 0, 0, 0, 1, 0, 1]}
    for name, firsts in first_spoiled.items():
        expected = np.array([[k >= first for k in range(3)] for first in firsts])
        np.testing.assert_array_equal(np.isnan(found[name]), expected)
    assert np.isnan(found["result"][1:]).all() and found["result"][0] == 15.0
    assert found["a"][0].tolist() == [1.0] * 3 and found["b"][0].tolist() == [0.25] * 3
