"""Inverse kinematics as a CUDA kernel: its source compiled for the host, a warp as 32 fibers."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from bits import FUSED, assert_same, needs_fused

import linkwise as lw
from linkwise.backends.cuda.backend import Cuda
from linkwise.engine import compiled, devices, libraries

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is for POSIX")


@pytest.fixture
def backend(host: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cuda:
    made = Cuda(0, host.HostDriver(tmp_path))
    for module in (compiled, devices):
        monkeypatch.setattr(module, "gpu", lambda number: made)
    return made


def targets(robot: lw.Robot, count: int) -> Any:
    found = robot.forward_kinematics(robot.random_q(seed=0, size=count), "link6")
    found[3, 0, 1] = np.nan
    found[7, :3, 3] += 3.0  # out of reach
    return found


@needs_fused
def test_a_gpu_finds_the_same_to_the_bit(puma: lw.Robot, backend: Cuda) -> None:
    target = targets(puma, 40)
    for status in (False, True):
        options: Any = {"restarts": 5, "status": status}
        lost: Any = nullcontext() if status else pytest.warns(lw.ConvergenceWarning, match="of 40")
        with lost:
            here = puma.inverse_kinematics(target, "link6", **options)
            there = puma.inverse_kinematics(target, "link6", device="cuda", **options)
        for one, other in zip(here, there, strict=True) if status else [(here, there)]:
            np.testing.assert_array_equal(other, one)


def test_arrays_on_a_gpu_stay_there(
    puma: lw.Robot, host: ModuleType, backend: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fake(host.Fake):  # type: ignore[name-defined,misc]
        def reshape(self, *shape: int) -> Fake:
            return Fake(self.numbers.reshape(shape))

    own = host.FakeLibrary()
    monkeypatch.setattr(
        libraries, "library_of", lambda x: own if isinstance(x, host.Fake) else None
    )
    monkeypatch.setattr(devices, "library_of", libraries.library_of)
    target = targets(puma, 20)
    here, bits = puma.inverse_kinematics(target, "link6", restarts=2, status=True)
    q, status = puma.inverse_kinematics(Fake(target), "link6", restarts=2, status=True)
    assert type(q) is type(status) is host.Fake
    assert status.numbers.tolist() == bits.tolist()
    if FUSED:
        np.testing.assert_array_equal(q.numbers, here)
    start = host.Fake(puma.random_q(seed=1, size=20))
    q = puma.inverse_kinematics(Fake(target), "link6", start, restarts=2)
    with pytest.warns(lw.ConvergenceWarning):
        expected = puma.inverse_kinematics(target, "link6", start.numbers, restarts=2)
    if FUSED:
        np.testing.assert_array_equal(q.numbers, expected)
    narrow = Fake(target.astype(np.float32))
    with pytest.raises(TypeError, match=r"arrays on cuda:0 are float32; expected float64"):
        puma.inverse_kinematics(narrow, "link6")
    pose = lw.se3.exp(np.linspace(-1.0, 1.0, 12).reshape(2, 6))
    assert_same(lw.se3.log(Fake(pose)).numbers, lw.se3.log(pose))
    pose[1, 0, 0] = 2.0  # which nobody waits for
    assert np.isnan(lw.se3.log(Fake(pose)).numbers).all(-1).tolist() == [False, True]
