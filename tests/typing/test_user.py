"""A user's file is free of type errors, and its mistakes are found, by mypy and pyright, strict."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import linkwise

USER = Path(__file__).parent / "user.py"
SOURCE = Path(linkwise.__file__).parents[1]


@pytest.mark.full
@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy_strict(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=",
         f"--cache-dir={tmp_path}", str(USER)],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(SOURCE)},
    )  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr


PYRIGHT = shutil.which("pyright") or shutil.which("basedpyright")


@pytest.mark.full
@pytest.mark.skipif(PYRIGHT is None, reason="pyright is not installed")
def test_pyright_strict(tmp_path: Path) -> None:
    settings = {
        "include": [str(USER)], "extraPaths": [str(SOURCE)], "typeCheckingMode": "strict",
        "reportUnnecessaryTypeIgnoreComment": "error", "enableTypeIgnoreComments": False,
        "pythonVersion": f"{sys.version_info.major}.{sys.version_info.minor}",
    }  # fmt: skip
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    told = subprocess.run(
        [str(PYRIGHT), "-p", str(tmp_path), "--pythonpath", sys.executable],
        capture_output=True, text=True,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr
