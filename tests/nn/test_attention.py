"""Attention and transformers against torch.nn."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError

pytestmark = pytest.mark.usefixtures("interpreted")
torch = pytest.importorskip("torch")
N, L, S, E, H = 3, 5, 6, 8, 2
rng = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)


LATER = np.triu(np.ones((L, L), bool), 1)
PADDING = np.arange(S) >= np.array([[6], [4], [2]])
MASKS: dict[str, dict[str, Any]] = {
    "none": {}, "boolean": {"attn_mask": np.arange(S) > np.arange(L)[:, None]}, "added": {"attn_mask": normal(L, S)},
    "by head": {"attn_mask": normal(N * H, L, S)}, "padding": {"key_padding_mask": PADDING},
    "both": {"attn_mask": np.arange(S) > np.arange(L)[:, None], "key_padding_mask": PADDING},
    "no weights": {"need_weights": False}, "every head": {"average_attn_weights": False}}


def close(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(torch.from_numpy(np.array(ours)), theirs.detach(), rtol=1e-4, atol=1e-5)


def as_torch(x: Any) -> Any:
    return torch.from_numpy(x) if isinstance(x, np.ndarray) else x


def pair(name: str, *args: Any, **keywords: Any) -> tuple[Any, Any]:
    theirs = getattr(torch.nn, name)(*args, **keywords)
    ours = getattr(nn, name)(*args, **keywords)
    with torch.no_grad():
        for p in theirs.parameters():                      # biases begin as zeros, which would hide mistakes
            p.add_(0.1 * torch.randn_like(p))
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("batch_first", [True, False])
def test_masks(mask: str, batch_first: bool) -> None:
    ours, theirs = pair("MultiheadAttention", E, H, batch_first=batch_first)
    q, k, v = normal(N, L, E), normal(N, S, E), normal(N, S, E)
    if not batch_first:
        q, k, v = (x.swapaxes(0, 1).copy() for x in (q, k, v))
    given = MASKS[mask]
    expected = theirs(*map(as_torch, (q, k, v)), **{n: as_torch(x) for n, x in given.items()})
    found = mlc.compile(ours)(q, k, v, **given)
    close(found[0], expected[0])
    assert (found[1] is None) == (expected[1] is None)
    if found[1] is not None:
        close(found[1], expected[1])


@pytest.mark.parametrize("settings", [
    {"bias": False}, {"kdim": 3, "vdim": 4}, {"add_bias_kv": True}, {"add_zero_attn": True},
    {"add_bias_kv": True, "add_zero_attn": True}], ids=str)
def test_settings(settings: dict[str, Any]) -> None:
    ours, theirs = pair("MultiheadAttention", E, H, batch_first=True, **settings)
    args = normal(N, L, E), normal(N, S, settings.get("kdim", E)), normal(N, S, settings.get("vdim", E))
    expected = theirs(*map(as_torch, args), key_padding_mask=torch.from_numpy(PADDING))
    found = ours(*map(mlc.tensor, args), key_padding_mask=mlc.tensor(PADDING))
    close(found[0], expected[0])
    close(found[1], expected[1])


def test_one_sequence_and_causal() -> None:
    ours, theirs = pair("MultiheadAttention", E, H)
    x = normal(L, E)
    expected = theirs(*[torch.from_numpy(x)] * 3, attn_mask=torch.from_numpy(LATER), need_weights=False)[0]
    y = mlc.tensor(x)
    close(ours(y, y, y, attn_mask=mlc.tensor(LATER), need_weights=False)[0], expected)
    close(ours(y, y, y, is_causal=True)[0], expected)


LAYERS: list[dict[str, Any]] = [{}, {"norm_first": True}, {"batch_first": True, "activation": "gelu"},
                                {"batch_first": True, "norm_first": True, "bias": False, "layer_norm_eps": 1e-3}]


@pytest.mark.parametrize("settings", LAYERS, ids=str)
def test_encoder_layers_and_their_gradients(settings: dict[str, Any]) -> None:
    ours, theirs = pair("TransformerEncoderLayer", E, H, 12, dropout=0.0, **settings)
    x = normal(L, L, E)
    out = theirs(torch.from_numpy(x), src_mask=torch.from_numpy(LATER))
    close(mlc.compile(ours)(x, LATER), out)
    weight = normal(*x.shape)
    (out * torch.from_numpy(weight)).sum().backward()
    gradients = mlc.compile(mlc.grad(lambda m, x: (m(x, mlc.tensor(LATER)) * mlc.tensor(weight)).sum()))(ours, x)
    found = dict(gradients.named_parameters())
    for name, p in theirs.named_parameters():
        close(found[name], p.grad)


@pytest.mark.parametrize("settings", LAYERS, ids=str)
def test_decoder_layers(settings: dict[str, Any]) -> None:
    ours, theirs = pair("TransformerDecoderLayer", E, H, 12, dropout=0.0, **settings)
    x, memory = normal(L, L, E), normal(L, L, E)
    out = theirs(torch.from_numpy(x), torch.from_numpy(memory), torch.from_numpy(LATER))
    close(mlc.compile(ours)(x, memory, LATER), out)


def test_a_whole_transformer() -> None:
    ours, theirs = pair("Transformer", E, H, 2, 2, 12, dropout=0.0, batch_first=True)
    src, tgt = normal(N, S, E), normal(N, L, E)
    mask = nn.Transformer.generate_square_subsequent_mask(L)
    np.testing.assert_array_equal(mask.numpy(), torch.nn.Transformer.generate_square_subsequent_mask(L).numpy())
    out = theirs(torch.from_numpy(src), torch.from_numpy(tgt), tgt_mask=torch.from_numpy(mask.numpy()),
                 src_key_padding_mask=torch.from_numpy(PADDING))
    close(mlc.compile(ours)(src, tgt, tgt_mask=mask, src_key_padding_mask=PADDING), out)


def test_copies_of_a_layer_drop_different_things() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(E, H, 12), 2)
    first, second = encoder.layers
    np.testing.assert_array_equal(first.linear1.weight.numpy(), second.linear1.weight.numpy())
    assert first.dropout.key.tolist() != second.dropout.key.tolist()
    x = mlc.tensor(normal(L, N, E))
    assert encoder(x).tolist() != encoder(x).tolist() and encoder.eval()(x).tolist() == encoder(x).tolist()


@pytest.mark.parametrize("batched", [True, False])
def test_attention_takes_numpy_arrays(batched: bool) -> None:
    ours, theirs = pair("MultiheadAttention", E, H, batch_first=True)
    x = normal(N, L, E) if batched else normal(L, E)
    padding = PADDING[:N, :L] if batched else PADDING[0, :L]
    given = torch.from_numpy(x)
    for a, b in zip(ours(x, x, x, padding, attn_mask=LATER),
                    theirs(given, given, given, torch.from_numpy(padding), attn_mask=torch.from_numpy(LATER))):
        close(a, b)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_key_of_zeros_is_added_to_keys_and_values_that_are_given_by_head(need_weights: bool) -> None:
    x, weight, out, given = normal(L, N, E), normal(3 * E, E), normal(E, E), normal(N * H, S, E // H)
    functions: Any = ((nn.functional.multi_head_attention_forward, mlc.tensor),
                      (torch.nn.functional.multi_head_attention_forward, as_torch))
    found, expected = (
        f(*map(make, (x, x, x)), E, H, make(weight), None, None, None, True, 0.0, make(out), None, training=False,
          key_padding_mask=make(PADDING), need_weights=need_weights, static_k=make(given), static_v=make(given + 1))
        for f, make in functions)
    close(found[0], expected[0])
    if need_weights:
        close(found[1], expected[1])


def test_masks_of_another_shape_are_refused() -> None:
    layer, x = nn.MultiheadAttention(E, H), mlc.tensor(normal(L, N, E))
    for masks, wanted in (({"key_padding_mask": np.zeros((L, N), bool)}, f"key_padding_mask.*{N}, {L}"),
                          ({"attn_mask": np.zeros((L, L + 1), bool)}, f"attn_mask.*{L}, {L}")):
        with pytest.raises(UserError, match="MLC0367.*" + wanted):
            layer(x, x, x, **masks)
    with pytest.raises(UserError, match="MLC0364"):
        layer(x[0, 0], x[0, 0], x[0, 0])


def test_stacks_take_the_arguments_of_pytorch() -> None:
    layer = nn.TransformerEncoderLayer(E, H, 16)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False, mask_check=False)
    assert encoder(normal(L, N, E), is_causal=None).shape == (L, N, E)
    model = nn.Transformer(E, H, 1, 1, 16, custom_encoder=encoder)
    assert model.encoder is encoder
    mask = model.generate_square_subsequent_mask(L, "cpu", mlc.float64)
    assert mask.dtype == mlc.float64
    assert model(normal(S, N, E), normal(L, N, E), tgt_mask=mask, tgt_is_causal=None).shape == (L, N, E)


def test_a_query_that_attends_to_nothing_gives_0_with_dropout_too() -> None:
    q = mlc.ones(1, 2, 4, requires_grad=True)
    mask = mlc.tensor([[True, True], [False, False]])
    out = nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask, dropout_p=0.5)
    assert out[0, 1].tolist() == [0.0] * 4
    out.sum().backward()
    assert q.grad is not None and not q.grad.isnan().any().item()
