"""Folders as transformers writes them: `config.json`, weights in safetensors files, and what belongs to the text."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.models.config import GPT2Config, ModelConfig, read_config
from mlc.models.decoder import DecoderForCausalLM
from mlc.models.encoder import Encoder
from mlc.models.encoder_config import EncoderConfig, is_encoder, read_encoder_config
from mlc.models.fields import Fields
from mlc.models.gpt2 import GPT2ForCausalLM
from mlc.models.parameters import Given, Place, Source
from mlc.nn.saving import load_safetensors

CausalLM = DecoderForCausalLM | GPT2ForCausalLM
Module = CausalLM | Encoder

_NOT_OF_THE_MODEL = (".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias")
"""Buffers that old checkpoints hold, and that follow from the configuration."""
_NOT_OF_THE_ENCODER = ("pooler.", "cls.", "lm_head.", "vocab_transform.", "vocab_layer_norm.", "vocab_projector.",
                       "embeddings.position_ids")
"""Heads of checkpoints, and a buffer of old ones: none of them changes the numbers of tokens."""
_BIGGEST_JSON = 64 << 20


def read_json(path: Path, missing: str = "") -> dict[str, Any]:
    """The object that a JSON file holds.

    path     the file
    missing  the hint of the error if it is not there
    """
    value = _json(path, missing)
    if not isinstance(value, dict):
        raise UserError(f"{path} does not hold an object of JSON", code="MLC0910", loc=user_loc())
    return value


def read_json_list(path: Path) -> list[dict[str, Any]]:
    """The objects of the list that a JSON file holds."""
    value = _json(path)
    if not isinstance(value, list) or not all(isinstance(x, dict) for x in value):
        raise UserError(f"{path} does not hold a list of objects of JSON", code="MLC0910", loc=user_loc())
    return value


def _json(path: Path, missing: str = "") -> Any:
    """The value that a JSON file holds; None if it holds none."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(_BIGGEST_JSON + 1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", code="MLC0910", loc=user_loc(), hint=missing) from None
    try:
        return json.loads(data) if len(data) <= _BIGGEST_JSON else None
    except (ValueError, RecursionError):
        return None


def read_folder(folder: Path) -> Module:
    """The model that a folder holds, with its weights mapped into memory.

    Raises:
        UserError: The folder is none, or holds no model (MLC0910), mlc does not run the model (MLC0911), or its weights
            are not those of its configuration (MLC0912).
    """
    fields = fields_of(folder)
    if is_encoder(fields):
        return _read_encoder(folder, read_encoder_config(fields))
    config = read_config(fields)
    source = Given(weights_of(folder, config), str(folder))
    model = build(config, source)
    source.check_all_taken()
    return model


def read_config_of(folder: Path) -> ModelConfig:
    """The configuration of the decoder in a folder."""
    return read_config(fields_of(folder))


def fields_of(folder: Path) -> Fields:
    """The `config.json` of a folder."""
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "does not exist"
        raise UserError(f"{folder} {what}", code="MLC0910", loc=user_loc(),
                        hint="a model is a folder with config.json, model.safetensors and tokenizer.json, or NAME.gguf")
    return Fields(read_json(folder / "config.json", "a folder of a model has one"), str(folder / "config.json"))


def _read_encoder(folder: Path, config: EncoderConfig) -> Encoder:
    """The encoder in a folder, without the heads that its checkpoint may have."""
    source = Given(encoder_weights_of(folder, config), str(folder))
    model = Encoder(config, Place(source))
    source.check_all_taken()
    model.eval()
    return model


def encoder_weights_of(folder: Path, config: EncoderConfig) -> dict[str, Tensor]:
    """The weights of the encoder in a folder, by the names of its parameters."""
    named = {name.removeprefix(f"{config.prefix}."): x for name, x in _weights(folder).items()}
    return {name: x for name, x in named.items() if not name.startswith(_NOT_OF_THE_ENCODER)}


def weights_of(folder: Path, config: ModelConfig) -> dict[str, Tensor]:
    """The weights in a folder, by the names of the parameters of the model."""
    arrays = _weights(folder)
    if isinstance(config, GPT2Config) and "wte.weight" in arrays:      # of the first checkpoints
        arrays = {f"transformer.{name}": x for name, x in arrays.items()}
    if config.tied:
        arrays.pop("lm_head.weight", None)
    return {name: x for name, x in arrays.items() if not name.endswith(_NOT_OF_THE_MODEL)}


def build(config: ModelConfig, source: Source) -> CausalLM:
    """The model of a configuration with parameters of a source."""
    model = (GPT2ForCausalLM(config, Place(source)) if isinstance(config, GPT2Config)
             else DecoderForCausalLM(config, Place(source)))
    model.eval()
    return model


def _weights(folder: Path) -> dict[str, Tensor]:
    """The arrays of `model.safetensors`, or of the shards that its index lists."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        single = folder / "model.safetensors"
        if not single.exists():
            raise UserError(f"{folder} has neither model.safetensors nor {index.name}", code="MLC0910", loc=user_loc(),
                            hint="weights in other formats, such as pytorch_model.bin, are not read")
        return load_safetensors(single)
    places: Mapping[str, Any] = Fields(read_json(index), str(index)).mapping("weight_map") or {}
    shards = {}
    for shard in sorted(set(map(str, places.values()))):
        if os.path.basename(shard) != shard or not shard.endswith(".safetensors"):
            raise UserError(f"{index} names the file {shard!r}", code="MLC0910", loc=user_loc(),
                            hint="only .safetensors files of the folder itself are read")
        shards[shard] = load_safetensors(folder / shard)
    out = {}
    for name, shard in places.items():
        if name not in shards[str(shard)]:
            raise UserError(f"{folder / str(shard)} has no weight {name}", code="MLC0912", loc=user_loc(),
                            hint="the index says that it has")
        out[name] = shards[str(shard)][name]
    return out
