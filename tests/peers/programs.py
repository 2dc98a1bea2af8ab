"""Run public PyTorch programs under mlc, with nothing changed but their imports, and compare the losses with PyTorch's.

    python -m tests.peers.programs --tutorials [--only REGEX] [--keep FOLDER]
    python -m tests.peers.programs --examples REPOSITORY --mingpt REPOSITORY [--only REGEX] [--keep FOLDER]

The tutorials are short programs of ours, `tutorials/`, in the manner of public ones; what they print is compared, too.
The repositories are checkouts, or bare git directories, of https://github.com/pytorch/examples and
https://github.com/karpathy/minGPT. A program is copied, with `IMPORTS` applied in the copy for mlc and with `edits`
that make it small in both copies; the data are random, and torchvision, gymnasium and requests are stand-ins.

Each program runs three times: under PyTorch; under mlc with the same parameters, the same random numbers and without
dropout, so that the losses have to agree; and under mlc as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
IMPORTS = (
    (r"^(\s*)import torch(?=\s*(#.*)?$)", r"\1import mlc as torch"),
    (r"^(\s*)import torch(?=\.)", r"\1import mlc"),
    (r"^(\s*)from torch(?=[. ])", r"\1from mlc"),
)
"""All that is changed of a program for mlc: regular expressions, by line, and what they are replaced by."""
TOLERANCE = 2e-3
"""Relative difference of two losses that agree: float32, over some steps of training."""


@dataclass(frozen=True)
class Program:
    """A program, and how it is made small.

    Attributes:
        files: Its files in the repository.
        script: The file that is run, one of them or of `added`.
        arguments: Command line.
        edits: Texts of the files that are replaced under both libraries, because they are sizes, or
            because PyTorch 2.13 no longer runs them, and by what.
        added: Files of ours: drivers where the repository has networks only, and data.
        folders: Folders that the program expects to exist.
        limit: Number of losses after which the run ends.
        repository: The option that names its repository.
        printed: Whether what it prints is compared, too.
    """

    files: tuple[str, ...]
    script: str
    arguments: tuple[str, ...] = ()
    edits: tuple[tuple[str, str], ...] = ()
    added: dict[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    limit: int = 30
    repository: str = "examples"
    printed: bool = False


def _words(count: int, seed: int) -> str:
    numbers = [(seed * 7919 + i * i * 31 + i * 17) % 23 for i in range(count)]
    return "\n".join(" ".join(f"w{n}" for n in numbers[i:i + 12]) for i in range(0, count, 12)) + "\n"


SUPER_RESOLUTION = '''
import numpy as np
import torch
from torch.utils.data import TensorDataset

def get_training_set(upscale_factor, count=12):
    images = torch.from_numpy(np.random.default_rng(count).random((count, 1, 24, 24), np.float32))
    return TensorDataset(torch.nn.functional.avg_pool2d(images, upscale_factor), images)

def get_test_set(upscale_factor):
    return get_training_set(upscale_factor, 6)
'''
STYLE = '''
import torch
from transformer_net import TransformerNet
from vgg import Vgg16
import utils

network, features = TransformerNet(), Vgg16()
optimizer, loss = torch.optim.Adam(network.parameters(), 1e-3), torch.nn.MSELoss()
style = [utils.gram_matrix(y) for y in features(utils.normalize_batch(torch.rand(2, 3, 32, 32) * 255 * 0 + 90))]
for step in range(3):
    x = (torch.randn(2, 3, 32, 32) * 40 + 120).clamp(0, 255)
    optimizer.zero_grad()
    found, wanted = features(utils.normalize_batch(network(x))), features(utils.normalize_batch(x))
    total = 1e5 * loss(found.relu2_2, wanted.relu2_2)
    total += 1e10 * sum(loss(utils.gram_matrix(y), s) for y, s in zip(found, style))
    total.backward()
    optimizer.step()
torch.save(network.eval().cpu().state_dict(), "style.model")
network.load_state_dict(torch.load("style.model"))
utils.save_image("out.png", network(x)[0].detach())
'''
MINGPT = '''
import torch
from torch.utils.data import Dataset
from mingpt.model import GPT
from mingpt.trainer import Trainer
from mingpt.utils import set_seed

class Sums(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        x = torch.tensor([(index * k + k * k) % 11 for k in range(9)], dtype=torch.long)
        return x[:-1], x[1:]

set_seed(3407)
config = GPT.get_default_config()
config.model_type, config.vocab_size, config.block_size = "gpt-nano", 11, 8
model = GPT(config)
config = Trainer.get_default_config()
config.max_iters, config.batch_size, config.num_workers, config.learning_rate = 12, 8, 0, 3e-3
trainer = Trainer(config, model, Sums())
trainer.set_callback("on_batch_end", lambda t: print(t.iter_num, t.loss.item()))
trainer.run()
model.eval()
print(model.generate(torch.tensor([[1, 2, 3]]), 5, do_sample=False))
print(model.generate(torch.tensor([[1, 2, 3]]), 5, do_sample=True, top_k=4).shape)
'''
TRANSLATION = '''
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

SYMBOLS = {"<unk>": 0, "<pad>": 1, "<bos>": 2, "<eos>": 3}

def sentences(count, seed):
    for i in range(count):
        words = [4 + (seed + i * i + 3 * k) % 9 for k in range(2 + (i + seed) % 4)]
        yield torch.tensor([2, *words, 3]), torch.tensor([2, *reversed(words), 3])

def collate(batch):
    return tuple(pad_sequence(side, padding_value=1) for side in zip(*batch))

def get_data(opts):
    train, valid = (DataLoader(list(sentences(n, n)), batch_size=opts.batch, collate_fn=collate) for n in (20, 6))
    return train, valid, range(13), range(13), None, None, SYMBOLS

def generate_square_subsequent_mask(size, device):
    mask = (torch.triu(torch.ones((size, size), device=device)) == 1).transpose(0, 1).float()
    return mask.masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, float(0.0))

def create_mask(src, tgt, pad_idx, device):
    src_mask = torch.zeros((src.shape[0], src.shape[0]), device=device).type(torch.bool)
    tgt_mask = generate_square_subsequent_mask(tgt.shape[0], device)
    return src_mask, tgt_mask, (src == pad_idx).transpose(0, 1), (tgt == pad_idx).transpose(0, 1)
'''
SMALL = ("--epochs", "2", "--batch-size", "16", "--test-batch-size", "24", "--log-interval", "2")
MINGPT_FILES = tuple(f"mingpt/{name}.py" for name in ("__init__", "model", "trainer", "utils"))
LANGUAGE = tuple(f"word_language_model/{name}.py" for name in ("data", "main", "model", "generate"))
LANGUAGE_ARGUMENTS = ("--data", ".", "--emsize", "16", "--nhid", "16", "--epochs", "1", "--batch_size", "4", "--bptt",
                      "9", "--log-interval", "4")
TEXTS = {"train.txt": _words(240, 1), "valid.txt": _words(120, 2), "test.txt": _words(120, 3)}
PROGRAMS = {
    "mnist": Program(("mnist/main.py",), "main.py", (*SMALL, "--save-model")),
    "mnist_rnn": Program(("mnist_rnn/main.py",), "main.py", (*SMALL, "--save-model")),
    "mnist_forward_forward": Program(("mnist_forward_forward/main.py",), "main.py", (
        "--epochs", "6", "--train_size", "40", "--test_size", "20", "--log-interval", "2", "--save_model")),
    "vae": Program(("vae/main.py",), "main.py", ("--epochs", "2", "--batch-size", "16", "--log-interval", "2"),
                   folders=("results",)),
    "dcgan": Program(("dcgan/main.py",), "main.py", (
        "--dataset", "fake", "--workers", "0", "--batchSize", "8", "--niter", "1", "--ngf", "8", "--ndf", "8",
        "--nz", "16", "--manualSeed", "5")),
    "gat": Program(("gat/main.py",), "main.py", ("--epochs", "8", "--hidden-dim", "16", "--num-heads", "4",
                                                 "--val-every", "2"),
                   (("idx[:1200], idx[1200:1600], idx[1600:]", "idx[:30], idx[30:50], idx[50:]"),)),
    "gcn": Program(("gcn/main.py",), "main.py", ("--epochs", "8", "--val-every", "2"),
                   (("idx[:1000], idx[1000:1500], idx[1500:]", "idx[:30], idx[30:50], idx[50:]"),)),
    "regression": Program(("regression/main.py",), "main.py"),
    "reinforce": Program(("reinforcement_learning/reinforce.py",), "reinforce.py", ("--log-interval", "2"), limit=6),
    "actor_critic": Program(("reinforcement_learning/actor_critic.py",), "actor_critic.py", ("--log-interval", "2"),
                            limit=6),
    "siamese_network": Program(("siamese_network/main.py",), "main.py", (
        "--epochs", "1", "--batch-size", "24", "--test-batch-size", "24", "--log-interval", "1", "--lr", "0.1",
        "--save-model")),
    "super_resolution": Program(("super_resolution/main.py", "super_resolution/model.py"), "main.py", (
        "--upscale_factor", "2", "--batchSize", "4", "--testBatchSize", "3", "--nEpochs", "2", "--threads", "0",
        "--lr", "0.001"), added={"data.py": SUPER_RESOLUTION}),
    "time_sequence_prediction": Program(
        ("time_sequence_prediction/train.py", "time_sequence_prediction/generate_sine_wave.py"), "both.py",
        ("--steps", "1"), (("L = 1000", "L = 24"), ("N = 100", "N = 8"), ("future = 1000", "future = 10"),
                              ("torch.load('traindata.pt')", "torch.load('traindata.pt', weights_only=False)")),
        {"both.py": "import runpy\nimport generate_sine_wave\nrunpy.run_path('train.py', run_name='__main__')\n"},
        limit=12),
    "word_language_model": Program(LANGUAGE, "main.py", LANGUAGE_ARGUMENTS, added=TEXTS),
    "word_language_model (Transformer)": Program(LANGUAGE, "main.py", (
        *LANGUAGE_ARGUMENTS, "--model", "Transformer", "--lr", "1"), added=TEXTS),
    "fast_neural_style": Program(tuple(f"fast_neural_style/neural_style/{n}.py" for n in (
        "transformer_net", "vgg", "utils")), "style.py", added={"style.py": STYLE}),
    "mnist_hogwild": Program(("mnist_hogwild/main.py", "mnist_hogwild/train.py"), "main.py", (
        "--batch-size", "16", "--epochs", "1", "--log-interval", "2", "--save_model")),
    "imagenet": Program(("imagenet/main.py",), "main.py", (
        "--dummy", "--batch-size", "4", "--epochs", "2", "--workers", "0", "--lr", "0.001", "--print-freq", "1"),
        (("FakeData(1281167, (3, 224, 224)", "FakeData(12, (3, 96, 96)"),
         ("FakeData(50000, (3, 224, 224)", "FakeData(8, (3, 96, 96)"))),
    "language_translation": Program(("language_translation/main.py", "language_translation/src/model.py"), "main.py", (
        "--epochs", "2", "--batch", "5", "--attn_heads", "2", "--enc_layers", "2", "--dec_layers", "2", "--embed_size",
        "16", "--dim_feedforward", "32", "--lr", "0.001", "--logging_dir", "logs/"),
        added={"src/data.py": TRANSLATION}),
    "minGPT (adder)": Program((*MINGPT_FILES, "projects/adder/adder.py"), "projects/adder/adder.py", (
        "--data.ndigit=1", "--trainer.max_iters=12", "--trainer.batch_size=8", "--trainer.num_workers=0"),
        repository="mingpt"),
    "minGPT (chargpt)": Program((*MINGPT_FILES, "projects/chargpt/chargpt.py"), "projects/chargpt/chargpt.py", (
        "--data.block_size=16", "--trainer.max_iters=8", "--trainer.batch_size=4", "--trainer.num_workers=0",
        "--model.model_type=gpt-nano"), (("model.generate(x, 500", "model.generate(x, 20"),),
        {"input.txt": "O God, O God! how weary, stale, flat and unprofitable\n" * 4}, repository="mingpt"),
    "minGPT": Program(MINGPT_FILES, "train.py", added={"train.py": MINGPT}, repository="mingpt"),
}
TUTORIALS = {file.stem: Program((file.name,), file.name, limit=1000, repository="tutorials", printed=True)
             for file in sorted((HERE / "tutorials").glob("*.py"))}
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
SHOWN = (
    (r",\s*(requires_grad=True|grad_fn=<\w+>|dtype=(torch|mlc)\.\w+)", ""),
    (r"torch\.Size\(\[(.*?)\]\)", r"(\1)"),
    (r"Parameter containing:\s*", ""), (r"\bmlc\b", "torch"), (r",\)", ")"), (r"\s+", " "), (r" ?([][(),]) ?", r"\1"))
"""Differences of texts that are none of programs: of the forms in which tensors, shapes and modules are shown."""


def for_mlc(text: str) -> str:
    """The text of a program with its imports changed."""
    for pattern, replacement in IMPORTS:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def read(repository: Path, path: str) -> str:
    """A file of a checkout, or of the head of a bare repository."""
    if (repository / path).is_file():
        return (repository / path).read_text(encoding="utf-8")
    return subprocess.run(["git", "-C", repository, "show", f"HEAD:{path}"], check=True, capture_output=True,
                          encoding="utf-8").stdout


def copy(program: Program, repository: Path, folder: Path, library: str) -> None:
    """Write the files of a program, and the stand-ins, into a folder."""
    change = for_mlc if library == "mlc" else str
    strip = program.files[0].rpartition("/")[0] + "/" if program.repository == "examples" else ""
    for path in program.files:
        text = read(repository, path)
        for before, after in program.edits:
            text = text.replace(before, after)
        target = folder / path.removeprefix(strip)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(change(text), encoding="utf-8")
    for name, text in program.added.items():
        (folder / name).write_text(change(text), encoding="utf-8")
    for name in program.folders:
        (folder / name).mkdir()
    for file in (HERE / "standins").rglob("*.py"):
        target = folder / file.relative_to(HERE / "standins")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")


def run(program: Program, folder: Path, library: str, state: str, seconds: float) -> dict[str, Any]:
    """Losses and first error of a run in a child process."""
    out = folder / "result.json"
    command = [sys.executable, str(HERE / "program_run.py"), library, str(out), state, str(program.limit),
               program.script, *program.arguments]
    try:
        child = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds,
                               env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
    except subprocess.TimeoutExpired:
        return {"losses": [], "error": f"it ran for more than {seconds:.0f} s"}
    (folder / "output.txt").write_text(child.stdout + child.stderr)
    (folder / "printed.txt").write_text(child.stdout)
    if not out.exists():
        return {"losses": [], "error": f"the process ended with {child.returncode}: {child.stderr[-300:]}"}
    return json.loads(out.read_text())  # type: ignore[no-any-return]


def difference(found: list[float], wanted: list[float]) -> float:
    """The largest relative difference of two curves; infinite where they have different lengths."""
    if len(found) != len(wanted) or not wanted:
        return float("inf")
    return max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(found, wanted))


def printed_difference(found: str, wanted: str) -> str:
    """The first difference of two outputs, whose numbers may differ a little; empty if there is none."""
    for pattern, replacement in SHOWN:
        found, wanted = re.sub(pattern, replacement, found), re.sub(pattern, replacement, wanted)
    texts = NUMBER.split(found), NUMBER.split(wanted)
    numbers = ([float(x) for x in NUMBER.findall(text)] for text in (found, wanted))
    before = ""
    for a, b, x, y in zip(*texts, *([*n, 0.0] for n in numbers)):
        if a != b:
            return f"prints {before}{a[:80]!r} for {b[:80]!r}"
        if abs(x - y) > TOLERANCE * abs(y) + 1e-4:
            return f"prints {x} for {y} after {(before + a)[-60:]!r}"
        before = f"{before}{a}{y}"[-40:]
    return "" if len(texts[0]) == len(texts[1]) else f"prints {len(found)} characters for {len(wanted)}"


def judge(program: Program, repository: Path, folder: Path, seconds: float) -> list[str]:
    """The columns of a program's row: how it runs, whether its losses agree, and its first error."""
    state = folder / "parameters"
    state.mkdir(parents=True)
    results = {}
    for name, library, given in (("torch", "torch", str(state)), ("shared", "mlc", str(state)), ("plain", "mlc", "-")):
        (folder / name).mkdir()
        copy(program, repository, folder / name, library)
        results[name] = run(program, folder / name, library, given, seconds)
    if error := results["torch"]["error"]:
        return ["PyTorch fails", "", str(error)]
    shared, plain, wanted = results["shared"], results["plain"], results["torch"]["losses"]
    printed = ""
    if program.printed and shared["error"] is None:
        printed = printed_difference(*((folder / n / "printed.txt").read_text() for n in ("shared", "torch")))
    if not wanted:
        compared = (printed or "prints the same") if program.printed else "no losses in this process"
        return ["runs" if plain["error"] is None else "fails", compared, str(plain["error"] or shared["error"] or "")]
    far = difference(shared["losses"], wanted)
    curve = f"{len(wanted)} losses, {wanted[0]:.4g} to {wanted[-1]:.4g}"
    agree = (f"{curve}: difference {far:.1e}" + ("" if far <= TOLERANCE else " TOO FAR") if far < float("inf")
             else f"{len(shared['losses'])} of {curve}")
    return ["runs" if plain["error"] is None else "fails", f"{agree} {printed}".strip(),
            str(plain["error"] or shared["error"] or "")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=Path, help="https://github.com/pytorch/examples")
    parser.add_argument("--mingpt", type=Path, help="https://github.com/karpathy/minGPT")
    parser.add_argument("--only", default="", help="regular expression that the names of programs have to match")
    parser.add_argument("--keep", type=Path, help="folder in which copies and outputs are kept")
    parser.add_argument("--limit", type=float, default=240, help="seconds per run")
    parser.add_argument("--tutorials", action="store_const", const=HERE / "tutorials", help="run the programs of ours")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for name, program in (PROGRAMS | TUTORIALS).items():
            repository = getattr(options, program.repository)
            if repository is not None and re.search(options.only, name):
                folder = (options.keep or Path(temporary)) / re.sub(r"\W+", "_", name)
                row = judge(program, repository.absolute(), folder.absolute(), options.limit)
                print(" | ".join([name, *row]).replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
