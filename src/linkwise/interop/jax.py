"""``lw.jax``: functions of a robot for JAX, under jit, vmap, grad, jvp and scan.

>>> import linkwise as lw
>>> f = lw.jax.forward_dynamics(lw.load("puma560"))     # doctest: +SKIP
>>> jax.jit(jax.vmap(f))(q, qd, tau)                    # doctest: +SKIP

XLA calls the compiled kernels through its foreign-function interface, on the CPU and on NVIDIA
GPUs; it traces no equation. Derivatives are kernels too: products with the Jacobian from either
side. Arrays are float32, or float64 with ``jax_enable_x64``; leading axes broadcast. With
``f_ext``, one more argument for each frame that it names: a wrench (..., 6). Derivatives by a
quaternion in ``q`` have four numbers: they are those of the function of the normalised quaternion,
and so have no part along it.

There is one handler of XLA for each number of arguments and results, which takes the number of a
kernel (``backends/llvm/xla.py``), so that nothing is registered for a robot. A kernel lives as long
as its robot, the functions of it, and all that JAX compiled from them; then it is freed when the
next function or kernel is created. Executables that JAX reads back
(``jax.experimental.serialize_executable``) hold no kernel: a call of one without the robot is an
error of XLA.
"""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from math import prod
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from linkwise.engine.arrays import refuse_mask
from linkwise.engine.tasks import Key, frames_of
from linkwise.functions import Functions
from linkwise.interop.arguments import (
    check_count,
    check_dtype,
    leading_axes,
    names,
    only_robot,
    shapes,
)
from linkwise.interop.derived import Node, node
from linkwise.interop.package import package
from linkwise.trace.program import Slot

_entries: WeakKeyDictionary[Node, dict[tuple[str, str], Any]] = WeakKeyDictionary()
_calls: WeakKeyDictionary[Node, Callable[..., Any]] = WeakKeyDictionary()  # outside of jax.jit
_lock = threading.RLock()  # a target is registered once, and a kernel has one entry


@cache
def _jax() -> Any:
    return package("jax", "lw.jax")


def function(
    robot: Functions, name: str, *, method: str = "auto", frame: str | None = None,
    axes: str = "base", f_ext: str | Sequence[str] = (),
) -> Callable[..., Any]:  # fmt: skip
    """A function of the robot by its name, such as ``"mass_matrix"``, as a function of arrays."""
    jax, calls = _jax(), robot._calls
    _sweep()
    key = Key(name, method, frame, axes, frames_of(f_ext))
    of = calls.functions.get(("node", key)) or calls.functions.setdefault(
        ("node", key), node(calls, key)
    )
    wanted, run = names(of.ports, key.external), _primitive()
    own_shapes = shapes(of.ports, calls.tasks)

    def call(*arrays: Any) -> Any:
        check_count(name, wanted, len(arrays), "array")
        for label, x in zip(wanted, arrays, strict=True):
            refuse_mask(name, label, x)
        values, lead = [jax.numpy.asarray(x) for x in arrays], []
        for label, own, x in zip(wanted, own_shapes, values, strict=True):
            check_dtype(name, label, str(x.dtype))
            lead.append(leading_axes(name, label, x.shape, own))
        shape = jax.numpy.broadcast_shapes(*lead)
        # integers alone become what JAX makes of Python's floats
        kinds = [x.dtype for x in values if x.dtype.kind == "f"] or [jax.numpy.asarray(0.0).dtype]
        dtype = "float64" if "float64" in kinds else "float32"
        rows = [
            jax.numpy.broadcast_to(x.astype(dtype).reshape(*before, port.size), (*shape, port.size))
            for x, before, port in zip(values, lead, of.ports, strict=True)
        ]
        return run.bind(*rows, of=of, along=None)[0]

    call.__name__ = call.__qualname__ = name
    return call


def forward_dynamics(
    robot: Functions, *values: Any, method: str = "auto", f_ext: str | Sequence[str] = ()
) -> Callable[..., Any]:
    """``f(q, qd, tau)``: joint accelerations (..., nv), as `Robot.forward_dynamics`."""
    only_robot("lw.jax.forward_dynamics", "robot", values)
    return function(robot, "forward_dynamics", method=method, f_ext=f_ext)


def inverse_dynamics(
    robot: Functions, *values: Any, method: str = "auto", f_ext: str | Sequence[str] = ()
) -> Callable[..., Any]:
    """``f(q, qd, qdd)``: joint torques (..., nv), as `Robot.inverse_dynamics`."""
    only_robot("lw.jax.inverse_dynamics", "robot", values)
    return function(robot, "inverse_dynamics", method=method, f_ext=f_ext)


def mass_matrix(robot: Functions, *values: Any, method: str = "auto") -> Callable[..., Any]:
    """``f(q)``: mass matrices (..., nv, nv), as `Robot.mass_matrix`."""
    only_robot("lw.jax.mass_matrix", "robot", values)
    return function(robot, "mass_matrix", method=method)


def forward_kinematics(robot: Functions, frame: str, *values: Any) -> Callable[..., Any]:
    """``f(q)``: poses (..., 4, 4) of a frame, as `Robot.forward_kinematics`."""
    more = values if isinstance(frame, str) else (frame, *values)
    only_robot("lw.jax.forward_kinematics", "robot, frame", more)
    return function(robot, "forward_kinematics", frame=frame)


@cache
def _primitive() -> Any:
    """The call of a node as an operation of JAX: how it is computed, batched, differentiated.

    ``along`` is the node whose `jvp` is called, or None: such a call is linear in its last
    arguments, the rates of the first, and its transpose is the `vjp`. So reverse mode takes one
    kernel of a few times the operations of the function, and forms no Jacobian.
    """
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    jax, call = _jax(), Primitive("linkwise")
    call.multiple_results = True
    _refer_weakly(Node, _Reference)

    def shapes(*rows: Any, of: Node | _Reference, along: Node | None) -> list[Any]:
        lead, dtype = rows[0].shape[:-1], rows[0].dtype
        return [jax.core.ShapedArray((*lead, *slot.shape), dtype) for slot in of.slots]

    def mapped(rows: Any, axes: Any, *, of: Node, along: Node | None) -> Any:
        sized = zip(rows, axes, strict=True)
        size = next(x.shape[axis] for x, axis in sized if axis is not None)
        moved = [
            jax.numpy.broadcast_to(x, (size, *x.shape)) if axis is None
            else jax.numpy.moveaxis(x, axis, 0)
            for x, axis in zip(rows, axes, strict=True)
        ]  # fmt: skip
        return call.bind(*moved, of=of, along=along), [0] * len(of.slots)

    def jvp(rows: Any, tangents: Any, *, of: Node, along: Node | None) -> Any:
        rates = [ad.instantiate_zeros(t) for t in tangents]
        changes = call.bind(*rows, *rates, of=of.jvp, along=of)
        return call.bind(*rows, of=of, along=along), changes

    def transpose(weights: Any, *arguments: Any, of: Node, along: Node | None) -> Any:
        if along is None:
            raise NotImplementedError(f"{of.name} is not linear: jax.linear_transpose has no rule")
        rows, rates = arguments[: len(along.ports)], arguments[len(along.ports) :]
        flat = [
            ad.instantiate_zeros(w).reshape(*rows[0].shape[:-1], slot.size)
            for w, slot in zip(weights, along.slots, strict=True)
        ]
        found = call.bind(*rows, *flat, of=along.vjp, along=None)
        wanted = [ad.is_undefined_primal(x) for x in rates]
        return [None] * len(rows) + [
            x if asked else None for x, asked in zip(found, wanted, strict=True)
        ]

    call.def_abstract_eval(shapes)
    call.def_impl(partial(_run, call))
    batching.primitive_batchers[call] = mapped
    ad.primitive_jvps[call] = jvp
    ad.primitive_transposes[call] = transpose
    for platform in XLA_NAMES:
        mlir.register_lowering(call, partial(_lowered, platform), platform=platform)
    return call


class _Reference:
    """A node as the parameter of its call outside of jax.jit, which must not keep it alive."""

    def __init__(self, of: Node) -> None:
        self.slots, self.node = of.slots, ref(of)


def _run(call: Any, *rows: Any, of: Node, along: Node | None) -> Any:
    """The call outside of jax.jit, compiled for each node, and forgotten with it."""
    compiled = _calls.get(of)
    if compiled is None:
        bind = partial(call.bind, of=_Reference(of), along=None)
        compiled = _calls.setdefault(of, _jax().jit(bind))
    return compiled(*rows)


def _refer_weakly(*types: type) -> None:
    """Let caches of JAX refer weakly to objects; older ones take a limited number."""
    weak = getattr(importlib.import_module("jax._src.util"), "weakref_cache_key_types", None)
    if isinstance(weak, set):
        weak.update(types)


def _lowered(platform: str, ctx: Any, *rows: Any, of: Node | _Reference, along: Node | None) -> Any:
    """The call in the language of XLA's compiler; the executable keeps the kernel alive."""
    from jax.interpreters import mlir

    target = of.node() if isinstance(of, _Reference) else of
    assert target is not None  # the caller has it
    entry = _entry(target, ctx.avals_in[0].dtype.name, platform)
    if not ctx.module_context.lowering_parameters.for_export:  # refuses objects that must live
        ctx.module_context.add_keepalive(entry)
    rule = mlir.lower_fun(partial(_called, platform), multiple_results=True)
    return rule(ctx, *rows, entry=entry, slots=of.slots)


def _called(platform: str, *rows: Any, entry: Any, slots: Sequence[Slot]) -> list[Any]:
    """The call of an entry on a platform, as XLA has it."""
    jax, lead, dtype = _jax(), rows[0].shape[:-1], rows[0].dtype
    outputs = tuple(jax.ShapeDtypeStruct((*lead, prod(s.shape)), dtype) for s in slots)
    call = jax.ffi.ffi_call(_target(len(rows), len(slots), dtype.name, platform), outputs)
    results = call(*rows, digest=np.int64(entry.digest), number=np.int64(entry.number))
    return [x.reshape(*lead, *s.shape) for x, s in zip(results, slots, strict=True)]


@cache
def _target(inputs: int, outputs: int, dtype: str, platform: str) -> str:
    """The name under which XLA knows the handler of kernels by their inputs and outputs."""
    from linkwise.backends.llvm.xla import handler, launcher

    jax, name = _jax(), f"linkwise_{inputs}_{outputs}_{dtype}"
    with _lock:
        if name not in _registered[platform]:
            on_cpu = platform == "cpu"
            code = handler(inputs, outputs, dtype) if on_cpu else launcher(inputs, outputs)
            capsule = jax.ffi.pycapsule(ctypes.c_void_p(code.address["xla"]))
            jax.ffi.register_ffi_target(name, capsule, platform=XLA_NAMES[platform])
            _registered[platform].add(name)
    return name


def _entry(of: Node, dtype: str, platform: str) -> Any:
    """The kernel of a node in the table of those that XLA can call."""
    from linkwise.backends.choice import gpu
    from linkwise.backends.llvm.xla import Entry

    _sweep()
    kernel: Any = of.kernel(dtype, None if platform == "cpu" else gpu(0))
    with _lock:
        entries = _entries.setdefault(of, {})
        if (dtype, platform) not in entries:
            words = (kernel.address,) if platform == "cpu" else kernel.compiled_launch[1:]
            content = (of.calls.tasks.tree.digest, of.key, dtype, platform)
            entries[dtype, platform] = Entry(kernel, words, content)
        return entries[dtype, platform]


def _sweep() -> None:
    """Free the kernels that nothing can call any more."""
    from linkwise.backends.llvm.xla import sweep

    sweep(_idle)


def _idle() -> bool:
    """Whether XLA has computed every array: calls that it has not begun name entries too."""
    jax, platforms = _jax(), [platform for platform, names in _registered.items() if names]
    try:
        arrays = [x for platform in platforms for x in jax.live_arrays(platform)]
        return all(x.is_deleted() or x.is_ready() for x in arrays)
    except RuntimeError:  # another thread deletes one of them
        return False


XLA_NAMES = {"cpu": "cpu", "cuda": "CUDA"}  # by JAX's names of platforms
_registered: dict[str, set[str]] = {platform: set() for platform in XLA_NAMES}
