"""Train the GPT of gpt.py on several ranks: its batch, its weights and its optimiser divided as you say.

    mlc run --ranks 2 examples/sharded_gpt.py                              # data parallel
    mpiexec -n 4 python examples/sharded_gpt.py --model 2                  # two by two: data and tensor parallel
    mpiexec -n 4 python examples/sharded_gpt.py --plan zero3               # weights and state divided, too
    mpiexec -n 3 python examples/sharded_gpt.py --stages 3                 # a pipeline: each rank has one layer
    python examples/sharded_gpt.py --ranks 64 --plan zero3                 # no ranks: what 64 would send and hold

Each rank runs this program. `mlc.distributed.mesh` is the grid of them; tensors on it are divided, and passes insert
the communication. Losses are those of one rank, but that sums are added in another order.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import mlc
import mlc.distributed as dist

sys.path.insert(0, str(Path(__file__).parent))
import gpt

F = mlc.nn.functional
TENSOR_PARALLEL = {"*mlp.c_fc.*": ("model",), "*mlp.c_proj.weight": (None, "model")}
"""The first of two products is divided by columns, the second by rows, so that only its result is combined."""


MICROBATCHES = 8
"""Parts of a batch that pass through a pipeline one after the other."""


def mark_stages(model: gpt.GPT, stages: int) -> None:
    """Put the layers at the stages of a pipeline, in order; what is before and after them is at the first and last."""
    for i, block in enumerate(model.h):
        dist.stage(block, i * stages // len(model.h))
    for module in (model.wte, model.wpe):
        dist.stage(module, 0)
    for module in (model.ln_f, model.lm_head):
        dist.stage(module, stages - 1)


def train(mesh: dist.DeviceMesh, plan: str, steps: int, size: int, show: Any = print) -> list[float]:
    """The losses of some steps of training; on an abstract mesh, none, and a report is shown."""
    text = gpt.load()
    mlc.manual_seed(0)
    model = gpt.GPT(gpt.Sizes(len(text.alphabet)))
    weights = dist.FullySharded("data") if plan == "zero3" else dist.replicated
    mark_stages(model, mesh.shape["stage"])
    dist.distribute(model, mesh, dist.ByName(TENSOR_PARALLEL, weights) if mesh.shape["model"] > 1 else weights)
    optimizer = mlc.optim.AdamW(model.parameters(), lr=1e-3)
    if plan != "data":
        dist.shard_optimizer(optimizer, mesh, "data")

    def loss_of(x: mlc.Tensor, y: mlc.Tensor) -> mlc.Tensor:
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    @mlc.compile
    def step(x: mlc.Tensor, y: mlc.Tensor) -> mlc.Tensor:
        optimizer.zero_grad()
        if mesh.shape["stage"] > 1:
            loss = dist.pipeline(loss_of, x, y, microbatches=MICROBATCHES)
        else:
            loss = loss_of(x, y)
            loss.backward()
        optimizer.step()
        return loss

    rng, losses = np.random.default_rng(0), list[float]()
    for _ in range(steps):
        x, y = (dist.shard(a, "data", mesh=mesh) for a in gpt.batch(rng, text.training, size, model.context))
        if mesh.abstract:
            show(dist.report(step, x, y))
            break
        losses.append(step(x, y).item())
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small GPT on several ranks.")
    parser.add_argument("--model", type=int, default=1, help="ranks that a layer is divided among (default 1)")
    parser.add_argument("--stages", type=int, default=1, help="stages of a pipeline, at most one per layer (default 1)")
    parser.add_argument("--plan", choices=["data", "zero1", "zero3"], default="data",
                        help="what is divided besides the batch: nothing, the optimiser's state, weights and state")
    parser.add_argument("--steps", type=int, default=50, help="training steps (default 50)")
    parser.add_argument("--batch", type=int, default=64, help="texts per step, of all ranks (default 64)")
    parser.add_argument("--ranks", type=int, help="only report what so many ranks would send and hold")
    args = parser.parse_args()
    if args.ranks is None:
        dist.init_process_group()
    ranks = args.ranks or dist.get_world_size()
    others = args.model * args.stages
    if ranks % others:
        raise SystemExit(f"{ranks} ranks are no multiple of --model {args.model} times --stages {args.stages}")
    axes = {"data": ranks // others, "model": args.model, "stage": args.stages}
    mesh = dist.mesh(axes, abstract=args.ranks is not None)
    start = time.perf_counter()
    losses = train(mesh, args.plan, args.steps, args.batch)
    if losses and mesh.rank == 0:
        print(f"{mesh}: loss {losses[0]:.4f} -> {losses[-1]:.4f} in {len(losses)} steps, "
              f"{time.perf_counter() - start:.1f} s with the compilation")


if __name__ == "__main__":
    main()
