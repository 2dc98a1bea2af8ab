"""Memory runs out: the distances of all pairs are computed by a tensor of all differences."""

from model import Model

import mlc


def spread(model, x):
    h = model.layers[0](x)
    differences = h[:, None, :] - h[None, :, :]            # the fault: n x n x width
    return mlc.cumsum(differences, dim=2).abs().max() + model(h).mean()


mlc.manual_seed(0)
model, x = Model(), mlc.randn(512, 32)
mlc.compile(spread)(model, x)
