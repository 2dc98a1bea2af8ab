"""The recipes of parallel training against one device: python -m tests.peers.recipes --ranks 2,4,8

A classifier of digits, a small GPT, a small ResNet-18 and a mixture of experts are trained under each recipe, on ranks
that are threads. Their losses have to be those of one device, up to what rounding makes; the bytes that are sent, those
that the report says, and no more than the recipe has to send. With `--memory` the ranks are processes, and the memory
that each takes in a step is compared with what the report says. With `--time` they are, too, and the time of a step is
compared with what the simulation predicts from the measured times of segments and messages, where nothing else runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import mlc
import mlc.distributed as dist
from mlc.distributed.measured import machine_meter, report_meter
from mlc.tools.ranks import launcher
from tests.training_recipes import RECIPES, TASKS, Memory, Recipe, Task, Training, examine, recipes

R = TypeVar("R")


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


def of_processes(what: str, task: Task, recipe: Recipe, ranks: int) -> list[dict[str, Any]]:
    """The findings of ranks that are processes, by rank."""
    done = subprocess.run([launcher(), "-n", str(ranks), sys.executable, "-m", "tests.peers.recipes", "--child", what,
                           task.name, recipe.name], capture_output=True, text=True, timeout=1800,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode or not done.stdout:
        raise SystemExit(done.stdout + done.stderr)
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def memory(task: Task, recipe: Recipe, ranks: int) -> bool:
    """Compare the memory of ranks that are processes; returns whether all is well."""
    worst = max((Memory(**row) for row in of_processes("memory", task, recipe, ranks)), key=lambda m: abs(m.difference))
    print(f"{task.name:9} {recipe.name:18} {ranks} ranks: the arrays of a rank take {worst.taken} bytes, told are "
          f"{worst.told}, {worst.difference:+.1%}{'' if worst.near else '  WRONG'}", flush=True)
    return worst.near


ROUNDS, SECONDS, NEAR = 7, 0.3, 0.2
"""Rounds of predicting and measuring, the seconds of steps in each, and how near the prediction has to come."""
QUIET, PATIENCE = 0.05, 60.0
"""Processors that other programs may take in a round, and the seconds after which rounds are no longer repeated."""


def times(task: Task, recipe: Recipe, ranks: int) -> bool:
    """Compare the time of a step with what the simulation predicts; whether that is near.

    Who shares the machine makes both longer, for seconds at a time and more. So predictions and steps take turns, and
    the round counts whose ratio is in the middle. (The least prediction of all rounds would be too short: it is a sum
    of differences of measured times.) Ranks wait for the slowest of them, whose prediction counts.
    """
    rounds = [(statistics.mean(one["taken"] for one in ranked), max(ranked, key=lambda one: one["told"]))
              for ranked in zip(*(row["rounds"] for row in of_processes("time", task, recipe, ranks)))]
    rounds.sort(key=lambda one: one[0] / one[1]["told"])
    taken, told = rounds[len(rounds) // 2]
    off, others = float(taken / told["told"] - 1), max(one["others"] for _, one in rounds)
    least = min(t for t, _ in rounds) / min(one["told"] for _, one in rounds) - 1
    print(f"{task.name:9} {recipe.name:18} {ranks} ranks: a step takes {1e3 * taken:.2f} ms, told are "
          f"{1e3 * told['told']:.2f}, {off:+.0%} (of the least of {len(rounds)} rounds {least:+.0%}), of which "
          f"{1e3 * told['compute']:.2f} are of segments, {1e3 * told['waiting']:.2f} of waiting; other programs took "
          f"at most {others:.2f} processors{'' if abs(off) <= NEAR else '  WRONG'}", flush=True)
    return abs(off) <= NEAR


def busy() -> float:
    """The seconds that the processors of this machine have been busy."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, interrupts, soft, stolen = map(int, file.readline().split()[1:9])
    return (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")


def in_quiet(act: Callable[[], R], end: float) -> tuple[R, float]:
    """The result of an act of all ranks, again until hardly anything else runs, and the processors that others took.

    end  by `time.monotonic`: after it, the time in which they took least counts
    """
    best = list[tuple[R, float]]()
    while True:
        dist.barrier()
        start, before, own = time.perf_counter(), busy(), time.process_time()
        result = act()
        dist.barrier()
        used, taken = mlc.tensor([time.process_time() - own]), busy() - before
        dist.all_reduce(used)
        others = mlc.tensor([(taken - used.item()) / (time.perf_counter() - start)])
        dist.broadcast(others, 0)
        best = sorted([*best, (result, max(0.0, others.item()))], key=lambda one: one[1])[:1]
        late = mlc.tensor([float(time.monotonic() > end)])
        dist.broadcast(late, 0)
        if best[0][1] <= QUIET or late.item():
            return best[0]
        if dist.get_rank() == 0:
            time.sleep(1)                                  # the others wait for it


def step_time(task: Task, recipe: Recipe) -> list[dict[str, float]]:
    """The seconds of a step of this rank and those predicted from the speed of the machine, of some rounds."""
    training = Training.of(task, recipe, dist.get_world_size())
    mesh = training.mesh
    assert mesh is not None
    x, y = map(training.place, next(task.batches(task.batch, 1)))
    training.step(x, y)

    def loop(count: int) -> float:
        """The median of so many steps."""
        dist.barrier()
        found = list[float]()
        for _ in range(count):
            start = time.perf_counter()
            training.step(x, y)
            found.append(time.perf_counter() - start)
        return statistics.median(found)

    first = mlc.tensor([loop(3)])
    dist.all_reduce(first, dist.ReduceOp.MAX)
    count = max(5, int(SECONDS / first.item()))

    measured_report, measured_machine = report_meter(training.step, x, y), machine_meter(mesh)

    def beside() -> dict[str, float]:
        """One round: the prediction, then the steps."""
        report, machine = measured_report(), measured_machine()
        taken, told = loop(count), report.time(machine)
        return {"taken": taken, "told": told.total, "compute": told.compute, "waiting": told.waiting}

    end = time.monotonic() + PATIENCE
    return [{**found, "others": others} for found, others in (in_quiet(beside, end) for _ in range(ROUNDS))]


def child(what: str, task: Task, recipe: Recipe) -> None:
    """Measure the memory that this rank takes in a step, or the time."""
    dist.init_process_group(timeout=600)
    found = {"rounds": step_time(task, recipe)} if what == "time" else \
        dataclasses.asdict(Training.of(task, recipe, dist.get_world_size()).memory())
    rows: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(rows, found)
    if dist.get_rank() == 0:
        print(json.dumps(rows), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4,8", help="numbers of ranks (default 2,4,8)")
    parser.add_argument("--models", default=",".join(t.name for t in TASKS), help="of these (default all)")
    parser.add_argument("--recipes", nargs="*", default=[""], help="those whose name begins so (default all)")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--memory", action="store_true", help="compare the memory of ranks that are processes")
    parser.add_argument("--time", action="store_true", help="compare the time of a step with its prediction")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        what, *names = options.child
        return child(what, next(t for t in TASKS if t.name == names[0]), next(r for r in RECIPES if r.name == names[1]))
    chosen = [(task, recipe, n) for task in TASKS if task.name in options.models.split(",")
              for n in map(int, options.ranks.split(",")) for recipe in recipes(task, n)
              if recipe.name.startswith(tuple(options.recipes))]
    right = [memory(*one) if options.memory else times(*one) if options.time else losses(*one, options.steps)
             for one in chosen]
    print(f"{sum(right)} of {len(right)} are right; load {os.getloadavg()[0]:.1f}")
    raise SystemExit(not all(right))


if __name__ == "__main__":
    main()
