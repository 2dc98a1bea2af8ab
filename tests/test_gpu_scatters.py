"""Scatters on a GPU whose rows are divided among CTAs, from the program to the simulated device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.dialects import arith, gpu, scf
from mlc.ir.core import Value
from mlc.ir.machine import GPU
from mlc.ir.types import i32
from mlc.passes import pipeline
from tests.fake_device import FakeDevice

ROWS = 300


def scattered(x: Any, i: Any, u: Any) -> Any:
    return mlc.index_add(x, 0, i, u)


def copied(x: Any, i: Any, u: Any) -> Any:
    return mlc.index_copy(x, 0, i, u)


def arguments(columns: int, updates: int, rows: int = ROWS) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    at = rng.integers(0, rows, updates) ** 2 // rows                       # some rows have many updates
    return (mlc.tensor(rng.standard_normal((rows, columns), np.float32)), mlc.tensor(at),
            mlc.tensor(rng.standard_normal((updates, columns), np.float32)))


@pytest.mark.parametrize("f", [scattered, copied])
@pytest.mark.parametrize("columns, updates", [(3, 40), (40, 1024), (256, 1), (3, 2100)])
def test_updates_have_the_bits_of_a_cpu(device: FakeDevice, f: Any, columns: int, updates: int) -> None:
    """Of fewer and of more updates than threads list at a time, and of columns that fill CTAs and that do not."""
    given = arguments(columns, updates)
    wanted, found = mlc.compile(f)(*given).numpy(), mlc.compile(f, target="cuda")(*given).numpy()
    assert np.array_equal(found, wanted)


def test_the_threads_of_a_block_list_its_updates_together() -> None:
    module = mlc.compile(scattered).lower(*arguments(3, 2100), level="tensor").module
    pipeline.lower(module, "low", machine=GPU)
    kernel, = (op for op in module.walk() if isinstance(op, gpu.Func))
    assert sum(isinstance(op, gpu.Shuffle) for op in kernel.walk()) == 5 and kernel.shared_bytes


def test_numbers_in_the_list_are_those_within_a_batch() -> None:
    """As i32, in which those of 2**31 updates and more would not fit."""
    module = mlc.compile(scattered).lower(*arguments(3, 2100), level="tensor").module
    pipeline.lower(module, "low", machine=GPU)
    counters = {loop.body.block.args[0] for loop in module.inside(scf.For)}
    seen, work = set[Value](), [op.operands[0] for op in module.inside(arith.IndexCast) if op.result.type == i32]
    assert work
    while work:
        value = work.pop()
        seen.add(value)
        work += [v for v in value.op.operands if v not in seen] if value.op is not None else []
    assert not seen & counters


def test_an_update_outside_of_the_rows_is_reported(device: FakeDevice) -> None:
    x, i, u = arguments(3, 1100)
    wrong = mlc.tensor(np.where(np.arange(1100) == 1050, ROWS, i.numpy()))
    with pytest.raises(mlc.UserError, match="MLC") as expected:
        mlc.compile(scattered)(x, wrong, u)
    with pytest.raises(mlc.UserError, match="MLC") as found:
        mlc.compile(scattered, target="cuda")(x, wrong, u)
    assert str(found.value).splitlines()[0] == str(expected.value).splitlines()[0]
