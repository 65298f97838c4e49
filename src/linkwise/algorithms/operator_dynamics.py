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
from linkwise.algorithms.innovations import Factored, factored
from linkwise.algorithms.rates import at_rest, joint_of, move
from linkwise.algorithms.rnea import unbiased
from linkwise.algorithms.tied import with_ties
from linkwise.algorithms.wrenches import needed
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar, Vector
from linkwise.sweep import base_to_tip, each_link, joint_states

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
    return filtered(tree, q, qd, tau, external)[1]


def filtered(
    tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External
) -> tuple[Factored, list[Acceleration]]:
    """FD3, and the factors it has used."""
    q_, qd_, tau_ = tree.per_link_q(q), tree.per_link_v(qd), tree.per_link_v(tau)
    still = tree.per_link_v([0.0] * tree.nv)
    motions = base_to_tip(tree, move, at_rest(tree.base_acceleration), q_, qd_, still)
    forces = each_link(tree, needed, motions, external_forces(tree, q, external))
    driven = tree.gather(each_link(tree, drive, tau_, qd_))
    factors = factored(tree, each_link(tree, joint_of, motions))
    return factors, factors.solved(driven, forces)


def _dynamics(states: States) -> Callable[..., list[Scalar]]:
    """Joint accelerations."""

    def alone(tree: Tree, *state: Vector) -> list[Scalar]:
        return joint_accelerations(tree, states(tree, *state))

    return with_ties(alone)


fd1 = _dynamics(bias_first)  # FD2's joint accelerations are the same (4.22b)
fd3 = _dynamics(bias_filtered)
