"""Inverse dynamics of a chain by scans: joints move as they are told.

Turning rates first (``spins.py``), then accelerations and wrenches in one scan (``loads.py``), and
in every piece the two sweeps of ``rnea.py`` from what it was given.
"""

from __future__ import annotations

from linkwise.algorithms.external import External
from linkwise.algorithms.loads import LOADS, Given, moving
from linkwise.algorithms.rates import move
from linkwise.algorithms.rnea import load
from linkwise.algorithms.scan import at_base
from linkwise.algorithms.spins import pushes, spins, velocities
from linkwise.model.tree import Tree
from linkwise.spatial import Force, Scalar, Vector
from linkwise.sweep import inward, outward, scan


def inverse_dynamics(
    tree: Tree, q: Vector, qd: Vector, qdd: Vector, *, external: External = ()
) -> list[Scalar]:
    """Joint torques for a motion."""
    q_, qd_, qdd_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(qdd)
    turned, _ = spins(tree, q_, qd_)
    v, ext = velocities(tree, turned, q_, qd_), pushes(tree, turned, q_, qd_, external)
    given = scan(tree, LOADS, Given(at_base(tree), Force.zero()), v, ext, qdd_)
    motions = outward(tree, move, moving, (turned, given), q_, qd_, qdd_)
    return tree.gather(inward(tree, load, lambda g: g.f, (given,), motions, ext, qd_, qdd_))


def bias(tree: Tree, q: Vector, qd: Vector, *, external: External = ()) -> list[Scalar]:
    """``C qd + g`` and friction: the torques of a motion without acceleration."""
    return inverse_dynamics(tree, q, qd, [0.0] * tree.nv, external=external)


def gravity_torque(tree: Tree, q: Vector, *, external: External = ()) -> list[Scalar]:
    """``g``: the torques of rest."""
    return bias(tree, q, [0.0] * tree.nv, external=external)
