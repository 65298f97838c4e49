"""Trees in which pieces of a chain are joined: CUDA C, and how it is started.

A block joins neighbours, level by level, until one piece is left of them, before the next kernel
takes what all blocks have left. Levels lie one after another, each half as long as the one before,
rounded up; a piece without a partner goes up as it is.

Near the top there are few pairs, and a level takes as long as one pair does. So maps are copied to
shared memory before they are read, where each begins an odd number of places after the one before,
so that threads of a warp, a pair each, meet different banks. Inward, several warps join the same
pairs, each its own part of the result: what the parts need alike is computed by all, and still
every warp has half of the operations to do, and half of the numbers to keep. Where there are more
blocks, fewer warps do so: there are warps enough then, and code of several parts would not fit in
the caches.

Outward, the shares of a pair follow from each other, but not all of them from both pieces: of
forward dynamics, what comes after the inner piece needs the outer one alone, and how the link
before the outer piece accelerates then needs the inner one alone. So one warp finds the latter of a
level while one or two others find the former of the level below, and what they read next is on its
way meanwhile. Where there are many pairs, one warp does all of it, and takes less memory.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from linkwise.backends.cstyle.render import comment, state_function
from linkwise.backends.cuda.driver import Function, Start
from linkwise.backends.cuda.render import DIALECTS, PRELUDE, SHARED
from linkwise.trace.expr import Expr, Graph, reachable
from linkwise.trace.program import Block, Output, Port, Program

WARP = 32
LONG = 256  # operations of a pair, from which on several warps work on the same pairs:
WARPS = (3, 2, 1)  # in one block, in a block for each multiprocessor, and in more blocks than that
FOUND = "found"  # what the first of two warps has found of a pair's shares
TREE = "/* TREE */"  # in the text of every such kernel

HEAD = """\
/* TREE */
#define PAIRS {pairs}
#define SIZE {size}
#define PITCH (SIZE | 1)
#define PARTS {parts}
#define THREADS (PARTS * WARP)

static __forceinline__ int least(long long a, int b) {{ return a < b ? (int)a : b; }}

/* send maps, so many numbers apart, to shared memory; of several warps, each its own */
static __forceinline__ void
fetch({T}* to, const {T}* from, int apart, int count, int warp, int warps, int lane)
{{
    to += warp * PITCH + lane;
    from += warp * apart + lane;
    for (int i = warp; i < count; i += warps, to += warps * PITCH, from += warps * apart)
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
    fetch(near, maps + (at + own) * SIZE, SIZE, count, part, PARTS, lane);
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

# A level's maps are fetched while the level above is worked on, so that levels by turns have the
# first of two places, as long as the lowest needs it, or the second, half as long; unless EARLY
# is 0. Warps from LATE on are a level behind the others.
# What the chain is given is NaN for all, where one of the maps is.
OUTWARD = """\
#define EARLY {early}
#define LATE {late}
#define PLACE(k) (EARLY && (k) & 1 ? PAIRS * PITCH : 0)
#define OUTER(k) (near + PLACE(k))
#define INNER(k) (near + (2 + EARLY) * PAIRS / 2 * PITCH + PLACE(k))
#define SHARES(k) (shares + ((k) & 1 ? 2 * PAIRS * {taken} : 0))
#define FIRST(k) ((long long)blockIdx.x << (levels - (k)))
#define LEVEL(k) ((pieces + (1LL << (first + (k))) - 1) >> (first + (k)))
#define COUNT(k) least(LEVEL(k) - FIRST(k), 1 << (levels - (k)))
#define FETCH(to, piece, warp, warps) \\
    fetch(to, maps + (at + FIRST(next) + piece) * SIZE, 2 * SIZE, COUNT(next) / 2, \\
          warp, warps, lane)
    __shared__ {T} near[(2 + EARLY) * PAIRS * PITCH], shares[3 * PAIRS * {taken}];
    const long long lowest = at;
    for (int k = 0; k < levels; ++k) {{ at += n; n = (n + 1) / 2; }}
    long long rows = at + n;
    for (long long k = n; k > 1; rows += k) k = (k + 1) / 2;
    const {T} broken = maps[(rows - 1) * SIZE] * 0;
    for (int e = threadIdx.x; e < {taken}; e += THREADS)
        SHARES(levels)[e] = n > 1 ? given[(at + blockIdx.x) * {taken} + e] : chain[e] + broken;
    for (int step = (int)levels - 1 + EARLY; step >= LATE - PARTS; --step) {{
        const int k = step + (part >= LATE), next = k - EARLY;
        if (EARLY) COPIED;
        __syncthreads();
        if (next >= 0 && next < levels) {{
            at -= LEVEL(next);
            switch (part) {{
{fetches}
            }}
        }}
        if (!EARLY) {{ COPIED; __syncthreads(); }}
        if (k < 0 || k >= levels) continue;
        const int count = COUNT(k);
        const {T}* const inner = INNER(k) + lane * PITCH;
        const {T}* const outer = OUTER(k) + lane * PITCH;
        const {T}* const source = SHARES(k + 1) + lane * {taken};
        {T}* const target = SHARES(k) + 2 * lane * {taken};
        if (2 * lane + 1 < count) switch (part) {{
{joins}
        }}
        else if (2 * lane < count) switch (part) {{
{copies}
        }}
    }}
    __syncthreads();
    for (int e = threadIdx.x; e < COUNT(0) * {taken}; e += THREADS)
        given[(lowest + FIRST(0)) * {taken} + e] = shares[e];
}}
"""


def pairs_of_block(program: Program, dtype: str) -> int:
    """Pairs that a block has at its lowest level: a lane each, as many as there is room for."""
    size, *_, last = (port.size for port in program.inputs)
    outward, number = len(program.inputs) > 2, DIALECTS[dtype].bits // 8
    room = (3 * ((size | 1) + last) if outward else 2 * (size | 1)) * number
    pairs = WARP
    while pairs * room > SHARED:
        pairs //= 2
    return pairs


def render_tree(program: Program, dtype: str) -> list[str]:
    """CUDA source of the tree whose pairs a program joins, or gives their shares; one for levels
    of one block, and perhaps others for levels of more (`WARPS`).
    """
    (block,) = program.regions
    assert isinstance(block, Block)
    long = len(block.nodes) > LONG
    return [_rendered(program, dtype, warps, long) for warps in (WARPS if long else WARPS[-1:])]


def _rendered(program: Program, dtype: str, count: int, long: bool) -> str:
    dialect = replace(DIALECTS[dtype], reciprocal="reciprocal")
    T, sizes, inward = dialect.number, [port.size for port in program.inputs], is_inward(program)
    warps = _parts(program, count) if inward else _turns(program, count - 1)
    early = not long or count > 1
    functions = [
        state_function(warp, dialect, "static __forceinline__ void", f"part{k}")
        for k, warp in enumerate(warps)
    ]
    pairs = pairs_of_block(program, dtype)
    words = {"T": T, "size": sizes[0], "taken": sizes[-1], "pairs": pairs, "parts": len(warps)}
    words |= _inward_words(warps) if inward else _outward_words(warps, sizes[-1], early)
    arguments = f"{T}* maps" if inward else f"const {T}* maps, const {T}* chain, {T}* given"
    body = (HEAD + (INWARD if inward else OUTWARD)).format(arguments=arguments, **words)
    return f"{comment(f'{program.name}: a tree of pairs')}\n{PRELUDE}{''.join(functions)}{body}"


def is_inward(program: Program) -> bool:
    """Whether a program joins pieces, instead of giving them their shares."""
    return len(program.inputs) == 2


CASE = "        case {}: {} break;"
EACH = "for (int e = 0; e < {}; ++e) {};"


def _inward_words(parts: Sequence[Program]) -> dict[str, str | int]:
    """What each warp does with its part of a piece."""
    every = _columns_of(parts)
    return {
        "most": max(count for _, count in every),
        "joins": _cases(f"part{k}(inner, inner + PITCH, made);" for k in range(len(parts))),
        "copies": _cases(EACH.format(c, f"made[e] = inner[{f} + e]") for f, c in every),
        "stores": _cases(
            EACH.format(c, f"near[lane * PITCH + {f} + e] = made[e]") for f, c in every
        ),
    }


def _outward_words(parts: Sequence[Program], taken: int, early: bool) -> dict[str, str | int]:
    """What each warp reads of the pieces, and does with its part of what they are given."""
    every, names = _columns_of(parts), [[port.name for port in part.inputs] for part in parts]
    late = sum(FOUND not in own for own in names)
    known = {"given": "source", FOUND: "target"}
    fetches = []
    for k, own in enumerate(names):
        among = (k, late) if k < late else (k - late, len(parts) - late)  # warps that read the same
        ways = {"inner": f"FETCH(INNER(next), 0, {among[0]}, {among[1]});",
                "outer": f"FETCH(OUTER(next), 1, {among[0]}, {among[1]});"}  # fmt: skip
        fetches.append(" ".join(ways[x] for x in own if x in ways))
    return {
        "early": int(early),
        "late": late,
        "fetches": _cases(fetches),
        "joins": _cases(
            f"part{k}({', '.join(known.get(x, x) for x in own)},"
            f" target + {f}, target + {taken + f});"
            for k, (own, (f, _)) in enumerate(zip(names, every, strict=True))
        ),
        "copies": _cases(EACH.format(c, f"target[{f} + e] = source[{f} + e]") for f, c in every),
    }


def _columns_of(parts: Sequence[Program]) -> list[tuple[int, int]]:
    """The first number of each part, and how many."""
    counts = [part.outputs[0].slot.size for part in parts]
    return [(sum(counts[:k]), count) for k, count in enumerate(counts)]


def _cases(texts: Iterable[str]) -> str:
    return "\n".join(CASE.format(k, text) for k, text in enumerate(texts))


def _parts(program: Program, count: int) -> list[Program]:
    """A program as several that compute a part of its result each, none much longer than others."""
    (block,) = program.regions
    assert isinstance(block, Block)
    values = program.outputs[0].values
    cones = _cones(block, values)
    return [
        _part(program, block, values[i:j], cones[i:j])
        for i, j in pairwise([0, *_cuts(cones, count), len(values)])
    ]


def _cones(block: Block, values: Sequence[Expr]) -> list[int]:
    """Of values: the nodes that they are computed from, as bits."""
    needs: dict[int, int] = {}
    for k, node in enumerate(block.nodes):
        needs[node.id] = 1 << k
        for argument in node.args:
            needs[node.id] |= needs.get(argument.id, 0)
    return [needs.get(value.id, 0) for value in values]


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


def _turns(program: Program, earlier: int) -> list[Program]:
    """Shares of a pair, found one after another: what needs the outer piece alone, by so many
    warps, and then what needs the inner piece and what was found; or all at once, without such
    warps, or where the shares cannot be parted so.

    Each program writes some of the numbers that the inner piece is given, and those of the outer.
    """
    taken, values = program.inputs[-1].size, program.outputs[0].values
    (block,) = program.regions
    assert isinstance(block, Block)

    def come_from(some: Sequence[Expr], piece: str, columns: range, known: Container[int]) -> bool:
        needs = _needs(block.nodes, known)
        return all(port == piece or (port == "given" and k in columns)
                   for x in some for port, k in needs(x))  # fmt: skip

    for cut in range(taken - 1, 0, -1) if earlier else ():
        if come_from([*values[:cut], *values[taken : taken + cut]], "outer", range(cut), ()):
            found = {x.id: k for k, x in enumerate(values[:cut]) if x.op != "input"}
            late = [*values[cut:taken], *values[taken + cut :]]
            if not come_from(late, "inner", range(cut, taken), found):
                break
            cuts = [0, *_cuts(_cones(block, values[:cut]), earlier), cut]
            first = [_columns(program, i, j, {}) for i, j in pairwise(cuts)]
            return [*first, _columns(program, cut, taken, found)]
    return [_columns(program, 0, taken, {})]


Inputs = frozenset[tuple[str, int]]


def _needs(nodes: Sequence[Expr], found: Container[int] = ()) -> Callable[[Expr], Inputs]:
    """The inputs that a value is computed from, beside values that were found already."""
    known: dict[int, Inputs] = {}

    def of(x: Expr) -> Inputs:
        return frozenset([x.value]) if x.op == "input" else known.get(x.id, frozenset())

    for node in nodes:
        own = frozenset[tuple[str, int]]()
        known[node.id] = own if node.id in found else own.union(*map(of, node.args))
    return of


def _columns(program: Program, start: int, stop: int, found: Mapping[int, int]) -> Program:
    """The program of some of the numbers that both pieces are given; values that were found already
    are inputs of it, by their number.
    """
    graph, made, nodes = Graph(), dict[int, Expr](), list[Expr]()
    taken, values = program.inputs[-1].size, program.outputs[0].values

    def known(x: Expr) -> Expr:
        if x.id in found:
            return graph.input(FOUND, found[x.id])
        return made.get(x.id) or graph.node(x.op, value=x.value)

    wanted = [values[start:stop], values[taken + start : taken + stop]]
    for node in reachable([x for own in wanted for x in own], frozenset(found)):
        made[node.id] = graph.node(node.op, *map(known, node.args), value=node.value)
        if node.args or node.op == "eps":
            nodes.append(made[node.id])
    outputs = tuple(
        Output(name, (stop - start,), tuple(map(known, own)))
        for name, own in zip(("own", "next"), wanted, strict=True)
    )
    used = {x.value[0] for x in graph.nodes if x.op == "input"}
    ports = [port for port in program.inputs if port.name in used]
    ports += [Port(FOUND, start)] if FOUND in used else []
    return replace(program, inputs=tuple(ports), regions=(Block(tuple(nodes)),), outputs=outputs)


class CudaTree:
    """The kernels of one tree."""

    def __init__(
        self, functions: Sequence[Function], program: Program, dtype: str, multiprocessors: int
    ) -> None:
        self._functions = functions
        self._inward, self._pairs = is_inward(program), pairs_of_block(program, dtype)
        self._alone = multiprocessors  # blocks that have one to themselves

    def starts(self, pieces: int) -> list[Start]:
        """Start all levels, one after another; the pointers are the maps of all levels, and
        outward what the chain and what the pieces of all levels are given.
        """
        found, first, n, pointers = [], 0, pieces, 1 if self._inward else 3
        if pieces == 1 and not self._inward:
            found.append(self._functions[0].prepare(1, (pieces, 0, 0, *[None] * pointers)))
        while n > 1:
            blocks, levels = -(-n // (2 * self._pairs)), 0
            while n > 1 and levels < self._pairs.bit_length():
                n, levels = (n + 1) // 2, levels + 1
            arguments: Sequence[int | None] = (pieces, first, levels, *[None] * pointers)
            way = (blocks > 1) + (blocks > self._alone)
            function = self._functions[min(way, len(self._functions) - 1)]
            found.append(function.prepare(blocks, arguments))
            first += levels
        return found if self._inward else found[::-1]
