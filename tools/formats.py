"""Files of models that other programs write, by their endings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlc.model_description import ModelDescription


@dataclass(frozen=True)
class Format:
    """A kind of file that holds one function, in a language that is not mlc's.

    ending    of its files; the longest that fits is taken
    writer    what writes such files
    load      the function of a file, which has the types of its arguments
    describe  what a file has, and what of it mlc does not run
    """

    ending: str
    writer: str
    load: Callable[[str], Any]
    describe: Callable[[str], ModelDescription]


def _torch_load(path: str) -> Any:
    from mlc.torch import export
    return export(path)


def _torch_describe(path: str) -> ModelDescription:
    from mlc.torch.description import describe
    return describe(path)


def _onnx_load(path: str) -> Any:
    from mlc.onnx import load
    return load(path)


def _onnx_describe(path: str) -> ModelDescription:
    from mlc.onnx.description import describe
    return describe(path)


def _stablehlo_load(path: str) -> Any:
    from pathlib import Path

    from mlc.stablehlo import load
    return load(Path(path))


def _stablehlo_describe(path: str) -> ModelDescription:
    from mlc.stablehlo.description import describe
    return describe(path)


FORMATS = (
    Format(".pt2", "torch.export.save", _torch_load, _torch_describe),
    Format(".onnx", "ONNX", _onnx_load, _onnx_describe),
    Format(".stablehlo.mlir", "jax.jit(f).lower(...).as_text()", _stablehlo_load, _stablehlo_describe),
    Format(".stablehlo", "jax.export", _stablehlo_load, _stablehlo_describe),
    Format(".mlirbc", "jax.export", _stablehlo_load, _stablehlo_describe),
)
ENDINGS = tuple(f.ending for f in FORMATS)


def format_of(path: str) -> Format | None:
    """The format of a file, by its name; None if it is none of these."""
    return max((f for f in FORMATS if path.endswith(f.ending)), key=lambda f: len(f.ending), default=None)
