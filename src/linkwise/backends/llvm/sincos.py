"""Sine and cosine in line, for every finite angle to 2.2e-16 (float32: 1.1e-7) absolute.

    n = round(x 2/pi),  r = x - n pi/2  (pi/2 in parts; with fused multiply-adds the first step is
    exact),  sin r and cos r by polynomials on |r| <= pi/4, then swapped and signed by n mod 4.

The parts hold to |x| <= LIMIT. Larger angles are rare, so all angles of a group share one test;
when any lane fails it, that lane's r and n are replaced by a Payne-Hanek reduction with 192 bits of
1/(2 pi), and no other lane is touched. Infinite and NaN angles give NaN. Coefficients:
tools/sincos_coefficients.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from linkwise.backends.llvm.types import Lanes, Lines, Number

SIN = {
    64: (1.591810123027412e-10, -2.5051131455427946e-08, 2.755731610068303e-06,
         -0.0001984126983675497, 0.008333333333330946, -0.16666666666666666),
    32: (-0.00019587840521305324, 0.008332748037517147, -0.16666664661114838),
}  # fmt: skip
COS = {
    64: (-1.1382614868556325e-11, 2.0876146024689747e-09, -2.7557317270560326e-07,
         2.4801587298763433e-05, -0.0013888888888887395, 0.041666666666666664),
    32: (2.454789161981386e-05, -0.0013888302802309161, 0.04166666465830042),
}  # fmt: skip

# pi/2 in parts. Fused: each part is the rest rounded. Plain: leading parts are short, so that
# their products with n are exact.
PARTS_FUSED = {
    64: (1.5707963267948966, 6.123233995736766e-17),
    32: (1.5707963705062866, -4.371139000186241e-08, -1.7151245100058819e-15),
}
PARTS_PLAIN = {
    64: (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
    32: (1.5703125, 0.0004838267783634, 6.077094383e-11),
}
LIMIT_FUSED = {64: 2.0**30, 32: 2.0**16}
LIMIT_PLAIN = {64: 2.0**19, 32: 2.0**9}

TABLE_BITS = 1216


@dataclass(frozen=True)
class Reduced:
    """An angle less the nearest multiple of a right angle; ``t`` holds the multiple in low bits."""

    r: str
    t: str


def emit_sincos(out: Lines, lanes: Lanes, fused: bool, angles: list[str]) -> list[tuple[str, str]]:
    """Sines and cosines of several angles, behind one range test."""
    reduced = [_reduce(out, lanes, fused, x) for x in angles]
    reduced = _guard_large(out, lanes, fused, angles, reduced)
    return [_evaluate(out, lanes, fused, pair) for pair in reduced]


def multiply_add(out: Lines, lanes: Lanes, fused: bool, a: str, b: str, c: str) -> str:
    """``a*b + c``, in one rounding where the target can."""
    T = lanes.type
    if fused:
        return out.let(f"call {T} @llvm.fma.{lanes.suffix}({T} {a}, {T} {b}, {T} {c})")
    product = out.let(f"fmul {T} {a}, {b}")
    return out.let(f"fadd {T} {product}, {c}")


def _reduce(out: Lines, lanes: Lanes, fused: bool, x: str) -> Reduced:
    T, bits = lanes.type, lanes.number.bits
    shift = lanes.constant(lanes.number.shift)
    t = multiply_add(out, lanes, fused, x, lanes.constant(2 / math.pi), shift)
    n = out.let(f"fsub {T} {t}, {shift}")
    minus = out.let(f"fneg {T} {n}")
    r = x
    for part in (PARTS_FUSED if fused else PARTS_PLAIN)[bits]:
        r = multiply_add(out, lanes, fused, minus, lanes.constant(part), r)
    return Reduced(r, t)


def _guard_large(
    out: Lines, lanes: Lanes, fused: bool, angles: list[str], reduced: list[Reduced]
) -> list[Reduced]:
    """Replace what the parts cannot reduce; the common path costs a compare per angle."""
    T, w, k = lanes.type, lanes.width, len(angles)
    limit = lanes.constant((LIMIT_FUSED if fused else LIMIT_PLAIN)[lanes.number.bits])
    large = ""
    for x in angles:
        size = out.let(f"call {T} @llvm.fabs.{lanes.suffix}({T} {x})")
        beyond = out.let(f"fcmp ogt {T} {size}, {limit}")
        large = out.let(f"or {lanes.vector('i1')} {large}, {beyond}") if large else beyond
    if w > 1:
        mask = out.let(f"bitcast {lanes.vector('i1')} {large} to i{w}")
        large = out.let(f"icmp ne i{w} {mask}, 0")
    near, cold, done = out.current, out.label("large"), out.label("reduced")
    out.add(f"  br i1 {large}, label %{cold}, label %{done}, !prof !0")
    out.start(cold)
    spots = [f"%angles, i64 0, i64 {row}" for row in range(k)]
    room = f"[{k} x {T}]"
    for name, values in (("angles", angles), ("rest", [p.r for p in reduced]),
                         ("turns", [p.t for p in reduced])):  # fmt: skip
        for spot, value in zip(spots, values, strict=True):
            at = out.let(f"getelementptr {room}, ptr {spot.replace('angles', name)}")
            out.add(f"  store {T} {value}, ptr {at}")
    out.add(f"  call void @reduce_large(ptr %angles, ptr %rest, ptr %turns, i64 {k * w})")
    back = []
    for spot in spots:
        at = out.let(f"getelementptr {room}, ptr {spot.replace('angles', 'rest')}")
        r = out.let(f"load {T}, ptr {at}")
        at = out.let(f"getelementptr {room}, ptr {spot.replace('angles', 'turns')}")
        back.append(Reduced(r, out.let(f"load {T}, ptr {at}")))
    out.add(f"  br label %{done}")
    out.start(done)
    return [
        Reduced(
            out.let(f"phi {T} [ {a.r}, %{near} ], [ {b.r}, %{cold} ]"),
            out.let(f"phi {T} [ {a.t}, %{near} ], [ {b.t}, %{cold} ]"),
        )
        for a, b in zip(reduced, back, strict=True)
    ]


def polynomial(
    out: Lines, lanes: Lanes, fused: bool, z: str, coefficients: tuple[float, ...]
) -> str:
    """Horner's scheme, highest power first."""
    value = lanes.constant(coefficients[0])
    for c in coefficients[1:]:
        value = multiply_add(out, lanes, fused, value, z, lanes.constant(c))
    return value


def _evaluate(out: Lines, lanes: Lanes, fused: bool, angle: Reduced) -> tuple[str, str]:
    T, I, bits = lanes.type, lanes.integer, lanes.number.bits  # noqa: E741
    r = angle.r
    z = out.let(f"fmul {T} {r}, {r}")
    rz = out.let(f"fmul {T} {r}, {z}")
    zz = out.let(f"fmul {T} {z}, {z}")
    s = multiply_add(out, lanes, fused, rz, polynomial(out, lanes, fused, z, SIN[bits]), r)
    head = multiply_add(out, lanes, fused, z, lanes.constant(-0.5), lanes.constant(1.0))
    c = multiply_add(out, lanes, fused, zz, polynomial(out, lanes, fused, z, COS[bits]), head)
    n = out.let(f"bitcast {T} {angle.t} to {I}")
    odd = out.let(f"and {I} {n}, {lanes.bits(1)}")
    swap = out.let(f"icmp ne {I} {odd}, {lanes.bits(0)}")
    choose = f"select {lanes.vector('i1')} {swap}, {T}"
    sine = out.let(f"{choose} {c}, {T} {s}")
    cosine = out.let(f"{choose} {s}, {T} {c}")
    next_n = out.let(f"add {I} {n}, {lanes.bits(1)}")
    return _signed(out, lanes, sine, n), _signed(out, lanes, cosine, next_n)


def _signed(out: Lines, lanes: Lanes, value: str, n: str) -> str:
    """``value``, negated where bit 1 of n is set."""
    T, I, bits = lanes.type, lanes.integer, lanes.number.bits  # noqa: E741
    up = out.let(f"shl {I} {n}, {lanes.bits(bits - 2)}")
    sign = out.let(f"and {I} {up}, {lanes.bits(-(1 << (bits - 1)))}")
    raw = out.let(f"bitcast {T} {value} to {I}")
    flipped = out.let(f"xor {I} {raw}, {sign}")
    return out.let(f"bitcast {I} {flipped} to {T}")


def _table() -> str:
    """2**TABLE_BITS / (2 pi) as little-endian bytes, from Machin's formula in integers."""
    digits = TABLE_BITS + 64
    unit = 1 << digits

    def arctan_inverse(x: int) -> int:
        term = total = unit // x
        k, sign = 1, -1
        while term:
            term //= x * x
            k += 2
            total += sign * (term // k)
            sign = -sign
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    value = (1 << (digits + TABLE_BITS)) // (2 * pi)
    data = value.to_bytes(TABLE_BITS // 8 + 24, "little")
    return "".join(f"\\{b:02X}" for b in data)


def cold_reduction(number: Number, fused: bool) -> str:
    """IR of the Payne-Hanek reduction, over an array of angles; skips those in range."""
    T, limit = number.llvm, (LIMIT_FUSED if fused else LIMIT_PLAIN)[number.bits]
    size = TABLE_BITS // 8 + 24
    f64 = number.bits == 64
    widen = "%wide = fadd double %x, 0.0" if f64 else "%wide = fpext float %x to double"
    narrow = "fadd double {}, 0.0" if f64 else "fptrunc double {} to float"
    inf = "0x7FF0000000000000"
    return f"""
@two_pi_inverse = private unnamed_addr constant [{size} x i8] c"{_table()}", align 16

define internal void @reduce_large(ptr %angles, ptr %rest, ptr %turns, i64 %count) #1 {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %tail ]
  %px = getelementptr {T}, ptr %angles, i64 %i
  %x = load {T}, ptr %px
  {widen}
  %size = call double @llvm.fabs.f64(double %wide)
  %big = fcmp ogt double %size, {number.constant(limit)}
  br i1 %big, label %reduce, label %tail
reduce:
  %bits = bitcast double %size to i64
  %biased = lshr i64 %bits, 52
  %e = sub i64 %biased, 1075
  %low = and i64 %bits, 4503599627370495
  %m = or i64 %low, 4503599627370496
  %above = sub i64 {TABLE_BITS - 192}, %e
  %inside = call i64 @llvm.smax.i64(i64 %above, i64 0)
  %byte = lshr i64 %inside, 3
  %at = getelementptr i8, ptr @two_pi_inverse, i64 %byte
  %window = load i256, ptr %at, align 1
  %m256 = zext i64 %m to i256
  %product = mul i256 %window, %m256
  %skipped = shl i64 %byte, 3
  %below = sub i64 {TABLE_BITS}, %e
  %fraction_bits = sub i64 %below, %skipped
  %by = sub i64 256, %fraction_bits
  %by256 = zext i64 %by to i256
  %aligned = shl i256 %product, %by256
  %top256 = lshr i256 %aligned, 192
  %top = trunc i256 %top256 to i64
  %half = add i64 %top, 2305843009213693952
  %n = ashr i64 %half, 62
  %whole = shl i64 %n, 62
  %left = sub i64 %top, %whole
  %leftf = sitofp i64 %left to double
  %r = fmul double %leftf, {NUMBER64.constant(math.pi / 2 * 2.0**-62)}
  %nf = sitofp i64 %n to double
  %rneg = fneg double %r
  %nneg = fneg double %nf
  %negative = fcmp olt double %wide, 0.0
  %rs = select i1 %negative, double %rneg, double %r
  %ns = select i1 %negative, double %nneg, double %nf
  %endless = fcmp oeq double %size, {inf}
  %rr = select i1 %endless, double 0x7FF8000000000000, double %rs
  %tt = fadd double %ns, {NUMBER64.constant(number.shift)}
  %rout = {narrow.format("%rr")}
  %tout = {narrow.format("%tt")}
  %pr = getelementptr {T}, ptr %rest, i64 %i
  store {T} %rout, ptr %pr
  %pt = getelementptr {T}, ptr %turns, i64 %i
  store {T} %tout, ptr %pt
  br label %tail
tail:
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %head, label %done
done:
  ret void
}}
"""


NUMBER64 = Number("float64", "double", "f64", 64, 1.5 * 2.0**52)
