"""Inputs of an entry: its types, and arrays from files, from a seed, or from a reproducer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.ir import sizes
from mlc.ir.affine_syntax import parse_size
from mlc.ir.core import Op
from mlc.ir.diag import ParseError, UserError
from mlc.ir.parser import Parser
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import SCALARS, FunctionType, ScalarType, ShapedType, TensorType, Type, element, to_numpy
from mlc.tools import files, report

Array = np.ndarray[Any, Any]

SIZES = (3, 2, 5, 4)
"""Default values for unspecified size symbols, in order of appearance."""

_ARGUMENT = re.compile(r"\s*(\w+)\s*(?:\[([^\]]*)\])?\s*(,|$)")


def entries(module: Op) -> dict[str, FunctionType]:
    """The callable functions of a module, with the types of their arguments and results as arrays."""
    out = dict[str, FunctionType]()
    companions = set[str]()
    for op in module.regions[0].block:
        name, type = str(op.attrs.get("sym_name", "")), op.attrs.get("function_type")
        if interface := op.attrs.get("interface"):
            name = name.removesuffix("_entry") if op.name.startswith("llvm.") else name
            companions |= {f"{name}_arena_bytes", f"{name}_entry"}
            type = Parser(interface, f"interface of @{name}").type()
        if isinstance(type, FunctionType) and op.regions and op.attrs.get("sym_visibility") != "private":
            out[name] = type
    return {name: type for name, type in out.items() if name not in companions}


def has_interface(module: Op, name: str) -> bool:
    """Whether a function takes tensors, by its type or, below the tensor level, by its interface."""
    return all(isinstance(t, TensorType) for t in entries(module)[name].inputs)


def choose_entry(module: Op, wanted: str | None) -> str:
    """The function to call: the requested one, @main, or the only one."""
    known = entries(module)
    name = wanted.removeprefix("@") if wanted is not None else "main" if "main" in known or len(known) != 1 \
        else next(iter(known))
    if name not in known:
        from difflib import get_close_matches
        near = get_close_matches(name, known, 1)
        raise UserError(f"the module has no function @{name}", code="MLC0399",
                        hint=f"did you mean @{near[0]}?" if near else
                        "it has " + (", ".join(f"@{n}" for n in known) or "none that can be called"))
    return name


def parse_args(text: str) -> list[TensorType]:
    """Parse `f32[B,16],i64[B],f32` to tensor types."""
    out, at = list[TensorType](), 0
    while at < len(text):
        m = _ARGUMENT.match(text, at)
        if m is None or m[1] not in SCALARS or (m[3] == "," and m.end() == len(text)):
            raise _bad_args(text[at:at + 24])
        try:
            shape: list[Dim] = [parse_size(d) for d in m[2].split(",")] if (m[2] or "").strip() else []
        except ParseError:
            raise _bad_args(m[0]) from None
        if any(isinstance(d, int) and d < 0 for d in shape):
            raise _bad_args(m[0])
        out.append(TensorType(tuple(shape), SCALARS[m[1]]))
        at = m.end()
    return out


def check_given(given: Sequence[TensorType], wanted: Sequence[Type]) -> None:
    """Usage error if the types of --args do not match those of the entry, `wanted`, with numbers for symbols."""
    fits = len(given) == len(wanted) and all(
        isinstance(w, TensorType) and w.rank == g.rank and w.dtype == g.dtype
        and all(not isinstance(d, int) or not isinstance(n, int) or d == n for d, n in zip(w.shape, g.shape))
        for g, w in zip(given, wanted))
    if not fits:
        raise report.usage_error(f"--args: the function takes {', '.join(map(str, wanted)) or 'nothing'}",
                                 "give these types, with numbers for symbols", "MLC0397")


def _bad_args(text: str) -> UserError:
    return report.usage_error(f"--args: {text.strip()!r} is no argument type",
                              "write TYPE[SIZE,...],..., for example 'f32[B,16],i64[B]'; types are "
                              + ", ".join(t for t in SCALARS if t != "index"), "MLC0397")


def parse_sizes(text: str | None) -> dict[str, int]:
    """Parse `B=4,N=8`."""
    out = dict[str, int]()
    for item in re.split(r"[\s,]+", (text or "").strip()):
        if not item:
            continue
        m = re.fullmatch(r"([A-Za-z_]\w*)=(\d{1,18})", item)
        if m is None:
            raise report.usage_error(f"--sizes: {item!r} gives no size", "write B=4,N=8", "MLC0397")
        if out.setdefault(m[1], int(m[2])) != int(m[2]):
            raise report.usage_error(f"--sizes: {m[1]} is {out[m[1]]} and {m[2]}", "give each size once", "MLC0397")
    return out


def size_names(types: Sequence[Type]) -> set[str]:
    """The symbolic sizes of arguments."""
    return {s for type in types if isinstance(type, ShapedType) for d in type.shape if d is not None
            for s in sizes.symbols(d)}


def random_arrays(types: Sequence[Type], seed: int, numbers: dict[str, int],
                  given: Sequence[TensorType] = ()) -> list[Any]:
    """Arguments of these types: normal floats, integers 0 and 1. `given` types fix sizes."""
    known = size_names(types)
    if unknown := numbers.keys() - known:
        raise report.usage_error(f"--sizes: there is no size {min(unknown)}",
                                 "it has " + (", ".join(sorted(known)) or "none"), "MLC0391")
    rng, env = np.random.default_rng(seed), dict(numbers)
    for type, array in zip(types, given):
        if isinstance(type, TensorType) and type.rank == array.rank:
            for d, n in zip(type.shape, array.shape):
                if isinstance(n, int) and (name := sizes.symbol_name(d)) is not None:
                    env.setdefault(name, n)
    arrays = [_random(rng, type, env) for type in types]
    for number, (type, array, wanted) in enumerate(zip(types, arrays, given)):
        for axis, (n, m) in enumerate(zip(wanted.shape, np.shape(array))):
            if isinstance(type, TensorType) and isinstance(n, int) and n != m:
                where = f"size {axis} of argument {number} is {n}, where {type.shape[axis]} is {m}"
                raise report.usage_error(f"--args: {where}", "give sizes that agree, also with --sizes", "MLC0397")
    return arrays


def sizes_of(types: Sequence[Type], arrays: Sequence[Any]) -> dict[str, int]:
    """The numbers that arrays give to the symbolic sizes of their types."""
    dims = [pair for type, array in zip(types, arrays) if isinstance(type, ShapedType)
            for pair in zip(type.shape, np.shape(array))]
    return {name: n for d, n in dims if d is not None and (name := sizes.symbol_name(d)) is not None}


def _random(rng: np.random.Generator, type: Type, env: dict[str, int]) -> Any:
    scalar = element(type) if isinstance(type, ScalarType | ShapedType) else None
    if scalar is None:
        raise UserError(f"there are no random values of type {type}", code="MLC0389")
    shape = tuple(_size(d, env) for d in type.shape) if isinstance(type, ShapedType) else ()
    if scalar.is_float:
        return np.asarray(rng.standard_normal(shape)).astype(to_numpy(scalar))
    return np.asarray(rng.integers(0, 2, shape)).astype(to_numpy(scalar))


def _size(dim: int | Size | None, env: dict[str, int]) -> int:
    if dim is None:
        return SIZES[0]
    for symbol in sorted(sizes.symbols(dim)):
        env.setdefault(symbol, SIZES[len(env) % len(SIZES)])
    number = sizes.evaluate(dim, env)
    if not 0 <= number < 1 << 40:
        raise report.usage_error(f"size {dim} would be {number}", "choose the symbols with --sizes", "MLC0397")
    return number


def load_arrays(text: str) -> list[Array]:
    """The arrays of `x.npy,rest.npz`, in order; nothing is unpickled."""
    out = list[Array]()
    for path in filter(None, (p.strip() for p in text.split(","))):
        try:
            found = np.load(files.placed(path), allow_pickle=False)
            out += [found] if isinstance(found, np.ndarray) else [found[name] for name in found.files]
        except OSError as error:
            raise report.usage_error(f"cannot read {path}: {error.strerror or error}", "give .npy or .npz files",
                                     "MLC0392") from None
        except Exception:                        # whatever a damaged file makes of numpy's reader
            raise UserError(f"{path} is no file of arrays, or a damaged one", code="MLC0387",
                            hint="write it with numpy.save or numpy.savez") from None
    return out


def in_types(arrays: Sequence[Array], types: Sequence[Type]) -> list[Array]:
    """The arrays of --inputs as the arguments of a function; UserError if their number or element types differ.

    numpy's files have no name for bfloat16 and 8-bit floats: arrays of bytes of this size are taken for them.
    """
    if len(arrays) != len(types):
        raise UserError(f"--inputs has {len(arrays)} arrays, and the function takes {len(types)}", code="MLC0321",
                        hint="give one for each argument, in their order")
    out = list[Array]()
    for number, (array, type) in enumerate(zip(arrays, types)):
        scalar = element(type) if isinstance(type, ScalarType | ShapedType) else None
        dtype = array.dtype if scalar is None else np.dtype(to_numpy(scalar))
        if array.dtype.kind == "V" and dtype.isbuiltin == 2 and array.dtype.itemsize == dtype.itemsize:
            array = array.view(dtype)                      # 2: a dtype that another package has registered
        if array.dtype.newbyteorder("=") != dtype:
            raise UserError(f"argument {number} of --inputs has dtype {array.dtype}, expected {dtype}", code="MLC0325",
                            hint="mlc does not convert element types implicitly: write the file in this dtype")
        out.append(array.astype(dtype, copy=False))         # in the order of bytes of this machine
    return out


# -- reproducers, which contain the arrays as well as the pipeline -----------------------------------------------------
_CHECK = re.compile(r"mlc_check:\s*\{(.*?)\n\s*\}", re.S)
_FIELD = re.compile(r'(\w+):\s*(?:"([^"]*)"|(\w+))')


def reproducer(text: str, pipeline: str, entry: str, arrays: Sequence[Any], types: Sequence[Type], exact: bool) -> str:
    """MLIR's reproducer format with an additional resource: the entry, its arrays, and the kind of comparison."""
    rows = [f'entry: "{entry}"', f"exact: {'true' if exact else 'false'}"]
    for i, (array, type) in enumerate(zip(arrays, types)):
        scalar = element(type)
        array = np.asarray(array, to_numpy(scalar))        # `tobytes` writes in row-major order, whatever the strides
        shape = "x".join([*map(str, np.shape(array)), str(scalar)])
        rows.append(f'arg{i}: "{shape} 0x{array.tobytes().hex().upper()}"')
    return (f"{text}\n{{-#\n  external_resources: {{\n    mlir_reproducer: {{\n"
            f'      pipeline: "builtin.module({pipeline})",\n      disable_threading: true,\n      verify_each: true\n'
            "    },\n    mlc_check: {\n      " + ",\n      ".join(rows) + "\n    }\n  }\n#-}\n")


_ARRAY = re.compile(r"((?:\d+x)*)(.+)")
"""The sizes and the element type of an array, as in 2x3xf32."""


def held_call(text: str) -> tuple[str, list[Array], bool] | None:
    """(entry, arrays, exact) of a reproducer."""
    found = _CHECK.search(text, text.find("{-#") if "{-#" in text else len(text))
    if found is None:
        return None
    fields = {m[1]: m[2] if m[2] is not None else m[3] for m in _FIELD.finditer(found[1])}
    arrays = list[Array]()
    try:
        while (held := fields.get(f"arg{len(arrays)}")) is not None:
            sizes, dtype = _ARRAY.fullmatch(held.split(" ")[0]).groups()  # type: ignore[union-attr]
            data = bytes.fromhex(held.split(" 0x")[1])
            shape = [int(n) for n in sizes.split("x")[:-1]]
            arrays.append(np.frombuffer(data, to_numpy(SCALARS[dtype])).reshape(shape))
        return fields["entry"], arrays, fields.get("exact") == "true"
    except (AttributeError, KeyError, IndexError, ValueError) as error:
        raise ParseError(f"the reproducer's arrays are damaged: {error}", code="MLC0203") from None


def show(results: Sequence[Any], types: Sequence[Type]) -> str:
    """Text of the results: the type and the elements of each."""
    lines = list[str]()
    with np.printoptions(threshold=1000, linewidth=120):
        for i, (array, type) in enumerate(zip(results, types)):
            array = np.asarray(array)
            lines.append(f"result {i}: {element(type)}{list(array.shape)}\n{array}")
    return "\n".join(lines) + ("\n" if lines else "")


def save(path: str, results: Sequence[Any]) -> None:
    """Write the results as .npy (one) or .npz (any number), atomically."""
    import io
    buffer = io.BytesIO()
    if path.endswith(".npy") and len(results) == 1:
        np.save(buffer, np.asarray(results[0]), allow_pickle=False)
    elif path.endswith(".npz"):
        np.savez(buffer, *[np.asarray(r) for r in results])
    else:
        raise report.usage_error(f"cannot write {len(results)} results to {path}",
                                 "give a name ending in .npz, or in .npy for one result", "MLC0397")
    files.write(path, buffer.getvalue())
