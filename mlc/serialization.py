"""Objects in files: tensors, arrays, containers of them, and modules, as data that runs no code when it is read.

`mlc.save(model.state_dict(), path)` and `mlc.load(path)` use it. The file is a container (backends/checksummed.py) of
the arrays, as a safetensors file, and of a table of objects, in which containers name their parts by earlier rows. A
module is the name of its class and its attributes; only classes of `mlc.nn` and those that the program names, in
`safe_globals`, are made again.

Example:
    >>> import io
    >>> file = io.BytesIO()
    >>> mlc.save({"step": 3, "w": mlc.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> mlc.load(file)
    {'step': 3, 'w': tensor([1., 1.], dtype=mlc.float32)}
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from mlc import nn, torch_file, torch_writer
from mlc.backends.checksummed import CorruptFile, pack, unpack
from mlc.frontend.arguments import coded
from mlc.frontend.autograd.differentiable import mark_parameter
from mlc.frontend.device import device
from mlc.frontend.dtypes import DType, as_dtype
from mlc.frontend.functions.sparse import sparse_compressed_tensor, sparse_coo_tensor
from mlc.frontend.location import user_loc
from mlc.frontend.output_files import write_file, write_open_file
from mlc.frontend.sparse.layout import LAYOUTS, sparse_coo
from mlc.frontend.tensor import Tensor, wrap
from mlc.ir.diag import UserError, UserTypeError
from mlc.saved_memory import shared_memory
from mlc.weights import Unreadable, from_bytes, to_bytes

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals", "save_for_torch"]

MAGIC = b"MLCSTATE"
COMPLEX, MEMORY = " complex128", "memory "
"""The end of the names of arrays that are parts of complex numbers, and the start of those that are memory."""
_START = 512
"""Bytes that tell the format of a file."""
File = str | os.PathLike[str] | IO[bytes]
_CONTAINERS: dict[str, type] = {"list": list, "tuple": tuple, "dict": dict, "OrderedDict": OrderedDict, "set": set}
_NAMES = {kind: name for name, kind in _CONTAINERS.items()}
_allowed: list[Any] = []


# -- names that may be loaded -----------------------------------------------------------------------------------------
def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Allow files to name these classes of modules, and functions.

    Args:
        safe_globals: Classes and functions.

    Example:
        >>> class Scale(nn.Module):
        ...     pass
        >>> mlc.serialization.add_safe_globals([Scale])
        >>> mlc.serialization.clear_safe_globals()
    """
    _allowed.extend(safe_globals)


def get_safe_globals() -> list[Any]:
    """The classes and functions that were allowed.

    Returns:
        A list.

    Example:
        >>> mlc.serialization.get_safe_globals()
        []
    """
    return list(_allowed)


def clear_safe_globals() -> None:
    """Take back what `add_safe_globals` has allowed: files may then name classes of `mlc.nn` only.

    Files that name others are refused again (MLC0765); those that have been read stay as they are.

    Example:
        >>> mlc.serialization.clear_safe_globals()
        >>> mlc.serialization.get_safe_globals()
        []
    """
    _allowed.clear()


@contextmanager
def safe_globals(safe_globals: Sequence[Any]) -> Iterator[None]:
    """Allow files to name these classes of modules, and functions, within a `with` statement.

    Args:
        safe_globals: Classes and functions.

    Returns:
        The context of the `with` statement.

    Example:
        >>> with mlc.serialization.safe_globals([nn.Linear]):
        ...     mlc.serialization.get_safe_globals() == [nn.Linear]
        True
    """
    before = get_safe_globals()
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _allowed[:] = before


def _name(x: Any) -> str:
    return f"{x.__module__}.{x.__qualname__}"


def _layers() -> Iterator[type]:
    """The classes of modules that mlc has."""
    rest = [nn.Module]
    while rest:
        cls = rest.pop()
        rest += cls.__subclasses__()
        if cls.__module__.startswith("mlc.nn."):
            yield cls


def _known(trusted: bool) -> Callable[[str], Any]:
    """The lookup of a class or function by its name; of a file that is trusted, also among all imported modules."""
    functions = (getattr(nn.functional, n) for n in nn.functional.__all__)
    table = {_name(x): x for x in (*_layers(), *filter(callable, functions), *_allowed)}

    def find(name: str) -> Any:
        module, _, attribute = name.rpartition(".")
        found = table.get(name)
        if found is None and trusted and module in sys.modules:
            found = vars(sys.modules[module]).get(attribute)
        if found is None:
            raise UserError(f"the file has a {name}, which is not allowed", code="MLC0765", loc=user_loc(),
                            hint=f"with mlc.serialization.safe_globals([{attribute}]): mlc.load(...)")
        return found
    return find


# -- writing ----------------------------------------------------------------------------------------------------------
class _Writer:
    """Table of objects; what is one object several times is one row."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.tensors: list[tuple[Tensor, list[Any]]] = []  # with their rows
        self.done: dict[int, tuple[int, Any]] = {}
        self.open: set[int] = set()

    def row(self, x: Any) -> int:
        """The number of an object's row."""
        if id(x) in self.done:
            return self.done[id(x)][0]
        if id(x) in self.open:
            raise UserTypeError(f"a {type(x).__name__} contains itself, which mlc.save cannot write", code="MLC0764",
                                loc=user_loc())
        self.open.add(id(x))
        self.rows.append(self._encode(x))
        self.open.discard(id(x))
        self.done[id(x)] = len(self.rows) - 1, x           # which also keeps it, so that no other one gets this id
        return len(self.rows) - 1

    def _encode(self, x: Any) -> list[Any]:
        if type(x) is float:
            return ["float", x.hex()]
        if x is None or type(x) in (bool, int, str):
            return ["value", x]
        if isinstance(x, Tensor) and x.composite:
            (kind, shape, coalesced), components = x.tree_flatten()
            return ["sparse", kind.name, list(shape), coalesced, *map(self.row, components)]
        if isinstance(x, Tensor | np.ndarray | np.generic):
            return self._array(x)
        if isinstance(x, DType):
            return ["dtype", x.name]
        if type(x) is device:
            return ["device", str(x)]
        if type(x) in _NAMES or (isinstance(x, tuple) and not hasattr(x, "_fields")):
            parts = [y for item in x.items() for y in item] if isinstance(x, dict) else x
            return [_NAMES.get(type(x), "tuple"), *map(self.row, parts)]
        if isinstance(x, nn.Module):
            return ["module", _name(type(x)), self.row(dict(vars(x)))]
        if callable(x) and getattr(nn.functional, getattr(x, "__name__", ""), None) is x:
            return ["function", _name(x)]
        raise UserTypeError(f"mlc.save cannot write a {type(x).__name__}", code="MLC0764", loc=user_loc(),
                            hint="save tensors, arrays, numbers, strings, lists, tuples, dicts and modules of them, "
                                 "such as model.state_dict()")

    def _array(self, x: Any) -> list[Any]:
        if not isinstance(x, Tensor):
            return ["array" if isinstance(x, np.ndarray) else "element", self._named(np.asarray(x))]
        row = ["parameter" if isinstance(x, nn.Parameter) else "tensor", None, bool(x.requires_grad), str(x.device)]
        self.tensors.append((x, row))
        return row

    def _named(self, array: np.ndarray[Any, Any]) -> str:
        """The name of the elements of an array in the file, which have it from now on."""
        name = str(len(self.arrays))
        if array.dtype == np.complex128:                   # which a safetensors file does not have
            name, array = name + COMPLEX, np.stack([array.real, array.imag], -1)
        self.arrays[name] = array
        return name

    def add_elements(self) -> None:
        """Complete the rows of tensors by their elements, or by where these lie in memory that several share."""
        memory, names = shared_memory(x for x, _ in self.tensors), dict[int, str]()
        for x, row in self.tensors:
            shared = memory.get(id(x))
            if shared is None:
                row[1] = self._named(np.asarray(x.detach().cpu().numpy()))
                continue
            row[1] = names.setdefault(id(shared), MEMORY + str(len(names)))
            self.arrays[row[1]] = shared.raw
            offset, strides = shared.place(x)
            row += [x.dtype.name, list(x.shape), list(strides), offset]


def check_file(file: Any, method: str | None) -> None:
    """UserTypeError unless this names a file, or is one with this method."""
    if not isinstance(file, str | os.PathLike) and (method is None or not hasattr(file, method)):
        raise UserTypeError(f"path is {type(file).__name__} {file!r}, expected the name of a file" + (
            f" or a file to {method} bytes" if method else ""), code="MLC0421", loc=user_loc())


@coded
def save_for_torch(obj: Any, f: File) -> None:
    """Write data to a file that `torch.load(f, weights_only=True)` reads, and `mlc.load`.

    Args:
        obj: Tensors, arrays, numbers, strings, and dicts, lists, tuples and sets of them, such as `model.state_dict()`.
            Tensors of devices are written as those of the CPU, and arrays as tensors.
        f: Name of the file, which is replaced as a whole or not at all, or a file that is open for writing bytes.

    Raises:
        UserTypeError: It holds what PyTorch would not load as data (MLC0764).
        UserError: The file cannot be written (MLC0393).

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> mlc.serialization.save_for_torch({"w": mlc.ones(2)}, file)
        >>> mlc.load(io.BytesIO(file.getvalue()))
        {'w': tensor([1., 1.], dtype=mlc.float32)}
    """
    check_file(f, "write")
    _put(f, torch_writer.contents(obj))


def _put(file: File, parts: Iterable[bytes | memoryview]) -> None:
    if isinstance(file, str | os.PathLike):
        write_file(file, parts)
    else:
        write_open_file(file, parts)


def check_location(map_location: Any) -> None:
    """UserTypeError unless this is the name of a device, or None."""
    if map_location is not None and not isinstance(map_location, str):
        raise UserTypeError(f"map_location is a {type(map_location).__name__}, and mlc takes the name of one device",
                            code="MLC0337", loc=user_loc(), hint='map_location="cpu"')


def write(x: Any, file: File) -> None:
    """Write an object; UserTypeError (MLC0764) if it holds what a file cannot have."""
    writer = _Writer()
    try:
        root = writer.row(x)
        writer.add_elements()
        parts = pack(MAGIC, {"objects": writer.rows, "root": root}, {"arrays": to_bytes(writer.arrays)})
    except Unreadable as error:
        raise UserTypeError(str(error), code="MLC0764", loc=user_loc()) from None
    except RecursionError:
        raise UserTypeError("containers are nested too deeply, or hold themselves", code="MLC0764",
                            loc=user_loc()) from None
    _put(file, parts)


# -- reading ----------------------------------------------------------------------------------------------------------
def content(file: Any, data_only: bool) -> bytes | None:
    """The bytes of a file of data; None of a path that is another file, unless it has to be one of data."""
    if not isinstance(file, str | os.PathLike) and hasattr(file, "read"):
        return bytes(file.read())
    try:
        path = Path(os.fspath(file))
        if not path.is_file():
            return None
        with path.open("rb") as stream:
            start = stream.read(len(MAGIC))
            if start != MAGIC:
                start += stream.read(_START - len(MAGIC))
                torch_file.check_format(start, str(file))
                return start if data_only else None
            return start + stream.read()
    except UserError:
        raise
    except (OSError, ValueError):
        return None                                        # whoever reads it as a model says why


def read(data: bytes, map_location: Any = None, trusted: bool = False) -> Any:
    """The object of a file's bytes.

    Args:
        data: Its content, which may be hostile.
        map_location: Device of all tensors; None for the one that each was on.
        trusted: Whether it may name any module class that is imported.

    Raises:
        UserError: The file is damaged, or no such file (MLC0766), or it names what is not allowed (MLC0765).
    """
    if data[:len(torch_file.ZIP)] == torch_file.ZIP:
        return torch_file.read(np.frombuffer(bytearray(data), np.uint8), "the file", map_location)
    torch_file.check_format(data, "the file")
    try:
        head, pieces = unpack(MAGIC, data)
        arrays = {name: _elements(name, x) for name, x in from_bytes(bytes(pieces["arrays"])).items()}
        find, made = _known(trusted), list[Any]()
        for kind, *rest in head["objects"]:
            made.append(_decoded(kind, rest, made, arrays, map_location, find))
        return made[head["root"]]
    except (CorruptFile, Unreadable, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"the file is not one that mlc.save wrote, or it is damaged: {error}", code="MLC0766",
                        loc=user_loc()) from None


def _elements(name: str, array: np.ndarray[Any, Any]) -> Any:
    """An array of a file as what it stands for: one of complex numbers for one of their parts, and memory for bytes."""
    if not name.endswith(COMPLEX) and not name.startswith(MEMORY):
        return array
    wanted, rank = (np.float64, array.ndim) if name.endswith(COMPLEX) else (np.uint8, 1)
    if array.dtype != wanted or array.ndim != rank or (name.endswith(COMPLEX) and array.shape[-1:] != (2,)):
        raise CorruptFile(f"{name} is an array of {array.dtype} of shape {list(array.shape)}")
    if name.endswith(COMPLEX):
        return array.view(np.complex128).reshape(array.shape[:-1])
    return torch_file.Stored(array, "cpu", None)


def _sparse(name: str, shape: list[int], coalesced: bool, components: list[Tensor]) -> Tensor:
    """A sparse tensor of its components, which are checked."""
    wanted = LAYOUTS[name]
    if wanted is sparse_coo:
        indices, values = components
        return sparse_coo_tensor(indices, values, shape, check_invariants=True, is_coalesced=coalesced)
    outer, inner, values = components
    return sparse_compressed_tensor(outer, inner, values, shape, layout=wanted, check_invariants=True)


def _decoded(kind: str, rest: list[Any], made: list[Any], arrays: Mapping[str, Any], place: Any,
             find: Callable[[str], Any]) -> Any:
    def array(name: str) -> np.ndarray[Any, Any]:
        found = arrays[name]
        if not isinstance(found, np.ndarray):
            raise CorruptFile(f"{name} is no array")
        return found

    if kind in ("tensor", "parameter"):
        name, requires_grad, where, *view = rest
        if view:
            dtype, size, stride, offset = view
            x = torch_file.tensor_of(arrays[name], offset, tuple(size), tuple(stride), as_dtype(dtype), None,
                                     where if place is None else place)
        else:
            x = wrap(array(name)).to(where if place is None else place)
        return mark_parameter(x, requires_grad) if kind == "parameter" else x.requires_grad_(requires_grad)
    if kind == "sparse":
        name, shape, coalesced, *components = rest
        return _sparse(name, shape, coalesced, [made[i] for i in components])
    if kind in _CONTAINERS:
        parts = [made[i] for i in rest]
        return _CONTAINERS[kind](zip(parts[::2], parts[1::2]) if "ict" in kind else parts)
    if kind == "module":
        cls = find(rest[0])
        if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
            raise CorruptFile(f"{rest[0]} is no class of modules")
        module = cls.__new__(cls)
        vars(module).update(made[rest[1]])
        return module
    simple: dict[str, Callable[[Any], Any]] = {
        "value": lambda x: x, "float": float.fromhex, "dtype": as_dtype, "device": device, "function": find,
        "array": array, "element": lambda name: array(name)[()]}
    return simple[kind](rest[0])
