"""Each step takes seconds: the learning rate is a number of Python, and another one each time."""

from model import Model, loss

import mlc


class Settings:
    rate = 0.1


@mlc.compile
def step(model, x, y):
    value, gradient = mlc.value_and_grad(loss)(model, x, y)
    return mlc.tree.map(lambda p, g: p - Settings.rate * g, model, gradient), value


mlc.manual_seed(0)
model, x, y = Model(8, 1), mlc.randn(4, 8), mlc.randint(0, 10, (4,))
for _ in range(3):
    model, value = step(model, x, y)
    Settings.rate *= 0.9                                   # the fault
