"""What tests share: real robots, random trees, and the one place where tolerances come from.

Helpers are handed out as session fixtures (pytest runs with ``--import-mode=importlib``, under
which test files cannot import one another):

    assert_close   the tolerance of every numerical test
    robot_path     the URDF of a real robot, or a skip
    load_robot     the same, loaded without its warnings
    real_robots    names of REAL_ROBOTS
    real_robot     parametrised: each of REAL_ROBOTS, loaded
    random_robot   (rng, joints) -> description of a random tree; ``kinds=ALL_KINDS`` for all of
                   them, ``mimic=True`` for followers, ``base="free"`` for a flying base
    descriptions   the same as a Hypothesis strategy, drawn with ``data.draw(descriptions())``
    all_kinds      ALL_KINDS: every joint kind there is
    random_states  (robot, rng, states) -> q on its manifold, qd and u
    q_rate         (robot, q, v) -> how q changes at rates v; complex q too
    evaluate       run a function uncompiled over a NumPy batch, real or complex
    interpreted    trace a function and run its program by the reference interpreter
    mobility       of a tree's lightest link on its own: what errors of Schur forms are measured by
"""

from __future__ import annotations

import gc
import os
import signal
import site
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from rotations import random_rotation

import linkwise as lw
from linkwise.algorithms.mobility import completed
from linkwise.backends.reference import interpret
from linkwise.engine.tasks import Key
from linkwise.model import edit
from linkwise.model.description import (
    BodyInertia,
    JointDescription,
    LinkDescription,
    Mimic,
    Pose,
    RobotDescription,
)
from linkwise.model.tree import Tree
from linkwise.spatial import Force, Vec3
from linkwise.spatial.matrices import about, determinant, lengths, of_principal
from linkwise.trace.program import Program
from linkwise.trace.tracer import evaluate as evaluate_task
from linkwise.trace.tracer import flatten, trace

# -- what `make quick` runs ----------------------------------------------------------------------

# A minute's worth that touches every layer: readers, models, equations, programs, calls, commands.
QUICK = (
    "cli/test_check.py", "engine/test_arrays.py", "engine/test_programs.py", "io/test_detect.py",
    "io/test_urdf.py", "io/test_urdf_write.py", "io/test_xml.py", "model/", "papers/test_gdahj.py",
    "papers/test_operators.py", "physics/test_configuration.py", "physics/test_dh.py",
    "test_exports.py", "test_layers.py",
)  # fmt: skip


def _quick(path: Path) -> bool:
    return path.relative_to(Path(__file__).parent).as_posix().startswith(QUICK)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make quick` does not even import the other tests; None leaves the decision to pytest."""
    wanted = not config.option.markexpr.startswith("quick") or _quick(collection_path)
    return None if wanted or collection_path.is_dir() else True


# Tests with many cases of which each run takes one in so many; the others are for full runs.
THINNED = {
    "test_loops_give_what_links_written_out_do": 12,
    "test_loops_give_the_bits_of_the_cpu": 16,
    "test_pieces_of_a_chain_are_rows": 4,
    "test_pieces_of_chains_on_a_gpu": 2,
    "test_matrices_column_by_column": 8,
    "test_conjugate_gradients_with_products_by_loops": 8,
    "test_schur_complements_of_long_chains": 2,
    "test_there_are_never_more_than_eight_classes": 3,
    "test_matrices_that_do_not_fit_are_refused_with_an_estimate": 3,
    "test_methods_agree": 4,
    "test_any_number_of_links": 3,
    "test_every_function": 4,
    "test_no_number_of_a_spoilt_state_looks_sound": 6,
    "test_the_energy_of_ten_seconds": 3,
    "test_quaternions_stay_of_unit_length": 4,
    "test_the_observed_order_is_nominal": 4,
    "test_laws": 3,
    "test_a_path_may_have_fewer_classes_than_the_robot": 6,
    "test_every_function_has_the_derivatives_of_a_complex_step": 4,
    "test_loops_compiled": 4,
    "test_kernels_are_accurate": 4,
    "test_programs_are_accurate": 4,
    "test_fifty_digits_agree_with_the_textbook": 4,
    "test_every_kernel_agrees_with_the_interpreter": 3,
    "test_kernels_with_external_wrenches_agree_with_the_interpreter": 2,
    "test_status_has_the_shape_of_the_batch": 5,
    "test_a_bad_number_in_any_place_spoils_its_row_only": 3,
    "test_a_number_that_is_not_finite_spoils_its_state_alone": 4,
    "test_equals_the_serial_recursion": 4,
    "test_energy_is_conserved_in_free_swing": 2,
    "test_compiled_kernels_agree": 2,
    "test_momentum_of_a_free_flying_robot_changes_by_its_weight_only": 2,
    "test_float32": 4,
    "test_one_state_is_a_row_of_the_batch": 3,
    "test_the_product_with_the_mass_matrix": 4,
    "test_long_results_leave_in_groups": 3,
    "test_a_guarded_program_is_legal_and_answers_alike": 3,
    "test_a_gpu_takes_the_same_steps": 2,
    "test_iterations_elsewhere": 2,
    "test_calls_give_the_bits_of_the_cpu": 2,
    "test_bytecode_and_zip_archives": 2,
    "test_iteration_solves_forward_dynamics": 3,
    "test_lane_width_does_not_change_a_bit": 2,
    "test_every_target_agrees_with_the_interpreter": 3,
    "test_rows_a_page_apart_are_written_like_others": 3,
    "test_a_rollout_is_one_loop_and_the_interpreter_agrees": 4,
    "test_random_trees_step_by_step": 2,
    "test_any_batch_size_gives_the_rows_of_single_states": 4,
    "test_failing_to_write_costs_a_warning": 4,
    "test_random_damage_never_gives_a_wrong_number": 3,
    "test_the_balance_of_states_far_apart_is_of_second_order": 2,
    "test_commands_print_only_what_is_seen": 2,
    "test_an_interrupt_is_answered": 2,
    "test_loops_of_a_file_are_those_of_mujoco": 2,
    "test_warm_bound_methods_travel_to_other_processes": 2,
    "test_frame_functions_through_the_compiled_call": 3,
    "test_kernels_call_no_runtime_library": 3,
    "test_a_public_robot_comes_back": 3,
    "test_forward_and_inverse_dynamics_of_long_chains": 2,
    "test_identities_to_fifty_digits": 2,
    "test_operational_inertia_inverse": 3,
    "test_operational_inertia_to_fifty_digits": 3,
}
ONE_IN_THREE = {"test_rolled_robots.py", "test_long_chains.py"}


def thin(items: list[pytest.Item]) -> None:
    """Leave most cases of some tests to full runs: the last stays, and every so many before it."""
    seen: dict[tuple[Path, str], int] = {}
    for item in reversed(items):
        name = getattr(item, "originalname", item.name)
        some = THINNED.get(name, 3 if item.path.name in ONE_IN_THREE else 1)
        if some == 1 or not hasattr(item, "callspec") or item.get_closest_marker("full"):
            continue
        place = seen[item.path, name] = seen.get((item.path, name), -1) + 1
        if place % some:
            item.add_marker(pytest.mark.full)


def pytest_sessionstart() -> None:
    """Be interrupted as at a terminal, also where a shell started the tests in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass seldom: traces make millions of objects without cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of `make quick`, and those of full runs."""
    before = {item.nodeid for item in items if item.get_closest_marker("full")}
    thin(items)
    full = {item.nodeid for item in items if item.get_closest_marker("full")}
    config.stash[LEFT_OUT] = {"thinned": len(full - before), "full": len(before), "deselected": 0}
    for item in items:
        if _quick(item.path):
            item.add_marker("quick")


# -- what a run leaves out ----------------------------------------------------------------------

LEFT_OUT = pytest.StashKey[dict[str, int]]()  # numbers of tests
UNSTATED = ("", "unconditional skip", "<Skipped instance>")


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count tests that the command line leaves out."""
    if items:
        items[0].config.stash[LEFT_OUT]["deselected"] += len(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
    """Fail a test that is skipped without a reason."""
    report = yield
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = str(getattr(call.excinfo.value, "msg", "")) if call.excinfo else ""
        if reason.strip() in UNSTATED:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid}: skipped without a reason; state one"
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts of a worker to the process that prints them."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left out"] = session.config.stash.get(LEFT_OUT, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep the counts of a worker; all of them collect the same tests."""
    found = getattr(node, "workeroutput", {}).get("left out")
    if found:
        node.config.stash[LEFT_OUT] = found


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how many tests this run left out."""
    left = config.stash.get(LEFT_OUT, None)
    if left:
        terminalreporter.write_line(
            f"{left['deselected']:,} tests deselected; of full runs only: {left['thinned']:,} "
            f"thinned cases (THINNED in tests/conftest.py) and {left['full']:,} others"
        )


# -- chance -------------------------------------------------------------------------------------

# The same examples in every run, however slow the machine; `make search` looks for others.
settings.register_profile("suite", derandomize=True, deadline=None, database=None)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


# -- the kernel cache ---------------------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A kernel cache for this run alone: a program is compiled once, whichever worker needs it.

    Nor does work that takes long on a busy machine say so among what tests read.
    """
    base = tmp_path_factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = run / "kernels"
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINKWISE_CACHE", str(folder))
        patch.setenv("LINKWISE_PROGRESS", "off")
        yield folder


# -- tolerances ---------------------------------------------------------------------------------

# Roundings that a result of the longest test robots may collect, relative to its largest entry.
ROUNDINGS = 200


def _assert_close(
    actual: Any,
    expected: Any,
    *,
    cond: Any = 1.0,
    scale: Any = None,
    dtype: Any = np.float64,
) -> None:
    """Agree to rounding: ``|actual - expected| <= ROUNDINGS eps cond scale``, state by state.

    The first axis counts states. ``scale`` is the size of what was added up, where that is not
    the largest entry of the state's expected result; ``cond`` is a condition number per state.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    states = expected.shape[0] if expected.ndim else 1
    error = np.abs(actual - expected).reshape(states, -1).max(axis=1)
    if scale is None:
        scale = np.abs(expected).reshape(states, -1).max(axis=1)
    limit = ROUNDINGS * np.finfo(dtype).eps * np.asarray(cond) * np.asarray(scale)
    bad = ~(error <= limit)  # a NaN is bad
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error - limit)))
    assert not bad.any(), (
        f"{bad.sum()} of {states} states differ; worst is state {worst}: off by {error[worst]:.3g}"
        f", allowed {np.broadcast_to(limit, states)[worst]:.3g}"
    )


@pytest.fixture(scope="session")
def assert_close() -> Callable[..., None]:
    return _assert_close


def _mobility(tree: Tree) -> float:
    """``max ‖I⁻¹‖`` over links, at their joints.

    A Schur complement is what is left of it once joints hold the links, so it stands where others
    have ‖M⁻¹‖ or ‖Λ⁻¹‖: an error of M⁻¹ or Λ⁻¹ is about eps of this, one of qdd eps of this times
    the wrenches across the joints, one of Λ eps of this times ‖Λ‖².
    """
    units = [Force(Vec3(*row[:3]), Vec3(*row[3:])) for row in np.eye(6).tolist()]
    alone = [[list(own @ unit) for unit in units] for own in map(completed, tree.links) if own]
    return float(max(np.linalg.norm(np.array(x), 2) for x in alone))


@pytest.fixture(scope="session")
def mobility() -> Callable[[Tree], float]:
    return _mobility


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)


# -- real robots --------------------------------------------------------------------------------

REAL_ROBOTS = {
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "allegro": "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "anymal": "anymal_b_simple_description/robots/anymal.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
}


@dataclass(frozen=True)
class RealRobot:
    name: str
    path: Path
    robot: lw.Robot


def _robot_path(name: str) -> Path:
    """A robot of example-robot-data, found without importing Pinocchio."""
    for folder in site.getsitepackages():
        robots = Path(folder, "cmeel.prefix", "share", "example-robot-data", "robots")
        if robots.is_dir():
            return robots / REAL_ROBOTS[name]
    pytest.skip("example-robot-data is not installed")


def _load_robot(name: str) -> lw.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.RobotFileWarning)
        return lw.load(_robot_path(name), strict=False, mimic="free")


@pytest.fixture(scope="session")
def robot_path() -> Callable[[str], Path]:
    return _robot_path


@pytest.fixture(scope="session")
def load_robot() -> Callable[[str], lw.Robot]:
    return _load_robot


@pytest.fixture(scope="session")
def real_robots() -> tuple[str, ...]:
    return tuple(REAL_ROBOTS)


@pytest.fixture(scope="session", params=REAL_ROBOTS)
def real_robot(request: pytest.FixtureRequest) -> RealRobot:
    return _real_robot(request.param)


@cache  # a test that names robots itself gets a fixture of its own, and the same robot
def _real_robot(name: str) -> RealRobot:
    return RealRobot(name, _robot_path(name), _load_robot(name))


# -- random trees -------------------------------------------------------------------------------

MOVING = ("revolute", "continuous", "prismatic")
KINDS = (*MOVING, "fixed")
ALL_KINDS = (*KINDS, "helical", "universal", "planar", "spherical", "free")
ONE_NUMBER = ("revolute", "continuous", "prismatic", "helical")  # kinds that may drive and follow
PLACES = ("any", "quarter turns", "parallel")


def _quarter_turns(rng: np.random.Generator) -> np.ndarray:
    """One of the 24 rotations whose entries are exactly 0 and ±1."""
    P = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], 3)
    return P * determinant(P)


def _place(place: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rotation, translation and axis of a joint."""
    if place == "any":
        axis = rng.normal(size=3)
        return random_rotation(rng), rng.uniform(-0.5, 0.5, 3), axis / lengths(axis)
    R = np.eye(3) if place == "parallel" else _quarter_turns(rng)
    axis = np.eye(3)[2 if place == "parallel" else rng.integers(3)]
    return R, rng.uniform(-0.5, 0.5, 3) * rng.integers(0, 2, 3), axis * rng.choice([-1.0, 1.0])


def _body(rng: np.random.Generator) -> BodyInertia:
    """A body that can exist: positive second moments about its centre of mass."""
    mass, R, sizes = rng.uniform(0.2, 5.0), random_rotation(rng), rng.uniform(0.01, 0.2, 3)
    tensor = about(of_principal(mass * (sizes * sizes), R))
    upper = (float(tensor[i, j]) for i, j in zip(*np.triu_indices(3), strict=True))
    com = (float(x) for x in rng.uniform(-0.3, 0.3, 3))
    return BodyInertia(mass, tuple(com), tuple(upper))


def _tuples(R: np.ndarray) -> Any:
    return tuple(tuple(map(float, row)) for row in R)


def _describe(
    parents: Sequence[int],
    kinds: Sequence[str],
    places: Sequence[str],
    armature: bool,
    rng: np.random.Generator,
    friction: bool = False,
) -> RobotDescription:
    """Joint ``j{i}`` holds link ``l{i}`` on link ``l{parents[i]}`` (-1: ``base``)."""
    links = [LinkDescription("base")]
    joints = []
    for i, (parent, kind, place) in enumerate(zip(parents, kinds, places, strict=True)):
        R, p, axis = _place(place, rng)
        massless = kind == "fixed" and rng.random() < 0.5
        links.append(LinkDescription(f"l{i}", None if massless else _body(rng)))
        rotor = float(rng.uniform(0.01, 0.5)) if armature and rng.random() < 0.5 else 0.0
        joints.append(
            JointDescription(
                f"j{i}",
                kind,
                "base" if parent < 0 else f"l{parent}",
                f"l{i}",
                Pose(_tuples(R), tuple(map(float, p))),
                tuple(map(float, axis)),
                armature=rotor,
                **_details(kind, axis, friction, rng),
            )
        )
    gravity = tuple(float(x) for x in rng.uniform(-10.0, 10.0, 3))
    return RobotDescription("random", tuple(links), tuple(joints), gravity, base="base")


def _details(kind: str, axis: np.ndarray, friction: bool, rng: np.random.Generator) -> Any:
    """What only some joints have: a second axis, a pitch, losses."""
    details: dict[str, Any] = {}
    if kind == "universal":
        second = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
        details["second_axis"] = tuple(map(float, second / lengths(second)))
    if kind == "helical":
        details["pitch"] = float(rng.uniform(-0.3, 0.3))
    if friction and rng.random() < 0.5:
        details |= {"damping": float(rng.uniform(0, 2)), "friction": float(rng.uniform(0, 2))}
    return details


def _with_followers(description: RobotDescription, rng: np.random.Generator) -> RobotDescription:
    """About one joint in three follows another joint of one number, wherever in the tree."""
    single = [j.name for j in description.joints if j.kind in ONE_NUMBER]
    rng.shuffle(single)
    drivers = single[: (2 * len(single) + 2) // 3]
    ties = {
        name: Mimic(str(rng.choice(drivers)), *map(float, rng.uniform(-1.5, 1.5, 2)))
        for name in single[len(drivers) :]
    }
    joints = tuple(replace(j, mimic=ties.get(j.name)) for j in description.joints)
    return replace(description, joints=joints)


def _on_free_base(description: RobotDescription, rng: np.random.Generator) -> RobotDescription:
    """The robot flies; its base gets a body, with nothing else to carry it."""
    first, *rest = description.links
    return edit.with_free_base(
        replace(description, links=(replace(first, inertia=_body(rng)), *rest))
    )


def _finish(
    description: RobotDescription, mimic: bool, base: str, rng: np.random.Generator
) -> RobotDescription:
    if mimic:
        description = _with_followers(description, rng)
    return _on_free_base(description, rng) if base == "free" else description


def _random_robot(
    rng: np.random.Generator,
    joints: int,
    *,
    armature: bool = True,
    kinds: Sequence[str] = KINDS,
    chain: bool = False,
    friction: bool = False,
    mimic: bool = False,
    base: str = "fixed",
) -> Any:
    """A description with branches, every kind of joint, and every kind of placement."""
    parents = [i - 1 if chain else int(rng.integers(max(-1, i - 3), i)) for i in range(joints)]
    moving = [kind for kind in kinds if kind != "fixed"]
    chosen = [str(rng.choice(moving if i == 0 else list(kinds))) for i in range(joints)]
    places = [str(rng.choice(PLACES)) for _ in range(joints)]
    description = _describe(parents, chosen, places, armature, rng, friction)
    return _finish(description, mimic, base, rng)


@st.composite
def _descriptions(
    draw: st.DrawFn,
    max_joints: int = 30,
    armature: bool = True,
    *,
    kinds: Sequence[str] = KINDS,
    friction: bool = False,
    mimic: bool = False,
    base: str = "fixed",
) -> Any:
    """Random trees whose structure shrinks; their real numbers come from a seed.

    ``mimic`` and ``friction`` allow followers and losses; ``base="any"`` draws fixed or free.
    """
    n = draw(st.integers(1, max_joints))
    parents = [draw(st.integers(-1, i - 1)) for i in range(n)]
    if draw(st.booleans()):  # a chain, or nearly: deep trees are rare among random parents
        parents = [max(parent, i - 1 - parent % 2) for i, parent in enumerate(parents)]
    moving = [kind for kind in kinds if kind != "fixed"]
    chosen = [draw(st.sampled_from(moving if i == 0 else list(kinds))) for i in range(n)]
    places = [draw(st.sampled_from(PLACES)) for _ in range(n)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rotors = armature and draw(st.booleans())
    description = _describe(parents, chosen, places, rotors, rng, friction and draw(st.booleans()))
    if base == "any":
        base = draw(st.sampled_from(["fixed", "free"]))
    return _finish(description, mimic and draw(st.booleans()), base, rng)


@pytest.fixture(scope="session")
def all_kinds() -> tuple[str, ...]:
    return ALL_KINDS


# -- states on the configuration manifold -------------------------------------------------------


def _random_states(
    robot: lw.Robot, rng: np.random.Generator, states: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Configurations (unit quaternions), rates, and accelerations or torques."""
    qd, u = rng.uniform(-3, 3, (2, states, robot.nv))
    return robot.random_q(rng, size=states), qd, u


def _q_rate(robot: lw.Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """``dq/dt`` at rates v (states, nv): half the product of quaternions, and turned rates."""
    out = np.zeros((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), robot.nq), q.dtype)
    for link in robot.tree.links:
        if link.follows is not None:
            continue
        a, b = link.q_index, link.v_index
        if link.kind not in ("spherical", "free"):
            out[..., a : a + link.joint.nq] = v[..., b : b + link.joint.nv]
            continue
        w, u = q[..., a : a + 1], q[..., a + 1 : a + 4]
        turn = v[..., b : b + 3]
        out[..., a : a + 1] = -0.5 * (u * turn).sum(axis=-1, keepdims=True)
        out[..., a + 1 : a + 4] = 0.5 * (w * turn + np.cross(u, turn))
        if link.kind == "free":
            push = v[..., b + 3 : b + 6]
            twice = 2.0 * np.cross(u, push)
            out[..., a + 4 : a + 7] = push + w * twice + np.cross(u, twice)
    return out


@pytest.fixture(scope="session")
def random_states() -> Callable[..., tuple[np.ndarray, ...]]:
    return _random_states


@pytest.fixture(scope="session")
def q_rate() -> Callable[..., np.ndarray]:
    return _q_rate


@pytest.fixture(scope="session")
def random_robot() -> Callable[..., RobotDescription]:
    return _random_robot


@pytest.fixture(scope="session")
def descriptions() -> Callable[..., st.SearchStrategy[RobotDescription]]:
    return _descriptions


# -- running equations uncompiled ---------------------------------------------------------------


def _evaluate(
    robot: lw.Robot,
    function: str,
    *values: Any,
    method: str = "auto",
    frame: str | None = None,
    axes: str = "base",
    f_ext: dict[str, Any] | None = None,
    regrouped: bool = True,
) -> np.ndarray:
    """The equations of a function over a batch: values (states, n), any real or complex dtype."""
    f_ext = f_ext or {}
    task = robot._calls.tasks.task(Key(function, method, frame, axes, tuple(f_ext)))
    if not regrouped:
        task = replace(task, algorithm=replace(task.algorithm, regrouped=False))
    columns = [list(np.asarray(v).T) for v in (*values, *f_ext.values())]
    entries = list(flatten(evaluate_task(task, robot.tree, *columns)))
    states = np.asarray(values[0]).shape[:1]
    rows = np.stack([np.broadcast_to(x, states) for x in entries], axis=-1)
    return rows.reshape(*states, *task.algorithm.output_shape(robot.tree))


def _interpreted(
    robot: lw.Robot, function: str, method: str, frame: str | None, values: Sequence[np.ndarray]
) -> np.ndarray:
    """A traced program run by the reference interpreter over a batch, in the values' dtype."""
    program = _program(robot, function, method, frame)
    inputs = {p.name: v for p, v in zip(program.inputs, values, strict=True)}
    return interpret(program, inputs)["result"]


@lru_cache(maxsize=4)  # of one robot in one number type after another
def _program(robot: lw.Robot, function: str, method: str, frame: str | None) -> Program:
    return trace(robot._calls.tasks.task(Key(function, method, frame)), robot.tree)


@pytest.fixture(scope="session")
def interpreted() -> Callable[..., np.ndarray]:
    return _interpreted


@pytest.fixture(scope="session")
def evaluate() -> Callable[..., np.ndarray]:
    return _evaluate
