"""A Python module that calls an exported library by ctypes; it needs NumPy, and not linkwise."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.backends.cstyle.render import word
from linkwise.export.source import Robot
from linkwise.export.wanted import Wanted
from linkwise.trace.program import FLAGS, FLAGS_DTYPE

MODULE = '''\
"""Functions of {name} in {library}, one state a call; written by linkwise {version}."""

import ctypes
from pathlib import Path

import numpy as np

library = ctypes.CDLL(str(Path(__file__).resolve().parent / {library!r}))
NQ, NV, DTYPE = {nq}, {nv}, np.dtype({dtype!r})


def _call(function, inputs, outputs):
    """Call a function of the library: inputs are (name, size, numbers), outputs (shape, dtype)."""
    arrays = []
    for name, size, numbers in inputs:
        array = np.ascontiguousarray(numbers, DTYPE)
        if array.size != size:
            raise ValueError(f"{{name}} has {{array.size}} numbers; expected {{size}}")
        arrays.append(array)
    results = [np.empty(shape, dtype) for shape, dtype in outputs]
    function(*(ctypes.c_void_p(x.ctypes.data) for x in (*arrays, *results)))
    return results[0] if len(results) == 1 else tuple(results)
'''

FUNCTION = '''

def {short}({arguments}):
    """{title}: {shapes}."""
    inputs = ({inputs},)
    return _call(library.{name}, inputs, ({outputs},))
'''


def loader(robot: Robot, functions: Sequence[Wanted], library: str) -> str:
    """The text of the module."""
    head = MODULE.format(
        name=word(robot.name),
        library=library,
        version=robot.version,
        nq=robot.tree.nq,
        nv=robot.tree.nv,
        dtype=robot.dtype,
    )
    return head + "".join(_function(robot, one) for one in functions)


def _function(robot: Robot, one: Wanted) -> str:
    names = [(word(port.name), port.size) for port in one.program.inputs]
    outputs = [
        (o.shape, FLAGS_DTYPE if o.kind == FLAGS else robot.dtype) for o in one.program.outputs
    ]
    return FUNCTION.format(
        short=one.name.removeprefix(f"{robot.prefix}_"),
        arguments=", ".join(name for name, _ in names),
        title=one.title.replace("\\", "\\\\").replace('"', "'"),
        shapes=", ".join(f"{word(o.name)} {o.shape}" for o in one.program.outputs),
        inputs=", ".join(f"({name!r}, {size}, {name})" for name, size in names),
        name=one.name,
        outputs=", ".join(f"({shape!r}, {dtype!r})" for shape, dtype in outputs),
    )
