"""Long rows of results: a tile keeps each of their values once, and a loop writes the rows.

Of the many entries of a matrix few differ: there are zeros, and both halves of a symmetric one. The
tile writes each value to a column of its own, a register's worth of states side by side. A list
beside the code says in which column each entry is, and a loop puts rows together, of all states of
a tile at the same time:

    a group    as many neighbours as a register holds: their columns, turned to rows
    a run      a range with one value, which need not be turned

So the code of a tile does not grow with the entries, and no register waits for its neighbours.
Where rows are whole registers long, groups begin where an aligned register does in memory: no write
touches two lines of the cache, and long results can be written past it (`copies.py`). The first and
last group of a row may overlap others; rows that begin with a line have none such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from linkwise.backends.llvm.copies import Holes, edge, equal, holes, table
from linkwise.backends.llvm.types import Lanes, Lines
from linkwise.trace.expr import Expr
from linkwise.trace.program import FLAGS, Output

MANY = 1500  # results from which their rows are put together
SHORT = 2  # registers full of one value that a run has at least
REPEATED = 16  # registers full of one value from which a loop writes them in a row of one state


def by_columns(output: Output, lanes: Lanes) -> bool:
    """Whether the rows of an output are put together from columns."""
    many = max(MANY, 2 * lanes.width)  # a group at either end, at least
    return output.kind != FLAGS and lanes.width > 1 and len(output.values) > many


class Run(NamedTuple):
    """A range of a row with one value, and where the one before ends."""

    before: int
    begin: int
    end: int


class Columns:
    """The columns of one output, and how its rows are made of them; the index names its arrays and
    functions in the loops over tiles.
    """

    def __init__(self, index: int, output: Output, lanes: Lanes) -> None:
        self.index, self.lanes, self.size = index, lanes, len(output.values)
        self.places = {value: k for k, value in enumerate(dict.fromkeys(output.values))}
        self._values = output.values
        self.in_step = self.size % lanes.width == 0  # all rows begin alike in memory
        self.holes: Holes = () if self.in_step else holes(output.values, lanes)

    @property
    def column_bytes(self) -> int:
        """Of one column, a whole register."""
        return self.lanes.width * self.lanes.number.bytes

    @property
    def bytes(self) -> int:
        """Of all columns."""
        return len(self.places) * self.column_bytes

    def store(self, out: Lines, base: str, value: Expr, register: str) -> None:
        """Write a value to its column."""
        out.store(self.lanes.type, register, base, self.places[value], self.column_bytes)

    def functions(self, *, stream: bool) -> str:
        """The functions that write the rows of a tile, and their lists."""
        i, places = self.index, [self.column_bytes * self.places[x] for x in self._values]
        code = [self._list("places", places), *self._rows("rows", self._runs())]
        if stream and self.in_step:
            code += self._rows("past", self._runs(), past=True)
        elif stream:
            code += [*self._rows("ends", self._ends()), table(f"holes{i}", self.holes)]
        return "".join(code)

    def _rows(self, name: str, runs: list[Run], *, past: bool = False) -> tuple[str, str]:
        """The function of a name that writes rows, and the list of its runs."""
        nothing = runs[-1].end if runs else 0, self.size - 1, self.size - 1
        numbers = [x for run in (*runs, nothing) for x in run]
        made = _Rows(self, f"@{name}_runs{self.index}", len(runs) + 1, past)
        return self._list(f"{name}_runs", numbers), made.function(f"@{name}{self.index}")

    def _runs(self) -> list[Run]:
        """Ranges of a row with one value."""
        W, found, before = self.lanes.width, [], 0
        for begin, end in equal(self._values, W):
            if end - begin >= SHORT * W:
                found.append(Run(before, begin, end))
                before = end
        return found

    def _ends(self) -> list[Run]:
        """Runs, of which only the ends are written where `copies.py` fills them."""
        found, width = [], edge(self.lanes)
        for run in self._runs():
            if run[1:] in self.holes:
                last = run.end - width
                found += [run._replace(end=run.begin + width), Run(last, last, run.end)]
            else:
                found.append(run)
        return found

    def put_together(self, out: Lines, rows: str, to: str, *, stream: bool) -> None:
        """Write rows of a tile to an output: all straight, where they can be; else by scratch."""
        i, T = self.index, self.lanes.number.llvm
        whole = rows == str(self.lanes.width)
        if whole and (self.in_step or not stream):
            out.add(f"  call void @{'past' if stream else 'rows'}{i}(ptr %pad{i}, ptr {to})")
            return
        name, by = ("ends", "stream") if whole else ("rows", "copy")
        out.add(f"  call void @{name}{i}(ptr %pad{i}, ptr %rows{i})")
        gaps = (
            f"ptr @holes{i}, i64 {len(self.holes)}" if whole and self.holes else "ptr null, i64 0"
        )
        sizes = f"i64 {self.size}, i64 {self.size}, i64 {rows}, {gaps}"
        out.add(f"  call void @{by}_{T}(ptr %rows{i}, ptr {to}, {sizes})")

    def _list(self, name: str, numbers: Sequence[int]) -> str:
        text = ", ".join(f"i32 {x}" for x in numbers)
        return f"@{name}{self.index} = private constant [{len(numbers)} x i32] [{text}]\n"


class Repeated:
    """Ranges with one value in the long row of one state: a loop writes them, whole registers."""

    def __init__(self, index: int, output: Output, lanes: Lanes, register: Lanes) -> None:
        self.index, self.register = index, register
        self.ranges: dict[Expr, list[tuple[int, int]]] = {}
        if output.kind == FLAGS or lanes.width > 1 or register.width == 1:
            return
        if len(output.values) <= MANY:
            return
        for begin, end in equal(output.values, register.width):
            self.ranges.setdefault(output.values[begin], []).append((begin, end))
        for value, some in list(self.ranges.items()):
            if sum(end - begin for begin, end in some) < REPEATED * register.width:
                del self.ranges[value]

    def covered(self) -> set[int]:
        """The numbers of a row that loops write."""
        return {k for some in self.ranges.values() for run in some for k in range(*run)}

    def fill(self, out: Lines, values: Sequence[str]) -> None:
        """Write each value, in a register, to its ranges."""
        kind, i = self.register.number.llvm, self.index
        for k, (x, some) in enumerate(zip(values, self.ranges.values(), strict=True)):
            given = f"ptr %out{i}, {kind} {x}, ptr @repeated{i}_{k}, i64 {len(some)}"
            out.add(f"  call void @repeat{i}({given})")

    def function(self) -> str:
        """The function that writes a value to ranges, and the lists of these."""
        if not self.ranges:
            return ""
        out, lanes, i = Lines(), self.register, self.index
        T, W, kind = lanes.type, lanes.width, lanes.number.llvm
        one = out.let(f"insertelement {T} poison, {kind} %x, i64 0")
        mask = ", ".join(["i32 0"] * W)
        row = out.let(f"shufflevector {T} {one}, {T} poison, <{W} x i32> <{mask}>")
        with out.counting("%count") as k:
            twice = out.let(f"shl i64 {k}, 1")
            begin = out.load("i64", "%runs", twice)
            end = out.load("i64", "%runs", out.let(f"or i64 {twice}, 1"))
            with out.counting(end, begin, W) as j:
                at = out.element(kind, "%to", j)
                out.add(f"  store {T} {row}, ptr {at}, align {lanes.number.bytes}")
        lists = (
            table(f"repeated{i}_{k}", tuple(some)) for k, some in enumerate(self.ranges.values())
        )
        head = f"@repeat{i}(ptr %to, {kind} %x, ptr %runs, i64 %count) #0"
        return out.function(head) + "".join(lists)


class _Rows:
    """A function that writes the rows of one tile, perhaps past the caches: groups up to each run,
    then the run.
    """

    def __init__(self, columns: Columns, runs: str, count: int, past: bool) -> None:
        self.columns, self.lanes, self.out = columns, columns.lanes, Lines()
        self._runs, self._count, self._past = runs, count, past
        self._first = self._last = ""  # numbers that aligned groups begin with

    def function(self, name: str) -> str:
        """Its IR."""
        out, (W, size) = self.out, (self.lanes.width, self.columns.size)
        self._first = self._aligned_number() if self.columns.in_step else "0"
        self._ends()
        self._last = self._down(str(size))
        with out.counting(self._count) as k:
            before, begin, end = self._run(k)
            from_ = self._most(self._first, self._down(before))
            near = self._up(begin)
            to = out.let(f"call i64 @llvm.smin.i64(i64 {near}, i64 {self._last})")
            with out.counting(to, from_, W) as start:
                self._group(start, aligned=True)
            far = self._down(end)
            for lane, row in enumerate(self._splats(begin)):
                with out.counting(far, near, W) as start:
                    self._put(start, lane, row, aligned=True)
        return out.function(f"{name}(ptr noalias %from, ptr noalias %to) #0")

    def _ends(self) -> None:
        """The first and the last group of a row, unless rows begin and end with a register."""
        in_step = self.columns.in_step
        off = self.out.let(f"icmp ne i64 {self._first}, 0") if in_step else "true"
        with self.out.counting(self.out.let(f"zext i1 {off} to i64")):  # once, or not at all
            for number in (0, self.columns.size - self.lanes.width):
                self._group(str(number), aligned=False)

    def _run(self, k: str) -> list[str]:
        first = self.out.let(f"mul i64 {k}, 3")
        own = self.out.element("i32", self._runs, first)
        return [self._whole(own, j) for j in range(3)]

    def _whole(self, base: str, k: int | str) -> str:
        return self.out.let(f"zext i32 {self.out.load('i32', base, k)} to i64")

    def _aligned_number(self) -> str:
        """The first number of a row that begins an aligned register in memory."""
        address = self.out.let("ptrtoint ptr %to to i64")
        back = self.out.let(f"sub i64 0, {address}")
        off = self.out.let(f"and i64 {back}, {self.columns.column_bytes - 1}")
        return self.out.let(f"udiv i64 {off}, {self.lanes.number.bytes}")

    def _down(self, number: str) -> str:
        """The number from which on the group around another one is, perhaps before the row."""
        ahead = self.out.let(f"sub i64 {number}, {self._first}")
        whole = self.out.let(f"and i64 {ahead}, {-self.lanes.width}")
        return self.out.let(f"add i64 {whole}, {self._first}")

    def _up(self, number: str) -> str:
        return self._down(self.out.let(f"add i64 {number}, {self.lanes.width - 1}"))

    def _most(self, a: str, b: str) -> str:
        return self.out.let(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})")

    def _group(self, start: str, *, aligned: bool) -> None:
        """Neighbours from one number on, in all rows."""
        own = self.out.element("i32", f"@places{self.columns.index}", start)
        places = [self._whole(own, k) for k in range(self.lanes.width)]
        for lane, row in enumerate(self._turned(places)):
            self._put(start, lane, row, aligned=aligned)

    def _splats(self, number: str) -> Iterator[str]:
        """For each state its value of a number, in a whole register."""
        out, (T, W) = self.out, (self.lanes.type, self.lanes.width)
        at = out.element("i8", "%from", self._whole(f"@places{self.columns.index}", number))
        x = out.load(T, at, 0, self.columns.column_bytes)
        for lane in range(W):
            mask = ", ".join([f"i32 {lane}"] * W)
            yield out.let(f"shufflevector {T} {x}, {T} poison, <{W} x i32> <{mask}>")

    def _turned(self, places: Sequence[str]) -> list[str]:
        """Columns as rows.

        Loads do the first round: of columns k and k + width / 2, the halves of the same states are
        loaded into one register. Both halves of all registers are then turned at the same time.
        """
        half = self.lanes.width // 2
        starts = [self.out.element("i8", "%from", place) for place in places]
        rows: list[str] = []
        for part in range(2):
            halves = [self._half(start, part) for start in starts]
            pairs = zip(halves[:half], halves[half:], strict=True)
            rows += self._turned_halves([self._both(a, b) for a, b in pairs])
        return rows

    def _half(self, start: str, part: int) -> str:
        half = self.lanes.width // 2
        kind = f"<{half} x {self.lanes.number.llvm}>"
        return self.out.load(kind, start, part, half * self.lanes.number.bytes)

    def _both(self, a: str, b: str) -> str:
        W, kind = self.lanes.width, f"<{self.lanes.width // 2} x {self.lanes.number.llvm}>"
        order = ", ".join(f"i32 {k}" for k in range(W))
        return self.out.let(f"shufflevector {kind} {a}, {kind} {b}, <{W} x i32> <{order}>")

    def _turned_halves(self, now: list[str]) -> list[str]:
        """Rounds of interleaving, within each half of every register."""
        T, W, out = self.lanes.type, self.lanes.width, self.out
        half, quarter = W // 2, W // 4
        mixed = [i for k in range(half) for i in (k, W + k)]  # a0 b0 a1 b1 ...
        orders = [[*some, *(half + i for i in some)] for some in (mixed[:half], mixed[half:])]
        masks = [", ".join(f"i32 {i}" for i in order) for order in orders]
        for _ in range(half.bit_length() - 1):
            pairs = zip(now[:quarter], now[quarter:], strict=True)
            now = [
                out.let(f"shufflevector {T} {a}, {T} {b}, <{W} x i32> <{mask}>")
                for a, b in pairs for mask in masks
            ]  # fmt: skip
        return now

    def _put(self, start: str, lane: int, row: str, *, aligned: bool) -> None:
        """Write a register's worth of one row."""
        number, out = self.lanes.number, self.out
        whole = aligned and self.columns.in_step
        align = self.columns.column_bytes if whole else number.bytes
        flag = ", !nontemporal !2" if whole and self._past else ""
        at = out.element(number.llvm, "%to", start)
        to = out.element(number.llvm, at, lane * self.columns.size)
        out.add(f"  store {self.lanes.type} {row}, ptr {to}, align {align}{flag}")
