"""mlc judged by damaged model files, each of which has to be one error, or to be loaded; README.md has the verdicts.

    python -m tests.peers.mutated_files [--count N] [--seed S] [--format onnx,stablehlo,bytecode,pt2] [--valid]
                                        [--log FILE [--resume]] [--keep FOLDER] [--limit SECONDS] [--memory MIB]
                                        [--checkout FOLDER]

The file of a seed is made from the seed alone: `--seed 17 --count 1 --format onnx --keep .` makes number 17 again.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import linecache
import multiprocessing
import os
import random
import re
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import mlc
from mlc.tools import cli
from mlc.tools.fuzzing.interpreted import interpreted
from tests.peers import mutations
from tests.peers.mutated_sources import SOURCES, checkout

VERDICTS = ("loads", "refused", "traceback", "unclear", "memory", "timeout", "crash")
GOOD = ("loads", "refused")
ENDINGS = {"onnx": ".onnx", "stablehlo": ".stablehlo.mlir", "bytecode": ".mlirbc", "pt2": ".pt2"}
CODE = re.compile(r"MLC\d{4}")
TASKS = 400
"""Files that a process loads before another takes its place."""


def mutated(format: str, data: bytes, rng: random.Random) -> bytes:
    """A valid file, changed: its structure most of the time, else its bytes."""
    if format == "bytecode" or rng.random() < 0.25:
        return mutations.of_bytes(data, rng)
    if format == "onnx":
        return mutations.of_model(data, rng)
    if format == "pt2":
        return mutations.of_zip(data, rng)
    return mutations.of_text(data.decode(), rng).encode("utf-8", "surrogatepass")


def file_of(format: str, sources: list[tuple[str, bytes]], seed: int) -> tuple[str, bytes, bool]:
    """The name of the source, the bytes, and whether `mlc import` reads them, for a seed."""
    rng = random.Random(f"{format} {seed}")
    name, data = rng.choice(sources)
    return name, mutated(format, data, rng), rng.random() < 0.25


# -- one file ---------------------------------------------------------------------------------------------------------
def load(path: Path, format: str) -> tuple[str, str]:
    """The verdict on loading a file, as a program does it."""
    try:
        if format == "onnx":
            mlc.onnx.load(path)                            # which records it, too, if its arguments have types
        elif format == "pt2":
            from mlc.torch import export
            mlc.lower(export(path), level="trace")
        else:
            mlc.lower(mlc.stablehlo.load(path), level="trace")
        return "loads", ""
    except mlc.UserError as error:
        lines = error.message.count("\n") + 1
        if not CODE.fullmatch(error.code) or lines > 1 or not error.message.strip() or len(error.message) > 2000:
            return "unclear", f"{error.code}: {lines} lines of {len(error.message)} characters: {error.message[:500]}"
        return "refused", f"{error.code} {error.message[:200]}"
    except MemoryError:
        return "memory", traceback.format_exc(limit=-4)
    except Exception as error:                             # the judge reports what mlc does not catch
        return "traceback", f"{type(error).__name__}: {error}"[:300] + "\n" + traceback.format_exc(limit=-6)


def imported(path: Path) -> tuple[str, str]:
    """The verdict on `mlc import FILE`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(["import", str(path)])
    said = err.getvalue()
    errors = re.findall(r"^(?:\S+:\d+(?::\d+)?: )?error\[(\w+)\]", said, re.M)
    if status == 0 and not said:
        return "loads", ""
    if "Traceback" in said or status not in (0, 1, 2):
        return "traceback", said[:1500]
    if "MLC0328" in errors:
        return "memory", said[:1500]
    if not errors and status == 1 and not said:
        return "refused", "the operations are listed"
    if len(errors) != 1 or not CODE.fullmatch(errors[0]) or \
            any(line and not line.startswith("  ") for line in said.splitlines()[1:]):
        return "unclear", f"{len(errors)} errors: {said[:500]}"
    return "refused", said.splitlines()[0].removeprefix(f"{path}:")[:200]


def _work(pipe: Any, memory: int, folder: str) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    inner = Path(folder) / "model"
    inner.mkdir(exist_ok=True)
    for place in (Path(folder), inner):
        (place / "weights.bin").write_bytes(bytes(range(64)))
    with interpreted():
        while (task := pipe.recv()) is not None:
            format, data, command = task
            path = inner / f"file{ENDINGS[format]}"
            path.write_bytes(data)
            linecache.clearcache()                         # of the file before, which had the same name
            pipe.send(imported(path) if command else load(path, format))


class Worker:
    """A process that loads one file after the other, with limits of time and memory, and is replaced if it ends."""

    def __init__(self, limit: float, memory: int, folder: str) -> None:
        self.limit, self.memory, self.folder = limit, memory, folder
        self.process: Any = None
        self.tasks = 0

    def verdict(self, format: str, data: bytes, command: bool) -> tuple[str, str]:
        """The verdict on a file."""
        if self.process is None or self.tasks >= TASKS:
            self.stop()
            context = multiprocessing.get_context("fork")
            self.pipe, other = context.Pipe()
            self.process = context.Process(target=_work, args=(other, self.memory, self.folder), daemon=True)
            self.process.start()
            other.close()
            self.tasks = 0
        self.tasks += 1
        try:
            self.pipe.send((format, data, command))
            if not self.pipe.poll(self.limit):
                self.stop()
                return "timeout", f"more than {self.limit:g} seconds"
            found: tuple[str, str] = self.pipe.recv()
            return found
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode
            self.stop()
            return "crash", f"the process ended with {code}"

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


# -- all of them ------------------------------------------------------------------------------------------------------
def judge(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The verdicts on all files that the options ask for; those in the log are not judged again."""
    done = {}
    if options.resume and options.log and options.log.exists():
        done = {(r["format"], r["seed"]): r for r in map(json.loads, options.log.read_text().splitlines())}
    log = options.log.open("a" if options.resume else "w") if options.log else None
    results = list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        for format in options.format.split(","):
            sources = SOURCES[format]()
            if format == "stablehlo" and options.checkout:
                sources = sources + checkout(options.checkout)
            worker = Worker(options.limit, options.memory << 20, folder)   # after its sources, which it need not make
            count = len(sources) if options.valid else options.count
            for seed in range(options.seed, options.seed + count):
                if (format, seed) not in done:
                    name, data, command = (*sources[seed - options.seed], False) if options.valid else \
                        file_of(format, sources, seed)
                    start = time.perf_counter()
                    verdict, note = worker.verdict(format, data, command)
                    done[format, seed] = {
                        "format": format, "seed": seed, "source": name, "command": command, "verdict": verdict,
                        "note": note, "s": round(time.perf_counter() - start, 2)}
                    if log:
                        log.write(json.dumps(done[format, seed]) + "\n")
                        log.flush()
                    if options.keep and (verdict not in GOOD or options.count == 1):
                        options.keep.mkdir(parents=True, exist_ok=True)
                        (options.keep / f"{format}-{seed}{ENDINGS[format]}").write_bytes(data)
                results.append(done[format, seed])
            worker.stop()
    return results


def summary(results: list[dict[str, Any]], show: int) -> str:
    """The failures, equal ones once, and how many files of each format have which verdict."""
    lines = []
    failures: dict[tuple[str, str, str], list[dict[str, Any]]] = collections.defaultdict(list)
    for r in results:
        if r["verdict"] not in GOOD:
            place = re.findall(r'File ".*?([\w/]+\.py)", line (\d+)', r["note"])[-1:]
            reason = re.sub(r"\d+", "N", r["note"].split("\n")[0])[:100]
            failures[r["verdict"], reason if not place else ":".join(place[0]), r["format"]].append(r)
    for (verdict, _, format), found in sorted(failures.items(), key=lambda x: -len(x[1])):
        lines += [f"{verdict}, {format}, {len(found)} times: seeds {[r['seed'] for r in found][:show]} "
                  f"({found[0]['source']})", *("    " + line for line in found[0]["note"].splitlines()[-14:])]
    for format in dict.fromkeys(r["format"] for r in results):
        own = [r for r in results if r["format"] == format]
        counts = collections.Counter(r["verdict"] for r in own)
        codes = collections.Counter(m[0] for r in own if r["verdict"] == "refused" and (m := CODE.search(r["note"])))
        lines.append(f"{format}: {len(own)} files: " + ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v])
                     + f"; {sum(r['s'] for r in own):.0f} s, at most {max((r['s'] for r in own), default=0):.1f} s; "
                     + ", ".join(f"{c} {n}" for c, n in codes.most_common(8)))
    return "\n".join(lines)


def main() -> int:
    """Judge the files, and print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500, help="files of each format")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--format", default="onnx,stablehlo,bytecode,pt2")
    parser.add_argument("--valid", action="store_true", help="the valid files themselves, all of which should load")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--resume", action="store_true", help="pass over the seeds in the log")
    parser.add_argument("--keep", type=Path, help="folder for the files that fail")
    parser.add_argument("--limit", type=float, default=30, help="seconds for a file")
    parser.add_argument("--memory", type=int, default=2048, help="MiB of addresses for a process beyond what it has")
    parser.add_argument("--checkout", type=Path, help="a checkout of StableHLO, whose tests are mutated, too")
    parser.add_argument("--show", type=int, default=5, help="seeds shown per failure")
    options = parser.parse_args()
    results = judge(options)
    print(summary(results, options.show))
    return int(any(r["verdict"] not in GOOD for r in results))


if __name__ == "__main__":
    sys.exit(main())
