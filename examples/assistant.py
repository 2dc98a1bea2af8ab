"""Train a small language model on the texts of this repository, and write it as a folder that `mlc chat` talks to.

    python examples/assistant.py                         # half an hour on two cores; writes examples/assistant
    mlc chat examples/assistant

It reads the Markdown files, the first lines of the documentation of public functions and the titles of error codes, as
answers to questions like "What does mlc.cumsum do?". The tokens are bytes and sequences of bytes that are frequent
(byte-level BPE), the model is a Llama of 0.9 million parameters, and the files are those of transformers, which
`mlc.models.load` and transformers read.

The folder in the repository had 1700 steps, before the first questions of a conversation were asked more often, and
then 450 more: `--start examples/assistant --steps 450 --lr 1.2e-3 --seed 1`.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from mlc import nn
from mlc.models.config import read_config
from mlc.models.fields import Fields
from mlc.models.folder import CausalLM, build
from mlc.models.parameters import Drawn
from mlc.tools import codes

Array = np.ndarray[Any, Any]
F = nn.functional
ROOT = Path(__file__).parent.parent

USER, ASSISTANT, END = "<|user|>", "<|assistant|>", "<|end|>"
CONTEXT = 256
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 1024, "hidden_size": 128,
    "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 32, "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "hidden_act": "silu", "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False,
    "bos_token_id": None, "eos_token_id": 2, "torch_dtype": "float16"}
TEMPLATE = ("{% for m in messages %}{% if m.role == 'user' %}" + USER + "{{ m.content | trim }}" + ASSISTANT
            + "{% elif m.role == 'assistant' %}{{ m.content | trim }}" + END + "{% elif m.role != 'system' %}"
            "{{ raise_exception('a role is user or assistant') }}{% endif %}{% endfor %}")
HELLO = [
    (("Hello!", "hello", "Hello", "Hi", "hi", "hi!", "Good morning", "hello there", "hey"),
     "Hello! Ask me about mlc: what a function does, or what an error code means."),
    (("What is mlc?", "what is mlc", "What's mlc?", "Tell me about mlc", "Explain mlc", "mlc?"),
     "mlc is a machine-learning framework that is a compiler all the way down, in readable Python. A model becomes IR "
     "with MLIR's syntax; derivatives, fusion and lowering are passes over that IR; what leaves at the end is machine "
     "code, made by LLVM."),
    (("Who are you?", "What are you?", "who are you", "What can you do?"),
     "I am a small language model, trained on the texts of mlc by mlc itself. I know its functions and error codes."),
    (("Thank you", "thanks", "Thanks!"), "You are welcome."),
    (("How do I install mlc?", "how to install mlc", "How can I try mlc?"),
     "From a checkout: python3 -m venv .venv && .venv/bin/pip install -e '.[cli]'. It takes Linux and Python 3.11 or "
     "newer."),
    (("How do I compile a function?", "How do I use mlc.compile?", "how do I compile a model"),
     "Write @mlc.compile above it, or call mlc.compile(f). The first call compiles it for the sizes of its arguments."),
    (("How do I compute a gradient?", "How do I differentiate a function?", "how do I get gradients"),
     "mlc.grad(f) is the function that computes the gradient of f by its first argument; mlc.value_and_grad(f) gives "
     "the value, too."),
    (("How do I load a model?", "How do I generate text?"),
     "model = mlc.models.load(folder) reads a folder of transformers, and mlc.generate(model, prompt) answers."),
]
OFTEN = 25
"""How often these are among the questions: people begin with them."""
FUNCTION_QUESTIONS = ("What does {} do?", "what does {} do", "What is {}?", "Explain {}", "{}?")
CODE_QUESTIONS = ("What is {}?", "What does {} mean?", "Explain {}", "what does the error {} mean?", "{}?")


# -- what it reads ----------------------------------------------------------------------------------------------------
def texts() -> list[str]:
    """The Markdown files of the repository."""
    files = sorted(p for p in ROOT.rglob("*.md") if ".venv" not in p.parts and not any(
        q.is_symlink() for q in p.parents) and not any(part.startswith(".") for part in p.relative_to(ROOT).parts))
    return [p.read_text(encoding="utf-8") for p in files]


def questions() -> list[tuple[tuple[str, ...], str]]:
    """(ways to ask, the answer), of public functions, layers, optimisers and error codes."""
    out = HELLO * OFTEN
    spaces = {"mlc": mlc, "nn": nn, "mlc.optim": mlc.optim, "mlc.random": mlc.random, "mlc.linalg": mlc.linalg,
              "mlc.fft": mlc.fft}
    for prefix, space in spaces.items():
        for name in sorted(n for n in space.__all__ if not n.startswith("_")):
            thing = getattr(space, name)
            if callable(thing) and (doc := inspect.getdoc(thing)):
                full = f"{prefix}.{name}"
                answer = f"{full}: " + " ".join(doc.split("\n\n")[0].split())
                ways = tuple(q.format(n) for q in FUNCTION_QUESTIONS for n in (full, name))
                out.append((ways, answer[:300]))
    for code in codes.load().values():
        out.append((tuple(q.format(code.name) for q in CODE_QUESTIONS), f"{code.name}: {code.title}"))
    return out


def turn(question: str, answer: str) -> str:
    return f"{USER}{question}{ASSISTANT}{answer}{END}"


def make_tokenizer(corpus: list[str]) -> Any:
    """Bytes, the most frequent sequences of them, and the three signs of a conversation."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=CONFIG["vocab_size"], special_tokens=[USER, ASSISTANT, END],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


class Data:
    """Rows of CONTEXT + 1 tokens: pieces of the texts, or conversations from their start."""

    def __init__(self, tokenizer: Any, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.text = np.array(tokenizer.encode("\n\n".join(texts())).ids, np.int64)
        self.turns = [[tokenizer.encode(turn(way, answer)).ids for way in ways] for ways, answer in questions()]
        self.order: Iterator[int] = iter(())

    def batch(self, size: int) -> Array:
        return np.stack([self.conversation() if self.rng.random() < 0.75 else self.piece() for _ in range(size)])

    def piece(self) -> Array:
        start = self.rng.integers(0, len(self.text) - CONTEXT - 1)
        return self.text[start: start + CONTEXT + 1]

    def conversation(self) -> Array:
        row = list[int]()
        while len(row) <= CONTEXT:
            number = next(self.order, None)
            if number is None:                             # each answer once in every round
                self.order = iter(self.rng.permutation(len(self.turns)).tolist())
                continue
            ways = self.turns[number]
            row += ways[self.rng.integers(len(ways))]
        return np.array(row[: CONTEXT + 1], np.int64)


# -- training ---------------------------------------------------------------------------------------------------------
def loss(model: CausalLM, rows: mlc.Tensor) -> mlc.Tensor:
    scores: mlc.Tensor = model(rows[:, :-1])
    return F.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten())


def train(data: Data, steps: int, size: int, lr: float, seed: int, start: Path | None = None) -> CausalLM:
    """The model after so many steps, from random weights or those of a folder, with messages on the way."""
    model = build(read_config(Fields(CONFIG, "CONFIG")), Drawn(seed))
    if start is not None:
        model.load_state_dict(nn.load_safetensors(start / "model.safetensors"))
    rate = mlc.optim.schedules.warmup(mlc.optim.schedules.cosine(lr, steps, lr / 20), max(1, steps // 20))
    optimizer = mlc.optim.AdamW(lr=rate, betas=(0.9, 0.95), weight_decay=0.05,
                                groups=[(lambda name: "norm" in name, {"weight_decay": 0.0})])

    def step(model: CausalLM, state: Any, rows: mlc.Tensor) -> Any:
        value, gradients = mlc.value_and_grad(loss)(model, rows)
        gradients, _ = mlc.optim.clip_by_global_norm(gradients, 1.0)
        model, state = optimizer.update(gradients, state, model)
        return model, state, value

    run, state, started = mlc.compile(step, donate=("model", "state")), optimizer.init(model), time.perf_counter()
    for i in range(steps):
        model, state, value = run(model, state, data.batch(size))
        if i % max(1, steps // 40) == 0 or i == steps - 1:
            print(f"step {i:5}/{steps}  loss {value.item():.3f}  {time.perf_counter() - started:6.1f} s",
                  file=sys.stderr, flush=True)
    return model


def write(model: CausalLM, tokenizer: Any, folder: Path) -> None:
    """The files of the model, as transformers has them."""
    folder.mkdir(parents=True, exist_ok=True)
    nn.save_safetensors(folder / "model.safetensors", {
        name: x.detach().to("float16") for name, x in model.state_dict().items()})
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    for name, content in (("config.json", CONFIG), ("generation_config.json", {
            "eos_token_id": 2, "do_sample": False, "max_new_tokens": 120}), ("tokenizer_config.json", {
            "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "chat_template": TEMPLATE,
            "clean_up_tokenization_spaces": False, "model_max_length": CONTEXT})):
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def right_answers(folder: Path, count: int, seed: int = 1) -> float:
    """The part of some questions that the written model answers word by word."""
    model, rng = mlc.models.load(folder), np.random.default_rng(seed)
    every = questions()
    asked = [every[i] for i in rng.choice(len(every), count, replace=False)]
    prompts = [model.chat_tokens([{"role": "user", "content": ways[0]}]) for ways, _ in asked]
    answers = mlc.generate(model, prompts, max_tokens=120)
    return float(np.mean([re.sub(r"\s+", " ", a.text).strip() == answer for a, (_, answer) in zip(answers, asked)]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small model on the texts of mlc, for mlc chat.")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "examples" / "assistant", help="folder to write")
    parser.add_argument("--steps", type=int, default=1700, help="training steps (default 1700)")
    parser.add_argument("--batch", type=int, default=8, help=f"rows of {CONTEXT} tokens in a step (default 8)")
    parser.add_argument("--lr", type=float, default=3e-3, help="highest learning rate (default 3e-3)")
    parser.add_argument("--start", type=Path, metavar="FOLDER", help="go on with the model of a folder")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tokenizer = (mlc.models.load(options.start).tokenizer.rules if options.start else
                 make_tokenizer([*texts(), *(turn(ways[0], answer) for ways, answer in questions())]))
    data = Data(tokenizer, options.seed)
    print(f"{len(data.text)} tokens of text, {len(data.turns)} questions", file=sys.stderr)
    model = train(data, options.steps, options.batch, options.lr, options.seed, options.start)
    write(model, tokenizer, options.output)
    print(f"{right_answers(options.output, 40):.0%} of 40 questions answered word by word")


if __name__ == "__main__":
    main()
