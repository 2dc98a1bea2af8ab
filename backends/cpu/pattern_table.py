"""The table of a call pattern, as backends/cpu/pattern_match.py reads it."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from typing import Any

from mlc.backends.cpu import layout, pattern_match
from mlc.backends.cpu.checked_call import LONG_WORK, largest_symbol
from mlc.backends.cpu.pattern_match import MAX_ARRAYS, MAX_RANK, MAX_RESULTS, MAX_SYMBOLS, Argument, Pattern, Result
from mlc.backends.cpu.support import DTYPES, dtypes
from mlc.ir import call_pattern, sizes
from mlc.ir.abi import Interface
from mlc.ir.bounds import MAX_ELEMENTS, magnitude
from mlc.ir.call_pattern import CallPattern
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import ScalarType, TensorType, i64, index

_STEPS_PER_ELEMENT = 16
"""How many elementary steps the elements of a call are taken for, where their number depends on the sizes."""


class NotSuited(Exception):
    """A pattern whose calls take the slow path."""


class PatternTable:
    """A pattern in memory, with the signature of its entry.

    pattern  the table
    keep     what it points to
    """

    def __init__(self, pattern: CallPattern, interface: Interface) -> None:
        self.keep: list[Any] = []
        self.symbols: dict[Dim, int] = {}                  # numbered as they appear in the arguments
        self.types = iter(interface.inputs)
        computed = [d for t in (*interface.inputs, *interface.results) for d in t.shape]
        if (any(a >= 0 for a in interface.aliases)
                or len(interface.inputs) > MAX_ARRAYS or len(interface.results) > MAX_RESULTS
                or len(interface.symbols) > MAX_SYMBOLS or len(pattern.arguments) > MAX_ARRAYS
                or max([t.rank for t in interface.results], default=0) > MAX_RANK or len(interface.results) < 1
                or (len(interface.results) > 1 and not pattern.in_tuple)):
            raise NotSuited
        arguments = [self.argument(x) for x in pattern.arguments]
        results = [self.result(type, interface) for type in interface.results]
        try:
            order = [self.symbols[sizes.sym(name)] for name in interface.symbols]
        except KeyError:
            raise NotSuited from None
        names = [sys.intern(name) for name in pattern.keywords]
        self.keep += names
        fixed = sorted({d for t in interface.inputs for d in t.shape if isinstance(d, int) and d > 1})
        bytes_of = [sizes.product((*t.shape, t.dtype.itemsize)) for t in (*interface.inputs, *interface.results)]
        largest = min(MAX_ELEMENTS, largest_symbol([*computed, *bytes_of, *interface.size_constraints,
                                                    interface.temporaries, interface.arena]))
        if not all(self.implied(size, largest) for size in interface.size_constraints):
            raise NotSuited
        self.pattern = Pattern(
            len(arguments) - len(names), len(arguments), len(names), self.table(ctypes.c_void_p, list(map(id, names))),
            self.table(Argument, arguments), self.table(Result, results), len(results), len(order),
            self.table(ctypes.c_int64, order), largest, _long(interface),
            not pattern.in_tuple, not self.unambiguous(interface, pattern.distinct),
            self.table(ctypes.c_int64, fixed), len(fixed) if pattern.distinct else 0,
            pattern.finished, distinct=pattern.distinct)
        for name, type in (("float_type", float), ("int_type", int), ("str_type", str), ("list_type", list),
                           ("tuple_type", tuple)):
            setattr(self.pattern, name, id(type))

    @staticmethod
    def unambiguous(interface: Interface, distinct: bool) -> bool:
        """Whether no size of a result may be 1, or that of a symbol, by chance, so that calls of the pattern have
        gradients of one pattern. If symbols are axes and not distinct, it does not matter that two sizes are equal."""
        if all(t.is_static for t in interface.inputs):
            return True
        above = {name: sizes.sym(name) + 2 for name in interface.symbols}                  # a symbol is 2 or more

        def is_known(d: Dim) -> bool:
            if isinstance(d, int):
                return d < 2 or not distinct
            return sizes.symbol_name(d) is not None or (
                not distinct and sizes.is_natural(sizes.substitute(d, above) - 2))

        return all(is_known(d) for t in interface.results for d in t.shape)

    @staticmethod
    def of(pattern: CallPattern, interface: Interface) -> PatternTable | None:
        """The table of a pattern; None if its calls take the slow path."""
        try:
            return PatternTable(pattern, interface)
        except NotSuited:
            return None

    def table(self, type: Any, rows: Sequence[Any]) -> int:
        """The address of rows that are kept."""
        self.keep.append((type * max(len(rows), 1))(*rows))
        return ctypes.addressof(self.keep[-1])

    def argument(self, x: call_pattern.Argument) -> Argument:
        if isinstance(x, call_pattern.Constant):
            self.keep.append(x.value)
            return Argument(pattern_match.CONSTANT, id(x.value))
        if isinstance(x, call_pattern.Items):
            items = [self.argument(item) for item in x.items]
            return Argument(pattern_match.ITEMS, None, len(items), 0, None, self.table(Argument, items))
        type = next(self.types)
        if isinstance(x, call_pattern.Number):
            return Argument(pattern_match.FLOAT if x.type is float else pattern_match.INT)
        flags = layout.C_CONTIGUOUS | layout.ALIGNED if x.read else 0
        return Argument(pattern_match.ARRAY, _descriptor(type.dtype), type.rank, flags,
                        self.table(ctypes.c_int64, [self.size(d) for d in type.shape]))

    def size(self, d: Dim) -> int:
        """A size of an argument: a number, or ~s for symbol s."""
        if isinstance(d, int):
            return d
        if sizes.symbol_name(d) is None:
            raise NotSuited
        return ~self.symbols.setdefault(d, len(self.symbols))

    def result(self, type: TensorType, interface: Interface) -> Result:
        terms = [n for d in type.shape for n in self.terms(d)]
        if min(terms, default=0) < 0:                      # so that the sizes of results are no less
            raise NotSuited
        return Result(_descriptor(type.dtype), type.dtype.itemsize, type.rank, self.table(ctypes.c_int64, terms))

    def implied(self, constraint: Dim, largest: int) -> bool:
        """Whether a size is at least 0 because every symbol is at least 2, and no more than `largest`."""
        if isinstance(constraint, Size):
            (monomial, number) = constraint.terms[-1]
            if monomial == () and number >= magnitude(constraint - number, lambda _: largest):
                return True
        constant, *coefficients = self.terms(constraint)
        return min(coefficients, default=0) >= 0 and constant + 2 * sum(coefficients) >= 0

    def terms(self, d: Dim) -> list[int]:
        """A size as a number and the coefficient of each symbol."""
        none = {str(symbol): 0 for symbol in self.symbols}
        if any(True for _ in sizes.quotients(d)) or not sizes.symbols(d) <= none.keys():
            raise NotSuited
        constant = sizes.evaluate(d, none)
        row = [sizes.evaluate(d, {**none, name: 1}) - constant for name in none]
        linear: Dim = constant
        for n, symbol in zip(row, self.symbols):
            linear = linear + n * symbol
        if linear != d:
            raise NotSuited
        return [constant, *row]


def _descriptor(type: ScalarType) -> int:
    """The address of numpy's descriptor of an element type."""
    return id(dtypes()[DTYPES.index(i64 if type == index else type)])


def _long(interface: Interface) -> int:
    """The number of elements from which on a call is long enough to release the GIL."""
    if isinstance(interface.work, int):
        return 0 if not 0 <= interface.work < LONG_WORK else 2**62
    return LONG_WORK if interface.work is None else math.ceil(LONG_WORK / _STEPS_PER_ELEMENT)
