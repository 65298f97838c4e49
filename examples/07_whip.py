"""A tether cracks like a whip: it is held at one end and falls from level.

    python examples/07_whip.py                               2,000 links, a few seconds
    python examples/07_whip.py 100_000 whip.png whip.gif     10 km of links, and a film (minutes)

The free part falls straight down; the held part swings; the bend between them runs outward and
takes the energy of the fall with it, so that the end cracks. Nothing is lost to friction: the
change of the total energy is the error of the steps.

Steps are those of Runge and Kutta, nearly as long as is stable: below 2.8 over the highest
frequency. Without more, that is sqrt(3 T / (m l)) at a tension T: a wave as short as the links. A
small flywheel at each joint, a = 100 m l² (`armature`), slows waves shorter than twenty links. In a
plane, where every second joint bends, waves of number k then have the frequency
sqrt(T k² / (m / l + 2 a l k⁴)), at most sqrt(T / sqrt(8 a m)), and steps may be nine times as long.
"""

import importlib.util
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import linkwise as lw

LENGTH, MASS, GRAVITY = 0.1, 0.1, 9.81  # of a link
FLYWHEEL = 100 * MASS * LENGTH**2
END, FRAMES = 1.5, 72  # in units of sqrt(L / g); pictures of the motion, denser near the end


class Frame(NamedTuple):
    t: float  # in units of sqrt(L / g)
    x: np.ndarray  # of the joints and the tip, in units of L
    z: np.ndarray
    speed: float  # of the tip, in units of sqrt(g L)
    error: float  # change of the total energy over the kinetic energy
    steps: int


def fall(tether: lw.Robot) -> Iterator[Frame]:
    """Let go of a level tether."""
    n, unit = tether.nv, np.sqrt(tether.nv * LENGTH / GRAVITY)
    q, qd, t, steps = tether.neutral(), np.zeros(n), 0.0, 0
    energy = tether.potential_energy(q)
    for goal in END * (1.0 - np.linspace(1.0, 0.0, FRAMES + 1)[1:] ** 1.5):
        while t < goal * unit:
            if steps % max(n // 2000, 1) == 0:
                h = longest_step(tether, q, qd)
            q, qd = runge_kutta(tether, q, qd, h)
            t, steps = t + h, steps + 1
        kinetic = tether.kinetic_energy(q, qd)
        error = (kinetic + tether.potential_energy(q) - energy) / kinetic
        yield Frame(t / unit, *shape(q), tip_speed(q, qd) / (GRAVITY * unit), error, steps)


def runge_kutta(
    tether: lw.Robot, q: np.ndarray, v1: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """Angles and rates after a step, no torques at the joints."""
    a1 = tether.forward_dynamics(q, v1, np.zeros_like(q))
    v2 = v1 + 0.5 * h * a1
    a2 = tether.forward_dynamics(q + 0.5 * h * v1, v2, np.zeros_like(q))
    v3 = v1 + 0.5 * h * a2
    a3 = tether.forward_dynamics(q + 0.5 * h * v2, v3, np.zeros_like(q))
    v4 = v1 + h * a3
    a4 = tether.forward_dynamics(q + h * v3, v4, np.zeros_like(q))
    return q + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4), v1 + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


def longest_step(tether: lw.Robot, q: np.ndarray, qd: np.ndarray) -> float:
    """Six sevenths of the longest stable step, and no joint turns by more than 0.2 rad in it."""
    qdd = tether.forward_dynamics(q, qd, np.zeros_like(q))
    tension = np.linalg.norm(tether.joint_wrenches(q, qd, qdd)[:, 3:], axis=1).max()
    weight = MASS * GRAVITY * len(q)
    fastest = np.sqrt(max(tension, 0.1 * weight) / np.sqrt(8 * FLYWHEEL * MASS))
    return min(2.4 / fastest, 0.2 / max(np.abs(qd).max(), 1e-9))


def shape(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the joints are; every second joint bends in the plane, one up and the next down."""
    pitch = np.cumsum(turned(q))
    x, z = (np.concatenate(([0.0], np.cumsum(f(pitch)))) / len(q) for f in (np.cos, np.sin))
    return x, z


def tip_speed(q: np.ndarray, qd: np.ndarray) -> float:
    """Speed of the end, from the rates of all links before it."""
    pitch, rate = np.cumsum(turned(q)), np.cumsum(turned(qd))
    return float(LENGTH * np.hypot((rate * np.sin(pitch)).sum(), (rate * np.cos(pitch)).sum()))


def turned(angles: np.ndarray) -> np.ndarray:
    """Turns of each link in the plane, upward."""
    return angles * np.resize([1.0, 0.0, -1.0, 0.0], len(angles))


def draw(frames: list[Frame], n: int, still: str, moving: str = "") -> None:
    """A picture of some frames, and an animation of all where it has a name."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import animation
    from matplotlib import pyplot as plt

    few = [frames[0], *(a for a, b in pairwise(frames) if int(20 * a.t) < int(20 * b.t))]
    figure, axes, line = _axes(plt, n, frames)
    for frame in [*few, frames[-1]]:
        axes.plot(*_thin(frame), color=plt.cm.viridis(0.95 * frame.t / END), lw=1.3)
    line.set_data([f.t for f in frames], [f.speed for f in frames])
    figure.savefig(still, dpi=110)
    print(f"{still} saved")
    if not moving:
        return

    figure, axes, line = _axes(plt, n, frames)
    trail = [axes.plot([], [], color="C0", lw=0.8, alpha=a)[0] for a in (0.12, 0.22, 0.35)]
    rope = axes.plot([], [], color="0.1", lw=1.6)[0]
    clock = axes.text(0.98, 0.97, "", ha="right", va="top", transform=axes.transAxes)
    second = np.sqrt(n * LENGTH / GRAVITY)

    def show(k: int) -> None:
        for back, old in zip((9, 6, 3), trail, strict=True):
            old.set_data(*_thin(frames[max(k - back, 0)]))
        rope.set_data(*_thin(frames[k]))
        clock.set_text(f"{frames[k].t * second:.1f} s")
        line.set_data([f.t for f in frames[: k + 1]], [f.speed for f in frames[: k + 1]])

    order = [*range(len(frames)), *[len(frames) - 1] * 12]
    movie = animation.FuncAnimation(figure, show, frames=order)
    movie.save(moving, writer=animation.PillowWriter(fps=16), dpi=64)


def _thin(frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """A line of at most a thousand points, and its end."""
    every = max(len(frame.x) // 1000, 1)
    return tuple(np.append(v[::every], v[-1]) for v in (frame.x, frame.z))


def _axes(plt: Any, n: int, frames: list[Frame]) -> tuple[Any, Any, Any]:
    """The plane of the fall, with a smaller plot of the tip's speed in its corner."""
    figure, axes = plt.subplots(figsize=(6.4, 6.2), layout="constrained")
    axes.set(xlim=(-0.16, 1.04), ylim=(-1.04, 0.06), aspect="equal")
    axes.set_title(f"{n:,} links, {n * LENGTH / 1e3:g} km, let go from level", fontsize=11)
    axes.plot(0, 0, "ks", ms=6)
    axes.set_xlabel("lengths of the tether")
    inset = axes.inset_axes((0.68, 0.1, 0.3, 0.26))
    sound = 340.0 / np.sqrt(GRAVITY * n * LENGTH)
    fastest = max(frame.speed for frame in frames)
    if sound < fastest:
        inset.axhline(sound, color="C3", lw=0.8)
        inset.text(0.02, sound, "sound", color="C3", fontsize=7, va="bottom")
    inset.set(xlim=(0, END), ylim=(0, 1.05 * fastest))
    inset.set_title("speed of the tip, √(g L)", fontsize=8)
    inset.set_xlabel("time, √(L / g)", fontsize=8)
    inset.tick_params(labelsize=7)
    for one in (axes, inset):
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes, inset.plot([], [], color="C0")[0]


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    frames = []
    print("time   tip speed  energy error     steps   (units of length L and gravity g)")
    for frame in fall(lw.chain(n, length=LENGTH, mass=MASS, armature=FLYWHEEL)):
        frames.append(frame)
        if len(frames) % (FRAMES // 12) == 0:
            print(f"{frame.t:.3f}  {frame.speed:9.2f}  {frame.error:12.1e}  {frame.steps:8,}")
    if importlib.util.find_spec("matplotlib"):
        names = sys.argv[2:4]
        draw(frames, n, *(names or ["whip.png"]))


if __name__ == "__main__":
    main()
