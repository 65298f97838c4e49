"""Wrenches of closed loops on their way to the base, past joints that are free to move.

    ε = Sᵀ K,   K <- X* (K - U D⁻¹ ε)                              for each direction of a loop

K starts as the wrench of a direction on its link, and is at the same time the functional that takes
the link's acceleration to what is held. With the joint eliminated [RBDA Table 7.1],
``a = a' + S D⁻¹ (u - Uᵀ a')`` where ``a' = X a_parent + c``, so

    Kᵀ a = (K - U D⁻¹ ε)ᵀ a' + ε D⁻¹ u

which is the recursion, and the term that the joint adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from linkwise.algorithms.aba import Handle
from linkwise.algorithms.closures import Seam
from linkwise.algorithms.rates import Velocity
from linkwise.model.tree import Link
from linkwise.spatial import Force, Scalar, total


class Bundle(dict[int, Force]):
    """A wrench for each of some directions, by their numbers, and its size: squares of moment and
    force, summed over the ends of a direction whose wrenches may cancel.
    """

    def __init__(
        self,
        wrenches: Iterable[tuple[int, Force]] = (),
        sizes: dict[int, tuple[Scalar, Scalar]] | None = None,
    ) -> None:
        super().__init__(wrenches)
        if sizes is None:
            sizes = {k: (K.ang.dot(K.ang), K.lin.dot(K.lin)) for k, K in self.items()}
        self.sizes = sizes

    def __add__(self, o: Bundle) -> Bundle:
        both = [k for k in self if k in o]
        found = {**self, **o, **{k: self[k] + o[k] for k in both}}
        a, b = self.sizes, o.sizes
        summed = {k: (a[k][0] + b[k][0], a[k][1] + b[k][1]) for k in both}
        return Bundle(found.items(), {**a, **b, **summed})


class Felt(NamedTuple):
    """What a joint feels of each direction that passes it."""

    epsilons: dict[int, list[Scalar]]  # by column
    size: dict[int, Scalar]  # what ε D⁻¹ ε could be at most
    rest: Bundle  # K once the joint is eliminated


def pass_on(
    _link: Link, children: Bundle, own: Bundle, m: Velocity, handles: list[Handle]
) -> tuple[Felt, Bundle]:
    """Eliminate the joint from the wrenches of all directions."""
    felt, arrived = Felt({}, {}, Bundle()), children + own
    for k, K in arrived.items():
        felt.epsilons[k], felt.size[k] = [], _most(*arrived.sizes[k], m, handles)
        for column, handle in zip(m.J.S, handles, strict=True):
            epsilon = column.dot(K)
            K = K - (handle.U * handle.inv_d) * epsilon
            felt.epsilons[k].append(epsilon)
        felt.rest[k] = K
    arm = m.J.X.r.dot(m.J.X.r)
    sizes = {k: (moment + arm * force, force) for k, (moment, force) in arrived.sizes.items()}
    back = ((k, m.J.X.force_back(K)) for k, K in felt.rest.items())
    return felt, Bundle(back, sizes)


def _most(moment: Scalar, force: Scalar, m: Velocity, handles: list[Handle]) -> Scalar:
    """``|K|² |S|² D⁻¹``: angular and linear parts apart, since their units differ."""
    turning = total(s.ang.dot(s.ang) * h.inv_d for s, h in zip(m.J.S, handles, strict=True))
    sliding = total(s.lin.dot(s.lin) * h.inv_d for s, h in zip(m.J.S, handles, strict=True))
    return moment * turning + force * sliding


def wrenches(closed: Sequence[Seam]) -> list[tuple[int, Bundle]]:
    """The unit wrenches of all directions, and their reactions, by link."""
    found, first = [], 0
    for seam in closed:
        a, b = seam.closure.a.link, seam.closure.b.link
        found.append((a, Bundle(enumerate(seam.on_link_a(), first))))
        found.append((b, Bundle(enumerate(seam.on_link_b(), first))))
        first += seam.closure.rank
    return found
