"""Views, in-place operations and assignments, eager and recorded: what one tensor writes, those of its memory see."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError, UserTypeError

torch = pytest.importorskip("torch")
from tests.peers import aliasing  # noqa: E402


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("interpreted")
def test_random_programs_agree_with_pytorch(seed: int, compiled: bool) -> None:
    program = aliasing.Program(seed, 8, compiled)
    assert (problem := aliasing.difference(program)) is None, f"{problem}\n" + "\n".join(program.statements)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("part", range(20))
def test_many_random_programs_agree_with_pytorch(part: int, compiled: bool) -> None:
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        program = aliasing.Program(seed, 14, compiled)
        assert (problem := aliasing.difference(program)) is None, f"{problem}\n" + "\n".join(program.statements)


VIEWS = {
    "slice": lambda x: x[1:, ::2], "number": lambda x: x[0], "None": lambda x: x[:, None], "t": lambda x: x.t(),
    "T": lambda x: x.T, "reshape": lambda x: x.reshape(2, -1), "view": lambda x: x.view(-1), "narrow":
    lambda x: x.narrow(1, 1, 2), "select": lambda x: x.select(1, 2), "diagonal": lambda x: x.diagonal(1),
    "unbind": lambda x: x.unbind(1)[2], "split": lambda x: x.split([1, 2, 1], 1)[1], "chunk": lambda x: x.chunk(2)[1],
    "unsqueeze": lambda x: x.unsqueeze(0), "squeeze": lambda x: x[:1].squeeze(), "flatten": lambda x: x.flatten(),
    "unflatten": lambda x: x.unflatten(1, (2, 2)), "movedim": lambda x: x.movedim(0, 1), "detach": lambda x: x.detach(),
    "unfold": lambda x: x.unfold(1, 2, 2), "tensor_split": lambda x: x.tensor_split(2, 1)[1], "ravel": lambda x: x.ravel(),
    "permute": lambda x: x.permute(1, 0), "swapaxes": lambda x: x.swapaxes(0, 1), "contiguous": lambda x: x.contiguous(),
    "of a copy": lambda x: x.t().reshape(-1), "clone": lambda x: x.clone(), "data": lambda x: x.data,
    "to": lambda x: x.to(x.dtype), "dropout": lambda x: nn.functional.dropout(x, 0.5, False) if isinstance(x, mlc.Tensor)
    else torch.nn.functional.dropout(x, 0.5, False)}


@pytest.mark.parametrize("name", VIEWS)
def test_a_write_to_a_view_is_seen_where_pytorch_has_it_seen(name: str) -> None:
    x, y = mlc.arange(12.0).view(3, 4), torch.arange(12.0).view(3, 4)
    for base in (x, y):
        VIEWS[name](base).add_(100)
        view = VIEWS[name](base)
        base.mul_(2)
        if isinstance(base, torch.Tensor):
            theirs = view.numpy()
        else:
            ours = view.numpy()
    assert x.tolist() == y.tolist()
    np.testing.assert_array_equal(ours, theirs)
