"""Several defects in one file: does `linkwise.check` find each, and nothing else?

Each defect is put into the file alone first; what is told then, place and code, is what should be
told among others. Defects are combined at elements of their own: by lines, of those that leave
every element on its line, or by the names of elements, of those that a format says go together.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from faults.document import File
from faults.spoil import Defect

F = TypeVar("F", bound=File)
MOST_TRIED = 300  # choices that are looked at for one file
Told = Counter[tuple[int | str | None, str]]  # places, lines or elements, and codes
Check = Callable[[str], Told]
Together = Callable[[str, Collection[str]], bool]  # whether a defect goes with others, by name


@dataclass(frozen=True)
class Choice(Generic[F]):
    """A defect, and the element that gets it, by its number in the file."""

    defect: Defect[F]
    place: int
    owner: int  # the number of the element at the top of the file that contains it

    def spoil(self, document: F) -> None:
        """Put the defect into the document."""
        spoil(document, [self])


def spoil(document: F, wanted: Sequence[Choice[F]]) -> None:
    """Put several defects into a document."""
    elements = list(document.root.iter())
    for choice in wanted:
        choice.defect.spoil(document, elements[choice.place])


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


def choices(document: F, defects: Sequence[Defect[F]], by_lines: bool = True) -> list[Choice[F]]:
    """Every defect at every place; by lines, where all elements stay where they are."""
    order = {id(element): k for k, element in enumerate(document.root.iter())}
    owners = {order[id(e)]: order[id(top)] for top in document.root for e in top.iter()}
    found = []
    for defect in defects:
        if defect.after is not str:
            continue
        for element in defect.where(document):
            place = order[id(element)]
            choice = Choice(defect, place, place if by_lines else owners.get(place, 0))
            if not by_lines or _stays(document, choice):
                found.append(choice)
    return found


def _stays(document: F, choice: Choice[F]) -> bool:
    copy = document.copy()
    before = list(map(id, copy.root.iter()))
    choice.spoil(copy)
    return before == list(map(id, copy.root.iter()))


def anything(_name: str, _others: Collection[str]) -> bool:
    """Every defect goes with every other."""
    return True


def combine(
    document: F,
    among: list[Choice[F]],
    check: Check,
    rng: random.Random,
    most: int,
    together: Together = anything,
) -> Combined:
    """A file with up to ``most`` defects, each at elements of its own and told at other places."""
    wanted: dict[int, Choice[F]] = {}
    expected: Told = Counter()
    for choice in rng.sample(among, min(len(among), MOST_TRIED)):
        names = [other.defect.name for other in wanted.values()]
        if choice.owner in wanted or not together(choice.defect.name, names):
            continue
        alone = document.copy()
        choice.spoil(alone)
        told = check(alone.text())
        places = {place for place, _ in told}
        if len(places) > 1 or places & {place for place, _ in expected}:
            continue  # what follows from a defect elsewhere may be hidden by another
        wanted[choice.owner] = choice
        expected += told
        if len(wanted) == most:
            break
    bad = document.copy()
    spoil(bad, list(wanted.values()))
    text = bad.text()
    defects = tuple(choice.defect.name for choice in wanted.values())
    return Combined(text, defects, expected, check(text))


def files(
    document: F,
    defects: Sequence[Defect[F]],
    check: Check,
    count: int,
    seed: int = 1,
    together: Together | None = None,
) -> Iterator[Combined]:
    """Files of two to ten defects; by names of elements where ``together`` is given."""
    rng = random.Random(seed)
    among = choices(document, defects, by_lines=together is None)
    for _ in range(count):
        yield combine(document, among, check, rng, rng.randint(2, 10), together or anything)
