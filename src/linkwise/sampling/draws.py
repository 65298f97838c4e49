"""The states of a chunk: drawn from the study's seed and the chunk's number, piece by piece.

A chunk has a stream of random numbers of its own, made of (seed, chunk) by NumPy's SeedSequence,
and is drawn in pieces of one size, so that its states are the same whoever computes it. The
lattice of ``sequence = "lattice"`` is the Kronecker sequence ``u = frac(shift + n alpha)`` of the
state's number n, with ``alpha_j = phi^-j`` and ``phi^(d+1) = phi + 1`` for d numbers a state, in
whole numbers modulo 2^64: exact, however large n is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.model.configuration import own_joints, spread
from linkwise.robot import Robot
from linkwise.sampling.spec import OF_PARAMETERS, Spec, arguments, sizes_of
from linkwise.spatial.elementary import golden_steps

Array = NDArray[Any]
PIECE = 16_384  # states that are drawn, computed and reduced at once: they stay in a cache
TILE = 64  # states side by side in one row, while draws are scaled: long rows are fast
WORD = 1 << 64


class Source(NamedTuple):
    """How the numbers of one argument are drawn: ``low + width x``, x uniform or normal."""

    name: str
    kind: str  # "uniform", "normal", "fixed", or "turns" for configurations with quaternions
    low: Array  # (size)
    width: Array  # (size)

    @property
    def size(self) -> int:
        """Numbers of a state."""
        return len(self.low)


def sources_of(spec: Spec, robot: Robot) -> list[Source]:
    """Everything that is drawn of a state, in order."""
    found = [_argument(spec, robot, name, n) for name, n in arguments(spec, robot).items()]
    payload = spec.draw.get("payload")
    if payload is not None:
        found.append(_numbers("payload mass", payload.get("mass", 1.0), 1))
        found.append(_numbers("payload com", payload.get("com", 0.0), 3))
    own = spec.draw.get("parameters", {})
    sizes = sizes_of(robot)
    return found + [_numbers(k, own[k], sizes[k]) for k in OF_PARAMETERS if k in own]


def _argument(spec: Spec, robot: Robot, name: str, size: int) -> Source:
    configuration = name in ("q", "target")
    usual = "neutral" if configuration else spec.rollout.get(name, 0.0)
    how = spec.draw.get(name, usual)
    if how == "neutral":
        return Source(name, "fixed", robot.neutral(), np.zeros(size))
    if how != "limits":
        return _numbers(name, how, size)
    if robot.nq != robot.nv:
        return Source(name, "turns", robot.neutral(), np.ones(size))
    ranges = [spread(link) for link, _, _ in own_joints(robot.tree)]
    low, high = np.hstack([np.empty((2, 0)), *ranges])
    return Source(name, "uniform", low, high - low)


def _numbers(name: str, how: Any, size: int) -> Source:
    if not isinstance(how, Mapping):
        return Source(name, "fixed", np.full(size, how, float), np.zeros(size))
    kind, value = next(iter(how.items()))
    first, second = value if isinstance(value, list) else (0.0, value)
    low, high = np.full(size, first, float), np.full(size, second, float)
    return Source(name, kind, low, high - low if kind == "uniform" else high)


class Draws:
    """The states of one study; its arrays are used again for every piece."""

    def __init__(self, spec: Spec, robot: Robot) -> None:
        self.spec, self.robot = spec, robot
        self.sources = sources_of(spec, robot)
        self._room = {s.name: self._begin(s) for s in self.sources}
        self._scales = {s.name: [self._tiled(x) for x in (s.width, s.low)] for s in self.sources}
        self._lattice = Lattice(spec.seed, self.sources) if spec.sequence == "lattice" else None

    @property
    def columns(self) -> list[str]:
        """A name for each number of a state."""
        return [
            source.name if source.size == 1 else f"{source.name}[{k}]"
            for source in self.sources
            for k in range(source.size)
        ]

    def chunk(self, index: int) -> Iterator[dict[str, Array]]:
        """The states (count, size) of each piece of a chunk, by argument."""
        return self.pieces(index, index * self.spec.chunk, self.spec.size(index))

    def pieces(self, stream: int, first: int, count: int) -> Iterator[dict[str, Array]]:
        """Some states: those of a stream, and on the lattice those from a number on.

        The arrays of a piece are overwritten by the next.
        """
        rng = np.random.Generator(np.random.SFC64([self.spec.seed, stream]))
        for a in range(0, count, PIECE):
            n = min(PIECE, count - a)
            for source in self.sources:
                self._fill(rng, source, first + a)
            yield {name: room[:n] for name, room in self._room.items()}

    def _begin(self, source: Source) -> Array:
        return np.tile(source.low, (PIECE, 1)).astype(self.spec.dtype)

    def _tiled(self, x: Array) -> Array:
        return np.tile(x, TILE).astype(self.spec.dtype)

    def _fill(self, rng: np.random.Generator, source: Source, first: int) -> None:
        room = self._room[source.name]
        if source.kind == "fixed":
            return
        if source.kind == "turns":
            _turn(self.robot, rng, room)
            return
        if self._lattice is not None:
            self._lattice.fill(source, first, room)
        elif source.kind == "uniform":
            rng.random(out=room, dtype=room.dtype)
        else:
            rng.standard_normal(out=room, dtype=room.dtype)
        wide = room.reshape(PIECE // TILE, TILE * source.size)
        width, low = self._scales[source.name]
        wide *= width
        wide += low


def _turn(robot: Robot, rng: np.random.Generator, room: Array) -> None:
    """Configurations with quaternions: evenly spread over all turns, positions over ±1 m."""
    for link, q, _ in own_joints(robot.tree):
        own = room[:, q]
        if link.joint.quasi:
            turns = rng.standard_normal((len(room), 4))
            own[:, :4] = turns / np.linalg.norm(turns, axis=1, keepdims=True)
            own[:, 4:] = rng.uniform(-1.0, 1.0, (len(room), link.joint.nq - 4))
        else:
            own[:] = rng.uniform(*spread(link), own.shape)


class Lattice:
    """Evenly spread draws: each state's are a function of its number."""

    def __init__(self, seed: int, sources: list[Source]) -> None:
        drawn = [s for s in sources if s.kind == "uniform"]
        total = sum(s.size for s in drawn)
        steps = [int(x * WORD) for x in golden_steps(total)]
        shifts = np.random.SeedSequence(seed).generate_state(max(total, 1), np.uint64)
        ends = np.cumsum([0, *(s.size for s in drawn)])
        self._at = {s.name: slice(a, a + s.size) for s, a in zip(drawn, ends[:-1], strict=True)}
        self._steps, self._shifts = steps, [int(x) for x in shifts[:total]]
        places = np.arange(PIECE, dtype=np.uint64)[:, None]
        self._tables = {
            s.name: places * np.array(steps[self._at[s.name]], np.uint64) for s in drawn
        }
        self._sum = {name: np.empty_like(x) for name, x in self._tables.items()}

    def fill(self, source: Source, first: int, room: Array) -> None:
        """Uniform numbers of the states from ``first`` on."""
        at, whole = self._at[source.name], self._sum[source.name]
        pairs = zip(self._steps[at], self._shifts[at], strict=True)
        start = np.array([(shift + first * step) % WORD for step, shift in pairs], np.uint64)
        np.add(self._tables[source.name], start, out=whole)
        whole >>= np.uint64(11)  # 53 bits, as many as a number has
        np.multiply(whole, 2.0**-53, out=room, casting="unsafe")
