"""Language models: read from folders as transformers has them, and run by compiled code.

`load` reads a folder: Llama, Mistral, Qwen, Gemma, Phi-3, Mixtral, GPT-2 and their like. `generate` answers prompts,
also several at once; `mlc chat` and `mlc generate` do so in a terminal. README.md in this folder describes how it
works.

Example:
    >>> model = mlc.models.load("examples/assistant")
    >>> len(mlc.generate(model, "The tensor dialect", max_tokens=4).tokens)
    4
"""

from __future__ import annotations

from mlc.models.generation import Completion, LogProbability, Piece
from mlc.models.language_model import LanguageModel, generate, load
from mlc.models.sampling import Sampling

__all__ = ["Completion", "LanguageModel", "LogProbability", "Piece", "Sampling", "generate", "load"]
