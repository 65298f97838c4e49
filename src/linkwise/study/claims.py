"""What the papers claim to cost: formulas as printed, as corrected, and what of ours they meet.

A claim is about a general arm of n revolute joints. ``ours`` is an entry of ``study/counts.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import zip_longest

LENGTHS = (6, 7, 13, 14, 30)  # joints, in the tables of the papers
_POWERS = ("", "n", "n²", "n³")


@dataclass(frozen=True)
class Polynomial:
    """Operations of an arm of n joints; coefficients of the highest power first."""

    coefficients: tuple[Fraction, ...]

    def __call__(self, n: int) -> Fraction:
        """Its value."""
        return reduce(lambda total, c: total * n + c, self.coefficients, Fraction(0))

    def __add__(self, o: Polynomial) -> Polynomial:
        pairs = zip_longest(self.coefficients[::-1], o.coefficients[::-1], fillvalue=Fraction(0))
        return Polynomial(tuple(a + b for a, b in pairs)[::-1])

    def __str__(self) -> str:
        terms = zip(self.coefficients, reversed(_POWERS[: len(self.coefficients)]), strict=True)
        text = "".join(_term(c, power) for c, power in terms if c)
        return text.removeprefix(" + ") or "0"


def _term(c: Fraction, power: str) -> str:
    size = "" if abs(c) == 1 and power else f"{abs(c)}"
    return f" {'-' if c < 0 else '+'} {size}{' ' if '/' in size and power else ''}{power}"


@dataclass(frozen=True)
class Formula:
    """Multiplications and additions."""

    m: Polynomial
    a: Polynomial

    def at(self, n: int) -> tuple[float, float]:
        """Both numbers for an arm of n joints; not always whole."""
        return float(self.m(n)), float(self.a(n))

    def __add__(self, o: Formula) -> Formula:
        return Formula(self.m + o.m, self.a + o.a)

    def __str__(self) -> str:
        return f"({self.m}) m + ({self.a}) a"


@dataclass(frozen=True)
class Claim:
    """A row of a paper."""

    name: str
    source: str
    printed: Formula
    ours: str
    includes: str
    corrected: Formula | None = None
    why_corrected: str = ""
    exception: str = ""  # why ours is higher, where it is

    @property
    def best(self) -> Formula:
        """The claim, corrected where it needs to be."""
        return self.corrected or self.printed


def formula(m: Sequence[str | int], a: Sequence[str | int]) -> Formula:
    """From coefficients, highest power first."""
    return Formula(*(Polynomial(tuple(Fraction(c) for c in side)) for side in (m, a)))


FIJANY = "Fijany and Scheid"
SAFEEA = "Safeea, Neto and Béarée, Table I"
KANG = "Kang, section 4.2"

_ccg = formula((47, 177, -117), (46, 118, -87))
_diagonal = formula((51, -51), (50, -50))

CLAIMS = (
    Claim("CCG, one iteration", f"{FIJANY}, section III.3", formula((47, -10), (46, -23)),
          "ccg iteration", "M p and the vectors of conjugate gradients"),
    Claim("CCG, n iterations", f"{FIJANY}, Table II", _ccg, "ccg",
          "kinematics, bias, n iterations; ours also weighs a start and the final residual"),
    Claim("CG of Walker and Orin, n iterations", f"{FIJANY}, Table II",
          formula((76, 120, -21), (56, 87, -6)), "ccg", "the same; quoted there for comparison"),
    Claim("diagonal of M", f"{FIJANY}, section IV", _diagonal, "diagonal",
          "composite bodies from links already in one frame; ours has no links turned before"),
    Claim("PCG-DS, n iterations", f"{FIJANY}, sections III and IV", _ccg + _diagonal, "pcg",
          "CCG and the diagonal, its n² divisions aside (ours: n for the scaling, 2 an iteration)"),
    Claim("GDAHJ", SAFEEA, formula((3, 88, -3), ("5/2", "191/2", -18)), "gdahj",
          "entries from axes, origins and inertias; no kinematics, in ours neither",
          formula((3, 88, -3), ("5/2", "189/2", -18)),
          "95.5 n is 94.5 n in the author's spreadsheet and code"),
    Claim("GDAHJ, with our kinematics", SAFEEA, formula((3, 88, -3), ("5/2", "191/2", -18)),
          "mixed", "the claim is the same, without kinematics; ours is the cheapest of ours, with",
          formula((3, 88, -3), ("5/2", "189/2", -18)), "as above"),
    Claim("CRBA", f"{SAFEEA}, from Featherstone", formula((10, 22, -32), (6, 37, -43)), "crba",
          "everything but sines and cosines"),
    Claim("RNEA", f"{SAFEEA}, from Featherstone", formula((93, -108), (81, -100)), "rnea",
          "everything but sines and cosines"),
    Claim("mass matrix and Coriolis coefficients", f"{SAFEEA}, from Vukobratović, Li and Kirćanski",
          formula(("3/2", "35/2", 9, -16), ("7/6", "23/2", "64/3", -28)), "M and symbols",
          "M and all of Christoffel's symbols, one program"),
    Claim("I*", KANG, formula(("13/2", "289/2", -171), ("9/2", "243/2", -136)), "mixed",
          "kinematics, augmented bodies, the matrix"),
    Claim("I* and P*", KANG, formula((3, 11, 129, -171), ("23/6", "13/2", "691/6", -138)),
          "I* and P*", "kinematics, augmented bodies, the matrix, the array",
          formula((3, 11, 129, -171), ("23/6", "13/2", "697/6", -138)),
          "its steps add up to 697/6 n; the text says 1715 additions for n = 6"),
    Claim("ABA", "Featherstone 1987, as usually cited", formula((300, -267), (279, -259)), "aba",
          "everything but sines and cosines; in none of the five papers"),
)  # fmt: skip
