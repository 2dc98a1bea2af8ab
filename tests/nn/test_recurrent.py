"""Recurrent layers and packed sequences give what PyTorch's do, in one kernel for all lengths."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend import eager
from tests.nn.both import same, torch

pytestmark = pytest.mark.usefixtures("execution")

CASES = {
    "rnn": "nn.RNN(4, 5, nonlinearity='relu', bias=False), T(6, 3, 4), T(1, 3, 5)",
    "gru": "nn.GRU(4, 5, 2, batch_first=True, bidirectional=True), T(3, 6, 4), None",
    "lstm": "nn.LSTM(4, 5, bidirectional=True, proj_size=2), T(6, 3, 4), (T(2, 3, 2), T(2, 3, 5))",
    "single": "nn.LSTM(4, 5), T(6, 4), (T(1, 5), T(1, 5))",
    "packed": "nn.GRU(4, 5, 2, bidirectional=True), rnn.pack_padded_sequence(T(6, 3, 4), [2, 6, 3], "
              "enforce_sorted=False), T(4, 3, 5)",
    "packed_lstm": "nn.LSTM(4, 5), rnn.pack_sequence([T(4, 4), T(2, 4), T(2, 4)]), None",
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case: str) -> None:
    same(f"""
model, x, state = {CASES[case]}
filled(model)
y, last = model(x, state)
packed = isinstance(y, rnn.PackedSequence)
out += [repr(model), list(model.state_dict())]
out += [y.data if packed else y, *(last if isinstance(last, tuple) else [last])]
sum((part * part).sum() for part in out[2:]).backward()
out += [p.grad for p in model.parameters()]
""", atol=1e-5)


@pytest.mark.usefixtures("interpreted")
def test_cells() -> None:
    same("""
for cell, state in ((nn.RNNCell(3, 4, nonlinearity="relu"), T(2, 4)), (nn.GRUCell(3, 4, bias=False), None),
                    (nn.LSTMCell(3, 4), (T(2, 4), T(2, 4)))):
    found = filled(cell)(T(2, 3), state)
    out += [repr(cell), *(found if isinstance(found, tuple) else [found])]
    out[-1].sum().backward()
    out += [p.grad for p in cell.parameters()]
out.append(tuple(nn.RNNCell(3, 4, bias=False)(T(3)).shape))
""")


def test_one_kernel_runs_all_lengths_forward_and_backward() -> None:
    layer, theirs = nn.RNN(4, 6), torch.nn.RNN(4, 6)
    layer.load_state_dict(theirs.state_dict())
    counts = []
    for steps, n in ((5, 3), (9, 7), (2, 11)):
        x = np.random.default_rng(n).normal(size=(steps, n, 4)).astype(np.float32)
        layer.zero_grad()
        theirs.zero_grad()
        layer(mlc.tensor(x))[0].sum().backward()
        theirs(torch.tensor(x))[0].sum().backward()
        for a, b in zip(layer.parameters(), theirs.parameters()):
            assert a.grad is not None and b.grad is not None
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), 1e-4, 1e-5)
        counts.append(len([key for key in eager._kernels if "recurrent" in key[0][0].name]))
    assert counts[0] == counts[-1]


@pytest.mark.usefixtures("interpreted")
def test_compiled_and_differentiated_as_a_function() -> None:
    layer, x = nn.LSTM(2, 3), mlc.tensor(np.random.default_rng(0).normal(size=(5, 4, 2)).astype(np.float32))
    layer(x)[0].pow(2).sum().backward()
    gradient = mlc.compile(mlc.grad(lambda m, x: m(x)[0].pow(2).sum()))(layer, x)
    for (name, a), b in zip(gradient.named_parameters(), layer.parameters()):
        assert b.grad is not None
        np.testing.assert_allclose(a.numpy(), b.grad.numpy(), 1e-4, 1e-5, err_msg=name)


@pytest.mark.usefixtures("interpreted")
def test_sequences() -> None:
    same("""
given = [T(2, 3), T(4, 3), T(1, 3)]
padded = rnn.pad_sequence(given, padding_value=-1.0, padding_side="left")
out += [padded, rnn.pad_sequence(given, batch_first=True)]
out += rnn.unpad_sequence(rnn.pad_sequence(given), torch.tensor([2, 4, 1]))
packed = rnn.pack_sequence(given, enforce_sorted=False)
out += [packed.data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices, *rnn.unpack_sequence(packed)]
out += [*rnn.pad_packed_sequence(packed, batch_first=True, padding_value=5.0, total_length=6)]
x = T(3, 2).requires_grad_()
rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 1]))[0].pow(2).sum().backward()
y = T(2).requires_grad_()
rnn.pad_sequence([y, y[:1]]).sum().backward()
out += [x.grad, y.grad]
""")


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_integers_take_on_the_dtype_of_the_weights(kind: Any) -> None:
    layer, x = kind(2, 3, bidirectional=True), mlc.tensor([[[1, 0]], [[2, -1]]])
    assert mlc.equal(layer(x)[0], layer(x.float())[0]) and mlc.equal(layer(x > 0)[0], layer((x > 0).float())[0])


@pytest.mark.parametrize(("call", "code"), [
    (lambda: nn.LSTM(2, 3, proj_size=3), "MLC0360"), (lambda: nn.RNN(2, 3, nonlinearity="sin"), "MLC0360"),
    (lambda: nn.GRU(2, 3)(mlc.ones(4, 1, 5)), "MLC0367"), (lambda: nn.GRU(2, 3)(mlc.ones(2)), "MLC0364"),
    (lambda: nn.GRU(2, 3)(mlc.ones(4, 1, 2), mlc.ones(2, 1, 3)), "MLC0367"),
    (lambda: nn.LSTMCell(2, 3)(mlc.ones(4, 2), (mlc.ones(3), mlc.ones(3))), "MLC0367"),
    (lambda: nn.utils.rnn.pack_sequence([mlc.ones(1), mlc.ones(2)]), "MLC0739"),
    (lambda: nn.utils.rnn.pack_padded_sequence(mlc.ones(2, 1), [3]), "MLC0739"),
    (lambda: nn.utils.rnn.pack_padded_sequence(mlc.ones(2), [1]), "MLC0364"),
    (lambda: nn.utils.rnn.pad_sequence([mlc.tensor(1), mlc.ones(2)]), "MLC0364"),
    (lambda: nn.utils.rnn.unpad_sequence(mlc.ones(2, 2), [3, 1], batch_first=True), "MLC0739"),
    (lambda: nn.utils.rnn.unpad_sequence(mlc.ones(2, 2), [1]), "MLC0739"),
    (lambda: nn.utils.rnn.unpad_sequence(mlc.tensor(1), [1]), "MLC0364"),
    (lambda: mlc.compile(lambda x, n: nn.utils.rnn.pack_padded_sequence(x, n).data)(mlc.ones(2, 1), mlc.tensor([1])),
     "MLC0740")])
def test_what_does_not_fit_is_refused(call: object, code: str) -> None:
    with pytest.raises(mlc.UserError, match=code):
        call()  # type: ignore[operator]
