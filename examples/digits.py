"""Train a classifier of handwritten digits, and let the compiled predictor answer the test set.

    python examples/digits.py                     # one seed, with a learning curve in digits.png
    python examples/digits.py --seeds 5 --quiet   # mean accuracy of five seeds

A training step (forward pass, backward pass, AdamW) is one compiled function. It takes the memory of the model and of
the optimiser's state over (`donate`), so a step allocates nothing that lasts.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from mlc import nn

Array = np.ndarray[Any, Any]
DATA = Path(__file__).parent / "data" / "digits.csv.gz"
BATCH = 64
Report = Callable[[int, float, float], None]
"""Callback after every epoch: its number, mean loss, accuracy on the test set."""


class Classifier(nn.Module):
    """64 pixels -> 128 -> 64 -> 10 scores"""

    def __init__(self) -> None:
        self.hidden = nn.Linear(64, 128)
        self.narrow = nn.Linear(128, 64)
        self.scores = nn.Linear(64, 10)

    def forward(self, images: mlc.Tensor) -> mlc.Tensor:
        x = mlc.relu(self.hidden(images))
        x = mlc.relu(self.narrow(x))
        scores: mlc.Tensor = self.scores(x)
        return scores


optimizer = mlc.optim.AdamW(lr=2e-3, weight_decay=0.1)


def loss(model: Classifier, images: mlc.Tensor, labels: mlc.Tensor) -> mlc.Tensor:
    return nn.functional.cross_entropy(model(images), labels)


def training_step(model: Classifier, state: Any, images: mlc.Tensor, labels: mlc.Tensor) -> Any:
    value, gradients = mlc.value_and_grad(loss)(model, images, labels)
    model, state = optimizer.update(gradients, state, model)
    return model, state, value


def answers(model: Classifier, images: mlc.Tensor) -> mlc.Tensor:
    scores: mlc.Tensor = model(images)
    return scores.argmax(1)


train = mlc.compile(training_step, donate=("model", "state"))
predict = mlc.compile(answers)


def load() -> tuple[Array, Array, Array, Array]:
    """(training images, their labels, test images, their labels); every fourth image is a test image."""
    with gzip.open(DATA, "rt", encoding="ascii") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.int64)
    images, labels = (rows[:, :-1] / 16).astype(np.float32), rows[:, -1]
    test = np.arange(len(rows)) % 4 == 0
    return images[~test], labels[~test], images[test], labels[test]


def fit(seed: int, epochs: int, data: tuple[Array, Array, Array, Array], report: Report) -> tuple[Classifier, int]:
    """(the trained model, the number of steps)"""
    images, labels, test_images, test_labels = data
    rng = np.random.default_rng(seed)
    mlc.manual_seed(seed)
    model = Classifier()
    state = optimizer.init(model)
    batches = len(images) // BATCH
    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(images))
        total = 0.0
        for batch in order[: batches * BATCH].reshape(batches, BATCH):
            model, state, value = train(model, state, images[batch], labels[batch])
            total += value.item()
        right = predict(model, test_images).numpy() == test_labels
        report(epoch, total / batches, float(right.mean()))
    return model, epochs * batches


# -- what one sees ----------------------------------------------------------------------------------------------------
@contextmanager
def display(epochs: int, seed: int, quiet: bool) -> Iterator[Report]:
    """Progress on standard error: a bar where that is a terminal and rich is installed, else a line now and then."""
    if quiet:
        yield lambda epoch, loss, accuracy: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        fancy = False
    else:
        fancy = sys.stderr.isatty()
    if not fancy:
        every = max(1, epochs // 10)

        def line(epoch: int, loss: float, accuracy: float) -> None:
            if epoch % every == 0 or epoch in (1, epochs):
                print(f"seed {seed}  epoch {epoch:3}/{epochs}  loss {loss:.4f}  test accuracy {accuracy:.2%}",
                      file=sys.stderr, flush=True)
        yield line
        return
    columns = (TextColumn("seed {task.fields[seed]}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TextColumn("loss {task.fields[loss]:.4f}  test accuracy {task.fields[accuracy]:.2%}"))
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=epochs, seed=seed, loss=float("nan"), accuracy=0.0)
        yield lambda epoch, loss, accuracy: progress.update(task, completed=epoch, loss=loss, accuracy=accuracy)


def draw(curves: dict[int, list[tuple[int, float, float]]], file: Path) -> str:
    """Write the learning curves as a picture; what to tell about it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "no learning curve: it needs matplotlib (pip install matplotlib)"
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for seed, rows in curves.items():
        epochs, losses, accuracies = zip(*rows)
        left.plot(epochs, losses, label=f"seed {seed}")
        right.plot(epochs, accuracies, label=f"seed {seed}")
    left.set(title="training loss", xlabel="epoch", yscale="log")
    right.set(title="test accuracy", xlabel="epoch", ylim=(0.8, 1.0))
    right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(file, dpi=120)
    return f"learning curve: {file}"


def show_answers(found: Array, labels: Array) -> None:
    """The answers in test-set order, and those that are wrong."""
    print(f"answers to the {len(labels)} test images:")
    for start in range(0, len(found), 75):
        print("  " + "".join(map(str, found[start: start + 75])))
    wrong = np.flatnonzero(found != labels)
    listed = ", ".join(f"image {4 * i} is a {labels[i]}, not a {found[i]}" for i in wrong)
    print(f"wrong: {listed or 'none'}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a classifier of handwritten digits.")
    parser.add_argument("--epochs", type=int, default=60, help="passes over the training images (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to train with (default 1)")
    parser.add_argument("--out", type=Path, default=Path("digits.png"), help="the picture (default digits.png)")
    parser.add_argument("--quiet", action="store_true", help="no progress and no answers: only the result")
    options = parser.parse_args()
    if options.epochs < 1 or options.seeds < 1:
        parser.error("--epochs and --seeds are at least 1")
    return options


def main() -> None:
    options = arguments()
    data = load()
    curves: dict[int, list[tuple[int, float, float]]] = {}
    started, entries, steps = time.perf_counter(), mlc.native_entries(), 0
    for seed in range(options.seed, options.seed + options.seeds):
        rows = curves[seed] = []
        with display(options.epochs, seed, options.quiet) as show:
            def report(epoch: int, loss: float, accuracy: float, rows: Any = rows, show: Report = show) -> None:
                rows.append((epoch, loss, accuracy))
                show(epoch, loss, accuracy)
            model, count = fit(seed, options.epochs, data, report)
        steps += count
    seconds = time.perf_counter() - started
    in_steps = mlc.native_entries() - entries - options.seeds * options.epochs      # the predictor's calls apart
    found = predict(model, data[2]).numpy()
    if not options.quiet:
        show_answers(found, data[3])
    print(f"{steps} steps in {seconds:.1f} s, {in_steps / steps:.2f} native entries per step")
    if not options.quiet:
        print(draw(curves, options.out))
    accuracies = [rows[-1][2] for rows in curves.values()]
    each = f" ({', '.join(f'{a:.2%}' for a in accuracies)})" if len(accuracies) > 1 else ""
    print(f"test accuracy {np.mean(accuracies):.2%}{each}")


if __name__ == "__main__":
    main()
