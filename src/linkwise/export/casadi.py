"""Functions as CasADi's C interface has them, with derivatives: one file, for `casadi.external`.

CasADi finds a function's derivatives in the same library, by their names:

| name | arguments | results |
|---|---|---|
| ``f`` | q, qd, tau | result |
| ``jac_f`` | q, qd, tau, out_result | the derivative of the result by each argument |
| ``adj1_f`` | q, qd, tau, out_result, adj_result | by each argument, of the weighted result |
| ``jac_adj1_f`` | those of adj1_f, and its results | the derivatives of adj1_f: second order |

Every function is a program of its own (``interop/derived.py``). Matrices are written column by
column, which is how CasADi has them: the programs are traced in that order. An argument that is
NULL stands for zeros; a result that is NULL is not wanted, and is written to CasADi's work space.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod
from typing import NamedTuple

from linkwise.backends.cstyle.render import comment, own_function, word
from linkwise.engine.calls import Calls
from linkwise.engine.equations import Values
from linkwise.errors import NoProgram
from linkwise.export.source import HEAD, Robot, helpers, with_unused
from linkwise.export.wanted import Wanted
from linkwise.interop.arguments import names
from linkwise.interop.derived import Node, node
from linkwise.trace.expr import Graph
from linkwise.trace.program import Program
from linkwise.trace.schedule import together

SUFFIX = "_casadi"  # the plain functions have the names without
ORDERS = (0, 1, 2)

WRAPPER = """\
LINKWISE_EXPORT casadi_int {name}_n_in(void) {{ return {n_in}; }}
LINKWISE_EXPORT casadi_int {name}_n_out(void) {{ return {n_out}; }}
LINKWISE_EXPORT const char *{name}_name_in(casadi_int i)
{{
    static const char *const names[] = {{{names_in}}};
    return i >= 0 && i < {n_in} ? names[i] : 0;
}}
LINKWISE_EXPORT const char *{name}_name_out(casadi_int i)
{{
    static const char *const names[] = {{{names_out}}};
    return i >= 0 && i < {n_out} ? names[i] : 0;
}}
LINKWISE_EXPORT const casadi_int *{name}_sparsity_in(casadi_int i)
{{
{sparsities_in}
    return i >= 0 && i < {n_in} ? all[i] : 0;
}}
LINKWISE_EXPORT const casadi_int *{name}_sparsity_out(casadi_int i)
{{
{sparsities_out}
    return i >= 0 && i < {n_out} ? all[i] : 0;
}}
LINKWISE_EXPORT int {name}_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw,
                                casadi_int *sz_w)
{{
    if (sz_arg) *sz_arg = {n_in};
    if (sz_res) *sz_res = {n_out};
    if (sz_iw) *sz_iw = 0;
    if (sz_w) *sz_w = {work};
    return 0;
}}
LINKWISE_EXPORT int {name}(const double **arg, double **res, casadi_int *iw, double *w, int mem)
{{
    static const double zeros[{zeros}] = {{0}};
    (void)iw;
    (void)mem;
    (void)w;
    {program}({arguments});
    return 0;
}}
"""

TOP = """\
typedef long long int casadi_int;

#if defined(_WIN32)
#define LINKWISE_EXPORT __declspec(dllexport)
#else
#define LINKWISE_EXPORT
#endif

/* Functions without a declaration elsewhere: CasADi finds them by name. */
{declarations}
"""


class Function(NamedTuple):
    """One function of CasADi: its arguments and results, and the program that computes it."""

    name: str
    arguments: tuple[tuple[str, int, int], ...]  # name, rows, columns
    results: tuple[tuple[str, int, int], ...]
    program: Program
    ports: tuple[int, ...]  # which argument each input of the program is
    outputs: tuple[int, ...]  # which result each output of the program is; all others are zero


def casadi_source(robot: Robot, calls: Calls, functions: Sequence[Wanted], order: int) -> str:
    """The file ``arm_casadi.c``."""
    made = [f for one in functions for f in _functions(calls, one, order)]
    ops = {node.op for f in made for node in f.program.nodes()}
    texts = [own_function(f.program, robot.dialect, "static void", f"{f.name}_of") for f in made]
    declared = "\n".join(line for f in made for line in _declarations(f.name))
    return "\n".join(
        (
            comment(f"For casadi.external and acados. {robot.made}"),
            HEAD,
            TOP.format(declarations=declared),
            helpers(robot, ops),
            *(f"{with_unused(f.program, text)}\n{_wrapper(f)}"
              for f, text in zip(made, texts, strict=True)),
        )
    )  # fmt: skip


def _functions(calls: Calls, one: Wanted, order: int) -> Iterator[Function]:
    """A function and its derivatives up to an order."""
    if one.program.arrays or one.key.status:
        raise NoProgram(
            f"export: {one.title} for CasADi: expected a function without status, of a robot "
            "whose equations are written out (robot.with_codegen('unrolled'))"
        )
    base = node(calls, one.key)
    shape = base.slots[0].shape
    rows, columns = (shape[0] if shape else 1), prod(shape[1:])
    name = f"{one.name}{SUFFIX}"
    given = tuple((word(x), port.size, 1) for x, port in
                  zip(names(base.ports, one.key.external), base.ports, strict=True))  # fmt: skip
    own = _by_columns(base, [(rows, columns)])
    result = ("result", rows, columns)
    k = len(given)
    yield Function(name, given, (result,), _program(own), tuple(range(k)), (0,))
    if order < 1:
        return
    nominal = (*given, ("out_result", rows, columns))
    size = rows * columns
    blocks = tuple((f"jac_result_{x}", size, n) for x, n, _ in given)
    yield _jacobian(f"jac_{name}", own, nominal, blocks, range(k), range(k))
    weighted = (*nominal, ("adj_result", rows, columns))
    gradient = tuple((f"adj_{x}", n, 1) for x, n, _ in given)
    places = (*range(k), k + 1)
    yield Function(f"adj1_{name}", weighted, gradient, _program(own.vjp), places, tuple(range(k)))
    if order < 2:
        return
    blocks = tuple((f"jac_{y}_{x}", m, n * c) for y, m, _ in gradient for x, n, c in weighted)
    outputs = [i * len(weighted) + place for i in range(k) for place in places]
    results = tuple((f"out_{y}", m, 1) for y, m, _ in gradient)
    yield _jacobian(f"jac_adj1_{name}", own.vjp, (*weighted, *results), blocks, places, outputs)


def _jacobian(
    name: str,
    of: Node,
    arguments: tuple[tuple[str, int, int], ...],
    results: tuple[tuple[str, int, int], ...],
    ports: Sequence[int],
    outputs: Sequence[int],
) -> Function:
    own = of.jacobian
    turned = _by_columns(own, [(slot.shape[0], slot.shape[1]) for slot in own.slots])
    return Function(name, arguments, results, _program(turned), tuple(ports), tuple(outputs))


def _by_columns(of: Node, shapes: Sequence[tuple[int, int]]) -> Node:
    """A node whose results, matrices of these shapes, are written column by column."""

    def trace(graph: Graph, inputs: Values) -> Values:
        return [
            [x[i * columns + k] for k in range(columns) for i in range(rows)]
            for x, (rows, columns) in zip(of.trace(graph, inputs), shapes, strict=True)
        ]

    return Node(of.calls, of.name, (*of.key, "columns"), of.ports, of.slots, trace)


def _program(of: Node) -> Program:
    return together(of.program())


def _declarations(name: str) -> Iterator[str]:
    for what in ("casadi_int {}_n_in(void)", "casadi_int {}_n_out(void)",
                 "const char *{}_name_in(casadi_int i)", "const char *{}_name_out(casadi_int i)",
                 "const casadi_int *{}_sparsity_in(casadi_int i)",
                 "const casadi_int *{}_sparsity_out(casadi_int i)",
                 "int {}_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, "
                 "casadi_int *sz_w)",
                 "int {}(const double **arg, double **res, casadi_int *iw, double *w, int mem)",
                 ):  # fmt: skip
        yield f"LINKWISE_EXPORT {what.format(name)};"


def _wrapper(f: Function) -> str:
    sizes = [f.results[k][1] * f.results[k][2] for k in f.outputs]
    starts = [0, *accumulate(sizes)]
    arguments = [f"arg[{k}] ? arg[{k}] : zeros" for k in f.ports]
    results = [f"res[{k}] ? res[{k}] : w + {at}" for k, at in zip(f.outputs, starts, strict=False)]
    dense = set(f.outputs)
    return WRAPPER.format(
        name=f.name,
        n_in=len(f.arguments),
        n_out=len(f.results),
        names_in=_quoted(x for x, _, _ in f.arguments),
        names_out=_quoted(x for x, _, _ in f.results),
        sparsities_in=_sparsities([(m, n, True) for _, m, n in f.arguments]),
        sparsities_out=_sparsities([(m, n, k in dense) for k, (_, m, n) in enumerate(f.results)]),
        work=starts[-1],
        zeros=max(m * n for _, m, n in f.arguments),
        program=f"{f.name}_of",
        arguments=", ".join((*arguments, *results)),
    )


def _quoted(texts: Iterator[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)


def _sparsities(shapes: Sequence[tuple[int, int, bool]]) -> str:
    """Rows and columns, then 1 where all are there; else where each column begins: none is."""
    lines = [
        f"    static const casadi_int s{k}[] = {{{', '.join(map(str, (m, n, *rest)))}}};"
        for k, (m, n, dense) in enumerate(shapes)
        for rest in ([1] if dense else [0] * (n + 1),)
    ]
    all_ = ", ".join(f"s{k}" for k in range(len(shapes)))
    return "\n".join((*lines, f"    static const casadi_int *const all[] = {{{all_}}};"))
