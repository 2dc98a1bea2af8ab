"""A graph of ATen operators as a module of mlc's, for arguments of certain types, strides and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mlc.frontend import tree
from mlc.frontend.fx.interpreter import Interpreter, Refusal
from mlc.frontend.fx.refusing import CODE
from mlc.frontend.fx.support import hint
from mlc.frontend.fx.table import is_random
from mlc.frontend.recorded_function import record_entry
from mlc.frontend.signature import Arguments, Spec
from mlc.frontend.symint import plain, symbolic
from mlc.frontend.tensor import OPERATIONS
from mlc.ir import sizes
from mlc.ir.affine_syntax import parse_size
from mlc.ir.diag import IRError, UserError
from mlc.ir.sizes import Size
from mlc.ir.types import TensorType, i8, ui32
from mlc.torch.memory import Layout

KEY = TensorType((2,), ui32)
"""The type of a random key."""


class Recording:
    """The graph as it was recorded, with what mlc refused of it.

    inputs    number and layout of the arguments that are tensors
    sizes     numbers of the arguments that are symbolic sizes which no tensor has as a dimension
    draws     whether a random key comes after them
    outputs   per result of the graph: ("result", number), ("argument", number), ("value", what it is), or, for a view
              of another, ("view", (number of that, (dtype, sizes, strides, offset, whether it is conjugated)))
    results   the layouts of the tensors that are computed
    refusals  the nodes that mlc does not run; the module is of use if there are none
    """

    def __init__(self, graph: Any, arguments: Sequence[Any], dynamic: bool = False) -> None:
        """
        graph      a `torch.fx.GraphModule`
        arguments  those that it is recorded for, fake or not
        dynamic    whether symbolic sizes among them become symbols of mlc's; else they are those of the example
        """
        size = symbol if dynamic else hint
        self.graph = graph
        self.values: list[Any] = [None if x is None or hasattr(x, "dtype") else size(x) for x in arguments]
        self.inputs = [(i, Layout.of(x, tuple(map(size, x.shape)))) for i, x in enumerate(arguments)
                       if hasattr(x, "dtype")]
        self.sizes = self._other_sizes(arguments)
        self.draws = any(n.op == "call_function" and is_random(n.target) for n in graph.graph.nodes)
        self.outputs: list[tuple[str, Any]] = []
        self.results: list[Layout] = []
        interpreter = Interpreter(graph, tolerant=True)
        self.refusals: list[Refusal] = interpreter.refusals
        specs = [Spec(layout.type) for _, layout in self.inputs] + [Spec(KEY)] * self.draws
        # a size is handed over as that of an array, which is not read
        specs += [Spec(TensorType((plain(self.values[i]),), i8)) for i in self.sizes]
        leaves, structure = tree.flatten((tuple(specs), {}))
        try:
            self.module: Any = record_entry(lambda *arrays: self._computed(interpreter, arrays),
                                            Arguments(leaves, structure, specs), name="graph").trace.module
        except UserError:
            if not self.refusals:
                raise

    def _other_sizes(self, arguments: Sequence[Any]) -> list[int]:
        """The numbers of the arguments that are symbols and no dimension of a tensor.

        Raises:
            UserError: One may be negative, or a size of a tensor has a symbol that no argument is.
        """
        known = {name for _, layout in self.inputs for n in layout.sizes if (name := symbol_name(n))}
        found = list[int]()
        for i, n in enumerate(self.values):
            if (name := symbol_name(n)) and name not in known:
                if may_be_negative(arguments[i]):
                    raise UserError(f"the argument {name} may be negative, which no size is", code=CODE)
                known.add(name)
                found.append(i)
        for name in sizes.symbols(*(n for _, layout in self.inputs for n in layout.sizes)) - known:
            raise UserError(f"no argument has the size {name}", code=CODE)
        return found

    def _computed(self, interpreter: Interpreter, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The tensors that the graph computes from the arrays of its arguments."""
        values = list(self.values)
        key = arrays[len(self.inputs)] if self.draws else None
        for (i, layout), x in zip(self.inputs, arrays):
            values[i] = x if layout.plain else OPERATIONS["permute"](x, layout.inverse)
        found = interpreter.run(values, key)
        computed = list[Any]()
        placeholders = {n: i for i, n in enumerate(n for n in self.graph.graph.nodes if n.op == "placeholder")}
        nodes = output_nodes(self.graph)
        bases = dict[Any, int]()                           # storage that a result is all of: its number
        for node in self._bases(nodes):
            self._output(node, interpreter.values[node], placeholders, bases, computed)
        order = sorted(range(len(nodes)), key=lambda i: whole_storage(nodes[i]) is None)
        self.outputs = [("value", None)] * len(nodes)
        for i in order:
            self.outputs[i] = self._output(nodes[i], found[i], placeholders, bases, computed)
        return tuple(computed)

    def _bases(self, nodes: list[Any]) -> list[Any]:
        """The nodes that are no results, and are all of a storage that several results share, or that one result has
        elements of several times."""
        values = [n.meta["val"] for n in nodes if hasattr(n, "meta") and hasattr(n.meta.get("val"), "dtype")]
        shared = Counter(map(storage_of, values))
        wanted = {storage_of(x) for x in values if shared[storage_of(x)] > 1 or overlaps(x)}
        wanted -= {whole_storage(n) for n in nodes}
        found = dict[int, Any]()
        for n in self.graph.graph.nodes if wanted else ():
            if n.op == "call_function" and (storage := whole_storage(n)) in wanted:
                found.setdefault(storage, n)
        return list(found.values())

    def _output(self, node: Any, x: Any, placeholders: dict[Any, int], bases: dict[Any, int],
                computed: list[Any]) -> tuple[str, Any]:
        """How a result of the graph is had; what has to be computed for it is appended to `computed`.

        Of results that share memory in PyTorch one is computed, and the others are views of it.
        """
        if node in placeholders:
            return "argument", placeholders[node]
        if not hasattr(x, "dtype"):
            return "value", x
        value = node.meta["val"]
        base = bases.get(storage_of(value))
        if base is not None and is_static(value) and not value.is_neg():
            return "view", (base, (value.dtype, tuple(value.shape), value.stride(), value.storage_offset(),
                                   value.is_conj()))
        layout = Layout.of(value, [plain(n) if isinstance(n, Size) else n for n in x.shape])
        number = len(computed)
        self.results.append(layout)
        computed.append(x if layout.plain else OPERATIONS["permute"](x, layout.order))
        if whole_storage(node) is not None:
            bases.setdefault(whole_storage(node), number)
        return "result", number


def overlaps(x: Any) -> bool:
    """Whether a fake tensor has some element several times."""
    return is_static(x) and any(n > 1 and not s for n, s in zip(x.shape, x.stride()))


def is_static(x: Any) -> bool:
    """Whether sizes, strides and offset of a fake tensor are numbers."""
    return all(isinstance(n, int) for n in (*x.shape, *x.stride(), x.storage_offset()))


def storage_of(x: Any) -> int:
    """The identity of the memory of a fake tensor."""
    return x.untyped_storage()._cdata  # type: ignore[no-any-return]


def whole_storage(node: Any) -> int | None:
    """The identity of the memory of an output, if that is all of it, in the order of its dimensions in memory."""
    x: Any = node.meta.get("val") if hasattr(node, "meta") else None
    if not hasattr(x, "dtype") or not is_static(x) or x.storage_offset() or x.is_conj() or x.is_neg():
        return None
    layout = Layout.of(x)
    same = layout.strides == x.stride() and x.numel() * x.itemsize == x.untyped_storage().nbytes()
    return storage_of(x) if same else None


def may_be_negative(n: Any) -> bool:
    """Whether PyTorch does not know that a symbolic integer is at least 0."""
    return bool(n.node.shape_env.bound_sympy(n.node.expr).lower < 0)


def symbol_name(n: Any) -> str | None:
    """The name of a size that is a symbol by itself."""
    return str(plain(n)) if isinstance(n, Size) and sizes.symbols(n) == {str(plain(n))} else None


def symbol(n: Any) -> Any:
    """A symbolic size as one of mlc's; UserError if it is not made of sizes of arguments by arithmetic."""
    if isinstance(n, int | float | bool):
        return n
    try:
        return symbolic(parse_size(str(n).replace("//", " floordiv ")))
    except IRError as error:
        raise UserError(f"{n} is no size", code=CODE) from error


def output_nodes(graph: Any) -> list[Any]:
    """The results of a graph: nodes and values."""
    output = next(n for n in graph.graph.nodes if n.op == "output")
    found = output.args[0]
    return list(found) if isinstance(found, tuple | list) else [found]
