"""Read an MJCF file: our own safe reading first, then MuJoCo's compiler, then a description.

MuJoCo is never shown the file itself. The file and what it includes are parsed under the same
limits as any robot file, every path is held to the declared folders, and MuJoCo compiles a text
written from that, one element a line, so that whatever it objects to has a place in the file.
MuJoCo stops at its first objection; where problems are collected, what it objects to becomes a
hole, and it is asked again.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from linkwise.codes import Code
from linkwise.errors import BackendUnavailable, Where, quote
from linkwise.io.files import FileRoots
from linkwise.io.mjcf_text import Document, Element, check_values, flatten, leave_out
from linkwise.io.mjcf_words import check_words
from linkwise.io.mjequality import Locate, Reading
from linkwise.io.mjmodel import describe_mjmodel
from linkwise.io.mjobjections import INERTIA, JOINTS, Objection, objection
from linkwise.io.mjshapes import text_at
from linkwise.io.xml import Node, ReadLimits
from linkwise.model.description import RobotDescription

MOST_OBJECTIONS = 100
ORIENTATIONS = ("fullinertia", "quat", "axisangle", "euler", "xyaxes", "zaxis")


def describe_mjcf(
    root: Node, files: FileRoots, limits: ReadLimits, reading: Reading
) -> RobotDescription:
    """Turn a parsed MJCF into a description."""
    mujoco = _mujoco()
    document = flatten(root, files, limits)
    check_words(document, mujoco.mj_printSchema(False, False))
    check_values(document)
    model = _compile(mujoco, document)
    if document.stand_ins:
        _check_inertias(mujoco, document, model)
    if model.nbody == 1:  # the world
        raise root.problem(Code.NO_BODY)
    if model.nbody > limits.max_links:
        raise root.problem(Code.TOO_MANY_LINKS, count=model.nbody, most=limits.max_links)
    name = root.attributes.get("model", "").strip()
    stem = os.path.splitext(os.path.basename(root.path))[0]
    return describe_mjmodel(model, name or stem, _locator(document, model), reading)


def _mujoco() -> Any:
    try:
        import mujoco
    except ImportError:
        raise BackendUnavailable(
            "MJCF files are compiled by MuJoCo, which is not installed: "
            "pip install 'linkwise[mujoco]'"
        ) from None
    return mujoco


# --- MuJoCo's compiler ---------------------------------------------------------------------


def _compile(mujoco: Any, document: Document) -> Any:
    """MuJoCo's model of a document; what it objects to is reported, and becomes a hole."""
    for _ in range(MOST_OBJECTIONS):
        model, said = _attempt(mujoco, document, 1.0)
        if not isinstance(model, str):
            for message in (m for m in said if "singular" not in m):  # judged later, by name
                words = quote(message.strip(), 300)[1:-1]
                document.root.report(Code.MUJOCO_WARNING, words=words, kind_of=words)
            return model
        found = objection(document, model)
        e = document.elements[found.at]
        if found.at == 0 or e.is_hole:
            raise document.root.problem(found.code, **found.facts)
        if not (found.names & document.lost or _has_holes(document, found.at)):
            e.node.report(found.code, **found.facts)
        _leave_hole(document, found)
    raise document.root.problem(Code.MUJOCO_ERROR, words="too many objections", tag="mujoco")


def _attempt(mujoco: Any, document: Document, size: float) -> tuple[Any, list[str]]:
    """MuJoCo's model, or its objection, with meshes of this size; and what it warns of."""
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(said.append)  # else MuJoCo prints, and writes a log file here
    try:
        return mujoco.MjModel.from_xml_string(document.text(size)), said
    except (ValueError, RuntimeError) as problem:
        return str(problem), said
    finally:
        mujoco.set_mju_user_warning(before)


def _has_holes(document: Document, index: int) -> bool:
    """Whether an element that is no body lacks one of its own, which is reported already."""
    holes = (e for e in document.elements if e.is_hole and e.parent == index)
    return document.elements[index].tag != "body" and any(holes)


def _leave_hole(document: Document, found: Objection) -> None:
    """Leave out what MuJoCo objects to, so that it goes on to the next."""
    e, body = document.elements[found.at], document.body(found.at)
    if found.hole == "orientation":
        for key in [key for key in ORIENTATIONS if key in e.attributes][1:]:
            del e.attributes[key]
    elif found.hole == INERTIA and body and not document.elements[body].is_given:
        document.give_inertia(body)
    elif found.hole == JOINTS and body:
        for joint in document.own(body, "joint", "freejoint"):
            document.remove(joint)
    elif found.hole in e.attributes:
        leave_out(document, found.at, found.hole)
    elif e.tag == "body" and not e.is_given:
        document.give_inertia(found.at)
    else:
        document.remove(found.at)


def _check_inertias(mujoco: Any, document: Document, model: Any) -> None:
    """Report bodies whose inertia depends on a mesh that is not there."""
    other, _ = _attempt(mujoco, document, 2.0)
    same = (model.body_mass == other.body_mass) & (model.body_inertia == other.body_inertia).all(1)
    same &= (model.body_ipos == other.body_ipos).all(1)
    locate = _locator(document, model)
    for body in np.flatnonzero(~same):
        missing = _some(sorted({quote(name) for name in document.stand_ins}))
        roots = ", ".join(document.files.own + document.files.packages) or "none"
        locate("body", int(body)).report(Code.MESH_NEEDED, missing=missing, allowed=roots)
    if same.all():
        for name, where in document.stand_ins.items():
            where.report(Code.MESH_LEFT_OUT, name=name)


def _some(names: list[str], most: int = 3) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


# --- places --------------------------------------------------------------------------------


def _locator(document: Document, model: Any) -> Locate:
    """Places of a model's elements: by name, or by order where both have as many."""
    whole = document.root.where
    found: dict[str, tuple[list[Element], int, Any]] = {
        "body": (document.tagged("body"), model.nbody - 1, model.name_bodyadr[1:]),
        "joint": (document.joints(), model.njnt, model.name_jntadr),
        "site": (document.tagged("site"), model.nsite, model.name_siteadr),
        "equality": (document.inside("equality"), model.neq, model.name_eqadr),
        "actuator": (document.inside("actuator"), model.nu, model.name_actuatoradr),
        "tendon": (document.inside("tendon"), model.ntendon, model.name_tendonadr),
        "flex": (document.tagged("flex", "flexcomp"), -1, ()),
    }
    named = {
        kind: {e.attributes["name"]: e for e in elements if e.attributes.get("name")}
        for kind, (elements, _, _) in found.items()
    }

    def locate(kind: str, index: int) -> Where:
        if kind == "model":
            return whole
        if kind == "body":
            index -= 1  # the world is no element
        elements, count, addresses = found[kind]
        name = text_at(model.names, addresses[index]) if 0 <= index < len(addresses) else ""
        if name in named[kind]:
            return named[kind][name].node.where
        in_order = 0 <= index < len(elements) and len(elements) == count
        return elements[index].node.where if in_order else whole

    return locate
