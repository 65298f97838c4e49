"""The spatial operators of a serial robot at one configuration, as dense arrays.

    M = H φ M φᵀ Hᵀ + R = (1 + HΦL) D (1 + HΦL)ᵀ,      M⁻¹ = (1 - HΨL)ᵀ D⁻¹ (1 - HΨL)

[Rodriguez and Kreutz, Part I; numbers in brackets are its equations]. As in the paper links count
from the tip, so causal operators are lower block-triangular; link k is ``links[n - k]`` of the tree
and its joint's degrees of freedom are rows ``order`` of ours. Spatial vectors are (angular, linear)
at each link's origin in its own axes: φ(k+1, k) takes a force on link k to link k+1, its transpose
takes a motion the other way. Nothing fast is made of these arrays; ``algorithms/innovations.py`` is
the same by sweeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.algorithms.riccati import riccati
from linkwise.model.joints import JointState
from linkwise.model.tree import BASE, Frame, Link, Tree
from linkwise.spatial import ArticulatedInertia, Force, Mat3, Motion, Rotation, Transform, Vec3
from linkwise.sweep import joint_states, tip_to_base

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Operators:
    """Every operator of the paper for N links and n degrees of freedom, tip first.

    ``Phi`` and ``Psi`` are the paper's capitals (strictly causal), ``phi`` and ``psi`` its small
    letters (unit diagonal). Its tildes are ``phi - 1`` and ``psi - 1``.
    """

    phi: Array  # (6N, 6N) forces on links outboard -> on each link [3.4]
    Phi: Array  # (6N, 6N) φ S [4.9]
    psi: Array  # (6N, 6N) as φ, across joints that give way [5.1]
    Psi: Array  # (6N, 6N) ψ S [4.10]
    H: Array  # (n, 6N) projection on the joints' columns
    M: Array  # (6N, 6N) inertias of the links, block-diagonal
    P: Array  # (6N, 6N) articulated inertias, block-diagonal [4.5]
    D: Array  # (n, n) H P Hᵀ + R, block-diagonal [4.6, a.1]
    G: Array  # (6N, n) P Hᵀ D⁻¹ [a.2]
    L: Array  # (6N, n) Δφ G [a.12]
    S: Array  # (6N, 6N) shift by one link, toward the base [5.2]
    B: Array  # (6N, 6) force of the tip frame on its surroundings -> on links
    delta_phi: Array  # (6N, 6N) φ(k+1, k), block-diagonal [a.4]
    delta_psi: Array  # (6N, 6N) ψ(k+1, k), block-diagonal [a.5]
    R: Array  # (n, n) rotors: measurement noise in the filter's terms; not in the paper
    order: tuple[int, ...]  # degree of freedom of each row of H

    @property
    def mass_matrix(self) -> Array:
        """``H φ M φᵀ Hᵀ + R`` (n, n), tip first."""
        return np.asarray(self.H @ self.phi @ self.M @ self.phi.T @ self.H.T + self.R)

    @property
    def factor(self) -> Array:
        """``1 + HΦL`` (n, n), lower block-triangular, tip first."""
        return np.asarray(np.eye(len(self.H)) + self.H @ self.Phi @ self.L)

    @property
    def jacobian(self) -> Array:
        """``Bᵀ φᵀ Hᵀ`` (6, n): of the tip frame in its own axes, columns tip first [3.13]."""
        return np.asarray(self.B.T @ self.phi.T @ self.H.T)


def operators(tree: Tree, q: ArrayLike, frame: Frame | None = None) -> Operators:
    """The operators at one configuration (nq); ``frame`` on the last link, its own unless given."""
    _check_serial(tree)
    values = _one_state(tree, q)
    J = joint_states(tree, values.tolist())
    articulated, _ = tip_to_base(tree, _keep, ArticulatedInertia.zero(), J)
    links, n = tree.links[::-1], len(tree.links)
    steps = [_columns(j.X.force_back, Force) for j in J[::-1]]
    P = _diagonal([_matrix(p) for p in articulated[::-1]])
    M = _diagonal([_matrix(link.inertia.articulated()) for link in links])
    H = _diagonal([np.array([list(column) for column in j.S]) for j in J[::-1]])
    R = np.diag([rotor for link in links for rotor in link.armature])
    D = _block_diagonal_part(H @ P @ H.T, links) + R
    G = P @ H.T @ np.linalg.inv(D)
    delta_phi, S = _diagonal(steps), np.kron(np.eye(n, k=-1), np.eye(6))
    L = delta_phi @ G
    delta_psi = delta_phi - L @ H
    phi, psi = _transitions(delta_phi), _transitions(delta_psi)
    order = tuple(link.v_index + k for link in links for k in range(link.joint.nv))
    B = _tip(tree, frame)
    return Operators(
        phi, phi @ S, psi, psi @ S, H, M, P, D, G, L, S, B, delta_phi, delta_psi, R, order
    )


def _check_serial(tree: Tree) -> None:
    for i, link in enumerate(tree.links):
        if link.parent != i - 1:
            parent = "the base" if link.parent == BASE else f"link {tree.links[link.parent].name!r}"
            raise ValueError(
                f"operators: link {link.name!r} hangs from {parent}; expected a serial robot, "
                f"so from {tree.links[i - 1].name!r}"
            )
        if link.follows is not None:
            raise ValueError(
                f"operators: joint {link.joint_name!r} follows "
                f"{tree.links[link.follows.link].joint_name!r}; expected every joint on its own"
            )


def _one_state(tree: Tree, q: ArrayLike) -> Array:
    try:
        values = np.asarray(q, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"operators: q cannot be read as numbers; expected an array ({tree.nq},)"
        ) from None
    if values.shape != (tree.nq,):
        raise ValueError(f"operators: q has shape {values.shape}; expected ({tree.nq},)")
    return values


def _keep(
    link: Link, children: ArticulatedInertia, J: JointState
) -> tuple[ArticulatedInertia, ArticulatedInertia]:
    """The Riccati step, with P itself kept."""
    _, to_parent = riccati(link, children, J)
    return children + link.inertia.articulated(), to_parent


def _columns(move: Callable[[Any], Any], kind: type[Force] | type[Motion]) -> Array:
    """The 6x6 matrix of a linear map of spatial vectors."""
    units = [kind(Vec3(*e[:3]), Vec3(*e[3:])) for e in np.eye(6).tolist()]
    return np.array([list(move(unit)) for unit in units]).T


def _matrix(body: ArticulatedInertia) -> Array:
    return _columns(body.__matmul__, Motion)


def _diagonal(blocks: Sequence[Array]) -> Array:
    rows, columns = (np.cumsum([0, *(b.shape[axis] for b in blocks)]) for axis in (0, 1))
    out = np.zeros((rows[-1], columns[-1]))
    for i, block in enumerate(blocks):
        out[rows[i] : rows[i + 1], columns[i] : columns[i + 1]] = block
    return out


def _block_diagonal_part(A: Array, links: Sequence[Link]) -> Array:
    return np.asarray(A * _diagonal([np.ones((k.joint.nv, k.joint.nv)) for k in links]))


def _transitions(delta: Array) -> Array:
    """``φ(k, j) = φ(k, k-1) ... φ(j+1, j)`` from its steps on the diagonal of ``delta``."""
    n = len(delta) // 6
    steps = [delta[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] for k in range(n)]
    out = np.eye(6 * n)
    for k in range(1, n):
        out[6 * k : 6 * k + 6, : 6 * k] = steps[k - 1] @ out[6 * k - 6 : 6 * k, : 6 * k]
    return out


def _tip(tree: Tree, frame: Frame | None) -> Array:
    """``B``: φ(1, 0) above zeros."""
    last = len(tree.links) - 1
    out = np.zeros((6 * len(tree.links), 6))
    if frame is None:
        out[:6] = np.eye(6)
        return out
    if frame.link != last:
        name = tree.links[last].name
        raise ValueError(f"operators: the frame is not on the last link; expected one of {name!r}")
    turn = Rotation(Mat3(*(Vec3(*row) for row in frame.rotation)).T)
    out[:6] = _columns(Transform(Vec3(*frame.origin), (turn,)).force_back, Force)
    return out
