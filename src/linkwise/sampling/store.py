"""Results of a study in Zarr: a row per chunk, and which rows are done.

A row is written before it is marked as done, so that a process may be killed at any time: what is
marked is whole, and what is not is computed again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.interop.package import package
from linkwise.sampling.chunks import merged, pilot
from linkwise.sampling.spec import Spec, spec_of

Array = NDArray[Any]
DONE = "done"
VERSION = 1


class Store:
    """The results of one study."""

    def __init__(self, path: str | Path, group: Any, spec: Spec, ranges: Array) -> None:
        self.path, self.spec, self.ranges = Path(path), spec, ranges
        self._group = group

    @classmethod
    def opened(cls, path: str | Path, spec: Spec | None = None) -> Store:
        """The results at a path; made for a study, where there are none yet."""
        zarr = package("zarr", "a study", "study")
        if Path(path).exists():
            return cls._found(zarr, path, spec)
        if spec is None:
            raise FileNotFoundError(f"{path}: no such study; expected the folder of its results")
        group = zarr.open_group(str(path), mode="w-")
        ranges = pilot(spec)
        group.create_array(DONE, shape=(spec.chunks,), chunks=(1,), dtype="u1", fill_value=0)
        # last, so that a folder with them is whole
        group.attrs.update(
            version=VERSION,
            spec=json.dumps(spec.__dict__),
            digest=spec.digest,
            ranges=ranges.tolist(),
        )
        return cls(path, group, spec, ranges)

    @classmethod
    def _found(cls, zarr: Any, path: str | Path, spec: Spec | None) -> Store:
        try:
            group = zarr.open_group(str(path), mode="r+")
            told = dict(group.attrs)
            kept = spec_of(json.loads(told["spec"]), str(path))
            ranges = np.array(told["ranges"])
        except (KeyError, FileNotFoundError, ValueError) as error:
            raise ValueError(f"{path}: holds no study ({error}); expected a new name") from error
        if spec is not None and spec.digest != told["digest"]:
            names = [k for k, v in spec.__dict__.items() if kept.__dict__[k] != v]
            raise ValueError(
                f"{path}: holds another study, which differs in {', '.join(names)}; expected a new "
                "name, or the study that was begun"
            )
        return cls(path, group, kept, ranges)

    @property
    def done(self) -> Array:
        """Whether each chunk is done (chunks,)."""
        return np.asarray(np.asarray(self._group[DONE][:]) == 1)

    def write(self, index: int, kept: Mapping[str, Array]) -> None:
        """Keep a chunk."""
        for name, x in kept.items():
            if name not in self._group:
                self._group.create_array(
                    name,
                    shape=(self.spec.chunks, *x.shape),
                    chunks=(1, *x.shape),
                    dtype=x.dtype,
                )
            self._group[name][index] = x
        self._group[DONE][index] = 1

    def read(self) -> dict[str, Array]:
        """All chunks that are done as one; empty where none is."""
        done = np.flatnonzero(self.done)
        names = [name for name in self._group.array_keys() if name != DONE]
        if not len(done):
            return {}
        columns = {name: self._group[name] for name in names}
        total: dict[str, Array] | None = None
        for index in done:
            part = {name: np.asarray(x[int(index)]) for name, x in columns.items()}
            total = part if total is None else merged([total, part])
        return total or {}
