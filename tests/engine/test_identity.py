"""The part of a cache key that stands for this package's code: every module, every byte of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import linkwise
from linkwise.engine import identity

ROOT = Path(linkwise.__file__).parent


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    identity.source_digest.cache_clear()
    yield
    identity.source_digest.cache_clear()


def archive_with(monkeypatch: pytest.MonkeyPatch, contents: dict[str, bytes | None]) -> str | None:
    """The digest of a package of these modules that is no folder."""
    specs = [ModuleSpec(name, None) for name in contents]
    monkeypatch.setattr(identity, "_modules", lambda spec: iter(specs))
    monkeypatch.setattr(identity, "_content", lambda spec: contents[spec.name])
    monkeypatch.setattr(Path, "is_dir", lambda self: False)
    identity.source_digest.cache_clear()
    return identity.source_digest()


SELF = identity.__name__


def test_every_module_is_in_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {SELF: b"a", "linkwise.cli": b"b", "linkwise.trace.fuse": b"c"}
    first = archive_with(monkeypatch, dict(modules))
    others = {archive_with(monkeypatch, {**modules, name: b"edited"}) for name in modules}
    assert first is not None and len(first) == 64 and len({first, None, *others}) == 5


def test_a_module_that_cannot_be_read_leaves_no_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert archive_with(monkeypatch, {SELF: b"a", "linkwise.trace.fuse": None}) is None


def test_a_package_without_this_very_module_is_not_what_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert archive_with(monkeypatch, {"linkwise": b"a"}) is None


def test_content_does_not_move_from_one_module_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes in all, cut elsewhere, are another edition."""
    parts = [{SELF: b"abc"[:cut], "linkwise.b": b"abc"[cut:]} for cut in range(4)]
    assert len({archive_with(monkeypatch, dict(each)) for each in parts}) == 4


def test_all_modules_are_found_without_importing_them() -> None:
    before = set(sys.modules)
    found = {spec.name for spec in identity._modules(linkwise.__spec__)}
    assert not {x for x in set(sys.modules) - before if x.startswith("linkwise")}
    files = {path.relative_to(ROOT) for path in ROOT.rglob("*.py")}
    names = {".".join(("linkwise", *file.with_suffix("").parts)) for file in files}
    assert found == {name.removesuffix(".__init__") for name in names} and len(found) > 300
    assert "linkwise.view.server" in found


class Loader:
    """A loader with the data of a file, or without."""

    def __init__(self, data: bytes | None, code: Any = None) -> None:
        self.data, self.code = data, code

    def get_data(self, path: str) -> bytes:
        if self.data is None:
            raise OSError("no file")
        return self.data

    def get_code(self, name: str) -> Any:
        if self.code is None:
            raise ImportError("no code")
        return self.code


def content(loader: Any, origin: str = "a.py") -> bytes | None:
    return identity._content(ModuleSpec("a", loader, origin=origin))


def test_what_stands_for_a_module() -> None:
    """Its source; its bytecode without the header, which has dates in it; its code object; None."""
    assert content(Loader(b"source")) == b"source"
    assert content(Loader(bytes(range(20))), "a.pyc") == bytes(range(16, 20))
    code = compile("x = 1", "a", "exec")
    assert content(Loader(None, code)) == repr(identity._plain(code)).encode()
    assert content(Loader(None)) is None
    assert content(Loader(None, "no code object")) is None


class Broken:
    """A loader whose methods raise."""

    def __init__(self, data: type[Exception], code: type[Exception]) -> None:
        self.errors = data, code

    def get_data(self, path: str) -> bytes:
        raise self.errors[0]

    def get_code(self, name: str) -> Any:
        raise self.errors[1]


@pytest.mark.parametrize("data", [OSError, AttributeError, TypeError])
@pytest.mark.parametrize("code", [ImportError, AttributeError, TypeError])
def test_a_loader_that_offers_nothing(data: type[Exception], code: type[Exception]) -> None:
    assert content(Broken(data, code)) is None
    assert content(object()) is None


def function_code(text: str) -> CodeType:
    return compile(text, "file", "exec")


DIFFERENT = {
    "operations": ("x + y", "x - y"),
    "names": ("x + y", "x + z"),
    "constants": ("x + 1", "x + 2"),
    "nested constants": ("lambda: 1", "lambda: 2"),
    "argument names": ("lambda a: 0", "lambda b: 0"),
    "how many arguments": ("lambda a, b: 0", "lambda a, *, b: 0"),
    "sets": ("x in {1, 2}", "x in {1, 3}"),
    "closures": (
        "def f(a, b):\n  def g():\n    return a\n  return g",
        "def f(a, b):\n  def g():\n    return b\n  return g",
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_code_objects_that_compute_other_things_differ(what: str) -> None:
    one, two = (repr(identity._plain(function_code(text))) for text in DIFFERENT[what])
    assert one != two
    assert one == repr(identity._plain(function_code(DIFFERENT[what][0])))
    assert " at 0x" not in one
