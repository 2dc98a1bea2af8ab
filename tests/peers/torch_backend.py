"""Judge `torch.compile(..., backend="mlc")` by PyTorch's database of operators, and by models of its libraries.

    python -m tests.peers.torch_backend ops [--only REGEX] [--samples N] [--backward] [--log FILE] [--limit SECONDS]
    python -m tests.peers.torch_backend models [--only REGEX] [--log FILE] [--limit SECONDS]
    python -m tests.peers.torch_backend speed

Every entry is a line of the log, and the next run with the same log continues after it. README.md describes the
verdicts.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SEVERITY = ("no sample", "not compiled", "pass", "in part", "refused", "error", "wrong", "timeout", "crash")
"""The verdicts; an entry has the worst of its samples'."""
Verdict = tuple[str, str]


# -- operators --------------------------------------------------------------------------------------------------------
def operator_names() -> list[str]:
    from torch.testing._internal.common_methods_invocations import op_db
    return [entry.formatted_name for entry in op_db]


def judged_operator(name: str, settings: Any) -> Verdict:
    """The verdict on an entry of the database, float32 where it has it."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    entry = next(e for e in op_db if e.formatted_name == name)
    dtypes = entry.supported_dtypes("cpu")
    dtype = next((d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if d in dtypes), None)
    if dtype is None:
        return "no sample", f"none of the dtypes {dtypes}"
    gradients = settings.backward and dtype in entry.supported_backward_dtypes("cpu") and entry.supports_autograd
    torch.manual_seed(0)
    found: list[Verdict] = []
    for _, sample in zip(range(settings.samples), entry.sample_inputs("cpu", dtype, requires_grad=gradients)):
        found.append(judged_sample(entry, sample, gradients))
    worst = max(found, key=lambda v: SEVERITY.index(v[0]), default=("no sample", ""))
    if worst[0] == "pass" and any(v[0] != "pass" for v in found):
        return "in part", "PyTorch breaks the graph of a sample"
    return worst


def judged_sample(entry: Any, sample: Any, gradients: bool) -> Verdict:
    import torch
    from torch.utils import _pytree as pytree

    import mlc
    from mlc.torch.reports import reports
    from tests.peers.opinfo_entries import tolerances
    from tests.peers.opinfo_names import UNDETERMINED
    from tests.peers.opinfo_values import WIDE

    def widened() -> Any:
        """The call in twice the precision: its result, and its gradients."""
        def wide(x: Any) -> Any:
            if not isinstance(x, torch.Tensor) or x.dtype not in WIDE:
                return x
            return x.detach().to(WIDE[x.dtype]).requires_grad_(x.requires_grad)

        args, keywords = pytree.tree_map(wide, (given, sample.kwargs))
        out = entry.op(*args, **keywords)
        return out, gradients_of(out, args, keywords) if gradients else ()

    def call(*args: Any, **keywords: Any) -> Any:
        return entry.op(*args, **keywords)

    torch._dynamo.reset()
    before = len(reports())
    given = (sample.input, *sample.args)
    try:
        expected = entry.op(*given, **sample.kwargs)
    except Exception as error:
        return "no sample", f"PyTorch itself: {error}"[:200]
    try:
        slopes = gradients_of(expected, given, sample.kwargs) if gradients else ()
    except RuntimeError:                                   # PyTorch itself has none
        gradients = False
    close = tolerances(entry)
    try:
        compiled = torch.compile(call, backend=mlc.torch.backend, options={"fallback": False}, dynamic=False)
        actual = compiled(*given, **sample.kwargs)
        if entry.name in UNDETERMINED:
            actual, expected = (pytree.tree_map(torch.zeros_like, x) for x in (actual, expected))
        verdict = compared(actual, expected, close, lambda: widened()[0])
        if verdict is None and gradients and entry.name not in UNDETERMINED:
            verdict = compared(gradients_of(actual, given, sample.kwargs), slopes, close, lambda: widened()[1])
    except Exception as error:
        return error_verdict(error)
    if verdict is not None:
        return verdict
    return ("pass", "") if len(reports()) > before else ("not compiled", "no graph reached the backend")


def error_verdict(error: Exception) -> Verdict:
    """A refusal by mlc, or another error."""
    text = str(error)
    code = re.search(r"error\[(MLC\d+)\]", text)
    if code and code.group(1) == "MLC0831":
        notes = re.findall(r"note: (.*)", text) or [text[:300]]
        return "refused", "; ".join(notes)[:600]
    first = next((line for line in text.splitlines() if line.strip()), "")
    return "error", f"{type(error).__name__}: {first} {code.group(0) if code else ''}"[:600]


def gradients_of(out: Any, args: Any, keywords: Any) -> Any:
    """The gradients of the sum of all results by all tensors that require one."""
    import torch
    from torch.utils import _pytree as pytree
    leaves = [x for x in pytree.tree_leaves(out) if isinstance(x, torch.Tensor) and x.requires_grad]
    inputs = [x for x in pytree.tree_leaves((args, keywords)) if isinstance(x, torch.Tensor) and x.requires_grad]
    if not leaves or not inputs:
        return ()
    total = sum((x.abs() if x.is_complex() else x).sum() for x in leaves)
    return torch.autograd.grad(total, inputs, allow_unused=True, retain_graph=True)


def compared(actual: Any, expected: Any, close: tuple[float, float] | None = None,
             precise: Callable[[], Any] | None = None) -> Verdict | None:
    """None if values agree, by these (rtol, atol) or PyTorch's defaults, whichever is looser, or by PyTorch's own error
    beside the `precise` values."""
    import torch
    from torch.utils import _pytree as pytree

    from tests.peers.opinfo_values import difference
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True)
        return None
    except (AssertionError, TypeError) as error:
        text = " ".join(str(error).split())[:300]
    ours, theirs = (pytree.tree_leaves(x) for x in (actual, expected))
    if precise is None or [getattr(x, "dtype", None) for x in ours] != [getattr(x, "dtype", None) for x in theirs]:
        return "wrong", text
    for i, (x, y) in enumerate(zip(ours, theirs)):
        if isinstance(y, torch.Tensor) and (x.shape != y.shape or difference(
                x.detach(), y.detach(), close, functools.partial(_leaf, precise, i))):
            return "wrong", text
    return None


def _leaf(precise: Callable[[], Any], number: int) -> Any:
    from torch.utils import _pytree as pytree
    return pytree.tree_leaves(precise())[number]


# -- running in another process ---------------------------------------------------------------------------------------
def serve(connection: Any, judge: Callable[[str, Any], Any], settings: Any) -> None:
    """Judge the names that come, until there is none."""
    import logging
    import warnings

    import torch
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    torch.set_num_threads(1)
    while (name := connection.recv()) is not None:
        connection.send(judge(name, settings))


class Worker:
    """A process that judges; another one takes its place if it crashes or takes too long."""

    def __init__(self, judge: Callable[[str, Any], Any], settings: Any) -> None:
        self.judge, self.settings = judge, settings
        self.process: Any = None

    def __call__(self, name: str) -> Any:
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.here, there = context.Pipe()
            self.process = context.Process(target=serve, args=(there, self.judge, self.settings), daemon=True)
            self.process.start()
            there.close()
        self.here.send(name)
        try:
            if self.here.poll(self.settings.limit):
                return self.here.recv()
            verdict = "timeout", f"more than {self.settings.limit} s"
        except (EOFError, ConnectionError):
            verdict = "crash", f"exit status {self.process.exitcode}"
        self.stop()
        return verdict

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def judged(names: list[str], judge: Callable[[str, Any], Any], settings: Any) -> Iterator[tuple[str, Any]]:
    """The verdict on each name, of which those in the log are known."""
    log = Path(settings.log) if settings.log else None
    known = {}
    if log is not None and log.exists():
        known = {e["name"]: e for e in map(json.loads, log.read_text().splitlines())}
    worker = Worker(judge, settings)
    for name in names:
        if name not in known:
            start = time.time()
            verdict = worker(name)
            known[name] = {"name": name, "verdict": verdict[0], "why": verdict[1], "seconds": time.time() - start,
                           **(verdict[2] if len(verdict) > 2 else {})}
            if log is not None:
                with log.open("a") as file:
                    file.write(json.dumps(known[name]) + "\n")
        yield name, known[name]
    worker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ops", "models", "speed"))
    parser.add_argument("--only", default="", help="judge names that match this regular expression")
    parser.add_argument("--samples", type=int, default=3, help="samples for each operator")
    parser.add_argument("--backward", action="store_true", help="also gradients of operators")
    parser.add_argument("--log", help="file of verdicts, which the next run continues")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each entry")
    settings = parser.parse_args()
    if settings.what == "speed":
        from tests.peers import torch_speed
        return torch_speed.measure()
    names: list[str] = []
    judge: Callable[[str, Any], Any] = judged_operator
    if settings.what == "ops":
        names = operator_names()
    else:
        from tests.peers.torch_judging import judged_model
        from tests.peers.torch_models import model_names
        names, judge = model_names(), judged_model
    count: Counter[str] = Counter()
    for name, entry in judged([n for n in names if re.search(settings.only, n)], judge, settings):
        count[entry["verdict"]] += 1
        print(f"{name:50} {entry['verdict']:12} {entry['seconds']:6.1f} s  {entry['why']}", flush=True)
    print(f"{sum(count.values())} judged: " + ", ".join(f"{count[v]} {v}" for v in SEVERITY if count[v]))


if __name__ == "__main__":
    main()
