"""Recurrent networks, as scans over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend.control import scan
from mlc.frontend.onnx.elementwise import elu, hard_sigmoid, leaky_relu, softsign, thresholded_relu
from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import refuse
from mlc.frontend.tensor import OPERATIONS as O

Activation = Callable[[Any], Any]


def activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    """A function by its name in ONNX, with its numbers where they are given."""
    first = {} if alpha is None else {"alpha": alpha}
    found: dict[str, Activation] = {
        "relu": O["relu"], "tanh": O["tanh"], "sigmoid": O["sigmoid"], "softsign": softsign, "softplus": O["softplus"],
        "affine": lambda x: x * (1.0 if alpha is None else alpha) + (0.0 if beta is None else beta),
        "leakyrelu": lambda x: leaky_relu(x, **first), "thresholdedrelu": lambda x: thresholded_relu(x, **first),
        "scaledtanh": lambda x: O["tanh"](x * (1.0 if beta is None else beta)) * (1.0 if alpha is None else alpha),
        "hardsigmoid": lambda x: hard_sigmoid(x, **first, **({} if beta is None else {"beta": beta})),
        "elu": lambda x: elu(x, **first)}
    if name.lower() not in found:
        refuse(f"the activation {name!r}")
    return found[name.lower()]


class Cell:
    """The common part of the three networks: directions, activations, clipping, lengths of sequences.

    gates      number of gates, which weights have one after the other
    states     number of states that are carried
    """

    def __init__(self, gates: int, states: int, defaults: Sequence[str], settings: dict[str, Any]) -> None:
        self.gates, self.states = gates, states
        self.direction = settings.get("direction", "forward")
        if self.direction not in ("forward", "reverse", "bidirectional"):
            refuse(f"the direction {self.direction!r}")
        self.ways = 2 if self.direction == "bidirectional" else 1
        names = settings.get("activations") or list(defaults) * self.ways
        if len(names) != len(defaults) * self.ways:
            refuse(f"{len(names)} activations, not {len(defaults) * self.ways}")
        alphas, betas = settings.get("activation_alpha") or [], settings.get("activation_beta") or []
        if (alphas or betas) and len(set(map(len, (names, alphas or names, betas or names)))) > 1:
            refuse("numbers for some of the activations")
        made = [activation(n, alphas[k] if alphas else None, betas[k] if betas else None) for k, n in enumerate(names)]
        self.activations = [made[k * len(defaults):(k + 1) * len(defaults)] for k in range(self.ways)]
        self.clip = settings.get("clip")
        self.by_batch = bool(settings.get("layout", 0))

    def clipped(self, x: Any) -> Any:
        return x if self.clip is None else O["clamp"](x, -self.clip, self.clip)

    def run(self, x: Any, lengths: Any, starts: Sequence[Any], hidden: int, step: Any) -> tuple[Any, ...]:
        """The results of all steps and the last states; step(way, x, states) is new states."""
        x = O["transpose"](x, 0, 1) if self.by_batch else x
        starts = [None if s is None else O["transpose"](s, 0, 1) if self.by_batch else s for s in starts]
        time, batch = x.shape[:2]
        outs, lasts = list[Any](), list[Any]()
        for way in range(self.ways):
            states = tuple(O["zeros"]((batch, hidden), dtype=x.dtype) if s is None else s[way] for s in starts)
            backward = self.direction == "reverse" or way == 1
            last, out = self._one_way(x, lengths, states, backward, lambda v, s, way=way: step(way, v, s), time)
            outs.append(out)
            lasts.append(last)
        y = O["stack"](tuple(outs), 1)
        last = [O["stack"](tuple(way[k] for way in lasts), 0) for k in range(self.states)]
        if self.by_batch:
            return O["permute"](y, (2, 0, 1, 3)), *(O["transpose"](s, 0, 1) for s in last)
        return y, *last

    @staticmethod
    def _one_way(x: Any, lengths: Any, states: tuple[Any, ...], backward: bool, step: Any, time: Any) -> Any:
        """A scan; the steps after the end of an example leave its states, and give zeros."""
        def body(state: Any, inputs: Any) -> Any:
            v, k = inputs
            new = step(v, state)
            if lengths is None:
                return new, new[0]
            inside = O["reshape"](O["lt"](k, O["cast"](lengths, "int64")), (-1, 1))
            kept = tuple(O["where"](inside, n, s) for n, s in zip(new, state))
            return kept, O["where"](inside, new[0], O["zeros_like"](new[0]))
        steps = O["arange"](time)
        xs = (O["flip"](x, (0,)), O["flip"](steps, (0,))) if backward else (x, steps)
        last, out = scan(body, states, xs)
        return last, O["flip"](out, (0,)) if backward else out


def _halves(bias: Any, way: int, total: int) -> tuple[Any, Any]:
    """The biases of the input and of the state."""
    return (0.0, 0.0) if bias is None else (bias[way][:total], bias[way][total:])


@row("RNN")
def rnn(x: Any, w: Any, r: Any, bias: Any = None, lengths: Any = None, start: Any = None, *, hidden_size: int,
        activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: Any = None,
        direction: str = "forward", layout: int = 0, output_sequence: int = 1) -> Any:
    cell = Cell(1, 1, ["Tanh"], {"activations": activations, "activation_alpha": activation_alpha, "clip": clip,
                                 "activation_beta": activation_beta, "direction": direction, "layout": layout})

    def step(way: int, v: Any, state: Any) -> Any:
        own, other = _halves(bias, way, hidden_size)
        z = O["matmul"](v, O["transpose"](w[way], 0, 1)) + O["matmul"](state[0], O["transpose"](r[way], 0, 1))
        return (cell.activations[way][0](cell.clipped(z + own + other)),)
    return cell.run(x, lengths, (start,), hidden_size, step)


@row("GRU")
def gru(x: Any, w: Any, r: Any, bias: Any = None, lengths: Any = None, start: Any = None, *, hidden_size: int,
        activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: Any = None,
        direction: str = "forward", layout: int = 0, linear_before_reset: int = 0, output_sequence: int = 1) -> Any:
    """Gates are update, reset and hidden."""
    cell = Cell(3, 1, ["Sigmoid", "Tanh"], {
        "activations": activations, "activation_alpha": activation_alpha, "activation_beta": activation_beta,
        "clip": clip, "direction": direction, "layout": layout})
    n = hidden_size

    def step(way: int, v: Any, state: Any) -> Any:
        (h,), (f, g) = state, cell.activations[way]
        own, other = _halves(bias, way, 3 * n)
        left = O["matmul"](v, O["transpose"](w[way], 0, 1)) + own
        right = O["transpose"](r[way], 0, 1)
        if bias is None:
            other = O["zeros"]((3 * n,), dtype=x.dtype)
        both = left[:, :2 * n] + O["matmul"](h, right[:, :2 * n]) + other[:2 * n]
        gates = f(cell.clipped(both))
        update, reset = gates[:, :n], gates[:, n:]
        if linear_before_reset:
            inner = reset * (O["matmul"](h, right[:, 2 * n:]) + other[2 * n:])
        else:
            inner = O["matmul"](reset * h, right[:, 2 * n:]) + other[2 * n:]
        new = g(cell.clipped(left[:, 2 * n:] + inner))
        return ((1 - update) * new + update * h,)
    return cell.run(x, lengths, (start,), n, step)


@row("LSTM")
def lstm(x: Any, w: Any, r: Any, bias: Any = None, lengths: Any = None, start_h: Any = None, start_c: Any = None,
         peepholes: Any = None, *, hidden_size: int, activations: Any = None, activation_alpha: Any = None,
         activation_beta: Any = None, clip: Any = None, direction: str = "forward", input_forget: int = 0,
         layout: int = 0, output_sequence: int = 1) -> Any:
    """Gates are input, output, forget and cell."""
    cell = Cell(4, 2, ["Sigmoid", "Tanh", "Tanh"], {
        "activations": activations, "activation_alpha": activation_alpha, "activation_beta": activation_beta,
        "clip": clip, "direction": direction, "layout": layout})
    n = hidden_size

    def step(way: int, v: Any, state: Any) -> Any:
        (h, c), (f, g, last) = state, cell.activations[way]
        own, other = _halves(bias, way, 4 * n)
        z = O["matmul"](v, O["transpose"](w[way], 0, 1)) + O["matmul"](h, O["transpose"](r[way], 0, 1)) + own + other
        p = None if peepholes is None else peepholes[way]
        put = f(cell.clipped(z[:, :n] + (0.0 if p is None else p[:n] * c)))
        forget = 1 - put if input_forget else f(cell.clipped(
            z[:, 2 * n:3 * n] + (0.0 if p is None else p[2 * n:] * c)))
        new = forget * c + put * g(cell.clipped(z[:, 3 * n:]))
        out = f(cell.clipped(z[:, n:2 * n] + (0.0 if p is None else p[n:2 * n] * new)))
        return out * last(new), new
    return cell.run(x, lengths, (start_h, start_c), n, step)
