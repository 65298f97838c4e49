"""`Trajectory`: what a simulation returns, and what follows from it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.motion.laws import Law
from linkwise.motion.limits import NUMBERS, PLACES, Limited, Limits, stop_forces
from linkwise.robot import Robot
from linkwise.trace.program import FLAGS_DTYPE
from linkwise.trace.status import Status

Array = NDArray[Any]
FORMAT = "linkwise trajectory 1"
SAVED = ("t", "q", "qd", "tau", "status", "failed_at", "steps")


class Energy(NamedTuple):
    """Energies (..., T) in J; ``total`` is constant in a free motion without friction."""

    kinetic: Array
    potential: Array
    total: Array


class Balance(NamedTuple):
    """Where the energy went, (..., T) in J since the first state.

    Work is integrated by the trapezoidal rule over the states that were kept, so that ``residual``
    falls with the square of the time between them, down to the error of the integrator. That holds
    where forces change smoothly from one kept state to the next, and with ``every=1`` also for held
    torques that jump from step to step. It does not hold, and ``residual`` may be as large as the
    work itself, for torques that jump between two kept states (``every`` above 1). Dampers of soft
    stops jump where a contact begins: there ``residual`` falls only in proportion to the time
    between states.
    """

    gained: Array  # of kinetic and potential energy
    by_controller: Array  # work of the torques
    by_wrenches: Array  # work of the external wrenches
    by_stops: Array  # work of soft stops at the limits of joints
    lost: Array  # to damping and friction of the joints
    residual: Array  # gained - by_controller - by_wrenches - by_stops + lost


class State(NamedTuple):
    """A state of one robot, or of a batch (...): ``q`` (..., nq) and ``qd`` (..., nv)."""

    q: Array
    qd: Array


class Event(NamedTuple):
    """Where joints met limits that end a motion: the time, which degree of freedom, the state.

    NaN, and -1 for the degree of freedom, in rows that met none.
    """

    t: Any  # (...)
    dof: Any  # (...)
    q: Array  # (..., nq)
    qd: Array  # (..., nv)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The motion of one state, or of a batch of states (...), at T times; `simulate` returns it.

    ``t`` (T) in s, ``q`` (..., T, nq) in rad or m, ``qd`` (..., T, nv); energies, torques of a law,
    and paths of frames are computed when they are first read.

    >>> import linkwise as lw
    >>> robot = lw.chain(3)
    >>> lw.simulate(robot, robot.random_q(seed=0, size=5), duration=0.1, dt=1e-3)
    <Trajectory of 'chain3': 5 states, 101 times, 0 to 0.1 s>
    """

    robot: Robot | None
    t: Array  # (T) seconds
    q: Array  # (..., T, nq)
    qd: Array  # (..., T, nv)
    status: Any  # (...) bits of `Status`; 0: the row went well
    failed_at: Any  # (...) the first step whose state is missing; -1: none
    steps: Array  # (T) which steps were kept
    dt: float
    integrator: str
    controller: Any = None
    f_ext: dict[str, Array] = field(default_factory=dict)
    held_tau: Array | None = None  # of a controller of Python, or loaded
    interrupted: bool = False
    held: bool = False  # torques are the same from each step to the next
    events: Event | None = None  # of a simulation that ends at the limits of joints
    limits: Limits | None = None  # with the numbers of soft stops, where there were any
    # of a robot made by `Robot.parametric`, where any were given: (..., shape of the parameter)
    parameters: dict[str, Array] = field(default_factory=dict)

    def __repr__(self) -> str:
        lead = self.q.shape[:-2]
        rows, noun = "×".join(map(str, lead)) or "one", "states" if lead else "state"
        limit = (np.asarray(self.status) & int(Status.LIMIT)) != 0
        failed = int(np.count_nonzero((np.asarray(self.failed_at) >= 0) & ~limit))
        ended = f", {np.count_nonzero(limit)} ended at a limit" if limit.any() else ""
        bad = f"{ended}, {failed} failed" if failed else ended
        end = f"{self.t[0]:g} to {self.t[-1]:g} s" if len(self.t) else "nothing"
        return f"<Trajectory of {self.name!r}: {rows} {noun}, {len(self.t)} times, {end}{bad}>"

    def _repr_html_(self) -> str | None:
        """The moving robot, for notebooks; None if there is nothing that can be drawn."""
        from linkwise.view.show import notebook

        return notebook(self.robot, self) if len(self.t) > 1 else None

    def save_html(self, path: str | os.PathLike[str], frame: str | None = None) -> Path:
        """Write the motion as one HTML file that any browser plays, without Python or a network.

        Args:
            path: Where to write it.
            frame: The frame whose pose is shown first, by default the tip.

        Returns:
            The path of the file. `Robot.save_html` has more options.

        >>> import linkwise as lw
        >>> import tempfile, pathlib
        >>> motion = lw.simulate(lw.chain(2), [0.5, 0.0], duration=0.1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     motion.save_html(pathlib.Path(folder, "swing.html")).stat().st_size > 10_000
        True
        """
        if self.robot is None:
            raise ValueError(
                "save_html: the trajectory has no robot; expected one of simulate, or loaded by "
                "Trajectory.load(path, robot)"
            )
        return self.robot.save_html(path, self, frame=frame)

    @property
    def final(self) -> State:
        """The last state that was kept, of one robot or of every row of a batch.

        Returns:
            ``q`` (..., nq) in rad or m and ``qd`` (..., nv): of one robot ``q[-1]``, of a batch
            ``q[..., -1, :]``. NaN in rows that failed or ended before.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> motion = lw.simulate(robot, robot.random_q(seed=0, size=5), duration=0.1)
        >>> motion.final.q.shape, motion.at(2).final.qd.shape
        ((5, 3), (3,))
        >>> further = lw.simulate(robot, *motion.final, duration=0.1)
        """
        return State(self.q[..., -1, :], self.qd[..., -1, :])

    @property
    def name(self) -> str:
        """The robot's name."""
        return self.robot.name if self.robot is not None else "unknown robot"

    def __len__(self) -> int:
        """How many times there are."""
        return len(self.t)

    @property
    def ok(self) -> Any:
        """Whether each row (...) of the batch reached its end without a failure."""
        return np.asarray(self.failed_at) < 0

    @cached_property
    def tau(self) -> Array:
        """Torques (..., T, nv) of the controller in each state, in N m or N.

        A controller written in Python is not called in the last state: the torques of the last step
        are repeated there, or NaN where an interrupt came before its first answer.
        """
        if self.held_tau is not None:
            return self.held_tau
        if isinstance(self.controller, Law) and self.controller.terms:
            last = max(int(self.steps[-1]) - 1, 0)
            at = np.minimum(self.steps, last)
            states = np.broadcast_shapes(self.q.shape[:-1])
            tau = self.controller(None, self.q, self.qd, step=at)
            return np.broadcast_to(tau, (*states, self.qd.shape[-1]))
        return np.zeros_like(self.qd)

    @cached_property
    def energy(self) -> Energy:
        """Kinetic, potential and total energy (..., T) in J.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> motion = lw.simulate(robot, [0.1, 0.2, 0.3], duration=0.1, dt=1e-3)
        >>> drift = motion.energy.total - motion.energy.total[0]
        >>> bool(abs(drift).max() < 1e-6)
        True
        """
        robot = self._needs_robot("energy")
        times = (slice(None),) * (self.q.ndim - 2) + (None,)
        own: dict[str, Any] = {name: x[times] for name, x in self.parameters.items()}
        kinetic = robot.kinetic_energy(self.q, self.qd, **own)
        potential = robot.potential_energy(self.q, **own)
        return Energy(kinetic, potential, kinetic + potential)

    @cached_property
    def balance(self) -> Balance:
        """Where the energy went (..., T) in J: the work of everything that acts on the robot."""
        robot = self._needs_robot("balance")
        if "friction" in self.parameters:
            raise ValueError(
                "Trajectory.balance: friction was a parameter of the simulation, and its work is "
                "not known; expected friction by robot.with_friction()"
            )
        gained = self.energy.total - self.energy.total[..., :1]
        by_controller = self._work(self.tau, self.held)
        pushes = np.zeros_like(self.qd)
        for name, wrench in self.f_ext.items():
            J = robot.jacobian(self.q, name)
            pushes = pushes + np.einsum("...ij,...i->...j", J, wrench[..., None, :])
        lost = self._work(resistance(robot, self.qd))
        by_wrenches, by_stops = self._work(pushes), self._work(self._stops())
        residual = gained - by_controller - by_wrenches - by_stops + lost
        return Balance(gained, by_controller, by_wrenches, by_stops, lost, residual)

    def _stops(self) -> Array:
        """Torques (..., T, nv) of soft stops."""
        if self.limits is None or not self.limits.stop:
            return np.zeros_like(self.qd)
        numbers = [self.limits.numbers[name] for name in (*PLACES, *NUMBERS)]
        q, qd = np.moveaxis(self.q, -1, 0), np.moveaxis(self.qd, -1, 0)
        torques, _ = stop_forces(self.limits.joints, [list(x) for x in numbers], list(q), list(qd))
        return np.stack(np.broadcast_arrays(*torques, qd[0])[:-1], -1)

    def _work(self, torques: Array, held: bool = False) -> Array:
        """The integral of ``torques · qd`` (..., T) over time; held torques are constant over each
        step.

        Between two kept states, n steps apart, torques and rates are taken to change evenly. In the
        step j of the n, held torques are then ``a + (j/n) da`` and the mean rates
        ``v + ((j + 1/2)/n) dv``. The sum of their products over all j is
        ``n (a·v + a·dv / 2 + (n-1)/2n da·v + (n-1)(4n+1)/12n² da·dv)``.
        """
        if held:
            n = np.diff(self.steps).astype(float)
            a, da = torques[..., :-1, :], np.diff(torques, axis=-2)
            v, dv = self.qd[..., :-1, :], np.diff(self.qd, axis=-2)
            part = ((n - 1) / (2 * n))[:, None], ((n - 1) * (4 * n + 1) / (12 * n**2))[:, None]
            power = (a * (v + 0.5 * dv) + da * (part[0] * v + part[1] * dv)).sum(-1)
        else:
            own = (torques * self.qd).sum(-1)
            power = 0.5 * (own[..., 1:] + own[..., :-1])
        work = np.cumsum(power * np.diff(self.t), -1)
        return np.concatenate([np.zeros_like(work[..., :1]), work], -1)

    def path(self, frame: str) -> Array:
        """Positions (..., T, 3) of a frame's origin, in m, in base axes.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> motion = lw.simulate(robot, [0.1, 0.2, 0.3], duration=0.1, dt=1e-3)
        >>> motion.path("tip").shape
        (101, 3)
        """
        poses = self._needs_robot("path").forward_kinematics(self.q, frame)
        return np.ascontiguousarray(poses[..., :3, 3])

    def at(self, *row: int) -> Trajectory:
        """One row of a batch as a trajectory: ``traj.at(3)``; with two batch axes ``at(1, 3)``.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> motion = lw.simulate(robot, robot.random_q(seed=0, size=5), duration=0.1)
        >>> motion.q.shape, motion.at(3).q.shape
        ((5, 101, 3), (101, 3))
        """
        lead = self.q.ndim - 2
        if len(row) != lead:
            such = f", such as at({', '.join('0' * lead)})"
            raise IndexError(
                f"at: {len(row)} indices; expected {lead}, one for each batch axis{such}"
            )
        tau = None if self.held_tau is None else self.held_tau[row]
        if tau is None and isinstance(self.controller, Law):
            tau = self.tau[row]
        return Trajectory(
            self.robot, self.t, self.q[row], self.qd[row], self.status[row], self.failed_at[row],
            self.steps, self.dt, self.integrator, self.controller,
            {name: x[row] for name, x in self.f_ext.items()}, tau, self.interrupted,
            self.held, None if self.events is None else Event(*(x[row] for x in self.events)),
            self.limits, {name: x[row] for name, x in self.parameters.items()},
        )  # fmt: skip

    def _needs_robot(self, what: str) -> Robot:
        if self.robot is None:
            raise ValueError(
                f"Trajectory.{what} needs the robot; expected Trajectory.load(path, robot=...)"
            )
        return self.robot

    def numpy(self) -> Trajectory:
        """The same trajectory in arrays of NumPy: itself, unless its arrays are of another library.

        ``t``, ``steps``, ``status``, ``failed_at`` and ``events`` are arrays of NumPy always.
        """
        return self

    # -- elsewhere -------------------------------------------------------------------------------

    def plot(self, *, frame: str | None = None, row: tuple[int, ...] | int | None = None) -> Any:
        """A figure of matplotlib: configuration, rates, torques, and energy over time.

        ``row`` is the row of a batch (the first unless given); with ``frame``, the path of a
        frame's origin too. Of more than a dozen joints a dozen are drawn, and a band that contains
        all. Save it by ``traj.plot().savefig("swing.png")``.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> motion = lw.simulate(robot, [0.1, 0.2, 0.3], duration=0.1, dt=1e-3)
        >>> figure = motion.plot(frame="tip")
        >>> len(figure.axes) > 0
        True
        """
        from linkwise.motion.plot import plot

        return plot(self.numpy(), frame, row)

    def to_pandas(self) -> Any:
        """A DataFrame of pandas: a line per time, and per row of a batch, indexed by both.

        Columns are ``q.<joint>``, ``qd.<joint>`` and ``tau.<joint>``, numbered where a joint has
        several.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> motion = lw.simulate(robot, [0.1, 0.2, 0.3], duration=0.1, dt=1e-3)
        >>> motion.to_pandas().shape
        (101, 9)
        """
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "Trajectory.to_pandas needs pandas: pip install 'linkwise[plot]'"
            ) from None
        robot = self._needs_robot("to_pandas")
        lead = self.q.shape[:-2]
        own = self.numpy()
        numbers = [x.reshape(-1, x.shape[-1]) for x in (own.q, own.qd, own.tau)]
        names = [f"q.{n}" for n in names_of(robot, "q")]
        names += [f"{kind}.{n}" for kind in ("qd", "tau") for n in names_of(robot, "v")]
        levels = [range(n) for n in lead] + [self.t]
        labels = [f"row{k}" if len(lead) > 1 else "row" for k in range(len(lead))] + ["t"]
        index = pandas.MultiIndex.from_product(levels, names=labels)
        index = index if lead else pandas.Index(self.t, name="t")
        return pandas.DataFrame(np.concatenate(numbers, 1), index=index, columns=names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trajectory to a file of NumPy (``.npz``), which `load` reads.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> motion = lw.simulate(robot, [0.1, 0.2, 0.3], duration=0.1, dt=1e-3)
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     motion.save(pathlib.Path(folder, "motion.npz"))
        ...     again = lw.Trajectory.load(pathlib.Path(folder, "motion.npz"), robot)
        >>> again.q.shape
        (101, 3)
        """
        facts = {
            "format": FORMAT,
            "robot": self.name,
            "digest": self.robot.tree.digest if self.robot is not None else "",
            "dt": self.dt,
            "integrator": self.integrator,
            "interrupted": self.interrupted,
            "held": self.held,
            "frames": list(self.f_ext),
            "parameters": list(self.parameters),
            "stops": self._stop_facts(),
        }
        own = self.numpy()
        arrays: dict[str, Any] = {name: getattr(own, name) for name in SAVED}
        arrays |= {f"f_ext{k}": x for k, x in enumerate(self.f_ext.values())}
        arrays |= {f"parameter {name}": x for name, x in self.parameters.items()}
        if self.events is not None:
            arrays |= {f"event_{name}": x for name, x in self.events._asdict().items()}
        with open(path, "wb") as file:
            np.savez_compressed(file, facts=np.array(json.dumps(facts)), **arrays)

    def _stop_facts(self) -> dict[str, Any] | None:
        if self.limits is None or not self.limits.stop:
            return None
        numbers = {name: x.tolist() for name, x in self.limits.numbers.items()}
        return {"joints": [list(joint) for joint in self.limits.joints], "numbers": numbers}

    @staticmethod
    def load(path: str | os.PathLike[str], robot: Robot | None = None) -> Trajectory:
        """Read a file that `save` wrote; energies and paths need the robot it is of.

        >>> import linkwise as lw
        >>> robot = lw.chain(3)
        >>> motion = lw.simulate(robot, [0.1, 0.2, 0.3], duration=0.1, dt=1e-3)
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     motion.save(pathlib.Path(folder, "motion.npz"))
        ...     again = lw.Trajectory.load(pathlib.Path(folder, "motion.npz"))
        >>> again.integrator
        'rk4'
        """
        facts, found = _read(path)
        if robot is not None and not isinstance(robot, Robot):
            raise TypeError(f"Trajectory.load: robot is a {type(robot).__name__}; expected a Robot")
        if robot is not None and facts["digest"] not in ("", robot.tree.digest):
            raise ValueError(
                f"{os.fspath(path)}: a trajectory of robot {facts['robot']!r}, which differs from "
                f"{robot.name!r}; expected the robot that was simulated, or none"
            )
        return replace(found, robot=robot)


def _stops_of(facts: dict[str, Any] | None) -> Limits | None:
    if facts is None:
        return None
    joints = tuple(Limited(*pair) for pair in facts["joints"])
    numbers = {name: np.array(x) for name, x in facts["numbers"].items()}
    return Limits(joints, False, True, numbers)


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Trajectory]:
    """The facts of a file, and its trajectory without a robot; nothing in it is run."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        facts = json.loads(str(arrays.pop("facts")))
        if facts["format"] != FORMAT:
            raise ValueError(facts["format"])
        if not all(isinstance(facts[name], str) for name in ("robot", "digest", "integrator")):
            raise ValueError("names that are no text")
        return facts, _made_of(facts, arrays)
    except OSError:
        raise
    except Exception as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"{os.fspath(path)}: not a trajectory that Trajectory.save wrote, or a damaged one "
            f"({why or type(error).__name__})"
        ) from None


def _made_of(facts: dict[str, Any], arrays: dict[str, Array]) -> Trajectory:
    """A trajectory without a robot; raises KeyError, TypeError or ValueError for a damaged one."""
    t, q, qd, tau, status, failed_at, steps = (arrays[name] for name in SAVED)
    f_ext = {name: arrays[f"f_ext{k}"] for k, name in enumerate(facts["frames"])}
    rows, times = status.shape, (len(t),)
    shapes = {"t": times, "steps": times, "failed_at": rows, "q": (*rows, *times, q.shape[-1]),
              "qd": (*rows, *times, qd.shape[-1]), "tau": qd.shape}  # fmt: skip
    shapes |= {f"f_ext{k}": (*rows, 6) for k in range(len(f_ext))}
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape}; expected {shape}")
    status = status.astype(FLAGS_DTYPE, casting="safe", copy=False)  # uint8 in older files
    events = None
    if "event_t" in arrays:
        events = Event(*(arrays[f"event_{name}"] for name in Event._fields))
    return Trajectory(
        None, t, q, qd, status, failed_at, steps, float(facts["dt"]), facts["integrator"], None,
        f_ext, tau, bool(facts["interrupted"]), bool(facts["held"]), events,
        _stops_of(facts["stops"]),
        {name: arrays[f"parameter {name}"] for name in facts.get("parameters", ())},
    )  # fmt: skip


def names_of(robot: Robot, which: str) -> list[str]:
    """A name for each number of q, or of v: the joint's, numbered where it has several."""
    found = []
    for link in robot.tree.links:
        if link.follows is None:
            count = link.joint.nq if which == "q" else link.joint.nv
            own = link.joint_name
            found += [own] if count == 1 else [f"{own}[{k}]" for k in range(count)]
    return found


def resistance(robot: Robot, qd: ArrayLike) -> Array:
    """Torques (..., nv) that damping and friction of the joints take, where dynamics has them."""
    rates = np.asarray(qd)
    total = np.zeros_like(rates)
    for link in robot.tree.links:
        for k, factor in link.dofs:
            own = factor * rates[..., k]
            total[..., k] += factor * (link.damping * own + link.friction * np.sign(own))
    return total


__all__ = ["Balance", "Energy", "Status", "Trajectory"]
