"""What is wrong with a state is told for that state, and touches no other."""

from __future__ import annotations

import inspect
import warnings
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS, configurations
from linkwise.trace.status import UNIT_TOLERANCE

STATES = 37  # not a multiple of any tile
BAD = (np.nan, np.inf, -np.inf)
# iterations report in their own way: tests/papers/test_conjugate_gradient.py; configurations are in
# tests/physics/test_manifold.py
CALLS = [
    (function, method)
    for function, methods in FUNCTIONS.items()
    for method, algorithm in methods.items()
    if not algorithm.iterates and function not in configurations.FUNCTIONS
]
DTYPES = ("float64", "float32")
# every method in one of the number types, by turns; a full run has all
IN_BOTH = [
    pytest.param(f, m, dtype, marks=() if dtype == DTYPES[k % 2] else pytest.mark.full)
    for k, (f, m) in enumerate(CALLS)
    for dtype in DTYPES
]
# one method of every function, likewise
FIRST = [
    pytest.param(f, m, marks=() if m == next(iter(FUNCTIONS[f])) else pytest.mark.full)
    for f, m in CALLS
]
FIRST_IN_BOTH = [
    pytest.param(
        *row.values, dtype, marks=row.marks if dtype == DTYPES[k % 2] else pytest.mark.full
    )
    for k, row in enumerate(FIRST)
    for dtype in DTYPES
]
OK, NOT_FINITE, NOT_UNIT = lw.Status.OK, lw.Status.NOT_FINITE, lw.Status.NOT_UNIT
SINGULAR, OVERFLOW = lw.Status.SINGULAR, lw.Status.OVERFLOW


@cache
def puma(base: str = "fixed") -> lw.Robot:
    return lw.load("puma560", base=base)


@cache
def flying() -> lw.Robot:
    """A free base with a joint: six directions for every function, and quick to compile."""
    body = {"mass": 2.0, "com": (-0.2, 0.1, 0.05), "inertia": (0.1, 0.2, 0.15)}
    builder = lw.Builder("flying").link("base", **body).link("arm", **body)
    builder.joint("shoulder", "revolute", parent="base", child="arm", xyz=(0.4, 0, 0))
    return builder.build().with_free_base()


def named(robot: lw.Robot, function: str) -> Any:
    """A method of the robot, or a function that is a part of one."""
    parts = function.endswith("_derivatives")  # returned one by one
    return (not parts and getattr(robot, function, None)) or partial(robot.compute, function)


def options(robot: lw.Robot, function: str, method: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if FUNCTIONS[function][method].takes_frame:
        found["frame"] = robot.frame_names[-1]
    if "method" in inspect.signature(getattr(lw.Robot, function, lw.Robot.compute)).parameters:
        found["method"] = method
    return found


def states(robot: lw.Robot, function: str, dtype: str, *shape: int) -> list[np.ndarray]:
    """Arguments of a function, healthy ones."""
    rng = np.random.default_rng(5)
    sizes = next(iter(FUNCTIONS[function].values())).input_sizes(robot.tree)
    others = [rng.normal(size=(*shape, size)) for _, size in sizes[1:]]
    return [values.astype(dtype) for values in (robot.random_q(rng, size=shape), *others)]


def same(a: Any, b: Any) -> bool:
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


# -- not finite -----------------------------------------------------------------------------------


def test_status_flags_are_sixteen_bits_that_float32_holds_exactly() -> None:
    whole = int(~lw.Status.OK)
    assert lw.Status.LOOP_OPEN == 256 and lw.Status.PULLING == 512
    assert 0 < whole < 2**16 and int(np.float32(whole)) == whole
    assert len({int(flag) for flag in lw.Status}) == len(lw.Status)


@pytest.mark.parametrize(("function", "method", "dtype"), IN_BOTH)
def test_a_bad_number_in_any_place_spoils_its_row_only(
    function: str, method: str, dtype: str
) -> None:
    robot = flying()
    call, how = named(robot, function), options(robot, function, method)
    good = states(robot, function, dtype, STATES)
    clean, calm = call(*good, **how, status=True)
    assert calm.dtype == np.uint16 and calm.shape == (STATES,) and not calm.any()
    assert same(clean, call(*good, **how))
    places = [(k, i) for k, values in enumerate(good) for i in range(values.shape[1])]
    for turn, (k, i) in enumerate(places):
        row = (7 * turn) % STATES
        bad = [values.copy() for values in good]
        bad[k][row, i] = BAD[turn % 3]
        result, status = call(*bad, **how, status=True)
        assert np.flatnonzero(status).tolist() == [row]
        assert status[row] == NOT_FINITE
        assert np.isnan(result[row]).all()
        others = np.arange(STATES) != row
        assert same(result[others], clean[others])
        assert np.array_equal(call(*bad, **how), result, equal_nan=True)


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_wrench_is_told_too(bad: float) -> None:
    robot = puma()
    q, qd, tau = states(robot, "forward_dynamics", "float64", 5)
    wrench = np.zeros((5, 6))
    clean = robot.forward_dynamics(q, qd, tau, f_ext={"link6": wrench})
    wrench[3, 4] = bad
    result, status = robot.forward_dynamics(q, qd, tau, f_ext={"link6": wrench}, status=True)
    assert status.tolist() == [0, 0, 0, NOT_FINITE, 0]
    assert np.isnan(result[3]).all()
    assert same(result[:3], clean[:3]) and same(result[4], clean[4])


def test_all_states_bad_and_all_states_good() -> None:
    robot = puma()
    q = np.full((9, 6), np.nan)
    result, status = robot.mass_matrix(q, status=True)
    assert np.isnan(result).all() and (status == NOT_FINITE).all()


def test_no_word_and_no_exception_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    robot = puma()
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for q in (np.full(6, np.nan), np.full((3, 6), np.inf), np.full((3, 6), 1e300)):
            robot.mass_matrix(q)
            robot.inverse_dynamics(q, q, q)
            robot.mass_matrix(q, status=True)
    assert capfd.readouterr() == ("", "")


# -- shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,), (2, 0, 3)])
@pytest.mark.parametrize(("function", "method", "dtype"), FIRST_IN_BOTH)
def test_status_has_the_shape_of_the_batch(
    function: str, method: str, dtype: str, shape: tuple[int, ...]
) -> None:
    robot = flying()
    call, how = named(robot, function), options(robot, function, method)
    arguments = states(robot, function, dtype, *shape)
    result, status = call(*arguments, **how, status=True)
    assert status.shape == shape and status.dtype == np.uint16
    assert not status.any()
    assert same(result, call(*arguments, **how))


@pytest.mark.parametrize("dtype", DTYPES)
def test_status_with_out_and_leading_axes_that_broadcast(dtype: str) -> None:
    robot = puma()
    q = robot.random_q(seed=1, size=(4, 1)).astype(dtype)
    qd = np.random.default_rng(2).normal(size=(3, 6)).astype(dtype)
    q[2, 0, 5] = np.nan
    out = np.empty((4, 3, 6), dtype)
    result, status = robot.bias(q, qd, out=out, status=True)
    assert result is out
    assert status.shape == (4, 3)
    assert (status == np.array([[0], [0], [NOT_FINITE], [0]])).all()
    assert np.array_equal(out, robot.bias(q, qd), equal_nan=True)


def test_status_is_the_same_for_any_number_of_threads() -> None:
    robot = puma()
    q = robot.random_q(seed=3, size=20_001)
    q[::97, 2] = np.inf
    one, told = robot.mass_matrix(q, status=True, threads=1)
    many, also = robot.mass_matrix(q, status=True, threads=4)
    assert np.array_equal(one, many, equal_nan=True) and same(told, also)
    assert np.flatnonzero(told).tolist() == list(range(0, 20_001, 97))


# -- quaternions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "method", "dtype"), FIRST_IN_BOTH)
@pytest.mark.filterwarnings("ignore::linkwise.errors.StateWarning")
def test_a_quaternion_of_another_length_is_used_as_if_of_unit_length(
    function: str, method: str, dtype: str, assert_close: Any
) -> None:
    robot = flying()
    call, how = named(robot, function), options(robot, function, method)
    good = states(robot, function, dtype, STATES)
    clean, calm = call(*good, **how, status=True)
    assert not calm.any()
    bad = [values.copy() for values in good]
    bad[0][3, :4] *= 2.0
    bad[0][20, :4] *= 0.5
    result, status = call(*bad, **how, status=True)
    assert np.flatnonzero(status).tolist() == [3, 20]
    assert (status[[3, 20]] == NOT_UNIT).all()
    others = np.setdiff1d(np.arange(STATES), [3, 20])
    assert same(result[others], clean[others])
    cond = 1e4 if function in ("forward_dynamics", "mass_matrix_inverse") else 100.0
    assert_close(result, clean, dtype=dtype, cond=cond)
    assert same(call(*bad, **how), result)


def test_how_far_from_unit_length_a_quaternion_may_be() -> None:
    robot = puma("free")
    q = np.tile(robot.neutral(), (4, 1))
    q[:, 0] = 1.0 + UNIT_TOLERANCE * np.array([0.0, 0.9, 1.1, -1.1])
    _, status = robot.mass_matrix(q, status=True)
    assert status.tolist() == [OK, OK, NOT_UNIT, NOT_UNIT]


def test_a_quaternion_of_zeros_is_told() -> None:
    robot = puma("free")
    q = np.tile(robot.neutral(), (2, 1))
    q[1, :4] = 0.0
    _, status = robot.forward_kinematics(q, "link6", status=True)
    assert status[0] == OK and status[1] & NOT_UNIT


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("argument", [0, 1])
def test_quaternions_of_every_configuration_are_looked_at(loops: bool, argument: int) -> None:
    robot = flying().with_codegen("rolled" if loops else "unrolled")
    good = [robot.random_q(seed=k) for k in range(2)]
    assert not robot.difference(*good, status=True)[1]
    bad = [q.copy() for q in good]
    bad[argument][:4] *= 2.0
    rates, status = robot.difference(*bad, status=True)
    assert status == NOT_UNIT and np.allclose(rates, robot.difference(*good))
    if not loops:
        made = robot.derivative("difference", "q0")
        assert not made(*good, status=True)[1] and made(*bad, status=True)[1] == NOT_UNIT


def test_bits_add_up_per_state() -> None:
    robot = puma("free")
    q = np.tile(robot.neutral(), (3, 1))
    q[1, 0] = np.nan  # its length is not to be judged
    q[2, :4] *= 3.0
    assert robot.mass_matrix(q, status=True)[1].tolist() == [OK, NOT_FINITE, NOT_UNIT]


# -- singular -------------------------------------------------------------------------------------

INVERTING = [("forward_dynamics", "crba"), ("forward_dynamics", "aba"),
             ("mass_matrix_inverse", "crba"), ("mass_matrix_inverse", "aba")]  # fmt: skip


def impossible(folder: Path, moment: float, shift: str) -> lw.Robot:
    """Two turning links, the first with an inertia that cannot exist, taken as written."""
    inertia = 'ixx="{0}" iyy="{0}" izz="{0}" ixy="0" ixz="0" iyz="0"'
    body = (
        '<link name="{}"><inertial><origin xyz="{}"/><mass value="1"/><inertia {}/>'
        "</inertial></link>"
    )
    joint = (
        '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/>'
        '<origin xyz="{3}"/><axis xyz="0 0 1"/></joint>'
    )
    path = folder / "impossible.urdf"
    path.write_text(
        '<robot name="r"><link name="base"/>'
        + body.format("a", "0 0 0", inertia.format(moment))
        + body.format("b", shift, inertia.format(0.1))
        + joint.format("j", "base", "a", "0 0 0")
        + joint.format("k", "a", "b", shift)
        + "</robot>"
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        robot = lw.load(path, strict=False)
    assert any("taken as written" in str(warning.message) for warning in told)
    return robot


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shift", ["0.3 0 0", "0 0 0"])  # a mass matrix that varies, and one not
@pytest.mark.parametrize(("function", "method"), INVERTING)
def test_an_indefinite_mass_matrix_is_told(
    function: str, method: str, shift: str, dtype: str, tmp_path: Path
) -> None:
    robot = impossible(tmp_path, -3.0, shift)
    arguments = states(robot, function, dtype, 5)
    assert np.linalg.eigvalsh(robot.mass_matrix(arguments[0]))[:, 0].max() < 0.0
    arguments[0][2] = np.nan
    call = named(robot, function)
    result, status = call(*arguments, method=method, status=True)
    assert status.tolist() == [SINGULAR, SINGULAR, NOT_FINITE, SINGULAR, SINGULAR]
    assert np.isnan(result).all()
    assert np.isnan(call(*arguments, method=method)).all()


@pytest.mark.parametrize(("function", "method"), INVERTING)
def test_a_possible_robot_is_never_told_to_be_singular(
    function: str, method: str, tmp_path: Path
) -> None:
    robot = puma()
    arguments = states(robot, function, "float64", 2000)
    assert not named(robot, function)(*arguments, method=method, status=True)[1].any()


METHODS = [m for f, m in INVERTING if f == "forward_dynamics" and "schur" not in m]


@pytest.mark.parametrize("moment", [0.0, -2.0])
@pytest.mark.parametrize("method", METHODS)
def test_one_joint_whose_inertia_is_not_positive(method: str, moment: float) -> None:
    row = {"a": 0.0, "mass": 1.0, "inertia": (0.0, 0.0, moment)}  # a constant mass matrix
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        robot = lw.from_dh([row], strict=False)
    assert any("principal inertias" in str(warning.message) for warning in told) == (moment < 0)
    zero = np.zeros((3, 1))
    result, status = robot.forward_dynamics(zero, zero, zero + 1.0, method=method, status=True)
    assert np.isnan(result).all()
    assert status.tolist() == [SINGULAR] * 3
    assert np.isnan(robot.forward_dynamics(zero, zero, zero + 1.0, method=method)).all()
    assert np.isnan(robot.forward_dynamics([0.0], [0.0], [1.0], method=method)).all()
    assert robot.mass_matrix([0.0]) == moment


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_singular_pose_has_no_operational_inertia(dtype: str) -> None:
    robot = puma()
    q = np.array([np.zeros(6), [0.3, 0.4, 0.5, 0.6, 0.7, 0.8]], dtype)
    result, status = robot.operational_inertia(q, "link6", status=True)
    assert status.tolist() == [SINGULAR, OK]
    assert same(result[1], robot.operational_inertia(q[1], "link6"))


def test_what_inverts_nothing_is_not_singular(tmp_path: Path) -> None:
    robot = impossible(tmp_path, -3.0, "0.3 0 0")
    q = robot.random_q(seed=1, size=4)
    assert not robot.mass_matrix(q, status=True)[1].any()
    assert not robot.inverse_dynamics(q, q, q, status=True)[1].any()


# -- overflow -------------------------------------------------------------------------------------


def test_a_result_too_large_for_its_type_is_told() -> None:
    robot = puma()
    q, qd = np.zeros((3, 6)), np.ones((3, 6))
    qd[1] = 1e200
    _, status = robot.bias(q, qd, status=True)
    assert status.tolist() == [OK, OVERFLOW, OK]
    _, status = robot.bias(q.astype("f4"), np.full((3, 6), 1e25, "f4"), status=True)
    assert (status == OVERFLOW).all()


@pytest.mark.parametrize(("dtype", "huge"), [("float64", 1e308), ("float32", 2e38)])
def test_finite_arguments_whose_sum_overflows_are_healthy(dtype: str, huge: float) -> None:
    """Angles have no largest value: each is looked at on its own."""
    robot = puma()
    q = np.full((STATES, robot.nq), huge, dtype)
    torque, status = robot.gravity_torque(q, status=True)
    assert np.isfinite(torque).all() and not status.any()
    alone, one = robot.gravity_torque(q[0], status=True)
    assert np.array_equal(alone, torque[0]) and one == OK
    q[3, 1] = np.inf
    torque, status = robot.gravity_torque(q, status=True)
    assert np.flatnonzero(status == NOT_FINITE).tolist() == [3]
    assert np.isnan(torque[3]).all() and np.isfinite(np.delete(torque, 3, 0)).all()
    assert np.array_equal(robot.gravity_torque(q), torque, equal_nan=True)


def test_the_bits_have_names() -> None:
    names = {bit.name: bit.value for bit in lw.Status}
    assert names == {
        "NOT_FINITE": 1,
        "NOT_UNIT": 2,
        "SINGULAR": 4,
        "NOT_CONVERGED": 8,
        "OVERFLOW": 16,
        "LIMIT": 32,
        "NOT_RIGID": 64,
        "REDUNDANT": 128,
        "LOOP_OPEN": 256,
        "PULLING": 512,
    }
    assert f"{lw.Status(4)!s} {lw.Status(0)!s}" == "SINGULAR OK"
    text = (Path(__file__).parents[2] / "docs" / "status.md").read_text(encoding="utf-8")
    for name, value in names.items():
        assert f"| `{name}` | {value} |" in text
