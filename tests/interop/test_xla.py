"""The code by which XLA starts a kernel of a GPU, called as XLA does; a driver listens."""

import ctypes
import gc
from ctypes import CFUNCTYPE, c_int, c_int32, c_int64, c_uint, c_void_p

import pytest

from linkwise.backends.base import Launch
from linkwise.backends.llvm import xla
from linkwise.backends.llvm.xla import GONE, Entry, launcher, sweep
from linkwise.trace.program import Port, Signature, Slot

NOT_CURRENT, CONTEXT, STREAM, KERNEL = 201, 0x700, 0x51, 0xC0DE
SIZES = (7, 6)  # of two inputs


class Frame:
    """A call frame of xla/ffi/api/c_api.h, and XLA's functions."""

    def __init__(self, shape):
        self.kept, self.messages, self.codes = [], [], []
        buffers = [self.buffer(0x1000 * (k + 1), (*shape, n)) for k, n in enumerate((*SIZES, 9))]
        self.args, self.rets = (self.table(*x) for x in (buffers[:2], buffers[2:]))
        self.get = CFUNCTYPE(c_void_p, c_void_p)(self.stream)
        self.make = CFUNCTYPE(c_void_p, c_void_p)(self.error)
        api = self.table(*[0] * 6, self.at(self.make), *[0] * 3, self.at(self.get))
        self.words = [152, 0, api, 0xC7, 0, 0, 0, 2, 0, self.args, 0, 0, 0, 1, self.rets]
        assert self.words.index(self.args) * 8 == 72 and self.words.index(self.rets) * 8 == 112
        types = self.table(3 | 3 << 32)
        self.words += [48, 0, 2, types, 0, 0]
        assert self.words.index(types) * 8 == 144

    @staticmethod
    def at(function):
        return ctypes.cast(function, c_void_p).value

    def table(self, *words):
        made = (c_int64 * len(words))(*words)
        self.kept.append(made)
        return ctypes.addressof(made)

    def buffer(self, data, shape):
        return self.table(48, 0, 0, data, len(shape), self.table(*shape))

    def stream(self, asked):
        words = (c_int64 * 4).from_address(asked)
        assert words[0] == 32 and words[2] == 0xC7
        words[3] = STREAM

    def error(self, asked):
        words = (c_int64 * 4).from_address(asked)
        self.messages.append(ctypes.string_at(words[2]).decode())
        assert words[0] == 28
        self.codes.append(words[3] & 0xFFFFFFFF)
        return 0xE

    def call(self, code, digest=0, number=0):
        values = [self.table(16, self.table(x)) for x in (digest, number)]
        self.words[20] = self.table(*values)
        return CFUNCTYPE(c_void_p, c_void_p)(code.address["xla"])(self.table(*self.words))


class Driver:
    """Writes down what it is told, and answers with given codes."""

    def __init__(self, *answers):
        self.answers, self.calls, self.entered = iter(answers), [], []
        kinds = [c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p]
        self.launch = CFUNCTYPE(c_int, *kinds)(self.started)
        self.enter = CFUNCTYPE(c_int, c_void_p)(self.current)

    def started(self, kernel, blocks, _y, _z, threads, _ty, _tz, shared, stream, places, extra):
        assert (kernel, shared, stream, extra) == (KERNEL, 0, STREAM, None)
        values = [c_int64.from_address(x).value for x in (c_int64 * 6).from_address(places)]
        self.calls.append((blocks, threads, values))
        return next(self.answers)

    def current(self, context):
        self.entered.append(context)
        return 0

    def entry(self, threads=64, turns=1, busy=8):
        signature = Signature(
            tuple(Port(f"x{k}", size) for k, size in enumerate(SIZES)), (Slot("y", (3, 3)),)
        )
        addresses = (Frame.at(self.launch), Frame.at(self.enter))
        launch = Launch(signature, KERNEL, *addresses, CONTEXT, NOT_CURRENT, threads, turns, busy)
        return Entry(self, launch[1:], signature)

    def called(self, frame, **options):
        """The answer to a call of a kernel of this driver."""
        entry = self.entry(**options)
        return frame.call(launcher(len(SIZES), 1), entry.digest, entry.number)


def test_a_launch_has_the_rows_and_pointers_of_the_call():
    driver = Driver(0)
    assert driver.called(Frame((5, 40))) is None
    assert driver.calls == [(4, 64, [200, 0x1000, 7, 0x2000, 6, 0x3000])]
    assert not driver.entered


@pytest.mark.parametrize(("rows", "blocks"), [(0, None), (1, 1), (64 * 8, 8), (64 * 20, 8),
                                              (64 * 40, 10), (64 * 40 + 1, 11)])  # fmt: skip
def test_threads_take_turns(rows, blocks):
    driver = Driver(0)
    assert driver.called(Frame((rows,)), turns=4) is None
    assert [call[0] for call in driver.calls] == ([] if blocks is None else [blocks])


def test_a_thread_without_a_device_is_given_one():
    driver = Driver(NOT_CURRENT, 0)
    assert driver.called(Frame((3,))) is None
    assert driver.entered == [CONTEXT] and len(driver.calls) == 2


def test_a_refusal_is_told_to_xla():
    frame = Frame((3,))
    assert Driver(700).called(frame) == 0xE and frame.codes == [13]
    assert frame.messages == ["linkwise: the GPU refused a kernel"]


def test_the_interface_asks_for_its_version():
    """The answer: version 0.1, and a handler whose work may be recorded and repeated."""
    frame, answer = Frame((1,)), (c_int32 * 12)(*[-1] * 12)
    frame.kept.append(answer)
    frame.words[1] = frame.table(32, 1, 0, ctypes.addressof(answer))
    assert frame.call(launcher(len(SIZES), 1)) is None
    assert answer[6:9] == [0, 1, 1]


def test_a_kernel_that_is_gone_is_an_error_and_its_slot_is_used_again():
    driver, frame = Driver(0, 0, 0), Frame((3,))
    entry, code = driver.entry(), launcher(len(SIZES), 1)
    digest, number = entry.digest, entry.number
    del entry
    gc.collect()
    assert frame.call(code, digest, number) is None  # XLA may be about to call it
    sweep(lambda: False)
    assert frame.call(code, digest, number) is None
    sweep(lambda: True)
    others = [driver.entry() for _ in range(len(xla._free))]
    slots = [entry.number % xla.SLOTS for entry in others]
    assert number % xla.SLOTS in slots and number not in [entry.number for entry in others]
    assert frame.call(code, digest, number) == 0xE
    assert frame.messages == [GONE] and frame.codes == [9] and len(driver.calls) == 2
    (other,) = (entry for entry in others if entry.number % xla.SLOTS == number % xla.SLOTS)
    assert frame.call(code, other.digest + 1, other.number) == 0xE  # of another process
    assert frame.call(code, other.digest, other.number) is None and len(driver.calls) == 3


@pytest.mark.parametrize("word", [17, 18])
def test_calls_without_the_two_attributes_are_errors(word):
    driver, frame = Driver(), Frame((3,))
    frame.words[word] = 1 if word == 17 else frame.table(1 | 3 << 32)
    assert driver.called(frame) == 0xE and frame.messages == [GONE] and not driver.calls
