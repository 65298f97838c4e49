"""Run `linkwise.check` on MJCF files with two to ten defects each: what is missed, what invented.

python tools/check_combined.py [files per robot]
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

from faults.combined import Told, files
from faults.document import ROBOTS, robots_folder
from faults.mjcf import COMBINABLE, MJCF_ROBOTS, Model

import linkwise as lw


def main(per_robot: int) -> int:
    """Print every file that is judged wrong, and how many there were; returns their number."""
    folder = robots_folder()
    if folder is None:
        sys.exit("example-robot-data is not installed: pip install example-robot-data")
    count = wrong = 0
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "robot.xml")

        @cache
        def check(text: str) -> Told:
            path.write_text(text, encoding="utf-8")
            return Counter((p.line, p.code.name) for p in lw.check(path) if p.severity == "error")

        for name in MJCF_ROBOTS:
            model = Model.of_urdf(folder / ROBOTS[name])
            for found in files(model, COMBINABLE, check, per_robot):
                count += 1
                if found.missed or found.invented:
                    wrong += 1
                    print(f"{name}: {', '.join(found.names)}")
                    print(f"    missed {dict(found.missed)}, invented {dict(found.invented)}")
    print(f"{count} files of two to ten defects: {wrong} with something missed or invented")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]) if len(sys.argv) > 1 else 91)))
