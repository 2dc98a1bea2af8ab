"""Programs written for PyTorch, run with nothing changed but their imports: the losses of both agree at every step."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("execution")

LINEAR = """
import torch

x = torch.tensor(rng.standard_normal((64, 3)).astype("float32"))
y = x @ torch.tensor([1.0, -2.0, 3.0]) + 0.5
w, b = torch.zeros(3, requires_grad=True), torch.zeros(1, requires_grad=True)
for step in range(30):
    loss = ((x @ w + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
        w.grad, b.grad = None, None
    losses.append(loss.item())
"""

CLASSIFIER = """
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4 * 4 * 4, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return F.log_softmax(self.fc(torch.flatten(x, 1)), dim=1)

model = Net()
for p in model.parameters():
    p.data = torch.tensor((0.3 * rng.standard_normal(tuple(p.shape))).astype("float32"))
images = torch.tensor(rng.standard_normal((32, 1, 8, 8)).astype("float32"))
loader = DataLoader(TensorDataset(images, torch.tensor(rng.integers(0, 5, 32))), batch_size=8)
optimizer = optim.Adam([{"params": model.conv.parameters()}, {"params": model.fc.parameters(), "lr": 3e-3}], lr=1e-3)
for epoch in range(3):
    model.train()
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(batch), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        losses.append(model(images).exp().max(1)[0].mean().item())
"""

RECURRENT = """
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gates = nn.Linear(2 * size, 3 * size)

    def forward(self, x, h):
        z, r, n = self.gates(torch.cat([x, h], dim=1)).chunk(3, dim=1)
        z = torch.sigmoid(z)
        return (1 - z) * torch.tanh(n * torch.sigmoid(r)) + z * h

cell, readout = Cell(6), nn.Linear(6, 1)
parameters = list(cell.parameters()) + list(readout.parameters())
for p in parameters:
    p.data = torch.tensor((0.4 * rng.standard_normal(tuple(p.shape))).astype("float32"))
xs = torch.tensor(rng.standard_normal((7, 4, 6)).astype("float32"))
optimizer = torch.optim.SGD(parameters, lr=0.2, momentum=0.9)
for step in range(5):
    h = torch.zeros(4, 6)
    for x in xs[: 7 - step]:                        # of other lengths, as the program decides
        h = cell(x, h)
    loss = (readout(h).squeeze(1) - xs[0].sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""

ADVERSARIAL = """
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

def network(*sizes):
    layers = []
    for n, m in zip(sizes, sizes[1:]):
        layers += [nn.Linear(n, m), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])

maker, judge = network(3, 8, 2), network(2, 8, 1)
for p in [*maker.parameters(), *judge.parameters()]:
    p.data = torch.tensor((0.5 * rng.standard_normal(tuple(p.shape))).astype("float32"))
of_maker = torch.optim.RMSprop(maker.parameters(), lr=1e-3)
of_judge = torch.optim.AdamW(judge.parameters(), lr=1e-3)
for step in range(4):
    real = torch.tensor(rng.standard_normal((16, 2)).astype("float32"))
    made = maker(torch.tensor(rng.standard_normal((16, 3)).astype("float32")))
    judge.zero_grad()
    mixed = (0.5 * real + 0.5 * made.detach()).requires_grad_(True)
    slope, = torch.autograd.grad(judge(mixed).sum(), mixed, create_graph=True)
    penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
    loss = bce(judge(real), torch.ones(16, 1)) + bce(judge(made.detach()), torch.zeros(16, 1)) + 0.1 * penalty
    loss.backward()
    of_judge.step()
    maker.zero_grad()
    other = bce(judge(made), torch.ones(16, 1))
    other.backward()
    of_maker.step()
    losses += [loss.item(), other.item()]
"""


def run(program: str) -> list[float]:
    names: dict[str, Any] = {"rng": np.random.default_rng(0), "losses": []}
    exec(compile(program, "program.py", "exec"), names)  # noqa: S102
    return names["losses"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("program", [LINEAR, CLASSIFIER, RECURRENT, ADVERSARIAL],
                         ids=["linear", "classifier", "recurrent", "adversarial"])
def test_losses_are_those_of_pytorch(program: str) -> None:
    ours = re.sub(r"(?m)^import torch$", "import mlc as torch", re.sub(r"(import|from) torch\.", r"\1 mlc.", program))
    ours = re.sub(r"(?m)^from torch import", "from mlc import", ours)
    np.testing.assert_allclose(run(ours), run(program), rtol=2e-4, atol=1e-5)
