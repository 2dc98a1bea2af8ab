"""Views whose place is a number that a compiled function computes, or is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlc
from mlc import nn

KEYS: dict[str, Callable[[Any, Any], Any]] = {
    "row": lambda x, i: x[i], "column": lambda x, i: x[:, i], "element": lambda x, i: x[i, i], "from the end":
    lambda x, i: x[-i], "of a view": lambda x, i: x.view(3, 2)[i], "of a row": lambda x, i: x[i][1:], "two numbers":
    lambda x, i: x[i - 1][i], "ellipsis": lambda x, i: x[..., i], "new axis": lambda x, i: x[None, :, i]}


def numbers() -> Any:
    return mlc.arange(6).reshape(2, 3).float()


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("number", [1, mlc.tensor(1)], ids=["int", "tensor"])
def test_a_result_is_the_view_that_python_gives(key: str, number: Any) -> None:
    x, y = numbers(), numbers()
    picked, wanted = mlc.compile(KEYS[key])(x, number), KEYS[key](y, 1)
    assert picked.tolist() == wanted.tolist()
    picked.fill_(9.0)                                          # also in the memory of the argument
    wanted.fill_(9.0)
    assert x.tolist() == y.tolist()


def test_several_results_and_other_numbers_in_later_calls() -> None:
    f, x = mlc.compile(lambda x, i, j: (x[i], (x * 2)[j], x[j][i], i + j)), numbers()
    for i, j in ((0, 1), (1, 0), (-1, -2)):
        found = f(x, i, j)
        assert [y.tolist() for y in found[:3]] == [x[i].tolist(), (x * 2)[j].tolist(), x[j][i].item()]
        assert found[3] == i + j
        found[0].add_(1)
    assert x.tolist() == [[1, 2, 3], [5, 6, 7]]


def test_a_row_of_a_parameter_has_its_history() -> None:
    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows = nn.Parameter(numbers())

        def forward(self, i: Any) -> Any:
            return self.rows[i]

    table = Table()
    compiled = mlc.compile(table)
    compiled(1).sum().backward()
    compiled(0).sum().backward()
    assert table.rows.grad is not None and table.rows.grad.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_lists_of_numbers_are_indices() -> None:
    x = mlc.compile(lambda x, i: x[i])(numbers(), [1, 0, 1])
    assert x.tolist() == [[3, 4, 5], [0, 1, 2], [3, 4, 5]]

    @mlc.compile
    def written(x: Any, i: Any) -> Any:
        x = x.clone()
        x[0, [i[0], 2]] = 9.0
        return x

    assert written(numbers(), [1, 0]).tolist() == [[0, 9, 9], [3, 4, 5]]


def test_a_number_out_of_range() -> None:
    with pytest.raises(mlc.UserError, match="MLC0340"):
        mlc.compile(lambda x, i: x[i])(numbers(), 2)


@pytest.mark.parametrize("f", [
    lambda x, k, v: (k.add_(1), v)[1], lambda x, k, v: (k.add_(1), v.add_(5.0), v * 1)[2],
    lambda x, k, v: (k.add_(1), x.add_(5.0), v * 1)[2], lambda x, k, v: (k.add_(1), x[k])[1]])
def test_a_number_that_changes_afterwards_picks_nothing_else(f: Callable[[Any, Any, Any], Any]) -> None:
    def picked(x: Any, k: Any) -> Any:
        k = k * 1
        return f(x, k, x[k])

    table = mlc.arange(12).reshape(4, 3).float()
    assert mlc.compile(picked)(table.clone(), mlc.tensor(1)).tolist() == picked(table.clone(), mlc.tensor(1)).tolist()
