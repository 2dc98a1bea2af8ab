"""The harness that runs public programs tells those that agree from those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers import models, programs

PROGRAM = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

images = datasets.MNIST(".", transform=transforms.ToTensor())
model = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(images, batch_size=32, shuffle=True):
    optimizer.zero_grad()
    (nn.functional.cross_entropy(model(x), y) CHANGE).backward()
    optimizer.step()
"""


def test_only_imports_of_torch_are_changed() -> None:
    same = "import torchvision\ntorch.ones(2)  # torch"
    text = "import torch  # it\nimport torch.nn as nn\n  from torch import optim\nfrom torch.nn import init\n"
    assert programs.for_mlc(text + same) == (
        "import mlc as torch  # it\nimport mlc.nn as nn\n  from mlc import optim\nfrom mlc.nn import init\n" + same)


def test_curves_of_other_lengths_or_values_differ() -> None:
    assert programs.difference([1.0, 2.0], [1.0, 2.0]) == 0
    assert programs.difference([1.0, 2.2], [1.0, 2.0]) > programs.TOLERANCE
    assert programs.difference([1.0], [1.0, 2.0]) == programs.difference([], []) == float("inf")


@pytest.mark.slow
@pytest.mark.parametrize(("change", "verdict"), [
    ("", ("runs", "difference", "")), ("* (1.1 if 'mlc' in torch.__name__ else 1)", ("runs", "TOO FAR", "")),
    ("* (no_name if 'mlc' in torch.__name__ else 1)", ("fails", "0 of 3 losses", "NameError")),
    ("* no_name", ("PyTorch fails", "", "NameError"))])
def test_verdicts(change: str, verdict: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PROGRAM.replace("CHANGE", change))
    program = programs.Program(("main.py",), "main.py", repository="mingpt")
    row = programs.judge(program, tmp_path, tmp_path / "runs", 240)
    assert all(part in column for part, column in zip(verdict, row)), row
    assert ("TOO FAR" in row[1]) == ("TOO FAR" in verdict)


@pytest.mark.slow
@pytest.mark.parametrize("name", models.NAMES)
def test_models_train_as_under_pytorch(name: str) -> None:
    row = models.compare(name, 4)
    assert row["agrees"], row
    assert row["bits"] or name == "resnet18", row


@pytest.mark.slow
def test_a_model_that_trains_otherwise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "for_mlc", lambda text: programs.for_mlc(text).replace("lr=0.1", "lr=0.2"))
    row = models.compare("mlp", 3)
    assert not row["agrees"]
    assert "DIFFERS" in models.table([row])
