"""Rates after a step in which damping and friction act at the rates that come out of it.

    M (v' - v) = h (tau - C v - g - D v'),      that is  (M + h D) (v' - v) = h (tau - bias(v))

D is diagonal: damping d, and friction f as if it were damping f / |v|, so that joints slow down to
rest and never past it. Below the rate `CREEP` it is f / CREEP: a joint that friction holds creeps
on at less than that rate. ``stiff`` is what else resists v' at each degree of freedom, as soft
stops do. However large D is, no step makes v' overshoot.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms import ltl
from linkwise.algorithms.crba import crba
from linkwise.algorithms.external import External
from linkwise.algorithms.rnea import unbiased
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Scalar, Vector, select, sign
from linkwise.sweep import each_link

CREEP = 1e-3  # rad/s or m/s


def implicit_change(
    tree: Tree,
    q: Vector,
    v: Vector,
    tau: Vector,
    h: Scalar,
    stiff: Vector,
    *,
    external: External = (),
) -> list[Scalar]:
    """``v' - v``."""
    rates = tree.per_link_v(v)
    slopes = _diagonal(tree, each_link(tree, _slopes, rates))
    excess = tree.gather(each_link(tree, _excess, rates))
    M = crba(tree, q)
    for k, (slope, more) in enumerate(zip(slopes, stiff, strict=True)):
        M[k][k] = M[k][k] + h * (slope + more)
    left = unbiased(tree, q, v, tau, external)
    push = [h * (a + b) for a, b in zip(left, excess, strict=True)]
    return ltl.solve(ltl.factor(M, tree.dof_parent), push)


def _diagonal(tree: Tree, per_link: Sequence[Vector]) -> list[Scalar]:
    """Numbers of each joint's columns as a diagonal over degrees of freedom."""
    columns = enumerate(x for own in per_link for x in own)
    sums = tree.projection.gathered(((c, c), x) for c, x in columns)
    return [sums[k, k] for k in range(tree.nv)]


def _size(rate: Scalar) -> Scalar:
    """``max(|rate|, CREEP)``."""
    size = rate * sign(rate)
    return select(size - CREEP, size, CREEP)


def _slopes(link: Link, rates: Vector) -> list[Scalar]:
    """What resists each column per unit of its rate."""
    if link.friction == 0.0:
        return [link.damping] * len(rates)
    return [link.damping + link.friction / _size(rate) for rate in rates]


def _excess(link: Link, rates: Vector) -> list[Scalar]:
    """What the bias has too much: the whole friction, at rates where less than that acts."""
    if link.friction == 0.0:
        return [0.0] * len(rates)
    return [link.friction * (sign(rate) - rate / _size(rate)) for rate in rates]
