"""Prompts as callers give them: a text, tokens, or several such prompts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError

Prompt = str | Sequence[int] | np.ndarray[Any, Any] | Tensor


def is_prompt(x: Any) -> bool:
    """Whether it is one prompt, and not several."""
    if isinstance(x, np.ndarray | Tensor):
        return len(x.shape) == 1
    return isinstance(x, str) or (isinstance(x, Sequence) and len(x) > 0 and isinstance(x[0], int | np.integer))


def listed(prompts: Any) -> Sequence[Prompt]:
    """The prompts that a caller gives: one, or several, which may be the rows of an array.

    Raises:
        UserError: It is neither (MLC0915).
    """
    if is_prompt(prompts):
        return [prompts]
    if isinstance(prompts, np.ndarray | Tensor) and len(prompts.shape) == 2:
        return list(prompts)
    if not isinstance(prompts, Sequence):
        raise no_prompt(prompts)
    return prompts


def tokens_of(prompt: Any) -> tuple[Any, ...]:
    """The elements of a prompt that is no text: integers of any kind as ints, all else as it is.

    Raises:
        UserError: It consists of nothing, or is an array of another rank (MLC0915).
    """
    if isinstance(prompt, np.ndarray | Tensor):
        if len(prompt.shape) != 1:
            raise UserError(f"a prompt is an array of the shape {list(prompt.shape)}", code="MLC0915", loc=user_loc(),
                            hint="a prompt is an array of one dimension, several of equal lengths one of two")
        prompt = prompt.tolist()
    if not isinstance(prompt, Iterable):
        raise no_prompt(prompt)
    return tuple(map(whole, prompt))


def whole(given: Any) -> Any:
    """An integer of any kind as an int; all else, bools too, as it is."""
    try:
        return given if isinstance(given, bool) else index(given)
    except TypeError:
        return given


def no_prompt(given: Any) -> UserError:
    """The error that something is neither a text nor tokens."""
    return UserError(f"a prompt is {type(given).__name__}", code="MLC0915", loc=user_loc(),
                     hint="it is a text, or a list or an array of tokens; several are a list of such prompts")
