"""Trees in which pieces of a chain are joined: CUDA C, and how it is started.

A warp joins 64 neighbours in six levels, 32 pairs, then 16 and so on, before the next kernel takes
what is left: a chain of a million links, in pieces of 64, needs three kernels inward and three
outward. Levels lie one after another, each half as long as the one before, rounded up; a piece
without a partner goes up as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.backends.cstyle.render import comment, state_function
from linkwise.backends.cuda.driver import Function, Start
from linkwise.backends.cuda.render import DIALECTS, PRELUDE
from linkwise.trace.program import Program

LEVELS = 6  # that a block takes
THREADS = 32  # of a block: one warp
TREE = "/* TREE */"  # in the text of every such kernel

# (n of level, its first row) of `first`, and then of each level that this kernel takes
HEAD = """\
/* TREE */
#define THREADS {threads}
extern "C" __global__ void BOUNDS
linkwise(const long long pieces, const long long first, const long long levels, {arguments})
{{
    long long n = pieces, at = 0;
    for (int k = 0; k < first; ++k) {{ at += n; n = (n + 1) / 2; }}
"""

INWARD = """\
    for (int k = 0; k < levels; ++k) {{
        const long long above = at + n, half = THREADS >> k, left = (n + 1) / 2;
        for (long long i = threadIdx.x; i < half; i += blockDim.x) {{
            const long long p = blockIdx.x * half + i;
            if (2 * p + 1 < n)
                state(maps + (at + 2 * p) * {size}, maps + (at + 2 * p + 1) * {size},
                      maps + (above + p) * {size});
            else if (p < left)
                for (int e = 0; e < {size}; ++e)
                    maps[(above + p) * {size} + e] = maps[(at + 2 * p) * {size} + e];
        }}
        __syncwarp();
        at = above;
        n = left;
    }}
}}
"""

# what the chain is given is NaN for all, where one of the maps is
OUTWARD = """\
    long long sizes[{most}], starts[{most}], rows = 1;
    for (long long k = pieces; k > 1; k = (k + 1) / 2) rows += k;
    const {T} broken = maps[(rows - 1) * {size}] * 0;
    {T} whole[{taken}];
    for (int e = 0; e < {taken}; ++e) whole[e] = chain[e] + broken;
    if (pieces == 1)
        for (int e = threadIdx.x; e < {taken}; e += blockDim.x) given[e] = whole[e];
    for (int k = 0; k < levels; ++k) {{
        sizes[k] = n; starts[k] = at;
        at += n; n = (n + 1) / 2;
    }}
    for (int k = (int)levels - 1; k >= 0; --k) {{
        const long long own = starts[k], above = own + sizes[k], half = THREADS >> k;
        for (long long i = threadIdx.x; i < half; i += blockDim.x) {{
            const long long p = blockIdx.x * half + i;
            const {T}* const source = sizes[k] <= 2 ? whole : given + (above + p) * {taken};
            if (2 * p + 1 < sizes[k])
                state(maps + (own + 2 * p) * {size}, maps + (own + 2 * p + 1) * {size}, source,
                      given + (own + 2 * p) * {taken});
            else if (2 * p < sizes[k])
                for (int e = 0; e < {taken}; ++e)
                    given[(own + 2 * p) * {taken} + e] = source[e];
        }}
        __syncwarp();
    }}
}}
"""


def render_tree(program: Program, dtype: str) -> str:
    """CUDA source of the tree whose pairs a program joins, or gives their shares."""
    dialect = DIALECTS[dtype]
    T, sizes = dialect.number, [port.size for port in program.inputs]
    state = state_function(program, dialect, "static __forceinline__ void", "state")
    words = {"T": T, "size": sizes[0], "taken": sizes[-1], "most": LEVELS, "threads": THREADS}
    inward = len(sizes) == 2
    arguments = f"{T}* maps" if inward else f"const {T}* maps, const {T}* chain, {T}* given"
    body = (HEAD + (INWARD if inward else OUTWARD)).format(arguments=arguments, **words)
    return f"{comment(f'{program.name}: a tree of pairs')}\n{PRELUDE}{state}{body}"


class CudaTree:
    """The kernels of one tree."""

    def __init__(self, function: Function, inward: bool) -> None:
        self._function, self._inward = function, inward

    def starts(self, pieces: int) -> list[Start]:
        """Start all levels, one after another; the pointers are the maps of all levels, and
        outward what the chain and what the pieces of all levels are given.
        """
        return starts(self._function, pieces, self._inward)


def starts(function: Function, pieces: int, inward: bool) -> list[Start]:
    """Kernels that take all levels, one after another, given their pointers."""
    found, first, n, pointers = [], 0, pieces, 1 if inward else 3
    if pieces == 1 and not inward:
        found.append(function.prepare(1, (pieces, 0, 0, *[None] * pointers)))
    while n > 1:
        blocks, left, levels = -(-n // (2 * THREADS)), n, 0
        while left > 1 and levels < LEVELS:
            left, levels = (left + 1) // 2, levels + 1
        arguments: Sequence[int | None] = (pieces, first, levels, *[None] * pointers)
        found.append(function.prepare(blocks, arguments))
        first, n = first + levels, left
    return found if inward else found[::-1]
