"""The recipes of parallel training against one device: python -m tests.peers.recipes --ranks 2,4,8

A classifier of digits, a small GPT, a small ResNet-18 and a mixture of experts are trained under each recipe, on ranks
that are threads. Their losses have to be those of one device, up to what rounding makes; the bytes that are sent, those
that the report says, and no more than the recipe has to send. With `--memory` the ranks are processes, and the memory
that each takes in a step is compared with what the report says. `--time` shows the time of a step of a larger network
beside what the model of the machine predicts; that is near only where nothing else runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

import mlc
import mlc.distributed as dist
from mlc import nn
from mlc.backends.transport import threads
from mlc.tools.ranks import launcher
from tests.training_recipes import RECIPES, TASKS, Memory, Recipe, Task, Training, examine, initial, recipes


def losses(task: Task, recipe: Recipe, ranks: int, steps: int) -> bool:
    """Compare losses and bytes; returns whether all is well."""
    start = time.perf_counter()
    found = examine(task, recipe, ranks, steps)
    what = "" if found.theory is None else f" of {found.theory} in theory"
    print(f"{task.name:9} {recipe.name:18} {ranks} ranks: losses differ by {found.difference:.1e}, rounding makes "
          f"{found.drift:.1e}; bits are equal in {found.equal} of {steps} steps; {found.sent:.0f} bytes sent{what}; "
          f"{time.perf_counter() - start:.0f} s", flush=True)
    for fault in found.faults():
        print(f"  WRONG: {fault}", flush=True)
    return not found.faults()


def memory(task: Task, recipe: Recipe, ranks: int) -> bool:
    """Compare the memory of ranks that are processes; returns whether all is well."""
    done = subprocess.run([launcher(), "-n", str(ranks), sys.executable, "-m", "tests.peers.recipes", "--child",
                           task.name, recipe.name], capture_output=True, text=True, timeout=1800,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode or not done.stdout:
        raise SystemExit(done.stdout + done.stderr)
    rows = json.loads(done.stdout.splitlines()[-1])
    worst = max((Memory(**row) for row in rows), key=lambda m: abs(m.difference))
    print(f"{task.name:9} {recipe.name:18} {ranks} ranks: a rank takes {worst.taken - worst.objects} bytes besides "
          f"{worst.objects} of Python's objects, told are {worst.told}, {worst.difference:+.1%}"
          f"{'' if worst.near else '  WRONG'}", flush=True)
    return worst.near


WIDTH, BATCH = 768, 512


def times(recipe: Recipe, ranks: int) -> None:
    """Show the time of a step beside its prediction: the best of some, measured in turns with the machine."""
    mlc.manual_seed(0)
    base = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
    x = np.random.default_rng(0).standard_normal((BATCH, WIDTH)).astype(np.float32)
    task = Task("network", lambda: base, lambda size, steps: iter([(x, x)] * steps), BATCH,
                {"0.*": ("model",), "2.weight": (None, "model")}, lambda model, x, y: ((model(x) - y) ** 2).mean(),
                lr=1e-3)
    initial(task)

    def rank(number: int) -> Any:
        training = Training.of(task, recipe, ranks)
        assert training.mesh is not None
        placed, best, told = [training.place(x), training.place(x)], float("inf"), list[Any]()
        report = dist.report(training.step, *placed)
        for _ in range(4):
            told.append(report.time(dist.Machine.measured(training.mesh)))
            for _ in range(4):
                training.mesh._ranks.transport.barrier()
                start = time.perf_counter()
                training.step(*placed)
                best = min(best, time.perf_counter() - start)
        return best, min(told, key=lambda t: t.total)

    best, told = max(threads.run(ranks, rank), key=lambda row: float(row[0]))
    print(f"{recipe.name:18} {ranks} ranks: a step takes {1e3 * best:.0f} ms, told are {1e3 * told.total:.0f} "
          f"({1e3 * told.communication:.1f} of communication); load {os.getloadavg()[0]:.1f}", flush=True)


def child(task: Task, recipe: Recipe) -> None:
    """Measure the memory that this rank takes in a step."""
    dist.init_process_group(timeout=600)
    found = Training.of(task, recipe, dist.get_world_size()).memory()
    rows: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(rows, dataclasses.asdict(found))
    if dist.get_rank() == 0:
        print(json.dumps(rows), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4,8", help="numbers of ranks (default 2,4,8)")
    parser.add_argument("--models", default=",".join(t.name for t in TASKS), help="of these (default all)")
    parser.add_argument("--recipes", default="", help="those whose name begins so (default all)")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--memory", action="store_true", help="compare the memory of ranks that are processes")
    parser.add_argument("--time", action="store_true", help="show the time of a step and its prediction")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        task_name, recipe_name = options.child
        return child(next(t for t in TASKS if t.name == task_name), next(r for r in RECIPES if r.name == recipe_name))
    if options.time:
        for n in map(int, options.ranks.split(",")):
            for recipe in RECIPES:
                if recipe.name in ("data parallel", "ZeRO 3", "tensor parallel"):
                    times(recipe, n)
        return
    chosen = [(task, recipe, n) for task in TASKS if task.name in options.models.split(",")
              for n in map(int, options.ranks.split(",")) for recipe in recipes(task, n)
              if recipe.name.startswith(options.recipes)]
    right = [memory(*one) if options.memory else losses(*one, options.steps) for one in chosen]
    print(f"{sum(right)} of {len(right)} are right; load {os.getloadavg()[0]:.1f}")
    raise SystemExit(not all(right))


if __name__ == "__main__":
    main()
