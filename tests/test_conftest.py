"""What the test suite says of itself: tests that are left out, and skips without a reason."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

@pytest.mark.parametrize("k", range(6))
def test_methods_agree(k):
    pass

@pytest.mark.skip
def test_marked():
    pass

def test_inside():
    pytest.skip()

def test_stated():
    pytest.skip("no such machine")

@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    raise AssertionError

@pytest.mark.full
def test_of_full_runs():
    pass
"""


def test_skips_need_reasons_and_left_out_tests_are_counted(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS)
    shared = Path(__file__).with_name("shared")
    settings = f"[pytest]\npythonpath = {shared}\nmarkers =\n  full\n  quick\n"
    (tmp_path / "pytest.ini").write_text(settings)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not full"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 2 passed, 1 skipped, 5 deselected, 1 xfailed, 1 error" in run.stdout, (
        run.stdout
    )
    assert "test_marked: skipped without a reason" in run.stdout
    assert "test_inside: skipped without a reason" in run.stdout
    assert "5 tests deselected; of full runs only: 4 thinned cases" in run.stdout
    assert "and 1 others" in run.stdout
