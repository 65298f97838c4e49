"""Simulations on a GPU take the steps that the processor takes, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.motion.integrators import INTEGRATORS

cupy = pytest.importorskip("cupy")
if not cupy.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)
pytest.importorskip("llvmlite")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.filterwarnings("ignore:simulate. .* rows failed:RuntimeWarning")
def test_a_gpu_takes_the_same_steps(name: str, dtype: str) -> None:
    robot, rng = lw.load("iiwa14"), np.random.default_rng(0)
    q, qd = (x.astype(dtype) for x in (robot.random_q(rng, size=333), rng.normal(size=(333, 7))))
    q[7, 1] = np.nan
    law = lw.control.pd(robot, 50.0, 5.0)
    for every in (4, None):
        run: Any = {"controller": law, "duration": 0.3, "integrator": name, "every": every}
        here = lw.simulate(robot, q, qd, **run)
        there = lw.simulate(robot, q, qd, device="cuda", **run)
        methods = {robot.method_for("forward_dynamics", at, dtype=dtype) for at in ("cpu", "cuda")}
        if len(methods) == 1:
            np.testing.assert_array_equal(there.q, here.q)
        else:  # another method, other roundings
            np.testing.assert_allclose(there.q, here.q, atol=1e-2 if dtype == "float32" else 1e-8)
        assert there.status.tolist() == here.status.tolist()


@pytest.mark.parametrize("name", ["cupy", "torch", "jax.numpy"])
def test_arrays_on_a_gpu_stay_there(name: str) -> None:
    library = pytest.importorskip(name)
    robot, rng = lw.load("iiwa14"), np.random.default_rng(0)
    q, qd = (rng.normal(size=(5, 7)).astype(np.float32) for _ in range(2))
    sent: Any = library.asarray
    if name == "torch":
        sent = lambda x: library.from_numpy(x).cuda()  # noqa: E731
    there = lw.simulate(robot, sent(q), sent(qd), lambda t, q, qd: -qd, duration=0.02)
    assert type(there.q) is type(sent(q)) and type(there.energy.total) is type(there.q)
    here = lw.simulate(robot, q, qd, lambda t, q, qd: -qd, duration=0.02, device="cuda")
    np.testing.assert_array_equal(there.numpy().q, here.q)
    fetched = (
        there.q.cpu().numpy()
        if name == "torch"
        else np.asarray(there.q.get() if name == "cupy" else there.q)
    )
    np.testing.assert_array_equal(fetched, here.q)
