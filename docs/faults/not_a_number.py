"""The loss is NaN: a scale of layer 7 is negative, and its root is taken."""

from model import Model, loss

import mlc

mlc.manual_seed(0)
model, x, y = Model(), mlc.randn(16, 32), mlc.randint(0, 10, (16,))
with mlc.no_grad():
    model.layers[7].scale[3] = -0.01                       # the fault
    print("loss", mlc.compile(loss)(model, x, y).item())
