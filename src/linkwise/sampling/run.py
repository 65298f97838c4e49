"""A study from its first chunk to its last, on Dask's workers."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

from linkwise.backends.process import available_cores
from linkwise.errors import StudyStopped, StudyWarning, warn
from linkwise.interop.package import package
from linkwise.sampling.chunks import computed
from linkwise.sampling.store import Store

AHEAD = 2  # chunks that wait for each thread of the workers
AGAIN = 5.0  # seconds after which workers are counted again: some may have come or gone
# Dask looks after itself less often: with its usual intervals that takes a tenth of a core
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.limit": "1h",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.scheduler.work-stealing-interval": "1s",
}
Tell = Callable[[int, int], None]  # (chunks done, of how many)


def run(
    store: Store, scheduler: str | None = None, workers: int | None = None, tell: Tell | None = None
) -> int:
    """Compute what is not done yet, or damaged; returns how many chunks that were."""
    damaged = store.damaged()
    if damaged:
        more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        warn(
            StudyWarning, f"study: {store.file(damaged[0])}{more}: lost or damaged; computed again"
        )
    missing = [int(k) for k in (~store.done).nonzero()[0]]
    before = store.spec.chunks - len(missing)
    if not missing:
        return 0
    with _client(scheduler, workers) as client:
        finished = 0
        for index, kept in Sent(client, store, missing):
            store.write(index, kept)
            finished += 1
            if tell is not None:
                tell(before + finished, store.spec.chunks)
    return finished


class Sent:
    """Chunks on their way to workers and back; a few for each wait, and no more."""

    def __init__(self, client: Any, store: Store, missing: list[int]) -> None:
        self._client, self._store = client, store
        self._left = iter(missing)
        self._robot = pickle.dumps(store.load())  # workers need not have the robot's file
        self._index_of: dict[Any, int] = {}
        self._counted, self._ways = -AGAIN, 0
        distributed = package("distributed", "a study", "study")
        self._waiting = distributed.as_completed(with_results=True, raise_errors=True)
        self._killed = distributed.KilledWorker

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """The number of each chunk and what is kept of it, as they come."""
        self._send()
        while self._index_of:
            try:
                future, kept = next(self._waiting)
            except self._killed as error:
                raise StudyStopped(
                    f"study: {error}; workers may have too little memory. What was computed is "
                    f"in {self._store.path}: the same command goes on from there"
                ) from error
            yield self._index_of.pop(future.key), kept
            self._send()

    def _send(self) -> None:
        """Send chunks until enough of them wait."""
        store, now = self._store, monotonic()
        if now - self._counted > AGAIN:
            self._counted = now
            self._ways = max(1, sum(self._client.nthreads().values())) * AHEAD
        while len(self._index_of) < self._ways:
            index = next(self._left, None)
            if index is None:
                return
            future = self._client.submit(
                computed, store.spec, index, store.ranges, self._robot, pure=False
            )
            self._index_of[future.key] = index
            self._waiting.add(future)


@contextmanager
def _client(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """A client of a scheduler, or of workers on this machine, one thread each."""
    distributed = package("distributed", "a study", "study")
    if scheduler is not None:
        with distributed.Client(scheduler) as client:
            yield client
        return
    count = workers or available_cores()
    dask = package("dask", "a study", "study")
    with (
        dask.config.set(QUIET),
        distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            dashboard_address=None,
            host="127.0.0.1",
            silence_logs=40,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        try:
            yield client
        except KeyboardInterrupt:  # a chunk may take minutes: nobody waits for its end
            _end(cluster)
            raise


def _end(cluster: Any) -> None:
    """End the workers' processes now."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        if nanny.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
