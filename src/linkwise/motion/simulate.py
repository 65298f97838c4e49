"""`simulate`: a robot's motion over time."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from linkwise.engine.arrays import check_threads
from linkwise.motion.elsewhere import guest_of
from linkwise.motion.laws import Law
from linkwise.motion.limits import SoftStop
from linkwise.motion.run import run
from linkwise.motion.setup import Controller, prepare
from linkwise.motion.trajectory import Trajectory
from linkwise.robot import Robot


def simulate(
    robot: Robot,
    q0: ArrayLike,
    qd0: ArrayLike | None = None,
    controller: Law | Controller | None = None,
    duration: float = 1.0,
    dt: float = 1e-3,
    integrator: str = "rk4",
    every: int | None = 1,
    hold: bool = True,
    f_ext: Mapping[str, ArrayLike] | None = None,
    *,
    limits: str | SoftStop | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    threads: int | None = None,
    device: str | None = None,
    drift: str | float | None = "project",
    parameters: Mapping[str, ArrayLike] | None = None,
) -> Trajectory:
    """The motion of a robot from a state, (nq) and (nv), or from a batch (..., nq), (..., nv).

    >>> import linkwise as lw
    >>> robot = lw.load("puma560")
    >>> swing = lw.simulate(robot, robot.neutral(), duration=0.1)
    >>> swing.q.shape
    (101, 6)

    ``controller`` is None for no torques; a law of `linkwise.control`, which is compiled into the
    simulation; or any function ``controller(t, q, qd) -> tau`` of the whole batch, called once per
    step. Its torques are held over the step, as a digital controller's are; with ``hold=False`` it
    is asked whenever the integrator needs an acceleration. A law may be made for another model of
    the robot with the same joints, and then computes with that: without a payload that the robot
    has, say, or of ``robot.open``, which knows nothing of closed loops.

    ``integrator``, with steps of ``dt`` seconds: ``"euler"`` (semi-implicit, order 1), ``"rk4"``
    (order 4), ``"implicit"`` (order 1, stable however stiff damping, friction and stops are) or
    ``"midpoint"`` (variational, order 2, for long motions: its energy error does not grow).
    Or a solver of SciPy that chooses its own steps, ``"DOP853"``, ``"RK45"``, ``"RK23"``,
    ``"Radau"``, ``"BDF"`` or ``"LSODA"``, for errors per step of ``rtol`` and ``atol`` (1e-9).
    ``every=k`` keeps the state at every k-th step, and the last one; ``None`` the last one only.

    ``f_ext`` are constant wrenches, as for `Robot.forward_dynamics`. Damping and friction of the
    joints act if the robot's dynamics has them (`Robot.with_friction`). ``limits`` of positions:
    ``"stop"`` or a `SoftStop` pushes back beyond them; ``"event"`` ends a row's motion where a
    joint meets one, and `Trajectory.events` tells when; None, the default, enforces nothing. Limits
    of positions, velocities and efforts that are exceeded in the states that are kept, and that
    nothing enforces, give one `LimitWarning` per call; ``"ignore"`` gives none.
    `linkwise.control.saturated` keeps a controller within the effort limits.

    ``drift`` is what is done about that of closed loops (`Robot.close_loops`): ``"project"`` closes
    them after every step; a number T is Baumgarte's way, in which errors decay in about T seconds
    and never vanish; None does nothing. SciPy's one-step solvers project after each of their
    steps and go on from there; BDF and LSODA cannot, and refuse ``"project"``.

    ``parameters`` are those of a robot made by `Robot.parametric`, one value for the batch or one
    for each row: ``{"payload": numbers}`` (..., 10). They act on the motion only; a law of
    `linkwise.control` computes with the robot's own values, as a controller does that has not been
    told. For arrays of NumPy, with every integrator.

    ``device="cuda"`` takes the steps on a GPU, from and to arrays of NumPy. Arrays of CuPy, PyTorch
    or JAX on a GPU are simulated there; the trajectory's ``q``, ``qd`` and what follows from them
    are such arrays too, and so is what a controller of Python is given (`Trajectory.numpy` has
    arrays of NumPy). ``threads`` is the most that a batch uses on the processor.

    A state that fails becomes NaN from there on, alone: `Trajectory.status` and `failed_at` tell,
    and a RuntimeWarning says what would help. Held torques need gains whose damping times ``dt`` is
    below the inertia of each joint.
    An interrupt returns what was computed until then, with a warning.
    """
    check_threads(threads)
    guest = guest_of(q0, qd0, f_ext)
    if guest is None:
        setup = prepare(
            robot, q0, qd0, controller, duration, dt, integrator, every, hold, f_ext, limits, rtol,
            atol, device, drift, parameters,
        )  # fmt: skip
        return run(setup, threads)
    if parameters:
        raise TypeError("simulate: parameters are for states in arrays of NumPy")
    pushes = f_ext if f_ext is None else {name: guest.fetched(x) for name, x in f_ext.items()}
    setup = prepare(
        robot, guest.fetched(q0), guest.fetched(qd0), guest.asked(controller), duration, dt,
        integrator, every, hold, pushes, limits, rtol, atol, guest.device(device), drift,
    )  # fmt: skip
    return guest.trajectory(run(setup, threads))
