"""Judge the layers of mlc.nn by PyTorch's database of modules; README.md describes the verdicts.

    python -m tests.peers.modules [--only REGEX] [--samples N] [--json FILE] [--resume] [--limit SECONDS]
                                  [--interpreted]

Each sample is a layer with its constructor's arguments and the inputs of a call. The layer of mlc is given PyTorch's
weights; results, the gradients of inputs and parameters, buffers after the call, and the printed forms are compared.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
import warnings
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_modules import module_db

import mlc
from mlc.checked import Meaning
from mlc.frontend import eager
from tests.peers.opinfo import SEVERITY, VERDICTS
from tests.peers.opinfo_values import Result, as_mlc, called, compare, leaves, shown

TOLERANCE = (1e-4, 1e-5)
"""(rtol, atol) of results and gradients in float32."""


def given(x: Any, dtype: torch.dtype = torch.float32) -> Any:
    """An argument in a dtype, with a graph of its own."""
    if isinstance(x, torch.nn.utils.rnn.PackedSequence):
        return torch.nn.utils.rnn.PackedSequence(given(x.data, dtype), *x[1:])
    if isinstance(x, torch.Tensor):
        out = x.detach().clone()
        return (out.to(dtype) if out.is_floating_point() else out).requires_grad_(x.requires_grad)
    if isinstance(x, tuple | list):
        return type(x)([given(v, dtype) for v in x])
    return {n: given(v, dtype) for n, v in x.items()} if isinstance(x, dict) else x


def ours(x: Any, made: dict[int, Any]) -> Any:
    """An argument as a user of mlc passes it; `made` gets the tensor that stands for each one of PyTorch's."""
    if isinstance(x, torch.nn.utils.rnn.PackedSequence):
        return mlc.nn.utils.rnn.PackedSequence(*(ours(v, made) for v in x))
    if isinstance(x, torch.Tensor):
        if id(x) not in made:
            made[id(x)] = as_mlc(x)
            if x.requires_grad:
                made[id(x)].requires_grad_(True)
        return made[id(x)]
    if isinstance(x, torch.nn.Module):
        return as_layer(x)
    if isinstance(x, tuple | list):
        return type(x)([ours(v, made) for v in x])
    if isinstance(x, dict):
        return {n: ours(v, made) for n, v in x.items()}
    if callable(x) and not isinstance(x, type) and hasattr(torch.nn.functional, getattr(x, "__name__", "")):
        return getattr(mlc.nn.functional, x.__name__)
    return as_mlc(x)


def as_layer(x: Any) -> Any:
    """A layer that is an argument of another one, which copies it."""
    if not isinstance(x, torch.nn.TransformerEncoderLayer | torch.nn.TransformerDecoderLayer):
        return layer(type(x).__name__)()
    first, attention = x.linear1, x.self_attn
    return layer(type(x).__name__)(attention.embed_dim, attention.num_heads, first.out_features, x.dropout.p,
                                   ours(x.activation, {}), x.norm1.eps, attention.batch_first, x.norm_first,
                                   first.bias is not None)


def layer(name: str) -> Any:
    return getattr(mlc.nn, name.removeprefix("nn."), None)


def theirs(entry: Any, sample: Any, training: bool, dtype: torch.dtype) -> tuple[Any, Any]:
    """PyTorch's layer, which is made anew with the same weights, and the arguments of the call."""
    torch.manual_seed(0)
    made = sample.constructor_input
    module = entry.module_cls(*given(made.args), **given(made.kwargs)).train(training)
    call = sample.forward_input
    with torch.no_grad():
        if any(isinstance(p, torch.nn.parameter.UninitializedParameter) for p in module.parameters()):
            module(*given(call.args), **given(call.kwargs))
    return module.to(dtype), (given(call.args, dtype), given(call.kwargs, dtype))


def parts(module: Any, args: Any, result: Any) -> list[Any]:
    """The values that are compared: results, the gradients of inputs and parameters, buffers, the printed form."""
    outputs = [x for x in leaves(result) if hasattr(x, "dtype")]
    rng = np.random.default_rng(0)
    loss = 0
    for y in outputs:
        if y.requires_grad:
            w = rng.normal(size=tuple(y.shape))
            loss = loss + (y * (torch.from_numpy(w).to(y.dtype) if isinstance(y, torch.Tensor)
                                else mlc.tensor(w.astype(np.float32)))).sum()
    primals = [x for x in leaves(args) if getattr(x, "requires_grad", False)]
    primals += [p for _, p in module.named_parameters() if p.requires_grad]
    if not isinstance(loss, int):
        loss.backward()
    zero = [p.grad if p.grad is not None else (p * 0).detach() for p in primals]
    return [repr(module), *outputs, *zero, *(b for name, b in module.named_buffers() if name.split(".")[-1] != "key")]


def verdict(entry: Any, sample: Any, training: bool) -> Result | None:
    """The verdict on a sample; None where PyTorch cannot compute it."""
    def expected(dtype: torch.dtype) -> list[Any]:
        module, (args, keywords) = theirs(entry, sample, training, dtype)
        return parts(module, (args, keywords), module(*args, **keywords))

    try:
        wanted = expected(torch.float32)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError):
        return None
    module, (args, keywords) = theirs(entry, sample, training, torch.float32)
    made: dict[int, Any] = {}

    def found() -> list[Any]:
        cls = layer(entry.name)
        mine = cls(*ours(sample.constructor_input.args, made), **ours(sample.constructor_input.kwargs, made))
        mine.train(training).float()
        call = ours(args, made), ours(keywords, made)
        if entry.name.startswith("nn.Lazy"):
            with mlc.no_grad():
                mine(*call[0], **call[1])
        mine.load_state_dict({n: as_mlc(x) for n, x in module.state_dict().items()})
        return parts(mine, call, mine(*call[0], **call[1]))

    failed, got = called(found)
    drops = training and any(getattr(m, "p" if isinstance(m, torch.nn.modules.dropout._DropoutNd) else "dropout", 0.0)
                             not in (0.0, None) for m in module.modules() if not hasattr(m, "norm1"))
    return failed or compare(got, wanted, TOLERANCE, lambda: expected(torch.float64), values=not drops)


def text_of(sample: Any) -> str:
    def call(x: Any) -> str:
        return ", ".join([*map(shown, x.args), *(f"{n}={shown(v)}" for n, v in x.kwargs.items())])
    return f"({call(sample.constructor_input)})({call(sample.forward_input)})"


def judge(entry: Any, n: int) -> dict[str, Any]:
    """The line of an entry: the worst verdict of its samples, and how many have which."""
    begun, counts = time.monotonic(), Counter[str]()
    line = {"entry": entry.name, "verdict": "missing", "found": "", "sample": "", "counts": {}}
    if layer(entry.name) is None:
        return line
    worst: tuple[Result, str] = (("no sample", ""), "")
    warnings.simplefilter("ignore")
    for training in (True, False) if entry.train_and_eval_differ else (True,):
        torch.manual_seed(0)
        inputs = entry.module_inputs_func(entry, device="cpu", dtype=torch.float32, requires_grad=True,
                                          training=training)
        for sample in list(inputs)[:n]:
            if sample.forward_input is None or (result := verdict(entry, sample, training)) is None:
                counts["no sample"] += 1
                continue
            counts[result[0]] += 1
            if worst[0][0] == "no sample" or SEVERITY.index(result[0]) > SEVERITY.index(worst[0][0]):
                worst = result, ("train " if training else "eval ") + text_of(sample)
    return line | {"verdict": worst[0][0], "found": worst[0][1], "sample": worst[1], "counts": dict(counts),
                   "seconds": round(time.monotonic() - begun, 1)}


def work(connection: Any, interpreted: bool) -> None:
    """Judge the entries that arrive at a connection; the child process."""
    torch.set_num_threads(1)
    with eager.compiled_by(lambda module, where: Meaning(module)) if interpreted else nullcontext():
        while True:
            index, n = connection.recv()
            connection.send(judge(module_db[index], n))


def judged(index: int, n: int, interpreted: bool, limit: float, worker: list[Any]) -> dict[str, Any]:
    """The line of an entry from the child process, which is started again if it ends or takes too long."""
    if not worker:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=work, args=(there, interpreted), daemon=True)
        process.start()
        there.close()
        worker += [process, here]
    process, connection = worker
    try:
        connection.send((index, n))
        if connection.poll(limit):
            return connection.recv()  # type: ignore[no-any-return]
        found = f"no answer within {limit:g} s"
    except (EOFError, BrokenPipeError):
        process.join()
        found = f"the process ended with exit code {process.exitcode}"
    process.kill()
    process.join()
    worker.clear()
    return {"entry": module_db[index].name, "verdict": "crash", "found": found, "sample": "", "counts": {}}


def summary(lines: list[dict[str, Any]]) -> str:
    """The counts of the verdicts, then the entries that do not pass."""
    counts = Counter(line["verdict"] for line in lines)
    out = [f"modules ({len(lines)} entries)", *(f"  {v:12} {counts[v]:4}" for v in VERDICTS if counts[v])]
    for line in lines:
        if line["verdict"] not in ("pass", "missing"):
            counted = ", ".join(f"{n} {v}" for v, n in line["counts"].items())
            out += [f"{line['verdict']}: {line['entry']} ({counted})", f"    {line['sample']}", f"    {line['found']}"]
    return "\n".join([*out, "missing: " + " ".join(x["entry"] for x in lines if x["verdict"] == "missing")])


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.peers.modules", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression for names of layers")
    parser.add_argument("--samples", type=int, default=30, help="most samples of a layer, in training and evaluation")
    parser.add_argument("--json", type=Path, help="file that gets a line of JSON for each layer")
    parser.add_argument("--resume", action="store_true", help="leave out layers that are in the file")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a layer")
    parser.add_argument("--interpreted", action="store_true", help="interpret the IR, faster for small samples")
    options = parser.parse_args(arguments)
    lines: list[dict[str, Any]] = []
    if options.json and options.resume and options.json.exists():
        lines = [json.loads(text) for text in options.json.read_text().splitlines()]
    elif options.json:
        options.json.write_text("")
    done = {line["entry"] for line in lines}
    worker: list[Any] = []
    for index, entry in enumerate(module_db):
        if re.search(options.only, entry.name) and entry.name not in done:
            lines.append(judged(index, options.samples, options.interpreted, options.limit, worker))
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
            print(f"{lines[-1]['verdict']:12} {entry.name}", file=sys.stderr, flush=True)
    if worker:
        worker[0].kill()
    print(summary(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
