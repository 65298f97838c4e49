"""Recorded motions: velocities, accelerations and equations from a log of positions and torques.

    H(f) = 1 / (1 + (f / bandwidth)⁸)

A zero-phase low-pass filter, as a Butterworth filter of order 4 run forwards and backwards. It is
applied to the positions, whose derivatives are those of their sines; then to torques and regressor
alike, so that the equation ``tau = Y π`` still holds of what is left [Gautier, Vandanjon and
Presse 1994]. At each end, one over the bandwidth is cut off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.identification.unknowns import Motion, numbers
from linkwise.model.joints import Revolute
from linkwise.robot import Robot

Array = NDArray[np.float64]
UNEVEN = 1e-3  # of a sample's time: steps of time that differ by less count as even
MOST_UNEVEN = 0.5  # beyond, samples are missing or their times are wrong
PER_BANDWIDTH = 2.5  # samples kept in one over the bandwidth: those between tell nothing new
LEAST = 20  # samples that are left


class Filter(NamedTuple):
    """A low-pass filter without phase, for samples of one log."""

    bandwidth: float  # Hz
    step: float  # s
    kept: slice  # samples that are kept of filtered equations

    def __call__(self, x: Array, derivative: int = 0) -> Array:
        """Filter samples (n, ...), or differentiate them, too."""
        n = len(x)
        u = np.linspace(0.0, 1.0, n).reshape(-1, *[1] * (x.ndim - 1))
        line = x[0] + u * (x[-1] - x[0])
        rest = x - line
        odd = np.concatenate([rest[:-1], -rest[:0:-1]])  # periodic, and smooth at both ends
        f = np.fft.rfftfreq(len(odd), self.step)
        gain = (2j * np.pi * f) ** derivative / (1.0 + (f / self.bandwidth) ** 8)
        smooth = np.fft.irfft(np.fft.rfft(odd, axis=0).T * gain, len(odd)).T[:n]
        slope = (x[-1] - x[0]) / (self.step * (n - 1))
        return np.asarray(smooth + (line, slope, 0.0)[derivative])

    def equations(self, x: Array) -> Array:
        """Filter rows (n, nv) or (n, nv, k) of an equation; rows that say the same are left out."""
        if x.ndim == 2:
            return self(x)[self.kept]
        return np.stack([self(x[..., k])[self.kept] for k in range(x.shape[-1])], axis=-1)


def logged(
    robot: Robot, t: ArrayLike, q: ArrayLike, tau: ArrayLike | None, bandwidth: float | None
) -> tuple[Motion, Array, Filter]:
    """States of a log, its torques, and the filter for the equations."""
    if robot.nq != robot.nv:
        raise ValueError(
            f"identify: {robot.name} has joints whose positions are not angles or lengths (nq is "
            f"{robot.nq}, nv {robot.nv}), and a log is filtered number by number; expected qd and "
            "qdd, and no t"
        )
    times, Q, T = numbers("t", t, "(n,)"), *(
        numbers(name, x, f"(n, {robot.nv})") for name, x in (("q", q), ("tau", tau))
    )  # fmt: skip
    if times.ndim != 1 or Q.shape != (len(times), robot.nq) or T.shape != Q.shape:
        raise ValueError(
            f"identify: t, q and tau have shapes {times.shape}, {Q.shape} and {T.shape}; expected "
            f"one log: (n,), (n, {robot.nq}) and (n, {robot.nv})"
        )
    times, Q, T = _even(times, _unwrapped(robot, Q), T)
    lowpass = _filter(times, bandwidth)
    return Motion(*(lowpass(Q, k) for k in range(3))), T, lowpass


def _even(t: Array, q: Array, tau: Array) -> tuple[Array, Array, Array]:
    """Samples at even times."""
    if len(t) < LEAST:
        raise ValueError(f"identify: t has {len(t)} samples; expected {LEAST} at least")
    steps = np.diff(t)
    even = (t[-1] - t[0]) / (len(t) - 1)
    k = int(np.argmax(np.abs(steps - even)))
    if not even > 0.0 or abs(steps[k] - even) > MOST_UNEVEN * even:
        raise ValueError(
            f"identify: t[{k + 1}] - t[{k}] is {steps[k]:.6g} s, and {even:.6g} s on average; "
            "expected times of one log without gaps, in s, increasing evenly"
        )
    if abs(steps[k] - even) <= UNEVEN * even:
        return t, q, tau
    at = np.linspace(t[0], t[-1], len(t))
    q, tau = (np.stack([np.interp(at, t, y) for y in x.T], axis=-1) for x in (q, tau))
    return at, q, tau


def _unwrapped(robot: Robot, q: Array) -> Array:
    """Angles without jumps of a whole turn."""
    turns = [x.q_index for x in robot.tree.links
             if x.follows is None and isinstance(x.joint, Revolute)]  # fmt: skip
    q = q.copy()
    q[:, turns] = np.unwrap(q[:, turns], axis=0)
    return q


def _filter(t: Array, bandwidth: float | None) -> Filter:
    step = float(t[-1] - t[0]) / (len(t) - 1)
    if isinstance(bandwidth, bool) or not isinstance(bandwidth, (int, float, np.number)):
        raise TypeError(
            f"identify: bandwidth is {bandwidth!r}; expected Hz, above the motion's frequencies "
            "and below the noise, as bandwidth=10"
        )
    if not 0.0 < bandwidth < 0.5 / step:
        raise ValueError(
            f"identify: bandwidth is {bandwidth} Hz; expected more than 0 and less than half the "
            f"log's {1.0 / step:.6g} samples a second"
        )
    margin = round(1.0 / (bandwidth * step))
    kept = slice(margin, len(t) - margin, max(1, int(1.0 / (PER_BANDWIDTH * bandwidth * step))))
    if len(range(*kept.indices(len(t)))) < LEAST:
        raise ValueError(
            f"identify: a log of {t[-1] - t[0]:.6g} s is too short for a bandwidth of {bandwidth} "
            f"Hz: {len(range(*kept.indices(len(t))))} samples that differ are left; expected "
            f"{LEAST}, of a longer log or a larger bandwidth"
        )
    return Filter(float(bandwidth), step, kept)
