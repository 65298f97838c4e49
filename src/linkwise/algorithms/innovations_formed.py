"""The innovations factors as matrices, and the inverse of the mass matrix made of them.

    F = 1 + HΦL,      F⁻¹ = 1 - HΨL,      M⁻¹ = F⁻ᵀ D⁻¹ F⁻¹

[Rodriguez and Kreutz, Part I]; the sweeps that give the gains are those of ``innovations.py``:

    each pair   z   the gain of a column carried inward by φ (or ψ); H z at each ancestor

A gain first meets the columns of its own joint that come before its own.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms import dense, ltl
from linkwise.algorithms.external import External
from linkwise.algorithms.innovations import Factored, Gain, factored
from linkwise.algorithms.tied import tied
from linkwise.model.joints import JointState
from linkwise.model.tree import Link, Tree
from linkwise.spatial import Force, Matrix, Scalar, Vector
from linkwise.sweep import Body, each_link, each_pair


class Way(NamedTuple):
    """A force on its way to the base; how many columns of the joint it has reached lie ahead."""

    z: Force
    ahead: int | None = None  # None: all of them


def filtered(way: Way, J: JointState, gains: list[Gain]) -> tuple[Force, list[Scalar]]:
    """``z - G ε`` with ``ε = H z``, column by column, the last one ahead first; and ε."""
    z, epsilons = way.z, [0.0] * len(J.S)
    for k in reversed(range(len(J.S))[: way.ahead]):
        epsilons[k] = J.S[k].dot(z)
        z = z - gains[k].G * epsilons[k]
    return z, epsilons


def carry_psi(_link: Link, ways: list[Way], J: JointState, gains: list[Gain]) -> list[Way]:
    """ψ: forces past an articulated joint, at the parent."""
    return [Way(J.X.force_back(filtered(way, J, gains)[0])) for way in ways]


def meet_psi(_link: Link, ways: list[Way], J: JointState, gains: list[Gain]) -> Matrix:
    """``-H z``: a column per force."""
    rows = [[-e for e in filtered(way, J, gains)[1]] for way in ways]
    return dense.transpose(rows)


def carry_phi(_link: Link, ways: list[Way], J: JointState, _gains: list[Gain]) -> list[Way]:
    """φ: the same forces, at the parent."""
    return [Way(J.X.force_back(way.z)) for way in ways]


def meet_phi(_link: Link, ways: list[Way], J: JointState, _gains: list[Gain]) -> Matrix:
    """``H z``: a column per force."""
    pairs = [(way.z, range(len(J.S))[: way.ahead]) for way in ways]
    return [[S.dot(z) if k in ahead else 0.0 for z, ahead in pairs] for k, S in enumerate(J.S)]


def starts(_link: Link, gains: list[Gain]) -> list[Way]:
    """The gain of each column, with the columns before it ahead."""
    return [Way(gain.G, k) for k, gain in enumerate(gains)]


def _formed(f: Factored, carry: Body, meet: Body) -> Matrix:
    """The unit matrix, and the entries that every gain gives on its way to the base."""
    begin = each_link(f.tree, starts, f.gains)
    pairs = each_pair(f.tree, carry, meet, begin, f.J, f.gains)
    out = f.tree.gather_matrix(pairs)
    for k, row in enumerate(out):
        row[k] = 1.0
    return out


def factor(tree: Tree, q: Vector) -> Matrix:
    """``F = 1 + HΦL``."""
    return _formed(factored(tree, q), carry_phi, meet_phi)


def factor_inverse(tree: Tree, q: Vector) -> Matrix:
    """``F⁻¹ = 1 - HΨL``."""
    return _formed(factored(tree, q), carry_psi, meet_psi)


def _inverse(tree: Tree, q: Vector) -> Matrix:
    """``M⁻¹ = F⁻ᵀ D⁻¹ F⁻¹``: two columns of F⁻¹ meet only at their common ancestors."""
    f = factored(tree, q)
    W = _formed(f, carry_psi, meet_psi)
    inv_d = tree.gather([[gain.inv_d for gain in gains] for gains in f.gains])
    n, parent = range(tree.nv), tree.dof_parent
    above = [[j, *ltl.ancestors(parent, j)] for j in n]
    scaled = [{m: W[m][j] * inv_d[m] for m in above[j]} for j in n]
    out: Matrix = [[0.0] * tree.nv for _ in n]
    for i in n:
        for j in range(i + 1):
            shared: Scalar = 0.0
            for m in above[j]:
                if m in scaled[i]:
                    shared = shared + W[m][j] * scaled[i][m]
            out[i][j] = out[j][i] = shared
    return out


def _times_inverse(
    tree: Tree, q: Vector, _qd: Vector, rhs: Vector, _external: External
) -> list[Scalar]:
    return [dense.dot(row, rhs) for row in _inverse(tree, q)]


def mass_matrix_inverse(tree: Tree, q: Vector) -> Matrix:
    """``M⁻¹`` from the factors; ties between joints are taken off after."""
    if not tree.coupled:
        return _inverse(tree, q)
    n, still = range(tree.nv), [0.0] * tree.nv
    unit = dense.unit(tree.nv)
    columns = [tied(tree, _times_inverse, q, still, e, ()) for e in unit]
    return [[columns[min(i, j)][max(i, j)] for j in n] for i in n]
