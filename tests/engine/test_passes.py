"""The passes from equations to a program, each on its own, by the interpreter: nothing compiles.

`tools/mutate.py` changes these passes in small ways and runs this file among the first; what it
found unnoticed has a test here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.backends.reference import interpret
from linkwise.model.parameters import Parameter, inertial_parameters
from linkwise.spatial import atan2, select, sqrt
from linkwise.spatial.scalar import known, reciprocal, repeat
from linkwise.trace.assemble import needed
from linkwise.trace.expr import ARITY, Expr, Graph, TooManyNodes, reachable
from linkwise.trace.fuse import fuse
from linkwise.trace.program import (
    CONFIGURATION,
    FLAGS,
    NUMBERS,
    Block,
    OperationCount,
    Output,
    Port,
    Program,
    Repeat,
)
from linkwise.trace.schedule import cycles, latency, peak_live, schedule
from linkwise.trace.status import status_of
from linkwise.trace.tracer import Task, evaluate, flatten, trace, trace_jacobian
from linkwise.trace.verify import verify

STATES = 5


@cache
def robot(base: str = "fixed") -> lw.Robot:
    """A branch, a slide, a rotor: small, and none of its numbers is simple."""
    body = {"mass": 1.3, "com": (0.1, -0.2, 0.15), "inertia": (0.11, 0.01, 0.02, 0.12, 0.03, 0.13)}
    builder = lw.Builder("small", gravity=(0.3, -0.4, -9.7))
    for name in ("base", "arm", "slide", "hand"):
        builder.link(name, **body)
    place = {"xyz": (0.2, 0.1, -0.3), "rpy": (0.4, -0.3, 0.5), "axis": (0.6, 0.0, 0.8)}
    builder.joint("shoulder", "revolute", parent="base", child="arm", **place)
    builder.joint("rail", "prismatic", parent="arm", child="slide", armature=0.2, **place)
    builder.joint("wrist", "revolute", parent="arm", child="hand", **place)
    return builder.build(base=base)


def task(function: str, method: str, base: str = "fixed", **options: Any) -> Task:
    algorithm = FUNCTIONS[function][method]
    frame = robot(base).tree.frames["hand"] if algorithm.takes_frame else None
    return Task(algorithm, frame, **options)


def inputs(what: Task, base: str = "fixed") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    found = {p.name: rng.uniform(-2, 2, (STATES, p.size)) for p in what.ports(robot(base).tree)}
    return found | {"q": robot(base).random_q(seed=5, size=STATES)}


def by_floats(what: Task, values: dict[str, np.ndarray], base: str = "fixed") -> np.ndarray:
    """The equations on Python's numbers, state by state."""
    rows = [[v[k].tolist() for v in values.values()] for k in range(STATES)]
    return np.array([list(flatten(evaluate(what, robot(base).tree, *row))) for row in rows])


# -- a program computes what its equations do ----------------------------------------------------

TASKS: dict[str, Callable[[], Task]] = {
    "inverse dynamics": lambda: task("inverse_dynamics", "rnea"),
    "forward dynamics": lambda: task("forward_dynamics", "crba"),
    "articulated bodies": lambda: task("forward_dynamics", "aba"),
    "mass matrix": lambda: task("mass_matrix", "crba"),
    "energy": lambda: task("kinetic_energy", next(iter(FUNCTIONS["kinetic_energy"]))),
    "Jacobian in base axes": lambda: task("jacobian", "sweep"),
    "Jacobian in body axes": lambda: task("jacobian", "sweep", axes="body"),
    "wrenches": lambda: task("bias", "rnea", external=tuple(
        robot().tree.frames[name] for name in ("hand", "slide"))),
}  # fmt: skip


@pytest.mark.parametrize("name", TASKS)
def test_a_program_computes_what_its_equations_do(name: str) -> None:
    what = TASKS[name]()
    program = verify(trace(what, robot().tree))
    values = inputs(what)
    assert [p.name for p in program.inputs] == list(values)
    found = interpret(program, values)["result"]
    assert found.shape == (STATES, *what.algorithm.output_shape(robot().tree))
    expected = by_floats(what, values)
    np.testing.assert_allclose(found.reshape(STATES, -1), expected, 1e-11, 1e-12)


def test_damping_is_the_last_argument_and_matters() -> None:
    what = Task(
        next(a for a in FUNCTIONS["operational_inertia"].values() if a.takes_damping),
        robot("free").tree.frames["hand"],
        damped=True,
    )
    values = inputs(what, "free") | {"damping": np.full((STATES, 6), 0.3)}
    program = verify(trace(what, robot("free").tree))
    assert program.inputs[-1].name == "damping"
    found = interpret(program, values)["result"].reshape(STATES, -1)
    np.testing.assert_allclose(found, by_floats(what, values, "free"), 1e-9, 1e-10)
    other = interpret(program, values | {"damping": np.full((STATES, 6), 0.6)})["result"]
    assert not np.allclose(found, other.reshape(STATES, -1), 1e-3)


def test_constants_of_the_robot_can_be_inputs() -> None:
    plain = task("inverse_dynamics", "rnea")
    values, tree = inputs(plain), robot().tree
    expected = interpret(trace(plain, tree), values)["result"]
    numbers = {"inertia": inertial_parameters(tree).ravel(), "gravity": list(tree.gravity)}
    given = {name: np.tile(x, (STATES, 1)) for name, x in numbers.items()}
    for names in (("inertia",), ("gravity",), ("inertia", "gravity")):
        what = task("inverse_dynamics", "rnea", parameters=tuple(map(Parameter, names)))
        program = verify(trace(what, tree))
        assert [(p.name, p.size) for p in program.inputs[3:]] == [
            (name, {"inertia": 10 * tree.n_links, "gravity": 3}[name]) for name in names
        ]
        own = values | {name: given[name] for name in names}
        np.testing.assert_allclose(interpret(program, own)["result"], expected, 1e-12, 1e-12)
        twice = own | {names[0]: 2.0 * given[names[0]]}
        assert not np.allclose(interpret(program, twice)["result"], expected, 1e-3)


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_a_program_of_derivatives(mode: Any) -> None:
    """By complex steps; inputs that are not named are constants."""
    what = task("inverse_dynamics", "rnea")
    values, h = inputs(what), 1e-30
    program = verify(trace_jacobian(what, robot().tree, ("q", "qdd"), mode))
    assert program.name == "inverse_dynamics[rnea], derivatives by q, qdd"
    assert [(o.name, o.shape) for o in program.outputs] == [("d_q", (3, 3)), ("d_qdd", (3, 3))]
    found, plain = interpret(program, values), trace(what, robot().tree)
    for name in ("q", "qdd"):
        for k in range(3):
            moved = values[name] + 1j * h * np.eye(3)[k]
            slope = interpret(plain, values | {name: moved})["result"].imag / h
            np.testing.assert_allclose(found[f"d_{name}"][:, :, k], slope, 1e-11, 1e-11)


def test_pivots_that_nothing_needs_are_not_watched() -> None:
    program = trace(task("forward_dynamics", "crba"), robot().tree)
    (pivot,) = program.pivots  # the others are constants
    assert pivot in program.regions[-1].nodes  # type: ignore[union-attr]
    assert not trace(task("inverse_dynamics", "rnea"), robot().tree).pivots


# -- loops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ccg", "pcg"])
def test_a_traced_iteration_solves_and_says_how(method: str) -> None:
    what = task("forward_dynamics", method)
    program = verify(trace(what, robot().tree))
    kinds = [type(region) for region in program.regions]
    assert kinds.count(Repeat) == 1 and kinds[0] is kinds[-1] is Block
    start = {"qdd0": np.zeros((STATES, 3)), "tol": np.full((STATES, 1), 1e-12)}
    values = inputs(what) | start | {"limit": np.full((STATES, 1), 50.0)}
    found = interpret(program, values)
    direct = task("forward_dynamics", "crba")
    expected = by_floats(direct, {k: values[k] for k in ("q", "qd", "tau")})
    np.testing.assert_allclose(found["result"], expected, 1e-8, 1e-9)
    assert (found["residual"] <= 1e-9).all()
    assert ((found["iterations"] >= 1) & (found["iterations"] <= 6)).all()
    once = interpret(program, values | {"limit": np.ones((STATES, 1))})
    assert (once["iterations"] == 1).all()
    assert (once["residual"] > found["residual"]).all()


def test_what_is_known_before_a_loop_is_computed_before_it() -> None:
    program = trace(task("forward_dynamics", "ccg"), robot().tree)
    (loop,) = (region for region in program.regions if isinstance(region, Repeat))
    before = program.regions[0]
    assert isinstance(before, Block)
    made = {node.id for node in before.nodes}
    assert not made & {node.id for node in loop.body.nodes}
    carried = {carry.value.id for carry in loop.carries}
    changing: set[int] = set(carried)
    for node in loop.body.nodes:
        assert any(a.id in changing for a in node.args), f"{node!r} could be computed before"
        changing.add(node.id)


# -- status --------------------------------------------------------------------------------------


def test_a_status_says_what_is_wrong_with_each_state() -> None:
    what = task("forward_dynamics", "crba", "free", status=True)
    values = {k: v.copy() for k, v in inputs(what, "free").items()}
    values["qd"][1, 2] = np.inf
    values["q"][2, :4] *= 1.001
    values["tau"][3] = 1e308
    values["qd"][3] = 1e200
    values["q"][4, 0] = np.nan
    values["q"][4, 1:4] = 0.0
    found = interpret(verify(trace(what, robot("free").tree)), values)
    told = [lw.Status(int(x)) for x in found["status"]]
    S = lw.Status
    assert told == [S.OK, S.NOT_FINITE, S.NOT_UNIT, S.OVERFLOW, S.NOT_FINITE]


@pytest.mark.parametrize(
    ("units", "told"), [(63, lw.Status.SINGULAR), (65, lw.Status.OK), (-1e9, lw.Status.SINGULAR)]
)
def test_a_pivot_counts_as_zero_within_rounding_of_its_scale(units: float, told: int) -> None:
    graph = Graph()
    pivot, scale = graph.input("x", 0), graph.input("x", 1)
    graph.pivots = [(pivot, scale)]
    status = status_of(graph, robot().tree, [Port("x", 2)], [[pivot, scale]], [pivot])
    output = Output("status", (), (status,), FLAGS)
    program = verify(Program("s", (Port("x", 2),), (Block(needed([status])),), (output,)))
    x = np.array([[units * np.finfo(float).eps * 8.0, 8.0]])
    assert interpret(program, {"x": x})["status"].tolist() == [told]


def told_of(graph: Graph, tree: Any, results: list[Expr], *states: tuple[float, ...]) -> list[int]:
    """The status of states of an input x, which is the first argument."""
    size = len(states[0])
    x = [graph.input("x", k) for k in range(size)]
    port = Port("x", size, kind=CONFIGURATION if size == tree.nq else NUMBERS)
    status = status_of(graph, tree, [port], [x], results)
    output = Output("status", (), (status,), FLAGS)
    program = verify(Program("s", (port,), (Block(needed([status])),), (output,)))
    return interpret(program, {"x": np.array(states)})["status"].tolist()  # type: ignore[no-any-return]


def test_a_singular_state_is_not_told_to_overflow() -> None:
    graph = Graph()
    x = graph.input("x", 0)
    graph.pivots = [(x, graph.one)]
    assert told_of(graph, robot().tree, [1.0 / x], (0.0, 0.0), (1.0, 0.0), (1e-310, 1.0)) == [
        lw.Status.SINGULAR, lw.Status.OK, lw.Status.SINGULAR,
    ]  # fmt: skip
    graph.pivots = [(graph.const(float("nan")), graph.zero)]
    assert told_of(graph, robot().tree, [x], (1.0, 0.0)) == [lw.Status.SINGULAR]


def ball() -> lw.Robot:
    builder = lw.Builder("ball")
    for name in ("base", "ball"):
        builder.link(name, mass=1.0, inertia=(0.1, 0.2, 0.3))
    builder.joint("socket", "spherical", parent="base", child="ball")
    return builder.build()


@pytest.mark.parametrize(("off", "told"), [(0.9e-6, 0), (1.1e-6, 2), (-0.9e-6, 0), (-1.1e-6, 2)])
def test_a_quaternion_may_be_a_millionth_off(off: float, told: int) -> None:
    graph = Graph()
    q = (0.5 * (1 + off),) * 4
    assert told_of(graph, ball().tree, [graph.one], q) == [told]
    assert status_of(Graph(), ball().tree, [], [], []).value == 0.0, "no inputs at all"
    assert told_of(Graph(), ball().tree, [], (9.0,) * 3) == [0], "not a configuration"


def test_the_bits_of_a_status() -> None:
    """They are written down by users: numbers that stay."""
    named = {bit.name: bit.value for bit in lw.Status}
    assert named == {
        "NOT_FINITE": 1, "NOT_UNIT": 2, "SINGULAR": 4, "NOT_CONVERGED": 8, "OVERFLOW": 16,
        "LIMIT": 32, "NOT_RIGID": 64, "REDUNDANT": 128, "LOOP_OPEN": 256, "PULLING": 512,
    }  # fmt: skip
    assert lw.Status.OK == 0


# -- folding -------------------------------------------------------------------------------------


def folded() -> dict[str, tuple[Expr, Expr]]:
    """Expressions, and the nodes that they become."""
    g = Graph()
    x, y = g.input("x", 0), g.input("x", 1)
    two, three, neg = g.const(2.0), g.const(3.0), -x
    return {
        "0 + x": (0.0 + x, x), "x + 0": (x + 0.0, x), "x - 0": (x - 0.0, x), "0 - x": (0.0 - x, -x),
        "x - x": (x - x, g.zero), "x * 0": (x * 0.0, g.zero), "0 * x": (0.0 * x, g.zero),
        "x * 1": (x * 1.0, x), "1 * x": (1.0 * x, x), "x * -1": (x * -1.0, -x),
        "a sign of a sign": (-neg, x), "a negative factor": (-2.0 * x, -(2.0 * x)),
        "factors": (2.0 * (x * 3.0), 6.0 * x), "factor of a sign": (2.0 * -x, -(2.0 * x)),
        "x + -y": (x + -y, x - y), "-x + y": (-x + y, y - x), "x - -y": (x - -y, x + y),
        "-x - y": (-x - y, -(x + y)), "y - x": (y - x, -(x - y)),
        "(x - y) + y": ((x - y) + y, x), "y + (x - y)": (y + (x - y), x),
        "x - (x - y)": (x - (x - y), y), "(x + y) - x": ((x + y) - x, y),
        "(x + y) - y": ((x + y) - y, x),
        "x y": (x * y, y * x), "x + y": (x + y, y + x), "-x y": (-x * y, -(x * y)),
        "x -y": (x * -y, -(x * y)),
        "x 1/x": (x * (1.0 / x), g.one), "1/x x": ((1.0 / x) * x, g.one),
        "x (y/x)": (x * (y * (1.0 / x)), y), "(y/x) x": (((1.0 / x) * y) * x, y),
        "x / 1": (x / 1.0, x), "0 / x": (0.0 / x, g.zero), "x / x": (x / x, g.one),
        "x / -y": (x / -y, -(x / y)), "-x / y": (-x / y, -(x / y)), "x / 4": (x / 4.0, 0.25 * x),
        "2 + 3": (two + three, g.const(5.0)), "2 - 3": (two - three, g.const(-1.0)),
        "2 * 3": (two * three, g.const(6.0)), "3 / 2": (three / two, g.const(1.5)),
        "rounded once": (g.const(3.0) / g.const(5.0), g.const(3 / 5)),
        "-2": (-two, g.const(-2.0)), "-0": (-g.zero, g.zero),
        "1 / 2": (reciprocal(two), g.const(0.5)),
    }  # fmt: skip


@pytest.mark.parametrize("name", folded())
def test_what_need_not_be_computed_becomes_no_node(name: str) -> None:
    found, expected = folded()[name]
    assert found is expected


def test_what_must_be_computed_does() -> None:
    graph = Graph()
    x, y, z = (graph.input("x", k) for k in range(3))
    kept = {
        "add": x + y, "sub": x - y, "mul": x * y, "div": y / x, "neg": -x, "sqrt": sqrt(x),
        "select": select(x, y, z), "atan2": atan2(x, y),
    }  # fmt: skip
    for op, node in kept.items():
        assert node.op == op
    assert [a.value for a in (x - y).args] == [("x", 0), ("x", 1)]
    assert (x * (z / y)).op == "mul" and (x * (2.0 / x)).op == "mul", "only 1/x cancels"
    assert ((x + y) - z).op == "sub" and ((x - y) + x).op == "add"
    assert repr(x + y) == f"%{(x + y).id} = add(%{x.id}, %{y.id})"
    assert repr(x) == f"%{x.id} = input(('x', 0))"


def test_pivots_are_remembered_with_their_scales() -> None:
    graph = Graph()
    x = graph.input("x", 0)
    assert reciprocal(x, 2.0) is 1.0 / x
    assert reciprocal(graph.const(4.0)).value == 0.25
    assert graph.pivots == [(x, graph.const(2.0))]
    assert np.isnan(reciprocal(graph.const(-1.0)).value)


def test_a_trace_has_at_most_so_many_nodes() -> None:
    graph = Graph(most=4)  # 0 and 1 are two of them
    x = graph.input("x", 0)
    y = x + 1.0
    assert graph.input("x", 0) is x and x + 1.0 is y
    with pytest.raises(TooManyNodes):
        graph.input("x", 1)


# -- multiply-adds -------------------------------------------------------------------------------

FUSED: dict[str, tuple[Callable[..., list[Expr]], list[str]]] = {
    "a product and a sum": (lambda a, b, c, d: [a * b + c], ["fma"]),
    "a sum and a product": (lambda a, b, c, d: [c + a * b], ["fma"]),
    "a product less something": (lambda a, b, c, d: [a * b - c], ["fms"]),
    "something less a product": (lambda a, b, c, d: [c - a * b], ["fnma"]),
    "two products: one is left": (lambda a, b, c, d: [a * b + c * d], ["fma", "mul"]),
    "a product needed twice": (lambda a, b, c, d: [a * b + c, a * b + d], ["add", "add", "mul"]),
    "a product that is a result": (lambda a, b, c, d: [a * b, a * b + c], ["add", "mul"]),
    "a product that is a result and needed twice": (
        lambda a, b, c, d: [a * b, a * b + c, a * b + d], ["add", "add", "mul"],
    ),
    "no product": (lambda a, b, c, d: [a + b - c], ["add", "sub"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_which_products_are_fused(name: str) -> None:
    make, ops = FUSED[name]
    graph = Graph()
    values = [graph.input("x", k) for k in range(4)]
    nodes = [n for n in reachable(fuse(graph, make(*values))) if n.op != "input"]
    assert sorted(n.op for n in nodes) == ops


def test_the_product_that_is_ready_last_is_fused() -> None:
    """The other one is computed while its factors are waited for."""
    graph = Graph()
    a, b, c, d = (graph.input("x", k) for k in range(4))
    for total in ((a / b) * c + a * d, a * d + (a / b) * c, a * d - (a / b) * c):
        (fused,) = fuse(graph, [total])
        assert fused.op in ("fma", "fnma") and "div" in [factor.op for factor in fused.args[:2]]
        assert fused.args[2].op == "mul"


@pytest.mark.parametrize("seed", range(10))
def test_fused_programs_compute_the_same(seed: int) -> None:
    rng, graph = np.random.default_rng(seed), Graph()
    nodes: list[Expr] = [graph.input("x", k) for k in range(4)]
    for _ in range(40):
        a, b = (nodes[k] for k in rng.integers(len(nodes), size=2))
        nodes.append([a + b, a - b, a * b, -(a - b)][rng.integers(4)] * 0.5)
    results = nodes[-6:]
    x = rng.uniform(-1, 1, 4)

    def value(root: Expr) -> float:
        known: dict[int, float] = {}
        for node in reachable([root]):
            args = [known[a.id] for a in node.args]
            known[node.id] = _float_value(node, args, x)
        return known[root.id]

    for plain, fused in zip(results, fuse(graph, results), strict=True):
        assert value(fused) == pytest.approx(value(plain), rel=1e-12, abs=1e-13)


def _float_value(node: Expr, args: list[float], x: np.ndarray) -> float:
    if node.op == "input":
        return float(x[node.value[1]])
    if node.op == "const":
        return float(node.value)
    return {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
        "neg": lambda a: -a, "fma": lambda a, b, c: a * b + c, "fms": lambda a, b, c: a * b - c,
        "fnma": lambda a, b, c: c - a * b,
    }[node.op](*args)  # fmt: skip


# -- order ---------------------------------------------------------------------------------------


def test_a_sum_of_products_adds_each_as_it_comes() -> None:
    graph = Graph()
    x = [graph.input("x", k) for k in range(16)]
    total = x[0] * x[1]
    for k in range(2, 16, 2):
        total = total + x[k] * x[k + 1]
    order = schedule(needed([total]))
    assert peak_live(order) == 3  # the sum so far, a product, and their sum
    wide = tuple(sorted(order, key=lambda n: (n.op == "add", n.id)))
    assert peak_live(wide) == 9


def test_chains_of_work_stay_together() -> None:
    """Of two results that share nothing, one is finished before the other is begun."""
    graph = Graph()
    chains = []
    for k in range(2):
        value = graph.input("x", k)
        for step in range(5):
            value = value / (value + float(step + 2))
        chains.append(value)
    order = [n.id for n in schedule(needed(chains)) if n.op not in ("const", "input")]
    own = [{n.id for n in reachable([c]) if n.op not in ("const", "input")} for c in chains]
    assert {frozenset(order[:10]), frozenset(order[10:])} == set(map(frozenset, own))


def test_what_is_known_is_not_computed_again() -> None:
    graph = Graph()
    a, b = graph.input("x", 0), graph.input("x", 1)
    product = a * b
    total = product + a
    known = frozenset(n.id for n in needed([product]))
    assert [n.op for n in needed([total], known)] == ["add"]


def test_values_alive_are_counted_between_making_and_last_use() -> None:
    graph = Graph()
    a, b = graph.input("x", 0), graph.input("x", 1)
    first, second = a * b, a + b
    both = first - second
    assert peak_live(schedule(needed([both]))) == 2
    assert peak_live(schedule(needed([first]))) <= 1


@pytest.mark.parametrize(
    ("op", "time"),
    [("add", 3), ("mul", 3), ("neg", 3), ("fma", 4), ("fms", 4), ("fnma", 4), ("div", 13),
     ("sqrt", 15), ("sin", 0), ("cos", 0), ("input", 0), ("const", 0), ("read", 0), ("carry", 0)],
)  # fmt: skip
def test_how_long_an_operation_takes(op: str, time: int) -> None:
    graph = Graph()
    args = [graph.input("x", k) for k in range(ARITY[op])]
    node = graph.node(op, *args, value=None if args else 1.0)
    assert latency(node) == time == cycles((*args, node))


def test_two_operations_start_in_a_cycle() -> None:
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    products = tuple(graph.node("mul", x, graph.const(float(k))) for k in range(2, 7))
    for count, time in enumerate((3, 3, 4, 4, 5), 1):
        assert cycles(products[:count]) == time
    last = graph.node("add", products[4], y)
    assert cycles((*products, last)) == 8, "waits for the fifth product, known in cycle 5"
    assert cycles((products[0], graph.node("neg", products[0]), *products[1:3])) == 7


def test_everything_that_is_counted_is_iterated() -> None:
    step = OperationCount(1, 2, 3, 4, 5, 6, 7)
    total = dataclasses.replace(OperationCount(10, 20, 30, 40, 50, 60, 70), iteration=step)
    assert total.iterated(1) == total and step.iterated(9) is step
    assert dataclasses.astuple(total.iterated(3))[:7] == (12, 24, 36, 48, 60, 72, 84)


def test_a_choice_by_a_constant_is_made_at_once() -> None:
    graph = Graph()
    x, y = graph.input("x", 0), graph.input("x", 1)
    for condition, taken in ((2.0, x), (0.5, x), (0.0, y), (-1.0, y)):
        assert select(graph.const(condition), x, y) is taken
    assert select(x, y, y) is y


def test_a_node_is_small() -> None:
    """Long traces have millions: a node has no dictionary of its own."""
    assert not hasattr(Graph().zero, "__dict__")


def test_angles_of_constants_are_folded() -> None:
    graph = Graph()
    x, one, two = graph.input("x", 0), graph.one, graph.const(2.0)
    assert atan2(one, two) is graph.const(np.arctan2(1.0, 2.0))
    assert atan2(x, two).args == (x, two) and atan2(two, x).args == (two, x)


def test_a_pivot_without_a_scale_has_the_scale_zero() -> None:
    graph = Graph()
    x = graph.input("x", 0)
    reciprocal(x)
    assert graph.pivots == [(x, graph.zero)]


def test_no_traced_scalar_is_known() -> None:
    """Equations must not branch on one: a program is for every state."""
    graph = Graph()
    assert known(2.0) is True
    assert known(graph.input("x", 0)) is False and known(graph.one) is False


def test_roots_of_constants_are_folded() -> None:
    graph = Graph()
    assert sqrt(graph.const(4.0)) is graph.const(2.0)


def test_every_loop_that_ends_by_a_test_carries_values_of_its_own() -> None:
    graph = Graph()
    x = graph.input("x", 0)
    ends = [repeat(lambda state: ([state[0] + 1.0], x), [x], 3.0) for _ in range(2)]
    assert ends[0][0] is not ends[1][0]
