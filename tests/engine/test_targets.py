"""Kernels for machines other than this one: they compile, and need nothing but what we import."""

import dataclasses
import re

import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.backends.base import BATCH, ONE
from linkwise.backends.llvm.backend import Llvm
from linkwise.backends.llvm.compile import to_assembly
from linkwise.backends.llvm.target import LEVELS, at_level, binding, host
from linkwise.errors import BackendUnavailable
from linkwise.trace.guard import guard
from linkwise.trace.tracer import Task, trace

TARGETS = [
    ("x86_64-pc-windows-msvc-elf", "x86-64-v3", 32, True),
    ("x86_64-pc-windows-msvc-elf", "x86-64", 16, False),
    ("x86_64-unknown-linux-gnu", "x86-64-v4", 64, True),
    ("x86_64-apple-darwin", "x86-64-v3", 32, True),
    ("aarch64-apple-darwin", "apple-m1", 16, True),
    ("aarch64-unknown-linux-gnu", "neoverse-n1", 16, True),
]
OURS = {"tile", "gather", "reduce_large", "copy_double", "copy_float", "copy_i8"}


@pytest.fixture(scope="module")
def all_targets():
    llvm = binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@pytest.mark.parametrize("entry", [BATCH, ONE])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("triple", "cpu", "register", "fused"), TARGETS)
def test_kernels_call_no_runtime_library(all_targets, triple, cpu, register, fused, dtype, entry):
    target = dataclasses.replace(
        host(), triple=triple, cpu=cpu, features="", register_bytes=register, fused=fused
    )
    robot = lw.load("iiwa14")
    task = Task(FUNCTIONS["forward_dynamics"]["crba"])
    program = trace(task, robot.tree)
    text = to_assembly(Llvm(target).render(guard(program), dtype, entry), target)
    called = set(re.findall(r"^\s+(?:callq?|bl|jmp)\s+\*?_?([A-Za-z_]\w*)", text, re.M))
    assert {name for name in called if not name.startswith("L")} <= OURS


def test_the_host_is_described():
    target = host()
    assert target.register_bytes in (16, 32, 64)
    assert target.lanes(8) * 2 == target.lanes(4)
    assert "llvmlite" in target.identity and target.cpu in target.identity


@pytest.mark.parametrize(
    ("level", "register", "fused"), [("x86-64", 16, False), ("x86-64-v3", 32, True)]
)
def test_a_level_of_the_processor_by_the_environment(level, register, fused) -> None:
    """Any x86-64 has the first level; the second is named where it is missing."""
    target = dataclasses.replace(host(), triple="x86_64-unknown-linux-gnu")
    there = at_level(target, level, set(LEVELS["x86-64-v4"][2]) | set(LEVELS[level][2]))
    assert (there.cpu, there.register_bytes, there.fused) == (level, register, fused)
    assert there.features == "" and (there.identity == target.identity) == (there == target)
    with pytest.raises(
        BackendUnavailable, match="lacks sse2" if level == "x86-64" else "avx2, fma"
    ):
        at_level(target, level, set())


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(
        BackendUnavailable, match="LINKWISE_TARGET is 'avx2'; expected one of x86-64,"
    ):
        at_level(host(), "avx2", set())
