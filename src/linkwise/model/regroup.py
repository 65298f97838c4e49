"""Regrouping: move each link's unaffected inertia to its parent, so that zeros appear.

A revolute link turning about z cannot tell mass spread along z from mass of its parent: ``m``,
``h_z`` and ``Σ_zz`` may all be moved inboard. A prismatic link can give away all of ``Σ``. Joint
torques, the mass matrix and kinetic energy are unchanged [Khalil 1987, base parameters]; what
remains has three (six) structural zeros per link, and folding removes their arithmetic. Regrouped
links are not physical bodies (their mass is zero), so only algorithms that are linear in the
inertias use them: RNEA and CRBA, not ABA.
"""

from __future__ import annotations

from dataclasses import replace

from linkwise.model.tree import BASE, Tree


def regroup(tree: Tree) -> Tree:
    """The tree with inertias moved as far inboard as the joints allow."""
    inertias = [link.inertia for link in tree.links]
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        moved = link.joint.unaffected(inertias[i])
        inertias[i] = inertias[i] - moved
        if link.parent != BASE:
            at_parent = link.placement.body_back(moved)
            inertias[link.parent] = inertias[link.parent] + at_parent
    return tree.with_links(
        [replace(link, inertia=body) for link, body in zip(tree.links, inertias, strict=True)]
    )
