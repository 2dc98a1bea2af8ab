"""Models in GGUF files, as llama.cpp has them: fields, names and vocabularies in the words of this package."""

from __future__ import annotations

from mlc.models.gguf.encoders import is_encoder_file, read_encoder
from mlc.models.gguf.file import GGUFFile, read_gguf_file
from mlc.models.gguf.model import read_gguf
from mlc.models.gguf.pooling import read_pooling_of

__all__ = ["GGUFFile", "is_encoder_file", "read_encoder", "read_gguf", "read_gguf_file", "read_pooling_of"]
