"""MAML (Finn, Abbeel and Levine, 2017): weights from which a few gradient steps fit a new sine wave.

    python examples/maml.py

The loss is differentiated through the gradient steps of an inner loop: a gradient of gradients, for a batch of tasks.
"""

import numpy as np

import mlc

RATE = 0.02


def parameters(width=40, seed=0):
    numbers = np.random.default_rng(seed)

    def layer(m, n):
        return {"w": (numbers.standard_normal((m, n)) / np.sqrt(m)).astype(np.float32), "b": np.zeros(n, np.float32)}
    return [layer(1, width), layer(width, width), layer(width, 1)]


def predict(p, x):
    h = x[:, None]
    for layer in p[:-1]:
        h = mlc.tanh(h @ layer["w"] + layer["b"])
    return (h @ p[-1]["w"] + p[-1]["b"])[:, 0]


def loss(p, x, y):
    return ((predict(p, x) - y) ** 2).mean()


def adapted(p, x, y, steps):
    """The weights after some steps of gradient descent on one task."""
    for _ in range(steps):
        p = descended(p, mlc.grad(loss)(p, x, y))
    return p


def descended(p, gradient):
    return [{name: layer[name] - RATE * slope[name] for name in layer} for layer, slope in zip(p, gradient)]


def meta_loss(p, seen, unseen, steps):
    def of_task(x, y, new_x, new_y):
        return loss(adapted(p, x, y, steps), new_x, new_y)
    return mlc.vmap(of_task)(*seen, *unseen).mean()


def tasks(count, points, seed):
    """Sine waves of random amplitude and phase, seen at some points and asked for at others."""
    numbers = np.random.default_rng(seed)
    amplitude, phase = numbers.uniform(0.5, 2.0, (count, 1)), numbers.uniform(0, np.pi, (count, 1))
    out = []
    for _ in range(2):
        x = numbers.uniform(-3, 3, (count, points))
        out.append((x.astype(np.float32), (amplitude * np.sin(x + phase)).astype(np.float32)))
    return out


def main(iterations=300):
    inner = np.int64(3)                                    # an argument: one code for any number of steps
    optimizer = mlc.optim.Adam(lr=0.005)

    @mlc.compile
    def learn(p, state, seen, unseen, inner):
        value, gradient = mlc.value_and_grad(meta_loss)(p, seen, unseen, inner)
        return *optimizer.update(gradient, state, p), value

    p = parameters()
    state = optimizer.init(p)
    for step in range(iterations):
        p, state, value = learn(p, state, *tasks(16, 10, step), inner)
        if step % 100 == 0 or step == iterations - 1:
            print(f"step {step:3}   loss after adapting {float(value):.4f}")
    test = mlc.compile(meta_loss)
    before, after = (float(test(p, *tasks(100, 10, 9999), np.int64(n))) for n in (0, int(inner)))
    print(f"new tasks: {before:.3f} before, {after:.3f} after {int(inner)} steps")
    return before, after


if __name__ == "__main__":
    main()
