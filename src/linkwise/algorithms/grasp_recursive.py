"""Arms that hold an object, by the object's balance.

    f = -Λ (free + Wᵀ a),    Λ = Ω⁻¹ of each robot,    (M_c + Σ W Λ Wᵀ) a = -b_c - Σ W Λ free

[Rodriguez and Kreutz, Part II, reconstructed]. Each robot by itself, then the object, and back:

    tip -> base   handles      the arms, were they free of the object (grasp_arms.py)
    tip -> base   Ω, free      of each robot at its contacts: accelerations per force, and without
    object        a            6 equations: its inertia, and that of the arms felt through contacts
    base -> tip   qdd          the correction by the contact forces f

The cost is that of the arms' links, and of the directions of one robot at a time: they do not meet
those of another. Ω needs an inverse: every robot must be able to move in all directions that its
contacts hold. States in which it cannot are singular, and the closed loops of the whole
(grasp_dynamics.py) are for them; robots that never can are refused (model/forest.py).

W has the wrenches of unit contact forces on the object; rows of Wᵀ a and of free are accelerations
along what contacts hold, gravity hidden in both.
"""

from __future__ import annotations

from linkwise.algorithms.closed_dynamics import base_wrenches
from linkwise.algorithms.closure_rates import products
from linkwise.algorithms.closures import seam
from linkwise.algorithms.external import External, external_forces
from linkwise.algorithms.grasp_arms import arms_of, corrected, pushes
from linkwise.algorithms.grasp_balance import balance
from linkwise.algorithms.grasp_outcome import Outcome, object_acceleration, object_body, on_object
from linkwise.algorithms.rates import STILL, turn
from linkwise.model.forest import arms_alone
from linkwise.model.tree import Tree
from linkwise.spatial import Motion, Vec3, Vector
from linkwise.sweep import base_to_tip, of_link


def recursive(tree: Tree, q: Vector, qd: Vector, tau: Vector, external: External = ()) -> Outcome:
    """Joint accelerations, the object's acceleration, and forces of the contacts."""
    held = tree.held
    assert held is not None
    arms, link = arms_alone(tree), held.frame.link
    contacts = [seam(tree, q, x) for x in held.contacts]
    moving = base_to_tip(tree, turn, STILL, tree.per_link_q(q), tree.per_link_v(qd))
    known = products(tree, q, qd, contacts, moving)
    nq, nv = arms.nq, arms.nv
    on_arms = [x for x in external if not x[0].of_object]
    found = arms_of(arms, q[:nq], qd[:nv], tau[:nv], known, pushes(contacts), on_arms)
    m, body = of_link(tree, link, moving), object_body(tree)
    W = [f for x in contacts for f in x.on_link_b()]
    on_it = [x for x in external if x[0].of_object]
    pushed = list(of_link(tree, link, external_forces(tree, q, on_it)))
    push = [x + y for x, y in zip(pushed, tau[nv:] or [0.0] * 6, strict=True)]
    a, f = balance(tree, found.sums, W, body, m.W, push)
    qdd = corrected(arms, found, f)
    if held.carrier is None:  # the object's joint: what is left of its acceleration
        rest = a - m.J.X.motion(Motion(Vec3.zero(), tree.base_acceleration)) - m.c
        qdd = [*qdd, *rest]
    there = object_acceleration(tree, q, held.frame, m.w, a)
    return Outcome(qdd, there, on_object(base_wrenches(tree, q, contacts, f)))
