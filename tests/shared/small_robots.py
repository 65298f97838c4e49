"""Robots of 2 to 8 degrees of freedom, one of each kind that the product grid tells apart."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import linkwise as lw

OPEN = ("open", "tree", "floating", "mimic")
CLOSED = ("closed", "coupled")
GRASPS = ("grasp", "grasp-object")
ROLLED = ("rolled", "rolled-floating", "rolled-closed", "rolled-grasp")
KINDS = (*OPEN, *CLOSED, *GRASPS, *ROLLED)
LIMITS = (-0.6, 0.7)  # rad or m, of the first joint


def _chain(
    name: str, kinds: str, *, base: str = "fixed", mimic: bool = False, branch: bool = False
) -> lw.Robot:
    """Joints by letter, r or p, each turned against the last; with rotors and losses in the file.

    ``mimic``: the last joint follows the first. ``branch``: the last link is on the first.
    """
    b, rng = lw.Builder(name, gravity=(0.3, -0.5, -9.81)), np.random.default_rng(3)
    if base == "free":
        b.link("base", mass=3.0, com=(0.1, 0.0, 0.05), inertia=(0.2, 0.25, 0.3))
    parent, last = "base", len(kinds) - 1
    for k, letter in enumerate(kinds):
        b.link(f"link{k}", mass=1.0 + 0.5 * k, com=rng.uniform(0.05, 0.2, 3).round(3),
               inertia=rng.uniform(0.05, 0.1, 3).round(3))  # fmt: skip
        b.joint(
            f"joint{k}", "revolute" if letter == "r" else "prismatic",
            parent="link0" if branch and k == last else parent, child=f"link{k}",
            axis=((0.0, 0.0, 1.0), (0.0, 0.6, 0.8), (1.0, 0.0, 0.0))[k % 3],
            xyz=rng.uniform(0.1, 0.4, 3).round(3), rpy=rng.uniform(0.2, 1.2, 3).round(3),
            armature=0.05 * (k + 1), damping=0.3 + 0.1 * k, friction=0.05,
            limits=LIMITS if k == 0 else (-np.pi, np.pi), velocity=20.0, effort=100.0,
            mimic=("joint0", -0.7, 0.2) if mimic and k == last else None,
        )  # fmt: skip
        parent = f"link{k}"
    b.frame("tip", f"link{last}", xyz=(0.1, 0.2, 0.3), rpy=(0.3, 0.2, 0.1))
    return b.build(base=base, friction=False)


def _closed() -> lw.Robot:
    """Two branches of two joints, whose ends are held together in two directions."""
    b, rng = lw.Builder("closed", gravity=(0.3, -0.5, -9.81)), np.random.default_rng(5)
    for k, parent in enumerate(("base", "link0", "base", "link2")):
        b.link(f"link{k}", mass=1.0 + 0.5 * k, com=rng.uniform(0.05, 0.2, 3).round(3),
               inertia=rng.uniform(0.05, 0.1, 3).round(3))  # fmt: skip
        b.joint(f"joint{k}", "revolute", parent=parent, child=f"link{k}",
                axis=(0.0, 0.0, 1.0) if k % 2 else (0.0, 1.0, 0.0), armature=0.05, damping=0.3,
                xyz=rng.uniform(0.1, 0.4, 3).round(3), rpy=rng.uniform(0.2, 1.2, 3).round(3),
                limits=LIMITS if k == 0 else (-np.pi, np.pi), velocity=20.0, effort=100.0,
                friction=0.05)  # fmt: skip
    b.frame("tip", "link3", xyz=(0.1, 0.2, 0.3), rpy=(0.3, 0.2, 0.1))
    b.frame("end", "link1", xyz=(0.2, 0.1, 0.1))
    robot = b.build(friction=False)
    loop = lw.Loop("tip", "end", [[0, 0, 0, 1.0, 0.5, 0], [0, 0, 0, 0, 0.3, 1.0]])
    return robot.close_loops(loop, at=_rest(robot))


def _rest(robot: lw.Robot) -> np.ndarray:
    return np.full(robot.nq, 0.3)


def _grasp(object_state: bool) -> lw.Grasp:
    """Two arms of three joints: one has the object in its hand, the other holds a point of it."""
    arms = [_chain("left", "rrr"), _chain("right", "rpr")]
    there, at = np.eye(4), np.eye(4)
    there[:3, 3], at[:3, 3] = (0.8, 0.1, 0.0), (0.3, 0.2, 0.1)
    box = lw.RigidBody(2.0, (0.0, 0.1, 0.3), (0.06, 0.05, 0.04))
    contacts = [lw.Contact(0, "tip"), lw.Contact(1, "tip", "point", pose_in_object=at)]
    bases = [np.eye(4), there]
    grasp = lw.Grasp(arms, box, contacts, bases, object_state=object_state)
    return grasp


@cache
def small_robot(kind: str) -> Any:
    """The robot of a kind."""
    makers = {
        "open": lambda: _chain("open", "rpr"),
        "tree": lambda: _chain("tree", "rprr", branch=True),
        "floating": lambda: _chain("floating", "rp", base="free"),
        "mimic": lambda: _chain("mimic", "rpr", mimic=True),
        "closed": _closed,
        "coupled": lambda: _chain("coupled", "rpr").close_loops(
            lw.Coupling("joint2", "joint0", (0.1, -0.6, 0.2))
        ),
        "grasp": lambda: _grasp(False),
        "grasp-object": lambda: _grasp(True),
        "rolled": lambda: _chain("rolled", "rpr").with_codegen("rolled"),
        "rolled-floating": lambda: small_robot("floating").with_codegen("rolled"),
        "rolled-closed": lambda: small_robot("closed").with_codegen("rolled"),
        "rolled-grasp": lambda: small_robot("grasp").with_codegen("rolled"),
    }
    return makers[kind]()
