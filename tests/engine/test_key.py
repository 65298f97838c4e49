"""The key of a kernel in the cache: everything that its code depends on, and nothing else.

Nothing compiles here: the backend and the cache are stand-ins that write down what they are asked.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.backends.base import BATCH, ONE, USUAL
from linkwise.backends.llvm import target as llvm_target
from linkwise.backends.llvm.target import Target
from linkwise.engine import kernels
from linkwise.engine.kernels import Kernels
from linkwise.model.parameters import Parameter
from linkwise.model.tree import Tree
from linkwise.trace.guard import guard
from linkwise.trace.program import Program
from linkwise.trace.schedule import alone, together
from linkwise.trace.tracer import Task, trace

GRAVITY, INERTIA = Parameter("gravity"), Parameter("inertia")
LINK = {"a": 0.4, "mass": 2.0, "com": (-0.2, 0.0, 0.0), "inertia": (0.01, 0.02, 0.03)}


@cache
def tree(gravity: float = -9.81) -> Tree:
    return lw.from_dh([LINK] * 2, gravity=(0.0, 0.0, gravity)).tree


class Shelf:
    """A cache in memory."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        return self.entries.get(key)

    def put(self, key: str, code: bytes) -> None:
        self.entries[key] = code


class Machine:
    """A backend that compiles nothing."""

    name, identity, effort = "machine", "a machine", USUAL

    def ordered(self, program: Program, dtype: str, form: str) -> Program:
        return alone(program) if form == ONE else together(program)

    def load(self, code: bytes, signature: Any, dtype: str, form: str) -> tuple[Any, ...]:
        return code, signature, dtype, form


def made(own: Tree, name: str, task: Task, dtype: str, form: str) -> Any:
    """The kernel of a task, of a robot that has none in memory."""
    kernels_of = Kernels(own, name)
    return kernels_of.kernel(kernels_of.equations(task), dtype, form)


class Workshop:
    """Kernels of stand-ins; counts what is built."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.shelf: Shelf | None = Shelf()
        self.machine, self.built = Machine(), 0
        self.sources: str | None = "sources"
        patch.setattr(kernels, "default_cache", lambda: self.shelf)
        patch.setattr(kernels, "cpu", lambda: self.machine)
        patch.setattr(kernels, "source_digest", self.digest)
        patch.setattr(kernels, "built", self.build)

    def digest(self) -> str | None:
        return self.sources

    def build(self, backend: Any, program: Program, dtype: str, form: str, name: str) -> bytes:
        self.built += 1
        return f"code {self.built}".encode()

    def key(self, task: Task, dtype: str = "float64", form: str = BATCH,
            of: Tree | None = None, name: str = "arm") -> str:  # fmt: skip
        """The key under which a kernel is kept; it is found there the second time."""
        assert self.shelf is not None
        self.shelf.entries.clear()
        first = made(of or tree(), name, task, dtype, form)
        count = self.built
        again = made(of or tree(), name, task, dtype, form)
        assert first == again and self.built == count, "not found again"
        (key,) = self.shelf.entries
        return key


@pytest.fixture
def workshop(monkeypatch: pytest.MonkeyPatch) -> Workshop:
    return Workshop(monkeypatch)


FRAMES = tuple(dict.fromkeys(tree().frames.values()))  # some have two names
OTHERWISE: dict[str, Any] = {
    "algorithm": FUNCTIONS["gravity_torque"]["rnea"],
    "frame": FRAMES[-1],
    "axes": "body",
    "external": FRAMES[-2:],
    "status": True,
    "damped": True,
    "parameters": (Parameter("gravity"),),
}


def test_every_field_of_a_task_is_in_the_key(workshop: Workshop) -> None:
    algorithm = FUNCTIONS["bias"]["rnea"]
    fields = [field.name for field in dataclasses.fields(Task)]
    fields.remove("rolled")  # such kernels have their text for a key
    assert set(OTHERWISE) == set(fields), "a new field of a task needs a value here"
    plain = Task(algorithm)
    keys = {"plain": workshop.key(plain)}
    for name in fields:
        task = dataclasses.replace(plain, **{name: OTHERWISE[name]})
        keys[name] = _key_without_tracing(workshop, task)
    assert len(set(keys.values())) == len(keys), keys


def _key_without_tracing(workshop: Workshop, task: Task) -> str:
    """Also of tasks with options that their driver does not take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernels, "ready", lambda self, task, form, effort: None)
        return workshop.key(task)


def test_values_of_one_field_differ_too(workshop: Workshop) -> None:
    bias = FUNCTIONS["bias"]["rnea"]
    tasks = [
        *(Task(algorithm) for methods in FUNCTIONS.values() for algorithm in methods.values()),
        *(Task(bias, frame) for frame in FRAMES),
        *(Task(bias, external=(frame,)) for frame in FRAMES),
        Task(bias, external=FRAMES),
        Task(bias, external=FRAMES[::-1]),
        *(Task(bias, parameters=p) for p in ((GRAVITY,), (INERTIA,), (GRAVITY, INERTIA))),
        *(Task(bias, parameters=(Parameter("payload", frame),)) for frame in FRAMES),
    ]
    keys = [_key_without_tracing(workshop, task) for task in tasks]
    assert len(set(keys)) == len(keys)


def test_number_type_form_tree_machine_and_sources_are_in_the_key(workshop: Workshop) -> None:
    task = Task(FUNCTIONS["bias"]["rnea"])
    keys = [workshop.key(task), workshop.key(task, "float32"), workshop.key(task, form=ONE)]
    keys.append(workshop.key(task, of=tree(-1.62)))
    for name in ("name", "identity"):
        setattr(workshop.machine, name, "another")
        keys.append(workshop.key(task))
    workshop.sources = "edited"
    keys.append(workshop.key(task))
    assert len(set(keys)) == len(keys)
    assert workshop.key(task, name="another name") == keys[-1]
    assert all(len(key) == 64 and set(key) <= set("0123456789abcdef") for key in keys)


def test_frames_of_joints_are_in_the_key(workshop: Workshop) -> None:
    """Links that differ only in where a file has their frames have other joint wrenches."""

    def slide(x: float) -> Tree:
        b = lw.Builder("slide").link("a", mass=1.0, com=(0.5 - x, 0, 0), inertia=(0.1, 0.1, 0.1))
        return b.joint("j", "prismatic", parent="base", child="a", xyz=(x, 0, 0)).build().tree

    task = Task(FUNCTIONS["joint_wrenches"]["rnea"])
    assert workshop.key(task, of=slide(0.0)) != workshop.key(task, of=slide(0.25))


def test_a_kernel_is_loaded_for_what_was_asked(workshop: Workshop) -> None:
    task = Task(FUNCTIONS["bias"]["rnea"])
    own = Kernels(tree(), "arm")
    kernel = own.kernel(own.equations(task), "float32", ONE)
    assert kernel == (b"code 1", task.signature(tree()), "float32", ONE)
    assert own.kernel(own.equations(task), "float32", ONE) is kernel, "from memory"


@pytest.mark.parametrize("lost", ["shelf", "sources"])
def test_without_a_folder_or_an_identity_nothing_is_kept(workshop: Workshop, lost: str) -> None:
    shelf = workshop.shelf
    setattr(workshop, lost, None)
    task = Task(FUNCTIONS["bias"]["rnea"])
    for count in (1, 2):
        made(tree(), "arm", task, "float64", BATCH)
        assert workshop.built == count
    assert shelf is not None and not shelf.entries


def test_what_is_built_is_guarded_and_in_the_order_of_its_form(workshop: Workshop) -> None:
    task = Task(FUNCTIONS["forward_dynamics"]["crba"])

    def ops(program: Program) -> list[str]:
        return [node.op for node in program.nodes()]

    seen: list[Program] = []
    workshop.build = lambda backend, program, *_: seen.append(program) or b""  # type: ignore
    kernels.built = workshop.build  # undone with the workshop's own
    for form in (BATCH, ONE):
        made(tree(), "arm", task, "float64", form)
    batch, one = map(ops, seen)
    assert batch == ops(guard(together(trace(task, tree()))))
    assert one == ops(guard(alone(trace(task, tree()))))
    assert one != batch


# -- the machine ---------------------------------------------------------------------------------

HOST = Target("triple", "cpu", "features", 32, True, "versions")
MACHINES: dict[str, Callable[[], Target]] = {
    field.name: lambda name=field.name: dataclasses.replace(
        HOST, **{name: {int: 16, bool: False}.get(type(getattr(HOST, name)), "other")}
    )
    for field in dataclasses.fields(Target)
}  # fmt: skip


def test_every_field_of_a_target_is_in_its_identity() -> None:
    identities = [HOST.identity, *(make().identity for make in MACHINES.values())]
    assert len(set(identities)) == len(identities)


@pytest.mark.parametrize("option", llvm_target.CODE)
def test_how_code_is_placed_is_in_the_identity(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = HOST.identity
    monkeypatch.setitem(llvm_target.CODE, option, "other")
    assert HOST.identity != before


# -- the table of methods ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "said"),
    [("external", "takes_external"), ("frame", "takes_frame"), ("axes", "takes_axes"),
     ("damping", "takes_damping"), ("limit", "iterates")],
)  # fmt: skip
def test_methods_take_the_options_that_the_table_says(option: str, said: str) -> None:
    for algorithm in (a for methods in FUNCTIONS.values() for a in methods.values()):
        taken = option in inspect.signature(algorithm.driver).parameters
        assert taken == getattr(algorithm, said), f"{algorithm.function}[{algorithm.method}]"
