"""What the code in the disk cache depends on besides a robot: the code of this package.

A module is known by the file that it was loaded from, source or bytecode, in a folder or in a zip
archive; inside a frozen program, where there is no such file, by its code object. Where a loader
offers neither, nothing can tell one edition of linkwise from the next, and nothing is cached.
"""

from __future__ import annotations

import hashlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType
from typing import Any

# packages and modules whose code decides what a program computes; a backend adds its own
SOURCES = ("spatial", "model", "sweep", "algorithms", "trace")

_HEADER = 16  # bytes before the code of a .pyc file: magic, flags, date and size of the source


@cache
def source_digest(*backend: str) -> str | None:
    """Hash of the code that turns a tree into a program, and of a backend's packages.

    None where that code cannot be read.
    """
    digest = hashlib.sha256()
    for source in (*SOURCES, *backend):
        for spec in _modules(f"linkwise.{source}"):
            content = _content(spec)
            if content is None:
                return None
            digest.update(f"{spec.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _modules(name: str) -> Iterator[ModuleSpec]:
    """A module, or a package and the modules in it."""
    spec = find_spec(name)
    if spec is None:
        raise ImportError(f"linkwise is not complete: there is no {name}", name=name)
    yield spec
    for module in pkgutil.iter_modules(spec.submodule_search_locations or ()):
        yield from _modules(f"{name}.{module.name}")


def _content(spec: ModuleSpec) -> bytes | None:
    """The bytes that a module was made of."""
    loader: Any = spec.loader
    try:
        data: bytes = loader.get_data(spec.origin)
    except (OSError, AttributeError, TypeError):
        return _frozen_content(loader, spec.name)
    return data[_HEADER:] if str(spec.origin).endswith(".pyc") else data


def _frozen_content(loader: Any, name: str) -> bytes | None:
    try:
        code = loader.get_code(name)
    except (ImportError, AttributeError, TypeError):
        return None
    return repr(_plain(code)).encode() if isinstance(code, CodeType) else None


def _plain(value: Any) -> Any:
    """A code object or constant, written without addresses and without a random order."""
    if isinstance(value, CodeType):
        parts = (value.co_code, value.co_names, value.co_varnames, value.co_freevars)
        return (*parts, value.co_cellvars, value.co_argcount, _plain(value.co_consts))
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    return value
