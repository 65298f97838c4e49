"""Operations of ours on general arms, part by part, beside what papers claim (study/claims.py).

Every number is that of a traced program, the one that runs or a part of it as a program of its own;
nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms import (
    FUNCTIONS,
    Algorithm,
    augmented,
    christoffel,
    mass_product,
    mixed,
    poses,
)
from linkwise.model.build import build
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar
from linkwise.study.claims import CLAIMS, LENGTHS, Claim
from linkwise.study.generic import generic_chain
from linkwise.trace.program import OperationCount, count_operations
from linkwise.trace.tracer import Task, trace

Pair = tuple[float, float]  # multiplications, additions
_Q = (("q", "nq"),)


def diagonal(tree: Tree, q: Sequence[Scalar]) -> Any:
    """Only the blocks on the diagonal of M, as the scaling of conjugate gradients needs them."""
    return [link.block for link in mass_product.fixed_links(tree, q)]


def kinematics(tree: Tree, q: Sequence[Scalar]) -> Any:
    """Axes and origins alone, which GDAHJ's counts leave out."""
    return [[x for row in at.R.rows for x in row] + list(at.p) for at in poses.root_poses(tree, q)]


def inertia_and_power(tree: Tree, q: Sequence[Scalar]) -> Any:
    """Kang's I* and P*."""
    return [mixed.mass_matrix(tree, q), augmented.augmented(tree, q)]


def inertia_and_symbols(tree: Tree, q: Sequence[Scalar]) -> Any:
    """Mass matrix and Christoffel's symbols of an arm: a flux holds the momentum that M needs."""
    fluxes = christoffel.fluxes(tree, q)
    symbols = (entry for chain, B in fluxes for entry in christoffel.symbols_of(chain, B))
    M = [[0.0] * tree.nv for _ in range(tree.nv)]
    for ((own,),), ((*inner, k), B) in zip(diagonal(tree, q), fluxes, strict=True):
        M[k.number][k.number] = own
        for i in inner:
            M[i.number][k.number] = M[k.number][i.number] = i.S.dot(B.momentum())
    return [M, tree.gather_tensor(symbols)]


def _blocks(tree: Tree) -> int:
    return sum(link.joint.nv**2 for link in tree.links)


def _matrix_and_tensor(tree: Tree) -> int:
    return tree.nv**2 + tree.nv**3


PARTS = {  # parts of algorithms that are no methods of their own
    name: Algorithm(name, "part", driver, _Q, (numbers,), regrouped)
    for name, driver, numbers, regrouped in (
        ("diagonal", diagonal, _blocks, True),
        ("kinematics", kinematics, lambda tree: 12 * tree.n_links, False),
        ("I* and P*", inertia_and_power, _matrix_and_tensor, False),
        ("M and symbols", inertia_and_symbols, _matrix_and_tensor, True),
    )
}


def count(algorithm: Algorithm, tree: Tree) -> OperationCount:
    """Operations of an algorithm, or of a part."""
    return count_operations(trace(Task(algorithm), tree))


def _method(function: str, method: str) -> Callable[[Tree], OperationCount]:
    return lambda tree: count(FUNCTIONS[function][method], tree)


def _part(name: str) -> Callable[[Tree], OperationCount]:
    return lambda tree: count(PARTS[name], tree)


def _iterated(method: str) -> Callable[[Tree], OperationCount]:
    whole = _method("forward_dynamics", method)
    return lambda tree: whole(tree).iterated(tree.nv)


def _one_iteration(tree: Tree) -> OperationCount:
    body = count(FUNCTIONS["forward_dynamics"]["ccg"], tree).iteration
    assert body is not None
    return body


def _without_kinematics(tree: Tree) -> OperationCount:
    return count(FUNCTIONS["mass_matrix"]["gdahj"], tree) - count(PARTS["kinematics"], tree)


@dataclass(frozen=True)
class Ours:
    """Our part of a comparison: in words, and counted."""

    words: str
    counted: Callable[[Tree], OperationCount]


OURS = {
    "ccg iteration": Ours("`forward_dynamics[ccg]`, body of the loop", _one_iteration),
    "ccg": Ours("`forward_dynamics[ccg]`, n iterations", _iterated("ccg")),
    "pcg": Ours("`forward_dynamics[pcg]`, n iterations", _iterated("pcg")),
    "diagonal": Ours("diagonal of M in `pcg`", _part("diagonal")),
    "gdahj": Ours("`mass_matrix[gdahj]` less kinematics", _without_kinematics),
    "mixed": Ours("`mass_matrix[mixed]`", _method("mass_matrix", "mixed")),
    "crba": Ours("`mass_matrix[crba]`", _method("mass_matrix", "crba")),
    "rnea": Ours("`inverse_dynamics[rnea]`", _method("inverse_dynamics", "rnea")),
    "aba": Ours("`forward_dynamics[aba]`", _method("forward_dynamics", "aba")),
    "I* and P*": Ours("`mass_matrix[mixed]` and `inertial_power[augmented]`", _part("I* and P*")),
    "M and symbols": Ours("`christoffel`, and M from its momenta", _part("M and symbols")),
}


@dataclass(frozen=True)
class Row:
    """A claim and ours at one length: (multiplications, additions)."""

    claim: Claim
    n: int
    printed: Pair
    corrected: Pair
    ours: Pair

    @property
    def ratio(self) -> float:
        """All operations of ours over those of the corrected claim."""
        return sum(self.ours) / sum(self.corrected)

    @property
    def holds(self) -> bool:
        """Whether ours has no more of either."""
        return all(a <= b for a, b in zip(self.ours, self.corrected, strict=True))


def compare(
    lengths: Sequence[int] = LENGTHS, seed: int = 0, kind: str = "revolute"
) -> Iterator[Row]:
    """Every claim at every length, by length."""
    for n in lengths:
        tree = build(generic_chain(n, seed, kind=kind))
        counted: dict[str, Pair] = {}
        for claim in CLAIMS:
            if claim.ours not in counted:
                ours = OURS[claim.ours].counted(tree)
                counted[claim.ours] = ours.multiplications, ours.additions
            yield Row(claim, n, claim.printed.at(n), claim.best.at(n), counted[claim.ours])
