"""Program with counted loops -> CUDA C: a kernel in which each thread computes one state at a time.

What the loops keep of each link is too much for a thread's own memory, so it is lent by whoever
starts the kernel: room for the states that are computed at the same time, not for all states.
Blocks of one warp stay, and take the next 32 states when they are done. The 32 threads of a warp
have their numbers side by side,

    element e of lane k of warp w    at   room[(w * numbers + e) * 32 + k]

so that each read or write of a warp is one piece of memory. Tables are the same for all states and
are read through the cache for constants. Rows of inputs and results are read and written where they
are: the threads of a warp are a row apart, but the numbers that follow each other in a row are used
one step after another, and wait in the cache for it (docs/gpu.md).
"""

from __future__ import annotations

from linkwise.backends.cstyle.render import MOST_INT, Lent, comment, state_function, word
from linkwise.backends.cuda.render import DIALECTS, PRELUDE
from linkwise.trace.program import NUMBER, Array, Program

LOOPS = "/* LOOPS */"  # in the text of every such kernel
THREADS = 32  # of a block: one warp, so that few states meet as many multiprocessors as there are


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
    T, tables = dialect.number, program.tables
    whole = {"int32": "int", "int64": "long long"}
    types = {a.name: whole[place_type(a)] if a.lists_places else T for a in tables}
    rooms = [a for a in program.arrays if a.values is None]
    constants = {
        name: Lent(f"const {type_}* const {{0}}", "__ldg({0} + ({1}))")
        for name, type_ in types.items()
    }
    scratch = {a.name: Lent(f"{T}* const {{0}}", "{0}[(long long)({1}) * WARP]") for a in rooms}
    lent = constants | scratch
    state = state_function(program, dialect, "static __forceinline__ void", "state", lent=lent)
    arguments, own = ["const long long states"], []
    for port in program.inputs:
        name = word(port.name)
        arguments += [f"const {T}* __restrict__ {name}", f"const long long {name}_row"]
        own.append(f"{name} + row * {name}_row")
    for slot in program.signature.outputs:
        kind = T if slot.kind == NUMBER else "unsigned char"
        arguments.append(f"{kind}* __restrict__ {word(slot.name)}")
        own.append(f"{word(slot.name)} + row * {slot.size}")
    arguments += [f"const {types[a.name]}* __restrict__ {word(a.name)}" for a in tables]
    starts, before = {}, 0
    for array in rooms:
        starts[array.name] = f"own + {before}LL * WARP"
        before += array.size
    own += [starts.get(a.name, word(a.name)) for a in program.arrays]
    lines = [
        comment(f"{program.name}: a thread per state, loops over the links"),
        PRELUDE + state,
        f"{LOOPS}\n#define THREADS {THREADS}",
        'extern "C" __global__ void BOUNDS',
        f"linkwise({', '.join((*arguments, f'{T}* room'))})",
        "{",
        "    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
        f"    {T}* const own = room + thread / WARP * {before}LL * WARP + threadIdx.x % WARP;",
        "    for (long long row = thread; row < states; row += (long long)gridDim.x * blockDim.x)",
        f"        state({', '.join(own)});",
        "}",
        "",
    ]
    return "\n".join(lines)
