"""The factors of a robot's mass matrix at given configurations, applied without being formed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike

from linkwise.algorithms.tied import why_not
from linkwise.engine import arrays
from linkwise.engine.calls import Array, Calls, Options
from linkwise.engine.libraries import library_of


class Innovations:
    """``M = F D Fᵀ``, or for the inverse ``M⁻¹ = Fᵀ D F``, at configurations (..., nq).

    F is unit triangular, ``1 + HΦL`` (or ``1 - HΨL``) of Rodriguez and Kreutz; D is diagonal.
    Joints of several degrees of freedom are eliminated one after another, so F also holds what
    those of one joint have to do with each other.
    """

    def __init__(
        self,
        calls: Calls,
        q: ArrayLike,
        inverse: bool,
        threads: int | None,
        device: str | None = None,
        status: bool = False,
    ) -> None:
        reason = why_not(calls.tasks.tree)
        if reason:
            raise ValueError(
                f"innovations: {reason}; expected such a robot (solve_mass and "
                "mass_matrix_inverse take this one)"
            )
        self._calls, self._options = calls, Options(threads=threads, device=device)
        # a copy: F is formed when it is asked for
        library = library_of(q)
        if library is None:
            self._q: Any = arrays.read("innovations", "q", calls.tasks.tree.nq, q).copy()
        else:
            self._q = library.copied(q)
        self.inverse = inverse
        self._name = "factor_inverse" if inverse else "factor"
        options = Options(threads=threads, device=device, status=status)
        found: Any = calls.run("pivots", (self._q,), options, method="innovations")
        self._pivots: Array
        self.status: Any  # status flags (...), if asked for
        self._pivots, self.status = found if status else (found, None)

    @property
    def D(self) -> Array:
        """The diagonal (..., nv), positive; NaN where M is singular or indefinite."""
        return 1.0 / self._pivots if self.inverse else 1.0 * self._pivots

    @cached_property
    def factor(self) -> Array:
        """``F`` (..., nv, nv), formed in O(nv²); rows and columns from base to tip."""
        return self._run(self._name)

    def __iter__(self) -> Iterator[Array]:
        """``F, D = robot.innovations(q)``."""
        yield self.factor
        yield self.D

    def apply(self, x: ArrayLike, *, transpose: bool = False) -> Array:
        """``F x``, or ``Fᵀ x`` (..., nv) in O(nv), F not formed.

        Leading axes broadcast against the configurations': several vectors go on one more axis.
        """
        name = f"apply_{self._name}" + ("_transpose" if transpose else "")
        return self._run(name, x)

    def _run(self, name: str, *values: ArrayLike) -> Array:
        given = (self._q, *values)
        found: Array = self._calls.run(name, given, self._options, method="innovations")
        return found

    def __repr__(self) -> str:
        what = "M⁻¹ = Fᵀ D F" if self.inverse else "M = F D Fᵀ"
        return f"<Innovations {what}: {self._pivots.shape}>"
