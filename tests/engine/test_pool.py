"""Memory of large results: used again once nobody has the last one, and never before."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.engine import pool

ROWS = pool.LARGE // 8 // 49 + 1  # mass matrices of seven joints


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    monkeypatch.setattr(pool, "_free", {})


def place(x: np.ndarray) -> int:
    return int(x.__array_interface__["data"][0])


def test_memory_of_a_dropped_result_is_used_again() -> None:
    robot, q = lw.load("iiwa14"), np.zeros((ROWS, 7))
    first = robot.mass_matrix(q)
    expected, where = first[:3].copy(), place(first)
    first[:] = np.nan
    del first
    second = robot.mass_matrix(q)
    assert place(second) == where
    assert np.array_equal(second[:3], expected) and np.isfinite(second).all()


def test_memory_is_not_used_again_while_a_view_of_it_lives() -> None:
    robot, q = lw.load("iiwa14"), np.zeros((ROWS, 7))
    corner = robot.mass_matrix(q)[-1, :2, 1:]  # the result itself has no name
    kept, where = corner.copy(), place(corner)
    others = [robot.mass_matrix(q + 1.0) for _ in range(2)]
    assert not any(place(x) <= where < place(x) + x.nbytes for x in others)
    assert np.array_equal(corner, kept)


def test_results_are_ordinary_arrays() -> None:
    large = pool.empty((ROWS, 7, 7), "float64")
    assert type(large) is np.ndarray and large.shape == (ROWS, 7, 7)
    assert large.flags.c_contiguous and large.flags.writeable and large.flags.aligned
    assert place(large) % pool.LINE == 0
    base = large
    while base.base is not None:  # as people find out whose memory it is: no AttributeError
        base = base.base
    assert base is not large
    small = pool.empty((3, 7, 7), "float32")
    assert small.flags.owndata and small.dtype == np.float32


def test_a_much_smaller_result_does_not_take_it() -> None:
    large = pool.empty((3 * pool.LARGE,), "uint8")
    where = place(large)
    del large
    assert place(pool.empty((pool.LARGE,), "uint8")) != where
    assert place(pool.empty((3 * pool.LARGE - 1,), "uint8")) == where


def test_no_more_is_kept_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_most_kept", 3 * pool.LARGE)
    for k in range(5):
        large = pool.empty((pool.LARGE + k * pool.LARGE // 3,), "uint8")
        del large
    assert sum(room.nbytes for room in pool._free.values()) <= 3 * pool.LARGE
    assert pool._free  # the last ones are


def test_memory_that_is_kept_is_given_up_where_there_is_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = pool.empty((pool.LARGE,), "uint8")
    del large
    real = np.empty

    def empty(*given: Any) -> np.ndarray:
        if pool._free:
            raise MemoryError
        return real(*given)

    monkeypatch.setattr(np, "empty", empty)
    assert pool.empty((9 * pool.LARGE,), "uint8").nbytes == 9 * pool.LARGE


def test_threads_never_share_memory() -> None:
    """Each thread fills what it is given, waits for the others, and finds what it wrote."""
    count, together = 6, threading.Barrier(6, timeout=60)

    def work(k: int) -> bool:
        for turn in range(20):
            own = pool.empty((pool.LARGE // 8,), "float64")
            own[::4096] = 100 * k + turn
            together.wait()
            if not (own[::4096] == 100 * k + turn).all():
                return False
            del own
            together.wait()
        return True

    with ThreadPoolExecutor(count) as threads:
        assert all(threads.map(work, range(count)))
