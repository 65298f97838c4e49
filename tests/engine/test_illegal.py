"""Every rule of the verifier: programs that break one, and the message that names it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from linkwise.trace import rolled
from linkwise.trace.expr import ARITY, At, Expr, Graph
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
    Region,
    Repeat,
    Slot,
)
from linkwise.trace.verify import IllegalProgram, verify

GRAPH = Graph()
X, Y = GRAPH.input("x", 0), GRAPH.input("x", 1)
TWO = GRAPH.const(2.0)
SUM = GRAPH.node("add", X, Y)
STATE = GRAPH.node("carry", value="state")
STEPPED = GRAPH.node("mul", STATE, TWO)
LOOP = Repeat(TWO, (Carry(STATE, X, STEPPED),), Block((STEPPED,)), STEPPED)


def straight(*nodes: Expr, result: Expr = SUM, **changes: Any) -> Program:
    """A program of one block."""
    output = Output("result", (1,), (result,))
    program = Program("straight", (Port("x", 2),), (Block(nodes),), (output,))
    return replace(program, **changes)


def looping(before: tuple[Expr, ...] = (X, TWO), *, after: Region | None = None,
            result: Expr = STATE, **changes: Any) -> Program:  # fmt: skip
    """A program of a block, a loop that ends by a test, and perhaps another region."""
    rest = (after,) if after else ()
    regions = (Block(before), replace(LOOP, **changes), *rest)
    return straight(result=result, regions=regions)


READ = GRAPH.node("read", value=("x", At(0, 1)))
COUNTED = For(2, (), (Case(Block((READ,)), (), (rolled.Write("out", At(0, 1), READ),)),))


def counted(loop: For = COUNTED, **changes: Any) -> Program:
    """A program that copies its input, element by element."""
    program = Program("counted", (Port("x", 2),), (loop,), (Output("out", (2,), ()),))
    return replace(program, **changes)


def case(carries: tuple[Carry, ...] = (), **changes: Any) -> For:
    """The loop with another case."""
    return replace(COUNTED, carries=carries, cases=(replace(COUNTED.cases[0], **changes),))


def write(**changes: Any) -> For:
    return case(writes=(COUNTED.writes[0]._replace(**changes),))


def listed(places: list[int], **changes: Any) -> Program:
    """A program that writes by a list of places."""
    arrays = (Array("list", len(places), np.array(places)),)
    return counted(write(at=At(0, 1, "list"), **changes), arrays=arrays)


def made(op: str, *args: Expr, value: Any = None) -> Expr:
    return GRAPH.node(op, *args, value=value)


RESULT = Output("result", (1,), (SUM,))
LEGAL: dict[str, Callable[[], Program]] = {
    "straight": lambda: straight(X, Y, SUM),
    "flags": lambda: straight(X, Y, SUM, outputs=(replace(RESULT, kind=FLAGS),)),
    "an empty output": lambda: straight(X, Y, SUM, outputs=(RESULT, Output("none", (0,), ()))),
    "a pivot": lambda: straight(X, Y, SUM, pivots=(SUM,)),
    "looping": lambda: looping(),
    "a loop that uses what is before it": lambda: looping(
        (X, Y, SUM, TWO), body=Block((made("add", SUM, X), STEPPED)), active=SUM
    ),
    "a value carried, used after the loop": lambda: looping(
        after=Block((made("neg", STATE),)), result=made("neg", STATE)
    ),
    "counted": lambda: counted(),
    "to scratch": lambda: counted(
        case(writes=(*COUNTED.writes, *write(array="room", add=True).writes)),
        arrays=(Array("room", 2),),
    ),
    "the last element": lambda: counted(write(at=At(1, -1))),
    "by a list": lambda: listed([1, 0]),
    "every second step": lambda: counted(write(every=2, at=At(1, 1))),
    "a list longer than the writes": lambda: listed([1, 7], every=2),
    "one step": lambda: counted(replace(COUNTED, count=1)),
}

INSIDE = made("add", STATE, X)  # made in no loop
ILLEGAL: dict[str, tuple[Callable[[], Program], str]] = {
    "two inputs of one name": (
        lambda: straight(X, Y, SUM, inputs=(Port("x", 2), Port("x", 2))),
        "straight: two inputs share a name",
    ),
    "an operation nobody knows": (
        lambda: straight(X, Y, SUM, made("cube", X)), r"cube.*: unknown operation",
    ),
    **{
        f"{op} with an argument too many": (
            lambda op=op: straight(X, Y, SUM, made(op, *[X] * (ARITY[op] + 1))),
            rf"{op}\(.*: expected {ARITY[op]} arguments",
        )
        for op in ARITY
    },
    "a node twice in a block": (lambda: straight(X, X, Y, SUM), "x.*: computed twice"),
    "a node in two blocks": (
        lambda: straight(regions=(Block((X, Y, SUM)), Block((X,)))), "computed twice",
    ),
    "a node again in a loop": (lambda: looping(body=Block((X, STEPPED))), "computed twice"),
    "a carry in a block": (
        lambda: straight(X, Y, SUM, STATE), "a carried value belongs to its loop",
    ),
    "an argument made later": (lambda: straight(X, SUM, Y), rf"uses %{Y.id} before it is made"),
    "an argument of a loop's body": (
        lambda: looping(after=Block((made("neg", STEPPED),)), result=made("neg", STEPPED)),
        rf"uses %{STEPPED.id} before it is made",
    ),
    "an input nobody has": (
        lambda: straight(made("input", value=("y", 0))), "no element 0 of input 'y'",
    ),
    "an element beyond": (
        lambda: straight(made("input", value=("x", 2))), "no element 2 of input 'x'",
    ),
    "an element before": (
        lambda: straight(made("input", value=("x", -1))), "no element -1 of input 'x'",
    ),
    "a constant that is no float": (
        lambda: straight(made("const", value=7)), "a constant must be a float",
    ),
    "a read outside of loops": (
        lambda: straight(READ), "an element by step belongs to a counted loop",
    ),
    "a read in a loop that ends by a test": (
        lambda: looping(body=Block((READ, STEPPED))), "belongs to a counted loop",
    ),
    "a result that is not computed": (
        lambda: straight(X, Y), "element 0 of result is never computed",
    ),
    "the second element of a result": (
        lambda: straight(X, Y, outputs=(Output("result", (2,), (X, SUM)),)),
        "element 1 of result is never computed",
    ),
    "a result of a loop's body": (
        lambda: looping(result=STEPPED), "element 0 of result is never computed",
    ),
    "an output twice": (
        lambda: straight(X, Y, SUM, outputs=(RESULT, RESULT)),
        "straight: output 'result' is there twice",
    ),
    "a kind nobody knows": (
        lambda: straight(X, Y, SUM, outputs=(replace(RESULT, kind="word"),)),
        "output 'result' is of kind 'word'; expected number or flags",
    ),
    "too few values": (
        lambda: straight(X, Y, SUM, outputs=(replace(RESULT, shape=(2, 3)),)),
        r"output 'result' has 1 values; expected 6, as its shape \(2, 3\) says",
    ),
    "values in an empty output": (
        lambda: straight(X, Y, SUM, outputs=(replace(RESULT, shape=(0,)),)),
        r"has 1 values; expected 0, as its shape \(0,\) says",
    ),
    "no values": (
        lambda: straight(X, outputs=(Output("out", (1,), ()),)),
        "output 'out' has no values and no loop writes it",
    ),
    "a pivot that is not computed": (
        lambda: straight(X, Y, SUM, pivots=(TWO,)), "2.0.*: a pivot is never computed",
    ),
    "a limit that is not known": (lambda: looping((X,)), "limit of a loop is not known before it"),
    "a start that is not known": (
        lambda: looping((TWO,)), "start of a carried value is not known",
    ),
    "a loop that carries something else": (
        lambda: looping(carries=(Carry(X, X, STEPPED),)), "carries a node that is not a carry",
    ),
    "a step that is not computed": (
        lambda: looping(carries=(Carry(STATE, X, INSIDE),)), "needed by a loop, never computed",
    ),
    "a test that is not computed": (
        lambda: looping(active=INSIDE), "needed by a loop, never computed",
    ),
    "no steps": (
        lambda: counted(replace(COUNTED, count=0)),
        "a counted loop has 0 steps; expected at least one",
    ),
    "a pivot inside a counted loop": (
        lambda: counted(pivots=(READ,)), "a pivot is never computed",
    ),
    "a carried start of a counted loop": (
        lambda: counted(case((Carry(STATE, X, READ),), nexts=(READ,))),
        "start of a carried value is not known",
    ),
    "a counted step that is not computed": (
        lambda: counted(
            regions=(Block((X,)), case((Carry(STATE, X, INSIDE),), nexts=(INSIDE,)))
        ),
        "needed by a loop, never computed",
    ),
    "a value that is not computed": (
        lambda: counted(write(value=INSIDE)), "written by a loop, never computed",
    ),
    "a read of nothing": (
        lambda: counted(case(body=Block((made("read", value=("z", At(0))), READ)))),
        "read outside of 'z'",
    ),
    "a read of an output": (
        lambda: counted(case(body=Block((made("read", value=("out", At(0))), READ)))),
        "read outside of 'out'",
    ),
    "a read too far": (lambda: counted(replace(COUNTED, count=3)), "read outside of 'x'"),
    "a read before the first element": (
        lambda: counted(
            case(body=Block((made("read", value=("x", At(0, -1))), READ)))
        ),
        "read outside of 'x'",
    ),
    "a write to an input": (lambda: counted(write(array="x")), "no loop may write to 'x'"),
    "a write to an output with values": (
        lambda: counted(
            write(array="result"), regions=(Block((X, Y, SUM)), write(array="result")),
            outputs=(Output("out", (2,), ()), RESULT),
        ),
        "no loop may write to 'result'",
    ),
    "a write to a table": (
        lambda: counted(write(array="table"), arrays=(Array("table", 2, np.ones(2)),)),
        "no loop may write to 'table'",
    ),
    "adding to an output": (lambda: counted(write(add=True)), "no loop may write to 'out'"),
    "a write that never happens": (lambda: counted(write(every=0)), "written every 0 steps"),
    "a write too far": (lambda: counted(write(at=At(1, 1))), "written outside of 'out'"),
    "a write before the first element": (
        lambda: counted(write(at=At(0, -1))), "written outside of 'out'",
    ),
    "a list too short": (
        lambda: listed([1]), "written outside of 'out'",
    ),
    "a table that is not full": (
        lambda: counted(arrays=(Array("table", 2, np.ones(1)),)),
        "table 'table' has 1 values; expected 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEGAL)
def test_a_legal_program_is_returned(name: str) -> None:
    program = LEGAL[name]()
    assert verify(program) is program


@pytest.mark.parametrize("name", ILLEGAL)
def test_a_broken_rule_is_named(name: str) -> None:
    make, message = ILLEGAL[name]
    with pytest.raises(IllegalProgram, match=f"{message}$"):
        verify(make())


def test_a_rolled_program_is_legal() -> None:
    graph = Graph()

    def copy(step: rolled.Step, state: list[Expr]) -> list[Expr]:
        step.write("out", step.read("x", 0, 1), 0, 1)
        return [state[0] + 1.0]

    (end,) = rolled.loop(graph, 2, [graph.zero], copy)
    program = rolled.program(graph, "copy", [Port("x", 2)], [], [Slot("out", (2,))], [end])
    assert verify(program) is program


@pytest.mark.parametrize("kind", ["number", "flags"])
def test_kinds_of_outputs_are_written_as_the_message_says(kind: str) -> None:
    verify(straight(X, Y, SUM, outputs=(replace(RESULT, kind=kind),)))


def by_cases(which: list[int]) -> Program:
    """Two steps, each the only one that its case is within the arrays for."""
    reads = [made("read", value=("x", At(start, 2))) for start in (1, -1)]
    cases = [
        Case(Block((read,)), (), (rolled.Write("room", At(start, 1), read),))
        for read, start in zip(reads, (0, -1), strict=True)
    ]
    lists = Array("which", 2, np.array(which))
    loop = For(2, (), tuple(cases), At(0, 1, "which"))
    return straight(X, Y, SUM, regions=(Block((X, Y, SUM)), loop), arrays=(Array("room", 1), lists))


def test_a_case_touches_only_what_its_own_steps_touch() -> None:
    verify(by_cases([0, 1]))
    with pytest.raises(IllegalProgram, match="read outside of 'x'"):
        verify(by_cases([1, 0]))
    with pytest.raises(IllegalProgram, match="read outside of 'x'"):
        verify(by_cases([0, 0]))


@pytest.mark.parametrize("name", ["x", "result", "room"])
def test_an_array_has_a_name_of_its_own(name: str) -> None:
    arrays = (Array("room", 1), Array(name, 1))
    with pytest.raises(IllegalProgram, match=f"straight: two arrays are named '{name}'$"):
        verify(straight(X, Y, SUM, arrays=arrays))
