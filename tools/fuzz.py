"""mlc fuzz: random programs, invalid inputs, and calls with arbitrary arguments, each generated from a seed.

valid    programs of all tensor operations, of functions with loops and conditions, their derivatives and batches, and
         in Python: the same results at all levels, as native code, however they are run, and in PyTorch if installed
invalid  texts of both languages with mistakes, and operations with arbitrary attributes: accepted or rejected
calls    public functions with arbitrary arguments: accepted or rejected

A failure is reported once, made smaller where a pass is at fault, and left as a file that shows it again: paste it into
tests/cases, with what is to be tested in its first line.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import mlc
from mlc.ir.files import write_text
from mlc.tools import report
from mlc.tools.exit_status import DEFECT, OK
from mlc.tools.fuzzing import batch
from mlc.tools.fuzzing.journal import VERSION, Journal
from mlc.tools.fuzzing.kinds import KINDS, prepare, reduced
from mlc.tools.fuzzing.levels import Failure

EXAMPLES = """examples:
  mlc fuzz --count 5
  mlc fuzz --kind invalid --seed 1000 --count 20
  mlc fuzz --kind calls --count 40 --shard 0/2
"""
BATCH = 400
"""Seeds of one process: what they leave behind in it ends with them."""
SECONDS = {"valid": 60.0, "invalid": 5.0, "calls": 15.0}
"""Timeout of one seed: a valid program may be large, while rejecting an invalid one is quick."""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("fuzz", "Look for defects with random programs, mistakes and calls.", EXAMPLES)
    add = p.add_argument
    add("--kind", choices=[*KINDS], default="valid", help="what to make (default valid)")
    add("--seed", type=int, default=0, metavar="S", help="the first seed (default 0)")
    add("--count", type=int, metavar="N", help="so many seeds (default 1000, or any number with --time)")
    add("--shard", default="0/1", metavar="I/N", help="of these only each N-th, beginning with number I")
    add("--time", type=float, metavar="SECONDS", help="begin no program after so long")
    add("--log", type=report.Output, metavar="FILE",
        help="write down what is done and found, and go on where the file ends")
    add("-o", "--output", type=report.OutputFolder, metavar="FOLDER",
        help="where files that show failures go (default: none are written)")
    return p


def main(options: argparse.Namespace) -> int:
    part, parts = shard_of(options.shard)
    journal = Journal(Path(options.log) if options.log else None)
    first, known = journal.next(options.kind, options.seed, options.shard), journal.failures()
    count = options.count if options.count is not None else None if options.time is not None else 1000
    until = time.monotonic() + options.time if options.time is not None else None
    journal.add(fuzz=VERSION, mlc=mlc.__version__, kind=options.kind, seed=options.seed, shard=options.shard)
    done, seconds, failed = 0, 0.0, 0
    new = dict[str, int]()
    prepare(options.kind)
    for seeds in batches(options.seed, first, count, part, parts):
        if until is not None and time.monotonic() >= until:
            break
        found = batch.run(KINDS[options.kind], seeds, SECONDS[options.kind], until)
        done, seconds, failed = done + found.count, seconds + found.seconds, failed + len(found.failures)
        for seed, failure in found.failures:
            file = ""
            if failure.key not in known:
                known.add(failure.key)
                new[failure.key] = seed
                file = leave(reduced(failure, SECONDS[options.kind]), options.kind, seed, options.output)
                print(f"seed {seed}: {failure.message}\n" + (f"  see {file}\n" if file else ""))
            journal.add(kind=options.kind, found=seed, failure=failure.key, message=failure.message, file=file)
        if found.count:
            journal.add(kind=options.kind, seed=options.seed, shard=options.shard, next=seeds[found.count - 1] + 1,
                        programs=found.count, seconds=round(found.seconds, 2))
    rate = f", {done / seconds:.1f} a second" if seconds else ""
    print(f"{options.kind}: {done} seeds in {seconds:.1f} s{rate}; {failed} failures, {len(new)} of them new")
    return DEFECT if failed else OK


def shard_of(text: str) -> tuple[int, int]:
    """Parse `0/2`: the index of this shard, and the number of shards."""
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and int(part) < int(parts)):
        raise report.usage_error(f"--shard: {text!r} is no part", "write I/N, with I from 0 to N - 1", "MLC0391")
    return int(part), int(parts)


def batches(start: int, first: int, count: int | None, part: int, parts: int) -> Iterator[range]:
    """The seeds of a shard from `first` on, a process's share at a time."""
    seed = first + (part - (first - start)) % parts
    end = None if count is None else start + count
    while end is None or seed < end:
        stop = seed + BATCH * parts
        yield range(seed, stop if end is None else min(stop, end), parts)
        seed = stop


def leave(failure: Failure, kind: str, seed: int, folder: str | None) -> str:
    """Write the reproducer of a failure, if requested; returns its path."""
    if folder is None or not failure.text:
        return ""
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / f"fuzz-{kind}-{seed}{failure.suffix}"
    write_text(path, failure.text)
    return str(path)
