"""``robot.export``: header, source, self-test and build file in a folder; a library and its loader.

arm.h  arm.c        the functions; nothing of linkwise is needed to compile or run them
arm_test.c          calls each and compares with numbers that linkwise wrote
arm_casadi.c        with ``casadi=``: the same for CasADi and acados, with derivatives
CMakeLists.txt      library and test:  cmake -B build && cmake --build build && ctest
libarm.so  arm.py   with ``shared=True``: compiled by this machine's C compiler, and a module
                    that calls it by ctypes
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import linkwise
from linkwise.engine.calls import Calls
from linkwise.engine.tasks import frames_of
from linkwise.errors import BackendUnavailable
from linkwise.export.casadi import ORDERS, casadi_source
from linkwise.export.loader import loader
from linkwise.export.selftest import selftest
from linkwise.export.source import Robot, header, source
from linkwise.export.wanted import Asked, Wanted, identifier, wanted
from linkwise.model.values import path_text

MATH = ("own", "libm")

# names that files and targets cannot have: headers of C, which ours would hide, targets of CMake
TAKEN = frozenset(
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdarg "
    "stdbool stddef stdint stdio stdlib string tgmath time wchar wctype "
    "all clean help install package test".split()
)

CMAKE = """\
# {prefix}: cmake -B build && cmake --build build && ctest --test-dir build
cmake_minimum_required(VERSION 3.10)
project({prefix} C)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)

add_library({prefix} {sources})  # shared with -DBUILD_SHARED_LIBS=ON
target_include_directories({prefix} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  # multiply-adds are written where they are wanted; add -march=native for fused ones
  target_compile_options({prefix} PRIVATE -ffp-contract=off)
endif()
if(UNIX)
  target_link_libraries({prefix} PUBLIC m)
endif()

enable_testing()
add_executable({prefix}_test {prefix}_test.c)
target_link_libraries({prefix}_test {prefix})
add_test(NAME {prefix} COMMAND {prefix}_test)
"""


def export(
    calls: Calls,
    folder: str | os.PathLike[str],
    functions: str | Iterable[str],
    dtype: str,
    *,
    name: str | None = None,
    axes: str = "base",
    f_ext: Sequence[str] = (),
    status: bool = False,
    math: str = "own",
    shared: bool = False,
    casadi: int | None = None,
) -> tuple[Path, ...]:
    """Write the files; returns their paths."""
    if math not in MATH:
        raise ValueError(f"export: math is {math!r}; expected 'own' or 'libm'")
    _check_casadi(casadi, dtype)
    tree = calls.tasks.tree
    prefix = _prefix(calls.tasks.name, name)
    robot = Robot(calls.tasks.name, prefix, tree, dtype, math == "libm", linkwise.__version__)
    asked = Asked(axes, frames_of(f_ext), status)
    found = wanted(calls.tasks, calls.kernels, functions, prefix, dtype, asked)
    texts = {f"{prefix}.h": header(robot, found), f"{prefix}.c": source(robot, found)}
    if casadi is not None:
        texts[f"{prefix}_casadi.c"] = casadi_source(robot, calls, found, casadi)
    sources = [file for file in texts if file.endswith(".c")]
    texts[f"{prefix}_test.c"] = selftest(robot, found)
    texts["CMakeLists.txt"] = CMAKE.format(prefix=prefix, sources=" ".join(sources))
    target = Path(path_text("export: folder", folder))
    target.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (target / file).write_text(text, encoding="utf-8")
    more = _shared(target, robot, found, sources) if shared else ()
    return (*(target / file for file in texts), *more)


def _check_casadi(order: int | None, dtype: str) -> None:
    """Raise unless CasADi can be given functions, with derivatives of an order."""
    if order is None:
        return
    if order not in ORDERS:
        raise ValueError(f"export: casadi is {order!r}; expected an order of derivatives: 0, 1, 2")
    if dtype != "float64":
        raise ValueError(f"export: casadi with dtype {dtype!r}; expected 'float64', as CasADi has")


def _prefix(robot: str, name: str | None) -> str:
    """What every name in C begins with."""
    if name is None:
        made = identifier(robot)
        usable = made[:1].isalpha() and made.lower() not in TAKEN
        return made if usable else f"robot_{made}".rstrip("_")
    if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
        raise ValueError(f"export: name is {name!r}; expected an identifier of C")
    if name.lower() in TAKEN:
        raise ValueError(
            f"export: name is {name!r}, which a header of C or a target of CMake has; expected "
            "another"
        )
    return name


def _shared(
    folder: Path, robot: Robot, functions: Sequence[Wanted], sources: Sequence[str]
) -> tuple[Path, Path]:
    """Compile the source, and write the module that calls it."""
    library = folder / f"lib{robot.prefix}.so"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        raise BackendUnavailable(
            f"export: shared needs a C compiler, and {compiler[0]!r} is not found: install one "
            "(apt install gcc), or name it in the environment variable CC"
        )
    flags = shlex.split(os.environ.get("CFLAGS", "-O2"))
    fixed = ["-std=c99", "-ffp-contract=off", "-fPIC", "-shared"]
    command = [*compiler, *flags, *fixed, "-o", library.name, *sources, "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise BackendUnavailable(
            f"export: {shlex.join(command)} in {str(folder)!r} failed: {done.stderr.strip()}"
        )
    module = folder / f"{robot.prefix}.py"
    module.write_text(loader(robot, functions, library.name), encoding="utf-8")
    return library, module
