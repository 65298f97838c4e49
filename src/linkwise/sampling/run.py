"""A study from its first chunk to its last, on Dask's workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from linkwise.interop.package import package
from linkwise.sampling.chunks import computed
from linkwise.sampling.store import Store

AHEAD = 2  # chunks that wait for each worker
Tell = Callable[[int, int], None]  # (chunks done, of how many)


def run(
    store: Store, scheduler: str | None = None, workers: int | None = None, tell: Tell | None = None
) -> int:
    """Compute what is not done yet; returns how many chunks that were."""
    missing = [int(k) for k in (~store.done).nonzero()[0]]
    before = store.spec.chunks - len(missing)
    if not missing:
        return 0
    finished = 0
    with _client(scheduler, workers) as client:
        ways = max(1, len(client.scheduler_info()["workers"])) * AHEAD
        left = iter(missing)
        waiting = package("distributed", "a study", "study").as_completed(with_results=True)
        index_of: dict[Any, int] = {}

        def send() -> None:
            index = next(left, None)
            if index is not None:
                future = client.submit(computed, store.spec, index, store.ranges, pure=False)
                index_of[future.key] = index
                waiting.add(future)

        for _ in range(ways):
            send()
        for future, kept in waiting:
            store.write(index_of.pop(future.key), kept)
            finished += 1
            if tell is not None:
                tell(before + finished, store.spec.chunks)
            send()
    return finished


@contextmanager
def _client(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """A client of a scheduler, or of workers on this machine, one thread each."""
    distributed = package("distributed", "a study", "study")
    if scheduler is not None:
        with distributed.Client(scheduler) as client:
            yield client
        return
    count = workers or len(os.sched_getaffinity(0))
    with (
        distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            dashboard_address=None,
            host="127.0.0.1",
            silence_logs=40,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
