"""Small encoders of every architecture, for tests: folders with weights that follow from their names."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlc import nn
from mlc.models.encoder import Encoder
from mlc.models.encoder_config import read_encoder_config
from mlc.models.fields import Fields
from mlc.models.parameters import Place
from tests.language_models import VOCABULARY, ByName

REFERENCE = Path(__file__).parent / "peers" / "encoders.json"
TEXTS = [[3, 14, 15, 92, 65], [35, 89], [79, 32, 38, 46, 26, 43, 38, 32, 7]]

_BERT: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                         "max_position_embeddings": 80, "vocab_size": VOCABULARY, "layer_norm_eps": 1e-5}
CASES: dict[str, dict[str, Any]] = {
    "bert": {"architectures": ["BertModel"], "model_type": "bert", **_BERT, "hidden_act": "gelu_new"},
    "roberta": {"architectures": ["RobertaModel"], "model_type": "roberta", **_BERT, "type_vocab_size": 1,
                "pad_token_id": 1},
    "xlm-roberta": {"architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta", **_BERT, "type_vocab_size": 1,
                    "pad_token_id": 3},
    "distilbert": {"architectures": ["DistilBertModel"], "model_type": "distilbert", "dim": 32, "hidden_dim": 48,
                   "n_layers": 2, "n_heads": 4, "max_position_embeddings": 80, "vocab_size": VOCABULARY}}


def write_encoder(config: dict[str, Any], folder: Path, pooling: dict[str, Any] | None = None,
                  after: tuple[str, ...] = ("Normalize",), prefix: str = "") -> Path:
    """A folder of an encoder, without a tokenizer, and with a pooling as sentence-transformers writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    source = ByName(False)
    Encoder(read_encoder_config(Fields(config, "config")), Place(source))
    (folder / "config.json").write_text(json.dumps(config))
    nn.save_safetensors(folder / "model.safetensors", {prefix + name: x for name, x in source.arrays.items()})
    if pooling is not None:
        kinds = ("Transformer", "Pooling", *after)
        (folder / "modules.json").write_text(json.dumps([
            {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "",
             "type": f"sentence_transformers.models.{kind}"} for i, kind in enumerate(kinds)]))
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **pooling}))
    return folder
