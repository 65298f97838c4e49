"""The front of the CPU's kernels: calls and methods that go straight into compiled code.

With the first site, each method that was announced gets a compiled entry (``entry.py``), which
takes the usual arguments itself and hands everything else to the method's Python code. From Python
3.12 on the methods stay the functions that they are, so that signatures, type hints, sources,
overriding, wrapping and bound methods taken earlier work as of any method. Python 3.11 calls plain
functions without looking at their entry; there another object takes the method's place in the
class, with the function behind it, and only where the class still has that very function.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from linkwise.backends.base import BATCH, ONE, Kernel, Methods
from linkwise.backends.base import Site as AnySite
from linkwise.backends.llvm import sites
from linkwise.backends.llvm.compile import Loaded, to_object
from linkwise.backends.llvm.layout import capsule, layout, slot_offset
from linkwise.backends.llvm.methods import give_entry
from linkwise.backends.llvm.plain import PlainSite
from linkwise.backends.llvm.run import LlvmKernel
from linkwise.backends.llvm.target import host
from linkwise.errors import PerformanceWarning, warn

Cached = Callable[[tuple[Any, ...], Callable[[], bytes]], bytes]
# fields of a site for kernels, by what they are made for
FIELDS = {(ONE, "float64"): "one", (BATCH, "float64"): "wide", (BATCH, "float32"): "narrow"}
THREADED = 200_000  # nanoseconds of work from which Python decides about threads
QUICK = 20_000  # nanoseconds of work during which other Python threads wait


class LlvmSite:
    """One kind of call, and the kernels that it has so far."""

    def __init__(self, code: Loaded, sizes: Sequence[int], shape: Sequence[int], outputs: int):
        self.fields = made = sites.Site()
        made.inputs, made.outputs, made.axes = len(sizes), outputs, len(shape)
        made.sizes[: len(sizes)] = list(sizes)
        made.shape[: len(shape)] = list(shape)
        made.size, made.most_rows = math.prod(shape), 1
        self.run = sites.site_function(code.address[sites.SITE], made)
        self._kernels: dict[str, LlvmKernel] = {}
        weakref.finalize(self, sites.drop_spares, made).atexit = False

    def connect(self, kernel: Kernel) -> None:
        """Use a kernel from now on, for as many states as need no second thread."""
        assert isinstance(kernel, LlvmKernel)
        field = FIELDS[kernel.form, kernel.dtype]
        self._kernels[field] = kernel
        if kernel.form == BATCH:
            most = min(THREADED / kernel.cost, kernel.streamed)
            self.fields.most_rows = max(self.fields.most_rows, int(most))
            self.fields.quick_rows = max(self.fields.quick_rows, int(QUICK / kernel.cost))
        setattr(self.fields, field, kernel.address)


class LlvmFront:
    """The sites of one robot, as its compiled methods look them up."""

    def __init__(self, methods: Methods, keep: Cached) -> None:
        self._code = _installed(methods, keep)
        self._places = {name: k for k, name in enumerate(methods.functions)}
        self._slots = (sites.Slot * sites.METHODS)()
        self._served: list[object] = []  # sites and names of frames that the slots point to
        self.handle = capsule(ctypes.addressof(self._slots))

    def site(self, sizes: Sequence[int], shape: Sequence[int], status: bool) -> AnySite | None:
        """A site; None for calls of more arguments or axes than the entry has room for."""
        if self._code is None:
            return None if status else PlainSite(sizes, shape)
        if len(sizes) > sites.MOST_INPUTS or len(shape) > sites.OUT_AXES:
            return None
        return LlvmSite(self._code, sizes, shape, 1 + status)

    def site_in_parts(
        self, sizes: Sequence[int], shape: Sequence[int], parts: int, part: Sequence[int]
    ) -> AnySite | None:
        """A site that returns a tuple: parts of the result of one state, all of one shape."""
        if self._code is None or len(sizes) > sites.MOST_INPUTS or parts > sites.MOST_PARTS:
            return None
        made = LlvmSite(self._code, sizes, shape, 1)
        made.fields.parts, made.fields.part_axes = parts, len(part)
        made.fields.part_shape[: len(part)] = list(part)
        made.fields.part_bytes = 8 * math.prod(part)
        return made

    def serve(self, method: str, site: AnySite, frame: str | None, status: bool) -> None:
        """Let the compiled method of this name use a site."""
        place = self._places.get(method)
        if place is None or not isinstance(site, LlvmSite):
            return
        slot, address = self._slots[place], ctypes.addressof(site.fields)
        self._served += (site, frame)
        if frame is None:
            setattr(slot, "watched" if status else "site", address)
        elif slot.count < sites.FRAMES:
            slot.named[slot.count] = sites.NamedSite(id(frame), address)
            slot.count += 1


_codes: list[Loaded | None] = []  # one, once it was made


def _installed(methods: Methods, keep: Cached) -> Loaded | None:
    """The entry's code in this process, its methods in their class; the caller holds a lock."""
    if not _codes:
        _codes.append(_loaded(methods, keep))
    return _codes[0]


def _loaded(methods: Methods, keep: Cached) -> Loaded | None:
    from linkwise.backends.llvm.entry import render_entry

    assert len(methods.functions) <= sites.METHODS
    at, target = layout(), host()
    path = [slot_offset(object.__new__(kind), slot) for kind, slot in methods.path]
    offsets = [offset for offset in path if offset is not None]
    if at is None or len(offsets) < len(path):
        warn(
            PerformanceWarning,
            "this Python keeps its objects where linkwise does not expect them: calls work, and "
            "each takes some microseconds longer",
        )
        return None
    code = keep(
        ("entry", at, offsets, sites.RUNTIME),
        lambda: to_object(render_entry(at, offsets, target.triple), target, optimize=True),
    )
    places = [f"{sites.METHOD}{k}" for k in range(sites.METHODS)]
    loaded = Loaded(code, target, [sites.SITE, sites.TABLE, *places])
    (owner, _), *_, (holder, _) = methods.path
    table = ctypes.addressof(sites.runtime_table(owner, holder))
    ctypes.c_void_p.from_address(loaded.address[sites.TABLE]).value = table
    for k, function in enumerate(methods.functions.values()):
        give_entry(owner, function, k, loaded.address[places[k]])
    return loaded
