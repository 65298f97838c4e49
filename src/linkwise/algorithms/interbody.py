"""Wrenches between bodies: which joints push which links, and what they do to one another.

    A = Wᵀ Pᵀ I⁻¹ P W                                                                   [39]
    A_ii = W_iᵀ (I_i⁻¹ + P̂ᵀ I_parent⁻¹ P̂) W_i,   A_ij = -W_iᵀ I_i⁻¹ P̂ W_j           [52, 53]

[Fijany, Djouani, Fried and Pontnau; numbers in brackets are its equations]. A joint pushes its link
with ``W x`` and its parent with the opposite, so A couples joints that share a link, and is a sum
over links. The base has no term. A chain's A is block tridiagonal, with blocks
of 6 - k for a joint of k columns; siblings of a tree couple as well; a free joint has no block.

A column with a rotor, ``tau = Hᵀ F + r qdd``, joins W as ``H r`` with unknown ``-qdd`` and ``r`` on
the diagonal. A joint that follows another adds a block of one, the torque of their tie.

Every link needs an inertia that has an inverse. A link on the base may lack what its joint never
moves (a turret of which only the moment about its axis is known): any such part will do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from linkwise.algorithms import blocks
from linkwise.algorithms.blocks import Block
from linkwise.algorithms.tied import ties_of
from linkwise.model.joints import Stance
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import Force, Motion, RigidInertia, Scalar, Sym3, Vec3, cross
from linkwise.spatial.vec3 import sym_outer
from linkwise.sweep import tip_to_base

Order = Callable[[blocks.Matrix], list[int]]
Pushes = tuple[tuple[int, tuple[Force, ...]], ...]  # (joint, wrenches it can put on one link)

LEAST = 1e-12  # of a link's moment of inertia, below which it counts as none
SOLID = RigidInertia(1.0, Vec3.zero(), Sym3.diagonal(1.0))


class Mobility(NamedTuple):
    """``I⁻¹``: the acceleration of a link under a wrench at its origin."""

    inv_m: Scalar
    s: Vec3  # centre of mass
    turning: Sym3  # inverse of the inertia about it

    def __matmul__(self, f: Force) -> Motion:
        dw = self.turning @ (f.ang - cross(self.s, f.lin))
        return Motion(dw, f.lin * self.inv_m + cross(self.s, dw))


class Port(NamedTuple):
    """A joint as wrenches see it: F = drive tau + hold x."""

    J: Stance
    drive: tuple[Force, ...]
    hold: tuple[Force, ...]
    rotors: tuple[Scalar, ...]  # beside A's diagonal, one per hold; zero but for rotors
    geared: dict[int, int]  # column -> its rotor's place in hold


class System(NamedTuple):
    """The joints, what each can do to each link, and the factors of A."""

    tree: Tree
    ports: list[Port]
    mobilities: list[Mobility | None]
    pushes: list[Pushes]
    A: blocks.Matrix
    factors: blocks.Factors

    def nothing(self, size: int) -> blocks.Columns:
        """Right-hand sides of zeros."""
        return {i: blocks.zero(len(B), size) for (i, j), B in self.A.items() if i == j}


def mobility(body: RigidInertia) -> Mobility | None:
    """The inverse of an inertia, where there is one."""
    if not body.m > 0.0:
        return None
    inv_m = 1.0 / body.m
    s = body.h * inv_m
    J = RigidInertia(body.m, Vec3.zero(), body.second - sym_outer(body.h, s)).rotational()
    full = [[J.xx, J.xy, J.xz], [J.xy, J.yy, J.yz], [J.xz, J.yz, J.zz]]
    try:
        _, inv_d = blocks.ldl(full, [J.xx, J.yy, J.zz])
    except ZeroDivisionError:
        return None
    most = 1.0 / (LEAST * body.rotational().trace())
    if not all(0.0 < x < most for x in inv_d):
        return None
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = blocks.inverse(full)
    return Mobility(inv_m, s, Sym3(xx, xy, xz, yy, yz, zz))


def completed(link: Link) -> Mobility | None:
    """``I⁻¹`` of a link, what its joint never moves made up where it is missing."""
    found = mobility(link.inertia)
    if found is None and link.parent == BASE:
        found = mobility(link.inertia + link.joint.unaffected(SOLID))
    return found


def possible(tree: Tree) -> bool:
    """Whether every link has an inverse of its inertia."""
    return all(completed(link) is not None for link in tree.links)


def why_not(tree: Tree) -> str:
    """The link that has none."""
    return next(_without(link) for link in tree.links if completed(link) is None)


def _without(link: Link) -> str:
    return f"link {link.name!r} has no mass, or mass on a line, and each link's inertia is inverted"


def mobility_of(link: Link) -> Mobility:
    """``I⁻¹`` of a link."""
    found = completed(link)
    if found is None:
        raise ValueError(f"Schur complements: {_without(link)}")
    return found


def port(link: Link, q: Sequence[Scalar]) -> Port:
    """The joint at a configuration; a column with a rotor is an unknown of its own."""
    drive, hold = link.joint.directions(q)
    geared = [k for k, rotor in enumerate(link.armature) if rotor != 0.0]
    rotors = tuple(link.armature[k] for k in geared)
    more = tuple(drive[k] * link.armature[k] for k in geared)
    places = {k: len(hold) + at for at, k in enumerate(geared)}
    return Port(link.stance(q), drive, hold + more, (0.0,) * len(hold) + rotors, places)


def couple(_link: Link, children: Pushes, i: int, p: Port) -> tuple[Pushes, Pushes]:
    """Who pushes a link: its own joint, and its children's joints the other way."""
    back = tuple(p.J.X.force_back(f) * -1.0 for f in p.hold)
    return (((i, p.hold),) if p.hold else ()) + children, ((i, back),) if p.hold else ()


def meet(forces: Sequence[Force], motions: Sequence[Motion]) -> Block:
    """Power of each force along each motion."""
    return [[m.dot(f) for m in motions] for f in forces]


def assemble(ports: list[Port], pushes: list[Pushes], own: list[Mobility | None]) -> blocks.Matrix:
    """``A``: what two joints that push one link do to one another; links without I⁻¹ aside."""
    A: blocks.Matrix = {}
    for i, p in enumerate(ports):
        if p.hold:
            A[i, i] = blocks.scaled(blocks.unit(len(p.hold)), p.rotors)
    for here, inverse in zip(pushes, own, strict=True):
        for j, forces in here if inverse else ():
            motions = [inverse @ f for f in forces] if inverse else []
            for i, others in here:
                if i >= j:
                    block = meet(others, motions)
                    A[i, j] = blocks.plus(A[i, j], block) if (i, j) in A else block
    return A


def system(tree: Tree, q: Sequence[Scalar], order: Order, without: int | None = None) -> System:
    """A and its factors; ``without`` the inertia of one link, if asked for."""
    loose = tree.uncoupled()
    ports = [port(link, own) for link, own in zip(loose.links, tree.per_link_q(q), strict=True)]
    pushes, _ = tip_to_base(loose, couple, (), range(len(ports)), ports)
    for t, row in enumerate(ties_of(tree, loose)):
        for k, force in pushed(loose, ports, row).items():
            pushes[k] = (*pushes[k], (-1 - t, (force,)))  # numbered to come last
    own = [None if i == without else mobility_of(k) for i, k in enumerate(tree.links)]
    A = assemble(ports, pushes, own)
    return System(loose, ports, own, pushes, A, blocks.factor(A, order(A)))


def net(_link: Link, children: Force, p: Port, F: Force, load: Force) -> tuple[Force, Force]:
    """``P F - b``: what is left to accelerate a link; and what its joint takes from the parent."""
    return F - children - load, p.J.X.force_back(F)


def spread(directions: Sequence[Force], amounts: Sequence[Scalar]) -> Force:
    """Directions times amounts, added up."""
    total = Force.zero()
    for f, x in zip(directions, amounts, strict=True):
        total = total + f * x
    return total


def pushed(tree: Tree, ports: list[Port], row: dict[int, float]) -> dict[int, Force]:
    """What torques (by degree of freedom) put on links: those of their joints, and parents."""
    acts = [any(i in row for i, _ in link.dofs) for link in tree.links]
    touched = {i for i, link in enumerate(tree.links) if acts[i]}
    touched |= {link.parent for link, act in zip(tree.links, acts, strict=True) if act} - {BASE}
    F = [
        spread(p.drive, [row.get(i, 0.0) for i, _ in link.dofs])
        for p, link in zip(ports, tree.links, strict=True)
    ]
    left, _ = tip_to_base(tree, net, Force.zero(), ports, F, [Force.zero()] * len(F))
    return {k: left[k] for k in sorted(touched)}


def response(s: System, loads: dict[int, list[Force]]) -> Block:
    """``D - Eᵀ A⁻¹ E``: power of each load along the motion that each causes.

    ``loads[k]`` are the wrenches on link k of all loads, one each.
    """
    size = len(next(iter(loads.values())))
    D = blocks.zero(size, size)
    E = s.nothing(size)
    for k, forces in loads.items():
        inverse = s.mobilities[k]
        motions = [inverse @ f for f in forces] if inverse else []
        D = blocks.plus(D, meet(forces, motions))
        for j, own in s.pushes[k]:
            E[j] = blocks.plus(E[j], meet(own, motions))
    return blocks.less(blocks.mirrored(D), blocks.form(s.factors, E, size))
