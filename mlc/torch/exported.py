"""Programs of `torch.export` as modules of mlc's: compiled, saved and exported like any other."""

from __future__ import annotations

import json
import logging
import os
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mlc.api import compile
from mlc.frontend.fx.interpreter import Interpreter, Refusal, array_of, refusal_of
from mlc.frontend.fx.support import unsupported
from mlc.frontend.fx.table import is_random
from mlc.frontend.location import user_loc
from mlc.frontend.signature import Spec
from mlc.ir.diag import Error, UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType
from mlc.nn.imported import ImportedModule, assign_at, imported_module, tensor_at
from mlc.torch.compiler import decompositions, missing


class Program:
    """An exported program: its graph of ATen operators, and what its arguments and results are.

    names       per argument that is a tensor, its name
    arguments   the fake tensors that these were traced with
    sources     per input of the graph: ("state", name), ("argument", number) or ("value", a number that is fixed)
    state       parameters, buffers and constants by name
    parameters  the names of those of them that are trained
    assigned    the buffers that the first results of the graph are the new values of
    structure   how the other results are put together (`torch.utils._pytree.TreeSpec`)
    draws       whether it draws random numbers
    training    whether it is one for training: the model was exported in that mode, or it draws or assigns buffers
    """

    def __init__(self, exported: Any, training: bool = False) -> None:
        from torch.export.graph_signature import InputKind
        with without_deprecations():
            program = exported.run_decompositions(decompositions())
        self.graph = program.graph_module
        state = {**program.state_dict, **program.constants}
        placeholders = [n for n in self.graph.graph.nodes if n.op == "placeholder"]
        signature = program.graph_signature
        self.sources: list[tuple[str, Any]] = []
        self.names: list[str] = []
        self.arguments: list[Any] = []
        self.state: dict[str, Any] = {}
        self.parameters = {s.target for s in signature.input_specs if s.kind is InputKind.PARAMETER}
        for node, spec in zip(placeholders, signature.input_specs):
            if spec.kind is InputKind.USER_INPUT:
                value = node.meta.get("val")
                if not hasattr(value, "dtype"):            # a number or None, which is part of the program
                    self.sources.append(("value", getattr(spec.arg, "value", value)))
                    continue
                self.sources.append(("argument", len(self.names)))
                self.names.append(node.name)
                self.arguments.append(value)
            else:
                self.sources.append(("state", spec.target))
                self.state[spec.target] = state[spec.target]
        self.assigned = self._assigned(signature)
        self.structure = program.call_spec.out_spec
        self.draws = any(n.op == "call_function" and is_random(n.target) for n in self.graph.graph.nodes)
        self.training = training or self.draws or bool(self.assigned)

    def refusals(self) -> list[Refusal]:
        """The operators that mlc has not."""
        return [refusal_of(n, reason) for n in self.graph.graph.nodes
                if n.op == "call_function" and (reason := unsupported(n)) is not None]

    @staticmethod
    def _assigned(signature: Any) -> list[str]:
        from torch.export.graph_signature import OutputKind
        names = list[str]()
        for spec in signature.output_specs:
            if spec.kind is OutputKind.BUFFER_MUTATION:
                names.append(spec.target)
            elif spec.kind is not OutputKind.USER_OUTPUT:
                raise UserError(f"the program has a result of the kind {spec.kind.name}", code="MLC0833",
                                loc=user_loc(), hint="export a model that leaves its arguments as they are")
        return names

    def specs(self) -> list[Spec]:
        """The types of the arguments: sizes are numbers or, where they are dynamic, symbols."""
        from mlc.frontend.dtypes import as_dtype
        return [Spec(TensorType(tuple(_dim(n) for n in x.shape), as_dtype(x.dtype).ir)) for x in self.arguments]

    def check_arguments(self, tensors: Sequence[Any]) -> None:
        """UserError if tensors are not of the types that the program was exported for."""
        symbols: dict[str, Dim] = {}
        from mlc.frontend.dtypes import as_dtype
        for name, x, example in zip(self.names, tensors, self.arguments):
            fits = x.dtype is as_dtype(example.dtype) and len(x.shape) == len(example.shape)
            for n, wanted in zip(x.shape, example.shape):
                known = wanted if isinstance(wanted, int) else symbols.setdefault(str(wanted), n)
                fits = fits and bool(n == known)
            if not fits:
                raise UserError(f"{name} is a {x.dtype.name}{list(x.shape)}, and the program was exported for "
                                f"{as_dtype(example.dtype).name}{[str(n) for n in example.shape]}", code="MLC0834",
                                loc=user_loc(), hint="pass such a tensor, or name the size in dynamic_shapes")

    def run(self, state: Any, tensors: Sequence[Any], key: Any = None) -> tuple[dict[str, Any], Any]:
        """New values of buffers, and the result, for parameters and arguments, and a key if the program draws."""
        self.check_arguments(tensors)
        inputs = [state(x) if kind == "state" else tensors[x] if kind == "argument" else x for kind, x in self.sources]
        found = Interpreter(self.graph).run(inputs, key)
        count = len(self.assigned)
        return dict(zip(self.assigned, found)), structured(self.structure, found[count:])


def _dim(n: Any) -> Dim:
    """A size as a symbol of mlc's, if it is one."""
    from mlc.ir.affine_syntax import parse_size
    return n if isinstance(n, int) else parse_size(str(n).replace("//", " floordiv "))


def structured(spec: Any, leaves: Sequence[Any]) -> Any:
    """A result rebuilt from its tensors: tuples, lists and dicts; other containers become dicts of their fields."""
    pending = iter(leaves)

    def build(spec: Any) -> Any:
        if spec.is_leaf():
            return next(pending)
        children = [build(child) for child in spec.children()]
        if spec.type is list:
            return children
        if spec.type is tuple or not isinstance(spec.context, list | tuple) or len(spec.context) != len(children):
            return tuple(children)
        return dict(zip(spec.context, children))
    return build(spec)


def module_of(program: Program, name: str) -> ImportedModule:
    """A module that runs a program, whose parameters are the program's arguments."""
    def run(self: Any, given: tuple[Any, ...]) -> Any:
        assigned, out = program.run(partial(tensor_at, self), given,
                                    self._keys.next_key() if program.draws else None)
        for buffer, value in assigned.items():
            assign_at(self, buffer, value)
        return out

    weights = {n: (array_of(x).copy(), n in program.parameters) for n, x in program.state.items()}
    return imported_module(name, program.names, run, weights, training=program.training, draws=program.draws)


def load(path: str | os.PathLike[str]) -> Program:
    """The program in a file of `torch.export.save`, which PyTorch reads; UserError MLC0835 if it is none."""
    import torch
    os.stat(path)                                          # OSError if there is none
    if not zipfile.is_zipfile(path):
        raise _no_program(path, "it is no zip")
    try:
        with without_deprecations(), _without_log(), _containers_known(path):
            return Program(torch.export.load(path))
    except (Error, MemoryError):
        raise
    except Exception as error:                             # of a damaged file PyTorch's reader raises anything
        first = (str(error).strip().splitlines() or [""])[0][:200]
        raise _no_program(path, f"{type(error).__name__}: {first}".removesuffix(": ")) from error


@contextmanager
def _without_log() -> Iterator[None]:
    """Within, PyTorch's reader does not log what it fails at first: it tries another format, or raises an error."""
    logger = logging.getLogger("torch.export")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


@contextmanager
def _containers_known(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within, PyTorch's reader knows the containers of a program's arguments and results, by stand-ins.

    A library registers its containers (the outputs of Hugging Face's transformers are such) when it is imported, and
    PyTorch's reader refuses those that are not registered. Which container it is does not matter to a compiled
    module, and a file does not decide what is imported.
    """
    from torch.utils import _pytree as pytree
    made = []
    for name in sorted(_containers(path) - pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.keys()):
        made.append(type("Container", (_Container,), {}))
        pytree._private_register_pytree_node(made[-1], _children, made[-1], serialized_type_name=name,
                                             to_dumpable_context=json.dumps, from_dumpable_context=json.loads)
    try:
        yield
    finally:
        for container in made:
            pytree._deregister_pytree_node(container)


@dataclass
class _Container:
    """A container that only its structure is known of: its children, and what PyTorch keeps of it beside them."""

    children: Any
    context: Any


def _children(container: _Container) -> tuple[list[Any], Any]:
    return list(container.children), container.context


def _containers(path: str | os.PathLike[str]) -> set[str]:
    """The types of containers in the structures of arguments and results that a file's programs name."""
    found = set[str]()

    def visit(spec: Any) -> None:
        if spec["type"] is not None:
            found.add(spec["type"])
        for child in spec["children_spec"]:
            visit(child)
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not name.endswith(".json") or Path(name).parent.name != "models":
                continue
            for entry in json.loads(archive.read(name))["graph_module"]["module_call_graph"]:
                if entry.get("signature"):
                    visit(json.loads(entry["signature"]["in_spec"])[1])
                    visit(json.loads(entry["signature"]["out_spec"])[1])
    return found


def _no_program(path: str | os.PathLike[str], reason: str) -> UserError:
    return UserError(f"{os.fspath(path)} is no program of torch.export: {reason}", code="MLC0835", loc=user_loc(),
                     hint="torch.export.save(torch.export.export(model, args), path) writes one")


@contextmanager
def without_deprecations() -> Iterator[None]:
    """Context in which PyTorch does not warn of what it itself calls and has deprecated."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*isinstance\(treespec, LeafSpec\)", FutureWarning)
        yield


def export(model: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None, *,
           dynamic_shapes: Any = None) -> ImportedModule:
    """A model of PyTorch's as a compiled module of mlc's, which `mlc.save` and `mlc.extension.write` can write.

    The module does what the model did in the mode that it was exported in. One that was in training drops out, with
    keys that it holds as `mlc.nn.Dropout` does, and assigns the statistics of its batches; it is trained like any
    module of mlc's.

    Args:
        model: A `torch.nn.Module`, which `torch.export.export` exports; or what that returns; or the name of a file
            that `torch.export.save` wrote. PyTorch reads it, and could run what a hostile file has.
        args: Arguments of a call of the model, for their types.
        kwargs: Keyword arguments of the call.
        dynamic_shapes: Which sizes are symbols, as of `torch.export.export`; all others are those of the arguments.

    Returns:
        The compiled module. Its arguments are the tensors among those of the model; its parameters have the names of
        the model's.

    Raises:
        UserError: mlc has not all operators of the model, and they are listed (MLC0831); the model changes its
            arguments (MLC0833); a file is none of torch.export (MLC0835). Calls are refused with other types of
            arguments (MLC0834), and in the other mode (MLC0791).

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 3).eval()
        >>> f = mlc.torch.export(model, (torch.ones(1, 2),))
        >>> f(mlc.ones(1, 2)).shape
        (1, 3)
    """
    import torch
    name, training = "Model", False
    if isinstance(model, str | os.PathLike):
        name, program = Path(model).stem, load(model)
    else:
        if isinstance(model, torch.nn.Module):
            name, training = type(model).__name__, model.training
            model = torch.export.export(model, tuple(args), kwargs, dynamic_shapes=dynamic_shapes)
        program = Program(model, training)
    if refusals := program.refusals():
        raise missing(refusals, "make the model of other operators")
    return compile(module_of(program, name), args=program.specs())
