"""Bound methods of a robot that was called before: pickled, overridden, still themselves."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw

PACKAGE = Path(lw.__file__).parent
LINK = {"a": 1.0, "alpha": 0.3, "mass": 2.0, "com": (-0.5, 0.1, 0.0), "inertia": (0.1, 0.2, 0.3)}
START_METHODS = sorted({"spawn", "fork"} & set(multiprocessing.get_all_start_methods()))


@pytest.mark.parametrize("method", START_METHODS)
def test_warm_bound_methods_travel_to_other_processes(method: str, tmp_path: Path) -> None:
    """Batches, single states and keywords were called before, so that all that is kept is there."""
    code = f"""
        import multiprocessing, sys
        import numpy as np
        import linkwise as lw

        def main():
            robot = lw.from_dh([{LINK!r}] * 2)
            states = np.random.default_rng(1).uniform(-3, 3, (8, 2))
            for _ in range(3):
                expected = [robot.mass_matrix(q) for q in states]
                robot.mass_matrix(states)
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                found = pool.map_async(robot.mass_matrix, list(states)).get(timeout=100)
            assert all((a == b).all() for a, b in zip(expected, found, strict=True))
            print("same")

        if __name__ == "__main__":
            main()
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "LINKWISE_CACHE": str(tmp_path / "c")}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, env=env
    )
    assert done.stdout.strip() == "same", done.stderr


class Doubled(lw.Robot):
    """A robot whose torques are doubled."""

    def gravity_torque(self, *values: Any, **options: Any) -> Any:
        return 2.0 * super().gravity_torque(*values, **options)


def test_an_overridden_method_stays_overridden() -> None:
    """Whatever was called before, and however often."""
    robot = lw.from_dh([LINK] * 2)
    mine = Doubled(robot.description)
    for q in (np.ones(2), np.ones((3, 2)), np.ones(2), np.ones(2)):
        assert (mine.gravity_torque(q) == 2.0 * robot.gravity_torque(q)).all()
    held, q = np.zeros(2), np.ones(2)
    assert (mine.inverse_dynamics(q, held, held) == robot.inverse_dynamics(q, held, held)).all()
