"""MuJoCo as a peer: a model of the tree, without contacts, constraints, limits or sensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.bench.bodies import Body, bodies, depth_first
from linkwise.bench.peer import Call, Peer
from linkwise.bench.states import States
from linkwise.bench.timing import Way
from linkwise.robot import Robot

SWITCHED_OFF = ("CONTACT", "CONSTRAINT", "SENSOR", "EULERDAMP", "WARMSTART")
# MuJoCo refuses published inertias that break the triangle inequality, so bodies are compiled
# with this one, which is special in no way, and given their own numbers in the compiled model.
PLACEHOLDER = {
    "mass": 1.0, "ipos": (0.1, 0.2, 0.3), "iquat": (0.5, 0.1, 0.7, 0.5), "inertia": (1.0, 1.1, 1.2),
    "explicitinertial": True,
}  # fmt: skip


def _call(label: str, statement: str, result: str) -> Call:
    """A call of MuJoCo: a state is copied into its data first."""
    return Call(label, "q, qd, tau", f"qpos[:] = q; qvel[:] = qd; {statement}", result)


CALLS = {
    "forward_dynamics": _call(
        "mj_forward", "applied[:] = tau; mujoco.mj_forward(model, data)", "data.qacc"
    ),
    "inverse_dynamics": _call(
        "mj_inverse", "qacc[:] = tau; mujoco.mj_inverse(model, data)", "data.qfrc_inverse"
    ),
    "mass_matrix": _call(
        "mj_fwdPosition + mj_fullM", "mujoco.mj_fwdPosition(model, data); full_mass()", "mass"
    ),
    "bias": _call(
        "mj_fwdPosition + mj_fwdVelocity",
        "mujoco.mj_fwdPosition(model, data); mujoco.mj_fwdVelocity(model, data)",
        "data.qfrc_bias",
    ),
}


def mujoco_peer(robot: Robot, _frame: str) -> Peer:
    """The robot in MuJoCo."""
    import mujoco

    if not hasattr(mujoco, "MjSpec"):
        raise ValueError(f"version {mujoco.__version__} is too old: 3.2 or later is compared")
    model = mujoco_model(robot)
    data, mass = mujoco.MjData(model), np.zeros((robot.nv, robot.nv))
    mujoco.mj_setConst(model, data)

    def full_mass() -> None:  # takes the data since MuJoCo 4, the sparse matrix before
        old = mujoco.__version__.startswith("3.")
        mujoco.mj_fullM(model, *((mass, data.qM) if old else (data, mass)))

    names = {
        "mujoco": mujoco, "model": model, "data": data, "qpos": data.qpos, "qvel": data.qvel,
        "applied": data.qfrc_applied, "qacc": data.qacc, "mass": mass, "full_mass": full_mass,
    }  # fmt: skip
    batches = {"forward_dynamics": _rollout}
    return Peer("mujoco", depth_first(robot.tree), names, CALLS, batches)


def mujoco_model(robot: Robot) -> Any:
    """An `MjModel` of the tree: links, joints about or along z, rotors and gravity."""
    import mujoco

    spec, links = mujoco.MjSpec(), bodies(robot.tree)
    made: list[Any] = []
    joints = {"revolute": mujoco.mjtJoint.mjJNT_HINGE, "prismatic": mujoco.mjtJoint.mjJNT_SLIDE}
    for link in links:
        parent = spec.worldbody if link.parent < 0 else made[link.parent]
        quaternion = _quaternion(mujoco, link.rotation)
        made.append(parent.add_body(pos=link.position, quat=quaternion, **PLACEHOLDER))
        made[-1].add_joint(type=joints[link.kind], axis=(0, 0, 1), armature=link.armature)
    model = spec.compile()
    model.opt.gravity[:] = robot.gravity
    for name in SWITCHED_OFF:
        model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}")
    for k, link in enumerate(links, start=1):
        _set_inertia(mujoco, model, k, link)
    return model


def _set_inertia(mujoco: Any, model: Any, k: int, link: Body) -> None:
    moments, axes = np.linalg.eigh(link.inertia)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    model.body_mass[k], model.body_ipos[k] = link.mass, link.center
    model.body_inertia[k], model.body_iquat[k] = moments, _quaternion(mujoco, axes)


def _quaternion(mujoco: Any, rotation: Any) -> Any:
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(rotation).ravel())
    return quaternion


def _rollout(peer: Peer, _function: str, states: States, threads: int) -> Way:
    """Its C++ rollout, one step of each state: forward dynamics and an Euler step."""
    from mujoco import MjData, mjtState, rollout

    mine, count, model = states.columns(peer.order), len(states), peer.names["model"]
    start = np.hstack((np.zeros((count, 1)), mine.q, mine.qd))
    names = {
        "pool": rollout.Rollout(nthread=threads if threads > 1 else 0),
        "models": [model] * count, "datas": [MjData(model) for _ in range(threads)],
        "start": start, "applied": np.ascontiguousarray(mine.tau[:, None, :]),
        "after": np.empty((count, 1, start.shape[1])), "sensors": np.empty((count, 1, 0)),
        "spec": int(mjtState.mjSTATE_QFRC_APPLIED),
    }  # fmt: skip
    statement = (
        "pool.rollout(models, datas, start, applied, control_spec=spec, nstep=1, state=after, "
        "sensordata=sensors, skip_checks=True)"
    )
    return Way("rollout, one mj_step", statement, names, count)
