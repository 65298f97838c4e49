"""Mutation runs: change the source in one small way after another, and see whether a test notices.

    python tools/mutate.py                        all mutants, and the page docs/mutation.md
    python tools/mutate.py --only trace/fuse      of one module
    python tools/mutate.py --sample 20            at most so many of each module

Each mutant lives in a forked process of its own: the source on disk is never touched. A mutant that
no test notices either shows a test that is missing, or changes nothing that can be observed; such
are listed in `EQUIVALENT` with the reason.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.util
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "linkwise"
PAGE = ROOT / "docs" / "mutation.md"
SECONDS = 120  # of processor time that the tests of one mutant may take; more is a hang
WAITING = 20  # times longer on the clock
KILLED, HUNG, SURVIVED = "killed", "hung", "survived"
PRELOADED = (
    "numpy",
    "mpmath",
    "llvmlite.binding",
)  # the heavy ones, not those that pytest rewrites

Stage = tuple[str, ...]  # arguments of one run of pytest
PASSES: Stage = ("tests/engine/test_passes.py",)
BY_HAND: Stage = (
    "tests/engine/test_programs.py", "tests/engine/test_kernels.py", "tests/engine/test_counts.py",
    "-k", "folded or constants_are or signs or equal_exp or folding or fusing or fused or schedule "
    "or named or counted or loop_must or unnoticed and puma or orders or spilled or cycles "
    "or an_iteration or without_a_loop or difference or pressure or dearer or output_that",
)  # fmt: skip
REGIONS: Stage = (
    "tests/engine/test_guard.py", "tests/engine/test_diff.py", "tests/engine/test_rolled.py",
    "-k", "not every_function and not answers_alike and not compiled and not in_c "
    "and not does_not_grow and not cost_no_more and not rollout and not has_a_rule",
)  # fmt: skip
KEY: Stage = (
    "tests/engine/test_cache.py", "tests/engine/test_process.py", "-k",
    "its_key or entries_are_private or switched_off or cannot_be_known",
)  # fmt: skip
EDITIONS: Stage = ("tests/engine/test_identity.py",)


@dataclass(frozen=True)
class Target:
    """A module, what of it is changed (all functions, or some), and the tests that judge it.

    A mutant that passes the first stage of tests meets the next.
    """

    module: str
    stages: tuple[Stage, ...]
    functions: tuple[str, ...] = ()


TRACE = ("schedule", "fuse", "assemble", "tracer", "guard", "program", "verify", "expr")
TARGETS = (
    *(Target(f"trace/{name}", (PASSES, BY_HAND, REGIONS)) for name in TRACE),
    Target("trace/status", (PASSES,)),
    Target("engine/identity", (EDITIONS,)),
    Target("engine/kernels", (KEY,), ("_new", "cached", "_content")),
)

# (module, mutant) -> why no test can notice it
EQUIVALENT: dict[tuple[str, str], str] = {
    (
        "trace/schedule",
        "0  ->  1  in  heap = [(cost(n), 0, -n.id, n) for n in nodes if users_left[n.id] == 0]",
    ): "any age that is not negative comes after those of nodes that were pushed later",
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
    line: int
    what: str
    tree: ast.Module

    @property
    def equivalent(self) -> str | None:
        """Why no test can notice it, where that is known."""
        return EQUIVALENT.get((self.target.module, self.what))


# -- changes --------------------------------------------------------------------------------------


def mutants(target: Target) -> Iterator[Mutant]:
    """Every mutant of a module."""
    text = (SOURCE / f"{target.module}.py").read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    scope = _scope(tree, target.functions)
    for index, node in enumerate(ast.walk(tree)):
        if id(node) not in scope:
            continue
        for new in changes(node):
            line = node.lineno  # type: ignore[attr-defined]  # a statement or an expression
            what = f"{_what(node, new)}  in  {lines[line - 1].strip()}"
            yield Mutant(target, line, what, _replaced(tree, index, new))


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


class Changed(MetaPathFinder):
    """Finds one module with other code than the file's."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self.name, self.path, self.code = name, path, code

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """The module's specification; None for every other module."""
        if name != self.name:
            return None
        loader = SourceFileLoader(name, str(self.path))
        loader.get_code = lambda fullname: self.code  # type: ignore[method-assign]
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


def judge(mutant: Mutant | None, tests: Stage, scratch: str) -> str:
    """Run the tests with a mutant, or without, in a process of their own."""
    child = os.fork()
    if child == 0:
        _run(mutant, tests, scratch)
    end = time.monotonic() + WAITING * SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            hung = os.WIFSIGNALED(status)
            return HUNG if hung else SURVIVED if os.waitstatus_to_exitcode(status) == 0 else KILLED
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return HUNG


def _run(mutant: Mutant | None, tests: Stage, scratch: str) -> None:
    """The child: exits with 0 if all tests passed."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os.chdir(ROOT)
        sys.path.insert(0, str(SOURCE.parent))
        if mutant is not None:
            path = SOURCE / f"{mutant.target.module}.py"
            name = "linkwise." + mutant.target.module.replace("/", ".")
            sys.meta_path.insert(0, Changed(name, path, compile(mutant.tree, str(path), "exec")))
        import pytest

        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--basetemp", scratch]
        code = int(pytest.main([*options, *tests]))
    finally:
        os._exit(code)


def fate_of(mutant: Mutant, target: Target, scratch: str) -> str:
    """What becomes of a mutant, stage by stage."""
    fates = (judge(mutant, tests, scratch) for tests in target.stages)
    return next((fate for fate in fates if fate != SURVIVED), SURVIVED)


def run(targets: list[Target], sample: int | None) -> list[tuple[Mutant, str]]:
    """Judge mutants, telling on the way what survives."""
    for name in PRELOADED:
        importlib.import_module(name)
    results = []
    sound: set[Stage] = set()
    with tempfile.TemporaryDirectory() as folder:
        for target in targets:
            for tests in set(target.stages) - sound:
                if judge(None, tests, f"{folder}/t") != SURVIVED:
                    sys.exit(f"{' '.join(tests)}: fails without any change")
                sound.add(tests)
            found = list(mutants(target))
            if sample is not None and sample < len(found):
                found = random.Random(1).sample(found, sample)
            for mutant in found:
                fate = fate_of(mutant, target, f"{folder}/t")
                results.append((mutant, fate))
                if fate == SURVIVED and not mutant.equivalent:
                    print(f"{target.module}.py:{mutant.line}: {mutant.what}", flush=True)
            print(_row(target, results), flush=True)
    return results


# -- the page -------------------------------------------------------------------------------------


def _row(target: Target, results: list[tuple[Mutant, str]]) -> str:
    fates = [(m, fate) for m, fate in results if m.target == target]
    total = len(fates)
    same = sum(fate == SURVIVED and m.equivalent is not None for m, fate in fates)
    lived = sum(fate == SURVIVED for _, fate in fates) - same
    score = (total - same - lived) / max(1, total - same)
    numbers = (total, total - same - lived, same, lived, f"{score:.0%}")
    return f"| `{target.module}.py` | {' | '.join(map(str, numbers))} |"


HEAD = """\
# Mutation runs

`make mutation` changes the passes that make programs, and the key of the kernel cache, in one small
way after another (an operator, a constant, a condition negated, a statement or an element left
out), and runs tests of that part with each change. A mutant that no test notices shows a test that
is missing, unless nothing that can be observed changed; those are counted apart, and
`tools/mutate.py` gives the reason for each.

| module | mutants | noticed | cannot be noticed | not noticed | score |
|---|--:|--:|--:|--:|--:|
"""


def page(targets: list[Target], results: list[tuple[Mutant, str]], sample: int | None) -> str:
    """The table, and what was not noticed."""
    lines = [_row(target, results) for target in targets]
    lived = [m for m, fate in results if fate == SURVIVED and not m.equivalent]
    note = f"\nA random sample of at most {sample} mutants of each module.\n" if sample else ""
    left = "".join(f"- `{m.target.module}.py:{m.line}`: `{m.what}`\n" for m in lived)
    return HEAD + "\n".join(lines) + "\n" + note + (f"\nNot noticed:\n\n{left}" if left else "")


def main() -> None:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="a module, such as trace/fuse")
    parser.add_argument("--sample", type=int, help="at most so many mutants of each module")
    options = parser.parse_args()
    targets = [t for t in TARGETS if options.only in (None, t.module)]
    if not targets:
        parser.error(
            f"--only {options.only}: expected one of {', '.join(t.module for t in TARGETS)}"
        )
    results = run(targets, options.sample)
    if options.only is None:
        PAGE.write_text(page(targets, results, options.sample), encoding="utf-8")


if __name__ == "__main__":
    main()
