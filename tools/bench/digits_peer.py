"""The digits classifier in PyTorch beside ours: accuracy over seeds 0-4, and the time of a training step.

Run `python -m mlc.tools.bench.digits_peer [--epochs 60] [--seeds 5]` in a checkout; it needs torch. Both train the
model of examples/digits.py on the same batches with the same optimiser; each framework draws its own initial weights.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits.py"


def example() -> ModuleType:
    """examples/digits.py as a module."""
    spec = importlib.util.spec_from_file_location("digits", EXAMPLE)
    if spec is None or spec.loader is None or not EXAMPLE.exists():
        raise SystemExit(f"{EXAMPLE} is not there: run this in a checkout")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def torch_accuracy(seed: int, epochs: int, data: Any, batch: int) -> tuple[float, float]:
    """(test accuracy, seconds per step)"""
    import torch
    from torch import nn
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    images, labels, test_images, test_labels = (torch.from_numpy(a) for a in data)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
    rng = np.random.default_rng(seed)
    steps, seconds = 0, 0.0
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for rows in order[: len(images) // batch * batch].reshape(-1, batch):
            x, y = images[rows], labels[rows]
            start = time.perf_counter()
            optimizer.zero_grad()
            value = nn.functional.cross_entropy(model(x), y)
            value.backward()
            optimizer.step()
            value.item()
            seconds, steps = seconds + time.perf_counter() - start, steps + 1
    with torch.no_grad():
        right = (model(test_images).argmax(1) == test_labels).float().mean().item()
    return right, seconds / steps


def our_accuracy(seed: int, epochs: int, data: Any, digits: ModuleType) -> tuple[float, float]:
    """(test accuracy, seconds per step, the first of all, which compiles, apart)"""
    digits.fit(seed, 1, data, lambda *_: None)
    last: list[float] = []
    model, _ = digits.fit(seed, epochs, data, lambda epoch, loss, accuracy: last.append(accuracy))
    images, labels = data[0][:64], data[1][:64]
    state = digits.optimizer.init(model)
    model, state, value = digits.train(model, state, images, labels)
    start = time.perf_counter()
    for _ in range(500):
        model, state, value = digits.train(model, state, images, labels)
        value.item()
    return last[-1], (time.perf_counter() - start) / 500


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.bench.digits_peer", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    digits = example()
    data = digits.load()
    rows = [(seed, our_accuracy(seed, options.epochs, data, digits),
             torch_accuracy(seed, options.epochs, data, digits.BATCH)) for seed in range(options.seeds)]
    print("seed      mlc    torch   mlc us/step   torch us/step")
    for seed, (right, seconds), (torch_right, torch_seconds) in rows:
        print(f"{seed:4}  {right:7.2%}  {torch_right:7.2%}  {seconds * 1e6:12.0f}  {torch_seconds * 1e6:14.0f}")
    ours, theirs = float(np.mean([r[1][0] for r in rows])), float(np.mean([r[2][0] for r in rows]))
    print(f"mean  {ours:7.2%}  {theirs:7.2%}   difference {(ours - theirs) * 100:+.2f} points")
    return 0


if __name__ == "__main__":
    sys.exit(main())
