"""Robot dynamics, compiled link by link.

>>> import linkwise as lw
>>> robot = lw.load("puma560")
>>> robot.nv
6
"""

from linkwise import control, plots, se3
from linkwise.builder import Builder
from linkwise.chain import chain
from linkwise.checking.collect import check
from linkwise.errors import (
    BackendUnavailable,
    CacheWarning,
    ContactWarning,
    ControlWarning,
    ConvergenceWarning,
    FrictionWarning,
    IdentificationWarning,
    LimitWarning,
    LinkwiseWarning,
    NoProgram,
    PerformanceWarning,
    ProgramTooLarge,
    RobotFileError,
    RobotFileWarning,
    SimulationWarning,
    StateWarning,
    StudyStopped,
    StudyWarning,
)
from linkwise.grasp import Grasp
from linkwise.identification import base_parameters, excitation, identify
from linkwise.interop import jax, torch
from linkwise.io.dh import DHRow
from linkwise.load import from_dh, from_mujoco, from_pinocchio, load
from linkwise.model.closures import Coupling, Loop
from linkwise.model.contacts import Contact, RigidBody
from linkwise.motion.simulate import simulate
from linkwise.motion.trajectory import Trajectory
from linkwise.robot import Robot
from linkwise.trace.program import OperationCount
from linkwise.trace.status import Status

__version__ = "0.1.0"

__all__ = [
    "BackendUnavailable",
    "Builder",
    "CacheWarning",
    "Contact",
    "ContactWarning",
    "ControlWarning",
    "ConvergenceWarning",
    "Coupling",
    "DHRow",
    "FrictionWarning",
    "Grasp",
    "IdentificationWarning",
    "LimitWarning",
    "LinkwiseWarning",
    "Loop",
    "NoProgram",
    "OperationCount",
    "PerformanceWarning",
    "ProgramTooLarge",
    "RigidBody",
    "Robot",
    "RobotFileError",
    "RobotFileWarning",
    "SimulationWarning",
    "StateWarning",
    "Status",
    "StudyStopped",
    "StudyWarning",
    "Trajectory",
    "base_parameters",
    "chain",
    "check",
    "control",
    "excitation",
    "from_dh",
    "from_mujoco",
    "from_pinocchio",
    "identify",
    "jax",
    "load",
    "plots",
    "se3",
    "simulate",
    "torch",
]
