"""Newton's method for a root, with an ordinary while loop; its derivative by what the equation depends on.

    python examples/newton.py
"""

import numpy as np

import mlc


def root(a, start=1.0, tolerance=1e-12):
    """The x near `start` with x^3 + a x = 1, by Newton's method."""
    x = start
    error = a * x + x * x * x - 1.0
    iterations = 0
    while mlc.abs(error) > tolerance:
        x = x - error / (3.0 * x * x + a)
        error = a * x + x * x * x - 1.0
        iterations += 1
        if iterations >= 50:
            break
    return x


def sensitivity(a):
    """dx/da of the root, through all iterations of the loop; for a root x it is -x / (3 x^2 + a)."""
    return mlc.grad(root)(a)


def main():
    a = np.linspace(0.5, 4.0, 8)
    roots = mlc.compile(mlc.vmap(root))(a)                 # each lane stops when it is done
    slopes = mlc.compile(mlc.vmap(sensitivity))(a)
    for values in zip(a, roots.numpy(), slopes.numpy()):
        print("a = {:.2f}   x = {:.9f}   dx/da = {:+.9f}".format(*values))
    x = roots.numpy()
    print("largest error of the slope:", np.abs(slopes.numpy() + x / (3 * x * x + a)).max())


if __name__ == "__main__":
    main()
