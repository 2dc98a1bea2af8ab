"""ResNet-18 with the parameter names of torchvision: its saved weights load by name.

    python examples/resnet18.py                                    # times a forward pass and a training step
    python examples/resnet18.py --weights resnet18.safetensors     # the five likeliest classes of a random image

(He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", 2015.)
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from mlc import nn


class BasicBlock(nn.Module):
    """Two convolutions of 3 x 3, added to what goes in; `downsample` makes that fit."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None if stride == 1 and channels == out else nn.Sequential(
            nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: mlc.Tensor) -> mlc.Tensor:
        y = mlc.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return mlc.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """Images [n, 3, h, w] to scores of the classes; `widths` are the channels of the four stages."""

    def __init__(self, num_classes: int = 1000, widths: tuple[int, int, int, int] = (64, 128, 256, 512)) -> None:
        first = widths[0]
        self.conv1 = nn.Conv2d(3, first, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = _stage(first, widths[0], 1)
        self.layer2 = _stage(widths[0], widths[1], 2)
        self.layer3 = _stage(widths[1], widths[2], 2)
        self.layer4 = _stage(widths[2], widths[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(widths[3], num_classes)
        self.apply(_initialise)

    def forward(self, x: mlc.Tensor) -> mlc.Tensor:
        x = self.maxpool(mlc.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        scores: mlc.Tensor = self.fc(self.avgpool(x).flatten(1))
        return scores


def _stage(channels: int, out: int, stride: int) -> nn.Sequential:
    return nn.Sequential(BasicBlock(channels, out, stride), BasicBlock(out, out, 1))


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        module.weight = nn.init.kaiming_normal(module.weight.shape, mode="fan_out", nonlinearity="relu")


def loss(model: ResNet18, images: mlc.Tensor, labels: mlc.Tensor) -> mlc.Tensor:
    return nn.functional.cross_entropy(model(images), labels)


def make_step(optimizer: mlc.optim.Optimizer) -> Any:
    """A training step, compiled; the running statistics of the norms leave it with the model."""
    def step(model: ResNet18, state: Any, images: mlc.Tensor, labels: mlc.Tensor) -> Any:
        value, gradients = mlc.value_and_grad(loss)(model, images, labels)
        model, state = optimizer.update(gradients, state, model)
        return model, state, value

    return mlc.compile(step, donate=("model", "state"))


@mlc.compile
def scores(model: ResNet18, images: mlc.Tensor) -> mlc.Tensor:
    out: mlc.Tensor = model(images)
    return out


def timed(f: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    out = f()
    return time.perf_counter() - start, out


def main() -> None:
    parser = argparse.ArgumentParser(description="ResNet-18 on random images.")
    parser.add_argument("--size", type=int, default=64, help="height and width of an image (default 64)")
    parser.add_argument("--batch", type=int, default=4, help="images at once (default 4)")
    parser.add_argument("--weights", type=Path, help="a .safetensors file with torchvision's names")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    images = rng.normal(size=(options.batch, 3, options.size, options.size)).astype(np.float32)
    mlc.manual_seed(0)
    model = ResNet18()
    print(f"{model.num_parameters()} parameters")
    if options.weights:
        model.load_state_dict(nn.load_safetensors(options.weights))
    model.eval()
    first, _ = timed(lambda: scores(model, images))
    again, out = timed(lambda: scores(model, images))
    print(f"scores: {again * 1e3:.0f} ms, the first time, which compiles, {first:.1f} s")
    if options.weights:
        print("classes of the first image:", *np.argsort(-out.numpy()[0])[:5])
        return
    optimizer = mlc.optim.SGD(0.01, momentum=0.9, weight_decay=1e-4)
    step, labels = make_step(optimizer), rng.integers(0, 1000, options.batch)
    state = optimizer.init(model.train())
    first, (model, state, before) = timed(lambda: step(model, state, images, labels))
    again, (model, state, after) = timed(lambda: step(model, state, images, labels))
    print(f"training step: {again * 1e3:.0f} ms, the first time {first:.1f} s; loss {before.item():.3f}, then "
          f"{after.item():.3f}")


if __name__ == "__main__":
    main()
