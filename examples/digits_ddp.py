"""Train a classifier of handwritten digits on several ranks, each with its part of every batch.

    mlc run --ranks 2 examples/digits_ddp.py
    mlc run --ranks 2 --max-restarts 3 examples/digits_ddp.py -- --checkpoints FOLDER
    mpiexec -n 2 python examples/digits_ddp.py
    torchrun --nproc-per-node 2 examples/digits_ddp.py
    mlc run --ranks 2 examples/digits_ddp.py -- --device cuda          # a GPU for each rank, by NCCL

DistributedDataParallel averages the gradients while backward goes on. With a folder for checkpoints, a job that was
ended goes on after the last epoch that was whole, also on another number of ranks.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np

import mlc
from mlc import distributed as dist
from mlc import nn
from mlc.distributed import checkpoint
from mlc.utils.data import DataLoader, DistributedSampler, TensorDataset

DATA = Path(__file__).parent / "data" / "digits.csv.gz"


def load() -> tuple[TensorDataset, TensorDataset]:
    """The images and labels to train on and to test with: every fourth image is a test image."""
    with gzip.open(DATA, "rt", encoding="ascii") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.int64)
    images, labels = (rows[:, :-1] / 16).astype(np.float32), rows[:, -1]
    test = np.arange(len(rows)) % 4 == 0
    return (TensorDataset(mlc.tensor(images[~test]), mlc.tensor(labels[~test])),
            TensorDataset(mlc.tensor(images[test]), mlc.tensor(labels[test])))


def train(epochs: int, batch: int = 64, folder: str | None = None, device: str = "cpu") -> tuple[float, list[float]]:
    """The accuracy on the test set after training, and the mean loss of each epoch, over all ranks."""
    ranks = dist.get_world_size()
    data, test = load()
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=batch // ranks, sampler=sampler, drop_last=True)
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    model = nn.parallel.DistributedDataParallel(mlc.compile(network))
    optimizer = mlc.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
    start, losses = 0, list[float]()
    if folder is not None and (path := checkpoint.latest(folder)) is not None:
        images, labels = (x.to(device) for x in data[:1])
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()                                   # so that the optimiser has the state that is read next
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 0}
        state = checkpoint.load(state, path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"]
    for epoch in range(start, epochs):
        sampler.set_epoch(epoch)
        total = mlc.zeros((), device=device)
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total = total + loss.detach()
        dist.all_reduce(total, dist.ReduceOp.AVG)
        losses.append(total.item() / len(loader))
        if folder is not None:
            checkpoint.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1},
                            Path(folder, f"step-{epoch + 1}"))
    images, labels = (x.to(device) for x in test[:])
    with mlc.no_grad():
        return (network(images).argmax(1) == labels).float().mean().item(), losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64, help="images of a step, on all ranks together")
    parser.add_argument("--checkpoints", metavar="FOLDER", help="written after each epoch, read when the job starts")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu",
                        help="of cuda each rank takes the GPU of its number on its host")
    options = parser.parse_args()
    dist.init_process_group()
    mlc.manual_seed(0)
    device = f"cuda:{dist.get_node_local_rank()}" if options.device == "cuda" else "cpu"
    accuracy, losses = train(options.epochs, options.batch, options.checkpoints, device)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks by {dist.get_backend()}: accuracy {accuracy:.2%}, "
              f"losses {', '.join(f'{loss:.3f}' for loss in losses[-5:])}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
