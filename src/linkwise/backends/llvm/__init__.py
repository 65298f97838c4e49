"""The CPU backend: LLVM IR with explicit SIMD lanes, compiled in the process by llvmlite."""
