"""Public architectures, each written once for PyTorch and mlc, with their inputs and the loss of their training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlc.tools.bench.library import Library
from mlc.tools.bench.networks import convolutional, others, transformers


@dataclass(frozen=True)
class Network:
    """An architecture.

    make   the module, with any weights
    data   arguments of a call for so many samples
    batch  samples of a call that is measured
    loss   of the results, for a training step
    """

    make: Callable[[Library], Any]
    data: Callable[[Library, int], tuple[Any, ...]]
    batch: int
    loss: Callable[[Library, Any], Any]

    def module(self, a: Library) -> Any:
        """The module, with the weights that it has in every library."""
        return a.same(self.make(a))


def _images(side: int) -> Callable[[Library, int], tuple[Any, ...]]:
    return lambda a, batch: (a.floats(batch, 3, side, side),)


def _words(count: int, length: int) -> Callable[[Library, int], tuple[Any, ...]]:
    return lambda a, batch: (a.integers(count, batch, length),)


def _classes(a: Library, out: Any) -> Any:
    """Cross-entropy with the classes 0, 1, 2, ... in turn, over the last dimension."""
    scores = out.reshape(-1, out.shape[-1])
    return a.nn.functional.cross_entropy(scores, a.lib.arange(scores.shape[0], device=scores.device) % scores.shape[1])


def _squares(a: Library, out: Any) -> Any:
    return (out ** 2).mean()


NETWORKS = {
    "resnet50": Network(convolutional.resnet50, _images(224), 1, _classes),
    "mobilenet_v2": Network(convolutional.mobilenet_v2, _images(224), 1, _classes),
    "efficientnet_b0": Network(convolutional.efficientnet_b0, _images(224), 1, _classes),
    "convnext_t": Network(convolutional.convnext_t, _images(224), 1, _classes),
    "unet": Network(convolutional.unet, _images(64), 2, _squares),
    "detector": Network(convolutional.detector, _images(320), 1, _squares),
    "vit_tiny": Network(transformers.vit_tiny, _images(224), 4, _classes),
    "bert_base": Network(transformers.bert_base, _words(30522, 128), 1, _classes),
    "gpt2": Network(transformers.gpt2, _words(50257, 128), 1, _classes),
    "lstm": Network(others.lstm, _words(10000, 64), 16, _classes),
    "recommender": Network(others.recommender, lambda a, batch: (
        a.floats(batch, 13), a.integers(10000, batch, 26)), 128, _squares),
    "diffusion": Network(others.diffusion, lambda a, batch: (a.floats(batch, 3, 32, 32), a.floats(batch) * 1000.0), 1,
                         _squares),
    "mlp": Network(others.mlp, lambda a, batch: (a.floats(batch, 784),), 64, _classes),
}
