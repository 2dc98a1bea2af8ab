"""ONNX models as compiled modules of mlc's, which are called, saved and exported like any other."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mlc.api import compile, lower
from mlc.frontend.dtypes import as_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.onnx import bodies
from mlc.frontend.onnx.interpreter import Interpreter, missing
from mlc.frontend.onnx.model import Model, read, type_text
from mlc.frontend.onnx.values import OTHER_TYPES, TYPES, Stored, tensor
from mlc.frontend.signature import Spec
from mlc.frontend.tensor import Tensor, wrap
from mlc.ir.affine_syntax import parse_size
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType
from mlc.nn.imported import ImportedModule, imported_module, tensor_at


class Program:
    """A model, and what of it is fixed.

    constants   per input whose elements are part of the program, these
    inputs      the other inputs: name and `TypeProto`
    parameters  their names as parameters of `forward`
    state       per weight its name in the module
    fixed       the weights whose elements are part of the program, since sizes depend on them
    asked       those whose elements a recording asked for
    refused     the errors of its nodes, if recording goes on after them; None if it ends with the first
    """

    def __init__(self, model: Model, constants: Mapping[str, Any]) -> None:
        self.model = model
        given = dict(model.inputs)
        if unknown := sorted(set(constants) - set(given)):
            raise UserError(f"the model has no input {unknown[0]!r}", code="MLC0846", loc=user_loc(),
                            hint=f"its inputs are {', '.join(given)}")
        self.constants = {n: constant(given[n], x) for n, x in constants.items()}
        self.inputs = [(n, t) for n, t in model.inputs if n not in constants]
        self.parameters = unique([identifier(n) for n, _ in self.inputs], {"self"})
        paths = unique([path_of(n) for n in model.weights], set())
        self.state = dict(zip(model.weights, paths))
        self.fixed = frozenset(n for n, x in model.weights.items() if x.dtype.kind == "U")
        self.asked = set[str]()
        self.refused: list[UserError] | None = None

    def run(self, read: Any, tensors: Sequence[Any]) -> Any:
        """The results for arguments, and weights that `read` finds by their names in the module."""
        weights: dict[str, Any] = {n: x if n in self.fixed else Stored(x, partial(read, self.state[n]))
                                   for n, x in self.model.weights.items()}
        given = {n: self.argument(n, t, x) for (n, t), x in zip(self.inputs, tensors)}
        interpreter = Interpreter(self.model.functions, self.model.types, self.refused)
        found = interpreter.run(self.model.proto.graph, {**weights, **self.constants, **given}, self.model.opsets)
        self.asked |= {n for n, x in weights.items() if isinstance(x, Stored) and x.asked}
        results = tuple(map(result, found))
        return results[0] if len(results) == 1 else results

    def argument(self, name: str, proto: Any, x: Any) -> Any:
        """An argument; UserError if it is not of the type of the input."""
        if proto.WhichOneof("value") != "tensor_type" or not isinstance(x, Tensor):
            return list(x) if isinstance(x, tuple) else x
        expected = proto.tensor_type
        fits = TYPES.get(expected.elem_type) == x.dtype.name
        if expected.HasField("shape"):
            dims = list(expected.shape.dim)
            fits = fits and len(dims) == x.ndim and all(
                not d.HasField("dim_value") or not isinstance(n, int) or n == d.dim_value
                for d, n in zip(dims, x.shape))
        if not fits:
            raise UserError(f"{name} is a {x.dtype.name}{list(x.shape)}, and the model takes {type_text(proto)}",
                            code="MLC0846", loc=user_loc(), hint="pass an array of that type")
        return x

    def specs(self) -> list[Spec] | None:
        """The types of the arguments; None where a rank, or the length of a sequence, is not given."""
        out, symbols = list[Spec](), dict[str, str]()
        for name, proto in self.inputs:
            t = proto.tensor_type
            if proto.WhichOneof("value") != "tensor_type" or not t.HasField("shape"):
                return None
            if t.elem_type not in TYPES:
                raise UserError(f"the input {name!r} is of {OTHER_TYPES.get(t.elem_type, 'an unknown type')}, which "
                                "mlc has no tensors of", code="MLC0842", loc=user_loc(),
                                hint="give it by the constants of mlc.onnx.load, or change the model")
            shape = tuple(dim(d, f"{name}_{k}", symbols) for k, d in enumerate(t.shape.dim))
            out.append(Spec(TensorType(shape, as_dtype(TYPES[t.elem_type]).ir)))
        return out


def constant(proto: Any, x: Any) -> Any:
    """An input that is part of the program: an array of its type, a list of arrays, or None."""
    if x is None or proto.WhichOneof("value") != "tensor_type":
        return x
    number = proto.tensor_type.elem_type
    return np.asarray(x, as_dtype(TYPES[number]).dtype if number in TYPES else None)


def dim(d: Any, otherwise: str, symbols: dict[str, str]) -> Dim:
    """A size: a number, or a symbol by its name or, if it has none, by that of the axis."""
    if d.HasField("dim_value"):
        if d.dim_value < 0 or d.dim_value > bodies.LARGEST:
            raise UserError(f"an input has the size {d.dim_value}", code="MLC0840", loc=user_loc(),
                            hint="write the model with a name in place of a size that is not known")
        return int(d.dim_value)
    name = d.dim_param or otherwise
    if name not in symbols:
        symbols[name] = unique([identifier(name)], set(symbols.values()))[0]
    return parse_size(symbols[name])


def result(x: Any) -> Any:
    """A result as tensors, and lists of them."""
    return [result(y) for y in x] if isinstance(x, list) else tensor(x)


def identifier(name: str) -> str:
    """A name of a value as one of Python's."""
    out = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{out}" if not out or out[0].isdigit() or keyword.iskeyword(out) else out


def path_of(name: str) -> str:
    """A name of a weight as one in a module: identifiers and numbers between dots."""
    *owners, last = name.split(".")
    parts = [*(part if part.isdecimal() else identifier(part) for part in owners), identifier(last)]
    return ".".join(part + "_" if hasattr(ImportedModule, part) else part for part in parts)


def unique(names: Sequence[str], taken: set[str]) -> list[str]:
    """Names, each of which is another; none is the beginning of the path of another."""
    out = list[str]()
    folders = {name.rsplit(".", k)[0] for name in names for k in range(1, name.count(".") + 1)}
    used = taken | folders
    for name in names:
        fresh, count = name, 1
        while fresh in used:
            fresh, count = f"{name}_{count}", count + 1
        used.add(fresh)
        out.append(fresh)
    return out


def module_of(program: Program, name: str) -> ImportedModule:
    """A module that runs a model, whose parameters are the inputs of the model; weights of floats are trained."""
    weights = {path: (array.copy(), wrap(array).dtype.is_floating_point) for n, path in program.state.items()
               if n not in program.fixed for array in (program.model.weights[n],)}
    return imported_module(identifier(name), program.parameters,
                           lambda self, given: program.run(partial(tensor_at, self), given), weights)


def load(model: Any, *, constants: Mapping[str, Any] | None = None) -> ImportedModule:
    """A model in the format ONNX as a compiled module, which `mlc.save` and `mlc.extension.write` can write.

    Sizes that have a name in the model (`dim_param`) are symbols: one code serves all of them. Weights of floats are
    parameters, others buffers, by their names in the model. The package `onnx` reads the file; files with weights are
    read only from the folder of the model.

    Args:
        model: Name of a file, its bytes, or an `onnx.ModelProto`.
        constants: Per input whose elements are to be part of the program, these; sizes may depend on them.

    Returns:
        The compiled module. Its arguments are the other inputs of the model, its result is that of the model or, if
        there are several, a tuple of them.

    Raises:
        UserError: The file is no valid model (MLC0840), mlc does not run an operator of it (MLC0841), or not with its
            inputs or attributes (MLC0842), sizes depend on the elements of an input (MLC0843), weights are in files
            that are missing or outside of the folder (MLC0845), a name of `constants` is of no input (MLC0846), or the
            package onnx is not installed (MLC0847).

    Example:
        >>> from onnx import parser
        >>> model = parser.parse_model('<ir_version: 8, opset_import: ["": 17]>'
        ...                            'agraph (float[B, 2] x) => (float[B, 2] y) { y = Relu(x) }')
        >>> mlc.onnx.load(model)(mlc.ones(3, 2)).shape
        (3, 2)
    """
    name = Path(model).stem if isinstance(model, str | os.PathLike) else "Model"
    program = Program(read(model), constants or {})
    if refused := missing(program.model):
        raise UserError(f"mlc does not run {len(refused)} of the operators of the model", code="MLC0841",
                        loc=user_loc(), notes=tuple(refused), hint="make the model of other operators")
    settle(program)
    return compile(module_of(program, name), args=program.specs())


def settle(program: Program) -> None:
    """Find what weights are part of a program: those that a recording asks for.

    Where the types of arguments are not known, there is none, and all weights but those of floats are.
    """
    specs = program.specs()
    if specs is None:
        program.fixed |= {n for n, x in program.model.weights.items() if x.dtype.kind in "iub"}
        return
    lower(module_of(program, "Model"), specs, level="trace")
    program.fixed |= program.asked
