"""The fields of a GGUF file that tell how the vector of a text is made of those of its tokens.

Vectors of texts have the length 1, as llama.cpp makes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.models.embeddings import Normalize, Pooling, read_pooling
from mlc.models.gguf.configuration import Keys
from mlc.models.gguf.file import GGUFFile

_MODES = {0: "mean_tokens", 1: "mean_tokens", 2: "cls_token", 3: "lasttoken"}
"""By the number of `pooling_type`; 0 says nothing, and is what mlc takes for folders that say nothing."""


def read_pooling_of(file: GGUFFile) -> Pooling | None:
    """The pooling of a file; None of a decoder whose file says nothing of vectors.

    Raises:
        UserError: It is one that mlc does not compute (MLC0911).
    """
    keys = Keys(file)
    if keys.architecture != "bert" and not keys.has("pooling_type"):
        return None
    kind = keys.integer("pooling_type", 1)
    if kind not in _MODES:
        raise keys.fields.refusal(f"pooling_type is {kind}, expected 1 (mean), 2 (the first token) or 3 (the last)")
    return Pooling((_MODES[kind],), limit=keys.integer("context_length", 0) or None)


def fields_of_pooling(folder: Path, context: int) -> dict[str, Any]:
    """The field for the pooling of a folder, of a model that sees so many tokens.

    Raises:
        UserError: It is one that no file can describe (MLC0911).
    """
    pooling = read_pooling(folder)
    kinds = {mode: number for number, mode in _MODES.items() if number}
    for wrong, what in ((len(pooling.modes) > 1 or pooling.modes[0] not in kinds, f"pooling by {pooling.modes}"),
                        ([*map(type, pooling.after)] != [Normalize], "vectors that are not only normalised"),
                        (pooling.prompt != "", "a text before each text"),
                        (pooling.limit is not None and pooling.limit < context,
                         f"texts of at most {pooling.limit} of {context} tokens")):
        if wrong:
            raise UserError(f"{folder}: it has {what}, which no field of a GGUF file says", code="MLC0911",
                            loc=user_loc())
    return {"pooling_type": kinds[pooling.modes[0]]}
