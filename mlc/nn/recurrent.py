"""Recurrent layers: RNN, LSTM, GRU, and the cells that make one step of them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mlc.frontend.functions import create, index, recurrent
from mlc.frontend.functions import shape as S
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Operand, Tensor, wrap
from mlc.ir.diag import UserError, UserTypeError
from mlc.nn import anew, init
from mlc.nn.dropout import Keyed
from mlc.nn.module import Module
from mlc.nn.utils.rnn import PackedSequence, rows_of_padded, taken

NONLINEARITIES = ("tanh", "relu")


def _check_nonlinearity(nonlinearity: str) -> None:
    if nonlinearity not in NONLINEARITIES:
        raise UserError(f"nonlinearity = {nonlinearity!r}, expected 'tanh' or 'relu'", code="MLC0360", loc=user_loc())


def _pair(hx: Any) -> list[Any]:
    if not isinstance(hx, tuple | list) or len(hx) != 2:
        raise UserTypeError(f"the state of an LSTM is a pair of tensors, found {type(hx).__name__}", code="MLC0421",
                            loc=user_loc())
    return list(hx)


class RNNCellBase(Module):
    """Base of the cells: their weights, uniform in [-1/sqrt(hidden_size), 1/sqrt(hidden_size)) at first.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the state.
        bias: Whether there are biases.
        num_chunks: Number of gates.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Example:
        >>> isinstance(nn.LSTMCell(2, 3), nn.RNNCellBase)
        True
    """

    _parameters = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None,
                 dtype: DTypeLike = None) -> None:
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows, bound = num_chunks * hidden_size, init.bound(hidden_size)
        for name, shape in (("weight_ih", (rows, input_size)), ("weight_hh", (rows, hidden_size)),
                            ("bias_ih", (rows,)), ("bias_hh", (rows,))):
            made = init.uniform(shape, -bound, bound, dtype or "float32") if bias or "weight" in name else None
            setattr(self, name, made)
        if device is not None:
            self.to(device=device)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniformly from [-b, b] for b = 1 / sqrt(hidden_size), from the default generator.

        Example:
            >>> nn.GRUCell(2, 3).reset_parameters()
        """
        anew.uniform(self.hidden_size, *self.parameters())

    def extra_repr(self) -> str:
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return f"{self.input_size}, {self.hidden_size}" + (f", bias={self.bias}" if self.bias is not True else "") + (
            f", nonlinearity={nonlinearity}" if nonlinearity != "tanh" else "")

    def _step(self, x: Any, state: Any, mode: str, count: int) -> list[Tensor]:
        x, state = create.asarray(x), None if state is None else [create.asarray(h) for h in state]
        if len(x.shape) not in (1, 2):
            raise UserError(f"{type(self).__name__} takes 1 or 2 dimensions, found {len(x.shape)}", code="MLC0364",
                            loc=user_loc())
        if state is None:
            state = [x.new_zeros((*x.shape[:-1], self.hidden_size), dtype=x.dtype)] * count
        for h in state:
            if len(h.shape) != len(x.shape) or tuple(h.shape) != (*x.shape[:-1], self.hidden_size):
                raise UserError(f"{type(self).__name__}: a state of shape {list(h.shape)} for an input of shape "
                                f"{list(x.shape)}", code="MLC0367", loc=user_loc())
        weights = [w for w in (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh) if w is not None]
        return recurrent.recurrent_cell(x, state, weights, mode)


class RNNCell(RNNCellBase):
    """One step of an Elman network: tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh), or with relu.

    Shape:
        Input [n, input_size] and state [n, hidden_size] -> [n, hidden_size]; without n as well.

    Attributes:
        weight_ih: Parameter [hidden_size, input_size].
        weight_hh: Parameter [hidden_size, hidden_size].
        bias_ih: Parameter [hidden_size], or None.
        bias_hh: Parameter [hidden_size], or None.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the state.
        bias: Whether there are biases.
        nonlinearity: "tanh" or "relu".
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: `nonlinearity` is another string (MLC0360), shapes do not fit (MLC0367), a number of dimensions is
            wrong (MLC0364), a size is negative (MLC0358), or the float dtypes of the input and the parameters differ
            (MLC0420).

    Example:
        >>> nn.RNNCell(2, 3)(mlc.ones(4, 2)).shape
        (4, 3)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
                 device: Any = None, dtype: DTypeLike = None) -> None:
        _check_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Operand, hx: Operand = None) -> Tensor:
        return self._step(input, None if hx is None else [hx], f"rnn_{self.nonlinearity}", 1)[0]


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory: c' = f * c + i * g, h' = o * tanh(c').

    The gates i, f, o are sigmoids and g a tanh of the parts of weight_ih @ x + bias_ih + weight_hh @ h + bias_hh, in
    the order i, f, g, o. (Hochreiter and Schmidhuber 1997, "Long Short-Term Memory".)

    Shape:
        Input [n, input_size] and states [n, hidden_size] -> a pair of [n, hidden_size]; without n as well.

    Attributes:
        weight_ih: Parameter [4 * hidden_size, input_size].
        weight_hh: Parameter [4 * hidden_size, hidden_size].
        bias_ih: Parameter [4 * hidden_size], or None.
        bias_hh: Parameter [4 * hidden_size], or None.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the state.
        bias: Whether there are biases.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: Shapes do not fit (MLC0367), a number of dimensions is wrong (MLC0364), a size is negative (MLC0358),
            or the float dtypes of the input and the parameters differ (MLC0420).

    Example:
        >>> h, c = nn.LSTMCell(2, 3)(mlc.ones(4, 2))
        >>> h.shape, c.shape
        ((4, 3), (4, 3))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: DTypeLike = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Operand, hx: tuple[Any, Any] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._step(input, None if hx is None else _pair(hx), "lstm", 2)
        return h, c


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit: h' = n + z * (h - n).

    The gates r and z are sigmoids of weight_ih @ x + bias_ih + weight_hh @ h + bias_hh, and
    n = tanh(weight_ih @ x + bias_ih + r * (weight_hh @ h + bias_hh)), each of its own rows, in the order r, z, n. (Cho
    et al. 2014, "Learning Phrase Representations using RNN Encoder-Decoder".)

    Shape:
        Input [n, input_size] and state [n, hidden_size] -> [n, hidden_size]; without n as well.

    Attributes:
        weight_ih: Parameter [3 * hidden_size, input_size].
        weight_hh: Parameter [3 * hidden_size, hidden_size].
        bias_ih: Parameter [3 * hidden_size], or None.
        bias_hh: Parameter [3 * hidden_size], or None.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the state.
        bias: Whether there are biases.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: Shapes do not fit (MLC0367), a number of dimensions is wrong (MLC0364), a size is negative (MLC0358),
            or the float dtypes of the input and the parameters differ (MLC0420).

    Example:
        >>> nn.GRUCell(2, 3)(mlc.ones(4, 2)).shape
        (4, 3)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: DTypeLike = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Operand, hx: Operand = None) -> Tensor:
        return self._step(input, None if hx is None else [hx], "gru", 1)[0]


class RNNBase(Keyed):
    """Base of the recurrent layers: their weights, and calls on padded, packed and single sequences.

    The parameters have PyTorch's names: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 and weight_hr_l0 of the
    first layer, with "_reverse" for the direction from the end to the start.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size: Number of features of the input.
        hidden_size: Number of features of the state.
        num_layers: Number of layers.
        bias: Whether there are biases.
        batch_first: Whether the batch is the first dimension of input and result.
        dropout: Probability of 0 for the elements between two layers, in training.
        bidirectional: Whether each layer also has a direction from the end to the start.
        proj_size: Number of features that an LSTM's hidden state is projected to; 0 for no projection.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: A setting is not allowed (MLC0360).

    Example:
        >>> isinstance(nn.GRU(2, 3), nn.RNNBase)
        True
    """

    _names: ClassVar[tuple[str, ...]] = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: Any = None, dtype: DTypeLike = None) -> None:
        for wrong, what in ((isinstance(dropout, bool) or not 0 <= dropout <= 1, f"dropout = {dropout}"),
                            (hidden_size <= 0, f"hidden_size = {hidden_size}"),
                            (num_layers <= 0, f"num_layers = {num_layers}"),
                            (not 0 <= proj_size < hidden_size or (proj_size and mode != "LSTM"),
                             f"proj_size = {proj_size}")):
            if wrong:
                raise UserError(f"{what} in a {type(self).__name__}", code="MLC0360", loc=user_loc())
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size = proj_size
        self.key = None  # type: ignore[assignment]
        if dropout:
            self.draw_key()
        rows, state = recurrent.GATES[mode.lower()] * hidden_size, proj_size or hidden_size
        directions = 2 if bidirectional else 1
        bound = init.bound(hidden_size)
        for layer, suffix in self._suffixes():
            shapes = {"weight_ih": (rows, state * directions if layer else input_size), "weight_hh": (rows, state),
                      "bias_ih": (rows,), "bias_hh": (rows,), "weight_hr": (proj_size, hidden_size)}
            for name in self._kinds():
                made = init.uniform(shapes[name], -bound, bound, dtype or "float32")
                self.register_parameter(name + suffix, made)
        if device is not None:
            self.to(device=device)

    def _suffixes(self) -> list[tuple[int, str]]:
        return [(layer, f"_l{layer}{direction}") for layer in range(self.num_layers)
                for direction in (("", "_reverse") if self.bidirectional else ("",))]

    def _kinds(self) -> list[str]:
        return [name for name in self._names if (self.bias or "bias" not in name)
                and (self.proj_size or name != "weight_hr")]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each layer and direction, a list for each; a layer's two directions follow each other.

        Example:
            >>> [[tuple(w.shape) for w in ws] for ws in nn.GRU(2, 3, bias=False).all_weights]
            [[(9, 2), (9, 3)]]
        """
        return [[getattr(self, name + suffix) for name in self._kinds()] for _, suffix in self._suffixes()]

    def flatten_parameters(self) -> None:
        """Do nothing: compiled code takes the parameters as they are. Programs call it for cuDNN's sake.

        Example:
            >>> nn.GRU(2, 3).flatten_parameters()
        """

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniformly from [-b, b] for b = 1 / sqrt(hidden_size), from the default generator.

        Example:
            >>> nn.GRU(2, 3).reset_parameters()
        """
        anew.uniform(self.hidden_size, *self.parameters())

    def extra_repr(self) -> str:
        shown = [("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0),
                 ("bidirectional", False)]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *(
            f"{name}={getattr(self, name)}" for name, usual in shown if getattr(self, name) != usual)])

    def _run(self, x: Any, states: list[Any]) -> tuple[Any, list[Tensor]]:
        """The results and the final states; of a packed sequence, the results are packed in turn."""
        weights = [w for group in self.all_weights for w in group]
        x, states = x if isinstance(x, PackedSequence) else create.asarray(x), [create.asarray(s) for s in states]
        key = self.next_key() if self.training and self.dropout and self.num_layers > 1 else None
        options = (self.mode.lower(), self.num_layers, self.bidirectional)
        if not isinstance(x, PackedSequence):
            self._check(x, states)
            results, final = recurrent.recurrent(x, states, weights, *options, self.batch_first, self.dropout, key)
            return results, final
        rows, lengths = rows_of_padded(x)
        padded = taken(x.data, np.maximum(rows, 0))
        self._check(padded, states)
        if x.sorted_indices is not None:
            states = [index.index_select(s, 1, x.sorted_indices) for s in states]
        out, final = recurrent.recurrent(padded, states, weights, *options, False, self.dropout, key,
                                         wrap(lengths.astype(np.int64)))
        order = np.flatnonzero(rows.ravel() >= 0)
        data = index.index_select(S.flatten(out, 0, 1), 0, wrap(order.astype(np.int64)))
        if x.unsorted_indices is not None:
            final = [index.index_select(s, 1, x.unsorted_indices) for s in final]
        return PackedSequence(data, x.batch_sizes, x.sorted_indices, x.unsorted_indices), final

    def _check(self, x: Any, states: list[Any]) -> None:
        if len(x.shape) not in (2, 3) or any(len(s.shape) != len(x.shape) for s in states):
            raise UserError(f"{type(self).__name__} takes input and states of 3 dimensions, or of 2 for one sequence, "
                            f"found {[len(s.shape) for s in (x, *states)]}", code="MLC0364", loc=user_loc())
        if x.shape[-1] != self.input_size:
            raise UserError(f"{type(self).__name__} takes {self.input_size} features, the input has {x.shape[-1]}",
                            code="MLC0367", loc=user_loc())
        sizes = [self.proj_size or self.hidden_size, self.hidden_size]
        for s, size in zip(states, sizes):
            if s.shape[-1] != size:
                raise UserError(f"{type(self).__name__} has a state of {size} features, found one of {s.shape[-1]}",
                                code="MLC0367", loc=user_loc())


class _OneState(RNNBase):
    def forward(self, input: Any, hx: Operand = None) -> tuple[Any, Tensor]:
        out, final = self._run(input, [] if hx is None else [hx])
        return out, final[0]


class RNN(_OneState):
    """Elman network: layers of h[t] = tanh(weight_ih @ x[t] + bias_ih + weight_hh @ h[t-1] + bias_hh), or with relu.

    A call is one compiled function of all layers and steps, for all lengths.

    Shape:
        Input [steps, n, input_size] ([n, steps, input_size] with batch_first, [steps, input_size] for one sequence, or
        a PackedSequence) and state [num_layers * directions, n, hidden_size] -> the results
        [steps, n, directions * hidden_size] and the final state.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the state.
        num_layers: Number of layers.
        nonlinearity: "tanh" or "relu".
        bias: Whether there are biases.
        batch_first: Whether the batch is the first dimension of input and result.
        dropout: Probability of 0 for the elements between two layers, in training.
        bidirectional: Whether each layer also has a direction from the end to the start.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: A setting is not allowed (MLC0360), shapes do not fit (MLC0367), a number of dimensions is wrong
            (MLC0364), a size is negative (MLC0358), or the float dtypes of the input and the parameters differ
            (MLC0420).

    Example:
        >>> out, h = nn.RNN(2, 3, num_layers=2)(mlc.ones(5, 4, 2))
        >>> out.shape, h.shape
        ((5, 4, 3), (2, 4, 3))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 device: Any = None, dtype: DTypeLike = None) -> None:
        _check_nonlinearity(nonlinearity)
        self.nonlinearity = nonlinearity
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, 0, device, dtype)


class GRU(_OneState):
    """Layers of gated recurrent units: the steps are those of `nn.GRUCell`.

    A call is one compiled function of all layers and steps, for all lengths.

    Shape:
        Input [steps, n, input_size] ([n, steps, input_size] with batch_first, [steps, input_size] for one sequence, or
        a PackedSequence) and state [num_layers * directions, n, hidden_size] -> the results
        [steps, n, directions * hidden_size] and the final state.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the state.
        num_layers: Number of layers.
        bias: Whether there are biases.
        batch_first: Whether the batch is the first dimension of input and result.
        dropout: Probability of 0 for the elements between two layers, in training.
        bidirectional: Whether each layer also has a direction from the end to the start.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: A setting is not allowed (MLC0360), shapes do not fit (MLC0367), a number of dimensions is wrong
            (MLC0364), a size is negative (MLC0358), or the float dtypes of the input and the parameters differ
            (MLC0420).

    Example:
        >>> out, h = nn.GRU(2, 3, batch_first=True, bidirectional=True)(mlc.ones(4, 5, 2))
        >>> out.shape, h.shape
        ((4, 5, 6), (2, 4, 3))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device: Any = None,
                 dtype: DTypeLike = None) -> None:
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
                         device, dtype)


class LSTM(RNNBase):
    """Layers of long short-term memories: the steps are those of `nn.LSTMCell`.

    A call is one compiled function of all layers and steps, for all lengths. With proj_size, the hidden state is
    weight_hr @ (o * tanh(c)). (Sak, Senior and Beaufays 2014, "Long Short-Term Memory Based Recurrent Neural Network
    Architectures for Large Vocabulary Speech Recognition".)

    Shape:
        Input [steps, n, input_size] ([n, steps, input_size] with batch_first, [steps, input_size] for one sequence, or
        a PackedSequence), states [num_layers * directions, n, proj_size or hidden_size] and
        [num_layers * directions, n, hidden_size] -> the results [steps, n, directions * (proj_size or hidden_size)] and
        the pair of final states.

    Args:
        input_size: Number of features of the input.
        hidden_size: Number of features of the state.
        num_layers: Number of layers.
        bias: Whether there are biases.
        batch_first: Whether the batch is the first dimension of input and result.
        dropout: Probability of 0 for the elements between two layers, in training.
        bidirectional: Whether each layer also has a direction from the end to the start.
        proj_size: Number of features that the hidden state is projected to; 0 for no projection.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: A setting is not allowed (MLC0360), shapes do not fit (MLC0367), a number of dimensions is wrong
            (MLC0364), a size is negative (MLC0358), or the float dtypes of the input and the parameters differ
            (MLC0420).

    Example:
        >>> out, (h, c) = nn.LSTM(2, 3, proj_size=1)(mlc.ones(5, 4, 2))
        >>> out.shape, h.shape, c.shape
        ((5, 4, 1), (1, 4, 1), (1, 4, 3))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: Any = None, dtype: DTypeLike = None) -> None:
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         proj_size, device, dtype)

    def forward(self, input: Any, hx: tuple[Any, Any] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        out, (h, c) = self._run(input, [] if hx is None else _pair(hx))
        return out, (h, c)
