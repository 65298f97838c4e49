"""Program with counted loops -> CUDA C: a kernel in which each thread computes one state at a time.

What the loops keep of each link is too much for a thread's own memory, so it is lent by whoever
starts the kernel: room for the states that are computed at the same time, not for all states.
Blocks of one warp stay, and take the next 32 states when they are done. The 32 threads of a warp
have their numbers side by side,

    element e of lane k of warp w    at   room[(w * numbers + e) * 32 + k]

so that each read or write of a warp is one piece of memory. Tables are the same for all states, and
are read through the cache for constants. Rows of inputs and results are read and written where they
are: the threads of a warp are a row apart, but the numbers that follow each other in a row are used
one step after another, and wait in the cache for it. Inputs of whole tiles (`Port`) have 32 states
side by side, as scratch does.

The first stage of a scan computes in float64 what it was given in float32: it is short, and the
errors of its map would be the largest of the result (docs/chain_accuracy.md).

A step waits for memory longer than it computes. So it is told what it reads by the step before,
which has read it one step ahead, but for what the loop itself writes (docs/gpu.md has the times).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from linkwise.backends.cstyle.render import MOST_INT, Lent, comment, state_function, word
from linkwise.backends.cstyle.render import USUAL_ELEMENT as USUAL
from linkwise.backends.cuda.render import DIALECTS, PRELUDE, SHARED
from linkwise.trace.expr import At
from linkwise.trace.piecetree import LAST, LONGER, STEPS
from linkwise.trace.program import FLAGS_C, NUMBER, Array, For, Program

LOOPS = "/* LOOPS */"  # in the text of every such kernel
THREADS = 32  # of a block: one warp, so that few states meet as many multiprocessors as there are
ALWAYS = 1 << 30
AHEAD = 80  # registers of what a loop carries and reads, up to which it reads tables ahead too
TILED = "{0} + (row - threadIdx.x) * {1} + threadIdx.x"  # a row of an array of whole tiles
WARP = THREADS
STAGES = {64: 2, 32: 4}  # steps under way, where a loop sends itself what it reads, by bits
WHOLE = {"int32": "int", "int64": "long long"}


def place_type(table: Array) -> str:
    """The number type of a list of places, as NumPy calls it."""
    assert table.values is not None
    return "int32" if table.values.max(initial=0) <= MOST_INT else "int64"


class Near(NamedTuple):
    """Rows in shared memory: where the first is, and numbers from one to the next."""

    place: int
    pitch: int


# rows that follow each other to shared memory, and back
CLOSE = """\
#define STAGES {stages}
#define AHEAD(number, step) \\
    near[({ring} + (number) * STAGES + (unsigned)(step) % STAGES) * WARP + threadIdx.x]
#define SEND(number, step, from) COPY(&AHEAD(number, step), &(from))
__shared__ {T} near[{numbers} * WARP];

/* where the numbers of a warp's rows are there; of the rows, the first may have one link more */
#define ACROSS(own) \\
    for (int e = threadIdx.x, k = e, r = 0; e < numbers; e += WARP, k += WARP) {{ \\
        for (; k >= (own); ++r) k -= (own);
static __forceinline__ void
bring({T}* to, int pitch, const {T}* rows, int row, int link, int count, long long longer)
{{
    const int more = longer < 0 ? 0 : longer < count ? (int)longer : count;
    const int numbers = count * row + more * link, all = row + (more == count) * link;
    if (more && more < count)
        ACROSS(row + (r < more) * link) COPY(to + r * pitch + k, rows + e); }}
    else
        ACROSS(all) COPY(to + r * pitch + k, rows + e); }}
}}

static __forceinline__ void
leave(const {T}* from, int pitch, {T}* rows, int row, int link, int count, long long longer)
{{
    const int more = longer < 0 ? 0 : longer < count ? (int)longer : count;
    const int numbers = count * row + more * link, all = row + (more == count) * link;
    if (more && more < count)
        ACROSS(row + (r < more) * link) rows[e] = from[r * pitch + k]; }}
    else
        ACROSS(all) rows[e] = from[r * pitch + k]; }}
}}

"""


def render_loops(program: Program, dtype: str) -> str:
    """CUDA source of a program with counted loops: a kernel named ``linkwise``.

    Its arguments are the number of states, each input and the numbers from row to row of it, each
    output, each table, and the room.
    """
    T, rows = DIALECTS[dtype].number, _Rows(program, dtype)
    dialect = DIALECTS["float64" if _first_stage(program) else dtype]
    state = state_function(
        program, dialect, "static __forceinline__ void", "state", lent=_lent(program, dtype, rows)
    )
    lines = [
        comment(f"{program.name}: a thread per state, loops over the links"),
        PRELUDE + rows.declared(T) + state,
        f"{LOOPS}\n#define THREADS {THREADS}",
        'extern "C" __global__ void BOUNDS',
        f"linkwise({', '.join(_arguments(program, T))})",
        "{",
        f"    {T}* const own = room + blockIdx.x * {program.signature.scratch}LL * WARP"
        " + threadIdx.x;",
        "    for (long long first = (long long)blockIdx.x * WARP; first < states;",
        "         first += (long long)gridDim.x * WARP) {",
        "        const long long row = first + threadIdx.x;",
        "        const int count = states - first < WARP ? (int)(states - first) : WARP;",
        *rows.brought(T),
        f"        if (threadIdx.x < count) state({', '.join(_own(program, rows))});",
        *rows.left(),
        "    }",
        "}",
        "",
    ]
    return "\n".join(lines)


def _first_stage(program: Program) -> bool:
    """Whether a program finds maps of pieces, on a device, with no scan before it."""
    in_pieces = any(table.name == LONGER for table in program.tables)
    return in_pieces and not any(node.op == "input" for node in program.nodes())


class _Rows:
    """Rows on their way through shared memory, where inputs are close to each other.

    Those that the first loop reads are brought before it; what else loops read they send themselves
    ahead. A result that a loop writes takes the place of an input, number by number; a
    row of numbers at the end, that of all.
    """

    def __init__(self, program: Program, dtype: str) -> None:
        self.near: dict[str, Near] = {}
        self.takes_place: dict[str, str] = {}  # result -> input
        self.at_end = 0  # numbers of a result that takes the place of all
        self.close = {port.name: port.size for port in program.inputs if port.close}
        self._link = {port.name: port.close for port in program.inputs}  # numbers of a link
        self.used = bool(self.close)
        tables = {table.name for table in program.tables}
        self._stages = STAGES[DIALECTS[dtype].bits]
        self._longer = f"__ldg(of_{LONGER})" if LONGER in tables else "0"
        if not self.used:
            return
        loops = [region for region in program.regions if isinstance(region, For)]
        reads = [_reads(loop) for loop in loops]
        numbers = 0
        for port in program.inputs:
            if port.close and port.name in reads[0]:
                self.near[port.name] = Near(numbers * WARP, port.size | 1)
                numbers += port.size | 1
        self._ring = numbers
        numbers += self._stages * max(sum(map(len, own.values())) for own in reads)
        (output, *others) = program.outputs
        if output.values and output.kind == NUMBER and not others:
            self.at_end = len(output.values)
        self.numbers = max(numbers, self.at_end | 1)
        if self.numbers * WARP * DIALECTS[dtype].bits // 8 > SHARED:
            self.near, self.at_end, self.used = {}, 0, False
        self.takes_place = _takes_place(program, self.near)

    def declared(self, T: str) -> str:
        """What the kernel declares."""
        if not self.used:
            return ""
        return CLOSE.format(T=T, stages=self._stages, numbers=self.numbers, ring=self._ring)

    def brought(self, T: str) -> list[str]:
        """Before a state is computed."""
        if not self.close:
            return []
        lines = [f"        const long long longer = {self._longer};"]
        lines += [
            f"        bring(near + {rows.place}, {rows.pitch}, {self.row(n, 'first')},"
            f" (int){word(n)}_row, {self._link[n]}, count, longer - first);"
            for n, rows in self.near.items()
        ]
        lines += ["        COPIED;", "        __syncwarp();"] if self.near else []
        return lines + ([f"        {T} made[{self.at_end}];"] if self.at_end else [])

    def row(self, name: str, number: str, of: str = "") -> str:
        """A row among rows of numbers that follow each other, as long as those of an input."""
        least = f"({number} < longer ? {number} : longer) * {self._link[of or name]}"
        return f"{word(name)} + {number} * {word(of or name)}_row + {least}"

    def left(self) -> list[str]:
        """After it."""
        if not self.used:
            return []
        lines = ["        __syncwarp();"]
        if self.at_end:
            lines += [
                f"        for (int e = 0; e < {self.at_end} && threadIdx.x < count; ++e)",
                f"            near[threadIdx.x * {self.at_end | 1} + e] = made[e];",
                "        __syncwarp();",
                "        for (int r = 0; r < count; ++r)",
                f"            for (int e = threadIdx.x; e < {self.at_end}; e += WARP)",
                f"                result[(first + r) * {self.at_end} + e]"
                f" = near[r * {self.at_end | 1} + e];",
                "        __syncwarp();",
            ]
        for name, taken in self.takes_place.items():
            place, pitch = self.near[taken]
            lines += [
                f"        leave(near + {place}, {pitch}, {self.row(name, 'first', taken)},"
                f" (int){word(taken)}_row, {self._link[taken]}, count, longer - first);",
                "        __syncwarp();",
            ]
        return lines


def _reads(loop: For) -> dict[str, set[At]]:
    """What a loop reads of each array."""
    found: dict[str, set[At]] = {}
    for case in loop.cases:
        for node in case.body.nodes:
            if node.op == "read":
                array, at = node.value
                found.setdefault(array, set()).add(at)
    return found


def _takes_place(program: Program, near: Mapping[str, Near]) -> dict[str, str]:
    """The result that a loop writes in place of an input, number by number, and that input: nobody
    reads of it what has been written over.
    """
    loops = [region for region in program.regions if isinstance(region, For)]
    sizes = {port.name: port.size for port in program.inputs if port.name in near}
    for slot in program.signature.outputs:
        writers = [k for k, x in enumerate(loops) if slot.name in {w.array for w in x.writes}]
        for name in (x for x, size in sizes.items() if size == slot.size and len(writers) == 1):
            own = {w.at for w in loops[writers[0]].writes if w.array == slot.name}
            reads = [_reads(loop).get(name, set()) for loop in loops]
            if reads[writers[0]] <= own and len(own) == 1 and not any(reads[writers[0] + 1 :]):
                return {slot.name: name}
    return {}


def _type(table: Array, number: str) -> str:
    return WHOLE[place_type(table)] if table.lists_places else number


def _lent(program: Program, dtype: str, rows: _Rows) -> dict[str, Lent]:
    """How the function of one state reaches its arrays."""
    T, few = DIALECTS[dtype].number, AHEAD * 32 // DIALECTS[dtype].bits
    element = "{0}[(long long)({1}) * WARP]"
    scratch = Lent(f"{T}* const {{0}}", element, element + " = {2};", ALWAYS, rows.used)
    lent = {
        port.name: Lent(f"const {T}* const {{0}}", element if port.tiled else USUAL,
                        ahead=0 if port.name in rows.near else ALWAYS, sent=rows.used)
        for port in program.inputs
    }  # fmt: skip
    for array in program.tables:
        argument = f"const {_type(array, T)}* const {{0}}"
        lent[array.name] = Lent(argument, "__ldg({0} + ({1}))", ahead=few)
    tiled = Lent(f"{T}* const {{0}}", element, element + " = {2};")
    own = {
        o.name: tiled if o.tiled else Lent(f"{T}* const {{0}}")
        for o in program.outputs
        if o.kind == NUMBER
    }
    return own | {array.name: scratch for array in program.arrays} | lent


def _arguments(program: Program, T: str) -> list[str]:
    """What the kernel is told."""
    found = ["const long long states"]
    for port in program.inputs:
        name = word(port.name)
        found += [f"const {T}* __restrict__ {name}", f"const long long {name}_row"]
    for slot in program.signature.outputs:
        kind = T if slot.kind == NUMBER else FLAGS_C
        found.append(f"{kind}* __restrict__ {word(slot.name)}")
    tables = [f"const {_type(a, T)}* __restrict__ of_{word(a.name)}" for a in program.tables]
    return [*found, *tables, f"{T}* room"]


def _own(program: Program, through: _Rows) -> list[str]:
    """What the function of one state is told."""
    inside = {
        name: f"near + {x.place} + threadIdx.x * {x.pitch}" for name, x in through.near.items()
    }
    found = []
    for port in program.inputs:
        way = TILED if port.tiled else "{0} + row * {0}_row"
        straight = way.format(word(port.name), port.size)
        if port.close:
            straight = through.row(port.name, "row")
        found.append(inside.get(port.name, straight))
    for output in program.outputs:
        name, size = output.name, output.slot.size
        alike = [port for port, own in through.close.items() if own == size and not output.values]
        if output.tiled:
            found.append(TILED.format(word(name), size))
        elif name in through.takes_place:
            found.append(inside[through.takes_place[name]])
        elif alike:
            found.append(through.row(name, "row", alike[0]))
        else:
            found.append("made" if through.at_end else f"{word(name)} + row * {size}")
    before = 0
    for array in program.arrays:
        if array.values is None:
            found.append(f"own + {before}LL * WARP")
            before += array.size
        else:
            # of lists of two numbers, rows that are longer take the second
            by_row = through.close and array.name in (STEPS, LAST)
            found.append(f"of_{word(array.name)}" + (" + (row < longer)" if by_row else ""))
    return found
