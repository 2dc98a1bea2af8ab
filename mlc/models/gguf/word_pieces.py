"""The vocabulary `bert` of GGUF files: words, and pieces that go on with one, as WordPiece has them.

In files a word begins with a mark, and a piece has none; WordPiece has it the other way round (`##` before a piece). A
file does not say whether letters become small: they do, as in llama.cpp, unless a word of the vocabulary has a great
one, which then could never be found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlc.models.text import unreadable_tokenizer

_MARK, _PIECE = "\u2581", "##"
CONTROL, OF_USER, NORMAL, UNKNOWN, UNUSED = 3, 4, 1, 2, 5
ENDS = {"bos": "cls", "seperator": "sep", "unknown": "unk", "padding": "pad", "mask": "mask"}
"""Fields of special tokens, as GGUF spells them, and their names in transformers."""


def lowers(words: Sequence[str]) -> bool:
    """Whether a tokenizer with these words has to make letters small."""
    return not any("A" <= c <= "Z" for w in words for c in w)


def word_pieces(tokenizers: Any, tokens: Sequence[str], kinds: Sequence[float], unknown: int | None, origin: str
                ) -> Any:
    """The rules of a vocabulary: those of BERT."""
    def name(text: str, kind: float) -> str:
        if kind in (CONTROL, UNKNOWN, UNUSED, OF_USER):
            return text
        return text[1:] if text.startswith(_MARK) else _PIECE + text

    names = [name(text, kind) for text, kind in zip(tokens, kinds)]
    if unknown is None or len(set(names)) < len(names):
        raise unreadable_tokenizer(origin, "it has no unknown token, or a word twice")
    small = lowers([n for n, kind in zip(names, kinds) if kind not in (CONTROL, UNKNOWN, UNUSED, OF_USER)])
    rules = tokenizers.Tokenizer(tokenizers.models.WordPiece({n: i for i, n in enumerate(names)},
                                                             unk_token=names[unknown], max_input_chars_per_word=100))
    rules.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=small)
    rules.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    rules.decoder = tokenizers.decoders.WordPiece(_PIECE)
    return rules


def fields_of_word_pieces(rules: Mapping[str, Any], settings: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """The fields for a `tokenizer.json` of BERT's kind.

    Raises:
        UserError: A file could not say what it does (MLC0913).
    """
    model, added = rules["model"], {x["content"]: x for x in rules.get("added_tokens", [])}
    numbers = {**model["vocab"], **{text: x["id"] for text, x in added.items()}}
    texts = {i: text for text, i in numbers.items()}
    normalizer = rules.get("normalizer") or {}
    small = lowers([text for text in model["vocab"] if text not in added])
    plain = (normalizer.get("type") == "BertNormalizer" and normalizer.get("lowercase") is small
             and normalizer.get("strip_accents") in (None, small) and normalizer.get("clean_text", True)
             and normalizer.get("handle_chinese_chars", True)
             and (rules.get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer"
             and model.get("continuing_subword_prefix", _PIECE) == _PIECE)
    if not plain:
        raise unreadable_tokenizer(origin, "it splits words otherwise than BERT does, and no GGUF file could say how")
    kinds, marked = list[int](), list[str]()
    for i in range(max(texts) + 1):
        text = texts.get(i)
        kinds.append(UNUSED if text is None else NORMAL if text not in added else
                     CONTROL if added[text].get("special") else OF_USER)
        marked.append(f"[PAD{i}]" if text is None else text if text in added else
                      text.removeprefix(_PIECE) if text.startswith(_PIECE) else _MARK + text)
    out: dict[str, Any] = {"tokenizer.ggml.model": "bert", "tokenizer.ggml.pre": "default",
                           "tokenizer.ggml.tokens": marked, "tokenizer.ggml.token_type": kinds}
    for field, name in ENDS.items():
        given = settings.get(f"{name}_token", f"[{name.upper()}]")
        text = given.get("content") if isinstance(given, dict) else given
        if text in numbers:
            out[f"tokenizer.ggml.{field}_token_id"] = numbers[text]
    return out
