"""An RNN over sequences of different lengths: each lane of a batch runs as long as its own sequence, without padding's
share of the work in the result, and learns to say whether a sequence holds more ones than zeros.

    python examples/rnn_lengths.py
"""

import numpy as np

import mlc

HIDDEN = 16


def parameters(seed=0):
    numbers = np.random.default_rng(seed)

    def normal(*shape):
        return (numbers.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
    return {"w": normal(1, HIDDEN), "u": normal(HIDDEN, HIDDEN), "b": np.zeros(HIDDEN, np.float32),
            "out": normal(HIDDEN, 1)}


def score(p, sequence, length):
    """The log-odds after `length` steps along `sequence`, which is [longest]."""
    h = mlc.zeros((HIDDEN,))
    t = 0
    while t < length:
        h = mlc.tanh(sequence[t] * p["w"][0] + h @ p["u"] + p["b"])
        t += 1
    return (h @ p["out"])[0]


def loss(p, sequences, lengths, labels):
    scores = mlc.vmap(score, in_dims=(None, 0, 0))(p, sequences, lengths)
    return mlc.nn.functional.binary_cross_entropy_with_logits(scores, labels)


def data(count, longest, seed):
    numbers = np.random.default_rng(seed)
    lengths = numbers.integers(1, longest + 1, count)
    bits = numbers.integers(0, 2, (count, longest)).astype(np.float32)
    inside = np.arange(longest) < lengths[:, None]
    labels = ((2 * bits - 1) * inside).sum(1) > 0
    return (2 * bits - 1), lengths, labels.astype(np.float32)


def main(steps=150, longest=15):
    optimizer = mlc.optim.Adam(lr=0.01)

    @mlc.compile
    def step(p, state, sequences, lengths, labels):
        value, gradient = mlc.value_and_grad(loss)(p, sequences, lengths, labels)
        p, state = optimizer.update(gradient, state, p)
        return p, state, value

    p = parameters()
    state = optimizer.init(p)
    for n in range(steps):
        p, state, value = step(p, state, *data(64, longest, n))
        if n % 50 == 0 or n == steps - 1:
            print(f"step {n:3}   loss {float(value):.4f}")
    sequences, lengths, labels = data(500, longest, 10_000)
    scores = mlc.compile(mlc.vmap(score, in_dims=(None, 0, 0)))(p, sequences, lengths).numpy()
    right = ((scores > 0) == (labels > 0)).mean()
    print(f"right on new sequences: {100 * right:.1f} %")
    return right


if __name__ == "__main__":
    main()
