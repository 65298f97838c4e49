"""What a file says of the mechanics in a wrong place, or where merging hides it, is named."""

from __future__ import annotations

import pytest

import linkwise as lw
from linkwise.errors import RobotFileWarning

ARM = """
<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><mass value="2"/>
    <inertia ixx=".2" ixy="0" ixz="0" iyy=".2" iyz="0" izz=".2"/></inertial></link>
  <link name="tool"><inertial><mass value="1"/>
    <inertia ixx="{ixx}" ixy="0" ixz="0" iyy=".05" iyz="0" izz="{izz}"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" velocity="2"/></joint>
  <joint name="flange" type="fixed"><parent link="upper"/><child link="tool"/></joint>
</robot>
"""
SOUND = ARM.format(ixx=".05", izz=".05")
MISPLACED = {
    "an element of a joint": (
        '<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><damping value="1"/>',
        r'<damping> is not read here; expected <dynamics damping="\.\.\."/>',
    ),
    "an attribute of a joint": (
        '<joint name="shoulder"', '<joint name="shoulder" friction="0.3"',
        r'friction="0.3" is not read here; expected <dynamics friction="\.\.\."/>',
    ),
    "an attribute of another element": (
        'effort="5"', 'effort="5" damping="0.2"',
        r'damping="0.2" is not read here; expected <dynamics damping=',
    ),
    "an element of a limit": (
        'velocity="2"/>', 'velocity="2"><effort>3</effort></limit>',
        "<effort> is not read here; expected <limit effort=",
    ),
    "a mass of a link": (
        '<link name="upper">', '<link name="upper" mass="2">',
        'mass="2" is not read here; expected <inertial><mass value=',
    ),
    "an entry of the inertia": (
        '<joint name="shoulder"', '<joint name="shoulder" ixx="2"',
        'ixx="2" is not read here; expected <inertial><inertia ixx=',
    ),
    "a place of a joint": (
        '<joint name="shoulder"', '<joint name="shoulder" xyz="0 0 1"',
        'xyz="0 0 1" is not read here; expected <origin xyz=',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISPLACED)
def test_a_word_of_the_mechanics_in_a_wrong_place_is_named(name: str) -> None:
    old, new, expected = MISPLACED[name]
    assert old in SOUND
    text = SOUND.replace(old, new)
    with pytest.warns(RobotFileWarning, match=expected) as caught:
        robot = lw.load(text)
    assert len(caught) == 1 and robot == lw.load(SOUND)
    assert any(p.code.name == "MISPLACED_WORD" and p.line for p in lw.check(text))


def test_a_word_that_no_mechanics_reads_is_a_hint() -> None:
    text = SOUND.replace('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1" rpy="0 0 0"/>')
    assert lw.load(text) == lw.load(SOUND)  # zeros change nothing
    shape = '<visual mass="1"><geometry><sphere radius="1"/></geometry></visual>'
    text = SOUND.replace('<link name="upper">', f'<link name="upper">{shape}')
    lw.load(text)  # warnings are errors
    assert [p.severity for p in lw.check(text)] == ["hint"]


@pytest.mark.parametrize(
    ("ixx", "izz", "expected"),
    [("-.01", ".05", "expected none negative"), (".01", ".2", "the sum of the other two")],
)
def test_an_inconsistent_inertial_is_named_though_merging_hides_it(
    ixx: str, izz: str, expected: str
) -> None:
    text = ARM.format(ixx=ixx, izz=izz)
    message = rf'<link name="tool">: link "tool", merged with .* "shoulder", has .*{expected}'
    with pytest.warns(RobotFileWarning, match=message) as caught:
        robot = lw.load(text)
    assert len(caught) == 1  # the whole body is consistent, and taken as it is
    assert robot.inertial_parameters[0, 4] == pytest.approx(0.2 + float(ixx))
    (problem,) = lw.check(text)
    assert problem.severity == "warning" and problem.line == 6
