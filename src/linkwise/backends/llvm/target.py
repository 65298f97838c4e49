"""This machine as LLVM sees it: processor, features, register width."""

from __future__ import annotations

import os
import sys
from dataclasses import astuple, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from linkwise.backends.process import exiting
from linkwise.errors import BackendUnavailable

# Our schedule stands: LLVM's own, before register allocation, makes matrices of many stores slower
# (talos: 520 against 350 ns) and everything compile longer. LLVM holds options for the process.
CODEGEN_OPTION = "-enable-misched=false"

# Characters of a module from which LLVM does not order instructions anew after register allocation:
# that takes 4 of 5 seconds for a straight line of 10,000 operations, and gains 1 % of their time.
LARGE = 300_000

VARIABLE = "LINKWISE_TARGET"
# levels of x86-64, as compilers call them: bytes of a register, fused multiply-adds, and what of
# such a processor a kernel may use
LEVELS = {
    "x86-64": (16, False, ("sse2",)),
    "x86-64-v3": (32, True, ("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe")),
    "x86-64-v4": (
        64, True, ("avx512f", "avx512dq", "avx512bw", "avx512cd", "avx512vl", "avx2", "fma"),
    ),
}  # fmt: skip

# constants are addressed relative to the code, which the linker places beside them
CODE = {"reloc": "pic", "codemodel": "small"}


@dataclass(frozen=True)
class Target:
    """What code is generated for."""

    triple: str
    cpu: str
    features: str
    register_bytes: int
    fused: bool  # multiply-add in one instruction
    versions: str

    def lanes(self, number_bytes: int) -> int:
        """States that fit side by side in one register."""
        return self.register_bytes // number_bytes

    @property
    def identity(self) -> str:
        """Everything that a compiled object depends on besides its program."""
        return "|".join(map(str, (*astuple(self), *CODE.values())))

    @cached_property
    def machine(self) -> Any:
        """llvmlite's target machine."""
        return self._machine(2)

    @cached_property
    def quick_machine(self) -> Any:
        """The same without a schedule after register allocation (`LARGE`)."""
        return self._machine(1)

    def machine_for(self, ir: str) -> Any:
        """The target machine for a module."""
        return self.machine if len(ir) < LARGE else self.quick_machine

    def _machine(self, level: int) -> Any:
        target = binding().Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, jit=True, **CODE
        )  # fmt: skip


@lru_cache(maxsize=1)
def binding() -> Any:
    """llvmlite.binding, imported when the first kernel is needed."""
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise BackendUnavailable(
            "CPU kernels are compiled by llvmlite, which is not installed: pip install llvmlite"
        ) from error
    if exiting():  # so late, llvmlite is not told by Python, and would free code that is in use
        llvm.common._at_shutdown()
    llvm.set_option("linkwise", CODEGEN_OPTION)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@lru_cache(maxsize=1)
def host() -> Target:
    """The machine this process runs on, or the level of it that ``LINKWISE_TARGET`` names."""
    llvm = binding()
    import llvmlite

    features = llvm.get_host_cpu_features()
    has = {name for name, on in features.items() if on}
    triple = llvm.get_process_triple()
    if sys.platform == "win32":
        triple += "-elf"  # LLVM's JIT linkers place ELF objects, with Windows calls, not COFF ones
    arm = triple.startswith(("aarch64", "arm64"))
    if "avx512f" in has and "avx512dq" in has:
        register = 64
    elif "avx" in has:
        register = 32
    else:
        register = 16
    version = ".".join(map(str, llvm.llvm_version_info))
    target = Target(
        triple=triple,
        cpu=llvm.get_host_cpu_name(),
        features=features.flatten(),
        register_bytes=register,
        fused=arm or "fma" in has,
        versions=f"llvmlite {llvmlite.__version__}, LLVM {version}, {CODEGEN_OPTION}",
    )
    level = os.environ.get(VARIABLE, "")
    return at_level(target, level, has) if level else target


def at_level(target: Target, level: str, has: set[str]) -> Target:
    """The target as any processor of a level; ``has`` are the features of this one."""
    if level not in LEVELS:
        raise BackendUnavailable(
            f"{VARIABLE} is {level!r}; expected one of {', '.join(LEVELS)}, or unset it: kernels "
            "are then compiled for this processor"
        )
    register, fused, needed = LEVELS[level]
    missing = [name for name in needed if name not in has]
    if missing:
        raise BackendUnavailable(
            f"{VARIABLE} is {level!r}, and this processor lacks {', '.join(missing)}; expected a "
            "lower level"
        )
    return replace(target, cpu=level, features="", register_bytes=register, fused=fused)
