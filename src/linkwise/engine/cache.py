"""The disk cache of compiled objects: one file per entry, verified whenever it is read.

An entry is a header (magic, length, sha256) and the object code, in a file named by the digest of
all that the code depends on. The sha256 covers that name too, so an entry under another's name is
found out. A reader sees a whole entry or none (`folder.py`). Anything wrong with an entry is a
miss; a cache that cannot be used costs speed, never correctness, and never raises.

The cache keeps to a size by deleting the entries that were used least recently. Processes do this
side by side without a lock: an entry that one of them deletes while another reads it stays readable
until closed, and one that is deleted too early is compiled again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import struct
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from linkwise.engine.folder import WRITING, NotPrivateError, PrivateFolder, Stored, private_folder
from linkwise.errors import CacheWarning, user_level

MAGIC = b"linkwise kernel 2\n"
HEADER = struct.Struct(f"<{len(MAGIC)}sQ32s")
SUFFIX = ".kernel"

LIMIT = 1024**3  # bytes, unless LINKWISE_CACHE_SIZE says otherwise
SHARE = 64  # a process looks at the size of the cache after writing this part of the limit
ROOM = 8  # and then deletes until this part of the limit is free
SELDOM = 300.0  # seconds between two records of an entry's use
ABANDONED = 3600.0  # seconds after which an incomplete file is a dead process's

_written: dict[Path, int] = {}  # bytes since this process last looked at a cache's size


@dataclass(frozen=True)
class KernelCache:
    """A folder of compiled objects, and the bytes that they may take."""

    folder: Path
    limit: int = LIMIT

    def path(self, key: str) -> Path:
        """Where an entry lives."""
        return self.folder / f"{key}{SUFFIX}"

    def get(self, key: str) -> bytes | None:
        """The object code of an entry, or None; a damaged entry is deleted."""
        name = self.path(key).name
        try:
            with private_folder(self.folder) as folder, folder.open(name) as file:
                code = _unpack(key, file)
                if code is None:
                    folder.remove(name)
                elif time.time() - os.fstat(file.fileno()).st_mtime > SELDOM:
                    folder.mark_used(name)
        except OSError:
            return None
        if code is None:
            _tell(f"damaged kernel cache entry {self.path(key)}: compiling it again")
        return code

    def put(self, key: str, code: bytes) -> None:
        """Write an entry, whole or not at all; failing to write is reported once and harmless."""
        data = HEADER.pack(MAGIC, len(code), _digest(key, code)) + code
        if len(data) > self.limit:
            return
        try:
            with private_folder(self.folder, create=True) as folder:
                folder.write(self.path(key).name, data)
                self._look_after(folder, len(data))
        except NotPrivateError as error:
            _tell_once(f"{self.folder} {error.strerror}")
        except OSError as error:
            _tell_once(f"{self.folder} cannot be written ({error.strerror or error})")

    def _look_after(self, folder: PrivateFolder, size: int) -> None:
        """Keep to the limit; look at the whole folder once per process and now and then."""
        since = _written.get(self.folder, self.limit) + size
        if since * SHARE < self.limit:
            _written[self.folder] = since
        else:
            _written[self.folder] = 0
            _evict(folder, self.limit)

    def entries(self) -> list[Stored]:
        """Files of the cache: entries, and what writers that were killed left behind."""
        try:
            with private_folder(self.folder) as folder:
                return [x for x in folder.files() if x.name.endswith(SUFFIX) or _unfinished(x)]
        except OSError:
            return []

    def size(self) -> int:
        """Bytes in use."""
        return sum(entry.size for entry in self.entries())

    def clear(self) -> int:
        """Delete all entries; returns how many."""
        names = [entry.name for entry in self.entries()]
        try:
            with private_folder(self.folder) as folder:
                return sum(map(folder.remove, names))
        except OSError:
            return 0

    def problem(self) -> str | None:
        """Why the folder cannot be used, or None; a folder that is missing is made."""
        try:
            with private_folder(self.folder, create=True):
                return None
        except OSError as error:
            return error.strerror or str(error)


def default_cache() -> KernelCache | None:
    """The user's cache: ``LINKWISE_CACHE`` names its folder, or is ``off``."""
    chosen = os.environ.get("LINKWISE_CACHE")
    if chosen is None:
        return _usual_cache()
    off = chosen.lower() in ("off", "0", "")
    return None if off else KernelCache(_expanded(chosen), size_limit())


def _expanded(folder: str) -> Path:
    """A folder as shells read it: ``~`` is the user's home, where there is one."""
    try:
        return Path(folder).expanduser()
    except RuntimeError:
        return Path(folder)


def _usual_cache() -> KernelCache | None:
    """The first folder that can be used: in the user's home, or among temporary files."""
    limit = size_limit()
    for place in (_home_folder, _temporary_folder):
        folder = place()
        if folder is not None:
            found = KernelCache(folder, limit)
            if found.problem() is None:
                return found
    _tell_once("neither the user's cache folder nor a folder for temporary files can be used")
    return None


def _home_folder() -> Path | None:
    import platformdirs

    try:
        folder = Path(platformdirs.user_cache_dir("linkwise", appauthor=False))
    except RuntimeError:  # a user without a home folder
        return None
    return folder if folder.is_absolute() else None


def _temporary_folder() -> Path | None:
    """A folder that carries the user's number; whoever made it, `private_folder` finds out."""
    try:
        parent = Path(tempfile.gettempdir())
    except OSError:
        return None
    return parent / (f"linkwise-{os.getuid()}" if hasattr(os, "getuid") else "linkwise")


def size_limit() -> int:
    """Bytes that the cache may take: ``LINKWISE_CACHE_SIZE``, such as ``500M`` or ``2G``."""
    text = os.environ.get("LINKWISE_CACHE_SIZE", "")
    if not text.strip():
        return LIMIT
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.ASCII | re.I)
    if match is None:
        _tell_once(
            f"LINKWISE_CACHE_SIZE={text!r} is no size: expected bytes, or a number with K, M, G or "
            "T, such as 500M; the limit is 1G",
            "kernel cache",
        )
        return LIMIT
    number, unit = match.groups()
    return int(float(number) * 1024 ** " KMGT".index(unit.upper() or " "))


def _evict(folder: PrivateFolder, limit: int) -> None:
    """Delete what dead writers left, then the least recently used entries down to the limit."""
    files, now = folder.files(), time.time()
    for file in files:
        if _unfinished(file) and now - file.used > ABANDONED:
            folder.remove(file.name)
    entries = [file for file in files if file.name.endswith(SUFFIX)]
    size = sum(entry.size for entry in entries)
    if size <= limit:
        return
    for entry in sorted(entries, key=lambda x: x.used):
        if size <= limit - limit // ROOM:
            break
        folder.remove(entry.name)
        size -= entry.size


def _unfinished(file: Stored) -> bool:
    return file.name.startswith(WRITING)


def _unpack(key: str, file: IO[bytes]) -> bytes | None:
    """The object code in an open entry; None if the entry is damaged or another key's."""
    head = file.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    magic, length, digest = HEADER.unpack(head)
    if magic != MAGIC or length != os.fstat(file.fileno()).st_size - HEADER.size:
        return None
    code = file.read(length)
    return code if digest == _digest(key, code) else None


def _digest(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + code).digest()


@cache
def _tell_once(problem: str, subject: str = "kernel cache not used") -> None:
    _tell(f"{subject}: {problem}")


def _tell(message: str) -> None:
    """Warn; where the user makes warnings errors, log instead: no call fails because of a cache."""
    try:
        warnings.warn(message, CacheWarning, stacklevel=user_level())
    except CacheWarning:
        logging.getLogger("linkwise").warning(message)
