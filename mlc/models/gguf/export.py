"""A model of a folder of transformers as the fields and tensors of a GGUF file: the inverse of reading one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.models.config import DecoderConfig, GPT2Config, ModelConfig
from mlc.models.encoder_config import is_encoder
from mlc.models.folder import fields_of, read_config_of, weights_of
from mlc.models.gguf.configuration import read_configuration, usual_magnitude
from mlc.models.gguf.encoders import described_encoder
from mlc.models.gguf.file import GGUFFile, Stored, read_gguf_file
from mlc.models.gguf.names import NOT_WEIGHTS, of_experts, table_of
from mlc.models.gguf.pooling import fields_of_pooling
from mlc.models.gguf.vocabulary import fields_of_tokenizer
from mlc.models.gguf.writing import Described
from mlc.models.rotary import Rotary

Array = np.ndarray[Any, Any]
Made = Callable[[], Stored]

_ARCHITECTURES = {"LlamaForCausalLM": "llama", "MistralForCausalLM": "llama", "MixtralForCausalLM": "llama",
                  "Qwen2ForCausalLM": "qwen2", "Qwen3ForCausalLM": "qwen3", "Qwen2MoeForCausalLM": "qwen2moe",
                  "Qwen3MoeForCausalLM": "qwen3moe", "GemmaForCausalLM": "gemma", "Gemma2ForCausalLM": "gemma2",
                  "Gemma3ForCausalLM": "gemma3", "Phi3ForCausalLM": "phi3", "GPT2LMHeadModel": "gpt2"}


def described(path: Path) -> Described:
    """The content of the GGUF file of a model, of a folder or of another GGUF file.

    Raises:
        UserError: It is no model (MLC0910, MLC0922), or one that no GGUF file can describe (MLC0911).
    """
    if path.suffix == ".gguf":
        file = read_gguf_file(path)
        return Described(file.fields, {name: _ready(x) for name, x in file.tensors.items()}, file.types)
    if is_encoder(fields_of(path)):
        return described_encoder(path)
    config = read_config_of(path)
    architecture = _ARCHITECTURES[config.architecture]
    fields = {"general.architecture": architecture, "general.name": path.resolve().name}
    own = _gpt2(config) if isinstance(config, GPT2Config) else _decoder(config, architecture, str(path))
    if (path / "modules.json").exists():
        own |= fields_of_pooling(path, config.context)
    fields |= {f"{architecture}.{name}": value for name, value in own.items()}
    tensors = dict(_tensors(path, config, architecture))
    _check(config, GGUFFile(path, fields, {name: make() if name in _SAYING else _UNREAD
                                           for name, make in tensors.items()}, {}))
    return Described(fields | fields_of_tokenizer(path), tensors)


_SAYING = ("token_embd.weight", *NOT_WEIGHTS)
"""Tensors that a configuration is read from."""
_UNREAD = Stored(np.empty(0, np.float32), (0,), None)


def _check(config: ModelConfig, file: GGUFFile) -> None:
    """Refuse a model that would be another one when its file is read: what differs, no field of a file says."""
    read = read_configuration(file)
    for name in (f.name for f in dataclasses.fields(config)):
        ours, theirs = getattr(config, name), getattr(read, name)
        if isinstance(ours, Rotary) and isinstance(theirs, Rotary):
            same = _turns(ours) == _turns(theirs)
        else:                                              # the last ones follow from how files have the weights
            same = ours == theirs or name in ("architecture", "unit_norms", "paired", "transposed")
        if not same:
            raise _refusal(str(file.path), f"{name} is {ours!r}, and {theirs!r} in all models of the architecture "
                                           f"{file.fields['general.architecture']}")


def _turns(rotary: Rotary) -> tuple[Any, ...]:
    """All that has to be the same of a rotary embedding, whose kind may have another name, up to rounding."""
    long = (rotary.trained, *rotary.long) if rotary.kind == "longrope" else (rotary.kind == "dynamic",)
    return tuple(float(f"{x:.5g}") for x in (rotary.size, rotary.magnitude, *rotary.frequencies(), *long))


def _refusal(origin: str, what: str) -> UserError:
    return UserError(f"{origin}: {what}, which no field of a GGUF file says", code="MLC0911", loc=user_loc())


def _gpt2(config: GPT2Config) -> dict[str, Any]:
    return {"context_length": config.context, "embedding_length": config.width, "block_count": config.layers,
            "feed_forward_length": config.inner_width, "attention.head_count": config.heads,
            "attention.layer_norm_epsilon": config.epsilon, "vocab_size": config.vocabulary}


def _decoder(config: DecoderConfig, architecture: str, origin: str) -> dict[str, Any]:
    out = {"context_length": config.context, "embedding_length": config.width, "block_count": config.layers,
           "feed_forward_length": config.inner_width, "attention.head_count": config.heads,
           "attention.head_count_kv": config.kv_heads, "attention.key_length": config.head_size,
           "attention.value_length": config.head_size, "attention.layer_norm_rms_epsilon": config.epsilon,
           "rope.dimension_count": config.rotary.size, "rope.freq_base": config.rotary.theta,
           "vocab_size": config.vocabulary}
    if any(config.windows):                                # which layers have one is a part of the architecture
        out["attention.sliding_window"] = max(config.windows)
    if config.local_rotary is not None:
        out["rope.freq_base_swa"] = config.local_rotary.theta
    for name, cap in (("attn_logit_softcapping", config.score_cap), ("final_logit_softcapping", config.logit_cap)):
        if cap is not None:
            out[name] = float(cap)
    if config.experts is not None:
        out |= {"expert_count": config.experts.count, "expert_used_count": config.experts.chosen,
                "expert_feed_forward_length": config.experts.width}
        if config.experts.shared_width:
            out["expert_shared_feed_forward_length"] = config.experts.shared_width
    return out | _scaling(config, origin)


def _scaling(config: DecoderConfig, origin: str) -> dict[str, Any]:
    rotary = config.rotary
    if rotary.kind in ("default", "llama3"):
        return {}
    if rotary.kind == "longrope":
        return {"rope.scaling.original_context_length": rotary.trained, "rope.scaling.attn_factor": rotary.magnitude}
    if rotary.kind == "linear":
        return {"rope.scaling.type": "linear", "rope.scaling.factor": float(rotary.factor)}
    if rotary.kind == "yarn" and rotary.truncate:
        return {"rope.scaling.type": "yarn", "rope.scaling.factor": float(rotary.factor),
                "rope.scaling.original_context_length": rotary.trained,
                "rope.scaling.attn_factor": rotary.magnitude / usual_magnitude(rotary.factor),
                "rope.scaling.yarn_beta_fast": rotary.betas[0], "rope.scaling.yarn_beta_slow": rotary.betas[1]}
    raise _refusal(origin, f"a rotary embedding of the kind {rotary.kind}")


def _ready(found: Stored) -> Made:
    return lambda: found


def _stacked(arrays: Sequence[Array]) -> Made:
    return lambda: Stored(np.stack(arrays), (len(arrays), *arrays[0].shape), None)


# -- weights ----------------------------------------------------------------------------------------------------------
def _tensors(folder: Path, config: ModelConfig, architecture: str) -> Iterator[tuple[str, Made]]:
    """The tensors under their names in GGUF files, in the form that llama.cpp has them."""
    arrays = {name: x.numpy() for name, x in weights_of(folder, config).items()}
    for name, array in arrays.items():
        if (found := _place(name, config)) is not None:
            yield found, _made(array, found, config, architecture)
    if isinstance(config, DecoderConfig):
        for found, names in of_experts(config).items():
            yield found, _stacked([arrays[n] for n in names])
        yield from _factors(config)


def _place(name: str, config: ModelConfig) -> str | None:
    """The name of a weight in GGUF files; None for those of single experts."""
    own, kind = name.rsplit(".", 1)
    layers = "transformer.h." if isinstance(config, GPT2Config) else "model.layers."
    prefix = ""
    if own.startswith(layers):
        number, own = own.removeprefix(layers).split(".", 1)
        prefix = f"blk.{number}."
    parts = {ours: theirs for theirs, ours in table_of(config).items()}
    return f"{prefix}{parts[own]}.{kind}" if own in parts else None


def _made(array: Array, name: str, config: ModelConfig, architecture: str) -> Made:
    part = name.split(".")[-2]

    def make() -> Stored:
        x = array
        if isinstance(config, GPT2Config) and x.ndim == 2 and part not in ("token_embd", "position_embd", "output"):
            x = np.ascontiguousarray(x.T)
        elif isinstance(config, DecoderConfig) and config.unit_norms and part.endswith("norm"):
            x = x.astype(np.float32) + 1
        elif isinstance(config, DecoderConfig) and architecture == "llama" and part in ("attn_q", "attn_k"):
            x = _paired(x, config.heads if part == "attn_q" else config.kv_heads)
        if part == "ffn_gate_inp_shexp":
            x = x[0]
        return Stored(x, x.shape, None)

    return make


def _paired(x: Array, heads: int) -> Array:
    """The rows of each head in pairs (i, i + size / 2)."""
    split = x.reshape(heads, 2, len(x) // heads // 2, *x.shape[1:])
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(x.shape)


def _factors(config: DecoderConfig) -> Iterator[tuple[str, Made]]:
    """The divisors of frequencies, as tensors."""
    rotary, found = config.rotary, dict[str, Array]()
    if rotary.kind == "llama3":
        plain = np.array(rotary.plain_frequencies([1.0]), np.float32)
        found["rope_freqs.weight"] = plain / np.array(rotary.frequencies(), np.float32)
    elif rotary.kind == "longrope":
        found = {"rope_factors_short.weight": np.array(rotary.short, np.float32),
                 "rope_factors_long.weight": np.array(rotary.long, np.float32)}
    for name, values in found.items():
        yield name, _ready(Stored(values, values.shape, None))
