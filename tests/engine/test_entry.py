"""The compiled entry: every way of calling gives the same bits, and Python's own messages.

What the entry declines goes to Python; what it accepts must be right without Python. So each way is
compared with the plain one, state by state, and each mistake with the message Python gives.
"""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import subprocess
import sys
import sysconfig
import textwrap
import threading
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import linkwise as lw
from linkwise.backends.base import BATCH, ONE
from linkwise.backends.llvm.front import LlvmFront
from linkwise.backends.llvm.layout import layout, slot_offset
from linkwise.engine import calls
from linkwise.engine.compiled import CompiledFunction

pytestmark = pytest.mark.skipif(layout() is None, reason="no compiled entry for this interpreter")

ROBOT = lw.load("puma560")
STATES = 19


def rows(seed: int = 0, states: int | tuple[int, ...] = STATES) -> tuple[np.ndarray, ...]:
    shape = (states,) if isinstance(states, int) else states
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=(*shape, 6)) for _ in range(3))


def strided(a: np.ndarray) -> np.ndarray:
    """The same numbers, every second one of a larger array, last row first."""
    wide = np.full((*a.shape[:-1], 2 * a.shape[-1] + 1), np.nan, a.dtype)
    view = wide[..., 1::2]
    view[...] = a
    return view


def reversed_rows(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a[::-1])[::-1]


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "contiguous": lambda a: a,
    "strided": strided,
    "columns": lambda a: np.asfortranarray(a),
    "last row first": reversed_rows,
    "read-only": lambda a: (a := a.copy(), a.setflags(write=False))[0],
    "lists": lambda a: a.tolist(),
}


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_batches_of_any_layout(how: str, dtype: str) -> None:
    given = [a.astype(dtype) for a in rows()]
    expected = ROBOT.forward_dynamics(*given)
    found = ROBOT.forward_dynamics(*(LAYOUTS[how](a) for a in given))
    if how == "lists":
        wide = ROBOT.forward_dynamics(*(a.astype("float64") for a in given))
        assert found.dtype == np.float64 and np.array_equal(found, wide)
    else:
        assert found.dtype == dtype and np.array_equal(found, expected)


@pytest.mark.parametrize(
    "way",
    [
        lambda a: a,
        lambda a: a.tolist(),
        lambda a: tuple(a.tolist()),
        lambda a: list(a),
        strided,
        lambda a: a[::-1].copy()[::-1],
        lambda a: np.stack([a] * 3, axis=1)[:, 1],
        lambda a: np.asarray(a, ">f8"),
        lambda a: a.astype(object).tolist(),
    ],
)
def test_one_state_any_way(way: Callable[[np.ndarray], Any]) -> None:
    for q, qd, tau in zip(*rows(1), strict=True):
        expected = ROBOT.forward_dynamics(q, qd, tau)
        assert np.array_equal(ROBOT.forward_dynamics(way(q), way(qd), way(tau)), expected)
        assert np.array_equal(ROBOT.forward_dynamics(q, way(qd), tau), expected)


def test_integers_are_float64() -> None:
    whole = [1, -2, 3, 0, 5, 2**40]
    expected = ROBOT.gravity_torque(np.array(whole, float))
    for given in (whole, tuple(whole), np.array(whole), [1.0, *whole[1:]], [*map(np.int64, whole)]):
        assert np.array_equal(ROBOT.gravity_torque(given), expected)


def test_inputs_with_and_without_leading_axes() -> None:
    q, qd, tau = rows(2)
    whole = [np.broadcast_to(a, (STATES, 6)).copy() for a in (q, qd[0], tau[0])]
    expected = ROBOT.forward_dynamics(*whole)
    assert np.array_equal(ROBOT.forward_dynamics(q, qd[0], tau[0]), expected)
    assert np.array_equal(ROBOT.forward_dynamics(q, qd[:1], tau[0].tolist()), expected)
    assert np.array_equal(ROBOT.forward_dynamics(q, strided(qd[0]), tau[0]), expected)


@pytest.mark.parametrize("shape", [(1,), (2, 3), (2, 3, 4), (1, 1, 1), (2, 1, 2, 1, 2, 1, 2)])
def test_any_leading_axes(shape: tuple[int, ...]) -> None:
    q, qd, tau = rows(3, shape)
    flat = ROBOT.forward_dynamics(*(a.reshape(-1, 6) for a in (q, qd, tau)))
    assert np.array_equal(ROBOT.forward_dynamics(q, qd, tau), flat.reshape(q.shape))
    assert ROBOT.mass_matrix(q).shape == (*shape, 6, 6)
    assert ROBOT.kinetic_energy(q, qd).shape == shape
    bits = ROBOT.mass_matrix(q, status=True)[1]
    assert bits.shape == shape and bits.dtype == np.uint16


def test_no_states_at_all() -> None:
    nothing = np.empty((0, 6))
    assert ROBOT.mass_matrix(nothing).shape == (0, 6, 6)
    M, bits = ROBOT.mass_matrix(np.empty((3, 0, 6), "f4"), status=True)
    assert M.shape == (3, 0, 6, 6) and bits.shape == (3, 0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_out_in_every_layout(dtype: str) -> None:
    q = rows(4)[0].astype(dtype)
    expected = ROBOT.mass_matrix(q)
    plain = np.empty_like(expected)
    assert ROBOT.mass_matrix(q, out=plain) is plain and np.array_equal(plain, expected)
    wide = np.zeros((STATES, 6, 12), dtype)
    assert ROBOT.mass_matrix(q, out=wide[..., ::2]).base is wide
    assert np.array_equal(wide[..., ::2], expected) and not wide[..., 1::2].any()
    one = np.empty((6, 6), dtype)
    assert ROBOT.mass_matrix(q[3], out=one) is one and np.array_equal(one, expected[3])


def test_out_may_be_an_input() -> None:
    q, qd, tau = rows(5)
    expected = ROBOT.forward_dynamics(q, qd, tau)
    again = tau.copy()
    assert np.array_equal(ROBOT.forward_dynamics(q, qd, again, out=again), expected)
    double = np.concatenate([q, q])
    ROBOT.forward_dynamics(double[3 : 3 + STATES], qd, tau, out=double[:STATES])
    first = ROBOT.forward_dynamics(np.concatenate([q, q])[3 : 3 + STATES], qd, tau)
    assert np.array_equal(double[:STATES], first)
    state = tau[0].copy()
    ROBOT.forward_dynamics(q[0], qd[0], state, out=state)
    assert np.array_equal(state, expected[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r, q: r.mass_matrix(q[:5]), r"q has shape \(5,\); expected \(\.\.\., 6\)"),
        (lambda r, q: r.mass_matrix(["a"] * 6), "q has dtype <U1"),
        (lambda r, q: r.mass_matrix([True] * 6), "q has dtype bool"),
        (lambda r, q: r.mass_matrix([2**70] * 6), "q has dtype object"),
        (lambda r, q: r.mass_matrix([10**400] * 6), "q has dtype object"),
        (lambda r, q: r.mass_matrix([10**400, "a", 1, 1, 1, 1]), "q has dtype object"),
        (lambda r, q: r.mass_matrix([10**400, 2**63, 1, 1, 1, 1]), "q has dtype object"),
        (lambda r, q: r.mass_matrix(q, threads=-(10**400)), "threads is -1000"),
        (lambda r, q: r.mass_matrix(*[q] * 2_000_000), "mass_matrix.*takes.*2000001"),
        (lambda r, q: r.mass_matrix([1j] * 6), "q has dtype complex128"),
        (lambda r, q: r.mass_matrix(q.astype("f2")), "q has dtype float16"),
        (lambda r, q: r.mass_matrix([[1.0], 2.0, 3.0, 4.0, 5.0, 6.0]), "cannot be read"),
        (lambda r, q: r.mass_matrix(None), "q has dtype object"),
        (lambda r, q: r.mass_matrix(q, out=q), r"out has shape \(6,\); expected \(6, 6\)"),
        (lambda r, q: r.mass_matrix(q, out=[1.0]), "out is a list"),
        (lambda r, q: r.mass_matrix(q, out=np.empty((6, 6), "f4")), "out has dtype float32"),
        (lambda r, q: r.bias(np.ones((2, 6)), np.ones((3, 6))), "do not broadcast"),
        (lambda r, q: r.mass_matrix(q, threads=0), "threads is 0"),
        (lambda r, q: r.mass_matrix(), "mass_matrix.* missing"),
        (lambda r, q: r.mass_matrix(q, q), "mass_matrix.*takes"),
        (lambda r, q: r.mass_matrix(q, axes="body"), "mass_matrix.*unexpected keyword.*axes"),
        (lambda r, q: r.jacobian(q, "tool", method="x"), "jacobian.*unexpected keyword.*method"),
        (lambda r, q: r.jacobian(q), "jacobian.*missing"),
        (lambda r, q: r.jacobian(q, "nowhere"), "frame 'nowhere'"),
        (lambda r, q: r.jacobian(q, q), "has no such frame"),
    ],
)
def test_mistakes_are_answered_by_python(call: Callable[..., Any], message: str) -> None:
    q = np.linspace(0.1, 0.6, 6)
    for warm in (False, True):
        robot = ROBOT if warm else lw.load("puma560")
        with pytest.raises((ValueError, TypeError), match=message):
            call(robot, q)


def test_read_only_out_is_refused() -> None:
    out = np.empty((6, 6))
    out.setflags(write=False)
    with pytest.raises(ValueError, match="out is read-only"):
        ROBOT.mass_matrix(np.zeros(6), out=out)


def test_frames_by_name() -> None:
    q, qd, _ = rows(6)
    names = [name for name in ROBOT.frame_names if name != "base"] * 5  # more than are looked up
    for name in names:
        made = "".join(list(name))  # equal, and another object
        expected = ROBOT.jacobian(q, name, axes="base")
        assert np.array_equal(ROBOT.jacobian(q, name), expected)
        assert np.array_equal(ROBOT.jacobian(q, made), expected)
        assert np.array_equal(ROBOT.jacobian(q[0], name), expected[0])
        assert np.array_equal(ROBOT.jacobian(q[0], frame=name), expected[0])
        speed = ROBOT.jacobian_dot_qd(q[0], qd[0], name)
        assert np.array_equal(speed, ROBOT.jacobian_dot_qd(q, qd, name)[0])


def test_results_are_arrays_of_their_own() -> None:
    q = rows(7)[0][0]
    kept = [ROBOT.gravity_torque(q + k) for k in range(5)]
    for k, result in enumerate(kept):
        assert np.array_equal(result, ROBOT.gravity_torque(q + k))
    assert kept[0].flags.owndata and kept[0].flags.writeable


# -- an attribute means what it says ---------------------------------------------------------------


class Doubled(lw.Robot):
    """Overrides one method, extends another."""

    def gravity_torque(self, q: Any, **options: Any) -> Any:
        return "mine"

    def mass_matrix(self, q: Any, **options: Any) -> Any:
        return 2.0 * super().mass_matrix(q, **options)


def test_a_subclass_keeps_its_methods() -> None:
    robot, q = Doubled(ROBOT.description, ROBOT._policy), np.zeros(6)
    for _ in range(3):
        assert robot.gravity_torque(q) == "mine"
        assert np.array_equal(robot.mass_matrix(q), 2.0 * ROBOT.mass_matrix(q))
        assert np.array_equal(robot.bias(q, q), ROBOT.bias(q, q))


def test_a_subclass_pickles_as_what_it_is() -> None:
    robot = Doubled(ROBOT.description, ROBOT._policy)
    robot.note = "kept"  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(robot))
    assert type(again) is Doubled and again.note == "kept" and again == robot
    assert again.gravity_torque(np.zeros(6)) == "mine"


def test_the_class_may_be_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    q = np.zeros(6)
    ROBOT.mass_matrix(q)
    with monkeypatch.context() as patch:
        patch.setattr(lw.Robot, "mass_matrix", lambda self, q: "patched")
        assert ROBOT.mass_matrix(q) == "patched"
    assert ROBOT.mass_matrix(q).shape == (6, 6)


def test_warm_bound_methods_pickle() -> None:
    q = rows(8)[0]
    expected = ROBOT.mass_matrix(q)
    again = pickle.loads(pickle.dumps(ROBOT.mass_matrix))
    assert np.array_equal(again(q), expected)
    with get_context("spawn").Pool(1) as pool:
        found = pool.map(ROBOT.mass_matrix, list(q[:3]))
    assert np.array_equal(np.stack(found), expected[:3])


# -- memory ----------------------------------------------------------------------------------------


def mappings() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no list of mappings")
def test_code_of_dropped_robots_is_freed() -> None:
    q = np.zeros((3, 6))

    def use(count: int) -> None:
        for _ in range(count):
            robot = lw.load("puma560")
            robot.gravity_torque(q)
            robot.gravity_torque(q[0])

    use(80)  # fill caches, and whole rooms of libraries
    gc.collect()
    before, size = mappings(), resident()
    use(160)
    gc.collect()
    assert mappings() - before < 40
    assert resident() - size < 16e6


def test_no_reference_is_lost_or_kept() -> None:
    q, qd, tau = rows(9)
    numbers = q[0].tolist()
    out = np.empty(6)
    ways: list[Callable[[], Any]] = [
        lambda: ROBOT.forward_dynamics(q[0], qd[0], tau[0]),
        lambda: ROBOT.forward_dynamics(numbers, qd[0], tau[0]),
        lambda: ROBOT.forward_dynamics(q, qd, tau),
        lambda: ROBOT.forward_dynamics(q[0], qd[0], tau[0], out=out),
        lambda: ROBOT.forward_dynamics(q, qd, tau, status=True),
        lambda: ROBOT.jacobian(q[0], "link6"),
    ]
    held = [q, qd, tau, out, numbers, numbers[0], np.dtype("float64"), np.dtype("uint16"), ROBOT]
    for way in ways:
        way()
        before = [sys.getrefcount(x) for x in held]
        for _ in range(1000):
            way()
        after = [sys.getrefcount(x) for x in held]
        assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True)), (before, after)


def test_a_slot_is_found_where_it_is() -> None:
    class Slotted:
        __slots__ = ("a", "b", "c")

    assert slot_offset(Slotted(), "b") == object.__basicsize__ + 8


def test_keywords_in_every_combination() -> None:
    q, qd, tau = rows(10)
    plain = ROBOT.forward_dynamics(q, qd, tau)
    bits = np.zeros(STATES, np.uint16)
    out = np.empty_like(plain)
    for threads in (None, 1, 2, np.int64(3)):
        for status in (False, True):
            found = ROBOT.forward_dynamics(q, qd, tau, status=status, threads=threads)
            result, told = found if status else (found, bits)
            assert np.array_equal(result, plain) and np.array_equal(told, bits)
            found = ROBOT.forward_dynamics(q, qd, tau, threads=threads, out=out, status=status)
            assert (found[0] if status else found) is out and np.array_equal(out, plain)
    one, bit = ROBOT.forward_dynamics(q[0], qd[0], tau[0], status=True)
    assert np.array_equal(one, plain[0]) and bit == 0 and isinstance(bit, np.uint16)
    for wrong in (0, -1, True, 2.0, "2", 2**80):
        if wrong != 2**80:
            with pytest.raises(ValueError, match=r"threads is .*; expected a positive integer"):
                ROBOT.forward_dynamics(q, qd, tau, threads=wrong)
    with pytest.raises(TypeError, match="unexpected keyword argument 'statuss'"):
        ROBOT.forward_dynamics(q, qd, tau, statuss=True)
    assert isinstance(ROBOT.forward_dynamics(q, qd, tau, status=1), tuple)


def test_single_states_have_their_own_kernel_after_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LINKWISE_CACHE", "off")
    robot, (q, qd, tau) = lw.load("puma560"), rows(11)
    robot.forward_dynamics(q, qd, tau)
    made = robot._calls.kernels._kernels
    assert {form for _, _, form, _ in made} == {BATCH}
    robot.forward_dynamics(strided(q[0]), qd[0], tau[0].tolist())
    assert {form for _, _, form, _ in made} == {ONE, BATCH}
    robot.forward_dynamics(*(a.astype("f4") for a in (q, qd, tau)))
    assert {dtype for _, dtype, _, _ in made} == {"float64", "float32"}
    assert len(robot._calls.kernels._programs) == 1, "traced once"


# -- results that are used again -------------------------------------------------------------------


def test_results_are_used_again_on_every_python_that_counts_in_one_place() -> None:
    """Without, a call takes half as long again."""
    found = layout()
    assert found is not None and found.counted != bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    q, q2 = rows(16)[0][:2]
    addresses = {ROBOT.gravity_torque(q if k % 2 else q2).ctypes.data for k in range(9)}
    assert len(addresses) == 1 or not found.counted


def test_a_result_that_is_held_is_never_written_again() -> None:
    """However it is held: by a name, a view, a memoryview, a container, a weak reference."""
    q = rows(12)[0]
    expected = [ROBOT.gravity_torque(row[None])[0] for row in q]
    ways: list[Callable[[np.ndarray], Any]] = [
        lambda a: a,
        lambda a: a[2:],
        lambda a: a.reshape(2, 3),
        memoryview,
        lambda a: [a],
        lambda a: a.T,
        lambda a: np.frombuffer(a),
        lambda a: np.from_dlpack(a),
    ]
    for hold in ways:
        held = [hold(ROBOT.gravity_torque(row)) for row in q]
        for thing, right in zip(held, expected, strict=True):
            numbers = np.ravel(thing[0] if isinstance(thing, list) else np.asarray(thing))
            assert np.array_equal(numbers, right[-numbers.size :])


def test_a_result_that_was_changed_is_not_used_again() -> None:
    q = rows(13)[0]
    expected = [ROBOT.gravity_torque(row[None])[0] for row in q]

    def reshaped(a: np.ndarray) -> None:
        a.shape = (2, 3)

    def retyped(a: np.ndarray) -> None:
        a.dtype = np.int64  # type: ignore[misc]

    changes: list[Callable[[np.ndarray], Any]] = [
        reshaped,
        retyped,
        lambda a: a.setflags(write=False),
        lambda a: a.resize(3, refcheck=False),
        lambda a: a.fill(7.0),
    ]
    for change in changes:
        for row, right in zip(q, expected, strict=True):
            result = ROBOT.gravity_torque(row)
            assert result.shape == (6,) and result.dtype == np.float64
            assert result.flags.writeable and result.flags.owndata
            assert np.array_equal(result, right)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                change(result)
            del result


def test_a_weak_reference_sees_its_array_end() -> None:
    q = rows(14)[0]
    for _ in range(4):
        ended: list[int] = []
        result = ROBOT.gravity_torque(q[0])
        weakref.finalize(result, ended.append, 1)
        del result
        for row in q[:4]:
            ROBOT.gravity_torque(row)
        assert ended == [1]


def test_threads_that_call_first_at_once_share_one_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """The method of the class must not be left with the site of a call that was dropped."""
    robot, both, serve = lw.load("puma560"), threading.Barrier(2), LlvmFront.serve
    served = []

    new = calls.Calls._new

    def made_by_both(self: calls.Calls, key: Any) -> CompiledFunction:
        both.wait()
        return new(self, key)

    def noted(self: LlvmFront, method: str, site: Any, *how: Any) -> None:
        served.append(site)
        serve(self, method, site, *how)

    monkeypatch.setattr(calls.Calls, "_new", made_by_both)
    monkeypatch.setattr(LlvmFront, "serve", noted)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(robot.gravity_torque, np.zeros((2, 6))))
    assert served == [call.site for call in robot._calls._table.values()]


def test_results_of_many_threads_are_their_own() -> None:
    q = rows(15)[0]
    expected = [ROBOT.gravity_torque(row[None])[0] for row in q]

    def work(k: int) -> bool:
        mine = [ROBOT.gravity_torque(q[(k + i) % STATES]) for i in range(3000)]
        return all(np.array_equal(mine[i], expected[(k + i) % STATES]) for i in range(0, 3000, 7))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


# -- methods stay methods --------------------------------------------------------------------------


def test_inspection_sees_the_python_method_after_calls() -> None:
    ROBOT.forward_dynamics(*(a[0] for a in rows(17)))
    method = lw.Robot.forward_dynamics
    assert {"q", "qd", "tau", "return"} <= set(get_type_hints(method))
    for known in (method, ROBOT.forward_dynamics):
        assert inspect.getsource(known).lstrip().startswith("def forward_dynamics(")
        assert "qd" in inspect.signature(known).parameters
        assert known.__name__ == "forward_dynamics" and known.__doc__.startswith("Joint acc")
    assert inspect.isroutine(method) and callable(method)
    assert pickle.loads(pickle.dumps(method)) is method


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 cannot give functions an entry")
def test_methods_stay_functions_and_methods_bound_before_the_first_call_are_compiled(
    child: Callable[[str], str],
) -> None:
    code = """
        import inspect
        import numpy as np
        import linkwise as lw
        from linkwise.engine.calls import Calls

        robot, q = lw.load("puma560"), np.zeros(6)
        early, function = robot.gravity_torque, lw.Robot.gravity_torque
        expected = robot.gravity_torque(q).copy()
        assert lw.Robot.gravity_torque is function and inspect.isfunction(function)
        Calls.run = None  # from here on there is only the compiled entry
        assert (early(q) == expected).all() and (function(robot, q) == expected).all()
        print("compiled")
    """
    assert child(code) == "compiled"


def test_a_wrapper_set_before_the_first_call_is_never_bypassed(child: Callable[[str], str]) -> None:
    code = """
        import numpy as np
        import linkwise as lw

        plain = lw.Robot.bias
        lw.Robot.bias = lambda self, *values, **options: 2.0 * plain(self, *values, **options)
        robot, q = lw.load("puma560"), np.full(6, 0.3)
        expected = 2.0 * np.array(robot.evaluate("bias", q, q))
        for _ in range(4):
            assert np.allclose(robot.bias(q, q), expected), robot.bias(q, q)
            assert np.allclose(robot.bias(q[None], q[None]), expected)
        lw.Robot.bias = plain
        for _ in range(3):
            assert np.allclose(robot.bias(q, q), 0.5 * expected)
        print("wrapped")
    """
    assert child(code) == "wrapped"


@pytest.mark.parametrize("robot", [5, None, "iiwa14", object(), lw.Robot])
def test_a_method_of_the_class_called_with_something_else(robot: Any) -> None:
    q = rows(18)[0][0]
    ROBOT.gravity_torque(q)
    with pytest.raises(AttributeError):
        lw.Robot.gravity_torque(robot, q)
    with pytest.raises(TypeError, match=r"missing .* positional argument"):
        lw.Robot.gravity_torque()  # type: ignore[call-overload]


@pytest.fixture
def child(tmp_path: Path) -> Callable[[str], str]:
    """Run code in a fresh interpreter; returns what it prints."""

    def run(code: str) -> str:
        source = str(Path(lw.__file__).parent.parent)
        env = {**os.environ, "PYTHONPATH": source, "LINKWISE_CACHE": str(tmp_path / "cache")}
        command = [sys.executable, "-c", textwrap.dedent(code)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
        assert not done.returncode, done.stderr
        return done.stdout.strip()

    return run
