"""Memory and streams on a GPU that are not another library's, through ``cuda-core``."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from linkwise.backends.cuda.driver import current, libraries


class Block:
    """An array (states, size) or of any other shape, made on our stream of a device."""

    def __init__(self, shape: tuple[int, ...], dtype: str, device: int) -> None:
        core, _ = libraries()
        self.shape, self.dtype = shape, dtype
        with current(device):
            resource = core.Device(device).memory_resource
            size = max(prod(shape) * np.dtype(dtype).itemsize, 1)
            self.buffer = resource.allocate(size, stream=_stream(device))
        self._stream = stream(device)

    @property
    def pointer(self) -> int:
        """Where it is."""
        return int(self.buffer.handle)

    def reshape(self, shape: tuple[int, ...]) -> Block:
        """The same memory."""
        self.shape = shape
        return self

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """For libraries that take it; they wait for the stream on which it is filled."""
        return {
            "shape": self.shape,
            "typestr": np.dtype(self.dtype).str,
            "data": (self.pointer, False),
            "strides": None,
            "stream": self._stream,
            "version": 3,
        }


def seen(array: Any, stream: int = -1) -> Any:
    """An array of another library: ``ptr``, ``shape``, ``strides``, ``dtype``, ``device_id``.

    Work on the stream waits for it; -1: nobody waits.
    """
    libraries()  # says what is missing
    from cuda.core.utils import StridedMemoryView

    return StridedMemoryView.from_any_interface(array, stream_ptr=stream)


def stream(device: int) -> int:
    """Our own stream of a device."""
    return int(_stream(device).handle)


def wait(device: int) -> None:
    """Until everything on our stream of a device is done."""
    _stream(device).sync()


@cache
def _stream(device: int) -> Any:
    core, _ = libraries()
    with current(device):
        return core.Device(device).create_stream()
