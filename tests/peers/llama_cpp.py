"""Speed beside llama.cpp: the same GGUF files, in turns, with as many threads (MLC_NUM_THREADS).

    python -m tests.peers.llama_cpp                        # all types; makes the files in a temporary folder
    python -m tests.peers.llama_cpp --folder F q8_0 q4_0   # some types; files stay in F for the next time
    python -m tests.peers.llama_cpp --shape large          # 1.1 billion parameters in place of 0.5
    python -m tests.peers.llama_cpp --first-token f16      # from the start of a process to the first token instead

It needs the package llama-cpp-python, which builds llama.cpp for this machine. The weights are random. Of each program
the best of several rounds counts, since other programs may run; the machine's rate of reading memory is printed with
it. Where they do, one thread tells more than several, as llama.cpp's threads wait for each other without a pause.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mlc
from mlc.models.gguf.file import Stored
from mlc.models.gguf.writing import Described, write_gguf
from mlc.models.sampling import Kinds, Sampling

VOCABULARY, CONTEXT, PREFILL = 32000, 1024, 512
SEQUENCES = (1, 4, 16)
ROUNDS, STEPS = 3, 8
TYPES = ("f16", "q8_0", "q4_0", "q4_k")


class Shape(NamedTuple):
    """The sizes of a Llama."""

    width: int
    inner: int
    layers: int
    heads: int
    kv_heads: int


SHAPES = {"small": Shape(1280, 3584, 24, 20, 4), "large": Shape(2048, 5632, 22, 32, 4)}


def content(shape: Shape) -> Described:
    """A Llama with random weights, and a vocabulary without meaning."""
    width, size = shape.width, shape.width // shape.heads
    llama = {"context_length": CONTEXT, "embedding_length": width, "block_count": shape.layers,
             "feed_forward_length": shape.inner, "attention.head_count": shape.heads,
             "attention.head_count_kv": shape.kv_heads, "attention.layer_norm_rms_epsilon": 1e-5,
             "rope.dimension_count": size, "rope.freq_base": 10000.0, "vocab_size": VOCABULARY}
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    tokens += [f"t{i}" for i in range(VOCABULARY - len(tokens))]
    words = {"model": "llama", "tokens": tokens, "scores": [0.0] * VOCABULARY, "bos_token_id": 1, "eos_token_id": 2,
             "token_type": [2, 3, 3] + [6] * 256 + [1] * (VOCABULARY - 259)}
    fields = {"general.architecture": "llama", **{f"llama.{name}": x for name, x in llama.items()},
              **{f"tokenizer.ggml.{name}": x for name, x in words.items()}}
    weights = {"token_embd.weight": (VOCABULARY, width), "output_norm.weight": (width,),
               "output.weight": (VOCABULARY, width)}
    for i in range(shape.layers):
        weights |= {f"blk.{i}.{name}.weight": sizes for name, sizes in (
            ("attn_norm", (width,)), ("ffn_norm", (width,)), ("attn_q", (width, width)),
            ("attn_k", (shape.kv_heads * size, width)), ("attn_v", (shape.kv_heads * size, width)),
            ("attn_output", (width, width)), ("ffn_gate", (shape.inner, width)), ("ffn_up", (shape.inner, width)),
            ("ffn_down", (width, shape.inner)))}
    return Described(fields, {name: weight(i, sizes) for i, (name, sizes) in enumerate(weights.items())})


def weight(seed: int, shape: tuple[int, ...]) -> Callable[[], Stored]:
    """A tensor of random numbers; one of a single dimension is that of a norm, and 1."""
    def make() -> Stored:
        numbers = np.random.default_rng(seed)
        x = numbers.standard_normal(shape, np.float32) * np.float32(0.02) if len(shape) > 1 else np.ones(
            shape, np.float32)
        return Stored(x, shape, None)

    return make


class Mlc:
    """Steps of mlc."""

    def __init__(self, path: Path, sequences: int) -> None:
        self.steps = mlc.models.load(path, integer_products=True).steps
        self.sequences, self.position = sequences, 0
        self.state = self.steps.start([[1]] * sequences, [Sampling()] * sequences, CONTEXT, Kinds())
        self.tokens = np.full(sequences, 5, np.int64)

    def step(self) -> None:
        at = np.full(self.sequences, self.position, np.int64)
        self.tokens = self.steps.write(self.state, self.tokens, at, at).tokens.numpy()[:, 0]
        self.position += 1

    def prefill(self) -> None:
        self.steps.read(self.state, 0, list(range(5, 5 + PREFILL)), 0, PREFILL)


class LlamaCpp:
    """Steps of llama.cpp, through the functions of its C library."""

    def __init__(self, path: Path, sequences: int) -> None:
        from llama_cpp import llama_cpp as c
        self.c: Any = c
        self.sequences, self.position = sequences, 0
        self.model = c.llama_model_load_from_file(str(path).encode(), c.llama_model_default_params())
        settings = c.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_seq_max = CONTEXT * sequences, PREFILL, sequences
        settings.n_threads = settings.n_threads_batch = mlc.get_num_threads()
        self.context = c.llama_init_from_model(self.model, settings)
        self.batch = c.llama_batch_init(max(PREFILL, sequences), 0, 1)

    def decode(self, rows: list[tuple[int, int, int]], scored: bool) -> None:
        """Read (token, position, sequence) of each row."""
        self.batch.n_tokens = len(rows)
        for i, (token, position, sequence) in enumerate(rows):
            self.batch.token[i], self.batch.pos[i], self.batch.n_seq_id[i] = token, position, 1
            self.batch.seq_id[i][0], self.batch.logits[i] = sequence, scored
        if self.c.llama_decode(self.context, self.batch) != 0:
            raise SystemExit("llama.cpp does not decode")

    def step(self) -> None:
        self.decode([(5, self.position, i) for i in range(self.sequences)], True)
        self.position += 1

    def prefill(self) -> None:
        self.c.llama_memory_clear(self.c.llama_get_memory(self.context), True)
        self.decode([(5 + i, i, 0) for i in range(PREFILL)], False)

    def close(self) -> None:
        self.c.llama_free(self.context)
        self.c.llama_model_free(self.model)


def best(run: Callable[[], None], times: int) -> float:
    """The least time of several runs, in seconds; of one thread the time of the processor, whoever else runs on it."""
    clock = time.process_time if mlc.get_num_threads() == 1 else time.perf_counter
    found = []
    for _ in range(times):
        started = clock()
        run()
        found.append(clock() - started)
    return min(found)


def measure(path: Path, kind: str) -> None:
    """Print tokens per second of both programs, and their ratio."""
    for sequences in SEQUENCES:
        ours, theirs = Mlc(path, sequences), LlamaCpp(path, sequences)
        for one in (ours, theirs):
            one.step()
        times = [(best(ours.step, STEPS), best(theirs.step, STEPS)) for _ in range(ROUNDS)]
        report(f"{kind} decode {sequences:2} sequences", sequences, times)
        if sequences == 1:
            for one in (ours, theirs):
                one.prefill()
            report(f"{kind} prefill {PREFILL} tokens", PREFILL,
                   [(best(ours.prefill, 1), best(theirs.prefill, 1)) for _ in range(ROUNDS)])
        theirs.close()


ANSWERS = {
    "mlc": """import sys, mlc
model = mlc.models.load(sys.argv[1], integer_products=True)
print(next(model.stream(list(range(5, 21)), max_tokens=2, temperature=0.0, stop_tokens=[])).token, flush=True)
""",
    "llama.cpp": """import sys
import numpy as np
from llama_cpp import llama_cpp as c
model = c.llama_model_load_from_file(sys.argv[1].encode(), c.llama_model_default_params())
settings = c.llama_context_default_params()
settings.n_ctx, settings.n_threads, settings.n_threads_batch = 1024, int(sys.argv[2]), int(sys.argv[2])
context, batch = c.llama_init_from_model(model, settings), c.llama_batch_init(16, 0, 1)
batch.n_tokens = 16
for i in range(16):
    batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = 5 + i, i, 1, 0, i == 15
assert c.llama_decode(context, batch) == 0
print(int(np.ctypeslib.as_array(c.llama_get_logits_ith(context, 15), (32000,)).argmax()), flush=True)
"""}
"""Programs that print the first token behind a prompt of 16; each imports what it needs, and no more."""


def measure_first_token(path: Path, kind: str) -> None:
    """Print the seconds from the start of a process to the first token of both programs, with a warm cache."""
    def once(program: str) -> tuple[float, str]:
        started = time.perf_counter()
        with subprocess.Popen([sys.executable, "-c", ANSWERS[program], str(path), str(mlc.get_num_threads())],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            token = process.stdout.readline()
            seconds = time.perf_counter() - started
        if process.returncode or not token:
            raise SystemExit(f"{program} gives no token")
        return seconds, token

    programs = ("mlc", "llama.cpp")
    found = [[once(program) for program in programs] for _ in range(ROUNDS + 1)][1:]     # the first fills the cache
    ours, theirs = (min(seconds for seconds, _ in column) for column in zip(*found))
    same = "the same token" if len({token for row in found for _, token in row}) == 1 else "other tokens"
    print(f"{kind} first token          mlc {ours:8.2f} s   llama.cpp {theirs:8.2f} s   {theirs / ours:5.2f}x   {same}",
          flush=True)


def report(what: str, tokens: int, times: list[tuple[float, float]]) -> None:
    ours, theirs = (min(column) for column in zip(*times))
    print(f"{what:24} mlc {tokens / ours:8.1f}/s   llama.cpp {tokens / theirs:8.1f}/s   {theirs / ours:5.2f}x",
          flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure decoding and reading of prompts beside llama.cpp.")
    parser.add_argument("--folder", type=Path, help="where the files are, or are made")
    parser.add_argument("--shape", choices=SHAPES, default="small", help="of 0.5 or 1.1 billion parameters")
    parser.add_argument("--first-token", action="store_true", help="measure processes up to the first token")
    parser.add_argument("types", nargs="*", help=f"of weights (default: {' '.join(TYPES)})")
    options = parser.parse_args()
    numbers = np.random.default_rng(0).integers(0, 1 << 60, 1 << 25)
    rate = numbers.nbytes / best(lambda: numbers.max(), 5) / 1e9
    print(f"{mlc.get_num_threads()} threads; one reads {rate:.1f} GB/s")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for kind in options.types or TYPES:
            path = folder / f"{kind}-{options.shape}.gguf"
            if not path.exists():
                write_gguf(path, content(SHAPES[options.shape]), kind)
            print(f"{kind}: {path.stat().st_size / 1e6:.0f} MB")
            (measure_first_token if options.first_token else measure)(path, kind)


if __name__ == "__main__":
    main()
