"""Kernels of rows on a GPU that once went wrong, from the program to the simulated device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.dialects import gpu
from mlc.ir.interp import run_function
from mlc.ir.machine import GPU, HOPPER
from mlc.ir.parser import parse_module
from mlc.ir.printer import to_text
from mlc.ir.types import bf16, to_numpy
from mlc.passes import pipeline
from tests.fake_device import FakeDevice


def repeated(f: Callable[[Any], Any], times: int) -> Callable[[Any], Any]:
    def g(x: Any) -> Any:
        for _ in range(times):
            x = f(x)
        return x
    return g


def long_loops(x: Any) -> Any:
    """Loops of so many operations that a thread takes one block at a time, of a row in registers."""
    return mlc.softmax(repeated(mlc.tanh, 4)(x), 1)


@pytest.mark.parametrize("f, shape, dtype", [
    (long_loops, (4, 200), "float32"), (long_loops, (4, 150), "float32"), (long_loops, (4, 128), "float32"),
    (lambda x: mlc.softmax(x, 1), (2, 18500), "bfloat16"), (lambda x: mlc.sum(x, 0), (2100, 24), "float32"),
    (lambda x: mlc.sum(x.float(), 0), (2100, 48), "bfloat16"),
    (lambda x: mlc.softmax(x + x[0], 1), (3, 20), "bfloat16"),      # a row of a thread is longer than its registers
    (lambda x: mlc.softmax(x + x[0], 1), (3, 32), "float16")])
def test_rows_have_the_bits_of_a_cpu(device: FakeDevice, f: Callable[[Any], Any], shape: tuple[int, int],
                                     dtype: str) -> None:
    x = mlc.tensor(np.random.default_rng(0).standard_normal(shape, np.float32)).to(dtype)
    wanted, found = mlc.compile(f)(x).float().numpy(), mlc.compile(f, target="cuda")(x).float().numpy()
    assert np.array_equal(found, wanted)


def test_a_long_row_stays_in_shared_memory() -> None:
    """Of a GPU that has as much: the exponentials are neither stored as a result, nor computed twice."""
    x = np.random.default_rng(0).standard_normal((2, 30000), np.float32).astype(to_numpy(bf16))
    text = to_text(mlc.compile(lambda x: mlc.softmax(x, 1)).lower(x, level="tensor").module)
    found = [run_function(pipeline.lower(parse_module(text), level, machine=HOPPER), "main", [x])[0]
             for level in ("loop", "low")]
    kernel, = (op for op in pipeline.lower(parse_module(text), "low", machine=HOPPER).walk()
               if isinstance(op, gpu.Func))
    assert 30000 * 4 < kernel.shared_bytes + kernel.dynamic_bytes
    assert np.array_equal(*found)


@pytest.mark.parametrize("count", [16, 40])
def test_what_groups_of_threads_exchange_fits_into_shared_memory(count: int) -> None:
    def sums(x: Any) -> Any:
        return [mlc.sum(x * (i + 1), 0) for i in range(count)]

    module = mlc.compile(sums).lower(np.zeros((2000, 64)), level="tensor").module
    pipeline.lower(module, "low", machine=GPU)
    kernels = [op for op in module.walk() if isinstance(op, gpu.Func)]
    assert kernels and all(kernel.shared_bytes <= GPU.most_shared for kernel in kernels)
