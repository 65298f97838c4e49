"""The same robot on every processor: trees, operation counts and bits do not depend on it.

BLAS, NumPy and the C library choose their code by the kind of processor. Each child process below
plays another one: OpenBLAS by its name, NumPy without the instructions that it dispatches to, glibc
without fused multiply-adds. All of them build the same robots, to the bit.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.model.tree import Tree
from linkwise.spatial.records import leaves

OURS = ["puma560", "iiwa14", "general arm", "random chain", "tapered chain"]
# their trees were others under other kernels of OpenBLAS
SENSITIVE = ("z1.urdf", "panda.urdf", "so101.urdf", "anymal.urdf")
COUNTED = ("inverse_dynamics", "forward_dynamics")
PLAIN = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable"


def dispatched() -> str:
    """What NumPy uses of this processor beyond what it was built for."""
    config: Any = np.show_config(mode="dicts")
    return " ".join(config["SIMD Extensions"].get("found", ()))


MACHINES = {
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "Zen": {"OPENBLAS_CORETYPE": "Zen"},
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem", "GLIBC_TUNABLES": PLAIN},
    "NumPy's baseline": {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": dispatched()},
}


def public() -> list[str]:
    """The URDF files of example-robot-data."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(str(f.locate()) for f in files if f.suffix == ".urdf")


def load(name: str) -> lw.Robot:
    from linkwise.study.generic import generic_chain

    if name == "general arm":
        return lw.Robot(generic_chain(4, kind="mixed"))
    if name.endswith(" chain"):
        return lw.chain(100, name.split()[0], joints=("revolute", "spherical"))
    return lw.load(name, strict=False)


def numbers(x: Any) -> list[float]:
    """The numbers of a record, of sequences of them, and of numbers."""
    if isinstance(x, list | tuple):
        return [y for part in x for y in numbers(part)]
    return [float(y) for y in leaves(x)]


def constants(tree: Tree) -> list[float]:
    """All numbers that a tree has."""
    links = [
        numbers([x.placement, x.inertia, x.armature, x.axis, x.frame_origin, x.frame_rotation])
        for x in tree.links
    ]
    return numbers([links, [[f.origin, f.rotation] for f in tree.frames.values()]])


def digest(values: list[float]) -> str:
    return hashlib.sha256(np.array(values).tobytes()).hexdigest()[:16]


def portrait(name: str, deep: bool) -> dict[str, Any]:
    """What must not depend on the processor; ``deep``: operation counts and results too."""
    try:
        robot = load(name)
    except lw.RobotFileError as error:
        return {"refused": str(error)}
    values = constants(robot.tree)
    found: dict[str, Any] = {"tree": digest(values), "zeros": values.count(0.0)}
    if deep:
        found |= {f: str(robot.operation_count(f)) for f in COUNTED}
        q = robot.random_q(seed=1)
        found["bias"] = digest(robot.bias(q, np.full(robot.nv, 0.25)).tolist())
    if deep and name == "iiwa14":
        from linkwise.io.urdf_write import write_urdf
        from linkwise.view.look import skeleton

        bones = skeleton(robot.tree)
        found["scene"] = digest(numbers([bones.nodes.tolist(), bones.lengths.tolist()]))
        found["file"] = hashlib.sha256(write_urdf(robot.description).encode()).hexdigest()[:16]
    return found


def portraits(machine: str, names: list[str], deep: list[str]) -> dict[str, Any]:
    """What a child process finds that plays a machine."""
    settings = {"LINKWISE_TARGET": "x86-64", "LINKWISE_CACHE": "off", "PYTHONWARNINGS": "ignore"}
    environment = os.environ | settings | MACHINES[machine]
    environment["PYTHONPATH"] = str(Path(lw.__file__).parents[1])
    task = json.dumps([names, deep])
    command = [sys.executable, __file__, task]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@cache
def expected(everything: bool) -> dict[str, Any]:
    return portraits("SkylakeX", *robots(everything))


def robots(everything: bool) -> tuple[list[str], list[str]]:
    """Names of robots, and those of which more is compared."""
    files = [f for f in public() if everything or f.endswith(SENSITIVE)]
    return OURS + files, OURS[:3]


needs_x86 = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64",
    reason="OpenBLAS, NumPy and glibc are told by name which x86-64 processor to be",
)


@needs_x86
@pytest.mark.parametrize("machine", [name for name in MACHINES if name != "SkylakeX"])
def test_robots_are_the_same_on_every_processor(machine: str) -> None:
    assert portraits(machine, *robots(False)) == expected(False)


@needs_x86
@pytest.mark.full
@pytest.mark.parametrize("machine", [name for name in MACHINES if name != "SkylakeX"])
def test_public_robots_are_the_same_on_every_processor(machine: str) -> None:
    assert portraits(machine, *robots(True)) == expected(True)


# -- the code --------------------------------------------------------------------------------------

ROOT = Path(lw.__file__).parent
PATHS = (
    "model", "io", "spatial", "view", "study/generic.py", "builder.py", "chain.py", "load.py",
    "models", "export", "trace", "checking", "engine/frames.py", "engine/reach_plan.py",
)  # fmt: skip
# of NumPy, and of math: rounding of these depends on the processor or the C library
FORBIDDEN = {
    "linalg", "dot", "vdot", "einsum", "matmul", "inner", "tensordot", "trace", "sum", "mean",
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "asin", "acos", "atan", "atan2",
    "exp", "log", "log2", "log10", "power", "pow", "hypot", "cbrt", "std", "var", "average", "fsum",
    "sumprod", "float_power", "sinc", "kron",
}  # fmt: skip
ALLOWED = {  # and why
    "model/layouts.py": "states of users in other libraries' layouts, which build nothing",
    "spatial/scalar.py": "complex steps and other precisions than float64, which no robot has",
    "view/readings.py": "angles in degrees, with one decimal, on a page",
    "view/stage.py": "the size of the cells of a grid",
}


def calls_by_machine(source: str) -> list[str]:
    """Names of what a file takes of NumPy and math that rounds as the processor likes."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("np", "math") and node.attr in FORBIDDEN:
                found.append(f"{node.value.id}.{node.attr}, line {node.lineno}")
        elif isinstance(node, ast.ImportFrom) and node.module in ("math", "numpy", "numpy.linalg"):
            found += [f"{node.module}.{x.name}" for x in node.names if x.name in FORBIDDEN]
    return found


def matrix_products(source: str) -> list[str]:
    """Lines with ``@``."""
    tree = ast.parse(source)
    return [
        f"line {node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult)
    ]


def powers(source: str) -> list[str]:
    """Powers of what is no constant: the C library rounds ``x**2`` as the processor likes too."""
    tree = ast.parse(source)
    return [
        f"{ast.unparse(node)}, line {node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow)
        and not isinstance(node.left if isinstance(node, ast.BinOp) else None, ast.Constant)
    ]  # fmt: skip


def files() -> list[Path]:
    found = [ROOT / p for p in PATHS]
    return sorted(f for p in found for f in (p.rglob("*.py") if p.is_dir() else [p]))


def test_nothing_that_builds_robots_rounds_as_the_processor_likes() -> None:
    wrong = {str(f.relative_to(ROOT)): calls_by_machine(f.read_text()) for f in files()}
    used = {name: calls for name, calls in wrong.items() if calls}
    assert used.keys() == ALLOWED.keys(), {k: v for k, v in used.items() if k not in ALLOWED}


def test_nothing_that_builds_robots_multiplies_arrays() -> None:
    """``@`` is left to vectors, inertias and quaternions of our own, which are in spatial/."""
    with_own = {"trace/elimination.py", "trace/tracer.py", "model/joints.py", "model/chains.py",
                "model/massless.py", "model/parameters.py"}  # fmt: skip
    found = {str(f.relative_to(ROOT)): matrix_products(f.read_text()) for f in files()}
    outside = {k: v for k, v in found.items() if v and not k.startswith("spatial/")}
    assert outside.keys() <= with_own, {k: v for k, v in outside.items() if k not in with_own}


def test_nothing_that_builds_robots_or_code_takes_powers() -> None:
    exact = {  # of integers, of decimals, of other precisions, and bounds
        "model/tree.py", "spatial/elementary.py", "trace/elimination.py", "trace/pairs.py",
        "trace/status.py", "trace/tracer.py", "engine/reach_plan.py", "view/readings.py",
    }  # fmt: skip
    where = [*files(), *(ROOT / "algorithms").rglob("*.py"), ROOT / "sampling" / "draws.py"]
    found = {str(f.relative_to(ROOT)): powers(f.read_text()) for f in where}
    outside = {k: v for k, v in found.items() if v and k not in exact}
    assert not outside, outside


# of tests: builders of robots that several files use
FIXTURES = ("conftest.py", "shared/arms.py", "shared/every_joint.py", "shared/rotations.py",
            "shared/small_robots.py")  # fmt: skip


@pytest.mark.parametrize("name", FIXTURES)
def test_robots_of_tests_do_not_round_as_the_processor_likes(name: str) -> None:
    module = ast.parse(Path(__file__).parents[1].joinpath(name).read_text())
    # a bound on errors, which builds nothing
    module.body = [x for x in module.body if getattr(x, "name", "") != "_mobility"]
    source = ast.unparse(module)
    assert calls_by_machine(source) + matrix_products(source) == []


def test_the_nets_catch_what_they_are_for() -> None:
    source = "import numpy as np\nx = np.linalg.norm(a)\ny = R @ S @ R.T\nfrom math import hypot\n"
    assert sorted(calls_by_machine(source)) == ["math.hypot", "np.linalg, line 2"]
    assert matrix_products(source) == ["line 3", "line 3"]
    assert powers("y = 2.0**-52 + x**2\n") == ["x ** 2, line 1"]


if __name__ == "__main__":
    import logging

    logging.disable(logging.CRITICAL)
    names, deep = json.loads(sys.argv[1])
    print(json.dumps({name: portrait(name, name in deep) for name in names}))
