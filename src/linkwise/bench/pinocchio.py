"""Pinocchio as a peer, with a model built joint by joint from the tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.bench.bodies import Array, bodies, depth_first
from linkwise.bench.peer import Call, Peer
from linkwise.bench.states import States
from linkwise.bench.timing import Way
from linkwise.robot import Robot

PUSHED = " with forces"  # ends the names of functions that are given wrenches


def _call(name: str, arguments: str, more: str = "", result: str = "{}", note: str = "") -> Call:
    """A call of Pinocchio: the states it reads, further arguments, and what is made of it."""
    statement = f"pin.{name}(model, data, {arguments}{more})"
    return Call(f"pin.{name}{note}", arguments, statement, result.format(statement))


CALLS = {
    "forward_dynamics": _call("aba", "q, qd, tau"),
    "inverse_dynamics": _call("rnea", "q, qd, tau"),
    "mass_matrix": _call("crba", "q"),
    "mass_matrix_inverse": _call("computeMinverse", "q", result="symmetric({})"),
    "bias": _call("nonLinearEffects", "q, qd"),
    "gravity_torque": _call("computeGeneralizedGravity", "q"),
    "jacobian": _call("computeFrameJacobian", "q", ", frame, axes", "angular_first({})"),
    "forward_dynamics" + PUSHED: _call("aba", "q, qd, tau", ", forces", note=PUSHED),
    "inverse_dynamics" + PUSHED: _call("rnea", "q, qd, tau", ", forces", note=PUSHED),
}
# returns None: the pose is read from its data
_poses = _call("framesForwardKinematics", "q", result="data.oMf[frame].homogeneous")
CALLS["forward_kinematics"] = _poses._replace(statement=f"{_poses.statement} or data.oMf[frame]")
BATCHES = {"forward_dynamics": "pin.abaInParallel", "inverse_dynamics": "pin.rneaInParallel"}


def pinocchio_peer(robot: Robot, frame: str) -> Peer:
    """The robot in Pinocchio."""
    import pinocchio as pin

    order, model = depth_first(robot.tree), pinocchio_model(robot)
    at = robot.tree.frames[frame]
    parent = order.index(at.link) + 1 if at.link >= 0 else 0
    pose = pin.SE3(np.array(at.rotation), np.array(at.origin))
    forces = pin.StdVec_Force([pin.Force.Zero() for _ in model.joints])
    forces[model.njoints - 1] = pin.Force(np.ones(6))  # on the last joint
    names = {
        "pin": pin, "model": model, "forces": forces, "axes": pin.LOCAL_WORLD_ALIGNED,
        "frame": model.addFrame(pin.Frame("tip", parent, pose, pin.FrameType.OP_FRAME)),
        "symmetric": _symmetric, "angular_first": _angular_first,
    }  # fmt: skip
    names["data"] = model.createData()
    # with one joint, its batch calls take 1 x N arrays for N x 1 and crash
    own = BATCHES if model.nv > 1 else {}
    batches = {function: _in_parallel if function in own else Peer.loop for function in CALLS}
    return Peer("pinocchio", order, names, CALLS, batches)


def pinocchio_model(robot: Robot) -> Any:
    """A `pin.Model` of the tree."""
    import pinocchio as pin

    model = pin.Model()
    model.gravity = pin.Motion(robot.gravity, np.zeros(3))
    joints = {"revolute": pin.JointModelRZ, "prismatic": pin.JointModelPZ}
    links = bodies(robot.tree)
    for body in links:
        pose = pin.SE3(body.rotation, body.position)
        joint = model.addJoint(body.parent + 1, joints[body.kind](), pose, body.name)
        inertia = pin.Inertia(body.mass, body.center, body.inertia)
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    model.armature = np.array([body.armature for body in links])
    return model


def _in_parallel(peer: Peer, function: str, states: States, threads: int) -> Way:
    """Its C++ batch call, which takes states as columns."""
    mine = states.columns(peer.order)
    q, qd, tau = (np.asfortranarray(x.T) for x in mine.arrays)
    pool = peer.names["pin"].ModelPool(peer.names["model"], threads)
    names = {"q": q, "qd": qd, "tau": tau, "out": np.empty_like(q), "pool": pool}
    statement = f"{BATCHES[function]}({threads}, pool, q, qd, tau, out)"
    return Way(BATCHES[function], statement, {**peer.names, **names}, len(states))


def _symmetric(matrix: Any) -> Array:
    """A matrix of which only the upper half was filled."""
    upper: Array = np.triu(np.atleast_2d(matrix))
    return upper + np.triu(upper, 1).T


def _angular_first(jacobian: Any) -> Array:
    """Pinocchio orders rows (linear, angular)."""
    rows = np.array(jacobian).reshape(6, -1)
    return np.vstack((rows[3:], rows[:3]))
