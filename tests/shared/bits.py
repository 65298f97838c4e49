"""Equality to the bit, as far as the processor that runs the tests can have it.

C and CUDA fuse multiply-adds, and so do kernels for AVX2, AVX-512 and ARM: their bits are the same.
Kernels for x86-64 without FMA round each product, and agree to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linkwise.backends.llvm.target import host

FUSED = host().fused
needs_fused = pytest.mark.skipif(
    not FUSED,
    reason="kernels for this processor fuse no multiply-adds, and have other bits",
)


def assert_same(actual: Any, expected: Any, growth: float = 1e4) -> None:
    """Hold two arrays to the same bits, NaN and signs of zeros included.

    Args:
        growth: rounding units, of the largest number, by which results may differ if the kernels
            of this processor do not fuse multiply-adds.
    """
    a, b = np.asarray(actual), np.asarray(expected)
    assert a.shape == b.shape and a.dtype == b.dtype
    if a.dtype.kind != "f" or FUSED:
        assert ((a == b) | ((a != a) & (b != b))).all()
        if a.dtype.kind == "f":
            assert (np.signbit(a) == np.signbit(b))[~np.isnan(a)].all()
        return
    near = growth * np.finfo(a.dtype).eps
    size = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    np.testing.assert_allclose(a, b, rtol=near, atol=near * size)
