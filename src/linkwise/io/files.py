"""Which files a robot file may name: those of the tree it sits in, and of declared folders.

The tree is the nearest enclosing repository or package (a folder with one of `MARKS`, a whole
Python package), or else the folder above the file's own. It never is a folder that others write
to, the home folder or one above it. Paths are real paths, so that no link leads out; nothing
outside is opened.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from linkwise.codes import Code
from linkwise.errors import Where
from linkwise.io.xml import PathLike
from linkwise.model.values import path_text

MARKS = ("package.xml", "pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg")
SCHEMES = ("", "file", "package")  # of paths that may name a file of this machine
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/[/]+")


@dataclass(frozen=True)
class FileRoots:
    """The folders a robot file may name files in; all are real paths."""

    folder: str | None  # what relative paths start from
    own: tuple[str, ...] = ()  # the robot file's folder and the tree around it
    packages: tuple[str, ...] = ()  # what the user declared

    @classmethod
    def of(cls, path: PathLike | None, package_dirs: Sequence[PathLike] = ()) -> FileRoots:
        """Declare the folder of a robot file, the tree around it, and ``package_dirs``."""
        given = [package_dirs] if isinstance(package_dirs, str | os.PathLike) else package_dirs
        if not isinstance(given, Iterable):
            raise TypeError(f"package_dirs is {given!r}; expected folders")
        packages = tuple(os.path.realpath(path_text("package_dirs", x)) for x in given)
        if path is None:
            return cls(None, (), packages)
        file = os.path.abspath(os.fspath(path))
        own: list[str] = []
        for folder in (os.path.dirname(file), os.path.dirname(os.path.realpath(file))):
            own += [os.path.realpath(folder), *_around(os.path.realpath(folder))]
        return cls(os.path.dirname(file), tuple(dict.fromkeys(own)), packages)

    def find(self, text: str, beside: str = "") -> str:
        """Return the real path of a file that may be opened, or nothing; opens nothing.

        A relative path starts from the robot file's folder, or else from ``beside``.
        """
        try:
            found = self._candidates(text, beside)
            return next((c for c in found if self._holds(c) and os.path.isfile(c)), "")
        except ValueError:  # a path with a null character names nothing
            return ""

    def report_missing(self, text: str, where: Where, beside: str = "") -> None:
        """Report why a file that must be opened is not found."""
        kind, rest = _split(text)
        if kind not in SCHEMES:
            where.report(Code.NOT_LOCAL, name=text)
        try:
            candidates = self._candidates(text, beside)
            outside = [c for c in candidates if not self._holds(c)]
        except ValueError as problem:
            where.report(Code.NO_PATH, name=text, reason=str(problem))
            return
        stray = [c for c in outside if os.path.exists(c) or not os.path.isabs(rest)]
        climbs = not candidates and os.path.normpath(rest).startswith(os.pardir + os.sep)
        if climbs or stray:
            roots = ", ".join(self.own + self.packages) or "none"
            folder = os.path.dirname(stray[0]) if stray else "its folder"
            where.report(Code.OUTSIDE_FOLDERS, name=text, folder=folder, allowed=roots)
        else:
            where.report(Code.INCLUDE_NOT_THERE, name=text)

    def _candidates(self, text: str, beside: str) -> list[str]:
        """Real paths that a path may mean, the likeliest first."""
        kind, rest = _split(text)
        if kind not in SCHEMES:
            return []
        if kind == "package":
            package, _, inside = rest.partition("/")
            under = [os.path.join(folder, package, inside) for folder in self.packages]
            named = [f for f in (*self.packages, *self.own) if os.path.basename(f) == package]
            found = under + [os.path.join(folder, inside) for folder in named]
        else:
            starts = [start for start in (self.folder, beside) if start]
            found = [os.path.join(start, rest) for start in starts]
            found = found or [rest] * os.path.isabs(rest)
        return list(dict.fromkeys(os.path.realpath(path) for path in found))

    def _holds(self, path: str) -> bool:
        return any(is_within(path, root) for root in self.own + self.packages)


def _split(text: str) -> tuple[str, str]:
    """The scheme of a path, if any, and the rest."""
    scheme = _SCHEME.match(text)
    if scheme is None:
        return "", text
    kind = scheme[1].lower()
    return kind, unquote(text[len("file://") :]) if kind == "file" else text[scheme.end() :]


def is_within(path: str, folder: str) -> bool:
    """Whether a real path is a folder, or lies under it."""
    try:
        return os.path.commonpath([path, folder]) == folder
    except ValueError:  # another drive
        return False


def package_root(folder: str) -> list[str]:
    """Return the nearest folder upwards with a package.xml, if any."""
    return [up for up in _upwards(folder) if os.path.isfile(os.path.join(up, "package.xml"))][:1]


def _around(folder: str) -> list[str]:
    """The tree that a folder belongs to: a repository or package, or else the folder above."""
    ups = list(_upwards(folder))
    marked = [up for up in ups if any(os.path.exists(os.path.join(up, mark)) for mark in MARKS)]
    modules = [up for up in ups if os.path.isfile(os.path.join(up, "__init__.py"))]
    for tree in (*marked[:1], *_whole(modules), os.path.dirname(folder)):
        if _is_private(tree):
            return [tree]
    return []


def _whole(modules: list[str]) -> list[str]:
    """The outermost folder of the innermost Python package."""
    top = modules[:1]
    for module in modules[1:]:
        if module == os.path.dirname(top[0]):
            top = [module]
    return top


def _is_private(folder: str) -> bool:
    """Whether a folder is neither open to all, nor the home folder, nor above it."""
    home = os.path.realpath(os.path.expanduser("~"))
    if is_within(home, folder):
        return False
    try:
        return not os.stat(folder).st_mode & stat.S_IWOTH
    except OSError:
        return False


def _upwards(folder: str) -> list[str]:
    """A folder and those above it, the root of the file system aside."""
    out = []
    while folder != os.path.dirname(folder):
        out.append(folder)
        folder = os.path.dirname(folder)
    return out
