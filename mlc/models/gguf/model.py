"""A model of a GGUF file: its configuration, and its weights, mapped and not copied."""

from __future__ import annotations

from mlc.frontend.tensor import wrap
from mlc.models.folder import CausalLM, build
from mlc.models.gguf.configuration import read_configuration
from mlc.models.gguf.file import GGUFFile, Stored
from mlc.models.gguf.names import renamed
from mlc.models.parameters import Given, Weight
from mlc.models.quantized import QuantizedTensor


def read_gguf(file: GGUFFile) -> CausalLM:
    """The model that a file holds.

    Raises:
        UserError: mlc does not run the model (MLC0911), or its weights are not those that its fields describe
            (MLC0912).
    """
    config = read_configuration(file)
    source = Given({name: weight(found) for name, found in renamed(file.tensors, config)}, str(file.path))
    model = build(config, source)
    source.check_all_taken()
    return model


def weight(found: Stored) -> Weight:
    """A tensor of a file as a parameter: numbers, or blocks of an encoding."""
    if found.encoding is None:
        return wrap(found.bytes)
    return QuantizedTensor(wrap(found.bytes), found.encoding)
