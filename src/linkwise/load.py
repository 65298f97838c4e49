"""Ways to a robot: a file, a bundled name, a DH table, a model of another library."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any, TypedDict, Unpack

from linkwise.engine.build import progress
from linkwise.engine.calls import show_options
from linkwise.errors import (
    RobotFileError,
    meant,
    one_warning_per_kind,
    printable,
    quote,
    strictness,
)
from linkwise.interop.package import package
from linkwise.io.dh import Row, describe_dh
from linkwise.io.mjequality import Reading
from linkwise.io.read import check_words, is_text, read
from linkwise.model import edit
from linkwise.model.bodies import Policy
from linkwise.model.closures import AnyLoop, Coupling, Loop
from linkwise.model.description import LoopDescription, RobotDescription
from linkwise.model.joints import FIXED
from linkwise.model.order import reorder
from linkwise.models import BUNDLED, Bundled
from linkwise.robot import Robot

DESCRIPTION = re.compile(r"[a-z0-9_]+_description")  # a name of the package robot_descriptions


class Options(TypedDict, total=False):
    """Options of every function that makes a robot; `load` explains them."""

    base: str
    gravity: Sequence[float] | None
    friction: bool | None
    mimic: str
    strict: bool
    repair: str | None
    loops: str
    order: str | Sequence[str] | None
    actuated: bool | str | Sequence[str] | None


USUAL = Options(
    base="fixed", gravity=None, friction=None, mimic="follow", strict=True, repair=None,
    loops="closed", order=None, actuated=None,
)  # fmt: skip


def load(
    source: str | os.PathLike[str],
    *,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    **options: Unpack[Options],
) -> Robot:
    """Load a robot from a URDF or MJCF file, from its text, or by the name of a bundled robot.

    >>> import linkwise as lw
    >>> robot = lw.load("puma560")  # or "arm.urdf", "scene.xml", "<robot ...>", ...
    >>> robot.nv, robot.joint_names[0]
    (6, 'joint1')

    Bundled robots, ``"puma560"`` and ``"iiwa14"``, are published sets of parameters, taken as
    published: ``linkwise info NAME`` has their sources, and where they break rules of this
    function. ``source`` may also be a name of the package robot_descriptions, such as
    ``"panda_description"``, which fetches the file (``pip install 'linkwise[descriptions]'``). The
    format is recognised by content, not by the ending of the name; MJCF is compiled by MuJoCo, an
    extra (``pip install 'linkwise[mujoco]'``).

    Joints go depth first, those of one link in the order of the file, as in MuJoCo;
    ``order="pinocchio"`` takes them by name, and a list of names in its order (`Robot.reorder`).
    ``q`` of a spherical joint is a unit quaternion (w, x, y, z), of a free joint a quaternion and
    then the position; ``qd`` of a free joint is (angular, linear) in the link's axes; a planar
    joint has (x, y, angle).

    ``base="free"`` lets the base fly: six more degrees of freedom, first in ``q`` and ``qd``.
    Such a base has no motor; ``actuated`` names the joints that have one, or is True for all
    (`Robot.with_actuated`).
    ``gravity`` (3) in m/s² replaces the file's, which in a URDF is (0, 0, -9.81). With
    ``friction=True`` the dynamics include the file's joint damping and Coulomb friction. Unless it
    is given they are data alone, as in Pinocchio, and a `FrictionWarning` says so once: here for an
    MJCF, whose damping and friction always act in MuJoCo, or in the first `simulate` of another
    robot; ``friction=False`` leaves them out without a word. Effort limits of an MJCF are what its
    actuators can give. Mimic joints, and joints that an MJCF ties by ``<equality>``, follow the
    joint they name; ``mimic="free"`` gives them numbers of their own, as Pinocchio does by default
    and MuJoCo always.

    A physically inconsistent body (indefinite inertia, or triangle inequality broken; up to 5 %
    beyond it only warns) and other doubtful numbers are refused with their place in the file;
    ``strict=False`` takes them with a warning, and ``repair="nearest"`` replaces such a body by the
    nearest consistent one and logs what changed. A robot without inertia loads for kinematics;
    functions that would divide by a missing inertia are refused when they are called, or with
    ``strict=False`` give NaN.

    Files that the robot file names are looked for in the package or repository around it and in
    ``package_dirs``, further folders. Nothing else is opened.

    Constraints of an MJCF that close a loop (``<connect>``, ``<weld>``) become closed loops of the
    robot (`Robot.close_loops`), exact ones where MuJoCo's yield like springs. ``loops="open"``
    leaves them out with a warning. Constraints that neither close a loop nor tie a joint to another
    are refused.
    """
    told = checked("load", options)
    known = bundled(source)
    if known is not None:
        return _bundled(known, told)
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise TypeError(
            f"load: source is a {type(source).__name__}; expected a path, the text of a file, or "
            "the name of a robot (lw.from_pinocchio and lw.from_mujoco take models in memory)"
        )
    if isinstance(source, str) and DESCRIPTION.fullmatch(source) and not os.path.exists(source):
        source, package_dirs = _described_elsewhere(source, package_dirs)
    if not is_text(source) and not os.path.exists(os.fspath(source)):
        raise _no_such_file(str(source))
    what = "a robot from its text" if is_text(source) else quote(str(source))
    with progress(f"loading {what}"):
        return make(lambda: read(source, package_dirs, told["loops"], told["mimic"]), told)


def from_mujoco(model: Any, *, name: str = "", **options: Unpack[Options]) -> Robot:
    """Make a robot from a `mujoco.MjModel` in memory; options as in `load`.

    Numbers of hinges, slides and balls are MuJoCo's. A free joint has position, then quaternion
    there, and velocities (linear in world axes, angular in body axes); here quaternion, then
    position, and (angular, linear), both in body axes. `Robot.to_mujoco_q` and its siblings
    convert.

    >>> import linkwise as lw
    >>> import mujoco
    >>> body = '<body><joint name="a"/><geom size="0.1"/></body>'
    >>> text = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    >>> lw.from_mujoco(mujoco.MjModel.from_xml_string(text)).joint_names
    ('a',)
    """
    told = checked("from_mujoco", options)
    from linkwise.io.mjmodel import describe_mjmodel

    _check_model("from_mujoco", model, "mujoco.MjModel", "name_bodyadr", name)
    reading = Reading(told["loops"], told["mimic"] == "follow")
    return make(lambda: describe_mjmodel(model, name, reading=reading), told)


def from_pinocchio(model: Any, *, name: str = "", **options: Unpack[Options]) -> Robot:
    """Make a robot from a `pinocchio.Model` in memory; options as in `load`.

    Joints keep their names and go depth first, which may not be the model's order;
    ``order="pinocchio"`` keeps that. Continuous joints are angles here, cosine and sine there;
    quaternions start with w here, end with it there; a free joint is quaternion, position and
    (angular, linear) here, both the other way round there; a planar joint's rates are along the
    joint's axes here, along the link's there. `Robot.to_pinocchio_q` and its siblings convert.

    >>> import linkwise as lw
    >>> import pinocchio  # doctest: +SKIP
    >>> model = pinocchio.buildSampleModelManipulator()  # doctest: +SKIP
    >>> lw.from_pinocchio(model).nv  # doctest: +SKIP
    6
    """
    told = checked("from_pinocchio", options)
    from linkwise.io.pinocchio import describe_pinocchio

    _check_model("from_pinocchio", model, "pinocchio.Model", "jointPlacements", name)
    described = describe_pinocchio(model, name)  # joints in the model's order
    if told["order"] == "pinocchio":
        told["order"] = [x.name for x in described.joints if x.kind != FIXED and x.mimic is None]
    return make(lambda: described, told)


def from_dh(
    rows: Sequence[Row],
    convention: str = "standard",
    *,
    name: str = "dh",
    **options: Unpack[Options],
) -> Robot:
    """Make a robot from a Denavit-Hartenberg table, one `DHRow` or mapping per joint.

    >>> import math, linkwise as lw
    >>> rows = [lw.DHRow(a=0.3, mass=1.0), lw.DHRow(a=0.2, alpha=math.pi / 2, mass=0.5)]
    >>> lw.from_dh(rows, name="two").nv
    2

    ``convention``: ``"standard"`` (link frame at the far end) or ``"modified"`` (Craig); options as
    in `load`.
    """
    told = checked("from_dh", options)
    return make(lambda: describe_dh(rows, convention, name), told)


def make(describe: Callable[[], RobotDescription], options: Options, quiet: bool = False) -> Robot:
    """Build a robot from a description; ``options`` are complete."""
    with one_warning_per_kind(), strictness(options["strict"]):
        described = describe()
        tree = changed(replace(described, loops=()), options)
        robot = Robot(tree, policy_of(options, quiet))
    if described.friction_acts:
        robot._warn_of_friction("")
    loops: list[AnyLoop] = [
        Loop(x.frame_a, x.frame_b, x.directions, x.pose)
        if isinstance(x, LoopDescription)
        else Coupling(x.joint, x.driver, x.polynomial)
        for x in described.loops
    ]
    robot = robot.close_loops(loops) if loops else robot
    return robot if options["actuated"] is None else robot.with_actuated(options["actuated"])


def changed(robot: RobotDescription, options: Options) -> RobotDescription:
    """What was read, with the mimic joints, gravity and base that the options ask for."""
    if options["mimic"] == "free":
        robot = edit.free_mimics(robot)
    if options["gravity"] is not None:
        robot = edit.with_gravity(robot, options["gravity"])
    if options["order"] is not None:
        robot = reorder(robot, options["order"])
    return edit.with_free_base(robot) if options["base"] == "free" else robot


def policy_of(options: Options, quiet: bool = False) -> Policy:
    """How to build a robot with these options."""
    friction = options["friction"]
    known = friction is not None
    return Policy(options["strict"], options["repair"], bool(friction), known, quiet)


def checked(function: str, options: Options) -> Options:
    """All options, with the usual values of those not given; unknown names and values raise."""
    for name in options.keys() - USUAL.keys():
        hint = meant(name, USUAL)
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")
    check_words(options)
    return USUAL | options


def _check_model(function: str, model: Any, kind: str, part: str, name: str) -> None:
    """Raise unless the model has an attribute that every model of its library has."""
    if not hasattr(model, part):
        given = type(model).__name__
        raise TypeError(f"{function}: model is a {given!r}; expected a {kind} (load takes files)")
    if not isinstance(name, str):
        raise TypeError(f"{function}: name is {name!r}; expected text")


def _described_elsewhere(
    name: str, package_dirs: Sequence[str | os.PathLike[str]]
) -> tuple[str, Sequence[str | os.PathLike[str]]]:
    """The file of a robot of robot_descriptions, and the folders that its meshes lie in."""
    known = package("robot_descriptions", f"the robot {name!r}", "descriptions")
    try:
        found = import_module(f"{known.__name__}.{name}")
    except ModuleNotFoundError as error:
        hint = meant(name, getattr(known, "DESCRIPTIONS", ()), 3)
        raise RobotFileError(f"{name}: robot_descriptions has no such robot{hint}") from error
    except Exception as error:  # of git, of its cache, of the network
        reason = quote(" ".join(str(error).split()), 300)
        raise RobotFileError(
            f"{name}: robot_descriptions could not fetch it ({type(error).__name__}: {reason}); "
            "expected a connection to its repository, or its files in robot_descriptions' cache. "
            "Offline: lw.load('path/to/file.urdf') of a copy of your own"
        ) from error
    path = getattr(found, "URDF_PATH", None) or getattr(found, "MJCF_PATH", None)
    if path is None:
        raise RobotFileError(f"{name}: has neither URDF_PATH nor MJCF_PATH; expected one of them")
    folders = [getattr(found, x) for x in ("PACKAGE_PATH", "REPOSITORY_PATH") if hasattr(found, x)]
    return str(path), (*package_dirs, *folders)


def bundled(source: str | os.PathLike[str]) -> Bundled | None:
    """The bundled robot that a name stands for; None where it is a file or something else."""
    if isinstance(source, str) and source in BUNDLED and not os.path.exists(source):
        return BUNDLED[source]
    return None


def _bundled(known: Bundled, options: Options) -> Robot:
    """A bundled robot; where its published numbers break a rule, its notes say so, no warning."""
    strict = options["strict"] and known.strict
    return make(known.describe, options | Options(strict=strict), quiet=True)


def _no_such_file(source: str) -> RobotFileError:
    """The error for a name that is neither a file nor a robot, with names like it."""
    names, place = ", ".join(sorted(BUNDLED)), printable(source) or repr(source)
    hint = meant(source, [*BUNDLED, *_robot_files(os.path.dirname(source))])
    return RobotFileError(f"{place}: no such file; bundled robots are {names}{hint}")


def _robot_files(folder: str) -> Iterator[str]:
    """Paths of the files of a folder that may be robots, going by their names."""
    with suppress(OSError):
        for name in os.listdir(folder or "."):
            if name.endswith((".urdf", ".xml", ".mjcf")):
                yield os.path.join(folder, name)


for way in (load, from_mujoco, from_pinocchio, from_dh):
    show_options(way, Options, USUAL)
