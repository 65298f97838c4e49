"""An object, and the contacts by which arms hold it, as users write them; and as one tree.

The object is on a joint of its own, or part of the link of a contact that holds it in all
directions. Every other contact is a closed loop between an arm and the object's link.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.model import forest, values
from linkwise.model.bodies import moments, rigid_inertia
from linkwise.model.closures import Closure, Row, directions_of
from linkwise.model.forest import OBJECT, Held
from linkwise.model.frames import pose_arrays
from linkwise.model.tree import Frame, Tree
from linkwise.model.values import Array
from linkwise.spatial import RigidInertia
from linkwise.spatial.matrices import product

KINDS = ("rigid", "point", "soft", "frictionless")


@dataclass(frozen=True)
class RigidBody:
    """A rigid body: mass in kg, centre of mass (3) in m, inertia about it in kg m², in its axes.

    Inertia as (xx, yy, zz), (xx, xy, xz, yy, yz, zz) or (3, 3); none for a point mass.

    >>> import linkwise as lw
    >>> box = lw.RigidBody(2.0, com=(0, 0, 0.1), inertia=(0.02, 0.02, 0.01))
    """

    mass: float
    com: Any = (0.0, 0.0, 0.0)
    inertia: Any = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        values.freeze(self, "com", "inertia")

    @property
    def rigid_inertia(self) -> RigidInertia:
        """As algorithms see it."""
        return rigid_inertia(
            moments(values.whole_body("RigidBody", self.mass, self.com, self.inertia))
        )


@dataclass(frozen=True)
class Contact:
    """A contact of a `Grasp`: a frame of an arm that holds the object in some directions.

    ``kind``: ``"rigid"`` (all six), ``"point"`` (it cannot slide), ``"soft"`` (it can neither slide
    nor turn about the normal) or ``"frictionless"`` (no motion along the normal). Or
    ``directions``, as for a `Loop`. Directions are held both ways: forces may pull.

    ``pose_in_object`` (4, 4) is where the frame of the arm is in the frame of the object. Of the
    first contact it is the identity unless given: the object's frame is that of the first contact.
    Of others, unless given, it is wherever the frame is in each state (see `Grasp.holding`).
    ``normal`` and ``directions`` are in the axes of that pose, or else of the object; the normal is
    its z axis unless given.

    >>> import linkwise as lw
    >>> lw.Contact(arm=1, frame="link7", kind="point").kind
    'point'
    """

    arm: int = 0
    frame: str = ""
    kind: str = "rigid"
    directions: Any = None
    pose_in_object: Any = None
    normal: Any = None

    def __post_init__(self) -> None:
        values.freeze(self, "directions", "pose_in_object", "normal")


def contacts_of(contacts: Any, arms: Sequence[tuple[str, Tree]]) -> tuple[Contact, ...]:
    """Contacts from a list of them, or of names of frames; ``arms`` by name and tree."""
    if isinstance(contacts, (str, Contact)) or not isinstance(contacts, Iterable):
        raise TypeError(f"Grasp: contacts are {contacts!r}; expected a list")
    found = tuple(
        Contact(arm=i, frame=x) if isinstance(x, str) else x for i, x in enumerate(contacts)
    )
    if not found:
        raise ValueError("Grasp: there are no contacts; expected at least one")
    for i, contact in enumerate(found):
        _check(i, contact, arms)
    return found


def refuse_idle(contacts: Sequence[Contact], arms: Sequence[str]) -> None:
    """Raise where no contact is on an arm of these names."""
    idle = [i for i in range(len(arms)) if all(x.arm != i for x in contacts)]
    if idle:
        raise ValueError(
            f"Grasp: no contact is on arm {idle[0]} ({arms[idle[0]]!r}), which does not touch the "
            "object; expected a contact of each arm, such as "
            f"linkwise.Contact({idle[0]}, frame), or arms that touch it only"
        )


def _check(i: int, contact: Any, arms: Sequence[tuple[str, Tree]]) -> None:
    what = f"Grasp: contact {i}"
    if not isinstance(contact, Contact):
        raise TypeError(f"{what} is {contact!r}; expected a linkwise.Contact or a frame's name")
    number = isinstance(contact.arm, (int, np.integer)) and not isinstance(contact.arm, bool)
    if not number or not 0 <= contact.arm < len(arms):
        raise ValueError(
            f"{what}: arm {contact.arm!r}; expected the number of one of the {len(arms)} arm(s), "
            f"0 to {len(arms) - 1}"
        )
    robot, tree = arms[contact.arm]
    if not isinstance(contact.frame, str) or contact.frame not in tree.frames:
        raise ValueError(f"{what}: {values.unknown('frame', contact.frame, robot, tree.frames)}")
    if not isinstance(contact.kind, str) or contact.kind not in KINDS:
        kinds = ", ".join(map(repr, KINDS))
        raise ValueError(f"{what}: kind {contact.kind!r}; expected one of {kinds}, or directions")
    if contact.directions is not None and contact.kind != "rigid":
        raise ValueError(
            f"{what}: both kind {contact.kind!r} and directions; expected one of the two"
        )


def _rows(i: int, contact: Contact) -> tuple[Row, ...]:
    """The directions that a contact holds, in the object's axes."""
    if contact.directions is not None:
        rows = np.array(directions_of(f"Grasp: contact {i}: directions", contact.directions))
    else:
        n, none = _normal(i, contact), np.zeros(3)
        rows = {
            "rigid": np.eye(6),
            "point": np.eye(6)[3:],
            "soft": np.vstack([np.eye(6)[3:], np.concatenate([n, none])]),
            "frictionless": np.concatenate([none, n])[None],
        }[contact.kind]
    R, _ = pose_arrays(values.pose(f"Grasp: contact {i}: pose_in_object", contact.pose_in_object))
    if len(rows) == 6 or (contact.kind == "point" and contact.directions is None):
        return directions_of("", rows)  # the same in any axes
    turned = np.concatenate([product(part, R.T) for part in (rows[:, :3], rows[:, 3:])], axis=1)
    return directions_of(f"Grasp: contact {i}: directions", turned)


def _normal(i: int, contact: Contact) -> Array:
    normal = (0.0, 0.0, 1.0) if contact.normal is None else contact.normal
    return np.array(values.direction(f"Grasp: contact {i}: normal", normal))


def normal_in_object(contact: Contact) -> Array:
    """The normal of a contact, in the object's axes."""
    R, _ = pose_arrays(values.pose("", contact.pose_in_object))
    return product(R, _normal(0, contact))


def turned(contact: Contact, where: Any) -> Contact:
    """A contact at a pose, its normal and directions as they were in the object's axes."""
    if contact.pose_in_object is not None:
        return contact
    R = np.asarray(where)[:3, :3]
    directions = contact.directions
    if directions is not None:
        rows = np.array(directions_of("directions", directions))
        directions = np.concatenate([product(x, R) for x in (rows[:, :3], rows[:, 3:])], axis=1)
    normal = product(R.T, _normal(0, contact))
    return replace(contact, pose_in_object=where, normal=normal, directions=directions)


def _is_rigid(contact: Contact) -> bool:
    return len(_rows(0, contact)) == 6


def _carrier(contacts: Sequence[Contact]) -> int | None:
    """The contact whose arm has the object in its link."""
    rigid = [i for i, contact in enumerate(contacts) if _is_rigid(contact)]
    if not rigid:
        return None
    known = [i for i in rigid if i == 0 or contacts[i].pose_in_object is not None]
    if not known:
        raise ValueError(
            f"Grasp: contact {rigid[0]} is rigid and carries the object, whose frame is that of "
            f"contact 0; expected pose_in_object of contact {rigid[0]}, or that contact first"
        )
    return known[0]


def grasped(
    arms: Tree,
    body: RigidInertia,
    contacts: Sequence[Contact],
    object_state: bool,
    length: float | None = None,
) -> Tree:
    """Arms, object and contacts as one tree with closed loops."""
    ends = [arms.frames[forest.name_of(arms, c.arm, c.frame)] for c in contacts]
    carrier = None if object_state else _carrier(contacts)
    if carrier is None:
        tree = forest.with_object(arms, body)
    else:
        where = values.inverse(values.pose("", contacts[carrier].pose_in_object))
        at = forest.placed(ends[carrier], where)
        if at.link < 0:
            raise ValueError(
                f"Grasp: contact {carrier} is rigid and its frame {contacts[carrier].frame!r} is "
                "fixed to the base, so that nothing moves; expected a frame that moves"
            )
        tree = forest.with_payload(arms, body, at)
    frame = tree.frames[OBJECT]
    made = tuple(_closure(i, c, ends[i], frame) for i, c in enumerate(contacts))
    loops = tuple(x for i, x in enumerate(made) if i != carrier)
    _refuse_same_link(loops, arms)
    placed = all(x.pose_in_object is not None for x in contacts[1:])
    held = Held(frame, body, made, carrier, length, placed)
    passive = (*arms.passive, *range(arms.nv, tree.nv))  # the joint of the object has no motor
    return replace(tree, closures=loops, held=held, unactuated=passive)


def _refuse_same_link(loops: Sequence[Closure], tree: Tree) -> None:
    for loop in loops:
        if loop.a.link == loop.b.link:
            raise ValueError(
                f"Grasp: {loop.name} is on link {tree.links[loop.a.link].name!r}, which carries "
                "the object already; expected contacts on different links"
            )


def _closure(i: int, contact: Contact, a: Frame, frame: Frame) -> Closure:
    """A contact as a closed loop: frame a of the arm to a frame on the object's link."""
    R, p = pose_arrays(values.pose(f"Grasp: contact {i}: pose_in_object", contact.pose_in_object))
    first = Frame(a.link, a.origin, tuple(map(values.as_triple, product(a.rotation, R.T))))
    origin = np.array(frame.origin) + product(frame.rotation, p)
    b = Frame(frame.link, values.as_triple(origin), frame.rotation)
    name = f"contact {i} (arm {contact.arm}, {contact.frame!r})"
    return Closure(name, first, b, _rows(i, contact))
