"""The array edge: every layout, dtype and batch gives the same bits; every mistake is explained."""

from __future__ import annotations

import gc
import inspect
import re
import sys
import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import first_method
from linkwise.backends.base import BATCH
from linkwise.backends.llvm.backend import Llvm
from linkwise.backends.llvm.layout import layout
from linkwise.engine import arrays

ROBOTS = ("puma560", "seven joints")
LANES = Llvm().lanes("float64", BATCH).width
SIZES = sorted({1, 2, 3, LANES - 1, LANES, LANES + 1, 2 * LANES + 1, 1000})
LARGE = 100_003  # prime: no thread count divides it
SOME_FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "bias", "mass_matrix", "kinetic_energy")

needs_fast_path = pytest.mark.skipif(
    layout() is None, reason="this interpreter has no compiled single-state calls"
)


@cache
def robot_named(name: str) -> lw.Robot:
    return seven_joints() if name == "seven joints" else lw.load(name)


def seven_joints() -> lw.Robot:
    """Rows of an odd length, and few operations: every other joint slides, along axes."""
    builder, parent = lw.Builder("seven"), "base"
    for k in range(7):
        name, axis = f"link{k}", np.eye(3)[k * k % 3]
        builder.link(name, mass=1.0, com=(0.1, 0.0, 0.2), inertia=(0.1, 0.2, 0.15))
        kind = "prismatic" if k % 2 else "revolute"
        builder.joint(f"joint{k}", kind, parent=parent, child=name, axis=axis, xyz=(0, 0.2, 0.3))
        parent = name
    return builder.build()


@pytest.fixture(params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> lw.Robot:
    return robot_named(request.param)


@pytest.fixture
def puma() -> lw.Robot:
    return robot_named("puma560")


def states(robot: lw.Robot, *shape: int, seed: int = 1) -> tuple[np.ndarray, ...]:
    """Configurations, rates and torques with the leading shape asked for."""
    rng = np.random.default_rng(seed)
    q, qd, tau = rng.uniform(-3, 3, (3, *shape, robot.nv))
    return q, qd, tau


def same_bits(a: Any, b: Any) -> bool:
    """Equal dtype, shape and bytes: NaN equals NaN, 0 does not equal -0."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def arguments_of(robot: lw.Robot, function: str, given: tuple[np.ndarray, ...]) -> tuple:
    """As many of the given arrays as the function takes, and a frame where it wants one."""
    wanted = parameters(function)
    count = sum(name in ("q", "qd", "qdd", "tau") for name in wanted)
    frame = (robot.frame_names[-1],) if "frame" in wanted else ()
    return (*given[:count], *frame)


@cache
def parameters(function: str) -> tuple[str, ...]:
    return tuple(inspect.signature(getattr(lw.Robot, function)).parameters)


FUNCTIONS = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse", "bias",
    "gravity_torque", "kinetic_energy", "potential_energy", "forward_kinematics", "jacobian",
    "jacobian_dot_qd", "operational_inertia",
)  # fmt: skip
FRAME_FUNCTIONS = FUNCTIONS[-4:]


def output_shape(robot: lw.Robot, function: str) -> tuple[int, ...]:
    n = robot.nv
    return {
        "mass_matrix": (n, n), "mass_matrix_inverse": (n, n), "kinetic_energy": (),
        "potential_energy": (), "forward_kinematics": (4, 4), "jacobian": (6, n),
        "jacobian_dot_qd": (6,), "operational_inertia": (6, 6),
    }.get(function, (n,))  # fmt: skip


# -- batches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", FUNCTIONS)
def test_any_batch_size_gives_the_rows_of_single_states(robot: lw.Robot, function: str) -> None:
    call = getattr(robot, function)
    given = states(robot, max(SIZES))
    singles = [
        call(*arguments_of(robot, function, tuple(a[k] for a in given))) for k in range(max(SIZES))
    ]
    for size in SIZES:
        result = call(*arguments_of(robot, function, tuple(a[:size] for a in given)))
        assert result.shape == (size, *output_shape(robot, function))
        assert same_bits(result, np.array(singles[:size])), f"{size} states"


def test_a_large_batch_equals_its_parts(robot: lw.Robot) -> None:
    q, qd, tau = states(robot, LARGE)
    whole = robot.forward_dynamics(q, qd, tau)
    cut = 12_345
    parts = [robot.forward_dynamics(q[s], qd[s], tau[s]) for s in (np.s_[:cut], np.s_[cut:])]
    assert same_bits(whole, np.concatenate(parts))
    for k in (0, 1, LANES, cut, LARGE - 2, LARGE - 1):
        assert same_bits(whole[k], robot.forward_dynamics(q[k], qd[k], tau[k]))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("lead", [(0,), (0, 3), (3, 0), (1, 0, 2)])
def test_no_states_give_an_empty_result(
    robot: lw.Robot, function: str, lead: tuple[int, ...]
) -> None:
    arguments = arguments_of(robot, function, states(robot, *lead))
    result = getattr(robot, function)(*arguments)
    assert result.shape == (*lead, *output_shape(robot, function))
    assert result.dtype == np.float64
    out = np.empty_like(result)
    assert getattr(robot, function)(*arguments, out=out) is out


@pytest.mark.parametrize("lead", [(), (1,), (2, 3), (2, 1, 3), (1, 1, 1, 1)])
def test_leading_axes_are_kept(robot: lw.Robot, lead: tuple[int, ...]) -> None:
    q, qd, tau = states(robot, *lead)
    n = robot.nv
    flat = robot.forward_dynamics(*(a.reshape(-1, n) for a in (q, qd, tau)))
    assert same_bits(robot.forward_dynamics(q, qd, tau), flat.reshape(*lead, n))
    assert robot.mass_matrix(q).shape == (*lead, n, n)
    assert np.shape(robot.potential_energy(q)) == lead


def test_one_state_broadcasts_against_many(robot: lw.Robot) -> None:
    q, qd, tau = states(robot, 9)
    result = robot.forward_dynamics(q[0], qd[0], tau)
    for k in range(9):
        assert same_bits(result[k], robot.forward_dynamics(q[0], qd[0], tau[k]))
    assert same_bits(robot.forward_dynamics(q[:1], qd, tau[0]), robot.forward_dynamics(
        np.tile(q[0], (9, 1)), qd, np.tile(tau[0], (9, 1))
    ))  # fmt: skip


def test_leading_axes_broadcast_as_in_numpy(robot: lw.Robot) -> None:
    n = robot.nv
    q, _, _ = states(robot, 5, 1)
    _, qd, tau = states(robot, 4)
    result = robot.forward_dynamics(q, qd, tau)
    assert result.shape == (5, 4, n)
    wide = [np.broadcast_to(a, (5, 4, n)).copy() for a in (q, qd, tau)]
    assert same_bits(result, robot.forward_dynamics(*wide))
    assert robot.forward_dynamics(q, qd[:0], tau[:0]).shape == (5, 0, n)


def test_broadcast_without_copies_is_read_correctly(puma: lw.Robot) -> None:
    q, qd, tau = states(puma)
    wide = [np.broadcast_to(a, (2 * LANES + 1, 6)) for a in (q, qd, tau)]  # zero strides, read-only
    assert same_bits(
        puma.forward_dynamics(*wide),
        np.tile(puma.forward_dynamics(q, qd, tau), (2 * LANES + 1, 1)),
    )


# -- layouts and types --------------------------------------------------------------------------


def _unaligned(a: np.ndarray) -> np.ndarray:
    raw = np.zeros(a.nbytes + 1, np.uint8)
    moved = raw[1:].view(a.dtype).reshape(a.shape)
    moved[...] = a
    assert not moved.flags.aligned
    return moved


def _column(a: np.ndarray) -> np.ndarray:
    """The array as one field of a structured array: rows far apart, and not a multiple of 8."""
    kind = np.dtype([("junk", "u1"), ("x", a.dtype, a.shape[-1:]), ("more", "f4")])
    table = np.zeros(a.shape[:-1], kind)
    table["x"] = a
    return table["x"]


class Tagged(np.ndarray):
    """An ndarray subclass with nothing special."""


def _read_only(a: np.ndarray) -> np.ndarray:
    copy = a.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "fortran": np.asfortranarray,
    "every second row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "every second column": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "reversed rows": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "reversed columns": lambda a: np.ascontiguousarray(a[..., ::-1])[..., ::-1],
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "field of a structure": _column,
    "read-only": _read_only,
    "unaligned": _unaligned,
    "big-endian": lambda a: a.astype(">f8"),
    "little-endian": lambda a: a.astype("<f8"),
    "nested lists": lambda a: a.tolist(),
    "tuples": lambda a: tuple(map(tuple, a.tolist())),
    "list of arrays": list,
    "subclass": lambda a: a.view(Tagged),
    "masked array": np.ma.asarray,
    "memoryview": lambda a: memoryview(a),
    "matrix": lambda a: a.view(np.matrix) if a.ndim == 2 else a,
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_a_batch(robot: lw.Robot, layout: str) -> None:
    given = states(robot, 2 * LANES + 3)
    moved = [LAYOUTS[layout](a) for a in given]
    for function in SOME_FUNCTIONS:
        expected = getattr(robot, function)(*arguments_of(robot, function, given))
        result = getattr(robot, function)(*arguments_of(robot, function, tuple(moved)))
        assert type(result) is np.ndarray
        assert same_bits(result, expected), function


SINGLE_LAYOUTS = {
    "strided": lambda a: np.repeat(a, 3)[::3],
    "reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "column of a matrix": lambda a: np.tile(a[:, None], (1, 4))[:, 2],
    "read-only": _read_only,
    "unaligned": _unaligned,
    "big-endian": lambda a: a.astype(">f8"),
    "another float64 dtype": lambda a: a.astype(np.dtype("f8", metadata={"unit": "rad"})),
    "list": lambda a: a.tolist(),
    "tuple": tuple,
    "subclass": lambda a: a.view(Tagged),
    "memoryview": lambda a: memoryview(a),
}


@pytest.mark.parametrize("layout", SINGLE_LAYOUTS)
@pytest.mark.parametrize("which", [0, 1, 2, None])
def test_layouts_of_one_state(puma: lw.Robot, layout: str, which: int | None) -> None:
    given = states(puma)
    expected = puma.forward_dynamics(*given)  # the compiled call is there from now on
    move = SINGLE_LAYOUTS[layout]
    moved = [move(a) if which in (k, None) else a for k, a in enumerate(given)]
    assert same_bits(puma.forward_dynamics(*moved), expected)


def test_float32_is_kept(robot: lw.Robot) -> None:
    given = states(robot, LANES + 3)
    narrow = tuple(a.astype(np.float32) for a in given)
    exact = tuple(a.astype(np.float64) for a in narrow)
    for function in FUNCTIONS:
        if function == "operational_inertia":
            continue  # ill-conditioned poses: float32 is only close where the problem is benign
        result = getattr(robot, function)(*arguments_of(robot, function, narrow))
        expected = getattr(robot, function)(*arguments_of(robot, function, exact))
        assert result.dtype == np.float32, function
        # the inputs are the same numbers, so only float32 arithmetic tells them apart
        scale = np.abs(expected).max()
        np.testing.assert_allclose(result, expected, rtol=0, atol=2e-4 * scale, err_msg=function)


def test_float32_single_state_is_the_row_of_a_batch(puma: lw.Robot) -> None:
    narrow = [a.astype(np.float32) for a in states(puma, 5)]
    batch = puma.forward_dynamics(*narrow)
    puma.forward_dynamics(*states(puma))
    one = puma.forward_dynamics(*(a[3] for a in narrow))
    assert one.dtype == np.float32
    assert same_bits(one, batch[3])


def test_mixed_precision_is_float64(puma: lw.Robot) -> None:
    q, qd, tau = states(puma, 7)
    mixed = puma.forward_dynamics(q.astype(np.float32), qd, tau)
    assert same_bits(mixed, puma.forward_dynamics(q.astype(np.float32).astype(float), qd, tau))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "u4", "i8", "u8", ">i4"])
def test_integers_are_float64(puma: lw.Robot, dtype: str) -> None:
    whole = np.arange(18).reshape(3, 6) % 4
    expected = puma.mass_matrix(whole.astype(float))
    assert same_bits(puma.mass_matrix(whole.astype(dtype)), expected)
    assert same_bits(puma.mass_matrix(whole.tolist()), expected)
    assert same_bits(puma.mass_matrix(whole[0].astype(dtype)), expected[0])


def test_scalars_come_back_for_scalar_functions(puma: lw.Robot) -> None:
    q, qd, _ = states(puma)
    for _ in range(2):  # general path, then the compiled call
        energy = puma.kinetic_energy(q, qd)
        assert isinstance(energy, np.float64) and energy > 0
    assert isinstance(puma.kinetic_energy(q.astype("f4"), qd.astype("f4")), np.float32)
    assert puma.kinetic_energy(q[None], qd).shape == (1,)


def test_inputs_are_never_written(robot: lw.Robot) -> None:
    given = states(robot, 3 * LANES + 1)
    before = [a.copy() for a in given]
    for function in FUNCTIONS:
        getattr(robot, function)(*arguments_of(robot, function, given))
        getattr(robot, function)(*arguments_of(robot, function, tuple(a[0] for a in given)))
    assert all(same_bits(a, b) for a, b in zip(given, before, strict=True))


# -- out ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, LANES - 1, 2 * LANES + 1])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_out_is_filled_and_returned(robot: lw.Robot, function: str, count: int) -> None:
    arguments = arguments_of(robot, function, states(robot, count))
    call = getattr(robot, function)
    expected = call(*arguments)
    shape = expected.shape
    room = np.full((2 * count, *(3 * n for n in shape[1:])), 7.0)
    strided = room[1::2][(slice(None), *(slice(1, None, 3) for _ in shape[1:]))]
    targets = {
        "contiguous": np.empty(shape),
        "fortran": np.empty(shape, order="F"),
        "strided": strided,
        "reversed": np.empty(shape)[::-1],
        "unaligned": _unaligned(np.zeros(shape)),
        "subclass": np.empty(shape).view(Tagged),
    }
    for name, out in targets.items():
        assert call(*arguments, out=out) is out, name
        assert same_bits(out, expected), name
    untouched = np.ones(room.shape, bool)
    untouched[1::2][(slice(None), *(slice(1, None, 3) for _ in shape[1:]))] = False
    assert (room[untouched] == 7.0).all(), "wrote between the elements of a strided out"


def test_out_of_a_single_state(puma: lw.Robot) -> None:
    q, qd, tau = states(puma)
    expected = puma.forward_dynamics(q, qd, tau)
    room = np.zeros((6, 6))
    for out in (np.empty(6), room[2], room[:, 1], np.empty(6)[::-1], _unaligned(np.zeros(6))):
        count = sys.getrefcount(out)
        assert puma.forward_dynamics(q, qd, tau, out=out) is out
        assert sys.getrefcount(out) == count
        assert same_bits(out, expected)
    assert puma.forward_dynamics(q, qd, tau, out=None) is not expected
    energy = np.empty(())
    for _ in range(3):
        assert puma.kinetic_energy(q, qd, out=energy) is energy
        assert energy == puma.kinetic_energy(q, qd)


def test_out_of_a_broadcast(puma: lw.Robot) -> None:
    q, _, _ = states(puma, 5, 1)
    _, qd, tau = states(puma, 4)
    out = np.empty((5, 4, 6))
    assert puma.forward_dynamics(q, qd, tau, out=out) is out
    assert same_bits(out, puma.forward_dynamics(q, qd, tau))


# what is passed as out, given the right shape; the error; its message, with that shape to come
BAD_OUT: dict[str, tuple[Callable[[tuple[int, ...]], Any], type[Exception], str]] = {
    "too short": (lambda s: np.empty(s)[..., 1:], ValueError, "out has shape .*5.*; expected {}"),
    "an axis more": (lambda s: np.empty((1, *s)), ValueError, "out has shape .1, .*; expected {}"),
    "an axis less": (lambda s: np.empty(()), ValueError, "out has shape ..; expected {}"),
    "float32": (lambda s: np.empty(s, "f4"), TypeError, "out has dtype float32; expected float64"),
    "integers": (lambda s: np.empty(s, "i8"), TypeError, "out has dtype int64; expected float64"),
    "big-endian": (lambda s: np.empty(s, ">f8"), TypeError, "out has dtype >f8; expected float64"),
    "complex": (lambda s: np.empty(s, complex), TypeError, "out has dtype complex128; expected"),
    "read-only": (
        lambda s: _read_only(np.zeros(s)), ValueError, "out is read-only; expected a writeable",
    ),
    "list": (lambda s: np.zeros(s).tolist(), TypeError, "out is a list; expected .* shape {}"),
    "True": (lambda s: True, TypeError, "out is a bool; expected a NumPy array of shape {}"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_OUT)
@pytest.mark.parametrize("shape", [(6,), (3, 6), (2 * LANES, 1, 6)])
def test_an_unusable_out_is_refused(puma: lw.Robot, shape: tuple[int, ...], case: str) -> None:
    make, kind, message = BAD_OUT[case]
    puma.forward_dynamics(*states(puma))  # the compiled call is there from now on
    with pytest.raises(kind, match=message.format(re.escape(str(shape)))):
        puma.forward_dynamics(*states(puma, *shape[:-1]), out=make(shape))


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("count", [None, 1, 3, LANES, 3 * LANES + 2])
def test_out_may_be_an_input(puma: lw.Robot, which: int, count: int | None) -> None:
    lead = () if count is None else (count,)
    given = list(states(puma, *lead))
    expected = puma.forward_dynamics(*given)
    out = given[which]
    assert puma.forward_dynamics(*given, out=out) is out
    assert same_bits(out, expected)


@pytest.mark.parametrize("shift", [-7, -6, -5, -1, 1, 5, 6, 7, 40])
@pytest.mark.parametrize("count", [None, 1, 2 * LANES + 1])
def test_out_may_overlap_an_input(puma: lw.Robot, shift: int, count: int | None) -> None:
    lead = () if count is None else (count,)
    q, qd, tau = states(puma, *lead)
    puma.forward_dynamics(*states(puma))
    size = tau.size
    pool = np.zeros(size + 80)
    inside = pool[40 : 40 + size].reshape(tau.shape)
    out = pool[40 + shift : 40 + shift + size].reshape(tau.shape)
    inside[...] = tau
    expected = puma.forward_dynamics(q, qd, tau)
    assert puma.forward_dynamics(q, qd, inside, out=out) is out
    assert same_bits(out, expected)


def test_matrix_out_may_overlap_the_configuration(puma: lw.Robot) -> None:
    q, _, _ = states(puma)
    expected = puma.mass_matrix(q)
    pool = np.zeros(36)
    for start in (0, 5, 29, 30):
        pool[start : start + 6] = q
        out = pool.reshape(6, 6)
        assert puma.mass_matrix(pool[start : start + 6], out=out) is out
        assert same_bits(out, expected)


# -- mistakes -----------------------------------------------------------------------------------

BAD_INPUT: dict[str, tuple[Any, type[Exception], str]] = {
    "too few numbers": (np.zeros(5), ValueError, r"has shape \(5,\); expected \(\.\.\., 6\)"),
    "too many": (np.zeros((4, 7)), ValueError, r"has shape \(4, 7\); expected \(\.\.\., 6\)"),
    "transposed": (np.zeros((6, 4)), ValueError, r"has shape \(6, 4\); expected \(\.\.\., 6\)"),
    "a number": (1.5, ValueError, r"has shape \(\); expected \(\.\.\., 6\)"),
    "0-d array": (np.array(1.5), ValueError, r"has shape \(\); expected \(\.\.\., 6\)"),
    "empty list": ([], ValueError, r"has shape \(0,\); expected \(\.\.\., 6\)"),
    "empty array": (np.zeros((3, 0)), ValueError, r"has shape \(3, 0\); expected \(\.\.\., 6\)"),
    "complex": (np.zeros(6, complex), TypeError, r"has dtype complex128; expected float32"),
    "bool": (np.zeros(6, bool), TypeError, r"has dtype bool; expected float32, float64 or int"),
    "list of bools": ([True] * 6, TypeError, r"has dtype bool; expected"),
    "object": (np.zeros(6, object), TypeError, r"has dtype object; expected"),
    "None": (None, TypeError, r"has dtype object; expected"),
    "list of None": ([None] * 6, TypeError, r"has dtype object; expected"),
    "huge integers": ([10**40] * 6, TypeError, r"has dtype object; expected"),
    "dict": ({"a": 1}, TypeError, r"has dtype object; expected"),
    "string": ("zero", TypeError, r"has dtype <U4; expected"),
    "strings": (["0"] * 6, TypeError, r"has dtype <U1; expected"),
    "bytes": (b"zero", TypeError, r"has dtype \|S4; expected"),
    "new strings": (np.array(["0"] * 6, "T"), TypeError, r"has dtype .*; expected float32"),
    "float16": (np.zeros(6, np.float16), TypeError, r"has dtype float16; expected"),
    "dates": (np.zeros(6, "m8[s]"), TypeError, r"has dtype timedelta64\[s\]; expected"),
    "structured": (np.zeros(6, [("x", "f8")]), TypeError, r"has dtype .*; expected"),
    "ragged": ([[1, 2, 3], [4]], TypeError, r"cannot be read as an array \(.*inhomogeneous.*\)"),
    "ragged arrays": ([np.zeros(6), np.zeros(5)], TypeError, r"cannot be read as an array"),
}  # fmt: skip
if np.dtype(np.longdouble) != np.dtype(float):
    BAD_INPUT["longdouble"] = (np.zeros(6, np.longdouble), TypeError, r"has dtype .*; expected")


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("case", BAD_INPUT)
def test_a_bad_argument_is_named(case: str, place: int) -> None:
    value, kind, message = BAD_INPUT[case]
    robot = robot_named("puma560")
    given: list[Any] = list(states(robot))
    given[place] = value
    name = ("q", "qd", "tau")[place]
    expected = rf"^forward_dynamics: {name} {message}"
    with pytest.raises(kind, match=expected) as general:
        lw.Robot.forward_dynamics(robot, *given)
    robot.forward_dynamics(*states(robot))
    with pytest.raises(kind, match=expected) as through_compiled:
        robot.forward_dynamics(*given)
    assert str(general.value) == str(through_compiled.value)


@pytest.mark.parametrize("case", BAD_INPUT)
@pytest.mark.parametrize("function", ["forward_kinematics", "jacobian", "operational_inertia"])
def test_a_bad_configuration_of_a_frame_function_is_named(
    puma: lw.Robot, function: str, case: str
) -> None:
    value, kind, message = BAD_INPUT[case]
    getattr(puma, function)(states(puma)[0], "link6")
    with pytest.raises(kind, match=rf"^{function}: q {message}"):
        getattr(puma, function)(value, "link6")


def test_more_leading_axes_than_numpy_broadcasts_are_refused(puma: lw.Robot) -> None:
    many = np.ones((1,) * arrays.MOST_AXES + (6,))
    assert puma.bias(many, np.ones(6)).shape == many.shape
    message = r"bias: qd has 33 leading axes; expected at most 32, which NumPy can broadcast"
    with pytest.raises(ValueError, match=message):
        puma.bias(np.ones(6), many[None])


@pytest.mark.parametrize("mask", [True, [True] + [False] * 5])
def test_a_masked_array_is_refused(puma: lw.Robot, mask: Any) -> None:
    """Its mask would be ignored, and the numbers behind it used."""
    masked = np.ma.array(np.ones(6), mask=mask)
    for call in (lambda: puma.bias(np.ones(6), masked), lambda: puma.bias(np.ones((3, 6)), masked)):
        with pytest.raises(TypeError, match=r"bias: qd is a masked array.*qd\.filled\(number\)"):
            call()
    push = {"link6": masked}
    with pytest.raises(TypeError, match=r"f_ext\['link6'\] is a masked array"):
        puma.gravity_torque(np.ones(6), f_ext=push)
    with pytest.raises(TypeError, match="integrate: dt is a masked array"):
        puma.integrate(np.ones(6), np.ones(6), masked)
    with pytest.raises(TypeError, match="operational_inertia: damping is a masked array"):
        puma.operational_inertia(np.ones(6), "link6", damping=masked)


def test_leading_axes_that_do_not_broadcast(puma: lw.Robot) -> None:
    q, qd, tau = states(puma, 3)
    message = (
        r"forward_dynamics: leading axes do not broadcast: q \(3, 6\), qd \(2, 6\), tau \(3, 6\); "
        r"expected shapes that NumPy could add, apart from the last axis"
    )
    with pytest.raises(ValueError, match=message):
        puma.forward_dynamics(q, qd[:2], tau)
    with pytest.raises(ValueError, match="do not broadcast"):
        puma.forward_dynamics(np.zeros((4, 1, 6)), np.zeros((2, 6)), np.zeros((3, 6)))


@pytest.mark.parametrize("threads", [0, -1, True, False, 1.0, "2", [1]])
def test_a_bad_thread_count_is_refused(puma: lw.Robot, threads: Any) -> None:
    message = re.escape(f"threads is {threads!r}; expected a positive integer or None")
    for given in (states(puma), states(puma, 3)):
        with pytest.raises(ValueError, match=message):
            puma.forward_dynamics(*given, threads=threads)


def test_bad_wrenches_are_named(puma: lw.Robot) -> None:
    given = states(puma)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"f_ext is a list; expected a mapping"):
            puma.forward_dynamics(*given, f_ext=[np.zeros(6)])
        with pytest.raises(
            ValueError, match=r"f_ext\['link6'\] has shape \(5,\); expected \(\.\.\., 6\)"
        ):
            puma.forward_dynamics(*given, f_ext={"link6": np.zeros(5)})
        with pytest.raises(ValueError, match=r"frame 'linc6': .*did you mean 'link6'"):
            puma.forward_dynamics(*given, f_ext={"linc6": np.zeros(6)})
        puma.forward_dynamics(*given)


def test_unknown_options_are_refused(puma: lw.Robot) -> None:
    q, qd, tau = states(puma)
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"method 'magic': forward_dynamics expects one of 'auto'"
        ):
            puma.forward_dynamics(q, qd, tau, method="magic")
        with pytest.raises(ValueError, match=r"axes 'tool': expected 'base' or 'body'"):
            puma.jacobian(q, "link6", axes="tool")
        with pytest.raises(ValueError, match=r"axes 'moving': expected 'base' or 'body'$"):
            puma.jacobian(q, "link6", axes="moving")
        expected = r"axes 'tool': expected 'base' or 'body' or 'moving'"
        with pytest.raises(ValueError, match=expected):
            puma.jacobian_dot_qd(q, qd, "link6", axes="tool")
        puma.forward_dynamics(q, qd, tau)
        puma.jacobian(q, "link6")


# -- threads and positions ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "function", ["forward_dynamics", "mass_matrix", "kinetic_energy", "jacobian"]
)
def test_thread_count_does_not_change_a_bit(puma: lw.Robot, function: str, dtype: str) -> None:
    for count in (1, LANES + 1, 5_003, 20_011):
        given = tuple(a.astype(dtype) for a in states(puma, count))
        arguments = arguments_of(puma, function, given)
        alone = getattr(puma, function)(*arguments, threads=1)
        for threads in (2, 3, 7, 64, None):
            assert same_bits(getattr(puma, function)(*arguments, threads=threads), alone), threads


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_position_in_the_batch_does_not_change_a_bit(
    robot: lw.Robot, function: str, dtype: str
) -> None:
    given = tuple(a.astype(dtype) for a in states(robot, 4 * LANES + 3))
    given[0][5] *= 1e9  # one angle beyond the usual reduction: neighbours must not notice
    call = getattr(robot, function)
    expected = call(*arguments_of(robot, function, given))
    for by in (1, 2, LANES - 1, LANES, 2 * LANES + 1):
        rolled = tuple(np.roll(a, by, axis=0) for a in given)
        result = call(*arguments_of(robot, function, rolled))
        assert same_bits(np.roll(result, -by, axis=0), expected), by


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e300, np.finfo(float).max])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_bad_state_affects_only_its_own_row(
    robot: lw.Robot, function: str, poison: float
) -> None:
    count = 3 * LANES + 2
    given = states(robot, count)
    call = getattr(robot, function)
    clean = call(*arguments_of(robot, function, given))
    for row in (0, LANES - 1, LANES, count - 1):
        for which in range(3):
            bad = tuple(a.copy() for a in given)
            bad[which][row, 1] = poison
            arguments = arguments_of(robot, function, bad)
            result = call(*arguments)
            others = np.arange(count) != row
            assert same_bits(result[others], clean[others]), (row, which)
            used = any(a is bad[which] for a in arguments)
            if used and not np.isfinite(poison):
                assert not np.isfinite(result[row]).all(), "a non-finite input must be seen"
            if not used:
                assert same_bits(result[row], clean[row])


def test_bad_states_everywhere_among_4096(puma: lw.Robot) -> None:
    given = states(puma, 4096)
    clean = puma.forward_dynamics(*given)
    rng = np.random.default_rng(7)
    rows = rng.choice(4096, 300, replace=False)
    for row in rows:
        # not the first and last angle: nothing in this arm's dynamics depends on them
        given[rng.integers(3)][row, rng.integers(1, 5)] = rng.choice([np.nan, np.inf, -np.inf])
    result = puma.forward_dynamics(*given)
    good = np.ones(4096, bool)
    good[rows] = False
    assert same_bits(result[good], clean[good])
    assert (~np.isfinite(result).all(axis=1) == ~good).all(), "the flagged set is exact"


# -- the compiled call --------------------------------------------------------------------------


@needs_fast_path
def test_a_method_with_a_compiled_entry_is_an_ordinary_method() -> None:
    robot = lw.load("puma560")
    q, qd, tau = states(robot)
    robot.forward_dynamics(q, qd, tau)
    assert not hasattr(robot, "__dict__"), "nothing is hidden in the instance"
    assert robot.forward_dynamics.__self__ is robot
    assert robot.forward_dynamics.__name__ == "forward_dynamics"
    assert "Joint accelerations" in (robot.forward_dynamics.__doc__ or "")
    shown = inspect.signature(robot.forward_dynamics).parameters
    assert shown["method"].default == "auto" and shown["status"].default is False


@needs_fast_path
@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f not in FRAME_FUNCTIONS])
def test_unusual_calls_through_the_compiled_entry(robot: lw.Robot, function: str) -> None:
    given = arguments_of(robot, function, states(robot))
    names = [
        n for n in inspect.signature(getattr(lw.Robot, function)).parameters
        if n in ("q", "qd", "qdd", "tau")
    ]  # fmt: skip
    expected = getattr(robot, function)(*given)
    call = getattr(robot, function)
    assert same_bits(call(*given), expected)
    assert same_bits(call(**dict(zip(names, given, strict=True))), expected)
    assert same_bits(call(given[0], **dict(zip(names[1:], given[1:], strict=True))), expected)
    assert same_bits(call(*given, threads=1), expected)
    assert same_bits(call(*given, out=None), expected)
    out = np.empty(np.shape(expected))
    assert call(*given, **{"".join(["o", "ut"]): out}) is out  # a name that is not interned
    assert same_bits(out, expected)
    assert call(*given, out=out, threads=2) is out
    assert call(out=out, **dict(zip(names, given, strict=True))) is out
    assert call(*(a.astype("f4") for a in given)).dtype == np.float32
    assert same_bits(call(*(a[None] for a in given))[0], expected)
    if "method" in inspect.signature(getattr(lw.Robot, function)).parameters:
        assert same_bits(call(*given, method="auto"), expected)
        first = first_method(function).method
        np.testing.assert_allclose(call(*given, method=first), expected, rtol=1e-9)


@needs_fast_path
def test_wrong_argument_counts_are_type_errors(puma: lw.Robot) -> None:
    q, qd, tau = states(puma)
    puma.forward_dynamics(q, qd, tau)
    call = puma.forward_dynamics
    bad: list[tuple[tuple, dict]] = [
        ((), {}), ((q,), {}), ((q, qd), {}), ((q, qd, tau, q), {}), ((q, qd, tau, q, q, q), {}),
        ((q, qd, tau), {"q": q}), ((q, qd, tau), {"nonsense": 1}), ((q, qd), {"nonsense": tau}),
        ((q, qd, tau), {"out": None, "nonsense": 1}), ((q, qd), {"out": tau}),
    ]  # fmt: skip
    for args, kwargs in bad:
        with pytest.raises(TypeError, match="forward_dynamics"):
            call(*args, **kwargs)


def _many_calls(robot: lw.Robot, count: int) -> None:
    q, qd, tau = states(robot)
    out = np.empty(6)
    wrong = np.zeros(5)
    for k in range(count):
        robot.forward_dynamics(q, qd, tau)
        robot.forward_dynamics(q, qd, tau, out=out)
        robot.kinetic_energy(q, qd)
        robot.forward_kinematics(q, "link6")
        if k % 100 == 0:
            robot.forward_dynamics(q, qd, tau, method="crba", out=out)
            robot.forward_dynamics(q.tolist(), qd, tau=tau)
            with pytest.raises(ValueError, match="tau has shape"):
                robot.forward_dynamics(q, qd, wrong)


@needs_fast_path
def test_references_and_memory_do_not_leak(puma: lw.Robot) -> None:
    q, qd, tau = states(puma)
    out = np.empty(6)
    watched = (q, qd, tau, out, np.ndarray, np.dtype("float64"), None, "out")
    _many_calls(puma, 500)  # compile, and fill whatever caches there are
    gc.collect()
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(100_000):
        puma.forward_dynamics(q, qd, tau)
        puma.forward_dynamics(q, qd, tau, out=out)
    after = [sys.getrefcount(x) for x in watched]
    assert all(abs(a - b) < 100 for a, b in zip(after, before, strict=True)), (before, after)
    assert after[:4] == before[:4]
    tracemalloc.start()
    try:
        _many_calls(puma, 200)
        gc.collect()
        start = tracemalloc.get_traced_memory()[0]
        _many_calls(puma, 5_000)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    assert grown < 50_000, f"{grown} bytes after 20,000 calls"


@needs_fast_path
def test_a_result_outlives_everything(puma: lw.Robot) -> None:
    robot = lw.load("puma560")
    q, qd, tau = states(robot)
    robot.forward_dynamics(q, qd, tau)
    call = robot.forward_dynamics
    result = call(q, qd, tau)
    del robot
    gc.collect()
    again = call(q, qd, tau)  # the built-in keeps its robot alive
    assert same_bits(result, again)
    assert result.flags.owndata and result.flags.writeable
    assert same_bits(call([0.0] * 6, qd, tau), puma.forward_dynamics([0.0] * 6, qd, tau))


@needs_fast_path
def test_robots_are_collected_with_their_built_ins() -> None:
    import weakref

    robot = lw.load("puma560")
    robot.forward_dynamics(*states(robot))
    robot.jacobian(states(robot)[0], "link6")
    gone = weakref.ref(robot)
    del robot
    gc.collect()
    assert gone() is None


# -- frames -------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", FRAME_FUNCTIONS)
@pytest.mark.parametrize("axes", ["base", "body"])
def test_frame_functions_through_the_compiled_call(
    robot: lw.Robot, function: str, axes: str
) -> None:
    wanted = inspect.signature(getattr(lw.Robot, function)).parameters
    options = {"axes": axes} if "axes" in wanted else {}
    *given, frame = arguments_of(robot, function, states(robot))
    call = getattr(robot, function)
    expected = call(*(a[None] for a in given), frame, **options)[0]
    for _ in range(3):
        assert same_bits(call(*given, frame, **options), expected)
        assert same_bits(call(*given, frame=frame, **options), expected)
        assert same_bits(call(*(a.tolist() for a in given), frame, **options), expected)
        assert same_bits(call(*(np.repeat(a, 2)[::2] for a in given), frame, **options), expected)
        out = np.empty(expected.shape)
        assert call(*given, frame, out=out, **options) is out
        assert same_bits(out, expected)
        narrow = call(*(a.astype("f4") for a in given), frame, **options)
        assert narrow.dtype == np.float32
        assert call(*(a[None, None] for a in given), frame, **options).shape == (
            1, 1, *expected.shape,
        )  # fmt: skip


def test_frames_and_axes_are_not_mixed_up(puma: lw.Robot) -> None:
    q, _, _ = states(puma)
    batch = q[None]
    for _ in range(2):
        for frame in puma.frame_names:
            pose = puma.forward_kinematics(q, frame)
            assert same_bits(pose, puma.forward_kinematics(batch, frame)[0]), frame
            for axes in ("base", "body"):
                fast = puma.jacobian(q, frame, axes=axes)
                assert same_bits(fast, puma.jacobian(batch, frame, axes=axes)[0]), (frame, axes)


@pytest.mark.parametrize("function", FRAME_FUNCTIONS)
def test_an_unknown_frame_is_explained(puma: lw.Robot, function: str) -> None:
    given = arguments_of(puma, function, states(puma))[:-1]
    call = getattr(puma, function)
    for _ in range(2):
        with pytest.raises(
            ValueError,
            match=r"frame 'lnk6': robot 'puma560' has no such frame; did you mean 'link6'",
        ):
            call(*given, "lnk6")
        with pytest.raises(ValueError, match=r"frame 'zzz': .* it has 'base', 'axis1', 'link1'"):
            call(*given, "zzz")
        several = function == "forward_kinematics"  # takes a list of names, too
        no_text = "frame is 6; expected a name" if several else "frame 6: robot 'puma560' has no"
        with pytest.raises(ValueError, match=no_text):
            call(*given, 6)
        none = "frame is None; expected a name" if several else "robot.frame_names lists them"
        with pytest.raises(ValueError, match=none):
            call(*given, None)
        with pytest.raises(TypeError, match=function):
            call(*given)
        call(*given, "link6")


def test_operational_inertia_needs_six_joints(puma: lw.Robot) -> None:
    message = (
        r"operational_inertia, method 'crba', frame 'link3': the frame is moved by 3 joint\(s\); "
        r"expected at least 6, else .*damping= gives one"
    )
    for q in (states(puma)[0], states(puma, 4)[0]):
        with pytest.raises(ValueError, match=message):
            puma.operational_inertia(q, "link3")
    row = {"a": 1.0, "mass": 1.0, "com": (-0.5, 0.0, 0.0), "inertia": (0.1, 0.1, 0.1)}
    two = lw.from_dh([row, row], name="two")
    with pytest.raises(ValueError, match=r"moved by 2 joint\(s\); expected at least 6"):
        two.operational_inertia(np.zeros(2), "link2")


# -- names that are none, and too few arguments ---------------------------------------------------


def test_names_that_are_no_text(puma: lw.Robot) -> None:
    q = np.zeros(6)
    with pytest.raises(ValueError, match=r"axes \['base'\]: expected two names"):
        puma.jacobian(q, "link6", axes=["base"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"method \['aba'\], .*: expected two names"):
        puma.mass_matrix(q, method=["aba"])  # type: ignore[arg-type]
    for call in (puma.jacobian, puma.operational_inertia):
        with pytest.raises(ValueError, match=r"frame \['link6'\]: .* has no such frame"):
            call(q, ["link6"])  # type: ignore[arg-type]


def test_functions_behind_another_name_are_called_by_it_in_messages(puma: lw.Robot) -> None:
    q = np.zeros(6)
    with pytest.raises(
        ValueError, match=r"^innovations: q has shape \(5,\); expected \(\.\.\., 6\)"
    ):
        puma.innovations(q[:5])
    with pytest.raises(ValueError, match=r"^innovations: x has shape \(5,\)"):
        puma.innovations(q).apply(q[:5])
    with pytest.raises(ValueError, match=r"^operational_dynamics: qd has shape \(5,\)"):
        puma.operational_dynamics(q, q[:5], q, "link6")
    with pytest.raises(ValueError, match=r"apply_factor was given 1 array\(s\); expected 2: q, x"):
        puma.compute("apply_factor", q)


MIXED = {
    "float32 beside float64": ("float32", "float64", "float64"),
    "integers": ("float64", "int64", "float64"),
    "integers beside float32": ("float32", "int32", "float32"),
    "integers alone": ("int64", "uint8", "int16"),
}


@pytest.mark.parametrize("kind", MIXED)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_number_types_are_mixed_without_a_detour(
    kind: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Widened arrays go to the compiled entry, and give the bits of float64."""
    robot = lw.load("puma560")
    rng = np.random.default_rng(3)
    given = [rng.uniform(0, 3, (*shape, robot.nv)).astype(x) for x in MIXED[kind]]
    expected = robot.forward_dynamics(*(x.astype(float) for x in given))
    monkeypatch.setattr(arrays, "prepare", None)  # what an unusual call would need
    found = robot.forward_dynamics(*given)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(robot.forward_dynamics(*(x.tolist() for x in given)), expected)


def test_only_plain_numbers_are_widened() -> None:
    one, two = np.zeros(3, np.float32), np.zeros(3)
    assert arrays.widened([one, one]) is None
    assert arrays.widened([two, two]) is None
    assert arrays.widened([one.astype(">f4"), one]) is None
    assert arrays.widened([two, np.zeros(3, complex)]) is None
    assert arrays.widened([two, [[1.0], [1.0, 2.0]]]) is None
    assert arrays.widened([two, 3.0]) is None


def test_the_order_of_wrenches_compiles_nothing() -> None:
    robot = lw.load("puma560")
    q, one, two = np.zeros(6), np.arange(6.0), np.ones(6)
    first = robot.bias(q, q, f_ext={"link3": one, "link6": two})
    again = robot.bias(q, q, f_ext={"link6": two, "link3": one})
    assert first.tobytes() == again.tobytes()
    assert [key.external for key in robot._calls._table] == [("link3", "link6")]
