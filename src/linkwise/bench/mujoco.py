"""MuJoCo with the same robot: an MJCF text of the tree, its inertias set exactly afterwards."""

from __future__ import annotations

from typing import Any, ClassVar
from xml.sax.saxutils import quoteattr

import numpy as np

from linkwise.bench.bodies import Array, Body, bodies, depth_first
from linkwise.bench.states import States
from linkwise.bench.timing import Way
from linkwise.robot import Robot

# MuJoCo refuses published inertias that break the triangle inequality, so bodies are compiled
# with this one, which is special in no way, and given their own numbers in the compiled model.
PLACEHOLDER = (
    '<inertial pos="0.1 0.2 0.3" quat="0.5 0.1 0.7 0.3" mass="1" diaginertia="1 1.1 1.2"/>'
)
JOINTS = {"revolute": "hinge", "prismatic": "slide"}


class MuJoCo:
    """MuJoCo, without contacts, constraints, limits or sensors to compute."""

    name = "mujoco"

    # function -> (how it is described, statement)
    CALLS: ClassVar = {
        "forward_dynamics": ("mj_forward", "applied[:] = tau; mujoco.mj_forward(model, data)"),
        "inverse_dynamics": ("mj_inverse", "qacc[:] = tau; mujoco.mj_inverse(model, data)"),
        "mass_matrix": (
            "mj_fwdPosition + mj_fullM",
            "mujoco.mj_fwdPosition(model, data); full_mass(model, data, mass)",
        ),
        "bias": (
            "mj_fwdPosition + mj_fwdVelocity",
            "mujoco.mj_fwdPosition(model, data); mujoco.mj_fwdVelocity(model, data)",
        ),
    }

    def __init__(self, robot: Robot, frame: str) -> None:
        import mujoco

        self._mujoco = mujoco
        self.order = depth_first(robot.tree)
        links = bodies(robot.tree, self.order)
        self.model = mujoco.MjModel.from_xml_string(mjcf(links, robot.gravity))
        _set_inertias(mujoco, self.model, links)
        self.data = mujoco.MjData(self.model)
        mujoco.mj_setConst(self.model, self.data)
        self._mass = np.zeros((robot.nv, robot.nv))

    def _names(self) -> dict[str, Any]:
        data = self.data
        return {
            "mujoco": self._mujoco, "model": self.model, "data": data, "mass": self._mass,
            "qpos": data.qpos, "qvel": data.qvel, "applied": data.qfrc_applied, "qacc": data.qacc,
            "full_mass": self._full_mass,
        }  # fmt: skip

    def _full_mass(self, model: Any, data: Any, out: Array) -> None:
        """``mj_fullM`` takes the data since MuJoCo 4, the sparse matrix before."""
        if self._mujoco.__version__.startswith("3."):
            self._mujoco.mj_fullM(model, out, data.qM)
        else:
            self._mujoco.mj_fullM(model, data, out)

    def batch(self, function: str, states: States, threads: int) -> Way | None:
        """Its C++ rollout, one step of each state: forward dynamics and an Euler step."""
        if function != "forward_dynamics":
            return None
        from mujoco import rollout

        mine, count = states.columns(self.order), len(states)
        pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
        datas = [self._mujoco.MjData(self.model) for _ in range(threads)]
        start = np.hstack((np.zeros((count, 1)), mine.q, mine.qd))
        names = self._names() | {
            "pool": pool, "models": [self.model] * count, "datas": datas, "start": start,
            "applied": np.ascontiguousarray(mine.tau[:, None, :]),
            "after": np.empty((count, 1, start.shape[1])),
            "spec": int(self._mujoco.mjtState.mjSTATE_QFRC_APPLIED),
            "sensors": np.empty((count, 1, 0)),
        }  # fmt: skip
        statement = (
            "pool.rollout(models, datas, start, applied, control_spec=spec, nstep=1, state=after, "
            "sensordata=sensors, skip_checks=True)"
        )
        return Way("rollout, one mj_step", statement, names, count)

    def single(self, function: str, states: States) -> Way | None:
        """One state per call, copied into its data first."""
        if function not in self.CALLS:
            return None
        mine = states.columns(self.order)
        label, call = self.CALLS[function]
        names = self._names() | {"q": mine.q[0], "qd": mine.qd[0], "tau": mine.tau[0]}
        return Way(label, f"qpos[:] = q; qvel[:] = qd; {call}", names)

    def evaluate(self, function: str, q: Array, qd: Array, tau: Array) -> Array | None:
        """A result for comparison."""
        if function not in self.CALLS:
            return None
        names = self._names() | {"q": q, "qd": qd, "tau": tau}
        exec(f"qpos[:] = q; qvel[:] = qd; {self.CALLS[function][1]}", names)
        results: dict[str, Array] = {
            "forward_dynamics": self.data.qacc,
            "inverse_dynamics": self.data.qfrc_inverse,
            "mass_matrix": self._mass,
            "bias": self.data.qfrc_bias,
        }
        return results[function].copy()


def mjcf(links: list[Body], gravity: Array) -> str:
    """The tree as MJCF: links, joints about z, rotors and gravity."""
    children: dict[int, list[int]] = {}
    for i, link in enumerate(links):
        if link.kind not in JOINTS:
            raise ValueError(f"{link.kind} joints are not compared")
        children.setdefault(link.parent, []).append(i)
    parts = [
        f'<mujoco><compiler angle="radian" autolimits="false"/><option gravity="{_text(gravity)}">'
        '<flag contact="disable" constraint="disable" sensor="disable" island="disable" '
        'eulerdamp="disable" warmstart="disable"/></option><worldbody>'
    ]
    waiting: list[int | str] = list(reversed(children.get(-1, [])))
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        parts.append(_open(links[item]))
        waiting.append("</body>")
        waiting += reversed(children.get(item, []))
    return "".join((*parts, "</worldbody></mujoco>"))


def _open(link: Body) -> str:
    x, y = link.rotation[:, 0], link.rotation[:, 1]
    return (
        f'<body pos="{_text(link.position)}" xyaxes="{_text(np.concatenate((x, y)))}">{PLACEHOLDER}'
        f'<joint name={quoteattr(link.name)} type="{JOINTS[link.kind]}" axis="0 0 1" '
        f'armature="{link.armature!r}"/>'
    )


def _set_inertias(mujoco: Any, model: Any, links: list[Body]) -> None:
    for k, link in enumerate(links, start=1):
        moments, axes = np.linalg.eigh(link.inertia)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        model.body_mass[k], model.body_ipos[k] = link.mass, link.center
        model.body_inertia[k] = moments
        mujoco.mju_mat2Quat(model.body_iquat[k], axes.ravel())


def _text(values: Array) -> str:
    return " ".join(repr(float(x)) for x in values)
