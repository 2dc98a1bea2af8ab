"""Kill a random rank of a job at a random moment, again and again: python -m tests.peers.rank_kills --kills 100

Each job computes collectives for ever under `mlc run --ranks`. It has to end within 10 seconds of the kill, with an
error that names the rank.
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
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAM = """
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
LIMIT = 10.0


def kill_one(ranks: int, choose: random.Random) -> tuple[float, str]:
    """The seconds from the kill to the end of the job; and what was wrong, if anything."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(PROGRAM)
        job = subprocess.Popen([sys.executable, "-m", "mlc.tools.cli", "run", "--ranks", str(ranks), str(program), "--",
                                str(choose.choice([1, 1000, 1_000_000]))],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
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
