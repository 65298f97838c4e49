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

A step waits for memory longer than it computes. So it is told what it reads by the step before,
which has read it one step ahead, but for what the loop itself writes (docs/gpu.md has the times).
"""

from __future__ import annotations

from linkwise.backends.cstyle.render import MOST_INT, Lent, comment, state_function, word
from linkwise.backends.cstyle.render import USUAL_ELEMENT as USUAL
from linkwise.backends.cuda.render import DIALECTS, PRELUDE
from linkwise.trace.program import NUMBER, Array, Program

LOOPS = "/* LOOPS */"  # in the text of every such kernel
THREADS = 32  # of a block: one warp, so that few states meet as many multiprocessors as there are
ALWAYS = 1 << 30
AHEAD = 80  # registers of what a loop carries and reads, up to which it reads tables ahead too
TILED = "{0} + (row - threadIdx.x) * {1} + threadIdx.x"  # a row of an input of whole tiles
WHOLE = {"int32": "int", "int64": "long long"}


def place_type(table: Array) -> str:
    """The number type of a list of places, as NumPy calls it."""
    assert table.values is not None
    return "int32" if table.values.max(initial=0) <= MOST_INT else "int64"


def render_loops(program: Program, dtype: str) -> str:
    """CUDA source of a program with counted loops: a kernel named ``linkwise``.

    Its arguments are the number of states, each input and the numbers from row to row of it, each
    output, each table, and the room.
    """
    dialect = DIALECTS[dtype]
    T, inline = dialect.number, "static __forceinline__ void"
    state = state_function(program, dialect, inline, "state", lent=_lent(program, dtype))
    lines = [
        comment(f"{program.name}: a thread per state, loops over the links"),
        PRELUDE + state,
        f"{LOOPS}\n#define THREADS {THREADS}",
        'extern "C" __global__ void BOUNDS',
        f"linkwise({', '.join(_arguments(program, T))})",
        "{",
        f"    {T}* const own = room + blockIdx.x * {program.signature.scratch}LL * WARP"
        " + threadIdx.x;",
        "    for (long long row = (long long)blockIdx.x * WARP + threadIdx.x; row < states;",
        "         row += (long long)gridDim.x * WARP)",
        f"        state({', '.join(_own(program))});",
        "}",
        "",
    ]
    return "\n".join(lines)


def _type(table: Array, number: str) -> str:
    return WHOLE[place_type(table)] if table.lists_places else number


def _lent(program: Program, dtype: str) -> dict[str, Lent]:
    """How the function of one state reaches its arrays."""
    T, few = DIALECTS[dtype].number, AHEAD * 32 // DIALECTS[dtype].bits
    element = "{0}[(long long)({1}) * WARP]"
    scratch = Lent(f"{T}* const {{0}}", element, element + " = {2};", ALWAYS)
    lent = {
        port.name: Lent(f"const {T}* const {{0}}", element if port.tiled else USUAL, ahead=ALWAYS)
        for port in program.inputs
    }
    for array in program.tables:
        argument = f"const {_type(array, T)}* const {{0}}"
        lent[array.name] = Lent(argument, "__ldg({0} + ({1}))", ahead=few)
    return {array.name: scratch for array in program.arrays} | lent


def _arguments(program: Program, T: str) -> list[str]:
    """What the kernel is told."""
    found = ["const long long states"]
    for port in program.inputs:
        name = word(port.name)
        found += [f"const {T}* __restrict__ {name}", f"const long long {name}_row"]
    for slot in program.signature.outputs:
        kind = T if slot.kind == NUMBER else "unsigned char"
        found.append(f"{kind}* __restrict__ {word(slot.name)}")
    tables = [f"const {_type(a, T)}* __restrict__ {word(a.name)}" for a in program.tables]
    return [*found, *tables, f"{T}* room"]


def _own(program: Program) -> list[str]:
    """What the function of one state is told."""
    rows = (TILED if port.tiled else "{0} + row * {0}_row" for port in program.inputs)
    found = [way.format(word(p.name), p.size) for way, p in zip(rows, program.inputs, strict=True)]
    found += [f"{word(s.name)} + row * {s.size}" for s in program.signature.outputs]
    before = 0
    for array in program.arrays:
        if array.values is None:
            found.append(f"own + {before}LL * WARP")
            before += array.size
        else:
            found.append(word(array.name))
    return found
