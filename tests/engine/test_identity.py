"""The part of a cache key that stands for this package's code: every module, every byte of it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import linkwise
from linkwise.backends.llvm.backend import Llvm
from linkwise.engine import identity

ROOT = Path(linkwise.__file__).parent
PACKAGES = ("spatial", "model", "algorithms", "trace", "backends/llvm")


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    identity.source_digest.cache_clear()
    yield
    identity.source_digest.cache_clear()


def deciding() -> set[str]:
    """Modules whose code decides what a kernel computes, by looking at the folders."""
    alone = [ROOT / "sweep.py", ROOT / "backends/elementary.py"]
    files = [*alone, *(f for p in PACKAGES for f in (ROOT / p).rglob("*.py"))]
    parts = [file.relative_to(ROOT).with_suffix("").parts for file in files]
    return {".".join(("linkwise", *p)).removesuffix(".__init__") for p in parts}


def digest_if(monkeypatch: pytest.MonkeyPatch, name: str, content: bytes | None) -> str | None:
    """The digest of a package in which one module has another content."""
    real = identity._content

    def changed(spec: ModuleSpec) -> bytes | None:
        return content if spec.name == name else real(spec)

    identity.source_digest.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(identity, "_content", changed)
        return identity.source_digest(*Llvm.sources)


def test_an_edit_of_any_deciding_module_is_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    first = identity.source_digest(*Llvm.sources)
    assert first is not None and len(first) == 64
    found = {name: digest_if(monkeypatch, name, b"edited") for name in deciding()}
    assert len(found) > 50
    assert len({first, *found.values()}) == len(found) + 1
    assert digest_if(monkeypatch, "linkwise.cli.main", b"edited") == first


def test_a_module_that_cannot_be_read_leaves_no_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert digest_if(monkeypatch, "linkwise.trace.fuse", None) is None


def test_content_does_not_move_from_one_module_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes in all, cut elsewhere, are another edition."""
    monkeypatch.setattr(identity, "_modules", lambda name: iter([ModuleSpec(name, None)]))
    monkeypatch.setattr(identity, "SOURCES", ("a", "b"))
    digests = set()
    for cut in range(4):
        parts = {"linkwise.a": b"abc"[:cut], "linkwise.b": b"abc"[cut:]}
        monkeypatch.setattr(identity, "_content", lambda spec, parts=parts: parts[spec.name])
        identity.source_digest.cache_clear()
        digests.add(identity.source_digest())
    assert len(digests) == 4


def test_a_missing_module_is_named() -> None:
    with pytest.raises(ImportError, match=r"not complete: there is no linkwise\.nothing"):
        list(identity._modules("linkwise.nothing"))


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
