"""Kill a random rank of a job at a random moment, again and again: python -m tests.peers.rank_kills --kills 100

Each job computes collectives for ever under `mlc run --ranks`. It has to end within 10 seconds of the kill, with an
error that names the rank.

With `--restarts K` the jobs train a network, its weights and the state of its optimiser divided among the ranks, and
write checkpoints; in each, K ranks are killed one after the other. Each time the job has to start again within 10
seconds, to go on from the last checkpoint that was whole, and to end with the bits of a job that nobody disturbed.
"""
from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

COLLECTIVES = """
import os, sys, mlc
from mlc import distributed as dist
dist.init_process_group(timeout=60)
rank = dist.get_rank()
print(f"rank {rank} is process {os.getpid()}", flush=True)
x = mlc.ones(int(sys.argv[1]))
while True:
    work = dist.all_reduce(x, dist.ReduceOp.AVG, async_op=rank >= 0)
    dist.all_gather_object([None] * dist.get_world_size(), rank)
    work.wait()
"""
STEPS, EVERY = 120, 7
"""Steps of training, and those after which there is a checkpoint."""
TRAINING = f"""
import hashlib, os, sys, time
import numpy as np
import mlc
from mlc import distributed as dist, nn
from mlc.distributed import checkpoint
dist.init_process_group(timeout=60)
print(f"rank {{dist.get_rank()}} is process {{os.getpid()}}", flush=True)
mlc.manual_seed(0)
mesh = dist.mesh({{"data": dist.get_world_size()}})
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
dist.distribute(model, mesh, dist.FullySharded("data", least=64))
optimizer = mlc.optim.AdamW(model.parameters(), lr=1e-2)
dist.shard_optimizer(optimizer, mesh, "data")

@mlc.compile
def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

def batch(number):
    rng = np.random.default_rng(number)
    x = rng.standard_normal((32, 64)).astype(np.float32)
    return dist.shard(x, "data", mesh=mesh), dist.shard(x[:, :16].argmax(1), "data", mesh=mesh)

def say(what, number):
    if mesh.rank == 0:
        print(what, number, flush=True)

def state(number):
    return {{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": number}}

done = 0
if (path := checkpoint.latest(sys.argv[1])) is not None:
    step(*batch(0))                                        # after which the optimiser has the state that is read next
    found = checkpoint.load(state(0), path)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    done = found["step"]
say("begins after", done)
while done < {STEPS}:
    step(*batch(done))
    done += 1
    say("step", done)
    if done % {EVERY} == 0:
        checkpoint.save(state(done), f"{{sys.argv[1]}}/step-{{done}}")
        say("saved", done)
tensors = [*model.parameters(), *(x for one in optimizer.state.values() for x in one.values())]
bits = [x.cpu().numpy().tobytes() for x in tensors if isinstance(x, mlc.Tensor)]
say("weights", hashlib.sha256(b"".join(bits)).hexdigest())
"""
LIMIT = 10.0


def _start(program: Path, ranks: int, argument: str, restarts: int = 0) -> subprocess.Popen[str]:
    """A job; what it prints is read by whoever starts it."""
    again = ["--max-restarts", str(restarts)] if restarts else []
    return subprocess.Popen([sys.executable, "-m", "mlc.tools.cli", "run", "--ranks", str(ranks), *again, str(program),
                             "--", argument], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_one(ranks: int, choose: random.Random) -> tuple[float, str]:
    """The seconds from the kill to the end of the job; and what was wrong, if anything."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(COLLECTIVES)
        job = _start(program, ranks, str(choose.choice([1, 1000, 1_000_000])))
        assert job.stdout is not None
        found = dict(_processes(job.stdout, ranks))
        if len(found) < ranks:
            return 0.0, f"the job has not started: {job.communicate()[1][-500:]}"
        time.sleep(choose.random())
        rank = choose.randrange(ranks)
        start = time.monotonic()
        os.kill(found[rank], signal.SIGKILL)
        try:
            _, errors = job.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            tree = subprocess.run(["ps", "-eo", "pid,ppid,stat,wchan,args"], capture_output=True, text=True).stdout
            job.terminate()
            left = [line for line in tree.splitlines() if "rank" in line or "hydra" in line]
            return 20.0, "\n".join(["it hangs:", *left])
        seconds = time.monotonic() - start
    wanted = f"rank {rank} of {ranks} was killed by SIGKILL"
    alive = [pid for pid in found.values() if _runs(pid)]
    return seconds, "" if wanted in errors and job.returncode == 1 and not alive else \
        f"expected {wanted!r}, status 1 and no process, found status {job.returncode}, {alive} and {errors[-300:]!r}"


def _runs(pid: int) -> bool:
    """Whether a process is there and no zombie, which a container may keep for ever."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def _processes(lines: Iterator[str], count: int) -> Iterator[tuple[int, int]]:
    """The ranks and their processes, as they print them: two may share a line."""
    found = 0
    for line in lines:
        for rank, pid in re.findall(r"rank (\d+) is process (\d+)", line):
            found += 1
            yield int(rank), int(pid)
        if found == count:
            return


# -- training that starts again ---------------------------------------------------------------------------------------
class Watched:
    """A job that trains, and what it has printed so far, with the times at which that came."""

    def __init__(self, program: Path, ranks: int, folder: Path, restarts: int) -> None:
        self.ranks = ranks
        self.job = _start(program, ranks, str(folder), restarts)
        self.printed, self.errors = list[tuple[float, str]](), list[tuple[float, str]]()
        self._readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                         for pair in ((self.job.stdout, self.printed), (self.job.stderr, self.errors))]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: IO[str], into: list[tuple[float, str]]) -> None:
        for line in stream:
            into.append((time.monotonic(), line))

    def said(self, what: str, start: int = 0) -> list[str]:
        """The numbers that were printed after some words, from a line on."""
        return re.findall(rf"{what} ([0-9a-f]+)", "".join(line for _, line in self.printed[start:]))

    def processes(self, start: int) -> dict[int, int]:
        """The processes of all ranks, as printed from a line on; {} if the job ends before they are there."""
        while True:
            found = dict(_processes((line for _, line in self.printed[start:]), self.ranks))
            if len(found) == self.ranks:
                return found
            if self.job.poll() is not None:
                return {}
            time.sleep(0.01)

    def wait_for_steps(self, count: int, start: int) -> None:
        """Wait until so many steps have been made since a line, or the job ends."""
        while len(self.said("step", start)) < count and self.job.poll() is None:
            time.sleep(0.002)

    def restarted(self, words: str, start: float) -> float | None:
        """The seconds from a time to the message that the job starts again; None if there is none in some time, or the
        job ends."""
        ended = False
        while time.monotonic() < start + 2 * LIMIT and not ended:
            ended = self.job.poll() is not None
            for at, line in list(self.errors):
                if at > start and words in line and "; restart" in line:
                    return at - start
            time.sleep(0.01)
        return None

    def end(self) -> None:
        """Wait for the end of the job, and of what it prints."""
        self.job.wait(300)
        for reader in self._readers:
            reader.join()


def kill_in_training(ranks: int, restarts: int, choose: random.Random, weights: str | None) -> tuple[
        str, list[tuple[float, int]], str]:
    """Train, and kill so many ranks: the digest of the weights at the end; for each kill, the seconds until the job
    starts again, and the steps that it has lost; and what was wrong, if anything."""
    kills = list[tuple[float, int]]()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(TRAINING)
        job, start = Watched(program, ranks, Path(folder, "checkpoints"), restarts), 0
        for _ in range(restarts):
            found, rank = job.processes(start), choose.randrange(ranks)
            job.wait_for_steps(choose.choice([0, *range(1, STEPS // restarts)]), start)
            time.sleep(choose.random() * choose.choice([0.05, 1.0]))
            if not found or not _runs(found[rank]):
                break                                      # the training has ended first
            killed = time.monotonic()
            os.kill(found[rank], signal.SIGKILL)
            seconds = job.restarted(f"rank {rank} of {ranks} was killed by SIGKILL", killed)
            if seconds is None and job.job.poll() == 0:
                break                                      # the rank had done its work, and was leaving
            if seconds is None:
                job.job.terminate()
                return "", kills, f"it does not start again: {''.join(line for _, line in job.errors)[-500:]}"
            before = len([1 for at, _ in job.printed if at < killed + seconds])
            if wrong := _lost(job, start, before, kills, seconds):
                return "", kills, wrong
            start = before
        job.end()
        digest = "".join(job.said("weights", start))
        if job.job.returncode or not digest:
            return "", kills, f"it ends with status {job.job.returncode}: {''.join(e for _, e in job.errors)[-500:]}"
    return digest, kills, "" if weights in (None, digest) else "its weights are others than those without a kill"


def _lost(job: Watched, start: int, before: int, kills: list[tuple[float, int]], seconds: float) -> str:
    """Note the steps that a restart has lost; what is wrong with them, if anything.

    start, before  the lines from which the job that was killed, and the next one, have printed
    """
    while not (begins := job.said("begins after", before)):
        if job.job.poll() is not None:
            return f"it ends after a restart: {''.join(line for _, line in job.errors)[-500:]}"
        time.sleep(0.01)
    text = [line for _, line in job.printed[:before]]
    steps = [int(n) for n in re.findall(r"(?:step|begins after) (\d+)", "".join(text[start:]))]
    saved = max((int(n) for n in re.findall(r"saved (\d+)", "".join(text))), default=0)
    lost = max(steps, default=int(begins[0])) - int(begins[0])
    kills.append((seconds, lost))
    if int(begins[0]) < saved or lost > EVERY:
        return f"it goes on after step {begins[0]}, where {saved} was saved and {steps[-1:]} was done"
    return ""


def restarts(options: argparse.Namespace) -> int:
    """Kill ranks of jobs that train, until there were enough kills; the number of jobs with something wrong."""
    choose, wrong, kills, jobs = random.Random(options.seed), 0, list[tuple[float, int]](), 0
    alone, _, what = kill_in_training(options.ranks, 0, choose, None)
    if what:
        raise SystemExit(what)
    while len(kills) < options.kills:
        most = min(options.restarts, options.kills - len(kills))
        _, found, what = kill_in_training(options.ranks, most, choose, alone)
        jobs, kills, wrong = jobs + 1, [*kills, *found], wrong + bool(what or any(s > LIMIT for s, _ in found))
        print(f"job {jobs}, {len(kills)} kills: " + ", ".join(f"{s:.2f} s and {lost} steps" for s, lost in found), what,
              flush=True)
    times, lost = sorted(s for s, _ in kills), [n for _, n in kills]
    print(f"{len(kills)} kills of one of {options.ranks} ranks in {jobs} jobs: {wrong} wrong; the job starts again "
          f"{times[len(times) // 2]:.2f} s later in the median, {times[-1]:.2f} s at most; {max(lost)} steps lost at "
          f"most, with a checkpoint every {EVERY}; weights and state of all jobs have the bits of one without a kill"
          if not wrong else f"{wrong} of {jobs} jobs were wrong")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--restarts", type=int, default=0, metavar="K", help="jobs that train, with K kills each")
    options = parser.parse_args()
    if options.restarts:
        return 1 if restarts(options) else 0
    choose, times, wrong = random.Random(options.seed), list[float](), 0
    for number in range(options.kills):
        seconds, what = kill_one(options.ranks, choose)
        times.append(seconds)
        wrong += bool(what) or seconds > LIMIT
        print(f"{number + 1}: {seconds:.2f} s {what}", flush=True)
    print(f"{options.kills} kills of one of {options.ranks} ranks: {wrong} wrong; the job ends "
          f"{sorted(times)[len(times) // 2]:.2f} s later in the median, {max(times):.2f} s at most")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
