"""Judge the optimizers and schedulers of mlc.optim by PyTorch's; README.md describes the verdicts.

    python -m tests.peers.optimizers [--only REGEX] [--json FILE]

Each optimizer of PyTorch's database is made with each of its samples' settings and trains a small model for five steps,
in float64 and in float32. Compared are the parameters, states and their layout, groups, closures, printed forms, flags
and invalid arguments; of schedulers the rates of 30 steps and states.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_optimizers import optim_db

import mlc
from mlc.ir.diag import Error
from tests.peers.opinfo_sparse import as_mlc as as_sparse

TOLERANCE = {"float32": (2e-5, 2e-6), "float64": (1e-10, 1e-12)}
"""(rtol, atol) of parameters after five steps."""
OF_BFLOAT16 = 1e-2
"""The share of a step by which Muon may differ, whose direction is computed in bfloat16."""
OF_LBFGS = {"float32": (2e-3, 2e-4), "float64": (1e-7, 1e-9)}
"""Those of LBFGS after five calls of up to 20 steps each, in which differences of rounding grow."""
RANDOM = np.random.default_rng(0)
WEIGHTS = [RANDOM.standard_normal((4, 3)), RANDOM.standard_normal(4), RANDOM.standard_normal((1, 4))]
X = RANDOM.standard_normal((8, 3))
LIMITS_OF_PYTORCH = r"as a Tensor is not supported|must be either both floats or both Tensors|does not support complex"
"""Errors of what PyTorch's implementations cannot do; complex numbers mlc has none of."""
Loss = Callable[[], Any]


class Training:
    """A small model with an optimizer, in either framework."""

    def __init__(self, library: Any, name: str, settings: dict[str, Any], dtype: str, groups: bool = False,
                 named: bool = False) -> None:
        self.library, self.dtype = library, getattr(library, dtype)
        self.sparse = name == "SparseAdam"
        weights = [w for w in WEIGHTS if name != "Muon" or w.ndim == 2]
        self.params = [self.tensor(w).requires_grad_() for w in weights]
        params: Any = self.params
        if groups:
            params = [{"params": self.params[:1], "lr": 0.002, "note": "first"}, {"params": self.params[1:]}]
        if named:
            params = [(f"p{i}", p) for i, p in enumerate(self.params)]
        settings = {n: self.tensor(x) if isinstance(x, torch.Tensor) else x for n, x in settings.items()}
        self.optimizer = getattr(library.optim, name)(params, **settings)

    def tensor(self, x: Any) -> Any:
        return self.library.tensor(np.asarray(x), dtype=self.dtype)

    def loss(self) -> Any:
        first, *rest = self.params
        hidden = self.tensor(X) @ first.T
        hidden = hidden + rest[0] if len(rest) == 2 else hidden
        out = self.library.tanh(hidden) @ rest[-1].T
        return (out ** 2).mean()

    def closure(self) -> Any:
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        if self.sparse:
            for p in self.params:
                p.grad = p.grad.to_sparse()
        return loss

    def steps(self, count: int, closure: bool) -> list[float]:
        losses = []
        for _ in range(count):
            if closure:
                losses.append(float(self.optimizer.step(self.closure)))
            else:
                losses.append(float(self.closure()))
                self.optimizer.step()
        return losses

    def values(self) -> list[np.ndarray]:
        return [np.asarray(p.detach().numpy()) for p in self.params]


def tolerance(name: str, settings: dict[str, Any], dtype: str) -> tuple[float, float]:
    if name == "Muon":
        return 0.0, OF_BFLOAT16 * 5 * float(settings.get("lr", 1e-3))
    return (OF_LBFGS if name == "LBFGS" else TOLERANCE)[dtype]


def differs(mine: Training, theirs: Training, bounds: tuple[float, float]) -> str:
    for a, b in zip(mine.values(), theirs.values()):
        if not np.allclose(a, b, *bounds):
            return f"parameters differ by {np.abs(a - b).max():.3g}"
    return ""


def as_ours(x: Any) -> Any:
    """A state of PyTorch's with mlc's tensors."""
    if isinstance(x, torch.Tensor):
        return mlc.tensor(x.detach().numpy().copy())
    if isinstance(x, dict):
        return {n: as_ours(v) for n, v in x.items()}
    return type(x)(map(as_ours, x)) if isinstance(x, list | tuple) else x


def layout(state: dict[str, Any]) -> Any:
    """The keys of a state, and the shapes of what they have."""
    entries = {n: {k: "list" if isinstance(x, list) else tuple(getattr(x, "shape", ())) for k, x in held.items()}
               for n, held in state["state"].items()}
    return entries, [{n: x for n, x in group.items() if not hasattr(x, "dtype")} for group in state["param_groups"]]


def training(name: str, settings: dict[str, Any], needs_closure: bool) -> Iterator[tuple[str, str]]:
    """(aspect, what is wrong) of one sample: nothing is wrong where the second is empty."""
    for dtype in ("float64", "float32"):
        bounds = tolerance(name, settings, dtype)
        torch.set_default_dtype(getattr(torch, dtype))     # that of the numbers in PyTorch's states
        try:
            both = [Training(library, name, settings, dtype) for library in (mlc, torch)]
            losses = [t.steps(5, needs_closure) for t in both]
        finally:
            torch.set_default_dtype(torch.float32)
        yield dtype, differs(both[0], both[1], bounds) or (
            "" if np.allclose(losses[0], losses[1], 1e-4, 1e-6) else "losses differ")
    mine, theirs = both
    saved = [t.optimizer.state_dict() for t in both]
    yield "layout", "" if layout(saved[0]) == layout(saved[1]) else f"{layout(saved[0])} for {layout(saved[1])}"
    printed = [repr(t.optimizer) for t in (mine, theirs)]
    yield "printed", "" if printed[0] == printed[1] else printed[0]
    again, crossed = (Training(mlc, name, settings, "float32") for _ in range(2))
    for other, source, state in ((again, mine, copy.deepcopy(saved[0])), (crossed, theirs, as_ours(saved[1]))):
        for p, x in zip(other.params, source.values()):
            p.data = other.tensor(x.copy())
        other.optimizer.load_state_dict(state)
    for t in (*both, again, crossed):
        t.steps(2, needs_closure)
    same = all((a == b).all() for a, b in zip(mine.values(), again.values()))
    yield "restored", "" if same else differs(again, mine, (0, 0))
    yield "from PyTorch", differs(crossed, theirs, bounds)
    if not needs_closure:
        for aspect, form in (("closure", {}), ("groups", {"groups": True}), ("named", {"named": True})):
            both = [Training(library, name, settings, "float32", **form) for library in (mlc, torch)]
            for t in both:
                t.steps(3, aspect == "closure")
            groups = [[{n: x for n, x in g.items() if n != "params" and not hasattr(x, "dtype")}
                       for g in t.optimizer.param_groups] for t in both]
            wrong = "" if groups[0] == groups[1] else f"groups {groups[0]} for {groups[1]}"
            yield aspect, differs(both[0], both[1], bounds) or wrong


def flags(entry: Any, name: str) -> Iterator[tuple[str, str]]:
    """Whether each flag that PyTorch takes changes nothing, or is refused by name."""
    known = [*entry.supported_impls, *["capturable"] * entry.has_capturable_arg]
    for flag in known:
        mine = Training(mlc, name, {}, "float32")
        try:
            flagged = Training(mlc, name, {flag: True}, "float32")
        except Error as error:
            yield f"{flag} refused", "" if "MLC0780" in str(error) and flag == "differentiable" else str(error)
            continue
        for t in (mine, flagged):
            t.steps(2, False)
        yield flag, "" if all((a == b).all() for a, b in zip(mine.values(), flagged.values())) else "changes values"


def errors(entry: Any, name: str) -> Iterator[tuple[str, str]]:
    for sample in entry.optim_error_inputs_func("cpu", torch.float32):
        given = sample.optimizer_error_input
        if re.search(LIMITS_OF_PYTORCH, sample.error_regex):
            continue
        converted: dict[int, Any] = {}

        def ours(x: Any, converted: dict[int, Any] = converted) -> Any:
            if isinstance(x, torch.Tensor):
                made = as_sparse(x) if x.layout is not torch.strided else mlc.tensor(x.detach().numpy())
                return converted.setdefault(id(x), made.requires_grad_(x.requires_grad))
            if isinstance(x, dict):
                return {n: ours(v) for n, v in x.items()}
            return type(x)(map(ours, x)) if isinstance(x, list | tuple) else x

        params = [mlc.ones(1, 1, requires_grad=True)] if given.params is None else ours(given.params)
        try:
            getattr(mlc.optim, name)(params, **ours(given.kwargs))
            yield "errors", f"accepted: {sample.error_regex}"
        except Error:
            yield "errors", ""


def optimizers(only: str) -> Iterator[dict[str, Any]]:
    for entry in optim_db:
        name = entry.optim_cls.__name__
        if not re.search(only, name):
            continue
        try:
            getattr(mlc.optim, name)
        except AttributeError as reason:
            yield {"entry": name, "verdict": "refused", "aspects": {}, "found": [str(reason).splitlines()[0]]}
            continue
        aspects, wrong = dict[str, int](), list[str]()
        samples = entry.optim_inputs_func(device="cpu")
        rows = [(aspect, text and f"{sample.kwargs}: {text}") for sample in samples
                for aspect, text in attempted(training, name, sample.kwargs, entry.step_requires_closure)]
        for aspect, text in [*rows, *attempted(flags, entry, name), *attempted(errors, entry, name)]:
            aspects[aspect] = aspects.get(aspect, 0) + (not text)
            wrong += [f"{aspect}: {text}"] * bool(text)
        yield {"entry": name, "verdict": "differs" if wrong else "pass", "samples": len(samples), "aspects": aspects,
               "found": wrong}


def attempted(judge: Callable[..., Iterator[tuple[str, str]]], *args: Any) -> Iterator[tuple[str, str]]:
    """The rows of a judge; an exception that is no verdict is one."""
    try:
        yield from judge(*args)
    except (Error, RuntimeError, TypeError, ValueError, AttributeError, KeyError, AssertionError) as error:
        yield "crash", f"{type(error).__name__}: {error}"


SCHEDULERS: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 4, "gamma": 0.5}), ("MultiStepLR", {"milestones": [3, 7, 7, 20]}),
    ("ConstantLR", {"factor": 0.3, "total_iters": 6}), ("LinearLR", {"start_factor": 0.2, "total_iters": 8}),
    ("ExponentialLR", {"gamma": 0.9}), ("PolynomialLR", {"total_iters": 12, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 9, "eta_min": 0.01}), ("CosineAnnealingLR", {"T_max": 30}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "T_mult": 2}), ("LambdaLR", {"lr_lambda": lambda e: 0.9 ** e}),
    ("LambdaLR", {"lr_lambda": [lambda e: 1 / (e + 1), lambda e: 0.5]}),
    ("MultiplicativeLR", {"lr_lambda": lambda e: 0.95}),
    *[("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 5, "step_size_down": 3, "mode": mode,
                    "gamma": 0.9}) for mode in ("triangular", "triangular2", "exp_range")],
    ("CyclicLR", {"base_lr": [0.01, 0.02], "max_lr": 0.1, "step_size_up": 4, "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": 30}),
    ("OneCycleLR", {"max_lr": [0.3, 0.1], "total_steps": 40, "anneal_strategy": "linear", "three_phase": True}),
    ("ReduceLROnPlateau", {"patience": 2, "cooldown": 1, "factor": 0.5}),
    ("ReduceLROnPlateau", {"mode": "max", "patience": 1, "threshold_mode": "abs", "threshold": 0.1, "min_lr": 0.01}),
    ("SWALR", {"swa_lr": 0.02, "anneal_epochs": 7}), ("SWALR", {"swa_lr": [0.5, 0.02], "anneal_strategy": "linear"}),
]
"""Schedulers and their settings."""


def made(library: Any, name: str, settings: dict[str, Any]) -> tuple[Any, Any]:
    """An optimizer of two groups and its scheduler."""
    w, b = library.ones(2, requires_grad=True), library.ones(1, requires_grad=True)
    optimizer = library.optim.SGD([{"params": [w]}, {"params": [b], "lr": 0.2}], lr=0.1, momentum=0.9)
    space = library.optim.lr_scheduler
    if name == "SequentialLR":
        parts = [space.LinearLR(optimizer, 0.1, total_iters=5), space.CosineAnnealingLR(optimizer, 10),
                 space.ExponentialLR(optimizer, 0.9)]
        return optimizer, space.SequentialLR(optimizer, parts, milestones=[5, 15])
    if name == "ChainedScheduler":
        parts = [space.ConstantLR(optimizer, 0.5, total_iters=4), space.ExponentialLR(optimizer, 0.95),
                 space.StepLR(optimizer, 7)]
        return optimizer, space.ChainedScheduler(parts)
    space = library.optim.swa_utils if name == "SWALR" else space
    return optimizer, getattr(space, name)(optimizer, **settings)


def scheduled(name: str, settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    metrics = np.random.default_rng(1).standard_normal(30).cumsum()
    both = [made(library, name, settings) for library in (mlc, torch)]
    other = made(mlc, name, settings)
    rates: list[list[Any]] = [[], [], []]
    for epoch in range(30):
        if epoch == 11:                                    # the third one goes on from the state of the first
            other[0].load_state_dict(copy.deepcopy(both[0][0].state_dict()))
            other[1].load_state_dict(copy.deepcopy(both[0][1].state_dict()))
        for (optimizer, scheduler), found in zip((*both, other), rates):
            found.append([(group["lr"], group["momentum"]) for group in optimizer.param_groups])
            optimizer.step()
            scheduler.step(*[float(metrics[epoch])] * (name == "ReduceLROnPlateau"))
    yield "rates", "" if np.allclose(rates[0], rates[1], 1e-9, 1e-12) else f"{rates[0]} for {rates[1]}"
    yield "restored", "" if rates[0][11:] == rates[2][11:] else "other rates after load_state_dict"
    keys = [set(scheduler.state_dict()) for _, scheduler in both]
    yield "layout", "" if keys[0] == keys[1] else f"only in mlc {keys[0] - keys[1]}, in PyTorch {keys[1] - keys[0]}"


def schedulers(only: str) -> Iterator[dict[str, Any]]:
    for name, settings in [*SCHEDULERS, ("SequentialLR", {}), ("ChainedScheduler", {})]:
        if re.search(only, name):
            rows = list(attempted(scheduled, name, settings))
            yield {"entry": f"{name} {settings}", "aspects": {aspect: int(not text) for aspect, text in rows},
                   "verdict": "differs" if any(text for _, text in rows) else "pass", "samples": 1,
                   "found": [f"{aspect}: {text}" for aspect, text in rows if text]}


def row(line: dict[str, Any]) -> str:
    counts = ", ".join(f"{aspect} {n}" for aspect, n in line["aspects"].items())
    return f"{line['verdict']:8} {line['entry'][:60]:60} {counts}"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.peers.optimizers", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression for names")
    parser.add_argument("--json", type=Path, help="file that gets a line of JSON for each entry")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    lines = []
    for source in (optimizers, schedulers):
        for line in source(options.only):
            lines.append(line)
            print(row(line), flush=True)
            for text in line["found"][:6]:
                print(f"    {text[:400]}")
    if options.json:
        options.json.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for verdict in ("pass", "differs", "refused"):
        print(f"{verdict:8} {sum(line['verdict'] == verdict for line in lines):4}")


if __name__ == "__main__":
    main(sys.argv[1:])
