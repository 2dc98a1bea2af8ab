"""State dicts in safetensors files: arrays by name, without code, readable by every framework."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mlc.frontend.arguments import coded
from mlc.frontend.location import user_loc
from mlc.frontend.output_files import write_file
from mlc.frontend.tensor import Tensor, as_array, wrap
from mlc.ir.diag import UserError, UserFileNotFoundError
from mlc.ir.types import to_numpy
from mlc.weights import DTYPES, to_bytes


@coded
def save_safetensors(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write arrays by name to a safetensors file.

    The file is replaced as a whole or not at all: a write that fails leaves the old one.

    Args:
        path: Name of the file.
        state: Mapping of names to tensors or arrays of any dtype of mlc, such as `model.state_dict()`.

    Raises:
        UserError: The file cannot be written, or an array has a dtype that the format lacks (MLC0393).

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
        >>> nn.save_safetensors(path, {"w": mlc.ones(2)})
        >>> nn.load_safetensors(path)
        {'w': tensor([1., 1.], dtype=mlc.float32)}
    """
    try:
        data = to_bytes({name: as_array(x) for name, x in state.items()})
    except ValueError as error:
        raise UserError(f"{path} cannot be written: {getattr(error, 'message', error)}", code="MLC0393",
                        loc=user_loc()) from None
    write_file(path, [data])


@coded
def load_safetensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Map a safetensors file into memory, and return its tensors by name.

    The header is checked against the file first. Elements are read when they are used, so the file must stay as it is;
    writing to a tensor does not change it. Nothing in a file is executed.

    Args:
        path: Name of the file.

    Returns:
        Dict of tensors, in the order of the file.

    Raises:
        UserError: The file cannot be read (MLC0392), or is no safetensors file, or one with dtypes or shapes that mlc
            lacks (MLC0387).

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
        >>> nn.save_safetensors(path, nn.Linear(2, 3).state_dict())
        >>> sorted(nn.load_safetensors(path))
        ['bias', 'weight']
    """
    file = Path(path)
    try:
        import safetensors
        if file.exists() and not file.is_file():
            raise OSError("it is not a regular file")
        with safetensors.safe_open(file, framework="np"):              # checks the header against the file
            pass
        with open(file, "rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)     # written to, only this process sees it
    except OSError as error:
        reason = str(error).removesuffix(f": {file}")
        kind = UserFileNotFoundError if isinstance(error, FileNotFoundError) else UserError
        raise kind(f"cannot read {file}: {reason}", code="MLC0392", loc=user_loc()) from None
    except (safetensors.SafetensorError, ValueError) as error:
        raise UserError(f"{file} is no safetensors file: {error}", code="MLC0387", loc=user_loc()) from None
    start = 8 + int.from_bytes(mapped[:8], "little")
    header = json.loads(mapped[8:start])
    return {name: _tensor(file, mapped, start, name, info) for name, info in header.items() if name != "__metadata__"}


def _tensor(file: Path, mapped: mmap.mmap, start: int, name: str, info: dict[str, Any]) -> Tensor:
    if info["dtype"] not in DTYPES:
        raise UserError(f"{file}: {name} has elements of type {info['dtype']}, which mlc does not have",
                        code="MLC0387", loc=user_loc())
    dtype = to_numpy(DTYPES[info["dtype"]])
    begin, end = info["data_offsets"]
    array = np.frombuffer(mapped, dtype, (end - begin) // dtype.itemsize, start + begin)
    try:
        array = array.reshape(info["shape"])
    except ValueError as error:                            # of none, or of too many dimensions
        raise UserError(f"{file}: {name} has a shape that no tensor has: {error}", code="MLC0387",
                        loc=user_loc()) from None
    return wrap(array if array.flags.aligned else array.copy())
