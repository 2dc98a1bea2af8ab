"""Descriptions of encoders, the BERT family, read from a `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlc.models.config import ACTIVATION_NAMES, ENCODERS, MOST_LAYERS, architecture_of
from mlc.models.fields import Fields
from mlc.models.rotary import Rotary

Names = Mapping[str, str]

_BERT: Names = {
    "norm": "embeddings.LayerNorm", "types": "embeddings.token_type_embeddings", "layers": "encoder.layer",
    "query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
    "mixed": "attention.output.dense", "mixed_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense", "outer": "output.dense", "outer_norm": "output.LayerNorm"}
_DISTILBERT: Names = {
    "norm": "embeddings.LayerNorm", "layers": "transformer.layer",
    "query": "attention.q_lin", "key": "attention.k_lin", "value": "attention.v_lin",
    "mixed": "attention.out_lin", "mixed_norm": "sa_layer_norm",
    "inner": "ffn.lin1", "outer": "ffn.lin2", "outer_norm": "output_layer_norm"}
_NOMIC: Names = {
    "norm": "emb_ln", "types": "embeddings.token_type_embeddings", "layers": "encoder.layers",
    "projected": "attn.Wqkv", "mixed": "attn.out_proj", "mixed_norm": "norm1",
    "inner": "mlp.fc11", "gate": "mlp.fc12", "outer": "mlp.fc2", "outer_norm": "norm2"}
_PLAIN_NOMIC = {"prenorm": (False,), "parallel_block": (False,), "use_rms_norm": (False,), "causal": (False,),
                "qkv_proj_bias": (False,), "mlp_fc1_bias": (False,), "mlp_fc2_bias": (False,),
                "rotary_emb_interleaved": (False,), "rotary_emb_scale_base": (None,), "moe_every_n_layers": (0,),
                "activation_function": ("swiglu",)}
"""The values of fields of nomic-bert that mlc runs: those of the models that are published, without experts."""


@dataclass(frozen=True)
class EncoderConfig:
    """An encoder of the BERT family: each token sees all of its text, norms are behind attention and feed-forward.

    architecture  its name in transformers
    prefix        what checkpoints with a head have before the names of the encoder's parameters
    vocabulary, width, inner_width, layers, heads
                  sizes
    rows          of the table of positions
    types         rows of the table of kinds of tokens; 0 for none
    epsilon       of the norms
    activation    of the feed-forward network
    padding       the token that fills up texts, where positions count from the one after it, as RoBERTa's do; None
                  where they count from 0
    names         of the parameters, by their part in a layer
    rotary        how queries and keys are turned, where there is no table of positions
    """

    architecture: str
    prefix: str
    vocabulary: int
    width: int
    inner_width: int
    layers: int
    heads: int
    rows: int
    types: int
    epsilon: float
    activation: str
    padding: int | None
    names: Names
    rotary: Rotary | None = None

    @property
    def context(self) -> int:
        """The greatest number of tokens of a text."""
        return self.rows if self.padding is None else self.rows - self.padding - 1


def is_encoder(fields: Fields) -> bool:
    """Whether a `config.json` describes an encoder."""
    return architecture_of(fields) in ENCODERS


def read_encoder_config(fields: Fields) -> EncoderConfig:
    """The encoder that a `config.json` describes; a head of the checkpoint that predicts tokens is left out.

    Raises:
        UserError: It has a feature that mlc does not run (MLC0911).
    """
    name = architecture_of(fields)
    prefix = ENCODERS[name]
    if name == "NomicBertModel":
        return _checked(fields, _nomic(fields))
    fields.only("position_embedding_type", ("absolute",))
    for flag in ("is_decoder", "add_cross_attention"):
        fields.only(flag, (False,))
    if prefix == "distilbert":
        sizes = [fields.integer(n, d)
                 for n, d in (("dim", 768), ("hidden_dim", 3072), ("n_layers", 6), ("n_heads", 12))]
        act, epsilon, types, names = fields.text("activation", "gelu"), 1e-12, 0, _DISTILBERT
    else:
        sizes = [fields.integer(n, d) for n, d in (("hidden_size", 768), ("intermediate_size", 3072),
                                                   ("num_hidden_layers", 12), ("num_attention_heads", 12))]
        act, epsilon = fields.text("hidden_act", "gelu"), fields.positive("layer_norm_eps", 1e-12)
        types, names = fields.integer("type_vocab_size", 2), _BERT
        if types < 1:
            raise fields.refusal(f"type_vocab_size is {types}")
    if act not in ACTIVATION_NAMES:
        raise fields.refusal(f"the activation is {act!r}", "mlc knows " + ", ".join(ACTIVATION_NAMES))
    width, inner, layers, heads = sizes
    padding = fields.integer("pad_token_id", 1) if prefix == "roberta" else None
    found = EncoderConfig(name, prefix, fields.integer("vocab_size", 50265 if prefix == "roberta" else 30522), width,
                          inner, layers, heads, fields.integer("max_position_embeddings", 512), types, epsilon,
                          ACTIVATION_NAMES[act], padding, names)
    return _checked(fields, found)


def _nomic(fields: Fields) -> EncoderConfig:
    """That of nomic-bert, whose fields have the names of GPT-2's: rotary embeddings, a gate, and no biases."""
    for field, values in _PLAIN_NOMIC.items():
        fields.only(field, values)
    width, heads = fields.integer("n_embd", 768), fields.integer("n_head", 12)
    theta, factor = fields.positive("rotary_emb_base", 10000.0), fields.data.get("rotary_scaling_factor")
    head = width // max(heads, 1)
    size, least = int(head * fields.number("rotary_emb_fraction", 1.0)), 2 if factor is None else 4
    if not least <= size <= head or size % 2:
        raise fields.refusal(f"{size} of {head} elements of a head are turned",
                             f"their number is even, and at least {least}")
    rotary = Rotary("default", size, theta) if factor is None else Rotary(
        "dynamic", size, theta, fields.positive("rotary_scaling_factor"), fields.integer("max_trained_positions", 2048))
    inner = 4 * width if fields.data.get("n_inner") is None else fields.integer("n_inner")
    return EncoderConfig("NomicBertModel", "bert", fields.integer("vocab_size", 30522), width, inner,
                         fields.integer("n_layer", 12), heads, fields.integer("n_positions", 2048),
                         fields.integer("type_vocab_size", 2), fields.positive("layer_norm_epsilon", 1e-5), "silu",
                         None, _NOMIC, rotary)


def _checked(fields: Fields, found: EncoderConfig) -> EncoderConfig:
    """The same, if its sizes are possible."""
    width, inner, layers, heads = found.width, found.inner_width, found.layers, found.heads
    if not width or not inner:
        raise fields.refusal(f"the width is {width} and that of the feed-forward network {inner}")
    if heads < 1 or width % heads:
        raise fields.refusal(f"{heads} heads do not divide a width of {width}")
    if layers > MOST_LAYERS:
        raise fields.refusal(f"{layers} layers are more than {MOST_LAYERS}")
    if found.context < 1:
        raise fields.refusal(f"{found.rows} positions leave none for tokens")
    return found
