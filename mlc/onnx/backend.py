"""The standard backend interface of ONNX, which its own tests judge: `prepare`, `run_model`, `run_node`.

They take models as the package onnx has them and arrays of numpy; `mlc.onnx.load` gives a module instead.

Example:
    >>> from onnx import helper
    >>> import mlc.onnx.backend
    >>> node = helper.make_node("Relu", ["x"], ["y"])
    >>> mlc.onnx.backend.run_node(node, [np.float32([-1.0, 2.0])]).y
    array([0., 2.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper
from onnx.backend.base import Backend as Interface
from onnx.backend.base import BackendRep, namedtupledict

from mlc.api import compile
from mlc.frontend.devices import as_device
from mlc.frontend.location import user_loc
from mlc.frontend.onnx.model import read
from mlc.frontend.onnx.values import NeedsValue
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.onnx.module import Program, module_of


class Prepared(BackendRep):  # type: ignore[misc]
    """A model that can be run.

    Where sizes depend on the elements of inputs, there is code for each of the elements that it is run with.

    Args:
        model: A `ModelProto`, or the name of a file.

    Example:
        >>> from onnx.parser import parse_model
        >>> prepared = Prepared(parse_model('''
        ...     <ir_version: 10, opset_import: ["": 21]>
        ...     f (float[N] x) => (float[N] y) { y = Neg(x) }'''))
        >>> prepared.run([np.float32([1.0, -2.0])]).y
        array([-1.,  2.], dtype=float32)
    """

    def __init__(self, model: Any) -> None:
        self.model = read(model)
        self.fixed = frozenset[str]()
        self.codes: dict[tuple[Any, ...], Any] = {}

    def run(self, inputs: Any, **options: Any) -> Any:
        """The results for a list or dict of arrays, as a named tuple of arrays.

        Args:
            inputs: The inputs in their order, or by name.
            options: None is defined.

        Returns:
            A named tuple of arrays, and of lists of arrays.

        Raises:
            UserError: The model cannot be run with them, or not with so many (MLC0844).
        """
        names = [n for n, _ in self.model.inputs]
        given = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, inputs))
        if set(given) - set(names) or len(inputs) > len(names):
            raise UserError(f"the model has the inputs {', '.join(names)}, and {len(inputs)} are given", code="MLC0844",
                            loc=user_loc(), hint="pass one array for each")
        while True:
            try:
                found = self._code(given)(*(self._argument(given[n]) for n in names
                                            if n in given and n not in self.fixed))
                break
            except NeedsValue as error:
                more = (error.inputs or frozenset()) - self.fixed
                if not more:
                    raise
                self.fixed |= more
        results = found if len(self.model.outputs) > 1 else (found,)
        return namedtupledict("Outputs", self.model.outputs)(*map(_array, results))

    def _code(self, given: Mapping[str, Any]) -> Any:
        constants = {n: x for n, x in given.items() if n in self.fixed}
        key = tuple((n, None if x is None else (np.asarray(x).tobytes(), np.shape(x), str(np.asarray(x).dtype)))
                    for n, x in sorted(constants.items()))
        if key not in self.codes:
            program = Program(self.model, constants)
            program.fixed |= {n for n, x in self.model.weights.items() if x.dtype.kind in "iub"}
            self.codes[key] = compile(module_of(program, "Model"))
        return self.codes[key]

    @staticmethod
    def _argument(x: Any) -> Any:
        if isinstance(x, list):
            return [Prepared._argument(y) for y in x]
        if isinstance(x, np.ndarray) and x.dtype.kind in "OSUT":
            raise UserError("mlc has no tensors of strings", code="MLC0844", loc=user_loc())
        return x if x is None or isinstance(x, Tensor) else Tensor(np.ascontiguousarray(x).reshape(np.shape(x)))


def _array(x: Any) -> Any:
    return [_array(y) for y in x] if isinstance(x, list | tuple) else None if x is None else np.asarray(x.array)


class Backend(Interface):  # type: ignore[misc]
    """mlc as a backend of ONNX's: `onnx.backend.test.BackendTest(mlc.onnx.backend, __name__)` tests it.

    Its methods are of the class, and the functions of this module are these methods.

    Example:
        >>> Backend.supports_device("CPU"), Backend.supports_device("CUDA")
        (True, False)
    """

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **options: Any) -> bool:
        """Whether a model can be run, as far as can be told without compiling it.

        Args:
            model: A `ModelProto`, or the name of a file.
            device: "CPU".
            options: None is defined.

        Returns:
            True if the model is valid and the device is there.

        Example:
            >>> from onnx.parser import parse_model
            >>> is_compatible(parse_model('''
            ...     <ir_version: 10, opset_import: ["": 21]>
            ...     f (float[N] x) => (float[N] y) { y = Neg(x) }'''))
            True
        """
        try:
            cls.prepare(model, device)
        except UserError:
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> Prepared:
        """A model that can be run.

        Args:
            model: A `ModelProto`, or the name of a file.
            device: "CPU".
            options: None is defined.

        Returns:
            The model, whose `run` runs it.

        Raises:
            UserError: The model is not valid (MLC0840), or the device is another (MLC0844).

        Example:
            >>> from onnx.parser import parse_model
            >>> prepare(parse_model('''
            ...     <ir_version: 10, opset_import: ["": 21]>
            ...     f (float[N] x) => (float[N] y) { y = Neg(x) }''')).run({"x": np.float32([1.0])}).y
            array([-1.], dtype=float32)
        """
        if not cls.supports_device(device):
            raise UserError(f"the device {device!r} is not there", code="MLC0844", loc=user_loc(), hint='use "CPU"')
        return Prepared(model)

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **options: Any) -> Any:
        """The results of a model.

        Args:
            model: A `ModelProto`, or the name of a file.
            inputs: Arrays, in their order or by name.
            device: "CPU".
            options: None is defined.

        Returns:
            A named tuple of arrays.

        Raises:
            UserError: As of `prepare`, or the inputs do not fit (MLC0844).

        Example:
            >>> from onnx.parser import parse_model
            >>> run_model(parse_model('''
            ...     <ir_version: 10, opset_import: ["": 21]>
            ...     f (float[N] x, float[N] y) => (float[N] z) { z = Add(x, y) }'''), np.ones((2, 3), np.float32)).z
            array([2., 2., 2.], dtype=float32)
        """
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None,
                 **options: Any) -> Any:
        """The results of a single node.

        Args:
            node: The node.
            inputs: An array for each of its inputs.
            device: "CPU".
            outputs_info: Per output its dtype and shape; not needed.
            options: `opset_version`, that of the operators.

        Returns:
            A named tuple of arrays.

        Raises:
            UserError: As of `run_model` (MLC0844).

        Example:
            >>> node = helper.make_node("Neg", ["x"], ["y"])
            >>> run_node(node, [np.float32([1.0, -2.0])]).y
            array([-1.,  2.], dtype=float32)
        """
        names = [n for n in node.input if n]
        arrays = [np.asarray(x) for x in (inputs.values() if isinstance(inputs, Mapping) else inputs)]
        graph = helper.make_graph([node], "node", [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(names, arrays)], [helper.make_empty_tensor_value_info(n) for n in node.output if n])
        for output in graph.output:
            output.type.CopyFrom(_inferred(graph, output.name, options))
        return cls.run_model(_model(graph, options), arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run there.

        Args:
            device: A device in ONNX's words, such as "CPU".

        Returns:
            True for the CPU.

        Example:
            >>> supports_device("CPU:0")
            True
        """
        return device.partition(":")[0] == "CPU" and as_device("cpu") is not None


def _model(graph: Any, options: Mapping[str, Any]) -> ModelProto:
    from onnx import defs
    version = options.get("opset_version", defs.onnx_opset_version())
    return helper.make_model_gen_version(graph, opset_imports=[helper.make_opsetid("", version)])


def _inferred(graph: Any, name: str, options: Mapping[str, Any]) -> Any:
    from onnx import shape_inference
    found = shape_inference.infer_shapes(_model(graph, options)).graph
    return next(v.type for v in (*found.value_info, *found.output) if v.name == name)


prepare, run_model, run_node, supports_device = (Backend.prepare, Backend.run_model, Backend.run_node,
                                                 Backend.supports_device)
is_compatible = Backend.is_compatible
__all__ = ["Backend", "Prepared", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]

