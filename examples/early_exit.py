"""A network that stops at the layer where it is sure: an early return in a loop over layers, trained on handwritten
digits and compiled.

    python examples/early_exit.py
"""

import numpy as np
from digits import load

import mlc

SURE = 0.9


def parameters(width=64, depth=4, seed=0):
    numbers = np.random.default_rng(seed)

    def normal(*shape):
        return (numbers.standard_normal(shape) * np.sqrt(2 / shape[-2])).astype(np.float32)
    return {"first": normal(64, width), "layers": normal(depth, width, width), "heads": 0.1 * normal(depth, width, 10)}


def every_exit(p, x):
    """The scores at all exits, [depth, 10], for one image x of 64 pixels."""
    h = mlc.relu(x @ p["first"])

    def layer(h, weights):
        w, head = weights
        h = h + mlc.relu(h @ w)
        return h, h @ head
    return mlc.scan(layer, h, (p["layers"], p["heads"]))[1]


def classify(p, x):
    """(digit, layers used): goes on only while the most likely digit has a probability below SURE."""
    h = mlc.relu(x @ p["first"])
    depth, probabilities = 0, mlc.full((10,), 0.1)
    for w, head in zip(p["layers"], p["heads"]):
        h = h + mlc.relu(h @ w)
        probabilities = mlc.softmax(h @ head, dim=0)
        depth += 1
        if probabilities.max() > SURE:
            return probabilities.argmax(), depth
    return probabilities.argmax(), depth


def loss(p, images, labels):
    scores = mlc.vmap(every_exit, in_dims=(None, 0))(p, images)
    exits = scores.shape[1]
    wide = mlc.broadcast_to(labels[:, None], (labels.shape[0], exits)).reshape(-1)
    return mlc.nn.functional.cross_entropy(scores.reshape(-1, 10), wide)


def main(epochs=8):
    images, labels, unseen, wanted = load()
    optimizer = mlc.optim.Adam(lr=1e-3)

    @mlc.compile
    def step(p, state, images, labels):
        value, gradient = mlc.value_and_grad(loss)(p, images, labels)
        return *optimizer.update(gradient, state, p), value

    p = parameters()
    state = optimizer.init(p)
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(images))
        for at in range(0, len(order) - 63, 64):
            p, state, value = step(p, state, images[order[at: at + 64]], labels[order[at: at + 64]])
        print(f"epoch {epoch}   loss {float(value):.4f}")
    one = mlc.compile(classify)
    found = [one(p, x) for x in unseen]
    right = np.mean([int(digit) == label for (digit, _), label in zip(found, wanted)])
    used = np.mean([int(depth) for _, depth in found])
    print(f"right: {100 * right:.1f} %, with {used:.2f} of 4 layers on average")
    return right, used


if __name__ == "__main__":
    main()
