"""The judgement on a model: forward and a training step, compiled by mlc, beside eager PyTorch.

Results are right if `torch.testing.assert_close` says so. Where it does not, PyTorch is compared with itself, from
weights moved by a rounding error: a result may differ from it by GROWTH times as much as its own do. That is asked in
float32 and in float64, where a wrong translation cannot hide behind an ill-conditioned model. Results that are right
in float64 and not in float32 are asked for again at points beside, as a step of a gradient may be at just this one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

GROWTH = 4.0
SEEDS = 3
MOVED = {"float32": 1e-7, "float64": 2e-16}
"""How far weights are moved, relative to each, to see what PyTorch's results are worth."""
BESIDE = 1e-4
"""How far they are moved to have another point, at which a difference is seen again unless it is a point's own."""
Step = Callable[[Any, Callable[[Any], Any], Any, Any], list[Any]]


def judged_model(name: str, settings: Any) -> tuple[str, str, dict[str, Any]]:
    """The verdict on a model, with those on its phases, `forward` in evaluation and `training`."""
    import torch

    from tests.peers.torch_backend import SEVERITY
    from tests.peers.torch_models import made
    torch._dynamo.reset()
    torch.manual_seed(0)
    try:
        model, args, keywords = made(name)
    except Exception as error:
        return "no sample", f"{type(error).__name__}: {error}"[:300], {}
    without_dropout(model)
    phases = {"forward": judged_phase(forward, model, args, keywords),
              "training": judged_phase(training, model, args, keywords)}
    verdict = max((p["verdict"] for p in phases.values()), key=SEVERITY.index)
    total, left = (sum(p[key] for p in phases.values()) for key in ("operators", "left"))
    graphs = "+".join(str(p["graphs"]) for p in phases.values())
    notes = [f"{n}: {p['why']}" for n, p in phases.items() if p["why"]]
    share = f"{100 * (total - left) / max(total, 1):.0f} % of {total} operators, {graphs} graphs"
    return verdict, "; ".join([share, *notes]), phases


def judged_phase(step: Step, model: Any, args: Any, keywords: Any) -> dict[str, Any]:
    """Verdict, reason, number of graphs and of operators, and what mlc has not run of these."""
    import torch

    from mlc.torch.reports import reports
    from tests.peers.torch_backend import error_verdict
    torch._dynamo.reset()
    before = reports()
    try:
        theirs = step(copy.deepcopy(model), as_it_is, args, keywords)
    except Exception as error:
        return {"verdict": "no sample", "why": f"PyTorch itself: {type(error).__name__}: {error}"[:200], "graphs": 0,
                "operators": 0, "left": 0, "missing": []}
    verdict: tuple[str, str]
    try:
        ours = step(copy.deepcopy(model), by_mlc, args, keywords)
    except Exception as error:
        ours, verdict = None, error_verdict(error)
    graphs = [g for g in reports() if all(g is not b for b in before)]
    if ours is not None:
        try:
            verdict = verdict_on(ours, theirs, step, model, args, keywords)
        except Exception as error:
            verdict = error_verdict(error)
    return {"verdict": verdict[0], "why": verdict[1], "graphs": sum(g.kind != "backward" for g in graphs),
            "operators": sum(g.operators for g in graphs), "left": sum(len(g.refusals) for g in graphs),
            "missing": sorted({f"{r.operator}: {r.reason}" for g in graphs for r in g.refusals})}


def verdict_on(ours: list[Any], theirs: list[Any], step: Step, model: Any, args: Any,
               keywords: Any) -> tuple[str, str]:
    """"pass", or "wrong" with the first difference."""
    import torch
    from torch.utils import _pytree as pytree

    from tests.peers.torch_backend import compared
    if compared(ours, theirs) is None:
        return "pass", ""
    narrow = differing(ours, theirs, step, model, args, keywords, MOVED["float32"])
    torch._dynamo.reset()
    wide = copy.deepcopy(model).double()
    wide_args, wide_keywords = pytree.tree_map_only(
        torch.Tensor, lambda x: x.double() if x.is_floating_point() else x, (args, keywords))
    also = "right in float64"
    try:
        precise = step(copy.deepcopy(wide), as_it_is, wide_args, wide_keywords)
    except TypeError:                                      # as a detector of keypoints has it, which are to be float32
        precise, also = None, "PyTorch refuses float64"
    if precise is not None:
        found = step(copy.deepcopy(wide), by_mlc, wide_args, wide_keywords)
        if compared(found, precise) is not None:
            text, close = differing(found, precise, step, wide, wide_args, wide_keywords, MOVED["float64"])
            if not close:
                return "wrong", f"float64: {text}"
        if narrow[1]:
            return "pass", f"float32: {narrow[0]}; {also}"
    right = sum(close_beside(step, model, args, keywords, seed) for seed in range(SEEDS))
    return "pass" if 2 * right > SEEDS else "wrong", \
        f"float32: {narrow[0]}; {also}, and in float32 right at {right} of {SEEDS} points beside this one"


def close_beside(step: Step, model: Any, args: Any, keywords: Any, seed: int) -> bool:
    """Whether results are close at a point beside the one judged.

    Where the argument of a ReLU is within a rounding error of zero, or two elements of a pooling window are as close to
    each other, both gradients are right and differ by an element of a sum. Such points are isolated.
    """
    beside = moved(model, seed, BESIDE)
    ours, theirs = (step(copy.deepcopy(beside), how, args, keywords) for how in (by_mlc, as_it_is))
    from tests.peers.torch_backend import compared
    return compared(ours, theirs) is None or \
        differing(ours, theirs, step, beside, args, keywords, MOVED["float32"])[1]


def differing(ours: list[Any], theirs: list[Any], step: Step, model: Any, args: Any, keywords: Any,
              by: float) -> tuple[str, bool]:
    """The result that differs most, beside what PyTorch's own differ by, and whether all are close enough."""
    import torch
    if [(x.shape, x.dtype) for x in ours] != [(x.shape, x.dtype) for x in theirs]:
        return "results of other shapes or dtypes", False
    own = [0.0] * len(theirs)
    for seed in range(SEEDS):
        other = step(moved(model, seed, by), as_it_is, args, keywords)
        if len(other) != len(theirs) or any(x.shape != y.shape for x, y in zip(other, theirs)):
            continue                                       # a number of boxes changed
        own = [max(n, distance(x, y)) for n, x, y in zip(own, other, theirs)]
    worst, text = 0.0, ""
    for i, (x, y, unstable) in enumerate(zip(ours, theirs, own)):
        allowed = torch.finfo(y.dtype).eps * 10 * (1 + (float(y.abs().max()) if y.numel() else 0.0))
        away = distance(x, y)
        ratio = away / max(GROWTH * unstable, allowed)
        if ratio > worst:
            worst, text = ratio, (f"result {i} of {len(ours)} differs by {away:.1e} of {float(y.abs().max()):.1e}, "
                                  f"PyTorch's own by {unstable:.1e}")
    return text, worst <= 1


def distance(x: Any, y: Any) -> float:
    """The largest difference of elements; infinite where one of two is no number."""
    import torch
    if not x.numel():
        return 0.0
    away = (x - y).abs()
    away = torch.where((x == y) | (x.isnan() & y.isnan()), torch.zeros_like(away), away)
    return float(torch.nan_to_num(away, nan=torch.inf).max())


def moved(model: Any, seed: int, by: float) -> Any:
    """The model with each weight moved by about a rounding error."""
    import torch
    other = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in other.parameters():
            if p.is_floating_point():
                p.mul_(1 + by * torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p.dtype))
    return other


def as_it_is(model: Any) -> Any:
    return model


def by_mlc(model: Any) -> Any:
    import torch

    import mlc
    return torch.compile(model, backend=mlc.torch.backend)


# -- phases -----------------------------------------------------------------------------------------------------------
def without_dropout(model: Any) -> None:
    """Have nothing dropped: mlc's random numbers are not PyTorch's."""
    for m in model.modules():
        for name, x in vars(m).items():
            drops = type(m).__name__.startswith(("Drop", "Stochastic", "Feature", "Alpha"))
            if isinstance(x, float) and ("drop" in name or (name == "p" and drops)):
                setattr(m, name, 0.0)
    config = getattr(model, "config", None)
    for name, x in list(vars(config).items()) if config is not None else []:
        if isinstance(x, float) and ("drop" in name or name == "mask_time_prob"):
            setattr(config, name, 0.0)


def leaves(out: Any) -> list[Any]:
    """The tensors of floats of a result."""
    import torch
    from torch.utils import _pytree as pytree
    out = dict(out) if hasattr(out, "items") else out
    return [x for x in pytree.tree_leaves(out) if isinstance(x, torch.Tensor) and x.is_floating_point()]


def forward(model: Any, compiled: Callable[[Any], Any], args: Any, keywords: Any) -> list[Any]:
    """The results in evaluation."""
    import torch
    torch.manual_seed(1)
    given = {n: x for n, x in keywords.items() if n != "targets"}
    with torch.no_grad():
        return leaves(compiled(model.eval())(*args, **given))


def training(model: Any, compiled: Callable[[Any], Any], args: Any, keywords: Any) -> list[Any]:
    """The loss and the gradients of a training step."""
    import torch
    torch.manual_seed(1)
    out = leaves(compiled(model.train())(*args, **keywords))
    loss = sum((x ** 2).mean() for x in out if x.requires_grad)
    if not isinstance(loss, torch.Tensor):
        return []
    loss.backward()
    # of a parameter that a graph does not use, AOTAutograd has a gradient of zeros, and eager PyTorch none
    return [loss.detach(), *(torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters())]
