"""Run `linkwise.check` on files with two to ten defects each: what is missed, what invented.

Each file is repaired, too: another repair must change nothing, and what has no error must load.

python tools/check_combined.py [files per robot] [urdf|mjcf] [seed]
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from faults import defects as urdf
from faults import mjcf
from faults.combined import Check, Combined, Told, files
from faults.document import ROBOTS, Document, robots_folder

import linkwise as lw
from linkwise.checking.mend import repair

Files = Iterator[tuple[str, Combined]]  # with the name of the robot
LATER = ("UNMOVED", "MASSLESS", "POINT_MASS")  # told where nothing else is wrong


def by_element(path: Path, clean: str) -> Check:
    """Errors and warnings of a URDF that the file without defects does not have."""

    def told(text: str) -> Told:
        path.write_text(text, encoding="utf-8")
        found = (p for p in lw.check(path) if p.severity != "hint" and p.code.name not in LATER)
        return Counter((p.element, p.code.name) for p in found)

    before = told(clean)
    return cache(lambda text: told(text) - before)


def by_line(path: Path) -> Check:
    """Errors of an MJCF."""

    @cache
    def told(text: str) -> Told:
        path.write_text(text, encoding="utf-8")
        return Counter((p.line, p.code.name) for p in lw.check(path) if p.severity == "error")

    return told


def urdf_files(folder: Path, path: Path, per_robot: int, seed: int) -> Files:
    """Files of every robot."""
    for name, file in ROBOTS.items():
        document = Document.read(folder / file)
        check = by_element(path, document.text())
        for found in files(document, urdf.COMBINABLE, check, per_robot, seed, urdf.together):
            yield name, found


def mjcf_files(folder: Path, path: Path, per_robot: int, seed: int) -> Files:
    """Files of every robot that is made an MJCF."""
    for name in mjcf.MJCF_ROBOTS:
        model = mjcf.Model.of_urdf(folder / ROBOTS[name])
        for found in files(model, mjcf.COMBINABLE, by_line(path), per_robot, seed):
            yield name, found


def unsettled(path: Path, text: str) -> str:
    """What is wrong with the repaired copy of a file; nothing where all is well."""
    path.write_text(text, encoding="utf-8")
    first = repair(path)
    if first is None:
        return ""
    path.write_bytes(first.data)
    again = repair(path)
    if again is None or again.data != first.data:
        return "repairs do not converge"
    if any(problem.severity == "error" for problem in lw.check(path)):
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        try:
            lw.load(path)
        except lw.RobotFileError as error:
            return f"repaired, and refused: {error}"
    return ""


def main(per_robot: int, formats: list[str], seed: int) -> int:
    """Print every file that is judged wrong, and how many there were; returns their number."""
    folder = robots_folder()
    if folder is None:
        sys.exit("example-robot-data is not installed: pip install example-robot-data")
    makers = {"urdf": urdf_files, "mjcf": mjcf_files}
    count = defects = wrong = 0
    with tempfile.TemporaryDirectory() as place:
        for word in formats:
            path = Path(place, "robot.xml")
            for name, found in makers[word](folder, path, per_robot, seed):
                count, defects = count + 1, defects + len(found.names)
                left = unsettled(path, found.text)
                if found.missed or found.invented or left:
                    wrong += 1
                    print(f"{name}: {', '.join(found.names)}")
                    print(
                        f"    missed {dict(found.missed)}, invented {dict(found.invented)} {left}"
                    )
    print(
        f"{count} files of two to ten defects, {defects} in all: "
        f"{wrong} with something missed, invented or unsettled"
    )
    return wrong


if __name__ == "__main__":
    per_robot, seed = ([int(word) for word in sys.argv[1:] if word.isdigit()] + [91, 1])[:2]
    formats = [word for word in sys.argv[1:] if not word.isdigit()]
    sys.exit(bool(main(per_robot, formats or ["urdf", "mjcf"], seed)))
