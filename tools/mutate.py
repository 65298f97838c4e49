"""Mutation runs: change the source in one small way after another, and see whether a test notices.

    python tools/mutate.py                        all mutants, and the page docs/mutation.md
    python tools/mutate.py --only trace/fuse      of one module
    python tools/mutate.py --minutes 30           a random sample, as large as the time allows
    python tools/mutate.py --minutes 0            only the page, from what earlier runs have judged

One process imports the tests and everything they need, and learns by a first run which functions
each test enters and how long it takes. A mutant is a fork of that process in which the changed code
is put into the function that holds the old one; it meets the tests that enter this function, the
quickest first, until one fails. A change outside of functions is imported afresh, in a process that
starts from nothing. The source on disk is never touched.

A mutant that no test notices either shows a test that is missing, or changes nothing that can be
observed; such are listed in `EQUIVALENT` with the reason.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import gc
import importlib.util
import itertools
import json
import math
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from _pytest.main import pytest_runtestloop as run_tests

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "linkwise"
PAGE = ROOT / "docs" / "mutation.md"
PATIENCE = 15.0  # seconds that the tests of one mutant take without it; slower ones are left out
SECONDS = 30  # of processor time that they may take with it; more is a hang
SLOWER = 5  # times longer than without a mutant, and three seconds, is a hang of one test
WAITING = 20  # times longer on the clock
SMALL = 60  # mutants of a module that are all judged before any of larger ones
FATES = ROOT / ".mutants.jsonl"  # what was noticed before is not judged again
KILLED, HUNG, SURVIVED = "killed", "hung", "survived"
NOTICED = {KILLED: "noticed", HUNG: "noticed", SURVIVED: "not noticed"}

NAMES = "passes schedule tracer counting programs illegal key identity guard diff rolled"
JUDGES = tuple(f"tests/engine/test_{name}.py" for name in NAMES.split())
# over every method, for minutes: what they notice, a quick one should
LEFT_OUT = (
    "every_function_has_the_derivatives", "answers_alike", "every_traced_function",
    "in_another_order_is_the_same", "cost_no_more", "loops_compiled", "does_not_grow",
    "loops_give_what", "rollout_is_a_loop", "in_a_batch_has_the_same_bits",
)  # fmt: skip
OPTIONS = ("-x", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist")


@dataclass(frozen=True)
class Target:
    """A module, and what of it is changed: all functions, or some."""

    module: str
    functions: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file."""
        return SOURCE / f"{self.module}.py"


TRACE = (
    "schedule", "fuse", "assemble", "tracer", "guard", "status", "program", "verify", "expr",
    "rolled", "diff",
)  # fmt: skip
TARGETS = (
    *(Target(f"trace/{name}") for name in TRACE),
    Target("engine/identity"),
    Target("engine/kernels", ("_new", "cached", "_content", "ready")),
)

# changes by hand, which a random sample may miss: module, old text, new text
BY_NAME = {
    "heuristics of the scheduler off": (
        "trace/schedule", "return min(orders, key=spilled)", "return nodes"
    ),
    "code of one package in the key": (
        "engine/identity",
        'entry.name != "__pycache__"',
        'entry.name not in ("spatial", "__pycache__")',
    ),
    "no method takes wrenches": (
        "algorithms/__init__", '"takes_external": True', '"takes_external": False'
    ),
}  # fmt: skip

# (module, mutant) -> why no test can notice it
EQUIVALENT: dict[tuple[str, str], str] = {
    ("trace/verify", "return False  ->  return None  in  return False"): "it is only asked if true",
    (
        "engine/identity",
        "(value.co_code, value.co_names, value.co_varnames, value.co_freevars)  without  "
        "value.co_freevars  in  "
        "parts = (value.co_code, value.co_names, value.co_varnames, value.co_freevars)",
    ): "what a closure takes is also in the code that makes it",
    (
        "engine/identity",
        "(*parts, value.co_cellvars, value.co_argcount, _plain(value.co_cons...  without  "
        "value.co_cellvars  in  "
        "return (*parts, value.co_cellvars, value.co_argcount, _plain(value.co_consts))",
    ): "a cell of another name computes the same",
    **{
        (
            "trace/fuse",
            f"{change}  in  depth[node.id] = 1 + max((depth[a.id] for a in node.args), default=0)",
        ): "depths are only compared with each other"
        for change in ("0  ->  1", "1  ->  2")
    },
    (
        "trace/fuse",
        "1  ->  2  in  uses[result.id] += 1",
    ): "a product that is a result is not fused, however often that counts",
    **{
        (
            "trace/guard",
            f'{change}  in  self._sum = self.graph.node("carry", value=("guard", port.name))',
        ): "any value that no other carry has will do"
        for change in ("'guard'  ->  'guard?'", "('guard', port.name)  without  'guard'")
    },
    (
        "trace/schedule",
        "0  ->  1  in  heap = [(cost(k), 0, -k) for k in range(len(nodes)) if users_left[k] == 0]",
    ): "any age that is not negative comes after those of nodes that were pushed later",
    **{
        ("trace/schedule", what): "the same is added to all, and they are only compared"
        for what in (
            "0  ->  1  in  fresh = 0",
            "1  ->  2  in  need[n.id] = max((k + most for k, most in enumerate(own)), default=1)",
            "0  ->  1  in  above = max([self.height[user] for user in self.users[k]], default=0)",
            "0  ->  1  in  self.known_at = [0] * len(nodes)  "
            "# the cycle in which all arguments are known",
        )
    },
    **{
        ("trace/schedule", f"{change}  in  live[k] = False"): "all users of the node are placed"
        for change in ("False  ->  True", "live[k] = False  ->  pass")
    },
    (
        "trace/schedule",
        "0  ->  1  in  self.height = [0] * len(nodes)  "
        "# cycles from a node's start to the last result",
    ): "every height is computed before it is used",
    (
        "trace/schedule",
        "continue  ->  pass  in  continue",
    ): "a node that is ready has no arguments left to place, and is passed over the next time",
    (
        "trace/schedule",
        "cycle + 1  ->  cycle - 1  in  cycle, started = max(cycle + 1, self._soonest(cycle)), 0",
    ): "a node that is known later is known in a later cycle",
    (
        "trace/schedule",
        "'end'  ->  'end?'  in  END = \"end\"  # of a group of results: no operation of a program",
    ): "any name will do that no operation has",
    (
        "trace/schedule",
        "True  ->  False  in  return tuple(Expr(v[0].graph, k, END, v, None) "
        "for k, v in zip(ids, here, strict=True) if v)",
    ): "there are as many numbers as groups",
    **{
        (
            "trace/rolled",
            f'{change}  in  sound = graph.node("carry", value=(number, "sound"))',
        ): "any name will do that no other carry has"
        for change in ("'sound'  ->  'sound?'", "(number, 'sound')  without  'sound'")
    },
    **{
        ("trace/rolled", f"1.0  ->  2.0  in  {line}"): "any number will do that is not positive"
        for line in (
            "still, watched = graph.lift(select(pivot, still, -1.0)), True",
            'still = graph.lift(select(graph.node("finite", pivot), still, -1.0))',
        )
    },
    (
        "trace/rolled",
        "cases = [Done(case.nexts[:-1], case.writes) for case in cases]  ->  pass  in  "
        "cases = [Done(case.nexts[:-1], case.writes) for case in cases]",
    ): "what no carry takes is dropped when regions are assembled",
    (
        "trace/guard",
        "self._emit(self.graph.zero)  ->  pass  in  self._emit(self.graph.zero)",
    ): "the first sum starts from zero, which is emitted there",
    **{
        (
            "trace/verify",
            f"{change}  in  Lists = Mapping[str, Any]  # whole numbers, by the name of the list",
        ): "only type checkers look at it"
        for change in (
            "Lists = Mapping[str, Any]  ->  pass",
            "(str, Any)  without  Any",
            "(str, Any)  without  str",
        )
    },
    (
        "trace/tracer",
        "0.0  ->  1.0  in  like = next((x for numbers in values for x in numbers), 0.0)",
    ): "only the kind of number is looked at",
    (
        "trace/tracer",
        "True  ->  False  in  "
        "by = [x for port, own in zip(ports, inputs, strict=True) if port in chosen for x in own]",
    ): "inputs are made from the ports",
    **{
        (module, f"{change}  in  def {definition}"): "no trace comes near either limit"
        for module, definition in (
            ("trace/tracer", "equations(task: Task, tree: Tree, most: int = 2**62) -> Equations:"),
            ("trace/tracer", "trace(task: Task, tree: Tree, most: int = 2**62) -> Program:"),
            ("trace/expr", "__init__(self, most: int = 2**62) -> None:"),
        )
        for change in ("2  ->  3", "62  ->  63")
    },
    (
        "trace/expr",
        "value < 0.0  ->  value <= 0.0  in  if value < 0.0:",
    ): "zero is answered two lines above",
    (
        "trace/expr",
        "float(value) + 0.0  ->  float(value) - 0.0  in  "
        'return self.node("const", value=float(value) + 0.0)  # -0.0 becomes 0.0',
    ): "the node of 0.0 is there from the start, and is found for -0.0, too",
    **{
        (
            "trace/expr",
            "a.id < b.id  ->  a.id <= b.id  in  "
            f'return self.node("{op}", *((a, b) if a.id < b.id else (b, a)))',
        ): "in either order, a node and itself"
        for op in ("add", "mul")
    },
}

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
DELETED = (ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Continue, ast.Break, ast.Delete)


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, what it is, and the module's code with it."""

    target: Target
    name: str  # module and number, or one of `BY_NAME`
    line: int
    what: str
    tree: Callable[[], ast.Module]
    function: int | None = None  # the first line of the outermost function around it

    @property
    def key(self) -> str:
        """Its name in `FATES`; another edit of the module is another name."""
        return f"{self.name} {self.what}"

    @property
    def code(self) -> CodeType:
        """The module, compiled."""
        return compile(self.tree(), str(self.target.path), "exec")

    @property
    def equivalent(self) -> str | None:
        """Why no test can notice it, where that is known."""
        return EQUIVALENT.get((self.target.module, self.what))


# -- changes --------------------------------------------------------------------------------------


def mutants(target: Target) -> Iterator[Mutant]:
    """Every mutant of a module."""
    text = target.path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    scope, around = _scope(tree, target.functions), _functions(tree)
    count = 0
    for index, node in enumerate(ast.walk(tree)):
        for new in changes(node) if id(node) in scope else ():
            line = node.lineno  # type: ignore[attr-defined]  # a statement or an expression
            what = f"{_what(node, new)}  in  {lines[line - 1].strip()}"
            changed = functools.partial(_replaced, tree, index, new)
            name = f"{target.module}:{count}"
            count += 1
            if _text(new) != _text(node):
                yield Mutant(target, name, line, what, changed, around.get(id(node)))


def by_name(name: str) -> Mutant:
    """A mutant of `BY_NAME`."""
    module, old, new = BY_NAME[name]
    target = Target(module)
    text = target.path.read_text(encoding="utf-8")
    assert old in text, f"{name}: {old!r} is not in {module}"
    line = text[: text.index(old)].count("\n") + 1
    changed = functools.partial(ast.parse, text.replace(old, new))
    return Mutant(target, name, line, f"{old}  ->  {new}", changed)


def _functions(tree: ast.AST, first: int | None = None) -> dict[int, int]:
    """For each node in a function, the first line of the outermost function around it."""
    found: dict[int, int] = {}
    for node in ast.iter_child_nodes(tree):
        at = first
        if at is None and isinstance(node, ast.FunctionDef):
            at = min([node.lineno, *(x.lineno for x in node.decorator_list)])
        if at is not None:
            found[id(node)] = at
        found |= _functions(node, at)
    return found


def _what(old: ast.AST, new: ast.AST) -> str:
    """The change in words."""
    if isinstance(old, ast.Tuple | ast.List) and isinstance(new, ast.Tuple | ast.List):
        gone = next(x for k, x in enumerate(old.elts) if new.elts[k : k + 1] != [x])
        return f"{_text(old)}  without  {_text(gone)}"
    return f"{_text(old)}  ->  {_text(new)}"


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What a node may be replaced by."""
    yield from _other_operators(node)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.Constant):
        yield from _constants(node)
    if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load):
        for k in range(len(node.elts) if len(node.elts) > 1 else 0):
            yield _with(node, elts=node.elts[:k] + node.elts[k + 1 :])
    if isinstance(node, DELETED):
        yield ast.Pass()
    if isinstance(node, ast.Return) and node.value is not None:
        yield ast.Return(ast.Constant(None))


def _other_operators(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        yield _with(node, op=SWAPS[type(node.op)]())
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            yield _with(node, ops=[*node.ops[:k], SWAPS[type(op)](), *node.ops[k + 1 :]])
    if isinstance(node, ast.UnaryOp):
        yield node.operand


def _constants(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
    elif isinstance(node.value, str) and node.value:
        yield ast.Constant(node.value + "?")


def _with(node: Any, **fields: Any) -> Any:
    """A copy of a node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _scope(tree: ast.Module, functions: tuple[str, ...]) -> set[int]:
    """Nodes to change: no types, texts, decorators or definitions, and only some functions."""
    roots: list[ast.AST] = [tree]
    if functions:
        roots = [
            n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in functions
        ]
    chosen = {id(n) for root in roots for n in ast.walk(root)}
    return chosen - {id(n) for part in _untouched(tree) for n in ast.walk(part)}


def _untouched(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for name in ("annotation", "returns", "decorator_list", "bases"):
            found = getattr(node, name, None)
            yield from found if isinstance(found, list) else [found] if found else []
        if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
            yield node
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield node.exc
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node
        if isinstance(node, ast.Assign) and _text(node.value).startswith("Callable["):
            yield node
        if isinstance(node, ast.Subscript) and _text(node.value) in ("Callable", "dict", "tuple"):
            yield node
    yield from (n for n in tree.body if isinstance(n, ast.Expr))


def _replaced(tree: ast.Module, index: int, new: ast.AST) -> ast.Module:
    """The tree with the node of this index, in order of `ast.walk`, replaced."""
    copied = copy.deepcopy(tree)
    old = next(n for k, n in enumerate(ast.walk(copied)) if k == index)

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else self.generic_visit(node)

    return ast.fix_missing_locations(Replace().visit(copied))


def _text(node: ast.AST) -> str:
    """The node as written, in one short line."""
    text = " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())
    return text if len(text) <= 70 else f"{text[:67]}..."


# -- judging --------------------------------------------------------------------------------------


@dataclass
class Profile:
    """What a run without changes has shown: each test's time and the functions it enters."""

    seconds: dict[str, float] = field(default_factory=dict)
    entered: dict[str, set[tuple[str, int]]] = field(default_factory=dict)  # file, first line
    # tests that have noticed a mutant of a function: file, first line
    noticing: dict[tuple[str, int | None], set[str]] = field(default_factory=dict)

    def tests_for(self, mutant: Mutant) -> list[str]:
        """Tests that enter the changed function: those that noticed another mutant of it, the rest.

        Of each kind the quickest comes first.

        Any test may notice a change outside of functions; those that enter the module come first.
        """
        path = str(mutant.target.path)
        entering = {
            test
            for test, entered in self.entered.items()
            for file, line in entered
            if file == path and mutant.function in (None, line)
        }
        tests = entering if mutant.function else set(self.seconds)
        first = self.noticing.get((path, mutant.function), set())
        chosen, left = [], PATIENCE

        def turn(test: str) -> tuple[bool, bool, float]:
            return test not in entering, test not in first, self.seconds[test]

        for test in sorted(tests, key=turn):
            left -= self.seconds[test]
            chosen += [test] if left > 0 else []
        return chosen


def _fates() -> dict[str, str]:
    if not FATES.exists():
        return {}
    return dict(map(json.loads, FATES.read_text(encoding="utf-8").splitlines()))


class Judge:
    """A plugin of pytest that runs its collected tests once per mutant, each time in a fork."""

    def __init__(
        self, targets: list[Target], named: list[str], minutes: float | None, jobs: int
    ) -> None:
        self.targets, self.named, self.jobs = targets, named, jobs
        self.end = math.inf if minutes is None else time.monotonic() + 60 * minutes
        self.results: list[tuple[Mutant, str]] = []
        self.profile = Profile()
        self.all = {target: list(mutants(target)) for target in targets}
        self.note: Path | None = None  # where a fork writes which test has failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running the tests."""
        chosen = [*map(by_name, self.named), *self._in_turn()]
        if time.monotonic() < self.end:
            self._profile(session)
            self._work(session, chosen)
        fates = _fates()
        self.results = [(m, fates[m.key]) for m in chosen if m.key in fates]
        return True

    def _work(self, session: pytest.Session, chosen: list[Mutant]) -> None:
        """Judge the mutants in several processes, which take them by turns."""
        workers = []
        for k in range(1, self.jobs):
            worker = os.fork()
            if worker == 0:
                try:
                    self._judge_all(session, chosen[k :: self.jobs])
                finally:
                    os._exit(0)
            workers.append(worker)
        self._judge_all(session, chosen[:: self.jobs])
        for worker in workers:
            os.waitpid(worker, 0)

    def _judge_all(self, session: pytest.Session, some: list[Mutant]) -> None:
        for mutant in some:
            if time.monotonic() < self.end:
                self._judge(session, mutant)

    def _profile(self, session: pytest.Session) -> None:
        """Run the tests without any change, which must pass."""
        started = time.monotonic()
        if self._forked(lambda: self._measure(session)) != SURVIVED:
            pytest.exit("the tests fail without any change", 1)
        measured = json.loads(Path(session.config.option.basetemp + ".json").read_text())
        self.profile.seconds = {name: time for name, (time, _) in measured.items()}
        self.profile.entered = {k: set(map(tuple, lines)) for k, (_, lines) in measured.items()}
        print(f"{len(measured)} tests, {time.monotonic() - started:.0f} s", flush=True)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """In a child: a test that hangs is ended by the system."""
        if self.note is not None:
            allowed = 3 + SLOWER * self.profile.seconds[item.nodeid]
            end = math.ceil(time.process_time() + allowed)
            resource.setrlimit(resource.RLIMIT_CPU, (min(end, SECONDS), SECONDS + 1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In a child: write down which test has noticed the mutant."""
        if self.note is not None and report.failed:
            self.note.write_text(report.nodeid)

    def _in_turn(self) -> Iterator[Mutant]:
        """Mutants in random order: all of small modules, then one of each module after another."""
        shuffled = [random.Random(1).sample(found, len(found)) for found in self.all.values()]
        for found in shuffled:
            yield from found if len(found) <= SMALL else ()
        others = [found for found in shuffled if len(found) > SMALL]
        for some in itertools.zip_longest(*others):
            yield from filter(None, some)

    def _judge(self, session: pytest.Session, mutant: Mutant) -> None:
        fates = _fates()
        known = fates.get(mutant.key, SURVIVED)  # of an earlier run: more tests notice more
        if mutant.key in fates and (known != SURVIVED or mutant.equivalent is not None):
            return
        tests = self.profile.tests_for(mutant)
        self.note = Path(f"{session.config.option.basetemp}.{os.getpid()}")
        self.note.unlink(missing_ok=True)
        fate = self._forked(lambda: _run(session, mutant, tests)) if tests else SURVIVED
        if self.note.exists():
            function = str(mutant.target.path), mutant.function
            self.profile.noticing.setdefault(function, set()).add(self.note.read_text())
        with FATES.open("a", encoding="utf-8") as file:
            print(json.dumps([mutant.key, fate]), file=file)
        if fate == SURVIVED and not mutant.equivalent:
            print(f"{mutant.target.module}.py:{mutant.line}: {mutant.what}", flush=True)

    def _measure(self, session: pytest.Session) -> int:
        """Run every test, its caches empty, and write down what it enters."""
        files = {str(target.path) for target in TARGETS}
        measured: dict[str, tuple[float, list[tuple[str, int]]]] = {}
        for k, item in enumerate(session.items):
            seen: set[tuple[str, int]] = set()

            def enter(frame: FrameType, event: str, arg: Any, seen: Any = seen) -> None:
                if frame.f_code.co_filename in files:
                    seen.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

            _forget()
            following = session.items[k + 1] if k + 1 < len(session.items) else None
            before = time.process_time()
            sys.settrace(enter)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            sys.settrace(None)
            measured[item.nodeid] = (time.process_time() - before, sorted(seen))
        Path(session.config.option.basetemp + ".json").write_text(json.dumps(measured))
        return session.testsfailed

    @staticmethod
    def _forked(work: Callable[[], int]) -> str:
        """What became of a child that does this and exits with the number of tests that failed."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                quiet = os.open(os.devnull, os.O_WRONLY)
                os.dup2(quiet, 1)
                os.dup2(quiet, 2)
                code = min(1, work())
            finally:
                os._exit(code)
        end = time.monotonic() + WAITING * SECONDS
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                if os.WIFSIGNALED(status):
                    return HUNG
                return KILLED if os.waitstatus_to_exitcode(status) else SURVIVED
            time.sleep(0.005)
        os.kill(child, 9)
        os.waitpid(child, 0)
        return HUNG


def _run(session: pytest.Session, mutant: Mutant, tests: list[str]) -> int:
    """In a child: how many tests fail with a mutant, at most one."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    if not _installed(mutant):
        alone = (str(Path(__file__)), "--alone", mutant.name, *tests)
        os.execv(sys.executable, (sys.executable, *alone))
    # a folder of its own: other processes judge at the same time
    factory = session.config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = Path(tempfile.mkdtemp(dir=Path(session.config.option.basetemp).parent))
    _forget()
    items = {item.nodeid: item for item in session.items}
    session.items[:] = [items[test] for test in tests]
    run_tests(session)
    return session.testsfailed


def _installed(mutant: Mutant) -> bool:
    """Put the changed code into the functions that have the old one; False where none has."""
    if mutant.function is None:
        return False
    path = str(mutant.target.path)
    codes = [c for c in _codes(mutant.code) if c.co_firstlineno == mutant.function]
    found = False
    for function in [x for x in gc.get_objects() if isinstance(x, FunctionType)]:
        old = function.__code__
        if old.co_filename != path or old.co_firstlineno != mutant.function:
            continue
        same = [c for c in codes if c.co_qualname == old.co_qualname]
        if len(same) == 1 and same[0] != old and same[0].co_freevars == old.co_freevars:
            function.__code__ = same[0]
            found = True
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Code objects inside one, however deep."""
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield x
            yield from _codes(x)


def _forget() -> None:
    """Empty the caches of linkwise and of its tests: what they hold, the old code has made."""
    for x in gc.get_objects():
        if isinstance(x, functools._lru_cache_wrapper):
            if str(x.__module__).startswith(("linkwise", "test", "conftest")):
                x.cache_clear()


class Changed(MetaPathFinder):
    """Finds one module with other code than the file's."""

    def __init__(self, mutant: Mutant) -> None:
        module = mutant.target.module.removesuffix("/__init__")
        self.name = "linkwise." + module.replace("/", ".")
        self.path, self.code = mutant.target.path, mutant.code

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """The module's specification; None for every other module."""
        if name != self.name:
            return None
        loader = SourceFileLoader(name, str(self.path))
        loader.get_code = lambda fullname: self.code  # type: ignore[method-assign]
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


def alone(name: str, tests: list[str]) -> int:
    """Judge one mutant in this process, which has not imported linkwise yet."""
    module = name.partition(":")[0]
    target = next((t for t in TARGETS if t.module == module), None)
    mutant = next(m for m in mutants(target) if m.name == name) if target else by_name(name)
    sys.meta_path.insert(0, Changed(mutant))
    with tempfile.TemporaryDirectory() as folder:
        return int(pytest.main([*OPTIONS, "--basetemp", f"{folder}/t", *tests]))


# -- the page -------------------------------------------------------------------------------------


def _row(target: Target, results: list[tuple[Mutant, str]]) -> str:
    return _line(f"`{target.module}.py`", [(m, f) for m, f in results if m.target == target])


def _line(name: str, results: list[tuple[Mutant, str]]) -> str:
    """Mutants, those that were noticed, and the rest, as a row of the table."""
    total = len(results)
    same = sum(fate == SURVIVED and m.equivalent is not None for m, fate in results)
    lived = sum(fate == SURVIVED for _, fate in results) - same
    score = 100 * (total - same - lived) // max(1, total - same)
    return f"| {name} | {total} | {total - same - lived} | {same} | {lived} | {score}% |"


HEAD = """\
# Mutation runs

`make mutation` changes the passes that make programs, and the key of the kernel cache, in one small
way after another (an operator, a constant, a condition negated, a statement or an element left
out), and runs the tests that enter the changed function. A mutant that no test notices shows a test
that is missing, unless nothing that can be observed changed; those are counted apart, and
`tools/mutate.py` gives the reason for each.

Asked are the quick tests of these passes (`NAMES` in `tools/mutate.py`): what tests notice that
compile every method for minutes, a quick one should notice, too. A mutant is noticed when a test
fails, when its process dies, or when a test takes five times as long as without the mutant and
three seconds more. Mutants that no test noticed at first got tests and were judged again, so the
scores are those of the tests as they are now, and no estimate for code that is still to be written.
What was noticed once is not judged again while its code stays the same.

"""


def page(judge: Judge) -> str:
    """The score, the table, and what was not noticed."""
    named = [(m, fate) for m, fate in judge.results if m.name in BY_NAME]
    some = [(m, fate) for m, fate in judge.results if m.name not in BY_NAME]
    total = sum(map(len, judge.all.values()))
    size = f"all {total} mutants."
    if len(some) < total:
        size = (
            f"a random sample of {len(some)} of {total} mutants. Modules of up to\n{SMALL} mutants "
            "come first, and all of them are judged; of the others, as many as the time allowed."
        )
    size = f"Judged: {size} By name:\n\n"
    names = "".join(f"- {m.name}: {NOTICED[fate]}\n" for m, fate in named)
    table = "\n".join(_row(target, some) for target in judge.targets)
    lived = [m for m, fate in some if fate == SURVIVED and not m.equivalent]
    left = "".join(f"- `{m.target.module}.py:{m.line}`: `{m.what}`\n" for m in lived)
    return (
        f"{HEAD}{size}{names}\n"
        "| module | mutants | noticed | cannot be noticed | not noticed | score |\n"
        f"|---|--:|--:|--:|--:|--:|\n{table}\n{_line('all', some)}\n"
        + (f"\nNot noticed:\n\n{left}" if left else "")
    )


def main() -> None:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="a module, such as trace/fuse")
    parser.add_argument("--minutes", type=float, help="judge mutants for so long, then write")
    parser.add_argument("--jobs", type=int, default=1, help="processes; default 1")
    parser.add_argument("--alone", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(SOURCE.parent))
    if options.alone:
        sys.exit(alone(options.alone[0], options.alone[1:]))
    targets = [t for t in TARGETS if options.only in (None, t.module)]
    if not targets:
        parser.error(
            f"--only {options.only}: expected one of {', '.join(t.module for t in TARGETS)}"
        )
    judge = Judge(targets, [] if options.only else list(BY_NAME), options.minutes, options.jobs)
    with tempfile.TemporaryDirectory() as folder:
        without = " and ".join(f"not {name}" for name in LEFT_OUT)
        pytest.main([*OPTIONS, "--basetemp", f"{folder}/t", "-k", without, *JUDGES], [judge])
    if options.only is None:
        PAGE.write_text(page(judge), encoding="utf-8")


if __name__ == "__main__":
    main()
