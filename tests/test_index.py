"""x[...]: where the dimensions of index arrays go, as in PyTorch."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

import mlc

ROWS = np.array([0, 1, 0])
KEYS = [key for key in itertools.product([slice(None), ROWS, ROWS[:2, None], 0, -1, None, slice(1, None)], repeat=3)
        if sum(isinstance(k, np.ndarray) for k in key) > 1]


@pytest.mark.parametrize("last", [0, slice(None), ROWS], ids=["integer", "slice", "array"])
def test_several_arrays(last: Any, interpreted: None) -> None:
    x = np.arange(120.0).reshape(2, 3, 4, 5)
    for key in ((*k, last) for k in KEYS):
        theirs = torch.tensor(x)[tuple(torch.tensor(k) if isinstance(k, np.ndarray) else k for k in key)]
        np.testing.assert_array_equal(mlc.tensor(x)[key].numpy(), theirs.numpy(), err_msg=str(key))


def test_an_array_of_no_dimension_stands_for_an_integer(interpreted: None) -> None:
    x, zero, rows = np.arange(120.0).reshape(2, 3, 4, 5), np.array(1), np.array([0, 1, 0])
    for key in [(zero, slice(None), rows), (slice(None), rows, zero, rows), (rows, zero, slice(None), rows),
                (zero, zero), (rows, None, zero), (zero - 2, slice(None), rows)]:
        theirs = torch.tensor(x)[tuple(torch.tensor(k) if isinstance(k, np.ndarray) else k for k in key)]
        np.testing.assert_array_equal(mlc.tensor(x)[key].numpy(), theirs.numpy(), err_msg=str(key))


@pytest.mark.parametrize("key", [
    (np.array([1, 2]), slice(1, 9)), (slice(-9, 2), np.array([0])), (slice(7, 9), [0, 1]), (slice(-1, 1), [0]),
    (np.array([True, False, True, False, True]), slice(0, 9)), (0, [1, 1], slice(-9, 9, 2)),
])
def test_slices_that_are_cut_off_beside_arrays(key: Any) -> None:
    """The kernel for all sizes does not fit here, but another one does."""
    x = np.arange(60, dtype=np.float32).reshape(5, 3, 4)
    assert mlc.tensor(x)[:, :, :3][key].numpy().tolist() == x[:, :, :3][key].tolist()
    assert mlc.tensor(x)[key].numpy().tolist() == x[key].tolist()


def test_a_range_is_an_index_like_a_list() -> None:
    x = mlc.arange(12).reshape(3, 4)
    assert x[range(3), mlc.tensor([0, 2, 1])].tolist() == [0, 6, 9]
    x[range(1, 3), 0] = -1
    assert x[:, 0].tolist() == [0, -1, -1]


@pytest.mark.parametrize("start", [np.uint64(2**63 + 1), np.uint64(2**64 - 1), np.int64(2**62), np.int64(-2**63)])
def test_starts_of_any_size_are_moved_into_the_tensor(start: Any) -> None:
    """Also those that are negative as signed numbers of 64 bits."""
    x, at = np.arange(10.0, dtype=np.float32), 8 if start > 0 else 0
    assert mlc.compile(lambda x, s: mlc.dynamic_slice(x, (s,), (2,)))(x, start).tolist() == [at, at + 1]
    updated = mlc.compile(lambda x, s: mlc.dynamic_update_slice(x, -x[:2], (s,)))(x, start).tolist()
    assert updated == [*x[:at].tolist(), 0, -1, *x[at + 2:].tolist()]


def both(use: Any) -> Any:
    """Compare what a use of a tensor gives with what it gives in PyTorch."""
    theirs, ours = (use(module, module.arange(60).reshape(4, 3, 5).clone()) for module in (torch, mlc))
    assert ours.tolist() == theirs.tolist()


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
def test_masks_of_uint8_and_masks_beside_positions() -> None:
    rows = [True, False, True, False]
    both(lambda t, x: x[t.tensor(rows, dtype=t.uint8)])
    both(lambda t, x: x[(x % 2 == 0).to(t.uint8)])
    both(lambda t, x: x[t.tensor(rows), :, t.tensor([1, 2])])
    both(lambda t, x: x[t.tensor(rows), t.tensor([True, False, True])])
    both(lambda t, x: x[t.tensor([[True, False, True]] * 4), t.tensor([1])])
    both(lambda t, x: (x.__setitem__((t.tensor(rows), t.tensor([1, 2])), -1), x)[1])
    with pytest.raises(mlc.UserError, match="a mask of shape"):
        mlc.zeros(4, 5)[mlc.tensor([1, 2]), mlc.tensor(rows)]


def test_an_empty_list_picks_nothing() -> None:
    both(lambda t, x: x[[]])
    both(lambda t, x: x[:, []])


@pytest.mark.parametrize("write", [
    lambda z: z.__setitem__(0, 300), lambda z: z.fill_(300), lambda z: z.__setitem__(mlc.tensor([0]), 300),
    lambda z: z.__setitem__(z == 0, -129), lambda z: z.copy_(300), lambda z: z.__setitem__(0, 300.0),
    lambda z: z.fill_(float("nan")), lambda z: z.__setitem__(z == 0, float("inf"))])
def test_integers_that_do_not_fit_are_refused_where_they_are_written(write: Any) -> None:
    for run in (write, mlc.compile(lambda z: write(z))):
        z = mlc.zeros(3, dtype=mlc.int8)
        with pytest.raises(mlc.UserError, match="MLC0348"):
            run(z)
    z = mlc.zeros(2, dtype=mlc.uint8)
    z[0] = -1
    assert z.tolist() == [255, 0]
