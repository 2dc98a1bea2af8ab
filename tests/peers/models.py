"""Train twelve models under PyTorch, under mlc eagerly and under mlc with the whole step compiled, and compare losses.

    python -m tests.peers.models [--only REGEX] [--steps N] [--json FILE] [--resume]

The programs are those of `training_programs.py`, with nothing changed for mlc but their imports. The runs start from
the same parameters and get the same batches.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import runpy
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from tests.peers.programs import for_mlc

SOURCE = Path(__file__).parent / "training_programs.py"
TOLERANCE = 1e-4
"""Largest relative difference of two losses that agree, ..."""
GROWTH = 4
"""... or so many times the difference that rounding of the initial parameters makes in PyTorch itself."""
NAMES = re.findall(r"^def (\w+)\(rng, steps\):", SOURCE.read_text(encoding="utf-8"), re.MULTILINE)
Curve = dict[str, Any]
"""The losses of a run, its final parameters, seconds of the first and of a later step, and the error that ended it."""


def programs(library: str, folder: Path) -> dict[str, Any]:
    """The programs, for PyTorch or for mlc; their text is in a file, since mlc compiles from source."""
    text = SOURCE.read_text(encoding="utf-8")
    file = folder / f"programs_{library}.py"
    file.write_text(for_mlc(text) if library == "mlc" else text, encoding="utf-8")
    return runpy.run_path(str(file), run_name=file.stem)["PROGRAMS"]  # type: ignore[no-any-return]


def seconds_per_step(times: list[float]) -> float:
    return float(np.median(times[1:])) if len(times) > 1 else times[0]


def moved(state: dict[str, Any], seed: int) -> dict[str, Any]:
    """The parameters, up to 1e-6 of them larger or smaller: about the rounding error of a gradient in a deep model."""
    rng = np.random.default_rng(seed)
    return {key: (value * (1 + rng.uniform(-1e-6, 1e-6, value.shape))).astype(np.float32)
            if value.dtype == np.float32 else value for key, value in state.items()}


def train(library: str, name: str, steps: int, folder: Path, state: dict[str, Any], compiled: bool = False) -> Curve:
    """One run. `state` gets the initial parameters of the first run, and gives them to the others."""
    of = importlib.import_module(library)
    of.manual_seed(0)
    modules, step, batches = programs(library, folder)[name](np.random.default_rng(1), steps)
    found = {f"{i}.{key}": value for i, m in enumerate(modules) for key, value in m.state_dict().items()}
    if not state:
        state.update({key: value.detach().numpy().copy() for key, value in found.items()})
    for i, module in enumerate(modules):
        module.load_state_dict({key.partition(".")[2]: of.from_numpy(value.copy()) if value.ndim else of.tensor(value)
                                for key, value in state.items() if key.startswith(f"{i}.")})
    run = of.compile(step) if compiled else step
    losses, times, error = list[float](), list[float](), None
    for batch in batches:
        start = time.perf_counter()
        try:
            out = run(*batch)
            losses.append(float((out[0] if isinstance(out, tuple) else out).item()))
        except Exception as problem:                        # which is the answer for this run
            error = f"{type(problem).__name__}: {problem}"
            traceback.print_exc()
            break
        times.append(time.perf_counter() - start)
    final = [p.detach().numpy() for m in modules for p in m.parameters()]
    return {"losses": losses, "final": final, "error": error, "first": times[0] if times else 0.0,
            "later": seconds_per_step(times) if times else 0.0}


def largest(found: Curve, wanted: Curve) -> tuple[float, int]:
    """The largest relative difference of two curves, and its step; infinite where one is shorter."""
    a, b = np.array(found["losses"]), np.array(wanted["losses"])
    if len(a) != len(b) or not len(b):
        return float("inf"), len(a)
    away = np.abs(a - b) / np.maximum(np.abs(b), 1e-3)
    return float(away.max()), int(away.argmax())


def compare(name: str, steps: int) -> dict[str, Any]:
    """The row of a model."""
    state: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        torch = train("torch", name, steps, Path(folder), state)
        others = [train("torch", name, steps, Path(folder), moved(state, seed)) for seed in range(3)]
        eager = train("mlc", name, steps, Path(folder), state)
        compiled = train("mlc", name, steps, Path(folder), state, compiled=True)
    same = sum(a == b for a, b in zip(eager["losses"], compiled["losses"]))
    bits = all(np.array_equal(a, b) for a, b in zip(eager["final"], compiled["final"])) and same == steps
    (of_eager, at_eager), (of_compiled, at_compiled) = largest(eager, torch), largest(compiled, torch)
    errors = [f"{kind}: {run['error']}" for kind, run in (("torch", torch), ("eager", eager), ("compiled", compiled))
              if run["error"]]
    unstable = max(largest(other, torch)[0] for other in others)
    agrees = not errors and max(of_eager, of_compiled) <= max(TOLERANCE, GROWTH * unstable)
    return {"name": name, "steps": steps, "agrees": agrees, "start": torch["losses"][:1], "end": torch["losses"][-1:],
            "eager": of_eager, "at_eager": at_eager, "compiled": of_compiled, "at_compiled": at_compiled,
            "same": same, "bits": bits, "unstable": unstable, "errors": errors,
            "times": [torch["later"], eager["later"], compiled["later"], compiled["first"]]}


def judged(name: str, steps: int, limit: float) -> dict[str, Any]:
    """The row of a model, from a process of its own."""
    command = [sys.executable, "-m", "tests.peers.models", "--one", name, "--steps", str(steps)]
    failed = {"name": name, "steps": steps, "agrees": False}
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return failed | {"errors": [f"it ran for more than {limit:.0f} s"]}
    if child.returncode:
        return failed | {"errors": [f"the process ended with {child.returncode}: {child.stderr[-600:]}"]}
    sys.stderr.write(child.stderr)
    return json.loads(child.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def table(rows: list[dict[str, Any]]) -> str:
    """The rows, aligned: differences are the largest relative ones, with their steps.

    The column "unstable" has the largest difference that PyTorch's own losses have from those of runs with slightly
    other initial parameters. A plus says that the final parameters, too, have the same bits eagerly and compiled.
    """
    out = [f"{'model':10} {'loss':>18} {'eager':>13} {'compiled':>13} {'unstable':>8} {'eager = compiled':>16}  "
           f"ms per step: torch, eager, compiled; s to compile"]
    for row in rows:
        if "start" not in row or not row["start"]:
            out.append(f"{row['name']:10} FAILS")
        else:
            torch, eager, compiled, first = row["times"]
            out.append(f"{row['name']:10} {row['start'][0]:8.4g} to {row['end'][0]:6.4g} "
                       f"{row['eager']:8.1e} @{row['at_eager']:<3} {row['compiled']:8.1e} @{row['at_compiled']:<3} "
                       f"{row['unstable']:8.1e} {row['same']:6} of {row['steps']:<3}{'+' if row['bits'] else ' '} "
                       f"{1e3 * torch:10.1f} {1e3 * eager:8.1f} {1e3 * compiled:8.1f} {first:6.1f}"
                       f"{'' if row['agrees'] else '  DIFFERS'}")
        out += [f"    {error}" for error in row["errors"]]
    agree = sum(row["agrees"] for row in rows)
    return "\n".join([*out, f"{agree} of {len(rows)} models agree at every step"])


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.peers.models", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression for names of models")
    parser.add_argument("--steps", type=int, default=50, help="steps of training")
    parser.add_argument("--json", type=Path, help="file that gets a line of JSON for each model")
    parser.add_argument("--resume", action="store_true", help="leave out models that are in the file")
    parser.add_argument("--limit", type=float, default=900, help="seconds for a model")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(compare(options.one, options.steps)))
        return
    rows: list[dict[str, Any]] = []
    if options.json and options.resume and options.json.exists():
        rows = [json.loads(text) for text in options.json.read_text().splitlines()]
    elif options.json:
        options.json.write_text("")
    done = {row["name"] for row in rows}
    for name in NAMES:
        if re.search(options.only, name) and name not in done:
            rows.append(judged(name, options.steps, options.limit))
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
            print(table(rows[-1:]), file=sys.stderr, flush=True)
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
