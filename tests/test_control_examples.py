"""The examples with Python's loops and conditions: compiled they do what plain Python does, derivatives included."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc

pytestmark = pytest.mark.usefixtures("execution")

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def along(f: Callable[[Any], Any], x: Any, direction: Any, step: float = 1e-6) -> float:
    return float(f(x + step * direction) - f(x - step * direction)) / (2 * step)


def test_newton(example: Any) -> None:
    newton = example("newton")
    a = np.linspace(0.5, 4.0, 5)
    roots = mlc.compile(mlc.vmap(newton.root))(a).numpy()
    np.testing.assert_array_equal(roots, [float(newton.root(mlc.tensor(v))) for v in a])
    np.testing.assert_allclose(roots**3 + a * roots, 1.0, rtol=1e-12)
    slopes = mlc.compile(mlc.vmap(newton.sensitivity))(a).numpy()
    np.testing.assert_allclose(slopes, -roots / (3 * roots**2 + a), rtol=1e-9)


@pytest.mark.slow
def test_ode(example: Any) -> None:
    ode = example("ode")

    def plain(state: Any, end: float) -> tuple[Any, int]:
        """The same solver in numpy."""
        def f(s: Any) -> Any:
            return np.array([s[1], -np.sin(s[0])])
        time, step, tried, slope = 0.0, 0.1, 0, f(state)
        while time < end:
            step = min(step, end - time)
            second = f(state + step * slope / 2)
            third = f(state + step * 3 * second / 4)
            after = state + step * (2 * slope + 3 * second + 4 * third) / 9
            last = f(after)
            error = np.abs(step * (-5 * slope + 6 * second + 8 * third - 9 * last) / 72).max()
            if error <= 1e-6:
                time, state, slope = time + step, after, last
            step = step * np.clip(0.9 * (1e-6 / (error + 1e-300)) ** (1 / 3), 0.2, 5.0)
            tried += 1
        return state, tried

    solve = mlc.compile(lambda state, end: ode.solve(ode.pendulum, state, end))
    for start, end in (([0.0, 1.4], 3.0), ([2.0, 0.0], 1.0), ([0.3, 0.1], 0.0)):
        state, tried = solve(np.array(start), end)
        wanted, steps = plain(np.array(start), end)
        np.testing.assert_allclose(state.numpy(), wanted, rtol=1e-9)
        assert int(tried) == steps
    slope = mlc.compile(mlc.grad(ode.angle_at))(np.array(1.4), 3.0)
    linear = along(lambda v: solve_exactly(v, 3.0), 1.4, 1.0, 1e-4)
    np.testing.assert_allclose(float(slope), linear, rtol=1e-4)


def solve_exactly(speed: float, end: float, steps: int = 1000) -> float:
    """The pendulum's angle, by so many steps of the classical Runge-Kutta method."""
    state, h = np.array([0.0, speed]), end / steps

    def f(s: Any) -> Any:
        return np.array([s[1], -np.sin(s[0])])
    for _ in range(steps):
        k1 = f(state)
        k2 = f(state + h / 2 * k1)
        k3 = f(state + h / 2 * k2)
        k4 = f(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return float(state[0])


@pytest.mark.slow
def test_beam_search(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    beam = example("beam_search")
    table = beam.counted()
    words, scores = mlc.compile(beam.search)(table)
    eager_words, eager_scores = beam.search(mlc.tensor(table))
    np.testing.assert_array_equal(words.numpy(), eager_words.numpy())
    np.testing.assert_array_equal(scores.numpy(), eager_scores.numpy())

    beams: list[Any] = [([], beam.END, False, 0.0)]                   # the same in plain Python
    while not all(done for _, _, done, _ in beams):
        grown = [(word, last, True, s) for word, last, done, s in beams if done]
        grown += [([*word, n], n, n == beam.END, s + table[last, n]) for word, last, done, s in beams if not done
                  for n in range(len(beam.LETTERS))]
        beams = sorted(grown, key=lambda b: -b[3])[:4]
    found, used = beam.main()
    assert found == ["".join(beam.LETTERS[i] for i in word[:-1]) for word, *_ in beams]
    best = " " + found[0] + " "
    assert sorted(used) == sorted({best[i: i + 2] for i in range(len(best) - 1)})


def test_rnn_over_sequences_of_different_lengths(example: Any) -> None:
    rnn = example("rnn_lengths")
    p = rnn.parameters()
    sequences, lengths, labels = rnn.data(6, 7, 0)
    batched = mlc.compile(mlc.vmap(rnn.score, in_dims=(None, 0, 0)))(p, sequences, lengths).numpy()

    def plain(sequence: Any, length: int) -> Any:
        h = np.zeros(rnn.HIDDEN)
        for x in sequence[:length]:
            h = np.tanh(x * p["w"][0] + h @ p["u"] + p["b"])
        return (h @ p["out"])[0]

    np.testing.assert_allclose(batched, [plain(s, n) for s, n in zip(sequences, lengths)], rtol=1e-5, atol=1e-6)
    whole = mlc.compile(mlc.grad(rnn.loss))(p, sequences, lengths, labels)
    one = mlc.compile(mlc.grad(lambda p, s, n, y: mlc.nn.functional.binary_cross_entropy_with_logits(
        rnn.score(p, s, n), y)))
    alone = [one(p, s, n, y) for s, n, y in zip(sequences, lengths, labels)]
    for name in p:
        np.testing.assert_allclose(whole[name].numpy(), np.mean([g[name].numpy() for g in alone], 0), rtol=1e-4,
                                   atol=1e-6)


@pytest.mark.slow
def test_early_exit(example: Any) -> None:
    network = example("early_exit")
    p = {name: 2 * v.astype(np.float64) for name, v in network.parameters().items()}
    one = mlc.compile(network.classify)
    depths = set()
    for x in np.random.default_rng(0).standard_normal((12, 64)):
        digit, depth = one(p, x)
        want, used = network.classify({k: mlc.tensor(v) for k, v in p.items()}, mlc.tensor(x))
        assert (int(digit), int(depth)) == (int(want), used)
        depths.add(used)
    assert len(depths) > 1                                 # some stop early and some do not

    def surest(p: Any, x: Any) -> Any:
        h = mlc.relu(x @ p["first"])
        best = mlc.zeros((), dtype=mlc.float64)
        for w, head in zip(p["layers"], p["heads"]):
            h = h + mlc.relu(h @ w)
            best = mlc.softmax(h @ head, dim=0).max()
            if best > network.SURE:
                return best
        return best

    x = np.random.default_rng(1).standard_normal(64)
    slope = mlc.compile(mlc.grad(surest, argnums=1))(p, x).numpy()
    direction = np.random.default_rng(2).standard_normal(64)
    value = mlc.compile(surest)
    np.testing.assert_allclose(slope @ direction, along(lambda x: value(p, x), x, direction), rtol=1e-5, atol=1e-8)


@pytest.mark.slow
def test_maml(example: Any) -> None:
    """The gradient through the gradient steps, in a direction, against differences."""
    maml = example("maml")
    p = [{n: v.astype(np.float64) for n, v in layer.items()} for layer in maml.parameters(width=5)]
    seen, unseen = [tuple(v.astype(np.float64) for v in pair) for pair in maml.tasks(3, 4, 0)]
    numbers = np.random.default_rng(0)
    way = [{n: numbers.standard_normal(v.shape) for n, v in layer.items()} for layer in p]
    value = mlc.compile(maml.meta_loss)

    def moved(t: float) -> float:
        return float(value([{n: v + t * d[n] for n, v in layer.items()} for layer, d in zip(p, way)], seen, unseen,
                           np.int64(2)))

    gradient = mlc.compile(mlc.grad(maml.meta_loss))(p, seen, unseen, np.int64(2))
    slope = sum((g[n].numpy() * d[n]).sum() for g, d in zip(gradient, way) for n in d)
    np.testing.assert_allclose(slope, (moved(1e-6) - moved(-1e-6)) / 2e-6, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnn_lengths", "early_exit", "maml"])
def test_they_learn(example: Any, name: str) -> None:
    first, second = ([*np.atleast_1d(example(name).main()), 0.0])[:2]
    if name == "maml":
        assert second < 0.25 * first
    else:
        assert first > 0.94
