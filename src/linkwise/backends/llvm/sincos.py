"""Sine and cosine in line (`elementary.py`), several angles behind one test for large ones.

When any lane of any angle of a group is beyond the limit, a function replaces what was reduced
there, and touches no other lane.
"""

from __future__ import annotations

from linkwise.backends import elementary
from linkwise.backends.elementary import Reduced
from linkwise.backends.llvm.types import NUMBERS, Code, Lanes, Lines, Number


def emit_sincos(code: Code, angles: list[str]) -> list[tuple[str, str]]:
    """Sines and cosines of several angles."""
    reduced = [elementary.reduce(code, x) for x in angles]
    reduced = _guard_large(code, angles, reduced)
    return [elementary.sincos(code, pair) for pair in reduced]


def _guard_large(code: Code, angles: list[str], reduced: list[Reduced]) -> list[Reduced]:
    """Replace what the parts of pi/2 cannot reduce; usually that costs a compare per angle."""
    out, lanes = code.out, code.lanes
    T, w = lanes.type, lanes.width
    limit = code.number(elementary.limit(code.bits, code.fused))
    large = ""
    for x in angles:
        beyond = code.do("greater", code.do("abs", x), limit)
        large = out.let(f"or {lanes.vector('i1')} {large}, {beyond}") if large else beyond
    large = code.any(large)
    near, cold, done = out.current, out.label("large"), out.label("reduced")
    out.add(f"  br i1 {large}, label %{cold}, label %{done}, !prof !0")
    out.start(cold)
    rooms = {"%angles": angles, "%rest": [p.r for p in reduced], "%turns": [p.t for p in reduced]}
    for room, values in rooms.items():
        for k, value in enumerate(values):
            out.store(T, value, room, k)
    count = len(angles) * w
    out.add(f"  call void @reduce_large(ptr %angles, ptr %rest, ptr %turns, i64 {count})")
    back = [Reduced(out.load(T, "%rest", k), out.load(T, "%turns", k)) for k in range(len(angles))]
    out.add(f"  br label %{done}")
    out.start(done)
    return [
        Reduced(*(out.let(f"phi {T} [ {x}, %{near} ], [ {y}, %{cold} ]") for x, y in pairs))
        for pairs in (zip(a, b, strict=True) for a, b in zip(reduced, back, strict=True))
    ]


def cold_reduction(number: Number, fused: bool) -> str:
    """A function that reduces those of an array of angles that are beyond the limit."""
    T, double, out = number.llvm, NUMBERS["float64"], Lines()
    code = Code(out, Lanes(double, 1), fused)
    with out.counting("%count") as k:
        reduce, skip = out.label("reduce"), out.label("skip")
        x = out.load(T, "%angles", k)
        x = x if number is double else out.let(f"fpext float {x} to double")
        limit = code.number(elementary.limit(number.bits, fused))
        large = code.do("greater", code.do("abs", x), limit)
        out.add(f"  br i1 {large}, label %{reduce}, label %{skip}")
        out.start(reduce)
        for room, value in zip(
            ("%rest", "%turns"), elementary.reduce_large(code, x, number.bits), strict=True
        ):
            found = value if number is double else out.let(f"fptrunc double {value} to float")
            out.store(T, found, room, k)
        out.add(f"  br label %{skip}")
        out.start(skip)
    words = [f"i64 {word}" for word in elementary.two_pi_inverse()]
    table = f"private unnamed_addr constant [{len(words)} x i64] [{', '.join(words)}]"
    function = out.function("@reduce_large(ptr %angles, ptr %rest, ptr %turns, i64 %count) #1")
    return f"\n@two_pi_inverse = {table}\n{function}"
