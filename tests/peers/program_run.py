"""Run one program under PyTorch or mlc, in a process of its own.

    python program_run.py LIBRARY OUT STATE LIMIT SCRIPT [ARGUMENT ...]

STATE is a folder through which the run under mlc gets the parameters of the run under PyTorch, or "-", and then the
program is run as it is. With a STATE, random numbers are numpy's in both, and dropout is off. OUT gets the values of
all losses (of the tensors that `backward` is called of), at most LIMIT of them, and the first error.
"""

from __future__ import annotations

import importlib
import json
import random
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np


class Enough(BaseException):
    """As many losses as were asked for; no error of the program catches it."""


def record_losses(tensor: Any, limit: int) -> list[float]:
    """Replace `backward`; gives the list that the losses are appended to."""
    losses: list[float] = []
    backward = tensor.backward

    def recorded(x: Any, *args: Any, **keywords: Any) -> Any:
        losses.append(float(x.detach().sum().item()))
        out = backward(x, *args, **keywords)
        if len(losses) >= limit:
            raise Enough
        return out

    tensor.backward = recorded
    return losses


def share_parameters(library: Any, folder: Path, save: bool) -> None:
    """Save or load parameters before their first use: when an optimizer is made, or at a call of a module."""
    known: dict[int, Any] = {}
    moments = iter(range(10**9))

    def meet(parameters: list[Any]) -> None:
        if not save and library.frontend.trace.state.trace is not None:
            return                                         # a function is recorded, with parameters of its own
        new = [p for p in {id(p): p for p in parameters}.values()
               if id(p) not in known and isinstance(p, library.nn.Parameter)]      # not what functional_call puts there
        if not new:
            return
        known.update({id(p): p for p in new})              # which also keeps them, so that no other one gets this id
        file = folder / f"{next(moments)}.npz"
        if save:
            np.savez(file, *((p.detach().float() if p.dtype == library.bfloat16 else p.detach()).numpy() for p in new))
            return
        with np.load(file) as arrays, library.no_grad():
            if [arrays[name].shape for name in arrays.files] != [tuple(p.shape) for p in new]:
                raise AssertionError(f"parameters of other shapes: {[tuple(p.shape) for p in new]}")
            for p, name in zip(new, arrays.files):
                p.copy_(library.from_numpy(arrays[name]))

    def before(owner: Any, name: str, parameters: Callable[[Any], list[Any]]) -> None:
        method = getattr(owner, name)

        def wrapped(x: Any, *args: Any, **keywords: Any) -> Any:
            meet(parameters(x))
            return method(x, *args, **keywords)

        setattr(owner, name, wrapped)

    before(library.nn.Module, "__call__", lambda module: list(module.parameters()))
    before(library.nn.Module, "zero_grad", lambda module: list(module.parameters()))
    hold = "hold" if hasattr(library.optim.Optimizer, "hold") else "__init__"
    method = getattr(library.optim.Optimizer, hold)

    def held(optimizer: Any, *args: Any, **keywords: Any) -> None:
        method(optimizer, *args, **keywords)
        meet([p for group in optimizer.param_groups for p in group["params"]])

    setattr(library.optim.Optimizer, hold, held)


def share_random_numbers(library: Any) -> None:
    """Random numbers of one numpy generator in place of the library's, and no dropout."""
    random.seed(7)
    rng = np.random.default_rng(7)

    def normal(*size: Any, **keywords: Any) -> Any:
        shape = tuple(size[0]) if size and not isinstance(size[0], int) else size
        return of_numpy(rng.standard_normal(shape), keywords)

    def order(sampler: Any) -> Iterator[int]:
        count = len(sampler.data_source)
        if sampler.replacement:
            yield from (int(rng.integers(count)) for _ in range(sampler.num_samples))
        else:
            yield from rng.permutation(count).tolist()

    def uniform(*size: Any, **keywords: Any) -> Any:
        shape = tuple(size[0]) if size and not isinstance(size[0], int) else size
        return of_numpy(rng.random(shape), keywords)

    def of_numpy(array: Any, keywords: dict[str, Any]) -> Any:
        made = library.from_numpy(np.asarray(array).astype(np.float32)).to(keywords.get("dtype") or library.float32)
        return made.requires_grad_(keywords.get("requires_grad", False))

    def integers(*bounds: Any, size: Any = None, dtype: Any = None, **_: Any) -> Any:
        *limits, shape = bounds if size is None else (*bounds, size)
        low, high = limits if len(limits) == 2 else (0, *limits)
        return library.from_numpy(rng.integers(low, high, tuple(shape))).to(dtype or library.int64)

    def multinomial(weights: Any, num_samples: int, replacement: bool = False, **_: Any) -> Any:
        rows = weights.detach().double().numpy().reshape(-1, weights.shape[-1])
        drawn = [rng.choice(len(row), num_samples, replacement, row / row.sum()) for row in rows]
        return library.from_numpy(np.stack(drawn).reshape(*weights.shape[:-1], num_samples))

    library.randn = normal
    library.randn_like = lambda x, dtype=None, **_: normal(*x.shape).to(dtype or x.dtype)
    library.rand = uniform
    library.rand_like = lambda x, dtype=None, **_: uniform(*x.shape, dtype=dtype or x.dtype)
    library.randperm = lambda n, **_: library.from_numpy(rng.permutation(n))
    library.randint = integers
    library.multinomial = multinomial
    library.bernoulli = lambda x, **_: of_numpy(rng.random(tuple(x.shape)) < x.detach().numpy(), {"dtype": x.dtype})
    library.utils.data.RandomSampler.__iter__ = order
    library.nn.functional.dropout = lambda x, *_, **__: x
    for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d"):
        getattr(library.nn, name).forward = lambda layer, x: x
    for name in ("LSTM", "GRU", "RNN", "MultiheadAttention"):
        _without_dropout(getattr(library.nn, name))
    try:
        categorical = importlib.import_module(library.__name__ + ".distributions").Categorical
    except ImportError:
        return

    def sample(distribution: Any, sample_shape: Any = ()) -> Any:
        bounds = distribution.probs.detach().numpy().cumsum(-1)
        return library.from_numpy(np.asarray((rng.random((*bounds.shape[:-1], 1)) > bounds).sum(-1)))

    categorical.sample = sample


def _without_dropout(layer: Any) -> None:
    """Layers of this class have no dropout of their own, whatever they are made with."""
    make = layer.__init__

    def made(module: Any, *args: Any, **keywords: Any) -> None:
        make(module, *args, **keywords)
        module.dropout = 0.0

    layer.__init__ = made


def main() -> None:
    name, out, state, limit, script, *arguments = sys.argv[1:]
    library: Any = importlib.import_module(name)
    for module in ("nn", "nn.functional", "optim", "utils.data"):
        importlib.import_module(f"{name}.{module}")
    losses = record_losses(library.Tensor, int(limit))
    if state != "-":
        share_parameters(library, Path(state), name == "torch")
        share_random_numbers(library)
    sys.path[0] = "."
    sys.argv = [script, *arguments]
    error = None
    try:
        runpy.run_path(script, run_name="__main__")
    except Enough:
        pass
    except (Exception, SystemExit) as problem:
        if not isinstance(problem, SystemExit) or problem.code:
            error = f"{type(problem).__name__}: {problem}"
            traceback.print_exc()
    Path(out).write_text(json.dumps({"losses": losses, "error": error}))


if __name__ == "__main__":
    main()
