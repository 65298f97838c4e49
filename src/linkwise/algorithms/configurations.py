"""Configurations moved, compared and put right: each joint's own rule, joint by joint.

    integrate    the configuration reached from q by holding the rates v for a time dt
    difference   the rates that lead from q0 to q1 in unit time, turns the short way round
    normalize    every quaternion at unit length
    rate         how fast the numbers of q change at the rates v
    chart_rate   how the rates u change that lead from one configuration to a moving other, to
                 fourth order in u: dexp⁻¹ v = v + ½ [u, v] + 1/12 [u, [u, v]]

Angles and distances add. Quaternions turn by the exponential of a rotation vector; a free joint
moves along a screw, its twist held in link axes (spatial/quaternion.py).
"""

from __future__ import annotations

from functools import partial

from linkwise.model.tree import Link, Tree
from linkwise.spatial import Scalar, Vector
from linkwise.sweep import each_link

FUNCTIONS = ("integrate", "difference", "normalize")


def integrate(tree: Tree, q: Vector, v: Vector, dt: Vector) -> list[Scalar]:
    """The configuration after a time dt."""
    body = partial(_integrate, dt[0])
    return tree.own_numbers(each_link(tree, body, tree.per_link_q(q), tree.per_link_v(v)))


def _integrate(dt: Scalar, link: Link, q: Vector, v: Vector) -> list[Scalar]:
    return link.joint.integrate(q, [rate * dt for rate in v])


def difference(tree: Tree, q0: Vector, q1: Vector) -> list[Scalar]:
    """The rates between two configurations."""
    return tree.own_numbers(each_link(tree, _difference, tree.per_link_q(q0), tree.per_link_q(q1)))


def _difference(link: Link, q0: Vector, q1: Vector) -> list[Scalar]:
    return link.joint.difference(q0, q1)


def rate(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """How fast the numbers of a configuration change at the rates v."""
    return tree.own_numbers(each_link(tree, _rate, tree.per_link_q(q), tree.per_link_v(v)))


def _rate(link: Link, q: Vector, v: Vector) -> list[Scalar]:
    return link.joint.rate(q, v)


def tangent(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """`rate` of a configuration whose quaternions may have any length."""
    return tree.own_numbers(each_link(tree, _tangent, tree.per_link_q(q), tree.per_link_v(v)))


def _tangent(link: Link, q: Vector, v: Vector) -> list[Scalar]:
    return link.joint.tangent(q, v)


def chart_rate(tree: Tree, u: Vector, v: Vector) -> list[Scalar]:
    """How u changes where the configuration that it leads to moves at the rates v."""
    return tree.own_numbers(each_link(tree, _chart_rate, tree.per_link_v(u), tree.per_link_v(v)))


def _chart_rate(link: Link, u: Vector, v: Vector) -> list[Scalar]:
    once = link.joint.bracket(u, v)
    twice = link.joint.bracket(u, once)
    return [a + 0.5 * b + c / 12.0 for a, b, c in zip(v, once, twice, strict=True)]


def normalize(tree: Tree, q: Vector) -> list[Scalar]:
    """The configuration, its quaternions at unit length."""
    return tree.own_numbers(each_link(tree, _normalize, tree.per_link_q(q)))


def _normalize(link: Link, q: Vector) -> list[Scalar]:
    return link.joint.normalize(q)
