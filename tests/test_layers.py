"""The architecture is a test: a layer imports only what comes before it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import linkwise

ROOT = Path(linkwise.__file__).parent

LAYERS = [
    "codes", "errors", "text", "figures", "spatial", "model", "io", "sweep", "algorithms", "trace",
    "backends",
    "engine", "factors", "se3", "differentiation", "derivatives", "functions", "conversions",
    "summary", "models", "study", "interop", "export", "view", "robot", "grasp", "load", "builder",
    "chain", "identification", "motion", "control", "plots", "checking", "bench",
    "report", "sampling", "cli",
]  # fmt: skip
EQUATIONS = ("sweep", "algorithms")  # no array library, no machine
ALLOWED_IN_EQUATIONS = {
    "__future__", "collections", "dataclasses", "functools", "itertools", "typing", "linkwise",
}  # fmt: skip


def layer_of(module: str) -> int:
    return LAYERS.index(module.split(".")[1])


def imports(path: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


def modules() -> list[tuple[str, Path]]:
    files = sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT or not p.name.startswith("__"))
    return [(".".join(("linkwise", *p.relative_to(ROOT).with_suffix("").parts)), p) for p in files]


def test_every_module_is_in_a_layer():
    assert {name.split(".")[1] for name, _ in modules()} == set(LAYERS)


def test_imports_point_one_way():
    wrong = [
        f"{name} imports {target}"
        for name, path in modules()
        for target in imports(path)
        if target.startswith("linkwise.")
        and target.split(".")[1] in LAYERS
        and layer_of(target) > layer_of(name)
    ]
    assert not wrong


def test_equations_know_no_array_library():
    for name, path in modules():
        if name.split(".")[1] in EQUATIONS:
            outside = {target.split(".")[0] for target in imports(path)} - ALLOWED_IN_EQUATIONS
            assert not outside, f"{name} imports {outside}"


def test_backends_know_no_mechanics():
    for name, path in modules():
        if name.split(".")[1] == "backends":
            used = {t.split(".")[1] for t in imports(path) if t.startswith("linkwise.")}
            assert used <= {"backends", "trace", "errors"}, f"{name} imports {used}"


def test_one_place_names_the_backends():
    """The engine and `Robot` know the protocol; who takes another backend adds it to the table."""
    for name, path in modules():
        folders = r"linkwise\.backends\.(llvm|cstyle|cuda)"
        named = [t for t in imports(path) if re.match(folders, t)]
        layer = name.split(".")[1]
        if layer in ("engine", "factors", "se3", "functions", "robot", "load", "builder"):
            assert not named and not re.search(folders, path.read_text()), f"{name}: {named}"
        elif layer == "backends" and named:
            inside = re.match(folders, name)
            assert inside or name == "linkwise.backends.choice", f"{name}: {named}"


def test_only_the_cpu_backend_knows_its_compiler():
    for name, path in modules():
        if not name.startswith("linkwise.backends.llvm"):
            users = [t for t in imports(path) if t.split(".")[0] == "llvmlite"]
            assert not users, f"{name} imports {users}"


def test_loading_and_tracing_import_no_compiler():
    code = (
        "import sys, linkwise as lw; robot = lw.load('puma560'); print(robot);"
        "robot.operation_count('forward_dynamics'); robot.source('bias');"
        "assert not {'llvmlite', 'linkwise.backends.llvm'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
