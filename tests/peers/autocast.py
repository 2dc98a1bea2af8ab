"""Judge `mlc.autocast` by PyTorch's on the CPU: the dtypes of results, and trainings in bfloat16.

    python -m tests.peers.autocast [--only REGEX] [--samples N]

Each operator of PyTorch's database that both have runs on float32 and on bfloat16 in the scope of autocast. Then small
models are trained for 20 steps under both frameworks, eagerly and in a compiled step, from the same parameters.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import mlc
from mlc.checked import Meaning
from mlc.frontend import eager
from mlc.ir.diag import Error
from tests.peers.opinfo_entries import ours
from tests.peers.opinfo_values import as_mlc, leaves

TOLERANCE = 0.03
"""Relative difference of losses in bfloat16."""


def converted(x: Any, dtype: torch.dtype) -> Any:
    if isinstance(x, torch.Tensor):
        return x.detach().to(dtype) if x.dtype == torch.float32 else x
    if isinstance(x, tuple | list):
        return type(x)([converted(v, dtype) for v in x])
    return {n: converted(v, dtype) for n, v in x.items()} if isinstance(x, dict) else x


def as_ours(x: Any) -> Any:
    if isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16:
        return mlc.tensor(x.float().numpy()).to(mlc.bfloat16)
    if isinstance(x, tuple | list):
        return type(x)([as_ours(v) for v in x])
    return as_mlc(x)


def dtypes_of(x: Any) -> list[str]:
    return [str(t.dtype).partition(".")[2] for t in leaves(x) if hasattr(t, "dtype")]


def judged(entry: Any, dtype: torch.dtype, count: int) -> tuple[str, str]:
    """The verdict on an operator for operands of a dtype: whether its results have the dtypes of PyTorch's."""
    f, verdict = ours(entry), ("no sample", "")
    if f is None:
        return "missing", ""
    for sample in list(entry.sample_inputs("cpu", torch.float32))[:count]:
        args, keywords = converted([sample.input, *sample.args], dtype), converted(sample.kwargs, dtype)
        try:
            with torch.autocast("cpu", torch.bfloat16):
                wanted = dtypes_of(entry.op(*args, **keywords))
        except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError):
            continue
        try:
            with mlc.autocast("cpu"):
                found = dtypes_of(f(*map(as_ours, args), **{n: as_ours(v) for n, v in keywords.items()}))
            before = dtypes_of(f(*map(as_ours, args), **{n: as_ours(v) for n, v in keywords.items()}))
            plain = dtypes_of(entry.op(*args, **keywords))
        except (Error, RuntimeError, TypeError, ValueError, AttributeError, NotImplementedError) as error:
            verdict = "no sample", str(error).splitlines()[0][:100]
            continue
        if before != plain:                                # they differ without autocast too
            verdict = "no sample", f"{before} for {plain} without autocast"
        elif found != wanted:
            return "differs", f"{found} for {wanted}"
        else:
            return "pass", "casts" if wanted != plain else ""
    return verdict


def operators(only: str, count: int) -> None:
    counts = Counter[str]()
    for entry in op_db:
        if not re.search(only, entry.name):
            continue
        for dtype in (torch.float32, torch.bfloat16):
            verdict, found = judged(entry, dtype, count)
            counts[verdict] += 1
            counts["pass, with casts"] += found == "casts"
            if verdict == "differs":
                print(f"differs: {entry.name} {entry.variant_test_name} of {dtype}: {found}", flush=True)
    print(", ".join(f"{n} {verdict}" for verdict, n in counts.items()))


def mlp(library: Any) -> Any:
    nn = library.nn
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))


def cnn(library: Any) -> Any:
    nn = library.nn
    return nn.Sequential(nn.Unflatten(1, (2, 2, 2)), nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(),
                         nn.AvgPool2d(2), nn.Flatten(), nn.Linear(6, 4))


def transformer(library: Any) -> Any:
    nn = library.nn
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Unflatten(1, (1, 8)), layer, nn.Flatten(), nn.Linear(8, 4))


def losses(library: Any, model: Any, compiled: bool = False) -> list[float]:
    """The losses of 20 steps under autocast."""
    rng = np.random.default_rng(0)
    x = library.tensor(rng.standard_normal((32, 8)).astype(np.float32))
    y = library.tensor(rng.integers(0, 4, 32))
    optimizer = library.optim.Adam(model.parameters(), lr=1e-2)
    forward = mlc.compile(model) if compiled else model
    found = []
    for _ in range(20):
        optimizer.zero_grad()
        with library.autocast("cpu", dtype=library.bfloat16):
            loss = library.nn.functional.cross_entropy(forward(x), y)
        loss.backward()
        assert all(p.grad.dtype == library.float32 for p in model.parameters())
        optimizer.step()
        found.append(loss.item())
    return found


def trainings() -> None:
    for make in (mlp, cnn, transformer):
        torch.manual_seed(0)
        theirs = make(torch)
        start = {n: x.clone() for n, x in theirs.state_dict().items()}
        wanted = losses(torch, theirs)
        for compiled in (False, True):
            mine = make(mlc)
            mine.load_state_dict({n: as_mlc(x) for n, x in start.items()})
            found = losses(mlc, mine, compiled)
            worst = max(abs(a - b) / abs(b) for a, b in zip(found, wanted))
            print(f"{'pass' if worst < TOLERANCE else 'differs':8} {make.__name__:12} "
                  f"{'compiled' if compiled else 'eager':9} {found[0]:.4f} -> {found[-1]:.4f}, in PyTorch "
                  f"{wanted[0]:.4f} -> {wanted[-1]:.4f}, relative difference up to {worst:.1e}", flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.peers.autocast", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression for names of operators")
    parser.add_argument("--samples", type=int, default=4, help="most samples of an operator")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with eager.compiled_by(lambda module, where: Meaning(module)):
        operators(options.only, options.samples)
    trainings()


if __name__ == "__main__":
    main(sys.argv[1:])
