"""The CPU as a backend: LLVM IR, object code, kernels, and the compiled entry."""

from __future__ import annotations

from functools import cached_property, partial

from linkwise.backends.base import Keep, Methods
from linkwise.backends.llvm import worker
from linkwise.backends.llvm.compile import Loaded, to_assembly, to_object
from linkwise.backends.llvm.front import LlvmFront
from linkwise.backends.llvm.module import lanes_for, render_module
from linkwise.backends.llvm.run import LlvmKernel
from linkwise.backends.llvm.target import Target, host
from linkwise.trace.program import Program, Signature


class Llvm:
    """Kernels for the processor of this machine, or of another to look at."""

    name = "llvm"
    sources: tuple[str, ...] = ("backends.elementary", "backends.llvm")

    def __init__(self, target: Target | None = None) -> None:
        self._target = target

    @cached_property
    def target(self) -> Target:
        """The processor."""
        return self._target or host()

    @property
    def identity(self) -> str:
        """Everything that built code depends on besides its program."""
        return self.target.identity

    def render(self, program: Program, dtype: str, form: str) -> str:
        """The program as LLVM IR."""
        return render_module(program, self.target, dtype, form)

    def build(self, text: str, *, apart: bool = False) -> bytes:
        """IR -> object code; ``apart`` in a process of its own, where one can be started."""
        if apart and worker.possible():
            return worker.to_object_apart(text, self.target)
        return to_object(text, self.target)

    def assembly(self, text: str) -> str:
        """IR -> machine code as text."""
        return to_assembly(text, self.target)

    def load(self, code: bytes, signature: Signature, dtype: str, form: str) -> LlvmKernel:
        """Object code -> a kernel."""
        width = lanes_for(self.target, dtype, form).width
        return LlvmKernel(Loaded(code, self.target, [form]), signature, dtype, form, width)

    def compile(self, program: Program, dtype: str, form: str) -> LlvmKernel:
        """A kernel of a program, all three steps."""
        code = self.build(self.render(program, dtype, form))
        return self.load(code, program.signature, dtype, form)

    def front(self, methods: Methods, keep: Keep) -> LlvmFront:
        """The compiled entry, and a robot's table of sites for it."""
        return LlvmFront(methods, partial(keep, self))
