"""Rows of a tile on their way from scratch to an output: whole cache lines, perhaps past the cache.

A tile writes its rows to scratch where that is faster than writing them to the output at once:

    rows that are a multiple of a page apart compete for the same lines of the cache (rows.py);
    a row that is mostly zeros need not be computed where they are: between the numbers around it, a
        hole of equal numbers is filled from one of them;
    results larger than the caches are streamed: lines written past them need not be read first.

Measured on Zen 4, gigabytes a second of one core: results larger than the caches 20 written tile by
tile and 28 streamed, of zeros 30 and 80.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from linkwise.backends.llvm.types import Lanes, Lines
from linkwise.trace.expr import Expr

LINE = 64  # bytes of a line of the cache
STREAMED = 1 << 23  # bytes of results from which they are written past the caches
LONG = 2048  # bytes of a row from which that is worth a copy
SPARSE = 0.5  # share of a row's numbers in holes from which they are left out

Holes = tuple[tuple[int, int], ...]


def holes(values: Sequence[Expr], lanes: Lanes) -> Holes:
    """Ranges of a row with one and the same value, from which a tile need not write all.

    None where they are a small part of the row. Lines of the cache lie in a row as chance has it:
    those that reach over an end of a hole are copied, so the tile writes the ends.
    """
    if len(values) * lanes.number.bytes < LONG or lanes.width == 1:
        return ()
    found = tuple(
        (start, end)
        for start, end in equal(values, lanes.width)
        if end - start > 2 * edge(lanes) + LINE // lanes.number.bytes
    )
    left_out = sum(end - start - 2 * edge(lanes) for start, end in found)
    return found if left_out >= SPARSE * len(values) else ()


def edge(lanes: Lanes) -> int:
    """Numbers at either end of a hole that a tile writes: whole registers, a line at least."""
    return max(LINE // lanes.number.bytes, lanes.width)


def equal(values: Sequence[Expr], width: int) -> Iterator[tuple[int, int]]:
    """Ranges of whole registers' worth that hold one value alone."""
    starts = range(0, len(values) - width + 1, width)
    only = [values[k] if len(set(values[k : k + width])) == 1 else None for k in starts]
    for value, group in groupby(zip(only, starts, strict=True), lambda pair: pair[0]):
        if value is not None:
            places = [start for _, start in group]
            yield places[0], places[-1] + width


def table(name: str, found: Holes) -> str:
    """Holes as a constant: where each begins and ends."""
    numbers = ", ".join(f"i64 {x}" for hole in found for x in hole)
    return f"@{name} = private constant [{2 * len(found)} x i64] [{numbers}]\n" if found else ""


def copy_function(T: str, number_bytes: int, streamed: bool) -> str:
    """Copy rows of scratch, ``pitch`` apart, to contiguous rows of an output, and fill their holes.

    Up to the first line of the output, and from the last on, number by number.
    """
    out = Lines()
    with out.counting("%rows") as k:
        source, target = out.element(T, "%from", k, "%pitch"), out.element(T, "%to", k, "%size")
        _Row(out, T, number_bytes, streamed, source, target).copy()
    arguments = "ptr %from, ptr %to, i64 %size, i64 %pitch, i64 %rows, ptr %holes, i64 %count"
    return out.function(f"@{'stream' if streamed else 'copy'}_{T}({arguments}) #0")


class _Row:
    """One row on its way."""

    def __init__(
        self, out: Lines, T: str, number_bytes: int, streamed: bool, source: str, target: str
    ) -> None:
        self.out, self.T, self.bytes, self.many = out, T, number_bytes, LINE // number_bytes
        self.line = f"<{self.many} x {T}>"
        self.flag = ", !nontemporal !2" if streamed else ""
        self.source, self.target = source, target
        address = out.let(f"ptrtoint ptr {target} to i64")
        past = out.let(f"and i64 {out.let(f'sub i64 0, {address}')}, {LINE - 1}")
        ahead = out.let(f"udiv i64 {past}, {number_bytes}")
        # the first number that begins a line of the output
        self.first = out.let(f"call i64 @llvm.smin.i64(i64 {ahead}, i64 %size)")

    def copy(self) -> None:
        """All of it, hole by hole."""
        out = self.out
        self._one_by_one("0", self.first)
        before, head, body, done = out.current, *map(out.label, ("hole", "fill", "filled"))
        out.add(f"  br label %{head}")
        out.start(head)
        phis = len(out.text)  # they go here, once the back edge is known
        number, place = f"%{head}.k", f"%{head}.at"
        more = out.let(f"icmp slt i64 {number}, %count")
        out.add(f"  br i1 {more}, label %{body}, label %{done}")
        out.start(body)
        after, following = self._hole(number, place), out.let(f"add i64 {number}, 1")
        out.text[phis:phis] = [
            f"  {number} = phi i64 [ 0, %{before} ], [ {following}, %{out.current} ]",
            f"  {place} = phi i64 [ {self.first}, %{before} ], [ {after}, %{out.current} ]",
        ]
        out.add(f"  br label %{head}")
        out.start(done)
        last = self._line_at("%size", down=True)
        self._lines(place, last)
        self._one_by_one(last, "%size")

    def _hole(self, number: str, place: str) -> str:
        """The lines before a hole and those inside it; returns where the next one begins."""
        out, line = self.out, self.line
        twice = out.let(f"shl i64 {number}, 1")
        begin = out.load("i64", "%holes", twice)
        end = out.load("i64", "%holes", out.let(f"or i64 {twice}, 1"))
        near, far = self._line_at(begin, down=False), self._line_at(end, down=True)
        self._lines(place, near)
        value = out.load(self.T, self.source, begin)
        one = out.let(f"insertelement {line} poison, {self.T} {value}, i64 0")
        zeros = ", ".join(["i32 0"] * self.many)
        same = out.let(f"shufflevector {line} {one}, {line} poison, <{self.many} x i32> <{zeros}>")
        with out.counting(far, near, self.many) as k:
            self._put(line, same, k, LINE)
        return far

    def _line_at(self, number: str, down: bool) -> str:
        """The number that begins the line around another one, or the line after it."""
        ahead = self.out.let(f"sub i64 {number}, {self.first}")
        ahead = ahead if down else self.out.let(f"add i64 {ahead}, {self.many - 1}")
        whole = self.out.let(f"and i64 {ahead}, {-self.many}")
        return self.out.let(f"add i64 {whole}, {self.first}")

    def _lines(self, begin: str, end: str) -> None:
        with self.out.counting(end, begin, self.many) as k:
            some = self.out.load(self.line, self.out.element(self.T, self.source, k), 0, self.bytes)
            self._put(self.line, some, k, LINE)

    def _one_by_one(self, begin: str, end: str) -> None:
        """As whole numbers, which processors can stream one by one."""
        kind = f"i{8 * self.bytes}"
        with self.out.counting(end, begin) as k:
            self._put(kind, self.out.load(kind, self.source, k), k, self.bytes)

    def _put(self, kind: str, x: str, place: str, align: int) -> None:
        at = self.out.element(self.T, self.target, place)
        self.out.add(f"  store {kind} {x}, ptr {at}, align {align}{self.flag}")
