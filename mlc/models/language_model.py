"""A language model with all that belongs to it: weights, tokenizer, template of conversations, usual options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mlc.frontend.arguments import coded
from mlc.frontend.generator import default_generator
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError, UserTypeError
from mlc.models.beams import BeamSearch, beam_search, check_options
from mlc.models.cache import CacheType
from mlc.models.constraints import Constraint
from mlc.models.drafting import Draft, DraftModel, PromptLookup
from mlc.models.embeddings import Embedder, Pooling, read_pooling
from mlc.models.encoder import Encoder
from mlc.models.folder import CausalLM, Module, read_folder
from mlc.models.generation import Piece, Request, completions
from mlc.models.gguf import is_encoder_file, read_encoder, read_gguf, read_gguf_file, read_pooling_of
from mlc.models.gguf.vocabulary import GGUFVocabulary
from mlc.models.prompts import Prompt, is_prompt, listed, tokens_of, whole
from mlc.models.quantized import QuantizedTensor
from mlc.models.sampling import Sampling, check_number, not_finite
from mlc.models.scheduler import pieces
from mlc.models.steps import Steps
from mlc.models.text import ChatTemplate, Message, Tokenizer, read_template
from mlc.models.usual import Usual, usual_of

if TYPE_CHECKING:
    from mlc.models.constraints.automaton import Automaton
    from mlc.models.constraints.vocabulary import Vocabulary

Array = np.ndarray[Any, Any]

_MOST_AUTOMATA, _MOST_STATES = 32, 20_000
"""How many constraints a model keeps, and how large they may have become."""


class LanguageModel:
    """A language model that is ready to generate, or to give vectors of texts; `mlc.models.load` makes it of a folder.

    Attributes:
        module: The `nn.Module`: tokens [batch, n] to scores [batch, n, vocabulary]. That of an encoder takes the
            lengths of the texts, too, and gives the numbers of their tokens.
        config: What it consists of.
        tokenizer: Of text; None if the folder has none.
        template: Of conversations; None if the folder has none.
        usual: The options that the folder recommends.

    Args:
        module: As above.
        tokenizer: As above.
        template: As above.
        usual: As above.
        origin: The folder, for messages.
        integer_products: Whether steps that read and generate multiply with quantised weights by integers.
        pooling: How vectors of texts are made of those of their tokens.
        cache_dtype: Type of the numbers of the cache.

    Example:
        >>> model = mlc.models.load("examples/assistant")
        >>> type(model).__name__, model.tokenizer is not None
        ('LanguageModel', True)
    """

    def __init__(self, module: Module, tokenizer: Tokenizer | None, template: ChatTemplate | None, usual: Usual,
                 origin: str, integer_products: bool = False, pooling: Pooling | None = None,
                 cache_dtype: CacheType = "float32") -> None:
        self.module, self.config = module, module.config
        self.tokenizer, self.template, self.usual, self.origin = tokenizer, template, usual, origin
        self.integer_products, self.cache_dtype = integer_products, cache_dtype
        self._embedder = Embedder(module, pooling or Pooling())
        self._automata: dict[str, Automaton] = {}

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens as bytes, for constraints."""
        from mlc.models.constraints.vocabulary import vocabulary_of
        return vocabulary_of(self.text_tools(), self.config.vocabulary)

    @property
    def generates(self) -> bool:
        """Whether it is a decoder; an encoder gives vectors only."""
        return not isinstance(self.module, Encoder)

    @property
    def decoder(self) -> CausalLM:
        """The module, if it is one that generates; an error if it is an encoder."""
        if isinstance(self.module, Encoder):
            raise UserError(f"{self.origin} is an encoder ({self.config.architecture}), which does not generate",
                            code="MLC0990", loc=user_loc(), hint="model.embed gives vectors of texts")
        return self.module

    @cached_property
    def steps(self) -> Steps:
        """The compiled steps of a decoder."""
        return Steps(self.decoder, self.integer_products, self.cache_dtype)

    # -- generation -----------------------------------------------------------------------------------------------
    def generate(self, prompts: Prompt | Sequence[Prompt], draft: Draft | LanguageModel | None = None,
                 num_beams: int = 1, length_penalty: float = 1.0, early_stopping: bool | Literal["never"] = False,
                 **options: Any) -> Any:
        """Answer a prompt, or several at once: `mlc.generate`, which lists the options.

        Args:
            prompts: A text, its tokens, or a list of such prompts.
            draft: As of `mlc.generate`.
            num_beams: As of `mlc.generate`.
            length_penalty: As of `mlc.generate`.
            early_stopping: As of `mlc.generate`.
            options: As of `mlc.generate`.

        Returns:
            A `Completion`, or a list of them for a list of prompts.
        """
        single = is_prompt(prompts)
        several = listed(prompts)
        if not several:
            return []
        if num_beams != 1:
            search = BeamSearch(num_beams, length_penalty, early_stopping)
            check_options(options, draft)
            found = beam_search(self, self.requests(several, **options)[0], search)
            return found[0] if single else found
        requests, top = self.requests(several, **options)
        found = completions(pieces(self, requests, top, draft_of(draft)), requests)
        return found[0] if single else found

    def stream(self, prompt: Prompt, draft: Draft | LanguageModel | None = None, **options: Any) -> Iterator[Piece]:
        """Answer a prompt piece by piece.

        Args:
            prompt: A text, or its tokens.
            draft: As of `mlc.generate`.
            options: As of `mlc.generate`.

        Returns:
            Iterator of `Piece`s; the text of all of them is that of the completion.
        """
        requests, top = self.requests([prompt], **options)
        return pieces(self, requests, top, draft_of(draft))

    def embed(self, prompts: Prompt | Sequence[Prompt]) -> Array:
        """A vector for a text, or for each of several: the last hidden numbers of its tokens, pooled.

        The folder of the model says how, as sentence-transformers writes it (`modules.json`); if it does not, it is the
        mean, of length 1. A text has the same vector alone and beside others. A decoder that was not trained to give
        vectors puts texts on the same subject closer than others; an encoder that was trained for retrieval does that
        better.

        Args:
            prompts: A text, its tokens, or a list of such texts.

        Returns:
            Array [width] of float32, or [texts, width] for a list.

        Raises:
            UserError: As `generate` (MLC0913, MLC0915), or a vector is infinite or NaN (MLC0924).

        Example:
            >>> mlc.models.load("examples/assistant").embed("The tensor dialect").shape
            (128,)
        """
        single = is_prompt(prompts)
        several = listed(prompts)
        if not several:
            raise UserError("there is no text", code="MLC0915", loc=user_loc(), hint="give one, or a list of some")
        tokens = [self.embedding_tokens(p) for p in several]
        found = self._embedder(tokens)
        for own, vector in zip(tokens, found):
            if not np.isfinite(vector).all():
                raise not_finite(len(own))
        return found[0] if single else found

    def embedding_tokens(self, prompt: Prompt) -> tuple[int, ...]:
        """The tokens that `embed` reads for a text: those of the prompt that the model has for all texts come first.

        Args:
            prompt: A text, or its tokens.

        Returns:
            Tuple of tokens.

        Raises:
            UserError: As `generate` (MLC0913, MLC0915).
        """
        pooling = self._embedder.pooling
        given = pooling.prompt + prompt if isinstance(prompt, str) else prompt
        return self._tokens(given, min(self.config.context, pooling.limit or self.config.context) + 1, "")

    def chat_tokens(self, messages: Sequence[Message], **more: Any) -> list[int]:
        """The tokens of a conversation, up to where the model goes on.

        Args:
            messages: Dicts with `role` ("system", "user" or "assistant") and `content`.
            more: Further variables of the template, such as `tools`.

        Returns:
            List of tokens, a prompt of `generate` and `stream`.

        Raises:
            UserError: There is no template, or it does not take the messages (MLC0914), or there is no tokenizer
                (MLC0913).
        """
        if self.template is None:
            raise UserError(f"{self.origin} has no template of conversations", code="MLC0914", loc=user_loc(),
                            hint="it was not trained on conversations: use mlc.generate")
        return self.text_tools().encode(self.template.text(messages, **more), special=False)

    def requests(self, prompts: Sequence[Prompt], *, max_tokens: int | None = None, temperature: float | None = None,
                 top_k: int | None = None, top_p: float | None = None, min_p: float | None = None,
                 repetition_penalty: float | None = None, frequency_penalty: float = 0.0,
                 presence_penalty: float = 0.0, logit_bias: Mapping[int, float] | None = None,
                 stop: str | Sequence[str] = (), stop_tokens: Sequence[int] | None = None,
                 seed: int | Sequence[int] | None = None, logprobs: int | None = None,
                 constraint: Constraint | None = None) -> tuple[list[Request], int | None]:
        """The requests that prompts and options say, and how many likely tokens are reported for each token."""
        config = self.decoder.config
        given: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
                                 "repetition_penalty": repetition_penalty}
        if not isinstance(logit_bias, Mapping | None):
            raise _wrong("logit_bias", logit_bias, "it is a mapping of tokens to numbers")
        sampling = replace(self.usual.sampling, **{name: x for name, x in given.items() if x is not None},
                           frequency_penalty=frequency_penalty, presence_penalty=presence_penalty,
                           logit_bias={whole(t): x for t, x in (logit_bias or {}).items()})
        self._check_tokens("logit_bias", sampling.logit_bias)
        if logprobs is not None:
            check_number("logprobs", logprobs, 0, min(64, config.vocabulary), Integral)
        if not isinstance(stop, Iterable | None):
            raise _wrong("stop", stop, "it is a text, or several, none of them empty")
        stops: tuple[Any, ...] = (stop,) if isinstance(stop, str) else tuple(stop or ())
        if any(not isinstance(s, str) or s == "" for s in stops):
            raise _wrong("stop", stop, "it is a text, or several, none of them empty")
        if stops:
            self.text_tools()
        ends = self.usual.stop_tokens if stop_tokens is None else frozenset(map(whole, stop_tokens))
        self._check_tokens("stop_tokens", ends)
        automaton = self._automaton(constraint)
        seeds = self._seeds(seed, len(prompts))
        limit = whole(max_tokens) if max_tokens is not None else self.usual.limit or 256
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise _wrong("max_tokens", max_tokens, "it is an integer of at least 1")
        out = []
        for prompt, own in zip(prompts, seeds):
            tokens = self._tokens(prompt, config.context)
            out.append(Request(tokens, replace(sampling, seed=own), min(limit, config.context - len(tokens)),
                               stops, ends, automaton))
        return out, whole(logprobs)

    def _automaton(self, constraint: Constraint | None) -> Automaton | None:
        """The automaton of a constraint; those of the last ones are kept, with the masks that they have found."""
        if constraint is None:
            return None
        if not isinstance(constraint, Constraint):
            raise UserTypeError(f"constraint is {type(constraint).__name__}", code="MLC0916", loc=user_loc(),
                                hint="mlc.models.Constraint.json_schema, regex, grammar or json makes one")
        key = repr(constraint)
        found = self._automata.pop(key, None)
        if found is None or found.size > _MOST_STATES:
            found = constraint.automaton(self.vocabulary)
        self._automata[key] = found
        while len(self._automata) > _MOST_AUTOMATA:
            del self._automata[next(iter(self._automata))]
        return found

    def _tokens(self, prompt: Prompt, limit: int, answer: str = ", the answer included") -> tuple[int, ...]:
        """The tokens of a prompt, fewer than `limit`."""
        tokens = tuple(self.text_tools().encode(prompt)) if isinstance(prompt, str) else tokens_of(prompt)
        if not tokens:
            raise UserError("a prompt has no tokens", code="MLC0915", loc=user_loc(), hint="it needs at least one")
        self._check_tokens("a prompt", tokens)
        if len(tokens) >= limit:
            raise UserError(f"a prompt has {len(tokens)} tokens, and the model sees {limit - (not answer)}{answer}",
                            code="MLC0915", loc=user_loc(), hint="shorten it")
        return tokens

    def _check_tokens(self, what: str, tokens: Any) -> None:
        wrong = [t for t in tokens if isinstance(t, bool) or not isinstance(t, int) or not 0 <= t <
                 self.config.vocabulary]
        if wrong:
            raise UserError(f"{what} has {wrong[0]!r}, which is no token", code="MLC0915", loc=user_loc(),
                            hint=f"tokens are numbers from 0 to {self.config.vocabulary - 1}")

    def _seeds(self, seed: int | Sequence[int] | None, count: int) -> list[int]:
        if seed is None:
            return [int(x) for x in default_generator.numpy().integers(0, 2**63, count)]
        if isinstance(one := whole(seed), int):
            return [one] * count
        if not isinstance(seed, Sequence) or len(seed) != count:
            raise _wrong("seed", seed, f"it is a number, or a list of {count}, one per prompt")
        return [whole(x) for x in seed]

    def text_tools(self) -> Tokenizer:
        """The tokenizer; an error if there is none."""
        if self.tokenizer is None:
            raise UserError(f"{self.origin} has no tokenizer", code="MLC0913", loc=user_loc(),
                            hint="pass prompts as numbers of tokens, or add a tokenizer.json")
        return self.tokenizer

    def __repr__(self) -> str:
        blocks = [m for m in self.module.modules() if isinstance(m, QuantizedTensor)]
        count = sum(p.numel() for p in self.module.parameters()) + sum(prod(m.shape) - m.blocks.numel() for m in blocks)
        return f"<{self.config.architecture} of {count} parameters from {self.origin}>"


def draft_of(given: Draft | LanguageModel | None) -> Draft | None:
    """The draft that a caller gives; a model is one with the usual number of tokens."""
    if given is None or isinstance(given, PromptLookup | DraftModel):
        return given
    if not isinstance(given, LanguageModel):
        raise UserTypeError(f"draft is {type(given).__name__}", code="MLC0992", loc=user_loc(),
                            hint="it is a mlc.models.PromptLookup or DraftModel, or a language model")
    return DraftModel(given)


def draft_named(word: str | None) -> Draft | None:
    """The draft that an option of a command names: "lookup", or the folder or file of a smaller model."""
    if word is None:
        return None
    return PromptLookup() if word == "lookup" else DraftModel(load(word))


def _wrong(name: str, value: Any, hint: str) -> UserError:
    return UserError(f"{name} is {value!r}", code="MLC0916", loc=user_loc(), hint=hint)


@coded
def load(folder: str | os.PathLike[str], *, integer_products: bool = False,
         cache_dtype: CacheType = "float32") -> LanguageModel:
    """Load a language model from a folder, as transformers and its hub have them, or from a GGUF file of llama.cpp.

    A folder has `config.json` and `model.safetensors` (or shards with an index), and mostly `tokenizer.json`,
    `tokenizer_config.json` with the template of conversations, and `generation_config.json`; or those of
    sentence-transformers (BERT, RoBERTa and their like), which give vectors of texts by `embed`. Weights are mapped
    into memory, not copied, and stay of their type: 16-bit and quantised ones are widened where a product reads them.
    A file has all of that in it, also of a BERT; its weights are F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q5_K or Q6_K.
    Nothing in a folder or file is executed but the template, in jinja2's sandbox.

    Args:
        folder: Path of the folder or the file.
        integer_products: Whether prompts are read and tokens generated with products of integers where weights are
            quantised, whose other factor is rounded to 8 bits, as llama.cpp does. Faster, and a little less exact.
            Scores of texts and vectors of them are always exact.
        cache_dtype: Type of the numbers of the cache: "int8" takes little more than a fourth of the memory, and rounds
            each head of keys and values to 255 steps, so that no number is off by more than a 254th of the greatest one
            of its head.

    Returns:
        The model, which `mlc.generate` takes if it is no encoder.

    Raises:
        UserError: The folder holds no model (MLC0910), one that mlc does not run (MLC0911), or weights that are not
            those of its configuration (MLC0912), its tokenizer (MLC0913) or template (MLC0914) cannot be read, its
            vectors are made in a way that mlc does not know (MLC0991), `cache_dtype` is no type of a cache (MLC0916), a
            package is missing (MLC0917), or the file is damaged (MLC0922).

    Example:
        >>> mlc.models.load("examples/assistant").config.layers
        4
    """
    if cache_dtype not in ("float32", "int8"):
        raise _wrong("cache_dtype", cache_dtype, "it is float32 or int8")
    path = Path(folder)
    if path.suffix == ".gguf":
        return _of_file(path, integer_products, cache_dtype)
    module = read_folder(path)
    tokenizer = Tokenizer.of_file(path / "tokenizer.json") if (path / "tokenizer.json").exists() else None
    return LanguageModel(module, tokenizer, read_template(path), usual_of(path), str(folder),
                         pooling=read_pooling(path), cache_dtype=cache_dtype)


def _of_file(path: Path, integers: bool, cache: CacheType) -> LanguageModel:
    """The model of a GGUF file; one without a vocabulary takes numbers of tokens."""
    file = read_gguf_file(path)
    encodes = is_encoder_file(file)
    module = read_encoder(file) if encodes else read_gguf(file)
    pooling = read_pooling_of(file)
    if "tokenizer.ggml.tokens" not in file.fields:
        return LanguageModel(module, None, None, Usual(Sampling(), frozenset(), None), str(path), integers, pooling,
                             cache)
    vocabulary = GGUFVocabulary(file)
    if len(vocabulary.tokens) > module.config.vocabulary:
        raise UserError(f"{path}: the vocabulary has {len(vocabulary.tokens)} tokens, the model "
                        f"{module.config.vocabulary} embeddings",
                        code="MLC0913", loc=user_loc())
    return LanguageModel(module, vocabulary.tokenizer(), vocabulary.template(),
                         Usual(Sampling(), vocabulary.ends(), None), str(path), integers, pooling, cache)


@coded
def generate(model: LanguageModel, prompts: Prompt | Sequence[Prompt], *, max_tokens: int | None = None,
             temperature: float | None = None, top_k: int | None = None, top_p: float | None = None,
             min_p: float | None = None, repetition_penalty: float | None = None, frequency_penalty: float = 0.0,
             presence_penalty: float = 0.0, logit_bias: Mapping[int, float] | None = None,
             stop: str | Sequence[str] = (), stop_tokens: Sequence[int] | None = None,
             seed: int | Sequence[int] | None = None, logprobs: int | None = None,
             constraint: Constraint | None = None, draft: Draft | LanguageModel | None = None, num_beams: int = 1,
             length_penalty: float = 1.0, early_stopping: bool | Literal["never"] = False) -> Any:
    """Let a language model answer a prompt, or several at once.

    The answers to prompts are computed together, and each is the one that the prompt gets alone: the same tokens for
    the same seed, and the same log-probabilities. Options that are left out are those that the model's folder
    recommends.

    Args:
        model: A model that `mlc.models.load` returns.
        prompts: A text, its tokens as a list or an array of numbers, or a list of such prompts; also an array of two
            dimensions, with a prompt in each row.
        max_tokens: Greatest number of tokens of an answer; 256 by default.
        temperature: Divisor of the scores: the higher, the more random; 0 for the most likely token.
        top_k: How many of the most likely tokens may be drawn; 0 for all.
        top_p: The least probability that the most likely tokens, of which one is drawn, have together.
        min_p: The least probability of a token, as a part of that of the most likely one.
        repetition_penalty: Divisor of the positive scores of tokens that are in the text already, and factor of the
            negative ones.
        frequency_penalty: Subtracted from the score of a token for each time that it was generated.
        presence_penalty: Subtracted from the scores of tokens that were generated.
        logit_bias: What is added to the scores of tokens, by their number.
        stop: A text that ends the answer, which it is not a part of, or several.
        stop_tokens: Tokens that end the answer; by default those that the model's folder names.
        seed: Of the random numbers, for all prompts or for each; by default drawn from the default generator.
        logprobs: How many of the most likely tokens are reported for each token, beside its own log-probability: 0 to
            64; None for no log-probabilities.
        constraint: The texts that the answers may be: a JSON schema, a regular expression or a grammar, as
            `mlc.models.Constraint` makes it. An answer is whole if `max_tokens` is enough for any that is.
        draft: What guesses tokens, which the model then verifies, several at once: a `mlc.models.PromptLookup`, a
            `DraftModel`, or a smaller model of the same vocabulary. The answers are the same, and come sooner where
            guesses are right. Tokens under a constraint are not guessed.
        num_beams: How many sequences a beam search follows for each prompt, to find the answer of the greatest
            log-probability as transformers does; 1 for no search. It takes none of the options of drawing, and no
            `stop`, `constraint`, `logprobs` or `draft`.
        length_penalty: Of a beam search: log-probabilities of answers are divided by their length to this power, from
            -5 to 5.
        early_stopping: Of a beam search: True ends it with `num_beams` answers, "never" once no sequence can become
            better than these, False once none would be if it ended now.

    Returns:
        A `Completion` with `text`, `tokens`, `finish_reason`, `prompt_tokens`, `log_probabilities` and
        `guessed_tokens`; a list of them for a list of prompts.

    Raises:
        UserTypeError: `model` is no language model (MLC0916).
        UserError: An option is out of its range (MLC0916), a prompt is empty, too long or has numbers that are no
            tokens (MLC0915), there is a text and no tokenizer (MLC0913), a constraint cannot be kept (MLC0919), the
            draft is none for the model (MLC0992), an option does not go with `num_beams` (MLC0993), or the model is an
            encoder (MLC0990).

    Example:
        >>> model = mlc.models.load("examples/assistant")
        >>> found = mlc.generate(model, "The tensor dialect", max_tokens=3)
        >>> len(found.tokens), found.finish_reason
        (3, 'length')
    """
    if not isinstance(model, LanguageModel):
        raise UserTypeError(f"generate takes a language model, found {type(model).__name__}", code="MLC0916",
                            loc=user_loc(), hint="mlc.models.load(folder) makes one")
    return model.generate(prompts, max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p,
                          min_p=min_p, repetition_penalty=repetition_penalty, frequency_penalty=frequency_penalty,
                          presence_penalty=presence_penalty, logit_bias=logit_bias, stop=stop,
                          stop_tokens=stop_tokens, seed=seed, logprobs=logprobs, constraint=constraint, draft=draft,
                          num_beams=num_beams, length_penalty=length_penalty, early_stopping=early_stopping)
