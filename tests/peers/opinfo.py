"""Judge mlc by PyTorch's database of operators and sample inputs; README.md describes the verdicts.

    python -m tests.peers.opinfo [--only REGEX] [--samples N] [--kinds forward,inplace,out,backward,grad,error,
                                 sparse_coo,sparse_csr,sparse_csc,sparse_bsr,sparse_bsc]
                                 [--mode eager|compiled|interpreted] [--dtype real|complex64|complex128]
                                 [--json FILE] [--resume] [--limit SECONDS]
"""

from __future__ import annotations

import argparse
import functools
import inspect
import json
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import mlc
from mlc.checked import Meaning
from mlc.frontend import eager, tree
from mlc.ir.diag import Error, InternalError
from tests.peers import opinfo_sparse
from tests.peers.opinfo_names import ELSEWHERE, OTHER_GRADIENTS, REFERENCES, UNDETERMINED, without_defaults

VERDICTS = ("pass", "missing", "refused", "wrong value", "wrong dtype", "wrong shape", "wrong layout", "accepted",
            "crash", "no sample")
SEVERITY = ("pass", "refused", "accepted", "wrong layout", "wrong shape", "wrong dtype", "wrong value", "crash")
"""The verdicts of a sample; the entry has the worst of its samples'."""
KINDS = ("forward", "inplace", "out", "backward", "grad", "error", *opinfo_sparse.LAYOUTS)
Result = tuple[str, str]
"""A verdict, and what was found."""


# -- the function of an entry -----------------------------------------------------------------------------------------
def attribute(owner: Any, path: str) -> Any:
    for part in path.split("."):
        owner = getattr(owner, part, None)
    return owner


def ours(entry: Any) -> Callable[..., Any] | None:
    """The function of mlc that an entry is compared with: a public function, otherwise a method; None if missing."""
    for name in (entry.formatted_name, entry.name):
        if name in ELSEWHERE:
            return ELSEWHERE[name][0]
    if inspect.isfunction(f := attribute(mlc, entry.name)):
        return f
    method = attribute(mlc.Tensor, entry.name)
    return method.fget if isinstance(method, property) else method if inspect.isfunction(method) else None


def theirs(entry: Any) -> Callable[..., Any]:
    """PyTorch's function, with mlc's conventions: signs that are fixed."""
    if entry.formatted_name in REFERENCES:
        return REFERENCES[entry.formatted_name]
    own = REFERENCES.get(entry.name)
    return own if own is not None else lambda *args, **keywords: entry.op(*args, **keywords)


# -- values -----------------------------------------------------------------------------------------------------------
def as_mlc(x: Any) -> Any:
    """A value of a sample, also in containers, as the value that a user of mlc would pass."""
    if isinstance(x, torch.Tensor) and x.layout is not torch.strided:
        return opinfo_sparse.as_mlc(x)
    if isinstance(x, torch.Tensor):
        x = x.detach().resolve_neg().resolve_conj()
        if x.dtype == torch.bfloat16:
            return mlc.tensor(x.float().numpy()).to("bfloat16")
        return mlc.tensor(x.numpy())
    if isinstance(x, torch.dtype):
        return getattr(mlc, str(x).removeprefix("torch."), str(x))
    if isinstance(x, torch.device):
        return str(x)
    if isinstance(x, torch.layout):
        return getattr(mlc, str(x).removeprefix("torch."))
    if isinstance(x, torch.Size):
        return tuple(x)
    if isinstance(x, list | tuple):
        return type(x)(map(as_mlc, x))
    if isinstance(x, slice):
        return slice(as_mlc(x.start), as_mlc(x.stop), as_mlc(x.step))
    return {n: as_mlc(v) for n, v in x.items()} if isinstance(x, dict) else x


def leaves(x: Any) -> Iterator[Any]:
    """The tensors and numbers of nested lists, tuples and dicts."""
    if isinstance(x, list | tuple):
        for v in x:
            yield from leaves(v)
    elif isinstance(x, dict):
        yield from leaves(list(x.values()))
    else:
        yield x


def replaced(x: Any, new: Iterator[Any], wanted: Callable[[Any], bool]) -> Any:
    """The same structure, with the next of `new` in place of each wanted leaf."""
    if isinstance(x, list | tuple):
        return type(x)([replaced(v, new, wanted) for v in x])
    if isinstance(x, dict):
        return {n: replaced(v, new, wanted) for n, v in x.items()}
    return next(new) if wanted(x) else x


def shown(x: Any) -> str:
    if isinstance(x, torch.Tensor):
        if x.layout is not torch.strided:
            return f"{opinfo_sparse.layout_of(x)} {str(x.dtype).removeprefix('torch.')}{list(x.shape)}"
        values = f" {x.tolist()}" if x.numel() < 4 and x.dtype != torch.bfloat16 else ""
        return f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}{values}"
    if isinstance(x, list | tuple):
        return f"[{', '.join(map(shown, x))}]"
    return repr(x)


def call_text(entry: Any, sample: Any) -> str:
    given = [shown(x) for x in (sample.input, *sample.args)] + [f"{n}={shown(x)}" for n, x in sample.kwargs.items()]
    return f"{entry.name}({', '.join(given)})"


# -- comparison -------------------------------------------------------------------------------------------------------
def tolerances(entry: Any) -> tuple[float, float] | None:
    """The greatest (rtol, atol) that the entry has for float32 on a CPU; None for the defaults."""
    found = [f.d[torch.float32] for info in entry.decorators for f in getattr(info, "decorators", [info])
             if torch.float32 in getattr(f, "d", {}) and getattr(info, "device_type", None) in (None, "cpu")]
    pairs = [(1.3e-6, t) if isinstance(t, float) else (t.rtol, t.atol) for t in found]    # a float is an atol
    return tuple(map(max, zip(*pairs))) if pairs else None


def compare(found: Any, wanted: Any, tolerance: tuple[float, float] | None, precise: Callable[[], Any],
            values: bool = True) -> Result:
    """Compare a result of mlc with PyTorch's; `precise` computes the latter in float64."""
    a, b = list(leaves(found)), list(leaves(wanted))
    if len(a) != len(b):
        return "wrong shape", f"{len(a)} results, expected {len(b)}"
    for i, (x, y) in enumerate(zip(a, b)):
        if not isinstance(y, torch.Tensor):
            if isinstance(x, mlc.Tensor) or (x != y and not (x != x and y != y)):
                return "wrong value", f"{x!r}, expected {y!r}"
            continue
        y = y.detach()
        dtype = str(getattr(x, "dtype", type(x).__name__)).removeprefix("mlc.").rstrip("_")
        if dtype != str(y.dtype).removeprefix("torch."):
            return "wrong dtype", f"{dtype}, expected {str(y.dtype).removeprefix('torch.')}"
        if tuple(x.shape) != tuple(y.shape):
            return "wrong shape", f"{list(x.shape)}, expected {list(y.shape)}"
        if opinfo_sparse.layout_of(x) != opinfo_sparse.layout_of(y):
            return "wrong layout", f"{x.layout}, expected {y.layout}"
        if y.layout is not torch.strided:
            x, y = x.to_dense(), y.to_dense()
        if values and (text := _difference(_as_torch(x), y, tolerance, functools.partial(_result, precise, i))):
            return "wrong value", text
    return "pass", ""


def _result(f: Callable[[], Any], i: int) -> Any:
    found = list(leaves(f()))[i]
    return found.to_dense() if found.layout is not torch.strided else found


def _as_torch(x: Any) -> torch.Tensor:
    array = np.array(x)
    return torch.from_numpy(array.astype(np.float32) if array.dtype.name == "bfloat16" else array)


def _difference(x: torch.Tensor, y: torch.Tensor, tolerance: tuple[float, float] | None,
                precise: Callable[[], torch.Tensor]) -> str:
    """Text of a difference beyond the tolerance; empty if there is none."""
    rtol, atol = tolerance or torch.testing._comparison.default_tolerances(x, y)
    y = y.to(x.dtype).resolve_conj().resolve_neg()
    if torch.allclose(x, y, rtol, atol, equal_nan=True):
        return ""
    if y.dtype in WIDE:                                    # PyTorch's own rounding error may be larger
        exact = precise().detach()
        wide = WIDE[y.dtype]
        scale = (y.to(wide) - exact).abs().nan_to_num(0, 0, 0)
        if torch.isclose(x.to(wide), exact, rtol, atol + 4 * float(scale.max()), equal_nan=True).all():
            return ""
    at = tuple(int(i) for i in torch.nonzero(~torch.isclose(x, y, rtol, atol, equal_nan=True))[0])
    return f"{x[at].item()!r} at {list(at)}, expected {y[at].item()!r}"


WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}
"""The dtypes in which errors of others are measured."""


def called(f: Callable[[], Any]) -> tuple[Result | None, Any]:
    """The result of a call of mlc, or the verdict on its exception."""
    try:
        return None, f()
    except InternalError as error:
        return ("crash", f"{error.code}: {error.message}"), None
    except Error as error:
        return ("refused", f"{error.code}: {error.message}"), None
    except Exception as error:                             # that is what is looked for
        return ("crash", f"{type(error).__name__}: {error}"), None


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
    if mode != "compiled":
        return f(*args, **keywords)

    def with_tensors(*xs: Any) -> Any:
        given, named = replaced((args, keywords), iter(xs), is_tensor)
        return f(*given, **named)

    return mlc.compile(with_tensors)(*filter(is_tensor, leaves((args, keywords))))


def is_tensor(x: Any) -> bool:
    return isinstance(x, mlc.Tensor)


def differentiated(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.requires_grad


def is_determined(entry: Any, sample: Any) -> bool:
    """Whether the values of the results can be compared."""
    dropped = sample.args[9] if entry.name.endswith("multi_head_attention_forward") else sample.kwargs.get("dropout_p")
    return entry.name not in UNDETERMINED and not dropped


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
        wanted = entry.op(sample.input, *sample.args, **sample.kwargs)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError):
        return None
    single = isinstance(wanted, torch.Tensor)
    if not single and not (isinstance(wanted, tuple) and all(isinstance(y, torch.Tensor) for y in wanted)):
        return None
    targets = [as_mlc(torch.zeros_like(y)) for y in leaves(wanted)]
    keywords = as_mlc(without_defaults(sample.kwargs)) | {"out": targets[0] if single else tuple(targets)}
    failed, _ = called(lambda: f(*as_mlc((sample.input, *sample.args)), **keywords))
    precise = sample.transform(lambda x: x.to(WIDE.get(x.dtype, x.dtype)) if isinstance(x, torch.Tensor) else x)
    return failed or compare(targets, wanted, tolerances(entry), lambda: entry.op(
        precise.input, *precise.args, **precise.kwargs), is_determined(entry, sample))


def grad(entry: Any, f: Callable[..., Any], sample: Any, mode: str, kind: str = "grad") -> Result | None:
    """The verdict on the gradient of a weighted sum of the results, by mlc.vjp or, for the kind "backward", by the
    recorded graph; None where there is none to compare."""
    given = ((sample.input, *sample.args), sample.kwargs)
    rng = np.random.default_rng(0)

    def expected(wide: bool, weights: list[Any]) -> list[torch.Tensor]:
        primals = [x.detach().to(WIDE.get(x.dtype, x.dtype) if wide else x.dtype).requires_grad_()
                   for x in filter(differentiated, leaves(given))]
        args, keywords = replaced(given, iter(primals), differentiated)
        outputs = [y for y in leaves(theirs(entry)(*args, **keywords)) if isinstance(y, torch.Tensor)]
        weights += [_weights(rng, y) for y in outputs[len(weights):]]
        roots = [(y, torch.from_numpy(w).to(y.dtype)) for y, w in zip(outputs, weights) if y.requires_grad]
        found = torch.autograd.grad([y for y, _ in roots], primals, [w for _, w in roots], allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for x, g in zip(primals, found)]

    weights: list[Any] = []
    try:
        wanted = expected(False, weights)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError, AttributeError):
        return None
    constant = replaced((given[0], without_defaults(given[1])), iter(_Hole() for _ in iter(int, 1)), differentiated)

    def on_primals(*xs: Any) -> Any:
        args, keywords = replaced(prepared, iter(xs), lambda x: isinstance(x, _Hole))
        return [y for y in leaves(f(*args, **keywords)) if is_tensor(y)]

    def gradient() -> list[Any]:
        result, pullback = mlc.vjp(on_primals, *[as_mlc(x) for x in filter(differentiated, leaves(given))])
        return tree.leaves(pullback([mlc.tensor(w) if y.is_floating_point() or y.is_complex() else mlc.zeros_like(y)
                                     for y, w in zip(result, weights)]))

    def by_backward() -> list[Any]:
        primals = [as_mlc(x).requires_grad_() for x in filter(differentiated, leaves(given))]
        result = on_primals(*primals)
        roots = [(y, mlc.tensor(w)) for y, w in zip(result, weights) if y.requires_grad]
        mlc.autograd.backward([y for y, _ in roots], [w for _, w in roots])
        return [mlc.zeros_like(x) if x.grad is None else x.grad for x in primals]

    prepared = as_mlc(constant)
    failed, found = called(by_backward if kind == "backward" else gradient)
    return failed or compare(found, wanted, tolerances(entry), lambda: expected(True, weights),
                             is_determined(entry, sample) and entry.formatted_name not in OTHER_GRADIENTS)


def _weights(rng: np.random.Generator, y: torch.Tensor) -> Any:
    """Random cotangents of a result."""
    real = rng.normal(size=tuple(y.shape)).astype(np.float32)
    return (real + 1j * rng.normal(size=tuple(y.shape))).astype(np.complex64) if y.is_complex() else real


class _Hole:
    """Marks the place of a differentiated argument."""


def error(entry: Any, f: Callable[..., Any], sample: Any, mode: str) -> Result | None:
    """The verdict on a call that PyTorch rejects."""
    invalid = sample.sample_input
    failed, _ = called(lambda: _run(f, as_mlc((invalid.input, *invalid.args)), as_mlc(invalid.kwargs), mode))
    if failed is None:
        return "accepted", f"PyTorch: {sample.error_regex}"
    return ("pass", "") if failed[0] == "refused" else failed


JUDGES: dict[str, Callable[..., Result | None]] = {
    "forward": forward, "inplace": in_place, "out": out, "grad": grad, "error": error,
    "backward": functools.partial(grad, kind="backward"), **dict.fromkeys(opinfo_sparse.LAYOUTS, forward)}


REAL = (torch.float32, torch.int64, torch.bool)


def samples(entry: Any, kind: str, n: int, dtype: str) -> Iterator[Any]:
    """The first n samples of an entry in a complex dtype; "real" is float32 if it takes that, else int64 or bool."""
    torch.manual_seed(0)
    if kind == "error":
        made: Iterable[Any] = entry.error_inputs("cpu") if entry.error_inputs_func is not None else ()
    else:
        known = entry.supported_dtypes("cpu")
        chosen = next((t for t in (REAL if dtype == "real" else (getattr(torch, dtype),)) if t in known), None)
        if chosen is None or (kind in ("grad", "backward") and (
                chosen in REAL[1:] or not entry.supports_autograd)):
            return
        made = opinfo_sparse.samples(entry, kind, chosen) if kind in opinfo_sparse.LAYOUTS else entry.sample_inputs(
            "cpu", chosen, requires_grad=kind in ("grad", "backward"))
    for _, sample in zip(range(n), made):
        yield sample


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
    if (kind == "inplace" and entry.inplace_variant is None) or (kind == "out" and not entry.supports_out) or (
            kind in opinfo_sparse.LAYOUTS and not opinfo_sparse.supported(entry, kind)):
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
        interpreted = eager.compiled_by(lambda module, where: Meaning(module))
        with interpreted if options[2] == "interpreted" else nullcontext():
            connection.send(judge(op_db[index], *options))


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
    return {"entry": op_db[index].formatted_name, "kind": options[0], "mode": options[2], "dtype": options[3],
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
        compared = [x["entry"] for x in of_kind if x["verdict"] == "pass" and (
            x["entry"] in UNDETERMINED or (kind in ("grad", "backward") and x["entry"] in OTHER_GRADIENTS))]
        out.append("passed by shape and dtype only: " + " ".join(compared))
    return "\n".join(out)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.peers.opinfo", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression for names of entries")
    parser.add_argument("--samples", type=int, default=30, help="most samples of an entry")
    parser.add_argument("--kinds", default="forward", help=", ".join(KINDS) + ", separated by commas")
    parser.add_argument("--mode", choices=("eager", "compiled", "interpreted"), default="eager")
    parser.add_argument("--dtype", choices=("real", "complex64", "complex128"), default="real",
                        help="element type of the samples; real is float32, else int64 or bool")
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
        for index, entry in enumerate(op_db):
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
