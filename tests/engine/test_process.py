"""linkwise in all kinds of processes: no home, no sources, strict about warnings, exiting."""

from __future__ import annotations

import compileall
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.engine import cache as cache_module
from linkwise.engine import identity
from linkwise.engine.cache import KernelCache, default_cache
from linkwise.errors import CacheWarning

PACKAGE = Path(lw.__file__).parent
EXITS = int(os.environ.get("LINKWISE_EXITS", "4"))
LINK = {"a": 1.0, "alpha": 0.3, "mass": 2.0, "com": (-0.5, 0.1, 0.0), "inertia": (0.1, 0.2, 0.3)}

# prints a mass matrix; with an argument, compiling is an error: the cache must have it all
MASS = f"""
    import sys
    import numpy as np
    import linkwise as lw
    from linkwise.backends.llvm import compile as llvm
    if sys.argv[1:]:
        def refuse(*_, **__): raise AssertionError("compiled, though the cache should have had it")
        llvm.to_object = refuse
    print(lw.from_dh([{LINK!r}] * 2).mass_matrix(np.ones((3, 2))).tobytes().hex())
"""


@pytest.fixture(scope="module")
def expected() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINKWISE_CACHE", "off")
        return lw.from_dh([LINK] * 2).mass_matrix(np.ones((3, 2))).tobytes().hex()


def python(
    code: str,
    *arguments: str,
    options: tuple[str, ...] = (),
    source: Path | None = None,
    **env: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a script in another interpreter; environment variables that are None are taken away."""
    here = {"PYTHONPATH": str(source or PACKAGE.parent), "LINKWISE_PROGRESS": "off"}
    merged = {**os.environ, **here, **env}
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={name: value for name, value in merged.items() if value is not None},
    )


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -- users without a home -----------------------------------------------------------------------

NOBODY = """
    import os, pwd
    def unknown(_): raise KeyError("no such user")
    pwd.getpwuid = pwd.getpwnam = unknown
"""
STRANGER = 54321  # a user whom no file knows
NUMBER = f"""
    import os
    import numpy as np
    import platformdirs
    import linkwise as lw
    platformdirs.user_cache_dir("linkwise")
    os.environ["LINKWISE_CACHE"] = "off"
    lw.from_dh([{LINK!r}] * 2).mass_matrix(np.zeros((3, 2)))
    del os.environ["LINKWISE_CACHE"]
    os.setgroups([])
    os.setgid({STRANGER})
    os.setuid({STRANGER})
"""
HOMELESS = {"HOME": None, "XDG_CACHE_HOME": None, "LINKWISE_CACHE": None}
needs_users = pytest.mark.skipif(not hasattr(os, "getuid"), reason="no numbered users here")


@needs_users
def test_no_home_and_no_entry_in_passwd(tmp_path: Path, expected: str) -> None:
    """The cache moves to a private folder among temporary files, without a word."""
    done = python(NOBODY + MASS, options=("-W", "error"), TMPDIR=str(tmp_path), **HOMELESS)
    assert succeeded(done) == expected and done.stderr == ""
    (folder,) = tmp_path.iterdir()
    assert folder.name == f"linkwise-{os.getuid()}" and folder.stat().st_mode & 0o777 == 0o700
    again = python(NOBODY + MASS, "cached", TMPDIR=str(tmp_path), **HOMELESS)
    assert succeeded(again) == expected


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can do this")
def test_a_user_who_is_only_a_number(expected: str) -> None:
    """As in many containers. All is imported before: Python's folder may be closed to others."""
    with tempfile.TemporaryDirectory() as folder:  # one that a stranger can get to
        os.chmod(folder, 0o777)
        done = python(NUMBER + MASS, options=("-W", "error"), TMPDIR=folder, **HOMELESS)
        assert succeeded(done) == expected and done.stderr == ""
        (cache,) = Path(folder).iterdir()
        assert cache.name == f"linkwise-{STRANGER}" and cache.stat().st_uid == STRANGER
        assert [file.suffix for file in cache.iterdir()] == [".kernel"]


@needs_users
def test_a_temporary_folder_that_others_made_is_not_used(tmp_path: Path, expected: str) -> None:
    folder = tmp_path / f"linkwise-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    done = python(NOBODY + MASS, TMPDIR=str(tmp_path), **HOMELESS)
    assert succeeded(done) == expected
    assert done.stderr.count("CacheWarning: kernel cache not used: neither the user's cache") == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("home", ["/proc/home", "/dev/null", "/dev/null/below"])
def test_a_home_that_cannot_be_used(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/proc takes no folders, whoever asks."""
    monkeypatch.delenv("LINKWISE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    monkeypatch.setattr(cache_module.tempfile, "tempdir", str(tmp_path))
    found = default_cache()
    assert found is not None and found.folder.parent == tmp_path


def test_no_folder_at_all_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LINKWISE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr(cache_module.tempfile, "tempdir", "/dev/null")
    cache_module._tell_once.cache_clear()
    with pytest.warns(CacheWarning, match="neither .* nor a folder for temporary files"):
        assert default_cache() is None
    assert default_cache() is None, "a second warning would be an error here"


# -- installed without sources ------------------------------------------------------------------


def copied(folder: Path) -> Path:
    """A copy of the package."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGE, folder / "linkwise", ignore=ignored))


def bytecode_only(folder: Path) -> Path:
    package = copied(folder)
    assert compileall.compile_dir(package, quiet=1, legacy=True)
    for file in package.rglob("*.py"):
        file.unlink()
    return folder


def zipped(folder: Path) -> Path:
    copied(folder / "content")
    return Path(shutil.make_archive(str(folder / "linkwise"), "zip", folder / "content"))


@pytest.mark.parametrize("install", [bytecode_only, zipped])
def test_bytecode_and_zip_archives(
    install: Callable[[Path], Path], tmp_path: Path, expected: str
) -> None:
    source, cache = install(tmp_path), str(tmp_path / "cache")
    done = python(MASS, source=source, options=("-W", "error"), LINKWISE_CACHE=cache)
    assert succeeded(done) == expected
    assert len(KernelCache(Path(cache)).entries()) == 2, "a kernel and the compiled entry"
    assert succeeded(python(MASS, "cached", source=source, LINKWISE_CACHE=cache)) == expected


def edited(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


POSES = """
    import numpy as np
    import linkwise as lw
    robot = lw.chain(2)
    poses = robot.forward_kinematics(np.ones(2), ["link1", "link2"])
    print(poses[0, 0, 0], robot.mass_matrix(np.ones(2))[1, 1])
"""


def test_an_edit_of_any_file_reaches_kernels_that_were_cached_before(tmp_path: Path) -> None:
    """Also of files that no list names: what is computed there changes with them."""
    package, cache = copied(tmp_path), str(tmp_path / "cache")

    def run() -> list[float]:
        done = python(POSES, source=tmp_path, LINKWISE_CACHE=cache)
        return [float(x) for x in succeeded(done).split()]

    cosine, mass = run()
    assert run() == [cosine, mass]
    frames, equations = package / "engine/frames.py", package / "engine/equations.py"
    edited(frames, "return list(flatten(", "return list(2.0 * x for x in flatten(")
    assert run() == [2.0 * cosine, mass]
    edited(equations, "graph.lift(x) for x in trace", "graph.lift(3.0 * x) for x in trace")
    assert run() == [6.0 * cosine, mass]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder of two modules, as installed."""
    (tmp_path / "linkwise" / "part").mkdir(parents=True)
    for name in ("__init__.py", "part/module.py", "part/notes.txt"):
        (tmp_path / "linkwise" / name).write_text("x = 1\n")
    return tmp_path / "linkwise"


def test_the_identity_of_sources_is_their_content(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of modules, not of other files, nor their dates."""
    monkeypatch.setattr(identity, "IMPORTED", float("inf"))
    first, module = identity._of_folder(package), package / "part/module.py"
    module.write_text("x = 2\n")
    assert first is not None and len(first) == 2 and identity._of_folder(package) != first
    module.write_text("x = 1\n")
    (package / "part/notes.txt").write_text("other")
    assert identity._of_folder(package) == first
    (package / "part/more.py").write_text("")
    assert identity._of_folder(package) != first


def test_the_identity_of_a_wheel_is_its_record_unless_it_was_edited(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "IMPORTED", float("inf"))
    sources, record = identity._of_folder(package), package.parent / "linkwise-9.9.dist-info/RECORD"
    record.parent.mkdir()
    record.write_text("linkwise/__init__.py,sha256=abc,1\n")
    assert identity._of_folder(package) == [("linkwise-9.9.dist-info", record.read_bytes())]
    later = record.stat().st_mtime + 1.0
    os.utime(package / "part/module.py", (later, later))
    assert identity._of_folder(package) == sources


def test_nothing_is_cached_by_a_process_whose_package_was_edited_since(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs the old code, under the name of the new files."""
    newest = max(file.stat().st_ctime for file in package.rglob("*.py"))
    monkeypatch.setattr(identity, "IMPORTED", newest)
    assert identity._of_folder(package)
    monkeypatch.setattr(identity, "IMPORTED", newest - 0.001)
    assert identity._of_folder(package) is None


class Frozen:
    """A loader of a frozen program: code objects, and no files."""

    def __init__(self, code: Any) -> None:
        self.code = code

    def get_code(self, _: str) -> Any:
        return self.code


def frozen(text: str | None) -> bytes | None:
    code = None if text is None else compile(text, "frozen.py", "exec")
    spec = identity.ModuleSpec("linkwise.some", Frozen(code))  # type: ignore[arg-type]
    return identity._content(spec)


def test_frozen_modules_are_known_by_their_code() -> None:
    text = "def f(x):\n    return x + {}, {{'a', 'b'}}\nassert f(1) in {{3, 4}}"
    assert frozen(text.format(1)) == frozen(text.format(1)) != frozen(text.format(2))
    assert b" at 0x" not in (frozen(text.format(1)) or b" at 0x")
    assert frozen(None) is None


def test_code_that_cannot_be_known_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: str
) -> None:
    from linkwise.engine import kernels

    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "source_digest", lambda: None)
    assert lw.from_dh([LINK] * 2).mass_matrix(np.ones((3, 2))).tobytes().hex() == expected
    assert not (tmp_path / "cache").exists()


# -- a Python that keeps its objects elsewhere ---------------------------------------------------

UNKNOWN_PYTHON = """
    import sys, warnings
    import numpy as np
    from linkwise.backends.llvm import layout
    if sys.argv[1:]:
        layout.layout = lambda: None
    import linkwise as lw
    robot, rng = lw.load("puma560"), np.random.default_rng(3)
    q, qd, u = rng.normal(size=(3, 5, 6))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for k in (0, 1, 1, 2):
            found = [
                robot.forward_dynamics(q[k], qd[k], u[k]), robot.kinetic_energy(q[k], qd[k]),
                robot.jacobian(q[k], "link6"), robot.mass_matrix(q[k].tolist()),
                robot.bias(q[k, ::-1], qd[k]), robot.mass_matrix(q[k], out=np.empty((6, 6))),
                robot.gravity_torque(q), robot.gravity_torque(q[k].astype("f4")),
                *robot.mass_matrix(q[k], status=True), robot.mass_matrix(q[k], threads=2),
            ]
            print([(type(x).__name__, x.dtype, x.shape, x.tobytes().hex()) for x in found])
            kept = robot.mass_matrix(q[k])
            robot.mass_matrix(q[4])
            assert np.array_equal(kept, found[5])
    for wrong in (q[0, :5], None, [1j] * 6):
        try:
            robot.mass_matrix(wrong)
        except (ValueError, TypeError) as error:
            print(error)
    print(*(w.message for w in told), file=sys.stderr)
"""


def test_without_the_compiled_entry() -> None:
    """The same results and messages, and one warning; single states still take microseconds."""
    usual, other = python(UNKNOWN_PYTHON), python(UNKNOWN_PYTHON, "other")
    assert succeeded(other) == succeeded(usual) and len(other.stdout.splitlines()) == 7
    told = "this Python keeps its objects where linkwise does not expect them: calls work, and"
    assert other.stderr.count("\n") == 1 and other.stderr.startswith(told)
    assert usual.stderr == "\n"


# -- warnings that are errors -------------------------------------------------------------------


def test_a_damaged_entry_where_warnings_are_errors(tmp_path: Path, expected: str) -> None:
    """The entry is replaced, and the log says what the warning would have said."""
    cache = KernelCache(tmp_path / "cache")
    strict = {"options": ("-W", "error"), "LINKWISE_CACHE": str(cache.folder)}
    assert succeeded(python(MASS, **strict)) == expected
    for entry in cache.entries():
        path = cache.folder / entry.name
        good = path.read_bytes()
        path.write_bytes(good[:-1])
        done = python(MASS, **strict)
        assert succeeded(done) == expected
        assert done.stderr == f"damaged kernel cache entry {path}: compiling it again\n"
        assert path.read_bytes() == good


def test_an_unusable_cache_where_warnings_are_errors(tmp_path: Path, expected: str) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = str(tmp_path / "file" / "cache")
    done = python(MASS, options=("-W", "error"), LINKWISE_CACHE=cache)
    assert succeeded(done) == expected
    assert done.stderr.count("kernel cache not used") == 1


# -- exit ---------------------------------------------------------------------------------------

COMPILING = f"""
    import sys, threading, time
    import numpy as np
    import linkwise as lw
    def work(k):
        while True:
            robot = lw.from_dh([{LINK!r}] * 16, gravity=(0.0, 0.0, -float(k)))
            robot.mass_matrix(np.zeros((2, 16)))
            k += 1
    for k in (0, 10_000):
        threading.Thread(target=work, args=(k,), daemon=True).start()
    time.sleep(float(sys.argv[1]))
"""


def test_exit_while_other_threads_compile() -> None:
    """LLVM in a daemon thread crashed 6 processes in 16 that took themselves apart around it."""
    rng = random.Random(5)
    for _ in range(EXITS):
        done = python(COMPILING, f"{rng.uniform(0.1, 1.5):.2f}", LINKWISE_CACHE="off")
        assert (done.returncode, done.stderr) == (0, "")


RUNNING = f"""
    import atexit, sys, threading, time
    import numpy as np
    q = np.ones((200_000, 2))
    def last():
        robot = lw.from_dh([{LINK!r}] * 2)
        print(robot.mass_matrix(q, threads=2).shape)
    atexit.register(last)  # runs after linkwise's own functions at exit
    import linkwise as lw
    def work():
        robot = lw.from_dh([{LINK!r}] * 2)
        while True:
            robot.mass_matrix(q, threads=2)
            robot.mass_matrix(q[0])
    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(float(sys.argv[1]))
"""


def test_exit_while_other_threads_compute() -> None:
    """At exit no thread can be started, and code that other threads are in stays where it is."""
    for k in range(EXITS // 2):
        done = python(RUNNING, f"{0.3 + 0.1 * k:.2f}")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "(200000, 2, 2)\n"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no list of processes")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_compiler_ends_with_the_process_that_started_it(how: int) -> None:
    """A compiler that nobody waits for any more would take a core for minutes."""
    code = """
        from linkwise.backends.llvm.compile import to_object_apart
        from linkwise.backends.llvm.target import host
        body = "".join(f"  %a{k + 1} = fadd double %a{k}, %a{k // 2}\\n" for k in range(10**5))
        text = f"define double @f(double %a0) {{\\n{body}  ret double %a100000\\n}}"
        to_object_apart(text, host())
    """
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "LINKWISE_CACHE": "off"}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, stderr=subprocess.DEVNULL
    )
    try:
        child = next(filter(None, (_child_of(process.pid) for _ in _ticks(60))))
        next(t for _ in _ticks(60) if (t := _seconds_of(child)) > 3)  # it has read all
        assert process.poll() is None
    finally:
        process.send_signal(how)
        process.wait(30)
    assert any(not _runs(child) for _ in _ticks(6)), "the compiler is still there"


def _ticks(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.05)


def _child_of(parent: int) -> int:
    """The first child of a process; 0 where there is none."""
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(found[0]) if found else 0


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _seconds_of(process: int) -> float:
    """Processor time so far."""
    numbers = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(os.name == "nt", reason="interrupts of children are POSIX here")
def test_an_interrupt_ends_the_wait_for_the_compiler() -> None:
    """A thread that stays in LLVM for a minute stands for a large robot."""
    code = """
        import atexit, signal, threading, time
        from linkwise.backends.llvm import compile as llvm
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
        atexit.register(print, "leaving", flush=True)  # before linkwise waits
        def work():
            with llvm.entered():
                print("compiling", flush=True)
                time.sleep(60)
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.5)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert [child.stdout.readline() for _ in range(2)] == ["compiling\n", "leaving\n"]
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=1)  # it waits for the compiler
        child.send_signal(signal.SIGINT)
    assert child.returncode == 130


@pytest.mark.parametrize("before", ["", "robot.gravity_torque(np.ones((3, 2)))"])
def test_a_call_at_exit_still_compiles(before: str, expected: str) -> None:
    """Functions that run at exit may be the first to need a kernel, or a compiler at all."""
    code = f"""
        import atexit
        def last():
            robot.inverse_dynamics(q, q, q)
            print(robot.mass_matrix(np.ones((3, 2)), threads=2).tobytes().hex())
            from llvmlite.binding.common import _is_shutting_down
            assert _is_shutting_down()  # nothing is freed that other threads may be in
        atexit.register(last)  # before linkwise's own
        import numpy as np
        import linkwise as lw
        robot, q = lw.from_dh([{LINK!r}] * 2), np.ones((200_000, 2))
        {before}
    """
    done = python(code, LINKWISE_CACHE="off")
    assert succeeded(done) == expected and done.stderr == ""


def test_objects_that_end_last_may_still_call() -> None:
    """Modules are gone by then, so Python may refuse; what the entry points to must not be gone."""
    code = """
        import builtins, sys
        import numpy as np
        import linkwise as lw
        class Last:
            def __init__(self): self.call, self.q = lw.load("puma560").mass_matrix, np.zeros(6)
            def __del__(self):
                try:
                    self.call(self.q), self.call([0.0] * 6), self.call(None)
                except Exception: pass
        for place in (builtins, sys, np, lw):
            place.last = Last()
            place.last.call(place.last.q)
    """
    done = python(code)
    assert done.returncode == 0, done.stderr
