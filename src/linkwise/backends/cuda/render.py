"""Program -> CUDA C: a kernel in which each thread computes one state.

The function of one state is the C of ``cstyle``, so a state has the bits that it has on the CPU, if
the compiler neither fuses nor reorders, and divides and takes roots with correct rounding.

Short rows are read into registers before anything else, and written, where they are: caches absorb
the stride. Long rows (more than ``SHORT`` numbers) go through shared memory: the threads of a warp
copy their rows side by side, and each then works in its own. A row has an odd number of places
there, so that all threads of a warp meet different banks. A result may take the place of an input,
of which each thread has read its own row by then.

Two things are left to whoever compiles, and no result depends on them: ``STAGE`` says which long
rows go through shared memory (0: none, 1: results, 2: inputs too), ``BLOCKS`` how many blocks shall
share a multiprocessor.

A warp without a state ends at once. In the last warp, threads without a state only copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.backends.cstyle.functions import Dialect
from linkwise.backends.cstyle.render import comment, state_function, word
from linkwise.trace.program import NUMBER, Program

DIALECTS = {
    f"float{bits}": Dialect(bits, "static __forceinline__", "static __noinline__")
    for bits in (64, 32)
}
SHORT = 12  # numbers of a row that is read or written in place
AT_ONCE = 32  # numbers of a state, up to which all are read before anything else
SHARED = 48 * 1024  # bytes that a block may have
THREADS = (128, 64, 32)  # of a block: as many as the shared memory allows

LONG_ROWS, LONG_INPUTS = "for (int k = lane", "#if STAGE == 2\n    for"  # where a kernel has such

PRELUDE = """\
#ifdef __CUDACC_RTC__
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define UINT32_C(n) n##u
#define UINT64_C(n) n##ull
#define NAN __int_as_float(0x7fc00000)
#define INFINITY __int_as_float(0x7f800000)
#define WARP 32
#endif
#ifdef BLOCKS
#define BOUNDS __launch_bounds__(THREADS, BLOCKS)
#else
#define BOUNDS __launch_bounds__(THREADS)
#endif
#ifndef STAGE
#define STAGE 1
#endif

"""


@dataclass(frozen=True)
class Argument:
    """An array of a kernel: numbers of a state, and their type in C."""

    name: str
    size: int
    type: str

    @property
    def pitch(self) -> int:
        """Places of a row in shared memory."""
        return self.size | 1


def render_cuda(program: Program, dtype: str) -> str:
    """CUDA source of the program: a kernel named ``linkwise``."""
    dialect = DIALECTS[dtype]
    types = {True: dialect.number, False: "unsigned char"}
    inputs = [Argument(word(port.name), port.size, dialect.number) for port in program.inputs]
    outputs = [
        Argument(slot.name, slot.size, types[slot.kind == NUMBER])
        for slot in program.signature.outputs
    ]
    state = state_function(program, dialect, "static __forceinline__ void", "state")
    title = comment(f"{program.name}: a thread per state")
    return "\n".join((title, PRELUDE + state, *_Kernel(inputs, outputs, dialect).lines(), ""))


class _Kernel:
    """The kernel around the function of one state."""

    def __init__(self, inputs: list[Argument], outputs: list[Argument], dialect: Dialect) -> None:
        self.inputs, self.outputs, self.type = inputs, outputs, dialect.number
        most = SHARED // (THREADS[-1] * dialect.bits // 8)  # places for one state
        self.places: dict[str, int] = {}  # of long rows, in the room of one state
        self.pitches: dict[str, int] = {}
        long = [rows for rows in inputs if rows.size > SHORT]
        if sum(rows.pitch for rows in long) <= most:
            for rows in long:
                self._place(rows, self._end(), rows.pitch)
        for rows in outputs:
            if rows.size > SHORT and rows.type == self.type:
                self._place_output(rows, long, most)
        self.bytes = dialect.bits // 8

    def _end(self, names: Sequence[str] | None = None) -> int:
        chosen = self.places if names is None else [n for n in names if n in self.places]
        return max((self.places[name] + self.pitches[name] for name in chosen), default=0)

    def _place(self, rows: Argument, at: int, pitch: int) -> None:
        self.places[rows.name], self.pitches[rows.name] = at, pitch

    def _place_output(self, rows: Argument, long: list[Argument], most: int) -> None:
        """In the place of an input that is as long, or behind all others, if there is room."""
        for other in long:
            taken = [self.places[r.name] for r in self.outputs if r.name in self.places]
            at = self.places.get(other.name)
            if at is not None and at not in taken and other.pitch >= rows.pitch:
                return self._place(rows, at, other.pitch)
        if self._end() + rows.pitch <= most:
            self._place(rows, self._end(), rows.pitch)

    def lines(self) -> list[str]:
        """The kernel as text."""
        T, all_rows = self.type, (*self.inputs, *self.outputs)
        arguments = ["const long long states"]
        for r in self.inputs:
            arguments += [f"const {T}* __restrict__ {r.name}", f"const long long {r.name}_row"]
        arguments += [f"{r.type}* __restrict__ {r.name}" for r in self.outputs]
        return [
            *self._sizes(),
            'extern "C" __global__ void BOUNDS',
            f"linkwise({', '.join(arguments)})",
            "{",
            "    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
            "    const int lane = threadIdx.x % WARP;",
            "    const long long first = thread - lane;",
            "    const int count = (int)(states - first < WARP ? states - first : WARP);",
            "    if (count <= 0) return;",
            "    const int own = lane < count ? lane : count - 1;",
            f"    __shared__ {T} room[ROOM ? THREADS * ROOM : 1];",
            f"    {T}* const warp = room + (threadIdx.x - lane) * ROOM;",
            *self._read(),
            f"    if (lane < count) state({', '.join(f'own_{r.name}' for r in all_rows)});",
            *self._write(),
            "}",
        ]

    def _sizes(self) -> list[str]:
        """Threads of a block, and places of a state in shared memory, with inputs there or not."""
        results = self._end([r.name for r in self.outputs])
        sizes = {"#if STAGE == 2": self._end(), "#elif STAGE == 1": results, "#else": 0}
        return [*(line for k, room in sizes.items() for line in (k, *self._size(room))), "#endif"]

    def _size(self, room: int) -> list[str]:
        threads = next(n for n in THREADS if n * room * self.bytes <= SHARED)
        return [f"#define ROOM {room}", f"#define THREADS {threads}"]

    def _read(self) -> list[str]:
        """Every thread's own rows of the inputs, and places for its results."""
        staged = [r for r in self.inputs if r.name in self.places]
        straight = {r.name: self._straight(r) for r in self.inputs}
        lines = [straight[r.name] for r in self.inputs if r not in staged]
        if staged:
            lines += ["#if STAGE == 2", *map(self._copy_in, staged), "    __syncwarp();"]
            lines += [
                f"    const {r.type}* const own_{r.name} = {self._row(r, 'own')};" for r in staged
            ]
            lines += ["#else", *(straight[r.name] for r in staged), "#endif"]
        for r in self.outputs:
            there = f"    {r.type}* const own_{r.name} = {r.name} + (first + own) * {r.size};"
            if r.name in self.places:
                here = f"    {r.type}* const own_{r.name} = {self._row(r, 'lane')};"
                lines += ["#if STAGE", here, "#else", there, "#endif"]
            else:
                lines.append(there)
        return lines

    def _straight(self, rows: Argument) -> str:
        """A row where it is: all of it now, where states have few numbers."""
        row = f"{rows.name} + (first + own) * {rows.name}_row"
        if not rows.size or sum(r.size for r in self.inputs) > AT_ONCE:
            return f"    const {self.type}* const own_{rows.name} = {row};"
        row = f"{rows.name}[(first + own) * {rows.name}_row + "
        numbers = ", ".join(f"{row}{k}]" for k in range(rows.size))
        return f"    const {self.type} own_{rows.name}[] = {{{numbers}}};"

    def _row(self, rows: Argument, lane: str) -> str:
        return f"warp + {self.places[rows.name]} * WARP + {lane} * {self.pitches[rows.name]}"

    def _copy_in(self, rows: Argument) -> str:
        """The rows of a warp, from global to shared memory."""
        n, size = rows.name, rows.size
        outside = f"{n}[(first + k / {size}) * {n}_row + k % {size}]"
        return f"    {self._each(rows)} {self._inside(rows)} = {outside};"

    def _write(self) -> list[str]:
        """The results of a warp, from shared to global memory."""
        staged = [r for r in self.outputs if r.name in self.places]
        copies = [
            f"    {self._each(r)} {r.name}[first * {r.size} + k] = {self._inside(r)};"
            for r in staged
        ]
        return ["#if STAGE", "    __syncwarp();", *copies, "#endif"] if staged else []

    def _each(self, rows: Argument) -> str:
        return f"for (int k = lane; k < count * {rows.size}; k += WARP)"

    def _inside(self, rows: Argument) -> str:
        at, pitch = self.places[rows.name], self.pitches[rows.name]
        return f"warp[{at} * WARP + k / {rows.size} * {pitch} + k % {rows.size}]"
