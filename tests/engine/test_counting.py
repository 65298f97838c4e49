"""Which operations are counted, and how a count reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from linkwise.trace.expr import ARITY, At, Expr, Graph, Order, Write
from linkwise.trace.program import (
    Array,
    Block,
    Carry,
    Case,
    For,
    OperationCount,
    Output,
    Port,
    Program,
    Repeat,
    Signature,
    count_operations,
)
from linkwise.trace.verify import verify

NONE = OperationCount(0, 0, 0, 0, 0)
COUNTED = {
    **dict.fromkeys(("add", "sub"), replace(NONE, additions=1)),
    **dict.fromkeys(("fma", "fms", "fnma"), replace(NONE, multiplications=1, additions=1, fused=1)),
    **dict.fromkeys(("sin", "cos"), replace(NONE, sincos=1)),
    "mul": replace(NONE, multiplications=1),
    "div": replace(NONE, divisions=1),
    "sqrt": replace(NONE, square_roots=1),
    "atan2": replace(NONE, arctangents=1),
}


def straight(*nodes: Expr) -> Program:
    """A program of one block, all of whose nodes are results."""
    output = Output("result", (len(nodes),), nodes)
    return Program("straight", (Port("x", 3),), (Block(nodes),), (output,))


@pytest.mark.parametrize("op", [op for op, arity in ARITY.items() if arity])
def test_what_one_operation_counts(op: str) -> None:
    graph = Graph()
    x = [graph.input("x", k) for k in range(3)]
    node = graph.node(op, *x[: ARITY[op]])
    assert count_operations(straight(*x, node)) == COUNTED.get(op, NONE)


def test_a_sine_and_a_cosine_of_an_angle_count_once() -> None:
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    nodes = [graph.node(op, angle) for op in ("sin", "cos") for angle in (x, y)]
    assert count_operations(straight(x, y, *nodes)).sincos == 2


def test_a_pivot_counts_though_no_result_needs_it() -> None:
    graph = Graph()
    x = graph.input("x", 0)
    pivot, idle = graph.node("sqrt", x), graph.node("neg", graph.node("mul", x, x))
    nodes = (x, pivot, *idle.args, idle)
    program = replace(straight(x), regions=(Block(nodes),))
    assert count_operations(program) == NONE
    assert count_operations(replace(program, pivots=(pivot,))) == replace(NONE, square_roots=1)


def test_the_total_leaves_out_what_is_not_arithmetic() -> None:
    count = OperationCount(1, 20, 300, 4, 5, 6000, 7)
    assert count.total == 6321
    assert (NONE.square_roots, NONE.arctangents, NONE.iteration) == (0, 0, None)


def test_a_count_as_a_sentence() -> None:
    plain = OperationCount(1, 2, 3, 4, 5, 6)
    text = "1 multiplications, 2 additions, 3 divisions, 6 square roots, 4 sincos (5 fused pairs)"
    assert str(plain) == text
    assert str(replace(plain, arctangents=7)) == f"{text}, 7 arctangents"
    again = replace(plain, iteration=replace(plain, arctangents=8))
    assert str(again) == f"{text}; in each iteration: {text}, 8 arctangents"


def test_a_loop_that_ends_by_a_test() -> None:
    """Starts, steps and the body count; a threshold that only the test looks at does not."""
    graph = Graph()
    x, limit = graph.input("x", 0), graph.const(5.0)
    start, outside = graph.node("sqrt", x), graph.node("div", x, limit)
    threshold = graph.node("add", x, x)
    first, second = (graph.node("carry", value=k) for k in range(2))
    stepped = graph.node("mul", first, second)
    test = graph.node("sub", stepped, threshold)
    loop = Repeat(
        limit, (Carry(first, start, stepped), Carry(second, x, outside)),
        Block((stepped, test)), test,
    )  # fmt: skip
    before = Block((x, limit, start, outside, threshold))
    outputs = (Output("result", (1,), (first,)),)
    count = count_operations(verify(Program("loop", (Port("x", 1),), (before, loop), outputs)))
    body = replace(NONE, multiplications=1, additions=1)
    assert count.iteration == body
    assert replace(count, iteration=None) == replace(body, square_roots=1, divisions=1)


def test_a_counted_loop_counts_all_its_steps() -> None:
    """What it carries and what it writes; nothing is left to say about one step."""
    graph = Graph()
    x, one = graph.input("x", 0), graph.one
    start = graph.node("sqrt", x)
    value = graph.node("carry", value="v")
    read = graph.node("read", value=("x", At(0, 1)))
    stepped, written = graph.node("mul", value, read), graph.node("div", read, one)
    body = Block((read, stepped, written))
    case = Case(body, (stepped,), (Write("room", At(0, 1), written),))
    loop = For(3, (Carry(value, start, stepped),), (case,))
    program = verify(
        Program(
            "counted",
            (Port("x", 3),),
            (Block((x, one, start)), loop),
            (Output("result", (1,), (value,)),),
            arrays=(Array("room", 3),),
        )
    )
    assert count_operations(program) == replace(
        NONE, square_roots=1, multiplications=3, divisions=3
    )
    idle = replace(loop, carries=(), cases=(replace(case, nexts=()),))
    without = replace(program, regions=(program.regions[0], idle), outputs=())
    assert count_operations(without).square_roots == 0, "nothing needs the start"


def test_each_case_counts_as_often_as_it_is_taken() -> None:
    graph = Graph()
    read = graph.node("read", value=("x", At(0, 1)))
    made = [graph.node("sqrt", read), graph.node("add", read, read)]
    cases = [Case(Block((read, n)), (), (Write("room", At(0, 1), n),)) for n in made]
    places = Array("which", 3, np.array([1, 0, 1]))
    loop = For(3, (), tuple(cases), At(0, 1, "which"))
    program = Program("cases", (Port("x", 3),), (loop,), (), arrays=(Array("room", 3), places))
    assert count_operations(verify(program)) == replace(NONE, square_roots=1, additions=2)


def test_what_only_the_steps_of_a_loop_need_is_counted_before_it() -> None:
    """Written by one case, carried on by another; what no case needs is not counted."""
    graph = Graph()
    x, value = graph.input("x", 0), graph.node("carry", value="v")
    root, product, idle = (
        graph.node(op, x, *[x] * (ARITY[op] - 1)) for op in ("sqrt", "mul", "add")
    )
    cases = (
        Case(Block(()), (value,), (Write("room", At(0, 1), root),)),
        Case(Block(()), (product,), ()),
    )
    loop = For(3, (Carry(value, x, value),), cases, At(0, 1, "which"))
    arrays = (Array("room", 3), Array("which", 3, np.array([1, 0, 1])))
    regions = (Block((x, root, product, idle)), loop)
    program = verify(Program("outside", (Port("x", 1),), regions, (), arrays=arrays))
    assert count_operations(program) == replace(NONE, square_roots=1, multiplications=1)


def test_the_element_that_a_step_touches() -> None:
    lists = {"places": np.array([4, 0, 1])}
    backward = Order(2, -1)
    for at, expected in (
        (At(3), [3, 3, 3]),
        (At(3, 2), [3, 5, 7]),
        (At(3, 2, order=backward), [7, 5, 3]),
        (At(3, 2, "places"), [11, 3, 5]),
        (At(3, 1, "places", backward), [4, 3, 7]),
    ):
        assert [at.element(k, lists) for k in range(3)] == expected


def test_a_table_is_no_part_of_the_code() -> None:
    """Programs that differ in the numbers of a table alone are equal: one kernel serves both."""
    tables = [Array("table", 2, np.array(values)) for values in ((1.0, 2.0), (3.0, 4.0))]
    assert tables[0] == tables[1] != Array("other", 2, np.array((1.0, 2.0)))
    assert not tables[0].lists_places and Array("list", 1, np.array([3])).lists_places


def test_a_signature_says_how_much_scratch_a_state_needs() -> None:
    arrays = (Array("room", 3), Array("table", 20, np.ones(20)), Array("more", 4))
    signature = Program("p", (), (), (), arrays=arrays).signature
    assert (signature.scratch, signature.tables) == (7, arrays[1:2])
    assert Signature((), ()).scratch == 0
