"""Vectors that integrators compute with: scalars of any kind, added and scaled together.

Equations of motion are traced with `Numbers`, and stepped in Python with arrays of NumPy, whose
last axis is the vector's: the same integrators run on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, final

from linkwise.spatial import Scalar

Vec = Any  # `Numbers`, or an array (..., n)


@final
class Numbers(Sequence[Scalar]):
    """A vector of scalars."""

    __slots__ = ("_own",)

    def __init__(self, own: Iterable[Scalar]) -> None:
        self._own = tuple(own)

    def __len__(self) -> int:
        return len(self._own)

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self._own)

    def __getitem__(self, k: Any) -> Any:
        return self._own[k]

    def __add__(self, other: Sequence[Scalar]) -> Numbers:
        return Numbers(a + b for a, b in zip(self, other, strict=True))

    def __sub__(self, other: Sequence[Scalar]) -> Numbers:
        return Numbers(a - b for a, b in zip(self, other, strict=True))

    def __mul__(self, k: Scalar) -> Numbers:
        return Numbers(k * a for a in self)

    def each(self, function: Callable[..., Scalar], *others: Sequence[Scalar]) -> Numbers:
        """A function of each number, and of those at its place in other vectors."""
        return Numbers(function(*own) for own in zip(self, *others, strict=True))
