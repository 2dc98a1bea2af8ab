"""Random operators. Their numbers are functions of a key that each call of the graph draws from PyTorch's generator,
and of the operator's place in the graph: they repeat with `torch.manual_seed`, and are not those of PyTorch's own
kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.fx.table import row
from mlc.frontend.tensor import OPERATIONS as O


@row("rand.default", random=True)
def rand(key: Any, size: Sequence[Any], *, dtype: Any = None) -> Any:
    return O["random.uniform"](key, tuple(size), dtype=dtype or "float32")


@row("randn.default", random=True)
def randn(key: Any, size: Sequence[Any], *, dtype: Any = None) -> Any:
    return O["random.normal"](key, tuple(size), dtype=dtype or "float32")


@row("rand_like", random=True)
def rand_like(key: Any, x: Any, *, dtype: Any = None) -> Any:
    return O["random.uniform"](key, x.shape, dtype=dtype or x.dtype)


@row("randn_like", random=True)
def randn_like(key: Any, x: Any, *, dtype: Any = None) -> Any:
    return O["random.normal"](key, x.shape, dtype=dtype or x.dtype)


@row("randint.default", random=True)
def randint(key: Any, high: int, size: Sequence[Any], *, dtype: Any = None) -> Any:
    return O["random.randint"](key, tuple(size), 0, high, dtype=dtype or "int64")


@row("randint.low", random=True)
def randint_low(key: Any, low: int, high: int, size: Sequence[Any], *, dtype: Any = None) -> Any:
    return O["random.randint"](key, tuple(size), low, high, dtype=dtype or "int64")


@row("randperm.default", random=True)
def randperm(key: Any, n: int, *, dtype: Any = None) -> Any:
    return O["cast"](O["random.randperm"](key, n), dtype or "int64")


@row("native_dropout", random=True)
def native_dropout(key: Any, x: Any, p: float, train: bool | None) -> Any:
    """The result, and the mask of what is kept."""
    if train is False or p == 0:
        return x, O["ones_like"](x, dtype="bool")
    if p == 1:
        return O["zeros_like"](x), O["zeros_like"](x, dtype="bool")
    kept = O["random.bernoulli"](key, 1 - p, x.shape)
    return x * kept * (1 / (1 - p)), kept


@row("bernoulli.default", random=True)
def bernoulli(key: Any, p: Any) -> Any:
    return O["cast"](O["random.bernoulli"](key, p, p.shape), p.dtype)


@row("bernoulli.p", random=True)
def bernoulli_p(key: Any, x: Any, p: float = 0.5) -> Any:
    return O["cast"](O["random.bernoulli"](key, p, x.shape), x.dtype)


@row("uniform.default", "uniform", random=True)
def uniform(key: Any, x: Any, low: float = 0.0, high: float = 1.0) -> Any:
    return O["random.uniform"](key, x.shape, low, high, x.dtype)


@row("normal_functional", random=True)
def normal(key: Any, x: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    return O["random.normal"](key, x.shape, mean, std, x.dtype)


@row("exponential", random=True)
def exponential(key: Any, x: Any, rate: float = 1.0) -> Any:
    return O["random.exponential"](key, x.shape, rate, x.dtype)
