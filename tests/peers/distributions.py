"""Judge mlc.distributions by torch.distributions: values of all methods, gradients, samples, transforms, divergences.

    python -m tests.peers.distributions [--only REGEX] [--draws N]

Each distribution is made of the same parameters in several shapes, in float64. Samples are compared by their moments
with those of PyTorch's, gradients of `rsample` by the mean over many draws.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

import mlc
from mlc.checked import Meaning
from mlc.frontend import eager
from mlc.ir.diag import Error

Row = tuple[str, Callable[[Any, Any], Any]]
"""A name, and how the distribution is made, of a library and a function that makes tensors."""
Made = Callable[[Any, Any], Any]
WRONG_IN_PYTORCH = {("Kumaraswamy", "mode")}
"""It is NaN for all parameters above 1 there."""
SPD = [[2.0, 0.5], [0.5, 1.0]]
W = [[1.0, 0.2], [0.3, -0.5], [0.1, 0.4]]


def binomial(p: Any, name: str = "Binomial", count: int = 4) -> Made:
    return lambda L, t: getattr(L.distributions, name)(count, t(p))


def mixture(p: Any) -> Made:
    return lambda L, t: L.distributions.MixtureSameFamily(
        L.distributions.Categorical(t(p)),
        L.distributions.Normal(t([-1.0, 0.0, 2.0]), t([0.5, 1.0, 2.0])).expand(tuple(np.shape(p))))


def rows() -> list[Row]:
    """Distributions with parameters of several shapes."""
    out: list[Row] = []

    def add(name: str, *params: Any, **named: Any) -> None:
        out.append((name, lambda L, t: getattr(L.distributions, name)(*map(t, params),
                                                                      **{n: t(x) for n, x in named.items()})))

    for loc, scale in ((0.5, 2.0), ([0.5, -1.0], [0.3, 2.0]), ([[0.1], [2.0]], [1.0, 0.5])):
        for name in ("Normal", "Laplace", "Cauchy", "Gumbel", "LogNormal"):
            add(name, loc, scale)
        add("StudentT", [5.0, 2.5], loc, scale)
        add("GeneralizedPareto", loc, scale, [0.0, 0.3])
        add("HalfNormal", scale)
        add("HalfCauchy", scale)
    for a, b in ((1.5, 2.5), ([0.7, 3.0], [2.0, 1.2]), ([[1.3], [4.0]], [0.8, 2.0])):
        for name in ("Beta", "Gamma", "InverseGamma", "Kumaraswamy", "Weibull", "Pareto", "FisherSnedecor"):
            add(name, a, b)
        for name in ("Chi2", "Exponential", "Poisson"):
            add(name, a)
    add("Pareto", [1.0, 2.0], [3.0, 5.0])
    add("FisherSnedecor", [3.0, 4.0], [7.0, 10.0])
    add("Uniform", [0.0, -1.0], [2.0, 3.0])
    add("VonMises", [0.3, 1.0], [0.7, 5.0])
    for p in (0.3, [0.2, 0.5, 0.9]):
        for name in ("Bernoulli", "Geometric", "ContinuousBernoulli"):
            add(name, p)
            add(name, logits=p)
        add("NegativeBinomial", 3.0, p)
        add("NegativeBinomial", [1.5, 4.0, 2.0], logits=p)
        add("RelaxedBernoulli", 0.7, p)
        out.append(("Binomial", binomial(p)))
    for w in ([0.2, 0.3, 0.5], [[0.2, 0.3, 0.5], [1.0, 1.0, 2.0]]):
        for name in ("Categorical", "OneHotCategorical", "OneHotCategoricalStraightThrough"):
            add(name, w)
            add(name, logits=w)
        add("Dirichlet", w)
        add("RelaxedOneHotCategorical", 0.7, w)
        out.append(("Multinomial", binomial(w, "Multinomial", 5)))
        out.append(("MixtureSameFamily", mixture(w)))
    add("Dirichlet", [[2.0, 3.0], [0.5, 4.0]])
    for name in ("covariance_matrix", "precision_matrix"):
        add("MultivariateNormal", [0.5, -1.0], **{name: SPD})
        add("Wishart", [3.0, 5.0], **{name: SPD})
    add("MultivariateNormal", [[0.5, -1.0], [1.0, 2.0], [0.0, 0.0]], scale_tril=[[1.0, 0.0], [0.3, 0.7]])
    add("LowRankMultivariateNormal", [0.5, -1.0, 2.0], W, [0.5, 1.0, 2.0])
    add("LogisticNormal", [0.5, -1.0], [0.5, 0.8])
    out.append(("LKJCholesky", lambda L, t: L.distributions.LKJCholesky(3, t([0.8, 2.0]))))
    out.append(("Independent", lambda L, t: L.distributions.Independent(
        L.distributions.Gamma(t([[1.0, 2.0], [3.0, 0.5]]), t([1.0, 2.0])), 1)))
    out.append(("TransformedDistribution", lambda L, t: L.distributions.TransformedDistribution(
        L.distributions.Normal(t([0.0, 1.0]), t([1.0, 0.5])),
        [L.distributions.AffineTransform(t(1.0), t(-2.0)), L.distributions.SigmoidTransform()])))
    return out


def ours(x: Any) -> Any:
    return mlc.tensor(np.asarray(x, np.float64)) if not isinstance(x, mlc.Tensor) else x


def theirs(x: Any) -> Any:
    return torch.tensor(x, dtype=torch.float64) if not isinstance(x, torch.Tensor) else x


def array(x: Any) -> np.ndarray:
    return np.asarray(x.detach().numpy())


def differs(found: Any, wanted: Any, rtol: float = 1e-6) -> str:
    a, b = array(found), array(wanted)
    if a.shape != b.shape:
        return f"shape {a.shape} for {b.shape}"
    return "" if np.allclose(a, b, rtol, 1e-8, equal_nan=True) else f"{a.tolist()} for {b.tolist()}"


def both(mine: Callable[[], Any], wanted: Callable[[], Any]) -> str | None:
    """Difference of a value from PyTorch's; None where PyTorch has none, or cannot compute it."""
    try:
        expected = wanted()
    except (NotImplementedError, RuntimeError, ValueError, AttributeError, AssertionError):
        return None
    try:
        return differs(mine(), expected)
    except (Error, TypeError, ValueError, AttributeError, RuntimeError, IndexError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def call(x: Any, name: str, *args: Any) -> Any:
    return getattr(x, name)(*args)


def values(make: Callable[[Any, Any], Any]) -> Iterator[tuple[str, str | None]]:
    """(aspect, what is wrong) of the methods that draw nothing."""
    p, q = make(mlc, ours), make(torch, theirs)
    for name in ("mean", "mode", "variance", "stddev"):
        if (type(p).__name__, name) not in WRONG_IN_PYTORCH:
            yield name, both(partial(getattr, p, name), partial(getattr, q, name))
    yield "entropy", both(p.entropy, q.entropy)
    shapes = [tuple(map(tuple, (d.batch_shape, d.event_shape))) for d in (p, q)]
    yield "shapes", "" if shapes[0] == shapes[1] else f"{shapes[0]} for {shapes[1]}"
    torch.manual_seed(0)
    x = q.sample((3,))
    for name in ("log_prob", "cdf"):
        yield name, both(partial(call, p, name, ours(x.numpy())), partial(call, q, name, x))
    u = torch.rand(3, *q.batch_shape, dtype=torch.float64)
    yield "icdf", both(lambda: p.icdf(ours(u.numpy())), lambda: q.icdf(u))
    yield "support", both(lambda: p.support.check(ours(x.numpy())), lambda: q.support.check(x))
    wider = (2, *q.batch_shape)
    yield "expand", both(lambda: p.expand(wider).log_prob(ours(x.numpy()[:1])),
                         lambda: q.expand(wider).log_prob(x[:1]))
    if q.has_enumerate_support:
        for expand in (True, False):
            yield "enumerate", both(partial(p.enumerate_support, expand), partial(q.enumerate_support, expand))
    if p.has_rsample != q.has_rsample:
        yield "has_rsample", f"{p.has_rsample} for {q.has_rsample}"


def gradients(make: Callable[[Any, Any], Any], draws: int) -> Iterator[tuple[str, str | None]]:
    """Gradients of log_prob, and mean gradients of rsample, with respect to the parameters."""
    found: list[Any] = []
    torch.manual_seed(0)
    try:
        make(torch, theirs).log_prob(make(torch, theirs).sample())
    except RuntimeError:                                   # of float32 only
        return
    x = make(torch, theirs).sample()
    for library, tensor in ((mlc, ours), (torch, theirs)):
        leaves: list[Any] = []

        def leaf(value: Any, tensor: Any = tensor, leaves: list[Any] = leaves) -> Any:
            leaves.append(tensor(value).requires_grad_())
            return leaves[-1]

        make(library, leaf).log_prob(tensor(x.numpy()) if library is mlc else x).sum().backward()
        logs = [p.grad for p in leaves]
        for p in leaves:
            p.grad = None
        of_samples = None
        if make(torch, theirs).has_rsample:
            drawn = make(library, leaf).rsample((draws,))
            (drawn / (1 + drawn.abs())).mean(0).sum().backward()       # heavy tails have no mean
            of_samples = [p.grad for p in leaves[len(logs):]]
        found.append((logs, of_samples))
    for a, b in zip(found[0][0], found[1][0]):
        if b is not None:
            yield "grad of log_prob", "none" if a is None else differs(a, b)
    if found[0][1] is not None:
        for a, b in zip(found[0][1], found[1][1]):
            if b is not None:
                spread = 12 / np.sqrt(draws)
                yield "grad of rsample", "none" if a is None else (
                    "" if np.allclose(array(a), array(b), spread, spread) else f"{array(a)} for {array(b)}")


def samples(make: Callable[[Any, Any], Any], draws: int) -> Iterator[tuple[str, str | None]]:
    """Shapes and dtypes of samples, and their moments beside those of PyTorch's samples, squashed into (-1, 1)."""
    mlc.manual_seed(1)
    torch.manual_seed(1)
    p, q = make(mlc, ours), make(torch, theirs)
    a, b = array(p.sample((draws,))), array(q.sample((draws,)))
    if a.shape != b.shape or a.dtype != b.dtype:
        yield "samples", f"{a.dtype}{a.shape} for {b.dtype}{b.shape}"
        return
    for power in (1, 2):
        x, y = ((v / (1 + np.abs(v))) ** power for v in (a, b))
        error = 5 * np.sqrt((x.var(0) + y.var(0)) / draws) + 1e-6
        yield "samples", "" if (np.abs(x.mean(0) - y.mean(0)) < error).all() else f"{x.mean(0)} for {y.mean(0)}"


def plain(name: str) -> Made:
    return lambda D, t: getattr(D, f"{name}Transform")()


CONSTRAINTS: list[tuple[str, Callable[[Any], Any], tuple[int, ...]]] = [
    ("real", lambda c: c.real, (3,)), ("positive", lambda c: c.positive, (3,)), ("greater_than",
    lambda c: c.greater_than(2.0), (3,)), ("less_than", lambda c: c.less_than(-1.0), (3,)), ("unit_interval",
    lambda c: c.unit_interval, (3,)), ("interval", lambda c: c.interval(-1.0, 3.0), (3,)), ("simplex",
    lambda c: c.simplex, (2, 3)), ("lower_cholesky", lambda c: c.lower_cholesky, (2, 3, 3)), ("positive_definite",
    lambda c: c.positive_definite, (2, 3, 3)), ("corr_cholesky", lambda c: c.corr_cholesky, (2, 6)), ("independent",
    lambda c: c.independent(c.positive, 1), (2, 3)), ("cat", lambda c: c.cat([c.positive, c.real], -1, [1, 2]), (3,)),
    ("stack", lambda c: c.stack([c.positive, c.real], -1), (2,))]
TRANSFORMS: list[tuple[str, Callable[[Any, Any], Any], tuple[int, ...]]] = [
    *[(f"{n}Transform", plain(n), (2, 3))
      for n in ("Exp", "Sigmoid", "Softplus", "Tanh", "Abs", "Softmax", "StickBreaking", "CorrCholesky")],
    *[(f"{n}Transform", plain(n), (2, 3, 3)) for n in ("LowerCholesky", "PositiveDefinite")],
    ("AffineTransform", lambda D, t: D.AffineTransform(t([1.0, 2.0, 3.0]), t([-2.0, 1.0, 0.5]), event_dim=1),
     (2, 3)),
    ("PowerTransform", lambda D, t: D.ComposeTransform([D.ExpTransform(), D.PowerTransform(t(1.5))]), (2, 3)),
    ("ReshapeTransform", lambda D, t: D.ReshapeTransform((3,), (3, 1)), (2, 3)),
    ("IndependentTransform", lambda D, t: D.IndependentTransform(D.ExpTransform(), 1), (2, 3)),
    ("CatTransform", lambda D, t: D.CatTransform([D.ExpTransform(), D.TanhTransform()], -1, [1, 2]), (2, 3)),
    ("StackTransform", lambda D, t: D.StackTransform([D.ExpTransform(), D.TanhTransform()], 0), (2, 3)),
    ("CumulativeDistributionTransform", lambda D, t: D.CumulativeDistributionTransform(D.Normal(t(0.0), t(1.0))),
     (2, 3)),
    ("ComposeTransform", lambda D, t: D.ComposeTransform([D.AffineTransform(t(0.5), t(2.0)),
                                                          D.StickBreakingTransform()]), (2, 3))]


def transforms() -> Iterator[tuple[str, str | None]]:
    """Transforms with their inverses and determinants, and those to the sets of constraints."""
    made = [(name, make(mlc.distributions, ours), make(torch.distributions, theirs), shape)
            for name, make, shape in TRANSFORMS]
    for registry in ("biject_to", "transform_to"):
        made += [(f"{registry}({name})", getattr(mlc.distributions, registry)(make(mlc.distributions.constraints)),
                  getattr(torch.distributions, registry)(make(torch.distributions.constraints)), shape)
                 for name, make, shape in CONSTRAINTS
                 if registry == "transform_to" or name not in ("lower_cholesky", "positive_definite")]
    for name, f, g, shape in made:
        x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        y = g(x)
        mine, other = ours(x.numpy()), ours(y.numpy())
        yield name, both(partial(f, mine), partial(g, x))
        yield name, both(partial(f.inv, other), partial(g.inv, y))
        yield name, both(partial(f.log_abs_det_jacobian, mine, other), partial(g.log_abs_det_jacobian, x, y))
        yield name, "" if tuple(f.forward_shape(shape)) == tuple(g.forward_shape(shape)) else "forward_shape"
        yield name, both(partial(f.codomain.check, other), partial(g.codomain.check, y))


def divergence(p: Callable[[Any, Any], Any], q: Callable[[Any, Any], Any]) -> Any:
    return mlc.distributions.kl_divergence(p(mlc, ours), q(mlc, ours))


def divergences() -> Iterator[tuple[str, str | None]]:
    """All pairs of the table above that PyTorch has a formula for, and whose batches broadcast."""
    every = rows()
    for name_p, make_p in every:
        for name_q, make_q in every:
            p, q = make_p(torch, theirs), make_q(torch, theirs)
            if p.batch_shape != q.batch_shape:
                continue
            wrong = both(partial(divergence, make_p, make_q), partial(torch.distributions.kl_divergence, p, q))
            yield f"kl({name_p}, {name_q})", wrong


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.peers.distributions", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression for names of distributions")
    parser.add_argument("--draws", type=int, default=20_000, help="number of samples")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    table: dict[str, list[int]] = {}

    def count(entry: str, found: Iterator[tuple[str, str | None]]) -> None:
        of_entry = table.setdefault(entry, [0, 0, 0])
        try:
            for aspect, wrong in found:
                of_entry[2 if wrong is None else bool(wrong)] += 1
                if wrong:
                    print(f"differs: {entry} {aspect}: {wrong[:300]}", flush=True)
        except (Error, TypeError, ValueError, AttributeError, RuntimeError, IndexError) as error:
            of_entry[1] += 1
            print(f"differs: {entry}: {type(error).__name__}: {str(error)[:300]}", flush=True)

    with eager.compiled_by(lambda module, where: Meaning(module)):
        for name, make in rows():
            if re.search(options.only, name):
                count(name, values(make))
                count(name, gradients(make, options.draws))
                count(name, samples(make, options.draws))
        if re.search(options.only, "transforms"):
            count("transforms", transforms())
        if re.search(options.only, "divergences"):
            count("divergences", divergences())
    for entry, (agree, differ, none) in table.items():
        print(f"{'differs' if differ else 'pass':8} {entry:34} {agree:5} agree, {differ} differ, {none} not in PyTorch")


if __name__ == "__main__":
    main(sys.argv[1:])
