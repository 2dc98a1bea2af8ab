"""Train a convolutional network on handwritten digits; mean accuracy over seeds.

    python examples/digits_cnn.py                 # one seed
    python examples/digits_cnn.py --seeds 5       # the mean of five

Two convolutions with batch norm and pooling, then two linear layers with dropout. The running statistics of the norms
and the random keys of the dropout are buffers: the compiled step returns them with the model.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import mlc
from mlc import nn

Array = np.ndarray[Any, Any]
BATCH = 64


def digits() -> ModuleType:
    """examples/digits.py, which knows the data."""
    spec = importlib.util.spec_from_file_location("digits", Path(__file__).parent / "digits.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make() -> nn.Sequential:
    """Images [n, 1, 8, 8] to scores of the ten digits."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10))


def loss(model: nn.Sequential, images: mlc.Tensor, labels: mlc.Tensor) -> mlc.Tensor:
    return nn.functional.cross_entropy(model(images), labels, label_smoothing=0.05)


def make_step(optimizer: mlc.optim.Optimizer) -> Any:
    def step(model: nn.Sequential, state: Any, images: mlc.Tensor, labels: mlc.Tensor) -> Any:
        value, gradients = mlc.value_and_grad(loss)(model, images, labels)
        model, state = optimizer.update(gradients, state, model)
        return model, state, value

    return mlc.compile(step, donate=("model", "state"))


@mlc.compile
def answers(model: nn.Sequential, images: mlc.Tensor) -> mlc.Tensor:
    scores: mlc.Tensor = model(images)
    return scores.argmax(1)


def fit(seed: int, epochs: int, data: tuple[Array, Array, Array, Array]) -> tuple[nn.Sequential, float]:
    """(the trained model, its accuracy on the test images)"""
    images, labels, test_images, test_labels = data
    images, test_images = (x.reshape(-1, 1, 8, 8) for x in (images, test_images))
    rng = np.random.default_rng(seed)
    mlc.manual_seed(seed)
    model = make()
    batches = len(images) // BATCH
    optimizer = mlc.optim.AdamW(mlc.optim.schedules.one_cycle(5e-3, epochs * batches), weight_decay=0.05)
    state, step = optimizer.init(model), make_step(optimizer)
    for epoch in range(1, epochs + 1):
        total = 0.0
        for rows in rng.permutation(len(images))[: batches * BATCH].reshape(batches, BATCH):
            model, state, value = step(model, state, images[rows], labels[rows])
            total += value.item()
        print(f"seed {seed}  epoch {epoch:2}/{epochs}  loss {total / batches:.4f}", file=sys.stderr, flush=True)
    right = answers(model.eval(), test_images).numpy() == test_labels
    return model.train(), float(right.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a convolutional network on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=12, help="passes over the training images (default 12)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to train with (default 1)")
    options = parser.parse_args()
    data = digits().load()
    started = time.perf_counter()
    found = [fit(seed, options.epochs, data)[1] for seed in range(options.seed, options.seed + options.seeds)]
    each = f" ({', '.join(f'{a:.2%}' for a in found)})" if len(found) > 1 else ""
    print(f"{time.perf_counter() - started:.1f} s, test accuracy {np.mean(found):.2%}{each}")


if __name__ == "__main__":
    main()
