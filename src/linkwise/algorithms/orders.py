"""Orders in which the blocks of a sparse symmetric matrix are eliminated (blocks.py).

In the order of a chain, elimination is block LDLᵀ of a block-tridiagonal matrix; with every other
block first, and again with every other one of those that are left, it is block cyclic reduction:
the blocks of one round do not touch one another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from linkwise.algorithms.blocks import Matrix
from linkwise.algorithms.mobility import invertible
from linkwise.model.tree import Tree

Order = Callable[[Matrix], list[int]]


def one_by_one(A: Matrix) -> list[int]:
    """From the last block to the first: on a tree only siblings fill in."""
    return sorted((i for i, j in A if i == j), reverse=True)


def every_other(A: Matrix) -> list[int]:
    """Rounds of blocks that do not touch: log2 n rounds for a chain of n."""
    near: Mapping[int, set[int]] = {i: set() for i in one_by_one(A)}
    for i, j in A:
        if i != j:
            near[i].add(j)
            near[j].add(i)
    order: list[int] = []
    while len(order) < len(near):
        touched: set[int] = set(order)
        for k in near:
            if k not in touched:
                order.append(k)
                touched |= {k} | near[k]
                for j in near[k]:
                    near[j].update(near[k] - {j})
                    near[j].discard(k)
    return order


def no_chain(tree: Tree) -> str:
    """For loops over the links, in which A has a block before each other block and one after."""
    if tree.coupled or not tree.serial:
        return "links branch or joints follow others, and its loops are for chains"
    if tree.n_links and not invertible(tree.links[0].inertia):
        return "the first link lacks inertia that its joint never moves, which its loops do not add"
    return "" if tree.geared_alike else "some joints of a kind have rotors and others have none"
