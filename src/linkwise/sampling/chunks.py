"""One chunk of a study: its states, drawn from the seed and the chunk's number, and what is kept.

A chunk depends on nothing but the study and its own number, so that it does not matter which worker
computes it, when, or how often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise import control
from linkwise.algorithms import functions_of
from linkwise.motion.simulate import simulate
from linkwise.robot import Robot
from linkwise.sampling.spec import ROLLOUT, WORKSPACE, Spec, arguments, frame_of

Array = NDArray[Any]
PILOT = 20_000  # states that tell the range of histograms
BEYOND = 1.25  # how much further histograms go than these
AT_ONCE = 50_000  # states of a piece, which stays in the processor's caches


_loaded: dict[str, Robot] = {}  # by the digest of a study, once per worker


def loaded(spec: Spec) -> Robot:
    """The robot of a study."""
    found = _loaded.get(spec.digest)
    if found is None:
        found = _loaded[spec.digest] = spec.load()
    return found


def drawn(spec: Spec, robot: Robot, rng: np.random.Generator, count: int) -> dict[str, Array]:
    """States: an array (count, size) for each argument."""
    found = {}
    for name, size in arguments(spec, robot).items():
        how = spec.draw.get(name, "neutral" if name == "q" else 0.0)
        if how == "limits":
            found[name] = robot.random_q(rng, size=count)
        elif how == "neutral":
            found[name] = np.tile(robot.neutral(), (count, 1))
        else:
            found[name] = _numbers(rng, how, (count, size))
    payload = spec.draw.get("payload")
    if payload is not None:
        found["payload"] = _payloads(rng, payload, count)
    return {name: x.astype(spec.dtype, copy=False) for name, x in found.items()}


def _numbers(rng: np.random.Generator, how: Any, shape: tuple[int, ...]) -> Array:
    if isinstance(how, Mapping):
        kind, value = next(iter(how.items()))
        return (
            rng.normal(0.0, value, shape)
            if kind == "normal"
            else rng.uniform(value[0], value[1], shape)
        )
    return np.full(shape, float(how))


def _payloads(rng: np.random.Generator, how: Mapping[str, Any], count: int) -> Array:
    """Points of a mass at a place: mass, first and second moments (count, 10)."""
    m = np.abs(_numbers(rng, how.get("mass", 1.0), (count, 1)))
    c = _numbers(rng, how.get("com", 0.0), (count, 3))
    x, y, z = c.T[..., None]
    second = [y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y]
    return np.concatenate([m, m * c, *(m * s for s in second)], 1)


def measured(spec: Spec, robot: Robot, state: Mapping[str, Array]) -> Array:
    """The numbers (count, m) that a study is about; rows without an answer are NaN."""
    more = {"payload": state["payload"]} if "payload" in state else {}
    values = [x for name, x in state.items() if name != "payload"]
    if spec.measure == ROLLOUT:
        return _ends(spec, robot, values[0], values[1], more)
    call = getattr(robot, "forward_kinematics" if spec.measure == WORKSPACE else spec.measure)
    options: dict[str, Any] = {"threads": 1, **more}
    if spec.measure == WORKSPACE or _takes_frame(spec, robot):
        options["frame"] = frame_of(spec, robot)
    found = call(*values, **options)
    if spec.measure == WORKSPACE:
        found = found[..., :3, 3]
    return np.asarray(found).reshape(len(values[0]), -1)


def _takes_frame(spec: Spec, robot: Robot) -> bool:
    return next(iter(functions_of(robot.tree)[spec.measure].values())).takes_frame


def _ends(spec: Spec, robot: Robot, q: Array, qd: Array, more: Mapping[str, Any]) -> Array:
    """How far from the neutral configuration joints end under computed torque.

    The controller knows the robot without its payload; the motion has it.
    """
    how = spec.rollout
    if more:
        raise ValueError("a rollout takes no payload; expected a study of a function")
    law = control.computed_torque(robot, how["kp"], how["kd"], robot.neutral())
    run = simulate(
        robot, q, qd, controller=law, duration=how["duration"], dt=how["dt"], every=None, threads=1
    )
    goal = np.broadcast_to(robot.neutral(), q.shape)
    return np.asarray(robot.difference(run.q[:, -1], goal))


def pilot(spec: Spec) -> Array:
    """The range (m, 2) of histograms, from the first states of a study of the same kind."""
    robot = loaded(spec)
    rng = np.random.default_rng([spec.seed, 2**32 - 1])
    count = min(spec.states, PILOT if spec.measure != ROLLOUT else 200)
    found = measured(spec, robot, drawn(spec, robot, rng, count))
    found = found[np.isfinite(found).all(1)]
    low, high = (found.min(0), found.max(0)) if len(found) else np.zeros((2, found.shape[1]))
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, 1e-12) * BEYOND
    return np.stack([middle - half, middle + half], -1)


def computed(spec: Spec, index: int, ranges: Array) -> dict[str, Array]:
    """What is kept of a chunk."""
    robot = loaded(spec)
    rng = np.random.default_rng([spec.seed, index])
    left, kept = spec.size(index), list[dict[str, Array]]()
    while left:
        count = min(left, AT_ONCE)
        state = drawn(spec, robot, rng, count)
        kept.append(reduced(spec, measured(spec, robot, state), state, ranges))
        left -= count
    return merged(kept)


def reduced(
    spec: Spec, found: Array, state: Mapping[str, Array], ranges: Array
) -> dict[str, Array]:
    """Counts, moments, extremes, histograms and the worst states of some."""
    good: Array = np.asarray(np.isfinite(found).all(1))
    numbers = found if good.all() else found[good]
    rows = np.concatenate([x.reshape(len(x), -1) for x in state.values()], 1)
    rows = rows if good.all() else rows[good]
    m, k = found.shape[1], spec.keep["worst"]
    if not len(numbers):
        numbers, rows = np.empty((0, m)), rows[:0]
    mean = numbers.mean(0, dtype=float) if len(numbers) else np.zeros(m)
    worst = np.full((m, k), -np.inf)
    states = np.full((m, k, rows.shape[1]), np.nan)
    for i in range(m):
        size = np.abs(numbers[:, i])
        best = _largest(size, k)
        worst[i, : len(best)] = size[best]
        states[i, : len(best)] = rows[best]
    empty = not len(numbers)
    return {
        "count": np.array(len(numbers), np.int64),
        "failed": np.array(len(good) - len(numbers), np.int64),
        "mean": mean,
        "spread": ((numbers - mean) ** 2).sum(0, dtype=float) if not empty else np.zeros(m),
        "least": numbers.min(0) if not empty else np.full(m, np.inf),
        "most": numbers.max(0) if not empty else np.full(m, -np.inf),
        "histogram": _histograms(numbers, ranges, spec.keep["bins"]),
        "worst": worst,
        "worst_states": states,
    }


def _largest(x: Array, k: int) -> Array:
    if len(x) <= k:
        return np.argsort(-x)
    best = np.argpartition(x, len(x) - k)[len(x) - k :]
    return best[np.argsort(-x[best])]


def _histograms(numbers: Array, ranges: Array, bins: int) -> Array:
    """Counts (m, bins); what is beyond a range is in its first or last bin."""
    low, width = ranges[:, 0], (ranges[:, 1] - ranges[:, 0]) / bins
    place = np.clip((numbers - low) / width, 0, bins - 1).astype(np.int64)
    m = len(ranges)
    place += np.arange(m) * bins
    return np.bincount(place.ravel(), minlength=m * bins).reshape(m, bins)


def merged(parts: list[dict[str, Array]]) -> dict[str, Array]:
    """Several of what is kept as one, as if all had been computed at once."""
    total = dict(parts[0])
    for part in parts[1:]:
        n, more = int(total["count"]), int(part["count"])
        away = part["mean"] - total["mean"]
        share = more / max(n + more, 1)
        total["spread"] = total["spread"] + part["spread"] + away**2 * n * share
        total["mean"] = total["mean"] + away * share
        for name in ("count", "failed", "histogram"):
            total[name] = total[name] + part[name]
        total["least"] = np.minimum(total["least"], part["least"])
        total["most"] = np.maximum(total["most"], part["most"])
        worst = np.concatenate([total["worst"], part["worst"]], 1)
        states = np.concatenate([total["worst_states"], part["worst_states"]], 1)
        order = np.argsort(-worst, axis=1, kind="stable")[:, : total["worst"].shape[1]]
        total["worst"] = np.take_along_axis(worst, order, 1)
        total["worst_states"] = np.take_along_axis(states, order[..., None], 1)
    return total
