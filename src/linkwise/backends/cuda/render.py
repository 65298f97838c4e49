"""Program -> CUDA C: a kernel in which each thread computes one state.

The function of one state is the C of ``cstyle``, so a state has the bits that it has on the CPU, if
the compiler neither fuses nor reorders, and divides and takes roots with correct rounding.

The 32 threads of a warp have 32 rows of every array. There are three ways to them:

    straight   each thread reads or writes its own row; caches absorb the stride of short rows
    staged     the warp copies long rows through shared memory, side by side. A row has an odd
               number of places there, so that all threads of a warp meet different banks
    tiled      results too long for shared memory leave in groups of consecutive numbers, each by
               a tile of shared memory as soon as it is complete

A staged result may take the place of an input in shared memory, of which each thread has read its
own row by then; a tile takes nobody's.

Two things are left to whoever compiles, and no result depends on them: ``BLOCKS``, how many blocks
shall share a multiprocessor, and ``TURNS``, whether a thread computes one state after another, for
as many blocks as are started. That pays for light kernels, which wait for memory more than they
compute.

A warp without a state ends at once. In the last warp, threads without a state only copy; where
results are tiled, they compute the last state once more, because all copy each group.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from linkwise.backends.cstyle.functions import Dialect
from linkwise.backends.cstyle.render import Leaving, comment, state_function, word
from linkwise.trace.expr import Expr
from linkwise.trace.program import FLAGS_C, NUMBER, Program

DIALECTS = {
    f"float{bits}": Dialect(bits, "static __forceinline__", "static __noinline__")
    for bits in (64, 32)
}
SHORT = 12  # numbers of a row that is read or written straight
AT_ONCE = 32  # numbers of a state, up to which all are read before anything else
GROUP = 256  # bytes of a group of results
FEW = 48  # numbers of a result that is not worth a group
UNROLLED = 8  # rows of a group that are under way at once
LIGHT = 30  # operations per number that is read or written: with fewer, a kernel may take turns
TAKES_TURNS = "/* TURNS */"  # in the text of a kernel that may
SHARED = 48 * 1024  # bytes that a block may have
THREADS = (128, 64, 32)  # of a block: as many as the shared memory allows

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
/* a number on its way to shared memory, and wait until all that this thread has sent are there */
#define COPY(to, from) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: \
                 "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "n"(sizeof *(to)) \
                 : "memory")
#define COPIED asm volatile("cp.async.wait_all;" ::: "memory")
/* numbers of steps to come, of which the last STAGES - 1 may still be on their way */
#define SENT asm volatile("cp.async.commit_group;" ::: "memory")
#define ARRIVED asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 1) : "memory")
/* 1/x by the steps of a division, but without its branch for the largest and smallest numbers */
static __forceinline__ double reciprocal(double x)
{
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    double e = fma(-x, y, 1.0);
    e = fma(e, e, e);
    double z = fma(y, e, y);
    z = fma(z, fma(-x, z, 1.0), z);
    const unsigned exponent = __double2hiint(y) & 0x7ff00000;
    return exponent - 1 < 0x7fefffff ? z : y; /* y itself where it is zero, infinite or no number */
}
static __forceinline__ float reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    const float z = fmaf(y, fmaf(-x, y, 1.0f), y);
    return y - y == 0 && y != 0 ? z : y;
}
#else
#define COPY(to, from) (*(to) = *(from))
#define COPIED
#define SENT
#define ARRIVED
#define reciprocal(x) (1 / (x))
#endif
#ifdef TURNS
#define EACH for (; first < states; first += (long long)gridDim.x * blockDim.x)
#else
#define EACH if (first < states)
#endif
#ifdef BLOCKS
#define BOUNDS __launch_bounds__(THREADS, BLOCKS)
#else
#define BOUNDS __launch_bounds__(THREADS)
#endif

"""

# a result on its way from the threads of a warp to their rows
TILED = """\
struct Tile {{
    {T}* const rows;
    {T}* const target;
    const int size, count, lane;
    __forceinline__ void put(int k, {T} value) const {{ rows[lane * {pitch} + k] = value; }}
    __forceinline__ void leave(int start, int width) const
    {{
        __syncwarp();
#pragma unroll {unrolled}
        for (int row = 0; row < count; ++row)
            for (int k = lane; k < width; k += WARP)
                target[(long long)row * size + start + k] = rows[row * {pitch} + k];
        __syncwarp();
    }}
}};

"""


@dataclass(frozen=True)
class Argument:
    """An array of a kernel: numbers of a state, their type in C, and the way to them."""

    name: str
    size: int
    type: str
    way: str = "straight"
    place: int = 0  # of a row in shared memory, and places from one row to the next
    pitch: int = 0


def groups(
    program: Program, dtype: str, crowded: bool = False
) -> dict[str, list[tuple[Expr, ...]]]:
    """Results that leave in groups, by their names: those that are not staged, and long."""
    most, size = FEW if crowded else _most(dtype), _group(dtype)
    return {
        o.name: [o.values[k : k + size] for k in range(0, len(o.values), size)]
        for o in program.outputs
        if o.kind == NUMBER and len(o.values) | 1 > most
    }


def _most(dtype: str) -> int:
    """Numbers of a state that shared memory has room for."""
    return SHARED // (THREADS[-1] * DIALECTS[dtype].bits // 8)


def _group(dtype: str) -> int:
    """Numbers of a group of results."""
    return GROUP // (DIALECTS[dtype].bits // 8)


def render_cuda(program: Program, dtype: str, crowded: bool = False) -> str:
    """CUDA source of the program: a kernel named ``linkwise``.

    ``crowded``: registers do not hold its values, which need the cache that staged rows would take.
    """
    dialect, size = DIALECTS[dtype], _group(dtype)
    how = Leaving("const Tile {0}", size, "{0}.put({1}, {2});", "{0}.leave({1}, {2});")
    leaving = dict.fromkeys(groups(program, dtype, crowded), how)
    state = state_function(program, dialect, "static __forceinline__ void", "state", leaving)
    tile = TILED.format(T=dialect.number, pitch=size | 1, unrolled=UNROLLED) if leaving else ""
    kernel = _Kernel(program, dtype, leaving, crowded)
    title = comment(f"{program.name}: a thread per state")
    return "\n".join((title, PRELUDE + tile + state, *kernel.lines(), ""))


class _Kernel:
    """The kernel around the function of one state."""

    def __init__(self, program: Program, dtype: str, tiled: Container[str], crowded: bool) -> None:
        self.type, self.bytes = DIALECTS[dtype].number, DIALECTS[dtype].bits // 8
        numbers = sum(p.size for p in program.inputs) + sum(o.slot.size for o in program.outputs)
        self.light = dtype == "float32" and sum(1 for _ in program.nodes()) < LIGHT * numbers
        self.room = 0  # places of a state in shared memory
        self.most = 0 if crowded else _most(dtype)
        tile = _group(dtype) | 1
        self.most -= tile * sum(o.name in tiled for o in program.outputs)
        shared = {p.size for p in program.inputs}  # a result that is as long takes an input's place
        long = [o.slot.size for o in program.outputs if o.kind == NUMBER and o.name not in tiled]
        kept = sum(size | 1 for size in long if size > SHORT and size not in shared)
        self.most -= kept  # room for results comes first: caches do not absorb what is written
        self.inputs = [self._argument(word(p.name), p.size) for p in program.inputs]
        self.most += kept
        free = {x.size: x for x in reversed(self.inputs) if x.way == "staged"}
        self.outputs = []
        for slot in program.signature.outputs:
            if slot.kind != NUMBER:
                rows = Argument(slot.name, slot.size, FLAGS_C)
            elif slot.name in tiled:
                rows = Argument(slot.name, slot.size, self.type, "tiled", self.room, tile)
                self.room += tile
            elif slot.size in free:  # in the place of an input that is as long
                rows = replace(free.pop(slot.size), name=slot.name)
            else:
                rows = self._argument(slot.name, slot.size)
            self.outputs.append(rows)

    def _argument(self, name: str, size: int) -> Argument:
        """An array, behind the others in shared memory if its rows are long and there is room."""
        pitch, place = size | 1, self.room
        if size <= SHORT or place + pitch > self.most:
            return Argument(name, size, self.type)
        self.room += pitch
        return Argument(name, size, self.type, "staged", place, pitch)

    def lines(self) -> list[str]:
        """The kernel as text."""
        T, all_rows = self.type, (*self.inputs, *self.outputs)
        arguments = ["const long long states"]
        for r in self.inputs:
            arguments += [f"const {T}* __restrict__ {r.name}", f"const long long {r.name}_row"]
        arguments += [f"{r.type}* __restrict__ {r.name}" for r in self.outputs]
        threads = next(n for n in THREADS if n * self.room * self.bytes <= SHARED)
        alone = "" if any(r.way == "tiled" for r in self.outputs) else "if (lane < count) "
        return [
            f"#define THREADS {threads}",
            'extern "C" __global__ void BOUNDS',
            f"linkwise({', '.join(arguments)})",
            "{",
            "    const int lane = threadIdx.x % WARP;",
            "    long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;",
            f"    EACH {{{'' if self.room or not self.light else f' {TAKES_TURNS}'}",
            "    const int count = (int)(states - first < WARP ? states - first : WARP);",
            "    const int own = lane < count ? lane : count - 1;",
            *self._shared(),
            *self._read(),
            *map(self._goal, self.outputs),
            f"    {alone}state({', '.join(f'own_{r.name}' for r in all_rows)});",
            *self._write(),
            "    }",
            "}",
        ]

    def _shared(self) -> list[str]:
        if not self.room:
            return []
        return [
            f"    __shared__ {self.type} room[THREADS * {self.room}];",
            f"    {self.type}* const warp = room + (threadIdx.x - lane) * {self.room};",
        ]

    def _read(self) -> list[str]:
        """Every thread's own rows of the inputs."""
        staged = [r for r in self.inputs if r.way == "staged"]
        lines = [self._straight(r) for r in self.inputs if r.way == "straight"]
        for r in staged:
            outside = f"{r.name}[(first + k / {r.size}) * {r.name}_row + k % {r.size}]"
            lines.append(f"    {self._each(r)} {self._inside(r)} = {outside};")
        lines += ["    __syncwarp();"] if staged else []
        return lines + [
            f"    const {r.type}* const own_{r.name} = {self._row(r, 'own')};" for r in staged
        ]

    def _straight(self, rows: Argument) -> str:
        """A row where it is: all of it now, where states have few numbers."""
        row = f"{rows.name} + (first + own) * {rows.name}_row"
        if not rows.size or sum(r.size for r in self.inputs) > AT_ONCE:
            return f"    const {self.type}* const own_{rows.name} = {row};"
        row = f"{rows.name}[(first + own) * {rows.name}_row + "
        numbers = ", ".join(f"{row}{k}]" for k in range(rows.size))
        return f"    const {self.type} own_{rows.name}[] = {{{numbers}}};"

    def _goal(self, rows: Argument) -> str:
        """Where the function of a state writes a result."""
        name, size, at = rows.name, rows.size, self._row(rows, "lane")
        if rows.way == "tiled":
            tile = f"warp + {rows.place} * WARP, {name} + first * {size}, {size}, count, lane"
            return f"    const Tile own_{name} = {{{tile}}};"
        if rows.way == "straight":
            at = f"{name} + (first + own) * {size}"
        return f"    {rows.type}* const own_{name} = {at};"

    def _write(self) -> list[str]:
        """The results of a warp, from shared to global memory."""
        lines = [
            f"    {self._each(r)} {r.name}[first * {r.size} + k] = {self._inside(r)};"
            for r in self.outputs
            if r.way == "staged"
        ]
        return ["    __syncwarp();", *lines] if lines else []

    def _row(self, rows: Argument, lane: str) -> str:
        return f"warp + {rows.place} * WARP + {lane} * {rows.pitch}"

    def _each(self, rows: Argument) -> str:
        return f"for (int k = lane; k < count * {rows.size}; k += WARP)"

    def _inside(self, rows: Argument) -> str:
        return f"warp[{rows.place} * WARP + k / {rows.size} * {rows.pitch} + k % {rows.size}]"
