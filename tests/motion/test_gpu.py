"""Simulations as CUDA kernels: their source compiled for the host, a warp as 32 fibers."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from bits import assert_same

import linkwise as lw
from linkwise.backends.cuda.backend import Cuda
from linkwise.engine import devices, libraries
from linkwise.motion import setup


@pytest.fixture
def on_gpu(host: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Cuda(0, host.HostDriver(tmp_path))
    monkeypatch.setattr(setup, "gpu", lambda number: backend)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is for POSIX")
@pytest.mark.parametrize("name", ["rk4", "euler", "implicit", "midpoint"])
@pytest.mark.filterwarnings("ignore:simulate. .* rows failed:RuntimeWarning")
def test_a_gpu_takes_the_same_steps(name: str, puma: lw.Robot, on_gpu: None) -> None:
    """To the bit, of any number of rows, with laws, wrenches, samples and rows that fail."""
    rng = np.random.default_rng(0)
    q, qd = puma.random_q(rng, size=37), rng.normal(size=(37, 6))
    q[5, 1] = np.nan
    tau = lw.control.PerStep(rng.normal(size=(30, 6)))
    law = lw.control.pd(puma, 50.0, 5.0) + lw.control.constant(puma, tau)
    for every in (4, None):
        run: Any = {"controller": law, "duration": 0.03, "integrator": name, "every": every}
        run |= {"f_ext": {"link6": rng.normal(size=(37, 6))}}
        here = lw.simulate(puma, q, qd, **run)
        there = lw.simulate(puma, q, qd, device="cuda", **run)
        assert_same(there.q, here.q)
        assert_same(there.qd, here.qd)
        assert there.status.tolist() == here.status.tolist()
        assert there.failed_at.tolist() == here.failed_at.tolist()


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is for POSIX")
def test_one_state_and_a_controller_of_python(puma: lw.Robot, on_gpu: None) -> None:
    q = puma.random_q(seed=0)
    run: Any = {"controller": lambda t, q, qd: -qd, "duration": 0.005}
    here, there = lw.simulate(puma, q, **run), lw.simulate(puma, q, device="cuda", **run)
    assert_same(there.q, here.q)


def test_what_a_gpu_does_not_simulate(puma: lw.Robot) -> None:
    q, message = puma.neutral(), "device 'cuda' is for simulations that are one kernel"
    with pytest.raises(ValueError, match=message):
        lw.simulate(puma, q, None, lambda t, q, qd: qd, hold=False, device="cuda")
    with pytest.raises(ValueError, match="device 'gpu': expected 'cpu', 'cuda'"):
        lw.simulate(puma, q, device="gpu")
    lw.simulate(puma, q, duration=0.01, device="cpu")


def test_arrays_in_the_memory_of_a_gpu_stay_there(
    puma: lw.Robot, host: ModuleType, on_gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Library(host.FakeLibrary):  # type: ignore[name-defined,misc]
        def fetched(self, array: Any) -> np.ndarray:
            return np.array(array.numbers)

    own = Library()
    monkeypatch.setattr(libraries, "library_of", lambda x: own if type(x) is host.Fake else None)
    monkeypatch.setattr(devices, "library_of", libraries.library_of)
    rng = np.random.default_rng(0)
    q, qd, push = puma.random_q(rng, size=3), rng.normal(size=(3, 6)), rng.normal(size=6)

    def damped(t: float, q: Any, qd: Any) -> Any:
        assert type(q) is type(qd) is host.Fake, "the library's own arrays"
        return host.Fake(-qd.numbers)

    here = lw.simulate(puma, q, qd, lambda t, q, qd: -qd, duration=0.01, f_ext={"link6": push})
    there = lw.simulate(
        puma, host.Fake(q), host.Fake(qd), damped, duration=0.01, f_ext={"link6": host.Fake(push)}
    )
    pairs = [(there.q, here.q), (there.qd, here.qd), (there.tau, here.tau)]
    pairs += zip(there.energy, here.energy, strict=True)
    pairs += zip(there.balance, here.balance, strict=True)
    pairs += [(there.path("link6"), here.path("link6")), (there.at(1).q, here.at(1).q)]
    for found, expected in pairs:
        assert type(found) is host.Fake
        assert_same(found.numbers, expected, 1e7)  # balances are small differences of energies
    assert type(there.numpy()) is lw.Trajectory and type(there.status) is np.ndarray
    assert_same(there.numpy().q, here.q)
    message = r"device 'cpu', and the arrays are of FakeGPU on cuda:0; expected device=None"
    with pytest.raises(ValueError, match=message):
        lw.simulate(puma, host.Fake(q), device="cpu")
    with pytest.raises(TypeError, match=r"qd0 is an array of FakeGPU on cuda:1, q0 one of FakeGPU"):
        lw.simulate(puma, host.Fake(q), host.Fake(qd, 1))


def test_tensors_on_the_processor(puma: lw.Robot) -> None:
    torch = pytest.importorskip("torch")
    found = lw.simulate(puma, torch.zeros(2, 6), duration=0.01)
    assert found.q.shape == (2, 11, 6) and found.q.dtype == torch.float32
    assert isinstance(found.energy.total, torch.Tensor)
    expected = lw.simulate(puma, np.zeros((2, 6), np.float32), duration=0.01)
    assert_same(found.q.numpy(), expected.q)
