"""Operations with other options than a program has, and what the checks make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlc.dialects import func, tensor
from mlc.dialects.builtin import module as new_module
from mlc.dialects.tensor import cumulative
from mlc.ir.core import Op, at_end
from mlc.ir.diag import InternalError
from mlc.ir.passes import parse_pipeline
from mlc.ir.types import TensorType, f64
from mlc.tools import check
from mlc.tools.mutants.trial import with_derivative
from mlc.tools.neighbours import neighbours

X = np.array([[1.0, 3.0, 2.0, 2.5], [0.5, -1.0, 4.0, 1.5]])


def alone(make: Any) -> tuple[Op, Op]:
    """A module whose @main is an operation on X, and the operation."""
    module, main = new_module(), func.function("main", [TensorType(X.shape, f64)])
    module.body.block.insert(main)
    with at_end(main.block):
        op = make(main.args[0])
        func.Return(tuple(op.results))
    main.update_type()
    return module, op


def test_one_option_is_another() -> None:
    _, op = alone(lambda x: tensor.Cumulative(x, "max", 1))
    found = {tuple(other.attrs[name] for name in ("kind", "axis", "reverse")) for other in neighbours(op, [X.shape])}
    assert found == {("add", 1, False), ("mul", 1, False), ("min", 1, False), ("max", 0, False), ("max", 1, True)}
    assert not list(neighbours(op, [(2, 0)]))


def derived(make: Any) -> None:
    pair = with_derivative(alone(make)[0], [X])
    assert pair is not None
    check.Check(pair[0], "main", pair[1], keep=False).run(parse_pipeline("grad"))


@pytest.mark.parametrize("message", ["gives operand 0", "fails: tensor.scatter_along: index"])
def test_a_derivative_that_is_wrong_for_another_option_is_found(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it cannot be computed."""
    derived(lambda x: tensor.Cumulative(x, "max", 1))
    latest = cumulative.latest

    def wrong(x: Any, result: Any, axis: int, reverse: bool = False) -> Any:
        places = latest(x, result, axis, reverse)
        return places if not reverse else places * 0 - (0 if "gives" in message else 1)

    monkeypatch.setattr(cumulative, "latest", wrong)
    with pytest.raises(InternalError, match=message) as caught:
        derived(lambda x: tensor.Cumulative(x, "max", 1))
    assert caught.value.code == "MLC0662" and "reverse = True" in caught.value.message


def test_a_decomposition_that_is_wrong_for_another_option_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> None:
        check.Check(alone(lambda x: tensor.LogCumSumExp(x, 1))[0], "main", [X], keep=False).run(
            parse_pipeline("decompose"))

    run()
    decompose = tensor.LogCumSumExp.decompose
    monkeypatch.setattr(tensor.LogCumSumExp, "decompose", lambda self: decompose(self) + (1.0 if self.reverse else 0.0))
    with pytest.raises(InternalError, match="reverse = True") as caught:
        run()
    assert caught.value.code == "MLC0663"
