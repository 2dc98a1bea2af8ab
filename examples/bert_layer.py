"""A layer of BERT: nn.TransformerEncoderLayer with weights from PyTorch, the loss and all gradients compared.

    python examples/bert_layer.py                  # needs torch
    python examples/bert_layer.py --width 768 --heads 12 --length 128
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import mlc
from mlc import nn

Array = np.ndarray[Any, Any]


def make(width: int, heads: int) -> nn.TransformerEncoderLayer:
    """Attention over all positions, then 4 * width features with GELU; norms after the sums, as in BERT."""
    return nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True)


def loss(layer: nn.TransformerEncoderLayer, x: mlc.Tensor, padding: mlc.Tensor, target: mlc.Tensor) -> mlc.Tensor:
    """The mean squared error; `padding` is True where a sequence has ended."""
    return nn.functional.mse_loss(layer(x, None, padding), target)


loss_and_gradients = mlc.compile(mlc.value_and_grad(loss, argnums=(0, 1)))


def inputs(batch: int, length: int, width: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """(x, padding, target): random sequences, of which each but the first ends before the others."""
    rng = np.random.default_rng(seed)
    ends = length - np.minimum(np.arange(batch), length - 1)
    return (rng.normal(size=(batch, length, width)).astype(np.float32), np.arange(length) >= ends[:, None],
            rng.normal(size=(batch, length, width)).astype(np.float32))


def torch_loss_and_gradients(width: int, heads: int, state: dict[str, mlc.Tensor], x: Array, padding: Array,
                             target: Array) -> tuple[float, dict[str, Array], Array]:
    """Reference results of PyTorch for the same layer: (loss, gradients of the parameters by name, gradient of x)."""
    import torch
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
    layer.load_state_dict({name: torch.from_numpy(p.numpy().copy()) for name, p in state.items()})
    given = torch.from_numpy(x).requires_grad_()
    value = torch.nn.functional.mse_loss(layer(given, src_key_padding_mask=torch.from_numpy(padding)),
                                         torch.from_numpy(target))
    value.backward()
    assert given.grad is not None
    return value.item(), {name: p.grad.numpy() for name, p in layer.named_parameters()}, given.grad.numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare a layer of BERT with PyTorch's.")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=32)
    options = parser.parse_args()
    mlc.manual_seed(0)
    layer = make(options.width, options.heads)
    data = inputs(options.batch, options.length, options.width)
    value, (gradients, of_x) = loss_and_gradients(layer, *data)
    expected, wanted, wanted_of_x = torch_loss_and_gradients(options.width, options.heads, layer.state_dict(), *data)
    print(f"loss {value.item():.7f}, in PyTorch {expected:.7f}")
    print("gradient                      largest   largest difference")
    for name, g in [*gradients.named_parameters(), ("x", of_x)]:
        other = wanted_of_x if name == "x" else wanted[name]
        print(f"{name:25} {abs(other).max():11.3e}          {abs(g.numpy() - other).max():11.3e}")


if __name__ == "__main__":
    main()
