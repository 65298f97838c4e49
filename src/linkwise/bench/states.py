"""Random joint states to check and to time on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.algorithms import FUNCTIONS, Algorithm, functions_of
from linkwise.engine.calls import Array
from linkwise.robot import Robot


@dataclass(frozen=True)
class States:
    """Joint states and torques, one row each."""

    q: Array
    qd: Array
    tau: Array

    def __len__(self) -> int:
        return len(self.q)

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """The three arrays, as arguments of dynamics."""
        return self.q, self.qd, self.tau

    @property
    def arguments(self) -> dict[str, Array]:
        """Something for every argument of a public function, by its name."""
        still, step = np.zeros_like(self.tau), np.full((len(self), 1), 0.1)
        forces = dict.fromkeys(("tau", "qdd", "rhs", "x"), self.tau)
        ends = {"q0": self.q, "q1": np.roll(self.q, 1, axis=0), "v": self.qd, "dt": step}
        return {"q": self.q, "qd": self.qd, "qdd0": still, **forces, **ends}

    def given(self, algorithm: Algorithm) -> list[Array]:
        """The arguments of an algorithm."""
        return [self.arguments[name] for name, _ in algorithm.inputs]

    def head(self, count: int) -> States:
        """The first few states."""
        return States(*(x[:count] for x in self.arrays))

    def columns(self, order: list[int]) -> States:
        """With the joints in another order."""
        return States(*(np.ascontiguousarray(x[:, order]) for x in self.arrays))


def random_states(robot: Robot, count: int, seed: int = 0) -> States:
    """States within the joint limits, and moderate rates and torques."""
    rng = np.random.default_rng(seed)
    shape = (count, robot.nv)
    q = robot.random_q(rng, size=count)
    return States(q, rng.uniform(-1, 1, shape), rng.uniform(-10, 10, shape))


def any_method(function: str) -> Algorithm:
    """An algorithm of a function: its arguments and its result are those of all of them."""
    return next(iter(FUNCTIONS[function].values()))


def tip(robot: Robot) -> str:
    """The frame moved by the most joints; the last of them where there are several."""
    tree = robot.tree
    return max(reversed(robot.frame_names), key=lambda name: len(tree.path(tree.frames[name].link)))


def frame_for(robot: Robot, algorithm: Algorithm) -> str | None:
    """The frame at which a function that takes one is measured: the tip."""
    return tip(robot) if algorithm.takes_frame else None


def exists(robot: Robot, function: str, frame: str) -> bool:
    """Whether some method of a function applies to this robot, and to this frame of it."""
    at = robot.tree.frames[frame]
    methods = functions_of(robot.tree).get(function, {}).values()
    return any(method.exists_for(robot.tree, at) for method in methods)


def algorithms_of(robot: Robot) -> list[Algorithm]:
    """Every function and method that exists for this robot and its tip."""
    at = robot.tree.frames[tip(robot)]
    methods = (method for some in functions_of(robot.tree).values() for method in some.values())
    return [method for method in methods if method.exists_for(robot.tree, at)]
