"""Chains of any length, made as arrays: snakes, tethers, cables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.engine.build import progress
from linkwise.model import values
from linkwise.model.description import IDENTITY
from linkwise.model.joints import JOINTS, make_joint
from linkwise.model.linktable import Kind, LinkFrames, LinkTable, numbers
from linkwise.model.tree import Frame, Link, Tree
from linkwise.robot import Robot
from linkwise.spatial import RigidInertia, Sym3, Transform, Turn, Vec3, sincos
from linkwise.spatial.elementary import powers
from linkwise.spatial.records import leaves

KINDS = ("uniform", "tapered", "random", "mixed")
MIXED = ("revolute", "prismatic", "spherical")  # joints of a mixed chain, unless told
THICKNESS = 0.1  # radius of a link beside its length
TAPER = 0.1  # size of a tapered chain's last link beside its first


def chain(
    n: int,
    kind: str = "uniform",
    *,
    length: float = 0.1,
    mass: float = 0.1,
    joints: str | Sequence[str] | None = None,
    damping: float = 0.0,
    armature: float = 0.0,
    seed: int = 0,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    name: str = "",
) -> Robot:
    """A serial chain of ``n`` links, of any length: snakes, tethers, cables.

    >>> import linkwise as lw
    >>> tether = lw.chain(1000)
    >>> tether.nv, tether.forward_kinematics(tether.neutral(), "tip")[0, 3].round(6).item()
    (1000, 100.0)

    A link is a round rod of ``length`` metres and ``mass`` kilograms along its x axis; each joint
    moves about (or along) z at the end of the link before, turned by a right angle about x from the
    joint before. ``kind``: ``"uniform"``, ``"tapered"`` (links get smaller evenly, by a factor of
    ten along the chain), ``"random"`` (lengths, masses, turns and thickness differ from link to
    link, by a ``seed``) or ``"mixed"`` (as random, with revolute, prismatic and spherical joints
    taking turns). ``joints`` is a kind of joint, revolute unless given, or several that take turns.
    ``damping`` and ``armature`` are those of every joint; the dynamics use both.

    Links are named link1, link2 ..., joints joint1 ..., and the end of the last link is the frame
    ``"tip"``. At rest the chain lies along the x axis of its base; the first joint's axis is -y.

    Of the functions that return another robot, a chain has `with_gravity` and `with_codegen`. For
    others (`with_free_base`, `with_payload`, `save`), make it with `Builder`.
    """
    if joints is None:
        joints = MIXED if kind == "mixed" else "revolute"
    kinds = list(joints) if isinstance(joints, (list, tuple)) else [str(joints)]
    _check(n, kind, kinds)
    for what, value in {"length": length, "mass": mass}.items():
        if values.number(f"chain: {what}", value) <= 0.0:
            raise ValueError(f"chain: {what} {value!r}; expected a positive number")
    for what, value in {"damping": damping, "armature": armature}.items():
        if values.number(f"chain: {what}", value) < 0.0:
            raise ValueError(f"chain: {what} {value!r}; expected a number that is not negative")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"chain: seed is {seed!r}; expected a whole number that is not negative")
    with progress(f"making a chain of {n:,} links"):
        tree = _tree(n, _rods(n, kind, length, mass, seed), kinds, damping, armature)
    tree = tree.with_gravity(values.triple("chain: gravity", gravity))
    return Robot.from_tree(tree, values.name("chain: name", name or f"chain{n}"))


def _tree(
    n: int, rods: NDArray[np.void], kinds: Sequence[str], damping: float, armature: float
) -> Tree:
    """The chain of rods."""
    kind_of = np.arange(n) % len(kinds)
    table = [_kind(kind, rods[kind_of == k], damping, armature) for k, kind in enumerate(kinds)]
    links = LinkTable([t for t in table if len(t.rows)], kind_of, np.arange(n) - 1, _names)
    tip = Frame(n - 1, (float(rods["length"][-1]), 0.0, 0.0), IDENTITY)
    base = Frame(-1, (0.0, 0.0, 0.0), IDENTITY)
    return Tree(links, frames=LinkFrames(n, "link", {"base": base, "tip": tip}))


def _names(i: int) -> tuple[str, str]:
    """Of a link and its joint; no lambda, which would not pickle."""
    return f"link{i + 1}", f"joint{i + 1}"


def _check(n: int, kind: str, kinds: Sequence[str]) -> None:
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
        raise ValueError(f"chain: n is {n!r}; expected a whole number of links, at least 1")
    if kind not in KINDS:
        raise ValueError(f"chain: kind {kind!r}; expected one of {', '.join(map(repr, KINDS))}")
    able = [x for x in JOINTS if x not in ("helical", "free")]
    for x in kinds:
        if x not in able:
            raise ValueError(f"chain: joint {x!r}; expected one of {', '.join(map(repr, able))}")
    if not 1 <= len(kinds) <= 8:
        raise ValueError(f"chain: {len(kinds)} kinds of joints; expected 1 to 8")


def _rods(n: int, kind: str, length: float, mass: float, seed: int) -> NDArray[np.void]:
    """Length, mass, radius, the turn before the joint, and the length of the link before."""
    rods = np.zeros(n, [(x, float) for x in ("length", "mass", "radius", "turn", "before")])
    scale = powers(TAPER, n) if kind == "tapered" else np.ones(n)
    rods["length"], rods["mass"] = length * scale, mass * (scale * scale * scale)
    rods["radius"], rods["turn"] = THICKNESS * rods["length"], math.pi / 2
    if kind in ("random", "mixed"):
        rng = np.random.default_rng(seed)
        rods["length"] *= rng.uniform(0.5, 1.5, n)
        rods["mass"] *= rng.uniform(0.2, 2.0, n)
        rods["radius"] = rods["length"] * rng.uniform(0.05, 0.2, n)
        rods["turn"] = rng.uniform(-math.pi, math.pi, n)
    rods["before"][1:] = rods["length"][:-1]
    return rods


def _kind(kind: str, rods: NDArray[np.void], damping: float, armature: float) -> Kind:
    """The links with one kind of joint; numbers in the order of `numbers`."""
    joint = make_joint(kind)
    some = Link(
        "", "", -1, joint, Transform(Vec3(0.0, 0.0, 0.0), (Turn("x", 1.0, 0.0),)),
        RigidInertia(0.0, Vec3.zero(), Sym3.zero()), (0.0,) * joint.nv, 0, 0, kind=kind,
    )  # fmt: skip
    s, c = sincos(rods["turn"])
    c[np.abs(rods["turn"]) == math.pi / 2] = 0.0  # a right angle is exact
    m, long, r = rods["mass"], rods["length"], rods["radius"]
    across = 0.25 * m * r * r  # second moment of a round rod across its axis
    columns = [
        *(rods["before"], 0.0, 0.0), *(c, s),
        *(0.5 * m * long, 0.0, 0.0), m, *(m * long * long / 3.0, 0.0, 0.0, across, 0.0, across),
        *[armature] * joint.nv, *(0.0, damping, 0.0),
    ]  # fmt: skip
    rows = np.empty((len(rods), len(leaves(numbers(some)))))
    for k, column in enumerate(columns):
        rows[:, k] = column
    return Kind(some, rows)
