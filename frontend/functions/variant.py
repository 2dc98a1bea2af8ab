"""Functions that are other functions with a setting, under names of their own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from mlc.frontend.arguments import coded

Function = Callable[..., Any]


def variant(f: Function, name: str, sentence: str, example: str, **setting: Any) -> Function:
    """The public function `name`, which is f with a setting that it has no parameter for.

    sentence   the first one of its documentation, which goes on as that of f does
    example    a call of it and what that gives, separated by " -> "
    """
    signature = inspect.signature(f)
    kept = [p for p in signature.parameters.values() if p.name not in setting]

    def public(*args: Any, **keywords: Any) -> Any:
        if len(args) > len(kept):
            raise TypeError(f"{name}() takes {len(kept)} positional arguments but {len(args)} were given")
        return f(*args, **setting, **keywords)

    sections = re.split(r"(?m)^(?=Example:)", inspect.cleandoc(f.__doc__ or ""))[0]
    described = re.sub(r"\A.*?(?=^Args:)", "", sections, flags=re.S | re.M).strip()
    for left_out in setting:
        described = re.sub(rf"(?m)^    {left_out}: .*\n(        .*\n)*", "", described)
    call, result = example.split(" -> ")
    public.__name__ = public.__qualname__ = name
    public.__module__ = f.__module__
    public.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    public.__doc__ = f"{sentence}\n\n{described}\n\nExample:\n    >>> {call}\n    {result}\n"
    return coded(public)
