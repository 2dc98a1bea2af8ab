"""mlc.Trainer: the loop that everybody writes, and trainings that are killed and go on."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError
from mlc.utils.data import DataLoader, Dataset

F = nn.functional


class Noisy(Dataset[Any]):
    """Points and their classes, with noise of three generators."""

    def __init__(self, count: int) -> None:
        self.x = np.random.default_rng(0).normal(size=(count, 4)).astype("f4")

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> Any:
        noise = np.float32(random.gauss(0, 0.1) + np.random.normal(0, 0.1))
        return mlc.tensor(self.x[i] + noise) + 0.1 * mlc.randn(4), int(self.x[i, 0] > self.x[i, 1])


def made(folder: Path | None = None, count: int = 60, **settings: Any) -> tuple[mlc.Trainer, DataLoader[Any]]:
    """A trainer of a network with dropout and batch normalization, and its data."""
    mlc.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
    optimizer = mlc.optim.AdamW(model.parameters(), lr=0.05)
    scheduler = mlc.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
    trainer = mlc.Trainer(model, optimizer, nn.CrossEntropyLoss(), **{
        "scheduler": scheduler, "progress": False, "checkpoints": folder, "clip_norm": 1.0, **settings})
    return trainer, DataLoader(Noisy(count), batch_size=8, shuffle=True)


def weights(trainer: mlc.Trainer) -> dict[str, bytes]:
    return {name: x.numpy().tobytes() for name, x in trainer.model.state_dict().items()}


# -- the loop ---------------------------------------------------------------------------------------------------------
def by_hand(epochs: int, accumulate: int) -> tuple[Any, list[float]]:
    trainer, loader = made()
    model, optimizer = trainer.model, trainer.optimizer
    assert trainer.scheduler is not None
    losses = []
    for _ in range(epochs):
        total = 0.0
        for i, (x, y) in enumerate(loader, 1):
            loss = F.cross_entropy(model(x), y)
            (loss / accumulate).backward()
            total += loss.item()
            if i % accumulate == 0 or i == len(loader):
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                trainer.scheduler.step()
                optimizer.zero_grad()
        losses.append(total / len(loader))
    return trainer, losses


@pytest.mark.parametrize(("accumulate", "compile"), [
    (4, True), *(pytest.param(*of, marks=pytest.mark.slow) for of in ((1, False), (4, False), (1, True)))])
def test_the_loop_is_the_one_that_everybody_writes(accumulate: int, compile: bool) -> None:
    trainer, loader = made(accumulate=accumulate, compile=compile)
    losses = trainer.fit(loader, 3)
    wanted, wanted_losses = by_hand(3, accumulate)
    assert losses == wanted_losses and trainer.step == 3 * -(-8 // accumulate)
    assert weights(trainer) == weights(wanted)


def test_losses_are_functions_of_the_model_and_of_any_batch() -> None:
    def loss(model: Any, batch: Any) -> Any:
        return F.cross_entropy(model(batch["x"]), batch["y"])

    model = nn.Linear(4, 2)
    data = [{"x": mlc.randn(8, 4), "y": mlc.zeros(8, dtype="int64")} for _ in range(3)]
    optimizer = mlc.optim.SGD(model.parameters(), lr=0.1)
    scheduler = mlc.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=0)
    seen: list[dict[str, Any]] = []
    trainer = mlc.Trainer(model, optimizer, loss, scheduler=scheduler, log=seen.append, log_every=2, progress=False,
                          scaler=mlc.amp.GradScaler("cpu", init_scale=4.0), autocast=mlc.bfloat16, compile=True)
    losses = trainer.fit(data, 4)
    assert losses == sorted(losses, reverse=True) and optimizer.param_groups[0]["lr"] == pytest.approx(1e-4)
    assert [row["step"] for row in seen] == [2, 4, 6, 8, 10, 12] and seen[-1]["epoch"] == 4


def test_progress_is_a_line_per_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    trainer, loader = made(progress=True)
    trainer.fit(loader, 2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[1].startswith("epoch 2/2  batch 8/8  loss 0.")


def test_a_training_is_stopped_and_continued(tmp_path: Path) -> None:
    def stop(trainer: mlc.Trainer) -> None:
        trainer.stop = trainer.step == 5

    trainer, loader = made(tmp_path, on_step=stop, accumulate=2)
    assert trainer.fit(loader, 3) == trainer.losses and trainer.step == 5
    other, loader = made(tmp_path, accumulate=2)
    other.fit(loader, 3)
    whole, loader = made(accumulate=2)
    assert whole.fit(loader, 3) == other.losses and weights(whole) == weights(other)


@pytest.mark.parametrize("arguments, text", [
    ({"accumulate": 0}, "accumulate = 0"), ({"every": 1.5}, "every = 1.5"), ({"scheduler_per": "batch"}, "'batch'"),
    ({"scheduler": 5}, "scheduler is int 5"), ({"scaler": True}, "scaler is bool True"),
])
def test_wrong_arguments(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError, match=text) as found:
        made(**arguments)
    assert found.value.code == "MLC0749"


def test_what_cannot_be_trained() -> None:
    model = nn.Linear(2, 1)
    for optimizer, text in ((mlc.optim.SGD(lr=0.1), "optimizer is"), (None, "optimizer is")):
        with pytest.raises(UserError, match=text):
            mlc.Trainer(model, optimizer, nn.MSELoss())  # type: ignore[arg-type]
    trainer = mlc.Trainer(model, mlc.optim.SGD(model.parameters(), lr=0.1), nn.MSELoss(), progress=False)
    used_up = iter([(mlc.ones(1, 2), mlc.ones(1, 1))])
    with pytest.raises(UserError, match="no batches") as found:
        trainer.fit(used_up, 2)
    assert found.value.code == "MLC0749"


# -- checkpoints ------------------------------------------------------------------------------------------------------
def test_damaged_checkpoints_are_passed_over(tmp_path: Path) -> None:
    trainer, loader = made(tmp_path, every=3, keep=2)
    trainer.fit(loader, 2)
    names = sorted(os.listdir(tmp_path))
    assert names == ["step-0000000015.mlc", "step-0000000016.mlc"]
    (tmp_path / names[1]).write_bytes((tmp_path / names[1]).read_bytes()[:-5])
    other, loader = made(tmp_path)
    with pytest.warns(UserWarning, match="damaged"):
        other.fit(loader, 2)
    assert weights(other) == weights(trainer) and other.losses == trainer.losses
    for path in tmp_path.iterdir():
        path.write_bytes(b"MLCSTATE")
    with pytest.raises(UserError, match=r"none of the \d checkpoints") as found, pytest.warns(UserWarning):
        made(tmp_path)[0].fit(loader, 2)
    assert found.value.code == "MLC0750"


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill(trainer: mlc.Trainer) -> None:
        if trainer.step == 5:
            monkeypatch.setattr(os, "fsync", full)

    trainer, loader = made(tmp_path, every=2, on_step=fill)
    with pytest.raises(UserError, match=r"cannot write .*step-0000000006\.mlc: No space left") as found:
        trainer.fit(loader, 2)
    monkeypatch.undo()
    assert found.value.code == "MLC0393" and sorted(os.listdir(tmp_path)) == ["step-0000000002.mlc",
                                                                              "step-0000000004.mlc"]
    other, loader = made(tmp_path)
    other.fit(loader, 2)
    whole, loader = made()
    whole.fit(loader, 2)
    assert weights(other) == weights(whole)


def test_a_checkpoint_of_another_trainer_is_refused(tmp_path: Path) -> None:
    trainer, loader = made(tmp_path)
    trainer.fit(loader, 1)
    model = nn.Linear(4, 2)
    other = mlc.Trainer(model, mlc.optim.SGD(model.parameters(), lr=0.1), nn.CrossEntropyLoss(), checkpoints=tmp_path,
                        progress=False)
    with pytest.raises(UserError) as found:
        other.fit(loader, 1)
    assert found.value.code == "MLC0382"
    with pytest.raises(UserError) as found:
        mlc.Trainer(model, mlc.optim.SGD(model.parameters(), lr=0.1), nn.MSELoss(), checkpoints=__file__)
    assert found.value.code == "MLC0393"


# -- trainings that are killed ----------------------------------------------------------------------------------------
def in_child(work: Callable[[], object]) -> int:
    """The id of a process that does something."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(status)
    return process


def content(path: Path) -> Any:
    """The data of a file, with the bytes of its tensors."""
    def comparable(x: Any) -> Any:
        if isinstance(x, dict):
            return {name: comparable(part) for name, part in x.items()}
        return x.numpy().tobytes() if isinstance(x, mlc.Tensor) else x

    return comparable(mlc.load(path))


def newest(checkpoints: Path) -> int:
    """The step of the newest checkpoint; 0 if there is none."""
    return max((int(path.stem.partition("-")[2]) for path in checkpoints.glob("step-*")), default=0)


def killed_training(folder: Path, kills: int, **settings: Any) -> None:
    """Train in processes of which all but the last are killed at random moments; the end is that of one process."""
    final, epochs = folder / "final", 10

    def train(checkpoints: Path | None, pause: float) -> None:
        trainer, loader = made(checkpoints, every=2, on_step=lambda _: time.sleep(pause), **settings)
        trainer.fit(loader, epochs)
        mlc.save({"weights": trainer.model.state_dict(), "losses": trainer.losses,
                  "optimizer": trainer.optimizer.state_dict(), "rng": mlc.get_rng_state()}, final)

    train(None, 0.0)                                       # which also compiles what the children use
    wanted = content(final)
    draw, checkpoints, resumed = random.Random(kills), folder / "checkpoints", 0
    for _ in range(kills):
        final.unlink(missing_ok=True)
        before = newest(checkpoints)
        process = in_child(lambda: train(checkpoints, 0.005))
        if draw.random() < 0.7:                            # otherwise perhaps before it has done anything
            while newest(checkpoints) == before and not final.exists():
                time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.03))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        resumed += before > 0
        if final.exists():                                 # it was done before it was killed: begin again
            assert content(final) == wanted
            shutil.rmtree(checkpoints)
    assert resumed > kills // 4
    assert os.waitpid(in_child(lambda: train(folder / "checkpoints", 0.0)), 0)[1] == 0
    assert content(final) == wanted


@pytest.mark.parametrize(("settings", "kills"), [
    ({"accumulate": 3}, 4), *(pytest.param(settings, kills, marks=pytest.mark.slow) for settings, kills in (
        ({"accumulate": 3}, 100), ({"compile": True}, 4), ({"compile": True}, 100)))])
def test_a_killed_training_ends_with_the_same_bits(kills: int, settings: dict[str, Any], tmp_path: Path) -> None:
    killed_training(tmp_path, kills, **settings)
