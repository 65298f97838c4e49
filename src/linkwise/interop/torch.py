"""``lw.torch``: functions of a robot as functions of PyTorch, with derivatives of any order.

>>> import linkwise as lw
>>> f = lw.torch.forward_dynamics(lw.load("puma560"))   # doctest: +SKIP
>>> qdd = f(q, qd, tau); qdd.sum().backward()           # doctest: +SKIP

Tensors (..., nq), (..., nv) in, a tensor out, on their device and in their number type; leading
axes broadcast. With ``f_ext``, one more argument for each frame that it names: a wrench (..., 6).

A function has two forms. Ordinary calls and the transformations of `torch.func` (`grad`, `vjp`,
`jvp`, `jacrev`, `jacfwd`, `hessian`, `vmap`) take a `torch.autograd.Function`; `torch.compile` and
`torch.export`, whose graphs hold operators only, take an operator of `torch.library`. The
derivatives of either are functions of the same form, each one kernel (``derived.py``). By a
quaternion in ``q`` they have four numbers: they are those of the function of the normalised
quaternion, and so have no part along it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from linkwise.engine.tasks import Key, frames_of
from linkwise.functions import Functions
from linkwise.interop.arguments import check_count, leading_axes, names, shapes
from linkwise.interop.derived import Node, node
from linkwise.interop.package import package

Operator = Callable[..., Any]
_numbers = count()
_nodes: WeakKeyDictionary[Any, dict[Key, Node]] = WeakKeyDictionary()  # by a robot's kernels


@cache
def _torch() -> Any:
    return package("torch", "lw.torch")


def function(
    robot: Functions, name: str, *, method: str = "auto", frame: str | None = None,
    axes: str = "base", f_ext: str | Sequence[str] = (),
) -> Operator:  # fmt: skip
    """A function of the robot by its name, such as ``"mass_matrix"``, as a function of tensors."""
    torch, calls = _torch(), robot._calls
    key, own = (
        Key(name, method, frame, axes, frames_of(f_ext)),
        _nodes.setdefault(calls.kernels, {}),
    )
    of = own.setdefault(key, node(calls, key)) if key not in own else own[key]
    wanted, own_shapes = names(of.ports, key.external), shapes(of.ports, calls.tasks)
    compiled, plain = _operator(of), _function(of)

    def call(*tensors: Any) -> Any:
        check_count(name, wanted, len(tensors), "tensor")
        lead = []
        for label, own_shape, x in zip(wanted, own_shapes, tensors, strict=True):
            if not isinstance(x, torch.Tensor):
                raise TypeError(f"{name}: {label} is a {type(x).__name__}; expected a torch.Tensor")
            if x.is_complex():
                raise TypeError(f"{name}: {label} has dtype {x.dtype}; expected real numbers")
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
    robot: Functions, *, method: str = "auto", f_ext: str | Sequence[str] = ()
) -> Operator:
    """``f(q, qd, tau)``: joint accelerations (..., nv), as `Robot.forward_dynamics`."""
    return function(robot, "forward_dynamics", method=method, f_ext=f_ext)


def inverse_dynamics(
    robot: Functions, *, method: str = "auto", f_ext: str | Sequence[str] = ()
) -> Operator:
    """``f(q, qd, qdd)``: joint torques (..., nv), as `Robot.inverse_dynamics`."""
    return function(robot, "inverse_dynamics", method=method, f_ext=f_ext)


def mass_matrix(robot: Functions, *, method: str = "auto") -> Operator:
    """``f(q)``: mass matrices (..., nv, nv), as `Robot.mass_matrix`."""
    return function(robot, "mass_matrix", method=method)


def forward_kinematics(robot: Functions, frame: str) -> Operator:
    """``f(q)``: poses (..., 4, 4) of a frame, as `Robot.forward_kinematics`."""
    return function(robot, "forward_kinematics", frame=frame)


def _made(own: Node, make: Callable[[Node], Operator]) -> Operator:
    """One form of a node, made when it is first needed and kept with the node."""
    forms = own.__dict__.setdefault("torch", {})
    if make not in forms:
        forms[make] = make(own)
    return forms[make]  # type: ignore[no-any-return]


def _operator(own: Node) -> Operator:
    """The node as an operator of torch.library, which returns one tensor or a tuple of them."""
    return _made(own, _make_operator)


def _function(own: Node) -> Operator:
    """The node as a torch.autograd.Function, which returns one tensor or a tuple of them."""
    return _made(own, _make_function)


def _run(own: Node, tensors: Sequence[Any]) -> Any:
    """The kernel's results."""
    return _given_back(own, own.run([x.detach().contiguous() for x in tensors]))


def _given_back(own: Node, found: Sequence[Any]) -> Any:
    return tuple(found) if len(own.slots) > 1 else found[0]


def _gradients(own: Node, form: Callable[[Node], Operator], ctx: Any, weights: Any) -> Any:
    """The derivatives by each input of the sum of the results, weighted."""
    inputs = ctx.saved_tensors
    lead = inputs[0].shape[:-1]
    rows = [w.reshape(*lead, slot.size) for w, slot in zip(weights, own.slots, strict=True)]
    found = form(own.vjp)(*inputs, *rows)
    return found if isinstance(found, tuple | list) else (found,)


def _mapped(own: Node, form: Callable[[Node], Operator], info: Any, axes: Any, given: Any) -> Any:
    """The results of a batch, its axis the first one of each: what `torch.vmap` asks for."""
    moved = [
        x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
        for x, axis in zip(given, axes, strict=True)
    ]
    return form(own)(*moved), _given_back(own, [0] * len(own.slots))


def _make_operator(own: Node) -> Operator:
    torch = _torch()
    shapes = [slot.shape for slot in own.slots]
    given = ", ".join(f"Tensor x{i}" for i in range(len(own.ports)))
    returned = f"({', '.join(['Tensor'] * len(shapes))})" if len(shapes) > 1 else "Tensor"

    def fake(*tensors: Any) -> Any:
        first = tensors[0]
        made = [first.new_empty((*first.shape[:-1], *shape)) for shape in shapes]
        return _given_back(own, made)

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    operator = torch.library.custom_op(
        f"linkwise::f{next(_numbers)}",
        lambda *tensors: _run(own, tensors),
        mutates_args=(),
        schema=f"({given}) -> {returned}",
    )
    operator.register_fake(fake)
    operator.register_autograd(
        lambda ctx, *weights: _gradients(own, _operator, ctx, weights), setup_context=keep
    )
    operator.register_vmap(lambda info, axes, *given: _mapped(own, _operator, info, axes, given))
    return operator  # type: ignore[no-any-return]


def _make_function(own: Node) -> Operator:
    def forward(*tensors: Any) -> Any:
        return _run(own, tensors)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def backward(ctx: Any, *weights: Any) -> Any:
        return _gradients(own, _function, ctx, weights)

    def vmap(info: Any, axes: Any, *tensors: Any) -> Any:
        return _mapped(own, _function, info, axes, tensors)

    def jvp(ctx: Any, *rates: Any) -> Any:
        return _function(own.jvp)(*ctx.saved_tensors, *rates)

    rules = (forward, setup_context, backward, vmap, jvp)
    methods = {rule.__name__: staticmethod(rule) for rule in rules}
    made: Operator = type("Linkwise", (_torch().autograd.Function,), methods).apply  # type: ignore[attr-defined]
    return made
