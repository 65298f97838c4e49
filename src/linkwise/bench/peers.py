"""The libraries that ``linkwise bench`` compares with, given the same robot link by link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from linkwise.bench.bodies import Array, Body, bodies, depth_first
from linkwise.bench.mujoco import MuJoCo
from linkwise.bench.states import States, random_states
from linkwise.bench.timing import Way
from linkwise.robot import Robot

PEERS = ("pinocchio", "mujoco")
OF_A_FRAME = ("jacobian", "forward_kinematics")
COMPARED = 16  # states on which results are compared before anything is timed
AGREE = 1e-9  # results that differ by more are not of the same robot


class Peer(Protocol):
    """Another library, holding one robot."""

    name: str
    order: list[int]

    def batch(self, function: str, states: States, threads: int) -> Way | None:
        """The fastest way it has over many states, or None."""

    def single(self, function: str, states: States) -> Way | None:
        """One state per Python call, or None."""

    def evaluate(self, function: str, q: Array, qd: Array, tau: Array) -> Array | None:
        """A result for comparison, joints in its own order; None where it has no such function."""


def find_peers(
    robot: Robot, frame: str, names: Sequence[str] = PEERS
) -> tuple[list[Peer], dict[str, str]]:
    """Peers that can hold this robot, and for each of the others why not."""
    found: list[Peer] = []
    missing: dict[str, str] = {}
    if robot.tree.coupled or any(link.joint.nq != 1 for link in robot.tree.links):
        return [], dict.fromkeys(names, "compared on robots of one-degree joints only")
    kinds: dict[str, Any] = {"pinocchio": Pinocchio, "mujoco": MuJoCo}
    for name in names:
        try:
            found.append(kinds[name](robot, frame))
        except ImportError:
            missing[name] = "not installed"
        except ValueError as error:
            missing[name] = str(error)
    return found, missing


class Agreeing(NamedTuple):
    """Peers whose results are ours, why others are missing, and how far each was off."""

    peers: list[Peer]
    missing: dict[str, str]
    agreement: dict[str, dict[str, float]]


def agreeing_peers(
    robot: Robot, frame: str, functions: Sequence[str], names: Sequence[str] = PEERS
) -> Agreeing:
    """Peers to time; one whose results differ is computing something else, and is not timed."""
    found, missing = find_peers(robot, frame, names)
    agreement = {peer.name: differences(robot, frame, peer, functions) for peer in found}
    for name, errors in agreement.items():
        worst = max(errors.values(), default=0.0)
        if not worst <= AGREE:
            missing[name] = f"results differ by {worst:.1e}: not compared"
    return Agreeing([peer for peer in found if peer.name not in missing], missing, agreement)


def differences(robot: Robot, frame: str, peer: Peer, functions: Sequence[str]) -> dict[str, float]:
    """Largest difference from the peer's results, relative to their largest entry."""
    states = random_states(robot, COMPARED, seed=1)
    theirs = states.columns(peer.order)
    worst: dict[str, float] = {}
    for function in functions:
        for k in range(len(states)):
            expected = peer.evaluate(function, theirs.q[k], theirs.qd[k], theirs.tau[k])
            if expected is None:
                break
            ours = in_order(
                linkwise_result(robot, frame, function, states, k), peer.order, function
            )
            error = np.abs(ours - expected.reshape(ours.shape)).max() / max(
                np.abs(expected).max(), 1e-300
            )
            worst[function] = max(worst.get(function, 0.0), float(error))
    return worst


def linkwise_result(robot: Robot, frame: str, function: str, states: States, k: int) -> Array:
    """One of our own results."""
    q, qd, tau = states.q[k], states.qd[k], states.tau[k]
    values = {"inverse_dynamics": (q, qd, tau), "forward_dynamics": (q, qd, tau), "bias": (q, qd)}
    extra = (frame,) if function in OF_A_FRAME else ()
    result: Array = getattr(robot, function)(*values.get(function, (q,)), *extra)
    return result


def in_order(result: Array, order: list[int], function: str) -> Array:
    """A result with its joints in a peer's order."""
    if function == "forward_kinematics":
        return result
    if function in ("mass_matrix", "mass_matrix_inverse"):
        return result[np.ix_(order, order)]
    return result[..., order]


class Pinocchio:
    """Pinocchio, with a model built joint by joint from the tree."""

    name = "pinocchio"

    # function -> (call, names of its arguments)
    CALLS: ClassVar = {
        "forward_dynamics": ("pin.aba", "q, qd, tau"),
        "inverse_dynamics": ("pin.rnea", "q, qd, tau"),
        "mass_matrix": ("pin.crba", "q"),
        "mass_matrix_inverse": ("pin.computeMinverse", "q"),
        "bias": ("pin.nonLinearEffects", "q, qd"),
        "gravity_torque": ("pin.computeGeneralizedGravity", "q"),
        "jacobian": ("pin.computeFrameJacobian", "q"),
        "forward_kinematics": ("pin.framesForwardKinematics", "q"),
    }
    BATCH: ClassVar = {
        "forward_dynamics": "pin.abaInParallel",
        "inverse_dynamics": "pin.rneaInParallel",
    }

    def __init__(self, robot: Robot, frame: str) -> None:
        import pinocchio as pin

        self._pin = pin
        self.order = depth_first(robot.tree)
        self.model = pinocchio_model(robot, self.order)
        at = robot.tree.frames[frame]
        parent = self.order.index(at.link) + 1 if at.link >= 0 else 0
        pose = pin.SE3(np.array(at.rotation), np.array(at.origin))
        self._frame = self.model.addFrame(pin.Frame("tip", parent, pose, pin.FrameType.OP_FRAME))
        self.data = self.model.createData()

    def _names(self) -> dict[str, Any]:
        aligned = self._pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        names = {"pin": self._pin, "model": self.model, "data": self.data}
        return names | {"frame": self._frame, "axes": aligned}

    def _call(self, function: str) -> str:
        call, arguments = self.CALLS[function]
        if function == "jacobian":
            arguments += ", frame, axes"
        elif function == "forward_kinematics":  # returns None: the pose is read from its data
            return f"{call}(model, data, {arguments}) or data.oMf[frame]"
        return f"{call}(model, data, {arguments})"

    def batch(self, function: str, states: States, threads: int) -> Way | None:
        """Its C++ batch call where it has one, else a Python loop."""
        if function not in self.CALLS:
            return None
        if function in self.BATCH and self.model.nv > 1:  # it takes 1 x N arrays for N x 1: crash
            call, mine = self.BATCH[function], states.columns(self.order)
            columns = {"q": mine.q.T, "qd": mine.qd.T, "tau": mine.tau.T}
            columns = {name: np.asfortranarray(x) for name, x in columns.items()}
            out = np.empty_like(columns["q"])
            pool = self._pin.ModelPool(self.model, threads)
            names = self._names() | columns | {"pool": pool, "threads": threads, "out": out}
            return Way(call, f"{call}(threads, pool, q, qd, tau, out)", names, len(states))
        return self.loop(function, states)

    def loop(self, function: str, states: States) -> Way:
        """A Python loop over its call for one state."""
        mine = states.columns(self.order)
        label, arguments = f"loop over {self.CALLS[function][0]}", self.CALLS[function][1]
        columns = {"q": mine.q, "qd": mine.qd, "tau": mine.tau}
        chosen = [columns[name] for name in arguments.split(", ")]
        rows = list(zip(*chosen, strict=True)) if len(chosen) > 1 else list(mine.q)
        statement = f"for {arguments} in rows: {self._call(function)}"
        return Way(label, statement, self._names() | {"rows": rows}, len(states))

    def single(self, function: str, states: States) -> Way | None:
        """One state per call."""
        if function not in self.CALLS:
            return None
        mine = states.columns(self.order)
        state = {"q": mine.q[0], "qd": mine.qd[0], "tau": mine.tau[0]}
        return Way(self.CALLS[function][0], self._call(function), self._names() | state)

    def pushed(self, function: str, states: States) -> Way | None:
        """One state per call, with a wrench on its last joint."""
        plain = self.single(function, states)
        if plain is None:
            return None
        forces = self._pin.StdVec_Force([self._pin.Force.Zero() for _ in self.model.joints])
        forces[self.model.njoints - 1] = self._pin.Force(np.ones(6))
        statement = plain.statement.removesuffix(")") + ", forces)"
        return Way(f"{plain.label} with forces", statement, {**plain.names, "forces": forces})

    def evaluate(self, function: str, q: Array, qd: Array, tau: Array) -> Array | None:
        """A result for comparison."""
        if function not in self.CALLS:
            return None
        names = self._names() | {"q": q, "qd": qd, "tau": tau}
        found = eval(self._call(function), names)
        if function == "forward_kinematics":
            found = found.homogeneous
        result: Array = np.array(found)
        if function == "jacobian":
            result = result.reshape(6, -1)
            return np.vstack((result[3:], result[:3]))  # (linear, angular) -> (angular, linear)
        if function == "mass_matrix_inverse":
            upper = np.triu(result.reshape(len(q), -1))
            return upper + np.triu(upper, 1).T
        return result


def pinocchio_model(robot: Robot, order: list[int]) -> Any:
    """A `pin.Model` of the tree."""
    import pinocchio as pin

    model = pin.Model()
    model.gravity = pin.Motion(robot.gravity, np.zeros(3))
    armature = []
    for body in bodies(robot.tree, order):
        pose = pin.SE3(body.rotation, body.position)
        joint = model.addJoint(body.parent + 1, _pinocchio_joint(pin, body), pose, body.name)
        inertia = pin.Inertia(body.mass, body.center, body.inertia)
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
        armature.append(body.armature)
    model.armature = np.array(armature)
    return model


def _pinocchio_joint(pin: Any, body: Body) -> Any:
    joints = {"revolute": pin.JointModelRZ, "prismatic": pin.JointModelPZ}
    if body.kind not in joints:
        raise ValueError(f"{body.kind} joints are not compared")
    return joints[body.kind]()
