"""Calls with arrays of Dask, computed later and chunk by chunk, and with labelled arrays of xarray.

A chunk of Dask is a batch: nothing is computed until it is asked for, and a worker that computes a
chunk unpickles the robot and finds its kernels in the disk cache. Of xarray, leading axes are
matched by their names, and joints by theirs where an axis has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.model.tree import Tree
from linkwise.model.values import some
from linkwise.trace.program import NUMBER

if TYPE_CHECKING:
    from linkwise.engine.compiled import CompiledFunction

TWIST = ("angular x", "angular y", "angular z", "linear x", "linear y", "linear z")


def packages(values: Sequence[Any]) -> set[str]:
    """Which of the two packages the arguments come from."""
    found = {type(x).__module__.partition(".")[0] for x in values}
    return found & {"dask", "xarray"}


def run(function: CompiledFunction, values: Sequence[Any], out: Any, threads: Any) -> Any:
    """The results as arrays of the same package."""
    if out is not None:
        raise TypeError(
            f"{function.title}: out= is for arrays of NumPy; here the result is a new array"
        )
    later = Later(function, threads)
    if "xarray" in packages(values):
        return _labelled(function, values, later)
    return _chunked(function, values, later)


class Later:
    """A call that a worker of Dask makes with NumPy's arrays: it pickles."""

    def __init__(self, function: CompiledFunction, threads: int | None) -> None:
        self.function, self.threads = function, threads

    def __call__(self, *blocks: Any) -> Any:
        """The function of a chunk; on one thread, for Dask has others, unless told otherwise."""
        return self.function.general(blocks, None, self.threads or 1)

    def __dask_tokenize__(self) -> Any:
        function = self.function
        return (function.runtime.tree.digest, function.title, function.equations().key)


def _dimensions(function: CompiledFunction) -> list[tuple[int, ...]]:
    """The shapes of all outputs for one state."""
    return [slot.shape for slot in function.outputs]


def _dtypes(function: CompiledFunction, number: Any) -> Any:
    found = [number if slot.kind == NUMBER else np.uint16 for slot in function.outputs]
    return found[0] if len(found) == 1 else tuple(found)


def _chunked(function: CompiledFunction, values: Sequence[Any], later: Later) -> Any:
    dask: Any = import_module("dask.array")

    arrays = [x if type(x).__module__.startswith("dask") else np.asarray(x) for x in values]
    for (name, size), x in zip(function.ports, arrays, strict=True):
        if x.ndim == 0 or x.shape[-1] != size:
            raise ValueError(
                f"{function.title}: {name} has shape {x.shape}; expected (..., {size})"
            )
        chunks = getattr(x, "chunks", None)
        if chunks is not None and len(chunks[-1]) > 1:
            raise ValueError(
                f"{function.title}: {name} has {len(chunks[-1])} chunks along its last axis; "
                f"expected one: {name}.rechunk({{-1: -1}})"
            )
    narrow = all(x.dtype == np.float32 for x in arrays)
    inputs = ",".join(f"(i{k})" for k in range(len(arrays)))
    outputs = [
        [f"o{i}_{k}" for k in range(len(shape))] for i, shape in enumerate(_dimensions(function))
    ]
    sizes = {
        name: size
        for names, shape in zip(outputs, _dimensions(function), strict=True)
        for name, size in zip(names, shape, strict=True)
    }
    results = [f"({','.join(names)})" for names in outputs]
    return dask.apply_gufunc(
        later,
        f"{inputs}->{','.join(results)}",
        *_alike(dask, arrays),
        output_dtypes=_dtypes(function, np.float32 if narrow else np.float64),
        output_sizes=sizes,
        vectorize=False,
    )


def _alike(dask: Any, arrays: Sequence[Any]) -> list[Any]:
    """Arrays of NumPy in the chunks that those of Dask have along the same leading axes."""
    chunks: dict[tuple[int, int], Any] = {}  # by the axis, counted from the last, and its length
    for x in arrays:
        for axis, sizes in enumerate(getattr(x, "chunks", ())[:-1]):
            chunks.setdefault((x.ndim - axis, x.shape[axis]), sizes)
    divided = []
    for x in arrays:
        if isinstance(x, np.ndarray) and x.ndim > 1:
            leading = enumerate(x.shape[:-1])
            sizes = [chunks.get((x.ndim - axis, size), (size,)) for axis, size in leading]
            x = dask.from_array(x, chunks=(*sizes, x.shape[-1:]))
        divided.append(x)
    return divided


def _labelled(function: CompiledFunction, values: Sequence[Any], later: Later) -> Any:
    xarray: Any = import_module("xarray")

    tree, arrays, core = function.runtime.tree, [], []
    for (name, size), x in zip(function.ports, values, strict=True):
        if not isinstance(x, xarray.DataArray):
            x = xarray.DataArray(
                x, dims=[f"{name} batch {k}" for k in range(np.ndim(x) - 1)] + [name]
            )
        if x.ndim == 0 or x.shape[-1] != size:
            raise ValueError(
                f"{function.title}: {name} has shape {x.shape}; expected (..., {size})"
            )
        x = _in_order(tree, function.title, name, x)
        core.append([f"{name} number"])
        arrays.append(x.rename({x.dims[-1]: core[-1][0]}).drop_vars(core[-1], errors="ignore"))
    twists = function.entry is not None and function.entry.frame is not None
    named = [_names(tree, slot.shape, twists) for slot in function.outputs]
    sizes = {
        name: size
        for (dims, _), shape in zip(named, _dimensions(function), strict=True)
        for name, size in zip(dims, shape, strict=True)
    }
    dtypes = _dtypes(function, arrays[0].dtype)
    found = xarray.apply_ufunc(
        later,
        *arrays,
        input_core_dims=core,
        output_core_dims=[dims for dims, _ in named],
        dask="allowed" if not any(x.chunks for x in arrays) else "parallelized",
        output_dtypes=list(dtypes) if isinstance(dtypes, tuple) else [dtypes],
        dask_gufunc_kwargs={"output_sizes": sizes},
    )
    results = list(found) if len(named) > 1 else [found]
    results[0] = results[0].assign_coords(named[0][1]).rename(function.title)
    return tuple(results) if len(results) > 1 else results[0]


def _in_order(tree: Tree, title: str, name: str, x: Any) -> Any:
    """An array whose last axis may have names of joints, in the robot's order."""
    axis = x.dims[-1]
    if axis not in x.coords or x.coords[axis].dtype.kind not in "UOT":
        return x
    joints = _joints(tree)
    given = [str(label) for label in x.coords[axis].values]
    if joints is None or sorted(given) != sorted(joints):
        raise ValueError(
            f"{title}: {name} has names {some(given)} along {axis!r}; expected those of the "
            f"joints, {some(list(joints or ()))}"
        )
    return x.sel({axis: list(joints)})


def _joints(tree: Tree) -> tuple[str, ...] | None:
    """Names of the joints, where each has one number in q and one in qd."""
    names = tuple(link.joint_name for link in tree.links if link.follows is None)
    return names if tree.nq == tree.nv == len(names) else None


def _names(tree: Tree, shape: tuple[int, ...], twists: bool) -> tuple[list[str], dict[str, Any]]:
    """Names of a result's axes, and the labels along them; ``twists``: rows of six are those of a
    frame's motion.
    """
    dims: list[str] = []
    labels: dict[str, Any] = {}
    joints = _joints(tree)
    for k, size in enumerate(shape):
        if size == 6 and twists and (k == 0 or shape[0] == 6 != tree.nv):
            kind = "component"
        else:
            kind = "joint" if size == tree.nv else f"axis {k + 1}"
        name = kind if kind not in dims else f"{kind} {k + 1}"
        dims.append(name)
        if kind == "joint" and joints is not None:
            labels[name] = list(joints)
        elif kind == "component":
            labels[name] = list(TWIST)
    return dims, labels
