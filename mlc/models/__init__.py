"""Language models: read from folders as transformers has them, and run by compiled code.

`load` reads a folder: Llama, Mistral, Qwen, Gemma, Phi-3, Mixtral, GPT-2 and their like, and encoders of the BERT
family, whose `embed` gives vectors of texts. `generate` answers prompts, also several at once, with a `Constraint` on
what they may be; a `Scheduler` takes requests as they come. `mlc chat` and `mlc generate` do so in a terminal,
`mlc serve` for other programs. README.md in this folder describes how it works.

Example:
    >>> model = mlc.models.load("examples/assistant")
    >>> len(mlc.generate(model, "The tensor dialect", max_tokens=4).tokens)
    4
"""

from __future__ import annotations

from mlc.models.constraints import Constraint
from mlc.models.drafting import DraftModel, PromptLookup
from mlc.models.generation import Completion, LogProbability, Piece
from mlc.models.language_model import LanguageModel, generate, load
from mlc.models.sampling import Sampling
from mlc.models.scheduler import Scheduler

__all__ = ["Completion", "Constraint", "DraftModel", "LanguageModel", "LogProbability", "Piece", "PromptLookup",
           "Sampling", "Scheduler", "generate", "load"]
