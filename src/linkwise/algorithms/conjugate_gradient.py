"""Forward dynamics by conjugate gradients, without a mass matrix.

    M qdd = tau - bias,   M p by two sweeps in one fixed frame

[Fijany and Scheid; numbers in brackets are its equations, corrected where they are garbled]. Axes
and inertias are turned to base axes once [33]-[37]; an iteration then only shifts and adds:

    base -> tip   a   motion under the joint rates p                              [g3, outward]
    tip -> base   f   momentum of the subtree, projected on the joint             [g3, inward]

``ccg`` is the classical iteration; ``pcg`` scales by the diagonal of M (a block per joint of
several columns), from composite bodies [64]-[67]. Each state stops when its residual is
``tolerance`` of the right-hand side; the true residual is computed at the end, because the
recursive one may lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from linkwise.algorithms import ltl
from linkwise.algorithms.external import External
from linkwise.algorithms.kinematics import BASE_POSE, Pose, place
from linkwise.algorithms.rnea import bias
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import (
    Force,
    Motion,
    RigidInertia,
    Rotation,
    Scalar,
    Transform,
    repeat,
)
from linkwise.sweep import base_to_tip, tip_to_base

Vector = list[Scalar]


class Fixed(NamedTuple):
    """A link in base axes: shift from its parent, motion subspace and inertia at its origin."""

    X: Transform
    S: tuple[Motion, ...]
    inertia: RigidInertia


def project(link: Link, parent: Pose, pose: Pose) -> Fixed:
    """Turn a link's constants to base axes."""
    turn = Rotation(pose.R)
    body = link.inertia
    S = tuple(Motion(pose.R @ c.ang, pose.R @ c.lin) for c in pose.J.S)
    inertia = RigidInertia(body.m, turn.vec(body.h), turn.sym(body.second))
    return Fixed(Transform(pose.p - parent.p), S, inertia)


def ride(_link: Link, parent: Motion, f: Fixed, rates: Sequence[Scalar]) -> Motion:
    """Motion of a link under joint rates."""
    a = f.X.motion(parent)
    for column, rate in zip(f.S, rates, strict=True):
        a = a + column * rate
    return a


def weigh(
    link: Link, children: Force, f: Fixed, a: Motion, rates: Sequence[Scalar]
) -> tuple[Vector, Force]:
    """Momentum of the subtree, felt by the joint and by the parent."""
    total = f.inertia @ a + children
    felt = zip(f.S, link.armature, rates, strict=True)
    return [column.dot(total) + rotor * rate for column, rotor, rate in felt], f.X.force_back(total)


def compose(link: Link, children: RigidInertia, f: Fixed) -> tuple[list[Vector], RigidInertia]:
    """Diagonal block of M for a joint, and the composite body at the parent's origin."""
    composite = f.inertia + children
    block = [[c.dot(composite @ d) for c in f.S] for d in f.S]
    for k, rotor in enumerate(link.armature):
        block[k][k] = block[k][k] + rotor
    return block, f.X.inertia_back(composite)


def fixed_links(tree: Tree, q: Sequence[Scalar]) -> list[Fixed]:
    """Every link in base axes."""
    poses: list[Pose] = base_to_tip(tree, place, BASE_POSE, tree.per_link_q(q))
    parents = [BASE_POSE if k.parent == BASE else poses[k.parent] for k in tree.links]
    return [project(*each) for each in zip(tree.links, parents, poses, strict=True)]


def times_mass(tree: Tree, links: list[Fixed], p: Vector) -> Vector:
    """``M p``."""
    rates = tree.per_link_v(p)
    motions = base_to_tip(tree, ride, Motion.zero(), links, rates)
    felt, _ = tip_to_base(tree, weigh, Force.zero(), links, motions, rates)
    return tree.gather(felt)


def diagonal_scaling(tree: Tree, links: list[Fixed]) -> Callable[[Vector], Vector]:
    """The preconditioner: solve with the diagonal blocks of M."""
    blocks, _ = tip_to_base(tree, compose, RigidInertia.zero(), links)
    n = tree.nv
    D: list[Vector] = [[0.0] * n for _ in range(n)]
    parent = [-1] * n
    for link, block in zip(tree.links, blocks, strict=True):
        for a, (row, f) in enumerate(link.dofs):
            parent[row] = row - 1 if a else -1
            for b, (column, g) in enumerate(link.dofs):
                D[row][column] = D[row][column] + block[a][b] * (f * g)
    factors = ltl.factor(D, parent)
    return lambda r: ltl.solve(factors, r)


def _dot(a: Vector, b: Vector) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def iterate(
    tree: Tree,
    q: Sequence[Scalar],
    b: Vector,
    start: Sequence[Scalar],
    scaled: bool,
    tolerance: float,
    limit: int,
) -> Vector:
    """Solve ``M x = b`` from ``start``; returns x, iterations, and (true residual / b)²."""
    links, n = fixed_links(tree, q), tree.nv
    scale = diagonal_scaling(tree, links) if scaled else list[Scalar]
    enough = _dot(b, b) * tolerance**2
    r = [x - y for x, y in zip(b, times_mass(tree, links, list(start)), strict=True)]
    z = scale(r)

    def step(state: list[Scalar]) -> tuple[Vector, Scalar]:
        x, r, p, (rho, count) = state[:n], state[n : 2 * n], state[2 * n : 3 * n], state[3 * n :]
        Ap = times_mass(tree, links, p)
        alpha = rho / _dot(p, Ap)
        new_r = [a - alpha * c for a, c in zip(r, Ap, strict=True)]
        new_z = scale(new_r)
        new_rho = _dot(new_z, new_r)
        beta = new_rho / rho
        new_x = [a + alpha * c for a, c in zip(x, p, strict=True)]
        new_p = [a + beta * c for a, c in zip(new_z, p, strict=True)]
        return [*new_x, *new_r, *new_p, new_rho, count + 1.0], _dot(r, r) - enough

    end = repeat(step, [*start, *r, *z, _dot(z, r), 0.0], limit)
    x = end[:n]
    left = [u - v for u, v in zip(b, times_mass(tree, links, x), strict=True)]
    return [*x, end[-1], _dot(left, left) / _dot(b, b)]


def _solver(scaled: bool) -> Callable[..., Vector]:
    def solve(
        tree: Tree,
        q: Sequence[Scalar],
        qd: Sequence[Scalar],
        tau: Sequence[Scalar],
        qdd0: Sequence[Scalar],
        *,
        external: External = (),
        tolerance: float = 1e-9,
        limit: int = 0,
    ) -> Vector:
        """Joint accelerations, iterations, and squared relative residual."""
        load = bias(tree, q, qd, external=external)
        b = [t - x for t, x in zip(tau, load, strict=True)]
        return iterate(tree, q, b, qdd0, scaled, tolerance, limit or 4 * tree.nv + 20)

    return solve


ccg, pcg = _solver(scaled=False), _solver(scaled=True)
