"""Hostile files: XML that wants to grow, read or call; paths that want to leave their folder."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import linkwise as lw
from faults.card import Line
from faults.files import SECONDS, deadline

SECRET = "xyzzy-the-secret-of-this-machine"
WATCHED = ("open", "socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "exec")
_seen: list[tuple[str, str]] | None = None  # what is recorded, while something is watched
_strangers: set[int] = set()  # threads that ran before, and are about something else (native ids)
_hooked = False


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _seen is not None and event in WATCHED and threading.get_native_id() not in _strangers:
        _seen.append((event, str(arguments[0]) if arguments else ""))


def _running() -> set[int]:
    """Threads of this process; where the system does not list them, those that Python started."""
    try:
        return {int(name) for name in os.listdir("/proc/self/task")}
    except OSError:
        return {thread.native_id for thread in threading.enumerate() if thread.native_id}


@contextmanager
def watched() -> Iterator[list[tuple[str, str]]]:
    """Record every file opened, address called and process started by this thread or its own.

    Threads that are running already, such as a test runner's, are not watched.
    """
    global _seen, _hooked, _strangers
    if not _hooked:
        sys.addaudithook(_hook)  # for good: an audit hook cannot be taken back
        _hooked = True
    _strangers = _running() - {threading.get_native_id()}
    seen: list[tuple[str, str]] = []
    _seen = seen
    try:
        yield seen
    finally:
        _seen = None


ARM = """<link name="base"/><link name="tip"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>{inside}</link>
<joint name="j" type="continuous"><parent link="base"/><child link="tip"/></joint>"""


def robot(inside: str = "", head: str = "", name: str = "arm") -> str:
    """A small robot with something in it."""
    return f'<?xml version="1.0"?>\n{head}<robot name="{name}">{ARM.format(inside=inside)}</robot>'


def xml_attacks(secret: Path) -> dict[str, bytes]:
    """Files that are to be refused, or read without harm."""
    uri = secret.as_uri()
    laughs = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
    include = f'xmlns:xi="http://www.w3.org/2001/XInclude" href="{uri}" parse="text"'
    texts = {
        "billion laughs": robot("&l9;", f'<!DOCTYPE robot [<!ENTITY l0 "lol">{laughs}]>'),
        "quadratic blow-up": robot("&a;" * 10_000, f'<!DOCTYPE r [<!ENTITY a "{"a" * 10_000}">]>'),
        "external entity": robot("&x;", f'<!DOCTYPE r [<!ENTITY x SYSTEM "{uri}">]>'),
        "external entity by path": robot("&x;", f'<!DOCTYPE r [<!ENTITY x SYSTEM "{secret}">]>'),
        "external entity in a name": robot("", f'<!DOCTYPE r [<!ENTITY x SYSTEM "{uri}">]>', "&x;"),
        "entity from the network": robot("&x;", '<!DOCTYPE r [<!ENTITY x SYSTEM "http://127.0.0.1:9/">]>'),
        "entity by ftp": robot("&x;", '<!DOCTYPE r [<!ENTITY x SYSTEM "ftp://127.0.0.1:9/">]>'),
        "public entity": robot("&x;", f'<!DOCTYPE r [<!ENTITY x PUBLIC "p" "{uri}">]>'),
        "parameter entity": robot("", f'<!DOCTYPE r [<!ENTITY % x SYSTEM "{uri}"> %x;]>'),
        "external DTD": robot("", f'<!DOCTYPE robot SYSTEM "{uri}">'),
        "DTD from the network": robot("", '<!DOCTYPE robot SYSTEM "http://127.0.0.1:9/r.dtd">'),
        "public DTD": robot("", '<!DOCTYPE robot PUBLIC "-//r" "http://127.0.0.1:9/r.dtd">'),
        "default attributes": robot("", '<!DOCTYPE robot [<!ATTLIST mass value CDATA "9">]>'),
        "recursive entity": robot("&a;", '<!DOCTYPE r [<!ENTITY a "&b;"><!ENTITY b "&a;">]>'),
        "notation": robot("", f'<!DOCTYPE r [<!NOTATION n SYSTEM "{uri}">]>'),
        "undefined entity": robot("&x;"),
        "XInclude": robot(f"<xi:include {include}/>"),
        "include": robot(f'<include filename="{secret}"/>'),
        "xacro include": robot(f'<xacro:include filename="{secret}"/>'),
        "xacro code": robot("", name="${__import__('os').system('id')}"),
        "style sheet": robot("", f'<?xml-stylesheet href="{uri}"?>'),
        "schema": robot("").replace("<robot ", f'<robot xsi:schemaLocation="a {uri}" '),
        "namespace": robot("").replace("<robot ", '<robot xmlns="http://127.0.0.1:9/" '),
        "deep nesting": robot("<visual>" * 50_000 + "</visual>" * 50_000),
        "many elements": robot("<a/>" * 600_000),
        "many unknown words": robot("".join(f"<u{k}/>" for k in range(5000))),
        "many attributes": robot(f"<a {' '.join(f'a{k}=' + repr('') for k in range(50_000))}/>"),
        "a giant attribute": robot(f'<a v="{"9" * 20_000_000}"/>'),
        "a giant number": robot().replace('value="1"', f'value="{"9" * 1_000_000}"'),
        "a giant name": robot("", name="n" * 5_000_000),
        "a giant comment": robot(f"<!--{' ' * 20_000_000}-->"),
        "a giant CDATA": robot(f"<![CDATA[{'<' * 20_000_000}]]>"),
        "character references": robot("&#65;" * 500_000),
        "unknown encoding": robot().replace('"1.0"', '"1.0" encoding="utf-7"'),
        "false encoding": robot().replace('"1.0"', '"1.0" encoding="utf-16"'),
    }  # fmt: skip
    return {name: text.encode() for name, text in texts.items()}


def run_xml_attacks(scratch: Path) -> Line:
    """Every XML attack, watched."""
    aim = f"no byte leaked, nothing opened, called or started, none over {SECONDS:g} s"
    line = Line("XML attacks", aim, refused=0, silent=0)
    secret = scratch / "secret.txt"
    secret.write_text(SECRET)
    path = scratch / "attack.urdf"
    for name, data in xml_attacks(secret).items():
        path.write_bytes(data)
        _watch(line, name, path, scratch / "nowhere")
    line.met = not line.wrong and line.cases >= 20
    return line


# -- paths ----------------------------------------------------------------------------------------


def path_attacks(outside: str) -> list[str]:
    """Names of mesh files that lie outside the package, or pretend to."""
    name = os.path.basename(outside)
    climbs = [f"{'../' * k}{name}" for k in range(1, 9)]
    return [
        *climbs,
        *(f"meshes/../{c}" for c in climbs[:4]),
        *(f"package://arm_pkg/{c}" for c in climbs[:4]),
        *(f"file://{p}" for p in (outside, f"/../..{outside}", f"localhost{outside}", climbs[1])),
        *(f"file:///{c}" for c in climbs[:2]),
        outside, f"//{outside}", f"/.{outside}", f"/proc/self/root{outside}", "/etc/passwd",
        "/dev/zero", "/dev/stdin", "/proc/self/environ", "~/.ssh/id_rsa", "$HOME/.bashrc",
        f"package://../{name}", f"package:///..{outside}", f"package://{outside}",
        f"package://arm_pkg/..%2f..%2f{name}", f"file://%2e%2e/%2e%2e/{name}", "package://",
        f"package://arm_pkg/./.././../{name}", f"..\\..\\{name}", f"..//..//{name}",
        "link.stl", "linked/secret.stl", "package://arm_pkg/meshes/link.stl", "meshes/link.stl",
        "http://127.0.0.1:9/m.stl", "https://127.0.0.1:9/m.stl", "ftp://127.0.0.1:9/m.stl",
        "\\\\127.0.0.1\\share\\m.stl", "data:,x", "meshes/a\u0000.stl", "a" * 5000, ".", "..", "/",
        "CON", f"{outside}\u2028", f"model://{name}", "\u202e..", f"meshes/%00/../../{name}",
    ]  # fmt: skip


def run_path_attacks(scratch: Path) -> Line:
    """Every path attack in a mesh and in a texture, watched."""
    line = Line("path attacks", "nothing outside the package opened, no resolved path outside it",
                refused=0, silent=0)  # fmt: skip
    package = scratch / "ws" / "arm_pkg"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    (package / "package.xml").write_text("<package/>")
    secret = scratch / "secret.stl"
    secret.write_text(SECRET)
    for link in (package / "meshes" / "link.stl", package / "urdf" / "link.stl"):
        link.symlink_to(secret)
    (package / "urdf" / "linked").symlink_to(scratch)
    path = package / "urdf" / "arm.urdf"
    for text in path_attacks(str(secret)):
        quoted = text.replace("&", "&amp;").replace('"', "&quot;").replace("\0", "&#0;")
        for where in ('<mesh filename="{}"/>', '<mesh filename="a.stl"/>#{}'):
            shape, _, texture = where.format(quoted).partition("#")
            skin = (
                f'<material name="m"><texture filename="{texture}"/></material>' if texture else ""
            )
            path.write_text(robot(f"<visual><geometry>{shape}</geometry>{skin}</visual>"))
            what = f"{text[:60]!r} in {'texture' if texture else 'mesh'}"
            _watch(line, what, path, package, written=text)
    line.met = not line.wrong and line.cases >= 40
    return line


def _watch(line: Line, name: str, path: Path, package: Path, written: str = "") -> None:
    """Load a hostile file, and see what was touched and what came out."""
    line.cases += 1
    loaded = None
    message = ""
    with watched() as seen, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            with deadline():
                loaded = lw.load(path)
                line.count("silent")
        except lw.RobotFileError as error:
            message = str(error)
            line.count("refused")
        except Exception as error:
            line.count("wrong")
            line.fail(f"{name}: {type(error).__name__}: {error}")
    said = (
        message
        + "".join(str(w.message) for w in told)
        + (repr(loaded.description) if loaded else "")
    )
    strays = [what for what in seen if not _allowed(what, path)]
    meshes = [g.path for k in loaded.description.links for g in k.visuals] if loaded else []
    found = [m for m in meshes if m != written and os.path.exists(m)]  # else kept as it stands
    outside = [m for m in found if not _inside(m, path, package)]
    if SECRET in said or strays or outside:
        line.count("wrong")
        line.fail(f"{name}: leaked={SECRET in said}, touched {strays}, resolved {outside}")


def _inside(mesh: str, path: Path, package: Path) -> bool:
    """Whether a path that was resolved lies under the package; a relative one was not resolved."""
    if not os.path.isabs(mesh):
        return True
    return os.path.commonpath([os.path.realpath(mesh), os.path.realpath(package)]) == str(
        os.path.realpath(package)
    )


def _allowed(what: tuple[str, str], path: Path) -> bool:
    """The robot file itself may be opened, and Python's own modules as they are first used."""
    event, name = what
    return event in ("open", "exec") and (
        name == str(path) or event == "exec" or name.endswith((".py", ".pyc", ".so"))
    )
