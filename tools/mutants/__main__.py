"""Seeded faults, one at a time: what `mlc run --check` and the tests make of each.

    python -m mlc.tools.mutants --log faults.jsonl --only rule --every 4

Each is applied in a copy of the tree and run in a process of its own. What --check does not see, the fuzzer is asked,
and then the tests that go with the file. The log holds a line per fault; those in it are not run again.
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
from pathlib import Path
from typing import Any

from mlc.ir.files import write_text
from mlc.tools import files, report
from mlc.tools.mutants import FAULTS, UNSEEN, Fault

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", "examples", ".*_cache")
TESTS = {"passes/differentiate": "test_grad test_transforms", "dialects/expansions": "test_expansions test_corners",
         "dialects/tensor": "cases/fuse cases/canonicalize test_affine test_registry test_tensor_ops "
                            "test_corners test_index test_fuse",
         "dialects/arith": "test_low_dialects test_scf_to_llvm",
         "passes/fuse": "test_fuse test_bufferize", "passes/bufferize": "test_bufferize",
         "dialects/combining.py": "test_registry",
         "passes/fix_numerics/__init__.py": "test_expansions test_meaning",
         "passes/tensor_to_loop": "test_tensor_to_loop", "passes/coalesce_dimensions.py": "test_vectorize",
         "passes/vectorize": "test_vectorize", "passes/parallelize.py": "test_threads test_vectorize",
         "passes/schedule": "test_vectorize test_loop_schedule test_edited_schedules test_interleaved",
         "passes/loop_to_scf": "test_loop_to_scf", "passes/scf_to_llvm": "test_scf_to_llvm",
         "passes/loop_to_gpu": "cases/loop test_gpu test_gpu_rows test_warps", "passes": "test_passes_basic",
         "passes/tensor_to_loop/flash.py": "test_gpu_attention", "passes/block_attention.py": "test_block_attention",
         "passes/schedule/attention_gpu.py": "test_gpu_attention test_gpu_rows",
         "passes/schedule/tiles_cpu.py": "test_amx test_byte_tiles test_vectorize",
         "passes/fuse/epilogues.py": "test_fuse test_gpu",
         "frontend/indexed_writes.py": "test_fuzz test_views test_autograd",
         "frontend/loop_carried.py": "test_fuzz test_script test_control_flow",
         "passes/assign_layouts.py": "test_frozen", "backends/cpu": "test_wrapper test_calls",
         "passes/lower_kernel": "cases/loop_to_scf test_loop_to_scf test_vectorize test_frozen test_interleaved "
                                "test_gguf",
         "passes/lower_to_llvm": "test_scf_to_llvm test_low_dialects", "backends/cpu/captured": "test_captured_changes",
         "backends/cpu/pattern": "test_dispatch test_calls", "frontend/autograd": "test_autograd test_views",
         "backends/cpu/support.py": "test_dispatch test_captured_changes test_wrapper",
         "frontend/autocast.py": "test_amp", "frontend/functions/sparse": "test_sparse",
         "frontend/functionalization.py": "test_views test_script", "frontend/captures.py": "test_captured_changes",
         "mlc/fast_path.py": "test_captured_changes test_split_joint",
         "passes/split_joint.py": "test_split_joint", "mlc/call.py": "test_amp test_compiled_step",
         "mlc/dispatch_cache.py": "test_captured_inputs",
         "backends/fingerprint.py": "test_fingerprint", "backends": "test_scf_to_llvm test_link",
         "frontend/functions": "test_public_functions test_operators test_corner_shapes",
         "frontend/functions/random": "test_random test_public_functions", "dialects/tensor/linalg": "test_linalg",
         "dialects/tensor/parts.py": "test_complex", "passes/combine_collectives.py": "test_shard",
         "frontend/leaf_keys.py": "test_reach", "frontend/script/reach": "test_reach",
         "frontend": "test_script test_control_flow test_grammar", "mlc": "test_reach test_cache",
         "mlc/frozen.py": "test_frozen", "dialects/tensor/fourier.py": "test_fft",
         "ir": "test_affine test_ir test_sizes"}
"""The tests that one would run after a change, by the place of the file: the longest that fits."""


def suites_of(file: str) -> list[str]:
    """The tests of a file, and the cases of its pass or dialect."""
    place = max((p for p in TESTS if file.startswith(p)), key=len)
    cases = f"tests/cases/{file.split('/')[1].removesuffix('.py')}"
    named = (f"tests/{name}" if name.startswith("cases/") else f"tests/{name}.py" for name in TESTS[place].split())
    return [*named, *([cases] if (ROOT / cases).is_dir() else [])]


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


def tried(fault: Fault, tree: Path, limit: float, fuzz: float, tests: bool) -> dict[str, Any]:
    """Apply one fault, run the checks on it and return the outcome."""
    path = tree / fault.file
    before = path.read_text()
    write_text(path, fault.applied(before))
    row: dict[str, Any] = {"fault": fault.name, "area": fault.area, "blame": fault.blame, "rule": fault.rule,
                           "by": "slipped"}
    try:
        before_it = spent()
        status, out = run(["-m", "mlc.tools.mutants.trial", "--area", fault.area, "--ops", ",".join(fault.ops)], tree,
                          limit)
        row["seconds"] = round(spent() - before_it, 1)
        found = _result(out)
        if found is None and status in (0, None):
            command = ["-m", "mlc.tools.cli", "fuzz", "--time", str(fuzz), "--count", "1000000"]
            if fuzz and status == 0 and run(command, tree, fuzz + limit)[0]:
                row["by"] = "fuzz"
            elif tests and run(["-m", "pytest", "-n", "0", "-x", "-q", *suites_of(fault.file)], tree, 4 * limit)[0]:
                row["by"] = "tests"
            elif status is None:
                row["by"] = "time limit"
            return row
        where, message = found or ("", out[-1500:])
        row |= {"by": "check", "where": where, "message": message[:1500], "pass named": named_pass(fault, message),
                "rule named": bool(fault.rule) and fault.rule.removeprefix("tensor.") in message}
        return row
    finally:
        write_text(path, before)


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
    by = {kind: sum(r["by"] == kind for r in rows) for kind in ("check", "fuzz", "tests", "time limit", "slipped")}
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
    p.add_argument("--limit", type=float, default=90, help="seconds of processor time for one")
    p.add_argument("--fuzz", type=float, default=0, metavar="SECONDS", help="then `mlc fuzz` for so long")
    p.add_argument("--tests", action="store_true", help="and run the tests where those see nothing")
    options = p.parse_args()
    log = options.log
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    known = {r["fault"] for r in rows}
    wanted = [f for f in (UNSEEN if options.unseen else FAULTS) if options.only in f.name][:: options.every]
    random.Random(0).shuffle(wanted)                       # what has been run when it is stopped is a fair part
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, symlinks=True, ignore=LEFT_OUT)
        for fault in wanted:
            if fault.name in known:
                continue
            rows.append(tried(fault, tree, options.limit, options.fuzz, options.tests))
            write_text(log, "".join(json.dumps(row) + "\n" for row in rows))
            print(rows[-1]["by"], rows[-1].get("pass named", ""), rows[-1]["seconds"], fault.name, flush=True)
    names = {f.name for f in wanted}
    print("\n".join(totals(r for r in rows if r["fault"] in names)))


if __name__ == "__main__":
    main()
