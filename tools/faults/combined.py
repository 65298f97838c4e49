"""Several defects in one file: does `linkwise.check` find each, and nothing else?

Each defect is put into the file alone first; what is told then, line and code, is what it should
be told among others. Only defects that leave every element on its line are combined, each at an
element of its own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from faults.document import File
from faults.spoil import Defect

F = TypeVar("F", bound=File)
Told = Counter[tuple[int | None, str]]  # lines and codes
Check = Callable[[str], Told]


@dataclass(frozen=True)
class Choice(Generic[F]):
    """A defect, and the element that gets it, by its number in the file."""

    defect: Defect[F]
    place: int

    def spoil(self, document: F) -> None:
        """Put the defect into the document."""
        self.defect.spoil(document, list(document.root.iter())[self.place])


@dataclass(frozen=True)
class Combined:
    """A file with several defects, what was told of each alone, and what is told of all."""

    text: str
    names: tuple[str, ...]
    expected: Told
    told: Told

    @property
    def missed(self) -> Told:
        """What was told of a defect alone, and not among others."""
        return self.expected - self.told

    @property
    def invented(self) -> Told:
        """What was told of no defect alone."""
        return self.told - self.expected


def choices(document: F, defects: Sequence[Defect[F]]) -> list[Choice[F]]:
    """Every defect at every place where all elements stay where they are."""
    order = {id(element): k for k, element in enumerate(document.root.iter())}
    found = []
    for defect in defects:
        if defect.after is not str:
            continue
        for element in defect.where(document):
            choice = Choice(defect, order[id(element)])
            if _stays(document, choice):
                found.append(choice)
    return found


def _stays(document: F, choice: Choice[F]) -> bool:
    copy = document.copy()
    before = list(map(id, copy.root.iter()))
    choice.spoil(copy)
    return before == list(map(id, copy.root.iter()))


def combine(
    document: F, among: list[Choice[F]], check: Check, rng: random.Random, most: int
) -> Combined:
    """A file with up to ``most`` defects, each at elements of its own and told in other lines."""
    wanted: dict[int, Choice[F]] = {}
    expected: Told = Counter()
    for choice in rng.sample(among, len(among)):
        if choice.place in wanted:
            continue
        alone = document.copy()
        choice.spoil(alone)
        told = check(alone.text())
        if {line for line, _ in told} & {line for line, _ in expected}:
            continue
        wanted[choice.place] = choice
        expected += told
        if len(wanted) == most:
            break
    bad = document.copy()
    for choice in wanted.values():
        choice.spoil(bad)
    text = bad.text()
    names = tuple(choice.defect.name for choice in wanted.values())
    return Combined(text, names, expected, check(text))


def files(
    document: F, defects: Sequence[Defect[F]], check: Check, count: int, seed: int = 1
) -> Iterator[Combined]:
    """Files of two to ten defects."""
    rng = random.Random(seed)
    among = choices(document, defects)
    for _ in range(count):
        yield combine(document, among, check, rng, rng.randint(2, 10))
