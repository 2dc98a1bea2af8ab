"""Symbolic sizes of arguments, in the forms that PyTorch's exporter takes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlc.api import Compiled, compiled_function
from mlc.frontend.location import user_loc
from mlc.frontend.signature import Spec, spec
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.ir.types import from_numpy

FORMS = 'it is as in {"x": {0: "batch"}}, ({0: "batch"}, None) or (("batch", None), None)'


def with_symbols(f: Any, args: list[Any] | None, keywords: dict[str, Any], shapes: Any,
                 axes: Mapping[str, Any] | None, input_names: Sequence[str] | None
                 ) -> tuple[list[Any] | None, dict[str, Any]]:
    """The arguments, with specifications in place of arrays that are to have symbolic sizes."""
    if shapes is None and axes is None:
        return args, keywords
    if args is None:
        raise UserError("symbolic sizes are given for arguments that are not", code="MLC0850", loc=user_loc(),
                        hint="pass args, or specifications (mlc.spec) alone")
    signature = (compiled_function(f) or Compiled(f)).signature
    names = [*signature.names[len(signature.bound):][:len(args)]]
    names += [f"args[{i}]" for i in range(len(names), len(args))]
    wanted = _by_name(shapes, names, keywords) if shapes is not None else _of_axes(axes or {}, input_names, names)
    given = {**dict(zip(names, args)), **keywords}
    if unknown := [n for n in wanted if n not in given]:
        raise UserError(f"there is no argument {unknown[0]!r}", code="MLC0850", loc=user_loc(),
                        hint=f"the arguments are {', '.join(given)}")
    given = {name: _symbolic(x, wanted.get(name), name) for name, x in given.items()}
    return [given[n] for n in names], {n: given[n] for n in keywords}


def _by_name(shapes: Any, names: Sequence[str], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The symbolic sizes that are wanted, by argument."""
    if isinstance(shapes, Mapping):
        return dict(shapes)
    if not isinstance(shapes, tuple | list) or len(shapes) > len(names) + len(keywords):
        raise _unfit("dynamic_shapes", shapes)
    return dict(zip([*names, *keywords], shapes))


def _of_axes(axes: Mapping[str, Any], input_names: Sequence[str] | None, names: Sequence[str]) -> dict[str, Any]:
    """PyTorch's older form, which goes by the names of inputs and may also name results."""
    known = dict(zip(input_names or (), names))
    out = {}
    for name, wanted in axes.items():
        target = known.get(name, name)
        if target in names:
            out[target] = wanted if isinstance(wanted, Mapping) else {a: f"{target}_{a}" for a in wanted}
    return out


def _symbolic(x: Any, wanted: Any, path: str) -> Any:
    """An argument with symbols for sizes; of containers, their elements."""
    if wanted is None:
        return x
    if isinstance(x, Mapping) and isinstance(wanted, Mapping):
        return {k: _symbolic(y, wanted.get(k), f"{path}_{k}") for k, y in x.items()}
    if isinstance(x, tuple | list) and isinstance(wanted, tuple | list) and len(x) == len(wanted):
        return type(x)([_symbolic(y, v, f"{path}_{i}") for i, (y, v) in enumerate(zip(x, wanted))])
    if isinstance(x, Spec):
        shape, dtype = x.shape, x.type.dtype
    elif isinstance(x, Tensor | np.ndarray):
        shape, dtype = tuple(x.shape), from_numpy(np.dtype(x.dtype.dtype if isinstance(x, Tensor) else x.dtype))
    else:
        raise _unfit(f"what is given for the sizes of {path}", wanted)
    if isinstance(wanted, tuple | list) and len(wanted) == len(shape):
        wanted = dict(enumerate(wanted))
    if not isinstance(wanted, Mapping) or not all(isinstance(a, int) and -len(shape) <= a < len(shape) for a in wanted):
        raise _unfit(f"what is given for the sizes of {path}", wanted)
    sizes = list(shape)
    for axis, name in wanted.items():
        sizes[axis] = _size(name, shape[axis], f"{path}_{axis % len(shape)}")
    return Spec(spec(*sizes).type.with_dtype(dtype))


def _size(name: Any, known: Any, otherwise: str) -> Any:
    """A size: a symbol by its name, or by that of the axis, or what is known."""
    if name is None or (isinstance(name, int) and not isinstance(name, bool) and name == known):
        return known
    text = getattr(name, "__name__", name)
    if not isinstance(text, str):                          # such as Dim.DYNAMIC and True: any name
        text = otherwise
    return re.sub(r"\W", "_", text)


def _unfit(what: str, found: Any) -> UserError:
    return UserError(f"{what} is {found!r}", code="MLC0850", loc=user_loc(), hint=FORMS)
