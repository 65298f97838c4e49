"""Acceleration of a frame under torques, by spatial operators [Rodriguez and Kreutz, Part I].

    α(0) = λ(0) + φᵀa                                                                       [(5.7)]

λ is what the joint accelerations give the frame's link (``operator_dynamics.py``), φᵀa what it has
without them, at constant joint rates.

    "fd2"   λ of FD2
    "fd3"   λ of FD3, which is changed as FD2 changes FD1
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms.accelerations import Acceleration, joint_accelerations
from linkwise.algorithms.external import External
from linkwise.algorithms.grip import grip
from linkwise.algorithms.kinematics import jacobian_dot_qd
from linkwise.algorithms.operator_dynamics import States, bias_filtered, bias_first
from linkwise.algorithms.tied import tied
from linkwise.model.tree import BASE, Frame, Tree
from linkwise.spatial import Scalar, Vector
from linkwise.sweep import of_link


def _tip(states: States) -> Callable[..., list[Scalar]]:
    """α(0) of a frame: λ there, and φᵀa, its acceleration at constant joint rates."""

    def driver(
        tree: Tree,
        q: Vector,
        qd: Vector,
        tau: Vector,
        *,
        frame: Frame,
        axes: str = "base",
        external: External = (),
    ) -> list[Scalar]:
        drift = jacobian_dot_qd(tree, q, qd, frame=frame, axes=axes)
        if frame.link == BASE:
            return drift

        def tip(moved: list[Acceleration], loose: Tree, full_q: Vector) -> list[Scalar]:
            there = of_link(loose, frame.link, moved)
            return [*grip(loose, full_q, frame, axes).seen(there.a)]

        def rates_and_tip(loose: Tree, full_q: Vector, *rest: Vector) -> list[Scalar]:
            moved = states(loose, full_q, *rest)
            return loose.beside(joint_accelerations(loose, moved), tip(moved, loose, full_q))

        if tree.coupled:
            found = tree.beside_of(tied(tree, rates_and_tip, q, qd, tau, external))
        else:
            found = tip(states(tree, q, qd, tau, external), tree, q)
        return [a + b for a, b in zip(found, drift, strict=True)]

    return driver


fd2 = _tip(bias_first)
fd3 = _tip(bias_filtered)
