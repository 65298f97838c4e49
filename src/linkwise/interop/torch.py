"""``lw.torch``: functions of a robot as functions of PyTorch, with derivatives of any order.

>>> import linkwise as lw
>>> f = lw.torch.forward_dynamics(lw.load("puma560"))   # doctest: +SKIP
>>> qdd = f(q, qd, tau); qdd.sum().backward()           # doctest: +SKIP

Tensors (..., nq), (..., nv) in, a tensor out, on their device and in their number type; leading
axes broadcast. With ``f_ext``, one more argument for each frame that it names: a wrench (..., 6).

A function has two forms. Ordinary calls and the transformations of `torch.func` (`grad`, `vjp`,
`jvp`, `jacrev`, `jacfwd`, `hessian`, `vmap`) take a `torch.autograd.Function`; `torch.compile` and
`torch.export`, whose graphs hold operators only, take an operator of `torch.library`. There is one
operator for each number of arguments and results, registered once: its first argument is the handle
of a `Node`, so that nothing is registered for a robot and everything made for it ends with it. The
derivatives of either are functions of the same form, each one kernel (``derived.py``). By a
quaternion in ``q`` they have four numbers: they are those of the function of the normalised
quaternion, and so have no part along it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

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

Operator = Callable[..., Any]
_handles = count()
_nodes: WeakValueDictionary[int, Node] = WeakValueDictionary()  # by handle
_in_graphs: dict[int, Node] = {}  # those that a graph of torch.compile or torch.export names


@cache
def _torch() -> Any:
    return package("torch", "lw.torch")


def function(
    robot: Functions, name: str, *, method: str = "auto", frame: str | None = None,
    axes: str = "base", f_ext: str | Sequence[str] = (),
) -> Operator:  # fmt: skip
    """A function of the robot by its name, such as ``"mass_matrix"``, as a function of tensors."""
    torch, calls = _torch(), robot._calls
    key = Key(name, method, frame, axes, frames_of(f_ext))
    known: Node | None = calls.functions.get(("node", key))
    of = known or calls.functions.setdefault(("node", key), node(calls, key))
    wanted, own_shapes = names(of.ports, key.external), shapes(of.ports, calls.tasks)
    compiled, plain = partial(_operator(of), _handle(of)), partial(_function(), of)

    def call(*tensors: Any) -> Any:
        check_count(name, wanted, len(tensors), "tensor")
        lead = []
        for label, own_shape, x in zip(wanted, own_shapes, tensors, strict=True):
            if not isinstance(x, torch.Tensor):
                raise TypeError(f"{name}: {label} is a {type(x).__name__}; expected a torch.Tensor")
            check_dtype(name, label, str(x.dtype))
            lead.append(leading_axes(name, label, tuple(x.shape), own_shape))
        shape = torch.broadcast_shapes(*lead)
        double = any(x.dtype == torch.float64 for x in tensors)
        dtype = torch.float64 if double else torch.float32
        rows = [
            x.to(dtype).reshape(*before, port.size).expand(*shape, port.size)
            for x, before, port in zip(tensors, lead, of.ports, strict=True)
        ]
        return compiled(*rows) if torch.compiler.is_compiling() else plain(*rows)

    call.__name__ = call.__qualname__ = name
    return call


def forward_dynamics(
    robot: Functions, *values: Any, method: str = "auto", f_ext: str | Sequence[str] = ()
) -> Operator:
    """``f(q, qd, tau)``: joint accelerations (..., nv), as `Robot.forward_dynamics`."""
    only_robot("lw.torch.forward_dynamics", "robot", values)
    return function(robot, "forward_dynamics", method=method, f_ext=f_ext)


def inverse_dynamics(
    robot: Functions, *values: Any, method: str = "auto", f_ext: str | Sequence[str] = ()
) -> Operator:
    """``f(q, qd, qdd)``: joint torques (..., nv), as `Robot.inverse_dynamics`."""
    only_robot("lw.torch.inverse_dynamics", "robot", values)
    return function(robot, "inverse_dynamics", method=method, f_ext=f_ext)


def mass_matrix(robot: Functions, *values: Any, method: str = "auto") -> Operator:
    """``f(q)``: mass matrices (..., nv, nv), as `Robot.mass_matrix`."""
    only_robot("lw.torch.mass_matrix", "robot", values)
    return function(robot, "mass_matrix", method=method)


def forward_kinematics(robot: Functions, frame: str, *values: Any) -> Operator:
    """``f(q)``: poses (..., 4, 4) of a frame, as `Robot.forward_kinematics`."""
    more = values if isinstance(frame, str) else (frame, *values)
    only_robot("lw.torch.forward_kinematics", "robot, frame", more)
    return function(robot, "forward_kinematics", frame=frame)


def _handle(own: Node) -> int:
    """The number by which operators know a node."""
    handle: int = own.__dict__.setdefault("handle", next(_handles))
    _nodes[handle] = own
    return handle


def _called(own: Node, *tensors: Any) -> Any:
    """Call a node as an operator."""
    return _operator(own)(_handle(own), *tensors)


def _applied(own: Node, *tensors: Any) -> Any:
    """Call a node as a torch.autograd.Function."""
    return _function()(own, *tensors)


def _run(own: Node, tensors: Sequence[Any]) -> Any:
    """The kernel's results."""
    return _given_back(own, own.run([x.detach().contiguous() for x in tensors]))


def _given_back(own: Node, found: Sequence[Any]) -> Any:
    return tuple(found) if len(own.slots) > 1 else found[0]


def _gradients(own: Node, call: Operator, ctx: Any, weights: Any) -> Any:
    """The derivatives by each input of the sum of the results, weighted; none by the node."""
    inputs = ctx.saved_tensors
    lead = inputs[0].shape[:-1]
    rows = [w.reshape(*lead, slot.size) for w, slot in zip(weights, own.slots, strict=True)]
    found = call(own.vjp, *inputs, *rows)
    return (None, *(found if isinstance(found, tuple | list) else (found,)))


def _mapped(own: Node, call: Operator, info: Any, axes: Any, given: Any) -> Any:
    """The results of a batch, its axis the first one of each: what `torch.vmap` asks for."""
    moved = [
        x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
        for x, axis in zip(given, axes, strict=True)
    ]
    return call(own, *moved), _given_back(own, [0] * len(own.slots))


def _operator(own: Node) -> Operator:
    """The operator of torch.library for nodes of as many inputs and outputs."""
    return _operator_of(len(own.ports), len(own.slots))


@cache
def _operator_of(inputs: int, outputs: int) -> Operator:
    given = ", ".join(["int node", *(f"Tensor x{i}" for i in range(inputs))])
    returned = f"({', '.join(['Tensor'] * outputs)})" if outputs > 1 else "Tensor"

    def fake(handle: int, *tensors: Any) -> Any:
        own, first = _nodes[handle], tensors[0]
        _in_graphs[handle] = own
        made = [first.new_empty((*first.shape[:-1], *slot.shape)) for slot in own.slots]
        return _given_back(own, made)

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        handle, *tensors = inputs
        ctx.node = _nodes[handle]
        ctx.save_for_backward(*tensors)

    operator = _torch().library.custom_op(
        f"linkwise::call_{inputs}_{outputs}",
        lambda handle, *tensors: _run(_nodes[handle], tensors),
        mutates_args=(),
        schema=f"({given}) -> {returned}",
    )
    operator.register_fake(fake)
    operator.register_autograd(
        lambda ctx, *weights: _gradients(ctx.node, _called, ctx, weights), setup_context=keep
    )
    operator.register_vmap(
        lambda info, axes, handle, *given: _mapped(_nodes[handle], _called, info, axes[1:], given)
    )
    return operator  # type: ignore[no-any-return]


@cache
def _function() -> Operator:
    """Calls of nodes as a torch.autograd.Function, whose first argument is the node."""

    def forward(own: Node, *tensors: Any) -> Any:
        return _run(own, tensors)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.node, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    def backward(ctx: Any, *weights: Any) -> Any:
        return _gradients(ctx.node, _applied, ctx, weights)

    def vmap(info: Any, axes: Any, own: Node, *tensors: Any) -> Any:
        return _mapped(own, _applied, info, axes[1:], tensors)

    def jvp(ctx: Any, _: Any, *rates: Any) -> Any:
        return _applied(ctx.node.jvp, *ctx.saved_tensors, *rates)

    rules = (forward, setup_context, backward, vmap, jvp)
    methods = {rule.__name__: staticmethod(rule) for rule in rules}
    made: Operator = type("Linkwise", (_torch().autograd.Function,), methods).apply  # type: ignore[attr-defined]
    return made
