"""Forward dynamics by spatial operators: FD1, FD2 and FD3 [Rodriguez and Kreutz, Part I].

    FD1   T' = T - Hφ[Mφᵀa + b + Bf(0)],   θ̈ = (1 - HΨL)ᵀ D⁻¹ (1 - HΨL) T'         [(4.17)-(4.22)]
    FD2   as FD1;  α = λ + φᵀa,   α(0) = φᵀ(1,0) α(1) + a(0)                         [(5.5)-(5.7)]
    FD3   ζ = φᵀa,   ε = T - Hψ[SLT + Mζ + b + Bf(0)],   θ̈ = (1 - HΨL)ᵀ D⁻¹ ε       [(5.8)-(5.10)]
    FD4   a and b inside the sweeps: the articulated-body algorithm, aba.py         [(5.14)-(5.17)]

The smoothing sweep carries λ = φᵀHᵀθ̈, what the joint accelerations give a link; FD2 adds what it
has without them and so knows the acceleration of every frame. FD1 and FD2 take the bias off the
torques first and lose digits on long chains, where it is much larger than what it leaves.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms.accelerations import Acceleration, joint_accelerations
from linkwise.algorithms.external import External, drive, external_forces
from linkwise.algorithms.grip import grip
from linkwise.algorithms.innovations import factored
from linkwise.algorithms.kinematics import jacobian_dot_qd
from linkwise.algorithms.rates import at_rest, joint_of, move
from linkwise.algorithms.rnea import unbiased
from linkwise.algorithms.tied import tied, with_ties
from linkwise.algorithms.wrenches import needed
from linkwise.model.tree import BASE, Frame, Tree
from linkwise.spatial import Scalar, Vector
from linkwise.sweep import base_to_tip, each_link, joint_states, of_link

# (tree, q, qd, tau, external) -> each link's λ and joint acceleration
States = Callable[..., list[Acceleration]]


def bias_first(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External = ()
) -> list[Acceleration]:
    """FD1 and FD2: the bias is taken off the torques."""
    left = unbiased(tree, q, qd, tau, external)
    return factored(tree, joint_states(tree, q)).solved(left)


def bias_filtered(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External = ()
) -> list[Acceleration]:
    """FD3: the force each link needs when no joint accelerates is filtered with the torques."""
    q_, qd_, tau_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(tau)
    still = tree.per_link_v([0.0] * tree.nv)
    motions = base_to_tip(tree, move, at_rest(tree.base_acceleration), q_, qd_, still)
    forces = each_link(tree, needed, motions, external_forces(tree, q, external))
    driven = tree.gather(each_link(tree, drive, tau_, qd_))
    return factored(tree, each_link(tree, joint_of, motions)).solved(driven, forces)


def _dynamics(states: States) -> Callable[..., list[Scalar]]:
    """Joint accelerations."""

    def alone(tree: Tree, *state: Vector) -> list[Scalar]:
        return joint_accelerations(tree, states(tree, *state))

    return with_ties(alone)


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


fd1 = _dynamics(bias_first)  # FD2's joint accelerations are the same (4.22b)
fd3 = _dynamics(bias_filtered)
fd2_tip = _tip(bias_first)
fd3_tip = _tip(bias_filtered)  # FD3 changed as FD2 changes FD1
