"""Language models: folders, scores and greedy tokens as transformers computes them, generation, errors."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.models.generation import Answer, Request
from mlc.models.layers import product
from mlc.models.sampling import Kinds, Sampling, choose
from mlc.models.text import ChatTemplate, Unfolding, read_template
from tests.language_models import CASES, PROMPT, REFERENCE, weights, write_folder, write_tokenizer

EXPECTED: dict[str, Any] = json.loads(REFERENCE.read_text())
QUICK = ("gemma3",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of one layer with a tokenizer of letters."""
    path = write_folder({**CASES["llama"], "num_hidden_layers": 1}, tmp_path_factory.mktemp("llama"))
    write_tokenizer(path)
    return path


@pytest.fixture(scope="module")
def model(folder: Path) -> mlc.models.LanguageModel:
    return mlc.models.load(folder)


# -- architectures ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in CASES])
def test_scores_and_tokens_of_transformers(name: str, tmp_path: Path) -> None:
    found = mlc.models.load(write_folder(CASES[name], tmp_path))
    answer = mlc.generate(found, PROMPT, max_tokens=64, logprobs=3)
    assert list(answer.tokens) == EXPECTED[name]["tokens"]
    scores = np.array(EXPECTED[name]["scores"])
    chances = scores - np.log(np.exp(scores).sum())
    for token, value in answer.log_probabilities[0].best:
        assert value == pytest.approx(chances[token], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_all_scores_without_a_cache(name: str, tmp_path: Path) -> None:
    module = mlc.models.load(write_folder(CASES[name], tmp_path)).module
    for run in (module, mlc.compile(module)):
        np.testing.assert_allclose(run(mlc.tensor([PROMPT])).numpy()[0, -1], EXPECTED[name]["scores"], rtol=1e-4,
                                   atol=1e-4)


def test_names_are_those_of_the_files(model: mlc.models.LanguageModel) -> None:
    assert model.module.state_dict().keys() == weights({**CASES["llama"], "num_hidden_layers": 1}).keys()


def test_shards_and_16_bit_weights(tmp_path: Path) -> None:
    folder = write_folder({**CASES["llama"], "num_hidden_layers": 1}, tmp_path)
    state = {name: x.to("bfloat16") for name, x in nn.load_safetensors(folder / "model.safetensors").items()}
    names = sorted(state)
    for shard, own in (("a.safetensors", names[:5]), ("b.safetensors", names[5:])):
        nn.save_safetensors(folder / shard, {name: state[name] for name in own})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {
        name: "a.safetensors" if i < 5 else "b.safetensors" for i, name in enumerate(names)}}))
    (folder / "model.safetensors").unlink()
    found = mlc.models.load(folder).module.state_dict()
    assert found.keys() == state.keys() and all(x.dtype is mlc.bfloat16 for x in found.values())
    x, weight = mlc.ones(1, 32), found["model.layers.0.mlp.up_proj.weight"]
    np.testing.assert_array_equal(product(x, weight).numpy(), product(x, weight.float()).numpy())


# -- generation -------------------------------------------------------------------------------------------------------
PROMPTS = [[3, 4, 5], [9], list(range(20, 60))]


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    {"temperature": 1.0, "top_p": 0.9, "top_k": 40, "min_p": 0.01, "repetition_penalty": 1.2, "presence_penalty": 0.3,
     "frequency_penalty": 0.1, "logit_bias": {5: 2.0}, "logprobs": 2},
    pytest.param({"logprobs": 0}, marks=pytest.mark.slow),
    pytest.param({"temperature": 0.7}, marks=pytest.mark.slow)])
def test_an_answer_is_the_same_alone_and_in_a_batch(model: mlc.models.LanguageModel, options: dict[str, Any]) -> None:
    together = mlc.generate(model, PROMPTS, max_tokens=8, seed=[5, 6, 7], **options)
    alone = [mlc.generate(model, p, max_tokens=8, seed=seed, **options) for p, seed in zip(PROMPTS, (5, 6, 7))]
    assert together == alone                               # log-probabilities too, to the last bit
    assert [len(a.tokens) for a in alone] == [8, 8, 8]


def test_one_compilation_serves_all_lengths(folder: Path) -> None:
    model = mlc.models.load(folder)                        # others compile for their options
    mlc.generate(model, PROMPT, max_tokens=4)
    before = {key: len(step.compiled.entries) for key, step in model.steps._compiled.items()}
    mlc.generate(model, PROMPT * 7, max_tokens=50)         # more than one window, and another capacity
    assert {key: len(model.steps._compiled[key].compiled.entries) for key in before} == before
    assert set(before.values()) == {1}


def test_the_cache_is_written_in_place(model: mlc.models.LanguageModel) -> None:
    """Each tensor of the cache is a donated argument whose buffer the result has."""
    mlc.generate(model, PROMPT, max_tokens=2)
    for step in model.steps._compiled.values():
        aliases = step.compiled.entries[0].interface.aliases
        assert sum(a >= 0 for a in aliases) >= 2 * model.config.layers


def test_a_prompt_may_be_read_in_chunks(model: mlc.models.LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mlc.generate(model, PROMPTS[2], max_tokens=8)
    monkeypatch.setattr("mlc.models.steps.CHUNK", 7)
    assert mlc.generate(model, PROMPTS[2], max_tokens=8).tokens == whole.tokens


def test_the_end_of_the_context_ends_an_answer(model: mlc.models.LanguageModel) -> None:
    found = mlc.generate(model, [1] * 120, max_tokens=50)
    assert (len(found.tokens), found.finish_reason) == (8, "length")


def test_streamed_pieces_are_the_answer(model: mlc.models.LanguageModel) -> None:
    whole = mlc.generate(model, "abc", max_tokens=12)
    pieces = list(model.stream("abc", max_tokens=12))
    assert "".join(p.text for p in pieces) == whole.text
    assert [p.token for p in pieces] == list(whole.tokens) and whole.prompt_tokens == 3
    assert [p.finish_reason for p in pieces] == [None] * 11 + ["length"]
    stop = whole.text[6:8]
    cut = mlc.generate(model, "abc", max_tokens=12, stop=stop)
    assert (cut.text, cut.finish_reason) == (whole.text[: whole.text.index(stop)], "stop")
    first = whole.tokens[3]
    ended = mlc.generate(model, "abc", max_tokens=12, stop_tokens=[first])
    assert ended.tokens == whole.tokens[: whole.tokens.index(first) + 1] and ended.finish_reason == "stop"


# -- the choice of tokens ---------------------------------------------------------------------------------------------
def drawn(scores: list[float], count: int, **options: float) -> np.ndarray[Any, Any]:
    """How often each token is drawn, by `count` sequences with seeds of their own."""
    state = Sampling(**{"temperature": 1.0, **options})    # type: ignore[arg-type]
    settings = {name: mlc.tensor(np.full(count, getattr(state, name), dtype)) for name, dtype in (
        ("temperature", np.float32), ("top_p", np.float32), ("min_p", np.float32), ("top_k", np.int64))}
    settings["keys"] = mlc.tensor(np.stack([[0, seed] for seed in range(count)]).astype(np.uint32))
    table = mlc.tensor(np.tile(np.array(scores, np.float32), (count, 1)))
    pick = mlc.compile(lambda table, settings, numbers: choose(
        table, Kinds(draws=True, filters=bool(options)), settings, numbers, None, None).tokens)
    return np.bincount(pick(table, settings, mlc.zeros(count, dtype="int64")).numpy(), minlength=len(scores))


def test_tokens_are_drawn_by_their_probabilities() -> None:
    chances = np.array([0.5, 0.25, 0.15, 0.1])
    np.testing.assert_allclose(drawn(np.log(chances).tolist(), 4000) / 4000, chances, atol=0.03)


@pytest.mark.parametrize("options, left", [
    ({"top_k": 2}, [0, 2]), ({"top_p": 0.6}, [0, 2]), ({"top_p": 0.5}, [0]), ({"top_p": 0.0}, [0]),
    ({"min_p": 0.25}, [0, 2, 3]), ({"top_k": 3, "top_p": 0.9}, [0, 2, 3]), ({"top_k": 9}, [0, 1, 2, 3])])
def test_filters_leave_the_likely_tokens(options: dict[str, float], left: list[int]) -> None:
    found = drawn(np.log([0.5, 0.08, 0.27, 0.15]).tolist(), 500, **options)
    assert np.flatnonzero(found).tolist() == left


def test_penalties_are_those_of_the_text_and_of_the_answer(model: mlc.models.LanguageModel) -> None:
    sampling = Sampling(repetition_penalty=2.0, frequency_penalty=0.5, presence_penalty=0.25)
    state = model.steps.start([[1, 2, 2]], [sampling], 8, Kinds(penalties=True))
    assert state.counts is not None
    counts = state.counts.numpy().copy().reshape(1, -1)[:, :6]
    counts[0, [2, 3]] += 2                                 # two more in the answer
    pick = mlc.compile(lambda scores, settings, counts: choose(
        scores, Kinds(penalties=True, top=0), settings, mlc.zeros(1, dtype="int64"), counts, None).tokens)
    for scores, best in (([1.9, 0.5, 0.0, 0.0, 1.0, 0.0], 0), ([0.0, 1.9, 0.0, 0.0, 1.0, 0.0], 4),
                         ([0.0, 0.0, 0.0, 4.5, 1.1, 0.0], 4), ([0.0, 0.0, 0.0, 4.6, 1.0, 0.0], 3)):
        assert pick(mlc.tensor([scores]), state.settings, mlc.tensor(counts)).item() == best


# -- text -------------------------------------------------------------------------------------------------------------
class Bytes:
    """A tokenizer whose tokens are bytes."""

    def decode(self, tokens: list[int]) -> str:
        return bytes(tokens).decode(errors="replace")


def test_characters_come_whole() -> None:
    unfolding = Unfolding(Bytes())  # type: ignore[arg-type]
    assert [unfolding.add(b) for b in "aé€".encode()] == ["a", "", "é", "", "", "€"]
    unfolding.add("é".encode()[0])
    assert unfolding.rest() == "\ufffd"


@pytest.mark.parametrize("text, given", [
    ("one STOP two", ["o", "n", "e", " ", "", "", "", ""]), ("a STO b", ["a", " ", "", "", "", "STO ", "b"])])
def test_what_may_stop_is_held_back(text: str, given: list[str]) -> None:
    answer = Answer(Request((1,), Sampling(), 100, ("STOP",)), Unfolding(Bytes()))  # type: ignore[arg-type]
    found = []
    for byte in text.encode():
        found.append(answer.add(byte))
        if answer.finished:
            break
    assert found == given


def test_templates_of_conversations(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({
        "bos_token": {"content": "<s>"}, "chat_template":
        "{{ bos_token }}{% for m in messages %}\n[{{ m.role }}] {{ m['content'] | tojson }}\n{% endfor %}"}))
    template = read_template(tmp_path)
    assert template is not None
    assert template.text([{"role": "user", "content": 'a "b"'}]) == '<s>[user] "a \\"b\\""\n'


@pytest.mark.parametrize("source", ["{{ messages.__class__.__mro__ }}", "{{ messages.append(1) }}",
                                    "{{ raise_exception('no') }}", "{{ cycler.__init__.__globals__ }}",
                                    "{{ range(1000000) | list }}"])
def test_templates_run_in_a_sandbox(source: str) -> None:
    try:
        text = ChatTemplate(source, {}, "here").text([])
    except mlc.UserError as error:
        assert error.code == "MLC0914"
    else:
        assert text == ""                                  # of a value that the sandbox does not have


# -- errors -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("change, message", [
    ({"architectures": ["T5ForConditionalGeneration"]}, "MLC0911.*T5ForConditionalGeneration"),
    ({"hidden_act": "mish"}, "MLC0911.*hidden_act is 'mish'"),
    ({"rope_parameters": {"rope_type": "spiral"}}, "MLC0911.*'spiral'"),
    ({"num_key_value_heads": 3}, "MLC0911.*do not share"),
    ({"rms_norm_eps": float("nan")}, "MLC0911.*rms_norm_eps is nan"),
    ({"rms_norm_eps": -1e-6}, "MLC0911.*rms_norm_eps is -1e-06, expected a number above 0"),
    ({"num_hidden_layers": 0}, "MLC0911.*there are 0 layers"),
    ({"rope_theta": 0}, "MLC0911.*rope_theta is 0"),
    ({"rope_parameters": {"rope_type": "linear", "factor": 0}}, "MLC0911.*factor is 0"),
    ({"vocab_size": "many"}, "MLC0911.*vocab_size is 'many'"),
    ({"hidden_size": 64}, "MLC0912.*has the shape"),
    ({"num_hidden_layers": 3}, "MLC0912.*has no weight model.layers.2"),
    ({"num_hidden_layers": 1}, "MLC0912.*weights that the model does not")])
def test_what_a_folder_says_is_run_or_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_folder(CASES["llama"], tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**CASES["llama"], **change}))
    with pytest.raises(mlc.UserError, match=message):
        mlc.models.load(tmp_path)


def test_an_index_names_files_of_its_folder_only(tmp_path: Path) -> None:
    write_folder(CASES["llama"], tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": "../model.safetensors"}}))
    with pytest.raises(mlc.UserError, match="MLC0910"):
        mlc.models.load(tmp_path)


@pytest.mark.parametrize("prompt, options, message", [
    ([1] * 128, {}, "MLC0915"), ([99], {}, "MLC0915"), ("", {}, "MLC0915"), ([1], {"top_p": 2}, "MLC0916"),
    ([1], {"max_tokens": 0}, "MLC0916"), ([1], {"stop": ""}, "MLC0916"), ([1], {"logit_bias": {99: 1.0}}, "MLC0915"),
    ([1], {"logprobs": 65}, "MLC0916"), ([1], {"logprobs": True}, "MLC0916"), ([[1], [2]], {"seed": [1]}, "MLC0916"),
    ([1], {"seed": 2**64}, "MLC0916"), ([1], {"seed": 1.5}, "MLC0916"), ([1], {"max_tokens": "3"}, "MLC0916"),
    ([1], {"stop": 5}, "MLC0916"), ([1], {"logit_bias": [1]}, "MLC0916"), ([1], {"logit_bias": {3: "x"}}, "MLC0916"),
    ([1], {"logit_bias": {3: float("nan")}}, "MLC0916")])
def test_options_out_of_range(model: mlc.models.LanguageModel, prompt: Any, options: dict[str, Any], message: str
                              ) -> None:
    with pytest.raises(mlc.UserError, match=message):
        mlc.generate(model, prompt, **options)


def test_integers_of_options_may_be_of_any_type(model: mlc.models.LanguageModel) -> None:
    options: dict[str, Any] = {"max_tokens": 3, "seed": 4, "stop_tokens": [5], "logit_bias": {7: 2.0}, "logprobs": 1,
                               "top_k": 9}
    as_numpy: dict[str, Any] = {"max_tokens": np.int64(3), "seed": np.uint32(4), "stop_tokens": [np.int8(5)],
                                "logit_bias": {np.int64(7): np.float32(2.0)}, "logprobs": np.int64(1), "stop": None,
                                "top_k": np.int64(9)}
    found = [mlc.generate(model, [1, 2], temperature=1.0, **given) for given in (options, as_numpy)]
    assert found[0] == found[1]


def test_prompts_may_be_arrays(model: mlc.models.LanguageModel) -> None:
    """One of one dimension is one prompt, one of two has a prompt in each row; integers of any type are tokens."""
    rows = [[3, 4], [5, 6]]
    wanted = mlc.generate(model, rows, max_tokens=3)
    several: list[Any] = [np.array(rows, np.uint8), mlc.tensor(rows), [np.array([3, 4]), [5, np.int32(6)]]]
    single: list[Any] = [np.array([3, 4]), mlc.tensor([3, 4]), [np.int64(3), 4]]
    for given in several:
        assert mlc.generate(model, given, max_tokens=3) == wanted
    for one in single:
        assert mlc.generate(model, one, max_tokens=3) == wanted[0]
    for wrong in (np.array([1.0]), np.array(1), np.zeros((1, 1, 1), int), np.array([99])):
        with pytest.raises(mlc.UserError, match="MLC0915"):
            mlc.generate(model, wrong)


def test_no_prompts_have_no_answers(model: mlc.models.LanguageModel) -> None:
    assert mlc.generate(model, []) == []


def test_a_text_needs_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(mlc.UserError, match="MLC0913"):
        mlc.generate(mlc.models.load(write_folder(CASES["llama"], tmp_path)), "text")
