"""Results of a study in Zarr: a row per chunk, which rows are done, and all of them as one.

    rows    (chunks, width)  what is kept of each chunk, packed (reduction.py)
    done    (chunks)         1 where a row is whole
    result  count, mean ...  of all chunks, merged in their order, once all are done

A row is written before it is marked as done, so that a process may be killed at any time: what is
marked is whole, and what is not is computed again. Every file has a checksum (CRC32C), every row
the number of its states, and the study's own words a digest: of what a disk loses or changes,
`Store.damaged` names the files, and their chunks are computed again.
"""

from __future__ import annotations

import hashlib
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
VERSION = 3
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
        self.width = sum(prod(shape) for shape in self.shapes.values())

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
        told["checksum"] = _digest(told)
        group = zarr.open_group(str(path), mode="w-", attributes={MARK: "study"})
        made = cls(path, group, spec, told)
        kind = {"compressors": _codecs()}
        group.create_array(
            DONE, shape=(spec.chunks,), chunks=(1,), dtype="u1", fill_value=0, **kind
        )
        group.create_array(
            ROWS, shape=(spec.chunks, made.width), chunks=(1, made.width), dtype="f8",
            fill_value=np.nan, **kind,
        )  # fmt: skip
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
        if told.get("checksum") != _digest(told):
            raise _broken(Path(path) / "zarr.json")
        try:  # it was checked when it was begun, and its robot's file may be gone
            found = cls(path, group, Spec(**json.loads(told["spec"])), told)
        except (KeyError, TypeError, ValueError) as error:
            raise _no_study(path) from error
        found._check_arrays()
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

    def _check_arrays(self) -> None:
        """Raise ValueError where the description of an array is damaged."""
        chunks = self.spec.chunks
        for name, shape, dtype in ((DONE, (chunks,), "u1"), (ROWS, (chunks, self.width), "f8")):
            try:
                array = self._group[name]
                good = array.shape == shape and array.dtype == np.dtype(dtype)
                good &= array.chunks == (1, *shape[1:])
            except Exception as error:  # whatever Zarr makes of damaged words
                raise _broken(self.path / name / "zarr.json") from error
            if not good:
                raise _broken(self.path / name / "zarr.json")

    @property
    def done(self) -> Array:
        """Whether each chunk is done (chunks,)."""
        marks = self._group[DONE]
        try:
            return np.asarray(np.asarray(marks[:]) == 1)
        except Exception:  # of a damaged file; the others are read
            return np.array([_read(marks, k) == 1 for k in range(self.spec.chunks)])

    def damaged(self) -> list[int]:
        """Return the chunks marked as done whose rows are lost or changed, and mark them undone."""
        lost = [k for k, row in self._rows() if row is None]
        for k in lost:
            self._group[DONE][k] = 0
        return lost

    def file(self, index: int) -> Path:
        """Return the path of a chunk's row."""
        return self.path / ROWS / "c" / str(index) / "0"

    def write(self, index: int, kept: Kept) -> None:
        """Keep a chunk."""
        self._group[ROWS][index] = packed(kept)
        self._group[DONE][index] = 1

    def chunks(self) -> Iterator[Kept]:
        """What is kept of each chunk that is done, in order."""
        for k, row in self._rows():
            if row is None:
                raise ValueError(
                    f"{self.file(k)}: is lost or damaged: it does not hold the {self.spec.size(k)} "
                    "states of its chunk; expected what was written. The command that began the "
                    "study computes it again"
                )
            yield unpacked(row, self.shapes)

    def _rows(self) -> Iterator[tuple[int, Array | None]]:
        """The number and the row of each chunk that is done, in order; None for a damaged row."""
        rows, done = self._group[ROWS], self.done
        for a in range(0, len(done), AT_ONCE):
            some = np.flatnonzero(done[a : a + AT_ONCE]) + a
            if not len(some):
                continue
            try:
                values: Any = np.asarray(rows[a : a + AT_ONCE])[some - a]
            except Exception:  # whatever Zarr makes of a damaged file; the others are read
                values = [_read(rows, int(k)) for k in some]
            for k, row in zip(some.tolist(), values, strict=True):
                yield k, row if self._is_whole(k, row) else None

    def _is_whole(self, index: int, row: Array | None) -> bool:
        """Whether a row has all states of its chunk: those with an answer, and those without."""
        return row is not None and bool(row[0] + row[1] == self.spec.size(index))

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
                    name, shape=x.shape, dtype=x.dtype, dimension_names=dims, overwrite=True,
                    compressors=_codecs(), fill_value=np.nan if x.dtype.kind == "f" else -1,
                )  # fmt: skip
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


def _codecs() -> list[Any]:
    """Compression, and a checksum of what is written."""
    codecs = package("zarr.codecs", "a study", "study")
    return [codecs.ZstdCodec(level=0), codecs.Crc32cCodec()]


def _read(array: Any, index: int) -> Array | None:
    """One row, or None if it cannot be read."""
    try:
        return np.asarray(array[index])
    except Exception:  # whatever Zarr makes of a damaged file
        return None


def _digest(told: Mapping[str, Any]) -> str:
    """The digest of a study's own words."""
    words = {k: v for k, v in told.items() if k not in (MARK, "checksum")}
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()


def _broken(file: Path) -> ValueError:
    return ValueError(
        f"{file}: is damaged: it is not what was written when the study was begun; expected a copy "
        "of it, or a new name for the study"
    )


def _unfinished(path: Path) -> bool:
    """Whether a folder is a study's whose process was killed before anything was kept."""
    own = _entries(path)
    if "zarr.json" not in own or not set(own) <= {"zarr.json", DONE, ROWS}:
        return False
    if any((path / name / "c").exists() for name in (DONE, ROWS)):
        return False  # something was kept: its description is damaged
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
