"""The tables of operations in docs/papers/, counted anew.

    python tools/paper_counts.py

A table stands between ``<!-- counts: NAME -->`` and the next empty line; its head stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from pages import DOCS, bundled

import linkwise as lw
from linkwise.study.claims import CLAIMS
from linkwise.study.generic import generic_chain
from linkwise.trace.program import OperationCount

PAGES = DOCS / "papers"
LINKWISE_LIMIT = 14  # joints beyond which the sum over links takes minutes to trace
Row = list[str]


@cache
def robot(name: str) -> lw.Robot:
    """A bundled robot, or ``n = 7``: a general chain."""
    return lw.Robot(generic_chain(int(name[4:]))) if name.startswith("n = ") else bundled(name)


def count(name: str, function: str, method: str, frame: bool = False) -> OperationCount:
    """Operations of a robot, at its last frame if it takes one."""
    at = robot(name).frame_names[-1] if frame else None
    return robot(name).operation_count(function, method, frame=at)


def full(name: str, function: str, method: str, frame: bool = False) -> str:
    """Multiplications, additions and divisions."""
    c = count(name, function, method, frame)
    return f"{c.multiplications} / {c.additions} / {c.divisions}"


def short(name: str, function: str, method: str) -> str:
    """Multiplications and additions."""
    c = count(name, function, method)
    return f"{c.multiplications} / {c.additions}"


FD, OI, OII = "forward_dynamics", "operational_inertia", "operational_inertia_inverse"
SOME = ("puma560", "iiwa14", "n = 7", "n = 14", "n = 30")


def operators() -> Iterator[Row]:
    """Spatial operators: FD1, FD3, FD4 and CRBA."""
    for name in ("puma560", "iiwa14", *(f"n = {n}" for n in (6, 7, 13, 14, 30))):
        yield [name, *(full(name, FD, m) for m in ("fd1", "fd3", "aba", "crba"))]


def schur_dynamics() -> Iterator[Row]:
    """Schur complements beside ABA."""
    for name in SOME:
        yield [name, *(full(name, FD, m) for m in ("schur", "schur-bcr", "aba"))]


def schur_inertia() -> Iterator[Row]:
    """Operational inertia by all methods."""
    for name in SOME:
        methods = ("crba", "recursive", "schur", "schur-direct")
        yield [name, *(full(name, OI, m, True) for m in methods)]


def schur_both() -> Iterator[Row]:
    """Accelerations and Λ⁻¹ together."""
    names = SOME[1:]
    both = [count(n, "dynamics_and_inverse", "schur", True).total for n in names]
    apart = [count(n, FD, "schur").total + count(n, OII, "schur", True).total for n in names]
    others = [count(n, FD, "aba").total + count(n, OII, "recursive", True).total for n in names]
    yield ["schur, one factorization", *map(str, both)]
    yield ["schur, one after another", *map(str, apart)]
    yield ['ABA and `"recursive"`, one after another', *map(str, others)]


def kic() -> Iterator[Row]:
    """Kang's arrays and what takes their place."""
    claim = next(c for c in CLAIMS if "P*" in c.name)
    for n in (6, 7, 13, 14, 30):
        name = f"n = {n}"
        per_link = short(name, "inertial_power", "per-link") if n <= LINKWISE_LIMIT else "-"
        m, a = claim.best.at(n)
        yield [
            str(n), f"{m:.0f} / {a:.0f}", short(name, "inertial_power", "augmented"), per_link,
            short(name, "christoffel", "composite"), short(name, "coriolis_matrix", "composite"),
            short(name, "coriolis_matrix", "mixed"), short(name, "mass_matrix", "crba"),
            short(name, "mass_matrix", "mixed"),
        ]  # fmt: skip


TABLES: dict[str, Callable[[], Iterator[Row]]] = {
    "operators": operators,
    "schur dynamics": schur_dynamics,
    "schur inertia": schur_inertia,
    "schur both": schur_both,
    "kic": kic,
}


def renewed(text: str) -> str:
    """A page with its tables counted anew."""

    def table(found: re.Match[str]) -> str:
        lines = [f"| {' | '.join(row)} |\n" for row in TABLES[found["name"]]()]
        return found["head"] + "".join(lines)

    pattern = r"(?P<head><!-- counts: (?P<name>[^>]+) -->\n(?:\|.*\n){2})(?:\|.*\n)*"
    return re.sub(pattern, table, text)


def main() -> None:
    """Rewrite every page that has such a table."""
    for path in sorted(PAGES.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if "<!-- counts: " in text:
            print(path.name, flush=True)
            path.write_text(renewed(text), encoding="utf-8")


if __name__ == "__main__":
    main()
