"""How large the contact forces of a grasp are: ``λᵀ Q λ + 2 cᵀ λ`` (grasp_least.py).

λ are forces along the directions of closed loops. The wrench of the contact that carries the
object is what the object needs less what the others give, ``w = w_0 + H λ``. Everything is in axes
of the object's link.
"""

from __future__ import annotations

from linkwise.algorithms import dense
from linkwise.algorithms.closures import Seam
from linkwise.algorithms.constrained import Measure
from linkwise.algorithms.grasp_outcome import object_body
from linkwise.algorithms.kinematics import jacobian
from linkwise.model.description import IDENTITY
from linkwise.model.tree import Frame, Tree
from linkwise.spatial import Force, Matrix, Motion, Scalar, Vec3, Vector, cross, sign, total

NO_LENGTH = 1e-12  # m²: of contacts at the centre of mass, which give no length; then it is 1 m


def squared_length(tree: Tree, places: list[Vec3]) -> Scalar:
    """``ℓ²`` of contacts at some places."""
    assert tree.held is not None
    if tree.held.length is not None:
        return tree.held.length * tree.held.length
    arms = [place - object_body(tree).centre() for place in places]
    mean = total(r.dot(r) for r in arms) * (1.0 / len(arms))
    return mean + (0.5 - 0.5 * sign(mean - NO_LENGTH))  # no choice: it has derivatives in reverse


def carrier_place(tree: Tree) -> Vec3:
    """The origin of the frame of the contact that carries the object, on its link."""
    assert tree.held is not None and tree.held.carrier is not None
    return Vec3(*tree.held.contacts[tree.held.carrier].a.origin)


def contact_places(tree: Tree, closed: list[Seam]) -> list[Vec3]:
    """The origins of the frames of all contacts, on the object's link."""
    places = [seam.s for seam in closed]
    return places if tree.held and tree.held.carrier is None else [*places, carrier_place(tree)]


def moved_to(place: Vec3, f: Force) -> Force:
    """A wrench at the link's origin as one at a place."""
    return Force(f.ang - cross(place, f.lin), f.lin)


def on_carrier(tree: Tree, closed: list[Seam]) -> list[Force]:
    """Rows of Hᵀ: what unit forces of the loops change of the carrier's wrench."""
    place = carrier_place(tree)
    return [moved_to(place, f) * -1.0 for seam in closed for f in seam.on_link_b()]


def measured(tree: Tree, closed: list[Seam], wrench: Force) -> Measure:
    """Q and c, where the contacts together put a wrench on the object."""
    assert tree.held is not None
    carried = tree.held.carrier is not None
    per = 1.0 / squared_length(tree, contact_places(tree, closed))
    rows = [(k, row) for k, seam in enumerate(closed) for row in seam.rows]
    Q = [[product(a, b, per) if i == j else 0.0 for j, b in rows] for i, a in rows]
    if not carried:
        return Measure(Q, [0.0] * len(Q))
    H, first = on_carrier(tree, closed), moved_to(carrier_place(tree), wrench)
    by_carrier = [[product(a, b, per) for b in H] for a in H]
    return Measure(dense.plus(Q, by_carrier), [product(a, first, per) for a in H])


def slope_by_acceleration(tree: Tree, q: Vector, closed: list[Seam]) -> Matrix:
    """``∂c/∂qdd``, a row per direction; no rows unless an arm carries the object."""
    assert tree.held is not None
    if tree.held.carrier is None:
        return []
    at = Frame(tree.held.frame.link, (0.0, 0.0, 0.0), IDENTITY)
    body, place = object_body(tree).articulated(), carrier_place(tree)
    units = dense.transpose(jacobian(tree, q, frame=at, axes="body"))
    columns = [moved_to(place, body @ Motion(Vec3(*x[:3]), Vec3(*x[3:]))) for x in units]
    per = 1.0 / squared_length(tree, contact_places(tree, closed))
    return [[product(a, x, per) for x in columns] for a in on_carrier(tree, closed)]


def product(a: Force | Motion, b: Force | Motion, per: Scalar) -> Scalar:
    """Of two wrenches, moments divided by the length."""
    return a.ang.dot(b.ang) * per + a.lin.dot(b.lin)
