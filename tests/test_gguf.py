"""GGUF files: models, tokenizers, quantised weights and products with them, damaged files, mlc quantize."""
from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.dialects.tensor.encodings import ENCODINGS, decode
from mlc.dialects.tensor.orders import dot_in_order
from mlc.frontend.functions.quantized import dequantize_blocks, quantized_linear
from mlc.ir.diag import Error
from mlc.models.gguf import read_gguf_file
from mlc.models.gguf.export import described
from mlc.models.gguf.file import Stored
from mlc.models.gguf.quantization import quantize
from mlc.models.gguf.writing import Described, numbers, write_gguf
from mlc.models.perplexity import perplexity
from mlc.tools.cli import main
from tests.language_models import CASES, PROMPT, write_folder

Array = np.ndarray[Any, Any]
SCALES = {"q8_0": (0,), "q4_0": (0,), "q4_1": (0, 2), "q4_k": (0, 2), "q5_k": (0, 2), "q6_k": (208,)}
"""Where blocks have numbers in f16."""
WIDE = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1}
"""A Llama whose rows are whole blocks of all encodings."""
NO_WINDOWS: dict[str, dict[str, Any]] = {
    "mistral": {"sliding_window": None}, "qwen2": {"use_sliding_window": False},
    "gemma3": {"layer_types": None, "sliding_window_pattern": 6}}
EXPORTED = [name for name in CASES if name != "llama-dynamic"]


def blocks_of(encoding: str, rows: int, columns: int) -> Array:
    """Rows of arbitrary blocks with reasonable scales."""
    numbers = np.random.default_rng(0)
    layout = ENCODINGS[encoding]
    blocks = numbers.integers(0, 256, (rows * columns // layout.elements, layout.bytes), np.uint8)
    for at in SCALES[encoding]:
        blocks[:, at: at + 2] = (numbers.normal(size=(len(blocks), 1)) * 0.01).astype("<f2").view(np.uint8)
    return blocks.reshape(rows, -1)


def to_gguf(config: dict[str, Any], tmp_path: Path, kind: str = "f32") -> Path:
    """The GGUF file of a model whose weights follow from their names."""
    folder = write_folder(config, tmp_path / "model")
    write_gguf(tmp_path / f"{kind}.gguf", described(folder), kind)
    return tmp_path / f"{kind}.gguf"


def scores(path: Path) -> Array:
    found: Array = mlc.models.load(path).module(mlc.tensor([PROMPT[:4]])).numpy()
    return found


# -- blocks -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_blocks_are_those_of_gguf(encoding: str) -> None:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants
    kind = GGMLQuantizationType[encoding.upper()]
    layout = ENCODINGS[encoding]
    assert GGML_QUANT_SIZES[kind] == (layout.elements, layout.bytes)
    raw = blocks_of(encoding, 5, 512)
    np.testing.assert_array_equal(decode(raw, layout), quants.dequantize(raw, kind))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_quantisation_is_close(encoding: str) -> None:
    """The error is that of rounding to as many steps as there are, and blocks of such numbers are kept as they are."""
    x = np.random.default_rng(0).normal(size=(3, 512)).astype(np.float32)
    found = decode(quantize(x, encoding), ENCODINGS[encoding])
    most = {"q8_0": 0.006, "q4_0": 0.1, "q4_1": 0.09, "q4_k": 0.075, "q5_k": 0.04, "q6_k": 0.02}[encoding]
    assert np.sqrt(np.mean((found - x) ** 2)) < most
    zeros = np.zeros((1, 256), np.float32)
    np.testing.assert_array_equal(decode(quantize(zeros, encoding), ENCODINGS[encoding]), zeros)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_numbers_that_are_too_large_for_blocks(encoding: str) -> None:
    for large in (1e9, float("inf"), float("nan")):
        x = np.linspace(-1, 1, 256, dtype=np.float32)[None]
        x[0, 3] = large
        with pytest.raises(mlc.UserError, match="MLC0994"):
            quantize(x, encoding)


@pytest.mark.parametrize(("kind", "columns", "number"), [("f16", 32, 1e6), ("q4_0", 3, -1e6), ("bf16", 32, 3.4e38)])
def test_numbers_that_are_too_large_for_short_floats(kind: str, columns: int, number: float, tmp_path: Path) -> None:
    """Rows that are no whole blocks are written in f16."""
    def content(x: float) -> Described:
        return Described({}, {"a.weight": _plain(np.full((2, columns), x, np.float32))})
    with pytest.raises(mlc.UserError, match="are too large for") as caught:
        write_gguf(tmp_path / "a.gguf", content(number), kind)
    assert caught.value.code == "MLC0994" and not (tmp_path / "a.gguf").exists()
    write_gguf(tmp_path / "a.gguf", content(float("inf")), kind)
    assert np.isposinf(numbers(read_gguf_file(tmp_path / "a.gguf").tensors["a.weight"])).all()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_numbers_are_those_of_the_reference(encoding: str) -> None:
    raw = blocks_of(encoding, 3, 512)
    found = mlc.compile(lambda w: dequantize_blocks(w, encoding))(raw).numpy()
    np.testing.assert_array_equal(found, decode(raw, ENCODINGS[encoding]))


@pytest.mark.parametrize("encoding", ["q4_0", "q6_k", *(pytest.param(e, marks=pytest.mark.slow) for e in (
    "q8_0", "q4_1", "q4_k", "q5_k"))])
def test_kernels_compute_the_bits_of_the_reference(encoding: str) -> None:
    """Rows that are gathered, and products of odd numbers of rows, exact and by integers."""
    from mlc.dialects import tensor
    raw, x = blocks_of(encoding, 13, 512), np.random.default_rng(1).normal(size=(5, 512)).astype(np.float32)
    numbers = decode(raw, ENCODINGS[encoding])

    @mlc.compile
    def f(x: Any, w: Any, at: Any) -> Any:
        wide = dequantize_blocks(w, encoding)
        rounded = quantized_linear(x, w, encoding)
        return mlc.nn.functional.embedding(at, wide), mlc.nn.functional.linear(x, wide), rounded

    at = np.array([[12, 0, 7]])
    rows, exact, rounded = (y.numpy() for y in f(x, raw, at))
    np.testing.assert_array_equal(rows, numbers[at])
    np.testing.assert_array_equal(exact, dot_in_order(x[None], numbers[None], "lanes<32>")[0])
    module = mlc.lower(lambda x, w: quantized_linear(x, w, encoding), args=[mlc.spec(5, 512), mlc.spec(
        13, raw.shape[1], dtype="uint8")], level="tensor")
    assert "tensor.quantized_dot" in module.to_text()
    np.testing.assert_array_equal(rounded, tensor.QuantizedDot.ref(_Encoded(encoding), x, raw))  # type: ignore[arg-type]
    assert np.abs(rounded - exact).max() < 0.02 * np.abs(exact).max()


def test_as_many_columns_as_a_row_has_bytes() -> None:
    raw = blocks_of("q4_0", 3, 64)
    some = mlc.compile(lambda w: dequantize_blocks(w, "q4_0")[:, :raw.shape[1]] + 0)(mlc.tensor(raw))
    np.testing.assert_array_equal(some.numpy(), decode(raw, ENCODINGS["q4_0"])[:, :raw.shape[1]])


class _Encoded:
    def __init__(self, encoding: str) -> None:
        self.encoding = encoding


def test_nothing_but_blocks_is_read_from_memory() -> None:
    """No kernel stores numbers of the matrix, whatever reads them."""
    def f(x: Any, w: Any, at: Any) -> Any:
        wide = dequantize_blocks(w, "q8_0")
        return mlc.nn.functional.linear(x, wide), mlc.nn.functional.embedding(at, wide)

    text = mlc.lower(f, args=[mlc.spec(2, 64), mlc.spec(777, 68, dtype="uint8"), mlc.spec(3, dtype="int64")],
                     level="loop").to_text()
    assert "777x64" not in text and text.count("loop.dequantize") == 2


# -- models -----------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize("name", ["llama-3", *(pytest.param(n, marks=pytest.mark.slow) for n in EXPORTED
                                               if n != "llama-3")])
def test_scores_are_those_of_the_folder(name: str, tmp_path: Path) -> None:
    config = {**CASES[name], **NO_WINDOWS.get(name, {})}
    file = to_gguf(config, tmp_path)
    np.testing.assert_allclose(scores(file), scores(tmp_path / "model"), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_tokens_are_those_of_the_folder(tmp_path: Path) -> None:
    file = to_gguf(CASES["llama"], tmp_path)
    one, other = (mlc.generate(mlc.models.load(path), PROMPT, max_tokens=64) for path in (file, tmp_path / "model"))
    assert one.tokens == other.tokens and len(one.tokens) == 64


@pytest.mark.parametrize("kind", ["q4_0", *(pytest.param(k, marks=pytest.mark.slow) for k in (
    "f16", "bf16", "q8_0", "q5_k", "q4_1", "q4_k", "q6_k"))])
def test_scores_of_quantised_weights(kind: str, tmp_path: Path) -> None:
    """They are those of a model with the numbers that the weights stand for."""
    file = to_gguf({**CASES["llama"], **WIDE}, tmp_path, kind)
    held = read_gguf_file(file)
    assert {x.encoding for x in held.tensors.values()} == ({kind, None} if kind in ENCODINGS else {None})
    plain = {name: _plain(numbers(x)) for name, x in held.tensors.items()}
    write_gguf(tmp_path / "plain.gguf", Described(held.fields, plain), "f32")
    np.testing.assert_allclose(scores(file), scores(tmp_path / "plain.gguf"), rtol=1e-4, atol=1e-4)


def _plain(x: Array) -> Any:
    return lambda: Stored(x, x.shape, None)


@pytest.mark.slow
def test_steps_with_integers(tmp_path: Path) -> None:
    """Sequences are the same alone and together, and nearly as likely as by exact products."""
    file = to_gguf({**CASES["llama"], **WIDE}, tmp_path, "q8_0")
    model = mlc.models.load(file, integer_products=True)
    prompts = [PROMPT[:3], PROMPT[3:8]]
    together = mlc.generate(model, prompts, max_tokens=6, logprobs=0)
    assert together == [mlc.generate(model, p, max_tokens=6, logprobs=0) for p in prompts]
    drafted = mlc.generate(model, prompts, max_tokens=6, logprobs=0, draft=mlc.models.PromptLookup(tokens=3, longest=1))
    assert drafted == together                             # several rows by integers are the same as each alone
    exact = mlc.generate(mlc.models.load(file), prompts[0], max_tokens=1, logprobs=0)
    assert together[0].log_probabilities[0].value == pytest.approx(exact.log_probabilities[0].value, abs=0.1)


# -- tokenizers -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_model_that_ships_is_the_same_as_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tokens, template and what ends an answer; `mlc quantize` writes the file."""
    file = tmp_path / "assistant.gguf"
    assert main(["quantize", "examples/assistant", "-o", str(file), "--type=q8_0", "--tokens=0"]) == 0
    assert "q8_0" in capsys.readouterr().out
    one, other = mlc.models.load("examples/assistant"), mlc.models.load(file)
    for text in ("The tensor dialect", "  f(x) = 'é' + 12345\n\n", "<|user|> mlc.cumsum"):
        assert one.text_tools().encode(text) == other.text_tools().encode(text)
    said = [{"role": "user", "content": "What does mlc.cumsum do?"}]
    assert one.chat_tokens(said) == other.chat_tokens(said)
    assert one.usual.stop_tokens == other.usual.stop_tokens
    assert repr(one).split(" from ")[0] == repr(other).split(" from ")[0]
    text = Path("README.md").read_text(encoding="utf-8")
    assert perplexity(other, text, 200) == pytest.approx(perplexity(one, text, 200), rel=0.02)


def test_pieces_of_sentencepiece(tmp_path: Path) -> None:
    """Pieces with better scores are put together first; what is no piece becomes bytes."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), "▁", "a", "b", "c", "ab", "bc", "▁a"]
    fields = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": pieces,
              "tokenizer.ggml.scores": [0.0] * 263 + [-2.0, -1.0, -3.0],
              "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * 7, "tokenizer.ggml.bos_token_id": 1,
              "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0}
    content = described(write_folder({**CASES["llama"], "vocab_size": len(pieces)}, tmp_path / "model"))
    write_gguf(tmp_path / "a.gguf", Described({**content.fields, **fields}, content.tensors), "f32")
    model = mlc.models.load(tmp_path / "a.gguf")
    tools = model.text_tools()
    found = [pieces[i] for i in tools.encode("abcé")]
    assert found == ["<s>", "▁a", "bc", "<0xC3>", "<0xA9>"]
    assert tools.decode(tools.encode("ab cé")) == "ab cé" and model.usual.stop_tokens == {2}


# -- fields -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("form", "value"), [
    ("f8", 1e300), ("f8", 0.1), ("f4", 0.5), ("i1", -3), ("u2", 7), ("i8", -5), ("u8", 1 << 63), ("b1", True),
    ("i8", [1, 1 << 40]), ("u4", [1, 4000000000]), ("u8", [1 << 63, 1]), ("f8", [0.1]), ("i4", []), ("b1", [True]),
    ("S", []), ("S", "é"), ("S", ["a", ""])], ids=str)
def test_fields_keep_their_types_when_a_file_is_written_anew(form: str, value: Any, tmp_path: Path) -> None:
    types = "u1 i1 u2 i2 u4 i4 f4 b1 S - u8 i8 f8".split()
    values = value if isinstance(value, list) else [value]
    data = b"".join(struct.pack("<Q", len(x.encode())) + x.encode() for x in values) if form == "S" else np.array(
        values, form).tobytes()
    array = struct.pack("<I", 9) if isinstance(value, list) else b""
    count = struct.pack("<Q", len(values)) if isinstance(value, list) else b""
    field = struct.pack("<Q", 3) + b"x.y" + array + struct.pack("<I", types.index(form)) + count + data
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + field + struct.pack("<Q", 1) + b"a" + struct.pack(
        "<IQIQ", 1, 32, 0, 0)
    (tmp_path / "a.gguf").write_bytes(head + bytes(-len(head) % 32 + 128))
    write_gguf(tmp_path / "b.gguf", described(tmp_path / "a.gguf"), "f32")
    assert field in (tmp_path / "b.gguf").read_bytes()
    assert read_gguf_file(tmp_path / "b.gguf").fields["x.y"] == value


@pytest.mark.parametrize("value", [1e300, [1, 2.5], [1, 1 << 40], [1 << 63, 1], -(1 << 40), [4000000000]], ids=str)
def test_fields_of_large_numbers(value: Any, tmp_path: Path) -> None:
    write_gguf(tmp_path / "a.gguf", Described({"x": value}, {"a": _plain(np.ones(2, np.float32))}), "f32")
    assert read_gguf_file(tmp_path / "a.gguf").fields["x"] == value


@pytest.mark.parametrize("value", [1 << 64, [-1, 1 << 63], [1, "a"], None, [[1]]], ids=str)
def test_fields_of_no_type_are_refused(value: Any, tmp_path: Path) -> None:
    with pytest.raises(mlc.UserError, match="the field x is ") as caught:
        write_gguf(tmp_path / "a.gguf", Described({"x": value}, {"a": _plain(np.ones(2, np.float32))}), "f32")
    assert caught.value.code == "MLC0911"


# -- damaged files ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small model as a file."""
    folder = tmp_path_factory.mktemp("gguf")
    tiny = {**CASES["llama"], "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 8}
    return to_gguf(tiny, folder, "q8_0").read_bytes()


def refusal(data: bytes, tmp_path: Path) -> str | None:
    """The code of the error of a file; None if it is read."""
    (tmp_path / "x.gguf").write_bytes(data)
    try:
        mlc.models.load(tmp_path / "x.gguf")
    except Error as error:
        return error.code
    return None


def test_files_that_are_cut_short(file: bytes, tmp_path: Path) -> None:
    assert refusal(file, tmp_path) is None
    for size in (0, 3, 4, 23, 24, 100, 700, len(file) // 2, len(file) - 64):
        assert refusal(file[:size], tmp_path) == "MLC0922", size


def test_bytes_that_are_changed(file: bytes, tmp_path: Path) -> None:
    """Each gives a model or one error with a code: no crash, no endless loop, no memory that the file does not have."""
    random, found = np.random.default_rng(0), set[str | None]()
    head = file.index(b"blk.0.ffn_down")
    for _ in range(150):
        data = bytearray(file)
        for at in random.integers(0, head + 100, random.integers(1, 4)):
            data[at] = random.integers(0, 256)
        found.add(refusal(bytes(data), tmp_path))
    assert {"MLC0922", "MLC0911", None} <= found <= {"MLC0910", "MLC0911", "MLC0912", "MLC0913", "MLC0914", "MLC0922",
                                                     None}


@pytest.mark.parametrize("rest", [
    struct.pack("<IQQ", 3, 1 << 63, 0), struct.pack("<IQQ", 3, 0, 1 << 40), struct.pack("<IQQ", 9, 0, 0),
    struct.pack("<IQQQ", 3, 0, 1, 1 << 62) + bytes(32),
    struct.pack("<IQQQ", 3, 0, 1, 1) + b"a" + struct.pack("<IIQ", 9, 9, 3000) + bytes(64),
    struct.pack("<IQQQ", 3, 0, 1, 1) + b"a" + struct.pack("<IIQ", 9, 4, 1 << 61) + bytes(64),
    struct.pack("<IQQQ", 3, 1, 0, 1) + b"a" + struct.pack("<IQQIQ", 2, 1 << 40, 1 << 40, 0, 0) + bytes(64)])
def test_counts_that_no_file_has(rest: bytes, tmp_path: Path) -> None:
    assert refusal(b"GGUF" + rest, tmp_path) == "MLC0922"


def test_models_that_are_not_run(file: bytes, tmp_path: Path) -> None:
    folder = write_folder(CASES["llama-dynamic"], tmp_path / "model")
    with pytest.raises(Error, match="rotary embedding of the kind dynamic"):
        described(folder)
    assert refusal(file.replace(b"llama", b"mamba"), tmp_path) == "MLC0911"
    (folder / "config.json").write_text(json.dumps({**CASES["llama"], "vocab_size": 8}))
