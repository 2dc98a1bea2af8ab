"""Structural fingerprints are equal only for programs that compile to the same code."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends.fingerprint import structural_text


def program(x: Any) -> Any:
    return mlc.tanh(x) * 2.0


def test_names_and_locations_are_not_part_of_the_key() -> None:
    a = mlc.lower(lambda x, y: mlc.exp(x) + y, [mlc.spec("B", 4), mlc.spec("B", 4)], level="trace").module
    b = mlc.lower(lambda first, second: mlc.exp(first) + second,
                  [mlc.spec("B", 4), mlc.spec("B", 4)], level="trace").module
    c = mlc.lower(lambda x, y: mlc.exp(y) + x, [mlc.spec("B", 4), mlc.spec("B", 4)], level="trace").module
    assert structural_text(a) == structural_text(b) != structural_text(c)


def test_constants_are_part_of_the_key() -> None:
    texts = set()
    for i in (0, 1, 2):
        array = np.zeros(1000, np.float32)
        array[i] = 1
        texts.add(structural_text(mlc.lower(lambda x, a=array: x + a, [mlc.spec(1000)], level="trace").module))
    assert len(texts) == 3


@pytest.mark.parametrize("count", [1, 40, 300])
def test_constants_are_told_apart_by_every_bit(count: int) -> None:
    arrays = [np.full(count, bits, np.uint32).view(np.float32)
              for bits in (0, 0x80000000, 0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001)]
    arrays += [np.zeros(count, np.int32), np.zeros(count, np.uint32)]
    texts = {structural_text(mlc.lower(lambda x, a=a: x + a, [mlc.spec(count, dtype=str(a.dtype))],
                                       level="trace").module) for a in arrays}
    assert len(texts) == len(arrays)


def test_what_the_code_depends_on_is_part_of_the_key() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * 2 + mlc.sum(y), y

    def text(*specs: Any, donate: Any = ()) -> str | None:
        return structural_text(mlc.compile(f, donate).compiled.lower(*specs, level="trace").module)

    B4, N4 = mlc.spec("B", 4), mlc.spec("N", 4)
    B = mlc.spec("B", 4, dtype="float64")
    found = [text(B4, B4), text(B4, B4, donate="x"), text(B4, B4, donate="y"), text(B4, N4), text(B, B), text(B4, B),
             text(mlc.spec("2*B", 4), B4), text(mlc.spec(3, 4), mlc.spec(3, 4)), text(B4, mlc.spec(4)),
             text(B4, mlc.spec(1, 4))]
    assert len(set(found)) == len(found)


def test_programs_with_rules_of_the_user_have_no_key() -> None:
    from mlc.dialects import tensor
    from mlc.ir.rewrite import RULES, rewrite
    module = mlc.lower(program, [mlc.spec("B", 4)], level="trace").module
    assert structural_text(module) is not None
    before = list(RULES.get(tensor.Tanh, ()))
    try:
        @rewrite(tensor.Tanh)
        def tanh_of_the_user(op: Any) -> None:
            """nothing"""
        assert structural_text(module) is None
    finally:
        RULES[tensor.Tanh] = before


def test_errors_of_passes_name_the_line() -> None:
    """Operations are numbered while they are lowered; nobody sees it."""
    from mlc.backends.fingerprint import LocationTable
    from mlc.ir.diag import NUMBERED
    module = mlc.lower(program, [mlc.spec("B", 4)], level="trace").module
    op = next(op for op in module.walk() if op.name == "tensor.tanh")
    before = op.loc
    locations = LocationTable(module)
    with pytest.raises(mlc.Error) as caught, locations.numbered():
        assert op.loc.file == NUMBERED
        raise mlc.UserError(f"wrong at {op.loc}", loc=op.loc.through("fuse"), notes=(f"see {op.loc}",))
    assert op.loc == before and caught.value.loc.line == before.line and caught.value.loc.via[-1] == "fuse"
    assert caught.value.message == f"wrong at {before}" and caught.value.notes == (f"see {before}",)
