"""Effort limits of joints, and forces without control, of a compiled MuJoCo model's actuators.

An actuator pushes its joint by ``gear`` times a force, which MuJoCo clips to ``forcerange``. The
force of a motor (fixed gain, no bias) is its gain times the control, clipped to ``ctrlrange``; that
of a servo depends on the state, so that only ``forcerange`` bounds it. A fixed tendon of length
``cᵀ q`` takes its actuators' force to each of its joints by the entry of c. What acts on a joint is
the sum, clipped to its ``actuatorfrcrange``. The limit is the larger end of a range: one number for
both directions. Joints that no actuator drives have no limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.io.mjequality import ONE_AXIS, library
from linkwise.io.mjrotors import ON_JOINT, ON_TENDON, tendon_joints
from linkwise.model.frames import Array

FIXED_GAIN, NO_BIAS, AFFINE = 0, 0, 1  # mjGAIN_FIXED, mjBIAS_NONE, mjBIAS_AFFINE
FOLLOW_CONTROL = (0, 2, 3)  # mjDYN_NONE, mjDYN_FILTER, mjDYN_FILTEREXACT: bounded as the control is


def effort_limits(m: Any) -> Array:
    """Return the largest effort (njnt) of each joint's actuators, N m or N; infinite if unlimited.

    Joints of several degrees of freedom are not limited.
    """
    sums, driven = np.zeros(m.njnt), np.zeros(m.njnt, bool)
    for i in range(len(m.actuator_trntype)):
        gear, force = abs(float(m.actuator_gear[i, 0])), _largest_force(m, i)
        for joint, coefficient in _driven_joints(m, i).items():
            if gear and coefficient:  # else inf * 0
                driven[joint] = True
                sums[joint] += abs(coefficient) * gear * force
    limits = np.where(driven, sums, np.inf)
    limited = np.flatnonzero(m.jnt_actfrclimited)
    limits[limited] = np.minimum(limits[limited], np.abs(m.jnt_actfrcrange[limited]).max(1))
    limits[~np.isin(m.jnt_type, ONE_AXIS)] = np.inf
    return limits


def biased_actuators(m: Any) -> list[int]:
    """Numbers of the actuators that exert a force without control, as springs and dampers do."""
    kinds = np.asarray(m.actuator_biastype)
    acts = (kinds != NO_BIAS) & ((kinds != AFFINE) | np.any(m.actuator_biasprm[:, :3], axis=1))
    return [int(i) for i in np.flatnonzero(acts & np.any(m.actuator_gear, axis=1))]


def _driven_joints(m: Any, actuator: int) -> dict[int, float]:
    """Joints that an actuator drives, and what each takes of its force times its gear."""
    kind, target = int(m.actuator_trntype[actuator]), int(m.actuator_trnid[actuator, 0])
    if kind in ON_JOINT:
        return {target: 1.0}
    return (tendon_joints(m, target, {}) or {}) if kind == ON_TENDON else {}


def _largest_force(m: Any, i: int) -> float:
    """The largest force of an actuator, before its gear."""
    force = np.inf
    if int(m.actuator_gaintype[i]) == FIXED_GAIN and int(m.actuator_biastype[i]) == NO_BIAS:
        gain, signal = abs(float(m.actuator_gainprm[i, 0])), _largest_signal(m, i)
        force = gain * signal if gain else 0.0
    if m.actuator_forcelimited[i]:
        force = min(force, float(np.abs(m.actuator_forcerange[i]).max()))
    return force


def _largest_signal(m: Any, i: int) -> float:
    """The largest control, or activation, that drives an actuator."""
    largest, dynamics = np.inf, int(m.actuator_dyntype[i])
    clamped = not m.opt.disableflags & library(m).mjtDisableBit.mjDSBL_CLAMPCTRL
    k = int(m.actuator_ctrladr[i]) if hasattr(m, "actuator_ctrladr") else i
    if dynamics in FOLLOW_CONTROL and clamped and m.actuator_ctrllimited[k]:
        largest = float(np.abs(m.actuator_ctrlrange[k]).max())
    if dynamics and m.actuator_actlimited[i]:
        largest = min(largest, float(np.abs(m.actuator_actrange[i]).max()))
    return largest
