"""Joints that move no inertia: which functions a robot with such joints does not have.

A robot without any inertia is one for kinematics. With some joints that move none, its mass matrix
is right and singular: functions that divide by the inertia that a joint moves are refused.
"""

from __future__ import annotations

from linkwise.model.tree import Tree

KINEMATICS = (
    "forward_kinematics", "jacobian", "jacobian_dot_qd", "kinematic_hessian", "integrate",
    "difference", "normalize",
)  # fmt: skip
WITHOUT_DIVISION = (
    *KINEMATICS, "inverse_dynamics", "bias", "gravity_torque", "mass_matrix", "kinetic_energy",
    "potential_energy", "joint_wrenches", "coriolis_matrix", "christoffel", "inertial_power",
)  # fmt: skip
SHOWN = 3


def possible(function: str, tree: Tree) -> bool:
    """Whether a function has a meaning for a robot with such joints."""
    if not tree.unmoved or function in KINEMATICS:
        return True
    return len(tree.unmoved) < tree.n_links and function in WITHOUT_DIVISION


def why_not(tree: Tree) -> str:
    """The joints that move no inertia."""
    ways = "kinematics is there; strict=False takes the robot as it is, and gives NaN"
    if len(tree.unmoved) == tree.n_links:
        return f"no joint moves any inertia ({ways})"
    names = ", ".join(map(repr, tree.unmoved[:SHOWN]))
    more = len(tree.unmoved) - SHOWN
    others = f" and {more} more" if more > 0 else ""
    return f"joints {names}{others} move no inertia to divide by ({ways})"
