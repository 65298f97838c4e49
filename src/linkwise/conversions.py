"""States in the layouts of Pinocchio and MuJoCo, as methods of `Robot`; model/layouts.py has rules.

Every method takes any leading batch axes and keeps float32. ``model`` is the model of the other
library, where it was not read from the robot's own file, or was changed since: its joints are found
by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.engine.calls import Array
from linkwise.io.mjmodel import joint_names
from linkwise.model.description import RobotDescription
from linkwise.model.layouts import Layout
from linkwise.model.order import of_library
from linkwise.model.tree import Tree
from linkwise.model.values import unknown


class Conversions:
    """To and from the layouts of other libraries; a part of `Robot`."""

    __slots__ = ()

    def _layout(self, library: str, model: Any) -> Layout:
        """How a library lays the robot out; `Robot` knows."""
        raise NotImplementedError

    def to_pinocchio_q(self, q: ArrayLike, *, model: Any = None) -> Array:
        """A configuration ``q`` (..., nq) in Pinocchio's layout (..., its nq).

        Joints in the order of ``pinocchio.buildModelFromUrdf``, which is by name; angles of
        continuous joints as cosine and sine; quaternions with w last; a free base as position, then
        quaternion. Mimic joints have numbers of their own there. ``model``, here and in all
        conversions, is the ``pinocchio.Model`` where it was not read from the robot's own file: its
        joints are found by name.

        >>> import linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> robot.to_pinocchio_q(robot.neutral())[:7].tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
        """
        return _q(self._layout("pinocchio", model), "to_pinocchio_q", q, ours=True)

    def from_pinocchio_q(self, q: ArrayLike, *, model: Any = None) -> Array:
        """A configuration (..., nq) from Pinocchio's: the inverse of `to_pinocchio_q`.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q = robot.random_q(seed=0)
        >>> bool(np.allclose(robot.from_pinocchio_q(robot.to_pinocchio_q(q)), q))
        True
        """
        return _q(self._layout("pinocchio", model), "from_pinocchio_q", q, ours=False)

    def to_pinocchio_v(
        self, qd: ArrayLike, q: ArrayLike | None = None, *, model: Any = None
    ) -> Array:
        """Joint rates ``qd`` (..., nv) in Pinocchio's layout.

        ``q`` (..., nq), our configuration, is needed where a joint is planar.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q, qd = robot.random_q(seed=0), np.arange(13.0)
        >>> bool(np.allclose(robot.from_pinocchio_v(robot.to_pinocchio_v(qd, q), q), qd))
        True
        """
        return _v(self._layout("pinocchio", model), "to_pinocchio_v", "to_v", qd, q)

    def from_pinocchio_v(
        self, v: ArrayLike, q: ArrayLike | None = None, *, model: Any = None
    ) -> Array:
        """Joint rates (..., nv) from Pinocchio's: the inverse of `to_pinocchio_v`.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q, qd = robot.random_q(seed=0), np.arange(13.0)
        >>> bool(np.allclose(robot.from_pinocchio_v(robot.to_pinocchio_v(qd, q), q), qd))
        True
        """
        return _v(self._layout("pinocchio", model), "from_pinocchio_v", "from_v", v, q)

    def to_pinocchio_a(
        self,
        qdd: ArrayLike,
        qd: ArrayLike | None = None,
        q: ArrayLike | None = None,
        *,
        model: Any = None,
    ) -> Array:
        """Joint accelerations ``qdd`` (..., nv) in Pinocchio's layout.

        ``qd`` and ``q``, our rates and configuration, are needed where a joint is planar.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q, qd, qdd = robot.random_q(seed=0), np.ones(13), np.arange(13.0)
        >>> theirs = robot.to_pinocchio_a(qdd, qd, q)
        >>> bool(np.allclose(robot.from_pinocchio_a(theirs, qd, q), qdd))
        True
        """
        return _a(self._layout("pinocchio", model), "to_pinocchio_a", qdd, qd, q)

    def from_pinocchio_a(
        self,
        a: ArrayLike,
        qd: ArrayLike | None = None,
        q: ArrayLike | None = None,
        *,
        model: Any = None,
    ) -> Array:
        """Joint accelerations (..., nv) from Pinocchio's: the inverse of `to_pinocchio_a`.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q, qd, qdd = robot.random_q(seed=0), np.ones(13), np.arange(13.0)
        >>> theirs = robot.to_pinocchio_a(qdd, qd, q)
        >>> bool(np.allclose(robot.from_pinocchio_a(theirs, qd, q), qdd))
        True
        """
        return _a(self._layout("pinocchio", model), "from_pinocchio_a", a, qd, q)

    def to_pinocchio_tau(
        self, tau: ArrayLike, q: ArrayLike | None = None, *, model: Any = None
    ) -> Array:
        """Torques (..., nv) in Pinocchio's layout; mimic joints get zero.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> tau = np.arange(13.0)
        >>> bool(np.allclose(robot.from_pinocchio_tau(robot.to_pinocchio_tau(tau)), tau))
        True
        """
        return _v(self._layout("pinocchio", model), "to_pinocchio_tau", "to_forces", tau, q)

    def from_pinocchio_tau(
        self, tau: ArrayLike, q: ArrayLike | None = None, *, model: Any = None
    ) -> Array:
        """Torques (..., nv) from Pinocchio's; mimic joints' go to the joints that they follow.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> tau = np.arange(13.0)
        >>> bool(np.allclose(robot.from_pinocchio_tau(robot.to_pinocchio_tau(tau)), tau))
        True
        """
        return _v(self._layout("pinocchio", model), "from_pinocchio_tau", "from_forces", tau, q)

    def to_pinocchio_jacobian(
        self, jacobian: ArrayLike, q: ArrayLike | None = None, *, model: Any = None
    ) -> Array:
        """A Jacobian (..., 6, nv) in Pinocchio's layout: rows (linear, angular), its joint order.

        `Robot.jacobian` is LOCAL_WORLD_ALIGNED there, and with ``axes="body"`` LOCAL.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q = robot.random_q(seed=0)
        >>> J = robot.jacobian(q, "link7")
        >>> theirs = robot.to_pinocchio_jacobian(J, q)
        >>> bool(np.allclose(robot.from_pinocchio_jacobian(theirs, q), J))
        True
        """
        layout = self._layout("pinocchio", model)
        return _jacobian(layout, "to_pinocchio_jacobian", jacobian, q, ours=True)

    def from_pinocchio_jacobian(
        self, jacobian: ArrayLike, q: ArrayLike | None = None, *, model: Any = None
    ) -> Array:
        """A Jacobian (..., 6, nv) from Pinocchio's: rows (angular, linear), our joint order.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q = robot.random_q(seed=0)
        >>> J = robot.jacobian(q, "link7")
        >>> theirs = robot.to_pinocchio_jacobian(J, q)
        >>> bool(np.allclose(robot.from_pinocchio_jacobian(theirs, q), J))
        True
        """
        layout = self._layout("pinocchio", model)
        return _jacobian(layout, "from_pinocchio_jacobian", jacobian, q, ours=False)

    def to_mujoco_q(self, q: ArrayLike, *, model: Any = None) -> Array:
        """A configuration ``q`` (..., nq) in the layout of MuJoCo's ``qpos``.

        A free joint is position, then quaternion there. Mimic joints have numbers of their own
        there. ``model``, here and in all conversions, is the ``mujoco.MjModel`` where it was not
        read from the robot's own file.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q = robot.random_q(seed=0)
        >>> bool(np.allclose(robot.from_mujoco_q(robot.to_mujoco_q(q)), q))
        True
        """
        return _q(self._layout("mujoco", model), "to_mujoco_q", q, ours=True)

    def from_mujoco_q(self, q: ArrayLike, *, model: Any = None) -> Array:
        """A configuration (..., nq) from MuJoCo's ``qpos``: the inverse of `to_mujoco_q`.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q = robot.random_q(seed=0)
        >>> bool(np.allclose(robot.from_mujoco_q(robot.to_mujoco_q(q)), q))
        True
        """
        return _q(self._layout("mujoco", model), "from_mujoco_q", q, ours=False)

    def to_mujoco_v(self, qd: ArrayLike, q: ArrayLike | None = None, *, model: Any = None) -> Array:
        """Joint rates ``qd`` (..., nv) in the layout of MuJoCo's ``qvel``.

        A free joint's are (linear in world axes, angular in body axes) there; ``q`` (..., nq), our
        configuration, is needed where there is one.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q, qd = robot.random_q(seed=0), np.arange(13.0)
        >>> bool(np.allclose(robot.from_mujoco_v(robot.to_mujoco_v(qd, q), q), qd))
        True
        """
        return _v(self._layout("mujoco", model), "to_mujoco_v", "to_v", qd, q)

    def from_mujoco_v(
        self, v: ArrayLike, q: ArrayLike | None = None, *, model: Any = None
    ) -> Array:
        """Joint rates (..., nv) from MuJoCo's ``qvel``: the inverse of `to_mujoco_v`.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q, qd = robot.random_q(seed=0), np.arange(13.0)
        >>> bool(np.allclose(robot.from_mujoco_v(robot.to_mujoco_v(qd, q), q), qd))
        True
        """
        return _v(self._layout("mujoco", model), "from_mujoco_v", "from_v", v, q)

    def to_mujoco_a(
        self,
        qdd: ArrayLike,
        qd: ArrayLike | None = None,
        q: ArrayLike | None = None,
        *,
        model: Any = None,
    ) -> Array:
        """Joint accelerations ``qdd`` (..., nv) in MuJoCo's layout.

        ``qd`` and ``q``, our rates and configuration, are needed where a joint is free.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q, qd, qdd = robot.random_q(seed=0), np.ones(13), np.arange(13.0)
        >>> theirs = robot.to_mujoco_a(qdd, qd, q)
        >>> bool(np.allclose(robot.from_mujoco_a(theirs, qd, q), qdd))
        True
        """
        return _a(self._layout("mujoco", model), "to_mujoco_a", qdd, qd, q)

    def from_mujoco_a(
        self,
        a: ArrayLike,
        qd: ArrayLike | None = None,
        q: ArrayLike | None = None,
        *,
        model: Any = None,
    ) -> Array:
        """Joint accelerations (..., nv) from MuJoCo's: the inverse of `to_mujoco_a`.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q, qd, qdd = robot.random_q(seed=0), np.ones(13), np.arange(13.0)
        >>> theirs = robot.to_mujoco_a(qdd, qd, q)
        >>> bool(np.allclose(robot.from_mujoco_a(theirs, qd, q), qdd))
        True
        """
        return _a(self._layout("mujoco", model), "from_mujoco_a", a, qd, q)

    def to_mujoco_tau(
        self, tau: ArrayLike, q: ArrayLike | None = None, *, model: Any = None
    ) -> Array:
        """Torques (..., nv) in the layout of MuJoCo's ``qfrc_applied``; mimic joints get zero.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q, tau = robot.random_q(seed=0), np.arange(13.0)
        >>> bool(np.allclose(robot.from_mujoco_tau(robot.to_mujoco_tau(tau, q), q), tau))
        True
        """
        return _v(self._layout("mujoco", model), "to_mujoco_tau", "to_forces", tau, q)

    def from_mujoco_tau(
        self, tau: ArrayLike, q: ArrayLike | None = None, *, model: Any = None
    ) -> Array:
        """Torques (..., nv) from MuJoCo's; mimic joints' go to the joints that they follow.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q, tau = robot.random_q(seed=0), np.arange(13.0)
        >>> bool(np.allclose(robot.from_mujoco_tau(robot.to_mujoco_tau(tau, q), q), tau))
        True
        """
        return _v(self._layout("mujoco", model), "from_mujoco_tau", "from_forces", tau, q)

    def to_mujoco_jacobian(
        self, jacobian: ArrayLike, q: ArrayLike | None = None, *, model: Any = None
    ) -> Array:
        """A Jacobian (..., 6, nv) in MuJoCo's layout: ``jacp`` above ``jacr``, its joint order.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q = robot.random_q(seed=0)
        >>> J = robot.jacobian(q, "link7")
        >>> theirs = robot.to_mujoco_jacobian(J, q)
        >>> bool(np.allclose(robot.from_mujoco_jacobian(theirs, q), J))
        True
        """
        layout = self._layout("mujoco", model)
        return _jacobian(layout, "to_mujoco_jacobian", jacobian, q, ours=True)

    def from_mujoco_jacobian(
        self, jacobian: ArrayLike, q: ArrayLike | None = None, *, model: Any = None
    ) -> Array:
        """A Jacobian (..., 6, nv) from MuJoCo's ``jacp`` above ``jacr``.

        >>> import numpy as np, linkwise as lw
        >>> robot = lw.load("iiwa14", base="free")
        >>> q = robot.random_q(seed=0)
        >>> J = robot.jacobian(q, "link7")
        >>> theirs = robot.to_mujoco_jacobian(J, q)
        >>> bool(np.allclose(robot.from_mujoco_jacobian(theirs, q), J))
        True
        """
        layout = self._layout("mujoco", model)
        return _jacobian(layout, "from_mujoco_jacobian", jacobian, q, ours=False)


def layout_of(tree: Tree, description: RobotDescription, library: str, model: Any = None) -> Layout:
    """How a library lays a robot out: by its rule for the robot's file, or as a model has it."""
    if model is not None:
        layout = Layout(tree, library, list(_order_of(tree, description.name, library, model)))
        _check_size(layout, model)
        return layout
    if not description.links:  # made of a tree, which no file describes
        return Layout(tree, library, [joint for _, joint in tree.names()])
    return Layout(tree, library, of_library(description, library))


def _check_size(layout: Layout, model: Any) -> None:
    """Raise where a model has other numbers for the same joints, as none for mimic joints."""
    if (model.nq, model.nv) != (layout.nq, layout.nv):
        way_out = ""
        if layout.name == "Pinocchio" and layout.follower:
            way_out = ": pinocchio.buildModelFromUrdf(file), without mimic=True"
        raise ValueError(
            f"model has nq {model.nq} and nv {model.nv}, and all its joints have nq {layout.nq} "
            f"and nv {layout.nv} here; expected a model whose joints, mimic joints too, "
            f"all have numbers{way_out}"
        )


def _order_of(tree: Tree, robot: str, library: str, model: Any) -> Iterator[str]:
    """Our names of a model's joints, in its order; a base may fly by another name there."""
    _check_model(library, model)
    pinocchio = library == "pinocchio"
    names = [str(name) for name in model.names][1:] if pinocchio else joint_names(model)
    known = {link.joint_name: link for link in tree.links}
    left = [name for name in known if name not in names]
    for name in names:
        if name in known:
            yield name
        elif len(left) == 1 and known[left[0]].kind == "free":
            yield left.pop()
        else:
            raise unknown("joint", name, robot, known)
    if left:
        raise ValueError(f"model has no joint {left[0]!r}; expected one of robot {robot!r}")


def _check_model(library: str, model: Any) -> None:
    """Raise for what is no model of a library."""
    part, kind = {"pinocchio": ("jointPlacements", "pinocchio.Model")}.get(
        library, ("name_jntadr", "mujoco.MjModel")
    )
    if not hasattr(model, part):
        raise TypeError(f"model is {model!r}; expected a {kind}")


def _q(layout: Layout, function: str, q: ArrayLike, *, ours: bool) -> Array:
    given = _numbers(function, "q", q, layout.tree.nq if ours else layout.nq)
    return layout.to_q(given) if ours else layout.from_q(given)


def _v(layout: Layout, function: str, change: str, v: ArrayLike, q: ArrayLike | None) -> Array:
    ours = function.startswith("to")
    name = "tau" if function.endswith("tau") else "qd" if ours else "v"
    given = _numbers(function, name, v, layout.tree.nv if ours else layout.nv)
    at = _configuration(layout, function, q)
    return np.asarray(getattr(layout, change)(given, at))


def _a(
    layout: Layout, function: str, a: ArrayLike, qd: ArrayLike | None, q: ArrayLike | None
) -> Array:
    ours, nv = function.startswith("to"), layout.tree.nv
    given = _numbers(function, "qdd" if ours else "a", a, nv if ours else layout.nv)
    at = _configuration(layout, function, q)
    if qd is None and layout.reads_q:
        raise TypeError(f"{function}: expected qd= too, our rates (..., {nv})")
    rates = None if qd is None else _numbers(function, "qd", qd, nv)
    return layout.to_a(given, rates, at) if ours else layout.from_a(given, rates, at)


def _jacobian(
    layout: Layout, function: str, jacobian: ArrayLike, q: ArrayLike | None, *, ours: bool
) -> Array:
    J = _numbers(function, "jacobian", jacobian, layout.tree.nv if ours else layout.nv)
    if J.ndim < 2 or J.shape[-2] != 6:
        raise ValueError(f"{function}: jacobian has shape {J.shape}; expected (..., 6, columns)")
    if ours and layout.follower:
        raise ValueError(
            f"{function}: joint {layout.follower!r} follows another, so that its own column is not "
            'known; expected a robot loaded with mimic="free"'
        )
    at = _configuration(layout, function, q)
    rows = J[..., [3, 4, 5, 0, 1, 2], :]
    at = None if at is None else at[..., None, :]
    return layout.to_v(rows, at) if ours else layout.from_forces(rows, at)


def _configuration(layout: Layout, function: str, q: ArrayLike | None) -> Array | None:
    if q is not None:
        return _numbers(function, "q", q, layout.tree.nq)
    if layout.reads_q:
        raise TypeError(
            f"{function}: joint {layout.reads_q!r} has rates in other axes in {layout.name}; "
            f"expected q=, our configuration (..., {layout.tree.nq})"
        )
    return None


def _numbers(function: str, name: str, value: ArrayLike, last: int) -> Array:
    """An array of real numbers whose last axis is this long; float32 stays that."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{function}: {name} has dtype {array.dtype}; expected real numbers")
    if array.ndim == 0 or array.shape[-1] != last:
        raise ValueError(f"{function}: {name} has shape {array.shape}; expected (..., {last})")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
