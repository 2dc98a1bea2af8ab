"""Models in GGUF files, as llama.cpp has them: fields, names and vocabularies in the words of this package."""

from __future__ import annotations

from mlc.models.gguf.file import GGUFFile, read_gguf_file
from mlc.models.gguf.model import read_gguf

__all__ = ["GGUFFile", "read_gguf", "read_gguf_file"]
