"""The reliability card: bad files, states, caches and moments, and what became of each.

    python tools/reliability.py [--quick] [--json FILE]

The exit code is 1 if a goal of the card is missed. Real robots come from example-robot-data.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from faults import attacks, engine, files, states
from faults.card import Card, Line
from faults.document import ROBOTS, robots_folder
from faults.mjcf import MJCF_ROBOTS

import linkwise as lw

SMALL = ["ur5", "xarm7", "z1", "panda", "so101", "allegro", "kinova"]  # to fuzz: short files


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    name: str
    robots: list[str]
    mjcf: list[str]
    dh: tuple[int, ...]
    fuzz: int
    states: int
    cache: int
    kills: int
    calls: int


FULL = Size("full", list(ROBOTS), MJCF_ROBOTS, (3, 5, 6, 7, 9), 6000, 4096, 2400, 40, 100_000)
QUICK = Size("quick", ["ur5", "panda"], ["ur5", "panda"], (3,), 300, 515, 120, 2, 500)


def experiments(size: Size, scratch: Path, folder: Path | None) -> list[Callable[[], Line]]:
    """What there is to do, the quick things first."""
    robots = {
        "puma560": lw.load("puma560"),
        "iiwa14": lw.load("iiwa14"),
        "free puma560": lw.load("puma560", base="free"),
    }
    if size.name == "quick":
        robots.pop("iiwa14")
    found: list[Callable[[], Line]] = [
        lambda: files.dh_defects(size.dh),
        lambda: attacks.run_xml_attacks(scratch),
        lambda: attacks.run_path_attacks(scratch),
        lambda: engine.threads(16, size.calls, 24),
        lambda: engine.kills(size.kills, scratch),
        lambda: engine.cache_faults(size.cache, scratch),
        lambda: states.isolation(robots, size.states),
    ]
    if folder is not None:
        found.insert(0, lambda: files.urdf_defects(folder, size.robots, scratch))
        found.insert(1, lambda: files.byte_fuzz(folder, SMALL, size.fuzz, scratch))
        if find_spec("mujoco") is not None:
            found.insert(1, lambda: files.mjcf_defects(folder, size.mjcf, scratch))
    return found


def measure(size: Size) -> Card:
    """Do everything, and write it down."""
    lines = []
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        scratch = Path(folder).resolve()
        with engine.cache_in(str(scratch / "cache")):
            for k, experiment in enumerate(experiments(size, scratch, robots_folder())):
                began = time.monotonic()
                line = experiment()
                line.seconds = round(time.monotonic() - began, 1)
                print(f"{k + 1}: {line.what}: {line.seconds} s", file=sys.stderr, flush=True)
                lines.append(line)
    return Card(lines, size.name)


def main() -> int:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small sample of everything")
    parser.add_argument("--json", type=Path, help="also write the card here")
    options = parser.parse_args()
    if robots_folder() is None:
        print("example-robot-data is not installed: no defects in real robots", file=sys.stderr)
    if find_spec("mujoco") is None:
        print("mujoco is not installed: no defects in MJCF files", file=sys.stderr)
    card = measure(QUICK if options.quick else FULL)
    print(card)
    if options.json:
        options.json.write_text(json.dumps(card.facts(), indent=2, ensure_ascii=False) + "\n")
    return 0 if card.met else 1


if __name__ == "__main__":
    sys.exit(main())
