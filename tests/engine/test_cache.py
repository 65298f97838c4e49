"""The kernel cache: whatever happens to it, numbers stay right and the cache stays usable."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.backends.llvm.backend import Llvm
from linkwise.backends.llvm.layout import layout
from linkwise.backends.llvm.target import host
from linkwise.engine import cache as cache_module
from linkwise.engine import compiled
from linkwise.engine import kernels as engine
from linkwise.engine.cache import HEADER, KernelCache, default_cache
from linkwise.engine.folder import PrivateFolder
from linkwise.errors import CacheWarning

# Random damage to entries, end to end; raise it for a long run: LINKWISE_DAMAGE_CASES=2000.
DAMAGE_CASES = int(os.environ.get("LINKWISE_DAMAGE_CASES", "60"))
KILLS = 8

LINK = {"a": 1.0, "mass": 2.0, "com": (-0.5, 0.1, 0.0), "inertia": (0.1, 0.2, 0.3)}
OTHER = {**LINK, "mass": 2.5}
Q = np.random.default_rng(3).uniform(-3, 3, (11, 2))


@pytest.fixture(scope="module", autouse=True)
def _entry() -> None:
    """Load the compiled entry, once per process, so that tests count entries of kernels only."""
    mass()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, cold."""
    place = tmp_path / "kernels"
    monkeypatch.setenv("LINKWISE_CACHE", str(place))
    return place


@pytest.fixture
def cache(folder: Path) -> KernelCache:
    return KernelCache(folder)


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and from then on compiling is an error: everything must come from the cache."""

    def switch_off() -> None:
        def refuse(*_: Any, **__: Any) -> bytes:
            raise AssertionError("compiled, though the cache should have had it")

        monkeypatch.setattr(Llvm, "build", refuse)

    return switch_off


def paths(cache: KernelCache) -> list[Path]:
    return [cache.folder / entry.name for entry in cache.entries()]


@contextmanager
def quietly() -> Iterator[None]:
    """Nothing may be told, neither as a warning nor, in its stead, in the log."""
    told: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache_module, "_tell", told.append)
        yield
    assert told == []


def arm(link: dict[str, Any] = LINK, **options: Any) -> lw.Robot:
    """A new robot each time: nothing is remembered but on disk."""
    return lw.from_dh([link, link], **options)


def mass(link: dict[str, Any] = LINK) -> bytes:
    return arm(link).mass_matrix(Q).tobytes()


@pytest.fixture(scope="module")
def right() -> Iterator[dict[str, bytes]]:
    """What two arms compute, without any cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINKWISE_CACHE", "off")
        yield {"link": mass(LINK), "other": mass(OTHER)}


def everything(robot: lw.Robot) -> list[bytes]:
    """One result of each kind of kernel: batch, float32, method, frame, single call."""
    tau = Q[::-1].copy()
    results = [
        robot.mass_matrix(Q),
        robot.mass_matrix(Q.astype("f4")),
        robot.forward_dynamics(Q, tau, tau, method="aba"),
        robot.forward_dynamics(Q, tau, tau, method="crba"),
        robot.jacobian(Q, "link2"),
        robot.jacobian(Q, "link2", axes="body"),
        robot.forward_kinematics(Q[0], "link1"),
        robot.inverse_dynamics(Q[0], tau[0], tau[1]),
        robot.inverse_dynamics(Q[0], tau[0], tau[1]),
        robot.inverse_dynamics(Q, tau, tau, f_ext={"link2": np.arange(6.0)}),
    ]
    return [r.tobytes() for r in results]


# -- in order -----------------------------------------------------------------------------------


def test_cold_warm_and_no_cache_give_the_same_bits(
    folder: Path, monkeypatch: pytest.MonkeyPatch, no_compiler: Callable[[], None]
) -> None:
    cold = everything(arm())
    assert folder.is_dir()
    monkeypatch.setenv("LINKWISE_CACHE", "off")
    assert everything(arm()) == cold
    monkeypatch.setenv("LINKWISE_CACHE", str(folder))
    no_compiler()
    assert everything(arm()) == cold


def test_another_process_uses_the_entries(folder: Path) -> None:
    """Single-state calls refer to Python objects, whose addresses no entry may contain."""
    tau = Q[::-1].copy()
    robot = arm()
    expected = [robot.mass_matrix(Q), robot.inverse_dynamics(Q[0], tau[0], tau[1])]
    code = f"""
        import sys
        import numpy as np
        import linkwise as lw
        from linkwise.backends.llvm.backend import Llvm
        def refuse(*_, **__): raise AssertionError("compiled")
        Llvm.build = refuse  # kernels; the entry is not one of this robot's
        link = {LINK!r}
        robot = lw.from_dh([link, link])
        q = np.frombuffer(bytes.fromhex({Q.tobytes().hex()!r})).reshape(-1, 2)
        tau = q[::-1].copy()
        sys.stdout.write(robot.mass_matrix(q).tobytes().hex() + " ")
        sys.stdout.write(robot.inverse_dynamics(q[0], tau[0], tau[1]).tobytes().hex())
    """
    output = python(code).stdout.split()
    assert output == [a.tobytes().hex() for a in expected]


@pytest.mark.parametrize("word", ["off", "OFF", "0", ""])
def test_the_cache_can_be_switched_off(
    word: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, right: dict[str, bytes]
) -> None:
    monkeypatch.setenv("LINKWISE_CACHE", word)
    monkeypatch.chdir(tmp_path)
    assert default_cache() is None
    assert mass() == right["link"]
    assert list(tmp_path.iterdir()) == []


def test_a_tilde_is_the_users_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("LINKWISE_CACHE", "~/kernels")
    found = default_cache()
    assert found is not None and found.folder == tmp_path / "kernels"


def test_the_default_is_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LINKWISE_CACHE")
    found = default_cache()
    assert found is not None and found.folder.name == "linkwise"


def test_entries_are_private_files_named_by_digest(folder: Path, cache: KernelCache) -> None:
    mass()
    (entry,) = paths(cache)
    assert len(entry.stem) == 64 and set(entry.stem) <= set("0123456789abcdef")
    assert cache.size() == entry.stat().st_size > HEADER.size
    if hasattr(os, "getuid"):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert entry.stat().st_mode & 0o077 == 0
    assert cache.clear() == 1
    assert cache.entries() == [] and cache.size() == 0 and cache.clear() == 0


def test_what_a_kernel_depends_on_is_in_its_key(
    folder: Path, cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def new_entries(run: Callable[[], Any]) -> int:
        before = set(paths(cache))
        run()
        assert before <= set(paths(cache))
        return len(set(paths(cache)) - before)

    tau = Q[::-1].copy()
    push = np.ones(6)
    flying = lw.Builder("flying").link("base", mass=1.0, inertia=(1, 1, 1)).build(base="free")
    different: dict[str, Callable[[], Any]] = {
        "first": lambda: arm().mass_matrix(Q),
        "dtype": lambda: arm().mass_matrix(Q.astype("f4")),
        "mass": lambda: arm(OTHER).mass_matrix(Q),
        "last digit": lambda: arm({**LINK, "a": np.nextafter(1.0, 2.0)}).mass_matrix(Q),
        "joint kind": lambda: arm({**LINK, "kind": "prismatic"}).mass_matrix(Q),
        "rotor": lambda: arm({**LINK, "armature": 0.1}).mass_matrix(Q),
        "gravity": lambda: arm(gravity=(0.0, 0.0, -1.62)).mass_matrix(Q),
        "structure": lambda: lw.from_dh([LINK] * 3).mass_matrix(np.zeros((4, 3))),
        "function": lambda: arm().gravity_torque(Q),
        "dtype of one method": lambda: arm().gravity_torque(Q.astype("f4")),
        "method": lambda: arm().mass_matrix_inverse(Q, method="crba"),
        "other method": lambda: arm().mass_matrix_inverse(Q, method="aba"),
        "frame": lambda: arm().jacobian(Q, "link1"),
        "other frame": lambda: arm().jacobian(Q, "link2"),
        "axes": lambda: arm().jacobian(Q, "link2", axes="body"),
        "status": lambda: arm().mass_matrix(Q, status=True),
        "Λ": lambda: flying.operational_inertia(flying.neutral()[None], "base"),
        "damping": lambda: flying.operational_inertia(flying.neutral()[None], "base", damping=0.1),
        "wrench": lambda: arm().bias(Q, tau, f_ext={"link2": push}),
        "other wrench": lambda: arm().bias(Q, tau, f_ext={"link1": push}),
        "both": lambda: arm().bias(Q, tau, f_ext={"link1": push, "link2": push}),
    }
    for what, run in different.items():
        assert new_entries(run) == 1, f"{what} is not in the key"
        assert new_entries(run) == 0, f"{what}: not found again"
    assert new_entries(lambda: arm(name="another name").mass_matrix(Q)) == 0
    if layout() is not None:
        assert new_entries(lambda: arm().mass_matrix(Q[0])) == 1, "single-state call"
    with monkeypatch.context() as patch:
        patch.setattr(engine, "source_digest", lambda: "an edited linkwise")
        assert new_entries(mass) == 1
    with monkeypatch.context() as patch:
        older = replace(host(), versions="llvmlite 0.1, LLVM 1")
        patch.setattr(compiled, "cpu", lambda: Llvm(older))
        assert new_entries(mass) == 1


def test_a_failed_build_is_not_cached(
    cache: KernelCache, monkeypatch: pytest.MonkeyPatch, right: dict[str, bytes]
) -> None:
    robot = arm()
    with monkeypatch.context() as patch:

        def fail(*_: Any, **__: Any) -> bytes:
            raise MemoryError("no room to compile")

        patch.setattr(Llvm, "build", fail)
        with pytest.raises(MemoryError, match="no room to compile"):
            robot.mass_matrix(Q)
    assert cache.entries() == []
    assert robot.mass_matrix(Q).tobytes() == right["link"]


# -- damage -------------------------------------------------------------------------------------


def flip(data: bytes, bit: int) -> bytes:
    at = bit // 8
    return data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :]


# what can happen to an entry: (its bytes, another entry's bytes, chance) -> its bytes after that
DAMAGE: dict[str, Callable[[bytes, bytes, random.Random], bytes]] = {
    "bit flip": lambda data, _, rng: flip(data, rng.randrange(8 * len(data))),
    "bit flip in the header": lambda data, _, rng: flip(data, rng.randrange(8 * HEADER.size)),
    "truncated": lambda data, _, rng: data[: rng.randrange(len(data))],
    "grown": lambda data, _, rng: data + rng.randbytes(rng.randrange(1, 5000)),
    "zeroed block": lambda data, _, rng: over(data, rng.randrange(len(data)), bytes(512)),
    "noisy block": lambda data, _, rng: over(data, rng.randrange(len(data)), rng.randbytes(64)),
    "all noise": lambda data, _, rng: rng.randbytes(len(data)),
    "doubled": lambda data, _, rng: data + data[: rng.randrange(1, len(data) + 1)],
    "another robot's entry": lambda data, other, _: other,
    "another robot's code": lambda data, other, _: data[: HEADER.size] + other[HEADER.size :],
}


def over(data: bytes, at: int, block: bytes) -> bytes:
    """Write a block over a part of the data, which keeps its length."""
    return (data[:at] + block + data[at + len(block) :])[: len(data)]


@pytest.fixture
def two_entries(cache: KernelCache) -> tuple[Path, bytes, bytes]:
    """The entry of the first arm, what is in it, and what is in the other arm's."""
    mass(LINK)
    (path,) = paths(cache)
    mass(OTHER)
    (other,) = set(paths(cache)) - {path}
    return path, path.read_bytes(), other.read_bytes()


@pytest.mark.parametrize("kind", DAMAGE)
def test_random_damage_never_gives_a_wrong_number(
    kind: str, two_entries: tuple[Path, bytes, bytes], right: dict[str, bytes]
) -> None:
    path, good, other = two_entries
    rng = random.Random(kind)
    for case in range(max(1, DAMAGE_CASES // len(DAMAGE))):
        bad = DAMAGE[kind](good, other, rng)
        if bad == good:
            continue  # zeros over zeros
        path.write_bytes(bad)
        with pytest.warns(CacheWarning, match="damaged kernel cache entry .*: compiling it again"):
            assert mass() == right["link"], f"{kind}, case {case}"
        assert path.read_bytes() == good, "the entry is replaced by a good one"
    assert mass(OTHER) == right["other"]


def test_every_bit_of_the_header_counts(cache: KernelCache) -> None:
    key = "0" * 64
    code = bytes(range(256))
    cache.put(key, code)
    good = cache.path(key).read_bytes()
    for bit in range(8 * len(good)):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        cache.path(key).write_bytes(bad)
        with pytest.warns(CacheWarning):
            assert cache.get(key) is None, f"bit {bit}"
        assert not cache.path(key).exists()


def test_every_truncation_is_seen(cache: KernelCache) -> None:
    key = "0" * 64
    cache.put(key, b"code" * 20)
    good = cache.path(key).read_bytes()
    for length in range(len(good)):
        cache.path(key).write_bytes(good[:length])
        with pytest.warns(CacheWarning):
            assert cache.get(key) is None, f"{length} bytes"


def test_an_entry_under_another_name_is_refused(
    two_entries: tuple[Path, bytes, bytes], cache: KernelCache, right: dict[str, bytes]
) -> None:
    path, good, other = two_entries
    (second,) = set(paths(cache)) - {path}
    path.write_bytes(other)
    second.write_bytes(good)
    with pytest.warns(CacheWarning):
        assert mass(LINK) == right["link"]
    with pytest.warns(CacheWarning):
        assert mass(OTHER) == right["other"]
    with quietly():
        assert (mass(LINK), mass(OTHER)) == (right["link"], right["other"])


def test_an_empty_file_is_damage(
    two_entries: tuple[Path, bytes, bytes], right: dict[str, bytes]
) -> None:
    path, good, _ = two_entries
    path.write_bytes(b"")
    with pytest.warns(CacheWarning):
        assert mass() == right["link"]
    assert path.read_bytes() == good


def test_a_folder_in_place_of_an_entry(
    two_entries: tuple[Path, bytes, bytes], cache: KernelCache, right: dict[str, bytes]
) -> None:
    path, _, _ = two_entries
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("somebody's")
    with pytest.warns(CacheWarning, match="cannot be written"):
        assert mass() == right["link"]
    assert not [p for p in cache.entries() if p.name.startswith(".writing-")]
    assert cache.clear() == 1, "only what was deleted is counted"
    assert (path / "inside").exists()


def test_a_file_in_place_of_the_folder(folder: Path, right: dict[str, bytes]) -> None:
    folder.write_text("not a folder")
    with pytest.warns(CacheWarning, match="cannot be written"):
        assert mass() == right["link"]
    assert folder.read_text() == "not a folder"


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links")
def test_a_dangling_link_in_place_of_an_entry(
    two_entries: tuple[Path, bytes, bytes], right: dict[str, bytes], tmp_path: Path
) -> None:
    path, good, _ = two_entries
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    assert mass() == right["link"]
    assert path.read_bytes() == good and not path.is_symlink()
    assert not (tmp_path / "nowhere").exists()


# -- a cache that cannot be used ----------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("function", ["write", "fsync", "replace", "mkdir"])
def test_failing_to_write_costs_a_warning(
    function: str,
    number: int,
    cache: KernelCache,
    monkeypatch: pytest.MonkeyPatch,
    right: dict[str, bytes],
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    where: Any = {"write": PrivateFolder, "mkdir": Path}.get(function, os)
    with monkeypatch.context() as patch:
        patch.setattr(where, function, fail)
        with pytest.warns(CacheWarning, match=f"cannot be written .{os.strerror(number)}"):
            assert mass() == right["link"]
        with quietly():  # said once
            assert (mass(), mass(OTHER)) == (right["link"], right["other"])
        assert cache.entries() == [], "nothing half-written stays"
    assert mass() == right["link"]
    assert len(cache.entries()) == 1, "usable again when the disk is"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_failing_to_read_is_a_miss(
    number: int,
    two_entries: tuple[Path, bytes, bytes],
    monkeypatch: pytest.MonkeyPatch,
    right: dict[str, bytes],
) -> None:
    def fail(*_: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(PrivateFolder, "open", fail)
    assert mass() == right["link"]


needs_owners = pytest.mark.skipif(not hasattr(os, "getuid"), reason="no file owners here")


@needs_owners
def test_a_read_only_folder(
    two_entries: tuple[Path, bytes, bytes], folder: Path, right: dict[str, bytes]
) -> None:
    if os.getuid() == 0:
        pytest.skip("root may write anywhere; the failing calls above stand in for this")
    folder.chmod(0o500)
    try:
        with pytest.warns(CacheWarning, match="cannot be written"):
            assert arm().gravity_torque(Q).shape == Q.shape
        assert mass() == right["link"]
    finally:
        folder.chmod(0o700)


@needs_owners
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720])
def test_a_folder_others_can_write_is_refused(
    mode: int, two_entries: tuple[Path, bytes, bytes], folder: Path, right: dict[str, bytes]
) -> None:
    path, good, _ = two_entries
    folder.chmod(mode)
    # not even a whole entry is believed there: somebody else could have made it
    with pytest.warns(CacheWarning, match="belongs to somebody else or is writable by others"):
        assert mass() == right["link"]
    assert path.read_bytes() == good
    assert KernelCache(folder).get(path.stem) is None
    folder.chmod(0o700)
    assert KernelCache(folder).get(path.stem) == good[HEADER.size :]


@needs_owners
def test_somebody_elses_folder_is_refused(
    two_entries: tuple[Path, bytes, bytes],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    right: dict[str, bytes],
) -> None:
    path, good, _ = two_entries
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert KernelCache(folder).get(path.stem) is None
    with pytest.warns(CacheWarning, match="belongs to somebody else"):
        assert mass() == right["link"]
    assert path.read_bytes() == good


# -- several processes, and ends that nobody planned ---------------------------------------------


def python(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a script in another interpreter that sees the same linkwise and the same cache."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=True, timeout=120, env=environment(), **options,
    )  # fmt: skip


def environment() -> dict[str, str]:
    source = str(Path(lw.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source}


def start(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip


WORKER = f"""
    import sys
    import numpy as np
    import linkwise as lw
    link = {LINK!r}
    q = np.frombuffer(bytes.fromhex({Q.tobytes().hex()!r})).reshape(-1, 2)
    lw.from_dh([link]).mass_matrix(np.zeros((1, 1)))  # everything is imported
    print("ready", flush=True)
"""


def test_processes_that_write_the_same_entry_at_once(
    cache: KernelCache, right: dict[str, bytes]
) -> None:
    once = WORKER + (
        "    sys.stdin.readline()\n"
        "    print(lw.from_dh([link, link]).mass_matrix(q).tobytes().hex())\n"
    )
    workers = [start(once) for _ in range(4)]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    before = set(paths(cache))
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        output, _ = worker.communicate(timeout=120)
        assert worker.returncode == 0
        assert output.strip() == right["link"].hex()
    (entry,) = set(paths(cache)) - before
    assert cache.get(entry.stem) is not None


def test_a_reader_never_sees_half_an_entry(folder: Path, cache: KernelCache) -> None:
    """One process rewrites an entry as fast as it can; this one reads it as fast as it can."""
    writer = start(f"""
        import sys
        from pathlib import Path
        from linkwise.engine.cache import KernelCache
        cache = KernelCache(Path({str(folder)!r}))
        cache.put("0" * 64, bytes(50_000))
        print("ready", flush=True)
        for k in range(400):
            cache.put("0" * 64, bytes([k % 256]) * (50_000 + k))
    """)
    assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    reads = 0
    while writer.poll() is None or reads == 0:
        code = cache.get("0" * 64)
        assert code is not None and len(set(code)) == 1
        reads += 1
    writer.communicate(timeout=60)
    assert writer.returncode == 0


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_kill_at_random_moments_of_cold_compiles(
    cache: KernelCache, folder: Path, right: dict[str, bytes]
) -> None:
    forever = WORKER + textwrap.indent(
        textwrap.dedent("""
            import itertools
            for k in itertools.count():
                robot = lw.from_dh([link, link], gravity=(0.0, 0.0, -float(k)))
                robot.mass_matrix(q), robot.bias(q[0], q[1])
                lw.from_dh([link, link]).mass_matrix(q)
        """),
        "    ",
    )
    rng = random.Random(11)
    for _ in range(KILLS):
        worker = start(forever)
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.0, 0.1))
        worker.kill()
        worker.communicate(timeout=60)
        assert worker.returncode == -signal.SIGKILL
        for entry in paths(cache):  # what the dead process left must all be whole
            if not entry.name.startswith(".writing-"):
                assert cache.get(entry.stem) is not None
        assert mass() == right["link"]
        assert mass() == right["link"]
        if rng.random() < 0.5:
            shutil.rmtree(folder)  # as cold as at first
    cache.clear()
    assert cache.entries() == []


def test_leftovers_of_killed_writers_are_counted_and_cleared(
    cache: KernelCache, folder: Path, right: dict[str, bytes]
) -> None:
    assert mass() == right["link"]
    (entry,) = paths(cache)
    (folder / ".writing-abc123").write_bytes(b"half an entry")
    (folder / "notes.txt").write_text("mine")
    assert len(cache.entries()) == 2
    assert cache.size() == entry.stat().st_size + len(b"half an entry")
    assert mass() == right["link"]
    assert cache.clear() == 2
    assert [p.name for p in folder.iterdir()] == ["notes.txt"]


def test_an_interrupted_write_leaves_nothing(
    cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cache.put("0" * 64, b"code")
    assert cache.entries() == []
