"""Schur complements along a rolled chain: A is factored block by block, in one loop.

A has a block for each joint, coupled to those of the joints before and after it
(algorithms/interbody.py). All blocks have the size of the largest, with ones on what is left of
the diagonal. A step eliminates one block k, whatever the order is (algorithms/orders.py): with the
blocks l and r that are beside it by then, the nearest toward the base and toward the tip,

    A_kk = L d Lᵀ,   Z_l = L⁻¹ A_kl,   Z_r = L⁻¹ A_rkᵀ
    A_ll -= Z_lᵀ d⁻¹ Z_l,   A_rr -= Z_rᵀ d⁻¹ Z_r,   A_rl = -Z_rᵀ d⁻¹ Z_l

so that l and r are neighbours after it. One more block, of zeros, is beside the first and the last.
Steps of one round of cyclic reduction do not touch one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.algorithms import dense, ldl
from linkwise.algorithms.interbody import powers, solved, system
from linkwise.algorithms.mobility import Mobility, mobility_of
from linkwise.algorithms.orders import Order, one_by_one
from linkwise.algorithms.pushes import JointWrenches, wrenches
from linkwise.algorithms.schur_inverses import response
from linkwise.model.tree import Link
from linkwise.spatial import Force, Matrix, Sym3, Vec3
from linkwise.sweep import each_link, of_link
from linkwise.trace import expr
from linkwise.trace.expr import Expr
from linkwise.trace.kept import Element, Stored, filled, passed, settled, traced
from linkwise.trace.rolled import Step, loop
from linkwise.trace.rolledtree import PerLink, Place, RolledTree, Visit

BLOCK, INNER, OUTER = "block of step", "inner of step", "outer of step"  # k, l, r
Block = Matrix


class Known(NamedTuple):
    """What a joint's block needs of the link before: its mobility, what its joint withstands."""

    mobility: Mobility
    hold: tuple[Force, ...]


def coupled(
    link: Link, parent: Known, p: JointWrenches, own: Mobility, size: int
) -> tuple[Known, Block, Block]:
    """What the next link needs, A_ii, and A_ip with the joint p of the link before."""
    missing = size - len(p.hold)
    hold = (*p.hold, *[Force.zero()] * missing)
    back = [p.J.X.force_back(f) * -1.0 for f in hold]
    pushed = [parent.mobility @ f for f in back]
    diagonal = dense.plus(powers(hold, [own @ f for f in hold]), powers(back, pushed))
    for k, more in enumerate((*p.rotors, *[1.0] * missing)):
        diagonal[k][k] = diagonal[k][k] + more
    return Known(own, hold), diagonal, dense.transpose(powers(parent.hold, pushed))


class Rows:
    """Rows of scratch, one per block and one of zeros after the last, each a matrix."""

    def __init__(self, tree: RolledTree, rows: int, columns: int, half: bool = False) -> None:
        self.at = {
            (a, b): k
            for k, (a, b) in enumerate(
                (a, b) for a in range(rows) for b in range(columns) if not half or b <= a
            )
        }
        self.half, self.width, self.shape = half, len(self.at), (rows, columns)
        self.last = tree.n_links * self.width
        self.name = tree.room(self.last + self.width, self.width)
        tree.once(self._cleared)

    def _cleared(self, step: Step) -> list[Expr]:
        for k in range(self.width):
            step.write(self.name, 0.0, self.last + k)
        return []

    def read(self, step: Step, places: str) -> Block:
        """The matrix of a block."""

        def entry(a: int, b: int) -> Expr:
            k = self.at[(a, b) if (a, b) in self.at else (b, a)]
            return step.read(self.name, k, self.width, places)

        rows, columns = self.shape
        return [[entry(a, b) for b in range(columns)] for a in range(rows)]

    def write(self, step: Step, matrix: Block, places: str, add: bool = False) -> None:
        """Write the matrix of a block, or add to it."""
        for (a, b), k in self.at.items():
            step.write(self.name, matrix[a][b], k, self.width, places, add=add)


class Factors(NamedTuple):
    """L and d⁻¹ of each block, and Z beside it, inward and outward."""

    L: Rows
    inner: Rows
    outer: Rows

    def read(self, step: Step) -> tuple[Block, list[Any], Block, Block]:
        """Those of a step's block."""
        L = self.L.read(step, BLOCK)
        inv_d = [row[k] for k, row in enumerate(L)]
        lower = [[*row[:k], 1.0, *[0.0] * (len(L) - k - 1)] for k, row in enumerate(L)]
        return lower, inv_d, self.inner.read(step, BLOCK), self.outer.read(step, BLOCK)


class RolledSystem(NamedTuple):
    """The joints, what each link's inertia leaves them, and the factors of A."""

    tree: RolledTree
    joints: Any  # of every link
    mobilities: Any
    size: int
    factors: Factors


@system.register
def _(tree: RolledTree, q: Any, order: Order, without: int | None = None) -> Any:
    joints: Any = each_link(tree, wrenches, tree.per_link_q(q))
    own: Any = each_link(tree, mobility_of)
    size = max(len(p.hold) for p in traced(tree, tree.all, joints.at).values())
    tree.lists |= dict(zip((BLOCK, INNER, OUTER), steps(tree.n_links, order), strict=True))
    diagonal, inner, outer = (
        Rows(tree, size, size, half=True),
        *(Rows(tree, size, size) for _ in "lr"),
    )
    _form(tree, joints, own, diagonal, inner)
    factors = Factors(diagonal, inner, outer)
    loop(tree.graph, tree.n_links, [], lambda step, _: _eliminated(step, factors))
    return RolledSystem(tree, joints, own, size, factors)


def steps(n: int, order: Order) -> tuple[NDArray[np.int64], ...]:
    """Of each step: the block it eliminates, and those beside it; n where there is none."""
    left = np.arange(n)
    if order is one_by_one:  # always the last
        return left[::-1], np.where(left > 0, left - 1, n)[::-1], np.full(n, n)
    rounds = []
    while len(left):
        taken = np.arange(len(left) - 1, -1, -2)
        beside = np.concatenate([[n], left, [n]])
        rounds.append(np.stack([left[taken], beside[taken], beside[taken + 2]]))
        left = np.delete(left, taken)
    return tuple(np.concatenate(rounds, axis=1))


def _form(tree: RolledTree, joints: PerLink, own: PerLink, diagonal: Rows, inner: Rows) -> None:
    """Write the blocks of A."""
    size = diagonal.shape[0]
    nothing = Mobility(0.0, Vec3.zero(), Sym3.zero())
    base = Known(nothing, (Force.zero(),) * size)

    def blocks(visit: Visit, parent: Any) -> tuple[Known, Block, Block]:
        return coupled(visit.link, parent, joints.at(visit), own.at(visit), size)

    def known(parent: Any) -> list[Known]:
        return [x[0] for x in traced(tree, tree.all, lambda v: blocks(v, parent)).values()]

    template = settled(tree, base, known)

    def body(visit: Visit, carried: list[Expr]) -> Sequence[Expr]:
        state, A, beside = blocks(visit, filled(template, carried))
        diagonal.write(visit.step, A, "")
        inner.write(visit.step, beside, "")
        return passed(tree.graph, template, state)

    tree.walk(tree.all, passed(tree.graph, template, base), body)


def _eliminated(step: Step, f: Factors) -> list[Expr]:
    """Eliminate the block of a step."""
    A, inner = f.L.read(step, BLOCK), f.inner.read(step, BLOCK)
    outer = dense.transpose(f.inner.read(step, OUTER))
    L, inv_d = ldl.factor(A, [row[k] for k, row in enumerate(A)])
    Z, Y = ldl.forward(L, inner), ldl.forward(L, outer)
    packed = [[*row[:k], inv_d[k], *row[k + 1 :]] for k, row in enumerate(L)]
    f.L.write(step, packed, BLOCK)
    f.inner.write(step, Z, BLOCK)
    f.outer.write(step, Y, BLOCK)
    f.L.write(step, _minus(dense.square(Z, inv_d)), INNER, add=True)
    f.L.write(step, _minus(dense.square(Y, inv_d)), OUTER, add=True)
    f.inner.write(step, _minus(dense.mixed(Y, inv_d, Z)), OUTER)
    return []


def _minus(A: Block) -> Block:
    return [[-x for x in row] for row in A]


def _reduced(s: RolledSystem, b: PerLink, columns: int) -> tuple[Rows, list[Expr]]:
    """``y = L⁻¹ b``, and ``yᵀ d⁻¹ y`` by rows."""
    y = Rows(s.tree, s.size, columns)

    def given(visit: Visit, _: list[Expr]) -> list[Expr]:
        own = b.at(visit)
        y.write(visit.step, [*own, *dense.zero(s.size - len(own), columns)], "")
        return []

    def step(step: Step, total: list[Expr]) -> list[Any]:
        L, inv_d, Z, Y = s.factors.read(step)
        own = ldl.forward(L, y.read(step, BLOCK))
        y.write(step, own, BLOCK)
        y.write(step, _minus(dense.mixed(Z, inv_d, own)), INNER, add=True)
        y.write(step, _minus(dense.mixed(Y, inv_d, own)), OUTER, add=True)
        more = [x for row in dense.square(own, inv_d) for x in row]
        return [a + x for a, x in zip(total, more, strict=True)]

    s.tree.walk(s.tree.all, [], given)
    return y, loop(s.tree.graph, s.tree.n_links, [0.0] * columns**2, step)


@solved.register
def _(s: RolledSystem, b: Any) -> Any:
    y, _ = _reduced(s, b, 1)
    x = Rows(s.tree, s.size, 1)

    def step(step: Step, _: list[Expr]) -> list[Expr]:
        L, inv_d, Z, Y = s.factors.read(step)
        rest = dense.minus(y.read(step, BLOCK), dense.times(Z, x.read(step, INNER)))
        rest = dense.minus(rest, dense.times(Y, x.read(step, OUTER)))
        x.write(step, ldl.backward(L, dense.scaled(rest, inv_d)), BLOCK)
        return []

    back = expr.Order(s.tree.n_links - 1, -1)
    loop(s.tree.graph, s.tree.n_links, [], step, order=back)
    sizes = {k: len(p.hold) for k, p in traced(s.tree, s.tree.all, s.joints.at).items()}
    records = {
        kind: [Element(Place(x.name, k, s.size)) for k in range(size)]
        for kind, size in sizes.items()
    }
    return Stored(s.tree.all, records)


class _Loads(PerLink):
    """``E``: what the joint of a loaded link, and that of the next, feel of the loads."""

    def __init__(self, s: RolledSystem, link: int, motions: Sequence[Any]) -> None:
        self._joints, self._motions = s.joints, motions
        self._marks = s.tree.mark(link), s.tree.mark(link + 1)

    def at(self, visit: Visit) -> Block:
        """The link's own."""
        p = self._joints.at(visit)
        here, after = map(visit.read, self._marks)
        back = [p.J.X.force_back(f) * -1.0 for f in p.hold]
        own, next_ = powers(p.hold, self._motions), powers(back, self._motions)
        return [
            [here * x + after * y for x, y in zip(*rows, strict=True)]
            for rows in zip(own, next_, strict=True)
        ]


@response.register
def _(s: RolledSystem, loads: Any) -> Block:
    ((link, forces),) = loads.items()
    inverse = of_link(s.tree, link, s.mobilities)
    motions = [inverse @ f for f in forces]
    size = len(forces)
    _, numbers = _reduced(s, _Loads(s, link, motions), size)
    form = [numbers[k * size : (k + 1) * size] for k in range(size)]
    return dense.minus(dense.mirrored(powers(forces, motions)), form)
