"""How long it takes to start: `mlc --help`, `import mlc` over `import numpy`, and the first call of a training step.

Run `python -m mlc.tools.bench.startup`. Each is a new process, and finds Python's bytecode as an installed package
has it; the least of several runs counts. On a machine that others use, too, look at the processor's time and not at the
clock's. The training step (an MLP 64-128-64-10, cross-entropy, AdamW, batch 64) is compiled cold, without the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

MODEL = """
rng = np.random.default_rng(0)
params = [(rng.standard_normal((i, o)).astype("f4") * 0.1, np.zeros(o, "f4"))
          for i, o in ((64, 128), (128, 64), (64, 10))]
opt = mlc.optim.AdamW(lr=1e-3)
def loss(params, x, y):
    for k, (w, b) in enumerate(params):
        x = x @ w + b
        x = mlc.relu(x) if k < 2 else x
    return F.cross_entropy(x, y)
def step(params, state, x, y):
    value, grads = mlc.value_and_grad(loss)(params, x, y)
    params, state = opt.update(grads, state, params)
    return params, state, value
x, y = rng.standard_normal((64, 64)).astype("f4"), rng.integers(0, 10, 64)
state = opt.init(params)
"""
"""A training step and its arguments: an MLP 64-128-64-10, cross-entropy, AdamW, batch 64."""
STEP = """
import time
import numpy as np
import mlc
import mlc.nn.functional as F
""" + MODEL + """
compiled = mlc.compile(step, donate=("params", "state"))
def now():
    return np.array([time.perf_counter(), time.process_time()])
start = now()
params, state, value = compiled(params, state, x, y)
print(*(now() - start))
start = now()
for _ in range(200):
    params, state, value = compiled(params, state, x, y)
print(*((now() - start) / 200))
"""


COMMANDS = {"python -c ''": ["-c", ""], "mlc --help": ["-m", "mlc.tools.cli", "--help"],
            "import numpy": ["-c", "import numpy"], "import mlc": ["-c", "import mlc"],
            "first name of mlc": ["-c", "import mlc; mlc.Tensor"]}


def environment(folder: str) -> dict[str, str]:
    """That of processes that keep their bytecode in a folder."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}


def processor_seconds() -> float:
    """Processor time used so far by child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def least(arguments: Sequence[str], environment: Mapping[str, str], repeat: int = 7) -> tuple[float, float]:
    """Milliseconds of the clock and of the processor that Python takes with these arguments, the least of each."""
    walls, used = [], []
    for _ in range(repeat):
        before, start = processor_seconds(), time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
        walls.append(time.perf_counter() - start)
        used.append(processor_seconds() - before)
    return min(walls) * 1e3, min(used) * 1e3


def measure() -> dict[str, tuple[float, float]]:
    """Milliseconds of the clock and of the processor."""
    with tempfile.TemporaryDirectory() as folder:
        found = {name: least(arguments, environment(folder)) for name, arguments in COMMANDS.items()}
        (wall, used), (numpy_wall, numpy_used) = found["first name of mlc"], found["import numpy"]
        found["the same, over numpy"] = wall - numpy_wall, used - numpy_used
        cold = {**environment(folder), "MLC_CACHE": "0"}
        steps = [[float(x) * 1e3 for x in subprocess.run([sys.executable, "-c", STEP], check=True, capture_output=True,
                                                         text=True, env=cold).stdout.split()] for _ in range(3)]
    for name, column in (("first training step (cold compile)", 0), ("each further step", 2)):
        found[name] = min(s[column] for s in steps), min(s[column + 1] for s in steps)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.bench.startup", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    options = parser.parse_args(arguments)
    found = measure()
    if options.json:
        print(json.dumps(found))
    else:
        print(f"{'milliseconds':36s} {'clock':>9s} {'processor':>9s}")
        for name, (wall, used) in found.items():
            print(f"{name:36s} {wall:9.2f} {used:9.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
