"""Trees in which pieces of a chain are joined: CUDA C, and how it is started.

A block joins neighbours, level by level, until one piece is left of them, before the next kernel
takes what all blocks have left. Levels lie one after another, each half as long as the one before,
rounded up; a piece without a partner goes up as it is.

Near the top there are few pairs, and a level takes as long as one pair does. So maps are copied to
shared memory before they are read, where each begins an odd number of places after the one before,
so that threads of a warp, a pair each, meet different banks. Inward, several warps join the same
pairs, each its own part of the result: what the parts need alike is computed by all, and still
every warp has half of the operations to do, and half of the numbers to keep. Where there are many
pairs one warp does all of it: there are warps enough then, and code of several parts would not fit
in the cache. Outward, one warp has all of it too, because the shares of a pair follow from each
other; what it reads next is on its way meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from linkwise.backends.cstyle.render import comment, state_function
from linkwise.backends.cuda.driver import Function, Start
from linkwise.backends.cuda.render import DIALECTS, PRELUDE, SHARED
from linkwise.trace.expr import Expr
from linkwise.trace.program import Block, Output, Program

WARP = 32
PARTS, LONG = 3, 256  # warps that join the same pairs, where that takes so many operations
TREE = "/* TREE */"  # in the text of every such kernel

HEAD = """\
/* TREE */
#define PAIRS {pairs}
#define SIZE {size}
#define PITCH (SIZE | 1)
#define PARTS {parts}
#define THREADS (PARTS * WARP)

static __forceinline__ int least(long long a, int b) {{ return a < b ? (int)a : b; }}

/* send maps to shared memory, a warp each */
static __forceinline__ void fetch({T}* to, const {T}* from, int count, int part, int lane)
{{
    to += part * PITCH + lane;
    from += part * SIZE + lane;
    for (int i = part; i < count; i += PARTS, to += PARTS * PITCH, from += PARTS * SIZE)
#pragma unroll
        for (int e = 0; e < SIZE; e += WARP)
            if (e + lane < SIZE) COPY(to + e, from + e);
}}

extern "C" __global__ void BOUNDS
linkwise(const long long pieces, const long long first, const long long levels, {arguments})
{{
    const int part = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    long long n = pieces, at = 0; /* of a level: its pieces, and where the first of them is */
    for (int k = 0; k < first; ++k) {{ at += n; n = (n + 1) / 2; }}
"""

INWARD = """\
    __shared__ {T} near[2 * PAIRS * PITCH];
    long long own = blockIdx.x * 2LL * PAIRS;
    int count = least(n - own, 2 * PAIRS);
    fetch(near, maps + (at + own) * SIZE, count, part, lane);
    COPIED;
    __syncthreads();
    for (int k = 0; k < levels; ++k) {{
        const {T}* const inner = near + 2 * lane * PITCH;
        {T} made[{most}];
        if (2 * lane + 1 < count) switch (part) {{
{joins}
        }}
        else if (2 * lane < count) switch (part) {{
{copies}
        }}
        __syncthreads();
        if (2 * lane < count) switch (part) {{
{stores}
        }}
        __syncthreads();
        at += n;
        n = (n + 1) / 2;
        own /= 2;
        count = (count + 1) / 2;
        {T}* const to = maps + (at + own) * SIZE;
        for (int i = part; i < count; i += PARTS)
#pragma unroll
            for (int e = 0; e < SIZE; e += WARP)
                if (e + lane < SIZE) to[i * SIZE + e + lane] = near[i * PITCH + e + lane];
    }}
}}
"""

# Levels by turns have the first half of the room and the quarter behind it, so that a level can be
# fetched while the one above is worked on; but the lowest, and longest, has all of it.
# What the chain is given is NaN for all, where one of the maps is.
OUTWARD = """\
    __shared__ {T} near[2 * PAIRS * PITCH], shares[3 * PAIRS * {taken}];
#define NEAR(k) (near + ((k) & 1 || !(k) ? 0 : PAIRS * PITCH))
#define SHARES(k) (shares + ((k) & 1 ? 2 * PAIRS * {taken} : 0))
#define FIRST(k) ((long long)blockIdx.x << (levels - (k)))
#define LEVEL(k) ((pieces + (1LL << (first + (k))) - 1) >> (first + (k)))
#define COUNT(k) least(LEVEL(k) - FIRST(k), 1 << (levels - (k)))
    const long long lowest = at;
    for (int k = 0; k < levels; ++k) {{ at += n; n = (n + 1) / 2; }}
    long long rows = at + n;
    for (long long k = n; k > 1; rows += k) k = (k + 1) / 2;
    const {T} broken = maps[(rows - 1) * SIZE] * 0;
    for (int e = lane; e < {taken}; e += WARP)
        SHARES(levels)[e] = n > 1 ? given[(at + blockIdx.x) * {taken} + e] : chain[e] + broken;
    if (levels > 1) {{
        at -= LEVEL(levels - 1);
        fetch(NEAR(levels - 1), maps + (at + FIRST(levels - 1)) * SIZE, COUNT(levels - 1), 0, lane);
    }}
    for (int k = (int)levels - 1; k >= 0; --k) {{
        if (k == 0) fetch(near, maps + (lowest + FIRST(0)) * SIZE, COUNT(0), 0, lane);
        COPIED;
        __syncwarp();
        if (k > 1) {{
            at -= LEVEL(k - 1);
            fetch(NEAR(k - 1), maps + (at + FIRST(k - 1)) * SIZE, COUNT(k - 1), 0, lane);
        }}
        const int count = COUNT(k);
        const {T}* const inner = NEAR(k) + 2 * lane * PITCH;
        const {T}* const source = SHARES(k + 1) + lane * {taken};
        {T}* const target = SHARES(k) + 2 * lane * {taken};
        if (2 * lane + 1 < count)
            state(inner, inner + PITCH, source, target);
        else if (2 * lane < count)
            for (int e = 0; e < {taken}; ++e) target[e] = source[e];
        __syncwarp();
    }}
    for (int e = lane; e < COUNT(0) * {taken}; e += WARP)
        given[(lowest + FIRST(0)) * {taken} + e] = shares[e];
}}
"""


def pairs_of_block(program: Program, dtype: str) -> int:
    """Pairs that a block has at its lowest level: a lane each, as many as there is room for."""
    size, *_, last = (port.size for port in program.inputs)
    outward, number = len(program.inputs) > 2, DIALECTS[dtype].bits // 8
    room = (2 * (size | 1) + (3 * last if outward else 0)) * number
    pairs = WARP
    while pairs * room > SHARED:
        pairs //= 2
    return pairs


def render_tree(program: Program, dtype: str) -> list[str]:
    """CUDA source of the tree whose pairs a program joins, or gives their shares; one for levels
    with few pairs, and perhaps another for levels with many.
    """
    return [_rendered(program, dtype, count) for count in _ways(program)]


def _ways(program: Program) -> list[int]:
    """How many warps join the same pairs, where there are few and where there are many."""
    (block,) = program.regions
    assert isinstance(block, Block)
    return [PARTS, 1] if is_inward(program) and len(block.nodes) > LONG else [1]


def _rendered(program: Program, dtype: str, count: int) -> str:
    dialect = replace(DIALECTS[dtype], reciprocal="reciprocal")
    T, sizes, inward = dialect.number, [port.size for port in program.inputs], is_inward(program)
    parts = _parts(program, count) if inward else [program]
    names = [f"part{k}" for k in range(len(parts))] if inward else ["state"]
    functions = [
        state_function(part, dialect, "static __forceinline__ void", name)
        for part, name in zip(parts, names, strict=True)
    ]
    pairs = pairs_of_block(program, dtype)
    words = {"T": T, "size": sizes[0], "taken": sizes[-1], "pairs": pairs, "parts": len(parts)}
    if inward:
        words |= _switches(parts, names)
    arguments = f"{T}* maps" if inward else f"const {T}* maps, const {T}* chain, {T}* given"
    body = (HEAD + (INWARD if inward else OUTWARD)).format(arguments=arguments, **words)
    return f"{comment(f'{program.name}: a tree of pairs')}\n{PRELUDE}{''.join(functions)}{body}"


def is_inward(program: Program) -> bool:
    """Whether a program joins pieces, instead of giving them their shares."""
    return len(program.inputs) == 2


def _switches(parts: Sequence[Program], names: Sequence[str]) -> dict[str, str | int]:
    """What each warp does with its part of a piece."""
    counts = [part.outputs[0].slot.size for part in parts]
    firsts = [sum(counts[:k]) for k in range(len(counts))]
    every = list(zip(range(len(parts)), names, firsts, counts, strict=True))
    moved = "        case {}: for (int e = 0; e < {}; ++e) {}; break;"
    return {
        "most": max(counts),
        "joins": "\n".join(
            f"        case {k}: {name}(inner, inner + PITCH, made); break;" for k, name, *_ in every
        ),
        "copies": "\n".join(
            moved.format(k, c, f"made[e] = inner[{f} + e]") for k, _, f, c in every
        ),
        "stores": "\n".join(
            moved.format(k, c, f"near[lane * PITCH + {f} + e] = made[e]") for k, _, f, c in every
        ),
    }  # fmt: skip


def _parts(program: Program, count: int) -> list[Program]:
    """A program as several that compute a part of its result each, none much longer than others."""
    (block,) = program.regions
    assert isinstance(block, Block)
    needs: dict[int, int] = {}  # of a node: the nodes it is computed from, as bits
    for k, node in enumerate(block.nodes):
        needs[node.id] = 1 << k
        for argument in node.args:
            needs[node.id] |= needs.get(argument.id, 0)
    values = program.outputs[0].values
    cones = [needs.get(value.id, 0) for value in values]
    return [
        _part(program, block, values[i:j], cones[i:j])
        for i, j in pairwise([0, *_cuts(cones, count), len(values)])
    ]


def _cuts(cones: Sequence[int], parts: int) -> list[int]:
    """Where results are cut, so that the longest part is as short as can be."""
    count = len(cones)
    best: dict[int, tuple[int, list[int]]] = {0: (0, [])}  # of so many results: longest part, cuts
    for _ in range(parts):
        found = dict(best)
        for start, (longest, cuts) in best.items():
            union = 0
            for end in range(start + 1, count + 1):
                union |= cones[end - 1]
                most = max(longest, union.bit_count())
                if end not in found or most < found[end][0]:
                    found[end] = most, [*cuts, start]
        best = found
    return best[count][1][1:]


def _part(program: Program, block: Block, values: Sequence[Expr], cones: Sequence[int]) -> Program:
    """The program of some results."""
    union = 0
    for cone in cones:
        union |= cone
    nodes = tuple(node for k, node in enumerate(block.nodes) if union >> k & 1)
    output = Output("result", (len(values),), tuple(values))
    return replace(program, regions=(Block(nodes),), outputs=(output,))


class CudaTree:
    """The kernels of one tree."""

    def __init__(
        self, functions: Sequence[Function], program: Program, dtype: str, multiprocessors: int
    ) -> None:
        self._few, self._many = functions[0], functions[-1]
        self._inward, self._pairs = is_inward(program), pairs_of_block(program, dtype)
        self._alone = multiprocessors  # blocks that have one to themselves

    def starts(self, pieces: int) -> list[Start]:
        """Start all levels, one after another; the pointers are the maps of all levels, and
        outward what the chain and what the pieces of all levels are given.
        """
        found, first, n, pointers = [], 0, pieces, 1 if self._inward else 3
        if pieces == 1 and not self._inward:
            found.append(self._few.prepare(1, (pieces, 0, 0, *[None] * pointers)))
        while n > 1:
            blocks, levels = -(-n // (2 * self._pairs)), 0
            while n > 1 and levels < self._pairs.bit_length():
                n, levels = (n + 1) // 2, levels + 1
            arguments: Sequence[int | None] = (pieces, first, levels, *[None] * pointers)
            function = self._few if blocks <= self._alone else self._many
            found.append(function.prepare(blocks, arguments))
            first += levels
        return found if self._inward else found[::-1]
