"""Forward dynamics by conjugate gradients, without a mass matrix.

    M qdd = tau - bias,   M p by two sweeps in one fixed frame

[Fijany and Scheid]. Axes are turned to those of the root once, and so is the momentum F_i of each
subtree per unit rate of its joint; an iteration then only shifts and adds:

    base -> tip   a   motion under the joint rates p
    tip -> base   f   sum of F_i p_i over the subtree;   (M p)_j = S_j · f_j + F_j · a_parent

The paper weighs every link in every iteration (its g2 and g3); F weighs what moves with a joint
once, by composite bodies [64]-[67], and leaves an iteration two thirds of the operations. ``ccg``
is the classical iteration; ``pcg`` scales by the diagonal of M (a block per joint of several
columns), which is then at hand. Each state stops when its residual is
``tolerance`` of the right-hand side; the true residual is computed at the end, because the
recursive one may lie.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from linkwise.algorithms import ltl
from linkwise.algorithms.crba import compose
from linkwise.algorithms.external import External
from linkwise.algorithms.gdahj import Located, located
from linkwise.algorithms.ltl import dot
from linkwise.algorithms.rnea import bias
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import (
    Force,
    Matrix,
    Motion,
    RigidInertia,
    Scalar,
    Transform,
    Vector,
    repeat,
)
from linkwise.sweep import base_to_tip, each_link, joint_states, tip_to_base

Numbers = list[Scalar]


class Fixed(NamedTuple):
    """A link in its root's axes, all at its origin."""

    X: Transform  # a shift, from its parent
    S: tuple[Motion, ...]
    F: tuple[Force, ...]  # momentum of the subtree per unit rate of the joint
    block: Matrix  # Sᵀ F and rotors: a diagonal block of M


class Ride(NamedTuple):
    """Motion of a link, and what of it came from its parent."""

    a_in: Motion
    a: Motion


def project(link: Link, J: JointState, body: RigidInertia, at: Located) -> Fixed:
    """Turn a link's motions, and the momenta of its subtree, to the root's axes."""
    momenta = [body @ column for column in J.S]
    block = [J.project(f) for f in momenta]
    for k, rotor in enumerate(link.armature):
        block[k][k] = block[k][k] + rotor
    F = tuple(Force(at.R @ f.ang, at.R @ f.lin) for f in momenta)
    return Fixed(Transform(at.l), tuple(at.own), F, block)


def fixed_links(tree: Tree, q: Vector) -> list[Fixed]:
    """Every link in its root's axes."""
    J = joint_states(tree, q)
    bodies, _ = tip_to_base(tree, compose, RigidInertia.zero(), J)
    return each_link(tree, project, J, bodies, located(tree, q))


def ride(_link: Link, parent: Ride, f: Fixed, rates: Vector) -> Ride:
    """Motion of a link under joint rates."""
    a_in = f.X.motion(parent.a)
    a = a_in
    for column, rate in zip(f.S, rates, strict=True):
        a = a + column * rate
    return Ride(a_in, a)


def weigh(link: Link, children: Force, f: Fixed, m: Ride, rates: Vector) -> tuple[Numbers, Force]:
    """Momentum of what moves with the joint or beyond it, felt by the joint and by the parent."""
    total = children
    for momentum, rate in zip(f.F, rates, strict=True):
        total = total + momentum * rate
    own = zip(f.S, f.F, link.armature, rates, strict=True)
    felt = [s.dot(total) + m.a_in.dot(F) + rotor * rate for s, F, rotor, rate in own]
    return felt, f.X.force_back(total)


def times_mass(tree: Tree, links: list[Fixed], p: Vector) -> Numbers:
    """``M p``."""
    rates = tree.per_link_v(p)
    motions = base_to_tip(tree, ride, Ride(Motion.zero(), Motion.zero()), links, rates)
    felt, _ = tip_to_base(tree, weigh, Force.zero(), links, motions, rates)
    return tree.gather(felt)


def diagonal_scaling(tree: Tree, links: list[Fixed]) -> Callable[[Numbers], Numbers]:
    """The preconditioner: solve with the diagonal blocks of M."""
    D = tree.gather_matrix(((i, i), f.block) for i, f in enumerate(links))
    factors = ltl.factor(D, tree.previous_of_joint)
    return lambda r: ltl.solve(factors, r)


def iterate(
    tree: Tree,
    q: Vector,
    b: Vector,
    start: Vector,
    scaled: bool,
    tolerance: Scalar,
    limit: Scalar,
) -> Numbers:
    """Solve ``M x = b`` from ``start``; returns x, iterations, and (true residual / b)²."""
    links, n = fixed_links(tree, q), tree.nv
    scale = diagonal_scaling(tree, links) if scaled else list[Scalar]
    enough = dot(b, b) * (tolerance * tolerance)
    r = [x - y for x, y in zip(b, times_mass(tree, links, list(start)), strict=True)]
    z = scale(r)

    def step(state: list[Scalar]) -> tuple[Numbers, Scalar]:
        x, r, p, (rho, count) = state[:n], state[n : 2 * n], state[2 * n : 3 * n], state[3 * n :]
        left = dot(r, r) if scaled else rho
        Ap = times_mass(tree, links, p)
        alpha = rho / dot(p, Ap)
        new_r = [a - alpha * c for a, c in zip(r, Ap, strict=True)]
        new_z = scale(new_r)
        new_rho = dot(new_z, new_r)
        beta = new_rho / rho
        new_x = [a + alpha * c for a, c in zip(x, p, strict=True)]
        new_p = [a + beta * c for a, c in zip(new_z, p, strict=True)]
        return [*new_x, *new_r, *new_p, new_rho, count + 1.0], left - enough

    end = repeat(step, [*start, *r, *z, dot(z, r), 0.0], limit)
    x = end[:n]
    left = [u - v for u, v in zip(b, times_mass(tree, links, x), strict=True)]
    return [*x, end[-1], dot(left, left) / dot(b, b)]


def _solver(scaled: bool) -> Callable[..., Numbers]:
    def solve(
        tree: Tree,
        q: Vector,
        qd: Vector,
        tau: Vector,
        qdd0: Vector,
        *,
        external: External = (),
        tolerance: Scalar = 1e-10,
        limit: Scalar | None = None,
    ) -> Numbers:
        """Joint accelerations, iterations, and squared relative residual."""
        load = bias(tree, q, qd, external=external)
        b = [t - x for t, x in zip(tau, load, strict=True)]
        most = 4 * tree.nv + 20 if limit is None else limit
        return iterate(tree, q, b, qdd0, scaled, tolerance, most)

    return solve


ccg, pcg = _solver(scaled=False), _solver(scaled=True)
