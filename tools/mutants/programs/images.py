"""Frozen convolutions: their weights in panels, images with channels last between them, and what else works on images.
"""

import mlc
from mlc import nn
from mlc.nn import functional as F


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return mlc.relu(self.conv(x)) + x


class Images(nn.Module):
    """Images of 8 x 8 points."""

    def __init__(self):
        super().__init__()
        self.first, self.blocks = nn.Conv2d(3, 16, 5, padding=2, stride=2), nn.Sequential(Block(16), Block(16))
        self.own, self.wide = nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.Conv2d(16, 33, 1)
        self.last = nn.Conv2d(33, 16, 3, padding=1)

    def forward(self, x):
        x = self.blocks(mlc.relu(self.first(x)))
        x = mlc.cat([F.max_pool2d(x, 2), self.own(x)[:, :, ::2, ::2]], 1)[:, 8:24]
        return self.last(mlc.relu(self.wide(x)))


class Long(nn.Module):
    """Sums of several blocks, which begin within windows, and small images."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(16, 40, 1), nn.Conv2d(40, 32, 3)

    def forward(self, x):
        return self.second(self.first(x))


class Tokens(nn.Module):
    """An image as a row of tokens, and weights that are read along either axis."""

    def __init__(self):
        super().__init__()
        self.patches, self.mix = nn.Conv2d(3, 32, 2, stride=2), nn.Linear(32, 32, bias=False)

    def forward(self, x):
        x = self.patches(x)
        tokens = x.flatten(2)
        rows = tokens.transpose(1, 2)
        return tokens, rows @ self.mix.weight, self.mix(rows + 1), x.unflatten(1, (4, 8)).sum(1)


if __name__ == "__main__":
    mlc.manual_seed(0)
    with mlc.no_grad():
        mlc.compile(Images().eval(), freeze=True)(mlc.randn(1, 3, 16, 16))
        mlc.compile(Long().eval(), freeze=True)(mlc.randn(1, 16, 4, 7))
        mlc.compile(Tokens().eval(), freeze=True)(mlc.randn(1, 3, 8, 8))
        parts = nn.Conv2d(3, 24, 1), nn.Conv2d(3, 40, 1), nn.Conv2d(64, 20, 1)     # 24: the middle of a vector
        mlc.compile(lambda x: parts[2](mlc.cat([parts[0](x), parts[1](x)], 1)).amax((2, 3)) - 9, freeze=True)(
            mlc.randn(1, 3, 5, 5))
        mlc.compile(lambda x: (x.permute(0, 3, 1, 2) - 9).amax((2, 3)))(mlc.randn(1, 5, 5, 40))      # all negative
