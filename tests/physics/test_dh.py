"""Denavit-Hartenberg tables: poses, bundled robots, and what a bad table is told."""

from __future__ import annotations

import logging
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.models import iiwa14, puma560

BUNDLED = {"puma560": puma560.ROWS, "iiwa14": iiwa14.ROWS}
BODY = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}


# -- poses --------------------------------------------------------------------------------------


def about_x(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def about_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def shift(x: float, z: float) -> np.ndarray:
    T = np.eye(4)
    T[0, 3], T[2, 3] = x, z
    return T


def standard(row: lw.DHRow, theta: float, d: float) -> np.ndarray:
    """Denavit and Hartenberg: ``Rz(theta) Tz(d) Tx(a) Rx(alpha)``."""
    return about_z(theta) @ shift(0, d) @ shift(row.a, 0) @ about_x(row.alpha)


def modified(row: lw.DHRow, theta: float, d: float) -> np.ndarray:
    """Craig: ``Rx(alpha) Tx(a) Rz(theta) Tz(d)``."""
    return about_x(row.alpha) @ shift(row.a, 0) @ about_z(theta) @ shift(0, d)


CONVENTIONS = {"standard": standard, "modified": modified}


def textbook(convention: str, rows: list[lw.DHRow], q: np.ndarray) -> list[np.ndarray]:
    """Poses of all links, by multiplying 4x4 matrices."""
    T, poses = np.eye(4), []
    for row, x in zip(rows, q, strict=True):
        turn, slide = (x, 0.0) if row.kind == "revolute" else (0.0, x)
        T = T @ CONVENTIONS[convention](row, row.theta + turn, row.d + slide)
        poses.append(T)
    return poses


def random_rows(rng: np.random.Generator, n: int = 7) -> list[lw.DHRow]:
    """Angles at random and exact quarter turns; one joint in three slides."""
    angles = [0.0, np.pi / 2, -np.pi / 2, np.pi, 0.3, -1.1]
    return [
        lw.DHRow(
            a=float(rng.choice([0.0, 0.4, -0.2])),
            alpha=float(rng.choice(angles)),
            d=float(rng.choice([0.0, 0.3, -0.5])),
            theta=float(rng.choice(angles)),
            kind="prismatic" if i % 3 == 1 else "revolute",
            **BODY,
        )
        for i in range(n)
    ]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_poses_are_the_textbook_product(
    convention: str, rng: np.random.Generator, assert_close: Any
) -> None:
    for _ in range(3):
        rows = random_rows(rng)
        robot = lw.from_dh(rows, convention)
        q = rng.uniform(-2, 2, (10, len(rows)))
        expected = np.array([textbook(convention, rows, x) for x in q])
        for i in range(len(rows)):
            assert_close(robot.forward_kinematics(q, f"link{i + 1}"), expected[:, i])


def test_a_mapping_is_a_row(rng: np.random.Generator) -> None:
    as_rows, as_mappings = (
        lw.from_dh([row(a=0.3, alpha=0.5, **BODY)] * 2, "modified") for row in (lw.DHRow, dict)
    )
    q = rng.uniform(-1, 1, 2)
    assert np.array_equal(as_rows.mass_matrix(q), as_mappings.mass_matrix(q))


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_centre_of_mass_and_inertia_are_in_link_axes(
    convention: str, rng: np.random.Generator, assert_close: Any
) -> None:
    """A point mass at ``com`` and a body about it: energies from the textbook's poses."""
    com, inertia = np.array([0.1, -0.2, 0.3]), (0.1, 0.2, 0.25)
    rows = [replace(r, com=tuple(com.tolist()), inertia=inertia) for r in random_rows(rng, 3)]
    robot = lw.from_dh(rows, convention, gravity=(1.0, 2.0, -3.0))
    q, qd = rng.uniform(-2, 2, (2, 3))

    def energy(q: np.ndarray) -> float:
        poses = textbook(convention, rows, q)
        return -sum(T[:3, :3] @ com + T[:3, 3] for T in poses) @ robot.gravity

    assert_close(robot.potential_energy(q), energy(q), scale=10.0)
    kinetic = 0.0
    for i in range(3):
        J = robot.jacobian(q, f"link{i + 1}", axes="body")
        w, v = (J @ qd)[:3], (J @ qd)[3:]
        kinetic += 0.5 * (w @ (np.array(inertia) * w) + np.sum((v + np.cross(w, com)) ** 2))
    assert_close(robot.kinetic_energy(q, qd), kinetic)


# -- bundled robots -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_robots_have_the_published_masses(name: str) -> None:
    robot = lw.load(name)  # a warning would be an error here
    assert [link.mass for link in robot.tree.links] == [row.mass for row in BUNDLED[name]]


def test_rotors_are_gear_squared_times_motor_inertia(assert_close: Any) -> None:
    robot = lw.load("puma560")
    unit = [replace(row, motor_inertia=0.0, armature=1.0) for row in puma560.ROWS]
    with pytest.warns(lw.RobotFileWarning, match="at most the sum of the other two"):
        other = lw.from_dh(unit, strict=False)
    q = np.linspace(-1, 1, 6)
    rotors = np.diag(robot.mass_matrix(q) - other.mass_matrix(q)) + 1.0
    assert_close(rotors, [row.gear**2 * row.motor_inertia for row in puma560.ROWS], scale=5.0)


def test_puma560_agrees_with_the_robotics_toolbox() -> None:
    """Gravity and masses at ``qn``, as P. Corke's toolbox prints them."""
    robot = lw.load("puma560")
    qn = np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0])
    gravity = [0, 31.6399, 6.0351, 0, 0.0283, 0]
    M = [
        [3.6594, -0.4044, 0.1006, -0.0025, 0, 0],
        [-0.4044, 4.4137, 0.3509, 0, 0.0024, 0],
        [0.1006, 0.3509, 0.9378, 0, 0.0015, 0],
        [-0.0025, 0, 0, 0.1925, 0, 0],
        [0, 0.0024, 0.0015, 0, 0.1713, 0],
        [0, 0, 0, 0, 0, 0.1941],
    ]
    np.testing.assert_allclose(robot.gravity_torque(qn), gravity, atol=6e-5)
    np.testing.assert_allclose(robot.mass_matrix(qn), M, atol=6e-5)


def test_published_iiwa14_breaks_the_triangle_inequality_by_little() -> None:
    with pytest.warns(lw.RobotFileWarning) as told:
        lw.from_dh(iiwa14.ROWS, "modified", name="iiwa")
    message = str(told[0].message)
    assert message.startswith("<DH table 'iiwa'>:4: row 4: the body moved by joint 'joint4'")
    assert "the largest 0.58 % above the sum of the other two: taken as written" in message


def test_published_iiwa14_is_taken_as_written_with_warnings(rng: np.random.Generator) -> None:
    with pytest.warns(lw.RobotFileWarning) as told:
        robot = lw.from_dh(iiwa14.ROWS, "modified", strict=False)
    (message,) = (str(w.message) for w in told)
    assert ": row 4: " in message and message.endswith("(the first of 2 such places)")
    q = rng.uniform(-2, 2, (20, 7))
    assert np.array_equal(robot.mass_matrix(q), lw.load("iiwa14").mass_matrix(q))


def test_repair_makes_iiwa14_physical_and_says_so(
    caplog: pytest.LogCaptureFixture, rng: np.random.Generator
) -> None:
    with caplog.at_level(logging.WARNING, "linkwise"):
        robot = lw.from_dh(iiwa14.ROWS, "modified", repair="nearest")
    rows = [record.getMessage().split(": ")[1] for record in caplog.records]
    assert rows == ["row 4", "row 7"]
    assert all("repaired" in record.getMessage() for record in caplog.records)
    q = rng.uniform(-2, 2, (20, 7))
    M, published = robot.mass_matrix(q), lw.load("iiwa14").mass_matrix(q)
    assert 0.0 < np.abs(M - published).max() < 0.01 * np.abs(published).max()
    for link in robot.tree.links:  # a body is physical where its pseudo-inertia is positive
        xx, xy, xz, yy, yz, zz = link.inertia.second
        h = list(link.inertia.h)
        pseudo = np.array(
            [[xx, xy, xz, h[0]], [xy, yy, yz, h[1]], [xz, yz, zz, h[2]], [*h, link.inertia.m]]
        )
        assert np.linalg.eigvalsh(pseudo).min() > -1e-12


# -- bad tables ---------------------------------------------------------------------------------

BAD_ROWS = {
    "unknown column": ({"alfa": 1.0}, "unknown column 'alfa'; expected some of a, alpha, d"),
    "not a row": ((0.1, 0.2), "a tuple; expected a DHRow or a mapping of its columns"),
    "kind": ({"kind": "helical"}, "kind 'helical'; expected 'revolute' or 'prismatic'"),
    "not a number": ({"a": "long"}, "a is 'long'; expected a finite number"),
    "nothing": ({"d": None}, "d is None; expected a finite number"),
    "nan": ({"theta": nan}, "theta is nan; expected a finite number"),
    "infinite": ({"mass": inf}, "mass is inf; expected a finite number"),
    "nan limit": ({"upper": nan}, "limits are (-inf, nan); expected lower <= upper"),
    "short com": ({"com": (1.0, 2.0)}, "com is (1.0, 2.0); expected 3 finite numbers"),
    "bad com": ({"com": (1.0, "x", 2.0)}, "com is (1.0, 'x', 2.0); expected 3 finite numbers"),
    "short inertia": ({"inertia": (1.0,) * 4}, "inertia is (1.0, 1.0, 1.0, 1.0); expected 3"),
    "tiny inertia": ({"inertia": (1e-310,) * 3}, "inertia is (1e-310, 1e-310, 1e-310); expected"),
    "negative mass": ({"mass": -1.0}, "mass is -1; expected zero or more"),
    "negative armature": ({"armature": -0.5}, "armature is -0.5; expected zero or more"),
    "negative motor": ({"motor_inertia": -2.0}, "motor_inertia is -2; expected zero or more"),
    "negative velocity": ({"velocity": -1.0}, "velocity is -1; expected zero or more"),
    "negative effort": ({"effort": -1.0}, "effort is -1; expected zero or more"),
    "limits": ({"lower": 2.0, "upper": 1.0}, "limits are (2, 1); expected lower <= upper"),
}


@pytest.mark.parametrize("problem", BAD_ROWS)
def test_bad_rows_are_named(problem: str) -> None:
    bad, expected = BAD_ROWS[problem]
    row = BODY | bad if isinstance(bad, dict) else bad
    with pytest.raises(lw.RobotFileError) as refused:
        lw.from_dh([BODY, row, BODY], name="arm")
    assert str(refused.value).startswith(f"<DH table 'arm'>:2: row 2: {expected}")


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_bodies_that_cannot_exist_are_named(convention: str) -> None:
    with pytest.raises(lw.RobotFileError) as refused:
        lw.from_dh([BODY, BODY | {"inertia": (1.0, 1.0, 3.0)}], convention)
    assert str(refused.value).startswith("<DH table 'dh'>:2: row 2: the body moved by joint")
    assert "(1, 1, 3) kg m²; expected each at most the sum" in str(refused.value)


DOUBTFUL_BODIES = {
    "no mass": ({"mass": 0.0}, "has inertia and no mass: taken as written"),
    "no inertia": ({"inertia": (0.0, 0.0, 0.0)}, 'joints that move no inertia: "joint2"'),
}


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("problem", DOUBTFUL_BODIES)
def test_doubtful_bodies_are_told(problem: str, convention: str) -> None:
    doubtful, expected = DOUBTFUL_BODIES[problem]
    with pytest.warns(lw.RobotFileWarning) as told:
        lw.from_dh([BODY, BODY | doubtful], convention)
    assert str(told[0].message).startswith("<DH table 'dh'>:2: row 2: ")
    assert expected in str(told[0].message)


BAD_TABLES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "convention": ([BODY], {"convention": "craig"}, "convention 'craig'; expected 'standard' or"),
    "a number": (3, {}, "rows is 3; expected one DHRow or mapping per joint"),
    "no rows": ([], {}, "no rows; expected one per joint"),
    "same names": ([BODY | {"name": "j"}] * 2, {}, ":2: row 2: name 'j' is row 1's; expected"),
}


@pytest.mark.parametrize("problem", BAD_TABLES)
def test_bad_tables_are_named(problem: str) -> None:
    rows, options, expected = BAD_TABLES[problem]
    with pytest.raises(lw.RobotFileError) as refused:
        lw.from_dh(rows, **options)
    assert str(refused.value).startswith("<DH table 'dh'>:")
    assert expected in str(refused.value)


UNREADABLE: dict[str, tuple[Any, dict[str, Any]]] = {
    "an array as the table": (np.zeros((6, 4)), {}),
    "one number as inertia": ([BODY | {"inertia": 0.1}], {}),
    "one number as com": ([BODY | {"com": 0.1}], {}),
}


@pytest.mark.parametrize("problem", UNREADABLE)
def test_what_cannot_be_read_is_a_located_error(problem: str) -> None:
    rows, options = UNREADABLE[problem]
    with pytest.raises(lw.RobotFileError, match="DH table"):
        lw.from_dh(rows, **options)


@pytest.mark.parametrize("gravity", [(0.0, -9.81), (0, 0, nan), 9.81])
def test_gravity_is_three_numbers(gravity: Any) -> None:
    with pytest.raises(ValueError, match=r"gravity is .*; expected 3 finite numbers"):
        lw.from_dh([BODY], gravity=gravity)


def test_an_option_that_is_none_is_refused() -> None:
    message = r"from_dh\(\) got an unexpected keyword argument 'gravty'"
    with pytest.raises(TypeError, match=message):
        lw.from_dh([BODY], gravty=(0, 0, 0))  # type: ignore[call-arg]


def test_unknown_repair_is_refused() -> None:
    with pytest.raises(ValueError, match="repair 'all': expected None or 'nearest'"):
        lw.from_dh([BODY], repair="all")
