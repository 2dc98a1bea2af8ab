"""From a new process to the first result of a program that this machine has compiled before.

Run `python -m mlc.tools.bench.warm_start`. The program is one training step of an MLP (64-128-64-10, cross-entropy,
AdamW, batch 64). The first process fills an empty cache; of the others the fastest counts, with its parts. On a machine
that others use, too, look at the processor's time and not at the clock's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from mlc.tools.bench.startup import MODEL, environment, processor_seconds

PROGRAM = """
import time
start = time.perf_counter()
import numpy as np
numpy = time.perf_counter()
import mlc
import mlc.nn.functional as F
mlc.Tensor
imported = time.perf_counter()
""" + MODEL + """
made = time.perf_counter()
compiled = mlc.compile(step, donate=("params", "state"))
wrapped = time.perf_counter()
compiled(params, state, x, y)
done = time.perf_counter()
import json, sys
from mlc.backends import cache
print(json.dumps({
    "import numpy": numpy - start, "import mlc": imported - numpy, "the program's own data": made - imported,
    "mlc.compile": wrapped - made, "first call: record, key, load, run": done - wrapped,
    "misses": cache.store().misses, "LLVM loaded": "llvmlite.binding" in sys.modules}))
"""


def measure(repeat: int = 5) -> tuple[float, float, dict[str, Any]]:
    """Seconds of the first process, of the fastest of the others, and what that one spent them on."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**environment(folder), "MLC_CACHE_DIR": os.path.join(folder, "cache"), "MLC_CACHE": "1"}
        runs = []
        for _ in range(repeat + 1):
            before, start = processor_seconds(), time.perf_counter()
            done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, env=env)
            wall = time.perf_counter() - start
            runs.append((wall, {"processor": processor_seconds() - before, **json.loads(done.stdout)}))
    warm = min(runs[1:], key=lambda run: run[0])
    return runs[0][0], warm[0], warm[1]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.bench.warm_start", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    options = parser.parse_args(arguments)
    cold, warm, parts = measure()
    if options.json:
        print(json.dumps({"cold": cold, "warm": warm, "parts": parts}))
        return 0
    print(f"{'first process, nothing cached':32s} {cold * 1e3:8.1f} ms\n{'later process':32s} {warm * 1e3:8.1f} ms")
    for name, seconds in parts.items():
        shown = f"{seconds * 1e3:8.1f} ms" if isinstance(seconds, float) else f"{seconds!s:>8s}"
        print(f"    {name:36s} {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
