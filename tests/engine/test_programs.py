"""Programs: every traced function is legal, and the verifier names what is not."""

import dataclasses

import arms
import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.study.generic import generic_chain
from linkwise.trace.assemble import needed
from linkwise.trace.expr import Expr, Graph, reachable
from linkwise.trace.fuse import fuse
from linkwise.trace.program import Block, Carry, Output, Port, Program, Repeat, count_operations
from linkwise.trace.schedule import (
    REGISTERS,
    alone,
    cycles,
    peak_live,
    schedule,
    spilled,
    together,
)
from linkwise.trace.tracer import Task, trace
from linkwise.trace.verify import IllegalProgram, verify

ALL = [a for methods in FUNCTIONS.values() for a in methods.values()]


@pytest.mark.parametrize("name", ["puma560", pytest.param("iiwa14", marks=pytest.mark.full)])
@pytest.mark.parametrize("algorithm", ALL, ids=lambda a: f"{a.function}-{a.method}")
def test_every_traced_function_is_legal(name, algorithm):
    robot = lw.load(name)
    frame = robot.tree.frames["link6"] if algorithm.takes_frame else None
    external = (robot.tree.frames["link6"],) if algorithm.takes_external else ()
    verify(trace(Task(algorithm, frame, external=external), robot.tree))


def row(*values: Expr) -> Output:
    """The only output of a program made by hand."""
    return Output("result", (len(values),), values)


def small() -> tuple[Graph, Program]:
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    total = x * y + 2.0
    nodes = needed([total])
    return graph, Program("small", (Port("x", 2),), (Block(nodes),), (row(total),))


def test_a_legal_program_is_returned():
    _, program = small()
    assert verify(program) is program


def test_use_before_definition_is_named():
    _, program = small()
    backwards = dataclasses.replace(
        program, regions=(Block(tuple(reversed(program.regions[0].nodes))),)
    )
    with pytest.raises(IllegalProgram, match="before it is made"):
        verify(backwards)


def test_missing_result_is_named():
    graph, program = small()
    with pytest.raises(IllegalProgram, match="element 0 of result is never computed"):
        verify(dataclasses.replace(program, outputs=(row(graph.input("x", 0) * 3.0),)))


def test_input_out_of_range_is_named():
    graph, program = small()
    beyond = graph.input("x", 7)
    with pytest.raises(IllegalProgram, match="no element 7 of input 'x'"):
        verify(dataclasses.replace(program, regions=(Block((beyond,)),), outputs=(row(beyond),)))


def test_unknown_operation_is_named():
    graph, program = small()
    odd = graph.node("sqrt3", graph.input("x", 0))
    nodes = (*program.regions[0].nodes, odd)
    with pytest.raises(IllegalProgram, match="unknown operation"):
        verify(dataclasses.replace(program, regions=(Block(nodes),)))


def test_node_computed_twice_is_named():
    _, program = small()
    nodes = program.regions[0].nodes
    with pytest.raises(IllegalProgram, match="computed twice"):
        verify(dataclasses.replace(program, regions=(Block(nodes), Block(nodes))))


def loop(graph: Graph, limit: int = 5) -> Program:
    x = graph.input("x", 0)
    value = graph.node("carry", value="k")
    stepped = value * 0.5
    most = graph.const(limit)
    again = Repeat(most, (Carry(value, x, stepped),), Block(needed([stepped])), stepped)
    return Program("loop", (Port("x", 1),), (Block((x, most)), again), (row(value),))


def test_a_loop_must_know_what_it_carries():
    graph = Graph()
    program = loop(graph)
    body = Block(tuple(n for n in program.regions[1].body.nodes if n.op != "carry"))
    legal = dataclasses.replace(
        program, regions=(program.regions[0], dataclasses.replace(program.regions[1], body=body))
    )
    verify(legal)
    limit = Block((graph.const(5.0),))
    missing_start = dataclasses.replace(legal, regions=(limit, *legal.regions[1:]))
    with pytest.raises(IllegalProgram, match="start of a carried value"):
        verify(missing_start)


def test_a_loop_must_know_its_limit():
    graph = Graph()
    program = loop(graph)
    unknown = dataclasses.replace(program.regions[1], limit=graph.const(7.0))
    with pytest.raises(IllegalProgram, match="limit of a loop is not known before it"):
        verify(dataclasses.replace(program, regions=(program.regions[0], unknown)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: (o, o), "output 'result' is there twice"),
        (lambda o: (dataclasses.replace(o, kind="word"),), "kind 'word'; expected number or flags"),
        (lambda o: (dataclasses.replace(o, shape=(2,)),), "has 1 values; expected 2, as its shape"),
    ],
)
def test_an_output_that_is_none_is_named(change, message):
    _, program = small()
    with pytest.raises(IllegalProgram, match=message):
        verify(dataclasses.replace(program, outputs=change(program.outputs[0])))


def test_operations_are_counted_exactly():
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    total = (x * y + x) / (y + 3.0)
    program = Program("count", (Port("x", 2),), (Block(needed([total])),), (row(total),))
    counted = count_operations(program)
    assert (counted.multiplications, counted.additions, counted.divisions) == (1, 2, 1)
    assert counted.total == 4


def test_a_difference_and_its_negative_are_one_node():
    graph = Graph()
    x, y, z = (graph.input("x", i) for i in range(3))
    assert y - x is -(x - y)
    assert z + (y - x) is z - (x - y)
    assert (y - x) * z is -((x - y) * z)


@pytest.mark.parametrize(
    ("make", "ops"),
    [
        (lambda x, y: [-(x - y)], ["sub"]),
        (lambda x, y: [x - y, -(x - y)], ["sub", "neg"]),
        (lambda x, y: [-(x * y - 1.0)], ["fnma"]),
        (lambda x, y: [-(1.0 - x * y)], ["fms"]),
    ],
)
def test_a_sign_goes_with_a_difference_that_nothing_else_needs(make, ops):
    graph = Graph()
    fused = fuse(graph, make(graph.input("x", 0), graph.input("x", 1)))
    assert [node.op for node in fused] == ops


ARMS = {"puma560": arms.puma560, "iiwa14": arms.iiwa14}
ORDERS = {  # values spilled with many states, cycles of one state alone; see schedule.py
    ("puma560", "forward_dynamics", "crba"): (36, 297),
    ("puma560", "forward_dynamics", "aba"): (128, 1194),
    ("puma560", "inverse_dynamics", "rnea"): (29, 133),
    ("puma560", "mass_matrix", "crba"): (0, 71),
    ("iiwa14", "forward_dynamics", "crba"): (113, 908),
    ("iiwa14", "forward_dynamics", "aba"): (138, 1664),
    ("iiwa14", "inverse_dynamics", "rnea"): (59, 322),
    ("iiwa14", "mass_matrix", "crba"): (10, 104),
}


@pytest.mark.parametrize(("name", "function", "method"), ORDERS)
def test_orders_are_as_good_as_they_were(name, function, method):
    """Below what either heuristic gives when it is switched off, or swapped for the other."""
    program = trace(Task(FUNCTIONS[function][method]), ARMS[name]().tree)
    most = ORDERS[name, function, method]
    assert spilled(tuple(together(program).nodes())) <= most[0]
    assert cycles(tuple(alone(program).nodes())) <= most[1]


def test_orders_are_better_than_that_of_creation():
    spills, time = [0, 0], [0, 0]
    for name, function, method in ORDERS:
        program = trace(Task(FUNCTIONS[function][method]), ARMS[name]().tree)
        created, many, one = (
            tuple(p.nodes()) for p in (program, together(program), alone(program))
        )
        assert list(created) == sorted(created, key=lambda node: node.id)
        for k, order in enumerate((many, created)):
            spills[k] += spilled(order)
        for k, order in enumerate((one, many)):
            time[k] += cycles(order)
    assert spills[0] < 0.9 * spills[1] and time[0] < 0.85 * time[1]


@pytest.mark.parametrize(
    "name", ["arm of 3", *(pytest.param(x, marks=pytest.mark.full) for x in ("puma560", "iiwa14"))]
)
@pytest.mark.parametrize("algorithm", ALL, ids=lambda a: f"{a.function}-{a.method}")
def test_a_program_in_another_order_is_the_same_program(name, algorithm):
    robot = lw.Robot(generic_chain(3, kind="mixed")) if name == "arm of 3" else lw.load(name)
    if not algorithm.exists_for(robot.tree):
        pytest.skip(algorithm.why_not(robot.tree))
    frame = robot.tree.frames[robot.frame_names[-1]] if algorithm.takes_frame else None
    program = trace(Task(algorithm, frame), robot.tree)
    for reordered in (verify(alone(program)), verify(together(program))):
        for before, after in zip(program.regions, reordered.regions, strict=True):
            nodes = [getattr(region, "body", region).nodes for region in (before, after)]
            assert len(nodes[0]) == len(nodes[1]) and set(nodes[0]) == set(nodes[1])
        assert reordered.outputs == program.outputs


def test_spilled_values_are_those_that_do_not_fit():
    graph = Graph()
    x = graph.input("x", 0)
    roots = [graph.node("sqrt", x + float(k)) for k in range(40)]
    total = roots[0]
    for root in roots[1:]:
        total = total + root
    nodes = tuple(sorted(reachable([total]), key=lambda node: node.id))
    assert spilled(nodes) == 40 - REGISTERS, "all roots are made before the first is used"
    assert spilled(schedule(needed([total]))) == 0
    assert peak_live(schedule(needed([total]))) < REGISTERS


def test_cycles_of_a_chain_and_of_work_side_by_side():
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    chain = graph.node("fma", graph.node("fma", x, x, y), x, y)
    assert cycles(schedule(needed([chain]))) == 8, "one waits for the other"
    pair = [graph.node("fma", x, x, y), graph.node("fma", y, y, x)]
    assert cycles(schedule(needed(pair))) == 4, "two at once"
    assert cycles(schedule(needed([graph.node("div", x, y)]))) == 13 and cycles(()) == 0


GOLDEN = {  # multiplications, additions of the program that runs
    ("puma560", "inverse_dynamics"): (192, 168),
    ("puma560", "forward_dynamics"): (328, 278),
    ("iiwa14", "inverse_dynamics"): (282, 274),
    ("iiwa14", "forward_dynamics"): (551, 504),
}


@pytest.mark.parametrize(("name", "function"), GOLDEN)
def test_no_algorithm_becomes_dearer(name, function):
    counted = ARMS[name]().operation_count(function)
    most = GOLDEN[name, function]
    assert counted.multiplications <= most[0]
    assert counted.additions <= most[1]


@pytest.mark.filterwarnings("ignore:.*has the norm 1.01:linkwise.errors.StateWarning")
@pytest.mark.parametrize("function", ["normalize", "difference", "integrate"])
def test_a_status_changes_no_bit_of_a_result(function: str) -> None:
    """Quaternions: the status looks at the length that the result is divided by."""
    robot = lw.load("puma560", base="free")
    rng = np.random.default_rng(0)
    q = robot.random_q(rng, size=40) * 1.01
    values = {"normalize": (q,), "difference": (q, q[::-1]), "integrate": (q, q[:, :12], 0.1)}
    plain = getattr(robot, function)(*values[function])
    result, _ = getattr(robot, function)(*values[function], status=True)
    assert plain.tobytes() == result.tobytes()
