"""``lw.jax``: functions of a robot for JAX, under jit, vmap, grad, jvp and scan.

>>> import linkwise as lw
>>> f = lw.jax.forward_dynamics(lw.load("puma560"))     # doctest: +SKIP
>>> jax.jit(jax.vmap(f))(q, qd, tau)                    # doctest: +SKIP

XLA calls the compiled kernels by their addresses, through its foreign-function interface, on the
CPU and on NVIDIA GPUs; it traces no equation. Derivatives are kernels too: products with the
Jacobian from either side. Arrays are float32, or float64 with ``jax_enable_x64``; leading axes
broadcast. With ``f_ext``, one more argument for each frame that it names: a wrench (..., 6).
Derivatives by a quaternion in ``q`` have four numbers: they are those of the function of the
normalised quaternion, and so have no part along it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import count
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

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

_numbers = count()
_targets: WeakKeyDictionary[Node, dict[tuple[str, str], str]] = WeakKeyDictionary()
_kept: list[Any] = []  # XLA forgets no target, so that no handler may be dropped


@cache
def _jax() -> Any:
    return package("jax", "lw.jax")


def function(
    robot: Functions, name: str, *, method: str = "auto", frame: str | None = None,
    axes: str = "base", f_ext: str | Sequence[str] = (),
) -> Callable[..., Any]:  # fmt: skip
    """A function of the robot by its name, such as ``"mass_matrix"``, as a function of arrays."""
    jax = _jax()
    key = Key(name, method, frame, axes, frames_of(f_ext))
    of = node(robot._calls, key)
    wanted, run = names(of.ports, key.external), _primitive()
    own_shapes = shapes(of.ports, robot._calls.tasks)

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

    def shapes(*rows: Any, of: Node, along: Node | None) -> list[Any]:
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
    call.def_impl(jax.jit(call.bind, static_argnames=("of", "along")))
    batching.primitive_batchers[call] = mapped
    ad.primitive_jvps[call] = jvp
    ad.primitive_transposes[call] = transpose
    for platform in HANDLERS:
        lowered = mlir.lower_fun(partial(_called, platform), multiple_results=True)
        mlir.register_lowering(call, lowered, platform=platform)
    return call


def _called(platform: str, *rows: Any, of: Node, along: Node | None) -> list[Any]:
    """The call of a node's kernel on a platform, as XLA has it."""
    jax, lead, dtype = _jax(), rows[0].shape[:-1], rows[0].dtype
    made = tuple(jax.ShapeDtypeStruct((*lead, prod(s.shape)), dtype) for s in of.slots)
    found = jax.ffi.ffi_call(_target(of, dtype.name, platform), made)(*rows)
    return [x.reshape(*lead, *s.shape) for x, s in zip(found, of.slots, strict=True)]


def _target(of: Node, dtype: str, platform: str) -> str:
    """The name under which XLA knows the kernel of a node."""
    own = _targets.setdefault(of, {})
    if (dtype, platform) not in own:
        jax, (code, kernel) = _jax(), HANDLERS[platform](of, dtype)
        _kept.append((code, kernel))
        name = f"linkwise_{next(_numbers)}"
        capsule = jax.ffi.pycapsule(ctypes.c_void_p(code.address["xla"]))
        jax.ffi.register_ffi_target(name, capsule, platform=XLA_NAMES[platform])
        own[dtype, platform] = name
    return own[dtype, platform]


def _on_cpu(of: Node, dtype: str) -> tuple[Any, Any]:
    from linkwise.backends.llvm.xla import handler

    kernel = of.kernel(dtype)
    return handler(kernel), kernel  # type: ignore[arg-type]


def _on_gpu(of: Node, dtype: str) -> tuple[Any, Any]:
    from linkwise.backends.choice import gpu
    from linkwise.backends.llvm.xla import launcher

    kernel: Any = of.kernel(dtype, gpu(0))
    return launcher(kernel.compiled_launch), kernel


HANDLERS = {"cpu": _on_cpu, "cuda": _on_gpu}  # by JAX's names of platforms
XLA_NAMES = {"cpu": "cpu", "cuda": "CUDA"}
