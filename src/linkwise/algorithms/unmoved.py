"""Joints that move no inertia: why a function does not exist for a robot that has such joints.

A robot without any inertia is one for kinematics. Where some joints move none, the mass matrix is
right and singular: functions that divide by the inertia that a joint moves are refused.
"""

from __future__ import annotations

from linkwise.model.tree import Tree

SHOWN = 3
_WAYS = "kinematics works; give the links inertia, or with strict=False get NaN"


def no_inertia(tree: Tree) -> str:
    """For functions of masses: a reason where no joint moves any."""
    none = tree.unmoved and len(tree.unmoved) == tree.n_links
    return f"no joint moves any inertia ({_WAYS})" if none else ""


def nothing_moves(tree: Tree) -> str:
    """For the centre of mass of all moving links: a reason where there are none."""
    return "" if tree.n_links else "no link moves (base='free' lets the whole object fly)"


def joints_without_inertia(tree: Tree) -> str:
    """For functions that divide by inertia: a reason where some joint moves none."""
    if no_inertia(tree) or not tree.unmoved:
        return no_inertia(tree)
    names = ", ".join(map(repr, tree.unmoved[:SHOWN]))
    more = len(tree.unmoved) - SHOWN
    others = f" and {more} more" if more > 0 else ""
    return f"joints {names}{others} move no inertia to divide by ({_WAYS})"
