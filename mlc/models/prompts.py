"""Prompts as callers give them: a text, tokens, or a list of such prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

Prompt = str | Sequence[int]


def is_prompt(x: Any) -> bool:
    """Whether it is one prompt, and not several."""
    return isinstance(x, str) or (isinstance(x, Sequence) and len(x) > 0 and isinstance(x[0], int))


def listed(prompts: Any) -> Sequence[Prompt]:
    """The prompts that a caller gives: one, or several.

    Raises:
        UserError: It is neither (MLC0915).
    """
    if is_prompt(prompts):
        return [prompts]
    if not isinstance(prompts, Sequence):
        raise no_prompt(prompts)
    return prompts


def no_prompt(given: Any) -> UserError:
    """The error that something is neither a text nor tokens."""
    return UserError(f"a prompt is {type(given).__name__}", code="MLC0915", loc=user_loc(),
                     hint="it is a text, or a list of tokens; several are a list of such prompts")
