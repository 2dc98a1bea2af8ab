"""Recurrent networks: one step of a cell, and whole stacks of layers, whose steps are one recorded scan each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.control import scan
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import random
from mlc.frontend.functions.neural import linear, relu
from mlc.frontend.functions.shape import cat, sliced, stack, transpose
from mlc.frontend.functions.trigonometry import tanh
from mlc.frontend.operands import cast, full, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i64

GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}
"""The kinds of cells, and the number of gates of each, whose weights stand one below the other."""


def _gates(x: Operand, count: int) -> list[Any]:
    """Equal parts of the last dimension."""
    found = tracer(x)
    width = sizes.divide(found.shape[-1], count)
    return [sliced(found, found.ndim - 1, i * width, (i + 1) * width) for i in range(count)]


def _rnn_step(activation: Callable[..., Any]) -> Callable[..., Any]:
    def step(x: Any, state: Sequence[Any], weight: Any, bias: Any, projection: Any) -> list[Any]:
        return [activation(x + linear(state[0], weight, bias))]
    return step


def _gru_step(x: Any, state: Sequence[Any], weight: Any, bias: Any, projection: Any) -> list[Any]:
    """The reset gate scales the state's part of the new gate after its weights, as in cuDNN and PyTorch."""
    h = state[0]
    (r, z, n), (hr, hz, hn) = _gates(x, 3), _gates(linear(h, weight, bias), 3)
    update = E.sigmoid(z + hz)
    new = tanh(n + E.sigmoid(r + hr) * hn)
    return [new + update * (h - new)]


def _lstm_step(x: Any, state: Sequence[Any], weight: Any, bias: Any, projection: Any) -> list[Any]:
    h, c = state
    i, f, g, o = _gates(x + linear(h, weight, bias), 4)
    c = E.sigmoid(f) * c + E.sigmoid(i) * tanh(g)
    h = E.sigmoid(o) * tanh(c)
    return [h if projection is None else linear(h, projection), c]


STEPS: dict[str, Callable[..., Any]] = {"rnn_tanh": _rnn_step(tanh), "rnn_relu": _rnn_step(relu),
                                        "gru": _gru_step, "lstm": _lstm_step}


@operation(static=("weights",), autocast="lower_precision")
def recurrent_cell(input: Operand, state: Sequence[Operand], weights: Sequence[Operand], mode: str) -> list[Tensor]:
    """One step of a recurrent cell.

    Args:
        input: Tensor of shape (n, features), or (features,).
        state: The hidden state, of shape (n, hidden_size) or (hidden_size,); of an LSTM also the cell state.
        weights: weight_ih, weight_hh, and the two biases or none.
        mode: "rnn_tanh", "rnn_relu", "lstm" or "gru".

    Returns:
        The next state, as a list like `state`.

    Raises:
        UserError: Shapes do not fit (MLC0367), or float dtypes differ (MLC0420).
    """
    weight_ih, weight_hh, *biases = weights
    bias_ih, bias_hh = biases or (None, None)
    projected = linear(input, weight_ih, bias_ih)
    out: list[Tensor] = STEPS[mode](projected, [tracer(x) for x in state], weight_hh, bias_hh, None)
    return out


@operation(static=("weights",), autocast="lower_precision")
def recurrent(input: Operand, state: Sequence[Operand], weights: Sequence[Operand], mode: str, num_layers: int = 1,
              bidirectional: bool = False, batch_first: bool = False, dropout: float = 0.0, key: Operand = None,
              lengths: Operand = None) -> Any:
    """Layers of a recurrent network over sequences: each layer and direction is a scan over the steps.

    The products of all inputs with the weights are one product in front of the scan, which is left with that of the
    state. A sequence that is shorter than others keeps its state from its end on, in both directions.

    Args:
        input: Tensor of shape (steps, n, features); (n, steps, features) with `batch_first`; (steps, features) of one
            sequence. Integers take on the dtype of the weights.
        state: The hidden states, of shape (layers * directions, n, hidden_size), and of an LSTM the cell states; empty
            for zeros.
        weights: Those of each layer and direction, one after the other: weight_ih, weight_hh, the two biases if there
            are any, weight_hr if there is one.
        mode: "rnn_tanh", "rnn_relu", "lstm" or "gru".
        num_layers: Number of layers, each on the results of the one before.
        bidirectional: Whether each layer also has a direction from the end to the start.
        batch_first: Whether the batch is the first dimension.
        dropout: Probability of 0 for the elements between two layers.
        key: Random key for dropout, if it is to drop anything.
        lengths: Integers of shape (n,): the lengths of the sequences; None if none is shorter than another.

    Returns:
        The results of the last layer, of the shape of `input` with directions * hidden_size features, and the list of
        final states.

    Raises:
        UserError: Shapes do not fit (MLC0367), a number of dimensions is wrong (MLC0364), or float dtypes differ
            (MLC0420).
    """
    x, directions = tracer(input), 2 if bidirectional else 1
    x = x if x.type.dtype.is_inexact else cast(x, tracer(weights[0]).type.dtype)
    single = x.ndim == 2
    if x.ndim not in (2, 3):
        raise UserError(f"the input has {x.ndim} dimensions, expected 3, or 2 for one sequence", code="MLC0364")
    x = reshape(x, [x.shape[0], 1, x.shape[1]]) if single else tracer(transpose(x, 0, 1)) if batch_first else x
    states = [_batched(s, x, num_layers * directions, single) for s in map(tracer, state)]
    groups = _grouped(list(weights), num_layers * directions)
    keys = random.split(key, num_layers) if key is not None and dropout else None
    last: list[list[Any]] = []
    for layer in range(num_layers):
        found = []
        for direction in range(directions):
            at = layer * directions + direction
            begin = [_row(s, at) for s in states]
            end, ys = _direction(x, begin, groups[at], mode, direction == 1, lengths)
            last.append(end)
            found.append(ys)
        x = tracer(cat(found, 2) if directions == 2 else found[0])
        if keys is not None and layer < num_layers - 1:
            x = tracer(random.dropout(_row(tracer(keys), layer), x, dropout))
    final = [tracer(stack(list(parts), 0)) for parts in zip(*last)]
    if single:
        return (_without_batch(x), [_without_batch(s) for s in final])
    return (transpose(x, 0, 1) if batch_first else x), final


def _batched(state: Tracer, x: Tracer, count: int, single: bool) -> Tracer:
    """A state of shape (layers * directions, n, size)."""
    if state.ndim != (2 if single else 3):
        raise UserError(f"the state has {state.ndim} dimensions, and the input {2 if single else 3}", code="MLC0364")
    state = reshape(state, [state.shape[0], 1, state.shape[1]]) if single else state
    if not sizes.is_equal(state.shape[0], count) or not sizes.is_equal(state.shape[1], x.shape[1]):
        raise UserError(f"a state of shape {list(state.shape)} for {count} layers and directions and a batch of "
                        f"{x.shape[1]}", code="MLC0367")
    return state


def _without_batch(x: Tracer) -> Tracer:
    return reshape(x, [x.shape[0], x.shape[2]])


def _grouped(weights: list[Any], count: int) -> list[list[Any]]:
    each = len(weights) // count
    return [weights[i * each:(i + 1) * each] for i in range(count)]


def _row(x: Tracer, at: int) -> Tracer:
    return reshape(sliced(x, 0, at, at + 1), x.shape[1:])


def _direction(x: Tracer, state: Sequence[Any], weights: Sequence[Any], mode: str, reverse: bool,
               lengths: Operand) -> tuple[list[Any], Tensor]:
    """The final states and the results of one direction of a layer."""
    projection = weights[-1] if len(weights) % 2 else None
    weight_ih, weight_hh, *biases = weights[:-1] if projection is not None else weights
    bias_ih, bias_hh = biases or (None, None)
    steps, n, _ = x.shape
    if not state:
        hidden = tracer(weight_hh).shape[1]
        cell = sizes.divide(tracer(weight_hh).shape[0], GATES[mode])
        state = [full(0.0, x, [n, size]) for size in ((hidden, cell) if mode == "lstm" else (hidden,))]
    step = STEPS[mode]
    projected = tracer(linear(x, weight_ih, bias_ih))
    if lengths is None:
        def advance(carry: Any, row: Any) -> Any:
            new = step(row, carry, weight_hh, bias_hh, projection)
            return new, new[0]
        end, ys = scan(advance, list(state), projected, reverse=reverse)
        return end, ys

    def advance_some(carry: Any, pair: Any) -> Any:
        row, t = pair
        active = reshape(tracer(t < lengths), [n, 1])
        new = step(row, carry, weight_hh, bias_hh, projection)
        new = [E.where(active, a, b) for a, b in zip(new, carry)]
        return new, new[0]
    end, ys = scan(advance_some, list(state), (projected, emit(T.Iota, (steps,), 0, i64)), reverse=reverse)
    return end, ys
