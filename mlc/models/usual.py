"""The options that a model's folder recommends for generation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlc.models.fields import Fields
from mlc.models.folder import read_json
from mlc.models.sampling import Sampling

_WITHOUT: Mapping[str, Any] = {
    "num_beams": 1, "num_beam_groups": 1, "diversity_penalty": 0.0, "penalty_alpha": None, "typical_p": 1.0,
    "epsilon_cutoff": 0.0, "eta_cutoff": 0.0, "top_h": None, "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0, "encoder_no_repeat_ngram_size": 0, "bad_words_ids": None, "sequence_bias": None,
    "suppress_tokens": None, "begin_suppress_tokens": None, "forced_bos_token_id": None, "forced_eos_token_id": None,
    "exponential_decay_length_penalty": None, "min_length": 0, "min_new_tokens": None, "stop_strings": None,
    "guidance_scale": 1.0, "token_healing": False, "dola_layers": None, "watermarking_config": None}
"""Options of transformers' GenerationConfig that mlc does not take from a folder, with the values that do nothing."""


@dataclass(frozen=True)
class Usual:
    """The options that the `generation_config.json` of a model recommends.

    sampling     how tokens are chosen
    stop_tokens  tokens that end an answer
    limit        greatest number of tokens of an answer; None if it says nothing
    """

    sampling: Sampling
    stop_tokens: frozenset[int]
    limit: int | None


def usual_of(folder: Path) -> Usual:
    """The options of `generation_config.json`, and of `config.json` the tokens that end a text.

    There is a warning of options that mlc does not know: answers are those without.
    """
    path = folder / "generation_config.json"
    plain = Fields(read_json(folder / "config.json"), str(folder / "config.json"))
    fields = Fields(read_json(path), str(path)) if path.exists() else Fields({}, str(path))
    ends = fields.identifiers("eos_token_id") or plain.identifiers("eos_token_id")
    draws = fields.flag("do_sample", False)
    sampling = Sampling(fields.number("temperature", 1.0) if draws else 0.0,
                        fields.integer("top_k", 50 if draws else 0), fields.number("top_p", 1.0),
                        fields.number("min_p", 0.0), fields.number("repetition_penalty", 1.0))
    for name in sorted(_WITHOUT.keys() & fields.data.keys()):
        if fields.data[name] not in (None, [], {}, _WITHOUT[name]) and not (_WITHOUT[name] is None
                                                                            and fields.data[name] == 0):
            warnings.warn(f"{path} recommends {name} = {fields.data[name]!r}, which mlc does not do: answers are those "
                          "without", stacklevel=2)
    limit = fields.integer("max_new_tokens", 0)
    return Usual(sampling, frozenset(ends), limit or None)
