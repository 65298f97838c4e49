"""Counted loops: walks over links and rollouts from the very bodies that are unrolled elsewhere."""

from __future__ import annotations

import ctypes
import dataclasses
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.algorithms.aba import aba
from linkwise.algorithms.rates import Rates, at_rest, move
from linkwise.algorithms.rnea import load
from linkwise.backends.base import BATCH
from linkwise.backends.cstyle.render import render_c
from linkwise.backends.llvm.backend import Llvm
from linkwise.backends.llvm.target import host
from linkwise.backends.reference import interpret
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Mat3, RigidInertia, Rotation, Sym3, Transform, Vec3, rate_matrix
from linkwise.study.generic import generic_chain
from linkwise.sweep import NO_JOINT
from linkwise.trace import rolled
from linkwise.trace.expr import At, Expr, Graph, Write
from linkwise.trace.guard import guard
from linkwise.trace.program import Array, Block, For, Port, Program, Slot, count_operations
from linkwise.trace.rolled import Step, loop
from linkwise.trace.tracer import Task, trace
from linkwise.trace.verify import IllegalProgram, verify

# -- a walk over links: inverse dynamics ----------------------------------------------------------

CONSTANTS = 25  # of a link: placement 12, inertia 10, rotor, damping, friction
STATE = 9  # w, dw, a


def constants(link: Link) -> list[float]:
    """A link's numbers in the order in which `link_of` reads them."""
    body, second = link.inertia, link.inertia.second
    axes = [link.placement.rotate(Vec3(*unit)) for unit in np.eye(3).tolist()]
    turn = [getattr(column, k) for k in "xyz" for column in axes]
    inertia = [getattr(second, k) for k in ("xx", "xy", "xz", "yy", "yz", "zz")]
    place, first = ([getattr(v, k) for k in "xyz"] for v in (link.placement.r, body.h))
    rest = [*link.armature, link.damping, link.friction]
    return [float(x) for x in (*place, *turn, body.m, *first, *inertia, *rest)]


def link_of(kind: Link, numbers: Sequence[Expr]) -> Link:
    """A link of the same kind whose numbers are read."""
    place, rows, (m, *h) = numbers[:3], numbers[3:12], numbers[12:16]
    turn = Rotation(Mat3(*(Vec3(*rows[k : k + 3]) for k in (0, 3, 6))))
    return dataclasses.replace(
        kind,
        placement=Transform(Vec3(*place), (turn,)),
        inertia=RigidInertia(m, Vec3(*h), Sym3(*numbers[16:22])),
        armature=(numbers[22],),
        damping=numbers[23],
        friction=numbers[24],
    )


def entries(*vectors: Vec3) -> list[Expr]:
    return [getattr(v, k) for v in vectors for k in "xyz"]


class Walk:
    """Inverse dynamics of revolute joints: one body outward, one inward, whatever the tree."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self.kind, self.n = tree, tree.links[0], len(tree.links)
        self.parents = [link.parent + 1 for link in tree.links]  # row 0 is the base
        self.inward = list(reversed(range(self.n)))

    def link(self, step: Step, links: Sequence[int]) -> Link:
        where = [CONSTANTS * i for i in links]
        return link_of(self.kind, [step.read("links", c, where=where) for c in range(CONSTANTS)])

    def vectors(self, step: Step, rows: Sequence[int]) -> list[Vec3]:
        where = [STATE * row for row in rows]
        read = [step.read("motions", c, where=where) for c in range(STATE)]
        return [Vec3(*read[k : k + 3]) for k in (0, 3, 6)]

    def rest(self, step: Step, _: list[Expr]) -> list[Expr]:
        base = at_rest(self.tree.base_acceleration)
        for c, value in enumerate(entries(base.w, base.dw, base.a)):
            step.write("motions", value, c)
        return []

    def clear(self, step: Step, _: list[Expr]) -> list[Expr]:
        for c in range(6):
            step.write("forces", 0.0, c, 6)
        return []

    def outward(self, step: Step, _: list[Expr]) -> list[Expr]:
        link, (w, dw, a) = self.link(step, range(self.n)), self.vectors(step, self.parents)
        q, qd, qdd = ([step.read(name, 0, 1)] for name in ("q", "qd", "qdd"))
        m = move(link, Rates(NO_JOINT, w, dw, a, rate_matrix(w, dw)), q, qd, qdd)
        for c, value in enumerate(entries(m.w, m.dw, m.a)):
            step.write("motions", value, STATE + c, STATE)
        return []

    def homeward(self, step: Step, _: list[Expr]) -> list[Expr]:
        link, last = self.link(step, self.inward), self.n - 1
        w, dw, a = self.vectors(step, [i + 1 for i in self.inward])
        q, qd, qdd = ([step.read(name, last, -1)] for name in ("q", "qd", "qdd"))
        f = [step.read("forces", 6 * self.n + c, -6) for c in range(6)]
        m = Rates(link.joint_state(q), w, dw, a, rate_matrix(w, dw))
        (tau,), up = load(link, Force(Vec3(*f[:3]), Vec3(*f[3:])), m, Force.zero(), qd, qdd)
        step.write("tau", tau, last, -1)
        where = [6 * self.parents[i] for i in self.inward]
        for c, value in enumerate(entries(up.ang, up.lin)):
            step.write("forces", value, c, where=where, add=True)
        return []


def rolled_rnea(tree: Tree) -> Program:
    graph, walk, n = Graph(), Walk(tree), len(tree.links)
    bodies = ((1, walk.rest), (n + 1, walk.clear), (n, walk.outward), (n, walk.homeward))
    for count, body in bodies:
        loop(graph, count, [], body)
    table = tuple(x for link in tree.links for x in constants(link))
    arrays = (Array("links", n * CONSTANTS, table), Array("motions", (n + 1) * STATE),
              Array("forces", (n + 1) * 6))  # fmt: skip
    ports = [Port(name, n) for name in ("q", "qd", "qdd")]
    return rolled.program(graph, "rolled", ports, arrays, [Slot("tau", (n,))])


def branching(n: int) -> lw.Robot:
    """Revolute joints, every third one on the link before last."""
    b, rng = lw.Builder("tree"), np.random.default_rng(n)
    for i in range(n):
        parent = f"l{i - 1 - (i % 3 == 2)}" if i else "base"
        b = b.link(f"l{i}", mass=1.0 + 0.1 * i, com=rng.uniform(-0.3, 0.3, 3),
                   inertia=rng.uniform(0.05, 0.1, 3))  # fmt: skip
        b = b.joint(f"j{i}", "revolute", parent=parent, child=f"l{i}", axis=rng.normal(size=3),
                    xyz=rng.uniform(-0.4, 0.4, 3), rpy=rng.uniform(0.2, 1.2, 3), friction=0.2,
                    damping=0.1)  # fmt: skip
    return b.build()


def states(robot: lw.Robot, count: int, dtype: str = "float64") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {name: rng.normal(size=(count, robot.nv)).astype(dtype) for name in ("q", "qd", "qdd")}


@pytest.mark.parametrize("n", [0, 1, 4, 11])
def test_a_rolled_walk_is_the_unrolled_one(n: int) -> None:
    robot = branching(n) if n else lw.Robot(generic_chain(6))
    rolled_up = verify(rolled_rnea(robot.tree))
    unrolled = trace(Task(FUNCTIONS["inverse_dynamics"]["rnea"]), robot.tree)
    given = states(robot, 5)
    expected = interpret(unrolled, given)["result"]
    for program in (rolled_up, verify(guard(rolled_up))):
        found = interpret(program, given)["tau"]
        assert np.abs(found - expected).max() <= 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("width", [w for w in (16, 32, 64) if w <= host().register_bytes])
def test_a_rolled_walk_compiled(dtype: str, width: int) -> None:
    robot = branching(8)
    target = dataclasses.replace(host(), register_bytes=width)
    kernel = Llvm(target).compile(guard(verify(rolled_rnea(robot.tree))), dtype, BATCH)
    given = states(robot, 2 * kernel.width + 3, dtype)
    given["qd"][1, -1] = np.nan
    expected = robot.inverse_dynamics(*(x.astype(float) for x in given.values()))
    tau = np.empty_like(given["q"])
    kernel(list(given.values()), [tau], 1)
    good = np.arange(len(tau)) != 1
    scale = np.abs(expected[good]).max()
    assert np.abs(tau[good] - expected[good]).max() <= 200 * np.finfo(dtype).eps * scale
    assert np.isnan(tau[1]).all(), "loops that write are guarded too"


def test_code_does_not_grow_with_the_number_of_links() -> None:
    def instructions(n: int) -> int:
        text = Llvm().render(guard(rolled_rnea(branching(n).tree)), "float64", BATCH)
        return sum(" = " in line for line in text.splitlines() if not line.startswith("@"))

    assert instructions(6) == instructions(60)


def test_operations_of_all_steps_are_counted() -> None:
    totals = [count_operations(rolled_rnea(branching(n).tree)).total for n in (4, 5, 6)]
    assert totals[2] - totals[1] == totals[1] - totals[0] > 100, "as many for each link"


# -- steps of one state: a rollout ----------------------------------------------------------------

DT, EVERY = 1e-3, 4


def rollout(robot: lw.Robot, steps: int) -> Program:
    """Semi-implicit Euler: torques are read per step, and every fourth state is written."""
    graph, n, tree = Graph(), robot.nv, robot.tree

    def euler(step: Step, state: list[Expr]) -> list[Expr]:
        q, qd = state[:n], state[n:]
        tau = [step.read("tau", k, n) for k in range(n)]
        qd = [v + DT * a for v, a in zip(qd, aba(tree, q, qd, tau), strict=True)]
        q = [x + DT * v for x, v in zip(q, qd, strict=True)]
        for k, value in enumerate((*q, *qd)):
            step.write("states", value, k, 2 * n, every=EVERY)
        return [*q, *qd]

    start = [graph.input(name, k) for name in ("q", "qd") for k in range(n)]
    end = loop(graph, steps, start, euler)
    ports = [Port("q", n), Port("qd", n), Port("tau", steps * n)]
    written = [Slot("states", (steps // EVERY, 2 * n))]
    return rolled.program(graph, "rollout", ports, (), written, end)


def simulated(robot: lw.Robot, given: dict[str, np.ndarray], steps: int) -> np.ndarray:
    q, qd, rows = given["q"], given["qd"], []
    for k in range(steps):
        tau = given["tau"][:, k * robot.nv : (k + 1) * robot.nv]
        qd = qd + DT * robot.forward_dynamics(q, qd, tau, method="aba")
        q = q + DT * qd
        rows.append(np.concatenate([q, qd], 1))
    return np.stack(rows, 1)


def test_a_rollout_is_a_loop_around_forward_dynamics() -> None:
    robot, steps = lw.load("puma560"), 22
    program = verify(guard(verify(rollout(robot, steps))))
    rng = np.random.default_rng(5)
    kernel = Llvm().compile(program, "float64", BATCH)
    given = {p.name: rng.normal(size=(kernel.width + 3, p.size)) for p in program.inputs}
    expected = simulated(robot, given, steps)
    written, last = np.empty((len(expected), steps // EVERY * 12)), np.empty((len(expected), 12))
    kernel(list(given.values()), [written, last], 1)
    found = interpret(program, given)
    for states_, end in ((written, last), (found["states"], found["result"])):
        kept = states_.reshape(len(expected), -1, 12)
        np.testing.assert_allclose(kept, expected[:, EVERY - 1 :: EVERY], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(end, expected[:, -1], rtol=1e-12, atol=1e-12)


# -- C --------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform == "win32", reason="no C compiler")
def test_counted_loops_in_c(tmp_path: Path) -> None:
    robot = branching(5)
    walk, roll = guard(rolled_rnea(robot.tree)), guard(rollout(branching(1), 9))
    (tmp_path / "k.c").write_text(render_c(walk, "nobody") + render_c(roll, "nobody"))
    command = ["cc", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o", "k.so", "k.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    library = ctypes.CDLL(str(tmp_path / "k.so"))
    rng = np.random.default_rng(6)
    for program in (walk, roll):
        given = {p.name: rng.normal(size=(1, p.size)) for p in program.inputs}
        expected = interpret(program, given)
        out = {o.name: np.empty(o.slot.size) for o in program.outputs}
        arrays = [*(x[0].copy() for x in given.values()), *out.values()]
        library[program.name](*(ctypes.c_void_p(a.ctypes.data) for a in arrays))
        for name, value in out.items():
            np.testing.assert_allclose(value, expected[name].ravel(), rtol=1e-12, atol=1e-12)


# -- rules ----------------------------------------------------------------------------------------


def doubling(steps: int = 5) -> Program:
    """``x 2^k`` kept in scratch and written every second step."""
    graph = Graph()

    def body(step: Step, state: list[Expr]) -> list[Expr]:
        (x,) = state
        step.write("room", x, 0, 1)
        step.write("out", x * step.read("table", 0, 1), 0, 1, every=2)
        return [x + x]

    (end,) = loop(graph, steps, [graph.input("x", 0)], body)
    arrays = (Array("room", 5), Array("table", 5, (1.0, 2.0, 3.0, 4.0, 5.0)))
    return rolled.program(graph, "twice", [Port("x", 1)], arrays, [Slot("out", (2,))], [end])


def changed(**changes: object) -> Program:
    program = doubling()
    place = next(k for k, r in enumerate(program.regions) if isinstance(r, For))
    regions = list(program.regions)
    regions[place] = dataclasses.replace(regions[place], **changes)  # type: ignore[type-var]
    return dataclasses.replace(program, regions=tuple(regions))


def the_loop() -> For:
    return next(r for r in doubling().regions if isinstance(r, For))


def test_a_loop_by_hand() -> None:
    found = interpret(verify(doubling()), {"x": np.array([[3.0]])})
    assert found["out"].tolist() == [[3.0 * 2 * 2, 3.0 * 8 * 4]] and found["result"] == [[96.0]]


def test_every_loop_carries_values_of_its_own() -> None:
    graph = Graph()
    x = graph.input("x", 0)
    (doubled,) = loop(graph, 3, [x], lambda step, state: [state[0] + state[0]])
    (raised,) = loop(graph, 2, [x], lambda step, state: [state[0] + 1.0])
    program = rolled.program(graph, "two", [Port("x", 1)], [], [], [doubled, raised])
    found = interpret(verify(program), {"x": np.array([[5.0]])})["result"]
    assert found.tolist() == [[40.0, 7.0]]


def test_writes_of_a_step_are_seen_by_the_next() -> None:
    graph = Graph()

    def start(step: Step, _: list[Expr]) -> list[Expr]:
        step.write("room", graph.input("x", 0))
        return []

    def add(step: Step, _: list[Expr]) -> list[Expr]:
        step.write("room", step.read("room"), add=True)  # doubles
        step.write("out", step.read("room"), 0, 1)
        return []

    loop(graph, 1, [], start)
    loop(graph, 4, [], add)
    program = rolled.program(graph, "w", [Port("x", 1)], [Array("room", 1)], [Slot("out", (4,))])
    expected = [[1.0, 2.0, 4.0, 8.0]]
    assert interpret(verify(program), {"x": np.array([[1.0]])})["out"].tolist() == expected
    kernel, out = Llvm().compile(program, "float64", BATCH), np.empty((1, 4))
    kernel([np.array([[1.0]])], [out], 1)
    assert out.tolist() == expected


def write(**changes: object) -> tuple[Write, ...]:
    first, *rest = the_loop().writes
    return (first._replace(**changes), *rest)  # type: ignore[arg-type]


SHORT = (Array("room", 5), Array("table", 5, (1.0,)))
ILLEGAL = {
    "no steps": (lambda: changed(count=0), "has 0 steps; expected at least one"),
    "too many steps": (lambda: changed(count=6), "read outside of 'table'"),
    "an element too far": (lambda: changed(writes=write(at=At(1, 1))), "written outside of 'room'"),
    "before the first": (lambda: changed(writes=write(at=At(3, -1))), "written outside of 'room'"),
    "a list too short": (lambda: changed(writes=write(at=At(0, 0, (1, 2)))), "written outside of"),
    "to a table": (lambda: changed(writes=write(array="table")), "no loop may write to 'table'"),
    "to an input": (lambda: changed(writes=write(array="x")), "no loop may write to 'x'"),
    "adding to an output": (lambda: changed(writes=write(array="out", add=True)), "may write to"),
    "never": (lambda: changed(writes=write(every=0)), "written every 0 steps"),
    "a start unknown": (lambda: dataclasses.replace(doubling(), regions=doubling().regions[1:]),
                        "start of a carried value is not known"),
    "an output nobody writes": (lambda: changed(writes=the_loop().writes[:1]),
                                "output 'out' has no values and no loop writes it"),
    "a body cut short": (lambda: changed(body=Block(())), "needed by a loop, never computed"),
    "a table cut short": (lambda: dataclasses.replace(doubling(), arrays=SHORT),
                          "table 'table' has 1 values; expected 5"),
    "a read outside": (lambda: dataclasses.replace(doubling(), regions=(the_loop().body,)),
                       "belongs to"),
    "pivots": (lambda: dataclasses.replace(doubling(), pivots=(doubling().results[0],)),
               "has pivots; expected none yet"),
}  # fmt: skip


@pytest.mark.parametrize("name", ILLEGAL)
def test_every_rule_of_a_counted_loop_is_named(name: str) -> None:
    make, message = ILLEGAL[name]
    with pytest.raises(IllegalProgram, match=message):
        verify(make())


def test_scratch_that_does_not_fit_is_refused() -> None:
    program = dataclasses.replace(doubling(), arrays=(*doubling().arrays, Array("much", 10**6)))
    with pytest.raises(ValueError, match=r"bytes of scratch for \d+ states; expected at most"):
        Llvm().render(program, "float64", BATCH)
