"""Forward dynamics by conjugate gradients, without a mass matrix.

    M qdd = tau - bias,   M p by the two sweeps of ``mass_product.py``

[Fijany and Scheid]. The paper forms the momentum of every link in every iteration (its g2 and g3).
Here the momentum of all that a joint moves is formed once, by composite bodies [64]-[67], which
leaves an iteration two thirds of the operations. ``ccg`` is the classical iteration; ``pcg`` scales
by the diagonal of M (a block per joint of several columns), which is then at hand. Each state stops
when its residual, relative to the right-hand side, is below ``tolerance``. That residual is updated
from step to step and drifts from the true one, which is computed at the end.

The iteration of a large robot runs on arrays, and calls compiled loops over the links for ``M p``
and for the scaling (``engine/iterative.py``).
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms.dense import dot
from linkwise.algorithms.external import External
from linkwise.algorithms.mass_product import Numbers, diagonal_scaling, fixed_links, times_mass
from linkwise.algorithms.rnea import unbiased
from linkwise.model.tree import Tree
from linkwise.spatial import Scalar, Vector, quotient, repeat

Times = Callable[[Vector], Numbers]


def iterate(
    times: Times,
    scale: Times | None,
    b: Vector,
    start: Vector,
    tolerance: Scalar,
    limit: Scalar,
    dot: Callable[[Vector, Vector], Scalar] = dot,
) -> Numbers:
    """Solve ``M x = b`` from ``start``; returns x, iterations, and (true residual / b)².

    ``times(p)`` is M p, ``scale(r)`` the preconditioner. A vector is a list of scalars; with its
    own inner product, that of one array (states, joints) does as well.
    """
    n, scaled = len(start), scale or list[Scalar]
    enough = dot(b, b) * (tolerance * tolerance)
    r = [x - y for x, y in zip(b, times(list(start)), strict=True)]
    z = scaled(r)

    def step(state: list[Scalar]) -> tuple[Numbers, Scalar]:
        x, r, p, (rho, count) = state[:n], state[n : 2 * n], state[2 * n : 3 * n], state[3 * n :]
        left = dot(r, r) if scale else rho
        Ap = times(p)
        alpha = quotient(rho, dot(p, Ap))  # a state that is done keeps what it has
        new_r = [a - alpha * c for a, c in zip(r, Ap, strict=True)]
        new_z = scaled(new_r)
        new_rho = dot(new_z, new_r)
        beta = quotient(new_rho, rho)
        new_x = [a + alpha * c for a, c in zip(x, p, strict=True)]
        new_p = [a + beta * c for a, c in zip(new_z, p, strict=True)]
        return [*new_x, *new_r, *new_p, new_rho, count + 1.0], left - enough

    end = repeat(step, [*start, *r, *z, dot(z, r), 0.0], limit)
    x = end[:n]
    left = [u - v for u, v in zip(b, times(x), strict=True)]
    return [*x, end[-1], quotient(dot(left, left), dot(b, b))]


def _solver(scaled: bool) -> Callable[..., Numbers]:
    def solve(
        tree: Tree,
        q: Vector,
        qd: Vector,
        tau: Vector,
        qdd0: Vector,
        *,
        external: External = (),
        tolerance: Scalar = 1e-10,
        limit: Scalar | None = None,
    ) -> Numbers:
        """Joint accelerations, iterations, and squared relative residual."""
        b = unbiased(tree, q, qd, tau, external)
        most = 4 * tree.nv + 20 if limit is None else limit
        links = fixed_links(tree, q)
        scale = diagonal_scaling(tree, links) if scaled else None
        return iterate(lambda p: times_mass(tree, links, p), scale, b, qdd0, tolerance, most)

    return solve


ccg, pcg = _solver(scaled=False), _solver(scaled=True)
