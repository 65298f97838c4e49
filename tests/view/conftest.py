"""A real browser without a window, where there is one: pages are run in it as a user's would."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# software rendering, no sandbox (tests may run as root), and no network of its own
OPTIONS = (
    "--headless --no-sandbox --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader "
    "--disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --hide-scrollbars"
).split()
# any address but files and this machine is refused, so that a page that needs a network fails
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Run a script at the end of a page; returns what its last expression's promise resolves to."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is installed")
    folder = tmp_path_factory.mktemp("browser")

    def run(page: Path, script: str, size: tuple[int, int] = (900, 600)) -> Any:
        asked = folder / f"{page.stem}.html"
        text = (
            "<script>addEventListener('error', e => { "
            "document.documentElement.dataset.problem = e.message; });</script>"
            f"{page.read_text()}<script>(async () => {{ {script} }})().then("
            "x => { document.documentElement.dataset.answer = JSON.stringify(x); },"
            "e => { document.documentElement.dataset.problem = String(e); });</script>"
        )
        asked.write_text(text)
        command = [
            found, *OPTIONS, OFFLINE, f"--user-data-dir={folder / 'profile'}",
            f"--window-size={size[0]},{size[1]}", "--virtual-time-budget=1000", "--dump-dom",
            asked.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        problem = re.search(r'data-problem="([^"]*)"', done.stdout)
        assert problem is None, html.unescape(problem[1])
        answer = re.search(r'data-answer="([^"]*)"', done.stdout)
        assert answer is not None, (done.stdout[-2000:], done.stderr[-2000:])
        return json.loads(html.unescape(answer[1]))

    return run
