"""Pickles as data: an interpreter of their opcodes that calls nothing but the functions it is given by name.

A pickle is a program for a stack machine, which may name any global of Python and call it. Here a name that is not in
the table is refused before anything is done with it, and only functions of the table can be called. No class is looked
up, no attribute is set but the metadata of an OrderedDict, and the interpreter does not recurse, however deep the data.
"""

from __future__ import annotations

import pickletools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


class DamagedPickle(ValueError):
    """The bytes are no pickle, or not one of data."""


class RefusedGlobal(ValueError):
    """A pickle names something that is not in the table.

    name      its module and name, as in "os.system"
    position  the byte of the pickle at which it is named
    """

    def __init__(self, name: str, position: int) -> None:
        super().__init__(f"{name} at byte {position}")
        self.name, self.position = name, position


@dataclass(frozen=True)
class Callee:
    """A function that pickles may call; it checks its arguments."""

    function: Callable[..., Any]


ATOMS = (str, bytes, bool, int, float, complex, type(None))
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_LITERALS = frozenset({"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING",
                       "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
                       "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"})
_EMPTY: dict[str, type] = {"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": set}
_MARK = object()


def loads(data: bytes, table: Mapping[str, Any], persistent: Callable[[Any], Any]) -> Any:
    """The object of a pickle.

    Args:
        data: The pickle, which may be hostile.
        table: What it may name, as in {"torch.float32": float32}; a `Callee` may be called.
        persistent: Called with what stands for an object that is not in the pickle; returns the object.

    Raises:
        RefusedGlobal: It names something else.
        DamagedPickle: It is no pickle, or has an opcode that data does not need.
    """
    machine = _Machine(table, persistent)
    for opcode, argument, position in pickletools.genops(data):
        machine.position = position or 0
        if opcode.name == "STOP":
            return machine.pop()
        machine.run(opcode.name, argument)
    raise DamagedPickle("it ends without a result")


def atoms(*values: Any) -> bool:
    """Whether values are numbers, strings, bytes, bools or None."""
    return all(type(x) in ATOMS for x in values)


class _Machine:
    """The stack, the memo, and the effect of each opcode on them."""

    def __init__(self, table: Mapping[str, Any], persistent: Callable[[Any], Any]) -> None:
        self.table, self.persistent = table, persistent
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.position = 0

    def run(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _LITERALS:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[int(argument)] = self.top()
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = self.top()
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            if int(argument) not in self.memo:
                self.damaged(f"entry {argument} of the memo is used before it is made")
            stack.append(self.memo[int(argument)])
        elif name not in ("PROTO", "FRAME"):
            if not hasattr(self, method := f"do_{name.lower()}"):
                self.damaged(f"the opcode {name}, which data does not need")
            getattr(self, method)(*[argument] * (argument is not None))

    def damaged(self, why: str) -> Any:
        raise DamagedPickle(f"{why} (byte {self.position} of the pickle)")

    def top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            self.damaged("a value is missing")
        return self.stack[-1]

    def pop(self) -> Any:
        self.top()
        return self.stack.pop()

    def since_mark(self) -> list[Any]:
        """Take the values above the last mark, and the mark."""
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is _MARK:
                found = self.stack[i + 1:]
                del self.stack[i:]
                return found
        return self.damaged("a mark is missing")  # type: ignore[no-any-return]

    def key(self, x: Any) -> Any:
        """A key of a dict or member of a set: hashing nested tuples could take for ever."""
        if not (atoms(x) or (isinstance(x, tuple) and atoms(*x)) or any(x is known for known in self.table.values())):
            self.damaged(f"a {type(x).__name__} as a key")
        return x

    # -- containers ---------------------------------------------------------------------------------------------------
    def do_tuple(self) -> None:
        self.stack.append(tuple(self.since_mark()))

    def _tuple(self, count: int) -> None:
        self.stack.append(tuple(reversed([self.pop() for _ in range(count)])))

    def do_tuple1(self) -> None:
        self._tuple(1)

    def do_tuple2(self) -> None:
        self._tuple(2)

    def do_tuple3(self) -> None:
        self._tuple(3)

    def do_list(self) -> None:
        self.stack.append(self.since_mark())

    def do_append(self) -> None:
        self._extend([self.pop()])

    def do_appends(self) -> None:
        self._extend(self.since_mark())

    def _extend(self, values: list[Any]) -> None:
        if type(target := self.top()) is not list:
            self.damaged(f"an append to a {type(target).__name__}")
        target.extend(values)

    def do_dict(self) -> None:
        values = self.since_mark()
        self.stack.append({})
        self._set(values)

    def do_setitem(self) -> None:
        self._set([self.pop(), self.pop()][::-1])

    def do_setitems(self) -> None:
        self._set(self.since_mark())

    def _set(self, values: list[Any]) -> None:
        if not isinstance(target := self.top(), dict) or len(values) % 2:
            self.damaged(f"items for a {type(target).__name__}")
        for key, value in zip(values[::2], values[1::2]):
            target[self.key(key)] = value

    def do_additems(self) -> None:
        values = self.since_mark()
        if type(target := self.top()) is not set:
            self.damaged(f"members for a {type(target).__name__}")
        target.update(map(self.key, values))

    def do_frozenset(self) -> None:
        self.stack.append(frozenset(map(self.key, self.since_mark())))

    # -- stack --------------------------------------------------------------------------------------------------------
    def do_pop(self) -> None:
        if not self.stack:
            self.damaged("a value is missing")
        self.stack.pop()

    def do_pop_mark(self) -> None:
        self.since_mark()

    def do_dup(self) -> None:
        self.stack.append(self.top())

    # -- names and calls ----------------------------------------------------------------------------------------------
    def _global(self, module: Any, name: Any) -> None:
        full = f"{'builtins' if module == '__builtin__' else module}.{name}"
        if full not in self.table:
            raise RefusedGlobal(full, self.position)
        self.stack.append(self.table[full])

    def do_global(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        self._global(module, name)

    def do_stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        self._global(module, name)

    def do_reduce(self) -> None:
        arguments, callee = self.pop(), self.pop()
        if type(callee) is not Callee or not isinstance(arguments, tuple):
            self.damaged(f"a call of a {type(callee).__name__}")
        self.stack.append(callee.function(*arguments))

    do_newobj = do_reduce

    def do_binpersid(self) -> None:
        self.stack.append(self.persistent(self.pop()))

    def do_build(self) -> None:
        """The state of an object: the metadata of a state dict, and nothing else."""
        state, target = self.pop(), self.top()
        if type(target) is not OrderedDict or not isinstance(state, dict) or state.keys() - {"_metadata"}:
            self.damaged(f"attributes for a {type(target).__name__}")
        vars(target).update(state)
