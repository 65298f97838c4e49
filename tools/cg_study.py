"""How many iterations conjugate gradients need: writes docs/papers/conjugate-gradients.md.

The study that Fijany and Scheid left open: iterations against the number of joints, the gear ratio
and the tolerance, for several preconditioners; and what that means beside the direct methods.
Mass matrices come from linkwise; the iterations run on them densely, which counts the same.
Run: python tools/cg_study.py
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from pages import DOCS, bundled, example

import linkwise as lw
from linkwise.models import BUNDLED

PAGE = DOCS / "papers" / "conjugate-gradients.md"
STATES = 21
TOLERANCE = 1e-6
ARMS = (
    "ur_description/urdf/ur5_robot.urdf", "xarm_description/urdf/xarm7.urdf",
    "panda_description/urdf/panda.urdf", "kinova_description/robots/kinova.urdf",
    "z1_description/urdf/z1.urdf",
)  # fmt: skip
Array = np.ndarray
Solve = Callable[[Array], Array]


def robot_with_motors(name: str, motors: float) -> lw.Robot:
    """A bundled robot with scaled rotor inertias; for iiwa, 1 kg m² is one."""
    bundled = BUNDLED[name]
    rows = [
        replace(
            row,
            motor_inertia=0.0,
            armature=motors * (1.0 if name == "iiwa14" else row.gear**2 * row.motor_inertia),
        )
        for row in bundled.rows
    ]
    with warnings.catch_warnings():  # that published links break the triangle inequality is known
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        return lw.from_dh(rows, bundled.convention, strict=False)


def random_chain(n: int, rotor: float, seed: int = 0) -> lw.Robot:
    """A chain of links of about a kilogram and 0.3 m, axes in all directions."""
    rng = np.random.default_rng(seed)
    rows = [
        lw.DHRow(
            a=0.3 * rng.uniform(0.5, 1.5), alpha=rng.uniform(-np.pi, np.pi),
            d=0.1 * rng.normal(), mass=rng.uniform(0.5, 1.5), com=(-0.15, 0.0, 0.0),
            inertia=(0.002, 0.01, 0.01), armature=rotor,
        )
        for _ in range(n)
    ]  # fmt: skip
    return lw.from_dh(rows)


def systems(robot: lw.Robot, seed: int = 1) -> list[tuple[Array, Array, Array]]:
    """(M, right-hand side, M a little earlier) at random states."""
    rng = np.random.default_rng(seed)
    q, qd, tau = rng.normal(size=(3, STATES, robot.nv))
    columns = list(q.T)
    M = _stack(robot.evaluate("mass_matrix", columns, method="crba"))
    before = _stack(robot.evaluate("mass_matrix", list((q - 0.01 * qd).T), method="crba"))
    bias = np.stack(
        [np.broadcast_to(x, STATES) for x in robot.evaluate("bias", columns, list(qd.T))], -1
    )
    return list(zip(M, tau - bias, before, strict=True))


def _stack(rows: list[list[Array]]) -> Array:
    """Nested lists of arrays over states -> (states, n, n)."""
    return np.moveaxis(
        np.array([[np.broadcast_to(x, STATES) for x in row] for row in rows], dtype=float), -1, 0
    )


def preconditioners(M: Array, before: Array) -> dict[str, Solve]:
    """Ways to scale: none, the paper's diagonal, and attempts to do better."""
    d = np.diag(M)
    n = len(d)
    place = np.arange(n)
    band = np.where(np.abs(np.subtract.outer(place, place)) <= 2, M, 0.0)
    shift = max(0.0, -1.01 * np.linalg.eigvalsh(band)[0])
    ways = {
        "band of 5": band + shift * np.eye(n),
        "blocks of 7": np.where(np.equal.outer(place // 7, place // 7), M, 0.0),
        "10 ms ago": before,
    }
    inverses = {name: np.linalg.inv(A) for name, A in ways.items()}
    narrow = np.linalg.inv(M.astype(np.float32)).astype(float)
    inverses["float32"] = (narrow + narrow.T) / 2
    scaled = {name: (lambda r, A=A: A @ r) for name, A in inverses.items()}
    return {"none (ccg)": lambda r: r, "diagonal (pcg)": lambda r: r / d, **scaled}


def iterations(M: Array, b: Array, scale: Solve, tolerance: float, limit: int) -> int:
    """Conjugate gradients; returns how many steps it took, or the limit."""
    x = np.zeros_like(b)
    r = b.copy()
    z = scale(r)
    p, rho = z, z @ r
    for k in range(limit):
        if r @ r <= tolerance**2 * (b @ b):
            return k
        Ap = M @ p
        alpha = rho / (p @ Ap)
        x, r = x + alpha * p, r - alpha * Ap
        z = scale(r)
        new = z @ r
        p, rho = z + (new / rho) * p, new
    return limit


def medians(robot: lw.Robot, tolerance: float = TOLERANCE) -> dict[str, int]:
    """Median iterations for each preconditioner."""
    counts: dict[str, list[int]] = {}
    for M, b, before in systems(robot):
        for name, scale in preconditioners(M, before).items():
            steps = iterations(M, b, scale, tolerance, 10 * len(b) + 20)
            counts.setdefault(name, []).append(steps)
    return {name: int(np.median(steps)) for name, steps in counts.items()}


def table(title: str, rows: dict[str, dict[str, int]]) -> str:
    """Median iterations, one row per case, as Markdown."""
    names = list(next(iter(rows.values())))
    lines = [f"| {title} | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
    lines += [
        f"| {case} | " + " | ".join(str(r[n]) for n in names) + " |" for case, r in rows.items()
    ]
    return "\n".join(lines)


def arms() -> dict[str, dict[str, int]]:
    """PUMA 560 and iiwa, with and without motors."""
    cases = {
        "PUMA 560, motors": robot_with_motors("puma560", 1.0),
        "PUMA 560, no motors": robot_with_motors("puma560", 1e-3),
        "iiwa 14, no motors": bundled("iiwa14"),
        "iiwa 14, rotors of 1 kg m²": robot_with_motors("iiwa14", 1.0),
    }
    return {name: medians(robot) for name, robot in cases.items()}


def urdf_arms() -> dict[str, dict[str, int]]:
    """Arms of example-robot-data, which have no rotors in their files, and with some."""
    rows = {}
    for path in ARMS:
        robot = example(path, strict=False, mimic="free")
        name = f"{Path(path).stem} ({robot.nv} joints)"
        rows[name] = medians(robot)
        for joint in robot.joint_names:
            robot = robot.with_joint(joint, armature=0.5)
        rows[f"{name}, rotors of 0.5 kg m²"] = medians(robot)
    return rows


def ratios() -> dict[str, dict[str, int]]:
    """PUMA 560 with its gear ratios scaled: rotor inertia grows with their square."""
    scales = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    return {f"{s:g} times": medians(robot_with_motors("puma560", s * s)) for s in scales}


def starts() -> str:
    """Iterations from the accelerations of a moment ago, on a smooth motion."""
    lines = ["| start (`qdd0=`) | iiwa 14, ccg | iiwa 14, pcg | n = 30, ccg | n = 30, pcg |"]
    lines += ["|---|--:|--:|--:|--:|"]
    robots = (bundled("iiwa14"), random_chain(30, 1.0))
    for dt in (None, 1e-2, 1e-3, 1e-4):
        cells = [str(_steps_from(r, m, dt)) for r in robots for m in ("ccg", "pcg")]
        name = "at rest" if dt is None else f"{1e3 * dt:g} ms ago"
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _steps_from(robot: lw.Robot, method: str, dt: float | None) -> int:
    rng = np.random.default_rng(2)
    q, qd, tau = rng.normal(size=(3, STATES, robot.nv))
    start = None
    if dt is not None:
        start = robot.forward_dynamics(q - dt * qd, qd, tau, method="aba")
    given = {"tol": TOLERANCE, "max_iterations": 20 * robot.nv, "qdd0": start, "status": True}
    _, info = robot.forward_dynamics(q, qd, tau, method=method, **given)
    return int(np.median(info.iterations))


def lengths(rotor: float) -> dict[str, dict[str, int]]:
    """Random chains of growing length."""
    return {f"n = {n}": medians(random_chain(n, rotor)) for n in (7, 14, 30, 60, 120, 200)}


def gears() -> dict[str, dict[str, int]]:
    """A chain of 30 joints with growing rotors."""
    return {f"{r:g} kg m²": medians(random_chain(30, r)) for r in (0, 0.1, 1, 10, 100, 1000)}


def tolerances() -> dict[str, dict[str, int]]:
    """iiwa and a chain of 30 joints at several tolerances."""
    rows = {}
    for tolerance in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10):
        rows[f"iiwa 14, {tolerance:.0e}"] = medians(bundled("iiwa14"), tolerance)
        rows[f"n = 30, {tolerance:.0e}"] = medians(random_chain(30, 0.0), tolerance)
    return rows


def costs() -> str:
    """Operations and time of the methods themselves, compiled."""
    lines = [
        "| robot | method | iterations | operations | ns/state |",
        "|---|---|--:|--:|--:|",
    ]
    robots = {name: bundled(name) for name in ("puma560", "iiwa14")}
    robots |= {f"n = {n}, rotors {r:g}": random_chain(n, r) for n in (14, 30) for r in (0, 100)}
    for name, robot in robots.items():
        q, qd, tau = np.random.default_rng(0).normal(size=(3, 4096, robot.nv))
        for method in ("crba", "aba", "fd3", "ccg", "pcg"):
            options: dict[str, float] = {}
            steps = "-"
            count = robot.operation_count("forward_dynamics", method)
            if method in ("ccg", "pcg"):
                options = {"tol": TOLERANCE, "max_iterations": 10 * robot.nv}
                call = robot.forward_dynamics(q, qd, tau, method=method, status=True, **options)
                taken = int(np.median(call[1].iterations))
                steps, count = str(taken), count.iterated(taken)
            best = np.inf
            for _ in range(7):
                start = time.perf_counter()
                robot.forward_dynamics(q, qd, tau, method=method, threads=1, **options)
                best = min(best, time.perf_counter() - start)
            time_ = f"{best / len(q) * 1e9:,.0f}"
            lines.append(f"| {name} | {method} | {steps} | {count.total:,} | {time_} |")
    return "\n".join(lines)


def main() -> None:
    """Run the study and write the page."""
    bare, geared = lengths(0.0), lengths(100.0)
    text = TEMPLATE.format(
        arms=table("arm", arms()),
        urdf=table("arm from a URDF", urdf_arms()),
        ratios=table("PUMA 560, gear ratios", ratios()),
        starts=starts(),
        bare=table("chain without motors", bare),
        geared=table("chain, rotors of 100 kg m²", geared),
        gears=table("rotor inertia, n = 30", gears()),
        tolerances=table("tolerance", tolerances()),
        costs=costs(),
    )
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text)
    print(text)


TEMPLATE = """# Conjugate gradients (Fijany and Scheid)

`forward_dynamics(method="ccg")` and `"pcg"` solve `M qdd = tau - bias` without forming M: a product
`M p` is one outward and one inward sweep in a fixed frame, the preconditioner of `pcg` is the
diagonal of M from composite bodies. The loop is one body in the kernel; every state
stops on its own. A state whose true residual stays above ten times the tolerance is solved by
articulated bodies and flagged `NOT_CONVERGED`.

A. Fijany, R. Scheid, "Efficient conjugate gradient algorithms for computation of the manipulator
forward dynamics". The paper claims that a product costs fewer operations in one fixed frame than in
link frames, that the diagonal of M makes a good preconditioner because M is diagonally dominant,
and that about √n iterations are then enough.

## What is where

| paper | here, in `algorithms/conjugate_gradient.py` |
|---|---|
| projection to a fixed frame (33)-(37) | `project`; root axes in place of the end effector's |
| the product A p (g2, g3) | `times_mass`: `ride` outward, `weigh` inward |
| r_0 = τ - τ_a (47), τ_a by Newton and Euler | `_solver`, `bias` of `rnea.py` |
| CCG, PCG listings | `iterate`, scaled or not |
| M_i, H_i, K_i and the diagonal (64)-(67) | `compose` of `crba.py`, `diagonal_scaling` |

Beyond the paper: sliders, trees, joints of several degrees (their blocks of M in place of its
diagonal), rotors, followers, a start `qdd0`, a stop per state, the true residual at the end.

The paper's sweeps (g2, g3) weigh every link in every iteration. Here the momentum F_i of all that
joint i moves, per unit rate, is formed once, as a column of a composite inertia, and
`(M p)_j = S_j · Σ_{{i ≥ j}} F_i p_i + F_j · Σ_{{i < j}} S_i p_i`: 35 n multiplications and 34 n
additions an iteration where the paper has 47 n and 46 n (`docs/counts.md`).

## Corrections

Found on review of the text; those marked have a test here.

- Both listings: `r_0 = b`, not 0; `p_0 = 0`, not p_1. [tested: the iteration solves]
- `x̃ = C⁻¹ x` should be `x̃ = C x`.
- "First and second moment" are exchanged: k_i is the second, h_i the first.
- (33): the recursion runs from n to 1. (34)-(37): S, P and J are constant in frame i + 1 by the
  text, so R_(i+1) turns them; z_i does take R_i. [tested: the product is M p]
- (38), (39): initial values are ω_0 = 0 and ω̇_0 = 0. (40): V̇_1 = G z_1 is for a vertical first
  joint; in general V̇_0 = -g.
- (50): e_i has length n - i + 1. (51), (55): ė is ω̇. (60): `(Σ m_k) P_i` and `m_k P_(k,i+1)`. (62):
  P_(k,i+2) is P_(k,i+1).
- Before (63): `-M_(i+1) P̂_i P̂_i`, not +; as printed the diagonal is off by 226 %.
  [tested: the scaling is the diagonal]
- (66): K_(i+1), the composite body's, not k_(i+1); as printed, 86 % off. [tested: the same]
- (67): `a_ii = z_i · K_i z_i`. [tested: the same]
- M is diagonally dominant where rotors rule: all six rows of the PUMA's M with its motors, three
  without, two of the iiwa's seven, none of thirty of a general chain (medians of random states).

## Iterations, measured

Median over {{states}} random states, residual 1e-6 of the right-hand side unless said otherwise, by
`python tools/cg_study.py`.

{arms}

{urdf}

{ratios}

The paper expects about √n iterations. That holds where rotors dominate the mass matrix, and only
there.

{bare}

{geared}

{gears}

{tolerances}

On the arms nothing is to be gained: seven joints take seven steps, as any Krylov method does, fewer
only when rotors are most of M.

## What helps

- Rotor inertia helps most: it moves M toward a diagonal matrix, which is what the paper's arms had.
- The paper's diagonal scaling helps a short arm whose joints differ much, such as the PUMA. On long
  chains it takes more iterations than no scaling at all, with motors and without.
- A band of the mass matrix (shifted to be positive definite) does little better: what is far along
  the chain is not small.
- Blocks of M along the chain, factored (of an arm of 7 joints: all of M), save a third at n = 30
  and are worse than nothing from n = 60 on: neighbours across a cut are coupled as strongly as
  inside a block.
- The factors of 10 ms ago, at joint rates of about 1 rad/s, take about a tenth of the iterations at
  every length. They cost a factorization now and then.
- The factors of M in float32 take two or three at every length here (their error is 1e-7 times the
  condition of M): conjugate gradients become the refinement of a direct solve in half the bits.
  Worth it where float32 is much cheaper than float64; on this processor it is twice.
- A start from the accelerations of a moment ago saves a step on an arm, a third to a half of them
  on a chain; it costs nothing.

{starts}

## Beside the direct methods

{costs}

The direct ways are cheaper on these arms: an iteration costs about a fifth of ABA, and a 7-joint
arm needs seven of them. On a general chain of 30 joints ABA takes 13,133 operations; conjugate
gradients take 11,724 before and after the loop (bias, composite bodies, a start, the true residual)
and 1,951 in each iteration. So they would have to converge at once, whatever n is, and come close
only with dominant rotors, few digits, or a good start (`qdd0=`).
""".replace("{{states}}", str(STATES))

if __name__ == "__main__":
    main()
