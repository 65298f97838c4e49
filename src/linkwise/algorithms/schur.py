"""Forward dynamics from the forces between bodies: Schur complements.

    F = H tau + W f,   A f = -Wᵀ g(H tau),   qdd = Hᵀ g(F)

``F`` is the wrench across each joint, split into what its motors give (H) and what it withstands
(W); ``g(F)`` is how links accelerate across their joints under wrenches F, bias and gravity
included; ``A = Wᵀ Pᵀ I⁻¹ P W`` couples joints that share a link [Fijany, Djouani, Fried and
Pontnau, eq. 52, 53]. A chain's A is block tridiagonal, with blocks of 6 - k for a joint of k
columns; siblings of a tree couple as well; a free joint has no block.

    "schur"             A by block LDLᵀ from the tips inward                        [O(n)]
    "schur-bcr"         A by block cyclic reduction               [O(log n) rounds of blocks]
    "schur-published"   as the paper: the bias is subtracted from tau first, then as "schur"

The published form loses digits on long chains, where the bias is much larger than what it leaves.
With rotors ``tau = Hᵀ F + r qdd``: their columns ``H r`` join W, with unknown ``-qdd`` and ``r`` on
the diagonal of A.

    M⁻¹ = C - Bᵀ A⁻¹ B,   B = Wᵀ Pᵀ I⁻¹ P H,   C = Hᵀ Pᵀ I⁻¹ P H

Every link needs an inertia that has an inverse. A link on the base may lack what its joint never
moves (a turret of which only the moment about its axis is known): any such part will do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from linkwise.algorithms import blocks
from linkwise.algorithms.aba import Velocity, turn
from linkwise.algorithms.blocks import Block
from linkwise.algorithms.external import External, external_forces
from linkwise.algorithms.rates import NO_JOINT
from linkwise.algorithms.rnea import bias
from linkwise.algorithms.tied import tied
from linkwise.model.joints import Stance
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import Force, Mat3, Motion, RigidInertia, Scalar, Sym3, Vec3, cross
from linkwise.spatial.vec3 import sym_outer
from linkwise.sweep import base_to_tip, tip_to_base

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


class Apart(NamedTuple):
    """Acceleration of a link, and how it differs across its joint."""

    a: Motion
    gap: Motion


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


def mobility_of(link: Link, why: str) -> Mobility:
    """``I⁻¹`` of a link, what its joint never moves made up where it is missing."""
    found = mobility(link.inertia)
    if found is None and link.parent == BASE:
        found = mobility(link.inertia + link.joint.unaffected(SOLID))
    if found is None:
        raise ValueError(
            f"{why}: link {link.name!r} has no mass, or mass on a line; these methods invert each "
            "link's inertia. Methods 'crba', 'aba' and 'recursive' do not"
        )
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


def system(
    tree: Tree, q: Sequence[Scalar], order: Order, why: str, without: int | None = None
) -> System:
    """A and its factors; ``without`` the inertia of one link, if asked for."""
    ports = [port(link, own) for link, own in zip(tree.links, tree.per_link_q(q), strict=True)]
    pushes, _ = tip_to_base(tree, couple, (), range(len(ports)), ports)
    own = [None if i == without else mobility_of(k, why) for i, k in enumerate(tree.links)]
    A = assemble(ports, pushes, own)
    return System(tree, ports, own, pushes, A, blocks.factor(A, order(A)))


def net(_link: Link, children: Force, p: Port, F: Force, load: Force) -> tuple[Force, Force]:
    """The wrench that is left to accelerate a link, and what its joint takes from the parent."""
    return F - children - load, p.J.X.force_back(F)


def part(_link: Link, parent: Apart, p: Port, a: Motion, c: Motion) -> Apart:
    """Acceleration across a joint, velocity products taken off."""
    return Apart(a, a - p.J.X.motion(parent.a) - c)


def gaps(s: System, velocities: list[Velocity], loads: list[Force], F: list[Force]) -> list[Motion]:
    """``g(F)``: accelerations across the joints under wrenches F."""
    left, _ = tip_to_base(s.tree, net, Force.zero(), s.ports, F, loads)
    a = [own @ f for own, f in zip(s.mobilities, left, strict=True) if own]
    base = Apart(Motion(Vec3.zero(), s.tree.base_acceleration), Motion.zero())
    states = base_to_tip(s.tree, part, base, s.ports, a, [v.c for v in velocities])
    return [state.gap for state in states]


def spread(directions: Sequence[Force], amounts: Sequence[Scalar]) -> Force:
    """Directions times amounts, added up."""
    total = Force.zero()
    for f, x in zip(directions, amounts, strict=True):
        total = total + f * x
    return total


def accelerations(
    s: System,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    external: External = (),
) -> tuple[list[Scalar], list[Force]]:
    """``qdd``, and the wrench across each joint."""
    tree, ports = s.tree, s.ports
    q_, qd_, tau_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(tau)
    still = Velocity(NO_JOINT, Vec3.zero(), Mat3.zero(), Motion.zero(), Force.zero())
    velocities = base_to_tip(tree, turn, still, q_, qd_)
    ext = external_forces(tree, q_, external)
    loads = [v.p - e for v, e in zip(velocities, ext, strict=True)]
    lost = [link.resistance(rates) for link, rates in zip(tree.links, qd_, strict=True)]
    driven = [
        spread(p.drive, [t - x for t, x in zip(*own, strict=True)])
        for p, *own in zip(ports, tau_, lost, strict=True)
    ]
    first = gaps(s, velocities, loads, driven)
    b = {i: [[-g.dot(f)] for f in ports[i].hold] for i, g in enumerate(first) if ports[i].hold}
    solved = blocks.solve(s.factors, b)
    x = [[row[0] for row in solved.get(i, [])] for i in range(len(ports))]
    F = [f + spread(p.hold, own) for f, p, own in zip(driven, ports, x, strict=True)]
    rates = zip(ports, gaps(s, velocities, loads, F), x, strict=True)
    return [qdd for p, g, own in rates for qdd in joint_rates(p, g, own)], F


def joint_rates(p: Port, gap: Motion, x: Sequence[Scalar]) -> list[Scalar]:
    """``Hᵀ g``, or the rotor's own unknown."""
    return [-x[p.geared[k]] if k in p.geared else gap.dot(f) for k, f in enumerate(p.drive)]


def response(s: System, loads: dict[int, list[Force]]) -> Block:
    """``D - Eᵀ A⁻¹ E``: power of each load along the motion that each causes.

    ``loads[k]`` are the wrenches on link k of all loads, one each.
    """
    size = len(next(iter(loads.values())))
    D = blocks.zero(size, size)
    E = {i: blocks.zero(len(p.hold), size) for i, p in enumerate(s.ports) if p.hold}
    for k, forces in loads.items():
        inverse = s.mobilities[k]
        motions = [inverse @ f for f in forces] if inverse else []
        D = blocks.plus(D, meet(forces, motions))
        for j, own in s.pushes[k]:
            E[j] = blocks.plus(E[j], meet(own, motions))
    return blocks.less(blocks.mirrored(D), blocks.form(s.factors, E, size))


def _forward(
    tree: Tree,
    order: Order,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    external: External,
) -> list[Scalar]:
    def alone(tree: Tree, q: Sequence[Scalar], *rest: Sequence[Scalar]) -> list[Scalar]:
        s = system(tree, q, order, "forward_dynamics by Schur complements")
        return accelerations(s, q, *rest)[0]

    if tree.coupled:
        return tied(tree, alone, q, qd, tau, external)
    return alone(tree, q, qd, tau, external)


def forward_dynamics(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external: External = (),
) -> list[Scalar]:
    """Joint accelerations, A by block LDLᵀ."""
    return _forward(tree, blocks.one_by_one, q, qd, tau, external)


def forward_dynamics_bcr(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external: External = (),
) -> list[Scalar]:
    """Joint accelerations, A by block cyclic reduction."""
    return _forward(tree, blocks.every_other, q, qd, tau, external)


def forward_dynamics_published(
    tree: Tree,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external: External = (),
) -> list[Scalar]:
    """The paper's form, for study: ``M⁻¹ (tau - bias)``."""
    load = bias(tree, q, qd, external=external)
    left = [t - b for t, b in zip(tau, load, strict=True)]
    return forward_dynamics(tree.without_gravity(), q, [0.0] * tree.nv, left)
