"""What the code in the disk cache depends on besides a robot: the code of this package, all of it.

A wheel that nobody has edited is known by its ``RECORD``, which has the version and the hash of
every file. A folder of sources is known by the content of its modules, which takes some
milliseconds. Elsewhere a module is known by what its loader has: bytes in a zip archive, or, inside
a frozen program, its code object. Where a loader offers neither, nothing can tell one edition of
linkwise from the next, and nothing is cached; nor is it in a process whose package was edited or
upgraded since it was imported, for what runs there is no longer what the files say.
"""

from __future__ import annotations

import hashlib
import os
import pkgutil
import time
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec, all_suffixes
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

IMPORTED = time.time()  # when this process began to take its code from the files

_HEADER = 16  # bytes before the code of a .pyc file: magic, flags, date and size of the source


@cache
def source_digest() -> str | None:
    """Return the hash of the code of this package; None if it cannot be known."""
    spec = find_spec(__name__.partition(".")[0])
    assert spec is not None
    folder = Path(spec.origin or "").parent
    parts = _of_folder(folder) if folder.is_dir() else _of_modules(spec)
    if parts is None:
        return None
    digest = hashlib.sha256()
    for name, content in parts:
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


Parts = list[tuple[str, bytes]]  # names and contents


def _of_folder(folder: Path) -> Parts | None:
    """The record of a wheel, or the modules in a folder; None if they changed since the import."""
    files = list(_files(str(folder)))
    changes = [max(at.st_mtime, at.st_ctime) for at in (file.stat() for file in files)]
    if not files or max(changes) > IMPORTED:
        return None
    record = _record(folder)
    if record is not None and max(file.stat().st_mtime for file in files) <= record.stat().st_mtime:
        return [(record.parent.name, record.read_bytes())]
    start = len(str(folder)) + 1
    return [(file.path[start:], _bare(file.path, Path(file.path).read_bytes())) for file in files]


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    """The modules in a folder and the folders in it."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            elif entry.name.endswith(_SUFFIXES):
                yield entry


_SUFFIXES = tuple(all_suffixes())


def _record(folder: Path) -> Path | None:
    """The list of files of the wheel that a folder was installed from."""
    found = list(folder.parent.glob(f"{folder.name}-*.dist-info/RECORD"))
    return found[0] if len(found) == 1 else None


def _of_modules(spec: ModuleSpec) -> Parts | None:
    """The modules of a package that is no folder."""
    found = [(module.name, _content(module)) for module in _modules(spec)]
    known = [(name, content) for name, content in found if content is not None]
    complete = len(known) == len(found) and __name__ in dict(known)
    return known if complete else None


def _modules(spec: ModuleSpec) -> Iterator[ModuleSpec]:
    """A module, or a package and the modules in it, none of which is imported for it."""
    yield spec
    for module in pkgutil.iter_modules(spec.submodule_search_locations or (), f"{spec.name}."):
        finder: Any = module.module_finder
        found = finder.find_spec(module.name)
        if found is not None:
            yield from _modules(found)


def _content(spec: ModuleSpec) -> bytes | None:
    """The bytes that a module was made of."""
    loader: Any = spec.loader
    try:
        data: bytes = loader.get_data(spec.origin)
    except (OSError, AttributeError, TypeError):
        return _frozen_content(loader, spec.name)
    return _bare(str(spec.origin), data)


def _bare(path: str, data: bytes) -> bytes:
    """The content of a file, of bytecode without its header, which has dates in it."""
    return data[_HEADER:] if path.endswith(".pyc") else data


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
