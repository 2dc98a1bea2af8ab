"""Encoders in GGUF files, which llama.cpp calls `bert`: BERT, RoBERTa and DistilBERT, their positions counted from 0.

No field tells the activation, which is that of nearly all such models: the exact GELU (llama.cpp computes it by the
approximation with tanh).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mlc.frontend.tensor import Tensor
from mlc.models.embeddings import read_pooling
from mlc.models.encoder import Encoder
from mlc.models.encoder_config import EncoderConfig, read_encoder_config
from mlc.models.fields import Fields
from mlc.models.folder import encoder_weights_of, fields_of
from mlc.models.gguf.configuration import Keys
from mlc.models.gguf.file import GGUFFile, Stored
from mlc.models.gguf.model import weight
from mlc.models.gguf.pooling import fields_of_pooling
from mlc.models.gguf.vocabulary import fields_of_tokenizer
from mlc.models.gguf.writing import Described
from mlc.models.parameters import Given, Place

Array = np.ndarray[Any, Any]

ARCHITECTURE = "bert"
_TABLES = {"token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings",
           "token_embd_norm": "embeddings.LayerNorm"}
_OF_LAYERS = {"attn_q": "query", "attn_k": "key", "attn_v": "value", "attn_output": "mixed",
              "attn_output_norm": "mixed_norm", "ffn_up": "inner", "ffn_down": "outer",
              "layer_output_norm": "outer_norm"}
"""The part of a layer by its name in files."""


def is_encoder_file(file: GGUFFile) -> bool:
    """Whether a file holds an encoder."""
    return file.fields.get("general.architecture") == ARCHITECTURE


def _names(config: EncoderConfig) -> Mapping[str, str]:
    """The names of modules by those in files, without the numbers of layers."""
    types = {"token_types": config.names["types"]} if config.types else {}
    return {**_TABLES, **types, **{f"blk.{i}.{theirs}": f"{config.names['layers']}.{i}.{config.names[part]}"
                                   for i in range(config.layers) for theirs, part in _OF_LAYERS.items()}}


# -- reading ----------------------------------------------------------------------------------------------------------
def read_encoder(file: GGUFFile) -> Encoder:
    """The encoder that a file holds; a head that it may have is left out.

    Raises:
        UserError: It has a feature that mlc does not run (MLC0911), or its weights are not those that its fields
            describe (MLC0912).
    """
    config = _configuration(file)
    names = _names(config)
    found = {}
    for name, stored in _tensors(file, config.width):
        module, _, kind = name.rpartition(".")
        found[f"{names[module]}.{kind}" if module in names else name] = weight(stored)
    source = Given(found, str(file.path))
    module_ = Encoder(config, Place(source))
    source.check_all_taken()
    module_.eval()
    return module_


def _configuration(file: GGUFFile) -> EncoderConfig:
    keys, tensors = Keys(file), file.tensors
    for name in ("token_embd.weight", "position_embd.weight"):
        if name not in tensors or len(tensors[name].shape) != 2:
            raise keys.fields.refusal(f"it has no matrix {name}", "it may be a part of a model")
    if keys.fields.flag(f"{ARCHITECTURE}.attention.causal", False):
        raise keys.fields.refusal("attention.causal is true, and encoders see all of a text")
    types = tensors.get("token_types.weight")
    config = read_encoder_config(Fields({
        "architectures": ["BertModel"], "vocab_size": tensors["token_embd.weight"].shape[0],
        "hidden_size": keys.integer("embedding_length"), "intermediate_size": keys.integer("feed_forward_length"),
        "num_hidden_layers": keys.integer("block_count"), "num_attention_heads": keys.integer("attention.head_count"),
        "layer_norm_eps": keys.number("attention.layer_norm_epsilon"),
        "max_position_embeddings": tensors["position_embd.weight"].shape[0],
        "type_vocab_size": 1 if types is None else types.shape[0]}, str(file.path)))
    return replace(config, types=0) if types is None else config


def _tensors(file: GGUFFile, width: int) -> Iterator[tuple[str, Stored]]:
    """The tensors of the encoder; one that is query, key and value as three."""
    for name, found in file.tensors.items():
        if name.startswith("cls."):
            continue
        if ".attn_qkv." not in name or found.shape[0] != 3 * width:
            yield name, found
            continue
        for i, part in enumerate(("attn_q", "attn_k", "attn_v")):
            yield name.replace("attn_qkv", part), Stored(found.bytes[i * width: (i + 1) * width],
                                                         (width, *found.shape[1:]), found.encoding)


# -- writing ----------------------------------------------------------------------------------------------------------
def described_encoder(folder: Path) -> Described:
    """The content of the GGUF file of an encoder in a folder.

    Raises:
        UserError: It is one that no GGUF file can describe (MLC0911).
    """
    fields = fields_of(folder)
    config, limit = read_encoder_config(fields), read_pooling(folder).limit
    context = min(config.context, limit or config.context)
    for wrong, what in ((config.rotary is not None, "rotary embeddings"),
                        (config.activation != "gelu", f"the activation {config.activation}")):
        if wrong:
            raise fields.refusal(f"it has {what}, which no field of a GGUF file says")
    arrays = encoder_weights_of(folder, config)
    own = {"context_length": context, "embedding_length": config.width,
           "feed_forward_length": config.inner_width, "block_count": config.layers,
           "attention.head_count": config.heads, "attention.layer_norm_epsilon": config.epsilon,
           "attention.causal": False, "vocab_size": config.vocabulary, **fields_of_pooling(folder, context)}
    tensors = {}
    for theirs, ours in _names(config).items():
        for kind in ("weight", "bias"):
            if f"{ours}.{kind}" in arrays:
                first = config.rows - config.context if theirs == "position_embd" else 0
                tensors[f"{theirs}.{kind}"] = _made(arrays[f"{ours}.{kind}"], first)
    return Described({"general.architecture": ARCHITECTURE, "general.name": folder.resolve().name,
                      **{f"{ARCHITECTURE}.{name}": value for name, value in own.items()},
                      "tokenizer.ggml.token_type_count": config.types, **fields_of_tokenizer(folder)}, tensors)


def _made(x: Tensor, first: int) -> Callable[[], Stored]:
    """A tensor, without the rows before the first one."""
    def make() -> Stored:
        rows: Array = x.numpy()[first:]
        return Stored(rows, rows.shape, None)

    return make
