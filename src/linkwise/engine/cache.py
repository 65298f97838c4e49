"""The disk cache of compiled objects: one file per entry, verified whenever it is read.

An entry is a header (magic, length, sha256) and the object code, in a file named by the digest of
all that the code depends on. The sha256 covers that name too, so an entry under another's name is
found out. Entries are written to a temporary file and renamed into place, so a reader sees a whole
entry or none. Anything wrong with an entry is a miss; a cache that cannot be used costs speed,
never correctness.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MAGIC = b"linkwise kernel 2\n"
HEADER = struct.Struct(f"<{len(MAGIC)}sQ32s")
SUFFIX = ".kernel"


class CacheWarning(UserWarning):
    """The kernel cache could not be used, or an entry was damaged and is replaced."""


@dataclass(frozen=True)
class KernelCache:
    """A folder of compiled objects."""

    folder: Path

    def path(self, key: str) -> Path:
        """Where an entry lives."""
        return self.folder / f"{key}{SUFFIX}"

    def get(self, key: str) -> bytes | None:
        """The object code of an entry, or None; a damaged entry is deleted."""
        path = self.path(key)
        try:
            if not _is_ours(self.folder):
                return None
            data = path.read_bytes()
        except OSError:
            return None
        code = _unpack(key, data)
        if code is None:
            warnings.warn(
                f"damaged kernel cache entry {path}: compiling it again", CacheWarning, stacklevel=2
            )
            _remove(path)
        return code

    def put(self, key: str, code: bytes) -> None:
        """Write an entry, whole or not at all; failing to write is reported once and harmless."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _is_ours(self.folder):
                _warn_once(f"{self.folder} belongs to somebody else or is writable by others")
                return
            self._write(self.path(key), _pack(key, code))
        except OSError as error:
            _warn_once(f"{self.folder} cannot be written ({error.strerror or error})")

    def _write(self, path: Path, data: bytes) -> None:
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=".writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            _remove(Path(temporary))
            raise

    def entries(self) -> list[Path]:
        """Files of the cache, entries and leftovers of writers that were killed."""
        try:
            names = sorted(self.folder.iterdir())
        except OSError:
            return []
        return [p for p in names if p.suffix == SUFFIX or p.name.startswith(".writing-")]

    def size(self) -> int:
        """Bytes in use."""
        return sum(p.stat().st_size for p in self.entries() if p.exists())

    def clear(self) -> int:
        """Delete all entries; returns how many."""
        return sum(_remove(path) for path in self.entries())


def default_cache() -> KernelCache | None:
    """The user's cache: ``LINKWISE_CACHE`` names its folder, or is ``off``."""
    chosen = os.environ.get("LINKWISE_CACHE")
    if chosen is not None and chosen.lower() in ("off", "0", ""):
        return None
    if chosen:
        return KernelCache(Path(chosen))
    import platformdirs

    return KernelCache(Path(platformdirs.user_cache_dir("linkwise", appauthor=False)))


def _pack(key: str, code: bytes) -> bytes:
    return HEADER.pack(MAGIC, len(code), _digest(key, code)) + code


def _unpack(key: str, data: bytes) -> bytes | None:
    if len(data) < HEADER.size:
        return None
    magic, length, digest = HEADER.unpack_from(data)
    code = data[HEADER.size :]
    whole = magic == MAGIC and length == len(code) and digest == _digest(key, code)
    return code if whole else None


def _digest(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + code).digest()


def _is_ours(folder: Path) -> bool:
    """Whether only this user can have written the folder's entries."""
    if not hasattr(os, "getuid"):  # Windows: the user's profile is private by its own rules
        return True
    info = folder.stat()
    return info.st_uid == os.getuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


@cache
def _warn_once(problem: str) -> None:
    warnings.warn(f"kernel cache not used: {problem}", CacheWarning, stacklevel=3)
