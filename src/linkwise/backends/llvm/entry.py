"""The way from Python into a kernel: one compiled entry for every call that needs no thought.

The module rendered here knows no robot. A `Site` (``sites.py``) describes one call of one robot:
the sizes of its inputs and outputs, and its kernels. Two kinds of functions lead to it:

    site(capsule, args, ...)     a built-in function whose ``self`` is the capsule of a site
    method<k>(function, args, ...)  method k of the robot's class, the entry of a function whose
                                 first argument is the robot: the robot's own table of sites has
                                 the site of the call, by the frame's name where there is one

An entry takes exact NumPy arrays of one float type, contiguous or strided, one state or any leading
axes, inputs without leading axes beside others with them, flat lists and tuples of floats, and
``out=``. A function that returns parts of its result has them made here for one state.
Everything else it leaves to Python, which knows every rule and every message: a site
returns NotImplemented, a method runs the Python code of its function. So an entry may decline
whatever it likes, but must never accept what Python would refuse.

Offsets into CPython's and NumPy's structures are measured by ``layout.py`` and are part of the
text; addresses of objects and functions are read from a table (``runtime``), so that the compiled
module holds none.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from linkwise.backends.llvm import sites
from linkwise.backends.llvm.layout import Layout
from linkwise.backends.llvm.sites import NamedSite, Site, Slot, offset_of

I8, I32, I64 = (ir.IntType(n) for n in (8, 32, 64))
F64, PTR = ir.DoubleType(), ir.PointerType()
FASTCALL = ir.FunctionType(PTR, [PTR, PTR, I64, PTR])
ALIGNED, CONTIGUOUS, OWNED, WRITEABLE = 0x100, 0x1, 0x4, 0x400
MOST_AXES = 8
PORTS = sites.MOST_INPUTS + sites.MOST_OUTPUTS
DECLINED = 1  # returned instead of an object: Python shall decide
NULL = PTR(None)

Value = Any  # of LLVM


def render_entry(layout: Layout, path: Sequence[int], triple: str) -> str:
    """IR of the entry; ``path`` leads from a robot to its holder, and on to the capsule there."""
    module = ir.Module("entry")
    module.triple = triple
    table = ir.GlobalVariable(module, PTR, sites.TABLE)
    table.initializer = NULL
    collect = _collect(module, layout)
    run = _run(module, layout, collect)
    _site(module, layout, run)
    method = _method(module, layout, run, path)
    for place in range(sites.METHODS):
        _place(module, method, place)
    return str(module)


class Emit:
    """Instructions of one function, in order, with the little structure they need."""

    def __init__(self, module: ir.Module, name: str, kind: ir.FunctionType, layout: Layout) -> None:
        self.function = ir.Function(module, kind, name)
        self.layout = layout
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.declined = self.function.append_basic_block("declined")
        ir.IRBuilder(self.declined).ret(ir.Constant(I64, DECLINED).inttoptr(PTR))

    # -- memory ---------------------------------------------------------------------------------

    def room(self, kind: ir.Type, count: int = 1) -> Value:
        """Stack memory, taken once at the head of the function."""
        with self.b.goto_entry_block():
            return self.b.alloca(kind, I64(count))

    def at(self, base: Value, index: Value | int, kind: ir.Type = PTR) -> Value:
        """The address of an element."""
        place = I64(index) if isinstance(index, int) else index
        return self.b.gep(base, [place], source_etype=kind)

    def get(self, base: Value, index: Value | int = 0, kind: ir.Type = PTR) -> Value:
        """An element."""
        return self.b.load(self.at(base, index, kind), typ=kind)

    def put(self, value: Value, base: Value, index: Value | int = 0) -> None:
        """Set an element."""
        self.b.store(value, self.at(base, index, value.type))

    def field(self, base: Value, offset: int, kind: ir.Type = PTR) -> Value:
        """A value at a distance in bytes."""
        return self.b.load(self.at(base, offset, I8), typ=kind)

    def of(self, site: Value, name: str, kind: ir.Type = I64) -> Value:
        """A field of a site."""
        return self.field(site, offset_of(Site, name), kind)

    def size(self, site: Value, i: Value) -> Value:
        """How many numbers an input of a site has."""
        return self.get(self.at(site, offset_of(Site, "sizes"), I8), i, I64)

    # -- Python ---------------------------------------------------------------------------------

    def runtime(self, name: str) -> Value:
        """The address of an object or function of this process."""
        table = self.b.load(self.function.module.get_global(sites.TABLE), typ=PTR)
        return self.get(table, sites.RUNTIME.index(name))

    def call(self, address: Value, kind: ir.Type, *arguments: Value) -> Value:
        """Call what is at an address."""
        return self.b.call(_Callee(address, kind, arguments), arguments)

    def python(self, name: str, kind: ir.Type, *arguments: Value) -> Value:
        """Call a function of Python or NumPy."""
        return self.call(self.runtime(name), kind, *arguments)

    def is_a(self, thing: Value, kind: str) -> Value:
        """Whether an object is exactly of a type."""
        return self.same(self.field(thing, self.layout.type), self.runtime(kind))

    def array(self, thing: Value, name: str, kind: ir.Type = PTR) -> Value:
        """A field of an array."""
        return self.field(thing, getattr(self.layout, name), kind)

    def has_flags(self, array: Value, flags: int) -> Value:
        """Whether an array has all of the flags."""
        wanted = I32(flags)
        return self.same(self.b.and_(self.array(array, "flags", I32), wanted), wanted)

    def new_array(self, dtype: Value, axes: Value, shape: Value, data: Value = NULL) -> Value:
        """A new array, or one of data that are there; leaves with Python's error where there is no
        memory.
        """
        self.python("incref", I32, dtype)
        flags = 0 if data is NULL else CONTIGUOUS | ALIGNED | WRITEABLE
        plain = (NULL, data, I32(flags), NULL)  # strides, data, flags, parent
        given = (self.runtime("ndarray"), dtype, self.b.trunc(axes, I32), shape)
        made = self.python("new_array", PTR, *given, *plain)
        self.require(self.b.icmp_unsigned("!=", made, NULL), self.returning(NULL))
        return made

    def scalar_if(self, no_axes: Value, array: Value) -> Value:
        """The number in an array without axes, as NumPy's functions return it."""
        result = self.room(PTR)
        self.put(array, result)
        with self.b.if_then(no_axes):
            self.put(self.python("as_result", PTR, array), result)
        return self.get(result)

    # -- control --------------------------------------------------------------------------------

    def returning(self, value: Value) -> ir.Block:
        """A block that returns."""
        block = self.function.append_basic_block("leave")
        ir.IRBuilder(block).ret(value)
        return block

    def require(self, condition: Value, otherwise: ir.Block | None = None) -> None:
        """Go on where the condition holds, else leave the call to Python."""
        on = self.function.append_basic_block("on")
        self.b.cbranch(condition, on, otherwise or self.declined).set_weights([10_000, 1])
        self.b.position_at_end(on)

    @contextmanager
    def with_memory(self, *made: Value) -> Iterator[None]:
        """Run a kernel; if it got no memory, give up what was made for the call, which is left to
        Python and its message.
        """
        before = self.get(self.runtime("lacked"), 0, I64)
        yield
        lacking = self.function.append_basic_block("lacking")
        self.require(self.same(self.get(self.runtime("lacked"), 0, I64), before), lacking)
        with self.b.goto_block(lacking):
            for thing in made:
                self.python("decref", I32, thing)
            self.b.branch(self.declined)

    def same(self, a: Value, b: Value) -> Value:
        """Whether two integers, or two addresses, are equal."""
        return self.b.icmp_unsigned("==", a, b)

    @contextmanager
    def each(self, count: Value) -> Iterator[Value]:
        """A loop over 0, 1, ..., count - 1."""
        before, append = self.b.block, self.function.append_basic_block
        head, body, done = append("head"), append("body"), append("done")
        self.b.branch(head)
        self.b.position_at_end(head)
        i = self.b.phi(I64)
        i.add_incoming(I64(0), before)
        self.b.cbranch(self.b.icmp_signed("<", i, count), body, done)
        self.b.position_at_end(body)
        yield i
        after = self.b.add(i, I64(1))
        i.add_incoming(after, self.b.block)
        self.b.branch(head)
        self.b.position_at_end(done)


class _Callee:
    """An address with the signature it is called by, which opaque pointers do not carry."""

    def __init__(self, address: Value, kind: ir.Type, arguments: Sequence[Value]) -> None:
        self.type, self.get_reference = address.type, address.get_reference
        self.function_type = ir.FunctionType(kind, [a.type for a in arguments])


def _run(module: ir.Module, layout: Layout, collect: Value) -> Value:
    """``run(site, args, n, kwnames, kwargs, watched)``: one plain state here, others in collect.

    ``watched`` is the site for ``status=True``, or null.
    """
    e = Emit(module, "run", ir.FunctionType(PTR, [PTR, PTR, I64, PTR, PTR, PTR]), layout)
    chosen, args, n, kwnames, kwargs, watched = e.function.args
    ports, out, place = (
        e.room(PTR, PORTS),
        e.room(PTR),
        e.room(PTR),
    )
    e.put(NULL, out)
    e.put(chosen, place)
    with e.b.if_then(e.b.icmp_unsigned("!=", kwnames, NULL), likely=False):
        _keywords(e, kwnames, kwargs, out, place, watched)
    site = e.get(place)
    e.require(e.same(n, e.of(site, "inputs")))
    unusual = e.function.append_basic_block("unusual")
    one = e.of(site, "one", PTR)
    e.require(e.b.icmp_unsigned("!=", one, NULL), unusual)
    e.require(e.same(e.of(site, "outputs"), I64(1)), unusual)
    with e.each(n) as i:
        a = e.get(args, i)
        e.require(e.is_a(a, "ndarray"), unusual)
        e.require(e.same(e.array(a, "dtype"), e.runtime("float64")), unusual)
        e.require(e.has_flags(a, CONTIGUOUS | ALIGNED), unusual)
        e.require(e.same(e.array(a, "ndim", I32), I32(1)), unusual)
        size = e.size(site, i)
        e.require(e.same(e.get(e.array(a, "shape"), 0, I64), size), unusual)
        e.put(e.array(a, "data"), ports, i)
    axes, shape = e.of(site, "axes"), e.at(site, offset_of(Site, "shape"), I8)
    with e.b.if_then(e.b.icmp_unsigned("!=", e.get(out), NULL), likely=False):
        e.require(e.same(e.of(site, "parts"), I64(0)))
        _one_into(e, site, one, ports, n, e.get(out), unusual)
    with e.b.if_then(e.b.icmp_unsigned("!=", e.of(site, "parts"), I64(0)), likely=False):
        e.b.ret(_in_parts(e, site, one, ports, n))
    made = _spare_or_new(e, site, axes, shape)
    e.put(e.array(made, "data"), ports, n)
    with e.with_memory(made):
        e.call(one, ir.VoidType(), ports)
    with e.b.if_then(e.same(axes, I64(0)), likely=False):
        e.b.ret(e.python("as_result", PTR, made))
    e.b.ret(made)
    e.b.position_at_end(unusual)
    e.require(e.same(e.of(site, "parts"), I64(0)))  # Python cuts the results of many states
    e.b.ret(e.b.call(collect, [site, args, n, e.get(out)]))
    e.function.linkage = "internal"
    return e.function


def _in_parts(e: Emit, site: Value, one: Value, ports: Value, n: Value) -> Value:
    """Run one state; the tuple of its result's parts, which are arrays in one array's memory.

    A site keeps its last tuples, and the arrays behind them. A tuple that nobody else has, nor any
    of its parts, nor the array behind them, all still as they were made, is used again.
    """
    result, whole = e.room(PTR), e.room(PTR)
    found, ready = map(e.function.append_basic_block, ("parts_found", "parts_ready"))
    for k in range(sites.SPARES if e.layout.counted else 0):
        other = e.function.append_basic_block("other_parts")
        spare, behind = (
            e.field(site, offset_of(Site, name) + 8 * k) for name in ("spares", "wholes")
        )
        e.put(spare, result)
        e.put(behind, whole)
        e.require(e.b.icmp_unsigned("!=", spare, NULL), other)
        _require_unshared(e, site, spare, behind, other)
        e.b.branch(found)
        e.b.position_at_end(other)
    _new_parts(e, site, result, whole)
    e.b.branch(ready)
    e.b.position_at_end(found)
    e.python("incref", I32, e.get(result))
    e.b.branch(ready)
    e.b.position_at_end(ready)
    e.put(e.array(e.get(whole), "data"), ports, n)
    with e.with_memory(e.get(result)):
        e.call(one, ir.VoidType(), ports)
    if not e.layout.counted:
        e.python("decref", I32, e.get(whole))  # its parts keep it
    return e.get(result)


def _require_unshared(e: Emit, site: Value, spare: Value, whole: Value, otherwise: Any) -> None:
    """Go on where the site alone has a tuple, the tuple alone its parts, and they the whole."""
    parts = e.of(site, "parts")
    e.require(e.same(e.field(spare, 0, I32), I32(1)), otherwise)
    held = e.b.trunc(e.b.add(parts, I64(1)), I32)
    e.require(e.same(e.field(whole, 0, I32), held), otherwise)
    axes, shape = e.of(site, "part_axes"), e.at(site, offset_of(Site, "part_shape"), I8)
    items, begin = e.at(spare, e.layout.items, I8), e.array(whole, "data")
    with e.each(parts) as k:
        part = e.get(items, k)
        e.require(e.same(e.field(part, 0, I32), I32(1)), otherwise)
        e.require(e.same(e.array(part, "weakrefs"), NULL), otherwise)
        _require_form(e, part, e.runtime("float64"), 0, axes, shape, otherwise)
        at = e.at(begin, e.b.mul(k, e.of(site, "part_bytes")), I8)
        e.require(e.same(e.array(part, "data"), at), otherwise)


def _new_parts(e: Emit, site: Value, result: Value, whole: Value) -> None:
    """A new array and the tuple of its parts; the site keeps both in place of its oldest ones."""
    shape = e.at(site, offset_of(Site, "shape"), I8)
    e.put(e.new_array(e.runtime("float64"), e.of(site, "axes"), shape), whole)
    e.put(e.python("tuple_new", PTR, e.of(site, "parts")), result)
    e.require(e.b.icmp_unsigned("!=", e.get(result), NULL), e.returning(NULL))
    axes, shape = e.of(site, "part_axes"), e.at(site, offset_of(Site, "part_shape"), I8)
    with e.each(e.of(site, "parts")) as k:
        at = e.b.mul(k, e.of(site, "part_bytes"))
        data = e.at(e.array(e.get(whole), "data"), at, I8)
        part = e.new_array(e.runtime("float64"), axes, shape, data)
        e.python("incref", I32, e.get(whole))
        e.python("set_base", I32, part, e.get(whole))
        e.python("tuple_set", I32, e.get(result), k, part)
    if e.layout.counted:
        turn = e.of(site, "next_spare")
        e.python("incref", I32, e.get(result))
        for name, made in (("wholes", whole), ("spares", result)):
            _replace(e, e.at(e.at(site, offset_of(Site, name), I8), turn), e.get(made))
        _next_turn(e, site, turn)


def _spare_or_new(e: Emit, site: Value, axes: Value, shape: Value) -> Value:
    """An array for the result of one state: one that an earlier call made, if nobody has it now.

    Making and freeing an array takes as long as many a kernel. A site keeps a reference to its last
    results; when that is the only one, and the array is still as it was made, it is used again.
    """
    result = e.room(PTR)
    if not e.layout.counted:
        return e.new_array(e.runtime("float64"), axes, shape)
    found, ready = map(e.function.append_basic_block, ("found", "ready"))
    for k in range(sites.SPARES):
        changed, other = map(e.function.append_basic_block, ("changed", "other"))
        spare = e.field(site, offset_of(Site, "spares") + 8 * k)
        e.put(spare, result)
        e.require(e.b.icmp_unsigned("!=", spare, NULL), other)
        e.require(e.same(e.field(spare, 0, I32), I32(1)), other)
        e.require(e.same(e.array(spare, "weakrefs"), NULL), changed)
        _require_form(e, spare, e.runtime("float64"), OWNED, axes, shape, changed)
        e.b.branch(found)
        e.b.position_at_end(changed)
        e.put(NULL, e.at(site, offset_of(Site, "spares") + 8 * k, I8))
        e.python("decref", I32, spare)
        e.b.branch(other)
        e.b.position_at_end(other)
    e.put(e.new_array(e.runtime("float64"), axes, shape), result)
    e.python("incref", I32, e.get(result))
    _keep_spare(e, site, e.get(result))
    e.b.branch(ready)
    e.b.position_at_end(found)
    e.python("incref", I32, e.get(result))
    e.b.branch(ready)
    e.b.position_at_end(ready)
    return e.get(result)


def _keep_spare(e: Emit, site: Value, made: Value) -> None:
    """The site's reference goes from its oldest spare to a new array, which it now owns."""
    turn = e.of(site, "next_spare")
    place = e.at(e.at(site, offset_of(Site, "spares"), I8), turn)
    _next_turn(e, site, turn)
    _replace(e, place, made)


def _next_turn(e: Emit, site: Value, turn: Value) -> None:
    """The next spare takes the place after this one."""
    after = e.b.srem(e.b.add(turn, I64(1)), I64(sites.SPARES))
    e.put(after, e.at(site, offset_of(Site, "next_spare"), I8))


def _replace(e: Emit, place: Value, made: Value) -> None:
    """Own another object in a place from now on."""
    old = e.get(place)
    e.put(made, place)
    with e.b.if_then(e.b.icmp_unsigned("!=", old, NULL)):
        e.python("decref", I32, old)


def _require_form(
    e: Emit, a: Value, dtype: Value, flags: int, axes: Value, shape: Value, otherwise: Any = None
) -> None:
    """Go on with an array to write to as it comes, of a type and a shape, and with more flags."""
    e.require(e.is_a(a, "ndarray"), otherwise)
    e.require(e.same(e.array(a, "dtype"), dtype), otherwise)
    e.require(e.has_flags(a, CONTIGUOUS | ALIGNED | WRITEABLE | flags), otherwise)
    e.require(e.same(e.b.sext(e.array(a, "ndim", I32), I64), axes), otherwise)
    with e.each(axes) as k:
        same = e.same(e.get(e.array(a, "shape"), k, I64), e.get(shape, k, I64))
        e.require(same, otherwise)


def _one_into(
    e: Emit, site: Value, one: Value, ports: Value, n: Value, out: Value, unusual: ir.Block
) -> None:
    """One state straight into ``out``, where that fits and lies apart from the inputs."""
    axes, shape = e.of(site, "axes"), e.at(site, offset_of(Site, "shape"), I8)
    _require_form(e, out, e.runtime("float64"), 0, axes, shape, unusual)
    begin = e.b.ptrtoint(e.array(out, "data"), I64)
    end = e.b.add(begin, e.b.mul(e.of(site, "size"), I64(8)))
    with e.each(n) as i:
        size = e.size(site, i)
        low = e.b.ptrtoint(e.get(ports, i), I64)
        high = e.b.add(low, e.b.mul(size, I64(8)))
        apart = e.b.or_(e.b.icmp_unsigned("<=", high, begin), e.b.icmp_unsigned("<=", end, low))
        e.require(apart, unusual)
    e.put(e.array(out, "data"), ports, n)
    with e.with_memory():
        e.call(one, ir.VoidType(), ports)
    e.python("incref", I32, out)
    e.b.ret(out)


def _keywords(
    e: Emit, kwnames: Value, kwargs: Value, out: Value, site: Value, watched: Value
) -> None:
    """``out=``, ``threads=`` and ``status=``; a call that is short needs no second thread."""
    names = e.at(kwnames, e.layout.items, I8)
    with e.each(e.field(kwnames, e.layout.length, I64)) as k:
        name, given = e.get(names, k), e.get(kwargs, k)
        nothing = e.same(given, e.runtime("none"))
        is_out, is_status, is_threads = (
            e.same(name, e.runtime(f"name_{word}")) for word in ("out", "status", "threads")
        )
        e.require(e.b.or_(is_out, e.b.or_(is_status, is_threads)))
        with e.b.if_then(is_out):
            e.put(e.b.select(nothing, NULL, given), out)
        with e.b.if_then(is_status):
            yes = e.same(given, e.runtime("true"))
            e.require(e.b.or_(yes, e.same(given, e.runtime("false"))))
            e.put(e.b.select(yes, watched, e.get(site)), site)
            e.require(e.b.icmp_unsigned("!=", e.get(site), NULL))
        with e.b.if_then(e.b.and_(is_threads, e.b.not_(nothing))):
            e.require(e.is_a(given, "int"))
            number = e.python("as_double", F64, given)
            _decline_overflow(e)
            e.require(e.b.fcmp_ordered(">=", number, F64(1.0)))


class _Collected:
    """Variables of ``collect``: what was found out about the arguments so far."""

    def __init__(self, e: Emit) -> None:
        self.ports = e.room(PTR, PORTS)
        self.steps = e.room(I64, 2 * sites.MOST_INPUTS)  # bytes from row to row, and within a row
        self.shape = e.room(I64, MOST_AXES + 3)  # leading axes, then those of the output
        self.scratch = e.room(F64, sites.SCRATCH)
        self.dtype, self.axes, self.rows, self.used = (
            e.room(kind) for kind in (PTR, I64, I64, I64)
        )
        e.put(NULL, self.dtype)
        for variable, start in ((self.axes, 0), (self.rows, 1), (self.used, 0)):
            e.put(I64(start), variable)


def _collect(module: ir.Module, layout: Layout) -> Value:
    """``collect(site, args, n, out)``: strided arrays, lists, batches, ``out``, a status."""
    e = Emit(module, "collect", ir.FunctionType(PTR, [PTR, PTR, I64, PTR]), layout)
    site, args, n, out = e.function.args
    c = _Collected(e)
    with e.each(n) as i:
        size = e.size(site, i)
        with e.b.if_else(e.is_a(e.get(args, i), "ndarray")) as (is_array, is_not):
            with is_array:
                _take_array(e, c, e.get(args, i), i, size)
            with is_not:
                _take_numbers(e, c, e.get(args, i), i, size)
    rows = e.get(c.rows, 0, I64)
    e.require(e.b.icmp_signed(">", rows, I64(0)))
    e.require(e.b.icmp_signed("<=", rows, e.of(site, "most_rows")))
    wide = e.same(e.get(c.dtype), e.runtime("float64"))
    one = e.of(site, "one", PTR)
    single = e.b.and_(e.same(e.get(c.axes, 0, I64), I64(0)), wide)
    with e.b.if_then(single):
        _straighten(e, c, site, n)
    batch = e.b.select(wide, e.of(site, "wide", PTR), e.of(site, "narrow", PTR))
    e.require(e.b.icmp_unsigned("!=", e.b.select(single, one, batch), NULL))
    result = _result_array(e, c, site, n, out)
    bits = _status_array(e, c, site, n)
    with e.with_memory(e.b.select(e.same(out, NULL), result, NULL), bits):
        _compute(e, c, site, one, batch, single)
    _return(e, c, site, result, bits, out)
    e.function.attributes.add("noinline")
    e.function.linkage = "internal"
    return e.function


def _take_array(e: Emit, c: _Collected, a: Value, i: Value, size: Value) -> None:
    """Data and steps of an array; its leading axes are those of all, or it has none."""
    dtype, first = e.array(a, "dtype"), e.same(e.get(c.dtype), NULL)
    with e.b.if_then(first):
        e.put(dtype, c.dtype)
    e.require(e.same(dtype, e.get(c.dtype)))
    known = (e.same(dtype, e.runtime(name)) for name in ("float64", "float32"))
    e.require(e.b.or_(*known))
    e.require(e.has_flags(a, ALIGNED))
    ndim = e.b.sext(e.array(a, "ndim", I32), I64)
    e.require(e.b.icmp_signed(">=", ndim, I64(1)))
    e.require(e.b.icmp_signed("<=", ndim, I64(MOST_AXES)))
    shape, strides, last = e.array(a, "shape"), e.array(a, "strides"), e.b.sub(ndim, I64(1))
    e.require(e.same(e.get(shape, last, I64), size))
    place = e.b.mul(i, I64(2))
    e.put(e.array(a, "data"), c.ports, i)
    e.put(I64(0), c.steps, place)
    e.put(e.get(strides, last, I64), c.steps, e.b.add(place, I64(1)))
    with e.b.if_then(e.b.icmp_signed(">", last, I64(0))):
        _leading_axes(e, c, shape, last)
        _one_step(e, shape, strides, last)
        e.put(e.get(strides, e.b.sub(last, I64(1)), I64), c.steps, place)


def _leading_axes(e: Emit, c: _Collected, shape: Value, count: Value) -> None:
    """The first array with leading axes sets them; others must have the same."""
    with e.b.if_else(e.same(e.get(c.axes, 0, I64), I64(0))) as (first, other):
        with first:
            e.put(count, c.axes)
            with e.each(count) as k:
                length = e.get(shape, k, I64)
                e.put(length, c.shape, k)
                e.put(e.b.mul(e.get(c.rows, 0, I64), length), c.rows)
        with other:
            e.require(e.same(count, e.get(c.axes, 0, I64)))
            with e.each(count) as k:
                e.require(e.same(e.get(shape, k, I64), e.get(c.shape, k, I64)))


def _one_step(e: Emit, shape: Value, strides: Value, count: Value) -> None:
    """Leading axes must be one axis of rows: each step is as long as the next axis."""
    with e.each(e.b.sub(count, I64(1))) as k:
        after = e.b.add(k, I64(1))
        whole = e.b.mul(e.get(strides, after, I64), e.get(shape, after, I64))
        e.require(e.same(e.get(strides, k, I64), whole))


def _take_numbers(e: Emit, c: _Collected, a: Value, i: Value, size: Value) -> None:
    """A flat list or tuple of floats and integers becomes a row of float64."""
    e.require(e.b.or_(e.is_a(a, "list"), e.is_a(a, "tuple")))
    e.require(e.same(e.python("sequence_size", I64, a), size))
    with e.b.if_then(e.same(e.get(c.dtype), NULL)):
        e.put(e.runtime("float64"), c.dtype)
    e.require(e.same(e.get(c.dtype), e.runtime("float64")))
    row = _scratch_row(e, c, size)
    with e.each(size) as k:
        item = e.python("sequence_item", PTR, a, k)
        e.require(e.b.icmp_unsigned("!=", item, NULL), e.returning(NULL))
        whole = e.is_a(item, "int")
        real = e.b.or_(e.b.or_(e.is_a(item, "float"), e.is_a(item, "number")), whole)
        number = e.room(F64)
        with e.b.if_then(real):
            e.put(e.python("as_double", F64, item), number)
        e.python("decref", I32, item)
        e.require(real)
        e.put(e.get(number, 0, F64), row, k)
        with e.b.if_then(whole):
            _decline_overflow(e)
            e.require(_is_int64(e, e.get(number, 0, F64)))
    place = e.b.mul(i, I64(2))
    e.put(row, c.ports, i)
    e.put(I64(0), c.steps, place)
    e.put(I64(8), c.steps, e.b.add(place, I64(1)))


def _decline_overflow(e: Emit) -> None:
    """Leave an integer beyond every float to Python, which must not find the error of it."""
    with e.b.if_then(e.b.icmp_unsigned("!=", e.python("error_occurred", PTR), NULL), likely=False):
        e.python("error_clear", I32)
        e.b.branch(e.declined)


def _is_int64(e: Emit, x: Value) -> Value:
    """Whether NumPy would hold an integer of this size as int64; others it refuses, or we do."""
    below = e.b.fcmp_ordered("<", x, F64(2.0**63))
    return e.b.and_(below, e.b.fcmp_ordered(">=", x, F64(-(2.0**63))))


def _scratch_row(e: Emit, c: _Collected, size: Value) -> Value:
    """Room for a row of numbers."""
    used = e.get(c.used, 0, I64)
    after = e.b.add(used, size)
    e.require(e.b.icmp_signed("<=", after, I64(sites.SCRATCH)))
    e.put(after, c.used)
    return e.at(c.scratch, used, F64)


def _straighten(e: Emit, c: _Collected, site: Value, n: Value) -> None:
    """A single state as contiguous rows: strided ones are copied."""
    with e.each(n) as i:
        step = e.get(c.steps, e.b.add(e.b.mul(i, I64(2)), I64(1)), I64)
        with e.b.if_then(e.b.icmp_unsigned("!=", step, I64(8))):
            size = e.size(site, i)
            row, source = _scratch_row(e, c, size), e.get(c.ports, i)
            with e.each(size) as k:
                number = e.get(e.at(source, e.b.mul(k, step), I8), 0, F64)
                e.put(number, row, k)
            e.put(row, c.ports, i)


def _result_array(e: Emit, c: _Collected, site: Value, n: Value, out: Value) -> Value:
    """A new array for the result, or ``out`` where it fits."""
    lead, own = e.get(c.axes, 0, I64), e.of(site, "axes")
    with e.each(own) as k:
        length = e.get(e.at(site, offset_of(Site, "shape"), I8), k, I64)
        e.put(length, c.shape, e.b.add(lead, k))
    axes, result = e.b.add(lead, own), e.room(PTR)
    e.require(e.b.icmp_signed("<=", axes, I64(MOST_AXES)))
    with e.b.if_else(e.same(out, NULL)) as (fresh, given):
        with fresh:
            e.put(e.new_array(e.get(c.dtype), axes, c.shape), result)
        with given:
            _check_out(e, c, site, n, out, axes)
            e.put(out, result)
    e.put(e.array(e.get(result), "data"), c.ports, n)
    return e.get(result)


def _check_out(e: Emit, c: _Collected, site: Value, n: Value, out: Value, axes: Value) -> None:
    """``out`` must be an array to write the result to as it comes, apart from all inputs."""
    e.require(e.same(e.of(site, "outputs"), I64(1)))
    _require_form(e, out, e.get(c.dtype), 0, axes, c.shape)
    rows, wide = e.get(c.rows, 0, I64), e.same(e.get(c.dtype), e.runtime("float64"))
    number = e.b.select(wide, I64(8), I64(4))
    begin = e.b.ptrtoint(e.array(out, "data"), I64)
    end = e.b.add(begin, e.b.mul(e.b.mul(rows, e.of(site, "size")), number))
    with e.each(n) as i:
        low, high = _extent(e, c, site, i, rows, number)
        apart = e.b.or_(e.b.icmp_unsigned("<=", high, begin), e.b.icmp_unsigned("<=", end, low))
        e.require(apart)


def _extent(
    e: Emit, c: _Collected, site: Value, i: Value, rows: Value, number: Value
) -> tuple[Value, Value]:
    """The lowest address of an input, and the end of its highest number."""
    low = high = e.b.ptrtoint(e.get(c.ports, i), I64)
    size = e.size(site, i)
    for k, count in enumerate((rows, size)):
        step = e.get(c.steps, e.b.add(e.b.mul(i, I64(2)), I64(k)), I64)
        reach = e.b.mul(step, e.b.sub(count, I64(1)))
        back = e.b.icmp_signed("<", reach, I64(0))
        low = e.b.add(low, e.b.select(back, reach, I64(0)))
        high = e.b.add(high, e.b.select(back, I64(0), reach))
    return low, e.b.add(high, number)


def _status_array(e: Emit, c: _Collected, site: Value, n: Value) -> Value:
    """The status flags of each state if the site has a second output, else null."""
    bits = e.room(PTR)
    e.put(NULL, bits)
    with e.b.if_then(e.same(e.of(site, "outputs"), I64(2))):
        made = e.new_array(e.runtime("uint16"), e.get(c.axes, 0, I64), c.shape)
        e.put(made, bits)
        e.put(e.array(made, "data"), c.ports, e.b.add(n, I64(1)))
    return e.get(bits)


def _compute(e: Emit, c: _Collected, site: Value, one: Value, batch: Value, single: Value) -> None:
    """Run the kernel; long runs let other Python threads in."""
    rows = e.get(c.rows, 0, I64)
    with e.b.if_else(single) as (alone, many):
        with alone:
            e.call(one, ir.VoidType(), c.ports)
        with many:
            run = (batch, ir.VoidType(), c.ports, c.steps, I64(0), rows)
            quick = e.b.icmp_signed("<=", rows, e.of(site, "quick_rows"))
            with e.b.if_else(quick) as (short, long):
                with short:
                    e.call(*run)
                with long:
                    thread = e.python("save_thread", PTR)
                    e.call(*run)
                    e.python("restore_thread", I32, thread)


def _return(e: Emit, c: _Collected, site: Value, result: Value, bits: Value, out: Value) -> None:
    """The result, or the pair of it and the status."""
    lead = e.get(c.axes, 0, I64)
    with e.b.if_then(e.b.icmp_unsigned("!=", out, NULL)):
        e.python("incref", I32, out)
        e.b.ret(out)
    no_axes = e.same(e.b.add(lead, e.of(site, "axes")), I64(0))
    first = e.scalar_if(no_axes, result)
    e.require(e.b.icmp_unsigned("!=", bits, NULL), e.returning(first))
    pair = e.python("tuple_new", PTR, I64(2))
    e.require(e.b.icmp_unsigned("!=", pair, NULL), e.returning(NULL))
    e.python("tuple_set", I32, pair, I64(0), first)
    e.python("tuple_set", I32, pair, I64(1), e.scalar_if(e.same(lead, I64(0)), bits))
    e.b.ret(pair)


def _answer(e: Emit, run: Value, *given: Value) -> None:
    """Return what ``run`` returns; what is emitted next is for calls that it, or we, decline."""
    answer = e.b.call(run, given)
    e.require(e.b.icmp_unsigned("!=", e.b.ptrtoint(answer, I64), I64(DECLINED)))
    e.b.ret(answer)
    e.declined.instructions.clear()
    e.declined.terminator = None
    e.b.position_at_end(e.declined)


def _site(module: ir.Module, layout: Layout, run: Value) -> None:
    """The built-in function of a site."""
    e = Emit(module, sites.SITE, FASTCALL, layout)
    capsule, args, n, kwnames = e.function.args
    _answer(e, run, e.field(capsule, layout.capsule), args, n, kwnames, e.at(args, n), NULL)
    e.python("incref", I32, e.runtime("declined"))
    e.b.ret(e.runtime("declined"))


def _method(module: ir.Module, layout: Layout, run: Value, path: Sequence[int]) -> Value:
    """``method(function, args, n, kwnames, place)``: the site of the robot's slot, or Python.

    The robot is the first of the arguments, as of any function; Python marks their count by a bit
    if the word before them may be written.
    """
    e = Emit(module, sites.METHOD, ir.FunctionType(PTR, [*FASTCALL.args, I64]), layout)
    _, all_args, marked, kwnames, place = e.function.args
    every = e.b.and_(marked, I64(2**63 - 1))
    e.require(e.b.icmp_unsigned("!=", every, I64(0)))
    robot, args, n = e.get(all_args), e.at(all_args, 1), e.b.sub(every, I64(1))
    _require_robot(e, robot)
    holder = e.field(robot, path[0])
    e.require(e.b.icmp_unsigned("!=", holder, NULL))
    e.require(e.is_a(holder, "holder"))
    slots = e.field(holder, path[1])
    e.require(e.b.icmp_unsigned("!=", slots, NULL))
    mine = e.at(e.field(slots, layout.capsule), e.b.mul(place, I64(ctypes.sizeof(Slot))), I8)
    site, count = e.room(PTR), e.room(I64)
    e.put(e.field(mine, offset_of(Slot, "site")), site)
    e.put(n, count)
    named = e.b.icmp_signed(">", e.field(mine, offset_of(Slot, "count"), I64), I64(0))
    with e.b.if_then(e.b.and_(named, e.b.icmp_signed(">", n, I64(0)))):
        _find_frame(e, mine, e.get(args, e.b.sub(n, I64(1))), site)
        e.put(e.b.sub(n, I64(1)), count)
    found = e.get(site)
    e.require(e.b.icmp_unsigned("!=", found, NULL))
    watched = e.field(mine, offset_of(Slot, "watched"))
    _answer(e, run, found, args, e.get(count, 0, I64), kwnames, e.at(args, n), watched)
    function = e.get(e.runtime("functions"), place)
    e.b.ret(e.python("python_code", PTR, function, all_args, marked, kwnames))
    e.function.linkage = "internal"
    return e.function


def _require_robot(e: Emit, thing: Value) -> None:
    """Go on if an object is of the class whose methods have entries, or of a subclass."""
    append = e.function.append_basic_block
    kind, other, on = e.field(thing, e.layout.type), append("other_class"), append("robot")
    e.b.cbranch(e.same(kind, e.runtime("owner")), on, other)
    e.b.position_at_end(other)
    below = e.python("is_subtype", I32, kind, e.runtime("owner"))
    e.b.cbranch(e.b.icmp_unsigned("!=", below, I32(0)), on, e.declined)
    e.b.position_at_end(on)


def _find_frame(e: Emit, slot: Value, frame: Value, site: Value) -> None:
    """The site of a frame's name, where this very name was used before."""
    named = e.at(slot, offset_of(Slot, "named"), I8)
    with e.each(e.field(slot, offset_of(Slot, "count"), I64)) as k:
        entry = e.at(named, e.b.mul(k, I64(ctypes.sizeof(NamedSite))), I8)
        with e.b.if_then(e.same(e.field(entry, offset_of(NamedSite, "name")), frame)):
            e.put(e.field(entry, offset_of(NamedSite, "site")), site)


def _place(module: ir.Module, method: Value, place: int) -> None:
    function = ir.Function(module, FASTCALL, f"{sites.METHOD}{place}")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    b.ret(b.call(method, [*function.args, I64(place)]))
