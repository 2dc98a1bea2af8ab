"""The examples: each learns or agrees with PyTorch, on less than it takes by default."""
from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn

torch = pytest.importorskip("torch")
ROOT = Path(__file__).parent.parent


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, str(ROOT / "examples" / f"{name}.py"), *arguments], capture_output=True,
                          text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": ""}, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- GPT --------------------------------------------------------------------------------------------------------------
def torch_gpt(sizes: Any) -> Any:
    """The model of examples/gpt.py in PyTorch, with the same names."""
    from torch import nn as tnn
    width = sizes.width

    class Attention(tnn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.c_attn, self.c_proj = tnn.Linear(width, 3 * width), tnn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            q, k, v = (p.view(b, t, sizes.heads, -1).transpose(1, 2) for p in self.c_attn(x).split(width, 2))
            out = tnn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.c_proj(out.transpose(1, 2).reshape(b, t, width))

    class Block(tnn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.attn, self.ln_2 = tnn.LayerNorm(width), Attention(), tnn.LayerNorm(width)
            self.mlp = tnn.Sequential()
            self.mlp.add_module("c_fc", tnn.Linear(width, 4 * width))
            self.mlp.add_module("gelu", tnn.GELU())
            self.mlp.add_module("c_proj", tnn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT(tnn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.wpe = tnn.Embedding(sizes.vocabulary, width), tnn.Embedding(sizes.context, width)
            self.h = tnn.ModuleList([Block() for _ in range(sizes.layers)])
            self.ln_f, self.lm_head = tnn.LayerNorm(width), tnn.Linear(width, sizes.vocabulary, bias=False)

        def forward(self, x: Any) -> Any:
            out = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
            for block in self.h:
                out = block(out)
            return self.lm_head(self.ln_f(out))

    return GPT()


@pytest.mark.slow
def test_the_gpt_follows_torch_for_100_steps() -> None:
    """The same weights and batches: the loss of every step, with warm-up, cosine, groups and clipping."""
    gpt = example("gpt")
    text, steps, lr = gpt.load(), 100, 3e-3
    sizes = gpt.Sizes(len(text.alphabet), context=16, layers=2, heads=2, width=32)
    mlc.manual_seed(0)
    model = gpt.GPT(sizes)
    theirs = torch_gpt(sizes)
    theirs.load_state_dict({n: torch.from_numpy(p.numpy().copy()) for n, p in model.state_dict().items()})
    plain = [p for n, p in theirs.named_parameters() if gpt._plain(n)]
    rest = [p for n, p in theirs.named_parameters() if not gpt._plain(n)]
    other = torch.optim.AdamW([{"params": rest, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=lr,
                              betas=(0.9, 0.99))
    optimizer = gpt.make_optimizer(steps, lr)
    state, step = optimizer.init(model), gpt.make_step(optimizer)
    rng = np.random.default_rng(0)
    for i in range(steps):
        x, y = gpt.batch(rng, text.training, 4, sizes.context)
        for group in other.param_groups:
            group["lr"] = optimizer.lr(i).item()
        other.zero_grad()
        expected = torch.nn.functional.cross_entropy(theirs(torch.from_numpy(x)).flatten(0, 1),
                                                     torch.from_numpy(y).flatten())
        expected.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        other.step()
        entered = mlc.native_entries()
        model, state, value = step(model, state, x, y)
        assert mlc.native_entries() == entered + 1
        assert value.item() == pytest.approx(expected.item(), rel=1e-4 if i < 20 else 2e-3)
    assert value.item() < 3.3


@pytest.mark.slow
def test_the_gpt_writes_the_same_text_every_time() -> None:
    gpt = example("gpt")
    text = gpt.load()
    mlc.manual_seed(0)
    model = gpt.GPT(gpt.Sizes(len(text.alphabet), context=16, layers=1, heads=2, width=32))
    first, second = (gpt.write(model, text, "O", 20, seed=3) for _ in range(2))
    assert first == second and len(first) == 21 and first[0] == "O" and model.training


@pytest.mark.slow
def test_the_gpt_program(tmp_path: Path) -> None:
    file = tmp_path / "gpt.safetensors"
    out = run("gpt", "--steps", "30", "--context", "16", "--layers", "1", "--width", "32", "--batch", "8", "--dropout",
              "0.1", "--characters", "40", "--save", str(file))
    assert float(out.split("loss on unseen text ")[1].split()[0]) < 3.9
    assert "h.0.attn.c_attn.weight" in nn.load_safetensors(file)


# -- BERT -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("width, heads, length", [(32, 4, 12), pytest.param(48, 6, 7, marks=pytest.mark.slow)])
def test_a_bert_layer_is_that_of_torch(width: int, heads: int, length: int) -> None:
    """The loss and every gradient, with padding."""
    bert = example("bert_layer")
    layer = bert.make(width, heads)
    data = bert.inputs(3, length, width)
    value, (gradients, of_x) = bert.loss_and_gradients(layer, *data)
    expected, wanted, wanted_of_x = bert.torch_loss_and_gradients(width, heads, layer.state_dict(), *data)
    assert value.item() == pytest.approx(expected, rel=1e-6)
    found = dict(gradients.named_parameters())
    assert found.keys() == wanted.keys()
    for name, g in wanted.items():
        np.testing.assert_allclose(found[name].numpy(), g, rtol=1e-4, atol=1e-6 * abs(g).max() + 1e-9)
    np.testing.assert_allclose(of_x.numpy(), wanted_of_x, rtol=1e-4, atol=1e-8)


# -- convolutional networks -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_digits_cnn() -> None:
    """Three epochs already tell most digits apart; the statistics and keys have moved."""
    cnn = example("digits_cnn")
    model, accuracy = cnn.fit(0, 3, cnn.digits().load())
    assert accuracy > 0.93
    assert model[1].num_batches_tracked.item() == 3 * 21 and model[1].running_mean.numpy().any()


@pytest.mark.slow
def test_the_digits_cnn_learns_the_same_on_one_thread_and_two() -> None:
    cnn, before, states = example("digits_cnn"), mlc.get_num_threads(), []
    data = cnn.digits().load()
    for count in (1, 2):
        mlc.set_num_threads(count)
        states.append(cnn.fit(0, 1, data)[0].state_dict())
    mlc.set_num_threads(before)
    for name, x in states[0].items():
        assert x.numpy().tobytes() == states[1][name].numpy().tobytes(), name


@pytest.mark.slow
def test_the_digits_cnn_over_five_seeds() -> None:
    out = run("digits_cnn", "--seeds", "5")
    assert float(out.split("test accuracy ")[1].split("%")[0]) >= 98


def torch_resnet(widths: tuple[int, ...], classes: int) -> Any:
    """ResNet-18 in PyTorch, with torchvision's names."""
    from torch import nn as tnn

    class Block(tnn.Module):  # type: ignore[misc]
        def __init__(self, c: int, o: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.bn1 = tnn.Conv2d(c, o, 3, stride, 1, bias=False), tnn.BatchNorm2d(o)
            self.conv2, self.bn2 = tnn.Conv2d(o, o, 3, 1, 1, bias=False), tnn.BatchNorm2d(o)
            self.downsample = tnn.Sequential(tnn.Conv2d(c, o, 1, stride, bias=False), tnn.BatchNorm2d(o)) if (
                stride != 1 or c != o) else None

        def forward(self, x: Any) -> Any:
            y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
            return torch.relu(y + (x if self.downsample is None else self.downsample(x)))

    class ResNet(tnn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.bn1 = tnn.Conv2d(3, widths[0], 7, 2, 3, bias=False), tnn.BatchNorm2d(widths[0])
            self.maxpool = tnn.MaxPool2d(3, 2, 1)
            before = [widths[0], *widths]
            for i in range(4):
                setattr(self, f"layer{i + 1}", tnn.Sequential(Block(before[i], widths[i], 1 + (i > 0)),
                                                              Block(widths[i], widths[i], 1)))
            self.fc = tnn.Linear(widths[3], classes)

        def forward(self, x: Any) -> Any:
            x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(x.mean((2, 3)))

    return ResNet()


@pytest.mark.slow
def test_resnet18_loads_a_state_of_torch_and_trains_alike() -> None:
    """Scores, loss and running statistics of two steps; narrow, on images of 3 x 32 x 32."""
    resnet = example("resnet18")
    widths = (8, 12, 16, 20)
    torch.manual_seed(0)
    theirs = torch_resnet(widths, 10)
    with torch.no_grad():
        for p in theirs.buffers():
            if p.is_floating_point():
                p.copy_(torch.rand(p.shape) + 0.1)
    model = resnet.ResNet18(10, widths)
    assert model.load_state_dict(theirs.state_dict()) == ([], [])
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(4, 3, 32, 32)).astype(np.float32), rng.integers(0, 10, 4)
    expected = theirs.eval()(torch.from_numpy(images)).detach()
    torch.testing.assert_close(torch.from_numpy(resnet.scores(model.eval(), images).numpy()), expected, rtol=1e-4,
                               atol=1e-4)
    optimizer = mlc.optim.SGD(0.01, momentum=0.9)
    step, state = resnet.make_step(optimizer), optimizer.init(model.train())
    theirs.train()
    other = torch.optim.SGD(theirs.parameters(), 0.01, momentum=0.9)
    for _ in range(2):
        other.zero_grad()
        wanted = torch.nn.functional.cross_entropy(theirs(torch.from_numpy(images)), torch.from_numpy(labels))
        wanted.backward()
        other.step()
        model, state, value = step(model, state, images, labels)
        assert value.item() == pytest.approx(wanted.item(), rel=1e-4)
    for name, x in theirs.state_dict().items():
        torch.testing.assert_close(torch.from_numpy(model.state_dict()[name].numpy()), x, rtol=1e-3, atol=1e-4)


def test_resnet18_has_the_parameters_of_torchvision() -> None:
    resnet = example("resnet18")
    model = resnet.ResNet18()
    assert model.num_parameters() == 11_689_512 and len(model.state_dict()) == 122
    assert model.layer2[0].downsample[0].weight.shape == (128, 64, 1, 1)
