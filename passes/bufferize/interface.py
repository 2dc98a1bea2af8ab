"""The interface of a bufferized function: what its callers must know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlc.dialects import func, memref
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func, Return
from mlc.dialects.index_arithmetic import SizeBuilder
from mlc.dialects.tensor.kernel import buffer_type
from mlc.ir import sizes
from mlc.ir.abi import COMPLEX_ARGS, COMPLEX_RESULTS, complex_type
from mlc.ir.core import Block, Region, Symbol, Value, at_end
from mlc.ir.sizes import Dim
from mlc.ir.types import (
    FunctionType,
    TensorType,
    Type,
    bind_symbols,
    index,
)
from mlc.passes.analysis.size_constraints import SizeConstraints
from mlc.passes.bufferize.lifetimes import Overwrites
from mlc.passes.bufferize.totals import Sites


@dataclass(frozen=True)
class Callee:
    """Interface of a bufferized function for its callers: its types as tensors, and its constraints on its symbols.

    aliases     for each result the argument whose buffer it takes, or -1
    overwrites  (argument, result): a caller may pass one buffer for both
    """

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]
    symbols: tuple[str, ...]
    aliases: tuple[int, ...]
    overwrites: Overwrites
    arena: Dim
    temporaries: Dim
    work: Dim | None
    size_constraints: SizeConstraints

    def sizes_at(self, call: func.Call) -> dict[str, Dim]:
        """Values of the function's symbols at a call."""
        return bind_symbols(self.inputs, [v.type for v in call.args])

    def work_at(self, env: dict[str, Dim]) -> Dim | None:
        return None if self.work is None else sizes.substitute(self.work, env)


def describe(function: Func, interface: FunctionType, names: Sequence[str], aliases: Sequence[int], sites: Sites,
             work: Dim | None, constraints: SizeConstraints, temporaries: Dim) -> None:
    """Write on a public function what its callers must know."""
    seen = (_as_called(types, function.attrs.pop(name, ())) for name, types in (
        (COMPLEX_ARGS, interface.inputs), (COMPLEX_RESULTS, interface.results)))
    interface = FunctionType(*seen)
    reached = sites.names if sites.reached[function.sym_name] else ()
    function.attrs |= {"interface": str(interface), "symbols": tuple(names), "aliases": tuple(aliases),
                       "error_sites": tuple(reached), "work": "-1" if work is None else str(work)}
    if constraints:
        function.attrs |= {"size_constraints": tuple(map(str, constraints)), "constraint_sites": tuple(
            f"{loc}: {message}" for message, loc in constraints.values())}
    if not isinstance(temporaries, int):
        function.attrs["temporaries"] = str(temporaries)


def add_companion(module: Module, function: Func, names: Sequence[str], arena: Dim) -> None:
    """Create `@f_arena_bytes`, which computes the size of the arena from the size symbols."""
    name = f"{function.sym_name}_arena_bytes"
    block = Block([index] * len(names), names)
    with at_end(block, function.loc):
        total = SizeBuilder(dict(zip(names, block.args))).value(arena)
        Return((total,))
    companion = Func.make([], {"sym_name": Symbol(name), "sym_visibility": None, "function_type": FunctionType(
        (index,) * len(names), (index,))}, [], [Region(block)], loc=function.loc)
    module.body.block.insert(companion)


def _as_called(types: Sequence[Type], indices: Sequence[int]) -> tuple[Type, ...]:
    """The types that callers see, complex at these indices."""
    return tuple(complex_type(t) if i in indices and isinstance(t, TensorType) else t for i, t in enumerate(types))


def as_taken(v: Value, type: Type) -> Value:
    """Cast a buffer to the type that a callee takes: sizes that are static here may be dynamic there."""
    if not isinstance(type, TensorType) or v.type == buffer_type(type):
        return v
    return memref.Cast(v, buffer_type(type)).result
