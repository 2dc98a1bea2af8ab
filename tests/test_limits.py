"""Elementwise operations by themselves, on the limits of their types."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from mlc.dialects import arith
from mlc.ir.diag import InternalError
from mlc.ir.parser import parse_module
from mlc.passes.tensor_to_loop import scalar
from mlc.tools import check
from mlc.tools.limits import at_limits, numbers_of

POWER = """
func.func @main(%x: tensor<3xui8>, %y: tensor<3xui8>) -> tensor<3xui8> {
  %0 = tensor.pow %x, %y : tensor<3xui8>
  %1 = tensor.mul %0, %x : tensor<3xui8>
  %2 = tensor.pow %1, %y : tensor<3xui8>
  func.return %2 : tensor<3xui8>
}
"""


def run() -> None:
    check._SEEN.clear()
    numbers = [np.array([1, 2, 3], np.uint8)] * 2
    check.check(parse_module(POWER, "power.mlir"), "main", numbers, keep=False)


def test_each_operation_is_there_once() -> None:
    seen = set[Hashable]()
    found = at_limits(parse_module(POWER, "power.mlir"), seen)
    assert found is not None
    names = [op.name for op in found[0].walk() if op.name.startswith("tensor.")]
    assert names == ["tensor.pow", "tensor.mul"] and len(found[1]) == 2
    pairs = {*zip(*(x.tolist() for x in found[1]))}
    assert {(2, 128), (255, 254), (0, 0)} <= pairs
    assert at_limits(parse_module(POWER, "power.mlir"), seen) is None


def test_numbers_are_of_their_type() -> None:
    main = next(op for op in parse_module(POWER, "power.mlir").walk() if op.name == "tensor.pow")
    found = numbers_of(main.operands[0].type.dtype)
    assert found.dtype == np.uint8 and {0, 7, 8, 9, 64, 128, 254, 255} <= {*found.tolist()}


def test_what_is_wrong_for_the_last_bit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's own numbers have small exponents, and those of other rounds are multiplied by others."""
    run()

    def wrong(t: Any, a: Any, b: Any) -> Any:
        least = arith.AndI(b, arith.constant(127, b.type)).result
        return scalar._int_pow(t, a, least)

    monkeypatch.setitem(scalar._ON_INTEGERS, next(op for op in scalar._ON_INTEGERS if op.__name__ == "Pow"), wrong)
    with pytest.raises(InternalError, match="pass tensor_to_loop changes the answer") as caught:
        run()
    assert caught.value.code == "MLC0901"
