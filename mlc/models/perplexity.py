"""Perplexity: how surprised a language model is by a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import mlc
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.models.folder import CausalLM

if TYPE_CHECKING:
    from mlc.models.language_model import LanguageModel

WINDOW = 256
"""Tokens that are read together."""


def perplexity(model: LanguageModel, text: str, tokens: int = 2048) -> float:
    """The exponential of the mean negative log-probability of the tokens of a text, each after those of its window.

    Args:
        model: The model, with a tokenizer.
        text: The text.
        tokens: How many of its tokens count.

    Returns:
        The perplexity: the number of tokens that the model hesitates between, so to speak.

    Raises:
        UserError: The text has fewer than two tokens (MLC0915), or the model no tokenizer (MLC0913).

    Example:
        >>> from mlc.models.perplexity import perplexity
        >>> perplexity(mlc.models.load("examples/assistant"), "The tensor dialect has values.") > 1
        True
    """
    found = model.text_tools().encode(text)[:tokens]
    window = min(WINDOW, model.config.context, len(found))
    if window < 2:
        raise UserError(f"a text of {len(found)} tokens has none that follow others", code="MLC0915", loc=user_loc(),
                        hint="give a longer one")
    rows = np.array([found[i: i + window] for i in range(0, len(found) - window + 1, window)], np.int64)

    def losses(module: CausalLM, row: Tensor) -> Tensor:
        chances = mlc.log_softmax(module(row[None])[0, :-1], dim=-1)
        return -mlc.gather(chances, 1, row[1:, None]).sum()

    with mlc.no_grad():
        score = mlc.compile(losses)
        total = sum(float(score(model.decoder, mlc.tensor(row)).item()) for row in rows)
    return float(np.exp(total / (rows.size - len(rows))))
