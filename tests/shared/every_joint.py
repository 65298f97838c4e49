"""A robot with every kind of joint, for tests that are scripts too and can ask for no fixture."""

from __future__ import annotations

import numpy as np

import linkwise as lw


def every_joint(damping: float = 0.0) -> lw.Robot:
    """Two legs and an arm on a flying base: joints of every kind, one of them a follower.

    Revolute joints are damped.
    """
    joints = [  # kind, parent, and what it follows
        ("free", "base", None),
        ("revolute", "free0", None),
        ("universal", "revolute1", None),
        ("revolute", "universal2", "revolute1"),
        ("spherical", "free0", None),
        ("prismatic", "spherical4", None),
        ("planar", "free0", None),
        ("helical", "planar6", None),
    ]
    b, rng = lw.Builder("tree"), np.random.default_rng(7)
    for i, (kind, parent, follows) in enumerate(joints):
        name = f"{kind}{i}"
        spread = rng.uniform(0.05, 0.1, 3)
        b = b.link(name, mass=1.0 + i, com=rng.uniform(0.1, 0.3, 3), inertia=spread)
        b = b.joint(name, kind, parent=parent, child=name, axis=(0.0, 0.6, 0.8),
                    second_axis=(1.0, 0.0, 0.0), pitch=0.1 if kind == "helical" else 0.0,
                    damping=damping if kind == "revolute" else 0.0,
                    xyz=rng.uniform(0.1, 0.4, 3), rpy=rng.uniform(0.2, 1.2, 3),
                    mimic=(follows, 0.5, 0.0) if follows else None)  # fmt: skip
    return b.build()
