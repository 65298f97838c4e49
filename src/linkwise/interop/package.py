"""Packages that doors lead to: imported when first needed; a missing one is told how to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from linkwise.errors import BackendUnavailable


def package(name: str, what: str, extra: str = "") -> Any:
    """A package of Python; raises BackendUnavailable with the command that installs it.

    ``extra`` is the extra of linkwise that brings the package, where it has another name.
    """
    try:
        return import_module(name)
    except ImportError as error:
        if error.name != name:  # it is there and fails
            raise
        raise BackendUnavailable(
            f"{what} needs {name}, which is not installed: pip install 'linkwise[{extra or name}]'"
        ) from None
