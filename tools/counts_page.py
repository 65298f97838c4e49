"""The page docs/counts.md: what papers claim, and our counts beside it.

python tools/counts_page.py
"""

from __future__ import annotations

from collections.abc import Sequence

from pages import DOCS

from linkwise.study.claims import Claim
from linkwise.study.claims_table import cell
from linkwise.study.counts import OURS, Row, compare

_HEAD = """# Operation counts

Made by `python tools/counts_page.py`; a test holds the page to it.

What the five papers claim an algorithm costs on a general arm of n revolute joints, and what ours
costs: multiplications / additions of traced programs on arms without accidental zeros
(`linkwise.study.generic`). Constants are folded in ours; RNEA, CRBA, `mixed`, the symbols and
conjugate gradients use regrouped links. Signs, sines and cosines are counted by neither side, and
divisions only where a row says so; no program has square roots. *Corrected* is the claim as the
paper's own steps add up, where that differs. The last line is all operations of ours over all of
the (corrected) claim.
"""

_TAIL = """## How ours come below

- **Conjugate gradients.** The paper weighs every link in each iteration. Here the momentum of what
  a joint moves, per unit rate, is formed once, by composite bodies; a product with M is then two
  running sums: `(M p)_j = S_j · Σ_{i ≥ j} F_i p_i + F_j · Σ_{i < j} S_i p_i`. Ours still pays for
  a start other than zero and for the true residual at the end, which the paper's count leaves out.
- **Mass matrix.** `mixed` sums composite bodies in link axes, where a momentum is a column and
  costs nothing, and forms entries in one fixed frame, where each is two inner products.
- **Symbols.** What the flux of a body makes of a motion depends on how that turns and on nothing
  else, so that a symbol is one inner product of three numbers, not of six.
- **I\\* and P\\*.** The third term is skew in its first two indices, the second follows from it
  where they meet the outermost joint, and two sums serve all six orders of three joints.
- **The rest.** Link frames chosen for zeros, turns as plane rotations, regrouped inertias, and no
  operation on a constant (`ARCHITECTURE.md`).

The five papers quote no count of ABA; that row is the one usually cited from Featherstone's book
of 1987. Cheaper variants are published (McMillan and Orin 1995, by successive axial screws); ours
keeps every entry of a turned inertia a sum of products, which costs more and keeps digits on long
chains.

`linkwise ops ROBOT` counts all methods of a robot, `linkwise ops --generic N` those of a general
arm, square roots and sines and cosines included.
"""


PAGE = DOCS / "counts.md"


def page(rows: Sequence[Row]) -> str:
    """The page, from rows of every claim at every length."""
    above = [row for row in rows if not row.holds]
    parts = [_HEAD, _summary(above)]
    for claim in dict.fromkeys(row.claim for row in rows):
        parts.append(_section(claim, [row for row in rows if row.claim is claim]))
    return "\n".join([*parts, _TAIL])


def _summary(above: Sequence[Row]) -> str:
    if not above:
        return "**Ours is at or below the corrected claim, in both, in every row.**\n"
    names = ", ".join(f"{row.claim.name} (n = {row.n})" for row in above)
    return f"Ours is at or below the corrected claim, in both, in every row but: {names}.\n"


def _section(claim: Claim, rows: Sequence[Row]) -> str:
    lines = [f"## {claim.name}\n", f"{claim.source}: {claim.printed}."]
    if claim.corrected is not None:
        lines.append(f"Corrected: {claim.corrected}; {claim.why_corrected}.")
    lines += [f"Includes: {claim.includes}. Ours: {OURS[claim.ours].words}."]
    text = "\n".join(lines).replace("*", "\\*")
    table = [
        _line("", *(f"n = {row.n}" for row in rows)),
        "|---|" + "--:|" * len(rows),
        _line("printed", *(cell(row.printed) for row in rows)),
        _line("corrected", *(cell(row.corrected) for row in rows)),
        _line("ours", *(cell(row.ours) for row in rows)),
        _line("ours / claim", *(f"{row.ratio:.2f}" for row in rows)),
    ]
    if claim.corrected is None:
        del table[3]
    why = [] if all(row.holds for row in rows) else ["", f"Above because {claim.exception}."]
    return "\n".join([text, "", *table, *why, ""])


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(list(compare())))
