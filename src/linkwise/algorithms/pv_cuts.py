"""Closed loops by one more sweep of the articulated-body algorithm, at a cost of O(n + m²).

As in pv.py, with wrenches cut where more than six come together (cuts.py).
"""

from __future__ import annotations

from functools import partial

from linkwise.algorithms.aba import NOTHING, Handle, accelerate, articulate
from linkwise.algorithms.accelerations import Acceleration, joint_accelerations
from linkwise.algorithms.closure_rates import products
from linkwise.algorithms.closures import seams
from linkwise.algorithms.constrained import Constrained
from linkwise.algorithms.cuts import Cuts, Sums, all_forces, expand, pass_or_cut
from linkwise.algorithms.dense import dot
from linkwise.algorithms.external import External, drive, external_forces
from linkwise.algorithms.passing import Bundle, Felt, wrenches
from linkwise.algorithms.pv import push
from linkwise.algorithms.rates import STILL, Velocity, turn
from linkwise.model.tree import BASE, Link, Tree
from linkwise.spatial import Motion, Scalar, Vec3, Vector
from linkwise.sweep import at_links, base_to_tip, each_link, sum_links, tip_to_base


def add(_link: Link, sums: Sums, felt: Felt, handles: list[Handle], m: Velocity) -> Sums:
    """A joint's part of Ω, of the free acceleration, and of what Ω could be at most."""
    for k, own in felt.epsilons.items():
        weighed = [e * h.inv_d for e, h in zip(own, handles, strict=True)]
        for j, other in felt.epsilons.items():
            if j <= k:
                sums.add(k, j, dot(weighed, other))
        driven = dot(weighed, [h.u for h in handles]) + m.c.dot(felt.rest[k])
        sums.free[k] = sums.free.get(k, 0.0) + driven
        sums.scale[k] = sums.scale.get(k, 0.0) + felt.size[k]
    return sums


def constrained(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External = ()
) -> Constrained:
    """Closed loops at a state, of a tree whose joints all move on their own."""
    q_, qd_, tau_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(tau)
    moving = base_to_tip(tree, turn, STILL, q_, qd_)
    ext, driven = external_forces(tree, q, external), each_link(tree, drive, tau_, qd_)
    handles, _ = tip_to_base(tree, articulate, NOTHING, moving, ext, driven)
    closed, rows = seams(tree, q), tree.n_constraints
    pushes = wrenches(closed)
    own, numbers = at_links(tree, Bundle(), pushes), range(rows, rows + 6 * len(tree.links), 6)
    cuts: Cuts = []
    passing = partial(pass_or_cut, cuts)
    felt, at_base = tip_to_base(tree, passing, Bundle(), own, moving, handles, numbers)
    base = Motion(Vec3.zero(), tree.base_acceleration)
    held = sum((bundle for i, bundle in pushes if i == BASE), at_base)
    sums = Sums({}, {k: base.dot(K) for k, K in held.items()}, {})
    sums = sum_links(tree, add, sums, felt, handles, moving, inward=True)
    expand(sums, cuts)
    known = products(tree, q, qd, closed, moving)
    free = [sums.free[k] + x for k, x in enumerate(known)]
    scale = [sums.scale[k] for k in range(rows)]

    def released(forces: Vector) -> list[Scalar]:
        pushed = each_link(tree, partial(push, all_forces(forces, cuts)), handles, felt)
        states = base_to_tip(tree, accelerate, Acceleration(base, []), moving, pushed)
        return joint_accelerations(tree, states)

    return Constrained(closed, sums.matrix(rows), scale, free, released)
