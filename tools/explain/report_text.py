"""An explanation as text on the terminal."""

from __future__ import annotations

from mlc.tools.explain.explanation import Explanation


def summary(found: Explanation) -> str:
    return f"{found.title}\n"


def line(found: Explanation, wanted: str) -> str:
    return f"{wanted}\n"
