"""Laws of a frame's motion as CUDA kernels: their source compiled for the host."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.backends.cuda.backend import Cuda
from linkwise.engine import compiled, devices, libraries
from linkwise.motion import setup

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is for POSIX"),
]


def law_of(robot: lw.Robot) -> lw.control.OperationalSpace:
    return lw.control.OperationalSpace(robot, "link6", damping=1e-3, gains=(100.0, 20.0))


def test_a_simulation_by_operational_space(
    puma: lw.Robot, host: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit."""
    backend = Cuda(0, host.HostDriver(tmp_path))
    monkeypatch.setattr(setup, "gpu", lambda number: backend)
    q = puma.random_q(seed=0, size=3)
    path = np.repeat(puma.forward_kinematics(q, "link6")[:, None], 10, 1)
    run: Any = {"controller": law_of(puma).law(lw.control.PerStep(path)), "duration": 0.01}
    here, there = (lw.simulate(puma, q, device=device, **run) for device in (None, "cuda"))
    np.testing.assert_array_equal(there.q, here.q)


def test_arrays_of_a_gpu(
    puma: lw.Robot, host: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torques, report and status come back as arrays of the same library; gains go there."""
    backend = Cuda(0, host.HostDriver(tmp_path))
    monkeypatch.setattr(compiled, "gpu", lambda number: backend)
    monkeypatch.setattr(devices, "gpu", lambda number: backend)

    class Fake(host.Fake):  # type: ignore[name-defined,misc]
        def reshape(self, shape: tuple[int, ...]) -> Any:
            return host.Fake(self.numbers.reshape(shape))

    own = host.FakeLibrary()
    known = (host.Fake, Fake)
    monkeypatch.setattr(libraries, "library_of", lambda x: own if type(x) in known else None)
    monkeypatch.setattr(devices, "library_of", libraries.library_of)
    q, qd = puma.random_q(seed=0, size=5), np.ones((5, 6))
    target, law = puma.forward_kinematics(puma.random_q(seed=1, size=5), "link6"), law_of(puma)
    there = law(host.Fake(q), host.Fake(qd), Fake(target))
    assert type(there) is host.Fake
    np.testing.assert_array_equal(there.numbers, law(q, qd, target))
    found = law(host.Fake(q), host.Fake(qd), Fake(target), report=True, status=True)
    expected = law(q, qd, target, report=True, status=True)
    np.testing.assert_array_equal(found[1].damping.numbers, expected[1].damping)
    np.testing.assert_array_equal(found[2].numbers, expected[2])
    with pytest.raises(ValueError, match=r"target has shape \(5, 6\); expected \(..., 4, 4\)"):
        law(host.Fake(q), host.Fake(qd), Fake(qd))
