"""Eager programs in a new process: how long the first call takes, and how many kernels are made for it.

Run `python -m mlc.tools.bench.first_call [NAME ...]`. Each program runs in three processes: with an empty compile cache
and no kernel library, with that cache, and with an empty cache and the kernel library of the installation, if there is
one (`--library FOLDER`: that of a folder).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

PROGRAM = """
import sys, time
from pathlib import Path
import mlc
from mlc.backends import kernel_library
from mlc.frontend import compiler
from mlc.tools.bench.library import Library
from mlc.tools.bench.networks import NETWORKS
from mlc.tools.bench.training import MODELS
name, training, folder = sys.argv[1:]
kernel_library.FOLDER = Path(folder) if folder else kernel_library.FOLDER
a = Library("mlc")
if training:
    step, data = MODELS[name](a)
    call = lambda: step(*data)
else:
    network = NETWORKS[name]
    model, data = network.module(a).eval(), network.data(a, network.batch)
    def call():
        with mlc.no_grad():
            return model(*data)
from mlc.backends.cpu.toolchain import Toolchain
made, compile = [], Toolchain.compile
Toolchain.compile = lambda *args, **named: (made.append(1), compile(*args, **named))[1]
seconds = []
for _ in range(5):
    start = time.perf_counter()
    out = call()
    (out[0] if isinstance(out, tuple) else out).detach().numpy()
    seconds.append(time.perf_counter() - start)
print(seconds[0], min(seconds[1:]), len(made))
"""
PROGRAMS = {"vit_tiny": "", "resnet50": "", "mlp": "training", "gpt": "training", "lenet": "training"}
"""The forward pass of a network, or a training step."""
NO_LIBRARY = os.devnull


def run(name: str, cache: str, library: str) -> tuple[float, float, int]:
    """Seconds of the first call and of the fastest of the others, and the number of modules that were compiled."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, name, PROGRAMS[name], library], check=True, text=True,
                          capture_output=True, env={**os.environ, "MLC_CACHE_DIR": cache, "MLC_CACHE": "1"})
    first, later, made = done.stdout.split()
    return float(first), float(later), int(made)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.bench.first_call", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"programs: {', '.join(PROGRAMS)}")
    parser.add_argument("--library", default="", metavar="FOLDER", help="the kernel library of this folder")
    options = parser.parse_args(arguments)
    print(f"{'':12}{'cache':24}{'first call':>12}{'later':>10}{'compiled':>10}")
    for name in options.names or PROGRAMS:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            for what, cache, library in (("empty, no library", one, NO_LIBRARY), ("filled", one, NO_LIBRARY),
                                         ("empty, with the library", other, options.library)):
                first, later, made = run(name, cache, library)
                print(f"{name:12}{what:24}{first:10.2f} s{later * 1e3:7.1f} ms{made:10}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
