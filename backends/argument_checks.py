"""Validation of call arguments against the interface of the callee, shared by all targets.

Shapes and element types are checked here; layout and device of an array are checked by the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlc.ir.abi import Interface
from mlc.ir.bounds import MAX_ELEMENTS
from mlc.ir.diag import Error, UserError, UserTypeError
from mlc.ir.interp import ELEMENTS, site_error, size_error
from mlc.ir.sizes import Dim, Size, evaluate, sym
from mlc.ir.types import to_numpy

MAX_BYTES = 1 << 62
"""Maximum bytes of a buffer, checked before sizes are computed in 64 bits."""


class ArgumentChecks:
    """Argument validation of one compiled function."""

    def __init__(self, interface: Interface) -> None:
        self.interface = interface
        plain: dict[Dim, str] = {sym(name): name for name in interface.symbols}
        self._inputs, self._results = ([(type, to_numpy(type.dtype), tuple(plain.get(d, d) for d in type.shape))
                                        for type in types] for types in (interface.inputs, interface.results))
        self._donated = frozenset(interface.donated)

    def _check_count(self, arrays: Sequence[Any]) -> None:
        if len(arrays) != len(self._inputs):
            raise UserTypeError(f"{self.interface.name} takes {len(self._inputs)} arguments, got {len(arrays)}",
                                code="MLC0321")

    def _check_type(self, i: int, array: Any) -> bool:
        """Whether argument `i` is in native byte order; raises UserTypeError for a wrong element type."""
        type, dtype, _ = self._inputs[i]
        same: bool = array.dtype == dtype
        if not same and array.dtype.newbyteorder("=") != dtype:
            raise UserTypeError(f"{self.interface.argument(i)} has dtype {array.dtype}, expected {dtype}",
                                code="MLC0325", hint="mlc does not convert element types implicitly: cast it")
        if array.ndim != type.rank:
            raise UserTypeError(f"{self.interface.argument(i)} has {array.ndim} dimensions, its type {type} has "
                                f"{type.rank}", code="MLC0322")
        return same

    def _bind(self, inputs: Sequence[Any], given: Mapping[str, int]) -> dict[str, int]:
        """Bind the size symbols; raises UserError if an argument contradicts its type."""
        interface = self.interface
        env = {name: inputs[i].shape[axis] for name, (i, axis) in interface.binders.items()}
        for name in interface.symbols:
            if name not in env:
                if name not in given:
                    raise UserError(f"{interface.name}: no argument binds size {name}", code="MLC0327",
                                    hint=f"pass it: sizes={{{name!r}: ...}}")
                env[name] = given[name]
            elif given.get(name, env[name]) != env[name]:
                i, axis = interface.binders[name]
                raise UserError(f"{interface.argument(i)} has size {env[name]} on axis {axis}, expected {name} = "
                                f"{given[name]}", code="MLC0323")
        for i, (array, (_, _, dims)) in enumerate(zip(inputs, self._inputs)):
            for axis, (dim, n) in enumerate(zip(dims, array.shape)):
                expected = self._evaluate(dim, env)
                if expected != n:
                    value = "" if isinstance(dim, int) else f" = {expected}"
                    raise UserError(f"{interface.argument(i)} has size {n} on axis {axis}, expected {dim}{value}",
                                    code="MLC0323")
        self._check_sizes(env)
        return env

    def _check_sizes(self, env: Mapping[str, int]) -> None:
        """Check the size constraints of the function."""
        interface = self.interface
        for name, n in env.items():
            if n > MAX_ELEMENTS:
                raise UserError(f"{interface.name}: the size {name} = {n} is too large", code="MLC0328")
        for size, site in zip(interface.size_constraints, interface.constraint_sites):
            if self._evaluate(size, env) < 0:
                raise size_error(site, env)
        if (count := self._evaluate(interface.temporaries, env)) >= MAX_BYTES:
            raise UserError(f"{interface.name}: temporary values would take {count} bytes", code="MLC0328")

    def _evaluate(self, dim: int | str | Size, env: Mapping[str, int]) -> int:
        """Evaluate a size; a constant is represented by its value and a single symbol by its name."""
        if isinstance(dim, int):
            return dim
        if isinstance(dim, str):
            return env[dim]
        try:
            return evaluate(dim, env)
        except ZeroDivisionError:
            raise UserError(f"{self.interface.name}: size {dim} divides by zero", code="MLC0328") from None

    def _result_shapes(self, env: Mapping[str, int]) -> list[tuple[int, ...]]:
        out = []
        for k, (_, dtype, dims) in enumerate(self._results):
            shape = tuple([self._evaluate(d, env) for d in dims])
            count = dtype.itemsize
            for n in shape:
                count *= max(n, 1)
            if min(shape, default=0) < 0 or count >= MAX_BYTES:
                raise UserError(f"{self.interface.name}: result {k} would have shape {list(shape)}", code="MLC0328")
            out.append(shape)
        return out

    def check_overlap(self, inputs: Sequence[Any], pointers: Sequence[int]) -> None:
        """A donated buffer is written while others are read, so no other argument may share its memory."""
        if not self._donated:
            return
        spans = sorted((start, start + array.nbytes, i)
                       for i, (start, array) in enumerate(zip(pointers, inputs)) if array.nbytes)
        last = last_donated = (0, 0, -1)           # of the preceding ones, the one with the greatest end
        for span in spans:
            other = last if span[2] in self._donated else last_donated
            if span[0] < other[1]:
                donated, reader = (span[2], other[2]) if span[2] in self._donated else (other[2], span[2])
                raise UserError(f"{self.interface.argument(donated)} is donated, but shares memory with "
                                f"{self.interface.argument(reader)}", code="MLC0329", hint="pass a copy of one of them")
            last = max(last, span, key=lambda s: s[1])
            if span[2] in self._donated:
                last_donated = max(last_donated, span, key=lambda s: s[1])

    def error(self, record: int) -> Error:
        """The exception described by an error record."""
        site, element = divmod(record, ELEMENTS)
        return site_error(self.interface.error_site(site), element)

    def fail(self, record: int) -> None:
        """Raise the exception described by an error record."""
        raise self.error(record)
