"""From names to a task: function, method, frame and axes, each checked, with errors that help."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from linkwise.algorithms import Algorithm, functions_of, mobility, wrong_kind
from linkwise.engine.auto import MOST_PIECES, choose_method, in_loops
from linkwise.errors import meant
from linkwise.model.parameters import Parameter
from linkwise.model.tree import Frame, Tree
from linkwise.model.values import unknown
from linkwise.trace.tracer import Task

# what users call the functions that stand behind another
TITLES = {"dynamics_and_inverse": "operational_dynamics",
          "weighted_inverse_dynamics": "inverse_dynamics"} | dict.fromkeys(
    ("pivots", "factor", "factor_inverse", "apply_factor", "apply_factor_inverse",
     "apply_factor_transpose", "apply_factor_inverse_transpose"), "innovations",
)  # fmt: skip


class Key(NamedTuple):
    """What makes one kind of call differ from another."""

    function: str
    method: str = "auto"
    frame: str | None = None
    axes: str = "base"
    external: tuple[str, ...] = ()
    damped: bool = False
    status: bool = False


def frames_of(f_ext: str | Sequence[str] | None) -> tuple[str, ...]:
    """The frames that wrenches act on, where a function is made for them; each is named once."""
    if f_ext is None:
        return ()
    if not isinstance(f_ext, str | Iterable):
        raise TypeError(
            f"f_ext is a {type(f_ext).__name__}; expected names of frames, as f_ext=['tool0']"
        )
    frames = (f_ext,) if isinstance(f_ext, str) else tuple(f_ext)
    for name in frames:
        if not isinstance(name, str):
            raise TypeError(
                f"f_ext has a {type(name).__name__}; expected names of frames, as f_ext=['tool0']"
            )
    for name in frames:
        if frames.count(name) > 1:
            raise ValueError(f"f_ext names frame {name!r} twice; expected each frame once")
    return frames


class Tasks:
    """The tasks of one robot."""

    def __init__(self, tree: Tree, name: str, parameters: tuple[Parameter, ...] = ()) -> None:
        self.tree, self.name, self.parameters = tree, name, parameters
        self._tasks: dict[tuple[Key, str, str], Task] = {}

    def frame(self, name: Any) -> Frame:
        """A frame by its name."""
        frame = self.tree.frames.get(name) if isinstance(name, str) else None
        if frame is None:
            raise unknown("frame", name, self.name, self.tree.frames)
        return frame

    def algorithm(
        self,
        function: str,
        method: str,
        dtype: str = "float64",
        frame: Frame | None = None,
        device: str = "cpu",
    ) -> Algorithm:
        """A function's method; ``auto`` takes the fastest on a kind of device."""
        known = functions_of(self.tree)
        methods = known.get(function) if isinstance(function, str) else None
        if methods is None:
            raise self._no_function(function)
        if method == "auto":
            method = choose_method(function, self.tree, dtype, frame, device)
        if not isinstance(method, str) or method not in methods:
            names = ", ".join(repr(m) for m in ("auto", *methods))
            why = wrong_kind(self.tree, function, method)
            title = TITLES.get(function, function)
            raise ValueError(
                f"method {method!r}: {why + '; ' if why else ''}{title} expects one of {names}"
                + ("" if why else meant(method, methods, 1))
            )
        return methods[method]

    def _no_function(self, function: Any) -> ValueError:
        """The error for a name that is no function of the robot, with what may have been meant."""
        if not isinstance(function, str):
            return ValueError(
                f"function is a {type(function).__name__}; expected the name of a function, as "
                "'inverse_dynamics'"
            )
        known, why = functions_of(self.tree), wrong_kind(self.tree, function)
        if why:
            return ValueError(f"{function}: {why}")
        of = [name for name, methods in known.items() if function in list(methods)]
        if of:
            return ValueError(
                f"function {function!r}: is a method; expected {of[0]!r}, with method={function!r} "
                "where it matters"
            )
        if difflib.get_close_matches(str(function), known):
            return unknown("function", function, self.name, known)
        return ValueError(f"function {function!r}: expected one of {', '.join(known)}")

    def task(self, key: Key, dtype: str = "float64", device: str = "cpu") -> Task:
        """What to compute, every name checked."""
        kind = (key, dtype, device)
        try:
            task = self._tasks.get(kind)
        except TypeError:  # a name that is no text, which the checks below refuse
            return self._new(*kind)
        if task is None:
            task = self._tasks[kind] = self._new(*kind)
        return task

    def _new(self, key: Key, dtype: str, device: str) -> Task:
        at = self.frame(key.frame) if key.frame is not None else None
        algorithm = self.algorithm(key.function, key.method, dtype, at, device)
        known = algorithm.axes or ("base", "body")
        if key.axes not in known:
            raise ValueError(f"axes {key.axes!r}: expected {' or '.join(map(repr, known))}")
        if algorithm.takes_frame and at is None:
            raise ValueError(f"{key.function}: expected a frame (robot.frame_names lists them)")
        if at is not None and not algorithm.takes_frame:
            raise ValueError(f"{key.function}: frame is {key.frame!r}; this function takes none")
        if key.external and not algorithm.takes_external:
            raise ValueError(
                f"{key.function}: f_ext names {', '.join(map(repr, key.external))}; this function "
                "takes no wrenches"
            )
        self._check_applies(algorithm, key, at)
        wrenches = tuple(self.frame(name) for name in key.external)
        # loops over the links, or code written out for each
        loops = in_loops(key.function, self.tree, device)
        if algorithm.scans and device == "cpu" and self.tree.loops is None:
            loops = self.tree.n_links > MOST_PIECES
        # what loops read of links is in tables, not among a kernel's arguments
        loops = loops and not self.parameters and algorithm.can_roll(self.tree, device)
        return Task(
            algorithm, at, key.axes, wrenches, key.status, key.damped, self.parameters, loops
        )

    def _why_not(self, algorithm: Algorithm, key: Key, at: Frame | None) -> str:
        """Why a method is not for this robot or call; empty if it is."""
        between_bodies = mobility.why_not in algorithm.needs
        if between_bodies and any(each.name == "rotor" for each in self.parameters):
            return (
                "it divides by the inertia of each rotor, which the parameter 'rotor' may set to 0"
            )
        return algorithm.why_not(self.tree, at, key.damped)

    def _check_applies(self, algorithm: Algorithm, key: Key, at: Frame | None) -> None:
        """Say why a method is not for this robot or call, and which methods are."""
        reason = self._why_not(algorithm, key, at)
        if reason:
            others = functions_of(self.tree)[algorithm.function].values()
            able = [x.method for x in others if not self._why_not(x, key, at)]
            instead = (
                f"expected one of {', '.join(map(repr, able))}"
                if able
                else "no method can compute it"
            )
            of_frame = f", frame {key.frame!r}" if at is not None else ""
            title = TITLES.get(algorithm.function, algorithm.function)
            raise ValueError(f"{title}, method {algorithm.method!r}{of_frame}: {reason}; {instead}")
