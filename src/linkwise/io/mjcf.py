"""Read an MJCF file: our own safe reading first, then MuJoCo's compiler, then a description.

MuJoCo is never shown the file itself. The file and what it includes are parsed under the same
limits as any robot file, every path is held to the declared folders, and MuJoCo compiles a text
written from that, one element a line, so that whatever it objects to has a place in the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.errors import BackendUnavailable, RobotFileError, Where, suggestion
from linkwise.io.files import FileRoots
from linkwise.io.mjcf_text import Document, Element, Read, flatten
from linkwise.io.mjcf_words import check_words
from linkwise.io.mjequality import Locate, Reading
from linkwise.io.mjmodel import TREES, describe_mjmodel
from linkwise.io.xml import DEFAULT_LIMITS, Node, PathLike, ReadLimits, quote, read_xml
from linkwise.model.description import RobotDescription

_LINE = re.compile(r"\b[Ll]ine(?: number)?[ =](\d+)")
_ELEMENT = re.compile(r"\s*Element (?:name )?'[^']*'.*", re.DOTALL)
_KEYWORD = re.compile(r"invalid keyword: '(.*)'", re.DOTALL)
_QUOTED = re.compile(r"'([^']+)'")
_UNKNOWN = re.compile(r"unknown|unrecognized name|not found")
_PREFIX = re.compile(r"^(?:XML )?(?:[Pp]arse )?(?:Error: ?|error )+")


def read_mjcf(
    path: PathLike,
    *,
    package_dirs: Sequence[PathLike] = (),
    limits: ReadLimits = DEFAULT_LIMITS,
    reading: Reading = TREES,
) -> RobotDescription:
    """Read an MJCF file; it may name files under its own folder and under ``package_dirs``."""
    files = FileRoots.of(path, package_dirs)
    return describe_mjcf(read_xml(path, limits), files, limits, reading=reading)


def describe_mjcf(
    root: Node,
    files: FileRoots,
    limits: ReadLimits = DEFAULT_LIMITS,
    read: Read = read_xml,
    reading: Reading = TREES,
) -> RobotDescription:
    """Turn a parsed MJCF into a description; ``read`` parses the files that it includes."""
    if root.tag != "mujoco":
        raise root.error(f"the root element is <{quote(root.tag)[1:-1]}>; expected <mujoco>")
    mujoco = _mujoco()
    document = flatten(root, files, limits, read)
    check_words(document, mujoco.mj_printSchema(False, False))
    model = _compile(mujoco, document, 1.0)
    if document.stand_ins:
        _check_inertias(document, model, _compile(mujoco, document, 2.0))
    if model.nbody > limits.max_links:
        raise root.error(f"{model.nbody} bodies; expected max_links of at most {limits.max_links}")
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


def _compile(mujoco: Any, document: Document, size: float) -> Any:
    """MuJoCo's model of a document; meshes that are not there have this size."""
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(said.append)  # else MuJoCo prints, and writes a log file here
    try:
        model = mujoco.MjModel.from_xml_string(document.text(size))
    except (ValueError, RuntimeError) as problem:
        raise _located(document, str(problem)) from None
    finally:
        mujoco.set_mju_user_warning(before)
    for message in (m for m in said if "singular" not in m):  # that is judged later, by name
        document.root.where.warn(f"{quote(message.strip(), 300)[1:-1]} (says MuJoCo's compiler)")
    return model


def _located(document: Document, message: str) -> RobotFileError:
    """MuJoCo's objection, with its place in the file and the name that was perhaps meant."""
    node = _place(document, message)
    words = _PREFIX.sub("", _ELEMENT.sub("", message).strip())
    told = f"{quote(_with_key(words, node), 300)[1:-1]} (says MuJoCo's compiler)"
    if _UNKNOWN.search(words) and (meant := _meant(document, node, words)):
        told += f'; perhaps "{meant}"'
    return node.error(told)


def _place(document: Document, message: str) -> Node:
    """The line that MuJoCo names, or else the only element of the name that it names."""
    line = _LINE.search(message)
    if line is not None and 0 < int(line[1]) <= len(document.elements):
        return document.elements[int(line[1]) - 1].node
    for name in _QUOTED.findall(message):
        named = [e.node for e in document.opened() if e.node.attributes.get("name") == name]
        if len(named) == 1:
            return named[0]
    return document.root


def _with_key(words: str, node: Node) -> str:
    """Say which attribute holds a keyword that MuJoCo does not know."""
    said = _KEYWORD.fullmatch(words)
    keys = [key for key, value in node.attributes.items() if said and value == said[1]]
    if not keys:
        return words
    return f"invalid keyword: {keys[0]}={quote(node.attributes[keys[0]])} of a <{node.tag}>"


def _meant(document: Document, node: Node, words: str) -> str | None:
    """The name that is like the unknown one, of an element of the kind that is asked for."""
    unknown = set(_QUOTED.findall(words)) or {node.attributes.get("childclass")}
    for key, value in node.attributes.items():
        if value in unknown and key != "name":
            kind = key.rstrip("12").removeprefix("child")
            tag, name = ("default", "class") if kind == "class" else (kind, "name")
            nodes = [e.node for e in document.opened() if e.node.tag == tag]
            known = frozenset(n.attributes[name] for n in nodes if n.attributes.get(name))
            return suggestion(value, known)
    return None


def _check_inertias(document: Document, model: Any, other: Any) -> None:
    """Refuse bodies whose inertia depends on a mesh that is not there."""
    same = (model.body_mass == other.body_mass) & (model.body_inertia == other.body_inertia).all(1)
    same &= (model.body_ipos == other.body_ipos).all(1)
    for body in np.flatnonzero(~same):
        missing = _some(sorted({quote(name) for name in document.stand_ins}))
        roots = ", ".join(document.files.own + document.files.packages) or "none"
        raise _locator(document, model)("body", int(body)).error(
            "its inertia comes from its shapes, and a mesh is not in the declared folders "
            f"({missing}); expected package_dirs= with its folder, an <inertial>, or the file "
            f"under one of: {roots}"
        )


def _some(names: list[str], most: int = 3) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _locator(document: Document, model: Any) -> Locate:
    """Places of a model's elements: by name, or by order where both have as many."""
    whole = document.root.where
    bodies, joints = document.bodies(), document.joints()
    found: dict[str, tuple[list[Element], int, Any]] = {
        "body": (bodies, model.nbody - 1, model.name_bodyadr[1:]),
        "joint": (joints, model.njnt, model.name_jntadr),
        "site": (document.tagged("site"), model.nsite, model.name_siteadr),
        "equality": (document.inside("equality"), model.neq, model.name_eqadr),
        "actuator": (document.inside("actuator"), getattr(model, "nactuator", model.nu), ()),
        "tendon": (document.inside("tendon"), model.ntendon, ()),
        "pair": (document.tagged("pair"), model.npair, ()),
        "flex": (document.tagged("flex") + document.tagged("flexcomp"), -1, ()),
    }
    named = {
        kind: {e.node.attributes["name"]: e for e in elements if e.node.attributes.get("name")}
        for kind, (elements, _, _) in found.items()
    }

    def locate(kind: str, index: int) -> Where:
        if kind == "model":
            return whole
        if kind == "body":
            index -= 1  # the world is no element
        elements, count, addresses = found[kind]
        name = _name(model, addresses[index]) if 0 <= index < len(addresses) else ""
        if name in named[kind]:
            return named[kind][name].node.where
        in_order = 0 <= index < len(elements) and len(elements) == count
        return elements[index].node.where if in_order else whole

    return locate


def _name(model: Any, address: int) -> str:
    return bytes(model.names[address:]).split(b"\0", 1)[0].decode(errors="replace")
