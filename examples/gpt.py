"""Train a small GPT to write like Shakespeare, one character after the other, and let it write.

    python examples/gpt.py                                  # a minute or so of training, then a text
    python examples/gpt.py --steps 2000 --width 192 --layers 6

A training step (forward pass, backward pass, clipping, AdamW with its learning rate) is one compiled function, and so
is the choice of the next character, random numbers included.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from mlc import nn

Array = np.ndarray[Any, Any]
F = nn.functional
DATA = Path(__file__).parent / "data" / "shakespeare.txt.gz"


@dataclass(frozen=True)
class Sizes:
    """vocabulary: different characters; context: characters the model sees at once."""

    vocabulary: int
    context: int = 64
    layers: int = 3
    heads: int = 4
    width: int = 96
    dropout: float = 0.0


class Attention(nn.Module):
    """Each position looks at those before it and at itself, with several heads."""

    def __init__(self, sizes: Sizes) -> None:
        self.heads = sizes.heads
        self.c_attn = nn.Linear(sizes.width, 3 * sizes.width)
        self.c_proj = nn.Linear(sizes.width, sizes.width)

    def forward(self, x: mlc.Tensor) -> mlc.Tensor:
        batch, length, width = x.shape
        q, k, v = (part.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.c_attn(x).chunk(3, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out: mlc.Tensor = self.c_proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return out


class Block(nn.Module):
    """Attention and two linear maps, each added to what goes in."""

    def __init__(self, sizes: Sizes) -> None:
        self.ln_1 = nn.LayerNorm(sizes.width)
        self.attn = Attention(sizes)
        self.ln_2 = nn.LayerNorm(sizes.width)
        self.mlp = nn.Sequential({"c_fc": nn.Linear(sizes.width, 4 * sizes.width), "gelu": nn.GELU(),
                                  "c_proj": nn.Linear(4 * sizes.width, sizes.width)})
        self.drop = nn.Dropout(sizes.dropout)

    def forward(self, x: mlc.Tensor) -> mlc.Tensor:
        x = x + self.drop(self.attn(self.ln_1(x)))
        out: mlc.Tensor = x + self.drop(self.mlp(self.ln_2(x)))
        return out


class GPT(nn.Module):
    """Characters [batch, length] to scores of the character after each."""

    def __init__(self, sizes: Sizes) -> None:
        self.context = sizes.context
        self.wte = nn.Embedding(sizes.vocabulary, sizes.width)
        self.wpe = nn.Embedding(sizes.context, sizes.width)
        self.h = nn.ModuleList([Block(sizes) for _ in range(sizes.layers)])
        self.ln_f = nn.LayerNorm(sizes.width)
        self.lm_head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        self.apply(_initialise)

    def forward(self, characters: mlc.Tensor) -> mlc.Tensor:
        x = self.wte(characters) + self.wpe(mlc.arange(characters.shape[1]))
        for block in self.h:
            x = block(x)
        scores: mlc.Tensor = self.lm_head(self.ln_f(x))
        return scores


def _initialise(module: nn.Module) -> None:
    """Weights from a normal distribution of deviation 0.02, biases 0, as in GPT-2."""
    if isinstance(module, nn.Linear | nn.Embedding):
        module.weight = nn.init.normal(module.weight.shape, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        module.bias = mlc.zeros(module.bias.shape)


def loss(model: GPT, x: mlc.Tensor, y: mlc.Tensor) -> mlc.Tensor:
    scores: mlc.Tensor = model(x)
    return F.cross_entropy(scores.flatten(0, 1), y.flatten())


def make_optimizer(steps: int, lr: float) -> mlc.optim.AdamW:
    """AdamW for so many steps: warming up, then along a cosine; no weight decay on biases and norms."""
    rate = mlc.optim.schedules.warmup(mlc.optim.schedules.cosine(lr, steps, lr / 10), max(1, steps // 20))
    return mlc.optim.AdamW(lr=rate, betas=(0.9, 0.99), weight_decay=0.1, groups=[(_plain, {"weight_decay": 0.0})])


def _plain(name: str) -> bool:
    return name.endswith("bias") or ".ln_" in f".{name}"


def make_step(optimizer: mlc.optim.Optimizer) -> Any:
    """A training step, compiled: (model, state, x, y) to (model, state, loss)."""
    def step(model: GPT, state: Any, x: mlc.Tensor, y: mlc.Tensor) -> Any:
        value, gradients = mlc.value_and_grad(loss)(model, x, y)
        gradients, _ = mlc.optim.clip_by_global_norm(gradients, 1.0)
        model, state = optimizer.update(gradients, state, model)
        return model, state, value

    return mlc.compile(step, donate=("model", "state"))


@mlc.compile
def next_character(model: GPT, characters: mlc.Tensor, last: mlc.Tensor, key: mlc.Tensor,
                   temperature: float) -> Any:
    """(a character to follow position `last` of [context], drawn by the scores, the next key)"""
    keys = mlc.random.split(key)
    scores = model(characters.unsqueeze(0))[0][last] / temperature
    return mlc.random.categorical(keys[1], scores), keys[0]


# -- text -------------------------------------------------------------------------------------------------------------
class Text:
    """A text as numbers: those of its characters, in the order of Unicode."""

    def __init__(self, text: str) -> None:
        self.alphabet = sorted(set(text))
        self.number = {c: i for i, c in enumerate(self.alphabet)}
        self.all = self.encode(text)
        self.training, self.test = np.split(self.all, [len(self.all) * 9 // 10])

    def encode(self, text: str) -> Array:
        return np.array([self.number[c] for c in text], np.int64)

    def decode(self, numbers: Array) -> str:
        return "".join(self.alphabet[i] for i in numbers)


def load() -> Text:
    with gzip.open(DATA, "rt", encoding="ascii") as file:
        return Text(file.read())


def batch(rng: np.random.Generator, text: Array, size: int, context: int) -> tuple[Array, Array]:
    """`size` pieces of a text, and the same one character on."""
    starts = rng.integers(0, len(text) - context, size)[:, None] + np.arange(context)
    return text[starts], text[starts + 1]


def write(model: GPT, text: Text, start: str, count: int, seed: int, temperature: float = 0.8) -> str:
    """`start`, and `count` characters that the model adds."""
    numbers, key = list(text.encode(start)), mlc.random.key(seed)
    model.eval()
    for _ in range(count):
        seen = numbers[-model.context:]
        window = np.zeros(model.context, np.int64)
        window[: len(seen)] = seen                         # what is behind is not looked at
        chosen, key = next_character(model, window, np.int64(len(seen) - 1), key, temperature)
        numbers.append(chosen.item())
    model.train()
    return text.decode(np.array(numbers))


def train(text: Text, sizes: Sizes, steps: int, size: int, lr: float, seed: int, show: Any = None) -> tuple[GPT, float]:
    """(the trained model, its loss on text that it has not seen)"""
    rng = np.random.default_rng(seed)
    mlc.manual_seed(seed)
    model = GPT(sizes)
    optimizer = make_optimizer(steps, lr)
    state, step = optimizer.init(model), make_step(optimizer)
    for i in range(steps):
        model, state, value = step(model, state, *batch(rng, text.training, size, sizes.context))
        if show and (i % max(1, steps // 20) == 0 or i == steps - 1):
            show(i, value.item())
    model.eval()
    judge = mlc.compile(loss)
    test = float(np.mean([judge(model, *batch(rng, text.test, size, sizes.context)).item() for _ in range(10)]))
    return model.train(), test


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small GPT on Shakespeare, and let it write.")
    parser.add_argument("--steps", type=int, default=1000, help="training steps (default 1000)")
    parser.add_argument("--batch", type=int, default=16, help="pieces of text in a step (default 16)")
    parser.add_argument("--context", type=int, default=64, help="characters the model sees (default 64)")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--lr", type=float, default=3e-3, help="highest learning rate (default 3e-3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--characters", type=int, default=400, help="how many to write (default 400)")
    parser.add_argument("--save", type=Path, help="where to write the weights: a .safetensors file")
    options = parser.parse_args()
    text = load()
    sizes = Sizes(len(text.alphabet), options.context, options.layers, options.heads, options.width, options.dropout)
    started = time.perf_counter()

    def show(step: int, value: float) -> None:
        print(f"step {step:5}/{options.steps}  loss {value:.3f}  {time.perf_counter() - started:6.1f} s",
              file=sys.stderr, flush=True)

    model, test = train(text, sizes, options.steps, options.batch, options.lr, options.seed, show)
    print(f"{model.num_parameters()} parameters, {options.steps} steps, loss on unseen text {test:.3f}")
    if options.save:
        nn.save_safetensors(options.save, model.state_dict())
    print(write(model, text, "\n", options.characters, options.seed).strip())


if __name__ == "__main__":
    main()
