"""Functions and modules of mlc's as models in the format ONNX."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mlc.backends.onnx import emit
from mlc.backends.onnx.graph import IR_VERSIONS, model_proto
from mlc.backends.onnx.graph import Program as Written
from mlc.frontend.arguments import coded
from mlc.frontend.location import user_loc
from mlc.frontend.output_files import write_file
from mlc.ir.core import Op
from mlc.ir.diag import UserError
from mlc.ir.types import from_numpy
from mlc.onnx.dynamic import with_symbols
from mlc.onnx.recorded import recorded

OPSET = 20
"""The version of the operators that is written if none is asked for, as PyTorch does."""
LARGEST = (1 << 31) - (1 << 16)
"""Most bytes of a model in one file, with room for what is no weight: a protocol buffer has less than 2 GiB."""
SMALL = 1024
"""Bytes of an array that stays in the model where weights are in a file of their own."""


@coded
def export(model: Any, args: Any = None, f: Any = None, *, kwargs: Mapping[str, Any] | None = None,
           input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
           opset_version: int | None = None, dynamic_shapes: Any = None,
           dynamic_axes: Mapping[str, Any] | None = None, export_params: bool = True,
           keep_initializers_as_inputs: bool = False, external_data: bool | None = None) -> Any:
    """A function or module as a model in the format ONNX, which ONNX Runtime and other programs run.

    Parameters and buffers of a module are initializers, by the names of `state_dict`. A module is written in the mode
    that it is in, training or evaluation. What a call changes besides giving results, such as the parameters of a
    training step or running statistics, is an input with its present value, whose new value is a result named `.new`;
    gradients that are set are results named `.grad`. A function that draws random numbers takes a `key`.

    Args:
        model: Module, function, or result of `mlc.compile`; derivatives and training steps are functions, too.
        args: Positional arguments, arrays or specifications (`mlc.spec`) whose sizes may be symbols; None for the
            annotations of the function.
        f: Name of the file, which is written as a whole or not at all; None for none.
        kwargs: Keyword arguments.
        input_names: Names of the inputs that are no weights, in their order; None for those of the parameters.
        output_names: Names of the results, in their order.
        opset_version: Version of the operators, 20 to 26; None for 20.
        dynamic_shapes: Per argument, by name or position, the names of symbolic sizes: a dict of axes, or a sequence
            with an entry for each axis, a name or None.
        dynamic_axes: The same in PyTorch's older form: per input a dict of axes and names, or a list of axes.
        export_params: Whether weights are part of the model; otherwise they are inputs.
        keep_initializers_as_inputs: Whether weights are inputs, too, with the present values as their defaults.
        external_data: Whether large arrays are in a file of their own beside f; None for where they have to be.

    Returns:
        The `onnx.ModelProto`.

    Raises:
        UserError: An operation has no counterpart (MLC0848), the model is too large for one file (MLC0849), an
            argument does not fit (MLC0850), the file cannot be written (MLC0393), or the package onnx is not installed
            (MLC0847).

    Example:
        >>> model = mlc.onnx.export(nn.Linear(2, 3), (mlc.ones(1, 2),), dynamic_shapes=({0: "batch"},))
        >>> [x.name for x in model.graph.initializer], model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
        (['weight', 'bias'], 'batch')
        >>> mlc.onnx.load(model)(mlc.ones(4, 2)).shape
        (4, 3)
    """
    opset = checked_opset(opset_version)
    given = None if args is None else list(args) if isinstance(args, tuple | list) else [args]
    given, keywords = with_symbols(model, given, dict(kwargs or {}), dynamic_shapes, dynamic_axes, input_names)
    program = recorded(model, given, keywords)
    weights = program.weights if export_params else {}
    free = [n for n in program.inputs if n not in weights]
    renamed = dict(zip(free, _named(input_names, len(free), "input_names", "inputs")))
    inputs = [renamed.get(n, n) for n in program.inputs]
    for r, name in zip(program.results, _named(output_names, len(program.results), "output_names", "results")):
        r.name = name
    _check_distinct([*inputs, *(r.name for r in program.results)])
    out = emit(program.module, opset, inputs, program.results, program.name)
    for name, value in weights.items():
        out.constants = {**out.constants, name: (value, from_numpy(value.dtype))}
    out.graph.inputs = [renamed.get(n, n) for n in program.inputs
                        if n not in weights or n in program.changed or keep_initializers_as_inputs]
    out.constants = dict(sorted(out.constants.items(), key=lambda item: item[0] not in weights))
    return finish(out, opset, f, external_data)


def module_model(module: Op, f: Any = None, opset_version: int | None = None) -> Any:
    """A module of the tensor dialect, whose main is written as a model; it is lowered in place."""
    opset = checked_opset(opset_version)
    main = next(op for op in module.regions[0].block if op.attrs.get("sym_name") == "main")
    args = main.regions[0].block.args
    names = [a.name if a.name and not a.name.isdecimal() else f"input_{i}" for i, a in enumerate(args)]
    return finish(emit(module, opset, names), opset, f, None)


def checked_opset(version: int | None) -> int:
    """A version of the operators that can be written."""
    if importlib.util.find_spec("onnx") is None:
        raise UserError("the package onnx, which writes models, is not installed", code="MLC0847", loc=user_loc(),
                        hint="pip install 'mlc[onnx]'")
    import onnx
    if version is None:
        return OPSET
    most = min(max(IR_VERSIONS), onnx.defs.onnx_opset_version())
    if version not in IR_VERSIONS or version > most:
        raise UserError(f"models are written with the operators of version {min(IR_VERSIONS)} to {most}, not {version}",
                        code="MLC0850", loc=user_loc(), hint=f"pass opset_version={OPSET}, or none")
    return version


def _named(names: Sequence[str] | None, count: int, what: str, of: str) -> Sequence[str]:
    """Names that were given; none if none were."""
    if names is not None and len(names) > count:
        raise UserError(f"{what} has {len(names)} names, and the model has {count} {of}", code="MLC0850",
                        loc=user_loc(), hint="give one name for each")
    return names or ()


def _check_distinct(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen or not name:
            raise UserError(f"two values of the model are named {name!r}" if name else "a value has an empty name",
                            code="MLC0850", loc=user_loc(), hint="give input_names and output_names that differ from "
                                                                 "each other and from the names of weights")
        seen.add(name)


# -- files ------------------------------------------------------------------------------------------------------------
def finish(program: Written, opset: int, f: Any, external_data: bool | None) -> Any:
    """The model, which is written to a file if there is one."""
    import mlc
    size = sum(array.nbytes for array, _ in program.constants.values())
    beside = external_data if external_data is not None else size > LARGEST
    if size > LARGEST and not (beside and f is not None):
        raise UserError(f"the arrays of the model have {size} bytes, and one file holds less than 2 GiB",
                        code="MLC0849", loc=user_loc(), hint="give the name of a file, and leave out external_data: "
                                                             "the weights are written beside it")
    if f is None:
        return model_proto(program, opset, "mlc", mlc.__version__)
    if not isinstance(f, str | os.PathLike):
        model = model_proto(program, opset, "mlc", mlc.__version__)
        f.write(model.SerializeToString())
        return model
    if not beside:
        model = model_proto(program, opset, "mlc", mlc.__version__)
        write_file(f, [model.SerializeToString()])
        return model
    return _beside(program, opset, Path(f))


def _beside(program: Written, opset: int, path: Path) -> Any:
    """Write a model whose large arrays are in a file of their own, whose name has their checksum.

    So the old model keeps its arrays until the new one is there.
    """
    import mlc
    large = {n: x for n, x in program.constants.items() if x[0].nbytes >= SMALL}
    digest = hashlib.sha256()
    for array, _ in large.values():
        digest.update(_bytes(array))
    data = path.with_name(f"{path.name}.{digest.hexdigest()[:16]}.data")
    small = Written(program.graph, program.types, {n: x for n, x in program.constants.items() if n not in large})
    model = model_proto(small, opset, "mlc", mlc.__version__)
    offset = 0
    for name, (array, dtype) in large.items():
        model.graph.initializer.append(_reference(name, array, dtype, data.name, offset))
        offset += array.nbytes
    write_file(data, (_bytes(array) for array, _ in large.values()))
    write_file(path, [model.SerializeToString()])
    _remove_others(data, path)
    return model


def _bytes(array: Any) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _reference(name: str, array: Any, dtype: Any, location: str, offset: int) -> Any:
    """A `TensorProto` whose elements are in a file."""
    from onnx import TensorProto

    from mlc.backends.onnx.graph import data_type
    out = TensorProto(name=name, data_type=data_type(dtype), dims=array.shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", array.nbytes)):
        out.external_data.add(key=key, value=str(value))
    return out


def _remove_others(data: Path, path: Path) -> None:
    """Remove the arrays of the models that had this name before."""
    mine = re.compile(re.escape(path.name) + r"\.[0-9a-f]{16}\.data")
    for other in path.parent.iterdir():
        if mine.fullmatch(other.name) and other != data:
            other.unlink(missing_ok=True)
