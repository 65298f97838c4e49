"""What is kept of many numbers: counts, moments, extremes with their states, histograms.

    count, failed     states with an answer, and without one
    mean, spread      of each number; the sum of squares about the mean
    least, most       with the states that attain them
    histogram         counts of each number in equal bins; what is beyond is in the outermost
    beyond            how many of each number are larger in size than a limit; in any of them
    worst             the numbers of largest size, with their states

All of it can be merged [Chan, Golub, LeVeque 1979]; merged in the order of the chunks, the result
does not depend on who computed which chunk, to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.sampling.draws import PIECE

Array = NDArray[Any]
Kept = dict[str, Array]


def shapes(m: int, columns: int, keep: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Of what is kept of m numbers of states with so many columns."""
    bins, worst = keep["bins"], keep["worst"]
    return {
        "count": (), "failed": (), "mean": (m,), "spread": (m,), "least": (m,), "most": (m,),
        "least_states": (m, columns), "most_states": (m, columns), "histogram": (m, bins),
        "beyond": (m,), "beyond_any": (), "worst": (m, worst), "worst_states": (m, worst, columns),
    }  # fmt: skip


WHOLE = ("count", "failed", "histogram", "beyond", "beyond_any")  # whole numbers


def packed(kept: Kept) -> Array:
    """All that is kept as one row; whole numbers below 2^53 stay exact."""
    return np.concatenate([np.ravel(x).astype(float) for x in kept.values()])


def unpacked(row: Array, shape: Mapping[str, tuple[int, ...]]) -> Kept:
    """The reverse of `packed`."""
    found, at = {}, 0
    for name, own in shape.items():
        size = prod(own)
        x = row[at : at + size].reshape(own)
        found[name] = x.astype(np.int64) if name in WHOLE else x
        at += size
    return found


class Reduction:
    """A chunk being reduced, piece by piece."""

    def __init__(
        self, m: int, columns: int, keep: Mapping[str, Any], ranges: Array, limits: Array | None
    ) -> None:
        self.ranges, self.bins = ranges, keep["bins"]
        self.limits = None if limits is None else np.broadcast_to(limits, m)
        kept = {name: np.zeros(s) for name, s in shapes(m, columns, keep).items()}
        kept |= {name: kept[name].astype(np.int64) for name in WHOLE}
        kept["least"][:], kept["most"][:], kept["worst"][:] = np.inf, -np.inf, -np.inf
        for name in ("least_states", "most_states", "worst_states"):
            kept[name][:] = np.nan
        self._kept = kept
        self._moments: list[tuple[int, Array, Array]] = []
        self._columns, self._scaled = np.empty((2, m, PIECE))
        self._places = np.empty((m, PIECE), np.intp)

    def add(self, found: Array, state: Mapping[str, Array]) -> None:
        """The numbers (count, m) of at most `PIECE` states."""
        kept, n = self._kept, len(found)
        x = self._columns[:, :n]
        np.copyto(x, found.T)  # a number's values side by side
        rows: Array | None = None  # where they are in the state
        lowest, highest = x.argmin(1), x.argmax(1)  # of a row with NaN, that
        each = np.arange(len(x))
        if not np.isfinite([x[each, lowest], x[each, highest]]).all():
            rows = np.flatnonzero(np.isfinite(x).all(0))
            kept["failed"] += n - len(rows)
            if not len(rows):
                return
            x = np.ascontiguousarray(x[:, rows])
            lowest, highest = x.argmin(1), x.argmax(1)
        least, most = x[each, lowest], x[each, highest]
        kept["count"] += x.shape[1]
        self._moments.append(self._moment(x))
        self._histograms(x)
        self._extremes("least", least, -least, lowest, state, rows)
        self._extremes("most", most, most, highest, state, rows)
        size = np.maximum(-least, most)
        self._beyond(x, size)
        for i in np.flatnonzero(size > kept["worst"][:, -1]):
            self._worst(int(i), np.abs(x[i]), state, rows)

    def _moment(self, x: Array) -> tuple[int, Array, Array]:
        n, mean, away = x.shape[1], x.mean(1), self._scaled[:, : x.shape[1]]
        np.subtract(x, mean[:, None], out=away)
        return n, mean, np.einsum("ij,ij->i", away, away)

    def _histograms(self, x: Array) -> None:
        low, high = self.ranges.T
        place, whole = self._scaled[:, : x.shape[1]], self._places[:, : x.shape[1]]
        np.subtract(x, low[:, None], out=place)
        place *= (self.bins / (high - low))[:, None]
        np.clip(place, 0, self.bins - 1, out=place)  # also what rounding puts outside
        np.copyto(whole, place, casting="unsafe")
        for own, places in zip(self._kept["histogram"], whole, strict=True):
            own += np.bincount(places, minlength=self.bins)

    def _extremes(
        self, name: str, found: Array, rank: Array, at: Array, state: Any, rows: Array | None
    ) -> None:
        kept = self._kept
        before = kept[name] if name == "most" else -kept[name]
        for i in np.flatnonzero(rank > before):
            kept[name][i] = found[i]
            kept[f"{name}_states"][i] = _rows(state, at[i : i + 1], rows)[0]

    def _beyond(self, x: Array, size: Array) -> None:
        if self.limits is None or not (size > self.limits).any():
            return
        some = np.zeros(x.shape[1], bool)
        for i in np.flatnonzero(size > self.limits):
            own = np.abs(x[i]) > self.limits[i]
            self._kept["beyond"][i] += np.count_nonzero(own)
            some |= own
        self._kept["beyond_any"] += np.count_nonzero(some)

    def _worst(self, i: int, size: Array, state: Any, rows: Array | None) -> None:
        worst, states = self._kept["worst"][i], self._kept["worst_states"][i]
        at = np.flatnonzero(size > worst[-1])
        if len(at) > 2 * len(worst):  # far too many: those below the wanted ones are left out
            at = at[size[at] >= np.partition(size[at], -len(worst))[-len(worst)]]
        at = at[np.argsort(-size[at], kind="stable")[: len(worst)]]
        both = np.concatenate([worst, size[at]])
        order = np.argsort(-both, kind="stable")[: len(worst)]
        all_states = np.concatenate([states, _rows(state, at, rows)])
        worst[:], states[:] = both[order], all_states[order]

    def result(self) -> Kept:
        """What is kept of all pieces."""
        if self._moments:
            counts, means, spreads = (np.array(x) for x in zip(*self._moments, strict=True))
            share = counts[:, None] / counts.sum()
            mean = (share * means).sum(0)
            self._kept["mean"] = mean
            away = counts[:, None] * (means - mean) ** 2
            self._kept["spread"] = spreads.sum(0) + away.sum(0)
        return self._kept


def _rows(state: Mapping[str, Array], at: Array, rows: Array | None) -> Array:
    """Whole states (len(at), columns)."""
    where = at if rows is None else rows[at]
    return np.concatenate([x[where].reshape(len(at), -1) for x in state.values()], 1)


def merged(parts: Sequence[Kept]) -> Kept:
    """What is kept of several chunks as one, the first before the second and so on."""
    total = {name: np.array(x) for name, x in parts[0].items()}
    for part in parts[1:]:
        _merge(total, part)
    return total


def _merge(total: Kept, part: Kept) -> None:
    n, more = int(total["count"]), int(part["count"])
    away, share = part["mean"] - total["mean"], more / max(n + more, 1)
    total["spread"] += part["spread"] + away**2 * (n * share)
    total["mean"] += away * share
    for name in WHOLE:
        total[name] += part[name]
    for name, better in (("least", np.less), ("most", np.greater)):
        taken = better(part[name], total[name])
        total[name][taken] = part[name][taken]
        total[f"{name}_states"][taken] = part[f"{name}_states"][taken]
    worst = np.concatenate([total["worst"], part["worst"]], 1)
    order = np.argsort(-worst, axis=1, kind="stable")[:, : total["worst"].shape[1]]
    states = np.concatenate([total["worst_states"], part["worst_states"]], 1)
    total["worst"] = np.take_along_axis(worst, order, 1)
    total["worst_states"] = np.take_along_axis(states, order[..., None], 1)


def quantiles(kept: Kept, ranges: Array, shares: Sequence[float]) -> tuple[Array, Array]:
    """Values (m, len(shares)) below which a share of each number lies, and how far off they may be.

    A quantile is in the bin where the count passes the share, placed there as if the bin were
    evenly filled: its error is at most the bin's width. The outermost bins end at the extremes.
    """
    m, bins = kept["histogram"].shape
    values, errors = np.empty((2, m, len(shares)))
    for i, counts in enumerate(kept["histogram"]):
        edges = np.linspace(ranges[i, 0], ranges[i, 1], bins + 1)
        edges[0], edges[-1] = min(edges[0], kept["least"][i]), max(edges[-1], kept["most"][i])
        edges = np.clip(edges, kept["least"][i], kept["most"][i])
        sums = np.concatenate([[0], np.cumsum(counts)])
        for k, share in enumerate(shares):
            wanted = share * sums[-1]
            bin_ = int(np.clip(np.searchsorted(sums, wanted, side="left") - 1, 0, bins - 1))
            part = (wanted - sums[bin_]) / max(counts[bin_], 1)
            width = edges[bin_ + 1] - edges[bin_]
            values[i, k], errors[i, k] = edges[bin_] + part * width, width
    return values, errors
