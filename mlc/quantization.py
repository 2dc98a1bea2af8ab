"""Post-training quantisation: the products of a trained model's layers by integers of 8 bits.

`quantize` makes a copy of a model whose linear layers and convolutions are those of `mlc.nn.quantized`. The functions
that these are made of are here, too.

Example:
    >>> x = mlc.tensor([[0.0, 0.5, 1.0]])
    >>> steps = mlc.quantization.quantize_per_tensor(x, 1 / 255, 0)
    >>> mlc.quantization.linear_integer(steps, mlc.tensor([[1, 2, 3]], dtype="int8"))
    tensor([[1021]], dtype=mlc.int32)
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from mlc.autograd import no_grad
from mlc.frontend.functions.quantized import MOST_TERMS, conv_integer, linear_integer, quantize_per_tensor
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserTypeError
from mlc.nn import quantized
from mlc.nn.module import Module

__all__ = ["conv_integer", "linear_integer", "quantize", "quantize_per_tensor"]

LARGEST = float(np.finfo(np.float32).max)


def quantize(model: Module, batches: Iterable[Any], keep: Collection[str] = ()) -> Module:
    """A copy of a model whose linear layers and convolutions multiply integers of 8 bits.

    The model is called with each batch, and the range of each layer's inputs is taken note of (calibration). Weights
    are rounded to 255 steps of a scale for each output, inputs to 256 steps of one scale, which are added exactly; all
    else is computed as before. Processors with AVX512_VNNI multiply four such numbers for one of float32; others take
    longer than for float32. The copy is for inference: it has buffers in place of parameters, in its `state_dict`, too.

    Depthwise convolutions, and convolutions whose padding is none of zeros, stay as they are: their time is that of
    memory. So does `nn.MultiheadAttention`. A model that reads the weight of a layer itself names that layer in `keep`:
    the copy has none.

    Args:
        model: The model, which stays as it is.
        batches: Arguments of calls: a tensor, or a tuple of arguments, for each. A hundred samples like those that the
            model will see are enough; numbers beyond the range that they show are clamped.
        keep: Names of layers that stay as they are, as in `model.named_modules()`, with all that is in them.

    Returns:
        The copy, in evaluation mode.

    Raises:
        UserTypeError: `model` is no module, or `batches` are one tensor (MLC0998).
        UserError: There are no batches, a layer of `keep` does not exist, a layer was not called, or inputs or weights
            are not finite (MLC0998).

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> small = mlc.quantization.quantize(model, [mlc.randn(16, 4) for _ in range(8)])
        >>> type(small[0]).__module__
        'mlc.nn.quantized'
    """
    if not isinstance(model, Module):
        raise UserTypeError(f"expected a module, found {type(model).__name__}", code="MLC0998", loc=user_loc())
    if isinstance(batches, Tensor):
        raise UserTypeError("expected batches, found one tensor", code="MLC0998", loc=user_loc(),
                            hint="give a list of batches, as in quantize(model, [x])")
    made = copy.deepcopy(model).eval()
    named = dict(made.named_modules(remove_duplicate=False))
    if unknown := [n for n in keep if n not in named]:
        raise UserError(f"the model has no layer {unknown[0]!r} to keep", code="MLC0998", loc=user_loc())
    kept = {id(layer) for name, layer in named.items()
            if any(n in ("", name) or name.startswith(f"{n}.") for n in keep)}
    layers = {id(layer): (name, layer) for name, layer in reversed(named.items())
              if _is_quantizable(layer) and id(layer) not in kept}
    ranges = _calibrate(made, [layer for _, layer in layers.values()], batches)
    for name, layer in layers.values():
        low, high = ranges[id(layer)]
        why = "was not called with any batch" if low > high else "" if abs(high - low) <= LARGEST else (
            "was called with numbers that are not finite, or as good as")
        if not why and not bool(layer.weight.isfinite().all()):
            why = "has weights that are not finite"
        if why:
            raise UserError(f"the layer {name or 'model'!r} {why}", code="MLC0998", loc=user_loc(),
                            hint="give batches that reach it, or its name as one to `keep`")
        _become(layer, low, high)
    return made


def _become(layer: Module, low: float, high: float) -> None:
    """Make a layer its quantised one, for inputs from `low` to `high`: it stays the same object, with its hooks, in all
    places that hold it."""
    made, device = quantized.OF[type(layer)](layer, low, high), layer.weight.device
    kept = {name: value for name, value in vars(layer).items() if name.endswith("_hooks")}
    vars(layer).clear()
    vars(layer).update(vars(made.to(device=device)) | kept)
    layer.__class__ = type(made)
    layer.eval()


def _is_quantizable(layer: Module) -> bool:
    """Whether a layer has a quantised one, which is faster, and whose sums fit in int32."""
    if type(layer) not in quantized.OF or math.prod(layer.weight.shape[1:]) > MOST_TERMS:
        return False
    groups = getattr(layer, "groups", 1)
    return getattr(layer, "padding_mode", "zeros") == "zeros" and (groups == 1 or layer.in_channels > groups)


def _calibrate(model: Module, layers: Sequence[Module], batches: Iterable[Any]) -> dict[int, tuple[float, float]]:
    """The least and the greatest number of each layer's inputs, over all batches, by its identity."""
    ranges = dict.fromkeys(map(id, layers), (math.inf, -math.inf))

    def hook(layer: Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        x, (low, high) = args[0] if args else keywords["input"], ranges[id(layer)]
        x = np.asarray(x.detach().float().cpu()) if isinstance(x, Tensor) else np.asarray(x)
        if x.size:                                         # a NaN makes the range one
            ranges[id(layer)] = float(np.minimum(low, x.min())), float(np.maximum(high, x.max()))

    handles = [layer.register_forward_pre_hook(hook, with_kwargs=True) for layer in layers]
    count = 0
    with no_grad():
        for batch in batches:
            model(*batch) if isinstance(batch, tuple) else model(batch)
            count += 1
    for handle in handles:
        handle.remove()
    if not count:
        raise UserError("there are no batches to calibrate with", code="MLC0998", loc=user_loc(),
                        hint="give some of the inputs that the model will see")
    return ranges
