"""The inverse of a link's inertia: how it accelerates on its own under a wrench.

    I⁻¹ f = (dw, f_lin / m + s x dw),      dw = J⁻¹ (f_ang - s x f_lin)

with s the centre of mass and J the rotational inertia about it. A link without mass, or with all
its mass on a line, has no such inverse. A link on the base may lack inertia that its joint never
moves (a turret of which only the moment about its axis is known): any will do, so it is made up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from linkwise.algorithms import ldl
from linkwise.algorithms.blocks import Block
from linkwise.model.tree import BASE, Link, LinkArrays, Tree
from linkwise.spatial import Force, Motion, RigidInertia, Scalar, Sym3, Vec3, cross
from linkwise.spatial.scalar import known, reciprocal
from linkwise.spatial.vec3 import sym_outer
from linkwise.sweep import each_link

LEAST = 1e-12  # share of a link's inertia below which a moment of it counts as none
SOLID = RigidInertia(1.0, Vec3.zero(), Sym3.diagonal(1.0))


class Mobility(NamedTuple):
    """``I⁻¹``: the acceleration of a link under a wrench at its origin."""

    inv_m: Scalar
    s: Vec3  # centre of mass
    turning: Sym3  # inverse of the inertia about it

    def __matmul__(self, f: Force) -> Motion:
        dw = self.turning @ (f.ang - cross(self.s, f.lin))
        return Motion(dw, f.lin * self.inv_m + cross(self.s, dw))


def _about_centre(body: RigidInertia) -> Block:
    """Rotational inertia about the centre of mass."""
    second = body.second - sym_outer(body.h, body.h * reciprocal(body.m))
    J = RigidInertia(body.m, Vec3.zero(), second).rotational()
    return [list(row) for row in J.full().rows]


def invertible(body: RigidInertia) -> Any:
    """Whether an inertia of constants has an inverse; of arrays of constants, whether each has."""
    J = _about_centre(body)
    _, inv_d = ldl.factor(J, [row[k] for k, row in enumerate(J)])
    least, sound = LEAST * body.rotational().trace(), body.m > 0.0
    for x in inv_d:  # not a number where a pivot is not positive
        sound = sound & (x > 0.0) & (x * least < 1.0)
    return sound


def mobility(body: RigidInertia) -> Mobility:
    """The inverse of an inertia that has one."""
    inv_m = reciprocal(body.m)
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = ldl.inverse(_about_centre(body))
    return Mobility(inv_m, body.h * inv_m, Sym3(xx, xy, xz, yy, yz, zz))


def completed(link: Link) -> Mobility | None:
    """``I⁻¹`` of a link; on the base, inertia that the joint never moves may be made up for it."""
    if not all(map(known, (link.inertia.m, *link.inertia.h, *link.inertia.second))):
        return mobility(_with_unmoved(link))
    if invertible(link.inertia):
        return mobility(link.inertia)
    more = _with_unmoved(link)
    return mobility(more) if invertible(more) else None


def _with_unmoved(link: Link) -> RigidInertia:
    """The inertia of a link and, on the base, that of a body which its joint never moves.

    An inertia that is an input of a kernel always gets that body, needed or not.
    """
    unmoved = link.joint.unaffected(SOLID) if link.parent == BASE else RigidInertia.zero()
    return link.inertia + unmoved


def why_not(tree: Tree) -> str:
    """For algorithms that invert the inertia of every link: a link whose inertia has no inverse."""
    if isinstance(tree.links, LinkArrays):
        bodies = tree.links.bodies()
        return "" if all(invertible(x).all() for x in bodies) else _without(tree.links[0])
    reasons: list[str] = each_link(tree, lambda link: "" if completed(link) else _without(link))
    return next(filter(None, reasons), "")


def _without(link: Link) -> str:
    return f"link {link.name!r} has no mass, or mass on a line, and each link's inertia is inverted"


def mobility_of(link: Link) -> Mobility:
    """``I⁻¹`` of a link."""
    found = completed(link)
    if found is None:
        raise ValueError(f"Schur complements: {_without(link)}")
    return found
