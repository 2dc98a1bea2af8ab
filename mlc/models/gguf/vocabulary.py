"""The vocabulary of a GGUF file as a tokenizer of the package tokenizers.

llama.cpp has three that are common: `gpt2`, pairs of bytes that are merged in an order that is given, and `llama`,
pieces of SentencePiece, of which the neighbours with the best score are merged; both are what tokenizers calls BPE. The
third is that of BERT (word_pieces.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlc.models.fields import Fields
from mlc.models.folder import read_json
from mlc.models.gguf.file import GGUFFile
from mlc.models.gguf.word_pieces import fields_of_word_pieces, word_pieces
from mlc.models.text import ChatTemplate, Tokenizer, missing_package, read_template, unreadable_tokenizer

_NUMBERS = r"\p{N}{1,3}"
_LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + _NUMBERS
           + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SPLITS: Mapping[str, Sequence[str]] = {
    "default": (_GPT2,), "gpt-2": (_GPT2,), "gpt2": (_GPT2,), "phi-2": (_GPT2,), "olmo": (_GPT2,),
    "llama-bpe": (_LLAMA3,), "llama3": (_LLAMA3,), "llama-v3": (_LLAMA3,), "smaug-bpe": (_LLAMA3,),
    "qwen2": (_LLAMA3.replace(_NUMBERS, r"\p{N}"),), "smollm": (r"\p{N}", _GPT2), "starcoder": (r"\p{N}", _GPT2),
    "refact": (r"\p{N}", _GPT2), "mistral-bpe": (_LLAMA3,)}
"""The expressions that text is split by before pairs are merged, one after the other, by `tokenizer.ggml.pre`
(llama.cpp, src/llama-vocab.cpp)."""
_WHOLE_WORDS = ("llama-bpe", "llama3", "llama-v3")
"""Those that take a word that is a token without merging pairs, and begin texts with a token."""
_COMPOSED = ("qwen2",)
"""Those whose models were trained on composed characters (NFC), which no field says."""
_NORMAL, _UNKNOWN, _CONTROL, _OF_USER, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6
_SPACE = "\u2581"


class GGUFVocabulary:
    """The fields of a file that tell of its tokens."""

    def __init__(self, file: GGUFFile) -> None:
        self.fields = Fields(file.fields, str(file.path))
        self.origin = str(file.path)
        self.tokens = self._texts("tokens")
        self.kinds = self._numbers("token_type")

    def _texts(self, name: str) -> list[str]:
        found = self.fields.sequence(f"tokenizer.ggml.{name}")
        if {*map(type, found)} - {str}:
            raise unreadable_tokenizer(self.origin, f"tokenizer.ggml.{name} is no list of texts")
        return list(found)

    def _numbers(self, name: str) -> list[float]:
        """One number per token; 0 for all if they are not there."""
        if f"tokenizer.ggml.{name}" not in self.fields.data:
            return [0] * len(self.tokens)
        found = self.fields.sequence(f"tokenizer.ggml.{name}")
        if len(found) != len(self.tokens) or {*map(type, found)} - {int, float, bool}:
            raise unreadable_tokenizer(self.origin, f"tokenizer.ggml.{name} is no list of {len(self.tokens)} numbers")
        return list(found)

    def flag(self, name: str, default: bool) -> bool:
        return self.fields.flag(f"tokenizer.ggml.{name}", default)

    def token(self, name: str) -> int | None:
        """The number of a token with a purpose: bos, eos ..."""
        found = self.fields.data.get(f"tokenizer.ggml.{name}_token_id")
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < len(self.tokens):
            raise unreadable_tokenizer(self.origin, f"{name}_token_id is {found!r}, of {len(self.tokens)} tokens")
        return found

    def ends(self) -> frozenset[int]:
        """Tokens that end an answer."""
        found = (self.token(name) for name in ("eos", "eot", "eom"))
        return frozenset(x for x in found if x is not None)

    def tokenizer(self) -> Tokenizer:
        """The tokenizer, with the tokens that begin and end a text where the file says so.

        Raises:
            UserError: It is of a kind that is not known, or contradicts itself (MLC0913).
        """
        try:
            import tokenizers
        except ImportError:
            raise missing_package("tokenizers", "reads vocabularies") from None
        model = self.fields.text("tokenizer.ggml.model")
        if len(set(self.tokens)) != len(self.tokens):
            raise unreadable_tokenizer(self.origin, "it has a token twice")
        if model not in ("gpt2", "llama", "bert"):
            raise unreadable_tokenizer(self.origin, f"the vocabulary {model!r} is none of gpt2, llama and bert")
        rules: Any = (self._merged_bytes(tokenizers) if model == "gpt2" else self._pieces(tokenizers)
                      if model == "llama" else word_pieces(tokenizers, self.tokens, self.kinds, self._of_bert(
                          "[UNK]", "unknown"), self.origin))
        special = (_CONTROL, _UNKNOWN)
        rules.add_tokens([tokenizers.AddedToken(text, normalized=False, special=kind in special)
                          for text, kind in zip(self.tokens, self.kinds) if kind in (*special, _OF_USER)])
        starts = model != "gpt2" or self.fields.text("tokenizer.ggml.pre", "default") in _WHOLE_WORDS
        self._add_ends(tokenizers, rules, starts, bert=model == "bert")
        return Tokenizer(rules)

    def _merged_bytes(self, tokenizers: Any) -> Any:
        kind = self.fields.text("tokenizer.ggml.pre", "default")
        if kind not in _SPLITS:
            raise unreadable_tokenizer(self.origin, f"it splits text in the way {kind!r}; mlc knows "
                                                    + ", ".join(sorted(_SPLITS)))
        merges = [tuple(pair.split(" ")) for pair in self._texts("merges")]
        splits = [tokenizers.pre_tokenizers.Split(tokenizers.Regex(x), "isolated") for x in _SPLITS[kind]]
        rules = self._bpe(tokenizers, merges, ignore_merges=kind in _WHOLE_WORDS)
        rules.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
            [*splits, tokenizers.pre_tokenizers.ByteLevel(self.flag("add_space_prefix", False), use_regex=False)])
        if kind in _COMPOSED:
            rules.normalizer = tokenizers.normalizers.NFC()
        rules.decoder = tokenizers.decoders.ByteLevel()
        return rules

    def _pieces(self, tokenizers: Any) -> Any:
        """All ways to put a piece together are merges, those of the best pieces first."""
        numbers = {text: i for i, text in enumerate(self.tokens)}
        merges: list[tuple[float, int, int, str, str]] = []
        for text, score, kind in zip(self.tokens, self._numbers("scores"), self.kinds):
            if kind not in (_CONTROL, _BYTE, _UNKNOWN):
                for i in range(1, len(text)):              # the right part first, which is a piece more rarely
                    if (right := text[i:]) in numbers and (left := text[:i]) in numbers:
                        merges.append((-score, numbers[left], numbers[right], left, right))
        unknown = self.token("unknown")
        rules = self._bpe(tokenizers, [pair[3:] for pair in sorted(merges)], byte_fallback=True, fuse_unk=True,
                          unk_token=None if unknown is None else self.tokens[unknown])
        normalizers, decoders = tokenizers.normalizers, tokenizers.decoders
        prefix = self.flag("add_space_prefix", True)
        rules.normalizer = normalizers.Sequence([*[normalizers.Prepend(_SPACE)] * prefix,
                                                 normalizers.Replace(" ", _SPACE)])
        rules.decoder = decoders.Sequence([decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse(),
                                           *[decoders.Strip(" ", 1, 0)] * prefix])
        return rules

    def _bpe(self, tokenizers: Any, merges: Sequence[Any], **options: Any) -> Any:
        try:
            return tokenizers.Tokenizer(tokenizers.models.BPE(
                {text: i for i, text in enumerate(self.tokens)}, merges, **options))
        except Exception as error:                         # it raises Exception itself
            raise unreadable_tokenizer(self.origin, str(error)) from None

    def _add_ends(self, tokenizers: Any, rules: Any, starts: bool, bert: bool) -> None:
        """Have texts begin and end with the tokens that the file wants there."""
        begin, end = ((self._of_bert("[CLS]", "bos", "cls"), self._of_bert("[SEP]", "seperator", "eos")) if bert else
                      (self.token("bos"), self.token("eos")))
        first = begin if self.flag("add_bos_token", starts) else None
        last = end if self.flag("add_eos_token", bert) else None
        special = [(name, x) for name, x in (("first", first), ("last", last)) if x is not None]
        if special:                                        # by names of their own: `$A` may be the text of a token
            form = [*(["first"] if first is not None else []), "$A", *(["last"] if last is not None else [])]
            rules.post_processor = tokenizers.processors.TemplateProcessing(single=form, special_tokens=special)

    def _of_bert(self, text: str, *fields: str) -> int | None:
        """A special token, which old files do not number in all of the fields."""
        found = [x for name in fields if (x := self.token(name)) is not None]
        return found[0] if found else self.tokens.index(text) if text in self.tokens else None

    def template(self) -> ChatTemplate | None:
        """The template of conversations; None if the file has none."""
        source = self.fields.data.get("tokenizer.chat_template")
        if not isinstance(source, str):
            return None
        named = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
        special = {name: self.tokens[x] for field, name in named.items() if (x := self.token(field)) is not None}
        of_tools = self.fields.data.get("tokenizer.chat_template.tool_use")
        return ChatTemplate(source, special, self.origin,
                            ChatTemplate(of_tools, special, self.origin) if isinstance(of_tools, str) else None)


def fields_of_tokenizer(folder: Path) -> dict[str, Any]:
    """The fields for the tokenizer and the template of a folder of transformers; none if it has no tokenizer.

    Raises:
        UserError: The tokenizer is not one of bytes whose pairs are merged, or no file can describe it (MLC0913).
    """
    path = folder / "tokenizer.json"
    if not path.exists():
        return {}
    rules = read_json(path)
    model: Mapping[str, Any] = Fields(rules, str(path)).mapping("model") or {}
    if model.get("type") == "WordPiece":
        settings = folder / "tokenizer_config.json"
        return fields_of_word_pieces(rules, read_json(settings) if settings.exists() else {}, str(path))
    split = _split_of(rules.get("pre_tokenizer"), bool(model.get("ignore_merges")))
    if model.get("type") != "BPE" or model.get("byte_fallback") or split is None:
        raise unreadable_tokenizer(str(path), "it is not one of merged bytes that a GGUF file could describe")
    normalizer = (rules.get("normalizer") or {}).get("type")
    if normalizer != ("NFC" if split in _COMPOSED else None):
        raise unreadable_tokenizer(str(path), f"texts are normalised by {normalizer}, which no GGUF file could say "
                                              f"of one that splits text in the way {split!r}")
    added = rules.get("added_tokens", [])
    numbers = {**model["vocab"], **{x["content"]: x["id"] for x in added}}
    kinds = {x["id"]: _CONTROL if x.get("special") else _OF_USER for x in added}
    texts = {i: text for text, i in numbers.items()}
    count = max(texts) + 1
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    out: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": split, "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.tokens": [texts.get(i, f"[PAD{i}]") for i in range(count)],
        "tokenizer.ggml.token_type": [kinds.get(i, _NORMAL) if i in texts else _UNUSED for i in range(count)]}
    out |= _special_fields(folder, numbers, rules)
    _check(path, out, [x["content"] for x in added[:100]])
    return out


_TEXTS = ("Of 12345 words, it's the 2nd;  see  \"Caf\u00e9\" (E\u0301tude) \u4e2d\u6587\U0001f600\n\n\tI'LL x_y \u00c4",
          "", " a")


def _check(path: Path, fields: Mapping[str, Any], added: Sequence[str]) -> None:
    """Refuse a tokenizer that a file with these fields has others than of, for some texts."""
    ours = Tokenizer.of_file(path)
    theirs = GGUFVocabulary(GGUFFile(path, fields, {}, {})).tokenizer()
    for text in (*_TEXTS, *(f"a {token} b" for token in added)):
        if (wanted := ours.encode(text)) != (found := theirs.encode(text)):
            raise unreadable_tokenizer(str(path), f"the tokens of {text!r} are {wanted[:16]}, and no GGUF file could "
                                                  f"say so: they would be {found[:16]}")


def _split_of(found: Any, whole: bool) -> str | None:
    """The name in llama.cpp of the way in which a tokenizer splits texts, and takes whole words that are tokens or not;
    None if it has none."""
    steps = found.get("pretokenizers", [found]) if isinstance(found, dict) else []
    if not steps or steps[-1].get("type") != "ByteLevel":
        return None
    patterns = [x.get("pattern", {}).get("Regex") if x.get("type") == "Split" else
                r"\p{N}" if x.get("type") == "Digits" and x.get("individual_digits") else None for x in steps[:-1]]
    if steps[-1].get("use_regex", True):
        patterns.append(_GPT2)
    names = [name for name, splits in _SPLITS.items() if list(splits) == patterns and (name in _WHOLE_WORDS) == whole]
    return next((name for name in ("gpt-2", *names) if name in names), None)


def _special_fields(folder: Path, numbers: Mapping[str, int], rules: Mapping[str, Any]) -> dict[str, Any]:
    """Which tokens begin and end texts, and the template."""
    out: dict[str, Any] = {"tokenizer.ggml.add_bos_token": False}
    settings = folder / "tokenizer_config.json"
    held = read_json(settings) if settings.exists() else {}
    config = read_json(folder / "config.json")
    for name in ("bos", "eos"):
        token = held.get(f"{name}_token")
        text = token.get("content") if isinstance(token, dict) else token
        number = numbers.get(text) if isinstance(text, str) else config.get(f"{name}_token_id")
        if isinstance(number, int):
            out[f"tokenizer.ggml.{name}_token_id"] = number
    for step in _steps(rules.get("post_processor")):
        if step.get("type") != "ByteLevel":                # which moves the places of tokens only
            out |= _ends(step, out, numbers, str(folder / "tokenizer.json"))
    template = read_template(folder)
    if template is not None:
        out["tokenizer.chat_template"] = template.source
        if template.for_tools is not None:
            out["tokenizer.chat_template.tool_use"] = template.for_tools.source
    return out


def _ends(step: Mapping[str, Any], known: Mapping[str, Any], numbers: Mapping[str, int], origin: str
          ) -> dict[str, bool]:
    """Whether texts begin with the token that begins one, and end with the one that ends it."""
    parts = [part.get("SpecialToken", {}).get("id", "$A") for part in step.get("single", [])]
    at = parts.index("$A") if parts.count("$A") == 1 else -1
    around = [[numbers.get(part) for part in side] for side in (parts[:max(at, 0)], parts[at + 1:])]
    wanted = [[known.get(f"tokenizer.ggml.{name}_token_id")] for name in ("bos", "eos")]
    if step.get("type") != "TemplateProcessing" or at < 0 or any(s not in ([], w) for s, w in zip(around, wanted)):
        raise unreadable_tokenizer(origin, "it puts other tokens around a text than bos_token and eos_token, which no "
                                           "GGUF file could say")
    return {f"tokenizer.ggml.add_{name}_token": bool(side) for name, side in zip(("bos", "eos"), around)}


def _steps(found: Any) -> Sequence[Mapping[str, Any]]:
    return found.get("processors", [found]) if isinstance(found, dict) else []
