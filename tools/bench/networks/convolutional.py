"""Networks of convolutions: ResNet-50, MobileNetV2, EfficientNet-B0, ConvNeXt-T, a U-Net and a detector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.tools.bench.library import Library


def block(a: Library, channels: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1,
          activation: str | None = "ReLU") -> Any:
    """A convolution, the norm of its batch, and an activation."""
    nn = a.nn
    layers = [nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(out)]
    return nn.Sequential(*layers, *([getattr(nn, activation)()] if activation else []))


def resnet50(a: Library) -> Any:
    """He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", 2015; strides in the 3 x 3 convolutions."""
    nn = a.nn

    class Bottleneck(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, channels: int, width: int, stride: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(block(a, channels, width), block(a, width, width, 3, stride),
                                       block(a, width, 4 * width, activation=None))
            self.short = nn.Identity() if stride == 1 and channels == 4 * width else \
                block(a, channels, 4 * width, 1, stride, activation=None)

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.inner(x) + self.short(x))

    layers, channels = [block(a, 3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(channels, width, stride if i == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def inverted(a: Library, channels: int, out: int, kernel: int, stride: int, growth: int, activation: str,
             squeezes: bool) -> Any:
    """The inverted residual of MobileNetV2 and EfficientNet: wide and depthwise inside, narrow outside."""
    nn = a.nn
    wide = channels * growth

    class Squeeze(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            narrow = max(1, channels // 4)
            self.factors = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, narrow, 1), nn.SiLU(),
                                         nn.Conv2d(narrow, wide, 1), nn.Sigmoid())

        def forward(self, x: Any) -> Any:
            return x * self.factors(x)

    class Inverted(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                *([block(a, channels, wide, activation=activation)] if growth > 1 else []),
                block(a, wide, wide, kernel, stride, wide, activation), *([Squeeze()] if squeezes else []),
                block(a, wide, out, activation=None))

        def forward(self, x: Any) -> Any:
            return x + self.inner(x) if stride == 1 and channels == out else self.inner(x)

    return Inverted()


def _mobile(a: Library, first: int, last: int, stages: Sequence[tuple[int, int, int, int, int]], activation: str,
            squeezes: bool) -> Any:
    nn = a.nn
    layers, channels = [block(a, 3, first, 3, 2, activation=activation)], first
    for growth, out, count, stride, kernel in stages:
        for i in range(count):
            layers.append(inverted(a, channels, out, kernel, stride if i == 0 else 1, growth, activation, squeezes))
            channels = out
    return nn.Sequential(*layers, block(a, channels, last, activation=activation), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(last, 1000))


def mobilenet_v2(a: Library) -> Any:
    """Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018."""
    stages = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3),
              (6, 160, 3, 2, 3), (6, 320, 1, 1, 3))
    return _mobile(a, 32, 1280, stages, "ReLU6", False)


def efficientnet_b0(a: Library) -> Any:
    """Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", 2019."""
    stages = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
              (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))
    return _mobile(a, 32, 1280, stages, "SiLU", True)


def convnext_t(a: Library) -> Any:
    """Liu et al., "A ConvNet for the 2020s", 2022."""
    nn = a.nn

    class ChannelNorm(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(channels, eps=1e-6)

        def forward(self, x: Any) -> Any:
            return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    class Block(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.mixing = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
            self.inner = nn.Sequential(nn.LayerNorm(channels, eps=1e-6), nn.Linear(channels, 4 * channels), nn.GELU(),
                                       nn.Linear(4 * channels, channels))

        def forward(self, x: Any) -> Any:
            return x + self.inner(self.mixing(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    layers, channels = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96)], 96
    for width, count in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if width != channels:
            layers += [ChannelNorm(channels), nn.Conv2d(channels, width, 2, 2)]
        layers += [Block(width) for _ in range(count)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(768), nn.Linear(768, 1000))


def unet(a: Library) -> Any:
    """Ronneberger, Fischer, Brox, "U-Net: Convolutional Networks for Biomedical Image Segmentation", 2015; padded, from
    32 channels to 256."""
    nn = a.nn

    def double(channels: int, out: int) -> Any:
        return nn.Sequential(block(a, channels, out, 3), block(a, out, out, 3))

    class UNet(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList([double(3, 32), double(32, 64), double(64, 128), double(128, 256)])
            self.larger = nn.ModuleList([nn.ConvTranspose2d(2 * n, n, 2, 2) for n in (128, 64, 32)])
            self.up = nn.ModuleList([double(2 * n, n) for n in (128, 64, 32)])
            self.out = nn.Conv2d(32, 2, 1)

        def forward(self, x: Any) -> Any:
            shortcuts = []
            for i, down in enumerate(self.down):
                x = down(nn.functional.max_pool2d(x, 2) if i else x)
                shortcuts.append(x)
            for larger, up, short in zip(self.larger, self.up, reversed(shortcuts[:-1])):
                x = up(a.lib.cat([larger(x), short], 1))
            return self.out(x)

    return UNet()


def detector(a: Library) -> Any:
    """A detector of the kind of YOLO: a backbone of partial stages, a pyramid of three sizes, a head for each of them
    (Redmon et al., 2016; Wang et al., "CSPNet", 2020)."""
    nn = a.nn

    class Partial(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, channels: int, out: int, count: int) -> None:
            super().__init__()
            half = out // 2
            self.first, self.second = block(a, channels, half, activation="SiLU"), block(a, channels, half,
                                                                                         activation="SiLU")
            self.inner = nn.ModuleList([nn.Sequential(block(a, half, half, activation="SiLU"),
                                                      block(a, half, half, 3, activation="SiLU"))
                                        for _ in range(count)])
            self.out = block(a, out, out, activation="SiLU")

        def forward(self, x: Any) -> Any:
            y = self.first(x)
            for inner in self.inner:
                y = y + inner(y)
            return self.out(a.lib.cat([y, self.second(x)], 1))

    class Detector(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.stem = block(a, 3, 32, 3, 2, activation="SiLU")
            self.stages = nn.ModuleList([nn.Sequential(block(a, n, 2 * n, 3, 2, activation="SiLU"),
                                                       Partial(2 * n, 2 * n, count))
                                         for n, count in ((32, 1), (64, 2), (128, 3), (256, 1))])
            self.merge = nn.ModuleList([Partial(512 + 256, 256, 1), Partial(256 + 128, 128, 1)])
            self.heads = nn.ModuleList([nn.Conv2d(n, 3 * 85, 1) for n in (128, 256, 512)])

        def forward(self, x: Any) -> Any:
            x, sizes = self.stem(x), []
            for stage in self.stages:
                x = stage(x)
                sizes.append(x)
            third, second, first = sizes[-1], sizes[-2], sizes[-3]
            second = self.merge[0](a.lib.cat([nn.functional.interpolate(third, scale_factor=2.0), second], 1))
            first = self.merge[1](a.lib.cat([nn.functional.interpolate(second, scale_factor=2.0), first], 1))
            return a.lib.cat([head(y).flatten(2) for head, y in zip(self.heads, (first, second, third))], 2)

    return Detector()
