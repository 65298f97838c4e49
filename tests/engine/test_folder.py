"""What the kernel cache believes: regular files of this user, in a folder of this user alone.

And how it keeps to its size.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.engine import cache as cache_module
from linkwise.engine import folder as folder_module
from linkwise.engine.cache import (
    ABANDONED,
    LIMIT,
    SHARE,
    CacheWarning,
    KernelCache,
    size_limit,
)

OURS, THEIRS = b"ours" * 500, b"evil" * 500
KEY = "0" * 64
STRANGER = 12345
READS = int(os.environ.get("LINKWISE_FLIP_READS", "4000"))

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="no file owners here")


@pytest.fixture
def cache(tmp_path: Path) -> KernelCache:
    return KernelCache(tmp_path / "kernels")


def made(folder: Path, code: bytes, mode: int = 0o700) -> Path:
    """A cache with one entry, and the mode of its folder."""
    KernelCache(folder).put(KEY, code)
    folder.chmod(mode)
    return folder


def as_stranger(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, STRANGER, STRANGER)


@contextmanager
def flipping(flip: Callable[[int], None]) -> Iterator[None]:
    """Another thread calls ``flip(0)``, ``flip(1)``, ... as fast as it can."""
    done = threading.Event()

    def run() -> None:
        k = 0
        while not done.is_set():
            flip(k)
            k += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def read_often(cache: KernelCache) -> set[bytes | None]:
    return {cache.get(KEY) for _ in range(READS)}


# -- who wrote it -------------------------------------------------------------------------------


def test_a_link_that_flips_to_a_folder_of_others_is_never_believed(tmp_path: Path) -> None:
    mine, open_to_all = made(tmp_path / "mine", OURS), made(tmp_path / "open", THEIRS, 0o777)
    link, spare = tmp_path / "link", tmp_path / "spare"

    def flip(k: int) -> None:
        spare.symlink_to((mine, open_to_all)[k % 2])
        os.replace(spare, link)

    flip(0)
    with flipping(flip):
        found = read_often(KernelCache(link))
    assert OURS in found and found <= {OURS, None}


def test_an_entry_that_flips_to_a_link_is_never_followed(
    cache: KernelCache, tmp_path: Path
) -> None:
    evil = made(tmp_path / "open", THEIRS) / cache.path(KEY).name
    good = made(tmp_path / "good", OURS) / cache.path(KEY).name
    cache.put(KEY, OURS)
    spare = cache.folder / "spare"

    def flip(k: int) -> None:
        if k % 2:
            spare.symlink_to(evil)
        else:
            os.link(good, spare)
        os.replace(spare, cache.path(KEY))

    with flipping(flip):
        found = read_often(cache)
    assert OURS in found and found <= {OURS, None}


def test_an_entry_of_somebody_else_is_a_miss_and_is_replaced(cache: KernelCache) -> None:
    cache.put(KEY, THEIRS)
    as_stranger(cache.path(KEY))
    assert cache.get(KEY) is None
    cache.put(KEY, OURS)
    assert cache.get(KEY) == OURS


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_that_others_can_write_is_a_miss(mode: int, cache: KernelCache) -> None:
    cache.put(KEY, THEIRS)
    cache.path(KEY).chmod(mode)
    assert cache.get(KEY) is None


def test_a_folder_given_away_is_not_read(cache: KernelCache) -> None:
    cache.put(KEY, THEIRS)
    as_stranger(cache.folder)
    assert cache.get(KEY) is None
    assert cache.entries() == [] and cache.clear() == 0, "not even to count or to clear it"
    assert cache.problem() == "belongs to somebody else or is writable by others"


@pytest.mark.parametrize("what", ["fifo", "device", "folder"])
def test_what_is_no_regular_file_is_a_miss_at_once(what: str, cache: KernelCache) -> None:
    cache.put(KEY, OURS)
    path = cache.path(KEY)
    path.unlink()
    if what == "fifo":
        os.mkfifo(path, 0o600)
    elif what == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    began = time.monotonic()
    assert cache.get(KEY) is None
    assert time.monotonic() - began < 30.0, "to wait for a writer takes for ever"
    if what != "folder":
        cache.put(KEY, OURS)
        assert cache.get(KEY) == OURS, "replaced by an entry"


def test_a_folder_that_is_a_link_to_ones_own_is_used(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(made(tmp_path / "real", OURS))
    assert KernelCache(tmp_path / "link").get(KEY) == OURS


def test_a_fifo_in_place_of_the_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    cache = KernelCache(tmp_path / "fifo")
    assert cache.get(KEY) is None
    with pytest.warns(CacheWarning, match="cannot be written"):
        cache.put(KEY, OURS)


def test_a_giant_entry_is_not_read(cache: KernelCache) -> None:
    """The length in the header is compared with the file's before anything is read."""
    cache.put(KEY, OURS)
    os.truncate(cache.path(KEY), 1 << 40)
    with pytest.warns(CacheWarning, match="damaged"):
        assert cache.get(KEY) is None


def test_where_files_cannot_be_opened_relative_to_a_folder(
    cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows: everything works by paths."""
    monkeypatch.setattr(folder_module, "_RELATIVE", False)
    assert cache.get(KEY) is None and cache.entries() == []
    cache.put(KEY, OURS)
    then = time.time() - 1000
    os.utime(cache.path(KEY), (then, then))
    assert cache.get(KEY) == OURS and cache.path(KEY).stat().st_mtime > then + 500
    assert [entry.name for entry in cache.entries()] == [cache.path(KEY).name]
    cache.path(KEY).write_bytes(b"damaged")
    with pytest.warns(CacheWarning, match="damaged"):
        assert cache.get(KEY) is None
    cache.put(KEY, OURS)
    assert cache.clear() == 1 and cache.entries() == []


# -- its size -----------------------------------------------------------------------------------


def key(k: int) -> str:
    return f"{k:064x}"


def fill(cache: KernelCache, count: int, size: int = 1000) -> None:
    """Entries whose last use lies an hour apart, the first the longest ago."""
    for k in range(count):
        cache.put(key(k), bytes(size))
        then = time.time() - 3600 * (count - k)
        os.utime(cache.path(key(k)), (then, then))


def test_the_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    roomy, tight = KernelCache(tmp_path), KernelCache(tmp_path, 10_000)
    fill(roomy, 12)
    assert roomy.get(key(2)) is not None, "a use, from now on the newest but one"
    tight.put(key(99), bytes(1000))
    left = {k for k in (*range(12), 99) if tight.path(key(k)).exists()}
    assert tight.size() <= 10_000 * 7 / 8
    assert left == {2, 6, 7, 8, 9, 10, 11, 99}


def test_a_cache_within_its_limit_keeps_everything(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path, 100_000)
    fill(cache, 20)
    assert len(cache.entries()) == 20


def test_use_is_recorded_now_and_then(cache: KernelCache) -> None:
    cache.put(KEY, OURS)
    path = cache.path(KEY)
    for ago, recorded in ((100, False), (1000, True)):
        then = time.time() - ago
        os.utime(path, (then, then))
        assert cache.get(KEY) == OURS
        assert (abs(path.stat().st_mtime - time.time()) < 50) == recorded


def test_an_entry_larger_than_the_limit_is_not_written(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path, 500)
    cache.put(KEY, bytes(1000))
    assert cache.entries() == [] and cache.get(KEY) is None


def test_leftovers_of_dead_writers_are_removed_when_old(cache: KernelCache) -> None:
    cache.put(KEY, OURS)
    old, young = cache.folder / ".writing-1-old", cache.folder / ".writing-2-young"
    for path in (old, young):
        path.write_bytes(b"half")
    then = time.time() - 2 * ABANDONED
    os.utime(old, (then, then))
    cache_module._written.clear()  # as in a new process
    cache.put(key(1), OURS)
    assert not old.exists() and young.exists()


def test_a_process_looks_at_the_whole_folder_seldom(
    cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(cache_module, "_evict", lambda folder, limit: looks.append(limit))
    small = KernelCache(cache.folder, 640_000)
    for k in range(100):
        small.put(key(k), bytes(2000))
    assert 1 + 100 * 2000 // 10_000 - 5 <= len(looks) <= 1 + 100 * 2100 // 10_000


def test_processes_evict_side_by_side(tmp_path: Path) -> None:
    """Six processes write and read the same 120 entries, 2.4 MB, in a cache of 0.4 MB."""
    workers, limit, largest = 6, 400_000, 40_000
    code = f"""
        import random, sys
        from pathlib import Path
        from linkwise.engine.cache import KernelCache
        cache = KernelCache(Path({str(tmp_path)!r}), {limit})
        rng, found = random.Random(int(sys.argv[1])), 0
        for _ in range(600):
            k = rng.randrange(120)
            name, right = f"{{k:064x}}", random.Random(k).randbytes({largest} * (k + 1) // 120)
            code = cache.get(name)
            assert code in (None, right), k
            found += code is not None
            if code is None:
                cache.put(name, right)
        assert found > 20, "entries live long enough to be of use"
    """
    source = str(Path(lw.__file__).parents[1])
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(code), str(me)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": source},
        )
        for me in range(workers)
    ]
    for worker in running:
        _, errors = worker.communicate(timeout=300)
        assert worker.returncode == 0 and errors == "", errors
    cache = KernelCache(tmp_path, limit)
    since_they_looked = workers * (limit // SHARE + largest + 100)
    assert 0 < cache.size() <= limit + since_they_looked
    assert not [entry for entry in cache.entries() if entry.name.startswith(".writing-")]
    cache_module._written.clear()  # as in a new process
    cache.put(KEY, OURS)
    assert cache.size() <= limit


@pytest.mark.parametrize(
    ("text", "size"),
    [("", LIMIT), ("1000", 1000), ("500M", 500 * 1024**2), ("2G", 2 * 1024**3), ("0", 0),
     ("1.5 GiB", 3 * 1024**3 // 2), ("10kb", 10240), ("1T", 1024**4)],
)  # fmt: skip
def test_the_limit_is_written_as_people_write_it(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKWISE_CACHE_SIZE", text)
    assert size_limit() == size


@pytest.mark.parametrize("text", ["much", "-1", "1 parsec", "G", "nan", "٣"])
def test_a_limit_that_is_no_size_is_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWISE_CACHE_SIZE", text)
    cache_module._tell_once.cache_clear()
    with pytest.warns(CacheWarning, match="LINKWISE_CACHE_SIZE=.* is no size: expected bytes"):
        assert size_limit() == LIMIT
