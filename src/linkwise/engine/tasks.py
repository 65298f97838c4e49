"""From names to a task: function, method, frame and axes, each checked, with errors that help."""

from __future__ import annotations

import difflib
from typing import Any, NamedTuple

from linkwise.algorithms import FUNCTIONS, Algorithm
from linkwise.engine.auto import choose_method
from linkwise.model.tree import Frame, Tree
from linkwise.trace.tracer import Task


class Key(NamedTuple):
    """What makes one kind of call differ from another."""

    function: str
    method: str = "auto"
    frame: str | None = None
    axes: str = "base"
    external: tuple[str, ...] = ()
    damped: bool = False
    status: bool = False


class Tasks:
    """The tasks of one robot."""

    def __init__(self, tree: Tree, name: str) -> None:
        self.tree, self.name = tree, name

    def frame(self, name: Any) -> Frame:
        """A frame by its name."""
        frame = self.tree.frames.get(name) if isinstance(name, str) else None
        if frame is None:
            near = difflib.get_close_matches(str(name), self.tree.frames, 3)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ValueError(
                f"frame {name!r}: robot {self.name!r} has no such frame{hint} "
                "(robot.frame_names lists them)"
            )
        return frame

    def algorithm(
        self, function: str, method: str, dtype: str = "float64", frame: Frame | None = None
    ) -> Algorithm:
        """A function's method; ``auto`` takes the fastest."""
        methods = FUNCTIONS.get(function)
        if methods is None:
            raise ValueError(f"function {function!r}: expected one of {', '.join(FUNCTIONS)}")
        if method == "auto":
            method = choose_method(function, self.tree, dtype, frame)
        if method not in methods:
            names = ", ".join(repr(m) for m in ("auto", *methods))
            raise ValueError(f"method {method!r}: {function} expects one of {names}")
        return methods[method]

    def task(self, key: Key, dtype: str = "float64") -> Task:
        """What to compute, every name checked."""
        at = self.frame(key.frame) if key.frame is not None else None
        algorithm = self.algorithm(key.function, key.method, dtype, at)
        known = algorithm.axes or ("base", "body")
        if key.axes not in known:
            raise ValueError(f"axes {key.axes!r}: expected {' or '.join(map(repr, known))}")
        if algorithm.takes_frame and at is None:
            raise ValueError(f"{key.function}: expected a frame (robot.frame_names lists them)")
        self._check_applies(algorithm, key.damped)
        if key.function == "operational_inertia" and at is not None and not key.damped:
            self._check_six_directions(key.frame, at)
        wrenches = tuple(self.frame(name) for name in key.external)
        return Task(algorithm, at, key.axes, wrenches, status=key.status, damped=key.damped)

    def _check_applies(self, algorithm: Algorithm, damped: bool) -> None:
        """Say why a method is not for this robot or call, and which methods are."""
        reason = ""
        if not algorithm.exists_for(self.tree):
            reason = algorithm.why_not(self.tree)
        elif damped and not algorithm.takes_damping:
            reason = "takes no damping, for it never forms the inverse that damping is added to"
        if reason:
            others = [x for x in FUNCTIONS[algorithm.function].values() if x.exists_for(self.tree)]
            able = [x.method for x in others if x.takes_damping or not damped]
            instead = f"expected one of {', '.join(map(repr, able))}" if able else "no method can"
            raise ValueError(
                f"{algorithm.function}, method {algorithm.method!r}: {reason}; {instead}"
            )

    def _check_six_directions(self, name: str | None, frame: Frame) -> None:
        """An operational inertia needs joints for every direction of its frame."""
        path = self.tree.path(frame.link)
        moving = len({dof for i in path for dof, _ in self.tree.links[i].dofs})
        if moving < 6:
            raise ValueError(
                f"operational_inertia: frame {name!r} is moved by {moving} joint(s); expected at "
                "least 6, else J M⁻¹ Jᵀ has no inverse (operational_inertia_inverse exists, and "
                "damping= gives one)"
            )
