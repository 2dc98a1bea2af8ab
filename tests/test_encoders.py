"""Encoders: numbers and vectors as transformers and sentence-transformers compute them, padding, folders, serving."""
from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.ir.diag import Error
from mlc.models.embeddings import POOLINGS
from mlc.models.gguf.export import described
from tests.encoders import CASES, REFERENCE, TEXTS, write_encoder
from tests.language_models import VOCABULARY, write_tokenizer

EXPECTED: dict[str, Any] = json.loads(REFERENCE.read_text())


@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize("name", CASES)
def test_numbers_of_transformers(name: str, tmp_path: Path) -> None:
    module = mlc.models.load(write_encoder(CASES[name], tmp_path)).module
    for text, rows in zip(TEXTS, EXPECTED[name]):
        with mlc.no_grad():
            found = module(mlc.tensor([text]), mlc.tensor([len(text)]))
        np.testing.assert_allclose(found.numpy()[0], rows, rtol=1e-4, atol=1e-5)


def test_an_encoder_of_no_layers_is_its_embeddings(tmp_path: Path) -> None:
    model = mlc.models.load(write_encoder({**CASES["bert"], "num_hidden_layers": 0}, tmp_path))
    w = {name.removeprefix("embeddings."): x.numpy() for name, x in model.module.state_dict().items()}
    x = w["word_embeddings.weight"][TEXTS[0]] + w["position_embeddings.weight"][:5]
    x += w["token_type_embeddings.weight"][0]
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    mean = (x * w["LayerNorm.weight"] + w["LayerNorm.bias"]).mean(0)
    np.testing.assert_allclose(model.embed(TEXTS[0]), mean / np.linalg.norm(mean), rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_encoder(CASES["roberta"], tmp_path_factory.mktemp("encoder"), {"pooling_mode": "mean"})
    write_tokenizer(path)
    return path


@pytest.mark.slow
def test_a_text_has_the_same_vector_alone_and_beside_others(folder: Path) -> None:
    model = mlc.models.load(folder)
    texts = [*TEXTS, list(range(4, 70)), [1, 5]]           # more than one window; the padding token in a text
    together = model.embed(texts)
    for text, vector in zip(texts, together):
        np.testing.assert_array_equal(model.embed(text), vector)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-6)
    assert len(model._embedder._compiled.entries) == 1


@pytest.mark.parametrize("mode", POOLINGS)
def test_poolings_of_sentence_transformers(mode: str, tmp_path: Path) -> None:
    model = mlc.models.load(write_encoder(CASES["bert"], tmp_path, {f"pooling_mode_{mode}": True}))
    numbers = np.zeros((len(TEXTS), 9, 32), np.float32)
    for row, given in zip(numbers, EXPECTED["bert"]):
        row[: len(given)] = given
    found = model._embedder.pooling(mlc.tensor(numbers), mlc.tensor([len(t) for t in TEXTS]))
    np.testing.assert_allclose(found.numpy(), EXPECTED[mode], atol=1e-5)


def test_heads_of_checkpoints_are_left_out(tmp_path: Path) -> None:
    plain = write_encoder(CASES["bert"], tmp_path / "plain")
    masked = write_encoder({**CASES["bert"], "architectures": ["BertForMaskedLM"]}, tmp_path / "masked", prefix="bert.")
    states = [mlc.models.load(f).module.state_dict() for f in (plain, masked)]
    assert states[0].keys() == states[1].keys()
    np.testing.assert_array_equal(*(s["encoder.layer.1.output.dense.weight"].numpy() for s in states))


@pytest.mark.slow
def test_a_decoder_may_have_a_pooling(tmp_path: Path) -> None:
    """The last token's numbers, as embedding models made of decoders have it."""
    from tests.language_models import CASES as DECODERS
    from tests.language_models import write_folder
    pooled = write_encoder(CASES["bert"], tmp_path / "encoder", {"pooling_mode_lasttoken": True}, after=())
    folder = write_folder({**DECODERS["llama"], "num_hidden_layers": 1}, tmp_path / "decoder")
    for name in ("modules.json", "1_Pooling"):
        (pooled / name).rename(folder / name)
    model = mlc.models.load(folder)
    from mlc.models.cache import whole
    tokens = mlc.tensor([TEXTS[0]])
    wanted, _ = model.decoder.hidden(tokens, whole(tokens))
    np.testing.assert_allclose(model.embed(TEXTS[0]), wanted.numpy()[0, -1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("file, text, code", [
    ("1_Pooling/config.json", '{"pooling_mode_sum_tokens": true}', "MLC0991"),
    ("1_Pooling/config.json", "{}", "MLC0991"),
    ("1_Pooling/config.json", '{"pooling_mode": [{}]}', "MLC0991"),
    ("config_sentence_transformers.json", '{"prompts": {}, "default_prompt_name": ["a"]}', "MLC0991"),
    ("config.json", json.dumps({**CASES["bert"], "hidden_size": 0}), "MLC0911"),
    ("config.json", json.dumps({**CASES["bert"], "layer_norm_eps": -1}), "MLC0911"),
    ("modules.json", '[{"type": "a.Transformer"}, {"type": "a.LSTM"}]', "MLC0991"),
    ("modules.json", '[{"type": "a.Transformer"}, {"type": "a.Pooling", "path": "../x"}]', "MLC0991"),
    ("modules.json", "{}", "MLC0910"),
    ("config_sentence_transformers.json", '{"default_prompt_name": "query"}', "MLC0991"),
    ("config.json", json.dumps({**CASES["bert"], "position_embedding_type": "relative_key"}), "MLC0911"),
    ("config.json", json.dumps({**CASES["bert"], "num_hidden_layers": 3}), "MLC0912"),
    ("config.json", json.dumps({**CASES["roberta"], "max_position_embeddings": 2}), "MLC0911")])
def test_what_a_folder_says_is_run_or_refused(file: str, text: str, code: str, tmp_path: Path) -> None:
    write_encoder(CASES["bert"], tmp_path, {"pooling_mode": "mean"})
    (tmp_path / file).write_text(text)
    with pytest.raises(mlc.UserError, match=code):
        mlc.models.load(tmp_path)


@pytest.mark.usefixtures("execution")
def test_encoders_do_not_generate_and_texts_have_a_limit(folder: Path) -> None:
    model = mlc.models.load(folder)
    with pytest.raises(mlc.UserError, match="MLC0990"):
        mlc.generate(model, "abc")
    with pytest.raises(mlc.UserError, match="MLC0990"):
        mlc.models.Scheduler(model)
    assert model.config.context == 78                      # of 80 positions, counted from 2 on
    model.embed([5] * 78)
    np.testing.assert_array_equal(model.embed(np.array([[1, 2, 3], [4, 5, 6]])), model.embed([[1, 2, 3], [4, 5, 6]]))
    for wrong in ([], 3, {"a": 1}, [None], [1, "a"], [2.5], np.array([1.0, 2.0]), np.array(1), np.zeros((1, 1, 1), int),
                  [np.zeros((1, 2), int)], [np.True_]):
        with pytest.raises(mlc.UserError, match="MLC0915"):
            model.embed(wrong)                             # type: ignore[arg-type]
    with pytest.raises(mlc.UserError, match="a prompt has 79 tokens, and the model sees 78"):
        model.embed([5] * 79)


def test_a_server_gives_its_vectors(folder: Path) -> None:
    pytest.importorskip("starlette")
    from starlette.testclient import TestClient

    from mlc.tools.serve.app import application
    from mlc.tools.serve.registry import Registry
    from mlc.tools.serve.worker import Limits
    texts = ["abc", "hello there", "x"]
    with TestClient(application(Registry({"e": str(folder)}, Limits())), "http://localhost:8000") as client:
        while client.get("/v2/health/ready").status_code != 200:
            time.sleep(0.02)
        answer = client.post("/v1/embeddings", json={"model": "e", "input": texts}).json()
        np.testing.assert_array_equal(np.array([d["embedding"] for d in answer["data"]], np.float32),
                                      mlc.models.load(folder).embed(texts))
        assert answer["usage"]["prompt_tokens"] == 15
        refused = client.post("/v1/completions", json={"model": "e", "prompt": "abc"})
        assert refused.status_code == 400 and refused.json()["error"]["code"] == "MLC0990"
        assert client.post("/v1/embeddings", json={"model": "e", "input": "a" * 90}).status_code == 400
        assert 'mlc_model_ready{model="e"} 1.0' in client.get("/metrics").text


NOMIC: dict[str, Any] = {
    "architectures": ["NomicBertModel"], "model_type": "nomic_bert", "n_embd": 32, "n_inner": 48, "n_layer": 2,
    "n_head": 4, "n_positions": 80, "vocab_size": VOCABULARY, "type_vocab_size": 2, "layer_norm_epsilon": 1e-5,
    "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "activation_function": "swiglu", "qkv_proj_bias": False,
    "mlp_fc1_bias": False, "mlp_fc2_bias": False, "prenorm": False, "rotary_emb_interleaved": False}


def nomic_in_pytorch(w: dict[str, Any], text: list[int], heads: int, stretch: float = 1.0) -> Any:
    """The numbers of tokens by nomic-bert, with the names of parameters of its published code."""
    import torch
    from torch.nn import functional as F
    w = {name: torch.from_numpy(x) for name, x in w.items()}

    def norm(x: Any, name: str) -> Any:
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)

    x = norm(w["embeddings.word_embeddings.weight"][text] + w["embeddings.token_type_embeddings.weight"][0], "emb_ln")
    n, width = x.shape
    size = width // heads
    base = 1000.0 * stretch ** (size / (size - 2))
    angles = torch.arange(n)[:, None] * base ** -(torch.arange(0, size, 2) / size)

    def turn(y: Any) -> Any:
        z = torch.complex(y[..., : size // 2], y[..., size // 2:]) * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([z.real, z.imag], -1)

    for at in ("encoder.layers.0.", "encoder.layers.1."):
        q, k, v = (x @ w[at + "attn.Wqkv.weight"].T).reshape(n, 3, heads, size).permute(1, 2, 0, 3)
        mixed = F.scaled_dot_product_attention(turn(q), turn(k), v).transpose(0, 1).reshape(n, width)
        x = norm(x + mixed @ w[at + "attn.out_proj.weight"].T, at + "norm1")
        inner = (x @ w[at + "mlp.fc11.weight"].T) * F.silu(x @ w[at + "mlp.fc12.weight"].T)
        x = norm(x + inner @ w[at + "mlp.fc2.weight"].T, at + "norm2")
    return x.numpy()


@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize("scaling", [{}, {"rotary_scaling_factor": 2.0, "max_trained_positions": 6}])
def test_nomic_bert(scaling: dict[str, Any], tmp_path: Path) -> None:
    model = mlc.models.load(write_encoder({**NOMIC, **scaling}, tmp_path, {"pooling_mode_mean_tokens": True}))
    weights = {name: np.array(x.numpy()) for name, x in model.module.state_dict().items()}
    vectors = model.embed(TEXTS)
    for text, vector in zip(TEXTS, vectors):
        stretch = 2 * len(text) / 6 - 1 if scaling and len(text) > 6 else 1.0
        rows = nomic_in_pytorch(weights, text, 4, stretch)
        np.testing.assert_allclose(vector, rows.mean(0) / np.linalg.norm(rows.mean(0)), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(vector, model.embed(text))
    with pytest.raises(Error, match="MLC0911"):
        mlc.models.load(write_encoder({**NOMIC, "prenorm": True}, tmp_path / "other"))
    for fraction in (2.0, 0.45, 0.25) if scaling else (2.0, 0.45):
        with pytest.raises(Error, match="elements of a head are turned"):
            mlc.models.load(write_encoder({**NOMIC, **scaling, "rotary_emb_fraction": fraction}, tmp_path / "other"))
    with pytest.raises(Error, match="rotary embeddings"):
        described(tmp_path)
