"""Vectors of texts: the numbers of their tokens, pooled as the folder of a model says.

A folder of sentence-transformers has `modules.json`: a transformer, the pooling (`1_Pooling/config.json`), and what
follows: linear maps, and the division by the length of the vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from mlc import nn
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.models.cache import PAGE, pages_for, whole
from mlc.models.causal_lm import CausalLM
from mlc.models.encoder import Encoder
from mlc.models.fields import Fields
from mlc.models.folder import read_json, read_json_list
from mlc.models.layers import Linear
from mlc.models.parameters import Given, Place
from mlc.nn.saving import load_safetensors

Array = np.ndarray[Any, Any]

BUDGET = 2048
"""Tokens, padding included, that one call reads at most, if it has more than one text."""


def _mean(x: Tensor, seen: Tensor, lengths: Tensor) -> Tensor:
    out: Tensor = mlc.where(seen[..., None], x, 0.0).sum(1) / lengths[:, None].float()
    return out


def _weighted(x: Tensor, seen: Tensor, lengths: Tensor) -> Tensor:
    weights = mlc.where(seen, mlc.arange(seen.shape[1])[None] + 1, 0).float()
    out: Tensor = (mlc.where(seen[..., None], x, 0.0) * weights[..., None]).sum(1) / weights.sum(1, keepdim=True)
    return out


POOLINGS: Mapping[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "cls_token": lambda x, seen, lengths: x[:, 0],
    "max_tokens": lambda x, seen, lengths: mlc.where(seen[..., None], x, float("-inf")).amax(1),
    "mean_tokens": _mean,
    "mean_sqrt_len_tokens": lambda x, seen, lengths: _mean(x, seen, lengths) * mlc.sqrt(lengths[:, None].float()),
    "weightedmean_tokens": _weighted,
    "lasttoken": lambda x, seen, lengths: mlc.gather(
        x, 1, (lengths - 1)[:, None, None].expand(x.shape[0], 1, x.shape[2]))[:, 0]}
"""Functions that make one vector of those of the tokens [batch, n, width], by the names of sentence-transformers;
vectors of several are put one behind the other, in this order."""

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "torch.nn.modules.activation.Tanh": mlc.tanh, "torch.nn.modules.linear.Identity": lambda x: x}


class Dense(nn.Module):
    """A linear map of vectors with an activation."""

    def __init__(self, fields: Fields, place: Place) -> None:
        self.linear = Linear(place.at("linear"), fields.integer("in_features"), fields.integer("out_features"),
                             fields.flag("bias", True))
        self.activation = ACTIVATIONS[fields.choice("activation_function", "torch.nn.modules.activation.Tanh",
                                                    list(ACTIVATIONS))]

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.linear(x))


class Normalize(nn.Module):
    """Vectors of length 1."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.normalize(x, dim=-1)


@dataclass(frozen=True)
class Pooling:
    """How the vector of a text is made of those of its tokens.

    modes   names of `POOLINGS`
    after   what is done with the vector then
    limit   greatest number of tokens; None for all that the model sees
    prompt  the text that is put before each
    """

    modes: tuple[str, ...] = ("mean_tokens",)
    after: tuple[nn.Module, ...] = (Normalize(),)
    limit: int | None = None
    prompt: str = ""

    def __call__(self, x: Tensor, lengths: Tensor) -> Tensor:
        seen = mlc.arange(x.shape[1])[None] < lengths[:, None]
        found = [POOLINGS[mode](x, seen, lengths) for mode in self.modes]
        out = found[0] if len(found) == 1 else mlc.cat(found, -1)
        for module in self.after:
            out = module(out)
        return out


def read_pooling(folder: Path) -> Pooling:
    """The pooling that a folder asks for: the mean of all tokens, of length 1, if it says nothing.

    Raises:
        UserError: A file cannot be read (MLC0910), or asks for something that mlc does not compute (MLC0991).
    """
    path = folder / "modules.json"
    if not path.exists():
        return Pooling()
    modules = [Fields(x, str(path)) for x in read_json_list(path)]
    kinds = [m.text("type").rpartition(".")[2] for m in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or not set(kinds[2:]) <= {"Dense", "Normalize"}:
        raise _refused(path, f"its modules are {', '.join(kinds)}",
                       "mlc runs Transformer, Pooling, and Dense and Normalize behind them")
    modes = _modes(folder / _part(modules[1]) / "config.json")
    after = tuple(Normalize() if kind == "Normalize" else _dense(folder / _part(m))
                  for kind, m in zip(kinds[2:], modules[2:]))
    settings = folder / _part(modules[0]) / "sentence_bert_config.json"
    fields = Fields(read_json(settings), str(settings)) if settings.exists() else Fields({}, "")
    fields.only("do_lower_case", (False,))
    return Pooling(modes, after, fields.integer("max_seq_length", 0) or None, _prompt(folder))


def _modes(path: Path) -> tuple[str, ...]:
    fields = Fields(read_json(path), str(path))
    if not fields.flag("include_prompt", True):
        raise _refused(path, "include_prompt is false", "prompts are a part of the text")
    given: list[Any] = [name.removeprefix("pooling_mode_") for name, on in fields.data.items()
             if name.startswith("pooling_mode_") and on is True]
    mode = fields.data.get("pooling_mode")                 # the form of newer versions
    given += [mode] if isinstance(mode, str) else mode if isinstance(mode, list) else []
    known = {**{name: name for name in POOLINGS}, "cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens",
             "mean_sqrt_len": "mean_sqrt_len_tokens", "weightedmean": "weightedmean_tokens"}
    wrong = [str(name) for name in given if not isinstance(name, str) or name not in known]
    if wrong or not given:
        raise _refused(path, f"the pooling is {', '.join(wrong) or 'none'}", "mlc knows " + ", ".join(POOLINGS))
    chosen = {known[name] for name in given}
    return tuple(name for name in POOLINGS if name in chosen)


def _dense(folder: Path) -> Dense:
    fields = Fields(read_json(folder / "config.json"), str(folder / "config.json"))
    source = Given(load_safetensors(folder / "model.safetensors"), str(folder))
    module = Dense(fields, Place(source))
    source.check_all_taken()
    return module


def _prompt(folder: Path) -> str:
    path = folder / "config_sentence_transformers.json"
    fields = Fields(read_json(path), str(path)) if path.exists() else Fields({}, str(path))
    name, prompts = fields.data.get("default_prompt_name"), fields.mapping("prompts") or {}
    if name is None:
        return ""
    if not isinstance(name, str) or not isinstance(prompts.get(name), str):
        raise _refused(path, f"there is no prompt {name!r}", "prompts has to have default_prompt_name")
    return str(prompts[name])


def _part(module: Fields) -> str:
    """The folder of a module: one of the folder itself."""
    path = module.text("path", "")
    if path in (".", "..") or "/" in path or "\\" in path:
        raise _refused(Path(module.origin), f"a path is {path!r}", "modules are in folders of the folder")
    return path


def _refused(path: Path, what: str, hint: str) -> UserError:
    return UserError(f"{path}: {what}", code="MLC0991", loc=user_loc(), hint=hint)


class Embedder:
    """Vectors of texts by compiled code; a text has the same, to the bit, alone and beside others.

    module   that gives the numbers of tokens
    pooling  of these
    """

    def __init__(self, module: CausalLM | Encoder, pooling: Pooling) -> None:
        self.module, self.pooling = module, pooling
        self._compiled: Any = None

    def __call__(self, texts: Sequence[Sequence[int]]) -> Array:
        """The vectors [texts, width] of texts, which are computed in groups of about the same length."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        found: list[Any] = [None] * len(texts)
        while order:
            group = [order.pop()]                          # the longest is first: the others are padded to it
            size = BUDGET // len(texts[group[0]]) if isinstance(self.module, Encoder) else 1
            while order and len(group) < size:
                group.append(order.pop())
            for i, vector in zip(group, self._vectors([texts[i] for i in group])):
                found[i] = vector
        return np.stack(found)

    def _vectors(self, texts: Sequence[Sequence[int]]) -> Array:
        longest = max(map(len, texts))
        tokens: Array = np.zeros((len(texts), longest), np.int64)
        for row, text in zip(tokens, texts):
            row[: len(text)] = text
        window = np.zeros(pages_for(longest) * PAGE, np.int8)
        if self._compiled is None:
            self._compiled = mlc.compile(self._vectors_of, args=[
                mlc.spec("B", "N", dtype="int64"), mlc.spec("B", dtype="int64"), mlc.spec("T", dtype="int8")])
        with no_grad():
            lengths = np.array([len(t) for t in texts], np.int64)
            return self._compiled(tokens, lengths, window).numpy()  # type: ignore[no-any-return]

    def _vectors_of(self, tokens: Tensor, lengths: Tensor, window: Tensor) -> Tensor:
        if isinstance(self.module, Encoder):
            x = self.module(tokens, lengths, window.shape[0])
        else:                                              # one text: its keys may be turned by its length
            x, _ = self.module.hidden(tokens, whole(tokens))
        rows = mlc.minimum(mlc.arange(window.shape[0]), tokens.shape[1] - 1)
        return self.pooling(x[:, rows], lengths)
