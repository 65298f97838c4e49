"""Mass properties of a body in floats: merged from links, checked, repaired on request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codes import ERROR, Code
from linkwise.errors import Problem, Where, strictness
from linkwise.model.description import SMALLEST, BodyInertia, tensor_of
from linkwise.spatial import RigidInertia, Sym3, Vec3
from linkwise.spatial.matrices import (
    added,
    congruence,
    eigenvalues,
    of_principal,
    principal,
    product,
    trace,
)

Array = NDArray[np.float64]
log = logging.getLogger("linkwise")

# Files round inertias to a few digits: a body may miss the triangle inequality by this much of
# its largest principal moment without a word, and by `NEARLY` with a warning.
ROUNDING_OF_FILES = 1e-6
NEARLY = 0.05
EDGE = 1e-6  # share of the largest second moment that a repaired body keeps in every direction
# what is said of a link's inertia if links that are fixed to it hide it
HIDDEN = {
    Code.NEGATIVE_INERTIA: Code.HIDDEN_NEGATIVE_INERTIA,
    Code.TRIANGLE: Code.HIDDEN_TRIANGLE,
}
REPAIRABLE = (Code.NEGATIVE_INERTIA, Code.TRIANGLE, Code.TRIANGLE_NEARLY)
# Rounding of moments, in units of the largest number they were computed from. A change of frame is
# two products with a rotation, 3 terms each, and sums of four: an entry is off by less than 3 times
# (2·1.5 + 2·2) eps, where a rotation's entries are off by 2 eps themselves. Joint and link frame
# are two changes; products of a row and a column do not add up to their bounds, so half of it.
_ROUNDING = 24 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class Policy:
    """How to build: what to do about a body that cannot exist, and whether joints resist."""

    strict: bool = True  # refuse it; otherwise warn and take it as written
    repair: str | None = None  # "nearest": replace it by the nearest body that can exist
    friction: bool = False  # let the dynamics use damping and Coulomb friction
    # the user chose so, or was warned that damping and friction are left out
    friction_known: bool = field(default=False, compare=False)
    # no warnings: what is odd about the numbers of a bundled robot is said in models/
    quiet: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Moments:
    """Mass, first and second moment about a frame's origin."""

    mass: float
    first: Array
    second: Array
    # the largest numbers that first and second moments were computed from: what rounding goes by
    from_first: float = 0.0
    from_second: float = 0.0

    def __add__(self, o: Moments) -> Moments:
        return Moments(
            self.mass + o.mass,
            self.first + o.first,
            self.second + o.second,
            max(self.size_first, o.size_first),
            max(self.size_second, o.size_second),
        )

    @property
    def size_first(self) -> float:
        """The largest number met on the way to the first moment."""
        return max(self.from_first, float(np.abs(self.first).max()))

    @property
    def size_second(self) -> float:
        """The largest number met on the way to the second moment."""
        return max(self.from_second, float(np.abs(self.second).max()))

    def placed(self, R: Array, p: Array) -> Moments:
        """The same body in a frame where its own frame sits at rotation R, origin p."""
        h, shift = product(R, self.first), self.mass * p
        mixed, squares = np.outer(h, p), np.outer(shift, p)
        moved = mixed + mixed.T + squares
        return Moments(
            self.mass,
            h + shift,
            congruence(R, self.second) + moved,
            max(self.size_first, float(np.abs(shift).max())),
            max(self.size_second, float(np.abs(mixed).max()), float(np.abs(squares).max())),
        )

    def seen_in(self, R: Array, p: Array) -> Moments:
        """The same body in a frame that sits at rotation R, origin p of this one."""
        return self.placed(R.T, -product(R.T, p))

    @property
    def is_finite(self) -> bool:
        """Whether every number is; products of a file's numbers can overflow."""
        parts = [self.mass, *self.first, *self.second.ravel(), *self.central().ravel()]
        return bool(np.isfinite(parts).all())

    @property
    def is_nothing(self) -> bool:
        """Whether there is neither mass nor inertia."""
        return self.mass == 0.0 and not self.first.any() and not self.second.any()

    @property
    def is_thin(self) -> bool:
        """Whether some motion of the body needs no effort: no mass, or no inertia about an axis."""
        if self.mass == 0.0:
            return True
        central = self.central()
        least = float(trace(central) - eigenvalues(central)[-1])
        return least <= _ROUNDING * float(np.abs(self.second).max())

    @property
    def is_point(self) -> bool:
        """Whether there is mass, and no inertia about its centre."""
        return self.mass > 0.0 and bool(
            np.abs(self.central()).max() <= _ROUNDING * np.abs(self.second).max()
        )

    def central(self) -> Array:
        """Second moment about the centre of mass."""
        if self.mass == 0.0:
            return self.second
        return self.second - np.outer(self.first, self.first) / self.mass


NOTHING = Moments(0.0, np.zeros(3), np.zeros((3, 3)))


def moments(body: BodyInertia | None) -> Moments:
    """Moments about the link's origin of what a file calls an inertia."""
    if body is None:
        return NOTHING
    inertia, com = body.matrix, np.array(body.com)
    central = 0.5 * trace(inertia) * np.eye(3) - inertia
    first = body.mass * com
    squares = np.outer(first, com)
    size = float(np.abs(squares).max())
    return Moments(body.mass, first, central + squares, from_second=size)


def rigid_inertia(body: Moments) -> RigidInertia:
    """As the sweeps use it.

    An entry is zero where it is below `_ROUNDING` of the largest number it was computed from.
    """
    noise1, noise2 = _ROUNDING * body.size_first, _ROUNDING * body.size_second

    def tidy(x: Any, noise: float) -> float:
        return 0.0 if abs(x) <= noise else float(x)

    return RigidInertia(
        body.mass,
        Vec3(*(tidy(x, noise1) for x in body.first)),
        Sym3(*(tidy(x, noise2) for x in tensor_of(body.second))),
    )


def check_body(body: Moments, joint: str, where: Where, policy: Policy) -> Moments:
    """The body if it can exist, or as the policy says; what is wrong with it is reported."""
    found = body_problem(body, joint)
    if found is None:
        return body
    code, facts = found
    if code in REPAIRABLE and policy.repair == "nearest":
        return _repaired(body, code, where, facts)
    if policy.quiet and (code in REPAIRABLE or code.severity != ERROR):
        return body
    with strictness(policy.strict):
        where.report(code, **facts)
    return body


def body_problem(body: Moments, joint: str) -> tuple[Code, dict[str, Any]] | None:
    """What is wrong with a body, if anything."""
    if not body.is_finite:
        return Code.NOT_FINITE, {"joint": joint}
    if body.mass < 0.0:
        return Code.NEGATIVE_MASS, {"joint": joint, "mass": body.mass}
    if 0.0 < body.mass < SMALLEST:
        return Code.TINY_MASS, {"joint": joint, "mass": body.mass, "least": SMALLEST}
    central = body.central()
    least, middle, most = (trace(central) - eigenvalues(central))[::-1]
    shown = ", ".join(f"{x:.4g}" for x in (least, middle, most))
    facts: dict[str, Any] = {"joint": joint, "principal": shown}
    if 0.0 < most < SMALLEST:
        return Code.TINY_INERTIA, {**facts, "least": SMALLEST}
    noise = ROUNDING_OF_FILES * most + _ROUNDING * float(np.abs(body.second).max())
    if least < -noise:
        return Code.NEGATIVE_INERTIA, facts
    excess = most - least - middle
    if excess > NEARLY * most + noise:
        return Code.TRIANGLE, facts
    if excess > 2.0 * noise:
        return Code.TRIANGLE_NEARLY, {**facts, "percent": 100.0 * excess / (least + middle)}
    if body.mass == 0.0 and most > 0.0:
        return Code.INERTIA_WITHOUT_MASS, {"joint": joint}
    return None


def nearest(body: Moments) -> Moments:
    """The nearest body that can exist: negative central second moments are clipped.

    The sum of squared changes of the second moment is the least possible, but for a small share of
    the largest moment, by which the body stays away from the edge of what can exist.
    """
    central = body.central()
    values, axes = principal(central)
    clipped = np.maximum(values, EDGE * max(float(values.max()), EDGE))
    return Moments(body.mass, body.first, body.second + of_principal(clipped - values, axes))


def _repaired(body: Moments, code: Code, where: Where, facts: Mapping[str, Any]) -> Moments:
    """The nearest body that can exist; the change is logged."""
    repaired = nearest(body)
    size, change = (
        float(np.sqrt(added((x * x).ravel())))
        for x in (body.central(), repaired.second - body.second)
    )
    outcome = f"repaired, second moments changed by {change / size:.2g}"
    log.warning("%s: %s", where, Problem(code, where, facts, outcome).message)
    return repaired
