"""Language models in mlc: read from folders of transformers, and run by compiled code (README.md in this folder)."""

from __future__ import annotations

from mlc.models.generation import Completion, LogProbability, Piece
from mlc.models.language_model import LanguageModel, generate, load
from mlc.models.sampling import Sampling

__all__ = ["Completion", "LanguageModel", "LogProbability", "Piece", "Sampling", "generate", "load"]
