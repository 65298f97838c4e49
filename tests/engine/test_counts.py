"""Operation counts, exactly: a golden table of every method, and the claims of the papers.

    python tests/engine/test_counts.py      writes the table (golden_counts.json) anew

A count that rose is an algorithm that became dearer: argue it in the commit that writes the table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import CLOSED_FUNCTIONS, FUNCTIONS, GRASP_FUNCTIONS, Algorithm
from linkwise.bench.states import algorithms_of, frame_for
from linkwise.model.build import build
from linkwise.model.regroup import regroup
from linkwise.study.claims import CLAIMS, LENGTHS, formula
from linkwise.study.counts import OURS, PARTS, compare
from linkwise.study.generic import generic_chain
from linkwise.trace.program import OperationCount

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))  # also without pytest
from arms import iiwa14, puma560
from counts_page import PAGE, page
from every_joint import every_joint

TABLE = Path(__file__).with_name("golden_counts.json")
COMMAND = "python tests/engine/test_counts.py"
KINDS = ("multiplications", "additions", "divisions", "square_roots", "sincos")
Counts = dict[str, list[int]]


def four_bar() -> lw.Robot:
    """A planar linkage with one closed loop, held in three directions of which one is redundant."""
    b = lw.Builder("four-bar").link("ground")
    for name, length in (("crank", 0.2), ("coupler", 0.6), ("rocker", 0.5)):
        b = b.link(name, mass=length, com=(length / 2, 0, 0), inertia=(1e-4, 1e-2, 1e-2))
    b = b.joint("a", "continuous", parent="ground", child="crank")
    b = b.joint("b", "continuous", parent="crank", child="coupler", xyz=(0.2, 0, 0))
    b = b.joint("d", "continuous", parent="ground", child="rocker", xyz=(0.6, 0, 0))
    b = b.frame("end", "coupler", xyz=(0.6, 0, 0)).frame("pin", "rocker", xyz=(0.5, 0, 0))
    return b.build().close_loops(lw.Loop("end", "pin", [0, 0, 0, 1, 1, 1]), passive=["b", "d"])


def two_arms() -> lw.Grasp:
    """An arm of six joints that carries a box, and one of three that holds a point of it."""
    arm, other, there = lw.Robot(generic_chain(6)), lw.Robot(generic_chain(3)), np.eye(4)
    there[:3, 3] = (0.5, 0.3, 0.2)
    box = lw.RigidBody(2.0, (0.0, 0.1, 0.3), (0.06, 0.05, 0.02))
    tips = [x.frame_names[-1] for x in (arm, other)]
    contacts = [lw.Contact(0, tips[0]), lw.Contact(1, tips[1], "point", pose_in_object=there)]
    return lw.Grasp([arm, other], box, contacts, bases=[np.eye(4), there])


ROBOTS: dict[str, Callable[[], lw.Robot]] = {
    "general arm of 7": lambda: lw.Robot(generic_chain(7)),
    "general arm of 7, mixed": lambda: lw.Robot(generic_chain(7, kind="mixed")),
    "puma560": puma560,
    "iiwa14": iiwa14,
    "tree": every_joint,
    "four-bar": four_bar,
    "two arms": two_arms,
}


def methods_of(robot: lw.Robot) -> list[Algorithm]:
    """All of a tree; of a closed robot, those that trees have not."""
    found = algorithms_of(robot)
    if not robot.tree.is_closed:
        return found
    return [a for a in found if a is not FUNCTIONS.get(a.function, {}).get(a.method)]


def numbers(count: OperationCount) -> list[int]:
    return [getattr(count, kind) for kind in KINDS]


def counted(robot: lw.Robot, step: int = 1) -> Counts:
    """Every function and method, or each so many; and an iteration of those that iterate."""
    found: Counts = {}
    for algorithm in methods_of(robot)[::step]:
        function, method = algorithm.function, algorithm.method
        count = robot.operation_count(function, method, frame=frame_for(robot, algorithm))
        found[f"{function}[{method}]"] = numbers(count)
        if count.iteration is not None:
            found[f"{function}[{method}], an iteration"] = numbers(count.iteration)
    return found


def golden() -> dict[str, Counts]:
    table: dict[str, Counts] = json.loads(TABLE.read_text())
    return table


def write() -> None:
    rows = {name: counted(make()) for name, make in ROBOTS.items()}
    lines = [
        f"  {json.dumps(name)}: {{\n"
        + ",\n".join(f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in counts.items())
        + "\n  }"
        for name, counts in rows.items()
    ]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def differences(before: Counts, now: Counts) -> list[str]:
    """What changed, in words; what became dearer first."""
    dearer, rest = [], []
    for name in sorted(before.keys() | now.keys()):
        if name not in now:
            rest.append(f"{name} is gone; update the table with: {COMMAND}")
        elif name not in before:
            rest.append(f"{name} is not in the table; add it with: {COMMAND}")
        else:
            rows = zip(KINDS, before[name], now[name], strict=True)
            changes = [(kind, a, b) for kind, a, b in rows if a != b]
            text = ", ".join(f"{kind.replace('_', ' ')} {a} -> {b}" for kind, a, b in changes)
            if any(b > a for _, a, b in changes):
                dearer.append(f"{name} became dearer: {text}")
            elif changes:
                rest.append(f"{name} became cheaper: {text}; update the table with: {COMMAND}")
    return dearer + rest


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=() if x in ("puma560", "four-bar") else pytest.mark.full)
        for x in ROBOTS
    ],
)
def test_no_algorithm_changes_its_cost_unnoticed(name: str) -> None:
    changed = differences(golden()[name], counted(ROBOTS[name]()))
    assert not changed, f"{name}:\n" + "\n".join(changed)


def test_every_third_algorithm_keeps_its_cost_on_every_joint_kind() -> None:
    """All in a full run: the test above."""
    now = counted(every_joint(), 3)
    changed = differences({row: golden()["tree"][row] for row in now}, now)
    assert not changed, "\n".join(changed)


def test_the_table_has_every_method_of_every_function() -> None:
    """Each on some robot at least."""
    known = {row.split(",")[0] for rows in golden().values() for row in rows}
    tables = (FUNCTIONS, CLOSED_FUNCTIONS, GRASP_FUNCTIONS[True])
    expected = {f"{f}[{m}]" for table in tables for f, methods in table.items() for m in methods}
    assert expected <= known


def test_a_change_is_told_in_words() -> None:
    before = {"f[a]": [1, 2, 0, 0, 0], "f[b]": [5, 5, 0, 0, 0], "f[c]": [1, 1, 1, 0, 0]}
    now = {"f[a]": [3, 1, 0, 0, 0], "f[b]": [4, 5, 0, 0, 0], "f[d]": [0, 0, 0, 0, 0]}
    assert differences(before, now) == [
        "f[a] became dearer: multiplications 1 -> 3, additions 2 -> 1",
        f"f[b] became cheaper: multiplications 5 -> 4; update the table with: {COMMAND}",
        f"f[c] is gone; update the table with: {COMMAND}",
        f"f[d] is not in the table; add it with: {COMMAND}",
    ]


# -- counts of loops ------------------------------------------------------------------------------


def test_an_iteration_is_counted_once_and_apart() -> None:
    count = lw.load("puma560").operation_count("forward_dynamics", "ccg")
    body = count.iteration
    assert body is not None and body.iteration is None
    assert count.iterated(1) == count
    assert count.iterated(5).multiplications == count.multiplications + 4 * body.multiplications
    assert count.iterated(5).divisions == count.divisions + 4 * body.divisions
    assert "in each iteration: " in str(count)


def test_without_a_loop_there_is_no_iteration() -> None:
    count = lw.load("puma560").operation_count("forward_dynamics", "aba")
    assert count.iteration is None
    assert count.iterated(9) is count
    assert count.total == count.multiplications + count.additions + count.divisions
    assert "0 square roots" in str(count)


# -- claims ---------------------------------------------------------------------------------------

TABLES = {  # as in the papers: multiplications, additions at n = 6, 7, 13, 14, 30
    "CCG, n iterations": [(2637, 2277), (3425, 2993), (10127, 9221), (11573, 10581),
                          (47493, 44853)],
    "diagonal of M": [(255, 250), (306, 300), (612, 600), (663, 650), (1479, 1450)],
    "PCG-DS, n iterations": [(2892, 2527), (3731, 3293), (10739, 9821), (12236, 11231),
                             (48972, 46303)],
    "GDAHJ": [(633, 639), (760, 766), (1648, 1633), (1817, 1795), (5337, 5067)],
    "CRBA": [(460, 395), (612, 510), (1944, 1452), (2236, 1651), (9628, 6467)],
    "I* and P*": [(1647, 1621), (2300, 2308.5), (9956, 10892.5), (12023, 13281), (94599, 112697)],
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_formulas_give_the_tables(name: str) -> None:
    claim = next(c for c in CLAIMS if c.name == name)
    assert [claim.best.at(n) for n in LENGTHS] == TABLES[name]


def test_a_formula_reads_as_printed() -> None:
    assert str(formula((3, "-1/2", 0), (1, -1))) == "(3n² - 1/2 n) m + (n - 1) a"
    assert str(formula((2,), (0,))) == "(2) m + (0) a"


def test_an_iteration_and_the_rest_make_the_whole_claim() -> None:
    """n iterations and step 1 and 2 of the paper: 4 n m + (n-1)(96 m + 63 a), 87 n m + 78 n a..."""
    one, whole = (next(c for c in CLAIMS if c.name.startswith("CCG, " + s)) for s in ("one", "n"))
    for n in LENGTHS:
        m, a = one.printed.at(n)
        set_up = 4 * n + 96 * (n - 1) + 87 * n - 21, 63 * (n - 1) + 78 * n - 24
        assert whole.printed.at(n) == (n * m + set_up[0], n * a + set_up[1])


# the page below has all lengths
@pytest.mark.parametrize("n", [6, 7, *(pytest.param(n, marks=pytest.mark.full) for n in (13, 14))])
def test_ours_are_at_or_below_every_claim(n: int) -> None:
    """Multiplications and additions each, but for rows that say why not."""
    for row in compare((n,)):
        if not row.claim.exception:
            assert row.holds, f"{row.claim.name}, n = {n}: {row.ours}, claimed {row.corrected}"


def test_what_is_explained_is_above() -> None:
    """An explanation goes when it is not needed any more."""
    excused = {claim.name for claim in CLAIMS if claim.exception}
    above = {row.claim.name for row in compare((6,)) if not row.holds} if excused else set()
    assert excused == above


def test_claims_name_what_they_meet() -> None:
    assert {claim.ours for claim in CLAIMS} == set(OURS)
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("lengths", [(6, 7), pytest.param(LENGTHS, marks=pytest.mark.full)])
def test_the_page_is_what_its_tool_makes(lengths: tuple[int, ...]) -> None:
    """All lengths, 30 too, in a full run, which also holds the claims there; else two."""
    made = page(list(compare(lengths)))
    for line, kept in zip(made.splitlines(), PAGE.read_text().splitlines(), strict=True):
        short = lengths != LENGTHS and line.startswith("|")  # columns of the first lengths only
        same = kept.startswith(line.removesuffix("|")) if short else kept == line
        assert same, "docs/counts.md: run python tools/counts_page.py"
    assert "in both, in every row.**" in made


def part(name: str, robot: lw.Robot, q: np.ndarray) -> Any:
    algorithm = PARTS[name]
    used = regroup(robot.tree) if algorithm.regrouped else robot.tree
    return algorithm.driver(used, q.tolist())


def test_parts_compute_what_their_names_say(assert_close: Any) -> None:
    """A cheap part that is wrong would prove nothing."""
    robot = lw.Robot(generic_chain(6, kind="mixed"))
    q = robot.random_q(seed=3)
    M, G = (np.array(x)[None] for x in part("M and symbols", robot, q))
    assert_close(M, robot.mass_matrix(q)[None])
    assert_close(G, robot.christoffel(q)[None])
    M, P = (np.array(x)[None] for x in part("I* and P*", robot, q))
    assert_close(M, robot.mass_matrix(q)[None])
    assert_close(P, robot.inertial_power(q)[None])
    blocks = np.array([b[0][0] for b in part("diagonal", robot, q)])
    assert_close(blocks[None], np.diag(robot.mass_matrix(q))[None])
    assert len(part("kinematics", robot, q)) == 6


def test_counts_of_general_arms_do_not_depend_on_their_numbers() -> None:
    """No accidental zeros, and a sign never keeps an expression from being shared."""
    trees = [build(generic_chain(5, seed)) for seed in range(5)]
    for name, ours in OURS.items():
        assert len({ours.counted(t) for t in trees}) == 1, name


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_claims_hold_for_other_arms(seed: int) -> None:
    assert all(row.holds or row.claim.exception for row in compare((6,), seed))


if __name__ == "__main__":
    write()
