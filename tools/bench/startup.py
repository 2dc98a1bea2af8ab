"""How long it takes to start: `mlc --help`, `import mlc` over `import numpy`, and the first call of a training step.

Run `python -m mlc.tools.bench.startup`. Each is a new process; the least of several runs counts. The training step
(an MLP 64-128-64-10, cross-entropy, AdamW, batch 64) is compiled cold: nothing is cached between processes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence

STEP = """
import time
import numpy as np
import mlc
import mlc.nn.functional as F
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
compiled = mlc.compile(step, donate=("params", "state"))
start = time.perf_counter()
params, state, value = compiled(params, state, x, y)
print(time.perf_counter() - start)
start = time.perf_counter()
for _ in range(200):
    params, state, value = compiled(params, state, x, y)
print((time.perf_counter() - start) / 200)
"""


def seconds(command: Sequence[str], repeat: int = 7) -> float:
    """The least wall time of a process."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def measure() -> dict[str, float]:
    """Milliseconds."""
    python = [sys.executable, "-c"]
    numpy, mlc, used = (seconds([*python, code]) for code in ("import numpy", "import mlc", "import mlc; mlc.Tensor"))
    steps = [subprocess.run([*python, STEP], check=True, capture_output=True, text=True).stdout.split()
             for _ in range(3)]
    return {"python -c ''": seconds([*python, ""]) * 1e3,
            "mlc --help": seconds([sys.executable, "-m", "mlc.tools.cli", "--help"]) * 1e3,
            "import numpy": numpy * 1e3, "import mlc": mlc * 1e3,
            "first name of mlc, over numpy": (used - numpy) * 1e3,
            "first training step (cold compile)": min(float(s[0]) for s in steps) * 1e3,
            "each further step": min(float(s[1]) for s in steps) * 1e3}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.bench.startup", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    options = parser.parse_args(arguments)
    found = measure()
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:36s} {value:9.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
