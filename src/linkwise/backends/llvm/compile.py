"""IR text -> object code -> loaded functions."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from typing import Any

from linkwise.backends.llvm.target import Target, binding

_lock = threading.Lock()  # LLVM is entered by one thread at a time
_jit: list[Any] = []
_counter = 0


def to_object(ir: str, target: Target) -> bytes:
    """Compile a module for the target."""
    llvm = binding()
    with _lock:
        module = llvm.parse_assembly(ir)
        module.verify()
        return bytes(target.machine.emit_object(module))


def to_assembly(ir: str, target: Target) -> str:
    """Machine code of a module, as text."""
    llvm = binding()
    with _lock:
        return str(target.machine.emit_assembly(llvm.parse_assembly(ir)))


class Loaded:
    """Object code in this process; alive as long as this record is."""

    def __init__(
        self, code: bytes, target: Target, symbol: str, imports: Mapping[str, int]
    ) -> None:
        global _counter
        llvm = binding()
        with _lock:
            if not _jit:
                _jit.append(llvm.create_lljit_compiler(target.machine))
            _counter += 1
            builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(symbol)
            for name, address in imports.items():
                builder.import_symbol(name, address)
            self._tracker = builder.link(_jit[0], f"kernel{_counter}")
        self.address = int(self._tracker[symbol])


BATCH_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
