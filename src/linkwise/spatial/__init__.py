"""Six-dimensional vector algebra over any scalar; imports nothing of the rest."""

from linkwise.spatial.flux import Flux
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.motion import Force, Motion
from linkwise.spatial.scalar import (
    Matrix,
    Scalar,
    Vector,
    atan2,
    constant,
    flagged,
    quotient,
    reciprocal,
    reciprocal_if_independent,
    reciprocal_if_regular,
    repeat,
    rounding,
    select,
    sign,
    sincos,
    sqrt,
    total,
)
from linkwise.spatial.transform import Transform
from linkwise.spatial.turn import Rotation, Turn
from linkwise.spatial.vec3 import Mat3, Sym3, Vec3, cross, outer, rate_matrix

__all__ = [
    "ArticulatedInertia",
    "Flux",
    "Force",
    "Mat3",
    "Matrix",
    "Motion",
    "RigidInertia",
    "Rotation",
    "Scalar",
    "Sym3",
    "Transform",
    "Turn",
    "Vec3",
    "Vector",
    "atan2",
    "constant",
    "cross",
    "flagged",
    "outer",
    "quotient",
    "rate_matrix",
    "reciprocal",
    "reciprocal_if_independent",
    "reciprocal_if_regular",
    "repeat",
    "rounding",
    "select",
    "sign",
    "sincos",
    "sqrt",
    "total",
]
