"""Mass properties of a body in floats: merged from links, checked, repaired on request."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import Where
from linkwise.model.description import (
    SMALLEST,
    BodyInertia,
    JointDescription,
    LinkDescription,
)
from linkwise.spatial import RigidInertia, Sym3, Vec3

Array = NDArray[np.float64]
log = logging.getLogger("linkwise")

# Files round inertias to a few digits: a body may miss the triangle inequality by this much of
# its largest principal moment and still be taken as written.
ROUNDING_OF_FILES = 1e-6
_ROUNDING = 8 * float(np.finfo(float).eps)  # of moments about a frame, in those about the centre


@dataclass(frozen=True)
class Policy:
    """How to build: what to do about a body that cannot exist, and whether joints resist."""

    strict: bool = True  # refuse it; otherwise warn and take it as written
    repair: str | None = None  # "nearest": replace it by the nearest body that can exist
    friction: bool = False  # let the dynamics use damping and Coulomb friction
    # take what is not strict without a warning: said elsewhere
    quiet: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Moments:
    """Mass, first and second moment about a frame's origin."""

    mass: float
    first: Array
    second: Array

    def __add__(self, o: Moments) -> Moments:
        return Moments(self.mass + o.mass, self.first + o.first, self.second + o.second)

    def placed(self, R: Array, p: Array) -> Moments:
        """The same body in a frame where its own frame sits at rotation R, origin p."""
        h = R @ self.first
        moved = np.outer(h, p) + np.outer(p, h) + self.mass * np.outer(p, p)
        return Moments(self.mass, h + self.mass * p, R @ self.second @ R.T + moved)

    def seen_in(self, R: Array, p: Array) -> Moments:
        """The same body in a frame that sits at rotation R, origin p of this one."""
        return self.placed(R.T, -R.T @ p)

    @property
    def is_finite(self) -> bool:
        """Whether every number is; products of a file's numbers can overflow."""
        parts = [self.mass, *self.first, *self.second.ravel(), *self.central().ravel()]
        return bool(np.isfinite(parts).all())

    @property
    def is_nothing(self) -> bool:
        """Whether there is neither mass nor inertia."""
        return self.mass == 0.0 and not self.first.any() and not self.second.any()

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
    xx, xy, xz, yy, yz, zz = body.tensor
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    com = np.array(body.com)
    central = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return Moments(body.mass, body.mass * com, central + body.mass * np.outer(com, com))


def rigid_inertia(body: Moments) -> RigidInertia:
    """As the sweeps use it; entries that are rounding noise become exact zeros."""
    s = body.second
    noise2 = _ROUNDING * float(np.abs(s).max())
    noise1 = _ROUNDING * float(np.abs(body.first).max())

    def tidy(x: Any, noise: float) -> float:
        return 0.0 if abs(x) <= noise else float(x)

    upper = (s[0, 0], s[0, 1], s[0, 2], s[1, 1], s[1, 2], s[2, 2])
    return RigidInertia(
        body.mass,
        Vec3(*(tidy(x, noise1) for x in body.first)),
        Sym3(*(tidy(x, noise2) for x in upper)),
    )


def check_body(
    body: Moments, joint: JointDescription, link: LinkDescription, policy: Policy
) -> Moments:
    """The body if it can exist (or as the policy says), else a located error."""
    where = place_of(joint, link)
    if not body.is_finite:
        raise where.error(
            f"the body moved by joint '{joint.name}' has a mass or inertia that is not finite; "
            "expected finite numbers"
        )
    if body.mass == 0.0 and joint.armature >= SMALLEST:
        return body  # the rotor is what joint and neighbours feel
    if body.is_nothing:
        return body  # judged by what it carries, once the tree is built (model/massless.py)
    problem = _problem(body, joint)
    if problem is None:
        return body
    if policy.repair == "nearest" and body.mass >= SMALLEST:
        return _nearest(body, where, problem)
    if policy.strict or body.mass < SMALLEST:
        raise where.error(problem)
    if not policy.quiet:
        where.warn(f"{problem}; taken as written (strict=False)")
    return body


def place_of(joint: JointDescription, link: LinkDescription) -> Where:
    """Where to say that something is wrong with a body: its link, or else its joint."""
    return link.where if link.where.line is not None else joint.where


def no_mass(body: Moments, joint: JointDescription) -> str:
    """What is wrong with a moving body without mass."""
    return (
        f"the body moved by joint '{joint.name}' has mass {body.mass:g} kg; expected a "
        "positive mass (or armature on the joint, or links beyond it whose mass the joint moves)"
    )


def _problem(body: Moments, joint: JointDescription) -> str | None:
    if body.mass <= 0.0:
        return no_mass(body, joint)
    if body.mass < SMALLEST:
        return (
            f"the body moved by joint '{joint.name}' has mass {body.mass:g} kg; expected zero, or "
            f"at least {SMALLEST:g} kg: its products would vanish"
        )
    central = body.central()
    least, _, most = np.linalg.eigvalsh(central)
    principal = np.sort(np.trace(central) - np.linalg.eigvalsh(central))
    shown = ", ".join(f"{x:.4g}" for x in principal)
    if 0.0 < principal[2] < SMALLEST:
        return (
            f"the body moved by joint '{joint.name}' has principal inertias ({shown}) kg m²; "
            f"expected each at least {SMALLEST:g}: their products would vanish"
        )
    if principal[0] <= _ROUNDING * float(np.abs(body.second).max()):
        return (
            f"the body moved by joint '{joint.name}' has principal inertias ({shown}) kg m²; "
            "expected all positive"
        )
    if least < -ROUNDING_OF_FILES * most:
        return (
            f"the body moved by joint '{joint.name}' has principal inertias ({shown}) kg m²; "
            "expected each at most the sum of the other two (triangle inequality)"
        )
    return None


def _nearest(body: Moments, where: Where, problem: str) -> Moments:
    """Clip negative central second moments: the nearest body in the Frobenius norm."""
    central = body.central()
    values, axes = np.linalg.eigh(central)
    clipped = np.maximum(values, 1e-9 * max(float(values.max()), 1e-12))
    repaired = axes @ np.diag(clipped) @ axes.T
    change = np.linalg.norm(repaired - central) / np.linalg.norm(central)
    log.warning("%s: %s; repaired, second moments changed by %.2g", where, problem, change)
    return Moments(body.mass, body.first, body.second + repaired - central)
