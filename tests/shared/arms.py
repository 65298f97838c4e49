"""The bundled arms as their papers have them: bodies alone, without limits and added rotors.

Tables of counts and bits are of these, so that data added to the bundled robots change no table.
"""

from __future__ import annotations

import linkwise as lw
from linkwise.io.dh import describe_dh
from linkwise.load import checked, make
from linkwise.models import iiwa14 as iiwa14_data
from linkwise.models import puma560 as puma560_data


def puma560() -> lw.Robot:
    """The PUMA 560, with the rotors of its paper."""
    return _arm(puma560_data.BODIES, "standard", "puma560")


def iiwa14() -> lw.Robot:
    """The KUKA LBR iiwa 14, without rotors."""
    return _arm(iiwa14_data.BODIES, "modified", "iiwa14")


def _arm(rows: tuple[lw.DHRow, ...], convention: str, name: str) -> lw.Robot:
    options = checked("load", {"strict": False})
    return make(lambda: describe_dh(rows, convention, name), options, quiet=True)
