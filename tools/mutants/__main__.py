"""Seeded faults, one at a time: what `mlc run --check` and the tests make of each.

    python -m mlc.tools.mutants --log faults.jsonl --only rule --every 4
    python -m mlc.tools.mutants --log made.jsonl --index lines.sqlite --random 200 --places passes/fuse

Each is applied in a copy of the tree and run in a process of its own. What --check does not see, the fuzzer is asked,
and then the tests that run the changed lines, by an index that `lines_run.py` makes. Faults made by rule (`--random`)
are for the tests alone. The log holds a line per fault; those in it are not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mlc.ir.files import write_text
from mlc.tools import files, report
from mlc.tools.mutants import FAULTS, UNSEEN, Fault, generated
from mlc.tools.mutants.lines_run import Index

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache")
KINDS = ("check", "fuzz", "tests", "tests, by time", "time limit", "slipped")
"""The ways to find a fault; "time limit" is that of --check, where nothing else was run or saw it."""
STARTING = 20
"""Seconds that starting the tests takes, at most."""


def run(command: Sequence[str], tree: Path, seconds: float) -> tuple[int | None, str]:
    """(exit status, None past the time limit; what it printed) of a command in a tree, in a session of its own.

    The limit is of processor time, which other programs on the machine do not change; a command that waits for ever
    ends after ten times as long.
    """
    env = {**os.environ, "PYTHONPATH": str(tree), "MLC_CACHE": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    cpu = math.ceil(seconds)
    process = subprocess.Popen([sys.executable, *command], cwd=tree, env=env, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1)))
    try:
        out, _ = process.communicate(timeout=10 * seconds)
        return None if process.returncode == -signal.SIGXCPU else process.returncode, out
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]


def spent() -> float:
    """Processor seconds of the processes run so far: what one takes on a machine that does nothing else."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass
class Search:
    """Looks for faults in a copy of the tree.

    limit    seconds of processor time for --check
    fuzz     then for the fuzzer
    index    which tests run which lines; None: tests are not run
    seconds  how long those of one fault take, without it
    """

    tree: Path
    limit: float
    fuzz: float
    index: Index | None
    seconds: float
    sound: dict[str, bool] = field(default_factory=dict)
    """Whether a test that has failed passes in this tree without a fault."""

    def tried(self, fault: Fault, checks: bool = True) -> dict[str, Any]:
        """Apply one fault, run the checks on it and return the outcome."""
        path = self.tree / fault.file
        before = path.read_text()
        write_text(path, fault.applied(before))
        row: dict[str, Any] = {"fault": fault.name, "area": fault.area, "blame": fault.blame, "rule": fault.rule,
                               "by": "slipped", "seconds": 0}
        try:
            if checks and not self.by_check(fault, row):
                return row
            if self.fuzz:
                command = ["-m", "mlc.tools.cli", "fuzz", "--time", str(self.fuzz), "--count", "1000000"]
                if run(command, self.tree, self.fuzz + self.limit)[0]:
                    return row | {"by": "fuzz"}
            if self.index is not None:
                first = before.count("\n", 0, before.index(fault.old)) + 1
                self.by_tests(path, before, fault, self.index.tests(
                    fault.file, first, first + fault.old.rstrip("\n").count("\n"), self.seconds), row)
            return row
        finally:
            write_text(path, before)

    def by_check(self, fault: Fault, row: dict[str, Any]) -> bool:
        """Whether --check finds nothing, and so there is more to do."""
        before_it = spent()
        status, out = run(["-m", "mlc.tools.mutants.trial", "--area", fault.area, "--ops", ",".join(fault.ops)],
                          self.tree, self.limit)
        row["seconds"] = round(spent() - before_it, 1)
        found = _result(out)
        if found is None and status in (0, None):
            row["by"] = "slipped" if status == 0 else "time limit"
            return True
        where, message = found or ("", out[-1500:])
        row |= {"by": "check", "where": where, "message": message[:1500], "pass named": named_pass(fault, message),
                "rule named": bool(fault.rule) and fault.rule.removeprefix("tensor.") in message}
        return False

    def by_tests(self, path: Path, before: str, fault: Fault, tests: list[str], row: dict[str, Any]) -> None:
        """Run tests up to the first that fails, and would not without the fault."""
        row["tests"] = len(tests)
        tests = [t for t in tests if self.sound.get(t, True)]
        while tests:
            status, failed = self.pytest(tests, self.seconds + STARTING)
            if status == pytest.ExitCode.USAGE_ERROR:      # the index is older than a test, or its parameters
                if not failed:
                    raise SystemExit("the index names files of tests that are gone: record it anew")
                tests = [t for t in tests if t.partition("[")[0] != failed]
                continue
            if status is None or not failed:
                if status != 0:                            # it waits for ever, or cannot even be imported
                    row["by"] = "tests, by time" if status is None else "tests"
                return
            if failed not in self.sound:
                write_text(path, before)
                self.sound[failed] = self.pytest([failed], self.seconds + STARTING)[0] == 0
                write_text(path, fault.applied(before))
            if self.sound[failed]:
                row |= {"by": "tests", "test": failed}
                return
            tests = [t for t in tests if self.sound.get(t, True)]

    def pytest(self, tests: list[str], seconds: float) -> tuple[int | None, str]:
        """(exit status, None past three times the limit; the first test that failed, or is none) of some tests."""
        names = self.tree.parent / "tests.txt"
        write_text(names, "".join(f"{t}\n" for t in tests))
        status, out = run(["-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", f"@{names}"], self.tree,
                          3 * seconds)
        failed = re.findall(rf"^(?:FAILED |ERROR |ERROR: not found: {self.tree}/)(.*?)(?: - .*)?$", out, flags=re.M)
        return status, failed[0] if failed else ""


def _result(out: str) -> tuple[str, str] | None:
    lines = [line for line in out.splitlines() if line.startswith('{"found"')]
    found = json.loads(lines[-1])["found"] if lines else None
    return (found[0], found[1]) if found else None


def named_pass(fault: Fault, message: str) -> bool:
    """Whether a message names what is to blame: the pass, or where none is, none but the code, the call, the recorder.
    """
    passes = re.findall(r"pass (\w+)", message)
    if fault.blame:
        return fault.blame in passes[:1]
    return not passes and bool(re.search(r"MLC090[2-5]", message))


def totals(rows: Iterable[dict[str, Any]]) -> list[str]:
    """The table at the end of a run."""
    rows = list(rows)
    by = {kind: sum(r["by"] == kind for r in rows) for kind in KINDS}
    caught = [r for r in rows if r["by"] == "check"]
    ruled = [r for r in caught if r["rule"]]
    out = [f"{len(rows)} faults: " + ", ".join(f"{n} {kind}" for kind, n in by.items())]
    if caught:
        out.append(f"the pass named in {sum(r['pass named'] for r in caught)} of {len(caught)}, the rule in "
                   f"{sum(r['rule named'] for r in ruled)} of {len(ruled)}; the slowest took "
                   f"{max(r['seconds'] for r in rows)} s")
    return out + [f"  slipped: {r['fault']}" for r in rows if r["by"] == "slipped"]


def main() -> None:
    p = argparse.ArgumentParser("mutants", description="Seed faults one by one, and see what finds them.")
    p.add_argument("--log", type=report.output(files.check_output), default="mutants.jsonl",
                   help="what has been found so far, a line of JSON each")
    p.add_argument("--only", default="", help="those whose name holds this")
    p.add_argument("--unseen", action="store_true", help="those made by somebody who had not looked at the checks")
    p.add_argument("--every", type=int, default=1, help="every so manieth only")
    p.add_argument("--limit", type=float, default=90, help="seconds of processor time for --check of one; 0: none")
    p.add_argument("--fuzz", type=float, default=0, metavar="SECONDS", help="then `mlc fuzz` for so long")
    p.add_argument("--index", type=Path, help="and the tests, by this index, where those see nothing")
    p.add_argument("--seconds", type=float, default=60, help="about how long the tests of one fault take")
    p.add_argument("--random", type=int, default=0, metavar="N", help="as many faults made by rule, for the tests")
    p.add_argument("--seed", type=int, default=0, help="which those are")
    p.add_argument("--places", default="", help="and in which files: the beginning of their names")
    options = p.parse_args()
    if options.random and options.index is None:
        p.error("--random needs --index")
    log = options.log
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    known = {r["fault"] for r in rows}
    index = Index(options.index) if options.index is not None else None
    if options.random:
        assert index is not None
        wanted = list(generated.faults(index, options.random, options.seed, options.places))
    else:
        wanted = [f for f in (UNSEEN if options.unseen else FAULTS) if options.only in f.name][:: options.every]
        random.Random(0).shuffle(wanted)                   # what has been run when it is stopped is a fair part
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, symlinks=True, ignore=LEFT_OUT)
        search = Search(tree, options.limit, options.fuzz, index, options.seconds)
        for fault in wanted:
            if fault.name in known:
                continue
            rows.append(search.tried(fault, checks=options.limit > 0 and not options.random))
            write_text(log, "".join(json.dumps(row) + "\n" for row in rows))
            print(rows[-1]["by"], rows[-1].get("pass named", ""), rows[-1].get("test", ""), rows[-1]["seconds"],
                  fault.name, flush=True)
    names = {f.name for f in wanted}
    print("\n".join(totals(r for r in rows if r["fault"] in names)))


if __name__ == "__main__":
    main()
