"""The same model in Python and in the text language lowers to the same IR."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend.language import load

EXAMPLES = Path(__file__).parent.parent / "examples"


def text(function: Any, *args: Any) -> str:
    """The IR of a function, with values in the order of their definition for names."""
    lowered = mlc.lower(function, args or None).to_text()
    numbers: dict[str, str] = {}
    renamed = re.sub(r"%[A-Za-z_]\w*", lambda m: numbers.setdefault(m[0], f"%v{len(numbers)}"), lowered)
    return re.sub(r" attributes \{arg_names = \[.*?\]\}", "", renamed)


# -- Newton's method --------------------------------------------------------------------------------------------------
def f(x: mlc.Tensor, a: mlc.Tensor) -> mlc.Tensor:
    return x ** 2 - a


def root(a: Any, x: Any) -> Any:
    return mlc.while_loop(lambda x: mlc.abs(f(x, a)) > 1e-6 * a, lambda x: x - f(x, a) / mlc.grad(f)(x, a), x)


def root_in_python(a: Any, x: Any) -> Any:
    while mlc.abs(f(x, a)) > 1e-6 * a:
        x = x - f(x, a) / mlc.grad(f)(x, a)
    return x


def test_newton() -> None:
    program = load(EXAMPLES / "newton.mlc")
    number = mlc.spec()
    assert text(program.root) == text(root, number, number) == text(root_in_python, number, number)


# -- a recurrent network ----------------------------------------------------------------------------------------------
class Rnn(nn.Module):
    def __init__(self) -> None:
        self.w = nn.Parameter(nn.init.xavier_uniform((4, 16)))
        self.u = nn.Parameter(nn.init.orthogonal((16, 16)))
        self.b = nn.Parameter(nn.init.zeros((16,)))
        self.read = nn.Linear(16, 3)

    def step(self, h: Any, t: Any, x: Any, lengths: Any) -> Any:
        new = mlc.tanh(x @ self.w + h @ self.u + self.b)
        return mlc.where((t < lengths)[:, None], new, h)

    def forward(self, xs: Any, lengths: Any) -> Any:
        start = mlc.zeros((lengths.shape[0], 16))
        h, _ = mlc.scan(lambda h, given: (self.step(h, given[0], given[1], lengths), ()), start,
                        (mlc.arange(xs.shape[0]), xs))
        return self.read(h)


class RnnInPython(Rnn):
    def forward(self, xs: Any, lengths: Any) -> Any:
        h = mlc.zeros((lengths.shape[0], 16))
        for t in range(xs.shape[0]):
            h = self.step(h, t, xs[t], lengths)
        return self.read(h)


def classify(net: Rnn, xs: Any, lengths: Any) -> Any:
    return net(xs, lengths).argmax(1)


@pytest.mark.parametrize("twin, loop", [
    (Rnn, "for t, x in zip(arange(T), xs):"),
    (RnnInPython, "for t in 0..T:\n            x = xs[t]"),
])
def test_rnn(twin: type[Rnn], loop: str, tmp_path: Path) -> None:
    program = (EXAMPLES / "rnn.mlc").read_text().replace("for t, x in zip(0..T, xs):", loop)
    (tmp_path / "rnn.mlc").write_text(program)
    xs, lengths = mlc.spec("T", "B", 4), mlc.spec("B", dtype="int64")
    assert text(load(tmp_path / "rnn.mlc").classify) == text(classify, twin(), xs, lengths)


def test_rnn_goes_through_rows_by_their_number() -> None:
    """The example itself: no array of the numbers is made."""
    program, rng = load(EXAMPLES / "rnn.mlc"), np.random.default_rng(0)
    assert "tensor.iota {axis = 0}" not in text(program.classify)
    mlc.manual_seed(0)
    net, twin = program.Rnn(4, 16, 3), Rnn()
    twin.load_state_dict(net.state_dict())
    xs, lengths = rng.normal(size=(7, 5, 4)).astype(np.float32), np.array([7, 0, 3, 1, 6])
    np.testing.assert_array_equal(program.classify(net, xs, lengths), mlc.compile(classify)(twin, xs, lengths))


# -- a transformer ----------------------------------------------------------------------------------------------------
class Dense(nn.Module):
    def __init__(self, n: int, m: int) -> None:
        self.w = nn.Parameter(nn.init.normal((n, m), 0, (2 / n) ** 0.5))
        self.b = nn.Parameter(nn.init.zeros((m,)))

    def forward(self, x: Any) -> Any:
        return x @ self.w + self.b


class Norm(nn.Module):
    def __init__(self, d: int) -> None:
        self.g, self.b = nn.Parameter(nn.init.ones((d,))), nn.Parameter(nn.init.zeros((d,)))

    def forward(self, x: Any) -> Any:
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred ** 2).mean(-1, keepdim=True)
        return self.g * centred / mlc.sqrt(variance + 1e-5) + self.b


class Attention(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        self.heads = heads
        self.query, self.keys, self.values, self.out = Dense(d, d), Dense(d, d), Dense(d, d), Dense(d, d)

    def split(self, x: Any) -> Any:
        rows, places, d = x.shape
        return x.reshape(rows, places, self.heads, d // self.heads).transpose(1, 2)

    def forward(self, x: Any) -> Any:
        rows, places, d = x.shape
        q, k, v = (self.split(p(x)) for p in (self.query, self.keys, self.values))
        scores = q @ k.mT / (d // self.heads) ** 0.5
        past = mlc.arange(places)[:, None] >= mlc.arange(places)
        weights = mlc.softmax(mlc.where(past, scores, -float("inf")), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(rows, places, d))


class Block(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        self.attention = Attention(d, heads)
        self.wide, self.narrow = Dense(d, 4 * d), Dense(4 * d, d)
        self.before, self.between = Norm(d), Norm(d)

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.before(x))
        return x + self.narrow(nn.functional.gelu(self.wide(self.between(x))))


class Transformer(nn.Module):
    def __init__(self) -> None:
        self.table = nn.Parameter(nn.init.normal((64, 32)))
        self.places = nn.Parameter(nn.init.normal((128, 32)))
        self.blocks = [Block(32, 4) for _ in range(2)]
        self.last = Norm(32)

    def forward(self, tokens: Any) -> Any:
        x = self.table[tokens] + self.places[mlc.arange(tokens.shape[1])]
        for block in self.blocks:
            x = block(x)
        return self.last(x) @ self.table.T


def transformer_loss(net: Transformer, tokens: Any, following: Any) -> Any:
    logits = net(tokens)
    count = tokens.shape[0] * tokens.shape[1]
    return nn.functional.cross_entropy(logits.reshape(count, 64), following.reshape(count))


def test_transformer() -> None:
    program = load(EXAMPLES / "transformer.mlc")
    tokens = mlc.spec("B", "T", dtype="int64")
    assert text(program.loss) == text(transformer_loss, Transformer(), tokens, tokens)


def test_gradient_of_the_transformer() -> None:
    program = load(EXAMPLES / "transformer.mlc")
    tokens = mlc.spec("B", "T", dtype="int64")
    assert (text(mlc.grad(program.loss), program.Transformer(), tokens, tokens)
            == text(mlc.grad(transformer_loss), Transformer(), tokens, tokens))


# -- a training step --------------------------------------------------------------------------------------------------
class Classifier(nn.Module):
    def __init__(self) -> None:
        self.first, self.second, self.last = Dense(64, 128), Dense(128, 64), Dense(64, 10)

    def forward(self, images: Any) -> Any:
        return self.last(mlc.relu(self.second(mlc.relu(self.first(images)))))


optimizer = mlc.optim.AdamW(lr=2e-3, weight_decay=0.1)


def loss(net: Classifier, images: Any, labels: Any) -> Any:
    return nn.functional.cross_entropy(net(images), labels)


def step(net: Classifier, state: Any, images: Any, labels: Any) -> Any:
    value, gradient = mlc.value_and_grad(loss)(net, images, labels)
    net, state = optimizer.update(gradient, state, net)
    return net, state, value


def test_training_step() -> None:
    program = load(EXAMPLES / "digits.mlc")
    images, labels, net = mlc.spec("B", 64), mlc.spec("B", dtype="int64"), Classifier()
    assert text(program.step) == text(step, net, optimizer.init(net), images, labels)
