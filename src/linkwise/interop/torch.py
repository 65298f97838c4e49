"""``lw.torch``: functions of a robot as PyTorch operators, with derivatives of any order.

>>> import linkwise as lw
>>> f = lw.torch.forward_dynamics(lw.load("puma560"))   # doctest: +SKIP
>>> qdd = f(q, qd, tau); qdd.sum().backward()           # doctest: +SKIP

Tensors (..., nq), (..., nv) in, a tensor out, on their device and in their number type; leading
axes broadcast. Every function is an operator of `torch.library`: `torch.compile` calls it,
`torch.vmap` makes its axis a batch, and gradients of gradients are operators again. Derivatives by
``q`` are those by its numbers: of a quaternion, by all four. `torch.func.grad` and `jacrev`, which
take no operators of others, are left to `torch.autograd`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from linkwise.engine.tasks import Key
from linkwise.functions import Functions
from linkwise.interop.derived import Node, node
from linkwise.interop.package import package

Operator = Callable[..., Any]
_numbers = count()
_made: WeakKeyDictionary[Any, dict[Key, Operator]] = WeakKeyDictionary()  # by a robot's kernels


@cache
def _torch() -> Any:
    return package("torch", "lw.torch")


def function(
    robot: Functions, name: str, *, method: str = "auto", frame: str | None = None,
    axes: str = "base",
) -> Operator:  # fmt: skip
    """A function of the robot by its name, such as ``"mass_matrix"``, as a function of tensors."""
    torch, calls = _torch(), robot._calls
    key, own = Key(name, method, frame, axes), _made.setdefault(calls.kernels, {})
    of = node(calls, key)
    operator = own.setdefault(key, _operator(of)) if key not in own else own[key]
    wanted = [port.name for port in of.ports]

    def call(*tensors: Any) -> Any:
        if len(tensors) != len(wanted):
            expected = ", ".join(wanted)
            raise TypeError(f"{name}: was given {len(tensors)} tensor(s); expected {expected}")
        for label, x in zip(wanted, tensors, strict=True):
            if not isinstance(x, torch.Tensor):
                raise TypeError(f"{name}: {label} is a {type(x).__name__}; expected a torch.Tensor")
        shape = torch.broadcast_shapes(*(x.shape[:-1] for x in tensors))
        double = any(x.dtype == torch.float64 for x in tensors)
        dtype = torch.float64 if double else torch.float32
        return operator(*(x.to(dtype).expand(*shape, x.shape[-1]) for x in tensors))

    call.__name__ = call.__qualname__ = name
    return call


def forward_dynamics(robot: Functions, *, method: str = "auto") -> Operator:
    """``f(q, qd, tau)``: joint accelerations (..., nv), as `Robot.forward_dynamics`."""
    return function(robot, "forward_dynamics", method=method)


def inverse_dynamics(robot: Functions, *, method: str = "auto") -> Operator:
    """``f(q, qd, qdd)``: joint torques (..., nv), as `Robot.inverse_dynamics`."""
    return function(robot, "inverse_dynamics", method=method)


def mass_matrix(robot: Functions, *, method: str = "auto") -> Operator:
    """``f(q)``: mass matrices (..., nv, nv), as `Robot.mass_matrix`."""
    return function(robot, "mass_matrix", method=method)


def forward_kinematics(robot: Functions, frame: str) -> Operator:
    """``f(q)``: poses (..., 4, 4) of a frame, as `Robot.forward_kinematics`."""
    return function(robot, "forward_kinematics", frame=frame)


def _operator(own: Node) -> Operator:
    """The node as an operator of torch.library, which returns one tensor or a tuple of them."""
    torch = _torch()
    shapes, several = [slot.shape for slot in own.slots], len(own.slots) > 1
    given = ", ".join(f"Tensor x{i}" for i in range(len(own.ports)))
    returned = f"({', '.join(['Tensor'] * len(shapes))})" if several else "Tensor"

    def run(*tensors: Any) -> Any:
        found = own.run([x.detach().contiguous() for x in tensors])
        return tuple(found) if several else found[0]

    def fake(*tensors: Any) -> Any:
        made = [tensors[0].new_empty((*tensors[0].shape[:-1], *shape)) for shape in shapes]
        return tuple(made) if several else made[0]

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, *weights: Any) -> Any:
        inputs = ctx.saved_tensors
        lead = inputs[0].shape[:-1]
        rows = [w.reshape(*lead, slot.size) for w, slot in zip(weights, own.slots, strict=True)]
        found = _of(own.vjp)(*inputs, *rows)
        return found if isinstance(found, tuple | list) else (found,)

    def mapped(info: Any, axes: Sequence[int | None], *tensors: Any) -> Any:
        moved = [
            x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
            for x, axis in zip(tensors, axes, strict=True)
        ]
        found = operator(*moved)
        return found, ((0,) * len(shapes) if several else 0)

    operator = torch.library.custom_op(
        f"linkwise::f{next(_numbers)}", run, mutates_args=(), schema=f"({given}) -> {returned}"
    )
    operator.register_fake(fake)
    operator.register_autograd(backward, setup_context=keep)
    operator.register_vmap(mapped)
    return operator  # type: ignore[no-any-return]


def _of(own: Node) -> Operator:
    """The operator of a derivative, made when it is first needed and kept with its node."""
    found: Operator | None = getattr(own, "operator", None)
    if found is None:
        found = own.operator = _operator(own)  # type: ignore[attr-defined]
    return found
