"""`Robot`: checks what it is given once, picks a kernel, returns arrays."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise import arrays
from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.backends.c.render import render_c
from linkwise.choose import choose_method
from linkwise.compile import Kernels
from linkwise.model.tree import Frame, Tree
from linkwise.summary import summary
from linkwise.trace.program import OperationCount, count_operations
from linkwise.trace.tracer import Task, evaluate, trace

Array = NDArray[Any]
Wrenches = Mapping[str, ArrayLike]


class Robot:
    """A robot and its compiled functions.

    Every function takes one state or any leading batch axes, which broadcast as in NumPy; keeps
    float32 or float64 (integers and lists become float64); and accepts ``out=`` and, for large
    batches, ``threads=``. Spatial vectors are (angular, linear). A frame's velocity is that of its
    origin in base axes, unless ``axes="body"``. SI units. A robot does not change once made,
    and may be called from any number of threads.
    """

    def __init__(self, tree: Tree, name: str = "robot") -> None:
        self._tree = tree
        self._name = name
        self._kernels = Kernels(tree)
        self._fast: dict[tuple[str, ...], Callable[..., Array]] = {}

    # -- what it is -----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The robot's name."""
        return self._name

    @property
    def tree(self) -> Tree:
        """Links, joints and constants, as the algorithms see them."""
        return self._tree

    @property
    def nq(self) -> int:
        """Numbers in a configuration."""
        return self._tree.nq

    @property
    def nv(self) -> int:
        """Degrees of freedom."""
        return self._tree.nv

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Moving joints, in the order of ``q``."""
        return tuple(link.joint_name for link in self._tree.links)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Moving links, in the order of their joints; fixed links are merged into them."""
        return tuple(link.name for link in self._tree.links)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Frames that kinematics can be asked for: every link of the file, fixed ones too."""
        return tuple(self._tree.frames)

    @property
    def gravity(self) -> Array:
        """Gravity in base axes, m/s²."""
        return np.array(self._tree.gravity)

    @property
    def position_limits(self) -> Array:
        """Lower and upper joint limits (2, nv); infinite where there are none."""
        limits = [link.limits for link in self._tree.links]
        return np.array([[x.lower for x in limits], [x.upper for x in limits]])

    def __str__(self) -> str:
        """A table of joints, axes, limits and masses."""
        return summary(self._name, self._tree)

    def __repr__(self) -> str:
        return f"<Robot {self._name!r}: {self.nv} degrees of freedom>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Robot, (self._tree, self._name)

    # -- dynamics -------------------------------------------------------------------------------

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        f_ext: Wrenches | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Joint torques (..., nv) that produce ``qdd``: ``M qdd + C qd + g - Jᵀ f_ext``."""
        return self._run("inverse_dynamics", (q, qd, qdd), out, threads, f_ext=f_ext)

    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        method: str = "auto",
        f_ext: Wrenches | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Joint accelerations (..., nv) under torques ``tau``.

        ``method``: ``"crba"`` (mass matrix and LᵀDL factors), ``"aba"`` (articulated bodies), or
        ``"auto"``, whichever is faster for this robot.
        """
        return self._run("forward_dynamics", (q, qd, tau), out, threads, method, f_ext=f_ext)

    def mass_matrix(
        self,
        q: ArrayLike,
        *,
        method: str = "auto",
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Mass matrix (..., nv, nv), rotors included."""
        return self._run("mass_matrix", (q,), out, threads, method)

    def mass_matrix_inverse(
        self,
        q: ArrayLike,
        *,
        method: str = "auto",
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Inverse of the mass matrix (..., nv, nv); ``method`` as in `forward_dynamics`."""
        return self._run("mass_matrix_inverse", (q,), out, threads, method)

    def bias(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        *,
        f_ext: Wrenches | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """``C qd + g`` (..., nv): torques of a motion without acceleration."""
        return self._run("bias", (q, qd), out, threads, f_ext=f_ext)

    def gravity_torque(
        self,
        q: ArrayLike,
        *,
        f_ext: Wrenches | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """``g`` (..., nv): torques that hold the robot still."""
        return self._run("gravity_torque", (q,), out, threads, f_ext=f_ext)

    def kinetic_energy(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        *,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Kinetic energy (...), rotors included."""
        return self._run("kinetic_energy", (q, qd), out, threads)

    def potential_energy(
        self, q: ArrayLike, *, out: Array | None = None, threads: int | None = None
    ) -> Array:
        """Potential energy (...) of the moving links; zero with their mass at base height."""
        return self._run("potential_energy", (q,), out, threads)

    # -- kinematics -----------------------------------------------------------------------------

    def forward_kinematics(
        self,
        q: ArrayLike,
        frame: str,
        *,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Pose of a frame (..., 4, 4): takes its coordinates to base coordinates."""
        fast = self._fast.get(("forward_kinematics", frame))
        if fast is not None and out is None and threads is None:
            return fast(q)
        return self._run("forward_kinematics", (q,), out, threads, frame=frame)

    def jacobian(
        self,
        q: ArrayLike,
        frame: str,
        *,
        axes: str = "base",
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Jacobian of a frame (..., 6, nv): rows (angular, linear) of its velocity at its origin.

        In base axes (Pinocchio's LOCAL_WORLD_ALIGNED with the row blocks swapped), or with
        ``axes="body"`` in the frame's own (its LOCAL).
        """
        fast = self._fast.get(("jacobian", frame, axes))
        if fast is not None and out is None and threads is None:
            return fast(q)
        return self._run("jacobian", (q,), out, threads, frame=frame, axes=axes)

    def jacobian_dot_qd(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        *,
        axes: str = "base",
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """``J̇ qd`` (..., 6): the frame's acceleration at constant joint rates, gravity aside."""
        fast = self._fast.get(("jacobian_dot_qd", frame, axes))
        if fast is not None and out is None and threads is None:
            return fast(q, qd)
        return self._run("jacobian_dot_qd", (q, qd), out, threads, frame=frame, axes=axes)

    def operational_inertia(
        self,
        q: ArrayLike,
        frame: str,
        *,
        axes: str = "base",
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Operational-space inertia ``(J M⁻¹ Jᵀ)⁻¹`` (..., 6, 6) of a frame.

        Needs six joints between base and frame. At a singular pose it does not exist: entries are
        then huge or not finite.
        """
        joints = sum(self._tree.links[i].joint.nv for i in self._tree.path(self._frame(frame).link))
        if joints < 6:
            raise ValueError(
                f"operational_inertia: frame {frame!r} is moved by {joints} joint(s); expected at "
                "least 6, else J M⁻¹ Jᵀ has no inverse"
            )
        fast = self._fast.get(("operational_inertia", frame, axes))
        if fast is not None and out is None and threads is None:
            return fast(q)
        return self._run("operational_inertia", (q,), out, threads, frame=frame, axes=axes)

    # -- looking inside -------------------------------------------------------------------------

    def operation_count(
        self, function: str, method: str = "auto", *, frame: str | None = None
    ) -> OperationCount:
        """Exact operations of one evaluation of the program that runs."""
        return count_operations(trace(self._task(function, method, frame), self._tree))

    def source(
        self,
        function: str,
        backend: str = "c",
        method: str = "auto",
        *,
        frame: str | None = None,
        dtype: str = "float64",
    ) -> str:
        """Generated code: ``"c"`` (readable), ``"llvm"`` (what is compiled) or ``"asm"``."""
        task = self._task(function, method, frame)
        if backend == "c":
            return render_c(trace(task, self._tree), self._name)
        if backend == "llvm":
            return self._kernels.ir(task, dtype)
        if backend == "asm":
            return self._kernels.assembly(task, dtype)
        raise ValueError(f"backend {backend!r}: expected 'c', 'llvm' or 'asm'")

    def evaluate(
        self, function: str, *values: Any, method: str = "auto", frame: str | None = None
    ) -> Any:
        """Run a function's equations on scalars of any kind, uncompiled; returns nested lists.

        With mpmath numbers (after ``import linkwise.spatial.precise``) the result has as many
        digits as asked for; with NumPy arrays as scalars it is a slow second opinion.
        """
        return evaluate(self._task(function, method, frame), self._tree, *values)

    # -- how ------------------------------------------------------------------------------------

    def _frame(self, name: str) -> Frame:
        frame = self._tree.frames.get(name) if isinstance(name, str) else None
        if frame is None:
            near = difflib.get_close_matches(str(name), self._tree.frames, 3)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ValueError(
                f"frame {name!r}: robot {self._name!r} has no such frame{hint} "
                "(robot.frame_names lists them)"
            )
        return frame

    def _algorithm(self, function: str, method: str) -> Algorithm:
        methods = FUNCTIONS.get(function)
        if methods is None:
            raise ValueError(f"function {function!r}: expected one of {', '.join(FUNCTIONS)}")
        if method == "auto":
            method = choose_method(function, self._tree)
        if method not in methods:
            names = ", ".join(repr(m) for m in ("auto", *methods))
            raise ValueError(f"method {method!r}: {function} expects one of {names}")
        return methods[method]

    def _task(
        self,
        function: str,
        method: str = "auto",
        frame: str | None = None,
        axes: str = "base",
        external: tuple[str, ...] = (),
    ) -> Task:
        algorithm = self._algorithm(function, method)
        if axes not in ("base", "body"):
            raise ValueError(f"axes {axes!r}: expected 'base' or 'body'")
        if algorithm.takes_frame and frame is None:
            raise ValueError(f"{function}: expected a frame (robot.frame_names lists them)")
        at = self._frame(frame) if frame is not None else None
        return Task(algorithm, at, axes, tuple(self._frame(name) for name in external))

    def _run(
        self,
        function: str,
        values: tuple[ArrayLike, ...],
        out: Array | None,
        threads: int | None,
        method: str = "auto",
        *,
        frame: str | None = None,
        axes: str = "base",
        f_ext: Wrenches | None = None,
    ) -> Array:
        """The general path: any dtype, layout, batch and option."""
        wrenches = arrays.wrenches(f_ext)
        task = self._task(function, method, frame, axes, tuple(wrenches))
        ports = [(port.name, port.size) for port in task.ports(self._tree)]
        labels = [f"f_ext[{name!r}]" for name in wrenches]
        ports[len(values) :] = [(label, 6) for label in labels]
        batch = arrays.prepare(function, ports, (*values, *wrenches.values()))
        shape = (*batch.shape, *task.algorithm.output_shape(self._tree))
        count = arrays.thread_count(threads)
        if method == "auto" and not wrenches and arrays.plain_state(values):
            fast = self._fast_function(function, task, frame, axes)
            if fast is not None and out is None:
                return fast(*values)

        def run(rows: tuple[Array, ...], result: Array) -> None:
            self._kernels.batch(task, batch.dtype)(rows, result, count)

        return arrays.fill(out, shape, batch, run)

    def _fast_function(
        self, function: str, task: Task, frame: str | None, axes: str
    ) -> Callable[..., Array] | None:
        """Compiled code for plain single states, which from now on go straight to it."""
        key = tuple(
            part for part in (function, frame, axes if task.algorithm.takes_axes else None) if part
        )
        if key in self._fast:
            return self._fast[key]
        general = self._general(function, frame, axes)
        doc = f"{function}: compiled for {self._name}"
        fast = self._kernels.call(task, function, doc, general)
        if fast is not None:
            self._fast[key] = fast
            if frame is None:
                self.__dict__[function] = fast
        return fast

    def _general(self, function: str, frame: str | None, axes: str) -> Callable[..., Any]:
        if frame is None:
            method: Callable[..., Any] = getattr(type(self), function).__get__(self)
            return method
        return lambda *values: self._run(function, values, None, None, frame=frame, axes=axes)
