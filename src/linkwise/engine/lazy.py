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

if TYPE_CHECKING:
    from linkwise.engine.calls import Call, Calls

TWIST = ("angular x", "angular y", "angular z", "linear x", "linear y", "linear z")


def packages(values: Sequence[Any]) -> set[str]:
    """Which of the two packages the arguments come from."""
    found = {type(x).__module__.partition(".")[0] for x in values}
    return found & {"dask", "xarray"}


def run(calls: Calls, call: Call, values: Sequence[Any], out: Any, threads: Any) -> Any:
    """The result as an array of the same package."""
    if out is not None:
        raise TypeError(
            f"{call.title}: out= is for arrays of NumPy; here the result is a new array"
        )
    later = Later(calls, tuple(call.key), threads)
    if "xarray" in packages(values):
        return _labelled(calls.tasks.tree, call, values, later)
    return _chunked(call, values, later)


class Later:
    """A call that a worker of Dask makes with NumPy's arrays: it pickles."""

    def __init__(self, calls: Calls, key: tuple[Any, ...], threads: int | None) -> None:
        self.calls, self.key, self.threads = calls, key, threads

    def __call__(self, *blocks: Any) -> Any:
        """The function of a chunk; on one thread, for Dask has others, unless told otherwise."""
        call = self.calls.call(self.key)
        return self.calls.general(call, blocks, None, self.threads or 1)

    def __dask_tokenize__(self) -> Any:
        tasks = self.calls.tasks
        return (tasks.tree.digest, tasks.parameters, self.key)


def _chunked(call: Call, values: Sequence[Any], later: Later) -> Any:
    gufunc: Any = import_module("dask.array").apply_gufunc

    arrays = [x if type(x).__module__.startswith("dask") else np.asarray(x) for x in values]
    for (name, size), x in zip(call.ports, arrays, strict=True):
        if x.ndim == 0 or x.shape[-1] != size:
            raise ValueError(f"{call.title}: {name} has shape {x.shape}; expected (..., {size})")
        chunks = getattr(x, "chunks", None)
        if chunks is not None and len(chunks[-1]) > 1:
            raise ValueError(
                f"{call.title}: {name} has {len(chunks[-1])} chunks along its last axis; expected "
                f"one: {name}.rechunk({{-1: -1}})"
            )
    narrow = all(x.dtype == np.float32 for x in arrays)
    dtype = np.float32 if narrow else np.float64
    inputs = ",".join(f"(i{k})" for k in range(len(arrays)))
    outputs = [f"o{k}" for k in range(len(call.output))]
    result = f"({','.join(outputs)})"
    signature = f"{inputs}->{result},()" if call.key.status else f"{inputs}->{result}"
    return gufunc(
        later,
        signature,
        *arrays,
        output_dtypes=(dtype, np.uint16) if call.key.status else dtype,
        output_sizes=dict(zip(outputs, call.output, strict=True)),
        vectorize=False,
    )


def _labelled(tree: Tree, call: Call, values: Sequence[Any], later: Later) -> Any:
    xarray: Any = import_module("xarray")

    arrays, core = [], []
    for (name, size), x in zip(call.ports, values, strict=True):
        if not isinstance(x, xarray.DataArray):
            x = xarray.DataArray(
                x, dims=[f"{name} batch {k}" for k in range(np.ndim(x) - 1)] + [name]
            )
        if x.ndim == 0 or x.shape[-1] != size:
            raise ValueError(f"{call.title}: {name} has shape {x.shape}; expected (..., {size})")
        x = _in_order(tree, call.title, name, x)
        core.append([f"{name} number"])
        arrays.append(x.rename({x.dims[-1]: core[-1][0]}).drop_vars(core[-1], errors="ignore"))
    dims, labels = _names(tree, call)
    found = xarray.apply_ufunc(
        later,
        *arrays,
        input_core_dims=core,
        output_core_dims=[dims, []] if call.key.status else [dims],
        dask="allowed" if not any(x.chunks for x in arrays) else "parallelized",
        output_dtypes=[arrays[0].dtype, np.uint16] if call.key.status else [arrays[0].dtype],
        dask_gufunc_kwargs={"output_sizes": dict(zip(dims, call.output, strict=True))},
    )
    results = found if call.key.status else (found,)
    results = (results[0].assign_coords(labels).rename(call.title), *results[1:])
    return results if call.key.status else results[0]


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


def _names(tree: Tree, call: Call) -> tuple[list[str], dict[str, Any]]:
    """Names of a result's axes, and the labels along them."""
    dims: list[str] = []
    labels: dict[str, Any] = {}
    joints = _joints(tree)
    twists = call.key.frame is not None  # rows of six are those of a frame's motion
    for k, size in enumerate(call.output):
        if size == 6 and twists and (k == 0 or call.output[0] == 6 != tree.nv):
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
