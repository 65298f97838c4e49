"""A real browser without a window, where there is one: pages are run in it as a user's would."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import time
import urllib.request
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
def chromium(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of a browser, with options, or a skip."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is installed")
    profile = tmp_path_factory.mktemp("profile")
    return [found, *OPTIONS, OFFLINE, f"--user-data-dir={profile}", "--dump-dom"]


@pytest.fixture
def browse(chromium: list[str], tmp_path: Path) -> Callable[[str, str], bool]:
    """Open a served page, and tell whether an expression of JavaScript becomes true in it."""
    client = pytest.importorskip("websockets.sync.client")

    def run(url: str, wanted: str, seconds: float = 60.0) -> bool:
        own = [f"--user-data-dir={tmp_path}", "--remote-debugging-port=0", "--window-size=640,480"]
        command = [x for x in chromium if x != "--dump-dom"] + own
        process = subprocess.Popen([*command, url], stderr=subprocess.DEVNULL)
        end = time.monotonic() + seconds
        try:
            while not (port := _port(tmp_path)) and time.monotonic() < end:
                time.sleep(0.1)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                pages = [x for x in json.load(answer) if x["type"] == "page"]
            with client.connect(pages[0]["webSocketDebuggerUrl"], max_size=None) as tab:
                while time.monotonic() < end:
                    asked = {"expression": f"!!({wanted})"}
                    message = {"id": 1, "method": "Runtime.evaluate", "params": asked}
                    tab.send(json.dumps(message))
                    if json.loads(tab.recv(timeout=seconds))["result"]["result"].get("value"):
                        return True
                    time.sleep(0.3)
            return False
        finally:
            process.terminate()
            process.wait(30)

    return run


def _port(profile: Path) -> str:
    """The port that a browser is told what to do at, once it has one."""
    file = profile / "DevToolsActivePort"
    return file.read_text().split("\n")[0] if file.is_file() else ""


@pytest.fixture(scope="session")
def browser(chromium: list[str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Run a script at the end of a page; returns what it returns."""
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
            *chromium, f"--window-size={size[0]},{size[1]}", "--virtual-time-budget=1000",
            asked.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        problem = re.search(r'data-problem="([^"]*)"', done.stdout)
        assert problem is None, html.unescape(problem[1])
        answer = re.search(r'data-answer="([^"]*)"', done.stdout)
        assert answer is not None, (done.stdout[-2000:], done.stderr[-2000:])
        return json.loads(html.unescape(answer[1]))

    return run
