"""The pictures of the gallery: each draws what an example computes, in seconds."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlc


def newton(example: Any, figure: Any) -> None:
    """Roots of x^3 + a x = 1, and how they change with a, through the loop's iterations."""
    a = np.linspace(0.5, 4.0, 60)
    left, right = figure.subplots(1, 2)
    left.plot(a, mlc.compile(mlc.vmap(example.root))(a).numpy())
    left.set(xlabel="a", title="x with x³ + a x = 1")
    right.plot(a, mlc.compile(mlc.vmap(example.sensitivity))(a).numpy())
    right.set(xlabel="a", title="dx/da, through the loop")


def ode(example: Any, figure: Any) -> None:
    """The pendulum from several starting speeds, with the solver's own steps."""
    ends, axes = np.linspace(0.0, 12.0, 120), figure.subplots()
    solve = mlc.compile(mlc.vmap(example.solve, in_dims=(None, None, 0)))
    for speed in (0.5, 1.0, 1.5, 1.9, 2.1):
        found = solve(example.pendulum, np.array([0.0, speed]), ends)[0].numpy()
        axes.plot(found[:, 0], found[:, 1], label=f"speed {speed}")
    axes.set(xlabel="angle", ylabel="speed", title="a pendulum from its lowest point")
    axes.legend()


def maml(example: Any, figure: Any) -> None:
    """A sine wave seen at ten points, before and after a few steps from meta-learned weights."""
    optimizer = mlc.optim.Adam(lr=0.005)

    @mlc.compile
    def learn(p: Any, state: Any, seen: Any, unseen: Any, inner: Any) -> Any:
        gradient = mlc.grad(example.meta_loss)(p, seen, unseen, inner)
        return optimizer.update(gradient, state, p)
    p, inner = example.parameters(), np.int64(3)
    state = optimizer.init(p)
    for step in range(300):
        p, state = learn(p, state, *example.tasks(16, 10, step), inner)
    (x, y), _ = example.tasks(1, 10, 9999)
    grid = np.linspace(-3, 3, 100).astype(np.float32)
    axes = figure.subplots()
    for steps in (0, 1, 3):
        found = example.predict(example.adapted(p, x[0], y[0], steps), grid)
        axes.plot(grid, found.numpy(), label=f"after {steps} steps")
    axes.plot(x[0], y[0], "k.", label="seen")
    axes.set_title("adapting to a new task")
    axes.legend()


def beam_search(example: Any, figure: Any) -> None:
    """How the score of the best word changes with each pair of letters."""
    slope = mlc.compile(mlc.grad(example.best_score))(example.counted()).numpy()
    left, right = figure.subplots(1, 2)
    letters = ["␣" if c == " " else c for c in example.LETTERS]
    for axes, shown, title in ((left, np.exp(example.counted()), "P(next | letter)"),
                               (right, slope, "d score / d table")):
        axes.imshow(shown, cmap="Blues")
        axes.set_xticks(range(len(letters)), letters)
        axes.set_yticks(range(len(letters)), letters)
        axes.set_title(title)


def digits(example: Any, figure: Any) -> None:
    """Handwritten digits that the classifier has not seen, with its answers."""
    data = example.load()
    model, _ = example.fit(0, 8, data, lambda epoch, loss, accuracy: None)
    found = example.predict(model, data[2]).numpy()
    for axes, image, answer, label in zip(figure.subplots(3, 8).flat, data[2], found, data[3]):
        axes.imshow(image.reshape(8, 8), cmap="Greys")
        axes.set_title(str(answer), color="green" if answer == label else "red")
        axes.axis("off")


def gpt(example: Any, figure: Any) -> None:
    """The loss of the GPT in its first steps."""
    text, rows = example.load(), list[tuple[int, float]]()
    sizes = example.Sizes(len(text.alphabet), context=32, layers=2, width=64)
    example.train(text, sizes, 200, 16, 3e-3, 0, lambda step, value: rows.append((step, value)))
    axes = figure.subplots()
    axes.plot(*zip(*rows))
    axes.set(xlabel="step", ylabel="loss", title="learning Shakespeare, by characters")
