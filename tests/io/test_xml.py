"""Reading XML: what a hostile or broken file meets before any robot is seen in it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import RobotFileError, RobotFileWarning, Where, collecting
from linkwise.io.files import FileRoots
from linkwise.io.xml import (
    ReadLimits,
    Vocabulary,
    Words,
    parse_number,
    parse_xml,
    quote,
    read_xml,
    suggestion,
)


def refusal(data: bytes | str, limits: ReadLimits | None = None) -> str:
    with pytest.raises(RobotFileError) as caught:
        parse_xml(data, "arm.xml", limits or ReadLimits())
    return str(caught.value)


# --- elements ------------------------------------------------------------------------------


def test_elements_keep_their_line_and_their_named_owner() -> None:
    root = parse_xml('<robot name="r">\n<joint\n name="elbow">\n<origin/></joint></robot>', "a.xml")
    (joint,) = root.all("joint")
    (origin,) = joint.children
    assert (joint.line, origin.line) == (2, 4)
    assert str(joint.where) == 'a.xml:2: <joint name="elbow">'
    assert str(origin.where) == 'a.xml:4: <joint name="elbow"> <origin>'


def test_an_element_without_named_owner_is_called_by_its_tag() -> None:
    (child,) = parse_xml("<a><b/></a>", "a.xml").children
    assert child.label == "<b>"


def test_prefixes_need_no_declaration() -> None:
    assert parse_xml("<a><sensor:camera/></a>", "a.xml").children[0].tag == "sensor:camera"


def test_a_second_child_names_the_line_of_the_first() -> None:
    root = parse_xml("<a>\n<b/>\n<b/></a>", "a.xml")
    with pytest.raises(RobotFileError, match=r"a\.xml:3: <b>: a second <b>; expected one.*line 2"):
        root.child("b")


def test_missing_children_and_attributes_are_named() -> None:
    root = parse_xml('<a name="x" blank=" "/>', "a.xml")
    assert root.child("b") is None
    with pytest.raises(RobotFileError, match=r'a\.xml:1: <a name="x">: has no <b>; expected'):
        root.required_child("b")
    with pytest.raises(RobotFileError, match="has no size attribute; expected size="):
        root.text("size")
    with pytest.raises(RobotFileError, match='blank=" " is empty; expected some text'):
        root.text("blank")


# --- numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["0", "-1", "+2.5", ".5", "5.", "1e3", "1E-3", " 7\t", "-0.0"])
def test_decimal_numbers_are_read_as_python_does(text: str) -> None:
    assert parse_number(text) == float(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "nan", "NaN", "inf", "-Infinity", "1_000", "0x10", "1e999", "1,5", "1 2", "--1"),
        *("e5", ".", "1e", "1e+", "1f", "True", "1\x00", "1" * 101),
        *("\u0661\u0662", "1\u00a0", "\uff11"),
    ],
)
def test_anything_else_is_not_a_number(text: str) -> None:
    assert parse_number(text) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_survives_its_repr(value: float) -> None:
    assert parse_number(repr(value)) == value


@given(st.text(max_size=20))
def test_a_number_is_finite_or_refused(text: str) -> None:
    value = parse_number(text)
    assert value is None or abs(value) < float("inf")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2", 'v="1 2" has 2; expected 3 finite decimal numbers'),
        ("1 2 3 4", 'v="1 2 3 4" has 4; expected 3 finite decimal numbers'),
        ("1 nan 3", 'v="1 nan 3": "nan" is not a finite decimal number; expected 3 finite'),
        ("1, 2, 3", '"1," is not a finite decimal number'),
        ("1\u00a02 3 4", '"1\\xa02" is not a finite decimal number'),
        ("", 'v="" is empty'),
    ],
)
def test_vectors_say_what_is_wrong(text: str, message: str) -> None:
    node = parse_xml(f'<a v="{text}"/>', "a.xml")
    with pytest.raises(RobotFileError) as caught:
        node.numbers("v", 3)
    assert message in str(caught.value)
    assert str(caught.value).startswith("a.xml:1: <a>: ")


def test_numbers_have_defaults_and_lower_bounds() -> None:
    node = parse_xml('<a v="1  -2\n3" m="-1"/>', "a.xml")
    assert node.numbers("v", 3) == (1.0, -2.0, 3.0)
    assert node.numbers("w", 2, (0.0, 1.0)) == (0.0, 1.0)
    assert node.number("w", 4.0) == 4.0
    with pytest.raises(RobotFileError, match='m="-1" is too small; expected at least 0'):
        node.number("m", minimum=0.0)
    with pytest.raises(RobotFileError, match="has no w attribute"):
        node.number("w")


def test_values_in_messages_are_short_and_printable() -> None:
    assert quote("a\nb\x07") == r'"a\nb\x07"'
    assert quote("x" * 10_000) == '"' + "x" * 60 + '..."'


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        *(("inertail", "inertial"), ("Mass", "mass"), ("xzy", "xyz"), ("limits", "limit")),
        *(("axes", "axis"), ("maas", "mass"), ("arm2", None), ("mesh", None)),
        *(("sensor", None), ("x" * 1000, None), ("", None)),
    ],
)
def test_suggestions(word: str, meant: str | None) -> None:
    known = frozenset({"inertial", "mass", "xyz", "limit", "axis", "arm1"})
    assert suggestion(word, known) == meant


# --- broken and hostile documents ----------------------------------------------------------


LAUGHS = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(10))
ATTACKS = {
    "billion laughs": f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "ha">{LAUGHS}]><r>&l10;</r>',
    "external entity": '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>',
    "external DTD": '<!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd"><r/>',
    "public DTD": '<!DOCTYPE r PUBLIC "-//X//Y" "http://127.0.0.1:9/x.dtd"><r/>',
    "parameter entity": '<!DOCTYPE r [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><r/>',
    "quadratic blowup": f'<!DOCTYPE r [<!ENTITY a "{"a" * 50_000}">]><r>{"&a;" * 50_000}</r>',
    "entity in attribute": '<!DOCTYPE r [<!ENTITY a "1">]><r v="&a;"/>',
    "default attributes": '<!DOCTYPE r [<!ATTLIST r name CDATA "x">]><r/>',
    "empty doctype": "<!DOCTYPE r><r/>",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_doctype_is_refused(attack: str) -> None:
    message = refusal(attack.encode())
    assert message.startswith("arm.xml:1: <!DOCTYPE r>: ")
    assert "refused; expected none" in message
    assert "root:" not in message


def test_an_undefined_entity_is_refused() -> None:
    assert "arm.xml:2: <r>: not well-formed XML: undefined entity" in refusal("<r>\n&x;</r>")


@pytest.mark.parametrize("depth", [101, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    message = refusal("<a>" * depth + "</a>" * depth)
    assert message == "arm.xml:1: <a>: too many elements; expected max_depth of at most 100"


def test_depth_can_be_allowed() -> None:
    node = parse_xml("<a>" * 50_000 + "</a>" * 50_000, "a.xml", ReadLimits(max_depth=50_000))
    assert node.tag == "a"


def test_too_many_elements_are_refused() -> None:
    message = refusal("<a>\n" + "<b/>" * 11 + "</a>", ReadLimits(max_elements=10))
    assert message == "arm.xml:2: <b>: too many elements; expected max_elements of at most 10"


def test_a_large_document_is_refused() -> None:
    message = refusal(b"<a/>" + b" " * 100, ReadLimits(max_bytes=100))
    assert message == "arm.xml: too large; expected at most 100 bytes"


def test_a_giant_attribute_makes_a_short_message() -> None:
    node = parse_xml(f'<a v="{"9" * 10_000_000}"/>', "a.xml")
    with pytest.raises(RobotFileError) as caught:
        node.number("v")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "arm.xml:1: the file is empty; expected an XML document"),
        (b" \n\t", "arm.xml:1: the file is empty"),
        (b"<a>\n</b>", "arm.xml:2: </b>: not well-formed XML: mismatched tag, column 3"),
        (b"<a>\n<b>", "arm.xml:2: <b>: not well-formed XML: no element found"),
        (b"<a/>\n<b/>", "arm.xml:2: <b>: not well-formed XML: junk after document element"),
        (b"<a x='1' x='2'/>", "arm.xml:1: <a>: not well-formed XML: duplicate attribute"),
        (b"<a>\x00</a>", "arm.xml:1: <a>: not well-formed XML"),
        (b"<a>&#0;</a>", "arm.xml:1: <a>: not well-formed XML: reference to invalid character"),
        (b"\x00" * 100, "arm.xml:1: not well-formed XML"),
        (b"solid cube", "arm.xml:1: not well-formed XML: syntax error"),
        (b"<a v='\xff'/>", "arm.xml:1: <a>: not well-formed XML: not well-formed (invalid token)"),
        ("<a/>".encode("utf-32"), "arm.xml:1: not well-formed XML"),
        ("<a/>".encode("utf-16")[:-1], "arm.xml:1: not well-formed XML"),
        (b"<?xml version='1.0' encoding='utf-7'?><a/>", '<?xml?>: encoding="utf-7" is not read'),
        (b"<?xml version='1.0' encoding='rot13'?><a/>", "expected one of utf-8, utf-16"),
        (b"<?xml version='1.0' encoding='utf-16'?><a/>", "arm.xml:1: not well-formed XML"),
    ],
)
def test_broken_documents_are_located(data: bytes, message: str) -> None:
    assert message in refusal(data)


def test_text_that_is_not_unicode_is_refused() -> None:
    assert "arm.xml:1: <a>: not well-formed XML" in refusal("<a>\ud800</a>")


@pytest.mark.parametrize(
    "data",
    [
        '<a name="é"/>'.encode(),
        b"\xef\xbb\xbf" + '<a name="é"/>'.encode(),
        '<a name="é"/>'.encode("utf-16"),
        '<?xml version="1.0" encoding="UTF-16"?><a name="é"/>'.encode("utf-16"),
        '<?xml version="1.0" encoding="ISO-8859-1"?><a name="é"/>'.encode("latin-1"),
        '<?xml version="1.0" encoding="windows-1252"?><a name="é"/>'.encode("cp1252"),
        '<?xml version="1.0" encoding="ISO-8859-1"?><a name="é"/>',
    ],
)
def test_the_usual_encodings_are_read(data: bytes | str) -> None:
    assert parse_xml(data, "a.xml").attributes["name"] == "é"


# --- files ---------------------------------------------------------------------------------


def test_a_file_is_read_from_a_path_or_a_string(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text("<a/>")
    assert read_xml(file).path == read_xml(str(file)).path == str(file)


def unreadable(path: str | Path, limits: ReadLimits | None = None) -> str:
    with pytest.raises(RobotFileError) as caught:
        read_xml(path, limits or ReadLimits())
    return str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "none.xml"
    reason = "No such file or directory; expected a readable file"
    assert unreadable(missing) == f"{missing}: cannot be read: {reason}"
    assert "cannot be read: it is a directory" in unreadable(tmp_path)
    assert re.search("cannot be read: .*embedded null", unreadable("a\0b"))
    assert "cannot be read: File name too long" in unreadable("x" * 5000)


def test_a_file_too_large_is_not_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "big.xml"
    with file.open("wb") as stream:
        stream.truncate(2**40)  # sparse: a terabyte that holds nothing
    assert unreadable(file) == f"{file}: too large; expected at most {64 * 2**20} bytes"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.xml"
    os.mkfifo(pipe)
    assert "cannot be read: it is not a regular file" in unreadable(pipe)


def test_permission_denied_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.xml"
    file.write_text("<a/>")

    def deny(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", deny)
    assert unreadable(file) == (
        f"{file}: cannot be read: Permission denied; expected a readable file"
    )


# --- words ---------------------------------------------------------------------------------


WORDS = Vocabulary(
    elements={
        "arm": Words(frozenset({"name"}), frozenset({"bone", "skin"})),
        "bone": Words(frozenset({"length"}), strict=True),
        "skin": Words(frozenset({"colour"})),
    },
    skipped=frozenset({"sleeve"}),
    structural=frozenset({"bone", "arm"}),
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<arm><bnoe/></arm>", "a.xml:1: <bnoe>: unknown element <bnoe>; expected <bone>"),
        ("<arm><skin><bone/></skin></arm>", "<bone> inside <skin>; expected it inside <arm>"),
        ("<arm><arm/></arm>", "<arm> inside <arm>; expected it inside the top of the file"),
        ("<arm><bone width='2'/></arm>", 'unknown attribute width="2"; expected length'),
        ("<arm><skin color='2'/></arm>", 'unknown attribute color="2"; expected colour'),
        ("<arm><xacro:bone/></arm>", "<xacro:bone>: this file needs xacro; xacro runs code"),
        ("<arm name='${n}'/>", 'name="${n}" is a xacro expression; xacro runs code'),
        ("<arm name='$(find x)'/>", 'name="$(find x)" is a xacro expression'),
    ],
)
def test_words_are_checked(text: str, message: str) -> None:
    with pytest.raises(RobotFileError) as caught:
        WORDS.read(parse_xml(text, "a.xml"))
    assert message in str(caught.value)


def test_known_extensions_and_namespaces_are_silent() -> None:
    WORDS.read(parse_xml("<arm xmlns:xacro='x'><sleeve><anything/></sleeve></arm>", "a.xml"))


def test_unknown_words_are_noted_where_they_stand() -> None:
    with collecting() as notes:
        WORDS.read(parse_xml("<arm>\n<hat/>\n<skin tattoo='1'/></arm>", "a.xml"))
    assert [f"{note.where}: {note.message}" for note in notes] == [
        "a.xml:2: <hat>: <hat> is not read: ignored, with all it contains",
        'a.xml:3: <skin>: unknown attribute "tattoo" ignored',
    ]


# --- paths ---------------------------------------------------------------------------------


HERE = Where("arm.urdf", 7, "<mesh>")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Lay out ``ws/arm_pkg/{package.xml,urdf,meshes}`` with secrets around it."""
    root = tmp_path / "ws" / "arm_pkg"
    for folder in ("urdf", "meshes"):
        (root / folder).mkdir(parents=True)
    for file in ("package.xml", "urdf/arm.urdf", "urdf/a.stl", "meshes/m.stl", "meshes/a b.stl"):
        (root / file).write_text("")
    (tmp_path / "ws" / "secret.stl").write_text("secret")
    return root


def find(roots: FileRoots, text: str) -> str:
    """A file that must be there, such as one that an MJCF includes."""
    found = roots.find(text)
    if not found:
        roots.report_missing(text, HERE)
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.stl", "urdf/a.stl"),
        ("./a.stl", "urdf/a.stl"),
        ("../meshes/m.stl", "meshes/m.stl"),
        ("package://arm_pkg/meshes/m.stl", "meshes/m.stl"),
        ("package:///arm_pkg/meshes/m.stl", "meshes/m.stl"),
        ("PACKAGE://arm_pkg/meshes/../urdf/a.stl", "urdf/a.stl"),
        ("file://../meshes/a%20b.stl", "meshes/a b.stl"),
        ("{root}/meshes/m.stl", "meshes/m.stl"),
        ("file://{root}/meshes/m.stl", "meshes/m.stl"),
    ],
)
def test_files_of_the_package_are_found(package: Path, text: str, found: str) -> None:
    roots = FileRoots.of(package / "urdf" / "arm.urdf")
    real = os.path.realpath(package)
    assert roots.find(text.format(root=real)) == os.path.join(real, found)


@pytest.mark.parametrize("declared", ["ws", "ws/arm_pkg"])
def test_package_dirs_hold_packages_or_are_packages(
    tmp_path: Path, package: Path, declared: str
) -> None:
    for dirs in ([tmp_path / declared], str(tmp_path / declared)):
        found = FileRoots.of(None, dirs).find("package://arm_pkg/meshes/m.stl")
        assert found == os.path.realpath(package / "meshes" / "m.stl")


@pytest.mark.parametrize(
    "text",
    [
        *("none.stl", "package://arm_pkg/none.stl", "package://other/x.stl", "../meshes/none.stl"),
        *("file:///nowhere/on/this/machine.stl", "/nowhere/on/this/machine.stl", "x" * 5000),
        *("package://etc/passwd", "package://", "C:\\meshes\\m.stl", "."),
    ],
)
def test_files_that_are_not_there_are_not_found(package: Path, text: str) -> None:
    with pytest.raises(RobotFileError, match=r"arm\.urdf:7: <mesh>: file=.* is not there"):
        find(FileRoots.of(package / "urdf" / "arm.urdf"), text)


ESCAPES = [
    "../../secret.stl",
    "../../../../../../../../../../../../etc/passwd",
    "../../../../../../../../../../../../etc/none",
    "meshes/../../../secret.stl",
    "/etc/passwd",
    "//etc/passwd",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "file:////etc/passwd",
    "file:///etc/../etc/passwd",
    "file://../../secret.stl",
    "file://..%2f..%2fsecret.stl",
    "package://../secret.stl",
    "package://../../../../../../../../etc/passwd",
    "package://arm_pkg/../secret.stl",
    "package://arm_pkg/../../../../../../../../etc/passwd",
    "package://arm_pkg//etc/passwd",
    "package://other/../../secret.stl",
    "package:///../secret.stl",
    "out.stl",
    "outside/secret.stl",
    "package://arm_pkg/urdf/out.stl",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_a_path_out_of_the_declared_folders_is_refused(package: Path, text: str) -> None:
    (package / "urdf" / "out.stl").symlink_to(package.parent / "secret.stl")
    (package / "urdf" / "outside").symlink_to(package.parent)
    with pytest.raises(RobotFileError) as caught:
        find(FileRoots.of(package / "urdf" / "arm.urdf"), text)
    message = str(caught.value)
    assert message.startswith(f"arm.urdf:7: <mesh>: {quote(text)} leads out of the declared")
    assert "expected package_dirs=['" in message
    assert f"or a file under one of: {os.path.realpath(package / 'urdf')}" in message


def test_a_null_byte_in_a_path_is_refused(package: Path) -> None:
    with pytest.raises(RobotFileError, match=r'"file://a%00b" is no path \(.*embedded null'):
        find(FileRoots.of(package / "urdf" / "arm.urdf"), "file://a%00b")


def test_text_from_memory_declares_no_folder(package: Path) -> None:
    roots = FileRoots.of(None)
    with pytest.raises(RobotFileError, match=r'file="a\.stl" is not there'):
        find(roots, "a.stl")
    for text in ("/etc/passwd", "../x"):
        with pytest.raises(RobotFileError, match="or a file under one of: none"):
            find(roots, text)


@pytest.mark.parametrize("text", ["http://h/m.stl", "HTTPS://h/m.stl", "ftp://h/m", "model://m"])
def test_addresses_are_never_followed(text: str) -> None:
    with pytest.warns(RobotFileWarning, match="arm.urdf:7: <mesh>: .* never followed"):
        with pytest.raises(RobotFileError, match="is not there"):
            find(FileRoots.of(None), text)


def test_a_link_to_the_robot_file_declares_both_folders(tmp_path: Path, package: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "arm.urdf"
    link.symlink_to(package / "urdf" / "arm.urdf")
    found = FileRoots.of(link).find("package://arm_pkg/meshes/m.stl")
    assert found == os.path.realpath(package / "meshes" / "m.stl")
