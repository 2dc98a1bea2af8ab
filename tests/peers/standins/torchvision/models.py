"""ResNet-18 and VGG-16, with a quarter of their channels, and random weights instead of trained ones."""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch.nn as nn


class BasicBlock(nn.Module):  # type: ignore[misc]
    """Two convolutions with a shortcut."""

    def __init__(self, inplanes: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride > 1:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x: Any) -> Any:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):  # type: ignore[misc]
    """ResNet-18, whose first convolution has as many channels as the published one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1))
        self.layer2 = nn.Sequential(BasicBlock(64, 32, 2), BasicBlock(32, 32, 1))
        self.layer3 = nn.Sequential(BasicBlock(32, 64, 2), BasicBlock(64, 64, 1))
        self.layer4 = nn.Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128, 1))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(128, 1000)

    def forward(self, x: Any) -> Any:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def resnet18(weights: Any = None) -> ResNet:
    """The network, not trained."""
    return ResNet()


class VGG16_Weights(Enum):
    """Trained weights, which there are none of."""

    IMAGENET1K_V1 = None


class VGG(nn.Module):  # type: ignore[misc]
    """The convolutions of VGG-16."""

    def __init__(self) -> None:
        super().__init__()
        layers, before = list[Any](), 3
        for channels, count in ((16, 2), (32, 2), (64, 3), (128, 3), (128, 3)):
            for _ in range(count):
                layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU(inplace=True)]
                before = channels
            layers.append(nn.MaxPool2d(2, 2))
        self.features = nn.Sequential(*layers)


def vgg16(weights: Any = None) -> VGG:
    """The network, not trained."""
    return VGG()
