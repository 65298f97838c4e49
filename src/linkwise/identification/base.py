"""Base parameters: the combinations of inertial parameters that torques depend on.

    tau = Y π = Y[:, columns] (combinations π)

Columns of the regressor that are combinations of those to their left, in every state, cannot be
told apart from them [Gautier and Khalil 1990; Gautier 1991]. They are found in two ways that share
nothing but the regressor's equations: by numbers, from floating-point states, where a rest below a
tolerance counts as none; and by structure, from exact states without rounding (``residues.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.algorithms.regressor import regressor_in
from linkwise.identification.residues import P, Residue, exact_turn, independent_columns
from linkwise.model.description import IDENTITY
from linkwise.model.parameters import TEN, body_of, numbers_of, place_of
from linkwise.model.tree import Frame, Link, Tree
from linkwise.robot import Robot
from linkwise.spatial import Transform, Vec3

Array = NDArray[np.float64]
RANK = 1e-9  # of the largest column: a rest that is smaller counts as none
WRITTEN = 1e-7  # coefficients of combinations below count as zero
STATES = 40  # random ones: each joint needs about ten, for the parameters of its own body
ROUNDING = 1e-12  # of coordinates, beside the largest
NUMBERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


class BaseParameters(NamedTuple):
    """The combinations of inertial parameters that joint torques depend on."""

    columns: NDArray[np.intp]  # (rank): numbers of parameters that stand for their combinations
    combinations: Array  # (rank, 10 n): base parameters are ``combinations @ π``
    labels: tuple[str, ...]  # (10 n): of the parameters, as "Izz[link2]"

    @property
    def rank(self) -> int:
        """How many base parameters there are."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Each base parameter as a sum: ``Izz[link2] + 0.1764 m[link3] + ...``."""
        return tuple(
            _sum(row, self.labels, int(k))
            for row, k in zip(self.combinations, self.columns, strict=True)
        )

    def __str__(self) -> str:
        """One line for each."""
        return "\n".join(self.names)


def base_parameters(
    robot: Robot,
    states: int = 0,
    seed: int = 0,
    *,
    by: Literal["numbers", "structure"] = "numbers",
) -> BaseParameters:
    """The combinations of inertial parameters that joint torques depend on (base parameters).

    >>> import linkwise as lw
    >>> lw.base_parameters(lw.load("puma560")).rank
    36

    ``Y π = Y[:, columns] @ (combinations @ π)`` at every state, with Y of `Robot.regressor`; found
    at random states, of which ``states`` sets the number and ``seed`` the choice.

    ``by="structure"`` decides without rounding which columns are independent, at states that are
    exact fractions; a mimic joint with a multiplier other than 1 or -1 is taken for one with an
    angle of its own there.
    """
    if by not in ("numbers", "structure"):
        raise ValueError(f"base_parameters: by is {by!r}; expected 'numbers' or 'structure'")
    if states < 0:
        raise ValueError(f"base_parameters: states is {states}; expected 0 or a positive number")
    refuse_loops("base_parameters", robot)
    n, rng = len(robot.body_names), np.random.default_rng(seed)
    Y = robot.regressor(*random_states(robot, states or enough(robot), rng)).reshape(-1, TEN * n)
    if by == "structure":
        chosen = independent_columns(_exact_rows(robot.tree, states or STATES, rng))
    else:
        chosen = independent(Y)
    found = np.linalg.lstsq(Y[:, chosen], Y, rcond=None)[0] if chosen else np.zeros((0, TEN * n))
    found = np.where(np.abs(found) < WRITTEN, 0.0, found)
    return BaseParameters(np.array(chosen, int), found, labels(robot.body_names))


def excitation(robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> float:
    """How well motions tell the base parameters apart: a condition number, 1 at best.

    ``q`` (..., nq), ``qd`` and ``qdd`` (..., nv) are the states of the motion. It is the condition
    of the regressor's base columns, each scaled to length 1; infinite where some combination does
    not show at all.

    >>> import numpy as np, linkwise as lw
    >>> robot, rng = lw.load("puma560"), np.random.default_rng(0)
    >>> states = robot.random_q(rng, size=200), *rng.normal(size=(2, 200, 6))
    >>> bool(1 < lw.excitation(robot, *states) < 100)
    True
    """
    refuse_loops("excitation", robot)
    base = base_parameters(robot)
    Y = robot.regressor(q, qd, qdd).reshape(-1, TEN * len(robot.body_names))[:, base.columns]
    if not np.isfinite(Y).all():
        raise ValueError("excitation: q, qd or qdd has numbers that are not finite; expected none")
    size = np.linalg.norm(Y, axis=0)
    if not size.all() or len(Y) < base.rank:
        return float("inf")
    s = np.linalg.svd(Y / size, compute_uv=False)
    return float(s[0] / s[-1]) if s[-1] > RANK * s[0] else float("inf")


def refuse_loops(function: str, robot: Robot) -> None:
    """Raise TypeError unless it is a robot, and ValueError if it has closed loops: its torques
    depend on forces in them too.
    """
    if not isinstance(robot, Robot):
        raise TypeError(f"{function}: robot is a {type(robot).__name__}; expected a Robot")
    if robot.tree.is_closed:
        raise ValueError(
            f"{function}: is for robots without closed loops, and this one has "
            f"{robot.tree.loop_names[0]}, whose forces are in the torques too; expected "
            "robot.open, with the torques that its joints would need without the loops"
        )


def enough(robot: Robot) -> int:
    """Random states whose torques are several times as many as there are parameters."""
    return STATES + 4 * TEN * len(robot.body_names) // max(1, robot.nv)


def random_states(robot: Robot, count: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Configurations, beyond limits too, rates and accelerations."""
    qd, qdd = rng.normal(size=(2, count, robot.nv))
    q = robot.integrate(robot.neutral(), rng.uniform(-3.0, 3.0, (count, robot.nv)))
    return np.asarray(q), qd, qdd


def labels(bodies: Sequence[str]) -> tuple[str, ...]:
    """Names of the ten numbers of each body."""
    return tuple(f"{number}[{body}]" for body in bodies for number in NUMBERS)


def independent(Y: Array) -> list[int]:
    """The columns that are no combination of those to their left, to a tolerance."""
    Y = np.linalg.qr(Y).R  # has the same columns, in other axes
    basis, chosen = np.empty((len(Y), 0)), list[int]()
    largest = np.linalg.norm(Y, axis=0).max(initial=0.0)
    for k in range(Y.shape[1]):
        rest = Y[:, k] - basis @ (basis.T @ Y[:, k])
        rest = rest - basis @ (basis.T @ rest)
        if np.linalg.norm(rest) > RANK * largest:
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
            chosen.append(k)
    return chosen


def _sum(row: Array, names: Sequence[str], first: int) -> str:
    """A combination in words; the parameter that stands for it comes first."""
    text = names[first]
    for k in map(int, np.flatnonzero(row)):
        if k != first:
            size = abs(float(row[k]))
            factor = "" if abs(size - 1.0) < WRITTEN else f"{size:.4g} "
            text += f" {'-' if row[k] < 0 else '+'} {factor}{names[k]}"
    return text


# -- exact states ----------------------------------------------------------------------------------


def _exact_rows(tree: Tree, states: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of the regressor at random states, without rounding, in the file's frames.

    The equations run in each link's own frame; ten numbers of a body in the file's frame are a
    linear map of those, which is carried out on the columns.
    """

    def draw(count: int) -> list[Any]:
        return [Residue(rng.integers(1, P, states)) for _ in range(count)]

    q = [x for link in tree.links if link.follows is None for x in _exact_q(link, draw)]
    links = [replace(link, placement=_exact(link.placement)) for link in tree.links]
    own = tuple(Frame(i, (0.0, 0.0, 0.0), IDENTITY) for i in range(tree.n_links))
    exact = replace(tree, links=tuple(links))
    Y = regressor_in(exact, own, q, draw(tree.nv), draw(tree.nv))
    rows = np.array([[_numbers(x, states) for x in row] for row in Y], np.int64)
    for i, frame in enumerate(tree.joint_frames):
        part = slice(TEN * i, TEN * (i + 1))
        rows[:, part] = _product(_change(frame), rows[:, part])
    return np.moveaxis(rows, 1, 2).reshape(-1, TEN * tree.n_links)


def _exact_q(link: Link, draw: Any) -> list[Any]:
    """Random numbers of a joint; quaternions are squares of others, divided by their length."""
    q = draw(link.joint.nq)
    if link.joint.nq - link.joint.nv != 1:
        return list(q)
    w, x, y, z = q[:4]
    per = 1.0 / (w * w + x * x + y * y + z * z)
    square = [w * w - x * x - y * y - z * z, 2.0 * w * x, 2.0 * w * y, 2.0 * w * z]
    return [*(per * k for k in square), *q[4:]]


def _exact(place: Transform) -> Transform:
    """Turns without rounding; coordinates that are rounding beside others are 0."""
    least = ROUNDING * max(map(abs, place.r))
    r = Vec3(*(x if abs(x) > least else 0.0 for x in place.r))
    return Transform(r, tuple(exact_turn(turn) for turn in place.turns))


def _change(frame: Frame) -> list[list[Any]]:
    """For each of ten numbers in a frame, those of the link's own frame."""
    place = _exact(place_of(frame))
    units = np.eye(TEN).tolist()
    return [numbers_of(place.body_back(body_of(unit))) for unit in units]


def _numbers(x: Any, states: int) -> NDArray[np.int64]:
    return np.broadcast_to((Residue(0) + x).x, states)


def _product(change: list[list[Any]], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """``columns`` (rows, 10, states) of a body in its link's frame -> those in another frame."""
    M = np.array([[int((Residue(0) + x).x) for x in row] for row in change], np.int64)
    sums = [sum(m * columns[:, k] % P for k, m in enumerate(row)) % P for row in M]
    return np.stack(sums, axis=1)
