"""A model of twelve equal layers, in which one fault at a time is planted."""

import mlc
from mlc import nn


class Layer(nn.Module):
    def __init__(self, width):
        self.scale = nn.Parameter(mlc.ones(width))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        h = x * mlc.sqrt(self.scale)
        return x + self.narrow(nn.functional.gelu(self.wide(h)))


class Model(nn.Module):
    def __init__(self, width=32, depth=12):
        self.layers = nn.ModuleList([Layer(width) for _ in range(depth)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def loss(model, x, y):
    return nn.functional.cross_entropy(model(x), y)
