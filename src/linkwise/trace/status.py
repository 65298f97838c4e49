"""Status flags of a state: what is wrong with it, computed in addition to its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntFlag
from numbers import Integral

from linkwise.model.joints import Free, Spherical
from linkwise.model.tree import Tree
from linkwise.spatial import RigidInertia, Scalar, Sym3, Vec3
from linkwise.spatial.vec3 import sym_outer
from linkwise.trace.expr import Expr, Graph, reachable, summed
from linkwise.trace.program import Port


class Status(IntFlag):
    """Status flags of a state; 0 if nothing is wrong. ``status=True`` returns them as uint16.

    >>> import linkwise as lw
    >>> _, status = lw.chain(2).bias([[0.1, 0.2], [0.1, float("inf")]], [0.0, 0.0], status=True)
    >>> [lw.Status(x).name for x in status]
    ['OK', 'NOT_FINITE']
    """

    OK = 0
    NOT_FINITE = 1  # an input is NaN or infinite: the row is NaN
    NOT_UNIT = 2  # a quaternion's length is not 1 (it is used as if it were)
    SINGULAR = 4  # the mass matrix, or what is inverted, is singular or indefinite
    NOT_CONVERGED = 8  # an iteration stopped at its limit
    OVERFLOW = 16  # inputs are finite and the result is not
    LIMIT = 32  # of a simulation: a joint passed its limit, which ended the motion of the row
    # of inverse kinematics: a target is no rigid motion, and the row is NaN; of parameters: no
    # rigid body can have such an inertia, and the row is what the equations make of it
    NOT_RIGID = 64
    REDUNDANT = 128  # constraints of closed loops depend on each other here; solved without those
    # of forward dynamics and forces of closed robots and grasps: the state violates their loops
    LOOP_OPEN = 256
    PULLING = 512  # of contacts declared unilateral (`Loop`): a contact pulls

    @classmethod
    def _missing_(cls, value: object) -> Status:
        """Return several flags at once; integers of NumPy (a status array's) count as integers."""
        flags: Status = super()._missing_(int(value) if isinstance(value, Integral) else value)
        return flags

    def __str__(self) -> str:
        """The names of the flags that are set."""
        return self.name or str(int(self))


LOOP_TOLERANCE = 1e-4  # m, rad, m/s, rad/s: by how much a state may violate closed loops
UNIT_TOLERANCE = 1e-6  # how far a quaternion's length may be from 1
PIVOT_TOLERANCE = 64.0  # rounding units beside its scale below which a pivot counts as zero


def status_of(
    graph: Graph,
    tree: Tree,
    ports: Sequence[Port],
    values: Sequence[Sequence[Expr]],
    results: Sequence[Expr],
    turns: Sequence[Expr] = (),
    bodies: Sequence[RigidInertia] = (),
    residual: Sequence[Expr] = (),
    pulling: Sequence[Expr] = (),
) -> Expr:
    """Return the status of a state, whose inputs are ``values``, one for each port.

    ``turns``: for turns that are given otherwise than by joints, 1 where one is not of unit length;
    ``bodies``: those that are inputs; ``residual``: errors of closed loops, of positions and
    velocities; ``pulling``: 1 where a contact pulls.
    """
    given = summed(graph, (not_finite(graph, x) for value in values for x in value))
    pairs = zip(ports, values, strict=True)
    configurations = [value for port, value in pairs if port.configuration]
    off = [x for q in configurations for x in not_units(graph, tree, q)]
    turned = summed(graph, [*off, *turns]) if configurations or turns else None
    result = summed(graph, (not_finite(graph, r) for r in results))
    whole = bits(graph, given, turned, summed(graph, bad_pivots(graph)), result)
    impossible = summed(graph, (flag for body in bodies for flag in not_bodies(graph, body)))
    if bodies:
        finite = 1.0 - _flag(graph, given)
        whole = whole + float(Status.NOT_RIGID) * (finite * _flag(graph, impossible))
    if residual:
        open_ = summed(graph, (graph.node("flag", x * x - LOOP_TOLERANCE**2) for x in residual))
        whole = whole + float(Status.LOOP_OPEN) * (
            (1.0 - _flag(graph, given)) * _flag(graph, open_)
        )
    if pulling:
        pulls = _flag(graph, summed(graph, pulling))
        whole = whole + float(Status.PULLING) * ((1.0 - _flag(graph, given)) * pulls)
    return whole + (1.0 - _flag(graph, given)) * _flags(graph, results)


def _flags(graph: Graph, results: Sequence[Expr]) -> Expr:
    """The bits that algorithms have asked for, of what the results depend on."""
    used = {node.id for node in reachable(results)} if graph.flags else set()
    found: dict[str, list[Expr]] = {}
    for x, bit in dict.fromkeys(graph.flags):
        if x.op == "const" or any(a.id in used for a in (x, *x.args)):
            found.setdefault(bit, []).append(graph.node("flag", x))
    each = (float(Status[bit]) * _flag(graph, summed(graph, xs)) for bit, xs in found.items())
    return summed(graph, each)


def bits(graph: Graph, given: Expr, turned: Expr | None, pivots: Expr, result: Expr) -> Expr:
    """A status from how many numbers are wrong of each sort: inputs and results that are not
    finite, quaternions that are not of unit length, pivots that are not positive.
    """
    lost = _flag(graph, given)
    finite = 1.0 - lost
    found = [(Status.NOT_FINITE, lost)]
    if turned is not None:
        found.append((Status.NOT_UNIT, finite * _flag(graph, turned)))
    singular = finite * _flag(graph, pivots)
    overflow = finite * _flag(graph, result)
    found += [(Status.SINGULAR, singular), (Status.OVERFLOW, (1.0 - singular) * overflow)]
    return summed(graph, (float(bit) * set_ for bit, set_ in found))


def not_finite(graph: Graph, x: Expr | float) -> Expr:
    """1 where a number is infinite or NaN, else 0."""
    return 1.0 - graph.node("finite", graph.lift(x))


def not_rigid(graph: Graph, x: Sequence[Expr], tolerance: float) -> Expr:
    """Positive unless 16 numbers are a rigid motion: a right-handed rotation, a place, 0 0 0 1."""
    rows = [Vec3(*x[4 * k : 4 * k + 3]) for k in range(3)]
    off = [rows[i].dot(rows[j]) - float(i == j) for i in range(3) for j in range(i + 1)]
    off += [x[12], x[13], x[14], x[15] - 1.0]
    square: Scalar = graph.zero
    for y in off:
        square = square + y * y
    a, b, c = rows
    volume = a.x * (b.y * c.z - b.z * c.y) - a.y * (b.x * c.z - b.z * c.x)
    volume = volume + a.z * (b.x * c.y - b.y * c.x)
    return graph.node("flag", square - (2.0 * tolerance) ** 2) + graph.node("flag", -volume)


def not_units(graph: Graph, tree: Tree, q: Sequence[Expr]) -> Iterator[Expr]:
    """Of each quaternion of a configuration: 1 where its length is not 1, else 0."""
    for link in tree.links:
        if isinstance(link.joint, (Spherical, Free)):
            yield not_unit(graph, q[link.q_index : link.q_index + 4])


def not_unit(graph: Graph, quaternion: Sequence[Expr]) -> Expr:
    """1 where the length of a quaternion is not 1, else 0."""
    w, x, y, z = quaternion
    off = w * w + x * x + y * y + z * z - 1.0
    return graph.node("flag", off * off - (2.0 * UNIT_TOLERANCE) ** 2)


def not_bodies(graph: Graph, body: RigidInertia) -> Iterator[Expr]:
    """1 for each condition of a body that numbers do not meet, to rounding.

    A body has ``[[Σ, h], [hᵀ, m]]`` without negative eigenvalues: m is not negative, and no
    principal minor of ``C = m Σ - h hᵀ`` is, nor an entry of Σ's diagonal.
    """
    m, h, s = graph.lift(body.m), body.h, body.second
    size = m * s.trace()
    c = Sym3(*(x * m for x in s)) - sym_outer(h, h)
    yz, xz, xy = c.yy * c.zz - c.yz * c.yz, c.xx * c.zz - c.xz * c.xz, c.xx * c.yy - c.xy * c.xy
    across, along = c.xy * c.zz - c.yz * c.xz, c.xy * c.yz - c.yy * c.xz
    whole = c.xx * yz - c.xy * across + c.xz * along
    least = PIVOT_TOLERANCE * graph.node("eps")
    square = size * size
    yield graph.node("flag", graph.zero - m)
    for scale, minors in (
        (s.trace(), (s.xx, s.yy, s.zz)),
        (size, (c.xx, c.yy, c.zz)),
        (square, (xy, xz, yz)),
        (square * size, (whole,)),
    ):
        yield from (graph.node("flag", graph.zero - x - least * scale) for x in minors)


def bad_pivots(graph: Graph) -> Iterator[Expr]:
    """Of each pivot: 1 where it is not positive, or zero to rounding beside its scale."""
    least = PIVOT_TOLERANCE * graph.node("eps")
    for pivot, scale in graph.pivots:
        yield 1.0 - graph.node("flag", pivot - least * scale)


def _flag(graph: Graph, count: Expr) -> Expr:
    return count if count is graph.zero else graph.node("flag", count)
