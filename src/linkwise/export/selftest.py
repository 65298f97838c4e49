"""A program in C that calls every function at a few states and compares with linkwise's numbers.

What it expects are results of the interpreter, in more digits than the exported number type has.
The tolerance of a state is `SLACK` times the largest change of the result where the inputs change
by a rounding, or where the interpreter itself rounds to the exported type: rounding times the
condition of the method at that state, measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.backends.cstyle.functions import Dialect
from linkwise.backends.cstyle.render import comment, word
from linkwise.backends.reference import interpret
from linkwise.export.source import Robot
from linkwise.export.wanted import Wanted
from linkwise.model.configuration import random
from linkwise.model.parameters import KINDS, Parameter
from linkwise.trace.program import FLAGS, FLAGS_C, Program

STATES = 4
NEARBY = 8  # states a rounding away from each
SLACK = 30.0

Array = NDArray[Any]

TEST = """\
{made}
#include "{prefix}.h"

#include <math.h>
#include <stdio.h>

static int check(const char *function, int state, int size, const {T} *got, const {T} *expected,
                 {T} tolerance)
{{
    int wrong = 0;
    for (int i = 0; i < size; ++i) {{
        const {T} error = fabs{f}(got[i] - expected[i]);
        if (isnan(expected[i]) ? !isnan(got[i]) : !(error <= tolerance)) {{
            printf("%s, state %d: number %d is %.17g; expected %.17g, to %.2g\\n", function, state,
                   i, (double)got[i], (double)expected[i], (double)tolerance);
            wrong = 1;
        }}
    }}
    return wrong;
}}

{tests}
int main(void)
{{
    int wrong = 0;
{calls}
    printf("{prefix}: %d of {count} functions wrong\\n", wrong);
    return wrong != 0;
}}
"""


def selftest(robot: Robot, functions: Sequence[Wanted]) -> str:
    """The text of the program."""
    dialect = robot.dialect
    return TEST.format(
        made=comment(f"Checks {robot.prefix}.c against numbers of linkwise. {robot.made}"),
        prefix=robot.prefix,
        T=dialect.number,
        f=dialect.suffix,
        count=len(functions),
        tests="\n".join(_test(robot, one) for one in functions),
        calls="\n".join(f"    wrong += test_{one.name}();" for one in functions),
    )


def _test(robot: Robot, one: Wanted) -> str:
    dialect, program = robot.dialect, one.program
    given = states(robot, program)
    expected, tolerance = results(program, given, robot.dtype)
    kinds = {FLAGS: FLAGS_C}
    inputs = [word(port.name) for port in program.inputs]
    outputs = [word(output.name) for output in program.outputs]
    lines = [f"static int test_{one.name}(void)", "{"]
    for port in program.inputs:
        lines += _table(dialect, f"given_{word(port.name)}", given[port.name])
    lines += _table(dialect, "expected", expected)
    lines += _list(dialect, "tolerance", tolerance)
    lines += [
        f"    {kinds.get(o.kind, dialect.number)} {word(o.name)}[{max(o.slot.size, 1)}];"
        for o in program.outputs
    ]
    arguments = ", ".join((*(f"given_{name}[k]" for name in inputs), *outputs))
    size = program.outputs[0].slot.size
    lines += [
        "    int wrong = 0;",
        f"    for (int k = 0; k < {STATES}; ++k) {{",
        f"        {one.name}({arguments});",
        f'        wrong |= check("{one.name}", k, {size}, {outputs[0]}, expected[k],',
        "                       tolerance[k]);",
        "    }",
        "    return wrong;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _table(dialect: Dialect, name: str, rows: Array) -> Iterator[str]:
    yield f"    static const {dialect.number} {name}[{STATES}][{rows.shape[1]}] = {{"
    for row in rows:
        yield f"        {{{', '.join(map(dialect.literal, row.tolist()))}}},"
    yield "    };"


def _list(dialect: Dialect, name: str, numbers: Array) -> Iterator[str]:
    told = ", ".join(map(dialect.literal, numbers.tolist()))
    yield f"    static const {dialect.number} {name}[{STATES}] = {{{told}}};"


def states(robot: Robot, program: Program) -> dict[str, Array]:
    """Random inputs (STATES, size) by port, as numbers of the exported type have them."""
    rng = np.random.default_rng(0)
    iterates = {
        "tol": 1e-10 if robot.dtype == "float64" else 1e-4,
        "limit": 4.0 * robot.tree.nv + 20,
    }
    found: dict[str, Array] = {}
    for port in program.inputs:
        if port.name in ("q", "q0", "q1"):
            numbers = random(robot.tree, rng, STATES)
        elif port.name in iterates:
            numbers = np.full((STATES, 1), iterates[port.name])
        elif port.name in ("damping", "dt"):
            numbers = rng.uniform(0.1, 0.3, (STATES, port.size))
        elif port.name in KINDS:
            numbers = _constants(robot, port.name, rng)
        else:
            numbers = rng.normal(size=(STATES, port.size))
        found[port.name] = numbers.astype(robot.dtype).astype(np.float64)
    return found


def _constants(robot: Robot, name: str, rng: np.random.Generator) -> Array:
    """Parameters (STATES, size) near the robot's own, so that its bodies still exist."""
    own = Parameter(name).value(robot.tree).ravel()
    if name == "payload":
        own = np.array([1.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.01, 0.0, 0.0, 0.01])
    more = rng.uniform(0.0, 0.1, (STATES, own.size)) * (name in ("rotor", "friction", "placement"))
    return np.asarray(own * rng.uniform(0.9, 1.1, (STATES, 1)) + more)


def results(program: Program, given: dict[str, Array], dtype: str) -> tuple[Array, Array]:
    """The first output (STATES, size), and how far from it each state's numbers may be."""
    rng, eps = np.random.default_rng(1), float(np.finfo(dtype).eps)

    def run(inputs: dict[str, Array], kind: Any = np.float64) -> Array:
        typed = {name: x.astype(kind) for name, x in inputs.items()}
        found = interpret(program, typed)[program.outputs[0].name]
        return found.reshape(STATES, -1).astype(np.float64)

    expected = run(given, np.longdouble)
    others = [run(given, dtype)]
    for _ in range(NEARBY):
        others.append(
            run({name: x * (1 + eps * rng.uniform(-1, 1, x.shape)) for name, x in given.items()})
        )
    if "tol" in given:  # what a looser tolerance leaves open
        others.append(run(given | {"tol": 10 * given["tol"]}))
    least = eps * np.abs(expected).max(axis=1, initial=0.0)
    changes = [np.abs(other - expected).max(axis=1, initial=0.0) for other in others]
    found = SLACK * np.max([least, *changes], axis=0)
    return expected, np.nan_to_num(found, nan=0.0)  # of a state without an answer: all are NaN
