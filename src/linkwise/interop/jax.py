"""``lw.jax``: functions of a robot for JAX on the CPU, under jit, vmap, grad, jvp and scan.

>>> import linkwise as lw
>>> f = lw.jax.forward_dynamics(lw.load("puma560"))     # doctest: +SKIP
>>> jax.jit(jax.vmap(f))(q, qd, tau)                    # doctest: +SKIP

XLA calls the compiled kernels by their addresses, through its foreign-function interface; it traces
no equation. Derivatives are kernels of Jacobians, whose products with tangents JAX transposes.
Arrays are float32, or float64 with ``jax_enable_x64``; leading axes broadcast. Derivatives by ``q``
are those by its numbers: of a quaternion, by all four.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from itertools import count
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

from linkwise.engine.tasks import Key
from linkwise.functions import Functions
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
    axes: str = "base",
) -> Callable[..., Any]:  # fmt: skip
    """A function of the robot by its name, such as ``"mass_matrix"``, as a function of arrays."""
    jax = _jax()
    of = node(robot._calls, Key(name, method, frame, axes))
    wanted, run = [port.name for port in of.ports], _differentiable(of)

    def call(*arrays: Any) -> Any:
        if len(arrays) != len(wanted):
            expected = ", ".join(wanted)
            raise TypeError(f"{name}: was given {len(arrays)} array(s); expected {expected}")
        values = [jax.numpy.asarray(x) for x in arrays]
        for port, x in zip(of.ports, values, strict=True):
            if x.shape[-1:] != (port.size,):
                raise ValueError(
                    f"{name}: {port.name} has shape {x.shape}; expected (..., {port.size})"
                )
        shape = jax.numpy.broadcast_shapes(*(x.shape[:-1] for x in values))
        double = any(x.dtype == "float64" for x in values)
        dtype = "float64" if double else "float32"
        rows = [jax.numpy.broadcast_to(x.astype(dtype), (*shape, x.shape[-1])) for x in values]
        return run(*rows)[0]

    call.__name__ = call.__qualname__ = name
    return call


def forward_dynamics(robot: Functions, *, method: str = "auto") -> Callable[..., Any]:
    """``f(q, qd, tau)``: joint accelerations (..., nv), as `Robot.forward_dynamics`."""
    return function(robot, "forward_dynamics", method=method)


def inverse_dynamics(robot: Functions, *, method: str = "auto") -> Callable[..., Any]:
    """``f(q, qd, qdd)``: joint torques (..., nv), as `Robot.inverse_dynamics`."""
    return function(robot, "inverse_dynamics", method=method)


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
    """The name under which XLA knows the kernel of a node, on the CPU."""
    own = _targets.setdefault(of, {})
    if dtype not in own:
        from linkwise.backends.llvm.xla import handler

        jax, kernel = _jax(), of.kernel(dtype)
        code = handler(kernel)  # type: ignore[arg-type]
        _kept.append((code, kernel))
        name = f"linkwise_{next(_numbers)}"
        capsule = jax.ffi.pycapsule(ctypes.c_void_p(code.address["xla"]))
        jax.ffi.register_ffi_target(name, capsule, platform="cpu")
        own[dtype] = name
    return own[dtype]
