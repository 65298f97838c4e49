"""A folder that only this user can have filled, and the files in it.

A path that was checked can lead elsewhere a moment later. So the folder is opened once and its
descriptor is checked; files are opened relative to that descriptor, without following links, and
are checked on descriptors of their own. On Windows, which cannot open a file relative to a folder,
names are joined to the path; profiles of users are private there by their own rules.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

WRITING = ".writing-"  # prefix of files that are not complete yet

_RELATIVE = {os.open, os.stat, os.unlink, os.rename} <= os.supports_dir_fd
# never follow a link, never wait for the writer of a FIFO
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class NotPrivateError(PermissionError):
    """A folder or file that somebody else owns or may write."""


class Stored(NamedTuple):
    """A file of the folder."""

    name: str
    size: int  # bytes
    used: float  # when it was last written or marked as used, seconds since the epoch


class PrivateFolder:
    """An open folder, checked by `private_folder`."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        self._at = descriptor

    def open(self, name: str) -> IO[bytes]:
        """Open a regular file of this user for reading."""
        handle = os.open(self._name(name), os.O_RDONLY | _SAFE, dir_fd=self._at)
        try:
            info = os.fstat(handle)
            if not stat.S_ISREG(info.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", name)
            _check_private(info, name)
        except BaseException:
            os.close(handle)
            raise
        return os.fdopen(handle, "rb")

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all: under another name first, then renamed into place."""
        temporary = f"{WRITING}{os.getpid()}-{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
        handle = os.open(self._name(temporary), flags, 0o600, dir_fd=self._at)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(
                self._name(temporary), self._name(name), src_dir_fd=self._at, dst_dir_fd=self._at
            )
        except BaseException:
            self.remove(temporary)
            raise

    def remove(self, name: str) -> bool:
        """Delete a file; returns whether it was there and could be deleted."""
        try:
            os.unlink(self._name(name), dir_fd=self._at)
        except OSError:
            return False
        return True

    def mark_used(self, name: str) -> None:
        """Set the file's time to now, where that is possible."""
        with suppress(OSError):
            os.utime(self._name(name), dir_fd=self._at, follow_symlinks=self._at is None)

    def files(self) -> list[Stored]:
        """All files, in the order of their names; those that vanish meanwhile are left out."""
        found = []
        for name in sorted(os.listdir(self.path if self._at is None else self._at)):
            with suppress(OSError):
                info = os.stat(self._name(name), dir_fd=self._at, follow_symlinks=False)
                found.append(Stored(name, info.st_size, info.st_mtime))
        return found

    def _name(self, name: str) -> str:
        return name if self._at is not None else str(self.path / name)


@contextmanager
def private_folder(path: Path, create: bool = False) -> Iterator[PrivateFolder]:
    """Open a folder, made first if asked for; raises OSError unless it is this user's alone."""
    if create:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _RELATIVE:
        yield PrivateFolder(path, None)
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _check_private(os.fstat(descriptor), str(path))
        yield PrivateFolder(path, descriptor)
    finally:
        os.close(descriptor)


def _check_private(info: os.stat_result, name: str) -> None:
    """Refuse what others can have written."""
    if not hasattr(os, "getuid"):
        return
    if info.st_uid != os.getuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = "belongs to somebody else or is writable by others"
        raise NotPrivateError(errno.EPERM, problem, name)
