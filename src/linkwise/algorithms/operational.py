"""Operational-space inertia of a frame, and its inverse.

    Λ = (J M⁻¹ Jᵀ)⁻¹,    Λ⁻¹ = J M⁻¹ Jᵀ

    "crba"           Λ⁻¹ = Y D⁻¹ Yᵀ  with  Y = J L⁻¹  from  M = Lᵀ D L, then inverted
    "recursive"      Λ⁻¹ = Σ ε D⁻¹ εᵀ: six unit wrenches at the frame, filtered inward by ψ
                     [Rodriguez and Kreutz; the Ω recursion read from the tip], then inverted
    "schur"          Λ⁻¹ = D - Eᵀ A⁻¹ E [Fijany et al., eq. 43-46], then inverted; A as in forward
                     dynamics, D the mobility of the frame's link on its own
    "schur-direct"   Λ = G - Rᵀ S⁻¹ R [eq. 48-51]: -S is A without the frame's link, G that link's
                     inertia at the frame, R the wrenches of its joints there; no 6x6 is inverted

Λ exists where J has six independent rows. Else -S and Λ⁻¹ are singular, and a pivot says so; with
damping d, ``(Λ⁻¹ + diag(d))⁻¹`` exists all the same, by the methods that form Λ⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms import blocks, dense, interbody, ltl, schur
from linkwise.algorithms.crba import crba
from linkwise.algorithms.external import External
from linkwise.algorithms.grip import grip
from linkwise.algorithms.innovations import factored
from linkwise.algorithms.kinematics import jacobian_columns
from linkwise.algorithms.tied import refuse_followers
from linkwise.model.tree import BASE, Frame, Link, Tree
from linkwise.spatial import Force, Matrix, Scalar, Vector
from linkwise.sweep import along_path, at_links, joint_states

# a full 6x6 matrix is the mass matrix of a six-joint chain
CHAIN_OF_SIX = tuple(range(-1, 5))


def moved_by(link: Link, inner: frozenset[int]) -> frozenset[int]:
    """Degrees of freedom between the base and a link."""
    return inner | {dof for dof, _ in link.dofs}


def too_few_directions(tree: Tree, frame: Frame) -> str:
    """A reason where Λ never exists: fewer than six degrees of freedom move the frame."""
    _, moving = along_path(tree, frame.link, moved_by, frozenset())
    if len(moving) >= 6:
        return ""
    return (
        f"the frame is moved by {len(moving)} joint(s); expected at least 6, else J M⁻¹ Jᵀ has no "
        "inverse (operational_inertia_inverse exists, and damping= gives one)"
    )


def operational_inertia_inverse(
    tree: Tree, q: Vector, *, frame: Frame, axes: str = "base"
) -> Matrix:
    """``J M⁻¹ Jᵀ`` from factors of M."""
    columns = jacobian_columns(tree, q, frame, axes)
    L, inv_d, parent = ltl.factor(crba(tree, q), tree.dof_parent)
    Y = {j: list(column) for j, column in columns.items()}
    for k in reversed(range(tree.nv)):
        for i in ltl.ancestors(parent, k) if k in Y else ():
            known = Y.get(i, [0.0] * 6)
            Y[i] = [y - L[k][i] * z for y, z in zip(known, Y[k], strict=True)]
    out: Matrix = [[0.0] * 6 for _ in range(6)]
    for k, column in Y.items():
        scaled = [y * inv_d[k] for y in column]
        for a in range(6):
            for b in range(a + 1):
                out[a][b] = out[b][a] = out[a][b] + scaled[a] * column[b]
    return out


def recursive_inverse(tree: Tree, q: Vector, *, frame: Frame, axes: str = "base") -> Matrix:
    """``Σ ε D⁻¹ εᵀ`` over the joints between base and frame, from the frame inward."""
    f, pushes = factored(tree, joint_states(tree, q)), grip(tree, q, frame, axes).pushes()
    loads = [at_links(tree, Force.zero(), [(frame.link, push)]) for push in pushes]
    epsilons = [f.filtered([0.0] * tree.nv, load) for load in loads]  # by push, by link
    total = dense.zero(6, 6)
    for own, gains in zip(reversed(dense.transpose(epsilons)), reversed(f.gains), strict=True):
        part = dense.square(dense.transpose(own), [gain.inv_d for gain in gains])
        total = dense.plus(total, part)
    return total


def schur_inverse(tree: Tree, q: Vector, *, frame: Frame, axes: str = "base") -> Matrix:
    """``D - Eᵀ A⁻¹ E`` [46]."""
    if frame.link == BASE:
        return dense.zero(6, 6)
    s = interbody.system(tree, q, blocks.one_by_one)
    return interbody.response(s, {frame.link: grip(tree, q, frame, axes).pushes()})


def schur_direct_inertia(tree: Tree, q: Vector, *, frame: Frame, axes: str = "base") -> Matrix:
    """``G + Rᵀ (-S)⁻¹ R`` [51]."""
    s = interbody.system(tree, q, blocks.one_by_one, without=frame.link)
    at, body = grip(tree, q, frame, axes), tree.links[frame.link].inertia
    G = dense.transpose([list(at.felt(body @ m)) for m in at.motions()])
    R = s.nothing(6) | {j: [list(at.felt(f)) for f in own] for j, own in s.pushes[frame.link]}
    return dense.plus(dense.mirrored(G), blocks.form(s.factors, R, 6))


def dynamics_and_inverse(
    tree: Tree,
    q: Vector,
    qd: Vector,
    tau: Vector,
    *,
    frame: Frame,
    axes: str = "base",
    external: External = (),
) -> list[Scalar]:
    """``qdd``, then ``Λ⁻¹`` by rows: seven right-hand sides of one factorization of A [54, 56]."""
    refuse_followers(tree)
    s = interbody.system(tree, q, blocks.one_by_one)
    qdd, _ = schur.accelerations(s, q, qd, tau, external)
    if frame.link == BASE:
        return [*qdd, *[0.0] * 36]
    inverse = interbody.response(s, {frame.link: grip(tree, q, frame, axes).pushes()})
    return [*qdd, *(x for row in inverse for x in row)]


def _inverted(inverse: Matrix, damping: Vector) -> Matrix:
    """``(Λ⁻¹ + diag(damping))⁻¹``."""
    for k, d in enumerate(damping):
        inverse[k][k] = inverse[k][k] + d
    return ltl.inverse(ltl.factor(inverse, CHAIN_OF_SIX))


def _inertia(inverse: Callable[..., Matrix]) -> Callable[..., Matrix]:
    """``Λ``, rows and columns (angular, linear), from a way to its inverse."""

    def inertia(
        tree: Tree, q: Vector, *, frame: Frame, axes: str = "base", damping: Vector = ()
    ) -> Matrix:
        return _inverted(inverse(tree, q, frame=frame, axes=axes), damping)

    return inertia


operational_inertia = _inertia(operational_inertia_inverse)  # from factors of M


recursive_inertia = _inertia(recursive_inverse)  # from filtered wrenches


schur_inertia = _inertia(schur_inverse)  # from interbody forces
