"""Results of a study in Zarr: a row per chunk, which rows are done, and all of them as one.

    rows    (chunks, width)  what is kept of each chunk, packed (reduction.py)
    done    (chunks)         1 where a row is whole
    result  count, mean ...  of all chunks, merged in their order, once all are done

A row is written before it is marked as done, so that a process may be killed at any time: what is
marked is whole, and what is not is computed again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.interop.package import package
from linkwise.robot import Robot
from linkwise.sampling.chunks import pilot
from linkwise.sampling.draws import Draws
from linkwise.sampling.measures import labels
from linkwise.sampling.reduction import Kept, merged, packed, quantiles, shapes, unpacked
from linkwise.sampling.spec import Spec

Array = NDArray[Any]
ROWS, DONE, RESULT = "rows", "done", "result"
AT_ONCE = 256  # rows that are read at once
SHARES = (0.001, 0.01, 0.05, 0.5, 0.95, 0.99, 0.999)  # of the quantiles in the result
VERSION = 2
MARK = "linkwise"  # an attribute from the beginning on: a group without it is not ours
# axes of what is kept, by name
AXES = {"mean": "number", "spread": "number", "least": "number", "most": "number",
        "least_states": "number column", "most_states": "number column",
        "histogram": "number bin", "beyond": "number", "worst": "number rank",
        "worst_states": "number rank column", "edges": "number edge",
        "quantiles": "number share", "quantile_errors": "number share"}  # fmt: skip


class Store:
    """The results of one study."""

    def __init__(self, path: str | Path, group: Any, spec: Spec, told: Mapping[str, Any]) -> None:
        self.path, self.spec, self._group = Path(path), spec, group
        self.ranges = np.array(told["ranges"])  # (m, 2) of histograms
        self._robot = str(told["robot"])  # digest of the robot when the study was begun
        self.labels, self.columns = list(told["labels"]), list(told["columns"])
        self.shapes = shapes(len(self.labels), len(self.columns), spec.keep)

    @classmethod
    def opened(cls, path: str | Path, spec: Spec | None = None) -> Store:
        """The results at a path; made for a study, where there are none yet."""
        zarr = package("zarr", "a study", "study")
        if Path(path).exists():
            if spec is None or not _unfinished(Path(path)):
                return cls._found(zarr, path, spec)
            shutil.rmtree(path)  # killed before it was a study
        if spec is None:
            raise FileNotFoundError(f"{path}: no such study; expected the folder of its results")
        return cls._made(zarr, path, spec)

    @classmethod
    def _made(cls, zarr: Any, path: str | Path, spec: Spec) -> Store:
        robot = spec.load()
        ranges = pilot(spec, robot)
        told = {
            "version": VERSION, "spec": json.dumps(spec.__dict__), "digest": spec.digest,
            "robot": robot.tree.digest, "ranges": ranges.tolist(),
            "labels": labels(spec, robot, len(ranges)), "columns": Draws(spec, robot).columns,
        }  # fmt: skip
        group = zarr.open_group(str(path), mode="w-", attributes={MARK: "study"})
        made = cls(path, group, spec, told)
        width = sum(prod(shape) for shape in made.shapes.values())
        group.create_array(DONE, shape=(spec.chunks,), chunks=(1,), dtype="u1", fill_value=0)
        group.create_array(ROWS, shape=(spec.chunks, width), chunks=(1, width), dtype="f8")
        group.attrs.update(told)  # last, so that a folder with them is whole
        return made

    @classmethod
    def _found(cls, zarr: Any, path: str | Path, spec: Spec | None) -> Store:
        if not Path(path).is_dir():
            raise _no_study(path)
        try:
            group = zarr.open_group(str(path), mode="r+")
            told = dict(group.attrs)
            written = int(told["version"])
        except (KeyError, TypeError, FileNotFoundError, ValueError) as error:
            raise _no_study(path) from error
        if written != VERSION:
            raise ValueError(
                f"{path}: holds a study in version {written} of the format, and this linkwise has "
                f"version {VERSION}; expected a new name, or the linkwise that began the study"
            )
        try:  # it was checked when it was begun, and its robot's file may be gone
            found = cls(path, group, Spec(**json.loads(told["spec"])), told)
        except (KeyError, TypeError, ValueError) as error:
            raise _no_study(path) from error
        if spec is not None:
            names = [k for k, v in spec.__dict__.items() if found.spec.__dict__[k] != v]
            if names:
                raise _another(path, names)
            found.load()
        return found

    def load(self) -> Robot:
        """The robot from its file, which must still be that of the study's beginning."""
        robot = self.spec.load()
        if robot.tree.digest != self._robot:
            raise _another(self.path, ["the robot's file, which was changed since then"])
        return robot

    @property
    def done(self) -> Array:
        """Whether each chunk is done (chunks,)."""
        return np.asarray(np.asarray(self._group[DONE][:]) == 1)

    def write(self, index: int, kept: Kept) -> None:
        """Keep a chunk."""
        self._group[ROWS][index] = packed(kept)
        self._group[DONE][index] = 1

    def chunks(self) -> Iterator[Kept]:
        """What is kept of each chunk that is done, in order."""
        rows, done = self._group[ROWS], self.done
        for a in range(0, len(done), AT_ONCE):
            if done[a : a + AT_ONCE].any():
                some = np.asarray(rows[a : a + AT_ONCE])
                for row in some[done[a : a + AT_ONCE]]:
                    yield unpacked(row, self.shapes)

    def read(self) -> Kept:
        """All chunks that are done as one, merged in their order; empty where none is."""
        total: Kept = {}
        for part in self.chunks():
            total = merged([total, part]) if total else part
        return total

    def finish(self) -> Kept:
        """All chunks as one; written, once all are done, as arrays with names."""
        found = self.read()
        if self.done.all():
            group = self._group.require_group(RESULT)
            group.attrs.update(number=self.labels, column=self.columns)
            for name, x in self.described(found).items():
                axes = AXES.get(name, "").split()
                dims = axes if len(axes) == x.ndim else None
                made = group.create_array(
                    name, shape=x.shape, dtype=x.dtype, dimension_names=dims, overwrite=True
                )
                made[...] = x
        return found

    def described(self, found: Kept) -> dict[str, Array]:
        """What is kept, with the histograms' edges, and quantiles with their largest errors."""
        lows, highs = self.ranges.T
        edges = np.linspace(lows, highs, self.spec.keep["bins"] + 1, axis=-1)
        values, errors = quantiles(found, self.ranges, SHARES)
        return {
            **{name: np.asarray(x) for name, x in found.items()},
            "edges": edges, "quantiles": values, "quantile_errors": errors,
            "share": np.array(SHARES),
        }  # fmt: skip


def _unfinished(path: Path) -> bool:
    """Whether a folder is a study's whose process was killed before anything was kept."""
    own = _entries(path)
    if "zarr.json" not in own or not set(own) <= {"zarr.json", DONE, ROWS}:
        return False
    try:
        told = json.loads((path / "zarr.json").read_text(encoding="utf-8"))["attributes"]
        return MARK in told and "digest" not in told
    except (KeyError, TypeError, OSError, ValueError):
        return False


def _entries(path: Path) -> list[str]:
    return sorted(p.name for p in path.iterdir()) if path.is_dir() else []


def _no_study(path: str | Path) -> ValueError:
    own = _entries(Path(path))
    some = f"{', '.join(own[:4])}{' ...' if len(own) > 4 else ''}"
    what = f"a folder of {some}" if own else "an empty folder" if Path(path).is_dir() else "a file"
    if "zarr.json" in own:
        what = f"a Zarr group of something else ({some})"
    if _unfinished(Path(path)):
        what = "of one that ended before anything was kept, and is begun anew by its command"
    return ValueError(
        f"{path}: holds no study of linkwise: it is {what}; expected a name that is not taken, or "
        "the folder of a study"
    )


def _another(path: str | Path, names: list[str]) -> ValueError:
    return ValueError(
        f"{path}: holds another study, which differs in {', '.join(names)}; expected a new name, "
        "or the study that was begun"
    )
