"""Rows in memory <-> columns in registers: one vector per variable, a lane per state.

Measured on AVX-512: reading lane by lane beats transposing, because loads leave the arithmetic
ports free; writing a full register's worth of columns is faster transposed (log2(width) rounds of
interleaving), because it takes ``width`` times fewer stores.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.backends.llvm.types import Lanes, Lines
from linkwise.trace.program import FLAGS_BYTES

FLAG = f"i{8 * FLAGS_BYTES}"  # status flags in memory
_PAGE = 4096  # bytes: rows so far apart, or a multiple, compete for the same lines of the cache


def pitch(lanes: Lanes, size: int) -> int:
    """Numbers from one row of a tile's output to the next: one cache line more where rows compete.

    The tile is then written to scratch, and copied from there (``loops.py``).
    """
    apart = size * lanes.number.bytes % _PAGE == 0 and lanes.width > 1 and size > 0
    return size + 64 // lanes.number.bytes if apart else size


def load_column(out: Lines, lanes: Lanes, base: str, size: int, index: int) -> str:
    """One element of every row, lane by lane; rows have ``size`` numbers."""
    T, rows = lanes.number.llvm, range(lanes.width)
    return pack(out, lanes, [out.load(T, base, row * size + index) for row in rows])


def store_columns(
    out: Lines,
    lanes: Lanes,
    base: str,
    size: int,
    start: int,
    columns: Sequence[str],
    turned: dict[tuple[str, ...], list[str]],
) -> None:
    """Write adjacent columns of every row: a full register transposed, fewer lane by lane.

    ``turned`` remembers what was transposed before: a matrix may hold many equal blocks.
    """
    if lanes.width == 1 or len(columns) < lanes.width:
        for k, column in enumerate(columns):
            _scatter(out, lanes, base, size, start + k, column)
        return
    key = tuple(columns)
    if key not in turned:
        turned[key] = transpose(out, lanes, columns)
    _store_rows(out, lanes, base, size, start, turned[key])


def store_flags(out: Lines, lanes: Lanes, base: str, size: int, index: int, value: str) -> None:
    """Write one element of every row as status flags: a small integer."""
    narrow = out.let(f"fptoui {lanes.type} {value} to {lanes.vector(FLAG)}")
    for lane, flags in enumerate(unpack(out, lanes, narrow, FLAG)):
        out.store(FLAG, flags, base, lane * size + index, FLAGS_BYTES)


def _store_rows(
    out: Lines, lanes: Lanes, base: str, size: int, start: int, rows: Sequence[str]
) -> None:
    number = lanes.number
    for lane, row in enumerate(rows):
        at = out.element(number.llvm, base, lane * size + start)
        out.add(f"  store {lanes.type} {row}, ptr {at}, align {number.bytes}")


def transpose(out: Lines, lanes: Lanes, vectors: Sequence[str]) -> list[str]:
    """``width`` vectors of ``width`` lanes, rows for columns."""
    half, rounds = lanes.width // 2, lanes.width.bit_length() - 1
    now = list(vectors)
    for _ in range(rounds):
        pairs = zip(now[:half], now[half:], strict=True)
        now = [mixed for a, b in pairs for mixed in _interleave(out, lanes, a, b)]
    return now


def _interleave(out: Lines, lanes: Lanes, a: str, b: str) -> tuple[str, str]:
    """``a0 b0 a1 b1 ...``, in two vectors."""
    T, W = lanes.type, lanes.width
    order = [i for k in range(W) for i in (k, W + k)]

    def shuffle(places: list[int]) -> str:
        mask = ", ".join(f"i32 {i}" for i in places)
        return out.let(f"shufflevector {T} {a}, {T} {b}, <{W} x i32> <{mask}>")

    return shuffle(order[:W]), shuffle(order[W:])


def _scatter(out: Lines, lanes: Lanes, base: str, size: int, index: int, value: str) -> None:
    for lane, x in enumerate(unpack(out, lanes, value)):
        out.store(lanes.number.llvm, x, base, lane * size + index)


def pack(out: Lines, lanes: Lanes, scalars: Sequence[str]) -> str:
    """Scalars -> the lanes of one vector."""
    if lanes.width == 1:
        return scalars[0]
    vector = "poison"
    for lane, x in enumerate(scalars):
        vector = out.let(
            f"insertelement {lanes.type} {vector}, {lanes.number.llvm} {x}, i64 {lane}"
        )
    return vector


def unpack(out: Lines, lanes: Lanes, vector: str, scalar: str | None = None) -> list[str]:
    """The lanes of one vector, of numbers unless told, -> scalars."""
    if lanes.width == 1:
        return [vector]
    kind = lanes.vector(scalar or lanes.number.llvm)
    return [out.let(f"extractelement {kind} {vector}, i64 {lane}") for lane in range(lanes.width)]
