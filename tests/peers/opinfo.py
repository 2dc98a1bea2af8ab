"""Judge mlc by PyTorch's database of operators and sample inputs; README.md describes the verdicts.

    python -m tests.peers.opinfo [--only REGEX] [--samples N] [--kinds forward,inplace,out,view,backward,grad,
                                 gradgrad,jvp,dual,hvp,error,sparse_coo,sparse_csr,sparse_csc,sparse_bsr,sparse_bsc]
                                 [--mode eager|compiled|interpreted|recorded] [--dtype real|complex64|complex128]
                                 [--aliases] [--json FILE] [--resume] [--limit SECONDS]
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import mlc
from mlc.checked import Meaning
from mlc.frontend import eager
from mlc.tools.fuzzing.interpreted import interpreted
from tests.peers import opinfo_derivatives, opinfo_sparse
from tests.peers.opinfo_compositions import COMPOSITIONS
from tests.peers.opinfo_entries import attribute, call_text, is_determined, ours, takes_out, theirs, tolerances
from tests.peers.opinfo_names import OTHER_DERIVATIVES, OTHER_GRADIENTS, UNDETERMINED, without_defaults
from tests.peers.opinfo_values import WIDE, Result, as_mlc, called, compare, is_tensor, leaves, replaced

VERDICTS = ("pass", "missing", "refused", "wrong value", "wrong dtype", "wrong shape", "wrong layout", "accepted",
            "number", "crash", "no sample")
SEVERITY = ("pass", "number", "refused", "accepted", "wrong layout", "wrong shape", "wrong dtype", "wrong value",
            "crash")
"""The verdicts of a sample; the entry has the worst of its samples'."""
KINDS = ("forward", "inplace", "out", "view", *opinfo_derivatives.KINDS, "error", *opinfo_sparse.LAYOUTS)
MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "eager": nullcontext, "compiled": nullcontext, "recorded": interpreted,
    "interpreted": lambda: eager.compiled_by(lambda module, where: Meaning(module))}
"""Operations one by one or functions that are compiled; the last two are the same without machine code."""


def alias(entry: Any, other: Any) -> Any:
    """The entry of another name of an operator."""
    made = copy.copy(entry)
    made.name, made.op, made.inplace_variant, made.aliases = other.name, other.op, other.inplace_variant, ()
    return made


ENTRIES = [*op_db, *(alias(entry, other) for entry in op_db for other in entry.aliases)]


# -- verdicts ---------------------------------------------------------------------------------------------------------
def forward(entry: Any, f: Callable[..., Any], sample: Any, mode: str) -> Result | None:
    """The verdict on the results for a sample; None where PyTorch cannot compute them."""
    try:
        wanted = theirs(entry)(sample.input, *sample.args, **sample.kwargs)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError):
        return None
    precise = sample.transform(lambda x: x.to(WIDE.get(x.dtype, x.dtype)) if isinstance(x, torch.Tensor) else x)
    keywords = as_mlc(without_defaults(sample.kwargs))
    failed, found = called(lambda: _run(f, as_mlc((sample.input, *sample.args)), keywords, mode))
    return failed or compare(found, wanted, tolerances(entry),
                             lambda: theirs(entry)(precise.input, *precise.args, **precise.kwargs),
                             is_determined(entry, sample))


def _run(f: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any], mode: str) -> Any:
    if mode not in ("compiled", "recorded"):
        return f(*args, **keywords)

    def with_tensors(*xs: Any) -> Any:
        given, named = replaced((args, keywords), iter(xs), is_tensor)
        return f(*given, **named)

    return mlc.compile(with_tensors)(*filter(is_tensor, leaves((args, keywords))))


def in_place(entry: Any, f: Callable[..., Any], sample: Any, mode: str) -> Result | None:
    """The verdict on the in-place method: what is in the tensor after it, and that it returns the tensor itself."""
    own = sample.input.clone()
    try:
        entry.inplace_variant(own, *sample.args, **sample.kwargs)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError, IndexError):
        return None
    x = as_mlc(sample.input)
    failed, found = called(lambda: f(x, *as_mlc(sample.args), **as_mlc(without_defaults(sample.kwargs))))
    if failed is None and found is not x:
        return "wrong value", "another tensor is returned"
    precise = sample.transform(lambda x: x.to(WIDE.get(x.dtype, x.dtype)) if isinstance(x, torch.Tensor) else x)
    return failed or compare(x, own, tolerances(entry), lambda: entry.inplace_variant(
        precise.input.clone(), *precise.args, **precise.kwargs), is_determined(entry, sample))


def out(entry: Any, f: Callable[..., Any], sample: Any, mode: str) -> Result | None:
    """The verdict on what is written to `out`, tensors like the results in PyTorch's strides."""
    try:
        wanted = theirs(entry)(sample.input, *sample.args, **sample.kwargs)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError):
        return None
    single = isinstance(wanted, torch.Tensor)
    if not single and not (isinstance(wanted, tuple) and all(isinstance(y, torch.Tensor) for y in wanted)):
        return None
    if not takes_out(entry, f):
        return None
    targets = [as_mlc(torch.zeros_like(y)) for y in leaves(wanted)]
    keywords = as_mlc(without_defaults(sample.kwargs)) | {"out": targets[0] if single else tuple(targets)}
    failed, _ = called(lambda: f(*as_mlc((sample.input, *sample.args)), **keywords))
    precise = sample.transform(lambda x: x.to(WIDE.get(x.dtype, x.dtype)) if isinstance(x, torch.Tensor) else x)
    return failed or compare(targets, wanted, tolerances(entry), lambda: theirs(entry)(
        precise.input, *precise.args, **precise.kwargs), is_determined(entry, sample))


def view(entry: Any, f: Callable[..., Any], sample: Any, mode: str) -> Result | None:
    """The verdict on which memory the results share with the input: what is in both after writes to the results, and
    then to the input."""
    def written(function: Callable[..., Any], x: Any, args: Any, keywords: Any, kind: type) -> list[Any]:
        results = [y for y in leaves(function(x, *args, **keywords)) if isinstance(y, kind)]
        for y in results:
            _write(y)
        between = x.clone()
        _write(x)
        return [between, *results]

    if not isinstance(sample.input, torch.Tensor):
        return None
    try:
        wanted = written(theirs(entry), sample.input.clone(), sample.args, sample.kwargs, torch.Tensor)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError):
        return None
    failed, found = called(lambda: written(f, as_mlc(sample.input), as_mlc(sample.args),
                                           as_mlc(without_defaults(sample.kwargs)), mlc.Tensor))
    return failed or compare(found, wanted, (1e-3, 1e-3), lambda: wanted, is_determined(entry, sample))


def _write(x: Any) -> None:
    x.fill_(False) if str(x.dtype).endswith("bool") else x.mul_(3)


def error(entry: Any, f: Callable[..., Any], sample: Any, mode: str) -> Result | None:
    """The verdict on a call that PyTorch rejects."""
    invalid = sample.sample_input
    failed, _ = called(lambda: _run(f, as_mlc((invalid.input, *invalid.args)), as_mlc(invalid.kwargs), mode))
    if failed is None and any(isinstance(x, int | float) for x in (invalid.input, *invalid.args[:1])) and (
            sample.error_regex == ""):
        return "number", "of an operator that takes tensors only"
    if failed is None:
        return "accepted", f"PyTorch: {sample.error_regex}"
    return ("pass", "") if failed[0] == "refused" else failed


JUDGES: dict[str, Callable[..., Result | None]] = {
    "forward": forward, "inplace": in_place, "out": out, "view": view, "error": error,
    **{kind: functools.partial(opinfo_derivatives.derivative, kind=kind) for kind in opinfo_derivatives.KINDS},
    **dict.fromkeys(opinfo_sparse.LAYOUTS, forward)}


REAL = (torch.float32, torch.int64, torch.bool)


def samples(entry: Any, kind: str, n: int, dtype: str) -> Iterator[Any]:
    """The first n samples of an entry in a complex dtype; "real" is float32 if it takes that, else int64 or
    bool, and float64 for the kinds that are compared in it."""
    torch.manual_seed(0)
    if kind == "error":
        made: Iterable[Any] = entry.error_inputs("cpu") if entry.error_inputs_func is not None else ()
    else:
        known = entry.supported_dtypes("cpu")
        chosen = next((t for t in (REAL if dtype == "real" else (getattr(torch, dtype),)) if t in known), None)
        if kind in ("gradgrad", "jvp", "dual", "hvp") and dtype == "real":
            chosen = torch.float64 if torch.float64 in known else None
        differentiated = kind in opinfo_derivatives.KINDS
        if chosen is None or (differentiated and chosen in REAL[1:]):
            return
        made = opinfo_sparse.samples(entry, kind, chosen) if kind in opinfo_sparse.LAYOUTS else entry.sample_inputs(
            "cpu", chosen, requires_grad=differentiated)
    for _, sample in zip(range(n), made):
        yield sample


def supported(entry: Any, kind: str) -> bool:
    """Whether PyTorch has what is compared."""
    if kind in opinfo_derivatives.KINDS:
        return opinfo_derivatives.supported(entry, kind)
    if kind in opinfo_sparse.LAYOUTS:
        return opinfo_sparse.supported(entry, kind)
    return bool({"inplace": entry.inplace_variant is not None, "out": entry.supports_out,
                 "error": not {entry.formatted_name, entry.name} & set(COMPOSITIONS)}.get(kind, True))


def judge(entry: Any, kind: str, n: int, mode: str, dtype: str = "real") -> dict[str, Any]:
    """The line of an entry: its verdict, how many samples have which, and the first sample with the worst."""
    begun = time.monotonic()
    line: dict[str, Any] = {"entry": entry.formatted_name, "kind": kind, "mode": mode, "dtype": dtype,
                            "verdict": "missing"}
    f = ours(entry)
    if kind == "inplace" and entry.inplace_variant is not None:
        name = getattr(entry.inplace_variant, "__name__", "")
        function = attribute(mlc, entry.name)
        f = getattr(mlc.Tensor, name, None) if name.isidentifier() else function and functools.partial(
            function, inplace=True)
    if not supported(entry, kind):
        return line | {"verdict": "no sample"}
    if f is None:
        return line
    counts: Counter[str] = Counter()
    worst: tuple[Result, str] = (("no sample", ""), "")
    try:
        for sample in samples(entry, kind, n, dtype):
            result = JUDGES[kind](entry, f, sample, mode)
            if result is None:
                counts["no sample"] += 1
                continue
            counts[result[0]] += 1
            if worst[0][0] == "no sample" or SEVERITY.index(result[0]) > SEVERITY.index(worst[0][0]):
                worst = result, call_text(entry, sample.sample_input if kind == "error" else sample)
    except RuntimeError as failure:                        # of PyTorch, as it makes the samples: CUDA is missing
        worst = worst if counts else (("no sample", str(failure)[:200]), "")
    return line | {"verdict": worst[0][0], "found": worst[0][1], "sample": worst[1], "counts": dict(counts),
                   "seconds": round(time.monotonic() - begun, 1)}


# -- the run ----------------------------------------------------------------------------------------------------------
def work(connection: Any) -> None:
    """Judge the entries that arrive at a connection; the child process."""
    torch.set_num_threads(1)
    while True:
        index, *options = connection.recv()
        with MODES[options[2]]():
            connection.send(judge(ENTRIES[index], *options))


def judged(index: int, limit: float, worker: list[Any], *options: Any) -> dict[str, Any]:
    """The line of an entry from the child process, which is started again if it ends or takes too long."""
    if not worker:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=work, args=(there,), daemon=True)
        process.start()
        there.close()
        worker += [process, here]
    process, connection = worker
    try:
        connection.send((index, *options))
        if connection.poll(limit):
            return connection.recv()  # type: ignore[no-any-return]
        found = f"no answer within {limit:g} s"
    except (EOFError, BrokenPipeError):
        process.join()
        found = f"the process ended with exit code {process.exitcode}"
    process.kill()
    process.join()
    worker.clear()
    return {"entry": ENTRIES[index].formatted_name, "kind": options[0], "mode": options[2], "dtype": options[3],
            "verdict": "crash", "found": found, "sample": "", "counts": {}}


def summary(lines: list[dict[str, Any]]) -> str:
    """The table of counts, then the entries that do not pass, those with the shortest sample first."""
    out = []
    for kind in dict.fromkeys(line["kind"] for line in lines):
        of_kind = [line for line in lines if line["kind"] == kind]
        counts = Counter(line["verdict"] for line in of_kind)
        out += [f"{kind} ({len(of_kind)} entries)", *(f"  {v:12} {counts[v]:4}" for v in VERDICTS if counts[v])]
        for verdict in reversed(VERDICTS[2:-1]):
            for line in sorted((x for x in of_kind if x["verdict"] == verdict), key=lambda x: len(x["sample"])):
                counted = ", ".join(f"{n} {v}" for v, n in line["counts"].items())
                out += [f"{verdict}: {line['entry']} ({counted})", f"    {line['sample']}", f"    {line['found']}"]
        out += [verdict + ": " + " ".join(x["entry"] for x in of_kind if x["verdict"] == verdict)
                for verdict in ("missing", "no sample")]
        undetermined = {name.replace(".", "_") for name in UNDETERMINED} | {
            *(OTHER_GRADIENTS if kind in opinfo_derivatives.KINDS else ()),
            *(name for other, name in OTHER_DERIVATIVES if other == kind)}
        compared = [x["entry"] for x in of_kind if x["verdict"] == "pass" and x["entry"] in undetermined]
        out.append("passed by shape and dtype only: " + " ".join(compared))
    return "\n".join(out)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.peers.opinfo", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression for names of entries")
    parser.add_argument("--samples", type=int, default=30, help="most samples of an entry")
    parser.add_argument("--kinds", default="forward", help=", ".join(KINDS) + ", separated by commas")
    parser.add_argument("--mode", choices=tuple(MODES), default="eager")
    parser.add_argument("--dtype", choices=("real", "complex64", "complex128"), default="real",
                        help="element type of the samples; real is float32, else int64 or bool")
    parser.add_argument("--aliases", action="store_true", help="also the other names that operators have")
    parser.add_argument("--json", type=Path, help="file that gets a line of JSON for each entry")
    parser.add_argument("--resume", action="store_true", help="leave out entries that are in the file")
    parser.add_argument("--limit", type=float, default=180, help="seconds for an entry")
    options = parser.parse_args(arguments)
    lines: list[dict[str, Any]] = []
    if options.json and options.resume and options.json.exists():
        lines = [json.loads(text) for text in options.json.read_text().splitlines()]
    elif options.json:
        options.json.write_text("")
    done = {(line["entry"], line["kind"], line["mode"], line.get("dtype", "real")) for line in lines}
    worker: list[Any] = []
    for kind in options.kinds.split(","):
        for index, entry in enumerate(ENTRIES if options.aliases else op_db):
            name = entry.formatted_name
            if not re.search(options.only, name) or (name, kind, options.mode, options.dtype) in done:
                continue
            lines.append(judged(index, options.limit, worker, kind, options.samples, options.mode,
                                options.dtype))
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
            print(f"{kind} {lines[-1]['verdict']:12} {name}", file=sys.stderr, flush=True)
    if worker:
        worker[0].kill()
    print(summary(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
