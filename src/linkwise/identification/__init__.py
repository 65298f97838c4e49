"""Inertial parameters from measured motions: which can be known, and what they are."""

from linkwise.identification.base import BaseParameters, base_parameters, excitation
from linkwise.identification.bodies import pseudo_inertia
from linkwise.identification.identify import Identification, identify

__all__ = [
    "BaseParameters",
    "Identification",
    "base_parameters",
    "excitation",
    "identify",
    "pseudo_inertia",
]
