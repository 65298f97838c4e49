"""Every URDF of example-robot-data against Pinocchio, as a table: docs/agreement.md.

    python tools/agreement.py               compare all robots, write the table
    python tools/agreement.py ur5 talos     compare those whose path has the word, print the rows
    python tools/agreement.py --equations   the same equations run by NumPy: no compiler, minutes

Fixed and free base, random states within limits: poses and Jacobians of every link, mass matrix,
inverse dynamics, forward dynamics by both methods. An error is the largest difference over the
largest entry of Pinocchio's result, state by state. The command fails if an error is above its
limit, or if a robot does not load that is not on the reviewed list below.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from textwrap import fill
from typing import Any

import numpy as np
import pinocchio as pin
from pages import DOCS, example, markdown, robots_folder

import linkwise as lw
from linkwise.model.tree import Link
from linkwise.trace.tracer import flatten

TABLE = DOCS / "agreement.md"
LIMIT = 1e-10  # relative; forward dynamics is also allowed ROUNDINGS eps cond(M)
ROUNDINGS = 50
STATES = 8
QUANTITIES = ("pose", "J", "M", "ID", "FD crba", "FD aba")
SWAP = [3, 4, 5, 0, 1, 2]  # Pinocchio orders spatial vectors (linear, angular)

# -- the reviewed list --------------------------------------------------------------------------
# Robots that are refused, and the words of the error that say why. All of these are faults of the
# files: Pinocchio, which checks neither names nor inertias, loads all but ur3.urdf.
REFUSED = {
    "falcon_description/urdf/falcon.urdf": (
        'child link "Z_propeller" does not exist',
        "a joint names a link that is not in the file",
    ),
    "romeo_description/urdf/romeo_laas_small.urdf": (
        "principal inertias",
        "grippers without mass (M is singular), and bodies with negative inertias",
    ),
    "ur_description/urdf/ur3.urdf": ("has no <link>", "an unexpanded xacro file"),
}
# refused unless their mimic joints are free
REFUSED_MIMIC = {
    "alex_description/urdf/alex_psyonic_hands.urdf": (
        'joint="index_q1" does not exist',
        "left hand's mimic joints name joints that are not in the file",
    ),
}
# M is singular: forward dynamics is refused at the call, and all else is compared
NO_FINGERS = "no forward dynamics: fingers without mass, M is singular"
MASSLESS = {
    "bluevolta_description/urdf/bluevolta_bravo7_gripper.urdf": NO_FINGERS,
    "bravo7_description/urdf/bravo7_gripper.urdf": NO_FINGERS,
    "falcon_description/urdf/falcon_bravo7_gripper.urdf": NO_FINGERS,
    "romeo_description/urdf/romeo.urdf": NO_FINGERS,
}
# refused unless strict=False, with which they are compared all the same
IMPOSSIBLE_BODIES = {
    "romeo_description/urdf/romeo_small.urdf": "triangle inequality broken at both shoulders",
}


class Disagreement(Exception):
    """A robot that should load and does not, or the other way round."""


# -- one robot in both libraries ----------------------------------------------------------------


def all_robots(words: Sequence[str] = ()) -> list[str]:
    """URDFs, relative to the folder, whose path has one of the words."""
    root = robots_folder()
    paths = sorted(str(path.relative_to(root)) for path in root.rglob("*.urdf"))
    return [path for path in paths if not words or any(word in path for word in words)]


@dataclass
class Pair:
    """One robot in both libraries, and the way from linkwise's numbers to Pinocchio's."""

    robot: lw.Robot
    model: Any
    data: Any
    frames: list[tuple[str, int]] = field(default_factory=list)

    @property
    def ties(self) -> bool:
        """Whether Pinocchio's model has followers too."""
        return bool(self.model.nv == self.robot.nv)

    def joints(self) -> Iterator[tuple[Link, Any, float, float]]:
        """Joints in both libraries, and what ties the first's numbers to the second's."""
        for link in self.robot.tree.links:
            tie = link.follows
            if tie is None or not self.ties:
                known = self.model.existJointName(link.joint_name)
                index = self.model.getJointId(link.joint_name) if known else 1  # the free base
                factor, offset = (tie.multiplier, tie.offset) if tie else (1.0, 0.0)
                yield link, self.model.joints[index], factor, offset

    def q(self, q: np.ndarray) -> np.ndarray:
        """One configuration in Pinocchio's numbers."""
        out = pin.neutral(self.model)
        for link, joint, factor, offset in self.joints():
            own = factor * q[link.q_index : link.q_index + link.joint.nq] + offset
            out[joint.idx_q : joint.idx_q + joint.nq] = _pin_q(link.kind, joint.nq, own)
        return out

    def rates(self) -> np.ndarray:
        """The matrix from linkwise's joint rates to Pinocchio's."""
        out = np.zeros((self.model.nv, self.robot.nv))
        for link, joint, factor, _ in self.joints():
            rows = slice(joint.idx_v, joint.idx_v + joint.nv)
            columns = slice(link.v_index, link.v_index + link.joint.nv)
            out[rows, columns] = factor * _pin_rates(link)
        return out


def _pin_q(kind: str, size: int, own: np.ndarray) -> Sequence[float]:
    if kind == "free":
        return [*own[4:], *own[1:4], own[0]]
    if kind == "spherical":
        return [*own[1:], own[0]]
    if kind == "planar":
        return [own[0], own[1], np.cos(own[2]), np.sin(own[2])]
    return own if size == len(own) else [np.cos(own[0]), np.sin(own[0])]


def _pin_rates(link: Link) -> np.ndarray:
    if link.kind == "planar":
        raise Disagreement("no robot of example-robot-data had a planar joint; one has now")
    return np.eye(6)[SWAP] if link.kind == "free" else np.eye(link.joint.nv)


def _load(path: str, base: str, mimic: str) -> lw.Robot:
    """The robot; strict only where its bodies can exist."""
    options = {"base": base, "mimic": mimic}
    if path not in IMPOSSIBLE_BODIES:
        return example(path, **options)
    try:
        example(path, **options)
    except lw.RobotFileError:
        return example(path, strict=False, **options)
    raise Disagreement(f"{path}: loads, though it is on the list of impossible bodies")


def _model(path: str, base: str, ties: bool) -> Any:
    """Pinocchio's model; it takes followers only where their drivers come first."""
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    try:
        return pin.buildModelFromUrdf(path, *root, ties)
    except ValueError as error:
        if not ties or "mimic" not in str(error):
            raise
        return pin.buildModelFromUrdf(path, *root, False)


def _pair(path: str, base: str, mimic: str) -> Pair:
    robot = _load(path, base, mimic)
    model = _model(str(robots_folder() / path), base, mimic == "follow")
    model.gravity.linear = np.array(robot.gravity)
    body = pin.FrameType.BODY
    names = [link.name for link in robot.description.links if model.existFrame(link.name, body)]
    frames = [(name, model.getFrameId(name, body)) for name in names]
    return Pair(robot, model, model.createData(), frames)


# -- comparing ----------------------------------------------------------------------------------


def relative(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over largest entry, worst state."""
    states = len(expected)
    error = np.abs(actual - expected).reshape(states, -1).max(axis=1)
    return float((error / np.abs(expected).reshape(states, -1).max(axis=1)).max())


def answer(
    robot: lw.Robot, compiled: bool, function: str, *values: np.ndarray, **options: str
) -> np.ndarray:
    """A function over all states: its kernel, or its equations run by NumPy."""
    if compiled:
        return np.asarray(getattr(robot, function)(*values, **options))
    result = robot.evaluate(function, *(list(value.T) for value in values), **options)
    states = len(values[0])
    flat = np.stack([np.broadcast_to(x, states) for x in flatten(result)], axis=-1)
    return flat.reshape(states, len(result), -1) if isinstance(result[0], list) else flat


@dataclass
class States:
    """Random states, and what Pinocchio says of each."""

    pair: Pair
    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray  # joint accelerations or torques

    def each(self, one: Callable[..., Any]) -> np.ndarray:
        """``one(k, q, B)`` at every state k; B takes linkwise's rates to Pinocchio's."""
        B = self.pair.rates()
        return np.array([one(k, self.pair.q(q), B) for k, q in enumerate(self.q)])

    def mass_matrices(self) -> np.ndarray:
        """Mass matrices."""
        model, data = self.pair.model, self.pair.data

        def one(_: int, q: np.ndarray, B: np.ndarray) -> np.ndarray:
            upper = np.triu(pin.crba(model, data, q))
            return B.T @ (upper + np.triu(upper, 1).T) @ B

        return self.each(one)

    def torques(self) -> np.ndarray:
        """Inverse dynamics."""
        model, data = self.pair.model, self.pair.data
        return self.each(
            lambda k, q, B: B.T @ pin.rnea(model, data, q, B @ self.qd[k], B @ self.u[k])
        )

    def accelerations(self, M: np.ndarray) -> np.ndarray:
        """Forward dynamics: Pinocchio's ABA, which does not know followers, or its M and bias."""
        model, data = self.pair.model, self.pair.data

        def one(k: int, q: np.ndarray, B: np.ndarray) -> np.ndarray:
            if not self.pair.robot.tree.coupled:
                return B.T @ pin.aba(model, data, q, B @ self.qd[k], B @ self.u[k])
            bias = B.T @ pin.nonLinearEffects(model, data, q, B @ self.qd[k])
            return np.linalg.solve(M[k], self.u[k] - bias)

        return self.each(one)

    def kinematics(self) -> tuple[np.ndarray, np.ndarray]:
        """Poses and Jacobians of all frames: (states, frames, 4, 4) and (states, frames, 6, nv)."""
        model, data = self.pair.model, self.pair.data

        def one(_: int, q: np.ndarray, B: np.ndarray) -> list[np.ndarray]:
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacements(model, data)
            answers = []
            for _, frame in self.pair.frames:
                J = np.zeros((6, 0))  # without joints, Pinocchio's function crashes
                if model.nv:
                    J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
                answers.append(np.hstack([data.oMf[frame].homogeneous[:3], _rows(J[SWAP] @ B)]))
            return np.array(answers)

        both = self.each(one)
        return both[..., :4].reshape(*both.shape[:2], 3, 4), _columns(both[..., 4:])


def _rows(J: np.ndarray) -> np.ndarray:
    """(6, nv) as (3, 2 nv), beside a pose."""
    return np.hstack([J[:3], J[3:]])


def _columns(rows: np.ndarray) -> np.ndarray:
    half = rows.shape[-1] // 2
    return np.concatenate([rows[..., :half], rows[..., half:]], axis=-2)


@dataclass
class Row:
    """One line of the table."""

    path: str
    base: str
    mimic: str
    nv: int = 0
    frames: int = 0
    cond: float = 0.0
    errors: dict[str, float] = field(default_factory=dict)
    note: str = ""

    def limit(self, quantity: str) -> float:
        """What an error may be."""
        if quantity.startswith("FD"):
            return max(LIMIT, ROUNDINGS * float(np.finfo(float).eps) * self.cond)
        return LIMIT

    @property
    def bad(self) -> list[str]:
        """Quantities whose error is above its limit."""
        return [name for name, x in self.errors.items() if not x <= self.limit(name)]


def compare(
    path: str, base: str, mimic: str = "free", states: int = STATES, compiled: bool = True
) -> Row:
    """Errors of one robot, or the reason why it does not load."""
    expected = REFUSED.get(path) or (REFUSED_MIMIC.get(path) if mimic == "follow" else None)
    try:
        pair = _pair(path, base, mimic)
    except lw.RobotFileError as error:
        if expected is None or expected[0] not in str(error):
            raise Disagreement(
                f"{path}, {base} base: refused and not on the list: {error}"
            ) from error
        return Row(path, base, mimic, note=f"refused: {expected[1]}")
    if expected is not None:
        raise Disagreement(f"{path}, {base} base: loads, though it is on the reviewed list")
    rng = np.random.default_rng(20240607)
    q = pair.robot.random_q(rng, size=states)
    qd, u = rng.uniform(-3.0, 3.0, (2, states, pair.robot.nv))
    row = _compare(States(pair, q, qd, u), Row(path, base, mimic), compiled)
    if path in IMPOSSIBLE_BODIES:
        row.note = f"strict=False: {IMPOSSIBLE_BODIES[path]}"
    return row


def _has_forward_dynamics(s: States, path: str) -> bool:
    """Whether forward dynamics can be compared; refused only for robots of the reviewed list."""
    try:
        s.pair.robot.operation_count("forward_dynamics", "crba")
    except ValueError as error:
        if path not in MASSLESS or "no inertia to divide by" not in str(error):
            raise Disagreement(f"{path}: forward dynamics is refused: {error}") from error
        return False
    if path in MASSLESS:
        raise Disagreement(f"{path}: forward dynamics is not refused, though it is on the list")
    return True


def _compare(s: States, row: Row, compiled: bool) -> Row:
    robot = s.pair.robot
    row.nv, row.frames = robot.nv, len(s.pair.frames)
    row.errors = _frames(s, compiled)
    if not robot.nv:
        row.note = "agrees; one body: only a free base moves"
        return row
    M = s.mass_matrices()
    row.cond = float(np.linalg.cond(M).max())
    row.errors["M"] = relative(answer(robot, compiled, "mass_matrix", s.q), M)
    tau = answer(robot, compiled, "inverse_dynamics", s.q, s.qd, s.u)
    row.errors["ID"] = relative(tau, s.torques())
    if not _has_forward_dynamics(s, row.path):
        row.note = MASSLESS[row.path]
        return row
    qdd = s.accelerations(M)
    for method in ("crba", "aba"):
        own = answer(robot, compiled, "forward_dynamics", s.q, s.qd, s.u, method=method)
        row.errors[f"FD {method}"] = relative(own, qdd)
    return row


def _frames(s: States, compiled: bool) -> dict[str, float]:
    """Errors of poses and Jacobians; a kernel for the last frame alone: one each is a long wait."""
    robot, (poses, J) = s.pair.robot, s.kinematics()
    errors = {"pose": 0.0, "J": 0.0}
    last = len(s.pair.frames) - 1
    calls = [(i, False) for i in range(last + 1)] + ([(last, True)] if compiled else [])
    for i, kernel in calls:
        frame = s.pair.frames[i][0]
        pose = answer(robot, kernel, "forward_kinematics", s.q, frame=frame)[:, :3]
        errors["pose"] = max(errors["pose"], relative(pose, poses[:, i]))
        if np.any(J[:, i]):
            own = answer(robot, kernel, "jacobian", s.q, frame=frame)
            errors["J"] = max(errors["J"], relative(own, J[:, i]))
    return errors


def rows_of(path: str, states: int = STATES, compiled: bool = True) -> list[Row]:
    """Fixed and free base; where the file has mimic joints, also with these following."""
    rows = [compare(path, base, "free", states, compiled) for base in ("fixed", "free")]
    bases = [row.base for row in rows if row.errors and row.nv]
    if path in REFUSED_MIMIC or (bases and _load(path, "free", "follow").tree.coupled):
        rows += [compare(path, base, "follow", states, compiled) for base in bases]
    return rows


# -- the table ----------------------------------------------------------------------------------


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned Markdown."""
    head = ["robot", "base", "mimic", "nv", "links", *QUANTITIES, "cond(M)", "status"]
    return markdown(head, [_cells(row) for row in rows])


def _cells(row: Row) -> list[str]:
    if not row.errors:
        return [row.path, row.base, row.mimic, *[""] * (len(QUANTITIES) + 3), row.note]
    errors = [f"{row.errors[name]:.0e}" if name in row.errors else "" for name in QUANTITIES]
    status = "above limit: " + ", ".join(row.bad) if row.bad else row.note or "agrees"
    size = [str(row.nv), str(row.frames)]
    cond = f"{row.cond:.0e}" if row.nv else ""
    return [row.path, row.base, row.mimic, *size, *errors, cond, status]


def page(rows: Sequence[Row], compiled: bool) -> str:
    """docs/agreement.md."""
    how = "compiled kernels" if compiled else "equations run by NumPy (`--equations`)"
    compared = [row for row in rows if row.errors]
    worst = {name: max(row.errors.get(name, 0.0) for row in compared) for name in QUANTITIES}
    loaded = {row.path for row in compared}
    refused = sorted({row.path for row in rows} - loaded)
    summary = ", ".join(f"{name} {x:.0e}" for name, x in worst.items())
    made = (
        f"Made by `make agreement` (`tools/agreement.py`): all {len(loaded) + len(refused)} URDFs "
        f"of example-robot-data {version('example-robot-data')}, Pinocchio {pin.__version__}, "
        f"{STATES} random states each, {how}. {len(loaded)} load and are compared on a fixed and "
        f"on a free base; {len(refused)} are refused for the reason given."
    )
    errors = (
        "An error is the largest difference from Pinocchio's result over the largest entry of "
        f"that result, in the worst state. Worst of all robots: {summary}. The limit is {LIMIT:g}; "
        "forward dynamics solves a system with the mass matrix M, so its limit is at least "
        f"{ROUNDINGS} rounding errors times the condition number of M, which the table lists."
    )
    return f"""# Agreement with Pinocchio on public robots

{fill(made, 100)}

{fill(errors, 100)}

- `pose`, `J`: pose and Jacobian of every link of the file. `M`: mass matrix. `ID`: inverse
  dynamics. `FD crba`, `FD aba`: forward dynamics by these two methods.
- `mimic` "free": mimic joints move on their own, as in Pinocchio by default. "follow": they follow
  the joint they name. Pinocchio's side is then a model with `mimic=True`; where Pinocchio does not
  take the file so (Talos' grippers), it is `GᵀMG` of its model with free mimic joints, where G
  takes our joint rates to its. Pinocchio's ABA has no mimic joints, so forward dynamics is compared
  with a solve of its mass matrix and bias.
- `strict=False` in the status: the file has bodies that cannot exist. `linkwise.load` refuses such
  a file with the place of the body, and takes it as written only with `strict=False`.

{table(rows)}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, print the rows; write the table when all robots were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="only robots whose path has one of these words")
    parser.add_argument("--equations", action="store_true", help="compile nothing: quick")
    given = parser.parse_args(arguments)
    words, compiled = given.words, not given.equations
    rows: list[Row] = []
    failures: list[str] = []
    for path in all_robots(words):
        try:
            found = rows_of(path, compiled=compiled)
        except Disagreement as problem:
            failures.append(str(problem))
            continue
        rows += found
        for row in found:
            print("  ".join(_cells(row)), flush=True)
    failures += [f"{r.path}, {r.base}, {r.mimic}: {', '.join(r.bad)}" for r in rows if r.bad]
    if failures:
        raise SystemExit("\n".join(["robots that disagree:", *failures]))
    if not words:
        TABLE.write_text(page(rows, compiled), encoding="utf-8")


if __name__ == "__main__":
    main()
