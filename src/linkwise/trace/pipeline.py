"""All passes from equations to the program that a backend renders, in their order.

    1. trace     equations run on scalars: constants fold, equal nodes are one       ``expr.py``
    2. fuse      products that are added become multiply-adds                        ``fuse.py``
    3. assemble  regions: blocks of straight-line code, and loops                    ``assemble.py``
    4. order     an order of execution that suits the machine: the backend's, of ``schedule.py``
    5. guard     NaN in states that have no answer                                   ``guard.py``
    6. verify    what a legal program is, if ``LINKWISE_VERIFY=1``                   ``verify.py``

Derivatives are more nodes of the graph that is traced (``diff.py``), before the other passes.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from linkwise.trace.guard import guard
from linkwise.trace.program import Program
from linkwise.trace.verify import verify

VERIFY = "LINKWISE_VERIFY"  # the environment variable


def prepared(
    program: Program, order: Callable[[Program], Program], *, guarded: bool = True
) -> Program:
    """The program as a backend renders it, from one that was traced and assembled.

    Args:
        order: the backend's order of execution.
        guarded: states without an answer become NaN; programs that watch their states themselves
            (searches, simulations) need no guard.

    Raises:
        IllegalProgram: if the program breaks a rule and ``LINKWISE_VERIFY=1``.
    """
    ordered = order(program)
    ready = guard(ordered) if guarded else ordered
    return verify(ready) if os.environ.get(VERIFY, "") not in ("", "0", "off") else ready
