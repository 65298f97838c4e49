"""``lw.jax``: functions of a robot for JAX, under jit, vmap, grad, jvp and scan.

>>> import linkwise as lw
>>> f = lw.jax.forward_dynamics(lw.load("puma560"))     # doctest: +SKIP
>>> jax.jit(jax.vmap(f))(q, qd, tau)                    # doctest: +SKIP

XLA calls the compiled kernels by their addresses, through its foreign-function interface, on the
CPU and on NVIDIA GPUs; it traces no equation. Derivatives are kernels of Jacobians, whose products
with tangents JAX transposes. Arrays are float32, or float64 with ``jax_enable_x64``; leading axes
broadcast. With ``f_ext``, one more argument for each frame that it names: a wrench (..., 6).
Derivatives by a quaternion in ``q`` have four numbers: they are those of the function of the
normalised quaternion, and so have no part along it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

from linkwise.engine.tasks import Key
from linkwise.functions import Functions
from linkwise.interop.arguments import check_count, frames, names
from linkwise.interop.derived import Node, node
from linkwise.interop.package import package

_numbers = count()
_targets: WeakKeyDictionary[Node, dict[str, str]] = WeakKeyDictionary()
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
    key = Key(name, method, frame, axes, frames(f_ext))
    of = node(robot._calls, key)
    wanted, run = names(of.ports, key.external), _differentiable(of)

    def call(*arrays: Any) -> Any:
        check_count(name, wanted, len(arrays), "array")
        values = [jax.numpy.asarray(x) for x in arrays]
        for label, port, x in zip(wanted, of.ports, values, strict=True):
            if x.shape[-1:] != (port.size,):
                raise ValueError(
                    f"{name}: {label} has shape {x.shape}; expected (..., {port.size})"
                )
        shape = jax.numpy.broadcast_shapes(*(x.shape[:-1] for x in values))
        double = any(x.dtype == "float64" for x in values)
        dtype = "float64" if double else "float32"
        rows = [jax.numpy.broadcast_to(x.astype(dtype), (*shape, x.shape[-1])) for x in values]
        return run(*rows)[0]

    call.__name__ = call.__qualname__ = name
    return call


def forward_dynamics(
    robot: Functions, *, method: str = "auto", f_ext: str | Sequence[str] = ()
) -> Callable[..., Any]:
    """``f(q, qd, tau)``: joint accelerations (..., nv), as `Robot.forward_dynamics`."""
    return function(robot, "forward_dynamics", method=method, f_ext=f_ext)


def inverse_dynamics(
    robot: Functions, *, method: str = "auto", f_ext: str | Sequence[str] = ()
) -> Callable[..., Any]:
    """``f(q, qd, qdd)``: joint torques (..., nv), as `Robot.inverse_dynamics`."""
    return function(robot, "inverse_dynamics", method=method, f_ext=f_ext)


def mass_matrix(robot: Functions, *, method: str = "auto") -> Callable[..., Any]:
    """``f(q)``: mass matrices (..., nv, nv), as `Robot.mass_matrix`."""
    return function(robot, "mass_matrix", method=method)


def _differentiable(of: Node) -> Callable[..., Any]:
    """The node as a function of arrays with the same leading axes, with its derivatives."""
    jax = _jax()

    run = jax.custom_jvp(lambda *rows: _call(of, rows))

    def derivative(rows: Any, tangents: Any) -> Any:
        jacobians = iter(_differentiable(of.jacobian)(*rows))
        lead, changes = rows[0].shape[:-1], []
        for slot in of.slots:
            parts = [jax.numpy.einsum("...ij,...j->...i", next(jacobians), t) for t in tangents]
            changes.append(sum(parts).reshape(*lead, *slot.shape))
        return run(*rows), tuple(changes)

    run.defjvp(derivative)
    return run  # type: ignore[no-any-return]


def _call(of: Node, rows: Any) -> Any:
    jax, lead, dtype = _jax(), rows[0].shape[:-1], rows[0].dtype
    made = tuple(jax.ShapeDtypeStruct((*lead, prod(s.shape)), dtype) for s in of.slots)
    target = _target(of, dtype.name)
    found = jax.ffi.ffi_call(target, made, vmap_method="broadcast_all")(*rows)
    return tuple(x.reshape(*lead, *s.shape) for x, s in zip(found, of.slots, strict=True))


def _target(of: Node, dtype: str) -> str:
    """The name under which XLA knows the kernels of a node: on the CPU, and on a GPU, if any."""
    own = _targets.setdefault(of, {})
    if dtype not in own:
        name = f"linkwise_{next(_numbers)}"
        _register(name, "cpu", *_on_cpu(of, dtype))
        if _has_gpu():
            _register(name, "CUDA", *_on_gpu(of, dtype))
        own[dtype] = name
    return own[dtype]


def _on_cpu(of: Node, dtype: str) -> tuple[Any, Any]:
    from linkwise.backends.llvm.xla import handler

    kernel = of.kernel(dtype)
    return handler(kernel), kernel  # type: ignore[arg-type]


def _on_gpu(of: Node, dtype: str) -> tuple[Any, Any]:
    from linkwise.backends.choice import gpu
    from linkwise.backends.llvm.xla import launcher

    kernel: Any = of.kernel(dtype, gpu(0))
    return launcher(kernel.compiled_launch), kernel


def _register(name: str, platform: str, code: Any, kernel: Any) -> None:
    """Tell XLA where the code of a kernel's handler is."""
    jax = _jax()
    _kept.append((code, kernel))
    capsule = jax.ffi.pycapsule(ctypes.c_void_p(code.address["xla"]))
    jax.ffi.register_ffi_target(name, capsule, platform=platform)


@cache
def _has_gpu() -> bool:
    try:
        return bool(_jax().devices("cuda"))
    except RuntimeError:  # JAX has no such platform
        return False
